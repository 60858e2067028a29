//! Where the code of functions is, for a profiler: the map that Linux's `perf` reads.

use crate::decode::Code;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

/// Whether the environment asks for a map: `WARPWRIGHT_PERF_MAP` is there, and is not empty.
pub(super) fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var_os("WARPWRIGHT_PERF_MAP").is_some_and(|value| !value.is_empty()))
}

/// Adds a function's code to the map: the instructions, by the byte of the code at which each begins, and what stands before
/// and behind them. Nothing depends on it, so an error is no more than a line on stderr.
pub(super) fn note(code: &Code, number: u32, start: *const u8, bytes: usize, instructions: &[(usize, u32)]) {
    let name = &code.functions[number as usize].name;
    let mut lines = String::new();
    let mut line = |from: usize, to: usize, what: &dyn std::fmt::Display| {
        if from < to {
            let _ = writeln!(lines, "{:x} {:x} {name} {what}", start as usize + from, to - from);
        }
    };
    let ends = instructions.iter().skip(1).map(|next| next.0).chain([bytes]);
    line(0, instructions.first().map_or(bytes, |first| first.0), &"entry");
    for (&(from, pc), to) in instructions.iter().zip(ends) {
        let opcode = code.meta.get(pc as usize).and_then(|meta| meta.opcode);
        let opcode = opcode.map_or("", |opcode| code.opcodes[usize::from(opcode)]);
        match code.insts.get(pc as usize) {
            Some(_) => line(from, to, &format_args!("{pc} {opcode}")),
            None => line(from, to, &"exits"),
        }
    }
    // Where `perf` looks for it, whatever the directory for temporary files is.
    let path = Path::new("/tmp").join(format!("perf-{}.map", std::process::id()));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
        eprintln!("{}, the map of native code for perf, is not written: {error}", path.display());
    }
}
