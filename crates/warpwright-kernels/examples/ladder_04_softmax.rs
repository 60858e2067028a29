//! Step 4: the block agrees on a number.
//!
//! Prints the kernel's PTX, for `sm_80` or the target that is named.

#[path = "ladder/softmax.rs"]
mod softmax;

use softmax::Softmax;
use warpwright_dsl::any::AnyKernel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    print!("{}", Softmax::<f32>::new(1000).ptx(target)?);
    Ok(())
}
