//! Every kernel of the catalogue in its configurations, through the driver: does its compiler take them, and what does it
//! make of them?

use super::Item;
use crate::event::{Finding, Loaded};
use crate::measure::{Bench, Failure, Samples, Size};
use crate::models::{Choice, ModelConfig};
use std::env::temp_dir;
use std::time::Instant;
use std::{fs, process};
use warpwright_graph::{ComputeGraph, KernelLibrary, Plan, PlanOptions};
use warpwright_kernels::{Entry, catalogue};
use warpwright_ptx::verify;
use warpwright_runtime::{CubinCache, CudaConfig, Device, DeviceSpec, RuntimeError};

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

/// The kernels of a token and of a prompt, one after the other: as the first start of a model compiles them, and as later
/// ones load them from the cache.
fn start(bench: &Bench<'_>, found: &mut dyn FnMut(Finding)) -> Result<(), Failure> {
    let config = ModelConfig::llama_3_8b();
    let config = bench.size.pick(config.scaled_down(1), config.clone(), config);
    let graphs = [config.decode(1, Choice::ArgMax), config.prefill(1, 64, Choice::ArgMax)];
    let plan =
        |graph: &ComputeGraph| Plan::new(graph, &PlanOptions::for_device(bench.device), &KernelLibrary);
    let plans = [plan(&graphs[0])?, plan(&graphs[1])?];
    let mut timed = |device: &Device, how: &str| -> Result<(), Failure> {
        let begun = Instant::now();
        for (_, launch) in plans.iter().flat_map(Plan::launches) {
            device.kernel(&**launch.kernel.kernel())?;
        }
        let name = format!("all kernels of Llama-3-8B Q4_K_M, {how}");
        found(Finding::Figure(Samples(vec![begun.elapsed().as_secs_f64()]).figure(name, None, None)));
        Ok(())
    };
    // A virtual GPU compiles nothing.
    let DeviceSpec::Cuda(ordinal) = bench.device.spec() else { return timed(bench.device, "compiled") };
    let directory = temp_dir().join(format!("warpwright-qualify-{}", process::id()));
    let mut config = CudaConfig::new(ordinal);
    config.cubin_cache = CubinCache::at(&directory);
    let starts = ["compiled", "from the cache"].into_iter().try_for_each(|how| {
        // A device of its own, which knows no kernel.
        let device = Device::cuda_with(config.clone())?;
        timed(&device, how)?;
        match (how, device.statistics().modules_compiled) {
            ("compiled", _) | (_, 0) => Ok(()),
            (_, again) => {
                Err(format!("{again} kernels that the cache should have were compiled again").into())
            }
        }
    });
    drop(fs::remove_dir_all(&directory));
    starts
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
