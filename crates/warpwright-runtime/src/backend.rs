//! What kinds of devices there are: the only place that knows them all.
//!
//! Everything above speaks of operations ([`crate::op`]), memory and tickets. A ticket is the number of an
//! operation on its device, in the order of issue, from 1 on.

use crate::error::Result;
use crate::vm;
use std::sync::Arc;

/// A kind of device, with what it needs to run.
pub(crate) enum Backend {
    /// The virtual GPU.
    Vm(vm::Worker),
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

impl Backend {
    /// New memory of exactly that many bytes, which are not initialised. `Ok(None)` where there is no room.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Option<Arc<Memory>>> {
        let Backend::Vm(worker) = self;
        Ok(worker.allocate(bytes)?.map(|memory| Arc::new(Memory::Vm(memory))))
    }

    /// New memory of the host's, zero, which the device sees.
    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Arc<Memory>>> {
        let Backend::Vm(worker) = self;
        Ok(worker.allocate_mapped(bytes)?.map(|memory| Arc::new(Memory::Vm(memory))))
    }
}

impl Memory {
    /// Address on the device.
    pub(crate) fn address(&self) -> u64 {
        let Memory::Vm(memory) = self;
        memory.address()
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        let Memory::Vm(memory) = self;
        memory.bytes()
    }
}
