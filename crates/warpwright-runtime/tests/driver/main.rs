//! What only CUDA devices do: drivers that are missing or too old, errors that stay, processes that end midway.
//!
//! Each test is a process of its own with the driver of `warpwright-libcuda`.
#![cfg(target_os = "linux")]

mod bounded;
mod calls;
mod ends;
mod errors;
mod found;
mod memory;
mod several;

use std::time::{Duration, Instant};
use warpwright_runtime::{
    Buffer, CudaConfig, Device, HostBuffer, LaunchConfig, Module, Result, RuntimeError, Stream,
};
use warpwright_testing::Apart;

/// Kernels of one thread each; the file says what they do.
const KERNELS: &str = include_str!("../small/words.ptx");

/// The status of a process in which the driver has found something.
const FOUND: i32 = 97;

/// A process with two devices, in which everything is looked for and nothing is to be found.
fn clean(test: &str) -> Option<Apart> {
    Apart::new(test).map(|apart| {
        let apart = apart.driver("80,90").env("WARPWRIGHT_CHECK", "all");
        apart.env("WARPWRIGHT_EXIT_STATUS", FOUND.to_string()).env("WARPWRIGHT_LEAKS", "1")
    })
}

/// A device with its kernels.
struct Gpu {
    device: Device,
    stream: Stream,
    module: Module,
}

impl Gpu {
    fn new(ordinal: u32) -> Gpu {
        Gpu::with(CudaConfig::new(ordinal))
    }

    fn with(config: CudaConfig) -> Gpu {
        Gpu::of(Device::cuda_with(config).unwrap_or_else(|error| panic!("{error}")))
    }

    fn of(device: Device) -> Gpu {
        let module = device.load_ptx(KERNELS).unwrap_or_else(|error| panic!("{error}"));
        Gpu { stream: device.default_stream(), device, module }
    }

    /// Launches one of the kernels with one thread.
    fn launch(&self, kernel: &str, p: &Buffer<u32>, q: &Buffer<u32>, n: u32) -> Result<()> {
        self.launch_on(&self.stream, kernel, p, q, n)
    }

    fn launch_on(
        &self,
        stream: &Stream,
        kernel: &str,
        p: &Buffer<u32>,
        q: &Buffer<u32>,
        n: u32,
    ) -> Result<()> {
        let function = self.module.load_function(kernel)?;
        let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the kernels access what their parameters point at; what they do beyond that is what tests look for,
        // and the virtual GPU does not do it.
        unsafe { stream.launch_builder(&function).arg(p).arg(q).arg(n).launch(one) }
    }

    /// A kernel that runs until the first of these words is not zero. It runs when this returns.
    fn busy(&self) -> HostBuffer<u32> {
        let flags = self.device.alloc_mapped::<u32>(2).unwrap();
        let x = self.stream.alloc_zeros::<u32>(1).unwrap();
        self.launch("spin", &x, flags.buffer(), 1).unwrap();
        let start = Instant::now();
        while flags.get(1).unwrap() != 1 {
            assert!(start.elapsed() < Duration::from_secs(60), "it never begins");
            std::thread::yield_now();
        }
        flags
    }
}

/// The failure that a call returned.
fn failure(result: Result<()>) -> warpwright_runtime::Failure {
    match result {
        Err(RuntimeError::Failed(failure)) => *failure,
        other => panic!("a failure is expected: {other:?}"),
    }
}
