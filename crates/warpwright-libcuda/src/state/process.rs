//! The process: forks, and its end.
//!
//! The end is a function in `.fini_array`, which the loader calls after all exit handlers of the program. **It never
//! waits without limit**: running operations get a moment, are cancelled and get another. Then leaks are reported, and
//! the exit status is changed if the user wants that.

use super::{config, started};
use crate::engine::Engine;
use crate::report::{self, calls};
use crate::types::{Result, Status};
use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use warpwright_device::is_engine_thread;

static FORKED: AtomicBool = AtomicBool::new(false);
static ENDING: AtomicBool = AtomicBool::new(false);
/// The program's own exit status.
static EXIT_STATUS: AtomicI32 = AtomicI32::new(0);

/// The time that operations get before they are cancelled, and again afterwards; and that threads get which are freeing
/// resources.
const MOMENT: Duration = Duration::from_secs(1);

/// How long the number of live objects may stay the same before they count as leaked.
const LATE: Duration = Duration::from_millis(200);

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    // POSIX. A thread that forks leaves all others behind.
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    fn _exit(status: c_int) -> !;
    // C. Null is every stream.
    fn fflush(stream: *mut c_void) -> c_int;
    // glibc's: what tells the exit status.
    #[cfg(target_env = "gnu")]
    fn on_exit(handler: unsafe extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

unsafe extern "C" fn forked() {
    FORKED.store(true, Relaxed);
}

#[cfg(target_env = "gnu")]
unsafe extern "C" fn exits(status: c_int, _: *mut c_void) {
    EXIT_STATUS.store(status, Relaxed);
}

/// Registers handlers for forks and the end of the process.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers store a number each, which is all that may be done in the child of a process with
        // threads. The library is not unloaded before the process ends.
        unsafe {
            pthread_atfork(None, None, Some(forked));
            #[cfg(target_env = "gnu")]
            on_exit(exits, std::ptr::null_mut());
        }
    });
}

/// Whether there is a driver: the child of a process that had one has none.
pub(super) fn check() -> Result<()> {
    if has_forked() {
        Err(Status::NOT_INITIALIZED)
    } else if ENDING.load(Relaxed) {
        Err(Status::DEINITIALIZED)
    } else {
        Ok(())
    }
}

/// Whether this is the child of a process that had a driver: of its threads only the forking one exists.
pub(crate) fn has_forked() -> bool {
    FORKED.load(Relaxed)
}

/// Whether the process is ending. The client's functions are then not called any more.
pub(crate) fn is_shutting_down() -> bool {
    ENDING.load(Relaxed)
}

// SAFETY: an array of functions without arguments, which the loader calls at the end.
#[used]
#[unsafe(link_section = ".fini_array")]
static FINI: extern "C" fn() = fini;

extern "C" fn fini() {
    // A panic here would be one more way to die; the process ends as it would have.
    if let Ok(Some(status)) = catch_unwind(end) {
        // SAFETY: all that the program had to do at its end is done; what its streams hold is written first.
        unsafe {
            fflush(std::ptr::null_mut());
            _exit(status)
        }
    }
}

/// Waits for threads of the client that are freeing resources, as long as the number of live objects falls.
fn let_give_back() {
    let begin = Instant::now();
    let (mut alive, mut since) = (report::alive(), begin);
    while alive > 0 && since.elapsed() < LATE && begin.elapsed() < MOMENT {
        std::thread::sleep(Duration::from_millis(1));
        let now = report::alive();
        if now != alive {
            (alive, since) = (now, Instant::now());
        }
    }
}

/// Ends the driver. Returns the exit status, if it must differ from the program's.
fn end() -> Option<c_int> {
    let state = started().filter(|_| !has_forked())?;
    let config = config().ok()?;
    if config.leaks {
        let_give_back();
    }
    ENDING.store(true, Relaxed);
    let engines: Vec<_> = state.devices.iter().filter_map(|device| device.engine_if_started()).collect();
    // The end may come from a function of the client's that a stream has called: it is not over before this is.
    let is_called = is_engine_thread();
    let is_settled = |engine: &Arc<Engine>| {
        let queue = engine.queue();
        queue.is_idle() || is_called && queue.is_resting()
    };
    let wait_for = |holds: &dyn Fn() -> bool| {
        let until = Instant::now() + MOMENT;
        while !holds() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
        }
    };
    let settle = || wait_for(&|| engines.iter().all(is_settled));
    settle();
    // Only what is being done can be cancelled.
    let busy: Vec<_> = engines.iter().filter(|engine| !engine.queue().is_resting()).collect();
    if !busy.is_empty() {
        busy.iter().for_each(|engine| engine.vm().cancel());
        settle();
    }
    // What others are giving back has waited for the devices, and is no leak.
    if config.leaks {
        wait_for(&|| !calls::are_in_progress());
    }
    let has_errors = report::finish(config.leaks);
    let status = config.exit_status.filter(|_| has_errors && EXIT_STATUS.load(Relaxed) == 0)?;
    Some(status.into())
}
