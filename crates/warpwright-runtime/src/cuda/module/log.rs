//! What the driver's compiler says: its log, and the lines that it speaks of.
//!
//! The compiler writes a message a line, `ptxas application ptx input, line 12; error   : Unknown symbol 'x'`. A line of
//! the PTX leads to the instruction there, and that to the line of Rust by the `.loc` before it. A log of another
//! shape yields no messages; it is shown whole.

use std::fmt;
use warpwright_ptx::diag::{LineIndex, Severity};
use warpwright_ptx::ir::{Function, ItemKind, Module, Origin, Span, Statement, StatementKind};
use warpwright_vm::SourceLine;

/// A message of the driver's compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JitMessage {
    /// How bad it is.
    pub severity: Severity,
    /// What it says.
    pub text: String,
    /// The line of the PTX that it is about, if it says one.
    pub line: Option<PtxLine>,
}

/// A line of the PTX that the driver was given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtxLine {
    /// Its number, from 1.
    pub number: u32,
    /// What it says, without indentation; empty where the text has no such line.
    pub text: String,
    /// The kernel or function that it is in.
    pub function: Option<String>,
    /// The line of the source that asked for it, where that is known.
    pub source: Option<SourceLine>,
}

impl fmt::Display for JitMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.text)?;
        if let Some(line) = &self.line {
            write!(f, "\n  at line {} of the PTX", line.number)?;
            if !line.text.is_empty() {
                write!(f, ": {}", line.text)?;
            }
            if let Some(function) = &line.function {
                write!(f, "\n  in `{function}`")?;
            }
            if let Some(SourceLine { file, line, .. }) = &line.source {
                write!(f, "\n  from {file}:{line}")?;
            }
        }
        Ok(())
    }
}

/// The messages of a log, about that PTX.
pub(super) fn messages(log: &str, ptx: &str) -> Vec<JitMessage> {
    let mut messages: Vec<JitMessage> = Vec::new();
    // A text is read again only where a message speaks of its lines.
    let mut places = None;
    for line in log.lines() {
        match message(line) {
            Some(Message { severity, number, text }) => {
                let line = number.map(|number| places.get_or_insert_with(|| Places::new(ptx)).line(number));
                messages.push(JitMessage { severity, text: text.to_owned(), line });
            }
            // What a message says can go on in the next line.
            None => {
                if let Some(last) = messages.last_mut()
                    && !line.trim().is_empty()
                {
                    last.text.push('\n');
                    last.text.push_str(line.trim_end());
                }
            }
        }
    }
    messages
}

/// A message, as a line of the log has it.
struct Message<'a> {
    severity: Severity,
    /// The line of the PTX.
    number: Option<u32>,
    text: &'a str,
}

/// `tool place, line 12; error   : text`, `tool error   : text`: the first word of these followed by a colon.
fn message(line: &str) -> Option<Message<'_>> {
    const WORDS: [(&str, Severity); 4] = [
        ("fatal", Severity::Error),
        ("error", Severity::Error),
        ("warning", Severity::Warning),
        ("info", Severity::Note),
    ];
    let (prefix, severity, text) = WORDS
        .iter()
        .filter_map(|&(word, severity)| {
            let (prefix, text) = split_at_word(line, word)?;
            Some((prefix, severity, text))
        })
        .min_by_key(|(prefix, ..)| prefix.len())?;
    Some(Message { severity, number: line_number(prefix), text })
}

/// What is before a word that is followed by blanks and a colon, and what is behind the colon.
fn split_at_word<'a>(line: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    line.match_indices(word).find_map(|(at, _)| {
        let prefix = &line[..at];
        let text = line[at + word.len()..].trim_start().strip_prefix(':')?;
        let begins = prefix.is_empty() || prefix.ends_with([' ', ';']);
        begins.then_some((prefix, text.trim()))
    })
}

/// The number of `…, line 12; `.
fn line_number(prefix: &str) -> Option<u32> {
    let (_, number) = prefix.trim_end().strip_suffix(';')?.rsplit_once("line ")?;
    number.trim().parse().ok()
}

/// A PTX text whose lines are looked up.
struct Places<'a> {
    text: &'a str,
    index: LineIndex<'a>,
    module: Option<Module>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        Places { text, index: LineIndex::new(text), module: warpwright_ptx::parse(text).ok() }
    }

    fn line(&self, number: u32) -> PtxLine {
        let text = (number.checked_sub(1)).and_then(|before| self.text.lines().nth(before as usize));
        let text = text.unwrap_or_default().trim().to_owned();
        let function = self.function(number);
        let source = function.and_then(|function| self.source(function, number));
        PtxLine { number, text, function: function.map(|function| function.name.to_string()), source }
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
    fn source(&self, function: &Function, number: u32) -> Option<SourceLine> {
        let statements = function.statements();
        let is_there = |statement: &Statement| self.line_of(statement.origin) == Some(number);
        let at = statements.iter().rposition(|statement| {
            matches!(statement.kind, StatementKind::Instruction(_)) && is_there(statement)
        })?;
        let loc = statements[..at].iter().rev().find_map(|statement| match &statement.kind {
            StatementKind::Loc(loc) => Some(loc),
            _ => None,
        })?;
        let file = self.module.as_ref()?.items.iter().find_map(|item| match &item.kind {
            ItemKind::File(file) if file.index == loc.file => Some(file.path.clone()),
            _ => None,
        })?;
        Some(SourceLine { file, line: loc.line, column: loc.column, inlined_at: None })
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

    fn line(
        number: u32,
        text: &str,
        function: Option<&str>,
        source: Option<(&str, u32, u32)>,
    ) -> Option<PtxLine> {
        let source = source.map(|(file, line, column)| SourceLine {
            file: file.into(),
            line,
            column,
            inlined_at: None,
        });
        Some(PtxLine { number, text: text.into(), function: function.map(str::to_owned), source })
    }

    fn said(severity: Severity, text: &str, line: Option<PtxLine>) -> JitMessage {
        JitMessage { severity, text: text.into(), line }
    }

    #[test]
    fn messages_lead_to_the_lines_that_they_are_about() {
        let log = "ptxas application ptx input, line 13; error   : Arguments mismatch for instruction 'add'\n\
                   ptxas application ptx input, line 10; warning : A note: error : is no part of this\n\
                   ptxas a, line 3; b.ptx, line 15; fatal   : Parsing error near ';': syntax error\n\
                   ptxas application ptx input, line 20; error   : Unknown symbol 'x'\n\
                   ptxas application ptx input, line 2; error   : about the target\n\
                   ptxas application ptx input, line 99; error   : about nothing\n\
                   ptxas error   : Entry function 'k' uses too much shared data (0xea60 bytes, 0xc000 max)\n\
                   ptxas fatal   : Ptx assembly aborted due to errors\n";
        let expected = [
            said(
                Severity::Error,
                "Arguments mismatch for instruction 'add'",
                line(13, "add.u32                 %r2, %r0, %r1;", Some("first"), Some(("src/sum.rs", 8, 5))),
            ),
            // Before the first `.loc`.
            said(
                Severity::Warning,
                "A note: error : is no part of this",
                line(10, "mov.u32                 %r0, 1;", Some("first"), None),
            ),
            said(
                Severity::Error,
                "Parsing error near ';': syntax error",
                line(15, "ret;", Some("first"), Some(("src/deep.rs", 70, 1))),
            ),
            // What another function says of its lines is not about this one.
            said(Severity::Error, "Unknown symbol 'x'", line(20, "ret;", Some("second"), None)),
            said(Severity::Error, "about the target", line(2, ".target sm_80", None, None)),
            said(Severity::Error, "about nothing", line(99, "", Some("second"), None)),
            said(
                Severity::Error,
                "Entry function 'k' uses too much shared data (0xea60 bytes, 0xc000 max)",
                None,
            ),
            said(Severity::Error, "Ptx assembly aborted due to errors", None),
        ];
        assert_eq!(messages(log, PTX), expected);
    }

    #[test]
    fn a_message_goes_on_in_lines_without_one() {
        let log = "ptxas info    : Function properties for k\n    0 bytes stack frame\n\ninfo    : 0 bytes gmem\r\n\
                   error   : Undefined reference to 'f' in 'module'\n";
        let expected = [
            said(Severity::Note, "Function properties for k\n    0 bytes stack frame", None),
            said(Severity::Note, "0 bytes gmem", None),
            said(Severity::Error, "Undefined reference to 'f' in 'module'", None),
        ];
        assert_eq!(messages(log, PTX), expected);
    }

    #[test]
    fn a_log_of_another_shape_has_no_messages() {
        for log in ["", "\n\n", "no luck today", "ptxas: 12 terrors : none", "line 13; errors", "error"] {
            assert_eq!(messages(log, PTX), [], "{log:?}");
        }
        let odd =
            "ptxas x, line 99999999999999; error : large\nptxas x, line ; error : none\nline 0; error : zero";
        let numbers: Vec<_> =
            messages(odd, PTX).into_iter().map(|message| message.line.map(|l| l.number)).collect();
        assert_eq!(numbers, [None, None, Some(0)]);
    }

    #[test]
    fn a_text_that_is_no_ptx_still_has_lines() {
        let found = messages("a, line 2; error : b", "this is\n  not it\n");
        assert_eq!(found, [said(Severity::Error, "b", line(2, "not it", None, None))]);
    }

    #[test]
    fn people_read_what_where_and_from_which_line() {
        let found = messages("ptxas x, line 13; error   : Arguments mismatch for instruction 'add'", PTX);
        assert_eq!(
            found[0].to_string(),
            "error: Arguments mismatch for instruction 'add'\n  at line 13 of the PTX: \
             add.u32                 %r2, %r0, %r1;\n  in `first`\n  from src/sum.rs:8"
        );
    }

    /// Any bytes: no panic, and no message that the log has not.
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
            assert!(messages(&log, "").len() <= log.lines().count());
        }
    }
}
