//! The process: forks, and its end.

use crate::types::{Result, Status};
use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FORKED: AtomicBool = AtomicBool::new(false);
static ENDING: AtomicBool = AtomicBool::new(false);

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    // POSIX. A thread that forks leaves all others behind.
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

unsafe extern "C" fn forked() {
    FORKED.store(true, Relaxed);
}

/// From now on forks are noticed.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler sets a flag, which is all that may be done in the child of a process with threads. The
        // library is not unloaded before the process ends.
        unsafe { pthread_atfork(None, None, Some(forked)) };
    });
}

/// Whether there is a driver: a child of a process that had one has none.
pub(super) fn check() -> Result<()> {
    if FORKED.load(Relaxed) {
        Err(Status::NOT_INITIALIZED)
    } else if ENDING.load(Relaxed) {
        Err(Status::DEINITIALIZED)
    } else {
        Ok(())
    }
}

/// Whether the process ends: nobody waits for anything now.
pub(crate) fn is_shutting_down() -> bool {
    ENDING.load(Relaxed)
}
