//! Streams and events of the driver, which are destroyed on drop.
//!
//! Destroying a handle while the device still uses it is legal: the driver keeps what it needs.

use super::context::{Context, Unbound};
use super::error::{CallError, check, is_done};
use super::sys::{self, CUevent, CUevent_flags, CUgraph, CUstream, CUstream_flags, CaptureStatus, Status};
use crate::lock;
use cudarc::driver::CudaStream;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// The status of operations that cannot be captured.
pub(super) const CAPTURED: Status = Status::STREAM_CAPTURE_UNSUPPORTED;

/// A stream of the driver.
pub(crate) struct Stream {
    pub(crate) context: Arc<Context>,
    pub(crate) handle: CUstream,
    /// The cudarc stream that this is, which we must not destroy.
    theirs: Option<Arc<CudaStream>>,
    /// The same stream for cudarc, if it was given out. Another library may have kept it.
    bound: OnceLock<Arc<CudaStream>>,
    /// Whether it was lent, so that another library may have kept it.
    was_lent: AtomicBool,
}

/// Streams that are dropped here but kept by another library: they are destroyed when it drops them.
static KEPT: Mutex<Vec<Arc<CudaStream>>> = Mutex::new(Vec::new());

/// An event of the driver.
pub(crate) struct Event {
    pub(crate) context: Arc<Context>,
    pub(crate) handle: CUevent,
}

// SAFETY: handles are names that the driver looks up; its functions may be called from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above, and at the same time.
unsafe impl Sync for Stream {}
// SAFETY: as for streams.
unsafe impl Send for Event {}
// SAFETY: as for streams.
unsafe impl Sync for Event {}

impl Stream {
    /// A new stream of that priority, which waits for no other one, the legacy default stream included.
    pub(crate) fn new(context: &Arc<Context>, priority: i32) -> Result<Self, CallError> {
        destroy_kept();
        context.bind()?;
        let (mut handle, flags) = (null_mut(), CUstream_flags::CU_STREAM_NON_BLOCKING as u32);
        // SAFETY: writes the handle. A priority beyond the device's is the nearest that it has.
        let created = unsafe { sys::cuStreamCreateWithPriority(&mut handle, flags, priority) };
        check("cuStreamCreateWithPriority", created)?;
        let (bound, was_lent) = Default::default();
        Ok(Stream { context: context.clone(), handle, theirs: None, bound, was_lent })
    }

    /// An existing stream of cudarc, of that context.
    pub(crate) fn theirs(context: &Arc<Context>, stream: Arc<CudaStream>) -> Self {
        let handle = stream.cu_stream();
        let (bound, was_lent) = Default::default();
        Stream { context: context.clone(), handle, theirs: Some(stream), bound, was_lent }
    }

    /// The same stream for cudarc.
    pub(super) fn cudarc(&self) -> Arc<CudaStream> {
        let bind = || {
            // SAFETY: the stream is of that context, and is not destroyed while this lives.
            unsafe { self.context.cuda.wrap_borrowed_stream(self.handle) }
        };
        self.theirs.as_ref().unwrap_or_else(|| self.bound.get_or_init(bind)).clone()
    }

    /// The same stream for another library, which may capture on it from now on.
    pub(super) fn lend(&self) -> Arc<CudaStream> {
        self.was_lent.store(true, Relaxed);
        self.cudarc()
    }

    /// Whether another library has it too, and may capture on it.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.theirs.is_some() || self.was_lent.load(Relaxed)
    }

    /// The graph of another library's capture on it, if there is one now. The context is bound.
    pub(super) fn capture(&self) -> Result<Option<CUgraph>, CallError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let (mut status, mut graph) = (CaptureStatus::NONE, null_mut());
        // SAFETY: writes the status and the graph; the handle lives.
        let asked = unsafe {
            sys::cuStreamGetCaptureInfo_v2(
                self.handle,
                &mut status,
                null_mut(),
                &mut graph,
                null_mut(),
                null_mut(),
            )
        };
        check("cuStreamGetCaptureInfo", asked)?;
        // One that has failed takes nothing more, and says so itself.
        Ok((status == CaptureStatus::ACTIVE && !graph.is_null()).then_some(graph))
    }

    /// Whether another library captures on it now. The context is bound.
    pub(super) fn is_captured(&self) -> Result<bool, CallError> {
        if !self.is_shared() {
            return Ok(false);
        }
        let mut status = CaptureStatus::NONE;
        // SAFETY: writes the status; the handle lives.
        check("cuStreamIsCapturing", unsafe { sys::cuStreamIsCapturing(self.handle, &mut status) })?;
        Ok(status != CaptureStatus::NONE)
    }

    /// Refuses `call` during another library's capture: an operation that is meant once would be replayed. The context
    /// is bound.
    pub(super) fn must_not_capture(&self, call: &'static str) -> Result<(), CallError> {
        if self.is_captured()? { Err(CallError::new(call, CAPTURED)) } else { Ok(()) }
    }

    /// Makes its later operations wait for what the event covers now. The context is bound.
    pub(crate) fn wait(&self, event: &Event) -> Result<(), CallError> {
        // SAFETY: both handles live.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.handle, event.handle, 0) })
    }

    /// Whether its operations are complete. The context is bound.
    pub(crate) fn is_idle(&self) -> Result<bool, CallError> {
        // SAFETY: the handle lives.
        is_done("cuStreamQuery", unsafe { sys::cuStreamQuery(self.handle) })
    }

    /// Waits until its operations are complete. The context is bound.
    pub(crate) fn synchronize(&self) -> Result<(), CallError> {
        let _unbound = Unbound::new();
        // SAFETY: the handle lives.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.theirs.is_some() {
            return;
        }
        match self.bound.take().map(Arc::try_unwrap) {
            Some(Err(kept)) => lock(&KEPT).push(kept),
            // SAFETY: the handle is not used any more.
            None | Some(Ok(_)) => unsafe { destroy(&self.context, self.handle) },
        }
    }
}

/// Destroys the streams that were kept, and are no more.
fn destroy_kept() {
    let mut kept = lock(&KEPT);
    for stream in std::mem::take(&mut *kept) {
        match Arc::try_unwrap(stream) {
            // SAFETY: it was ours, and is not used any more.
            Ok(stream) => unsafe { destroy(&Context::new(stream.context().clone()), stream.cu_stream()) },
            Err(stream) => kept.push(stream),
        }
    }
}

/// Destroys a stream of a context.
///
/// # Safety
///
/// It must not be used afterwards.
unsafe fn destroy(context: &Context, stream: CUstream) {
    if context.bind().is_ok() {
        // SAFETY: the caller's promise. An error cannot be reported.
        let _ = unsafe { sys::cuStreamDestroy_v2(stream) };
    }
}

impl Event {
    /// A new event, which knows times or only whether it is complete.
    pub(crate) fn new(context: &Arc<Context>, timing: bool) -> Result<Self, CallError> {
        context.bind()?;
        let flags =
            if timing { CUevent_flags::CU_EVENT_DEFAULT } else { CUevent_flags::CU_EVENT_DISABLE_TIMING };
        let mut handle = null_mut();
        // SAFETY: writes the handle.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut handle, flags as u32) })?;
        Ok(Event { context: context.clone(), handle })
    }

    /// Records it after the stream's operations so far. The context is bound.
    pub(crate) fn record(&self, stream: &Stream) -> Result<(), CallError> {
        // SAFETY: both handles live.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.handle, stream.handle) })
    }

    /// Whether what it covers is done. The context is bound.
    pub(crate) fn is_complete(&self) -> Result<bool, CallError> {
        // SAFETY: the handle lives.
        is_done("cuEventQuery", unsafe { sys::cuEventQuery(self.handle) })
    }

    /// Waits until what it covers is done. The context is bound.
    pub(crate) fn synchronize(&self) -> Result<(), CallError> {
        let _unbound = Unbound::new();
        // SAFETY: the handle lives.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.handle) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nothing else has the handle. An error cannot be reported.
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle) };
        }
    }
}
