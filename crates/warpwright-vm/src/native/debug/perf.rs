//! Where the code of functions is, for a profiler: the map that Linux's `perf` reads.

use super::Function;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Adds a function's code to the map, a line for each piece.
pub(super) fn note(function: &Function<'_>) {
    let mut lines = String::new();
    for (range, piece) in function.pieces().filter(|(range, _)| !range.is_empty()) {
        let (start, name) = (function.start as usize + range.start, function.name());
        let _ = writeln!(lines, "{start:x} {:x} {name} {piece}", range.len());
    }
    // Where `perf` looks for it, whatever the directory for temporary files is.
    let path = Path::new("/tmp").join(format!("perf-{}.map", std::process::id()));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
        eprintln!("{}, the map of native code for perf, is not written: {error}", path.display());
    }
}
