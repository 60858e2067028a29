//! Nothing that a module or an argument list contains can crash, hang or exhaust the host: the corpus
//! with lines and words exchanged, launched with wild arguments and a small budget. The fuzz target `run`
//! does the same without an end.
//!
//! `WARPWRIGHT_HOSTILE=50000` runs that many mutants.

#[path = "hostile/run.rs"]
mod run;

use std::path::{Path, PathBuf};

/// Mutants of a test run and of a full one.
const MUTANTS: usize = 600;
const FULL_MUTANTS: usize = 20_000;

/// Files larger than this take too long to parse and verify that often.
const LARGEST: u64 = 24 << 10;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }
}

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

/// Some changes to the lines between the braces of functions.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let instructions: Vec<usize> = (0..lines.len())
        .filter(|&i| lines[i].trim_end().ends_with(';') && !lines[i].trim_start().starts_with('.'))
        .collect();
    if instructions.is_empty() {
        return text.to_string();
    }
    for _ in 0..1 + random.below(4) {
        let [at, other] = [0; 2].map(|_| instructions[random.below(instructions.len())]);
        match random.below(7) {
            0 => lines[at].clear(),
            1 => lines[at] = format!("{}\n{}", lines[at], lines[other]),
            2 => lines.swap(at, other),
            // An operand of another instruction.
            3 | 4 => {
                let words =
                    |line: &str| line.split_inclusive([' ', ',']).map(str::to_string).collect::<Vec<_>>();
                let donor = words(&lines[other]);
                let mut here = words(&lines[at]);
                if here.len() > 1 && donor.len() > 1 {
                    let place = 1 + random.below(here.len() - 1);
                    here[place] = donor[1 + random.below(donor.len() - 1)].clone();
                    lines[at] = here.concat();
                }
            }
            // Another number.
            _ => {
                let digits: Vec<usize> =
                    lines[at].char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(i, _)| i).collect();
                if !digits.is_empty() {
                    let place = digits[random.below(digits.len())];
                    let number = ["0", "1", "7", "31", "32", "255", "65536", "2147483647", "4294967296"];
                    let number = number[random.below(number.len())];
                    lines[at].replace_range(place..=place, number);
                }
            }
        }
    }
    lines.join("\n")
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
