//! Functions of this library alone. A client that finds them has no NVIDIA driver but this one; the tests look through
//! them at what the interface does not show. They may be called at any time and fail without a word.
//!
//! | function | what it gives |
//! | --- | --- |
//! | `const char *warpwrightVersion(void)` | the version of this library |
//! | `int warpwrightHostThreads(int device)` | host threads that run the blocks of a device; 0 for no device |
//! | `uint64_t warpwrightCalls(const char *function)` | how often a function was called; null for all of them |
//! | `uint64_t warpwrightAlive(const char *what, uint64_t *bytes)` | what was made and not given back, as leak reports name it, and its memory |
//! | `uint64_t warpwrightFindings(uint64_t *warnings)` | errors that launches have found, and warnings |

use super::all;
use crate::report::{calls, findings, leaks};
use crate::state::state;
use crate::types::{CUdevice, In, Out, text};
use std::ffi::{CStr, c_char, c_int};
use std::panic::catch_unwind;

/// What a client gets of a mistake of ours.
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

/// Host threads that run the blocks of a device; 0 where there is no such device, or no `cuInit` before.
#[unsafe(no_mangle)]
pub extern "C" fn warpwrightHostThreads(device: CUdevice) -> c_int {
    guarded(|| {
        let Ok(state) = state() else { return 0 };
        state.device(device).map_or(0, |device| device.host_threads() as c_int)
    })
}

/// How often a function was called; null for all of them together. 0 for what is none.
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

/// How many things of a kind were made and not given back, and the bytes that they have; null for all kinds.
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

/// Errors that launches have found, and warnings.
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
