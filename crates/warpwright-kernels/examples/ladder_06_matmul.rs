//! Step 6: the tensor cores, and copies that run ahead.
//!
//! Runs the kernel on the virtual GPU with every check on, as `sm_80` or the target that is named, and
//! compares with float64. Prints the kernel's PTX where `--ptx` is given.

#[path = "ladder/matmul.rs"]
mod matmul;

use matmul::Matmul;
use warpwright_dsl::{F16, any::AnyKernel, f16_bits};
use warpwright_ptx::ir::Arch;
use warpwright_test::KernelTest;

/// Sides that no tile divides.
const M: usize = 150;
const N: usize = 200;
const DEPTH: usize = 77;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, targets): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let target: Arch = targets.first().map_or("sm_80", String::as_str).parse()?;
    let kernel = Matmul::<F16, f32>::new(N as u32, DEPTH as u32);
    if flags == ["--ptx"] {
        print!("{}", kernel.ptx(target)?);
        return Ok(());
    }

    // Multiples of 1/256 below 4, which half precision holds exactly; their sums are rounded.
    let number = |i: usize, by: usize| ((i * by) % 2039) as f32 / 256.0 - 4.0;
    let a: Vec<f32> = (0..M * DEPTH).map(|i| number(i, 1789)).collect();
    let b: Vec<f32> = (0..DEPTH * N).map(|i| number(i, 1553)).collect();
    let halves = |x: &[f32]| x.iter().map(|&x| f16_bits(x)).collect::<Vec<u16>>();
    let test = KernelTest::new(&kernel).arch(target).dim("m", M as u64);
    let run = test.input("a", &halves(&a)).input("b", &halves(&b)).run()?;
    let c = run.output::<f32>("c");

    // |err| ≤ (2k + 16) · 2⁻²³ · Σ|aᵢ||bᵢ|
    let mut worst = (0.0f64, 0.0f64);
    for (i, found) in c.iter().enumerate() {
        let terms = (0..DEPTH).map(|p| f64::from(a[i / N * DEPTH + p]) * f64::from(b[p * N + i % N]));
        let (exact, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
        let error = (f64::from(*found) - exact).abs();
        let bound = (2.0 * DEPTH as f64 + 16.0) * 2f64.powi(-23) * size;
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
