//! Launches a kernel of the library in a program that uses cudarc: on its context, its stream and its memory.
//!
//! `cargo run -p warpwright-runtime --example beside_cudarc`, with a CUDA device or by way of `warpwright exec`.

use cudarc::driver::CudaContext;
use std::error::Error;
use warpwright_kernels::RmsNorm;
use warpwright_runtime::{Device, cudarc};

const ROWS: usize = 8;
const D: usize = 4096;
const EPSILON: f32 = 1e-6;

fn main() -> Result<(), Box<dyn Error>> {
    // What such a program has anyway.
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let host: Vec<f32> = (0..ROWS * D).map(|i| (i % 13) as f32 - 6.0).collect();
    let x = stream.clone_htod(&host)?;
    let w = stream.clone_htod(&[0.5f32; D])?;
    let mut y = stream.alloc_zeros::<f32>(ROWS * D)?;

    let device = Device::from_cudarc(context, stream.clone())?;
    let norm = device.kernel(&RmsNorm::new(D as u32, EPSILON))?;
    let ours = device.default_stream(); // their stream: one order
    device.borrow((&x, &w, &mut y), |(x, w, y)| {
        norm.bind().buffer("x", &x).buffer("w", &w).buffer("y", &y).dim("rows", ROWS as u64).launch(&ours)
    })??;

    let result = stream.clone_dtoh(&y)?;
    let mut worst = 0.0f64;
    for (row, got) in host.chunks(D).zip(result.chunks(D)) {
        let square: f64 = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
        let scale = 0.5 / (square / D as f64 + f64::from(EPSILON)).sqrt();
        for (&v, &got) in row.iter().zip(got) {
            let (want, got) = (f64::from(v) * scale, f64::from(got));
            // The sum of a row and its root, in f32.
            if got.is_nan() || (got - want).abs() > 2e-6 * want.abs() {
                return Err(format!("{got} instead of {want}").into());
            }
            worst = worst.max(if want == 0.0 { 0.0 } else { (got - want).abs() / want.abs() });
        }
    }
    println!("{}: {ROWS} rows of {D}, relative error {worst:.1e}", norm.entry());
    Ok(())
}
