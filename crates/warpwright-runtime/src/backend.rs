//! What kinds of devices there are: the only place that knows them all.
//!
//! Everything above speaks of operations ([`crate::op`]), memory, points and marks. A [`Point`] is a place in the order
//! of a stream: the ticket of an operation is its number on the device, in the order of issue, from 1 on. A
//! [`EventHandle`] is what the device says of an event.
//!
//! What of one device meets what of another only where a stream [waits](Backend::wait_event) for a mark, and in copies
//! between devices; both refuse what is of another kind. Everything else the callers have checked.

use crate::buffer::AnyBuffer;
use crate::contract::Param;
use crate::device::DeviceStatistics;
use crate::error::{Result, RuntimeError};
use crate::function::FunctionAttributes;
use crate::op::{Launch, Op, MemoryRange, Shape};
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

/// Makes enums of what each kind of device has of its own, which say what it is where the kind is known.
macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident { $vm:ty, $cuda:ty })*) => {$(
        $(#[$meta])*
        pub(crate) enum $name {
            /// Of the virtual GPU.
            Vm($vm),
            /// Of a CUDA device.
            Cuda($cuda),
        }

        #[allow(dead_code, reason = "not everything is asked for both")]
        impl $name {
            /// The same as virtual GPUs have it.
            pub(crate) fn vm(&self) -> &$vm {
                match self {
                    $name::Vm(its) => its,
                    $name::Cuda(_) => strangers(),
                }
            }

            /// The same as CUDA devices have it.
            pub(crate) fn cuda(&self) -> &$cuda {
                match self {
                    $name::Cuda(its) => its,
                    $name::Vm(_) => strangers(),
                }
            }
        }
    )*};
}

kinds! {
    /// A stream, as the device has it.
    StreamHandle { vm::StreamHandle, cuda::StreamHandle }

    /// What the device says of an event. A cheap handle.
    #[derive(Clone)]
    EventHandle { vm::EventHandle, cuda::EventHandle }

    /// A piece of device memory, given back to the device when it is dropped.
    #[derive(Debug)]
    Memory { vm::Memory, cuda::Memory }

    /// A kernel with everything that its launch needs.
    Code { vm::Code, cuda::Code }

    /// A module that a device has loaded.
    Module { vm::Module, cuda::Module }

    /// A list of operations, ready for replays. A cheap handle.
    #[derive(Clone)]
    Exec { Arc<vm::Replay>, Arc<cuda::Replay> }
}

/// Makes functions that ask the device, whichever it is: each kind has a function of that name.
macro_rules! ask {
    ($($(#[$meta:meta])* fn $name:ident(&self $(, $arg:ident: $type:ty)*) $(-> $out:ty)?;)*) => {
        impl Backend {$(
            $(#[$meta])*
            pub(crate) fn $name(&self $(, $arg: $type)*) $(-> $out)? {
                match self {
                    Backend::Vm(worker) => worker.$name($($arg),*),
                    Backend::Cuda(driver) => driver.$name($($arg),*),
                }
            }
        )*}
    };
}

ask! {
    /// Loads a module that the verifier has accepted. What is found in its kernels is shown with the lines of `text`.
    fn load(&self, module: &ir::Module, info: &ModuleInfo, text: Option<&str>) -> Result<Module>;

    /// Blocks of a kernel of so many threads and bytes of dynamic shared memory that a multiprocessor holds; 0 where
    /// no such block runs.
    fn occupancy(&self, module: &Module, kernel: &str, threads: u32, dynamic_shared: u32) -> u32;

    /// Host threads that run blocks; `None` where no host does, since the device is no virtual one.
    fn host_threads(&self) -> Option<u32>;

    /// Whether the device runs clusters of blocks.
    fn runs_clusters(&self) -> bool;

    /// Whether reads of memory that was never written are looked for.
    fn looks_for_uninitialised(&self) -> bool;

    fn statistics(&self) -> DeviceStatistics;

    /// The report of the last launch, where there are reports.
    fn last_report(&self) -> Option<Arc<Report>>;

    /// What was found, where something is looked for.
    fn take_findings(&self) -> Vec<Finding>;

    /// New memory of exactly that many bytes, which are not initialised, for what a stream does next. `Ok(None)` where
    /// there is no room.
    fn allocate(&self, bytes: u64, stream: &StreamState) -> Result<Option<Arc<Memory>>>;

    /// New memory of the host's, zero, which the device sees.
    fn allocate_mapped(&self, bytes: u64) -> Result<Option<Arc<Memory>>>;

    /// Waits until everything is complete, and what it held is free again.
    fn reclaim(&self) -> Result<()>;

    /// Bytes of memory that nobody has, in this process or another one.
    fn free_memory(&self) -> Result<u64>;

    /// Gives memory back that operations until these points may use, and no others. On a virtual GPU they hold it
    /// themselves.
    fn release(&self, memory: Arc<Memory>, uses: &[Point]);

    /// What the memory holds means nothing any more, for what a stream does next: it has a new owner.
    fn forget(&self, memory: Arc<Memory>, stream: &StreamState);

    /// Copies bytes of the host, as many as the place has, in the order of a stream. The slice is free when this
    /// returns.
    fn upload(&self, data: &[u8], target: &MemoryRange, stream: &StreamState);

    /// Copies to a slice of as many bytes as the place has, in the order of a stream, and waits for that.
    /// `operation` is what it is called where it is skipped.
    fn download(
        &self, operation: &'static str, source: &MemoryRange, stream: &StreamState, target: &mut [u8]
    ) -> Result<()>;

    /// A new stream of that number, which no other one of the device ever has.
    fn new_stream(&self, id: u64, priority: i32) -> Result<StreamHandle>;

    /// Whether whoever issues an operation of the stream has to say which buffers it uses: somebody else has the stream
    /// too, and may capture the operation.
    fn wants_uses(&self, stream: &StreamState) -> bool;

    /// Issues an operation of a stream. `uses` are its buffers, where they are [wanted](Self::wants_uses).
    fn push(&self, op: Op, uses: Option<Vec<AnyBuffer>>, stream: &StreamState);

    /// Copies from a device to another one of the same kind, of which one is `self`, in the order of a stream.
    fn copy_peer(
        &self, operation: &'static str, source: (&Backend, MemoryRange), target: (&Backend, MemoryRange), stream: &StreamState
    ) -> Result<()>;

    /// Marks the end of what a stream was asked for.
    fn record(&self, stream: &StreamState) -> EventHandle;

    /// What the stream is asked for from now on waits for the mark, which may be of another device of the same kind.
    fn wait_event(&self, event: &EventHandle, stream: &StreamState) -> Result<()>;

    /// Whether the operations until a point are complete: executed, or skipped after an error.
    fn is_complete(&self, point: Point) -> bool;

    /// Whether what a stream was asked for is complete. If not, it is not put off any longer.
    fn is_idle(&self, stream: &StreamState) -> bool;

    /// Waits until what a stream was asked for is complete, and returns the error that nobody was told of.
    fn wait(&self, stream: &StreamState) -> Result<()>;

    /// Waits until everything before a mark of this device is complete, and returns the error that nobody was told of.
    fn wait_for(&self, event: &EventHandle) -> Result<()>;

    /// Waits until everything is complete, and returns the error that nobody was told of.
    fn wait_all(&self) -> Result<()>;

    /// Errors of operations that calls have returned.
    fn failures(&self) -> u64;

    /// Makes a list of operations ready for replays.
    fn instantiate(&self, ops: &[Op]) -> Result<Exec>;

    /// Replays from now on have that launch, of the same kernel, in that place of the list.
    fn update(&self, exec: &Exec, node: usize, launch: &Arc<Launch>) -> Result<()>;
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

impl EventHandle {
    /// Whether everything before it is complete.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            EventHandle::Vm(event) => {
                event.ask();
                event.is_reached()
            }
            EventHandle::Cuda(event) => event.is_complete(),
        }
    }

    /// The time on the device from an earlier mark of the same device to this one; `None` where one is not complete, or
    /// was skipped.
    pub(crate) fn elapsed(&self, earlier: &EventHandle) -> Result<Option<Duration>> {
        match self {
            EventHandle::Vm(event) => Ok(event.elapsed_since(earlier.vm())),
            EventHandle::Cuda(event) => Ok(event.elapsed(earlier.cuda())?),
        }
    }
}

impl Module {
    /// What a kernel is like, of which the module declares that.
    pub(crate) fn attributes(&self, kernel: &str, declared: FunctionAttributes) -> FunctionAttributes {
        match self {
            Module::Vm(module) => module.attributes(kernel, declared),
            Module::Cuda(module) => {
                module.kernel(kernel).map_or(declared, |kernel| kernel.attributes.clone())
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

impl Memory {
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
            Memory::Cuda(memory) if memory.peek(offset, value) => Ok(()),
            Memory::Cuda(memory) => Err(outside(offset, value.len(), memory.bytes())),
        }
    }

    /// Changes what is there now, as one value. The memory is the host's, mapped.
    pub(crate) fn poke(&self, offset: u64, value: &[u8]) -> Result<()> {
        match self {
            Memory::Vm(memory) => memory.poke(offset, value),
            Memory::Cuda(memory) if memory.poke(offset, value) => Ok(()),
            Memory::Cuda(memory) => Err(outside(offset, value.len(), memory.bytes())),
        }
    }
}
