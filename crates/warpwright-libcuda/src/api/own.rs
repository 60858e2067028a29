//! Functions that only this library has. A client that finds them runs on this driver and not on NVIDIA's; the tests
//! use them to inspect what the interface does not show. They may be called at any time and fail silently.
//!
//! | function | result |
//! | --- | --- |
//! | `const char *warpwrightVersion(void)` | the version of this library |
//! | `int warpwrightHostThreads(int device)` | host threads that run the blocks of a device; 0 for no device |
//! | `uint64_t warpwrightCalls(const char *function)` | the number of calls of a function; null for all |
//! | `uint64_t warpwrightAlive(const char *what, uint64_t *bytes)` | the number of live objects of a kind in leak reports, and their bytes |
//! | `uint64_t warpwrightFindings(uint64_t *warnings)` | the number of errors found by launches, and of warnings |
//! | `int warpwrightSet(const char *check, const char *race, const char *order)` | sets what `WARPWRIGHT_CHECK`, `…_RACE` and `…_ORDER` say, for what comes next, the order also for blocks and warps; null leaves it |
//! | `int warpwrightLimit(uint64_t instructions)` | sets what `WARPWRIGHT_MAX_INSTRUCTIONS` says, for what comes next |
//! | `const char *warpwrightTake(void)` | findings since the last call, as lines of JSON; null if this thread may not wait |
//! | `void warpwrightApiBegin(void)` | a call of the CUDA runtime begins on this thread, which calls the driver for itself |
//! | `void warpwrightApiEnd(const char *function, int error, const char *name)` | it ends, with an error and its name |
//! | `warpwrightJitLinkCreate(…)` and its kin | the functions of `libnvJitLink`, for the library that stands for it |

use super::all;
use crate::report::{self, calls, findings, leaks, misuse};
use crate::state::{self, state};
use crate::types::{CUdevice, In, Out, Status, text};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;

/// Calls a function; a panic yields the default value.
fn guarded<T: Default>(body: impl FnOnce() -> T + std::panic::UnwindSafe) -> T {
    catch_unwind(body).unwrap_or_default()
}

/// The version of this library.
#[unsafe(no_mangle)]
pub extern "C" fn warpwrightVersion() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// The number of host threads that run the blocks of a device; 0 without such a device, or before `cuInit`.
#[unsafe(no_mangle)]
pub extern "C" fn warpwrightHostThreads(device: CUdevice) -> c_int {
    guarded(|| {
        let Ok(state) = state() else { return 0 };
        state.device(device).map_or(0, |device| device.host_threads() as c_int)
    })
}

/// The number of calls of a function; null for all functions. 0 for an unknown name.
///
/// # Safety
///
/// `function` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpwrightCalls(function: In<c_char>) -> u64 {
    guarded(|| {
        if function.is_null() {
            return calls::total();
        }
        let Ok(name) = text(function) else { return 0 };
        all().find(|entry| entry.name == name).map_or(0, |entry| entry.calls())
    })
}

/// The number of live objects of a kind, and their bytes; null for all kinds.
///
/// # Safety
///
/// `what` is null or a text, `bytes` null or good for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpwrightAlive(what: In<c_char>, bytes: Out<u64>) -> u64 {
    guarded(|| {
        let mut alive = leaks::alive();
        if !what.is_null() {
            let what = text(what).unwrap_or_default();
            alive.retain(|kept| kept.what == what);
        }
        bytes.set_if(alive.iter().map(|kept| kept.bytes).sum());
        alive.len() as u64
    })
}

/// The number of errors found by launches, and of warnings.
///
/// # Safety
///
/// `warnings` is null or good for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpwrightFindings(warnings: Out<u64>) -> u64 {
    guarded(|| {
        let totals = findings::totals();
        warnings.set_if(totals.warnings);
        totals.errors
    })
}

/// Changes the checks of launches, the definition of a race and the order of streams, blocks and warps, between launches: what was issued
/// before is completed first. Each is written as in its variable of the environment; null leaves it as it is. Returns
/// `CUDA_ERROR_INVALID_VALUE` if one is invalid, and changes nothing then.
///
/// # Safety
///
/// Each is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpwrightSet(check: In<c_char>, race: In<c_char>, order: In<c_char>) -> c_int {
    let change = || {
        let given = |pointer: In<c_char>| if pointer.is_null() { Ok(None) } else { text(pointer).map(Some) };
        let (check, race, order) = (given(check)?, given(race)?, given(order)?);
        state::change(check.as_deref(), race.as_deref(), order.as_deref())
    };
    let changed = catch_unwind(change).unwrap_or(Err(Status::UNKNOWN));
    changed.err().unwrap_or(Status::SUCCESS).0
}

/// Changes the number of instructions at which a launch is ended, each counted once per thread: what was issued before is
/// completed first. Returns `CUDA_ERROR_INVALID_VALUE` for 0, and changes nothing then.
#[unsafe(no_mangle)]
pub extern "C" fn warpwrightLimit(instructions: u64) -> c_int {
    let changed = catch_unwind(|| state::limit(instructions)).unwrap_or(Err(Status::UNKNOWN));
    changed.err().unwrap_or(Status::SUCCESS).0
}

/// The findings since the last call as lines of JSON, each with `text`, what is written of it otherwise. All operations
/// so far are completed first, and errors that do not stay with their context are forgotten. From the first call on,
/// findings are kept for the next one instead of being written. The text is there until the thread's next call; it is
/// null on a thread that may not wait for devices.
#[unsafe(no_mangle)]
pub extern "C" fn warpwrightTake() -> *const c_char {
    thread_local! {
        static TAKEN: RefCell<CString> = RefCell::default();
    }
    let take = || {
        let lines = CString::new(report::take().ok()?).ok()?;
        // A thread that ends takes nothing.
        TAKEN.try_with(|taken| taken.replace(lines)).ok()?;
        TAKEN.try_with(|taken| taken.borrow().as_ptr()).ok()
    };
    catch_unwind(take).ok().flatten().unwrap_or(std::ptr::null())
}

/// A call of the CUDA runtime begins on this thread. What the runtime calls until its end is not the program's.
#[unsafe(no_mangle)]
pub extern "C" fn warpwrightApiBegin() {
    guarded(misuse::runtime_call_begins);
}

/// A call of the CUDA runtime has ended with that error; 0 is success.
///
/// # Safety
///
/// The texts are null or texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpwrightApiEnd(function: In<c_char>, error: c_int, name: In<c_char>) {
    guarded(|| {
        let text = |pointer| text(pointer).unwrap_or_default();
        misuse::runtime_call_ends(&text(function), error, &text(name));
    });
}
