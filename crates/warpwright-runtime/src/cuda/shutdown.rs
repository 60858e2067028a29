//! Devices that go away while they are busy, and the end of the process.
//!
//! What such a device holds is given back when it is done, by a thread of its own. The process may end before that: its
//! end waits for these threads, **for a moment and no longer**, since what keeps a device busy may be a kernel that waits
//! for the host. So what was dropped is given back, and tools that look for what a program has forgotten find nothing.

use crate::lock;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How long the end of the process waits.
#[cfg(unix)]
const MOMENT: Duration = Duration::from_secs(2);

/// How many of these threads there are.
static BUSY: Mutex<usize> = Mutex::new(0);
/// One of them is done.
static DONE: Condvar = Condvar::new();

/// One of these threads, or what one of them has to do.
pub(super) struct Busy;

impl Busy {
    /// From now on the end of the process waits for this to be dropped, once [`watch`] was called.
    pub(super) fn new() -> Self {
        *lock(&BUSY) += 1;
        Busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *lock(&BUSY) -= 1;
        DONE.notify_all();
    }
}

/// Gives something back that the device has to be waited for with, on a thread of its own. Where none is to be had it is
/// dropped here, and waits here.
pub(super) fn give_back(wait: impl FnOnce() + Send + 'static) {
    watch();
    let busy = Busy::new();
    let life = move || {
        wait();
        drop(busy);
    };
    let _ = std::thread::Builder::new().name("warpwright-cuda-end".into()).spawn(life);
}

/// From now on the end of the process waits.
pub(super) fn watch() {
    #[cfg(unix)]
    at_exit::watch();
}

/// Elsewhere threads do not live as long as the process, and there is nothing to wait for at its end.
#[cfg(unix)]
mod at_exit {
    use super::{BUSY, DONE, MOMENT};
    use crate::lock;
    use std::ffi::c_int;
    use std::sync::OnceLock;

    unsafe extern "C" {
        // C. What was registered last is called first: before the driver ends, which was there before.
        fn atexit(function: extern "C" fn()) -> c_int;
    }

    /// The process that has registered.
    static PROCESS: OnceLock<u32> = OnceLock::new();

    extern "C" fn wait() {
        // The child of a fork has these threads no more than their device.
        if PROCESS.get() == Some(&std::process::id()) {
            drop(DONE.wait_timeout_while(lock(&BUSY), MOMENT, |busy| *busy > 0));
        }
    }

    pub(super) fn watch() {
        PROCESS.get_or_init(|| {
            // SAFETY: the function may be called at any time, and does not panic. Where there is no room for it, the end
            // does not wait.
            unsafe { atexit(wait) };
            std::process::id()
        });
    }
}
