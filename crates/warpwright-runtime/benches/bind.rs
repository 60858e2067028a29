//! Host time of launches under contract: binding and checking arguments by name, on top of enqueueing.
//!
//! The kernel has ten arguments: seven buffers, three numbers. Nothing is executed meanwhile: launches are recorded,
//! which costs as much as enqueueing (the bench `enqueue`) and a list of the buffers. Each figure is the best of
//! several rounds, in nanoseconds for each launch. The goal for binding, checking and enqueueing ten arguments is 2 µs.
//!
//! It also measures looking up a kernel that the device knows, by the key of its configuration; and a kernel without a
//! key, which is built to be compared.
//!
//! `cargo bench -p warpwright-runtime --bench bind`

use std::hint::black_box;
use std::time::Instant;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_kernels::RmsNorm;
use warpwright_runtime::{Binder, Buffer, CompiledKernel, Device, Result, VmConfig};

const ROUNDS: usize = 9;
const LAUNCHES: usize = 2000;

/// Ten arguments, as an attention over a quantised cache has them.
struct Ten;

const BUFFERS: [&str; 7] = ["q", "k", "k_scales", "v", "v_scales", "lengths", "out"];

// SAFETY: no index is beyond the lengths that `args` says.
unsafe impl Bounded for Ten {}

impl AnyKernel for Ten {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "ten".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let rows = Extent::dim("rows").times(32);
        let mut args: Vec<_> = BUFFERS[..6].iter().map(|name| ArgDesc::input::<f32>(name, rows)).collect();
        args.push(ArgDesc::output::<f32>("out", rows).may_share(&["q"]));
        args.extend([
            ArgDesc::scalar::<u32>("rows"),
            ArgDesc::scalar::<f32>("scale"),
            ArgDesc::scalar::<u32>("seed"),
        ]);
        args
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32).grid(Extent::dim("rows"))
    }

    fn body(&self, k: K<'_>) {
        let inputs: Vec<_> = BUFFERS[..6].iter().map(|name| k.ptr::<f32>(name)).collect();
        let out = k.ptr_mut::<f32>("out");
        let (rows, scale, seed) =
            (k.scalar::<u32>("rows"), k.scalar::<f32>("scale"), k.scalar::<u32>("seed"));
        let i = k.global_tid();
        k.when(i.lt(rows * 32), || {
            let sum = inputs.iter().fold(seed.f32(), |sum, input| input.ld(i).mul_add(scale, sum));
            out.st(i, sum);
        });
    }
}

fn bind<'a>(kernel: &'a CompiledKernel, buffers: &[Buffer<f32>]) -> Binder<'a> {
    let bound =
        BUFFERS.iter().zip(buffers).fold(kernel.bind(), |bound, (name, buffer)| bound.buffer(name, buffer));
    bound.scalar("rows", 2u32).scalar("scale", 0.5f32).scalar("seed", black_box(7u32))
}

/// The best time of one of the operations of a round.
fn report(what: &str, mut round: impl FnMut() -> Result<()>, settle: impl Fn() -> Result<()>) -> Result<()> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round()?;
        best = best.min(start.elapsed().as_secs_f64() / LAUNCHES as f64);
        settle()?;
    }
    println!("{what:<36} {:>7.0} ns", best * 1e9);
    Ok(())
}

fn main() -> Result<()> {
    let device = Device::vm(VmConfig::default())?;
    let stream = device.default_stream();
    let kernel = device.kernel(&Ten)?;
    let new = |_| stream.alloc_zeros::<f32>(64);
    let buffers = (0..BUFFERS.len()).map(new).collect::<Result<Vec<_>>>()?;
    let prepared = bind(&kernel, &buffers).prepare()?;
    stream.synchronize()?;
    let nothing = || Ok(());
    report(
        "bind and check, 10 arguments",
        || {
            (0..LAUNCHES)
                .try_for_each(|_| bind(&kernel, &buffers).prepare().map(|prepared| drop(black_box(prepared))))
        },
        nothing,
    )?;
    let keyed = RmsNorm::new(4096, 1e-5);
    for (what, kernel) in [("look up, by key", &keyed as &dyn AnyKernel), ("look up, without a key", &Ten)] {
        let find =
            || (0..LAUNCHES).try_for_each(|_| device.kernel(kernel).map(|kernel| drop(black_box(kernel))));
        report(what, find, nothing)?;
    }
    // What was recorded is dropped by this thread, so that nothing is executed beside what is measured.
    let record = |issue: &dyn Fn() -> Result<()>| {
        stream.begin_capture()?;
        (0..LAUNCHES).try_for_each(|_| issue())
    };
    report(
        "bind, check and record",
        || record(&|| bind(&kernel, &buffers).launch(&stream)),
        || stream.end_capture().map(drop),
    )?;
    report(
        "record what was prepared",
        || record(&|| stream.launch(&prepared)),
        || stream.end_capture().map(drop),
    )
}
