//! What kinds of devices there are: the only place that knows them all.
//!
//! Everything above speaks of operations ([`crate::op`]), memory and tickets. A ticket is the number of an
//! operation on its device, in the order of issue, from 1 on.

use crate::contract::Param;
use crate::device::DeviceStatistics;
use crate::error::Result;
use crate::function::FunctionAttributes;
use crate::op::{Op, Shape};
use crate::stream::StreamState;
use crate::vm;
use std::sync::Arc;
use warpwright_ptx::ir;
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::{Finding, Report};

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

/// A module that a device has loaded.
pub(crate) enum Module {
    /// Of the virtual GPU.
    Vm(vm::Module),
}

impl Backend {
    /// Loads a module that the verifier has accepted.
    pub(crate) fn load(&self, module: &ir::Module, info: &ModuleInfo) -> Result<Module> {
        let Backend::Vm(worker) = self;
        worker.load(module, info).map(Module::Vm)
    }

    /// Blocks of a kernel of so many threads and bytes of dynamic shared memory that a multiprocessor holds; 0 where
    /// no such block runs.
    pub(crate) fn occupancy(&self, module: &Module, kernel: &str, threads: u32, dynamic_shared: u32) -> u32 {
        let (Backend::Vm(worker), Module::Vm(module)) = (self, module);
        worker.occupancy(module, kernel, threads, dynamic_shared)
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

/// Operations and what becomes of them.
impl Backend {
    /// Issues an operation of a stream: its ticket.
    pub(crate) fn push(&self, op: Op, stream: &StreamState) -> u64 {
        let Backend::Vm(worker) = self;
        worker.push(op, stream)
    }

    /// The ticket of the last operation that was issued.
    pub(crate) fn issued(&self) -> u64 {
        let Backend::Vm(worker) = self;
        worker.issued()
    }

    /// Whether an operation is complete: executed, or skipped after an error.
    pub(crate) fn is_complete(&self, ticket: u64) -> bool {
        let Backend::Vm(worker) = self;
        worker.is_complete(ticket)
    }

    /// Waits until an operation is complete.
    pub(crate) fn pass(&self, ticket: u64) {
        let Backend::Vm(worker) = self;
        worker.pass(ticket);
    }

    /// Waits until an operation is complete, and returns the error that nobody was told of.
    pub(crate) fn wait(&self, ticket: u64) -> Result<()> {
        let Backend::Vm(worker) = self;
        worker.wait(ticket)
    }

    /// Errors of operations that calls have returned.
    pub(crate) fn failures(&self) -> u64 {
        let Backend::Vm(worker) = self;
        worker.failures()
    }

    /// A copy of bytes of the host, for an operation.
    pub(crate) fn stage(&self, data: &[u8]) -> Vec<u8> {
        let Backend::Vm(worker) = self;
        worker.stage(data)
    }

    /// What an operation has copied to the host was taken.
    pub(crate) fn unstage(&self, data: Vec<u8>) {
        let Backend::Vm(worker) = self;
        worker.unstage(data);
    }

    /// Whether reads of memory that was never written are looked for.
    pub(crate) fn looks_for_uninitialised(&self) -> bool {
        let Backend::Vm(worker) = self;
        worker.options().checks.init
    }

    pub(crate) fn statistics(&self) -> DeviceStatistics {
        let Backend::Vm(worker) = self;
        worker.statistics()
    }

    /// The report of the last launch, where there are reports.
    pub(crate) fn last_report(&self) -> Option<Arc<Report>> {
        let Backend::Vm(worker) = self;
        worker.last_report()
    }

    /// What was found, where something is looked for.
    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        let Backend::Vm(worker) = self;
        worker.take_findings()
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
        let Module::Vm(module) = self;
        Code::Vm(module.code(kernel, shape, params))
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

    /// What is there now, as one value.
    pub(crate) fn peek(&self, offset: u64, value: &mut [u8]) -> Result<()> {
        let Memory::Vm(memory) = self;
        memory.peek(offset, value)
    }

    /// Changes what is there now, as one value.
    pub(crate) fn poke(&self, offset: u64, value: &[u8]) -> Result<()> {
        let Memory::Vm(memory) = self;
        memory.poke(offset, value)
    }
}
