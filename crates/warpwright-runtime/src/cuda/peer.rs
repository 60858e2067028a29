//! Copies between CUDA devices.

use super::driver::Driver;
use super::error::check;
use super::issue::address;
use super::line::StreamHandle;
use super::sys;
use crate::op::Place;
use crate::stream::StreamState;

impl Driver {
    /// Copies from one device to another, of which one is `self`, in the order of a stream of `self`. The driver goes
    /// from device to device where it can, and else through the host.
    pub(crate) fn copy_peer(
        &self,
        (reads, source): (&Driver, &Place),
        (writes, target): (&Driver, &Place),
        state: &StreamState,
        handle: &StreamHandle,
    ) {
        let result = self.in_order(state, handle, |line, _| {
            line.stream().must_not_capture("cuMemcpyPeerAsync")?;
            let bytes = target.bytes as usize;
            if bytes > 0 {
                let (to, from) = (writes.context.cuda().cu_ctx(), reads.context.cuda().cu_ctx());
                let (target, source) = (address(target), address(source));
                // SAFETY: both sides have that many bytes, which buffers hold that know of the copy; the contexts live
                // as long as their drivers do.
                let asked =
                    unsafe { sys::cuMemcpyPeerAsync(target, to, source, from, bytes, line.stream().raw()) };
                check("cuMemcpyPeerAsync", asked)?;
            }
            self.copied(target.bytes);
            Ok(())
        });
        if let Err(error) = result {
            self.failed("copy between devices", &error);
        }
    }
}
