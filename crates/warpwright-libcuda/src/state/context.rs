//! Contexts: what belongs together on a device, lives and fails together; and which one a thread works in.
//!
//! A thread has a stack of contexts, the top of which is current. **A context that was destroyed stays where it is on
//! the stacks of other threads**, and using it there says so. An error of a kernel stays with the context until it is
//! destroyed, and is what every later call of it returns.

use super::{Device, Handles, Kind};
use crate::types::{CUcontext, Result, Status};
use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};

/// All contexts, primary ones too.
pub(crate) static CONTEXTS: Handles<Context> = Handles::new(Kind::Context);

/// A context.
pub(crate) struct Context {
    handle: CUcontext,
    id: u64,
    device: Arc<Device>,
    is_primary: bool,
    is_alive: AtomicBool,
    /// The first error of an operation that ran asynchronously; 0 for none.
    error: AtomicI32,
}

impl Context {
    /// A context of a device, with its handle.
    pub(crate) fn create(device: &Arc<Device>, is_primary: bool) -> Result<Arc<Context>> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let mut made = None;
        CONTEXTS.insert_with(|handle| {
            let context = Arc::new(Context {
                handle: CUcontext(handle),
                id: IDS.fetch_add(1, Relaxed),
                device: device.clone(),
                is_primary,
                is_alive: AtomicBool::new(true),
                error: AtomicI32::new(0),
            });
            made.insert(context).clone()
        })?;
        made.ok_or(Status::UNKNOWN)
    }

    /// What clients call it.
    pub(crate) fn handle(&self) -> CUcontext {
        self.handle
    }

    /// A number that no other context of the process ever has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where it is.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Whether it is the device's own, which all retain.
    pub(crate) fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Whether it has not been destroyed.
    pub(crate) fn is_alive(&self) -> bool {
        self.is_alive.load(Relaxed)
    }

    /// From now on every call of the context returns this error. The first one stays.
    pub(crate) fn poison(&self, error: Status) {
        let c_int = |status: Status| -> c_int { status.0 };
        // Somebody else's error was first: nothing to do.
        let _ = self.error.compare_exchange(0, c_int(error), Relaxed, Relaxed);
    }

    /// Whether it can be used: it was not destroyed, and nothing in it has failed.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_alive() {
            return Err(Status::CONTEXT_IS_DESTROYED);
        }
        Status(self.error.load(Relaxed)).into_result()
    }
}

/// The calling thread's stack of contexts.
pub(crate) mod stack {
    use super::{Arc, CUcontext, Context, RefCell};

    thread_local! {
        static STACK: RefCell<Vec<Arc<Context>>> = const { RefCell::new(Vec::new()) };
    }

    /// The stack, for a moment. A thread that is ending has none.
    fn with<R>(f: impl FnOnce(&mut Vec<Arc<Context>>) -> R) -> Option<R> {
        STACK.try_with(|stack| stack.try_borrow_mut().ok().map(|mut stack| f(&mut stack))).ok().flatten()
    }

    /// The current context, whatever its state.
    pub(crate) fn top() -> Option<Arc<Context>> {
        with(|stack| stack.last().cloned()).flatten()
    }

    pub(crate) fn push(context: Arc<Context>) {
        with(|stack| stack.push(context));
    }

    pub(crate) fn pop() -> Option<Arc<Context>> {
        with(Vec::pop).flatten()
    }

    /// Makes a context current in the place of the one that is; with `None` that one is popped.
    pub(crate) fn set(context: Option<Arc<Context>>) {
        with(|stack| {
            stack.pop();
            stack.extend(context);
        });
    }

    /// Whether a context is current here.
    pub(crate) fn is_current(context: CUcontext) -> bool {
        top().is_some_and(|top| top.handle() == context)
    }
}

/// The context that the calling thread works in, which can be used.
pub(crate) fn current() -> Result<Arc<Context>> {
    super::state()?;
    let context = stack::top().ok_or(Status::INVALID_CONTEXT)?;
    context.check()?;
    Ok(context)
}
