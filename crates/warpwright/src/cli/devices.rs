//! `warpwright devices`: the available devices.

use super::json::{self, object};
use super::{Failure, Outcome};
use serde::Serialize;
use std::io::Write;
use warpwright_runtime::{Device, DeviceInfo, DeviceSpec, cuda_driver, devices};

/// List the devices, and the default device
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// A device, for `--json`.
fn described(info: &DeviceInfo) -> impl Serialize {
    let properties = &info.properties;
    object! {
        device: info.spec.to_string(),
        name: &properties.name,
        // Also where it is behind the CUDA driver API.
        r#virtual: info.is_virtual,
        arch: properties.arch.to_string(),
        compute_capability: info.compute_capability,
        multiprocessors: properties.multiprocessors,
        threads_per_multiprocessor: properties.threads_per_multiprocessor,
        shared_per_multiprocessor: properties.shared_per_multiprocessor,
        shared_per_block: properties.shared_per_block_optin,
        memory: properties.memory,
        l2_cache: properties.l2_cache,
        pci_bus_id: &info.pci_bus_id,
        uuid: info.uuid.map(uuid),
    }
}

/// The same for people.
fn print(out: &mut impl Write, info: &DeviceInfo) -> std::io::Result<()> {
    let properties = &info.properties;
    let through = info.is_virtual && info.spec != DeviceSpec::Vm;
    let note = if through { ", a virtual GPU behind the CUDA driver API" } else { "" };
    writeln!(out, "{:<8} {}{note}", info.spec.to_string(), properties.name)?;
    let (major, minor) = info.compute_capability;
    let l2 =
        properties.l2_cache.map(|bytes| format!(", {} MiB of L2 cache", bytes >> 20)).unwrap_or_default();
    writeln!(
        out,
        "{:<8} compute capability {major}.{minor}, {} multiprocessors, {} KiB of shared memory for a block, {} GiB \
         of memory{l2}",
        "",
        properties.multiprocessors,
        properties.shared_per_block_optin >> 10,
        properties.memory >> 30
    )
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
    let driver = cuda_driver();
    let name = &auto.device.properties().name;
    if arguments.json {
        let document = object! {
            auto: object! { name: name, reason: &auto.reason },
            // The version of the driver API that the driver has, or why there is none that can be used.
            cuda: object! {
                driver: driver.as_ref().ok().map(ToString::to_string),
                error: driver.as_ref().err().map(ToString::to_string),
            },
            devices: list.iter().map(described).collect::<Vec<_>>(),
        };
        json::document(out, document)?;
        return Ok(Outcome::Fine);
    }
    list.iter().try_for_each(|device| print(out, device))?;
    writeln!(out, "{:<8} {name}: {}", DeviceSpec::Auto.to_string(), auto.reason)?;
    match driver {
        Ok(version) => writeln!(out, "{:<8} driver {version}", "cuda")?,
        Err(error) => writeln!(out, "{:<8} {error}", "cuda")?,
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
