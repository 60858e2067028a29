//! How many launches a step takes, and what their arguments are.

mod common;

use common::{Choice, ModelConfig};
use warpwright_graph::{KernelLibrary, Plan, PlanOptions};
use warpwright_ptx::ir::Arch;

#[test]
fn real_models_are_planned() {
    for (name, model) in ModelConfig::real() {
        for graph in [model.decode(1, Choice::ArgMax), model.prefill(1, 512, Choice::at_temperature(0.7))] {
            let plan = Plan::new(&graph, &PlanOptions::new(Arch::sm(80), 108), &KernelLibrary);
            let plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
            let memory = plan.memory();
            println!("{name}: {} launches, {} bytes, {} of {}, {}", plan.launches().count(), plan.bytes(), memory.arena_bytes, memory.bound, memory.zeroed_bytes);
        }
    }
}
