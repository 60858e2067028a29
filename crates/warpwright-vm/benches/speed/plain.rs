//! Kernels against a C program that does the same on the processor, on one core: `plain.c`.

use crate::Runner;
use crate::kernels::{self, Kernel, Size};
use std::path::Path;
use std::process::Command;
use warpwright_vm::{Native, Options};

/// Compares, if there is a compiler.
pub(crate) fn compare() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/speed/plain.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join("plain");
    let mut gcc = Command::new("gcc");
    let built = gcc.args(["-O3", "-o"]).arg(&program).arg(source).status();
    if !built.is_ok_and(|status| status.success()) {
        return println!("there is no gcc for the comparison with C");
    }
    println!("milliseconds of a launch, and how many times as long as the same in C (gcc -O3)");
    println!("{:46}          C  native          interpreted", "");
    let others = kernels::ALL
        .iter()
        .filter(|kernel| ["matmul_tiled", "reduce_shared", "stencil_3d"].contains(&kernel.entry));
    for kernel in std::iter::once(&kernels::SAXPY).chain(others) {
        let name = if kernel.name == "saxpy" { "saxpy" } else { kernel.entry };
        let output = Command::new(&program).arg(name).output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let c: f64 = text.trim().parse().expect("it prints seconds");
        let [native, interpreted] = [Native::Always, Native::Off].map(|native| time(kernel, native));
        println!(
            "{:46} {:10.3} {:7.3} {:5.1}x {:10.3} {:6.1}x",
            kernel.name,
            c * 1e3,
            native * 1e3,
            native / c,
            interpreted * 1e3,
            interpreted / c
        );
    }
}

/// Seconds of the fastest of some launches.
fn time(kernel: &Kernel, native: Native) -> f64 {
    let mut runner = Runner::new(kernel, (1, native), Options::default(), Size::Whole);
    (0..20).for_each(|_| runner.run());
    runner.time
}
