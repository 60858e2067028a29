//! What kinds of devices there are: the only place that knows them all.
//!
//! Everything above speaks of operations ([`crate::op`]), memory, points and marks. A [`Point`] is a place in the order
//! of a stream: the ticket of an operation is its number on the device, in the order of issue, from 1 on. A
//! [`Mark`] is what the device says of an event.
//!
//! What of one device meets what of another, or of another kind, only where a stream [waits](Backend::wait_mark) for
//! a mark; everything else the callers have checked.

use crate::contract::Param;
use crate::device::DeviceStatistics;
use crate::error::Result;
use crate::function::FunctionAttributes;
use crate::op::{Launch, Op, Place, Shape};
use crate::pool::Point;
use crate::stream::StreamState;
use crate::vm;
use std::sync::Arc;
use std::time::Duration;
use warpwright_ptx::ir;
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::{Finding, Report};

/// A kind of device, with what it needs to run.
pub(crate) enum Backend {
    /// The virtual GPU.
    Vm(vm::Worker),
}

/// A stream, as the device has it.
pub(crate) enum StreamHandle {
    /// Of the virtual GPU.
    Vm(vm::StreamHandle),
}

/// What the device says of an event. A cheap handle.
#[derive(Clone)]
pub(crate) enum Mark {
    /// Of the virtual GPU.
    Vm(vm::Mark),
}

/// A piece of device memory, given back to the device when it is dropped.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Of the virtual GPU.
    Vm(vm::Memory),
}

/// A kernel with everything that its launch needs.
pub(crate) enum Code {
    /// Of the virtual GPU.
    Vm(vm::Code),
}

/// A module that a device has loaded.
pub(crate) enum Module {
    /// Of the virtual GPU.
    Vm(vm::Module),
}

/// A list of operations, ready for replays. A cheap handle.
#[derive(Clone)]
pub(crate) enum Exec {
    /// Of the virtual GPU, which goes through the list.
    Vm,
}

impl Backend {
    /// Loads a module that the verifier has accepted.
    pub(crate) fn load(&self, module: &ir::Module, info: &ModuleInfo) -> Result<Module> {
        match self {
            Backend::Vm(worker) => worker.load(module, info).map(Module::Vm),
        }
    }

    /// Blocks of a kernel of so many threads and bytes of dynamic shared memory that a multiprocessor holds; 0 where
    /// no such block runs.
    pub(crate) fn occupancy(&self, module: &Module, kernel: &str, threads: u32, dynamic_shared: u32) -> u32 {
        match (self, module) {
            (Backend::Vm(worker), Module::Vm(module)) => {
                worker.occupancy(module, kernel, threads, dynamic_shared)
            }
        }
    }

    /// Whether it is a virtual GPU, or a driver over one.
    pub(crate) fn is_virtual(&self) -> bool {
        match self {
            Backend::Vm(_) => true,
        }
    }

    /// Host threads that run blocks; `None` where no host does.
    pub(crate) fn host_threads(&self) -> Option<u32> {
        match self {
            Backend::Vm(worker) => Some(worker.host_threads()),
        }
    }

    /// Whether the device runs clusters of blocks.
    pub(crate) fn runs_clusters(&self) -> bool {
        match self {
            Backend::Vm(_) => false,
        }
    }

    /// Whether reads of memory that was never written are looked for.
    pub(crate) fn looks_for_uninitialised(&self) -> bool {
        match self {
            Backend::Vm(worker) => worker.options().checks.init,
        }
    }

    pub(crate) fn statistics(&self) -> DeviceStatistics {
        match self {
            Backend::Vm(worker) => worker.statistics(),
        }
    }

    /// The report of the last launch, where there are reports.
    pub(crate) fn last_report(&self) -> Option<Arc<Report>> {
        match self {
            Backend::Vm(worker) => worker.last_report(),
        }
    }

    /// What was found, where something is looked for.
    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        match self {
            Backend::Vm(worker) => worker.take_findings(),
        }
    }
}

/// Memory.
impl Backend {
    /// New memory of exactly that many bytes, which are not initialised, for what a stream does next. `Ok(None)` where
    /// there is no room.
    pub(crate) fn allocate(&self, bytes: u64, _stream: &StreamState) -> Result<Option<Arc<Memory>>> {
        match self {
            Backend::Vm(worker) => Ok(worker.allocate(bytes)?.map(|memory| Arc::new(Memory::Vm(memory)))),
        }
    }

    /// New memory of the host's, zero, which the device sees.
    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Arc<Memory>>> {
        match self {
            Backend::Vm(worker) => {
                Ok(worker.allocate_mapped(bytes)?.map(|memory| Arc::new(Memory::Vm(memory))))
            }
        }
    }

    /// Gives memory back that operations until these points may use. On a virtual GPU they hold it themselves.
    pub(crate) fn release(&self, memory: Arc<Memory>, _uses: &[Point]) {
        match self {
            Backend::Vm(_) => drop(memory),
        }
    }

    /// What the memory holds means nothing any more, for what a stream does next: it has a new owner.
    pub(crate) fn forget(&self, memory: Arc<Memory>, stream: &StreamState) {
        match self {
            Backend::Vm(worker) => worker.forget(memory, stream),
        }
    }

    /// Copies bytes of the host, as many as the place has, in the order of a stream. The slice is free when this
    /// returns.
    pub(crate) fn upload(&self, data: &[u8], target: Place, stream: &StreamState) {
        match self {
            Backend::Vm(worker) => worker.upload(data, target, stream),
        }
    }

    /// Copies to a slice of as many bytes as the place has, in the order of a stream, and waits for that.
    /// `operation` is what it is called where it is skipped.
    pub(crate) fn download(
        &self,
        operation: &'static str,
        source: Place,
        stream: &StreamState,
        target: &mut [u8],
    ) -> Result<()> {
        match self {
            Backend::Vm(worker) => worker.download(operation, source, stream, target),
        }
    }
}

/// Operations and what becomes of them.
impl Backend {
    /// A new stream.
    pub(crate) fn new_stream(&self) -> Result<StreamHandle> {
        match self {
            Backend::Vm(_) => Ok(StreamHandle::Vm(vm::StreamHandle::default())),
        }
    }

    /// Issues an operation of a stream.
    pub(crate) fn push(&self, op: Op, stream: &StreamState) {
        match self {
            Backend::Vm(worker) => worker.push(op, stream),
        }
    }

    /// Marks the end of what a stream was asked for.
    pub(crate) fn record(&self, stream: &StreamState) -> Result<Mark> {
        match self {
            Backend::Vm(worker) => Ok(Mark::Vm(worker.record(stream))),
        }
    }

    /// What the stream is asked for from now on waits for the mark, which may be of another device.
    pub(crate) fn wait_mark(&self, mark: &Mark, stream: &StreamState) {
        match self {
            Backend::Vm(worker) => worker.wait_mark(mark.clone(), stream),
        }
    }

    /// Whether the operations until a point are complete: executed, or skipped after an error.
    pub(crate) fn is_complete(&self, point: Point) -> bool {
        match self {
            Backend::Vm(worker) => worker.is_complete(point.ticket),
        }
    }

    /// Waits until what a stream was asked for is complete, and returns the error that nobody was told of.
    pub(crate) fn wait(&self, stream: &StreamState) -> Result<()> {
        match self {
            Backend::Vm(worker) => worker.wait(stream.point().ticket),
        }
    }

    /// Waits until everything before a mark of this device is complete, and returns the error that nobody was told of.
    pub(crate) fn wait_for(&self, mark: &Mark) -> Result<()> {
        match (self, mark) {
            (Backend::Vm(worker), Mark::Vm(mark)) => worker.wait(mark.ticket()),
        }
    }

    /// Waits until everything is complete, and returns the error that nobody was told of.
    pub(crate) fn wait_all(&self) -> Result<()> {
        match self {
            Backend::Vm(worker) => worker.wait(worker.issued()),
        }
    }

    /// Waits until everything is complete. Who waits for an error finds it still.
    pub(crate) fn pass_all(&self) {
        match self {
            Backend::Vm(worker) => worker.pass(worker.issued()),
        }
    }

    /// Errors of operations that calls have returned.
    pub(crate) fn failures(&self) -> u64 {
        match self {
            Backend::Vm(worker) => worker.failures(),
        }
    }

    /// Makes a list of operations ready for replays.
    pub(crate) fn instantiate(&self, _ops: &[Op]) -> Result<Exec> {
        match self {
            Backend::Vm(_) => Ok(Exec::Vm),
        }
    }

    /// Replays from now on have that launch, of the same kernel, in that place of the list.
    pub(crate) fn update(&self, exec: &Exec, _node: usize, _launch: &Launch) -> Result<()> {
        match (self, exec) {
            (Backend::Vm(_), Exec::Vm) => Ok(()),
        }
    }
}

impl Mark {
    /// Whether everything before it is complete.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Mark::Vm(mark) => mark.is_complete(),
        }
    }

    /// The time on the device from an earlier mark of the same device to this one; `None` where one is not complete, or
    /// was skipped.
    pub(crate) fn elapsed(&self, earlier: &Mark) -> Result<Option<Duration>> {
        match (self, earlier) {
            (Mark::Vm(mark), Mark::Vm(earlier)) => Ok(mark.elapsed(earlier)),
        }
    }
}

impl Module {
    /// What a kernel is like, of which the module declares that.
    pub(crate) fn attributes(&self, _kernel: &str, declared: FunctionAttributes) -> FunctionAttributes {
        match self {
            Module::Vm(_) => declared,
        }
    }

    /// A launch of a kernel as the device takes it.
    pub(crate) fn code(&self, kernel: &Arc<str>, shape: Shape, params: impl Iterator<Item = Param>) -> Code {
        match self {
            Module::Vm(module) => Code::Vm(module.code(kernel, shape, params)),
        }
    }
}

impl Memory {
    /// Address on the device.
    pub(crate) fn address(&self) -> u64 {
        match self {
            Memory::Vm(memory) => memory.address(),
        }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Memory::Vm(memory) => memory.bytes(),
        }
    }

    /// What is there now, as one value. The memory is the host's, mapped.
    pub(crate) fn peek(&self, offset: u64, value: &mut [u8]) -> Result<()> {
        match self {
            Memory::Vm(memory) => memory.peek(offset, value),
        }
    }

    /// Changes what is there now, as one value. The memory is the host's, mapped.
    pub(crate) fn poke(&self, offset: u64, value: &[u8]) -> Result<()> {
        match self {
            Memory::Vm(memory) => memory.poke(offset, value),
        }
    }
}
