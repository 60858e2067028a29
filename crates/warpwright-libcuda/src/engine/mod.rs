//! What a device does, and in which order: memory by address, streams, events, errors that stay.
//!
//! One thread of a device does what is asked for on all streams, one operation after the other: always a legal order,
//! and by default that of the calls. What waits, for an event of another device, for a value in memory or for a function
//! of the client's, holds up its own stream and what that one holds up by the rules of the default stream; others go on.
//!
//! **Operations hold what they touch**, so memory and streams that are given back stay until what was asked for before
//! is done. **What fails poisons its context**: nothing of it that comes behind is done, and whoever waits is told.
//! **Addresses are looked up, never followed**: the client's own memory is the one thing that is reached by a pointer,
//! in `bytes`, when the client has just given it or is waiting.

mod bytes;
mod callbacks;
mod copy;
mod event;
mod execute;
mod host;
mod memory;
mod op;
mod order;
mod pool;
mod queue;
mod stream;

pub(crate) use bytes::{Bytes, ClientMemory, Mapping};
pub(crate) use callbacks::{Call, Callbacks};
pub(crate) use copy::{Copy, Layout, Memory as AnyMemory, Side, issue};
pub(crate) use event::{CapturedEvent, EVENTS, Event, Mark, Recorded};
pub(crate) use execute::is_engine_thread;
pub(crate) use host::{Asker, HostKind, HostMemory, hosts};
pub(crate) use memory::{Block, BlockKind};
pub(crate) use op::{
    CallbackFunction, Comparison, HostFunction, Op, Pattern, StreamCallback, Work, record, record_outside,
};
pub(crate) use order::{Chooser, Order};
pub(crate) use pool::{POOLS, Pool};
pub(crate) use queue::Queue;
pub(crate) use stream::{Recorder, STREAMS, Stream, StreamKind};

use crate::state::{Context, config, state};
use crate::types::{CUdevice, Result, Status};
use memory::Memory;
use pool::Pools;
use std::sync::Arc;

/// A device at work.
pub(crate) struct Engine {
    ordinal: CUdevice,
    vm: warpwright_vm::Device,
    queue: Arc<Queue>,
    callbacks: &'static Callbacks,
    memory: Memory,
    pools: Pools,
    streams: stream::Defaults,
}

impl Engine {
    /// Begins to work for a virtual GPU. It goes on as long as the process does.
    pub(crate) fn start(ordinal: CUdevice, vm: warpwright_vm::Device) -> Result<Arc<Engine>> {
        let queue = Arc::new(Queue::new(config()?.order));
        let engine = Arc::new(Engine {
            ordinal,
            vm,
            callbacks: Callbacks::new(format!("cuda-host-{ordinal}")),
            queue,
            memory: Memory::default(),
            pools: Pools::default(),
            streams: stream::Defaults::default(),
        });
        execute::start(&engine)?;
        Ok(engine)
    }

    /// The number of its device.
    pub(crate) fn ordinal(&self) -> CUdevice {
        self.ordinal
    }

    /// The virtual GPU.
    pub(crate) fn vm(&self) -> &warpwright_vm::Device {
        &self.vm
    }

    /// What is to be done.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// What calls the client's functions.
    pub(crate) fn callbacks(&self) -> &'static Callbacks {
        self.callbacks
    }

    /// What was allocated on it.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Its pools.
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Waits for everything that was asked for so far. What is done by its own threads would wait for itself.
    pub(crate) fn drain(&self) {
        if !is_engine_thread() {
            self.queue.wait_all();
        }
    }

    /// Waits for everything that was asked for so far in a context.
    pub(crate) fn drain_context(&self, context: &Context) {
        if !is_engine_thread() {
            self.queue.wait_for(context.id());
        }
    }

    /// A context ends: waits for its work, and gives back what it has.
    pub(crate) fn release(&self, context: &Context) {
        self.drain_context(context);
        self.memory.release(context.id());
        self.streams.release(context.id());
        // Whoever removes a handle first has removed it.
        for handle in STREAMS.handles(|stream| stream.context().id() == context.id()) {
            let _ = STREAMS.remove(handle);
        }
        for handle in EVENTS.handles(|event| event.context().id() == context.id()) {
            let _ = EVENTS.remove(handle);
        }
        hosts().release(context.id());
    }
}

/// The devices that have begun to work.
pub(crate) fn engines() -> Result<Vec<Arc<Engine>>> {
    Ok(state()?.devices().iter().filter_map(|device| device.engine_if_started()).collect())
}

/// The client's functions that streams call must not call the driver: they would wait for themselves.
pub(crate) fn permitted() -> Result<()> {
    if is_engine_thread() { Err(Status::NOT_PERMITTED) } else { Ok(()) }
}

/// The device of a context, at work.
pub(crate) fn of(context: &Context) -> Result<Arc<Engine>> {
    context.device().engine().cloned()
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
