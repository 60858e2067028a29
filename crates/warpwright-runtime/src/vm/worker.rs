//! A virtual GPU with its engine.

use super::failures::Failures;
use super::launch::Launches;
use super::{Memory, VmConfig};
use crate::backend::{self, Backend, EventHandle, Exec, StreamHandle};
use crate::buffer::AnyBuffer;
use crate::device::{DeviceStatistics, Properties};
use crate::error::{Result, RuntimeError};
use crate::lock;
use crate::op::{Launch, MemoryRange, Op};
use crate::pool::Point;
use crate::stream::StreamState;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use warpwright_device::{self as engine, Bytes, Copy, Engine, HostBytes, Pattern, Signal, StreamKind};
use warpwright_vm::{Buffer, Device, DeviceConfig, DeviceError, Finding, Report};

/// The shared memory of a block without opt-in, on every architecture.
const SHARED_PER_BLOCK: u64 = 48 << 10;

/// A virtual GPU with its engine.
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

    /// The options and results of its launches.
    pub(super) fn launches(&self) -> &Arc<Launches> {
        &self.launches
    }

    /// The virtual GPU itself, to load modules and query it.
    pub(crate) fn device(&self) -> &Device {
        self.engine.vm()
    }

    pub(crate) fn properties(&self) -> Properties {
        properties(self.device().config())
    }

    pub(crate) fn host_threads(&self) -> Option<u32> {
        Some(self.device().workers())
    }

    pub(crate) fn runs_clusters(&self) -> bool {
        self.device().config().arch.sm >= 90
    }

    pub(crate) fn looks_for_uninitialised(&self) -> bool {
        self.launches.options.checks.init
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

    pub(crate) fn allocate(&self, bytes: u64, _stream: &StreamState) -> Result<Option<Arc<backend::Memory>>> {
        room(self.device().alloc(to_len(bytes)))
    }

    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Arc<backend::Memory>>> {
        room(self.device().alloc_mapped(to_len(bytes)))
    }

    pub(crate) fn reclaim(&self) -> Result<()> {
        self.engine.drain();
        Ok(())
    }

    pub(crate) fn encode(
        &self,
        map: &warpwright_vm::TensorMap,
    ) -> Result<[u8; warpwright_vm::TENSOR_MAP_BYTES]> {
        Ok(map.to_bytes().map_err(Box::new)?)
    }

    pub(crate) fn free_memory(&self) -> Result<u64> {
        Ok(self.device().free_memory())
    }

    /// Operations hold what they use.
    pub(crate) fn release(&self, _memory: Arc<backend::Memory>, _uses: &[Point]) {}

    pub(crate) fn forget(&self, memory: Arc<backend::Memory>, stream: &StreamState) {
        stream.handle.vm().submit(engine::Op::Release(memory));
    }

    pub(crate) fn new_stream(&self, _id: u64, _priority: i32) -> Result<StreamHandle> {
        let (queue, domain) = (self.engine.queue(), self.failures.clone());
        Ok(StreamHandle::Vm(engine::Stream::new(queue, domain, StreamKind::NonBlocking)))
    }

    pub(crate) fn wants_uses(&self, _stream: &StreamState) -> bool {
        false
    }

    pub(crate) fn push(&self, op: Op, _uses: Option<Vec<AnyBuffer>>, stream: &StreamState) {
        if matches!(op, Op::Replay { .. }) {
            self.graph_launches.fetch_add(1, Relaxed);
        }
        stream.handle.vm().submit(operation(&op));
    }

    pub(crate) fn copy_peer(
        &self,
        operation: &'static str,
        (reads, source): (&Backend, MemoryRange),
        (writes, target): (&Backend, MemoryRange),
        stream: &StreamState,
    ) -> Result<()> {
        let (Backend::Vm(_), Backend::Vm(_)) = (reads, writes) else {
            return Err(RuntimeError::OtherKind { operation });
        };
        self.push(Op::Copy { source, target }, None, stream);
        Ok(())
    }

    pub(crate) fn instantiate(&self, ops: &[Op]) -> Result<Exec> {
        Ok(Exec::Vm(Arc::new(Replay(Mutex::new(ops.iter().map(operation).collect())))))
    }

    pub(crate) fn update(
        &self,
        exec: &Exec,
        node: usize,
        (launch, overlaps): (&Arc<Launch>, bool),
    ) -> Result<()> {
        let mut ops = lock(&exec.vm().0);
        Arc::make_mut(&mut ops)[node] = engine::Op::Launch { launch: launch.clone(), overlaps };
        Ok(())
    }

    /// The bytes are copied here first, since the stream gets there later.
    pub(crate) fn upload(&self, data: &[u8], target: &MemoryRange, stream: &StreamState) {
        let staged = engine::Memory::Staged(data.into());
        stream.handle.vm().submit(copy(known(target), staged, target.bytes));
    }

    pub(crate) fn download(
        &self,
        operation: &'static str,
        source: &MemoryRange,
        stream: &StreamState,
        target: &mut [u8],
    ) -> Result<()> {
        let landing = Arc::new(Landing(Mutex::new((vec![0; target.len()], false))));
        let host = engine::Memory::Host(landing.clone());
        stream.handle.vm().submit(copy(host, known(source), source.bytes));
        self.wait(stream)?;
        let (data, is_there) = &*lock(&landing.0);
        if !is_there && !target.is_empty() {
            return Err(RuntimeError::Skipped { operation });
        }
        target.copy_from_slice(data);
        Ok(())
    }

    pub(crate) fn record(&self, stream: &StreamState) -> EventHandle {
        let signal = Signal::new(self.engine.queue());
        stream.handle.vm().submit(engine::Op::Signal(signal.clone()));
        EventHandle::Vm(signal)
    }

    pub(crate) fn wait_event(&self, event: &EventHandle, stream: &StreamState) -> Result<()> {
        let EventHandle::Vm(signal) = event else {
            return Err(RuntimeError::OtherKind { operation: "wait_event" });
        };
        stream.handle.vm().submit(engine::Op::Wait(signal.clone()));
        Ok(())
    }

    pub(crate) fn is_complete(&self, point: Point) -> bool {
        self.engine.queue().is_over(point.stream, point.ticket)
    }

    pub(crate) fn is_idle(&self, stream: &StreamState) -> bool {
        stream.handle.vm().is_idle()
    }

    pub(crate) fn wait(&self, stream: &StreamState) -> Result<()> {
        stream.handle.vm().wait();
        self.failures.tell()
    }

    pub(crate) fn wait_for(&self, event: &EventHandle) -> Result<()> {
        event.vm().wait();
        self.failures.tell()
    }

    pub(crate) fn wait_all(&self) -> Result<()> {
        self.engine.drain();
        self.failures.tell()
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.told()
    }
}

/// An operation in the engine's form.
fn operation(op: &Op) -> engine::Op {
    match op {
        Op::Launch { launch, overlaps } => engine::Op::Launch { launch: launch.clone(), overlaps: *overlaps },
        Op::Copy { source, target } => engine::Op::Move { target: bytes(target), source: bytes(source) },
        Op::Fill { target, word } => {
            let pattern = match word.size {
                1 => Pattern::of8(word.value as u8),
                2 => Pattern::of16(word.value as u16),
                _ => Pattern::of32(word.value),
            };
            let (width, height) = match word.is_dense() {
                true => (target.bytes, 1),
                false => (word.size, word.count(target.bytes)),
            };
            engine::Op::Fill { target: bytes(target), pattern, width, height, pitch: word.pitch }
        }
        Op::Replay { exec, .. } => engine::Op::Batch(exec.vm().ops(), 0),
    }
}

/// A list of operations that is replayed.
pub(crate) struct Replay(Mutex<Arc<[engine::Op]>>);

impl Replay {
    fn ops(&self) -> Arc<[engine::Op]> {
        lock(&self.0).clone()
    }
}

/// The buffer of a download that the host waits for, and whether it is complete.
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
        let (bytes, is_there) = &mut *lock(&self.0);
        bytes[offset as usize..][..data.len()].copy_from_slice(data);
        *is_there = true;
    }
}

fn copy(target: engine::Memory, source: engine::Memory, bytes: u64) -> engine::Op {
    engine::Op::Copy(Arc::new(Copy::flat(target, source, bytes)))
}

/// The bytes of a range, which keep its memory.
fn bytes(range: &MemoryRange) -> Bytes {
    let memory = range.memory.vm();
    Bytes::new(memory.span(range.offset, range.bytes)).kept_by(range.memory.clone())
}

fn known(range: &MemoryRange) -> engine::Memory {
    engine::Memory::Known(bytes(range))
}

/// The properties of a virtual GPU of that configuration.
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
fn room(memory: Result<Buffer<u8>, DeviceError>) -> Result<Option<Arc<backend::Memory>>> {
    match memory {
        Ok(buffer) => Ok(Some(Arc::new(backend::Memory::Vm(Memory { buffer })))),
        Err(DeviceError::OutOfMemory { .. }) => Ok(None),
        Err(error) => Err(RuntimeError::Vm(error)),
    }
}

/// More than the host can address is more than there is.
fn to_len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
