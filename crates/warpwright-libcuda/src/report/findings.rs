//! Findings of launches.
//!
//! A program that launches a kernel a thousand times would report the same finding a thousand times. Equal findings at
//! the same instruction of the same kernel are reported once, and always counted. A launch that fails always says why:
//! with a line about what was reported before.

use super::calls::Call;
use super::log;
use super::sink::{self, VERSION};
use crate::{lock, state};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_vm::render::{Renderer, symbol};
use warpwright_vm::{AccessSite, Finding, FindingKind, Report, Severity, SourceLine, Trap};

static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static ERRORS: AtomicU64 = AtomicU64::new(0);
static WARNINGS: AtomicU64 = AtomicU64::new(0);
static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// The findings of all launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) launches: u64,
    pub(crate) errors: u64,
    pub(crate) warnings: u64,
}

/// The totals so far.
pub(crate) fn totals() -> Totals {
    let get = |counter: &AtomicU64| counter.load(Relaxed);
    Totals { launches: get(&LAUNCHES), errors: get(&ERRORS), warnings: get(&WARNINGS) }
}

/// Reports the findings of a launch. `call` is the call that launched it, `lacks_shared` whether its module declares
/// dynamic shared memory and it has none, and `failed` whether it ends with an error.
pub(crate) fn launched(report: &Report, call: Call, lacks_shared: bool, failed: bool) {
    LAUNCHES.fetch_add(1, Relaxed);
    if report.is_clean() {
        return;
    }
    let mut renderer = Renderer::of_report(report).launched_by(call);
    if lacks_shared {
        renderer = renderer.help_for_shared(
            "the module has dynamic shared memory, of which the launch gives 0 bytes: give its size with the launch",
        );
    }
    let mut again = Vec::new();
    for finding in &report.findings {
        match finding.severity {
            Severity::Error => count(),
            Severity::Warning => _ = WARNINGS.fetch_add(1, Relaxed),
        }
        if is_new(&finding_key(finding, &renderer)) {
            sink::tell(|| renderer.finding(finding), || finding_json(finding, &renderer, call));
        } else if finding.severity == Severity::Error {
            again.push(finding.kind.name());
        }
    }
    if let Some(trap) = &report.trap {
        count();
        let place = trap.origin.and_then(|origin| renderer.ptx(origin));
        if is_new(&format!("{} {:?} {place:?}", trap.kernel, trap.kind)) {
            sink::tell(|| renderer.trap(trap), || trap_json(trap, &renderer, call));
        } else {
            again.push(trap.kind.name());
        }
    }
    if failed && !again.is_empty() {
        let text = || {
            let (kernel, known) = (symbol(&report.kernel), again.join(", "));
            format!("error: kernel `{kernel}`, launched by {call}, fails again as reported before: {known}")
        };
        let json = || {
            json!({
                "version": VERSION,
                "event": "repeated",
                "kernel": report.kernel,
                "call": call_json(call),
                "kinds": again,
            })
        };
        sink::tell(text, json);
    }
}

/// Reports that a conditional node cannot decide by its value, which has that handle. `call` has launched its graph.
pub(crate) fn condition(handle: u64, why: &str, call: Call) {
    if !count_error(&format!("{handle:#x} {why}")) {
        return;
    }
    let text =
        || format!("error[graph]: conditional node of {handle:#x}: {why}\n   = note: launched by {call}\n");
    let json = || {
        json!({
            "version": VERSION, "event": "condition", "handle": handle, "message": why, "call": call_json(call),
        })
    };
    sink::tell(text, json);
}

/// Counts an error that is no launch's. Returns whether it is told: equal ones are told once.
pub(super) fn count_error(key: &str) -> bool {
    count();
    is_new(key)
}

/// Counts an error.
fn count() {
    if ERRORS.fetch_add(1, Relaxed) == 0 {
        mark();
    }
}

/// Leaves a mark for `warpwright exec`, which is there also where the process ends without this library's knowledge, or
/// becomes another program.
pub(super) fn mark() {
    if let Some(mark) = state::config().ok().and_then(|config| config.failed.as_ref())
        && let Err(error) = std::fs::write(mark, "")
    {
        log::line(&format!("WARPWRIGHT_FAILED={}: {error}", mark.display()));
    }
}

/// Tells equal findings again, once.
pub(super) fn tell_again() {
    *lock(&TOLD) = None;
}

fn is_new(key: &str) -> bool {
    let mut told = lock(&TOLD);
    told.get_or_insert_default().insert(key.to_owned())
}

/// The properties in which equal findings agree.
fn finding_key(finding: &Finding, lines: &Renderer<'_>) -> String {
    let detail = match finding.kind {
        FindingKind::Race { between, .. } => format!("{between:?}"),
        FindingKind::UndefinedValue { used, .. } => format!("{used:?}"),
        _ => String::new(),
    };
    let places: Vec<_> = finding
        .accesses
        .iter()
        .map(|site| (&site.function, site.statement, lines.ptx(site.origin)))
        .collect();
    format!("{} {} {} {detail} {places:?}", finding.kernel, finding.tool, finding.kind.name())
}

fn finding_json(finding: &Finding, lines: &Renderer<'_>, call: Call) -> Value {
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
            "arguments": allocation.arguments.iter().map(|argument| &argument.name).collect::<Vec<_>>(),
            "address": allocation.base,
            "bytes": allocation.bytes,
            "offset": allocation.offset,
            "freed": allocation.freed,
        })),
        "accesses": finding.accesses.iter().map(|site| access_json(site, lines)).collect::<Vec<_>>(),
    })
}

fn access_json(site: &AccessSite, lines: &Renderer<'_>) -> Value {
    let memory = site.memory.as_ref();
    let (ptx_line, ptx) = lines.ptx(site.origin).unzip();
    json!({
        "ptx_line": ptx_line,
        "ptx": ptx,
        "source": source_json(site.source.as_ref()),
        "block": site.block,
        "thread": site.thread,
        "action": site.action.name(),
        "space": memory.map(|memory| memory.space.name()),
        "address": memory.map(|memory| memory.address),
        "bytes": memory.map(|memory| memory.bytes),
    })
}

/// A source line, with the calls by which it was inlined.
fn source_json(line: Option<&SourceLine>) -> Value {
    let Some(line) = line else { return Value::Null };
    let mut json = json!({ "file": line.file, "line": line.line, "column": line.column });
    if let Some(call) = &line.inlined_at {
        json["inlined_at"] = source_json(Some(call));
    }
    json
}

fn trap_json(trap: &Trap, lines: &Renderer<'_>, call: Call) -> Value {
    let (ptx_line, ptx) = trap.origin.and_then(|origin| lines.ptx(origin)).unzip();
    let waiting = trap.waiting.iter().map(|waiting| {
        let (ptx_line, ptx) = lines.ptx(waiting.origin).unzip();
        json!({
            "ptx_line": ptx_line,
            "ptx": ptx,
            "source": source_json(waiting.source.as_ref()),
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
        "ptx_line": ptx_line,
        "ptx": ptx,
        "source": source_json(trap.source.as_ref()),
        "block": trap.thread.map(|(block, _)| block),
        "thread": trap.thread.map(|(_, thread)| thread),
        "waiting": waiting.collect::<Vec<_>>(),
    })
}

pub(super) fn call_json(call: Call) -> Value {
    json!({ "number": call.number, "function": call.function })
}
