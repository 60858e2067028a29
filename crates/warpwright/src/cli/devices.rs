//! `warpwright devices`: what kernels can run on.

use super::{Failure, Outcome, json};
use serde::Serialize;
use std::io::Write;
use warpwright_runtime::{Device, DeviceInfo, DeviceSpec, cuda_driver, devices};

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
    cuda: Cuda,
    devices: Vec<DeviceObject>,
}

/// What is used where no device is named.
#[derive(Serialize)]
struct Auto {
    name: String,
    reason: String,
}

/// What there is of CUDA.
#[derive(Serialize)]
struct Cuda {
    /// Version of the driver API that the driver has.
    driver: Option<String>,
    /// Why there is none that can be used.
    error: Option<String>,
}

#[derive(Serialize)]
struct DeviceObject {
    /// As it is asked for: `vm`, `cuda:0`.
    device: String,
    name: String,
    /// Whether it is a virtual GPU, also where it is behind the CUDA driver API.
    #[serde(rename = "virtual")]
    is_virtual: bool,
    arch: String,
    /// Major and minor.
    compute_capability: [u32; 2],
    multiprocessors: u32,
    threads_per_multiprocessor: u32,
    shared_per_multiprocessor: u64,
    shared_per_block: u64,
    memory: u64,
    l2_cache: Option<u64>,
    /// Where it is: `0000:65:00.0`.
    pci_bus_id: Option<String>,
    /// As NVIDIA's tools print it: `GPU-` and hexadecimal digits.
    uuid: Option<String>,
}

impl DeviceObject {
    fn new(info: &DeviceInfo) -> Self {
        let properties = &info.properties;
        let (major, minor) = info.compute_capability;
        DeviceObject {
            device: info.spec.to_string(),
            name: properties.name.clone(),
            is_virtual: info.is_virtual,
            arch: properties.arch.to_string(),
            compute_capability: [major, minor],
            multiprocessors: properties.multiprocessors,
            threads_per_multiprocessor: properties.threads_per_multiprocessor,
            shared_per_multiprocessor: properties.shared_per_multiprocessor,
            shared_per_block: properties.shared_per_block_optin,
            memory: properties.memory,
            l2_cache: properties.l2_cache,
            pci_bus_id: info.pci_bus_id.clone(),
            uuid: info.uuid.map(uuid),
        }
    }

    fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let through = self.is_virtual && self.device != DeviceSpec::Vm.to_string();
        let note = if through { ", a virtual GPU behind the CUDA driver API" } else { "" };
        writeln!(out, "{:<8} {}{note}", self.device, self.name)?;
        let [major, minor] = self.compute_capability;
        let l2 = self.l2_cache.map(|bytes| format!(", {} MiB of L2 cache", bytes >> 20)).unwrap_or_default();
        writeln!(
            out,
            "{:<8} compute capability {major}.{minor}, {} multiprocessors, {} KiB of shared memory for a block, {} GiB \
             of memory{l2}",
            "",
            self.multiprocessors,
            self.shared_per_block >> 10,
            self.memory >> 30
        )
    }
}

/// `GPU-f9e8d7c6-…`.
fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::from("GPU-");
    for (place, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&place) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let describe = |error| Failure::Message(format!("cannot open a device: {error}"));
    let auto = Device::auto().map_err(describe)?;
    let list = devices().map_err(|error| Failure::Message(format!("cannot list the devices: {error}")))?;
    let devices: Vec<_> = list.iter().map(DeviceObject::new).collect();
    let auto = Auto { name: auto.device.properties().name.clone(), reason: auto.reason };
    let cuda = match cuda_driver() {
        Ok(version) => Cuda { driver: Some(version.to_string()), error: None },
        Err(error) => Cuda { driver: None, error: Some(error.to_string()) },
    };
    if arguments.json {
        json::write(out, &Document { version: 1, auto, cuda, devices })?;
        return Ok(Outcome::Fine);
    }
    devices.iter().try_for_each(|device| device.print(out))?;
    writeln!(out, "{:<8} {}: {}", DeviceSpec::Auto.to_string(), auto.name, auto.reason)?;
    match cuda {
        Cuda { driver: Some(version), .. } => writeln!(out, "{:<8} driver {version}", "cuda")?,
        Cuda { error, .. } => writeln!(out, "{:<8} {}", "cuda", error.unwrap_or_default())?,
    }
    Ok(Outcome::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_names_that_other_tools_print() {
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        assert_eq!(uuid(bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
    }
}
