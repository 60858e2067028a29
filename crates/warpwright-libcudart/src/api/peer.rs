//! Devices that reach each other's memory.

use super::entries;
use crate::abi::{Handle, Out, Stream};
use crate::driver::driver;
use crate::error::{Error, Result};
use crate::state::{self, handle};
use std::ffi::{c_int, c_uint};

/// The primary context of a device.
pub(super) fn context(device: c_int) -> Result<Handle> {
    state::primary(device)
}

entries! {
    /// Returns whether a device can reach another's memory.
    bare fn cudaDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        driver!(cuDeviceCanAccessPeer(can.required()?, handle(device)?, handle(peer)?))
    }

    /// Lets the thread's device reach another's memory.
    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        if peer == state::device()? {
            return Err(Error::INVALID_DEVICE);
        }
        driver!(cuCtxEnablePeerAccess(context(peer)?, flags))
    }

    /// Ends that.
    fn cudaDeviceDisablePeerAccess(peer: c_int) { driver!(cuCtxDisablePeerAccess(context(peer)?)) }

    /// Copies bytes between devices.
    fn cudaMemcpyPeer(to: Handle, to_device: c_int, from: Handle, from_device: c_int, bytes: usize) {
        driver!(cuMemcpyPeer(to, context(to_device)?, from, context(from_device)?, bytes))
    }

    /// Copies bytes between devices in the order of a stream.
    fn cudaMemcpyPeerAsync(
        to: Handle, to_device: c_int, from: Handle, from_device: c_int, bytes: usize, stream: Stream,
    ) {
        let (to_context, from_context) = (context(to_device)?, context(from_device)?);
        let stream = state::DefaultStream::Legacy.resolve(stream);
        driver!(cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream))
    }
}
