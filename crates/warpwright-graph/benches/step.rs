//! Host time of a step of decoding: what issuing it costs, whatever the device does.
//!
//! The model has the form of Llama-3.2-1B, 32 layers of it, with narrow rows: the launches are those of a real model,
//! the virtual GPU's work is small. Before the clock starts the device is held by a kernel that waits for the host, so
//! that nothing of the step is executed while it is issued; then it goes on, and the round ends when it is done. Each
//! figure is the best of several rounds:
//!
//! - a step launch by launch through a dispatcher, for each launch. The goal is 3 µs;
//! - a step that was captured: one launch of a graph.
//!
//! The last lines are what comes before: planning and binding (kernels are built by the first binding, and known to the
//! device in later ones), and capturing.
//!
//! `cargo bench -p warpwright-graph --bench step`

#[path = "../tests/common/mod.rs"]
mod common;

use common::run::{begin, device, store};
use common::{Choice, ModelConfig};
use std::time::{Duration, Instant};
use warpwright_graph::{Arithmetic, KernelLibrary, Plan, PlanOptions};
use warpwright_runtime::{Device, HostBuffer, LaunchConfig};

const ROUNDS: usize = 7;
const LAYERS: u32 = 32;

/// Waits until `flag` is not zero.
const SPIN: &str = ".version 7.8
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 flag)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
$trip:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $trip;
    ret;
}
";

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Holds the device; the flag lets it go on.
fn hold(device: &Device) -> Outcome<HostBuffer<u32>> {
    let flag = device.alloc_mapped::<u32>(1)?;
    let function = device.load_ptx(SPIN)?.load_function("spin")?;
    let stream = device.default_stream();
    let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the kernel reads the one word of its parameter, which is mapped.
    #[allow(unsafe_code, reason = "a kernel in PTX")]
    unsafe {
        stream.launch_builder(&function).arg(flag.buffer()).launch(one)?;
    }
    Ok(flag)
}

/// The least time that something takes with the device held.
fn held(device: &Device, mut issue: impl FnMut() -> Outcome) -> Outcome<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let flag = hold(device)?;
        let start = Instant::now();
        issue()?;
        best = best.min(start.elapsed());
        flag.set(0, 1)?;
        device.synchronize()?;
    }
    Ok(best)
}

fn line(what: &str, figure: String) {
    println!("{what:<56} {figure:>14}");
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn bench(arithmetic: Arithmetic) -> Outcome {
    let device = device(false);
    let config = ModelConfig::llama_3_2_1b().scaled_down(LAYERS);
    let graph = config.decode(1, Choice::ArgMax);
    let mut options = PlanOptions::for_device(&device);
    options.arithmetic = arithmetic;
    let start = Instant::now();
    let plan = Plan::new(&graph, &options, &KernelLibrary)?;
    let planning = start.elapsed();
    let launches = plan.launches().count();
    println!("{LAYERS} layers, {arithmetic:?}: {launches} launches");

    let mut store = store(&device, &graph, 1);
    begin(&mut store, &[7], &[0]);
    let start = Instant::now();
    drop(plan.clone().bind(&mut store)?);
    device.synchronize()?;
    let first_binding = start.elapsed();
    let start = Instant::now();
    let mut executable = plan.bind(&mut store)?;
    let binding = start.elapsed();

    let eager = held(&device, || Ok(executable.issue(&KernelLibrary)?))?;
    line("launch by launch, each", format!("{:.0} ns", eager.as_secs_f64() * 1e9 / launches as f64));
    line("launch by launch, the step", format!("{:.1} µs", eager.as_secs_f64() * 1e6));
    let start = Instant::now();
    let captured = executable.capture(&KernelLibrary)?;
    let capturing = start.elapsed();
    let replay = held(&device, || Ok(captured.replay()?))?;
    line("replayed, the step", format!("{:.2} µs", replay.as_secs_f64() * 1e6));
    line("planning", milliseconds(planning));
    line("binding, with kernels and weights that are new", milliseconds(first_binding));
    line("binding again", milliseconds(binding));
    line("capturing", milliseconds(capturing));
    Ok(())
}

fn main() -> Outcome {
    bench(Arithmetic::Exact)?;
    bench(Arithmetic::Int8)
}
