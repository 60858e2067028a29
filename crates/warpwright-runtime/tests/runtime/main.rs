//! Devices, memory and the order of things, on the device of the test, as programs see them.

mod copies;
mod devices;
mod drops;
mod mapped;
mod memory;
mod on_the_vm;
mod order;
mod random;
mod resident;
mod views;

use std::time::{Duration, Instant};
use warpwright_runtime::*;
use warpwright_vm::Options;

/// Kernels of one thread each; the file says what they do.
const KERNELS: &str = include_str!("../small/words.ptx");

/// A device with its kernels.
struct Gpu {
    device: Device,
    module: Module,
}

impl Gpu {
    fn new(config: VmConfig) -> Gpu {
        Gpu::of(warpwright_testing::device(config))
    }

    fn of(device: Device) -> Gpu {
        let module = device.load_ptx(KERNELS).unwrap();
        Gpu { device, module }
    }

    /// On a virtual GPU bounds are checked, as always.
    fn plain() -> Gpu {
        Gpu::new(VmConfig::default())
    }

    /// On a virtual GPU all checks are on.
    fn checked() -> Gpu {
        Gpu::new(VmConfig { options: Options::checked(), ..VmConfig::default() })
    }

    /// A virtual GPU with that many bytes of memory.
    fn with_memory(bytes: u64) -> Gpu {
        let mut config = VmConfig::default();
        config.device.memory = bytes;
        Gpu::of(Device::vm(config).unwrap())
    }

    /// Launches one of the kernels with one thread.
    fn launch(&self, stream: &Stream, kernel: &str, p: &Buffer<u32>, q: &Buffer<u32>, n: u32) {
        let function = self.module.load_function(kernel).unwrap();
        let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let builder = stream.launch_builder(&function).arg(p).arg(q).arg(n);
        // SAFETY: the kernels access what their parameters point at; what they do beyond that is what tests
        // look for, and the virtual GPU does not do it.
        unsafe { builder.launch(one) }.unwrap();
    }

    /// Keeps the device busy until it is told to go on, when `p[0] += n`. It is busy when this returns.
    fn hold(&self, stream: &Stream, p: &Buffer<u32>, n: u32) -> Hold {
        let hold = Hold { flags: self.device.alloc_mapped(2).unwrap() };
        self.launch(stream, "spin", p, hold.flags.buffer(), n);
        until(|| hold.flags.get(1).unwrap() == 1);
        hold
    }
}

/// A kernel that waits for the host. A test that fails ends it too.
struct Hold {
    flags: HostBuffer<u32>,
}

impl Hold {
    /// Lets it go on.
    fn release(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.flags.set(0, 1).unwrap();
    }
}

/// Waits for something that must come, but not for ever.
fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never comes");
        std::thread::yield_now();
    }
}

/// Does something that must come to an end, but not for ever.
fn ends(what: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(what);
    until(|| thread.is_finished());
    thread.join().unwrap();
}
