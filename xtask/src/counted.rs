//! Kernels on the virtual GPU, with zeros in their buffers, for what it counts.

use std::collections::HashMap;
use warpwright_dsl::{Block, Role, any::AnyKernel};
use warpwright_ptx::ir::{Arch, Module, Type};
use warpwright_vm::{Arg, Device, DeviceConfig, LaunchConfig, Options, Report, SpaceTraffic};

/// A kernel and its launch.
pub(crate) struct Launched<'a> {
    pub(crate) kernel: &'a dyn AnyKernel,
    /// As it is executed: parsed from its text where places in that are of interest.
    pub(crate) module: &'a Module,
    pub(crate) arch: Arch,
    /// Sizes and scalars; buffers of `u32` of that name hold the number in every element.
    pub(crate) numbers: &'a [(&'a str, u64)],
}

/// The counts of the virtual GPU.
pub(crate) struct Counted {
    pub(crate) report: Report,
    /// Address and traffic of each buffer.
    pub(crate) buffers: HashMap<&'static str, (u64, SpaceTraffic)>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: u32,
}

impl Counted {
    /// Blocks of the launch.
    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().map(|&count| u64::from(count)).product()
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// Runs a launch.
pub(crate) fn count(launched: &Launched<'_>, options: &Options) -> Result<Counted, String> {
    let Launched { kernel, module, arch, numbers } = *launched;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let number = |name: &str| numbers.iter().find(|number| number.0 == name).map(|number| number.1);
    let info = warpwright_ptx::verify(module).map_err(|error| text(&error))?;
    let mut config = DeviceConfig::default();
    config.arch = arch;
    let device = Device::new(config).map_err(|error| text(&error))?;
    let loaded = device.load(module, &info).map_err(|error| text(&error))?;
    let extent = |extent: warpwright_dsl::Extent| {
        extent.evaluate(number).ok_or_else(|| format!("`{extent}` is not known"))
    };
    let (mut args, mut buffers) = (Vec::new(), Vec::new());
    for arg in kernel.args() {
        if arg.role == Role::Scalar {
            let value = number(arg.name).ok_or_else(|| format!("`{}` is not known", arg.name))?;
            args.push(match arg.dtype {
                Type::U64 => Arg::U64(value),
                Type::F32 => Arg::F32(value as f32),
                _ => Arg::U32(value as u32),
            });
            continue;
        }
        let bytes = (extent(arg.len)? * u64::from(arg.dtype.bytes())) as usize;
        let buffer = device.alloc_named::<u8>(arg.name, bytes).map_err(|error| text(&error))?;
        match number(arg.name) {
            Some(value) if arg.dtype == Type::U32 => {
                buffer
                    .write(&(value as u32).to_le_bytes().repeat(bytes / 4))
                    .map_err(|error| text(&error))?;
            }
            _ => buffer.zero(),
        }
        args.push(Arg::buffer(&buffer));
        buffers.push((arg.name, buffer));
    }
    let built = kernel.build(arch).map_err(|error| text(&error))?;
    let [x, y, z] = built.launch.grid.map(extent);
    let grid = [x?, y?, z?].map(|count| count as u32);
    let (Block::Exactly(block) | Block::AtMost(block)) = built.launch.block;
    let config = LaunchConfig {
        grid_dim: grid.into(),
        block_dim: block.into(),
        shared_mem_bytes: built.launch.dynamic_shared,
        cooperative: built.launch.cooperative,
        cluster_dim: None,
    };
    let launched = device.launch(&loaded, &kernel.entry(), &config, &args, options);
    let report = launched.map_err(|error| text(&error))?.wait();
    if let Some(trap) = &report.trap {
        return Err(trap.message.clone());
    }
    let traffic = |address: u64| {
        let mut allocations = report.counters.allocations.iter();
        allocations.find(|allocation| allocation.1 == address).map(|allocation| allocation.2)
    };
    let of = |buffer: u64| (buffer, traffic(buffer).unwrap_or_default());
    let buffers = buffers.iter().map(|(name, buffer)| (*name, of(buffer.address()))).collect();
    Ok(Counted { report, buffers, grid, block, dynamic_shared: built.launch.dynamic_shared })
}
