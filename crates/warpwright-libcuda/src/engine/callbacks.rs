//! The thread that calls the client's functions, so that a slow one blocks only its own stream.
//!
//! Such a function may end its thread instead of returning: by `pthread_exit`, by a cancellation, or in an interpreter
//! that is shut down (CPython before 3.14 ends threads that ask for its lock then). That unwinds the frames of the
//! thread by force, and a Rust frame that would catch it, or has something to drop, ends the process. So **nothing is
//! caught or dropped between the start of the thread and the client's function**: the thread is not one of the standard
//! library, and the data of a call is kept aside, where the end of the thread finds it. The call then counts as
//! complete, and the next one gets a new thread.
//!
//! An uncaught exception ends the process, as in every thread. A function that calls `exit` does not return either, and
//! threads that wait for it do not go on: the process ends.

use crate::lock;
use crate::report::log;
use crate::state::{Context, EndOfThread, has_forked, is_shutting_down};
use crate::types::{CUstream, Result, Status};
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_int, c_ulong, c_void};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use warpwright_device::{HostCall, Signal, enter_engine_thread};

// POSIX.
unsafe extern "C" {
    fn pthread_create(
        thread: *mut c_ulong,
        attributes: *const c_void,
        life: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn pthread_detach(thread: c_ulong) -> c_int;
    fn pthread_self() -> c_ulong;
    fn pthread_setname_np(thread: c_ulong, name: *const c_char) -> c_int;
}

unsafe extern "C-unwind" {
    // They are cancellation points, and end the thread on a pending cancellation.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    fn pthread_testcancel();
}

const CAN_BE_CANCELLED: c_int = 0;
const CANNOT_BE_CANCELLED: c_int = 1;

/// A call of a client's function. It has nothing to drop.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    /// A function.
    Host(HostFunction),
    /// A function that takes the status of the stream.
    Stream(StreamCallback, Status),
}

/// Calls the client's functions, one after the other.
pub(crate) struct Callbacks {
    name: CString,
    state: Mutex<State>,
    /// Notified when a call is requested.
    asked: Condvar,
}

#[derive(Default)]
struct State {
    /// The requested calls, and the signals to reach when they are complete.
    waiting: VecDeque<(Call, Option<Arc<Signal>>)>,
    /// The same for the current call.
    running: Option<Arc<Signal>>,
    /// It is started with the first call, and anew when one has ended it.
    has_thread: bool,
}

impl Callbacks {
    /// Its threads have this name, and know it as long as the process lives.
    pub(crate) fn new(name: String) -> &'static Callbacks {
        let name = CString::new(name).unwrap_or_default();
        Box::leak(Box::new(Callbacks { name, state: Mutex::default(), asked: Condvar::new() }))
    }

    /// Requests a call after the earlier ones; a signal is reached when it is complete.
    pub(crate) fn push(&'static self, call: Call, signal: Option<Arc<Signal>>) -> Result<()> {
        let mut state = lock(&self.state);
        if !state.has_thread {
            self.start()?;
            state.has_thread = true;
        }
        state.waiting.push_back((call, signal));
        drop(state);
        self.asked.notify_one();
        Ok(())
    }

    fn start(&'static self) -> Result<()> {
        let mut thread = 0;
        let this = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        if !END.is_there() {
            log::note(&"no thread for the client's functions: its end could not be noticed");
            return Err(Status::OPERATING_SYSTEM);
        }
        // SAFETY: the attributes are those that all threads have; the function takes what it is given here.
        let code = unsafe { pthread_create(&raw mut thread, std::ptr::null(), serve, this) };
        if code != 0 {
            log::note(&format_args!(
                "no thread for the client's functions: {}",
                std::io::Error::from_raw_os_error(code)
            ));
            return Err(Status::OPERATING_SYSTEM);
        }
        // SAFETY: the thread was just started, and nobody else detaches or joins it.
        unsafe { pthread_detach(thread) };
        Ok(())
    }

    /// The thread begins.
    fn begin(&'static self) {
        enter_engine_thread();
        END.watch(std::ptr::from_ref(self).cast());
        // SAFETY: a text with its end. Where it is too long, the thread has no name.
        unsafe { pthread_setname_np(pthread_self(), self.name.as_ptr()) };
    }

    /// Ends the last call and waits for the next one. There is none in the child of a fork.
    fn next(&self) -> Option<Call> {
        // The thread that held the lock at the fork does not exist in the child.
        while !has_forked() {
            let over = lock(&self.state).running.take();
            if let Some(signal) = over {
                signal.reach_beside();
            }
            let mut state = lock(&self.state);
            let (call, signal) = loop {
                match state.waiting.pop_front() {
                    Some(next) => break next,
                    None => state = self.asked.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            state.running = signal;
            // The client has taken down what its functions need.
            if !is_shutting_down() {
                return Some(call);
            }
        }
        None
    }

    /// A call has ended the thread.
    fn ended(&'static self) {
        if has_forked() {
            return;
        }
        let mut state = lock(&self.state);
        let mut over: Vec<Arc<Signal>> = state.running.take().into_iter().collect();
        state.has_thread = !state.waiting.is_empty() && self.start().is_ok();
        if !state.has_thread {
            // They will never be made, and no thread may wait for them.
            over.extend(state.waiting.drain(..).filter_map(|(_, signal)| signal));
        }
        drop(state);
        over.iter().for_each(|signal| signal.reach_beside());
    }
}

/// The life of the thread.
unsafe extern "C-unwind" fn serve(callbacks: *mut c_void) -> *mut c_void {
    // SAFETY: what `start` gives, which lives as long as the process.
    let callbacks: &'static Callbacks = unsafe { &*callbacks.cast_const().cast::<Callbacks>() };
    let set = |state: c_int| {
        // SAFETY: a state of POSIX; the old one is not asked for.
        unsafe { pthread_setcancelstate(state, std::ptr::null_mut()) };
    };
    set(CANNOT_BE_CANCELLED);
    callbacks.begin();
    while let Some(call) = callbacks.next() {
        set(CAN_BE_CANCELLED);
        match call {
            Call::Host(function) => function.call(),
            Call::Stream(callback, status) => callback.call(status),
        }
        // A pending cancellation is for this function, and not for the next one.
        // SAFETY: it takes nothing, and there is nothing to drop here.
        unsafe { pthread_testcancel() };
        set(CANNOT_BE_CANCELLED);
    }
    std::ptr::null_mut()
}

/// Its end, however it comes, but not that of the process.
static END: EndOfThread = EndOfThread::new(ended);

unsafe extern "C" fn ended(callbacks: *mut c_void) {
    // SAFETY: what `begin` has given.
    unsafe { &*callbacks.cast_const().cast::<Callbacks>() }.ended();
}

/// A function of the client's with its argument.
#[derive(Clone, Copy)]
pub(crate) struct HostFunction {
    function: unsafe extern "C-unwind" fn(*mut c_void),
    argument: usize,
}

impl HostFunction {
    /// A function that the client gives to be called with that argument, on any thread.
    pub(crate) fn new(function: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) -> Self {
        HostFunction { function, argument: argument.expose_provenance() }
    }

    /// The function and its argument, as the client has given them.
    pub(crate) fn parts(self) -> (unsafe extern "C-unwind" fn(*mut c_void), *mut c_void) {
        (self.function, std::ptr::with_exposed_provenance_mut(self.argument))
    }

    /// Calls it. It may unwind.
    fn call(self) {
        // SAFETY: the client has given the function to be called so, with this argument.
        unsafe { (self.function)(std::ptr::with_exposed_provenance_mut(self.argument)) }
    }
}

/// `CUstreamCallback`.
pub(crate) type CallbackFunction = unsafe extern "C-unwind" fn(CUstream, Status, *mut c_void);

/// A client's function that takes a stream and its status.
#[derive(Clone, Copy)]
pub(crate) struct StreamCallback {
    function: CallbackFunction,
    stream: CUstream,
    argument: usize,
}

impl StreamCallback {
    /// A function that the client gives to be called with that stream and argument, on any thread.
    pub(crate) fn new(function: CallbackFunction, stream: CUstream, argument: *mut c_void) -> Self {
        StreamCallback { function, stream, argument: argument.expose_provenance() }
    }

    /// Calls it, and tells it that status. It may unwind.
    fn call(self, status: Status) {
        let argument = std::ptr::with_exposed_provenance_mut(self.argument);
        // SAFETY: the client has given the function to be called so, with this argument.
        unsafe { (self.function)(self.stream, status, argument) }
    }
}

/// A call of a client's function, as an operation of a stream.
pub(super) struct ClientCall {
    pub(super) callbacks: &'static Callbacks,
    pub(super) function: ClientFunction,
}

/// A function that a client enqueues on a stream.
pub(super) enum ClientFunction {
    /// It is not called after an error.
    Host(HostFunction),
    /// It is called even after an error of the context, with that error.
    Stream(StreamCallback, Arc<Context>),
}

impl HostCall for ClientCall {
    fn begin(&self, failed: bool, end: &Arc<Signal>) -> warpwright_device::Result<bool> {
        let call = match self.function {
            // The client has taken down what its functions need.
            _ if is_shutting_down() => return Ok(false),
            ClientFunction::Host(_) if failed => return Ok(false),
            ClientFunction::Host(function) => Call::Host(function),
            ClientFunction::Stream(callback, ref context) => {
                Call::Stream(callback, context.check().err().unwrap_or(Status::SUCCESS))
            }
        };
        self.callbacks.push(call, Some(end.clone())).map(|()| true).map_err(super::failure)
    }
}
