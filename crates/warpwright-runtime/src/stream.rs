//! Streams: operations in order.

use crate::backend::{Backend, StreamHandle};
use crate::buffer::{AnyBuffer, Block, Buffer, Element, Issuing};
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use crate::event::Event;
use crate::graph::Graph;
use crate::lock;
use crate::op::{MemoryRange, Op, Word};
use crate::overlap::InFront;
use crate::pool::Point;
use std::fmt;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, Weak};

/// An ordered sequence of operations on a device. A cheap handle: its clones are one stream.
///
/// Operations that were issued go on when the last handle is dropped; an open capture is discarded.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

/// The state that the handles of a stream share.
pub(crate) struct Inner {
    device: Device,
    state: Arc<StreamState>,
    /// Whether operations are recorded instead of executed. Changes under the lock of `captured`.
    capturing: AtomicBool,
    captured: Mutex<Vec<Captured>>,
}

/// The part of the stream that blocks of memory refer to.
pub(crate) struct StreamState {
    /// Its unique number on the device.
    pub(crate) id: u64,
    /// The ticket of its last operation; 0 before the first. The engine of a virtual GPU counts them itself.
    tail: AtomicU64,
    /// The stream as the device has it.
    pub(crate) handle: StreamHandle,
    /// What is in front of the next operation.
    front: Mutex<InFront>,
}

/// An operation that was recorded.
#[derive(Clone)]
pub(crate) struct Captured {
    /// The operation.
    pub(crate) op: Op,
    /// The buffers that it uses.
    pub(crate) uses: Vec<AnyBuffer>,
}

impl StreamState {
    pub(crate) fn new(id: u64, handle: StreamHandle) -> Self {
        // The engine of a virtual GPU has numbers of its own, by which it is asked whether points are passed.
        let id = if let StreamHandle::Vm(stream) = &handle { stream.id() } else { id };
        StreamState { id, tail: AtomicU64::new(0), handle, front: Mutex::default() }
    }

    /// The point after its last operation.
    pub(crate) fn point(&self) -> Point {
        let ticket = match &self.handle {
            StreamHandle::Vm(stream) => stream.issued(),
            StreamHandle::Cuda(_) => self.tail.load(Acquire),
        };
        Point { stream: self.id, ticket }
    }

    /// Notes an issued operation. Called in the order of tickets.
    pub(crate) fn issued(&self, ticket: u64) {
        self.tail.store(ticket, Release);
    }
}

impl Stream {
    pub(crate) fn new(device: Device, state: Arc<StreamState>) -> Self {
        let (capturing, captured) = (AtomicBool::new(false), Mutex::default());
        Stream { inner: Arc::new(Inner { device, state, capturing, captured }) }
    }

    /// The handle, if the stream is alive.
    pub(crate) fn upgrade(inner: &Weak<Inner>) -> Option<Self> {
        Some(Stream { inner: inner.upgrade()? })
    }

    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.inner)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Allocates `len` uninitialised elements at an address that is a multiple of 256 bytes.
    ///
    /// Later operations of this stream may use the buffer; another stream must wait for the allocation
    /// ([`wait_event`](Self::wait_event)). Refused if there is not enough memory, even after the pool's memory was
    /// released.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_holding(len, Box::default())
    }

    /// The same, for elements that are addresses of these buffers, which live as long as the memory does.
    pub(crate) fn alloc_holding<T: Element>(&self, len: usize, held: Box<[AnyBuffer]>) -> Result<Buffer<T>> {
        self.must_not_capture("alloc")?;
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let (memory, used) = self.inner.device.take(bytes, &self.inner.state)?;
        let (device, home) = (self.inner.device.clone(), Some(self.inner.state.clone()));
        let block = Block::holding(device, memory.clone(), home, held);
        let buffer = Buffer::new(AnyBuffer::new(block, bytes, T::TYPE));
        if used && self.inner.device.looks_for_uninitialised() {
            self.backend().forget(memory, &self.inner.state);
        }
        Ok(buffer)
    }

    /// Allocates `len` zeroed elements, as [`alloc`](Self::alloc) does.
    pub fn alloc_zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.alloc(len)?;
        self.memset_zeros(&buffer)?;
        Ok(buffer)
    }

    /// Allocates a copy of a slice, as [`alloc`](Self::alloc) does.
    pub fn clone_htod<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.alloc(data.len())?;
        self.memcpy_htod(data, &buffer)?;
        Ok(buffer)
    }

    /// Copies a slice of the same length to the device. The slice is read before this returns and may be reused at
    /// once; the buffer is written in stream order.
    pub fn memcpy_htod<T: Element>(&self, source: &[T], target: &Buffer<T>) -> Result<()> {
        const NAME: &str = "memcpy_htod";
        self.must_not_capture(NAME)?;
        self.must_own(NAME, "target", target.as_any())?;
        same_len(NAME, source.len(), target.len())?;
        let mut issuing = Issuing::default();
        target.as_any().used_by(&self.inner.state, &mut issuing)?;
        self.backend().upload(bytemuck::cast_slice(source), &target.as_any().range(), &self.inner.state);
        Ok(())
    }

    /// Copies to a slice of the same length, after the operations issued so far, and waits for completion.
    pub fn memcpy_dtoh<T: Element>(&self, source: &Buffer<T>, target: &mut [T]) -> Result<()> {
        const NAME: &str = "memcpy_dtoh";
        self.must_not_capture(NAME)?;
        self.must_own(NAME, "source", source.as_any())?;
        same_len(NAME, source.len(), target.len())?;
        let mut issuing = Issuing::default();
        source.as_any().used_by(&self.inner.state, &mut issuing)?;
        let bytes = bytemuck::cast_slice_mut::<T, u8>(target);
        self.backend().download(NAME, &source.as_any().range(), &self.inner.state, bytes)
    }

    /// Copies the elements to the host, after the operations issued so far, and waits for completion.
    pub fn clone_dtoh<T: Element>(&self, source: &Buffer<T>) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); source.len()];
        self.memcpy_dtoh(source, &mut data)?;
        Ok(data)
    }

    /// Copies to another buffer of the same length. The target may be mapped host memory, which brings results to the
    /// host without blocking. The two buffers must not overlap.
    pub fn memcpy_dtod<T: Element>(&self, source: &Buffer<T>, target: &Buffer<T>) -> Result<()> {
        self.copy("memcpy_dtod", source.as_any(), target.as_any())
    }

    /// As [`memcpy_dtod`](Self::memcpy_dtod), for buffers whose element types are values; the types must be equal.
    pub fn memcpy_dtod_any(&self, source: &AnyBuffer, target: &AnyBuffer) -> Result<()> {
        let (found, asked) = (source.element(), target.element());
        if found != asked {
            return Err(RuntimeError::ElementType { found, asked });
        }
        self.copy("memcpy_dtod_any", source, target)
    }

    fn copy(&self, operation: &'static str, source: &AnyBuffer, target: &AnyBuffer) -> Result<()> {
        self.must_own(operation, "source", source)?;
        self.must_own(operation, "target", target)?;
        same_len(operation, source.len(), target.len())?;
        if source.overlaps(target) {
            return Err(RuntimeError::Overlap { operation });
        }
        let op = Op::Copy { source: source.range(), target: target.range() };
        self.enqueue(op, [source, target])
    }

    /// Sets all elements to zero.
    pub fn memset_zeros<T: Element>(&self, target: &Buffer<T>) -> Result<()> {
        self.memset_any(target.as_any(), 0)
    }

    /// Sets every byte.
    pub fn memset_any(&self, target: &AnyBuffer, value: u8) -> Result<()> {
        self.must_own("memset", "target", target)?;
        self.enqueue(Op::Fill { target: target.range(), word: Word::byte(value) }, [target])
    }

    /// Sets every element. If the words of the value differ, each word of it is set by an operation of its own.
    pub fn memset<T: Element>(&self, target: &Buffer<T>, value: T) -> Result<()> {
        let (bytes, pitch) = (bytemuck::bytes_of(&value), size_of::<T>() as u64);
        if bytes.iter().all(|&byte| byte == bytes[0]) {
            return self.memset_any(target.as_any(), bytes[0]);
        }
        self.must_own("memset", "target", target.as_any())?;
        // As wide as the element has whole ones.
        let size = [4, 2, 1].into_iter().find(|size| bytes.len().is_multiple_of(*size)).unwrap_or(1);
        let words = bytes.chunks(size).map(|word| {
            let mut value = [0; 4];
            value[..size].copy_from_slice(word);
            u32::from_le_bytes(value)
        });
        let (words, size) = (words.collect::<Vec<_>>(), size as u64);
        let all = target.as_any().range();
        if words.iter().all(|&word| word == words[0]) {
            let word = Word { value: words[0], size, pitch: size };
            return self.enqueue(Op::Fill { target: all, word }, [target.as_any()]);
        }
        for (&value, first) in words.iter().zip((0..).step_by(size as usize)) {
            let bytes = (all.bytes + size).saturating_sub(pitch);
            let range = MemoryRange { offset: all.offset + first, bytes, ..all.clone() };
            self.enqueue(Op::Fill { target: range, word: Word { value, size, pitch } }, [target.as_any()])?;
        }
        Ok(())
    }

    /// Records an event after the operations issued so far.
    pub fn record_event(&self) -> Result<Event> {
        self.must_not_capture("record_event")?;
        let handle = self.backend().record(&self.inner.state);
        Ok(Event { device: self.inner.device.clone(), handle })
    }

    /// Makes later operations of the stream wait for the event, which may belong to another device of the same kind.
    /// The event completes even if an operation before it failed: ask the other device for its errors.
    ///
    /// Refused between a CUDA device and a virtual GPU of this process: there, wait on the host
    /// ([`Event::synchronize`]).
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.must_not_capture("wait_event")?;
        self.backend().wait_event(&event.handle, &self.inner.state)
    }

    /// Waits until the stream has finished all operations. Returns the error of an operation that failed on the device,
    /// unless another call has returned it.
    pub fn synchronize(&self) -> Result<()> {
        self.must_not_capture("synchronize")?;
        self.backend().wait(&self.inner.state)
    }

    /// Whether the stream has finished all operations.
    pub fn is_idle(&self) -> bool {
        self.backend().is_idle(&self.inner.state)
    }

    /// Whether operations are recorded instead of executed.
    pub fn is_capturing(&self) -> bool {
        self.inner.capturing.load(Relaxed)
    }

    /// Issues an operation that uses these buffers, or records it while the stream is capturing.
    ///
    /// The caller has checked everything: the buffers are on the stream's device, and the operation may be captured.
    /// Refused if a buffer was lent and the loan has ended.
    pub(crate) fn enqueue<'a>(
        &self,
        mut op: Op,
        uses: impl IntoIterator<Item = &'a AnyBuffer>,
    ) -> Result<()> {
        if self.inner.capturing.load(Acquire) {
            let mut captured = lock(&self.inner.captured);
            if self.inner.capturing.load(Relaxed) {
                captured.push(Captured { op, uses: uses.into_iter().cloned().collect() });
                return Ok(());
            }
        }
        let mut issuing = Issuing::default();
        let mut used = self.backend().wants_uses(&self.inner.state).then(Vec::new);
        for buffer in uses {
            buffer.used_by(&self.inner.state, &mut issuing)?;
            if let Some(used) = &mut used {
                used.push(buffer.clone());
            }
        }
        // Who shares the stream may have issued anything.
        let mut front = lock(&self.inner.state.front);
        if used.is_some() {
            front.forget();
        }
        front.next(&mut op);
        self.backend().push(op, used, &self.inner.state);
        Ok(())
    }

    /// The part of the stream that blocks of memory refer to.
    pub(crate) fn state(&self) -> &Arc<StreamState> {
        &self.inner.state
    }

    pub(crate) fn backend(&self) -> &Backend {
        self.inner.device.backend()
    }

    /// Begins a capture: operations of the stream are recorded instead of executed, until [`end_capture`] returns the
    /// graph.
    ///
    /// Launches, copies within the device and memsets are recorded. Operations that wait, allocate, or copy from or to
    /// the host are refused during a capture, and leave the recording unchanged.
    ///
    /// [`end_capture`]: Self::end_capture
    pub fn begin_capture(&self) -> Result<()> {
        let mut captured = lock(&self.inner.captured);
        self.must_not_capture("begin_capture")?;
        captured.clear();
        self.inner.capturing.store(true, Release);
        Ok(())
    }

    /// Ends the capture and returns the graph.
    pub fn end_capture(&self) -> Result<Graph> {
        let mut captured = lock(&self.inner.captured);
        if !self.inner.capturing.swap(false, Release) {
            return Err(RuntimeError::NotCapturing);
        }
        Ok(Graph::new(self.inner.device.clone(), std::mem::take(&mut *captured)))
    }

    /// Refuses an operation that cannot be captured.
    pub(crate) fn must_not_capture(&self, operation: &'static str) -> Result<()> {
        if self.is_capturing() { Err(RuntimeError::Capturing { operation }) } else { Ok(()) }
    }

    /// Refuses a buffer of another device.
    pub(crate) fn must_own(
        &self,
        operation: &'static str,
        what: &'static str,
        buffer: &AnyBuffer,
    ) -> Result<()> {
        if buffer.device() == &self.inner.device {
            Ok(())
        } else {
            Err(RuntimeError::OtherDevice { operation, what })
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Stream");
        debug.field("device", &self.inner.device).field("id", &self.inner.state.id).finish_non_exhaustive()
    }
}

fn same_len(operation: &'static str, source_len: usize, target_len: usize) -> Result<()> {
    if source_len == target_len {
        Ok(())
    } else {
        Err(RuntimeError::Length { operation, source_len, target_len })
    }
}
