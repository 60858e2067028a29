//! Step 5: tiles in shared memory, a block of `C` in registers.
//!
//! Prints the kernel's PTX, for `sm_80` or the target that is named, and the shared memory that the
//! launch needs.

use warpwright_kernels::MatmulTiled;
use warpwright_ptx::dsl::Kernel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    let built = MatmulTiled::<f32>::new(1000, 513).build(target)?;
    println!("// {} bytes of shared memory", built.launch.static_shared);
    print!("{}", warpwright_ptx::print(&built.module));
    Ok(())
}
