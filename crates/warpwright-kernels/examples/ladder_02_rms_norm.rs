//! Step 2: a block walks a row; one body for three element types.
//!
//! Prints the kernel's PTX for each, for `sm_80` or the target that is named.

#[path = "ladder/rms_norm.rs"]
mod rms_norm;

use rms_norm::RmsNorm;
use warpwright_dsl::{Bf16, F16, any::AnyKernel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    let kernels: [Box<dyn AnyKernel>; 3] = [
        Box::new(RmsNorm::<f32>::new(4096, 1e-5)),
        Box::new(RmsNorm::<F16>::new(4096, 1e-5)),
        Box::new(RmsNorm::<Bf16>::new(4096, 1e-5)),
    ];
    for kernel in kernels {
        print!("{}", kernel.ptx(target)?);
    }
    Ok(())
}
