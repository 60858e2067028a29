//! Calls that a program should not have made, as findings: `WARPWRIGHT_CHECK=api`.
//!
//! A call that returns an error is one, as for compute-sanitizer. Three kinds are not: what a program asks to learn
//! something (whether work is done, whether a function is there, whether memory is the driver's), errors that kernels
//! have caused, which are findings already, and errors that the user has asked for. **The CUDA runtime calls the driver
//! for itself**: between `warpwrightApiBegin` and `warpwrightApiEnd` the program's call is that of the runtime, and only
//! its result counts.

use super::calls::Call;
use super::findings;
use super::sink;
use crate::state::settings;
use crate::types::Status;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use warpwright_report::Event;

/// A call of the driver that has failed.
struct Failed {
    call: Call,
    status: Status,
    /// What was said of it.
    reason: Option<String>,
    /// Whether the user has asked for its error.
    is_refused: bool,
}

thread_local! {
    /// Calls of the runtime that have not returned.
    static RUNTIME_CALLS: Cell<u32> = const { Cell::new(0) };
    /// What was said of the current call. It has no destructor, since programs call when the thread's values are gone: in
    /// what runs at their exit. When the call returns, nothing is left.
    static REASON: ManuallyDrop<RefCell<Option<String>>> = const { ManuallyDrop::new(RefCell::new(None)) };
    /// The last call of the driver that has failed within a call of the runtime. It has no destructor either.
    static FAILED: ManuallyDrop<RefCell<Option<Failed>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// What a program learns by an error.
const ASKED: [(&str, Status); 6] = [
    ("cuGetProcAddress", Status::NOT_FOUND),
    ("cuGetExportTable", Status::INVALID_VALUE),
    ("cuPointerGetAttribute", Status::INVALID_VALUE),
    ("cuCtxGetDevice", Status::INVALID_CONTEXT),
    ("cuModuleGetGlobal_v2", Status::NOT_FOUND),
    ("cuLibraryGetGlobal", Status::NOT_FOUND),
];

/// Errors that kernels cause.
const OF_KERNELS: [Status; 9] = [
    Status::ILLEGAL_ADDRESS,
    Status::MISALIGNED_ADDRESS,
    Status::ASSERT,
    Status::LAUNCH_TIMEOUT,
    Status::ILLEGAL_INSTRUCTION,
    Status::INVALID_PC,
    Status::INVALID_ADDRESS_SPACE,
    Status::HARDWARE_STACK_ERROR,
    Status::LAUNCH_FAILED,
];

fn is_checked() -> bool {
    settings().is_ok_and(|settings| settings.api)
}

/// Keeps what is said of the thread's call until it returns.
pub(super) fn explain(reason: &str) {
    if is_checked() {
        REASON.with(|kept| *kept.borrow_mut() = Some(reason.to_string()));
    }
}

/// A call of the runtime begins.
pub(crate) fn runtime_call_begins() {
    RUNTIME_CALLS.set(RUNTIME_CALLS.get() + 1);
}

/// A call of the runtime has ended, with that error and its name; 0 is success.
pub(crate) fn runtime_call_ends(function: &str, error: i32, name: &str) {
    let depth = RUNTIME_CALLS.get().saturating_sub(1);
    RUNTIME_CALLS.set(depth);
    if depth > 0 {
        return;
    }
    // A failure that the runtime went on from is not why.
    let failed = FAILED.with(|kept| kept.borrow_mut().take()).filter(|failed| failed.status == Status(error));
    let is_asked = Status(error) == Status::NOT_READY || OF_KERNELS.contains(&Status(error));
    if error == 0 || is_asked || !is_checked() {
        return;
    }
    match failed {
        Some(failed) if failed.is_refused => {}
        Some(failed) => tell(function, error, name, failed.reason, Some(failed.call)),
        None => tell(function, error, name, None, None),
    }
}

/// A call of the driver has returned; `is_refused` if the user has asked for its error.
pub(crate) fn returned(call: Call, status: Status, is_refused: bool) {
    if !is_checked() {
        return;
    }
    let reason = REASON.with(|kept| kept.borrow_mut().take());
    if status == Status::SUCCESS {
        return;
    }
    if RUNTIME_CALLS.get() > 0 {
        let failed = Failed { call, status, reason, is_refused };
        FAILED.with(|kept| *kept.borrow_mut() = Some(failed));
        return;
    }
    let is_asked = is_refused || status == Status::NOT_READY || ASKED.contains(&(call.function, status));
    if !is_asked && !OF_KERNELS.contains(&status) {
        let name = status
            .name()
            .map_or_else(|| format!("CUresult {}", status.0), |name| name.to_string_lossy().into());
        tell(call.function, status.0, &name, reason, Some(call));
    }
}

/// Reports a call. `call` is that of the driver, by which a call of the runtime has failed; `None` if the runtime itself
/// has refused it.
fn tell(function: &str, error: i32, name: &str, reason: Option<String>, call: Option<Call>) {
    if !findings::count_error(&format!("{function} {error} {reason:?}")) {
        return;
    }
    let event = Event::Api {
        function: function.to_owned(),
        error,
        name: name.to_owned(),
        message: reason,
        call: call.map(Into::into),
    };
    sink::tell(event);
}
