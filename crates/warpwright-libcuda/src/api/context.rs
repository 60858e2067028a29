//! Contexts, and which one a thread works in.

use super::entries;
use crate::engine::permitted;
use crate::state::{Context, ContextSettings, current, limit, persisting_l2, stack, state};
use crate::types::{CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUfunc_cache, CUlimit};
use crate::types::{In, Out, Result, Status};
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::Arc;

/// Makes a context and makes it current.
fn create(place: Out<CUcontext>, flags: c_uint, device: CUdevice, api_version: c_uint) -> Result<()> {
    let place = place.required()?;
    let device = state()?.device(device)?;
    let context = Context::create(device, ContextSettings::with_flags(flags)?, api_version)?;
    let handle = context.handle;
    stack::push(context);
    place.set(handle)
}

/// A context by its handle; null is the current one. It has not been destroyed.
fn given(handle: CUcontext) -> Result<Arc<Context>> {
    state()?;
    if handle.is_null() { alive() } else { Context::find(handle) }
}

/// The current context, whatever has failed in it.
fn alive() -> Result<Arc<Context>> {
    state()?;
    let context = stack::top().ok_or(Status::INVALID_CONTEXT)?;
    if context.is_alive() { Ok(context) } else { Err(Status::CONTEXT_IS_DESTROYED) }
}

entries! {
    /// Makes a context of the first version of the interface.
    fn cuCtxCreate(context: Out<CUcontext>, flags: c_uint, device: CUdevice) {
        create(context, flags, device, 3010)
    }

    /// Makes a context and makes it current.
    fn cuCtxCreate_v2(context: Out<CUcontext>, flags: c_uint, device: CUdevice) {
        create(context, flags, device, 3020)
    }

    /// The same, which may ask for a part of the multiprocessors: that is not to be had.
    fn cuCtxCreate_v3(
        context: Out<CUcontext>, affinity: In<CUexecAffinityParam>, count: c_int, flags: c_uint, device: CUdevice,
    ) {
        match (affinity.is_null(), count) {
            (_, 0) => create(context, flags, device, 3020),
            (false, 1..) => Err(Status::UNSUPPORTED_EXEC_AFFINITY),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// The same, which may also ask to share the device with graphics: that is not to be had either.
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

    /// Destroys a context with all that is in it. Other threads that have it current learn when they use it.
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

    /// Makes a context current; the one that is becomes so again when it is popped.
    fn cuCtxPushCurrent_v2 = cuCtxPushCurrent(context: CUcontext) {
        state()?;
        stack::push(Context::find(context)?);
        Ok(())
    }

    /// Makes the context before the current one current.
    fn cuCtxPopCurrent_v2 = cuCtxPopCurrent(place: Out<CUcontext>) {
        state()?;
        let context = stack::pop().ok_or(Status::INVALID_CONTEXT)?;
        place.set_if(context.handle);
        Ok(())
    }

    /// Makes a context current in place of the one that is; null makes none.
    fn cuCtxSetCurrent(context: CUcontext) {
        state()?;
        let context = if context.is_null() { None } else { Some(Context::find(context)?) };
        stack::set(context);
        Ok(())
    }

    /// The current context, or null.
    fn cuCtxGetCurrent(context: Out<CUcontext>) {
        state()?;
        context.set(stack::top().map_or(CUcontext::NULL, |context| context.handle))
    }

    /// Where the current context is.
    fn cuCtxGetDevice(device: Out<CUdevice>) {
        device.set(alive()?.device.ordinal)
    }

    /// Where a context is.
    fn cuCtxGetDevice_v2(device: Out<CUdevice>, context: CUcontext) {
        device.set(given(context)?.device.ordinal)
    }

    /// Waits for all that was asked for in the current context.
    fn cuCtxSynchronize() {
        current()?.synchronize()
    }

    /// Waits for all that was asked for in a context; null is the current one.
    fn cuCtxSynchronize_v2(context: CUcontext) {
        let context = given(context)?;
        context.check()?;
        context.synchronize()
    }

    /// The flags of the current context.
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

    /// A number that no other context of the process has.
    fn cuCtxGetId(context: CUcontext, id: Out<c_ulonglong>) {
        id.set(given(context)?.id)
    }

    /// The version of the interface that it was made with.
    fn cuCtxGetApiVersion(context: CUcontext, version: Out<c_uint>) {
        version.set(given(context)?.api_version)
    }

    /// How much of something its kernels may have.
    fn cuCtxGetLimit(value: Out<usize>, which: CUlimit) {
        let value = value.required()?;
        value.set(limit::get(&*alive()?, which)?)
    }

    /// Says how much of something its kernels may have.
    fn cuCtxSetLimit(which: CUlimit, value: usize) {
        limit::set(&*current()?, which, value)
    }

    /// What its kernels want of the memory that caches and shared memory divide. It changes nothing.
    fn cuCtxGetCacheConfig(config: Out<CUfunc_cache>) {
        config.set(alive()?.settings().cache)
    }

    /// Says what its kernels want of the memory that caches and shared memory divide.
    fn cuCtxSetCacheConfig(config: CUfunc_cache) {
        let context = current()?;
        config.check()?;
        context.change(|settings| settings.cache = config);
        Ok(())
    }

    /// The priorities that streams can have. They change nothing.
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        alive()?;
        least.set_if(0);
        greatest.set_if(crate::state::GREATEST_PRIORITY);
        Ok(())
    }

    /// Lines of the cache that were to stay need not.
    fn cuCtxResetPersistingL2Cache() {
        match persisting_l2(&current()?.device) {
            0 => Err(Status::NOT_SUPPORTED),
            _ => Ok(()),
        }
    }

    /// Would let kernels of the current context use the memory of another one. Virtual GPUs have address spaces of their
    /// own, and none reaches another's.
    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) {
        let context = current()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let is_itself = context.id == Context::find(peer)?.id;
        Err(if is_itself { Status::INVALID_CONTEXT } else { Status::PEER_ACCESS_UNSUPPORTED })
    }

    /// Would take that back.
    fn cuCtxDisablePeerAccess(peer: CUcontext) {
        current()?;
        Context::find(peer)?;
        Err(Status::PEER_ACCESS_NOT_ENABLED)
    }

    /// A profiler would begin here, or end.
    fn cuProfilerStart = cuProfilerStop() {
        current()?;
        Ok(())
    }
}
