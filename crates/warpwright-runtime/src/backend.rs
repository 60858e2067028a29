//! The kinds of devices: the only module that knows all of them.
//!
//! The layers above use operations ([`crate::op`]), memory, points and events. A [`Point`] is a point in the order of a
//! stream: the ticket of an operation is its number on the device, in the order of issue, from 1. An [`EventHandle`] is
//! the device's side of an event.
//!
//! Objects of different devices meet only where a stream [waits](Backend::wait_event) for an event, and in copies
//! between devices; both refuse devices of another kind. Callers have checked everything else.

use crate::buffer::AnyBuffer;
use crate::contract::Param;
use crate::device::DeviceStatistics;
use crate::error::{Result, RuntimeError};
use crate::function::FunctionAttributes;
use crate::op::{Launch, MemoryRange, Op, Shape};
use crate::pool::Point;
use crate::stream::StreamState;
use crate::{cuda, vm};
use std::sync::Arc;
use std::time::Duration;
use warpwright_ptx::ir;
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::{Finding, Report};

/// A device of one kind.
pub(crate) enum Backend {
    /// The virtual GPU.
    Vm(vm::Worker),
    /// A CUDA device, boxed since it is large.
    Cuda(Box<cuda::Driver>),
}

/// Defines enums over the kinds of devices.
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
            /// The variant of virtual GPUs.
            pub(crate) fn vm(&self) -> &$vm {
                match self {
                    $name::Vm(its) => its,
                    $name::Cuda(_) => strangers(),
                }
            }

            /// The variant of CUDA devices.
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

    /// A recorded event, as the device has it. A cheap handle.
    #[derive(Clone)]
    EventHandle { vm::EventHandle, cuda::EventHandle }

    /// A piece of device memory, which is freed when it is dropped.
    #[derive(Debug)]
    Memory { vm::Memory, cuda::Memory }

    /// A kernel with everything needed for its launch.
    Code { vm::Code, cuda::Code }

    /// A module that a device has loaded.
    Module { vm::Module, cuda::Module }

    /// A list of operations, prepared for replays. A cheap handle.
    #[derive(Clone)]
    Exec { Arc<vm::Replay>, Arc<cuda::Replay> }
}

/// Defines functions that forward to the kind of device.
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
    /// Loads a verified module. Findings in its kernels show the lines of `text`.
    fn load(&self, module: &ir::Module, info: &ModuleInfo, text: Option<&str>) -> Result<Module>;

    /// The number of blocks of that size, with that much dynamic shared memory, that are resident on a multiprocessor;
    /// 0 if no such block runs.
    fn occupancy(&self, module: &Module, kernel: &str, threads: u32, dynamic_shared: u32) -> u32;

    /// The number of host threads that run blocks; `None` for a device that is not virtual.
    fn host_threads(&self) -> Option<u32>;

    /// What a kernel gets of a tensor map, which breaks no rule.
    fn encode(&self, map: &warpwright_vm::TensorMap) -> Result<[u8; warpwright_vm::TENSOR_MAP_BYTES]>;

    /// Whether the device runs clusters of blocks.
    fn runs_clusters(&self) -> bool;

    /// Whether reads of uninitialised memory are reported.
    fn looks_for_uninitialised(&self) -> bool;

    fn statistics(&self) -> DeviceStatistics;

    /// The report of the last launch, if there are reports.
    fn last_report(&self) -> Option<Arc<Report>>;

    /// Takes the findings, if there are checks.
    fn take_findings(&self) -> Vec<Finding>;

    /// Allocates exactly that many uninitialised bytes for the next operations of a stream. `Ok(None)` if there is no
    /// room.
    fn allocate(&self, bytes: u64, stream: &StreamState) -> Result<Option<Arc<Memory>>>;

    /// Allocates zeroed host memory that the device can access.
    fn allocate_mapped(&self, bytes: u64) -> Result<Option<Arc<Memory>>>;

    /// Waits until everything is complete and its memory is free again.
    fn reclaim(&self) -> Result<()>;

    /// Bytes of free memory: not in use by this process or another one.
    fn free_memory(&self) -> Result<u64>;

    /// Frees memory that only operations until these points may use. On a virtual GPU they hold it themselves.
    fn release(&self, memory: Arc<Memory>, uses: &[Point]);

    /// Marks memory as uninitialised for the next operations of a stream: it has a new owner.
    fn forget(&self, memory: Arc<Memory>, stream: &StreamState);

    /// Copies from a slice of the range's size, in the order of a stream. The slice may be reused when this returns.
    fn upload(&self, data: &[u8], target: &MemoryRange, stream: &StreamState);

    /// Copies to a slice of the range's size, in the order of a stream, and waits for completion. `operation` names it
    /// in errors.
    fn download(
        &self, operation: &'static str, source: &MemoryRange, stream: &StreamState, target: &mut [u8]
    ) -> Result<()>;

    /// Creates a stream with that number, which is unique on the device.
    fn new_stream(&self, id: u64, priority: i32) -> Result<StreamHandle>;

    /// Whether operations of the stream must list their buffers: the stream is shared with another library, which may
    /// capture them.
    fn wants_uses(&self, stream: &StreamState) -> bool;

    /// Issues an operation of a stream. `uses` lists its buffers, if they are [wanted](Self::wants_uses).
    fn push(&self, op: Op, uses: Option<Vec<AnyBuffer>>, stream: &StreamState);

    /// Copies between `self` and another device of the same kind, in the order of a stream.
    fn copy_peer(
        &self, operation: &'static str, source: (&Backend, MemoryRange), target: (&Backend, MemoryRange), stream: &StreamState
    ) -> Result<()>;

    /// Records an event after the operations of a stream.
    fn record(&self, stream: &StreamState) -> EventHandle;

    /// Makes later operations of the stream wait for the event, which may be of another device of the same kind.
    fn wait_event(&self, event: &EventHandle, stream: &StreamState) -> Result<()>;

    /// Whether the operations until a point are complete: executed, or skipped after an error.
    fn is_complete(&self, point: Point) -> bool;

    /// Whether the operations of a stream are complete. If not, they are no longer deferred.
    fn is_idle(&self, stream: &StreamState) -> bool;

    /// Waits until the operations of a stream are complete, and returns an error that no call has returned yet.
    fn wait(&self, stream: &StreamState) -> Result<()>;

    /// Waits until everything before an event of this device is complete, and returns an error that no call has
    /// returned yet.
    fn wait_for(&self, event: &EventHandle) -> Result<()>;

    /// Waits until everything is complete, and returns an error that no call has returned yet.
    fn wait_all(&self) -> Result<()>;

    /// The number of errors of operations that calls have returned.
    fn failures(&self) -> u64;

    /// Prepares a list of operations for replays.
    fn instantiate(&self, ops: &[Op]) -> Result<Exec>;

    /// Replaces a launch in the list, by one of the same kernel, for later replays.
    fn update(&self, exec: &Exec, node: usize, launch: (&Arc<Launch>, bool)) -> Result<()>;
}

/// The error for an access outside of host memory.
fn outside(offset: u64, bytes: usize, len: u64) -> RuntimeError {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    RuntimeError::Range { start: place(offset), end: place(offset).saturating_add(bytes), len: place(len) }
}

/// Objects of different kinds of devices were mixed, which callers have ruled out.
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

    /// The device time from an earlier event of the same device to this one; `None` if one is not complete, or was
    /// skipped.
    pub(crate) fn elapsed(&self, earlier: &EventHandle) -> Result<Option<Duration>> {
        match self {
            EventHandle::Vm(event) => Ok(event.elapsed_since(earlier.vm())),
            EventHandle::Cuda(event) => Ok(event.elapsed(earlier.cuda())?),
        }
    }
}

impl Module {
    /// The attributes of a kernel, given those that the module declares.
    pub(crate) fn attributes(&self, kernel: &str, declared: FunctionAttributes) -> FunctionAttributes {
        match self {
            Module::Vm(module) => module.attributes(kernel, declared),
            Module::Cuda(module) => {
                module.kernel(kernel).map_or(declared, |kernel| kernel.attributes.clone())
            }
        }
    }

    /// What the compiler of a driver said.
    pub(crate) fn compiler_log(&self) -> &str {
        match self {
            Module::Vm(_) => "",
            Module::Cuda(module) => module.log(),
        }
    }

    /// Allows launches of a kernel that much dynamic shared memory, within the device's limit.
    pub(crate) fn allow_dynamic_shared(&self, kernel: &str, bytes: u32) -> Result<()> {
        match self {
            Module::Vm(_) => Ok(()),
            Module::Cuda(module) => module.allow_dynamic_shared(kernel, bytes),
        }
    }

    /// A launch of a kernel of the module, as the device takes it.
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

    /// Reads the current bytes as one value. The memory is mapped host memory.
    pub(crate) fn peek(&self, offset: u64, value: &mut [u8]) -> Result<()> {
        match self {
            Memory::Vm(memory) => memory.peek(offset, value),
            Memory::Cuda(memory) if memory.peek(offset, value) => Ok(()),
            Memory::Cuda(memory) => Err(outside(offset, value.len(), memory.bytes())),
        }
    }

    /// Writes bytes at once as one value. The memory is mapped host memory.
    pub(crate) fn poke(&self, offset: u64, value: &[u8]) -> Result<()> {
        match self {
            Memory::Vm(memory) => memory.poke(offset, value),
            Memory::Cuda(memory) if memory.poke(offset, value) => Ok(()),
            Memory::Cuda(memory) => Err(outside(offset, value.len(), memory.bytes())),
        }
    }
}
