//! A kernel as a Rust function, and the PTX that it becomes for two targets.
//!
//! ```text
//! cargo run -p warpwright-dsl --example saxpy
//! ```

use warpwright_dsl::*;
use warpwright_ptx::diag::Diagnostics;
use warpwright_ptx::ir::Arch;

/// `y = a · x + y`: four elements for each thread.
fn saxpy(k: K<'_>) {
    let (n, a) = (k.scalar::<u32>("n"), k.scalar::<f32>("a"));
    let (x, y) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"));
    let first = k.global_tid() * 4;
    k.each(k.range(first..(first + 4).min(n)), |i| y.st(i, x.ld(i).mul_add(a, y.ld(i))));
}

fn main() -> Result<(), Diagnostics> {
    for sm in [75, 90] {
        let built = build("saxpy", &LaunchRule::new(256), Arch::sm(sm), saxpy)?;
        println!("{}", warpwright_ptx::print(&built.module));
    }
    Ok(())
}
