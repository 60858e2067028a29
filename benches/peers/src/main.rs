//! Side by side with other crates. Run it with `cargo run --release`, on a quiet machine.
//!
//! Emission: `aprender-gpu`, which writes PTX from Rust too, and us. Both make the PTX text of the same
//! kernel for the same size and target, from its configuration on. Ours is built, verified and printed;
//! theirs is built and printed (its crate does not verify).
//!
//! Execution: `ptoxide`, which runs PTX on the CPU too, and our virtual GPU.
#![forbid(unsafe_code)]

mod execution;
mod ours;

use std::hint::black_box;
use std::time::{Duration, Instant};
use trueno_gpu::kernels::{Kernel, LongRowSoftmaxKernel, VectorizedRmsNormKernel};

/// Elements of a row.
const ROW: u32 = 4096;
const TARGET: &str = "sm_80";

/// A kernel that both have.
struct Contest {
    what: &'static str,
    theirs: fn() -> String,
    ours: fn() -> String,
}

fn main() {
    let contests = [
        Contest {
            what: "RMSNorm, a block of 256 to a row",
            theirs: || VectorizedRmsNormKernel::new(ROW).emit_ptx_for_target(TARGET),
            ours: ours::rms_norm,
        },
        Contest {
            what: "softmax, a block of 256 to a row",
            theirs: || LongRowSoftmaxKernel::new(ROW).emit_ptx_for_target(TARGET),
            ours: ours::softmax,
        },
    ];
    println!("emission, rows of {ROW}, {TARGET}          aprender-gpu 0.72.3          warpwright");
    for Contest { what, theirs, ours } in contests {
        println!("{what:36} {:>26} {:>26}", figures(theirs), figures(ours));
    }
    execution::contest();
}

/// Median time of an emission, and the size of the text.
fn figures(emit: fn() -> String) -> String {
    const TIME: Duration = Duration::from_secs(1);
    let bytes = emit().len();
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < TIME {
        let start = Instant::now();
        black_box(emit());
        times.push(start.elapsed());
    }
    times.sort();
    format!("{:.1} us, {bytes} bytes", times[times.len() / 2].as_secs_f64() * 1e6)
}
