//! `warpwright devices`: what kernels can run on.

use super::{Failure, Outcome, json};
use serde::Serialize;
use std::io::Write;
use warpwright_runtime::{Device, DeviceSpec, Properties};

/// List the devices, and which one is used where none is named
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    version: u32,
    auto: Auto,
    devices: Vec<DeviceObject>,
}

/// What is used where no device is named.
#[derive(Serialize)]
struct Auto {
    name: String,
    reason: String,
}

#[derive(Serialize)]
struct DeviceObject {
    /// As it is asked for: `vm`, `cuda:0`.
    device: String,
    name: String,
    arch: String,
    multiprocessors: u32,
    threads_per_multiprocessor: u32,
    shared_per_multiprocessor: u64,
    shared_per_block: u64,
    memory: u64,
}

impl DeviceObject {
    fn new(spec: DeviceSpec, properties: &Properties) -> Self {
        DeviceObject {
            device: spec.to_string(),
            name: properties.name.clone(),
            arch: properties.arch.to_string(),
            multiprocessors: properties.multiprocessors,
            threads_per_multiprocessor: properties.threads_per_multiprocessor,
            shared_per_multiprocessor: properties.shared_per_multiprocessor,
            shared_per_block: properties.shared_per_block_optin,
            memory: properties.memory,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let describe = |error| Failure::Message(format!("cannot open a device: {error}"));
    let auto = Device::auto().map_err(describe)?;
    let vm = Device::open(DeviceSpec::Vm).map_err(describe)?;
    let devices = vec![DeviceObject::new(DeviceSpec::Vm, vm.properties())];
    let auto = Auto { name: auto.device.properties().name.clone(), reason: auto.reason };
    if arguments.json {
        json::write(out, &Document { version: 1, auto, devices })?;
        return Ok(Outcome::Fine);
    }
    for device in &devices {
        writeln!(out, "{:<8} {}", device.device, device.name)?;
        writeln!(
            out,
            "{:<8} {} multiprocessors, {} KiB of shared memory for a block, {} GiB of memory",
            "",
            device.multiprocessors,
            device.shared_per_block >> 10,
            device.memory >> 30
        )?;
    }
    writeln!(out, "{:<8} {}: {}", DeviceSpec::Auto.to_string(), auto.name, auto.reason)?;
    Ok(Outcome::Fine)
}
