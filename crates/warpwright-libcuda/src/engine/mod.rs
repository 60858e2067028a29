//! The engine of a device of the driver API: memory by address, streams, events and pools with their handles, and the
//! client's functions.
//!
//! [`warpwright_device`] executes the operations of streams; this module is the clients' view of that. **A failure
//! poisons its context**: later operations of it are skipped, and calls that wait return the error. **Addresses are
//! looked up, never followed**: only the client's own memory is accessed by a pointer, in `bytes`, when the client has
//! just passed it or is waiting.

mod array;
mod bytes;
mod callbacks;
mod copy;
mod event;
mod host;
mod memory;
mod multicast;
mod pages;
mod pool;
mod stream;
mod virtual_memory;

pub(crate) use array::{
    ARRAYS, ClientArray, ClientMipmappedArray, MIPMAPPED_ARRAYS, ModuleReference, OBJECTS, Object,
    ObjectKind, REFERENCES, Settings, array, flags as array_flags, handle_of_array, mipmapped_array,
};
pub(crate) use bytes::{
    Mapping, bytes_at, explain_free, is_allocated, memory_of_any, memory_of_device, memory_of_host,
};
pub(crate) use callbacks::{Call, CallbackFunction, Callbacks, HostFunction, StreamCallback};
pub(crate) use copy::issue;
pub(crate) use event::{CapturedEvent, EVENTS, Event, Recorded, record, record_outside};
pub(crate) use host::{Asker, HostKind, ManagedVariable, hosts};
pub(crate) use memory::{Block, BlockKind, GraphMemory};
pub(crate) use multicast::Multicast;
pub(crate) use pool::{POOLS, Pool, Usage};
pub(crate) use stream::{Recorder, STREAMS, Stream};
pub(crate) use virtual_memory::{
    GRANULARITY, Mappable, PHYSICAL, Physical, import, release as release_physical, reservations,
};

use crate::report::log;
use crate::state::{Context, settings, state};
use crate::types::{CUdevice, Result, Status};
use callbacks::{ClientCall, ClientFunction};
use memory::Memory;
use pool::Pools;
use std::sync::Arc;
use warpwright_device::{Cause, Failure, Op, Order, Queue, is_engine_thread};
use warpwright_vm::{FaultKind, TrapKind};

/// The engine of a device.
pub(crate) struct Engine {
    pub(crate) ordinal: CUdevice,
    work: warpwright_device::Engine,
    callbacks: &'static Callbacks,
    pub(crate) memory: Memory,
    pub(crate) pools: Pools,
    streams: stream::Defaults,
}

impl Engine {
    /// Starts an engine for a virtual GPU. It runs as long as the process.
    pub(crate) fn start(ordinal: CUdevice, vm: warpwright_vm::Device) -> Result<Arc<Engine>> {
        let work = warpwright_device::Engine::start(&format!("cuda-device-{ordinal}"), vm, settings()?.order);
        let work = work.map_err(|error| {
            log::note(&error);
            Status::OPERATING_SYSTEM
        })?;
        Ok(Arc::new(Engine {
            ordinal,
            work,
            callbacks: Callbacks::new(format!("cuda-host-{ordinal}")),
            memory: Memory::default(),
            pools: Pools::default(),
            streams: stream::Defaults::default(),
        }))
    }

    /// The virtual GPU.
    pub(crate) fn vm(&self) -> &warpwright_vm::Device {
        self.work.vm()
    }

    /// Its queue of operations.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        self.work.queue()
    }

    /// An operation that calls a client's function.
    pub(crate) fn host_call(&self, function: HostFunction) -> Op {
        Op::Call(Arc::new(ClientCall { callbacks: self.callbacks, function: ClientFunction::Host(function) }))
    }

    /// An operation that calls a client's function with the status of a stream of the context.
    pub(crate) fn stream_call(&self, context: &Arc<Context>, function: StreamCallback) -> Op {
        let function = ClientFunction::Stream(function, context.clone());
        Op::Call(Arc::new(ClientCall { callbacks: self.callbacks, function }))
    }

    /// Changes the order in which its streams run.
    pub(crate) fn set_order(&self, order: Order) {
        self.work.queue().set_order(order);
    }

    /// Waits for all operations so far.
    pub(crate) fn drain(&self) {
        self.work.drain();
    }

    /// Waits for all operations of a context so far.
    pub(crate) fn drain_context(&self, context: &Context) {
        self.work.drain_domain(context.id);
    }

    /// Ends a context: waits for its operations, and frees its resources.
    pub(crate) fn release(&self, context: &Context) {
        self.drain_context(context);
        self.memory.release(context.id);
        self.streams.release(context.id);
        // The thread that removes a handle first has removed it.
        for handle in STREAMS.handles(|stream| stream.context.id == context.id) {
            let _ = STREAMS.remove(handle);
        }
        for handle in EVENTS.handles(|event| event.context.id == context.id) {
            let _ = EVENTS.remove(handle);
        }
        hosts().release(context.id);
        array::release(context.id);
    }
}

/// The engines that were started.
pub(crate) fn engines() -> Result<Vec<Arc<Engine>>> {
    Ok(state()?.devices.iter().filter_map(|device| device.engine_if_started()).collect())
}

/// The device of an allocation that is to be freed.
pub(crate) fn owner(address: u64) -> Result<Arc<Engine>> {
    let mut engines = engines()?.into_iter();
    engines.find(|engine| engine.memory.find(address).is_some()).ok_or_else(|| {
        explain_free(address);
        Status::INVALID_VALUE
    })
}

/// Refuses calls of the driver by client functions that a stream calls: they would wait for themselves.
pub(crate) fn permitted() -> Result<()> {
    if is_engine_thread() { Err(Status::NOT_PERMITTED) } else { Ok(()) }
}

/// The engine of a context.
pub(crate) fn of(context: &Context) -> Result<Arc<Engine>> {
    context.device.engine().cloned()
}

/// The driver's status for an error of the virtual GPU.
pub(crate) fn status(error: &warpwright_vm::DeviceError) -> Status {
    use warpwright_vm::DeviceError;
    match error {
        DeviceError::OutOfMemory { .. } => Status::OUT_OF_MEMORY,
        DeviceError::Overlap { .. } => Status::HOST_MEMORY_ALREADY_REGISTERED,
        DeviceError::Threads(_) => Status::OPERATING_SYSTEM,
        _ => Status::INVALID_VALUE,
    }
}

/// The status of a context after a failed operation.
pub(crate) fn status_of(failure: &Failure) -> Status {
    match failure.cause {
        // An error of the driver's own, which an operation came across.
        Cause::OutOfMemory => Status::LAUNCH_OUT_OF_RESOURCES,
        Cause::Refused => Status::LAUNCH_FAILED,
        Cause::Access(FaultKind::Misaligned) => Status::MISALIGNED_ADDRESS,
        Cause::Access(_) | Cause::Released => Status::ILLEGAL_ADDRESS,
        Cause::Trap(kind) => trapped(kind),
        _ => Status::UNKNOWN,
    }
}

fn trapped(kind: TrapKind) -> Status {
    match kind {
        TrapKind::Assertion => Status::ASSERT,
        TrapKind::Deadlock | TrapKind::Budget => Status::LAUNCH_TIMEOUT,
        TrapKind::Unsupported | TrapKind::BadOperand => Status::ILLEGAL_INSTRUCTION,
        TrapKind::BadBranch | TrapKind::BadCall => Status::INVALID_PC,
        TrapKind::BadAtomic => Status::INVALID_ADDRESS_SPACE,
        TrapKind::StackOverflow => Status::HARDWARE_STACK_ERROR,
        _ => Status::LAUNCH_FAILED,
    }
}

/// A status as the failure of an operation.
pub(crate) fn failure(status: Status) -> Box<Failure> {
    let message = format!("the driver refuses with {}", status.0);
    Box::new(Failure { operation: "an operation".into(), launch: None, cause: Cause::Refused, message })
}
