//! Copies between devices.
//!
//! A copy is ordered on a stream of one device, and uses memory of another one, whose pool knows only that device's
//! streams. So a stream of the other device waits for the copy, and counts as the user of the memory.

use crate::buffer::{Buffer, Element, Issuing};
use crate::error::{Result, RuntimeError};
use crate::stream::Stream;

impl Stream {
    /// Copies a buffer to one of the same length on another device of the same kind, ordered on this stream, which
    /// belongs to one of the two. If the other device's buffer may still be in use, make this stream
    /// [wait](Self::wait_event) for that use first. The stream that the buffer was allocated on waits for the copy by
    /// itself.
    ///
    /// CUDA devices copy to one another directly if they can, and otherwise through the host, which does not wait. A
    /// copy on one device is [`memcpy_dtod`](Self::memcpy_dtod).
    pub fn memcpy_peer<T: Element>(&self, source: &Buffer<T>, target: &Buffer<T>) -> Result<()> {
        const NAME: &str = "memcpy_peer";
        self.must_not_capture(NAME)?;
        let (source_len, target_len) = (source.len(), target.len());
        if source_len != target_len {
            return Err(RuntimeError::Length { operation: NAME, source_len, target_len });
        }
        let (near, far) = if target.device() == self.device() { (target, source) } else { (source, target) };
        self.must_own(NAME, "source and the target", near.as_any())?;
        if far.device() == self.device() {
            return self.memcpy_dtod(source, target);
        }
        let follower = far.device().follower(far.as_any());
        let mut issuing = Issuing::default();
        near.as_any().used_by(self.state(), &mut issuing)?;
        far.as_any().used_by(&follower, &mut issuing)?;
        let (from, to) = (source.as_any().range(), target.as_any().range());
        let (reads, writes) = (source.device().backend(), target.device().backend());
        self.backend().copy_peer(NAME, (reads, from), (writes, to), self.state())?;
        let copied = self.backend().record(self.state());
        far.device().backend().wait_event(&copied, &follower)
    }
}
