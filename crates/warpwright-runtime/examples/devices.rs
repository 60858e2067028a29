//! Lists the devices, and opens one.
//!
//! `cargo run -p warpwright-runtime --example devices`

use warpwright_runtime::{CudaConfig, Device, Result, VmConfig, devices};

fn main() -> Result<()> {
    for device in devices()? {
        println!("{}: {}", device.spec, device.properties.name);
    }
    let best = Device::auto()?;
    println!("the best: {}: {}", best.device.properties().name, best.reason);

    // A machine without this one says what was found, and what is missing.
    match Device::cuda(0) {
        Ok(device) => println!("cuda:0 has {} multiprocessors", device.properties().multiprocessors),
        Err(error) => println!("{error}"),
    }
    let mut config = CudaConfig::new(0);
    config.sync_launches = true; // an error is told where it was made
    let careful = Device::cuda_with(config).or_else(|_| Device::vm(VmConfig::default()))?;
    println!("careful: {}", careful.properties().name);
    Ok(())
}
