//! How fast vocabularies load and text is encoded: `cargo bench -p warpwright-llm --bench tokenizer`.
//!
//! `WARPWRIGHT_VOCABULARIES=FOLDER` measures the GGUF files there; else it is the tests' own small ones.
//!
//! Goals: a vocabulary of 150,000 tokens and 280,000 merges loads in well under 300 ms, one of 2,000 in 5 ms;
//! encoding keeps up with reading a file, and a megabyte without a space takes no longer than one of prose.

#![allow(missing_docs, reason = "a program")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use warpwright_llm::gguf::Gguf;
use warpwright_llm::tokenizer::{Encode, Tokenizer};

fn main() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tokenizers");
    let folder = std::env::var("WARPWRIGHT_VOCABULARIES").map_or(own, PathBuf::from);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "gguf"))
        .collect();
    paths.sort();

    let prose = "It was late in the year, and 12 of them didn't come back; nobody asked why. ".repeat(14_000);
    let scripts =
        "Η θάλασσα, 123 волны и море — 海边的老人。ひらがな 한글 ñandú 👍🏽\n\n  x = f(y);".repeat(10_000);
    let run = "a".repeat(1 << 20);
    println!(
        "{:<28} {:>8} {:>10} {:>10} {:>10} {:>10}",
        "MB/s but for load", "tokens", "load ms", "prose", "scripts", "one word"
    );
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(gguf) = Gguf::open(&path) else { continue };
        let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) else { continue };
        let load = fastest(|| drop(black_box(Tokenizer::from_gguf(&gguf))));
        let speed = |text: &str| {
            let time = fastest(|| drop(black_box(tokenizer.encode(text, Encode::default()))));
            text.len() as f64 / 1e6 / time.as_secs_f64()
        };
        println!(
            "{name:<28} {:>8} {:>10.1} {:>10.1} {:>10.1} {:>10.1}",
            tokenizer.vocab_len(),
            load.as_secs_f64() * 1e3,
            speed(&prose),
            speed(&scripts),
            speed(&run),
        );
    }
}

/// The fastest of several runs.
fn fastest(mut run: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}
