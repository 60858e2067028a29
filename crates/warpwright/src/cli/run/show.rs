//! Findings and traps for people: as the verifier's diagnostics are shown.

use super::found::{Access, Allocation, Finding, Trap};
use super::locate::{Locator, Place};
use super::sources::{Sources, line_span};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use warpwright_ptx::diag::{LineIndex, Message, MessagePlace, Severity, render_message};
use warpwright_vm::check::{Between, FindingKind};
use warpwright_vm::{FaultKind, TrapKind};

/// Places of waiting threads that are shown, those with the most threads first.
const MOST_PLACES: usize = 4;

/// What is needed to show lines.
pub(super) struct Screen<'a> {
    file: &'a str,
    lines: &'a LineIndex<'a>,
    sources: BTreeMap<&'a str, LineIndex<'a>>,
    color: bool,
    /// The module has dynamic shared memory, and the launch gave it none.
    lacks_dynamic_shared: bool,
}

impl<'a> Screen<'a> {
    pub(super) fn new(
        file: &'a str,
        locator: &'a Locator<'a>,
        sources: &'a Sources,
        lacks_dynamic_shared: bool,
    ) -> Self {
        let color =
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Screen { file, lines: locator.lines(), sources: sources.lines(), color, lacks_dynamic_shared }
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
        // Without a line of PTX there is no mark that says who did what.
        for (access, label) in finding.accesses.iter().zip(&labels) {
            if access.place.span.is_none() {
                let place = access.place.source.as_ref();
                let place = place.map(|line| format!(", at {}:{}", line.file, line.line)).unwrap_or_default();
                notes.push(format!("in kernel `{}` {label}{place}", finding.kernel));
            }
        }
        notes.extend(finding.allocation.as_ref().map(Allocation::describe));
        if finding.count > 1 {
            notes.push(format!("found {} times; the first is shown", finding.count));
        }
        let places = finding.accesses.iter().map(|access| &access.place).zip(&labels);
        let no_dynamic = self.lacks_dynamic_shared && finding.is_outside_shared();
        let help = match no_dynamic {
            true => {
                Some("the kernel has dynamic shared memory, of 0 bytes here: `--shared BYTES` gives it some")
            }
            false => finding.what.advice(),
        };
        let text = Text { title: &finding.title(), notes: &notes, help };
        self.message(finding.severity, finding.tool, &text, places)
    }

    fn trap(&self, trap: &Trap) -> String {
        let mut places = Vec::new();
        if trap.place.span.is_some() {
            places.push((&trap.place, who(trap.block, trap.thread)));
        }
        for waiting in trap.waiting.iter().take(MOST_PLACES) {
            let plural = if waiting.threads == 1 { "thread was" } else { "threads were" };
            let label = format!("{} {plural} here", waiting.threads);
            match places.iter_mut().find(|(place, _)| place.span == waiting.place.span) {
                Some((_, there)) => *there = format!("{there}; {label}"),
                None if waiting.place.span.is_some() => places.push((&waiting.place, label)),
                None => {}
            }
        }
        let mut notes = self.unseen(places.iter().map(|(place, _)| *place));
        let more = trap.waiting.iter().skip(MOST_PLACES);
        let (elsewhere, threads) = (more.clone().count(), more.map(|waiting| waiting.threads).sum::<u64>());
        if elsewhere > 0 {
            notes.push(format!("{threads} threads were at {elsewhere} other places; `--json` has them"));
        }
        notes.push(format!("kernel `{}` did not run to its end", trap.kernel));
        let help = match trap.what {
            TrapKind::Budget => Some("a kernel that needs more gets it from `--max-instructions`"),
            _ => None,
        };
        let text = Text { title: &trap.message, notes: &notes, help };
        self.message(Severity::Error, "trap", &text, places.iter().map(|(place, label)| (*place, label)))
    }

    /// The lines of source that cannot be read, by name.
    fn unseen<'p>(&self, places: impl Iterator<Item = &'p Place>) -> Vec<String> {
        let mut notes = Vec::new();
        for place in places {
            if let Some(source) = &place.source
                && source.text.is_none()
                && place.span.is_some()
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
        text: &Text<'_>,
        places: impl Iterator<Item = (&'p Place, &'p String)>,
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
        let notes = text.notes.iter().map(String::as_str).collect();
        let message = Message { severity, id, title: text.title, places: marks, notes, help: text.help };
        render_message(&message, self.color)
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

/// What stands around the marked lines.
struct Text<'t> {
    title: &'t str,
    notes: &'t [String],
    help: Option<&'t str>,
}

impl Finding {
    fn is_outside_shared(&self) -> bool {
        let shared = self.accesses.iter().any(|access| access.space == Some("shared"));
        shared && self.what == FindingKind::Access(FaultKind::OutOfBounds)
    }

    /// What it is: who and where stands beside the lines.
    fn title(&self) -> String {
        let first = self.accesses.first();
        let noun = |access: Option<&Access>| match access.map(|access| access.action) {
            Some("read") => "a read",
            Some("write") => "a write",
            Some("atomic") => "an atomic operation",
            Some("async-read") => "an asynchronous read",
            Some("async-write") => "an asynchronous write",
            _ => "an instruction",
        };
        let space = first.and_then(|access| access.space).unwrap_or("memory");
        match &self.what {
            FindingKind::Access(fault) => {
                let rule = match fault {
                    FaultKind::OutOfBounds => "is out of bounds",
                    FaultKind::Misaligned => "is not aligned to its size",
                    FaultKind::Freed => "is to memory that was given back",
                    FaultKind::Null => "is through a null pointer",
                    FaultKind::WrongSpace => "is to an address of another state space",
                    FaultKind::ReadOnly => "is to memory that cannot be written",
                    _ => "is not allowed",
                };
                format!("{} of {space} memory {rule}", noun(first))
            }
            FindingKind::Race { between, .. } => {
                let between = match between {
                    Between::Copy => "an asynchronous copy and a thread",
                    Between::Lanes => "lanes of a warp",
                    Between::Warps => "warps",
                    Between::Blocks => "blocks",
                };
                let second = noun(self.accesses.get(1).or(first));
                format!("{} and {second} of {space} memory race, between {between}", noun(first))
            }
            FindingKind::NonCoherent => {
                "a non-coherent read of global memory that the launch writes".to_string()
            }
            FindingKind::UninitializedMemory { .. } => {
                format!("{} of {space} memory that was never written", noun(first))
            }
            FindingKind::UninitializedRegister { register } => {
                format!("`{register}` is read, and was never written on the way there")
            }
            FindingKind::DivergentBarrier { .. } => {
                "a barrier is reached by a part of the warp alone".to_string()
            }
            FindingKind::MissingLanes { present, named } => {
                format!("lanes {:#010x} are named by the mask and never arrive", named & !present)
            }
            FindingKind::UnnamedLane { named } => {
                format!("a lane executes it that its mask {named:#010x} does not name")
            }
            FindingKind::AbsentSource { present } => {
                format!("a lane reads from one that does not take part: lanes {present:#010x} do")
            }
            // What the virtual GPU says stands for itself.
            _ => self.message.clone(),
        }
    }
}

impl Allocation {
    /// Where the address lies.
    fn describe(&self) -> String {
        let Allocation { address, bytes, offset, freed, .. } = self;
        let name = match self.name.as_str() {
            "" => format!("the allocation at 0x{address:x}"),
            name => format!("`{name}`"),
        };
        let was = if *freed { ", which was given back" } else { "" };
        match u64::try_from(*offset) {
            Err(_) => {
                format!("the address is {} bytes before {name}, of {bytes} bytes{was}", offset.unsigned_abs())
            }
            Ok(at) if at < *bytes => format!("the address is at byte {at} of {name}, of {bytes} bytes{was}"),
            Ok(at) if at == *bytes => format!("the address is just past {name}, of {bytes} bytes{was}"),
            Ok(at) => format!("the address is {} bytes past {name}, of {bytes} bytes{was}", at - bytes),
        }
    }
}

impl Access {
    /// `thread (1,0,0) of block (0,0,0) writes 4 bytes at 0x10`.
    fn label(&self) -> String {
        let mut text = who(Some(self.block), Some(self.thread));
        let (Some(bytes), Some(address)) = (self.bytes, self.address) else { return text };
        let plural = if bytes == 1 { "" } else { "s" };
        let action = match self.action {
            "read" => "reads",
            "write" => "writes",
            "atomic" => "updates",
            "async-read" => "copies from",
            "async-write" => "copies to",
            _ => "accesses",
        };
        let _ = write!(text, " {action} {bytes} byte{plural} at 0x{address:x}");
        text
    }
}
