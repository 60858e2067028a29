//! Step 5: tiles in shared memory, a block of `C` in registers.
//!
//! Runs the kernel on the virtual GPU with every check on, as `sm_80` or the target that is named, and
//! compares with float64. Prints the kernel's PTX where `--ptx` is given.

#[path = "ladder/matmul_tiled.rs"]
mod matmul_tiled;

use matmul_tiled::MatmulTiled;
use warpwright_dsl::any::AnyKernel;
use warpwright_ptx::ir::Arch;
use warpwright_test::KernelTest;

/// Sides that no tile divides.
const M: usize = 150;
const N: usize = 200;
const DEPTH: usize = 77;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, targets): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let target: Arch = targets.first().map_or("sm_80", String::as_str).parse()?;
    let kernel = MatmulTiled::<f32>::new(N as u32, DEPTH as u32);
    if flags == ["--ptx"] {
        print!("{}", kernel.ptx(target)?);
        return Ok(());
    }

    let a: Vec<f32> = (0..M * DEPTH).map(|i| (i as f32 * 0.37).sin()).collect();
    let b: Vec<f32> = (0..DEPTH * N).map(|i| (i as f32 * 0.11).cos()).collect();
    let test = KernelTest::new(&kernel).arch(target).dim("m", M as u64);
    let run = test.input("a", &a).input("b", &b).run()?;
    let c = run.output::<f32>("c");

    // |err| ≤ k · 2⁻²⁴ · Σ|aᵢ||bᵢ|
    let mut worst = (0.0f64, 0.0f64);
    for (i, found) in c.iter().enumerate() {
        let terms = (0..DEPTH).map(|p| f64::from(a[i / N * DEPTH + p]) * f64::from(b[p * N + i % N]));
        let (exact, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
        let error = (f64::from(*found) - exact).abs();
        let bound = DEPTH as f64 * 2f64.powi(-24) * size;
        worst = (worst.0.max(error), worst.1.max(error / bound));
    }
    println!("{} on {target}: {M}x{DEPTH} by {DEPTH}x{N}", kernel.entry());
    println!("largest error {:.1e}, {:.1}% of what the bound allows there", worst.0, 100.0 * worst.1);
    println!(
        "findings: {}, bank conflicts: {}",
        run.report.findings.len(),
        run.report.counters.bank_conflicts
    );
    Ok(())
}
