//! What the launches have found.
//!
//! A program that launches a kernel a thousand times would find the same a thousand times: what is the same thing at
//! the same instruction of the same kernel is told once, and counted always.

use super::calls::Call;
use super::sink::{self, VERSION};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::Origin;
use warpwright_vm::{AccessSite, Action, Finding, Report, Severity, SpaceKind, Trap};

static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static ERRORS: AtomicU64 = AtomicU64::new(0);
static WARNINGS: AtomicU64 = AtomicU64::new(0);
static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// What was found in all launches together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) launches: u64,
    pub(crate) errors: u64,
    pub(crate) warnings: u64,
}

/// What was found so far.
pub(crate) fn totals() -> Totals {
    let get = |counter: &AtomicU64| counter.load(Relaxed);
    Totals { launches: get(&LAUNCHES), errors: get(&ERRORS), warnings: get(&WARNINGS) }
}

/// Tells what a launch has found. `text` gives the PTX that the kernel was loaded from, `call` what launched it.
pub(crate) fn launched<'t>(report: &Report, text: impl FnOnce() -> Cow<'t, str>, call: Call) {
    LAUNCHES.fetch_add(1, Relaxed);
    if report.is_clean() {
        return;
    }
    let text = text();
    let lines = LineIndex::new(&text);
    for finding in &report.findings {
        let counter = if finding.severity == Severity::Error { &ERRORS } else { &WARNINGS };
        counter.fetch_add(1, Relaxed);
        if is_new(&finding_key(finding)) {
            sink::tell(|| finding_text(finding, &lines, call), || finding_json(finding, &lines, call));
        }
    }
    if let Some(trap) = &report.trap {
        ERRORS.fetch_add(1, Relaxed);
        if is_new(&format!("{} {:?} {:?}", trap.kernel, trap.kind, trap.origin)) {
            sink::tell(|| trap_text(trap, &lines, call), || trap_json(trap, &lines, call));
        }
    }
}

fn is_new(key: &str) -> bool {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.get_or_insert_default().insert(key.to_owned())
}

/// What makes two findings the same.
fn finding_key(finding: &Finding) -> String {
    let places = finding.accesses.iter().map(|site| (&site.function, site.statement));
    let places: Vec<_> = places.collect();
    format!("{} {} {:?} {places:?}", finding.kernel, finding.tool, std::mem::discriminant(&finding.kind))
}

/// Line of the text, from 1, and what stands there.
fn place<'t>(origin: Origin, lines: &LineIndex<'t>) -> Option<(u32, &'t str)> {
    let Origin::Text(span) = origin else { return None };
    let line = lines.position(span.start).line;
    let found = lines.text().lines().nth(line as usize - 1)?;
    Some((line, found.trim()))
}

/// Line of the PTX, with what stands there, and the line of the source.
fn place_text(origin: Origin, source: Option<(&str, u32)>, lines: &LineIndex<'_>) -> String {
    let ptx = place(origin, lines).map(|(line, text)| format!("PTX line {line}: {text}"));
    let source = source.map(|(file, line)| format!("{file}:{line}"));
    match (ptx, source) {
        (Some(ptx), Some(source)) => format!("{ptx}   ({source})"),
        (Some(place), None) | (None, Some(place)) => place,
        (None, None) => "an instruction that is not of the text".into(),
    }
}

fn site_source(site: &AccessSite) -> Option<(&str, u32)> {
    site.source.as_ref().map(|source| (source.file.as_str(), source.line))
}

fn finding_text(finding: &Finding, lines: &LineIndex<'_>, call: Call) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = format!("{severity}: {finding}");
    for site in &finding.accesses {
        text += &format!("\n  {} at {}", site.action, place_text(site.origin, site_source(site), lines));
    }
    text + &format!("\n  {} times in kernel `{}`, launched by {call}", finding.count, finding.kernel)
}

fn finding_json(finding: &Finding, lines: &LineIndex<'_>, call: Call) -> Value {
    let memory = finding.accesses.iter().find_map(|site| site.memory.as_ref()?.allocation.as_ref());
    json!({
        "version": VERSION,
        "event": "finding",
        "tool": finding.tool.name(),
        "kind": finding.kind.name(),
        "severity": if finding.severity == Severity::Error { "error" } else { "warning" },
        "message": finding.message,
        "kernel": finding.kernel,
        "count": finding.count,
        "call": call_json(call),
        "allocation": memory.map(|allocation| json!({
            "name": allocation.name,
            "address": allocation.base,
            "bytes": allocation.bytes,
            "offset": allocation.offset,
            "freed": allocation.freed,
        })),
        "accesses": finding.accesses.iter().map(|site| access_json(site, lines)).collect::<Vec<_>>(),
    })
}

fn access_json(site: &AccessSite, lines: &LineIndex<'_>) -> Value {
    let place = place(site.origin, lines);
    let memory = site.memory.as_ref();
    json!({
        "ptx_line": place.map(|(line, _)| line),
        "ptx": place.map(|(_, text)| text),
        "source": site.source.as_ref().map(|source| json!({ "file": source.file, "line": source.line })),
        "block": site.block,
        "thread": site.thread,
        "action": match site.action {
            Action::Read => "read",
            Action::Write => "write",
            Action::Atomic => "atomic",
            Action::AsyncRead => "async-read",
            Action::AsyncWrite => "async-write",
            _ => "execute",
        },
        "space": memory.map(|memory| match memory.space {
            SpaceKind::Generic => "generic",
            SpaceKind::Global => "global",
            SpaceKind::Const => "constant",
            SpaceKind::Shared => "shared",
            SpaceKind::Local => "local",
            SpaceKind::Param => "parameter",
            _ => "other",
        }),
        "address": memory.map(|memory| memory.address),
        "bytes": memory.map(|memory| memory.bytes),
    })
}

fn trap_text(trap: &Trap, lines: &LineIndex<'_>, call: Call) -> String {
    let mut text = format!("error: {}", trap.message);
    if let Some(origin) = trap.origin {
        text += &format!("\n  at {}", place_text(origin, None, lines));
    }
    if let Some(([bx, by, bz], [x, y, z])) = trap.thread {
        text += &format!("\n  in thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz})");
    }
    for waiting in &trap.waiting {
        let place = place_text(waiting.origin, None, lines);
        text += &format!("\n  {} threads were at {place}", waiting.threads);
    }
    text + &format!("\n  in kernel `{}`, launched by {call}", trap.kernel)
}

fn trap_json(trap: &Trap, lines: &LineIndex<'_>, call: Call) -> Value {
    let at = |origin: Origin| place(origin, lines);
    let origin = trap.origin.and_then(at);
    let waiting = trap.waiting.iter().map(|waiting| {
        let place = at(waiting.origin);
        json!({
            "ptx_line": place.map(|(line, _)| line),
            "ptx": place.map(|(_, text)| text),
            "threads": waiting.threads,
        })
    });
    json!({
        "version": VERSION,
        "event": "trap",
        "kind": trap.kind.name(),
        "message": trap.message,
        "kernel": trap.kernel,
        "call": call_json(call),
        "ptx_line": origin.map(|(line, _)| line),
        "ptx": origin.map(|(_, text)| text),
        "block": trap.thread.map(|(block, _)| block),
        "thread": trap.thread.map(|(_, thread)| thread),
        "waiting": waiting.collect::<Vec<_>>(),
    })
}

pub(super) fn call_json(call: Call) -> Value {
    json!({ "number": call.number, "function": call.function })
}
