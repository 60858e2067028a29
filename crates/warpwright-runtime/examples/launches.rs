//! A step of two kernels of the library: launched under contract, refused, prepared, captured, replayed.
//!
//! `cargo run -p warpwright-runtime --example launches`

use warpwright_kernels::{Dtype, RmsNorm, RmsNormArgs, Softmax, SoftmaxArgs};
use warpwright_runtime::{Device, LaunchConfig, Result, RuntimeError};

const ROWS: usize = 2;
const D: usize = 96;

/// `x[tid] *= factor`
const TRIPLE: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry triple(.param .u64 x, .param .u32 factor)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd1, %rd1;
    ld.param.u32 %r1, [factor];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r3, [%rd3];
    mul.lo.u32 %r3, %r3, %r1;
    st.global.u32 [%rd3], %r3;
    ret;
}
";

fn main() -> Result<()> {
    let selected = Device::auto()?;
    let device = selected.device;
    println!("{}: {}", device.properties().name, selected.reason);

    // A kernel is built once for a device; its arguments are what it says of itself.
    let norm = RmsNorm { residual: Some(Dtype::F32), ..RmsNorm::new(D as u32, 1e-5) };
    let norm = device.kernel(&norm)?;
    let softmax = device.kernel(&Softmax::new(D as u32))?;
    let names: Vec<_> = norm.args().iter().map(|arg| arg.name).collect();
    println!("{} takes {} and depends on {}", norm.entry(), names.join(", "), norm.dims().join(", "));

    let stream = device.new_stream()?;
    let x: Vec<f32> = (0..ROWS * D).map(|i| (i % 7) as f32 - 3.0).collect();
    let x = stream.clone_htod(&x)?;
    let residual = stream.alloc_zeros::<f32>(ROWS * D)?;
    let weights = stream.clone_htod(&[1.0f32; D])?;
    let [normal, shares] = [stream.alloc::<f32>(ROWS * D)?, stream.alloc::<f32>(ROWS * D)?];

    // Grid, block and shared memory follow from the kernel and `rows`.
    softmax.with(SoftmaxArgs { x: x.as_any(), y: shares.as_any(), rows: 2 }).launch(&stream)?;

    // What is launched again and again is checked once.
    let args = RmsNormArgs {
        x: x.as_any(),
        residual: Some(residual.as_any()),
        w: weights.as_any(),
        y: Some(normal.as_any()),
        quants: None,
        scales: None,
        rows: ROWS as u64,
    };
    let first = norm.with(args).prepare()?;
    let second =
        softmax.with(SoftmaxArgs { x: normal.as_any(), y: shares.as_any(), rows: ROWS as u64 }).prepare()?;
    println!(
        "grid {:?}, block {:?}; grid {:?}, block {:?}",
        first.grid(),
        first.block(),
        second.grid(),
        second.block()
    );

    // What is wrong is told before anything runs: kernel, argument, what was given, what is needed.
    for (y, rows) in [(&shares.slice(D..)?, 2), (&normal.slice(D / 2..)?, 1), (&normal.slice(1..)?, 1)] {
        match softmax.with(SoftmaxArgs { x: normal.as_any(), y: y.as_any(), rows }).launch(&stream) {
            Err(RuntimeError::Contract(refusal)) => println!("{refusal}"),
            other => other?,
        }
    }

    // Recorded once, a step is one operation; what changes from step to step is in the buffers.
    stream.begin_capture()?;
    stream.launch(&first)?;
    stream.launch(&second)?;
    let step = stream.end_capture()?.instantiate()?;
    for _ in 0..3 {
        step.launch(&stream)?; // one operation, allocates nothing
    }
    let sums: Vec<f32> = stream.clone_dtoh(&shares)?.chunks(D).map(|row| row.iter().sum()).collect();
    let statistics = device.statistics();
    println!(
        "each row sums to {sums:?} after {} replays, {} launches",
        statistics.graph_launches, statistics.launches
    );

    // Any PTX, as with cudarc.
    let tripled = stream.clone_htod(&[1u32, 2, 3])?;
    let triple = device.load_ptx(TRIPLE)?.load_function("triple")?;
    let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (3, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: three threads multiply an element each of a buffer that has three.
    unsafe { stream.launch_builder(&triple).arg(&tripled).arg(3u32).launch(config) }?;
    println!("{:?}", stream.clone_dtoh(&tripled)?);
    Ok(())
}
