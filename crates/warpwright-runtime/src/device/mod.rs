//! Devices: their properties and resources, and access to their backend.
//!
//! This module holds what all kinds of devices have: streams, the pool, statistics.

mod list;
mod properties;
mod spec;

pub use list::{DeviceInfo, cuda_driver, devices};
pub use properties::{DeviceStatistics, Properties};
pub use spec::{DeviceSpec, Selected};

use crate::backend::{Backend, Memory};
use crate::buffer::{AnyBuffer, Block, Buffer, Element, HostBuffer};
use crate::cuda::{CudaConfig, Driver};
use crate::error::{Result, RuntimeError};
use crate::kernel::Kernels;
use crate::lock;
use crate::pool::{Free, Point, Pool, PoolStatistics};
use crate::stream::{self, Stream, StreamState};
use crate::vm::{self, VmConfig};
use cudarc::driver::{CudaContext, CudaStream};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use warpwright_vm::{Finding, Report};

/// The default of [`Device::set_release_threshold`].
pub(crate) const RELEASE_THRESHOLD: u64 = 1 << 30;

/// A device. A cheap handle: its clones are one device, and equal.
///
/// Buffers, streams and events are handles of their device too. The device is dropped with its last handle. A virtual
/// GPU then skips the operations that it has not executed, since nothing is left that could observe them. A CUDA device
/// executes them, and the host does not wait.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

/// The number of devices that this process has had.
static DEVICES: AtomicU64 = AtomicU64::new(0);

struct Inner {
    /// Its number in this process.
    number: u64,
    backend: Backend,
    properties: Properties,
    pool: Mutex<Pool<Arc<Memory>>>,
    default_state: Arc<StreamState>,
    /// Weak, since streams hold their device.
    default_stream: Mutex<Weak<stream::Inner>>,
    streams: AtomicU64,
    kernels: Kernels,
}

impl Device {
    /// Opens the best available device, and says why it was chosen.
    pub fn auto() -> Result<Selected> {
        DeviceSpec::Auto.select()
    }

    /// Opens the device that `spec` names.
    pub fn open(spec: DeviceSpec) -> Result<Device> {
        Ok(spec.select()?.device)
    }

    /// Creates a virtual GPU.
    pub fn vm(config: VmConfig) -> Result<Device> {
        let worker = vm::Worker::new(config)?;
        let properties = worker.properties();
        Device::new(Backend::Vm(worker), properties, RELEASE_THRESHOLD)
    }

    /// Opens the CUDA device of that number, with the defaults of [`CudaConfig::new`].
    ///
    /// Refused if there is no CUDA driver or no such device, or if either is too old: the
    /// [`CudaError`](crate::CudaError) says what was found and what is needed.
    pub fn cuda(ordinal: u32) -> Result<Device> {
        Device::cuda_with(CudaConfig::new(ordinal))
    }

    /// Opens a CUDA device. Several handles of one number share the device's memory and its primary context, and
    /// nothing else.
    pub fn cuda_with(config: CudaConfig) -> Result<Device> {
        let driver = Driver::open(&config)?;
        let properties = driver.properties().clone();
        Device::new(Backend::Cuda(Box::new(driver)), properties, config.release_threshold)
    }

    /// The CUDA device of an existing context, with the given stream as its default stream.
    pub(crate) fn cuda_of(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Device> {
        let driver = Driver::of(context, stream)?;
        let properties = driver.properties().clone();
        Device::new(Backend::Cuda(Box::new(driver)), properties, RELEASE_THRESHOLD)
    }

    fn new(backend: Backend, properties: Properties, release_threshold: u64) -> Result<Device> {
        let default_state = StreamState::new(0, backend.new_stream(0, 0)?);
        let inner = Inner {
            number: DEVICES.fetch_add(1, Relaxed),
            backend,
            properties,
            pool: Mutex::new(Pool::new(release_threshold)),
            default_state: Arc::new(default_state),
            default_stream: Mutex::default(),
            streams: AtomicU64::new(1),
            kernels: Kernels::default(),
        };
        Ok(Device { inner: Arc::new(inner) })
    }

    /// Its properties.
    pub fn properties(&self) -> &Properties {
        &self.inner.properties
    }

    /// The specification that opens the same CUDA device again; of a virtual GPU, another one of the default
    /// configuration.
    pub fn spec(&self) -> DeviceSpec {
        match &self.inner.backend {
            Backend::Vm(_) => DeviceSpec::Vm,
            Backend::Cuda(driver) => DeviceSpec::Cuda(driver.ordinal()),
        }
    }

    /// Whether it is a virtual GPU, directly or behind a CUDA driver. Operations then take longer, and the host is no
    /// slower than the device.
    pub fn is_virtual(&self) -> bool {
        self.host_threads().is_some()
    }

    /// The number of host threads that run the blocks of a virtual GPU: of blocks that wait for one another, at most
    /// that many progress at once. `None` for other devices.
    pub fn host_threads(&self) -> Option<u32> {
        self.inner.backend.host_threads()
    }

    /// The default stream of the device. It is an ordinary stream: others do not wait for it unless asked to.
    pub fn default_stream(&self) -> Stream {
        let mut known = lock(&self.inner.default_stream);
        Stream::upgrade(&known).unwrap_or_else(|| {
            let stream = Stream::new(self.clone(), self.inner.default_state.clone());
            *known = stream.downgrade();
            stream
        })
    }

    /// Creates a stream. Refused if the device has no room for another one.
    pub fn new_stream(&self) -> Result<Stream> {
        self.new_stream_with_priority(0)
    }

    /// Creates a stream of a priority: blocks of its kernels come before those of streams with a larger number. The
    /// default is 0; a priority outside of the device's range is clamped. It is a hint: a virtual GPU has one
    /// [order](crate::Order) for all streams.
    pub fn new_stream_with_priority(&self, priority: i32) -> Result<Stream> {
        let id = self.inner.streams.fetch_add(1, Relaxed);
        let handle = self.inner.backend.new_stream(id, priority)?;
        Ok(Stream::new(self.clone(), Arc::new(StreamState::new(id, handle))))
    }

    /// Waits until the device has finished all operations. Returns the error of an operation that failed, unless
    /// another call has returned it.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.backend.wait_all()
    }

    /// Allocates `len` zeroed elements in host memory that kernels can access.
    pub fn alloc_mapped<T: Element>(&self, len: usize) -> Result<HostBuffer<T>> {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let memory = self.with_room(bytes, |backend| backend.allocate_mapped(bytes))?;
        let block = Block::holding(self.clone(), memory, None, Box::default());
        Ok(HostBuffer::new(Buffer::new(AnyBuffer::new(block, bytes, T::TYPE))))
    }

    /// Counters of the device's work so far.
    pub fn statistics(&self) -> DeviceStatistics {
        self.inner.backend.statistics()
    }

    /// The number of errors of its operations that calls have returned so far. Compare it with an earlier value to
    /// learn whether an operation may have left device memory half written, even if another call returned the error.
    pub fn failures(&self) -> u64 {
        self.inner.backend.failures()
    }

    /// Counters of the pool's work so far.
    pub fn pool_statistics(&self) -> PoolStatistics {
        lock(&self.inner.pool).statistics()
    }

    /// Releases memory of the pool to the device, the oldest blocks first, until the pool keeps at most `keep` bytes.
    pub fn trim_pool(&self, keep: u64) {
        let blocks = lock(&self.inner.pool).trim(keep);
        self.give_back(blocks);
    }

    /// Sets how many bytes of dropped buffers the pool keeps; the default is 1 GiB. Anything beyond is released to the
    /// device at once.
    pub fn set_release_threshold(&self, bytes: u64) {
        let blocks = lock(&self.inner.pool).set_threshold(bytes);
        self.give_back(blocks);
    }

    /// The report of the last complete launch, on a virtual GPU.
    pub fn last_report(&self) -> Option<Arc<Report>> {
        self.inner.backend.last_report()
    }

    /// Takes the findings of a virtual GPU's checks in complete launches since the last call: the first 1024.
    pub fn take_findings(&self) -> Vec<Finding> {
        self.inner.backend.take_findings()
    }

    /// Memory of that size for the next operations of a stream, and whether it was used before.
    pub(crate) fn take(&self, bytes: u64, stream: &StreamState) -> Result<(Arc<Memory>, bool)> {
        let passed = |point: Point| self.inner.backend.is_complete(point);
        if let Some(memory) = lock(&self.inner.pool).take(bytes, stream.id, passed) {
            return Ok((memory, true));
        }
        let memory = self.with_room(bytes, |backend| backend.allocate(bytes, stream))?;
        lock(&self.inner.pool).allocated(bytes);
        Ok((memory, false))
    }

    /// Allocates. If there is no room, cached memory is released first.
    fn with_room(
        &self,
        bytes: u64,
        allocate: impl Fn(&Backend) -> Result<Option<Arc<Memory>>>,
    ) -> Result<Arc<Memory>> {
        if let Some(memory) = allocate(&self.inner.backend)? {
            return Ok(memory);
        }
        let (cached, blocks) = {
            let mut pool = lock(&self.inner.pool);
            (pool.statistics().cached_bytes, pool.trim(0))
        };
        if !blocks.is_empty() {
            self.give_back(blocks);
            if let Some(memory) = allocate(&self.inner.backend)? {
                return Ok(memory);
            }
        }
        // Operations that were issued hold memory that nothing else does. Waiting for them is no use where buffers
        // that live leave no room.
        let capacity = self.inner.properties.memory;
        let live = lock(&self.inner.pool).statistics().live_bytes;
        if live.saturating_add(bytes) <= capacity {
            self.inner.backend.reclaim()?;
            if let Some(memory) = allocate(&self.inner.backend)? {
                return Ok(memory);
            }
        }
        let free = self.inner.backend.free_memory()?;
        Err(RuntimeError::OutOfMemory { asked: bytes, free, live, cached, capacity })
    }

    /// Returns a block to the pool: no operation uses it after these points.
    pub(crate) fn release(&self, memory: Arc<Memory>, home: Point, others: Vec<Point>) {
        let bytes = memory.bytes();
        let blocks = lock(&self.inner.pool).give(memory, bytes, home, others);
        self.give_back(blocks);
    }

    /// Releases mapped memory, which belongs to no pool: no operation uses it after these points.
    pub(crate) fn release_mapped(&self, memory: Arc<Memory>, uses: &[Point]) {
        self.inner.backend.release(memory, uses);
    }

    fn give_back(&self, blocks: Vec<Free<Arc<Memory>>>) {
        give_back(&self.inner.backend, blocks);
    }

    /// Whether reads of uninitialised memory are reported.
    pub(crate) fn looks_for_uninitialised(&self) -> bool {
        self.inner.backend.looks_for_uninitialised()
    }

    /// Its unique number in this process.
    pub(crate) fn number(&self) -> u64 {
        self.inner.number
    }

    /// The kernels that were built for it.
    pub(crate) fn kernels(&self) -> &Kernels {
        &self.inner.kernels
    }

    /// The stream that waits for other devices' uses of a buffer: the one that it was allocated on.
    pub(crate) fn follower(&self, buffer: &AnyBuffer) -> Arc<StreamState> {
        buffer.block().home.as_ref().unwrap_or(&self.inner.default_state).clone()
    }

    /// Its backend.
    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }
}

impl Drop for Inner {
    /// Releases the pool's blocks after the operations of the streams that may use them.
    fn drop(&mut self) {
        let blocks = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner).trim(0);
        give_back(&self.backend, blocks);
    }
}

/// Releases blocks of the pool to the device, without the pool's lock.
fn give_back(backend: &Backend, blocks: Vec<Free<Arc<Memory>>>) {
    for Free { block, mut others, home, .. } in blocks {
        others.push(home);
        backend.release(block, &others);
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.inner.properties.name).finish_non_exhaustive()
    }
}
