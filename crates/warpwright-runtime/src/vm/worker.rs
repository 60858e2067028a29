//! The thread that executes what a virtual GPU is asked for, and what others ask it.

use super::execute::{Executor, skip};
use super::mark::{Mark, MarkState};
use super::queue::{Outcome, Queue, Turn};
use super::task::Task;
use super::{Memory, VmConfig};
use crate::backend;
use crate::device::{DeviceStatistics, Properties};
use crate::error::{Failure, Result, RuntimeError};
use crate::op::{Op, Place};
use crate::stream::StreamState;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use warpwright_vm::{Buffer, Device, DeviceConfig, DeviceError, Finding, Options, Report};

/// Shared memory that a block may have without being allowed more, on every architecture.
const SHARED_PER_BLOCK: u64 = 48 << 10;

/// A virtual GPU with the thread that does what it is asked for.
pub(crate) struct Worker {
    queue: Arc<Queue>,
    executor: Arc<Executor>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(crate) fn new(config: VmConfig) -> Result<Self> {
        let device = Device::new(config.device)?;
        let executor = Arc::new(Executor::new(device, config.options));
        let queue = Arc::new(Queue::default());
        let (served, server) = (queue.clone(), executor.clone());
        let thread = std::thread::Builder::new()
            .name("warpwright-queue".into())
            .spawn(move || serve(&served, &server))
            .map_err(DeviceError::Threads)?;
        Ok(Worker { queue, executor, thread: Some(thread) })
    }

    /// The virtual GPU itself, to load modules and to ask what it can do.
    pub(crate) fn device(&self) -> &Device {
        &self.executor.device
    }

    /// How its launches run.
    pub(crate) fn options(&self) -> &Options {
        &self.executor.options
    }

    pub(crate) fn properties(&self) -> Properties {
        properties(self.device().config())
    }

    /// Host threads that run blocks.
    pub(crate) fn host_threads(&self) -> u32 {
        self.device().workers()
    }

    pub(crate) fn statistics(&self) -> DeviceStatistics {
        let counts = &self.executor.counts;
        DeviceStatistics {
            launches: self.device().launches(),
            graph_launches: counts.graph_launches.load(Relaxed),
            copies: counts.copies.load(Relaxed),
            bytes_copied: counts.bytes_copied.load(Relaxed),
            memsets: counts.memsets.load(Relaxed),
            bytes_accessed: counts.bytes_accessed.load(Relaxed),
            ..DeviceStatistics::default()
        }
    }

    pub(crate) fn last_report(&self) -> Option<Arc<Report>> {
        self.executor.last_report()
    }

    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        self.executor.take_findings()
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Option<Memory>> {
        room(self.device().alloc(to_len(bytes)))
    }

    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Memory>> {
        room(self.device().alloc_mapped(to_len(bytes)))
    }

    pub(crate) fn push(&self, op: Op, stream: &StreamState) {
        self.queue.push(Task::Op(op), stream);
    }

    /// The memory's bytes mean nothing any more.
    pub(crate) fn forget(&self, memory: Arc<backend::Memory>, stream: &StreamState) {
        self.queue.push(Task::Forget(memory), stream);
    }

    /// Copies bytes of the host. They are copied here first, since the queue gets there later.
    pub(crate) fn upload(&self, bytes: &[u8], target: Place, stream: &StreamState) {
        let mut data = self.queue.staging();
        data.extend_from_slice(bytes);
        self.queue.push(Task::Upload { data, target }, stream);
    }

    /// Copies to the host, and waits.
    pub(crate) fn download(
        &self,
        operation: &'static str,
        source: Place,
        stream: &StreamState,
        target: &mut [u8],
    ) -> Result<()> {
        let handle = stream.vm();
        let landing = handle.take_landing();
        let ticket = self.queue.push(Task::Download { source, landing: landing.clone() }, stream);
        self.queue.wait(ticket)?;
        let data = landing.lock().unwrap_or_else(PoisonError::into_inner).take();
        let data = data.ok_or(RuntimeError::Skipped { operation })?;
        target.copy_from_slice(&data);
        self.queue.keep(data);
        handle.keep_landing(landing);
        Ok(())
    }

    pub(crate) fn record(&self, stream: &StreamState) -> Mark {
        let state = Arc::new(MarkState::default());
        let ticket = self.queue.push(Task::Record(state.clone()), stream);
        Mark::new(state, ticket)
    }

    pub(crate) fn wait_mark(&self, mark: backend::Mark, stream: &StreamState) {
        self.queue.push(Task::Wait(mark), stream);
    }

    pub(crate) fn issued(&self) -> u64 {
        self.queue.issued()
    }

    pub(crate) fn is_complete(&self, ticket: u64) -> bool {
        self.queue.is_complete(ticket)
    }

    /// Waits until a ticket is complete.
    pub(crate) fn pass(&self, ticket: u64) {
        self.queue.pass(ticket);
    }

    /// Waits until a ticket is complete, and returns the error that nobody was told of.
    pub(crate) fn wait(&self, ticket: u64) -> Result<()> {
        self.queue.wait(ticket)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.queue.told()
    }
}

/// What a virtual GPU of that configuration is like.
pub(crate) fn properties(config: &DeviceConfig) -> Properties {
    let limits = config.arch.limits();
    Properties {
        name: format!("virtual GPU ({})", config.arch),
        arch: config.arch,
        multiprocessors: config.multiprocessors,
        threads_per_multiprocessor: limits.threads,
        blocks_per_multiprocessor: limits.blocks,
        threads_per_block: 1024,
        shared_per_multiprocessor: limits.shared,
        shared_per_block: SHARED_PER_BLOCK,
        shared_per_block_optin: limits.shared_per_block,
        memory: config.memory,
        l2_cache: None,
        driver: None,
    }
}

/// Memory, or that there is none.
fn room(memory: Result<Buffer<u8>, DeviceError>) -> Result<Option<Memory>> {
    match memory {
        Ok(buffer) => Ok(Some(Memory { buffer })),
        Err(DeviceError::OutOfMemory { .. }) => Ok(None),
        Err(error) => Err(RuntimeError::Vm(error)),
    }
}

/// More than the host can address is more than there is.
fn to_len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The life of the thread.
fn serve(queue: &Queue, executor: &Executor) {
    let mut outcome = None;
    while let Some(Turn { task, ticket, skipped, staging }) = queue.next(outcome.take()) {
        let mut error = None;
        if skipped {
            skip(&task);
        } else {
            // A mistake of ours ends the operation, and leaves nobody waiting.
            let result = catch_unwind(AssertUnwindSafe(|| executor.execute(&task, staging, queue)));
            error = result.unwrap_or_else(|_| Err(Box::new(internal()))).err();
        }
        // What it held is given back before anyone is told that it is over.
        let staging = if let Task::Upload { data, .. } = task { Some(data) } else { None };
        outcome = Some(Outcome { ticket, error, staging });
    }
}

fn internal() -> Failure {
    let message = "the runtime failed, which is a mistake in it and not in the program".to_owned();
    Failure::new("an operation", None, message)
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.close().iter().for_each(skip);
        let Some(thread) = self.thread.take() else { return };
        // What the worker drops may hold the last handle of its own device.
        if thread.thread().id() == std::thread::current().id() {
            return;
        }
        // The operation that is being executed may be about to launch: what was launched is ended until there is
        // nothing more.
        while !thread.is_finished() {
            self.executor.device.cancel();
            std::thread::sleep(Duration::from_micros(50));
        }
        // A thread that panicked has nothing to say any more.
        let _ = thread.join();
    }
}
