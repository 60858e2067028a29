//! Findings and traps as text, in the style of the verifier's diagnostics, with lines of the PTX and of the source if
//! it can be read.
//!
//! Everything that prints findings uses this: `Display` of [`Report`] and [`Finding`], kernel tests, the runtime, and
//! the programs.

mod sources;
mod symbols;
mod words;

pub use symbols::symbol;

use crate::check::{Finding, FindingKind, Severity as Grade, SourceLine};
use crate::launch::{Report, Trap, TrapKind};
use crate::memory::{FaultKind, SpaceKind};
use sources::{Sources, line_span, mark};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;
use warpwright_ptx::diag::{LineIndex, Message, MessagePlace, Severity, render_message};
use warpwright_ptx::ir::{Origin, Span};

/// Places of waiting threads that are shown, those with the most threads first.
const MAX_PLACES: usize = 4;

/// Findings of a launch that are shown: the first ones say most.
const MAX_FINDINGS: usize = 16;

/// The name of a text that has none.
const UNNAMED: &str = "PTX";

/// The name of the text of an earlier launch, if that is another one.
const EARLIER: &str = "PTX of the earlier launch";

/// The text in the brackets of a trap, where findings have the name of their check.
const TRAP: &str = "trap";

/// Renders findings and traps.
pub struct Renderer<'a> {
    name: &'a str,
    lines: LineIndex<'a>,
    sources: Sources,
    color: bool,
    call: Option<String>,
    /// Advice for missing dynamic shared memory, and for an exhausted budget.
    shared: Option<&'a str>,
    budget: Option<&'a str>,
}

/// A place that is shown: what stands there is marked.
struct Spot<'s> {
    /// The part of the PTX, and that PTX if it is of another module than the rest.
    ptx: Option<Span>,
    text: Option<&'s str>,
    source: Option<&'s SourceLine>,
    label: String,
}

impl Default for Renderer<'_> {
    fn default() -> Self {
        Renderer::new()
    }
}

/// The part of a PTX text that something came from, if it is there.
fn span(text: &str, origin: Origin) -> Option<Span> {
    let Origin::Text(span) = origin else { return None };
    text.get(span.range()).filter(|text| !text.is_empty()).map(|_| span)
}

impl<'a> Renderer<'a> {
    /// A renderer for kernels without PTX text, such as those of the DSL, whose lines are Rust's.
    pub fn new() -> Self {
        Renderer::of_ptx(UNNAMED, "")
    }

    /// A renderer for a report and its PTX.
    pub fn of_report(report: &'a Report) -> Self {
        Renderer::of_ptx(UNNAMED, report.text.as_deref().unwrap_or_default())
    }

    /// A renderer for kernels of a PTX text with the given name.
    pub fn of_ptx(name: &'a str, text: &'a str) -> Self {
        let (lines, sources) = (LineIndex::new(text), Sources::default());
        Renderer { name, lines, sources, color: false, call: None, shared: None, budget: None }
    }

    /// Also looks up relative source names in this folder, after the current one.
    pub fn beside(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sources.beside = Some(folder.into());
        self
    }

    /// Gives the text of a source file, by the name that the PTX has for it, so that it is not read.
    pub fn with_source(self, file: &str, text: &str) -> Self {
        self.sources.add(file, text);
        self
    }

    /// Whether to use ANSI escapes for colours.
    pub fn color(mut self, color: bool) -> Self {
        self.color = color;
        self
    }

    /// Adds to each finding the call that launched its kernel.
    pub fn launched_by(mut self, call: impl ToString) -> Self {
        self.call = Some(call.to_string());
        self
    }

    /// Sets the help for accesses outside of shared memory, shown if a kernel has dynamic shared memory and its
    /// launch provided none.
    pub fn help_for_shared(mut self, help: &'a str) -> Self {
        self.shared = Some(help);
        self
    }

    /// Sets the help for kernels that reach the instruction limit.
    pub fn help_for_budget(mut self, help: &'a str) -> Self {
        self.budget = Some(help);
        self
    }

    /// The PTX line of an origin, from 1, and the instruction on it with single spaces.
    pub fn ptx(&self, origin: Origin) -> Option<(u32, String)> {
        let span = self.span(origin)?;
        let text = &self.lines.text()[span.range()];
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some((self.lines.position(span.start).line, text))
    }

    /// The text of a source line, if it can be read.
    pub fn source_text(&self, line: &SourceLine) -> Option<String> {
        let text = self.sources.text(&line.file)?;
        let lines = LineIndex::new(&text);
        line_span(&lines, line.line).map(|span| text[span.range()].to_owned())
    }

    /// A summary of a report and its findings. The text ends without a newline.
    pub fn report(&self, report: &Report) -> String {
        let mut text = report.summary();
        for finding in report.findings.iter().take(MAX_FINDINGS) {
            let _ = write!(text, "\n{}", self.finding(finding));
        }
        if let Some(more) = report.findings.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
            let _ = write!(text, "\n{more} more findings are in the report\n");
        }
        if let Some(trap) = &report.trap {
            let _ = write!(text, "\n{}", self.trap(trap));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// A finding. The text ends with a newline.
    pub fn finding(&self, finding: &Finding) -> String {
        let spots: Vec<Spot<'_>> = finding
            .accesses
            .iter()
            .map(|site| Spot {
                ptx: match site.text.as_deref() {
                    Some(text) => span(text, site.origin),
                    None => self.span(site.origin),
                },
                text: site.text.as_deref(),
                source: site.source.as_ref(),
                label: words::deed(site),
            })
            .collect();
        // Of an undefined value, the variable that it was loaded from.
        let first = usize::from(matches!(finding.kind, FindingKind::UndefinedValue { .. }));
        let accesses = finding.accesses.iter().skip(first);
        let allocation = accesses.filter_map(|site| site.memory.as_ref()).find_map(|m| m.allocation.as_ref());
        let mut notes: Vec<String> = allocation.map(words::position).into_iter().collect();
        if finding.count > 1 {
            notes.push(format!("found {} times; the first is shown", finding.count));
        }
        let is_outside_shared = finding.kind == FindingKind::Access(FaultKind::OutOfBounds)
            && finding
                .accesses
                .iter()
                .filter_map(|site| site.memory.as_ref())
                .any(|memory| memory.space == SpaceKind::Shared);
        let help = self.shared.filter(|_| is_outside_shared).or_else(|| finding.advice());
        let severity = match finding.severity {
            Grade::Error => Severity::Error,
            Grade::Warning => Severity::Warning,
        };
        let title = words::title(finding);
        self.message(severity, finding.tool.name(), &title, &finding.kernel, &spots, notes, help)
    }

    /// A trap. The text ends with a newline.
    pub fn trap(&self, trap: &Trap) -> String {
        let mut spots: Vec<Spot<'_>> = Vec::new();
        if let Some(origin) = trap.origin {
            let label = trap.thread.map(words::who).unwrap_or_default();
            spots.push(Spot { ptx: self.span(origin), text: None, source: trap.source.as_ref(), label });
        }
        let mut waiting: Vec<_> = trap.waiting.iter().collect();
        // Stable: places with as many threads stay in the order of the text.
        waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.threads));
        for waiting in waiting.iter().take(MAX_PLACES) {
            let plural = if waiting.threads == 1 { "thread was" } else { "threads were" };
            let label = format!("{} {plural} here", waiting.threads);
            let (ptx, source) = (self.span(waiting.origin), waiting.source.as_ref());
            match spots.iter_mut().find(|spot| (spot.ptx, spot.source) == (ptx, source)) {
                Some(spot) => {
                    let and = if spot.label.is_empty() { "" } else { "; " };
                    let _ = write!(spot.label, "{and}{label}");
                }
                None => spots.push(Spot { ptx, text: None, source, label }),
            }
        }
        let mut notes = Vec::new();
        let more = waiting.iter().skip(MAX_PLACES);
        let (elsewhere, threads) = (more.clone().count(), more.map(|waiting| waiting.threads).sum::<u64>());
        if elsewhere > 0 {
            notes.push(format!("{threads} threads were at {elsewhere} other places"));
        }
        notes.extend(trap.mbarriers.iter().take(MAX_PLACES).map(ToString::to_string));
        notes.push(format!("kernel `{}` did not run to its end", symbol(&trap.kernel)));
        let help = self.budget.filter(|_| trap.kind == TrapKind::Budget);
        self.message(Severity::Error, TRAP, &trap.message, &trap.kernel, &spots, notes, help)
    }

    /// The part of the PTX that something came from, if that is at hand.
    fn span(&self, origin: Origin) -> Option<Span> {
        span(self.lines.text(), origin)
    }

    #[allow(clippy::too_many_arguments, reason = "a message has as many parts")]
    fn message(
        &self,
        severity: Severity,
        id: &str,
        title: &str,
        kernel: &str,
        spots: &[Spot<'_>],
        mut after: Vec<String>,
        help: Option<&str>,
    ) -> String {
        let kernel = symbol(kernel);
        let mut notes: Vec<String> = Vec::new();
        let others: Vec<_> = spots.iter().map(|spot| spot.text.map(LineIndex::new)).collect();
        // The files of source, and the parts of them that are marked.
        let mut texts: Vec<(&str, Rc<str>)> = Vec::new();
        let mut marks: Vec<(usize, Span, &str)> = Vec::new();
        for (spot, other) in spots.iter().zip(&others) {
            let own = if spot.ptx.is_some() { "" } else { spot.label.as_str() };
            for (depth, line) in spot.source.into_iter().flat_map(SourceLine::chain).enumerate() {
                let label = if depth > 0 { "inlined here" } else { own };
                let known = texts.iter().position(|(name, _)| *name == line.file);
                let at = known.or_else(|| {
                    texts.push((&line.file, self.sources.text(&line.file)?));
                    Some(texts.len() - 1)
                });
                if let Some((at, span)) = at.and_then(|at| Some((at, mark(&texts[at].1, line)?))) {
                    let is_known = |mark: &(usize, Span, &str)| {
                        (mark.0, mark.1) == (at, span) && (mark.2 == label || label.is_empty())
                    };
                    if !marks.iter().any(is_known) {
                        marks.push((at, span, label));
                    }
                    continue;
                }
                let subject = match spot.ptx {
                    _ if depth > 0 => "that is inlined at".to_owned(),
                    Some(span) => {
                        let lines = other.as_ref().unwrap_or(&self.lines);
                        format!("line {} is", lines.position(span.start).line)
                    }
                    None => format!("in kernel `{kernel}` {}, at", spot.label),
                };
                let note = format!("{subject} {}:{}", line.file, line.line);
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            if spot.ptx.is_none() && spot.source.is_none() {
                notes.push(format!("in kernel `{kernel}` {}", spot.label));
            }
        }
        // A text of PTX has few kernels; Rust's lines do not say which one it is.
        let is_named = id == TRAP || self.call.is_some() || !notes.is_empty();
        if !is_named && spots.iter().all(|spot| spot.ptx.is_none()) {
            notes.push(format!("in kernel `{kernel}`"));
        }
        let indices: Vec<LineIndex<'_>> = texts.iter().map(|(_, text)| LineIndex::new(text)).collect();
        let in_ptx = spots.iter().zip(&others).filter_map(|(spot, other)| {
            let (name, lines) = other.as_ref().map_or((self.name, &self.lines), |other| (EARLIER, other));
            Some((name, lines, spot.ptx?, spot.label.as_str()))
        });
        let in_sources = marks.iter().map(|&(at, span, label)| (texts[at].0, &indices[at], span, label));
        let places = in_ptx.chain(in_sources).map(|(name, lines, span, label)| MessagePlace {
            name,
            lines,
            span,
            label: (!label.is_empty()).then_some(label),
        });
        notes.append(&mut after);
        if let Some(call) = &self.call {
            notes.push(format!("in kernel `{kernel}`, launched by {call}"));
        }
        let notes = notes.iter().map(String::as_str).collect();
        render_message(&Message { severity, id, title, places: places.collect(), notes, help }, self.color)
    }
}
