//! How long a kernel takes from its configuration to its PTX: built, verified, printed.
//! `cargo bench -p warpwright-kernels`. Goal: 40 us for RMSNorm and softmax.

#![allow(missing_docs, reason = "a program")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use warpwright_ptx::{print, verify};

const TARGET: &str = "sm_80";

fn main() {
    let arch = TARGET.parse().expect("a target");
    println!("{TARGET}, defaults             build     verify      print      total");
    for entry in warpwright_kernels::catalogue() {
        let kernel = entry.configure([]).expect("every kernel has its defaults");
        let module = kernel.module(arch).expect("every kernel is built at its defaults");
        let times = [
            measure(|| drop(black_box(kernel.module(arch)))),
            measure(|| drop(black_box(verify(&module)))),
            measure(|| drop(black_box(print(&module)))),
            measure(|| {
                let module = kernel.module(arch).expect("built before");
                verify(&module).expect("verified before");
                black_box(print(&module));
            }),
        ];
        let times = times.map(|time| format!("{:7.1} us", time.as_secs_f64() * 1e6));
        println!("{:22} {}", entry.name, times.join(" "));
    }
}

/// Median time of a run.
fn measure(mut run: impl FnMut()) -> Duration {
    const TIME: Duration = Duration::from_millis(500);
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < TIME {
        let start = Instant::now();
        run();
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}
