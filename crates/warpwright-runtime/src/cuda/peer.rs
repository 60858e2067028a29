//! Copies between CUDA devices.

use super::context::Context;
use super::error::{CallError, check};
use super::handles::Stream;
use cudarc::driver::sys;

/// Where bytes are, on which device.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    /// The device's context.
    pub(crate) context: &'a Context,
    /// The first byte.
    pub(crate) address: u64,
}

/// Copies bytes from one device to another in the order of a stream of one of them. The driver goes from device to
/// device where it can, and else through the host. The stream's context is bound.
///
/// # Safety
///
/// Both sides have that many bytes, which are there when the stream comes to it and until it is past it.
pub(crate) unsafe fn copy(
    target: Side<'_>,
    source: Side<'_>,
    bytes: usize,
    stream: &Stream,
) -> Result<(), CallError> {
    let (to, from) = (target.context.cuda().cu_ctx(), source.context.cuda().cu_ctx());
    // SAFETY: the contexts live as long as the sides; the rest is the caller's promise.
    let asked =
        unsafe { sys::cuMemcpyPeerAsync(target.address, to, source.address, from, bytes, stream.raw()) };
    check("cuMemcpyPeerAsync", asked)
}
