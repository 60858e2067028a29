//! Nothing that a module or an argument list contains can crash, hang or exhaust the host: the corpus
//! with lines and words exchanged, launched with wild arguments and a small budget, and tables of what an
//! attacker would try. The fuzz target `run` does the first without an end. What the mutants do is the same compiled.
//!
//! `WARPWRIGHT_HOSTILE=50000` runs that many mutants.

mod attack;
mod declarations;
mod execution;

mod launches;
mod mutate;
mod run;

use mutate::{Random, mutate};
use std::path::{Path, PathBuf};

/// Mutants of a test run and of a full one.
const MUTANTS: usize = 600;
const FULL_MUTANTS: usize = 20_000;

/// Files larger than this take too long to parse and verify that often.
const LARGEST: u64 = 24 << 10;

fn corpus() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut folders = vec![tests.join("corpus/ptx"), tests.join("filetests")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the corpus is there").flatten() {
            let path = entry.path();
            let small = entry.metadata().is_ok_and(|metadata| metadata.len() < LARGEST);
            match path.is_dir() {
                true => folders.push(path),
                false if small && path.extension().is_some_and(|end| end == "ptx") => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    files
}

#[test]
fn mutants_neither_crash_nor_hang() {
    let full = std::env::var_os("WARPWRIGHT_FULL").is_some();
    let asked = std::env::var("WARPWRIGHT_HOSTILE").ok();
    let count = asked.map_or(if full { FULL_MUTANTS } else { MUTANTS }, |n| n.parse().expect("a number"));
    let files = corpus();
    assert!(files.len() > 50, "the corpus has {} files", files.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let launched = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        loop {
            let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if i >= count {
                break;
            }
            let path = &files[i % files.len()];
            let text = std::fs::read_to_string(path).expect("a file of the corpus");
            let mut random = Random(i as u64);
            // Each file as it is, too.
            let text = if i < files.len() { text } else { mutate(&text, &mut random) };
            let outcome = std::panic::catch_unwind(|| run::run(&text));
            match outcome {
                Ok(launches) => launched.fetch_add(launches, std::sync::atomic::Ordering::Relaxed),
                Err(_) => panic!("mutant {i}, of {}:\n{text}", path.display()),
            };
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let launched = launched.into_inner();
    assert!(
        launched > count / 4,
        "of {count} mutants {launched} kernels were launched: the test tests little"
    );
}
