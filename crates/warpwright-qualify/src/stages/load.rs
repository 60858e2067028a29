//! Every kernel of the catalogue in its configurations, through the driver: does its compiler take them, and what does it
//! make of them?

use super::Item;
use crate::event::{Finding, Loaded};
use crate::measure::{Bench, Failure, Samples, Size};
use crate::models::{Choice, ModelConfig};
use std::time::Instant;
use warpwright_graph::{KernelLibrary, Plan, PlanOptions};
use warpwright_kernels::{Entry, catalogue};
use warpwright_ptx::verify;
use warpwright_runtime::{Device, RuntimeError};

pub(super) fn items(size: Size, quick: bool) -> Vec<Item> {
    let of = |entry: &'static Entry| {
        let configurations = if quick { vec![String::new()] } else { entry.configurations() };
        configurations.into_iter().map(move |assignments| Item {
            name: format!("{} {assignments}", entry.name).trim().to_string(),
            run: Box::new(move |device, found| {
                found(Finding::Loaded(load(device, entry, &assignments)?));
                Ok(())
            }),
        })
    };
    let model = Item::measure("all kernels of Llama-3-8B Q4_K_M", size, start);
    std::iter::once(model).chain(catalogue().iter().flat_map(of)).collect()
}

/// The kernels of a token and of a prompt, one after the other, as the first start of a model compiles them.
fn start(bench: &Bench<'_>, found: &mut dyn FnMut(Finding)) -> Result<(), Failure> {
    let config = ModelConfig::llama_3_8b();
    let config = bench.size.pick(config.scaled_down(1), config.clone(), config);
    let mut seconds = 0.0;
    for graph in [config.decode(1, Choice::ArgMax), config.prefill(1, 64, Choice::ArgMax)] {
        let plan = Plan::new(&graph, &PlanOptions::for_device(bench.device), &KernelLibrary)?;
        let begun = Instant::now();
        for (_, launch) in plan.launches() {
            bench.device.kernel(&**launch.kernel.kernel())?;
        }
        seconds += begun.elapsed().as_secs_f64();
    }
    let figure = Samples(vec![seconds]).figure("all kernels of Llama-3-8B Q4_K_M, compiled", None, None);
    found(Finding::Figure(figure));
    Ok(())
}

fn load(device: &Device, entry: &Entry, assignments: &str) -> Result<Loaded, Failure> {
    let kernel = entry.configure_text(assignments)?;
    let built = kernel.build(device.properties().arch)?;
    let info = verify(&built.module).map_err(RuntimeError::Invalid)?;
    let before = device.statistics().compile_time;
    let module = device.load(&built.module, &info)?;
    let function = module.load_function(&kernel.entry())?;
    let attributes = function.attributes();
    let compiled = device.statistics().compile_time - before;
    Ok(Loaded {
        registers: attributes.registers,
        local_bytes: attributes.local_bytes,
        shared_bytes: attributes.static_shared,
        compile_seconds: compiled.as_secs_f64(),
        compiler: spills(module.compiler_log()),
    })
}

/// The lines of a compiler's log that say how much of a stack a kernel takes, and what is spilled there.
fn spills(log: &str) -> Vec<String> {
    log.lines().map(str::trim).filter(|line| line.contains("spill")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::spills;

    #[test]
    fn the_stack_is_found_in_a_compilers_log() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'f' for 'sm_90'\n\
                   ptxas info    : Function properties for f\n    \
                   16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
                   ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size\n";
        assert_eq!(spills(log), ["16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads"]);
        assert!(spills("").is_empty());
    }
}
