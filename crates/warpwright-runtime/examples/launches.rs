//! A step of two kernels of the library: launched under contract, refused, prepared, captured, replayed.
//!
//! `cargo run -p warpwright-runtime --example launches`

use warpwright_kernels::{Dtype, RmsNorm, Softmax};
use warpwright_runtime::{Device, Result, RuntimeError};

const ROWS: usize = 2;
const D: usize = 96;

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
    let bound = norm.bind().buffer("x", &x).buffer("residual", &residual).buffer("w", &weights);
    let first = bound.buffer("y", &normal).dim("rows", ROWS as u64).prepare()?;
    let bound = softmax.bind().buffer("x", &normal).buffer("y", &shares).dim("rows", ROWS as u64);
    let second = bound.prepare()?;
    println!(
        "grid {:?}, block {:?}; grid {:?}, block {:?}",
        first.grid(),
        first.block(),
        second.grid(),
        second.block()
    );

    // What is wrong is told before anything runs: kernel, argument, what was given, what is needed.
    for (y, rows) in [(&shares.slice(D..)?, 2), (&normal.slice(D / 2..)?, 1), (&normal.slice(1..)?, 1)] {
        let bound = softmax.bind().buffer("x", &normal).buffer("y", y).dim("rows", rows);
        match bound.launch(&stream) {
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
        step.launch(&stream)?;
    }
    let sums: Vec<f32> = stream.clone_dtoh(&shares)?.chunks(D).map(|row| row.iter().sum()).collect();
    let statistics = device.statistics();
    println!(
        "each row sums to {sums:?} after {} replays, {} launches",
        statistics.graph_launches, statistics.launches
    );
    Ok(())
}
