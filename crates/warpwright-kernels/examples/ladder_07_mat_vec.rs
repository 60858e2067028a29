//! Step 7: many sums in one warp.
//!
//! Prints the kernel's PTX, for `sm_80` or the target that is named.

#[path = "ladder/mat_vec.rs"]
mod mat_vec;

use mat_vec::MatVec;
use warpwright_dsl::any::AnyKernel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    print!("{}", MatVec::<f32>::new(1000, 1000).ptx(target)?);
    Ok(())
}
