//! A device of the driver API at work: memory by address, streams, events and pools with their handles, and the client's
//! functions.
//!
//! What is asked for on streams is done by [`warpwright_device`]; here is what clients see of that. **What fails poisons
//! its context**: nothing of it that comes behind is done, and whoever waits is told. **Addresses are looked up, never
//! followed**: the client's own memory is the one thing that is reached by a pointer, in `bytes`, when the client has
//! just given it or is waiting.

mod bytes;
mod callbacks;
mod copy;
mod event;
mod host;
mod memory;
mod pool;
mod stream;

pub(crate) use bytes::{Mapping, bytes_at, memory_of_any, memory_of_device, memory_of_host};
pub(crate) use callbacks::{Call, CallbackFunction, Callbacks, HostFunction, StreamCallback};
pub(crate) use copy::issue;
pub(crate) use event::{CapturedEvent, EVENTS, Event, Recorded, record, record_outside};
pub(crate) use host::{Asker, HostKind, hosts};
pub(crate) use memory::BlockKind;
pub(crate) use pool::{POOLS, Pool};
pub(crate) use stream::{Recorder, STREAMS, Stream};

use crate::report::log;
use crate::state::{Context, config, state};
use crate::types::{CUdevice, Result, Status};
use callbacks::{ClientCall, ClientFunction};
use memory::Memory;
use pool::Pools;
use std::sync::Arc;
use warpwright_device::{Cause, Failure, Op, Queue, is_engine_thread};
use warpwright_vm::{FaultKind, TrapKind};

/// A device at work.
pub(crate) struct Engine {
    pub(crate) ordinal: CUdevice,
    work: warpwright_device::Engine,
    callbacks: &'static Callbacks,
    pub(crate) memory: Memory,
    pub(crate) pools: Pools,
    streams: stream::Defaults,
}

impl Engine {
    /// Begins to work for a virtual GPU. It goes on as long as the process does.
    pub(crate) fn start(ordinal: CUdevice, vm: warpwright_vm::Device) -> Result<Arc<Engine>> {
        let work = warpwright_device::Engine::start(&format!("cuda-device-{ordinal}"), vm, config()?.order);
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

    /// What is to be done.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        self.work.queue()
    }

    /// A call of a function of the client's.
    pub(crate) fn host_call(&self, function: HostFunction) -> Op {
        Op::Call(Arc::new(ClientCall { callbacks: self.callbacks, function: ClientFunction::Host(function) }))
    }

    /// A call of a function of the client's that is told how a stream of the context fares.
    pub(crate) fn stream_call(&self, context: &Arc<Context>, function: StreamCallback) -> Op {
        let function = ClientFunction::Stream(function, context.clone());
        Op::Call(Arc::new(ClientCall { callbacks: self.callbacks, function }))
    }

    /// Waits for everything that was asked for so far.
    pub(crate) fn drain(&self) {
        self.work.drain();
    }

    /// Waits for everything that was asked for so far in a context.
    pub(crate) fn drain_context(&self, context: &Context) {
        self.work.drain_domain(context.id);
    }

    /// A context ends: waits for its work, and gives back what it has.
    pub(crate) fn release(&self, context: &Context) {
        self.drain_context(context);
        self.memory.release(context.id);
        self.streams.release(context.id);
        // Whoever removes a handle first has removed it.
        for handle in STREAMS.handles(|stream| stream.context.id == context.id) {
            let _ = STREAMS.remove(handle);
        }
        for handle in EVENTS.handles(|event| event.context.id == context.id) {
            let _ = EVENTS.remove(handle);
        }
        hosts().release(context.id);
    }
}

/// The devices that have begun to work.
pub(crate) fn engines() -> Result<Vec<Arc<Engine>>> {
    Ok(state()?.devices.iter().filter_map(|device| device.engine_if_started()).collect())
}

/// The client's functions that streams call must not call the driver: they would wait for themselves.
pub(crate) fn permitted() -> Result<()> {
    if is_engine_thread() { Err(Status::NOT_PERMITTED) } else { Ok(()) }
}

/// The device of a context, at work.
pub(crate) fn of(context: &Context) -> Result<Arc<Engine>> {
    context.device.engine().cloned()
}

/// What the virtual GPU says, in the driver's words.
pub(crate) fn status(error: &warpwright_vm::DeviceError) -> Status {
    use warpwright_vm::DeviceError;
    match error {
        DeviceError::OutOfMemory { .. } => Status::OUT_OF_MEMORY,
        DeviceError::Overlap { .. } => Status::HOST_MEMORY_ALREADY_REGISTERED,
        DeviceError::Threads(_) => Status::OPERATING_SYSTEM,
        _ => Status::INVALID_VALUE,
    }
}

/// What an operation's failure means for its context.
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
