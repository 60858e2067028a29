//! Step 1: a thread, an index, a bound.
//!
//! Prints the kernel's PTX, for `sm_80` or the target that is named.

#[path = "ladder/vector_add.rs"]
mod vector_add;

use vector_add::VectorAdd;
use warpwright_dsl::any::AnyKernel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    let kernel = VectorAdd::<f32>::new(256);
    for arg in kernel.args() {
        println!("// {:?} {}: {} x {}", arg.role, arg.name, arg.len, arg.dtype.name());
    }
    print!("{}", kernel.ptx(target)?);
    Ok(())
}
