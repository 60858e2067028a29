//! What kinds of devices there are: the only place that knows them all.
//!
//! Everything above speaks of operations ([`crate::op`]), memory, points and marks. A [`Point`] is a place in the order
//! of a stream: the ticket of an operation is its number on the device, in the order of issue, from 1 on. A
//! [`Mark`] is what the device says of an event.
//!
//! What of one device meets what of another, or of another kind, only where a stream [waits](Backend::wait_mark) for
//! a mark; everything else the callers have checked.

use crate::buffer::AnyBuffer;
use crate::contract::Param;
use crate::device::DeviceStatistics;
use crate::error::{Result, RuntimeError};
use crate::function::FunctionAttributes;
use crate::op::{Launch, Op, Place, Shape};
use crate::pool::Point;
use crate::stream::StreamState;
use crate::{cuda, vm};
use std::sync::Arc;
use std::time::Duration;
use warpwright_ptx::ir;
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::{Finding, Report};

/// A kind of device, with what it needs to run.
pub(crate) enum Backend {
    /// The virtual GPU.
    Vm(vm::Worker),
    /// A CUDA device. It is large, and there is one of it.
    Cuda(Box<cuda::Driver>),
}

/// A stream, as the device has it.
pub(crate) enum StreamHandle {
    /// Of the virtual GPU.
    Vm(vm::StreamHandle),
    /// Of a CUDA device.
    Cuda(cuda::StreamHandle),
}

/// What the device says of an event. A cheap handle.
#[derive(Clone)]
pub(crate) enum Mark {
    /// Of the virtual GPU.
    Vm(vm::Mark),
    /// Of a CUDA device.
    Cuda(cuda::Mark),
}

/// A piece of device memory, given back to the device when it is dropped.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Of the virtual GPU.
    Vm(vm::Memory),
    /// Of a CUDA device.
    Cuda(cuda::Memory),
}

/// A kernel with everything that its launch needs.
pub(crate) enum Code {
    /// Of the virtual GPU.
    Vm(vm::Code),
    /// Of a CUDA device.
    Cuda(cuda::Code),
}

/// A module that a device has loaded.
pub(crate) enum Module {
    /// Of the virtual GPU.
    Vm(vm::Module),
    /// Of a CUDA device.
    Cuda(cuda::Module),
}

/// A list of operations, ready for replays. A cheap handle.
#[derive(Clone)]
pub(crate) enum Exec {
    /// Of the virtual GPU, which goes through the list.
    Vm(Arc<vm::Replay>),
    /// Of a CUDA device.
    Cuda(Arc<cuda::Replay>),
}

impl Backend {
    /// Loads a module that the verifier has accepted. What is found in its kernels is shown with the lines of `text`.
    pub(crate) fn load(&self, module: &ir::Module, info: &ModuleInfo, text: Option<&str>) -> Result<Module> {
        match self {
            Backend::Vm(worker) => worker.load(module, info, text).map(Module::Vm),
            Backend::Cuda(driver) => driver.load(module, info).map(Module::Cuda),
        }
    }

    /// Blocks of a kernel of so many threads and bytes of dynamic shared memory that a multiprocessor holds; 0 where
    /// no such block runs.
    pub(crate) fn occupancy(&self, module: &Module, kernel: &str, threads: u32, dynamic_shared: u32) -> u32 {
        match (self, module) {
            (Backend::Vm(worker), Module::Vm(module)) => {
                worker.occupancy(module, kernel, threads, dynamic_shared)
            }
            (Backend::Cuda(_), Module::Cuda(module)) => module.occupancy(kernel, threads, dynamic_shared),
            _ => strangers(),
        }
    }

    /// Whether it is a virtual GPU, or a driver over one.
    pub(crate) fn is_virtual(&self) -> bool {
        match self {
            Backend::Vm(_) => true,
            Backend::Cuda(driver) => driver.host_threads().is_some(),
        }
    }

    /// Host threads that run blocks; `None` where no host does.
    pub(crate) fn host_threads(&self) -> Option<u32> {
        match self {
            Backend::Vm(worker) => Some(worker.host_threads()),
            Backend::Cuda(driver) => driver.host_threads(),
        }
    }

    /// Whether the device runs clusters of blocks.
    pub(crate) fn runs_clusters(&self) -> bool {
        match self {
            Backend::Vm(_) => false,
            Backend::Cuda(driver) => driver.runs_clusters(),
        }
    }

    /// Whether reads of memory that was never written are looked for.
    pub(crate) fn looks_for_uninitialised(&self) -> bool {
        match self {
            Backend::Vm(worker) => worker.options().checks.init,
            Backend::Cuda(_) => false,
        }
    }

    pub(crate) fn statistics(&self) -> DeviceStatistics {
        match self {
            Backend::Vm(worker) => worker.statistics(),
            Backend::Cuda(driver) => driver.statistics(),
        }
    }

    /// The report of the last launch, where there are reports.
    pub(crate) fn last_report(&self) -> Option<Arc<Report>> {
        match self {
            Backend::Vm(worker) => worker.last_report(),
            Backend::Cuda(_) => None,
        }
    }

    /// What was found, where something is looked for.
    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        match self {
            Backend::Vm(worker) => worker.take_findings(),
            Backend::Cuda(_) => Vec::new(),
        }
    }
}

/// Memory.
impl Backend {
    /// New memory of exactly that many bytes, which are not initialised, for what a stream does next. `Ok(None)` where
    /// there is no room.
    pub(crate) fn allocate(&self, bytes: u64, stream: &StreamState) -> Result<Option<Arc<Memory>>> {
        match self {
            Backend::Vm(worker) => Ok(worker.allocate(bytes)?.map(|memory| Arc::new(Memory::Vm(memory)))),
            Backend::Cuda(driver) => {
                let memory = driver.allocate(bytes, stream, stream.cuda())?;
                Ok(memory.map(|memory| Arc::new(Memory::Cuda(memory))))
            }
        }
    }

    /// New memory of the host's, zero, which the device sees.
    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Arc<Memory>>> {
        match self {
            Backend::Vm(worker) => {
                Ok(worker.allocate_mapped(bytes)?.map(|memory| Arc::new(Memory::Vm(memory))))
            }
            Backend::Cuda(driver) => {
                Ok(driver.allocate_mapped(bytes)?.map(|memory| Arc::new(Memory::Cuda(memory))))
            }
        }
    }

    /// Waits until everything is complete, and what it held is free again.
    pub(crate) fn reclaim(&self) -> Result<()> {
        match self {
            Backend::Vm(_) => {
                self.pass_all();
                Ok(())
            }
            Backend::Cuda(driver) => driver.reclaim(),
        }
    }

    /// Bytes of memory that nobody has.
    pub(crate) fn free_memory(&self) -> Result<u64> {
        match self {
            Backend::Vm(worker) => Ok(worker.device().free_memory()),
            Backend::Cuda(driver) => driver.free_memory(),
        }
    }

    /// Gives memory back that operations until these points may use, and no others. On a virtual GPU they hold it
    /// themselves.
    pub(crate) fn release(&self, memory: Arc<Memory>, uses: &[Point]) {
        match &*memory {
            Memory::Vm(_) => {}
            Memory::Cuda(memory) => memory.used_by(uses.iter().map(|point| point.stream)),
        }
    }

    /// What the memory holds means nothing any more, for what a stream does next: it has a new owner.
    pub(crate) fn forget(&self, memory: Arc<Memory>, stream: &StreamState) {
        match self {
            Backend::Vm(worker) => worker.forget(memory, stream.vm()),
            // Nothing is known of its bytes.
            Backend::Cuda(_) => {}
        }
    }

    /// Copies bytes of the host, as many as the place has, in the order of a stream. The slice is free when this
    /// returns.
    pub(crate) fn upload(&self, data: &[u8], target: Place, stream: &StreamState) {
        match self {
            Backend::Vm(worker) => worker.upload(data, target, stream.vm()),
            Backend::Cuda(driver) => driver.upload(data, &target, stream, stream.cuda()),
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
            Backend::Vm(worker) => worker.download(operation, source, stream.vm(), target),
            Backend::Cuda(driver) => driver.download(operation, &source, stream, stream.cuda(), target),
        }
    }
}

/// Operations and what becomes of them.
impl Backend {
    /// A new stream of that number, which no other one of the device ever has.
    pub(crate) fn new_stream(&self, id: u64) -> Result<StreamHandle> {
        match self {
            Backend::Vm(worker) => Ok(StreamHandle::Vm(worker.new_stream())),
            Backend::Cuda(driver) => driver.new_stream(id).map(StreamHandle::Cuda),
        }
    }

    /// Whether whoever issues an operation of the stream has to say which buffers it uses: somebody else has the stream
    /// too, and may capture the operation.
    pub(crate) fn wants_uses(&self, stream: &StreamState) -> bool {
        match self {
            Backend::Vm(_) => false,
            Backend::Cuda(_) => stream.cuda().is_shared(),
        }
    }

    /// Issues an operation of a stream. `uses` are its buffers, where they are [wanted](Self::wants_uses).
    pub(crate) fn push(&self, op: Op, uses: Option<Vec<AnyBuffer>>, stream: &StreamState) {
        match self {
            Backend::Vm(worker) => worker.push(&op, stream.vm()),
            Backend::Cuda(driver) => driver.push(&op, uses, stream, stream.cuda()),
        }
    }

    /// Copies from a device to another one of the same kind, of which one is `self`, in the order of a stream.
    pub(crate) fn copy_peer(
        &self,
        operation: &'static str,
        source: (&Backend, Place),
        target: (&Backend, Place),
        stream: &StreamState,
    ) -> Result<()> {
        match (self, source, target) {
            (Backend::Vm(worker), (Backend::Vm(_), source), (Backend::Vm(_), target)) => {
                worker.push(&Op::Copy { source, target }, stream.vm());
                Ok(())
            }
            (Backend::Cuda(driver), (Backend::Cuda(reads), source), (Backend::Cuda(writes), target)) => {
                driver.copy_peer((reads, &source), (writes, &target), stream, stream.cuda());
                Ok(())
            }
            _ => Err(RuntimeError::OtherKind { operation }),
        }
    }

    /// Marks the end of what a stream was asked for.
    pub(crate) fn record(&self, stream: &StreamState) -> Mark {
        match self {
            Backend::Vm(worker) => Mark::Vm(worker.record(stream.vm())),
            Backend::Cuda(driver) => Mark::Cuda(driver.record(stream, stream.cuda())),
        }
    }

    /// What the stream is asked for from now on waits for the mark, which may be of another device.
    pub(crate) fn wait_mark(&self, mark: &Mark, stream: &StreamState) -> Result<()> {
        match self {
            Backend::Vm(worker) => {
                worker.wait_mark(mark, stream.vm());
                Ok(())
            }
            Backend::Cuda(driver) => driver.wait_mark(mark, stream, stream.cuda()),
        }
    }

    /// Whether the operations until a point are complete: executed, or skipped after an error.
    pub(crate) fn is_complete(&self, point: Point) -> bool {
        match self {
            Backend::Vm(worker) => worker.is_complete(point),
            Backend::Cuda(driver) => driver.is_complete(point),
        }
    }

    /// Whether what a stream was asked for is complete. If not, it is not put off any longer.
    pub(crate) fn is_idle(&self, stream: &StreamState) -> bool {
        match self {
            Backend::Vm(_) => stream.vm().is_idle(),
            Backend::Cuda(driver) => driver.is_complete(stream.point()),
        }
    }

    /// Waits until what a stream was asked for is complete, and returns the error that nobody was told of.
    pub(crate) fn wait(&self, stream: &StreamState) -> Result<()> {
        match self {
            Backend::Vm(worker) => worker.wait(stream.vm()),
            Backend::Cuda(driver) => driver.wait(stream.cuda()),
        }
    }

    /// Waits until everything before a mark of this device is complete, and returns the error that nobody was told of.
    pub(crate) fn wait_for(&self, mark: &Mark) -> Result<()> {
        match (self, mark) {
            (Backend::Vm(worker), Mark::Vm(mark)) => worker.wait_for(mark),
            (Backend::Cuda(driver), Mark::Cuda(mark)) => driver.wait_for(mark),
            _ => strangers(),
        }
    }

    /// Waits until everything is complete, and returns the error that nobody was told of.
    pub(crate) fn wait_all(&self) -> Result<()> {
        match self {
            Backend::Vm(worker) => worker.wait_all(),
            Backend::Cuda(driver) => driver.wait_all(),
        }
    }

    /// Waits until everything is complete. Who waits for an error finds it still.
    pub(crate) fn pass_all(&self) {
        match self {
            Backend::Vm(worker) => worker.pass_all(),
            Backend::Cuda(driver) => driver.pass_all(),
        }
    }

    /// Errors of operations that calls have returned.
    pub(crate) fn failures(&self) -> u64 {
        match self {
            Backend::Vm(worker) => worker.failures(),
            Backend::Cuda(driver) => driver.failures(),
        }
    }

    /// Makes a list of operations ready for replays.
    pub(crate) fn instantiate(&self, ops: &[Op]) -> Result<Exec> {
        match self {
            Backend::Vm(worker) => Ok(Exec::Vm(Arc::new(worker.instantiate(ops)))),
            Backend::Cuda(driver) => driver.instantiate(ops).map(Exec::Cuda),
        }
    }

    /// Replays from now on have that launch, of the same kernel, in that place of the list.
    pub(crate) fn update(&self, exec: &Exec, node: usize, launch: &Arc<Launch>) -> Result<()> {
        match (self, exec) {
            (Backend::Vm(_), Exec::Vm(replay)) => {
                replay.update(node, launch);
                Ok(())
            }
            (Backend::Cuda(driver), Exec::Cuda(replay)) => driver.update(replay, node, launch),
            _ => strangers(),
        }
    }
}

/// There are no such bytes in memory of the host's.
fn outside(offset: u64, bytes: usize, len: u64) -> RuntimeError {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    RuntimeError::Range { start: place(offset), end: place(offset).saturating_add(bytes), len: place(len) }
}

/// What is of one device has met another one, which callers have made sure that it does not.
fn strangers() -> ! {
    unreachable!("what is of one device is given to another one")
}

impl StreamState {
    /// The stream as CUDA devices have it.
    fn cuda(&self) -> &cuda::StreamHandle {
        match &self.handle {
            StreamHandle::Cuda(handle) => handle,
            StreamHandle::Vm(_) => strangers(),
        }
    }

    /// The stream as virtual GPUs have it.
    pub(crate) fn vm(&self) -> &vm::StreamHandle {
        match &self.handle {
            StreamHandle::Vm(handle) => handle,
            StreamHandle::Cuda(_) => strangers(),
        }
    }
}

impl Mark {
    /// Whether everything before it is complete.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Mark::Vm(mark) => {
                mark.ask();
                mark.is_reached()
            }
            Mark::Cuda(mark) => mark.is_complete(),
        }
    }

    /// The time on the device from an earlier mark of the same device to this one; `None` where one is not complete, or
    /// was skipped.
    pub(crate) fn elapsed(&self, earlier: &Mark) -> Result<Option<Duration>> {
        match (self, earlier) {
            (Mark::Vm(mark), Mark::Vm(earlier)) => Ok(mark.elapsed_since(earlier)),
            (Mark::Cuda(mark), Mark::Cuda(earlier)) => Ok(mark.elapsed(earlier)?),
            _ => strangers(),
        }
    }
}

impl Module {
    /// What a kernel is like, of which the module declares that.
    pub(crate) fn attributes(&self, kernel: &str, declared: FunctionAttributes) -> FunctionAttributes {
        match self {
            Module::Vm(module) => module.attributes(kernel, declared),
            Module::Cuda(module) => {
                module.kernel(kernel).map_or(declared, |kernel| kernel.attributes().clone())
            }
        }
    }

    /// Lets launches of a kernel have that much dynamic shared memory, which the device may have.
    pub(crate) fn allow_dynamic_shared(&self, kernel: &str, bytes: u32) -> Result<()> {
        match self {
            Module::Vm(_) => Ok(()),
            Module::Cuda(module) => module.allow_dynamic_shared(kernel, bytes),
        }
    }

    /// A launch of a kernel that the module has, as the device takes it.
    pub(crate) fn code(
        self: &Arc<Self>,
        kernel: &Arc<str>,
        shape: Shape,
        params: impl Iterator<Item = Param>,
    ) -> Code {
        match &**self {
            Module::Vm(module) => Code::Vm(module.code(kernel, shape, params)),
            Module::Cuda(module) => Code::Cuda(cuda::Code::new(self, module, kernel, shape, params)),
        }
    }
}

impl Exec {
    /// The graph as virtual GPUs have it.
    pub(crate) fn vm(&self) -> &vm::Replay {
        match self {
            Exec::Vm(replay) => replay,
            Exec::Cuda(_) => strangers(),
        }
    }

    /// The graph as CUDA devices have it.
    pub(crate) fn cuda(&self) -> &cuda::Replay {
        match self {
            Exec::Cuda(replay) => replay,
            Exec::Vm(_) => strangers(),
        }
    }
}

impl Code {
    /// The kernel as virtual GPUs have it.
    pub(crate) fn vm(&self) -> &vm::Code {
        match self {
            Code::Vm(code) => code,
            Code::Cuda(_) => strangers(),
        }
    }

    /// The kernel as CUDA devices have it.
    pub(crate) fn cuda(&self) -> &cuda::Code {
        match self {
            Code::Cuda(code) => code,
            Code::Vm(_) => strangers(),
        }
    }
}

impl Memory {
    /// The memory as virtual GPUs have it.
    pub(crate) fn vm(&self) -> &vm::Memory {
        match self {
            Memory::Vm(memory) => memory,
            Memory::Cuda(_) => strangers(),
        }
    }

    /// Address on the device.
    pub(crate) fn address(&self) -> u64 {
        match self {
            Memory::Vm(memory) => memory.address(),
            Memory::Cuda(memory) => memory.address(),
        }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Memory::Vm(memory) => memory.bytes(),
            Memory::Cuda(memory) => memory.bytes(),
        }
    }

    /// What is there now, as one value. The memory is the host's, mapped.
    pub(crate) fn peek(&self, offset: u64, value: &mut [u8]) -> Result<()> {
        match self {
            Memory::Vm(memory) => memory.peek(offset, value),
            Memory::Cuda(memory) if value.is_empty() || memory.peek(offset, value) => Ok(()),
            Memory::Cuda(memory) => Err(outside(offset, value.len(), memory.bytes())),
        }
    }

    /// Changes what is there now, as one value. The memory is the host's, mapped.
    pub(crate) fn poke(&self, offset: u64, value: &[u8]) -> Result<()> {
        match self {
            Memory::Vm(memory) => memory.poke(offset, value),
            Memory::Cuda(memory) if value.is_empty() || memory.poke(offset, value) => Ok(()),
            Memory::Cuda(memory) => Err(outside(offset, value.len(), memory.bytes())),
        }
    }
}
