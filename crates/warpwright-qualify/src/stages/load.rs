//! Every kernel of the catalogue in its configurations, through the driver: does its compiler take them, and what does it
//! make of them?

use super::Item;
use crate::event::{Finding, Loaded};
use crate::measure::Failure;
use warpwright_kernels::{Entry, catalogue};
use warpwright_ptx::verify;
use warpwright_runtime::{Device, RuntimeError};

pub(super) fn items(quick: bool) -> Vec<Item> {
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
    catalogue().iter().flat_map(of).collect()
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
        compiler: Vec::new(),
    })
}
