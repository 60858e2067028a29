//! The shutdown of devices that are dropped while they are busy, and the end of the process.
//!
//! A thread frees the resources of such a device when it is idle. The process may end before that: its end waits for
//! these threads, **for a moment and no longer**, since the device may be busy with a kernel that waits for the host.
//! So dropped resources are freed, and leak detectors find nothing.

use crate::lock;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// The time for which the end of the process waits.
#[cfg(unix)]
const MOMENT: Duration = Duration::from_secs(2);

/// The number of these threads.
static BUSY: Mutex<usize> = Mutex::new(0);
/// Notified when one of them is done.
static DONE: Condvar = Condvar::new();

/// One of these threads, or a task of one of them.
pub(super) struct Busy;

impl Busy {
    /// Makes the end of the process wait until this is dropped, once [`watch`] was called.
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

/// Frees resources that need a wait for the device, on a separate thread. If there is none, this waits here.
pub(super) fn give_back(wait: impl FnOnce() + Send + 'static) {
    watch();
    let busy = Busy::new();
    let life = move || {
        wait();
        drop(busy);
    };
    let _ = std::thread::Builder::new().name("warpwright-cuda-end".into()).spawn(life);
}

/// Makes the end of the process wait.
pub(super) fn watch() {
    #[cfg(unix)]
    at_exit::watch();
}

/// On other systems threads do not live as long as the process, and there is nothing to wait for at its end.
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
