//! What a CUDA device does of its own: pinned memory, freeing, graphs of the driver, cudarc's slices, peers.
//!
//! These tests want a CUDA device, real or virtual: `cargo test -p warpwright-runtime --test cuda` with the driver's
//! library on the loader's path. They are no part of a plain `cargo test`; `cargo xtask test` runs them with those that
//! run on CUDA devices too.

mod devices;
mod events;
mod faults;
mod graphs;
mod interop;
mod memory;
mod peers;
mod staging;

use std::process::Command;
use std::time::{Duration, Instant};
use warpwright_runtime::*;

/// Kernels of the parameters `p`, `q` and `n`, launched with one thread a block:
///
/// - `add`: `p[ctaid] += n`
/// - `spin`: says `q[1] = 1`, waits until `q[0]` is not zero, then `p[0] += n`
const KERNELS: &str = ".version 7.8
.target sm_75
.address_size 64
.visible .entry add(.param .u64 p, .param .u64 q, .param .u32 n)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    ld.global.u32 %r3, [%rd2];
    add.u32 %r3, %r3, %r1;
    st.global.u32 [%rd2], %r3;
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
";

/// Says to the new process which test it is for.
const CHILD: &str = "WARPWRIGHT_TEST_CHILD";

/// Runs the rest of a test in a process of its own, with that environment. `name` is the
/// test's with its module.
fn alone(name: &str, environment: &[(&str, &str)], rest: fn()) {
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        return rest();
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", name, "--test-threads=1", "--nocapture"]);
    // What the kernels of these tests do is an error, and is meant to be one.
    command.env_remove("WARPWRIGHT_EXIT_STATUS").env_remove("WARPWRIGHT_LEAKS").env(CHILD, name);
    let output = command.envs(environment.iter().copied()).output().expect("a process");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{error}", output.status);
    assert!(out.lines().any(|line| line.starts_with("test result: ok. 1 passed")), "it ran: {out}");
}

/// A device with its kernels.
struct Gpu {
    device: Device,
    module: Module,
}

impl Gpu {
    fn open() -> Gpu {
        Gpu::of(warpwright_testing::cuda(0))
    }

    fn of(device: Device) -> Gpu {
        let module = device.load_ptx(KERNELS).expect("kernels");
        Gpu { device, module }
    }

    /// Launches one of the kernels in that many blocks.
    fn launch(&self, stream: &Stream, kernel: &str, blocks: u32, p: &Buffer<u32>, q: &Buffer<u32>, n: u32) {
        let function = self.module.load_function(kernel).expect("the kernel");
        let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        let builder = stream.launch_builder(&function).arg(p).arg(q).arg(n);
        // SAFETY: the kernels access what their parameters point at, which has an element for each block.
        unsafe { builder.launch(config) }.expect("a launch");
    }

    fn add(&self, stream: &Stream, p: &Buffer<u32>, n: u32) {
        self.launch(stream, "add", 1, p, p, n);
    }

    /// Keeps a stream busy until it is told to go on, when `p[0] += n`. It is busy when this returns. Other streams may be
    /// too: that kernels run beside one another is no promise of CUDA.
    fn hold(&self, stream: &Stream, p: &Buffer<u32>, n: u32) -> Hold {
        let hold = Hold { flags: self.device.alloc_mapped(2).expect("flags") };
        self.launch(stream, "spin", 1, p, hold.flags.buffer(), n);
        until(|| hold.flags.get(1).expect("a flag") == 1);
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
        self.flags.set(0, 1).expect("a flag");
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

/// Numbers that differ from those of another seed.
fn numbers(seed: u32, len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(0x9e37_79b9)).collect()
}
