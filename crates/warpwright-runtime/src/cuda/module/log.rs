//! The log of the driver's compiler, with the source at the lines that it names.
//!
//! It names lines of the PTX, `ptxas application ptx input, line 12; error   : Unknown symbol 'x'`. Such a line leads
//! to its instruction, and the `.loc` before that to the line of Rust. A log of another format is left unchanged.

use std::fmt::Write;
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::{Function, ItemKind, Module, Origin, Span, Statement, StatementKind};

/// A log about that PTX. Each line of it that names a line of the PTX is followed by what stands there: the
/// instruction, its function and, if known, the line of the source that it comes from.
pub(super) fn explained(log: &str, ptx: &str) -> String {
    let mut explained = String::new();
    // A text is read again only where the log speaks of its lines.
    let mut places = None;
    for line in log.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        explained.push_str(line);
        explained.push('\n');
        if let Some(number) = line_number(line) {
            let places = places.get_or_insert_with(|| SourceMap::new(ptx));
            // A text takes everything that is written to it.
            let _ = places.explain(number, &mut explained);
        }
    }
    explained
}

/// The number of `…, line 12; …`, the last one where there are several.
fn line_number(line: &str) -> Option<u32> {
    let mut named = line.rmatch_indices("line ");
    named.find_map(|(at, word)| line[at + word.len()..].split_once(';')?.0.trim().parse().ok())
}

/// A PTX text whose lines are looked up.
struct SourceMap<'a> {
    text: &'a str,
    index: LineIndex<'a>,
    module: Option<Module>,
}

impl<'a> SourceMap<'a> {
    fn new(text: &'a str) -> Self {
        SourceMap { text, index: LineIndex::new(text), module: warpwright_ptx::parse(text).ok() }
    }

    fn explain(&self, number: u32, out: &mut String) -> std::fmt::Result {
        let text = number.checked_sub(1).and_then(|before| self.text.lines().nth(before as usize));
        writeln!(out, "  at line {number} of the PTX: {}", text.unwrap_or_default().trim())?;
        let Some(function) = self.function(number) else { return Ok(()) };
        writeln!(out, "  in `{}`", function.name)?;
        match self.source(function, number) {
            Some((file, line)) => writeln!(out, "  from {file}:{line}"),
            None => Ok(()),
        }
    }

    /// The line that a span begins in.
    fn line_of(&self, origin: Origin) -> Option<u32> {
        match origin {
            Origin::Text(Span { start, .. }) => Some(self.index.position(start).line),
            _ => None,
        }
    }

    /// The last function that begins at that line or before it.
    fn function(&self, number: u32) -> Option<&Function> {
        let functions = self.module.as_ref()?.items.iter().rev().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some((item.origin, function)),
            _ => None,
        });
        let mut before =
            functions.filter(|(origin, _)| self.line_of(*origin).is_some_and(|line| line <= number));
        before.next().map(|(_, function)| &**function)
    }

    /// What the last `.loc` before the statement of that line says.
    fn source(&self, function: &Function, number: u32) -> Option<(&str, u32)> {
        let statements = function.statements();
        let is_there = |statement: &Statement| self.line_of(statement.origin) == Some(number);
        let at = statements.iter().rposition(|statement| {
            matches!(statement.kind, StatementKind::Instruction(_)) && is_there(statement)
        })?;
        let (_, loc) = function.locs().take_while(|(place, _)| (*place as usize) < at).last()?;
        let file = self.module.as_ref()?.items.iter().find_map(|item| match &item.kind {
            ItemKind::File(file) if file.index == loc.file => Some(file.path.as_str()),
            _ => None,
        })?;
        Some((file, loc.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line 13 adds, by line 8 of `src/sum.rs`.
    const PTX: &str = "\
.version 9.0
.target sm_80
.address_size 64
.file 1 \"src/sum.rs\"
.file 2 \"src/deep.rs\"

.visible .entry first()
{
    .reg .b32 %r<3>;
    mov.u32                 %r0, 1;
    .loc 1 8 5
    mov.u32                 %r1, 2;
    add.u32                 %r2, %r0, %r1;
    .loc 2 70 1
    ret;
}

.visible .entry second()
{
    ret;
}
";

    #[test]
    fn lines_that_a_log_names_are_explained() {
        let log = "ptxas application ptx input, line 13; error   : Arguments mismatch for instruction 'add'\n\
                   ptxas application ptx input, line 10; warning : before the first `.loc`\n\
                   ptxas a, line 3; b.ptx, line 15; fatal   : Parsing error near ';': syntax error\n\
                   ptxas application ptx input, line 20; error   : Unknown symbol 'x'\n\
                   ptxas application ptx input, line 2; error   : about the target\n\
                   ptxas application ptx input, line 99; error   : about nothing\n\
                   ptxas error   : Entry function 'k' uses too much shared data (0xea60 bytes, 0xc000 max)\n\
                   ptxas fatal   : Ptx assembly aborted due to errors\n";
        // What another function says of its lines is not about the second one.
        let behind = [
            "  at line 13 of the PTX: add.u32                 %r2, %r0, %r1;\n  in `first`\n  from src/sum.rs:8\n",
            "  at line 10 of the PTX: mov.u32                 %r0, 1;\n  in `first`\n",
            "  at line 15 of the PTX: ret;\n  in `first`\n  from src/deep.rs:70\n",
            "  at line 20 of the PTX: ret;\n  in `second`\n",
            "  at line 2 of the PTX: .target sm_80\n",
            "  at line 99 of the PTX: \n  in `second`\n",
            "",
            "",
        ];
        let expected = log.lines().zip(behind).map(|(line, behind)| format!("{line}\n{behind}"));
        assert_eq!(explained(log, PTX), expected.collect::<String>());
    }

    #[test]
    fn a_log_of_another_shape_stays_as_it_is() {
        assert_eq!(explained("\n\n", PTX), "");
        let log = "ptxas info    : Function properties for k\n    0 bytes stack frame\n\ninfo    : 0 bytes gmem\r\n\
                   no luck today\nline 13: errors\nptxas x, line 99999999999999; error : large\nline ; error : none\n";
        assert_eq!(explained(log, PTX), log.replace("\r\n", "\n").replace("\n\n", "\n"));
    }

    #[test]
    fn a_text_that_is_no_ptx_still_has_lines() {
        let found = explained("a, line 2; error : b\nline 0; error : zero", "this is\n  not it\n");
        let expected = "a, line 2; error : b\n  at line 2 of the PTX: not it\nline 0; error : zero\n  at line 0 of the PTX: \n";
        assert_eq!(found, expected);
    }

    /// Any bytes: no panic, and every line of the log is there.
    #[test]
    fn logs_may_be_anything() {
        const WORDS: [&str; 12] =
            ["ptxas", " ", "line ", "13", ";", "error", ":", "\n", "fatal   ", ", ", "é", "warning"];
        let mut state = 7u64;
        for _ in 0..3000 {
            let log: String = (0..20)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    WORDS[(state >> 33) as usize % WORDS.len()]
                })
                .collect();
            let explained = explained(&log, "");
            let own = explained.lines().filter(|line| !line.starts_with("  at line "));
            let said = log.lines().map(str::trim_end).filter(|line| !line.is_empty());
            assert!(own.eq(said), "{log:?}");
        }
    }
}
