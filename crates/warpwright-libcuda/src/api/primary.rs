//! The primary context of a device, shared by the process.

use super::entries;
use crate::engine::permitted;
use crate::state::state;
use crate::types::{CUcontext, CUdevice, Out};
use std::ffi::{c_int, c_uint};

entries! {
    /// Retains the primary context, which is created by the first call and lives until it was released as often.
    fn cuDevicePrimaryCtxRetain(context: Out<CUcontext>, device: CUdevice) {
        let context = context.required()?;
        context.set(state()?.device(device)?.retain_primary()?)
    }

    /// Releases it; the last release destroys it.
    fn cuDevicePrimaryCtxRelease_v2 = cuDevicePrimaryCtxRelease(device: CUdevice) {
        permitted()?;
        state()?.device(device)?.release_primary()
    }

    /// Destroys it with everything in it, however often it is retained.
    fn cuDevicePrimaryCtxReset_v2 = cuDevicePrimaryCtxReset(device: CUdevice) {
        permitted()?;
        state()?.device(device)?.reset_primary()
    }

    /// Sets its flags, such as how it waits.
    fn cuDevicePrimaryCtxSetFlags_v2 = cuDevicePrimaryCtxSetFlags(device: CUdevice, flags: c_uint) {
        state()?.device(device)?.set_primary_flags(flags)
    }

    /// Returns its flags, and whether it exists.
    fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: Out<c_uint>, active: Out<c_int>) {
        let (set, is_active) = state()?.device(device)?.primary_state();
        active.required()?;
        flags.set(set)?;
        active.set(is_active.into())
    }
}
