//! Native code beside the PTX that it is compiled from, as text.

use super::{Function, Piece};
use crate::decode::Code;
use crate::native::functions::{Accesses, instructions};
use iced_x86::{Decoder, DecoderOptions, FastFormatter};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Characters of a function's name in that of its file, at most.
const LONGEST: usize = 100;

/// Writes a function's text into a folder, behind those that this process has written.
pub(super) fn write(function: &Function<'_>, folder: &Path) {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    let name: String = function.name().chars().take(LONGEST).collect();
    let path = folder.join(format!("{:03}-{name}.txt", WRITTEN.fetch_add(1, Relaxed)));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text(function)));
    if let Err(error) = written {
        eprintln!("{}, the text of native code, is not written: {error}", path.display());
    }
}

/// Each instruction of PTX, with its number among the decoded ones; behind it, offsets from the function's first byte and
/// instructions of the processor.
fn text(function: &Function<'_>) -> String {
    let Function { code, number, bytes, .. } = *function;
    let lanes = if function.variant.full { "all lanes" } else { "some lanes" };
    let accesses = match function.variant.accesses {
        Accesses::None => ", without accesses to memory",
        Accesses::Plain => "",
        Accesses::Noted => ", accesses are noted for the race check",
    };
    let counted = if function.variant.counted { ", memory traffic is counted" } else { "" };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: {lanes}{accesses}{counted}; {} bytes at {:p}",
        function.name(),
        bytes.len(),
        function.start
    );
    let mut formatter = FastFormatter::new();
    formatter.options_mut().set_use_hex_prefix(true);
    formatter.options_mut().set_uppercase_hex(false);
    let Range { start: mut next, end } = instructions(code, number);
    for (range, piece) in function.pieces() {
        let until = match piece {
            Piece::Entry => next,
            // Arms of branches stand behind all instructions.
            Piece::Instruction(_, pc) if pc < next => end,
            Piece::Instruction(_, pc) => pc,
            Piece::Exits => end,
        };
        for pc in next..until {
            let piece = Piece::Instruction(code, pc);
            let _ = writeln!(out, "\n{piece}{}\n       interpreted", ptx(code, pc));
        }
        next = until;
        match piece {
            Piece::Instruction(code, pc) => {
                next = next.max(pc + 1);
                let _ = writeln!(out, "\n{piece}{}", ptx(code, pc));
            }
            _ => _ = writeln!(out, "\n{piece}"),
        }
        let first = range.start as u64;
        for instruction in Decoder::with_ip(64, &bytes[range], first, DecoderOptions::NONE) {
            let _ = write!(out, "{:6x} ", instruction.ip());
            formatter.format(&instruction, &mut out);
            out.push('\n');
        }
    }
    out
}

/// The statement that a decoded instruction came from; several may have come from one.
fn ptx(code: &Code, pc: u32) -> String {
    let meta = code.meta[pc as usize];
    let text = code.native.text.get(meta.function as usize);
    text.and_then(|text| text.get(meta.statement as usize))
        .map_or_else(String::new, |text| format!("  {text}"))
}
