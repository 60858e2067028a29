//! Small kernels, and devices to run them on.

#![allow(dead_code, reason = "each test takes what it needs")]

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Scope};
use warpwright_ptx::op::control::Trap;
use warpwright_runtime::{Device, RuntimeError, Violation, VmConfig};
use warpwright_vm::{DeviceConfig, Options};

fn config(arch: u16, multiprocessors: u32) -> VmConfig {
    let mut device = DeviceConfig::default();
    device.arch = Arch::sm(arch);
    device.multiprocessors = multiprocessors;
    device.workers = 2;
    VmConfig { device, options: Options::checked(), ..VmConfig::default() }
}

/// The device of the test for that architecture; as a virtual GPU with all checks on.
pub(crate) fn device_of(arch: u16) -> Device {
    warpwright_testing::device(config(arch, 132))
}

pub(crate) fn device() -> Device {
    device_of(90)
}

/// A virtual GPU of so many multiprocessors, with all checks on.
pub(crate) fn virtual_gpu(arch: u16, multiprocessors: u32) -> Device {
    Device::vm(config(arch, multiprocessors)).expect("a device")
}

/// What is wrong with a launch, which must have been refused by the contract: kernel, argument, violation.
pub(crate) fn refused<T>(result: Result<T, RuntimeError>) -> (String, Option<String>, Violation) {
    match result {
        Err(RuntimeError::Contract(error)) => {
            (error.kernel.clone(), error.argument().map(str::to_owned), error.violation.clone())
        }
        Err(other) => panic!("refused by something else: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// `y = a · x + y0`, element by element; `y` may be `x`. Blocks of 64 threads.
pub(crate) struct Affine;

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Affine {}

impl AnyKernel for Affine {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "affine".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let n = Extent::dim("n");
        vec![
            ArgDesc::input::<f32>("x", n),
            ArgDesc::output::<f32>("y", n).may_share(&["x"]),
            ArgDesc::scalar::<f32>("a"),
            ArgDesc::scalar::<f32>("y0"),
            ArgDesc::scalar::<u32>("n"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(64).grid(Extent::dim("n").per(64))
    }

    fn body(&self, k: K<'_>) {
        let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
        let (a, y0, n) = (k.scalar::<f32>("a"), k.scalar::<f32>("y0"), k.scalar::<u32>("n"));
        let i = k.global_tid();
        k.when(i.lt(n), || y.st(i, x.ld(i).mul_add(a, y0)));
    }
}

/// Adds 1 to each of `rows × 32` counters.
pub(crate) struct Count;

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Count {}

impl AnyKernel for Count {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "count".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::in_out::<u32>("counters", Extent::dim("rows").times(32))]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32).grid(Extent::dim("rows"))
    }

    fn body(&self, k: K<'_>) {
        let (counters, i) = (k.ptr_mut::<u32>("counters"), k.global_tid());
        counters.st(i, counters.ld(i) + 1);
    }
}

/// Every block arrives at a barrier of the whole grid, and then adds up what all blocks have written before it.
pub(crate) struct GridSum {
    pub(crate) threads: u32,
}

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for GridSum {}

impl AnyKernel for GridSum {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        format!("grid_sum_t{}", self.threads)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let blocks = Extent::dim("blocks");
        vec![
            ArgDesc::in_out::<u32>("arrived", 1),
            ArgDesc::in_out::<u32>("parts", blocks),
            ArgDesc::output::<u32>("sums", blocks),
            ArgDesc::scalar::<u32>("blocks"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule { cooperative: true, ..LaunchRule::new(self.threads).grid(Extent::dim("blocks")) }
    }

    fn body(&self, k: K<'_>) {
        let (arrived, parts) = (k.ptr_mut::<u32>("arrived"), k.ptr_mut::<u32>("parts"));
        let (sums, blocks) = (k.ptr_mut::<u32>("sums"), k.scalar::<u32>("blocks"));
        k.when(k.tid().eq(0), || {
            parts.st(k.ctaid(), k.ctaid() + 1);
            k.fence(Scope::Gpu);
            arrived.relaxed(Scope::Gpu).reduce_add(0, 1u32);
            k.while_(|| arrived.acquire(Scope::Gpu).ld(0).lt(blocks), || {});
            let sum = k.fold(k.range(k.u32(0)..blocks), k.u32(0), |i, sum| sum + parts.ld(i));
            sums.st(k.ctaid(), sum);
        });
    }
}

/// Reverses `n` words through dynamic shared memory, which is as large as they are: one block of 128 threads.
pub(crate) struct Reverse {
    pub(crate) n: u32,
}

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Reverse {}

impl AnyKernel for Reverse {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        format!("reverse_{}", self.n)
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::input::<u32>("x", self.n), ArgDesc::output::<u32>("y", self.n)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(128).dynamic_shared(4 * self.n)
    }

    fn body(&self, k: K<'_>) {
        let (x, y, words) = (k.ptr::<u32>("x"), k.ptr_mut::<u32>("y"), k.dyn_shared::<u32>());
        k.each(k.strided(self.n), |i| words.st(i, x.ld(i)));
        k.sync();
        k.each(k.strided(self.n), |i| y.st(i, words.ld(k.u32(self.n - 1) - i)));
    }
}

/// Traps where `flag` is not zero.
pub(crate) struct TrapIf;

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for TrapIf {}

impl AnyKernel for TrapIf {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "trap_if".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::input::<u32>("flag", 1)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let flag = k.ptr::<u32>("flag").ld(0);
        k.op_if(flag.ne(0u32), Trap {});
    }
}

/// A kernel that is launched by any rule and does nothing.
pub(crate) struct Nothing {
    pub(crate) entry: &'static str,
    pub(crate) rule: LaunchRule,
}

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Nothing {}

impl AnyKernel for Nothing {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        self.entry.into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![]
    }

    fn launch(&self) -> LaunchRule {
        self.rule.clone()
    }

    fn body(&self, _: K<'_>) {}
}
