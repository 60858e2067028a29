//! Step 6: the tensor cores, and copies that run ahead.
//!
//! Prints the kernel's PTX, for `sm_80` or the target that is named, and the shared memory that the
//! launch needs.

use warpwright_kernels::Matmul;
use warpwright_ptx::dsl::{F16, Kernel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    let built = Matmul::<F16, f32>::new(4096, 4096).build(target)?;
    println!("// {} bytes of shared memory", built.launch.static_shared);
    print!("{}", warpwright_ptx::print(&built.module));
    Ok(())
}
