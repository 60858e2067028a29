//! Host time of a launch on a CUDA device, compared with the same launch by cudarc alone.
//!
//! A kernel that waits for the host blocks the device, so that the clock sees only the enqueueing. Kernel, buffers and
//! stream are the same on both sides, and rounds of both alternate, so that other load affects both; each figure is the
//! best round's, for one operation. All figures include the driver's time: the difference is ours. The goal is 1 µs at
//! most for a prepared launch, and one call of the driver for a graph of 300 launches, which `warpwright exec` counts.
//!
//! `cargo bench -p warpwright-runtime --bench overhead`, with a CUDA device or by way of `warpwright exec`.

mod common;

use common::{Outcome, Touch};
use cudarc::driver::{CudaContext, CudaStream, PushKernelArg, result};
use cudarc::nvrtc::Ptx;
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;
use warpwright_dsl::any::AnyKernel;
use warpwright_runtime::{Buffer, CompiledKernel, Device, PreparedLaunch, Stream, cudarc};

const ROUNDS: usize = 15;
/// Fewer than a driver takes before it makes the host wait.
const OPERATIONS: usize = 500;
const NODES: usize = 300;
const REPLAYS: usize = 5;
/// What a second process of this program does: replays, between two lines of its own.
const REPLAY: &str = "--replay-a-graph";
const MARK: &str = "-- mark --";

/// Both sides on one stream.
struct Bench {
    context: Arc<CudaContext>,
    theirs: Arc<CudaStream>,
    device: Device,
    stream: Stream,
    buffers: [Buffer<f32>; 4],
    kernel: CompiledKernel,
    prepared: PreparedLaunch,
}

impl Bench {
    fn new() -> Outcome<Bench> {
        let context = CudaContext::new(0)?;
        let theirs = context.new_stream()?;
        let device = Device::from_cudarc(context.clone(), theirs.clone())?;
        let stream = device.default_stream();
        let new = || stream.alloc_zeros::<f32>(16);
        let buffers = [new()?, new()?, new()?, new()?];
        let kernel = device.kernel(&Touch)?;
        let prepared = bind(&kernel, &buffers).prepare()?;
        Ok(Bench { context, theirs, device, stream, buffers, kernel: kernel.into(), prepared })
    }

    /// Seconds that one of `operations` takes, with the device held.
    fn round(&self, operations: usize, mut operation: impl FnMut() -> Outcome) -> Outcome<f64> {
        let flag = common::hold(&self.device, &self.stream)?;
        let start = Instant::now();
        let asked = (0..operations).try_for_each(|_| operation());
        let time = start.elapsed().as_secs_f64() / operations as f64;
        flag.set(0, 1)?;
        asked?;
        self.device.synchronize()?;
        Ok(time)
    }

    /// A graph of as many launches.
    fn graph(&self) -> Outcome<warpwright_runtime::GraphExec> {
        self.stream.begin_capture()?;
        for _ in 0..NODES {
            self.stream.launch(&self.prepared)?;
        }
        Ok(self.stream.end_capture()?.instantiate()?)
    }
}

fn bind<'a>(kernel: &'a CompiledKernel, [a, b, c, d]: &[Buffer<f32>; 4]) -> warpwright_runtime::Binder<'a> {
    kernel.bind().buffer("a", a).buffer("b", b).buffer("c", c).buffer("d", d).scalar("n", 16u32)
}

fn main() -> Outcome {
    let replays = std::env::args().any(|argument| argument == REPLAY);
    if let Err(error) = Device::cuda(0) {
        println!("nothing is measured: {error}");
        return Ok(());
    }
    let bench = Bench::new()?;
    if replays {
        return replay(&bench);
    }
    let Bench { context, theirs, stream, buffers, kernel, prepared, .. } = &bench;
    println!("{}", bench.device.properties().name);

    // The same kernel and arguments for cudarc.
    let text = warpwright_ptx::print::print(&Touch.build(bench.device.properties().arch)?.module);
    let function = context.load_module(Ptx::from_src(&text))?.load_function("touch")?;
    let image = CString::new(text)?;
    // SAFETY: the image is text, and ends with a zero. The module stays loaded.
    let module = unsafe { result::module::load_data(image.as_ptr().cast()) }?;
    // SAFETY: the module is loaded.
    let bare = unsafe { result::module::get_function(module, c"touch".to_owned()) }?;
    let (mut pointers, mut n) = (buffers.each_ref().map(Buffer::device_ptr), 16u32);
    let mut params: Vec<*mut c_void> = pointers.iter_mut().map(|at| std::ptr::from_mut(at).cast()).collect();
    params.push(std::ptr::from_mut(&mut n).cast());
    let config =
        cudarc::driver::LaunchConfig { grid_dim: (1, 1, 1), block_dim: (32, 1, 1), shared_mem_bytes: 0 };
    let zeros = || theirs.alloc_zeros::<f32>(16);
    let mut slices = [zeros()?, zeros()?, zeros()?, zeros()?];

    let mut best = [f64::INFINITY; 4];
    for _ in 0..ROUNDS {
        let times = [
            bench.round(OPERATIONS, || {
                // As every launch of cudarc does.
                context.bind_to_thread()?;
                let (grid, block) = ((1, 1, 1), (32, 1, 1));
                // SAFETY: these are the kernel's arguments.
                unsafe { result::launch_kernel(bare, grid, block, 0, theirs.cu_stream(), &mut params) }?;
                Ok(())
            })?,
            bench.round(OPERATIONS, || {
                let [a, b, c, d] = &mut slices;
                let mut launch = theirs.launch_builder(&function);
                launch.arg(&*a).arg(&*b).arg(&*c).arg(d).arg(&16u32);
                // SAFETY: these are the kernel's arguments.
                unsafe { launch.launch(config) }?;
                Ok(())
            })?,
            bench.round(OPERATIONS, || Ok(stream.launch(prepared)?))?,
            bench.round(OPERATIONS, || Ok(bind(kernel, buffers).launch(stream)?))?,
        ];
        best.iter_mut().zip(times).for_each(|(best, time)| *best = best.min(time));
    }
    let [bare, builder, ours, bound] = best.map(|seconds| seconds * 1e9);
    println!("cudarc: bare launch                      {bare:>8.0} ns");
    println!("cudarc: launch builder                   {builder:>8.0} ns  {:+.0} ns", builder - bare);
    let ratio = ours / bare;
    println!(
        "ours: prepared                           {ours:>8.0} ns  {:+.0} ns, {ratio:.2} times",
        ours - bare
    );
    println!("ours: bound and checked each time        {bound:>8.0} ns  {:+.0} ns", bound - bare);

    let graph = bench.graph()?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        best = best.min(bench.round(REPLAYS, || Ok(graph.launch(stream)?))?);
    }
    println!("ours: graph of {NODES} launches             {:>8.0} ns", best * 1e9);
    println!("{}", calls()?);
    Ok(())
}

/// Replays a graph some times, and says when.
fn replay(bench: &Bench) -> Outcome {
    let graph = bench.graph()?;
    bench.stream.synchronize()?;
    eprintln!("{MARK}");
    for _ in 0..REPLAYS {
        graph.launch(&bench.stream)?;
    }
    eprintln!("{MARK}");
    bench.stream.synchronize()?;
    Ok(())
}

/// The calls of the driver that replays are, as the virtual GPU's driver writes them; others do not say.
fn calls() -> Outcome<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(REPLAY).env("WARPWRIGHT_LOG", "calls").stdout(Stdio::null());
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("the second process failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stderr)?;
    // A line is a number, the function, and what it returned.
    let mut counts = BTreeMap::new();
    for line in text.lines().skip_while(|line| *line != MARK).skip(1).take_while(|line| *line != MARK) {
        let function = line.split_whitespace().nth(2).unwrap_or(line).trim_end_matches(':');
        *counts.entry(function.to_owned()).or_insert(0) += 1;
    }
    if counts.is_empty() {
        return Ok("the driver does not say what it is called for".into());
    }
    let counts: Vec<_> = counts.iter().map(|(function, count)| format!("{count} x {function}")).collect();
    Ok(format!("calls of the driver for {REPLAYS} replays of {NODES} launches: {}", counts.join(", ")))
}
