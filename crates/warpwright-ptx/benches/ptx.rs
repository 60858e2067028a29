//! How fast PTX is read, checked and printed, on what nvcc wrote: `cargo bench -p warpwright-ptx`.
//!
//! Goals: parsing at 50 MB/s or more, and checking (parsing and verifying) a text of 1 MB in 100 ms or
//! less. How long the crate alone takes to build, cold, on two cores (goal: 15 s):
//!
//! ```sh
//! cargo build --release -p warpwright-ptx --target-dir target/cold -j 2 --timings
//! ```

#![allow(missing_docs, reason = "a program")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use warpwright_ptx::ir::Module;
use warpwright_ptx::{parse, print, verify};

fn main() {
    let texts = corpus();
    let bytes: usize = texts.iter().map(String::len).sum();
    let modules: Vec<Module> = texts.iter().map(|text| parse(text).expect("the corpus parses")).collect();
    println!("{} files by nvcc, {:.2} MB", texts.len(), megabytes(bytes));

    let time = measure(|| texts.iter().for_each(|text| drop(black_box(parse(text)))));
    report("parse", time, bytes);
    let time = measure(|| modules.iter().for_each(|module| drop(black_box(verify(module)))));
    report("verify", time, bytes);
    let time = measure(|| modules.iter().for_each(|module| drop(black_box(print(module)))));
    report("print", time, bytes);

    let large = one_megabyte(&texts);
    let time = measure(|| {
        let module = parse(&large).expect("functions of one text make a text");
        drop(black_box(verify(&module)));
    });
    report("check one text of 1 MB", time, large.len());
}

/// What nvcc wrote.
fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/ptx");
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("an entry of the corpus").path())
        .filter(|path| path.to_string_lossy().contains(".nvcc."))
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).expect("a file of the corpus")).collect()
}

/// A text of at least 1 MB: a kernel of the corpus again and again, under other names.
fn one_megabyte(texts: &[String]) -> String {
    let kernels = |text: &&String| text.matches(".entry ").count() == 1 && !text.contains(".global .align");
    let text = texts.iter().filter(kernels).max_by_key(|text| text.len()).expect("a file with one kernel");
    let start = text.find(".visible .entry").expect("nvcc's kernels are visible");
    let (head, kernel) = text.split_at(start);
    let name = kernel.split(['(', ' ']).nth(2).expect("a kernel has a name");
    let end = kernel.rfind("\n}").expect("a kernel ends") + 2;
    let mut large = head.to_string();
    let mut copies = 0;
    while large.len() < 1_000_000 {
        large.push_str(&kernel[..end].replace(name, &format!("{name}_{copies}")));
        large.push('\n');
        copies += 1;
    }
    large
}

/// Median time of a run.
fn measure(mut run: impl FnMut()) -> Duration {
    const TIME: Duration = Duration::from_secs(2);
    run();
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < TIME || times.len() < 5 {
        let start = Instant::now();
        run();
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn report(what: &str, time: Duration, bytes: usize) {
    let rate = megabytes(bytes) / time.as_secs_f64();
    println!("{what:24} {:9.3} ms {rate:8.1} MB/s", time.as_secs_f64() * 1e3);
}
