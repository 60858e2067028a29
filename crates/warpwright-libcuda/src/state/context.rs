//! Contexts: resources on a device that live and fail together; and the current context of a thread.
//!
//! A thread has a stack of contexts, the top of which is current. **A destroyed context stays on the stacks of other
//! threads**, and using it there is an error. An error of a kernel stays with the context until it is destroyed, and
//! every later call of it returns it, unless the user wants programs to go on (`WARPWRIGHT_ON_ERROR`). A primary context that is created again keeps its handle, and nothing else.

use super::{Device, Handles, Kind, OnError, is_shutting_down, on_error};
use crate::graph::{capture, guard};
use crate::lock;
use crate::report::{leaks, log};
use crate::types::{CUcontext, CUfunc_cache, Result, Status};
use crate::{code, engine};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use warpwright_device::{Cause, Failure, FailureDomain};

/// All contexts, including primary ones.
pub(crate) static CONTEXTS: Handles<Context> = Handles::new(Kind::Context);

/// A context.
pub(crate) struct Context {
    pub(crate) handle: CUcontext,
    pub(crate) id: u64,
    pub(crate) device: Arc<Device>,
    pub(crate) is_primary: bool,
    pub(crate) api_version: u32,
    settings: Mutex<ContextSettings>,
    is_alive: AtomicBool,
    /// The first error of an operation that ran asynchronously; 0 for none.
    error: AtomicI32,
}

/// The settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextSettings {
    pub(crate) flags: u32,
    pub(crate) cache: CUfunc_cache,
    pub(crate) limits: super::limit::Limits,
}

/// The flags for the way to wait, of which one may be set.
const SCHEDULE_MASK: u32 = 7;
const SCHEDULES: [u32; 4] = [0, 1, 2, 4];
/// The other flags: mapped host memory, resized local memory, two kinds of core dumps, synchronous copies.
const OTHER_FLAGS: u32 = 8 | 16 | 32 | 64 | 128;

impl ContextSettings {
    /// The initial settings.
    pub(crate) fn with_flags(flags: u32) -> Result<Self> {
        let is_known =
            SCHEDULES.contains(&(flags & SCHEDULE_MASK)) && flags & !(SCHEDULE_MASK | OTHER_FLAGS) == 0;
        if !is_known {
            return Err(Status::INVALID_VALUE);
        }
        Ok(ContextSettings {
            flags,
            cache: CUfunc_cache::PREFER_NONE,
            limits: super::limit::Limits::default(),
        })
    }
}

impl Context {
    /// Creates a context.
    pub(crate) fn create(
        device: &Arc<Device>,
        settings: ContextSettings,
        api_version: u32,
    ) -> Result<Arc<Context>> {
        device.vm()?;
        let make = |handle| Arc::new(Context::new(handle, device, settings, api_version, false));
        Ok(CONTEXTS.insert_with(make)?.1)
    }

    /// Creates the primary context of a device, with its former handle if it existed before.
    pub(super) fn create_primary(
        device: &Arc<Device>,
        settings: ContextSettings,
        before: Option<&Context>,
    ) -> Result<Arc<Context>> {
        device.vm()?;
        let make = |handle| Arc::new(Context::new(handle, device, settings, 3020, true));
        match before {
            Some(before) => Ok(CONTEXTS.replace_with(before.handle.0, make)?),
            None => Ok(CONTEXTS.insert_with(make)?.1),
        }
    }

    fn new(
        handle: usize,
        device: &Arc<Device>,
        settings: ContextSettings,
        api_version: u32,
        is_primary: bool,
    ) -> Context {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Context {
            handle: CUcontext(handle),
            id: IDS.fetch_add(1, Relaxed),
            device: device.clone(),
            is_primary,
            api_version,
            settings: Mutex::new(settings),
            is_alive: AtomicBool::new(true),
            error: AtomicI32::new(0),
        }
    }

    /// The context of a client's handle. A destroyed context is invalid; a destroyed primary context stays valid.
    pub(crate) fn find(handle: CUcontext) -> Result<Arc<Context>> {
        let context = CONTEXTS.get(handle.0).map_err(|_| Status::INVALID_CONTEXT)?;
        if context.is_alive() { Ok(context) } else { Err(Status::CONTEXT_IS_DESTROYED) }
    }

    /// Whether it has not been destroyed.
    pub(crate) fn is_alive(&self) -> bool {
        self.is_alive.load(Relaxed)
    }

    /// The settings.
    pub(crate) fn settings(&self) -> ContextSettings {
        *lock(&self.settings)
    }

    /// Changes the settings.
    pub(crate) fn change(&self, change: impl FnOnce(&mut ContextSettings)) {
        change(&mut lock(&self.settings));
    }

    /// Makes every later call of the context return this error, or the next one that waits if errors do not stay. The
    /// first error counts.
    pub(crate) fn poison(&self, error: Status) {
        // Another error was first: nothing to do.
        let _ = self.error.compare_exchange(Status::SUCCESS.0, error.0, Relaxed, Relaxed);
    }

    /// Checks that it is usable: it was not destroyed, and nothing in it has failed for good.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_alive() {
            return Err(Status::CONTEXT_IS_DESTROYED);
        }
        match on_error() {
            OnError::Stop => Status(self.error.load(Relaxed)).into_result(),
            OnError::Continue => Ok(()),
        }
    }

    /// What a call returns that has waited for operations: an error that does not stay is returned once.
    pub(crate) fn outcome(&self) -> Result<()> {
        self.check()?;
        match on_error() {
            OnError::Stop => Ok(()),
            OnError::Continue => Status(self.error.swap(Status::SUCCESS.0, Relaxed)).into_result(),
        }
    }

    /// Ends it with everything in it. Only the first call has an effect.
    pub(crate) fn destroy(&self) {
        // Its operations are completed first, while it still exists.
        if let Some(engine) = self.device.engine_if_started() {
            engine.drain_context(self);
        }
        if !self.is_alive.swap(false, Relaxed) {
            return;
        }
        if !self.is_primary {
            // It exists: only this code removes the handle.
            let _ = CONTEXTS.remove(self.handle.0);
        }
        leaks::context_ends(self.id);
        if let Some(engine) = self.device.engine_if_started() {
            engine.release(self);
        }
        capture::forget_context(self);
        code::forget(self);
    }

    /// Waits for all operations, and says whether all of them were executed.
    pub(crate) fn synchronize(&self) -> Result<()> {
        engine::permitted()?;
        guard::waits_for_all(self)?;
        self.device.engine()?.drain_context(self);
        self.outcome()
    }
}

/// Forgets the errors that do not stay, in all contexts.
pub(crate) fn forget_errors() {
    for context in CONTEXTS.alive() {
        // It was reported.
        let _ = context.object.outcome();
    }
}

impl FailureDomain for Context {
    fn id(&self) -> u64 {
        self.id
    }

    fn skips(&self, _ticket: u64) -> bool {
        self.check().is_err()
    }

    fn failed(&self, failure: Failure) {
        match failure.cause {
            Cause::Released => log::misuse(&failure.message),
            Cause::Internal => log::note(&failure),
            _ => {}
        }
        if !is_shutting_down() {
            self.poison(engine::status_of(&failure));
        }
    }
}

/// The calling thread's stack of contexts.
pub(crate) mod stack {
    use super::super::thread::{EndOfThread, Own};
    use super::{Arc, CONTEXTS, CUcontext, Context};

    type Stack = Vec<Arc<Context>>;

    static END: EndOfThread = Own::<Stack>::end();

    thread_local! {
        static STACK: Own<Stack> = const { Own::new(Vec::new()) };
    }

    /// Accesses the stack.
    fn with<R>(f: impl FnOnce(&mut Stack) -> R) -> Option<R> {
        STACK.with(|stack| stack.with(&END, f))
    }

    /// A primary context may have been created again.
    fn renewed(context: &Arc<Context>) -> Arc<Context> {
        if context.is_alive() || !context.is_primary {
            return context.clone();
        }
        CONTEXTS.find(context.handle.0).unwrap_or_else(|_| context.clone())
    }

    /// The current context, whatever its state.
    pub(crate) fn top() -> Option<Arc<Context>> {
        with(|stack| stack.last().map(renewed)).flatten()
    }

    /// Makes a context current.
    pub(crate) fn push(context: Arc<Context>) {
        with(|stack| stack.push(context));
    }

    /// Pops the current context.
    pub(crate) fn pop() -> Option<Arc<Context>> {
        with(Vec::pop).flatten()
    }

    /// Replaces the current context; `None` pops it.
    pub(crate) fn set(context: Option<Arc<Context>>) {
        with(|stack| {
            stack.pop();
            stack.extend(context);
        });
    }

    /// Whether a context is current here.
    pub(crate) fn is_current(context: CUcontext) -> bool {
        with(|stack| stack.last().is_some_and(|top| top.handle == context)).unwrap_or(false)
    }
}

/// The usable current context of the calling thread.
pub(crate) fn current() -> Result<Arc<Context>> {
    engine::permitted()?;
    super::state()?;
    let context = stack::top().ok_or(Status::INVALID_CONTEXT)?;
    context.check()?;
    Ok(context)
}
