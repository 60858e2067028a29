//! Contexts, and the current context of a thread.

use super::entries;
use crate::engine::permitted;
use crate::state::{Context, ContextSettings, current, limit, persisting_l2, stack, state};
use crate::types::{CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUfunc_cache, CUlimit};
use crate::types::{In, Out, Result, Status};
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::Arc;

/// Creates a context and makes it current.
fn create(place: Out<CUcontext>, flags: c_uint, device: CUdevice, api_version: c_uint) -> Result<()> {
    let place = place.required()?;
    let device = state()?.device(device)?;
    let context = Context::create(device, ContextSettings::with_flags(flags)?, api_version)?;
    let handle = context.handle;
    stack::push(context);
    place.set(handle)
}

/// A context by its handle; null is the current one. It must not have been destroyed.
fn given(handle: CUcontext) -> Result<Arc<Context>> {
    state()?;
    if handle.is_null() { alive() } else { Context::find(handle) }
}

/// The current context, even after a failure in it.
fn alive() -> Result<Arc<Context>> {
    state()?;
    let context = stack::top().ok_or(Status::INVALID_CONTEXT)?;
    if context.is_alive() { Ok(context) } else { Err(Status::CONTEXT_IS_DESTROYED) }
}

entries! {
    /// Creates a context of the first version of the interface.
    fn cuCtxCreate(context: Out<CUcontext>, flags: c_uint, device: CUdevice) {
        create(context, flags, device, 3010)
    }

    /// Creates a context and makes it current.
    fn cuCtxCreate_v2(context: Out<CUcontext>, flags: c_uint, device: CUdevice) {
        create(context, flags, device, 3020)
    }

    /// The same with execution affinities, which are not supported.
    fn cuCtxCreate_v3(
        context: Out<CUcontext>, affinity: In<CUexecAffinityParam>, count: c_int, flags: c_uint, device: CUdevice,
    ) {
        match (affinity.is_null(), count) {
            (_, 0) => create(context, flags, device, 3020),
            (false, 1..) => Err(Status::UNSUPPORTED_EXEC_AFFINITY),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// The same with parameters for sharing with graphics, which is not supported either.
    fn cuCtxCreate_v4(context: Out<CUcontext>, params: In<CUctxCreateParams>, flags: c_uint, device: CUdevice) {
        match params.get_if() {
            None => create(context, flags, device, 3020),
            Some(params) if params.cigParams != 0 => Err(Status::NOT_SUPPORTED),
            Some(params) => match (params.execAffinityParams, params.numExecAffinityParams) {
                (_, 0) => create(context, flags, device, 3020),
                (1.., 1..) => Err(Status::UNSUPPORTED_EXEC_AFFINITY),
                _ => Err(Status::INVALID_VALUE),
            },
        }
    }

    /// Destroys a context with everything in it. Threads in which it is current get an error when they use it.
    fn cuCtxDestroy_v2 = cuCtxDestroy(handle: CUcontext) {
        state()?;
        permitted()?;
        let context = Context::find(handle)?;
        if context.is_primary {
            return Err(Status::INVALID_CONTEXT);
        }
        context.destroy();
        if stack::is_current(handle) {
            stack::pop();
        }
        Ok(())
    }

    /// Pushes a context on the thread's stack and makes it current.
    fn cuCtxPushCurrent_v2 = cuCtxPushCurrent(context: CUcontext) {
        state()?;
        stack::push(Context::find(context)?);
        Ok(())
    }

    /// Pops the current context from the thread's stack.
    fn cuCtxPopCurrent_v2 = cuCtxPopCurrent(place: Out<CUcontext>) {
        state()?;
        let context = stack::pop().ok_or(Status::INVALID_CONTEXT)?;
        place.set_if(context.handle);
        Ok(())
    }

    /// Replaces the current context; null makes none current.
    fn cuCtxSetCurrent(context: CUcontext) {
        state()?;
        let context = if context.is_null() { None } else { Some(Context::find(context)?) };
        stack::set(context);
        Ok(())
    }

    /// Returns the current context, or null.
    fn cuCtxGetCurrent(context: Out<CUcontext>) {
        state()?;
        context.set(stack::top().map_or(CUcontext::NULL, |context| context.handle))
    }

    /// Returns the device of the current context.
    fn cuCtxGetDevice(device: Out<CUdevice>) {
        device.set(alive()?.device.ordinal)
    }

    /// Returns the device of a context.
    fn cuCtxGetDevice_v2(device: Out<CUdevice>, context: CUcontext) {
        device.set(given(context)?.device.ordinal)
    }

    /// Waits for all operations of the current context.
    fn cuCtxSynchronize() {
        current()?.synchronize()
    }

    /// Waits for all operations of a context; null is the current one.
    fn cuCtxSynchronize_v2(context: CUcontext) {
        let context = given(context)?;
        context.check()?;
        context.synchronize()
    }

    /// Returns the flags of the current context.
    fn cuCtxGetFlags(flags: Out<c_uint>) {
        flags.set(alive()?.settings().flags)
    }

    /// Changes the flags of the current context.
    fn cuCtxSetFlags(flags: c_uint) {
        let context = alive()?;
        let ContextSettings { flags, .. } = ContextSettings::with_flags(flags)?;
        context.change(|settings| settings.flags = flags);
        Ok(())
    }

    /// Returns the unique number of a context.
    fn cuCtxGetId(context: CUcontext, id: Out<c_ulonglong>) {
        id.set(given(context)?.id)
    }

    /// Returns the version of the interface that it was created with.
    fn cuCtxGetApiVersion(context: CUcontext, version: Out<c_uint>) {
        version.set(given(context)?.api_version)
    }

    /// Returns a limit of its kernels.
    fn cuCtxGetLimit(value: Out<usize>, which: CUlimit) {
        let value = value.required()?;
        value.set(limit::get(&*alive()?, which)?)
    }

    /// Sets a limit of its kernels.
    fn cuCtxSetLimit(which: CUlimit, value: usize) {
        limit::set(&*current()?, which, value)
    }

    /// Returns the preferred split of L1 cache and shared memory, which has no effect.
    fn cuCtxGetCacheConfig(config: Out<CUfunc_cache>) {
        config.set(alive()?.settings().cache)
    }

    /// Sets the preferred split of L1 cache and shared memory.
    fn cuCtxSetCacheConfig(config: CUfunc_cache) {
        let context = current()?;
        config.check()?;
        context.change(|settings| settings.cache = config);
        Ok(())
    }

    /// Returns the range of stream priorities, which have no effect.
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        alive()?;
        least.set_if(0);
        greatest.set_if(crate::state::GREATEST_PRIORITY);
        Ok(())
    }

    /// Resets persisting lines of the L2 cache.
    fn cuCtxResetPersistingL2Cache() {
        match persisting_l2(&current()?.device) {
            0 => Err(Status::NOT_SUPPORTED),
            _ => Ok(()),
        }
    }

    /// Would enable access to the memory of another context. Virtual GPUs have separate address spaces, so there is no
    /// peer access.
    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) {
        let context = current()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let is_itself = context.id == Context::find(peer)?.id;
        Err(if is_itself { Status::INVALID_CONTEXT } else { Status::PEER_ACCESS_UNSUPPORTED })
    }

    /// Would disable that access.
    fn cuCtxDisablePeerAccess(peer: CUcontext) {
        current()?;
        Context::find(peer)?;
        Err(Status::PEER_ACCESS_NOT_ENABLED)
    }

    /// Would start or stop a profiler.
    fn cuProfilerStart = cuProfilerStop() {
        current()?;
        Ok(())
    }
}
