//! Issuing operations: each is a call of the driver at once, under the lock of its stream.

use super::captured::retain;
use super::driver::{Counts, Driver};
use super::error::{CallError, CudaError, check};
use super::event::EventHandle;
use super::faults::{Suspects, ends_context};
use super::graph::{Exec, Refused};
use super::handles::{CAPTURED, Stream};
use super::launch::Call;
use super::module::Module;
use super::sys;
use super::timeline::{Order, Timeline};
use crate::backend::{self, Backend, Exec as AnyExec};
use crate::buffer::AnyBuffer;
use crate::contract::Param;
use crate::error::{Result, RuntimeError};
use crate::op::{Launch, MemoryRange, Op, Shape, Word};
use crate::stream::StreamState;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A kernel with everything that its launch needs.
pub(crate) struct Code {
    pub(crate) call: Call,
    /// The module that the call's function is of.
    _module: Arc<backend::Module>,
}

impl Code {
    /// A launch of a kernel that the module has. `module` is what `holder` holds.
    pub(crate) fn new(
        holder: &Arc<backend::Module>,
        module: &Module,
        kernel: &str,
        shape: Shape,
        params: impl Iterator<Item = Param>,
    ) -> Self {
        // The driver refuses a kernel that is none.
        let function = module.kernel(kernel).map_or(null_mut(), |kernel| kernel.function);
        Code { call: Call::new(function, shape, params), _module: holder.clone() }
    }
}

/// A list of operations that the driver replays with one call.
pub(crate) struct Replay {
    exec: Exec,
    tally: Tally,
}

/// What operations come to.
#[derive(Default)]
struct Tally {
    launches: u64,
    copies: u64,
    bytes_copied: u64,
    memsets: u64,
    /// Replays of graphs that are in it.
    replays: u64,
    /// The first and the last kernel.
    kernels: Option<(Arc<str>, Arc<str>)>,
}

impl Tally {
    fn add(&mut self, op: &Op) {
        match op {
            Op::Launch { launch, .. } => {
                self.launches += 1;
                let kernel = launch.kernel.clone();
                let first = self.kernels.take().map_or_else(|| kernel.clone(), |(first, _)| first);
                self.kernels = Some((first, kernel));
            }
            Op::Copy { target, .. } => {
                self.copies += 1;
                self.bytes_copied += target.bytes;
            }
            Op::Fill { .. } => self.memsets += 1,
            Op::Replay { ops, .. } => {
                self.replays += 1;
                ops.iter().for_each(|op| self.add(op));
            }
        }
    }

    /// Counts a replay of it as issued: the number of its first launch.
    fn count(&self, counts: &Counts) -> u64 {
        counts.copies.fetch_add(self.copies, Relaxed);
        counts.bytes_copied.fetch_add(self.bytes_copied, Relaxed);
        counts.memsets.fetch_add(self.memsets, Relaxed);
        counts.graph_launches.fetch_add(1 + self.replays, Relaxed);
        counts.launches.fetch_add(self.launches, Relaxed)
    }
}

impl Driver {
    pub(crate) fn wants_uses(&self, stream: &StreamState) -> bool {
        stream.handle.cuda().is_shared()
    }

    pub(crate) fn push(&self, op: Op, uses: Option<Vec<AnyBuffer>>, state: &StreamState) {
        self.ask(name(&op), state, |timeline, order| {
            if let Some(graph) = timeline.stream().capture()? {
                // The stream was lent after the caller had asked: their graph would keep nothing.
                let uses = uses.ok_or_else(|| CallError::new("cuGraphRetainUserObject", CAPTURED))?;
                retain(graph, Box::new((op.clone(), uses)))?;
            }
            // SAFETY: the launch was checked against its contract, or is the caller's promise; the memory is held by
            // buffers, which know their streams.
            unsafe { self.operate(&op, timeline.stream(), order) }
        });
    }

    /// Does something in the order of a stream, and notes an error of it; `None` where it was not done.
    fn ask<T>(
        &self,
        what: &str,
        state: &StreamState,
        act: impl FnOnce(&Timeline, &mut Order) -> Result<T, CallError>,
    ) -> Option<T> {
        self.in_order(state, act).unwrap_or_else(|error| {
            self.failed(what, &error);
            None
        })
    }

    /// Gives a stream its next ticket.
    pub(super) fn ticket(&self, order: &mut Order, state: &StreamState) {
        let ticket = self.tickets.fetch_add(1, Relaxed) + 1;
        order.issued = ticket;
        state.issued(ticket);
    }

    /// Does something in the order of a stream. Nothing is done while an error stands: `Ok(None)`.
    pub(super) fn in_order<T>(
        &self,
        state: &StreamState,
        act: impl FnOnce(&Timeline, &mut Order) -> Result<T, CallError>,
    ) -> Result<Option<T>, CallError> {
        let timeline = &state.handle.cuda().timeline;
        let mut order = timeline.order();
        self.ticket(&mut order, state);
        if self.faults.stand() {
            return Ok(None);
        }
        self.context.bind()?;
        act(timeline, &mut order).map(Some)
    }

    /// Calls the driver for an operation.
    ///
    /// # Safety
    ///
    /// What it does with memory is in the order of the stream, and the memory lives as long.
    unsafe fn operate(&self, op: &Op, stream: &Stream, order: &mut Order) -> Result<(), CallError> {
        match op {
            Op::Launch { launch, overlaps } => {
                // SAFETY: the code has the function's module; the rest is the caller's promise.
                unsafe { launch.code.cuda().call.issue(stream, *overlaps) }?;
                let number = self.counts.launches.fetch_add(1, Relaxed);
                order.suspects.add(&launch.kernel, &launch.kernel, number, 1);
                self.after_launch(stream, order)?;
            }
            Op::Copy { source, target } => {
                let (to, from, bytes) = (address(target), address(source), target.bytes as usize);
                if bytes > 0 {
                    // SAFETY: both sides have that many bytes; the rest is the caller's promise.
                    check("cuMemcpyAsync", unsafe { sys::cuMemcpyAsync(to, from, bytes, stream.handle) })?;
                }
                self.copied(target.bytes);
            }
            Op::Fill { target, word } => {
                if target.bytes > 0 {
                    fill(target, *word, stream.handle)?;
                }
                self.counts.memsets.fetch_add(1, Relaxed);
            }
            Op::Replay { exec, .. } => {
                let replay = exec.cuda();
                // SAFETY: the caller's promise.
                unsafe { replay.exec.launch(stream) }?;
                let number = replay.tally.count(&self.counts);
                if let Some((first, last)) = &replay.tally.kernels {
                    order.suspects.add(first, last, number, replay.tally.launches);
                    self.after_launch(stream, order)?;
                }
            }
        }
        Ok(())
    }

    /// With [`sync_launches`](super::CudaConfig::sync_launches) a launch waits for itself.
    fn after_launch(&self, stream: &Stream, order: &mut Order) -> Result<(), CallError> {
        // A launch in a capture of theirs runs later, and cannot be waited for.
        if self.sync_launches && !stream.is_captured()? {
            stream.synchronize()?;
            order.suspects = Suspects::default();
        }
        Ok(())
    }

    pub(super) fn copied(&self, bytes: u64) {
        self.counts.copies.fetch_add(1, Relaxed);
        self.counts.bytes_copied.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn upload(&self, data: &[u8], target: &MemoryRange, state: &StreamState) {
        self.ask("copy to the device", state, |_, order| {
            order.lane.upload(data, address(target))?;
            self.copied(target.bytes);
            Ok(())
        });
    }

    pub(crate) fn download(
        &self,
        operation: &'static str,
        source: &MemoryRange,
        state: &StreamState,
        target: &mut [u8],
    ) -> Result<()> {
        let timeline = &state.handle.cuda().timeline;
        // Another call may return the error that caused the skip.
        let skipped = || self.faults.tell().and(Err(RuntimeError::Skipped { operation }));
        const WHAT: &str = "copy to the host";
        let Some(ticket) = self.ask(WHAT, state, |_, order| Ok(order.issued)) else { return skipped() };
        // It waits, and so the stream is not locked: others go on, and what they ask for is not in the order of this.
        if let Err(error) = self.staging.download(timeline.stream(), address(source), target) {
            self.failed(WHAT, &error);
            return skipped();
        }
        self.copied(source.bytes);
        timeline.seen(ticket);
        self.faults.tell()
    }

    pub(crate) fn record(&self, state: &StreamState) -> backend::EventHandle {
        let record = |timeline: &Timeline, order: &mut Order| {
            EventHandle::record(&self.spares, timeline, order.issued)
        };
        let event = self.ask("record an event", state, record);
        backend::EventHandle::Cuda(event.unwrap_or_else(|| EventHandle::skipped(&self.spares)))
    }

    pub(crate) fn wait_event(&self, event: &backend::EventHandle, state: &StreamState) -> Result<()> {
        let backend::EventHandle::Cuda(event) = event else {
            return Err(RuntimeError::OtherKind { operation: "wait_event" });
        };
        let wait = |timeline: &Timeline, _: &mut Order| {
            event.event().map_or(Ok(()), |event| timeline.stream().wait(event))
        };
        self.ask("wait for an event", state, wait);
        Ok(())
    }

    pub(crate) fn wait_for(&self, event: &backend::EventHandle) -> Result<()> {
        if let Err(error) = event.cuda().wait() {
            self.failed("synchronize", &error);
        }
        self.faults.tell()
    }

    pub(crate) fn instantiate(&self, ops: &[Op]) -> Result<AnyExec> {
        let mut tally = Tally::default();
        ops.iter().for_each(|op| tally.add(op));
        let bound = self.context.bind().map_err(Refused::from);
        let exec =
            bound.and_then(|()| Exec::new(&self.context, ops)).or_else(|Refused { node, error }| {
                match ends_context(error.code) {
                    true => self.answer("a graph", Err(error)),
                    false => Err(CudaError::Graph { node, error }.into()),
                }
            })?;
        Ok(AnyExec::Cuda(Arc::new(Replay { exec, tally })))
    }

    pub(crate) fn update(
        &self,
        exec: &AnyExec,
        node: usize,
        (launch, _): (&Arc<Launch>, bool),
    ) -> Result<()> {
        self.answer(&launch.kernel, exec.cuda().exec.update(node, &launch.code.cuda().call))
    }

    /// The driver copies from device to device where it can, and else through the host.
    pub(crate) fn copy_peer(
        &self,
        operation: &'static str,
        (reads, source): (&Backend, MemoryRange),
        (writes, target): (&Backend, MemoryRange),
        state: &StreamState,
    ) -> Result<()> {
        let (Backend::Cuda(reads), Backend::Cuda(writes)) = (reads, writes) else {
            return Err(RuntimeError::OtherKind { operation });
        };
        self.ask("copy between devices", state, |timeline, _| {
            timeline.stream().must_not_capture("cuMemcpyPeerAsync")?;
            let bytes = target.bytes as usize;
            if bytes > 0 {
                let (to, from) = (writes.context.cuda.cu_ctx(), reads.context.cuda.cu_ctx());
                let (target, source) = (address(&target), address(&source));
                // SAFETY: both sides have that many bytes, which buffers hold that know of the copy; the contexts live
                // as long as their drivers do.
                let asked = unsafe {
                    sys::cuMemcpyPeerAsync(target, to, source, from, bytes, timeline.stream().handle)
                };
                check("cuMemcpyPeerAsync", asked)?;
            }
            self.copied(target.bytes);
            Ok(())
        });
        Ok(())
    }
}

/// Fills a range that is not empty, and that the operation holds.
pub(super) fn fill(target: &MemoryRange, word: Word, stream: sys::CUstream) -> Result<(), CallError> {
    let (to, value, count) = (address(target), word.value, word.count(target.bytes) as usize);
    let pitch = word.pitch as usize;
    // SAFETY: the range has that many words at that pitch.
    unsafe {
        match (word.size, word.is_dense()) {
            (1, true) => check("cuMemsetD8Async", sys::cuMemsetD8Async(to, value as u8, count, stream)),
            (2, true) => check("cuMemsetD16Async", sys::cuMemsetD16Async(to, value as u16, count, stream)),
            (_, true) => check("cuMemsetD32Async", sys::cuMemsetD32Async(to, value, count, stream)),
            (1, false) => {
                check("cuMemsetD2D8Async", sys::cuMemsetD2D8Async(to, pitch, value as u8, 1, count, stream))
            }
            (2, false) => check(
                "cuMemsetD2D16Async",
                sys::cuMemsetD2D16Async(to, pitch, value as u16, 1, count, stream),
            ),
            (_, false) => {
                check("cuMemsetD2D32Async", sys::cuMemsetD2D32Async(to, pitch, value, 1, count, stream))
            }
        }
    }
}

/// The address at which a range of device memory begins.
pub(super) fn address(range: &MemoryRange) -> u64 {
    range.memory.address() + range.offset
}

/// What an operation is called where it fails.
fn name(op: &Op) -> &str {
    match op {
        Op::Launch { launch, .. } => &launch.kernel,
        Op::Copy { .. } => "copy",
        Op::Fill { .. } => "memset",
        Op::Replay { .. } => "graph",
    }
}
