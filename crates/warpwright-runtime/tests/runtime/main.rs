//! Devices, memory and the order of things, on the device of the test, as programs see them.

mod copies;
mod devices;
mod drops;
mod mapped;
mod memory;
mod on_the_vm;
mod order;
mod random;
mod views;

use std::time::{Duration, Instant};
use warpwright_runtime::*;
use warpwright_vm::Options;

/// Kernels of the parameters `p`, `q` and `n`, launched with one thread:
///
/// - `add`: `p[0] += n`
/// - `move`: `q[0] = p[n]`
/// - `touch`: nothing, with all parameters taken
/// - `spin`: says `q[1] = 1`, waits until `q[0]` is not zero, then `p[0] += n`
/// - `fail`: traps
const KERNELS: &str = ".version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u64 q, .param .u32 n)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    ld.global.u32 %r2, [%rd1];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry move(.param .u64 p, .param .u64 q, .param .u32 n)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    ld.param.u32 %r1, [n];
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd3];
    st.global.u32 [%rd2], %r2;
    ret;
}
.visible .entry touch(.param .u64 p, .param .u64 q, .param .u32 n)
{
    ret;
}
.visible .entry spin(.param .u64 p, .param .u64 q, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    ld.param.u32 %r1, [n];
    st.volatile.global.u32 [%rd2+4], 1;
$trip:
    ld.volatile.global.u32 %r2, [%rd2];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $trip;
    ld.global.u32 %r3, [%rd1];
    add.u32 %r3, %r3, %r1;
    st.global.u32 [%rd1], %r3;
    ret;
}
.visible .entry fail(.param .u64 p, .param .u64 q, .param .u32 n)
{
    trap;
}
";

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
