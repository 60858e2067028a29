//! A CUDA device as a backend: its parts, and the functions that concern it as a whole.

use super::config::CudaConfig;
use super::context::{self, Context};
use super::deferred_free::DeferredFree;
use super::error::{CallError, check};
use super::event::Spares;
use super::faults::{Faults, Suspects, ends_context};
use super::handles::Stream;
use super::info;
use super::library;
use super::memory::{Allocator, Memory};
use super::module::{Loader, Target};
use super::shutdown;
use super::staging::{Lane, Staging};
use super::sys::{self, CUdevice_attribute as Attribute};
use super::timeline::{StreamHandle, Timeline, Timelines};
use crate::backend;
use crate::device::{DeviceStatistics, Properties};
use crate::error::Result;
use crate::pool::Point;
use crate::stream::StreamState;
use cudarc::driver::{CudaContext, CudaStream};
use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_ptx::ir;
use warpwright_ptx::verify::ModuleInfo;
use warpwright_vm::{Finding, Report};

/// A CUDA device with what it needs to run.
pub(crate) struct Driver {
    pub(super) context: Arc<Context>,
    properties: Properties,
    host_threads: Option<u32>,
    pub(super) sync_launches: bool,
    runs_clusters: bool,
    /// The number of operations issued.
    pub(super) tickets: AtomicU64,
    pub(super) counts: Counts,
    pub(super) faults: Faults,
    pub(super) timelines: Arc<Timelines>,
    pub(super) spares: Arc<Spares>,
    pub(super) staging: Arc<Staging>,
    loader: Loader,
    pub(super) allocator: Allocator,
    pub(super) deferred: Arc<DeferredFree>,
    /// The first stream, if it belongs to cudarc.
    theirs: Option<Arc<CudaStream>>,
}

/// Counts of issued operations.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) launches: AtomicU64,
    pub(super) graph_launches: AtomicU64,
    pub(super) copies: AtomicU64,
    pub(super) bytes_copied: AtomicU64,
    pub(super) memsets: AtomicU64,
}

/// The number of a context's device.
fn ordinal(context: &CudaContext) -> u32 {
    u32::try_from(context.ordinal()).unwrap_or(u32::MAX)
}

impl Driver {
    /// The device of that ordinal, in its primary context.
    pub(crate) fn open(config: &CudaConfig) -> Result<Self> {
        let properties = info::describe(config.ordinal)?.properties;
        Self::new(context::retain(config.ordinal)?, None, properties, config)
    }

    /// The device of an existing context of cudarc, whose stream becomes the first one.
    pub(crate) fn of(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Self> {
        let ordinal = ordinal(&context);
        let properties = info::describe(ordinal)?.properties;
        Self::new(context, Some(stream), properties, &CudaConfig::new(ordinal))
    }

    /// The device of a context.
    fn new(
        context: Arc<CudaContext>,
        theirs: Option<Arc<CudaStream>>,
        properties: Properties,
        config: &CudaConfig,
    ) -> Result<Self> {
        let context = Arc::new(Context::new(context));
        let deferred = Arc::new(DeferredFree::new(&context)?);
        let library = library::open()?;
        let target = Target {
            driver: library.version,
            device: properties.name.clone(),
            arch: properties.arch,
            line_info: config.line_info,
        };
        let loader = Loader::new(context.clone(), deferred.clone(), target, &config.cubin_cache);
        Ok(Driver {
            loader,
            theirs,
            allocator: Allocator::new(&context, &deferred)?,
            staging: Arc::new(Staging::new(&context)),
            runs_clusters: context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0,
            host_threads: library.host_threads(context.device()),
            properties,
            sync_launches: config.sync_launches,
            tickets: AtomicU64::new(0),
            counts: Counts::default(),
            faults: Faults::default(),
            timelines: Arc::default(),
            spares: Arc::default(),
            deferred,
            context,
        })
    }

    /// The device's number.
    pub(crate) fn ordinal(&self) -> u32 {
        ordinal(&self.context.cuda)
    }

    /// Its properties.
    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Host threads that run blocks, where the device is a virtual one.
    pub(crate) fn host_threads(&self) -> Option<u32> {
        self.host_threads
    }

    pub(crate) fn runs_clusters(&self) -> bool {
        self.runs_clusters
    }

    /// A new stream with that number and priority.
    pub(crate) fn new_stream(&self, id: u64, priority: i32) -> Result<backend::StreamHandle> {
        self.timelines.sweep();
        let stream = match &self.theirs {
            Some(theirs) if id == 0 => Stream::theirs(&self.context, theirs.clone()),
            _ => self.answer("a new stream", Stream::new(&self.context, priority))?,
        };
        let stream = Arc::new(stream);
        let timeline = Timeline::new(id, stream.clone(), Lane::new(&self.staging, &stream));
        let handle = StreamHandle::new(Arc::new(timeline), &self.timelines, &self.deferred);
        Ok(backend::StreamHandle::Cuda(handle))
    }

    pub(crate) fn allocate(&self, bytes: u64, state: &StreamState) -> Result<Option<Arc<backend::Memory>>> {
        let timeline = &state.handle.cuda().timeline;
        let mut order = timeline.order();
        // The memory is there behind this point of the stream: no other one has it before.
        self.ticket(&mut order, state);
        let memory = self.allocator.allocate(bytes, timeline.stream(), timeline.id);
        drop(order);
        self.allocated(memory)
    }

    pub(crate) fn allocate_mapped(&self, bytes: u64) -> Result<Option<Arc<backend::Memory>>> {
        self.allocated(self.allocator.allocate_mapped(bytes))
    }

    fn allocated(&self, memory: Result<Option<Memory>, CallError>) -> Result<Option<Arc<backend::Memory>>> {
        let memory = self.answer("an allocation", memory)?;
        Ok(memory.map(|memory| Arc::new(backend::Memory::Cuda(memory))))
    }

    pub(crate) fn release(&self, memory: Arc<backend::Memory>, uses: &[Point]) {
        memory.cuda().used_by(uses.iter().map(|point| point.stream));
    }

    /// Nothing is known of the bytes of memory.
    pub(crate) fn forget(&self, _memory: Arc<backend::Memory>, _stream: &StreamState) {}

    pub(crate) fn looks_for_uninitialised(&self) -> bool {
        false
    }

    pub(crate) fn last_report(&self) -> Option<Arc<Report>> {
        None
    }

    pub(crate) fn take_findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Whether the operations until a point are complete. In a context that is lost everything is.
    pub(crate) fn is_complete(&self, point: Point) -> bool {
        let Some(timeline) = self.timelines.get(point.stream) else { return true };
        timeline.is_complete(point.ticket).unwrap_or_else(|error| {
            self.failed("a query", &error);
            self.faults.is_lost()
        })
    }

    pub(crate) fn is_idle(&self, stream: &StreamState) -> bool {
        self.is_complete(stream.point())
    }

    pub(crate) fn wait(&self, stream: &StreamState) -> Result<()> {
        self.pass(&stream.handle.cuda().timeline);
        self.faults.tell()
    }

    pub(crate) fn wait_all(&self) -> Result<()> {
        self.pass_all();
        self.faults.tell()
    }

    fn pass_all(&self) {
        self.timelines.all().iter().for_each(|timeline| self.pass(timeline));
        self.timelines.sweep();
    }

    pub(crate) fn reclaim(&self) -> Result<()> {
        self.pass_all();
        self.answer("an allocation", self.allocator.reclaim())
    }

    /// Bytes of free memory: not in use by this process or another one.
    pub(crate) fn free_memory(&self) -> Result<u64> {
        self.answer("a query", self.allocator.room())
    }

    /// Encodes a map of tiles.
    pub(crate) fn encode(
        &self,
        map: &warpwright_vm::TensorMap,
    ) -> Result<[u8; warpwright_vm::TENSOR_MAP_BYTES]> {
        self.answer("a tensor map", self.context.bind())?;
        let mut made = sys::TensorMap([0; warpwright_vm::TENSOR_MAP_BYTES]);
        // SAFETY: it writes the map, and reads as many numbers of each kind as the tensor has dimensions, which
        // `check` has seen, or one less; the address is no more than a number.
        let status = unsafe {
            sys::cuTensorMapEncodeTiled(
                &mut made,
                map.element.to_driver().into(),
                map.dims.len() as c_uint,
                map.address as *mut c_void,
                map.dims.as_ptr(),
                map.strides.as_ptr(),
                map.tile.as_ptr(),
                map.steps.as_ptr(),
                map.interleave as c_uint,
                map.swizzle.to_driver().into(),
                0,
                map.nan_fill.into(),
            )
        };
        self.answer("a tensor map", check("cuTensorMapEncodeTiled", status))?;
        Ok(made.0)
    }

    pub(crate) fn load(
        &self,
        module: &ir::Module,
        info: &ModuleInfo,
        _text: Option<&str>,
    ) -> Result<backend::Module> {
        self.loader.load(module, info).map(backend::Module::Cuda)
    }

    pub(crate) fn occupancy(
        &self,
        module: &backend::Module,
        kernel: &str,
        threads: u32,
        dynamic_shared: u32,
    ) -> u32 {
        module.cuda().occupancy(kernel, threads, dynamic_shared)
    }

    fn pass(&self, timeline: &Timeline) {
        if let Err(error) = timeline.wait() {
            self.failed("synchronize", &error);
        }
    }

    /// Notes the error of a call for `what`. No stream is locked.
    pub(super) fn failed(&self, what: &str, error: &CallError) {
        self.faults.add(what, error, || {
            let mut suspects = Suspects::default();
            self.timelines.all().iter().for_each(|timeline| suspects.join(timeline.order().suspects.clone()));
            suspects
        });
    }

    /// The result of a call for `what`. If its error is the first sign that the context has ended, it becomes the error
    /// of a call that waits. No stream is locked.
    pub(super) fn answer<T>(&self, what: &str, result: Result<T, CallError>) -> Result<T> {
        result.or_else(|error| {
            if ends_context(error.code) {
                self.failed(what, &error);
                self.faults.tell()?;
            }
            Err(error.into())
        })
    }

    /// Errors that calls have returned.
    pub(crate) fn failures(&self) -> u64 {
        self.faults.told()
    }

    pub(crate) fn statistics(&self) -> DeviceStatistics {
        let Counts { launches, graph_launches, copies, bytes_copied, memsets } = &self.counts;
        DeviceStatistics {
            launches: launches.load(Relaxed),
            graph_launches: graph_launches.load(Relaxed),
            copies: copies.load(Relaxed),
            bytes_copied: bytes_copied.load(Relaxed),
            memsets: memsets.load(Relaxed),
            ..self.loader.statistics()
        }
    }
}

impl Drop for Driver {
    /// Issued operations cannot be cancelled, and the host does not wait for them here: they may wait for what the
    /// dropping thread does next. Host memory that they may use lives until they are complete, or the process ends.
    fn drop(&mut self) {
        let timelines = self.timelines.all();
        let held = (self.timelines.clone(), self.staging.clone(), self.deferred.clone());
        // A context that is lost does nothing any more.
        if timelines.iter().all(|timeline| timeline.is_idle().unwrap_or(true)) {
            return;
        }
        let wait = move || {
            timelines.iter().for_each(|timeline| drop(timeline.wait()));
            drop((timelines, held));
        };
        shutdown::give_back(wait);
    }
}
