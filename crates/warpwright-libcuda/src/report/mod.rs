//! Reports to the user: the log, findings of launches, leaks, and the exit status.
//!
//! Findings and leaks go to stderr as text or, with `WARPWRIGHT_FINDINGS`, to a file as lines of JSON, each an object
//! with `version` and `event`: `finding`, `trap`, `api`, `leak`, and at the end of the process `assumed`, `refused` and
//! `end`. **Each is written when it is found**, so that a program that crashes has reported everything before; but a client
//! that takes them ([`take`]) gets each when it does.

pub(crate) mod calls;
pub(crate) mod findings;
pub(crate) mod leaks;
pub(crate) mod log;
pub(crate) mod misuse;
mod sink;

use crate::state::{complete_all, forget_errors};
use crate::types::Result;
use warpwright_report::Event;

/// The number of live objects.
pub(crate) fn alive() -> usize {
    leaks::alive().len()
}

/// What was found since the last call, as lines of JSON. All operations so far are completed first. Equal findings are
/// told once between two calls. From now on findings are kept for the next call.
pub(crate) fn take() -> Result<String> {
    complete_all()?;
    findings::tell_again();
    // Their findings are among these.
    forget_errors();
    Ok(sink::take())
}

/// Reports leaks and totals at the end of the process. Returns whether there was an error.
pub(crate) fn finish(are_leaks_errors: bool) -> bool {
    let left = if are_leaks_errors { leaks::tell() } else { 0 };
    let findings::Totals { errors, warnings, launches } = findings::totals();
    let was_taken = sink::release();
    if sink::is_file() || !was_taken {
        findings::tell_fidelity();
    }
    if sink::is_file() || !was_taken && errors + warnings + left > 0 {
        let leaks = are_leaks_errors.then_some(left);
        sink::tell(Event::End { launches, calls: calls::total(), errors, warnings, leaks });
    }
    if left > 0 {
        findings::mark();
    }
    errors + left > 0
}
