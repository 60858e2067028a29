//! Findings and traps for people: as the verifier's diagnostics are shown.

use super::found::{Access, Finding, Trap};
use super::locate::{Locator, Place};
use super::sources::{Sources, line_span};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use warpwright_ptx::diag::{LineIndex, Message, MessagePlace, Severity, render_message};

/// What is needed to show lines.
pub(super) struct Screen<'a> {
    file: &'a str,
    lines: &'a LineIndex<'a>,
    sources: BTreeMap<&'a str, LineIndex<'a>>,
    color: bool,
}

impl<'a> Screen<'a> {
    pub(super) fn new(file: &'a str, locator: &'a Locator<'a>, sources: &'a Sources) -> Self {
        let color =
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Screen { file, lines: locator.lines(), sources: sources.lines(), color }
    }

    /// Shows findings and trap on standard error.
    pub(super) fn show(&self, findings: &[Finding], trap: Option<&Trap>) -> io::Result<()> {
        let mut out = io::stderr().lock();
        for finding in findings {
            writeln!(out, "{}", self.finding(finding))?;
        }
        if let Some(trap) = trap {
            writeln!(out, "{}", self.trap(trap))?;
        }
        Ok(())
    }

    fn finding(&self, finding: &Finding) -> String {
        let labels: Vec<String> = finding.accesses.iter().map(Access::label).collect();
        let mut notes = self.unseen(finding.accesses.iter().map(|access| &access.place));
        if let Some(allocation) = &finding.allocation {
            notes.push(format!(
                "`{}` has {} bytes from 0x{:x} on",
                allocation.name, allocation.bytes, allocation.address
            ));
        }
        if finding.count > 1 {
            notes.push(format!("found {} times; the first is shown", finding.count));
        }
        let places = finding.accesses.iter().map(|access| &access.place).zip(&labels);
        self.message(finding.severity, finding.tool, &finding.message, places, &notes)
    }

    fn trap(&self, trap: &Trap) -> String {
        let label = who(trap.block, trap.thread);
        let mut notes = self.unseen(std::iter::once(&trap.place));
        notes.push(format!("kernel `{}` did not run to its end", trap.kernel));
        let places = std::iter::once((&trap.place, &label));
        self.message(Severity::Error, "trap", &trap.message, places, &notes)
    }

    /// The lines of source that cannot be read, by name.
    fn unseen<'p>(&self, places: impl Iterator<Item = &'p Place>) -> Vec<String> {
        let mut notes = Vec::new();
        for place in places {
            if let Some(source) = &place.source
                && source.text.is_none()
            {
                let note = format!("{} is {}:{}", line_name(place), source.file, source.line);
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        notes
    }

    fn message<'p>(
        &self,
        severity: Severity,
        id: &str,
        title: &str,
        places: impl Iterator<Item = (&'p Place, &'p String)>,
        notes: &[String],
    ) -> String {
        let mut marks = Vec::new();
        let mut source_marks: Vec<MessagePlace<'_>> = Vec::new();
        for (place, label) in places {
            let label = (!label.is_empty()).then_some(label.as_str());
            if let Some(span) = place.span {
                marks.push(MessagePlace { name: self.file, lines: self.lines, span, label });
            }
            if let Some(source) = &place.source
                && let Some((name, lines)) = self.sources.get_key_value(source.file.as_str())
                && let Some(span) = line_span(lines, source.line)
                && !source_marks.iter().any(|mark| mark.name == *name && mark.span == span)
            {
                source_marks.push(MessagePlace { name, lines, span, label: None });
            }
        }
        marks.append(&mut source_marks);
        let notes = notes.iter().map(String::as_str).collect();
        render_message(&Message { severity, id, title, places: marks, notes, help: None }, self.color)
    }
}

fn line_name(place: &Place) -> String {
    place.ptx_line.map_or_else(|| "it".to_string(), |line| format!("line {line}"))
}

/// `thread (1,0,0) of block (0,0,0)`.
fn who(block: Option<[u32; 3]>, thread: Option<[u32; 3]>) -> String {
    let triple = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    match (block, thread) {
        (Some(block), Some(thread)) => format!("thread {} of block {}", triple(thread), triple(block)),
        (Some(block), None) => format!("block {}", triple(block)),
        (None, Some(thread)) => format!("thread {}", triple(thread)),
        (None, None) => String::new(),
    }
}

impl Access {
    /// `thread (1,0,0) of block (0,0,0) writes 4 bytes at 0x10`.
    fn label(&self) -> String {
        let mut text = who(self.block, self.thread);
        if !self.action.is_empty() {
            let _ = write!(text, " {}", self.action);
            if let Some(bytes) = self.bytes {
                let _ = write!(text, " {bytes} byte{}", if bytes == 1 { "" } else { "s" });
            }
        }
        if let Some(address) = self.address {
            let _ = write!(text, " at 0x{address:x}");
        }
        text.trim_start().to_string()
    }
}
