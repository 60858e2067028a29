//! Step 1: a thread, an index, a bound.
//!
//! Prints the kernel's PTX, for `sm_80` or the target that is named.

use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::VectorAdd;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    let kernel = VectorAdd::<f32>::new(256);
    for arg in kernel.args() {
        println!("// {:?} {}: {} x {}", arg.role, arg.name, arg.len, arg.dtype.name());
    }
    print!("{}", kernel.ptx(target)?);
    Ok(())
}
