//! A virtual device: memory, modules, launches.

mod variable;

use crate::decode::LoadError;
use crate::launch::{Executor, Launch, LaunchConfig, Options, Report, Schedule, Settings, Shape};
use crate::memory::{Allocation, AllocationKind, GlobalMap};
use crate::module::{KernelInfo, Loaded};
use crate::tensor::TensorCore;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warpwright_ptx::ir::{self, Arch};
use warpwright_ptx::verify::ModuleInfo;

/// Most dynamic shared memory of a block that any architecture has.
const MOST_SHARED: u64 = 228 << 10;

/// What a device is like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceConfig {
    /// The architecture that it stands for.
    pub arch: Arch,
    /// Host threads that run blocks; 0 for one for each core.
    pub workers: u32,
    /// How its tensor cores add; `None` for those of the architecture.
    pub tensor_core: Option<TensorCore>,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Global memory, in bytes.
    pub memory: u64,
    /// The heap of `malloc` in kernels, in bytes.
    pub heap: u64,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        DeviceConfig {
            arch: Arch::sm(90),
            workers: 0,
            tensor_core: None,
            multiprocessors: 132,
            memory: 64 << 30,
            heap: 8 << 20,
        }
    }
}

/// Why something could not be done on a device.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// A module could not be loaded.
    Load(LoadError),
    /// A launch was refused.
    Launch(String),
    /// There is not that much memory.
    OutOfMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A module has no global or constant variable of that name.
    UnknownVariable {
        /// The name.
        name: String,
    },
    /// A copy of the wrong length.
    Length {
        /// Elements of the buffer.
        buffer: usize,
        /// Elements of the slice.
        slice: usize,
    },
    /// The operating system gave no threads.
    Threads(std::io::Error),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Load(error) => write!(f, "cannot load the module: {error}"),
            DeviceError::Launch(message) => f.write_str(message),
            DeviceError::OutOfMemory { asked, free } => {
                write!(f, "{asked} bytes of device memory were asked for, and {free} are free")
            }
            DeviceError::UnknownVariable { name } => {
                write!(f, "the module has no global or constant variable `{name}`")
            }
            DeviceError::Length { buffer, slice } => {
                write!(f, "the buffer has {buffer} elements and the slice {slice}: they must be equal")
            }
            DeviceError::Threads(error) => write!(f, "cannot start host threads: {error}"),
        }
    }
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DeviceError::Load(error) => Some(error),
            DeviceError::Threads(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LoadError> for DeviceError {
    fn from(error: LoadError) -> Self {
        DeviceError::Load(error)
    }
}

/// A virtual GPU. Cheap to clone: the clones are one device.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    config: DeviceConfig,
    executor: Executor,
    workers: u32,
    memory: Mutex<Memory>,
    launches: AtomicU64,
}

struct Memory {
    map: Arc<GlobalMap>,
}

impl Inner {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device {
    /// A device. Several can live in one process.
    pub fn new(config: DeviceConfig) -> Result<Device, DeviceError> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let workers = if config.workers == 0 { cores } else { config.workers };
        let executor = Executor::new(workers).map_err(DeviceError::Threads)?;
        let memory = Mutex::new(Memory { map: Arc::new(GlobalMap::new(config.memory)) });
        let inner = Inner { config, executor, workers, memory, launches: AtomicU64::new(0) };
        Ok(Device { inner: Arc::new(inner) })
    }

    /// What it is like.
    pub fn config(&self) -> &DeviceConfig {
        &self.inner.config
    }

    /// Allocates `len` elements. They are not initialised: the checks say so if a kernel reads them.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        self.alloc_named("", len)
    }

    /// Allocates `len` elements, which are not initialised, under a name for reports.
    pub fn alloc_named<T: Element>(&self, name: &str, len: usize) -> Result<Buffer<T>, DeviceError> {
        let bytes = (len as u64).checked_mul(T::BYTES as u64).unwrap_or(u64::MAX);
        let mut memory = self.inner.memory();
        let error = DeviceError::OutOfMemory { asked: bytes, free: memory.map.unused() };
        let allocation = Arc::make_mut(&mut memory.map).allocate(bytes, AllocationKind::Buffer, name);
        let Some(allocation) = allocation else { return Err(error) };
        drop(memory);
        Ok(Buffer { device: self.clone(), allocation, len, element: PhantomData })
    }

    /// Allocates `len` elements of zero.
    pub fn alloc_zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.alloc(len)?;
        buffer.allocation.written.set_all();
        Ok(buffer)
    }

    /// Allocates a copy of a slice.
    pub fn clone_htod<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.alloc(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// Loads a module that the verifier has accepted.
    pub fn load(&self, module: &ir::Module, info: &ModuleInfo) -> Result<Module, DeviceError> {
        let mut memory = self.inner.memory();
        let map = Arc::make_mut(&mut memory.map);
        let before = map.len();
        let loaded = Loaded::new(module, info, map, self.inner.config.heap);
        let loaded = loaded.inspect_err(|_| map.free_since(before))?;
        Ok(Module { loaded: Arc::new(loaded) })
    }

    /// Launches a kernel, after the launches before it. The launch goes on while the host does.
    pub fn launch(
        &self,
        module: &Module,
        kernel: &str,
        config: &LaunchConfig,
        args: &[Arg],
        options: &Options,
    ) -> Result<Running, DeviceError> {
        let info = module.kernel(kernel)?;
        let shape = self.shape(module, info, config, args)?;
        let mut settings = self.settings(config, options, &shape)?;
        let memory = self.inner.memory().map.clone();
        let memory = if config.cooperative { with_workspace(memory, &mut settings)? } else { memory };
        let number = self.inner.launches.fetch_add(1, Relaxed);
        let launch = Launch::new(
            number,
            module.loaded.clone(),
            info.function,
            memory,
            shape,
            settings,
            self.inner.workers,
        );
        let launch = Arc::new(launch);
        self.inner.executor.submit(launch.clone());
        Ok(Running { launch, device: self.clone() })
    }

    /// Waits until every launch is over.
    pub fn synchronize(&self) {
        self.inner.executor.drain();
    }

    fn settings(
        &self,
        config: &LaunchConfig,
        options: &Options,
        shape: &Shape,
    ) -> Result<Settings, DeviceError> {
        let device = &self.inner.config;
        let per_multiprocessor = residency(shape);
        let residency = u64::from(per_multiprocessor) * u64::from(device.multiprocessors);
        if config.cooperative && shape.blocks() > residency {
            return Err(DeviceError::Launch(format!(
                "a cooperative launch of {} blocks: at most {residency} can be resident ({per_multiprocessor} on \
                 each of {} multiprocessors); launch fewer blocks",
                shape.blocks(),
                device.multiprocessors
            )));
        }
        Ok(Settings {
            checks: options.checks,
            race: options.race,
            seed: match options.schedule {
                Schedule::Parallel => None,
                Schedule::Seeded(seed) => Some(seed),
            },
            counters: options.counters,
            max_instructions: options.max_instructions,
            cooperative: config.cooperative,
            multiprocessors: device.multiprocessors,
            residency,
            workspace: 0,
            tensor_core: device.tensor_core.unwrap_or_else(|| TensorCore::for_arch(device.arch)),
        })
    }

    fn shape(
        &self,
        module: &Module,
        kernel: &KernelInfo,
        config: &LaunchConfig,
        args: &[Arg],
    ) -> Result<Shape, DeviceError> {
        let refuse =
            |message: String| Err(DeviceError::Launch(format!("kernel `{}`: {message}", kernel.name)));
        let grid = <[u32; 3]>::from(config.grid_dim);
        let block = <[u32; 3]>::from(config.block_dim);
        let threads = block.iter().fold(1u64, |product, &n| product.saturating_mul(n.into()));
        if grid.contains(&0) || block.contains(&0) {
            return refuse(format!("grid {grid:?} and block {block:?}: every dimension must be at least 1"));
        }
        if threads > 1024 || block[0] > 1024 || block[1] > 1024 || block[2] > 64 {
            return refuse(format!("a block of {block:?} has {threads} threads: at most 1024 (64 along z)"));
        }
        if grid[0] > 0x7fff_ffff || grid[1] > 65535 || grid[2] > 65535 {
            return refuse(format!("a grid of {grid:?}: at most 2147483647, 65535, 65535"));
        }
        if let Some(required) = kernel.required_block
            && required != block
        {
            return refuse(format!("it runs with blocks of {required:?} (`.reqntid`), not {block:?}"));
        }
        if let Some(most) = kernel.max_threads
            && threads > most.into()
        {
            return refuse(format!("it takes at most {most} threads (`.maxntid`), not {threads}"));
        }
        let shared = kernel.static_shared + u64::from(config.shared_mem_bytes);
        if shared > MOST_SHARED {
            return refuse(format!("{shared} bytes of shared memory: a block has at most {MOST_SHARED}"));
        }
        let loaded = &module.loaded;
        let mut shared_regions = loaded.shared_regions.clone();
        let dynamic = u64::from(config.shared_mem_bytes);
        let mut end = shared_regions.last().map_or(0, |&(start, bytes)| start + bytes);
        if dynamic != 0 {
            shared_regions.push((loaded.dynamic_shared, dynamic));
            end = loaded.dynamic_shared + dynamic;
        }
        let params = match params(kernel, args) {
            Ok(params) => params,
            Err(message) => return refuse(message),
        };
        Ok(Shape {
            grid,
            block,
            static_shared: kernel.static_shared,
            dynamic_shared: config.shared_mem_bytes,
            shared_words: end.div_ceil(4) as usize,
            shared_regions,
            params,
            param_regions: kernel.params.iter().map(|p| (p.offset.into(), p.bytes.into())).collect(),
        })
    }
}

/// Bytes in which a cooperative grid keeps the state of its barrier.
const WORKSPACE: u64 = 64;

/// The memory that a cooperative launch sees: with room for the state of its grid's barrier, which CUDA's
/// cooperative groups find by `%envreg1` and `%envreg2`.
fn with_workspace(
    mut memory: Arc<GlobalMap>,
    settings: &mut Settings,
) -> Result<Arc<GlobalMap>, DeviceError> {
    let map = Arc::make_mut(&mut memory);
    let room = map.allocate(WORKSPACE, AllocationKind::Buffer, "the state of the grid's barrier");
    let Some(room) = room else { return Err(DeviceError::OutOfMemory { asked: WORKSPACE, free: 0 }) };
    room.write(0, &[0; WORKSPACE as usize]);
    settings.workspace = room.base;
    Ok(memory)
}

/// Blocks of that shape that a multiprocessor holds: by threads, blocks and shared memory.
fn residency(shape: &Shape) -> u32 {
    let by_threads = 2048 / shape.threads().next_multiple_of(32);
    let shared = shape.static_shared + u64::from(shape.dynamic_shared) + 1024;
    let by_shared = (MOST_SHARED + 1024) / shared;
    by_threads.min(32).min(by_shared as u32).max(1)
}

/// The bytes of the parameters.
fn params(kernel: &KernelInfo, args: &[Arg]) -> Result<Vec<u32>, String> {
    if kernel.params.len() != args.len() {
        return Err(format!("it takes {} arguments, and {} are given", kernel.params.len(), args.len()));
    }
    let bytes = kernel.params.last().map_or(0, |param| param.offset + param.bytes);
    let mut out = vec![0u8; bytes.next_multiple_of(4) as usize];
    for (number, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
        let data = arg.bytes();
        if data.len() != param.bytes as usize {
            return Err(format!(
                "argument {number} (`{}`) has {} bytes, and {} are given",
                param.name,
                param.bytes,
                data.len()
            ));
        }
        out[param.offset as usize..][..data.len()].copy_from_slice(&data);
    }
    Ok(out.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// A module on a device.
#[derive(Clone)]
pub struct Module {
    loaded: Arc<Loaded>,
}

impl Module {
    /// The kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelInfo> {
        self.loaded.kernels.values()
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Result<&KernelInfo, DeviceError> {
        self.loaded.kernels.get(name).ok_or_else(|| {
            let mut names: Vec<&str> = self.loaded.kernels.keys().map(String::as_str).collect();
            names.sort_unstable();
            DeviceError::Launch(format!(
                "there is no kernel `{name}` in the module: it has {}",
                names.join(", ")
            ))
        })
    }

    /// Address and size of a global or constant variable.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        self.loaded.variables.get(name).copied()
    }
}

/// A launch that may still be running.
pub struct Running {
    launch: Arc<Launch>,
    /// Its threads go on as long as the device is there.
    device: Device,
}

impl Running {
    /// Waits for its end.
    pub fn wait(self) -> Report {
        self.device.inner.executor.help(&self.launch);
        self.launch.wait();
        self.launch.report()
    }

    /// Whether it is over.
    pub fn is_complete(&self) -> bool {
        self.launch.is_complete()
    }

    /// Ends it where it is.
    pub fn cancel(&self) {
        self.launch.stop();
    }
}

/// A type of the elements of buffers.
pub trait Element: Copy + Send + Sync + 'static {
    /// Its size.
    const BYTES: usize;

    /// Writes it in little-endian order.
    fn put(self, out: &mut [u8]);

    /// Reads it in little-endian order.
    fn get(data: &[u8]) -> Self;
}

macro_rules! element {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            const BYTES: usize = size_of::<$ty>();

            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }

            fn get(data: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$ty>()];
                bytes.copy_from_slice(data);
                <$ty>::from_le_bytes(bytes)
            }
        }
    )*};
}

element!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// Memory of a device, given back when it is dropped.
pub struct Buffer<T> {
    device: Device,
    allocation: Arc<Allocation>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.allocation.base
    }

    /// Copies a slice of the same length in, after the launches so far.
    pub fn write(&self, data: &[T]) -> Result<(), DeviceError> {
        self.device.synchronize();
        self.check(data.len())?;
        let mut bytes = vec![0; T::BYTES * data.len()];
        for (chunk, &value) in bytes.chunks_exact_mut(T::BYTES).zip(data) {
            value.put(chunk);
        }
        self.allocation.write(0, &bytes);
        self.allocation.written.set_all();
        Ok(())
    }

    /// Fills it with zeros, after the launches so far.
    pub fn zero(&self) {
        self.device.synchronize();
        self.allocation.words().iter().for_each(|word| word.store(0, Relaxed));
        self.allocation.written.set_all();
    }

    /// The elements, after the launches so far.
    pub fn read(&self) -> Vec<T> {
        self.device.synchronize();
        let mut bytes = vec![0; T::BYTES * self.len];
        self.allocation.read(0, &mut bytes);
        bytes.chunks_exact(T::BYTES).map(T::get).collect()
    }

    /// An element as it is now, while kernels may be running.
    pub fn peek(&self, index: usize) -> Option<T> {
        let mut bytes = vec![0; T::BYTES];
        (index < self.len).then(|| {
            self.allocation.read((index * T::BYTES) as u64, &mut bytes);
            T::get(&bytes)
        })
    }

    /// Sets an element now, while kernels may be running. Whether there is such an element.
    pub fn poke(&self, index: usize, value: T) -> bool {
        let mut bytes = vec![0; T::BYTES];
        value.put(&mut bytes);
        if index < self.len {
            self.allocation.write((index * T::BYTES) as u64, &bytes);
            self.allocation.written.set((index * T::BYTES) as u64, T::BYTES as u64);
        }
        index < self.len
    }

    fn check(&self, len: usize) -> Result<(), DeviceError> {
        if len == self.len { Ok(()) } else { Err(DeviceError::Length { buffer: self.len, slice: len }) }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let mut memory = self.device.inner.memory();
        Arc::make_mut(&mut memory.map).free(self.allocation.id);
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the type of its name")]
#[non_exhaustive]
pub enum Arg {
    /// The address of memory.
    Pointer(u64),
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    /// The bytes of a structure, or of a type that Rust does not have.
    Bytes(Vec<u8>),
}

impl Arg {
    /// The address of a buffer.
    pub fn buffer<T: Element>(buffer: &Buffer<T>) -> Arg {
        Arg::Pointer(buffer.address())
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Arg::Pointer(v) | Arg::U64(v) => v.to_le_bytes().into(),
            Arg::U8(v) => vec![*v],
            Arg::I8(v) => vec![*v as u8],
            Arg::U16(v) => v.to_le_bytes().into(),
            Arg::I16(v) => v.to_le_bytes().into(),
            Arg::U32(v) => v.to_le_bytes().into(),
            Arg::I32(v) => v.to_le_bytes().into(),
            Arg::I64(v) => v.to_le_bytes().into(),
            Arg::F32(v) => v.to_le_bytes().into(),
            Arg::F64(v) => v.to_le_bytes().into(),
            Arg::Bytes(bytes) => bytes.clone(),
        }
    }
}
