//! Step 3: a tile in shared memory.
//!
//! Prints the kernel's PTX, for `sm_80` or the target that is named, and the shared memory that the
//! launch needs.

#[path = "ladder/transpose.rs"]
mod transpose;

use transpose::Transpose;
use warpwright_dsl::any::AnyKernel;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).unwrap_or("sm_80".into()).parse()?;
    let built = Transpose::<f32>::new(1024, 768).build(target)?;
    println!("// {} bytes of shared memory", built.launch.static_shared);
    print!("{}", warpwright_ptx::print(&built.module));
    Ok(())
}
