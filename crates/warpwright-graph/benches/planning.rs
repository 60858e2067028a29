//! How long a plan takes, from a graph to launches with their memory: `cargo bench -p warpwright-graph --bench planning`.
//! Goal: 20 ms for a model of 32 layers.

#![allow(missing_docs, reason = "a program")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Choice, ModelConfig};
use std::hint::black_box;
use std::time::{Duration, Instant};
use warpwright_graph::{Arithmetic, ComputeGraph, KernelLibrary, Plan, PlanOptions, Program, fuse, library};
use warpwright_ptx::ir::Arch;

fn main() {
    println!(
        "{:16} {:20} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "model", "step", "nodes", "launches", "program", "fuse", "choose", "lower", "plan", "of least"
    );
    for (name, model) in ModelConfig::real() {
        let exact = PlanOptions::new(Arch::sm(90), 132);
        let mut int8 = exact.clone();
        int8.arithmetic = Arithmetic::Int8;
        report(name, "decode", &model.decode(1, Choice::ArgMax), &exact);
        report(name, "decode, int8", &model.decode(1, Choice::ArgMax), &int8);
        report(name, "decode of 4", &model.decode(4, Choice::ArgMax), &exact);
        report(name, "prefill of 512", &model.prefill(1, 512, Choice::ArgMax), &exact);
        report(name, "prefill of 512, int8", &model.prefill(1, 512, Choice::ArgMax), &int8);
    }
}

fn report(model: &str, step: &str, graph: &ComputeGraph, options: &PlanOptions) {
    let plan = || Plan::new(graph, options, &KernelLibrary).expect("a model that there are kernels for");
    let accepts = |fusion, step: &_, program: &_| library::accepts(fusion, step, program, options);
    let program = || Program::new(graph).expect("a graph");
    let mut fused = program();
    fuse(&mut fused, options.fusions, &accepts);
    let mut chosen = fused.clone();
    library::choose(&mut chosen, options, &|_| false, &accepts);
    let times = [
        measure(|| drop(black_box(program()))),
        // With a copy of the program each.
        measure(|| drop(black_box(fuse(&mut program(), options.fusions, &accepts)))),
        measure(|| drop(black_box(library::choose(&mut fused.clone(), options, &|_| false, &accepts)))),
        measure(|| drop(black_box(library::lower(&chosen, options, &|_| false)))),
        measure(|| drop(black_box(plan()))),
    ];
    let times = times.map(|time| format!("{:6.2} ms", time.as_secs_f64() * 1e3));
    let (nodes, launches) = (graph.nodes().len(), plan().launches().count());
    let plan = plan();
    let memory = plan.memory();
    let waste = memory.arena_bytes as f64 / memory.bound.max(1) as f64;
    println!("{model:16} {step:20} {nodes:8} {launches:8} {} {waste:9.4}", times.join(" "));
}

/// Median time of a run.
fn measure(mut run: impl FnMut()) -> Duration {
    const TIME: Duration = Duration::from_millis(300);
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < TIME {
        let start = Instant::now();
        run();
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}
