//! Issuing operations: each is a call of the driver at once, under the lock of its stream.

use super::driver::{Counts, Driver};
use super::error::{CallError, CudaError, check};
use super::faults::{Suspects, ends_context};
use super::gate::Gate;
use super::graph::{Exec, Refused};
use super::handles::{CAPTURED, Stream};
use super::keep::keep;
use super::launch::Call;
use super::line::{Line, Order, StreamHandle};
use super::mark::Mark;
use super::module::{Kernel, Module};
use super::sys;
use crate::backend;
use crate::buffer::AnyBuffer;
use crate::contract::Param;
use crate::error::{Result, RuntimeError};
use crate::op::{Launch, Op, Place, Shape};
use crate::stream::StreamState;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A kernel with everything that its launch needs.
pub(crate) struct Code {
    call: Call,
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
        let function = module.kernel(kernel).map_or(null_mut(), Kernel::function);
        Code { call: Call::new(function, shape, params), _module: holder.clone() }
    }

    /// The launch.
    pub(super) fn call(&self) -> &Call {
        &self.call
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
            Op::Launch(launch) => {
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
    /// Issues an operation of a stream, with the buffers that it uses where the stream is [shared](Stream::is_shared).
    pub(crate) fn push(
        &self,
        op: &Op,
        uses: Option<Vec<AnyBuffer>>,
        state: &StreamState,
        handle: &StreamHandle,
    ) {
        let result = self.in_order(state, handle, |line, order| {
            if let Some(graph) = line.stream().capture()? {
                // The stream was lent after the caller had asked: their graph would keep nothing.
                let uses = uses.ok_or_else(|| CallError::new("cuGraphRetainUserObject", CAPTURED))?;
                keep(graph, Box::new((op.clone(), uses)))?;
            }
            // SAFETY: the launch was checked against its contract, or is the caller's promise; the memory is held by
            // buffers, which know their streams.
            unsafe { self.operate(op, line.stream(), order) }
        });
        if let Err(error) = result {
            self.failed(name(op), &error);
        }
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
        handle: &StreamHandle,
        act: impl FnOnce(&Line, &mut Order) -> Result<T, CallError>,
    ) -> Result<Option<T>, CallError> {
        let line = handle.line();
        let mut order = line.order();
        self.ticket(&mut order, state);
        if self.faults.stand() {
            return Ok(None);
        }
        self.context.bind()?;
        act(line, &mut order).map(Some)
    }

    /// Calls the driver for an operation.
    ///
    /// # Safety
    ///
    /// What it does with memory is in the order of the stream, and the memory lives as long.
    unsafe fn operate(&self, op: &Op, stream: &Stream, order: &mut Order) -> Result<(), CallError> {
        match op {
            Op::Launch(launch) => {
                // SAFETY: the caller's promise.
                unsafe { self.launch(launch, stream) }?;
                let number = self.counts.launches.fetch_add(1, Relaxed);
                order.suspects.add(&launch.kernel, &launch.kernel, number, 1);
                self.after_launch(stream, order)?;
            }
            Op::Copy { source, target } => {
                let (to, from, bytes) = (address(target), address(source), target.bytes as usize);
                if bytes > 0 {
                    // SAFETY: both sides have that many bytes; the rest is the caller's promise.
                    check("cuMemcpyAsync", unsafe { sys::cuMemcpyAsync(to, from, bytes, stream.raw()) })?;
                }
                self.copied(target.bytes);
            }
            Op::Fill { target, value } => {
                let (to, bytes) = (address(target), target.bytes as usize);
                if bytes > 0 {
                    // SAFETY: as above.
                    check("cuMemsetD8Async", unsafe {
                        sys::cuMemsetD8Async(to, *value, bytes, stream.raw())
                    })?;
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

    /// # Safety
    ///
    /// As for [`operate`](Self::operate).
    #[inline]
    unsafe fn launch(&self, launch: &Launch, stream: &Stream) -> Result<(), CallError> {
        // SAFETY: the code has the function's module; the rest is the caller's promise.
        unsafe { launch.code.cuda().call.issue(stream) }
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

    /// Copies bytes of the host to the device.
    pub(crate) fn upload(&self, data: &[u8], target: &Place, state: &StreamState, handle: &StreamHandle) {
        let result = self.in_order(state, handle, |_, order| {
            order.lane.upload(data, address(target))?;
            self.copied(target.bytes);
            Ok(())
        });
        if let Err(error) = result {
            self.failed("copy to the device", &error);
        }
    }

    /// Copies to the host, and waits.
    pub(crate) fn download(
        &self,
        operation: &'static str,
        source: &Place,
        state: &StreamState,
        handle: &StreamHandle,
        target: &mut [u8],
    ) -> Result<()> {
        let issued = self.in_order(state, handle, |_, order| Ok(order.issued));
        // It waits, and so the stream is not locked: others go on, and what they ask for is not in the order of this.
        let result = match issued {
            Ok(Some(ticket)) => {
                self.staging.download(handle.line().stream(), address(source), target).map(|()| {
                    self.copied(source.bytes);
                    handle.line().seen(ticket);
                })
            }
            // Somebody else may be told of the error in whose way it was.
            Ok(None) => return self.faults.tell().and(Err(RuntimeError::Skipped { operation })),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.failed("copy to the host", &error);
            return self.faults.tell().and(Err(RuntimeError::Skipped { operation }));
        }
        self.faults.tell()
    }

    /// Marks the end of what a stream was asked for.
    pub(crate) fn record(&self, state: &StreamState, handle: &StreamHandle) -> Mark {
        let record = |line: &Line, order: &mut Order| Mark::record(&self.spares, line, order.issued);
        let mark = self.in_order(state, handle, record).unwrap_or_else(|error| {
            self.failed("record an event", &error);
            None
        });
        mark.unwrap_or_else(|| Mark::skipped(&self.spares))
    }

    /// What the stream is asked for from now on waits for the mark. Refused where somebody else captures on the stream, and
    /// the mark is none of CUDA's: it would be waited for once, and not in each replay.
    pub(crate) fn wait_mark(
        &self,
        mark: &backend::Mark,
        state: &StreamState,
        handle: &StreamHandle,
    ) -> Result<()> {
        const NAME: &str = "wait_event";
        if matches!(mark, backend::Mark::Vm(_)) {
            let stream = handle.stream();
            let captured = self.context.bind().and_then(|()| stream.is_captured());
            if self.answer(NAME, captured)? {
                return Err(RuntimeError::Capturing { operation: NAME });
            }
        }
        let result = self.in_order(state, handle, |line, order| match mark {
            backend::Mark::Cuda(mark) => mark.event().map_or(Ok(()), |event| line.stream().wait(event)),
            backend::Mark::Vm(mark) if mark.is_reached() => Ok(()),
            backend::Mark::Vm(mark) => {
                let gate = match &order.gate {
                    Some(gate) => gate,
                    None => order.gate.insert(Gate::new(&self.context, &self.reaper, line.id())?),
                };
                gate.wait(line.stream(), mark)
            }
        });
        if let Err(error) = result {
            self.failed("wait for an event", &error);
        }
        Ok(())
    }

    /// Waits until everything before a mark is complete, and returns the error that nobody was told of.
    pub(crate) fn wait_for(&self, mark: &Mark) -> Result<()> {
        if let Err(error) = mark.wait() {
            self.failed("synchronize", &error);
        }
        self.faults.tell()
    }

    /// Makes a list of operations ready for replays.
    pub(crate) fn instantiate(&self, ops: &[Op]) -> Result<Arc<Replay>> {
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
        Ok(Arc::new(Replay { exec, tally }))
    }

    /// Replays from now on have that launch in that place of the list.
    pub(crate) fn update(&self, replay: &Replay, node: usize, launch: &Launch) -> Result<()> {
        self.answer(&launch.kernel, replay.exec.update(node, &launch.code.cuda().call))
    }
}

/// Where a place begins. Memory of the device is the only one that operations are given.
pub(super) fn address(place: &Place) -> u64 {
    place.memory.address() + place.offset
}

/// What an operation is called where it fails.
fn name(op: &Op) -> &str {
    match op {
        Op::Launch(launch) => &launch.kernel,
        Op::Copy { .. } => "copy",
        Op::Fill { .. } => "memset",
        Op::Replay { .. } => "graph",
    }
}
