//! Findings of launches.
//!
//! A program that launches a kernel a thousand times would report the same finding a thousand times. Equal findings at
//! the same instruction of the same kernel are reported once, and always counted. A launch that fails always says why:
//! with a line about what was reported before.

use super::calls::Call;
use super::log;
use super::sink;
use crate::{lock, state};
use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_report as data;
use warpwright_report::Event;
use warpwright_vm::fidelity::Assumption;
use warpwright_vm::render::Renderer;
use warpwright_vm::{Finding, FindingKind, Report, Severity, TrapKind};

static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static ERRORS: AtomicU64 = AtomicU64::new(0);
static WARNINGS: AtomicU64 = AtomicU64::new(0);
static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);
/// What was executed that hardware may compute otherwise, and what was not executed.
static ASSUMED: Mutex<BTreeSet<Assumption>> = Mutex::new(BTreeSet::new());
static REFUSED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

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
    if !report.assumptions.is_empty() {
        lock(&ASSUMED).extend(report.assumptions.iter().cloned());
    }
    if report.is_clean() {
        return;
    }
    let mut renderer = Renderer::of_report(report).launched_by(call).help_for_budget(
        "a kernel that needs more gets it from `--max-instructions` of `warpwright exec`; in Python from `max_instructions` of \
         `warpwright.cuda.enable`, and in pytest from `--gpu-max-instructions`",
    );
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
            let finding = data::Finding::new(finding, &renderer);
            sink::tell(Event::Finding { finding, call: call.into() });
        } else if finding.severity == Severity::Error {
            again.push(finding.kind.name());
        }
    }
    if let Some(trap) = &report.trap {
        count();
        if trap.kind == TrapKind::Unsupported {
            lock(&REFUSED).insert(trap.message.clone());
        }
        let place = trap.origin.and_then(|origin| renderer.ptx(origin));
        if is_new(&format!("{} {:?} {place:?}", trap.kernel, trap.kind)) {
            let trap = data::Trap::new(trap, &renderer);
            sink::tell(Event::Trap { trap, call: call.into() });
        } else {
            again.push(trap.kind.name());
        }
    }
    if failed && !again.is_empty() {
        let kinds = again.iter().map(|kind| (*kind).to_owned()).collect();
        sink::tell(Event::Repeated { kernel: report.kernel.clone(), call: call.into(), kinds });
    }
}

/// Reports that a conditional node cannot decide by its value, which has that handle. `call` has launched its graph.
pub(crate) fn condition(handle: u64, why: &str, call: Call) {
    if !count_error(&format!("{handle:#x} {why}")) {
        return;
    }
    sink::tell(Event::Condition { handle, message: why.to_owned(), call: call.into() });
}

/// Tells what launches have assumed, and what they have reached that is not executed.
pub(super) fn tell_fidelity() {
    let assumed = data::Assumed::of(lock(&ASSUMED).iter()).into_iter().map(Event::Assumed);
    let refused =
        lock(&REFUSED).iter().map(|message| Event::Refused { message: message.clone() }).collect::<Vec<_>>();
    assumed.chain(refused).for_each(sink::tell);
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
