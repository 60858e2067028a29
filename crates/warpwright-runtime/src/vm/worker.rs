//! A virtual GPU with the engine that does what it is asked for.

use super::failures::Failures;
use super::launch::Launches;
use super::{Mark, Memory, StreamHandle, VmConfig};
use crate::backend;
use crate::cuda;
use crate::device::{DeviceStatistics, Properties};
use crate::error::{Result, RuntimeError};
use crate::op::{Launch, Op, Place};
use crate::pool::Point;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use warpwright_device::{
    self as engine, Bytes, Condition, Copy, Engine, HostBytes, Pattern, Signal, StreamKind,
};
use warpwright_vm::{Buffer, Device, DeviceConfig, DeviceError, Finding, Options, Report};

/// Shared memory that a block may have without being allowed more, on every architecture.
const SHARED_PER_BLOCK: u64 = 48 << 10;

/// A virtual GPU at work.
pub(crate) struct Worker {
    engine: Engine,
    failures: Arc<Failures>,
    launches: Arc<Launches>,
    graph_launches: AtomicU64,
}

impl Worker {
    pub(crate) fn new(config: VmConfig) -> Result<Self> {
        let VmConfig { device, options, order } = config;
        let engine = Engine::start("warpwright-queue", Device::new(device)?, order);
        let engine = engine.map_err(DeviceError::Threads)?;
        let failures = Arc::<Failures>::default();
        failures.of(engine.queue());
        let launches = Arc::new(Launches::new(options));
        Ok(Worker { engine, failures, launches, graph_launches: AtomicU64::new(0) })
    }

    /// How its launches run, and what they have left.
    pub(super) fn launches(&self) -> &Arc<Launches> {
        &self.launches
    }

    /// The virtual GPU itself, to load modules and to ask what it can do.
    pub(crate) fn device(&self) -> &Device {
        self.engine.vm()
    }

    /// How its launches run.
    pub(crate) fn options(&self) -> &Options {
        &self.launches.options
    }

    pub(crate) fn properties(&self) -> Properties {
        properties(self.device().config())
    }

    /// Host threads that run blocks.
    pub(crate) fn host_threads(&self) -> u32 {
        self.device().workers()
    }

    pub(crate) fn statistics(&self) -> DeviceStatistics {
        let counts = self.engine.counts();
        DeviceStatistics {
            launches: self.device().launches(),
            graph_launches: self.graph_launches.load(Relaxed),
            copies: counts.copies.load(Relaxed),
            bytes_copied: counts.bytes_copied.load(Relaxed),
            memsets: counts.fills.load(Relaxed),
            bytes_accessed: self.launches.bytes_accessed.load(Relaxed),
            ..DeviceStatistics::default()
        }
    }

    pub(crate) fn last_report(&self) -> Option<Arc<Report>> {
        self.launches.last_report()
    }

    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        self.launches.take_findings()
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Option<Memory>> {
        room(self.device().alloc(to_len(bytes)))
    }

    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Memory>> {
        room(self.device().alloc_mapped(to_len(bytes)))
    }

    pub(crate) fn new_stream(&self) -> StreamHandle {
        engine::Stream::new(self.engine.queue(), self.failures.clone(), StreamKind::NonBlocking)
    }

    pub(crate) fn push(&self, op: &Op, stream: &StreamHandle) {
        if matches!(op, Op::Replay { .. }) {
            self.graph_launches.fetch_add(1, Relaxed);
        }
        stream.submit(operation(op));
    }

    /// Makes a list of operations ready for replays.
    pub(crate) fn instantiate(&self, ops: &[Op]) -> Replay {
        Replay(Mutex::new(ops.iter().map(operation).collect()))
    }

    /// The memory's bytes mean nothing any more.
    pub(crate) fn forget(&self, memory: Arc<backend::Memory>, stream: &StreamHandle) {
        stream.submit(engine::Op::Release(memory));
    }

    /// Copies bytes of the host. They are copied here first, since the stream gets there later.
    pub(crate) fn upload(&self, data: &[u8], target: Place, stream: &StreamHandle) {
        let staged = engine::Memory::Staged(data.into());
        stream.submit(copy(known(&target), staged, target.bytes));
    }

    /// Copies to the host, and waits.
    pub(crate) fn download(
        &self,
        operation: &'static str,
        source: Place,
        stream: &StreamHandle,
        target: &mut [u8],
    ) -> Result<()> {
        let landing = Arc::new(Landing(Mutex::new((vec![0; target.len()], false))));
        let host = engine::Memory::Host(landing.clone());
        let landed = landing.clone();
        stream.submit(copy(host, known(&source), source.bytes));
        self.wait(stream)?;
        let (data, is_there) = &*landed.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_there && !target.is_empty() {
            return Err(RuntimeError::Skipped { operation });
        }
        target.copy_from_slice(data);
        Ok(())
    }

    pub(crate) fn record(&self, stream: &StreamHandle) -> Mark {
        let signal = Signal::new(self.engine.queue());
        stream.submit(engine::Op::Signal(signal.clone()));
        signal
    }

    pub(crate) fn wait_mark(&self, mark: &backend::Mark, stream: &StreamHandle) {
        stream.submit(match mark {
            backend::Mark::Vm(signal) => engine::Op::Wait(signal.clone()),
            backend::Mark::Cuda(mark) => engine::Op::WaitFor(Arc::new(OfCuda(mark.clone()))),
        });
    }

    /// Whether a stream is past a point.
    pub(crate) fn is_complete(&self, point: Point) -> bool {
        self.engine.queue().is_over(point.stream, point.ticket)
    }

    /// Waits until everything is over.
    pub(crate) fn pass_all(&self) {
        self.engine.drain();
    }

    /// Waits until what a stream was asked for is over, and returns the error that nobody was told of.
    pub(crate) fn wait(&self, stream: &StreamHandle) -> Result<()> {
        stream.wait();
        self.failures.tell()
    }

    /// Waits until a mark is reached, and returns the error that nobody was told of.
    pub(crate) fn wait_for(&self, mark: &Mark) -> Result<()> {
        mark.wait();
        self.failures.tell()
    }

    /// Waits until everything is over, and returns the error that nobody was told of.
    pub(crate) fn wait_all(&self) -> Result<()> {
        self.engine.drain();
        self.failures.tell()
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.told()
    }
}

/// An operation as the engine does it.
fn operation(op: &Op) -> engine::Op {
    match op {
        Op::Launch(launch) => engine::Op::Launch(launch.clone()),
        Op::Copy { source, target } => engine::Op::Move { target: bytes(target), source: bytes(source) },
        Op::Fill { target, value } => engine::Op::Fill {
            target: bytes(target),
            pattern: Pattern::of8(*value),
            width: target.bytes,
            height: 1,
            pitch: 0,
        },
        Op::Replay { exec, .. } => engine::Op::Batch(exec.vm().ops(), 0),
    }
}

/// A list of operations that is replayed.
pub(crate) struct Replay(Mutex<Arc<[engine::Op]>>);

impl Replay {
    fn ops(&self) -> Arc<[engine::Op]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replays from now on have that launch in that place of the list.
    pub(crate) fn update(&self, node: usize, launch: &Arc<Launch>) {
        let mut ops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut ops)[node] = engine::Op::Launch(launch.clone());
    }
}

/// Where bytes come to that the host waits for, and whether they have come.
struct Landing(Mutex<(Vec<u8>, bool)>);

impl HostBytes for Landing {
    fn address(&self) -> u64 {
        0
    }

    fn read(&self, _offset: u64, data: &mut [u8]) {
        // Nothing is copied from here.
        data.fill(0);
    }

    fn write(&self, offset: u64, data: &[u8]) {
        let (bytes, is_there) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes[offset as usize..][..data.len()].copy_from_slice(data);
        *is_there = true;
    }
}

/// A CUDA device has come to an event.
struct OfCuda(cuda::Mark);

impl Condition for OfCuda {
    fn holds(&self) -> bool {
        self.0.is_complete()
    }
}

fn copy(target: engine::Memory, source: engine::Memory, bytes: u64) -> engine::Op {
    engine::Op::Copy(Arc::new(Copy::flat(target, source, bytes)))
}

/// The bytes of a range, which keep its memory.
fn bytes(place: &Place) -> Bytes {
    let memory = place.memory.vm();
    Bytes::new(memory.span(place.offset, place.bytes)).kept_by(place.memory.clone())
}

fn known(place: &Place) -> engine::Memory {
    engine::Memory::Known(bytes(place))
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
        bandwidth: None,
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
