//! A virtual device: memory, modules, launches.

mod argument;
mod buffer;
mod bytes;
mod error;
mod placeholder;
mod reserved;
mod span;
mod start;
mod tensor_map;
mod texture;
mod variable;

pub use argument::Arg;
pub use buffer::{Buffer, Element};
pub use error::DeviceError;
pub use placeholder::Placeholder;
pub use reserved::{Claim, Reserved};
pub use span::Span;
pub use start::Running;
pub(crate) use start::{RESERVED_SHARED, RESERVED_SHARED_USED};
pub use tensor_map::{
    Im2col, Im2colMode, TENSOR_MAP_BYTES, TensorElement, TensorInterleave, TensorMap, TensorMapError,
    TensorSwizzle,
};
pub(crate) use tensor_map::{MapField, TENSOR_MAP_ALIGN};
pub use texture::{Array, Surface, Texture};
pub use variable::SavedVariables;

use crate::decode::{ManagedVariable, Unsupported};
use crate::launch::{Executor, LaunchError};
use crate::memory::GlobalMap;
use crate::module::{KernelInfo, Loaded};
use crate::native::Native;
use crate::tensor::TensorCore;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warpwright_ptx::ir::{self, Arch};
use warpwright_ptx::verify::ModuleInfo;

/// The properties of a device: the default ones, and what is set then.
///
/// ```
/// use warpwright_vm::{Device, DeviceConfig, Native};
///
/// let mut config = DeviceConfig::default();
/// config.native = Native::Always;
/// let device = Device::new(config)?;
/// # Ok::<(), warpwright_vm::DeviceError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceConfig {
    /// The architecture that it simulates.
    pub arch: Arch,
    /// Host threads that run blocks; 0 for one per core.
    pub workers: u32,
    /// The arithmetic of its tensor cores; `None` for that of the architecture.
    pub tensor_core: Option<TensorCore>,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Global memory, in bytes.
    pub memory: u64,
    /// The heap of `malloc` in kernels, in bytes; [`Device::set_heap`] changes it.
    pub heap: u64,
    /// Whether kernels are compiled; by default what `WARPWRIGHT_NATIVE` says. `WARPWRIGHT_NATIVE_DEBUG` shows the code
    /// (`perf`, `gdb`, `dump=FOLDER`), `WARPWRIGHT_SIMD` limits the vector instructions (`base`, `avx2`, `avx512`).
    pub native: Native,
    /// The part of the addresses of global memory that it uses: an index, and the number of equal parts. Devices with
    /// different parts of the same number never have memory at the same address; `(0, 1)` is the whole range. An
    /// index that is too large means the last part.
    pub addresses: (u32, u32),
}

impl DeviceConfig {
    /// A card of an architecture: with as many multiprocessors as a common one has. One that is not known has those of
    /// the known one before it.
    pub fn of(arch: Arch) -> Self {
        let multiprocessors = match arch.sm {
            ..53 => 24,
            53 => 1,
            54..61 => 56,
            61 => 28,
            62 => 2,
            63..72 => 80,
            72 => 8,
            73..80 => 40,
            80 => 108,
            81..87 => 82,
            87 | 88 => 16,
            89 => 128,
            90 => 132,
            91..103 => 148,
            103 => 152,
            104..120 => 20,
            121 => 48,
            120.. => 170,
        };
        DeviceConfig {
            arch,
            workers: 0,
            tensor_core: None,
            multiprocessors,
            memory: 64 << 30,
            heap: 8 << 20,
            native: Native::from_env(),
            addresses: (0, 1),
        }
    }
}

impl Default for DeviceConfig {
    fn default() -> Self {
        DeviceConfig::of(Arch::sm(90))
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
    /// Bytes of the heap of `malloc`.
    heap: AtomicU64,
    /// Whether a kernel was loaded that waits for earlier grids.
    grid_waits: AtomicBool,
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
    /// Creates a device. A process can have several.
    pub fn new(config: DeviceConfig) -> Result<Device, DeviceError> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let workers = if config.workers == 0 { cores } else { config.workers };
        let executor = Executor::new(workers).map_err(DeviceError::Threads)?;
        let (index, count) = config.addresses;
        let map = GlobalMap::new(config.memory, index, count);
        let memory = Mutex::new(Memory { map: Arc::new(map) });
        let inner = Inner {
            heap: AtomicU64::new(config.heap),
            config,
            executor,
            workers,
            memory,
            launches: AtomicU64::new(0),
            grid_waits: AtomicBool::new(false),
        };
        Ok(Device { inner: Arc::new(inner) })
    }

    /// Its properties.
    pub fn config(&self) -> &DeviceConfig {
        &self.inner.config
    }

    /// The number of host threads that run blocks.
    pub fn workers(&self) -> u32 {
        self.inner.workers
    }

    /// Loads a module that the verifier has accepted. Managed variables are the device's as others are.
    pub fn load(&self, module: &ir::Module, info: &ModuleInfo) -> Result<Module, DeviceError> {
        self.load_with(module, info, &[])
    }

    /// The same, with managed variables in memory of the host, which each has mapped as large as it is.
    pub fn load_with(
        &self,
        module: &ir::Module,
        info: &ModuleInfo,
        managed: &[ManagedVariable<'_>],
    ) -> Result<Module, DeviceError> {
        let (target, device) = (module.target.arch, self.inner.config.arch);
        if !device.runs(target) {
            return Err(DeviceError::Target { module: target, device });
        }
        let mut memory = self.inner.memory();
        let map = Arc::make_mut(&mut memory.map);
        let before = map.len();
        let loaded = Loaded::new(module, info, map, managed, self.inner.heap.load(Relaxed));
        let loaded = loaded.inspect_err(|_| map.free_variables(before..map.len()))?;
        if loaded.kernels.values().any(|kernel| kernel.waits_for_grids) {
            self.inner.grid_waits.store(true, Relaxed);
        }
        let variables = Variables { device: self.clone(), allocations: before..map.len() };
        Ok(Module { loaded: Arc::new(loaded), variables: Arc::new(variables) })
    }

    /// Loads a module again, with variables of its own that have their first values.
    pub fn load_again(&self, module: &Module) -> Result<Module, DeviceError> {
        let info = warpwright_ptx::verify(&module.loaded.ir).map_err(DeviceError::Invalid)?;
        let again = self.load(&module.loaded.ir, &info)?;
        Ok(match module.text() {
            Some(text) => again.with_text(text),
            None => again,
        })
    }

    /// Changes the size of the heap of `malloc` in kernels, in bytes.
    ///
    /// # Errors
    /// [`DeviceError::HeapInUse`] if kernels have memory of it or had some, [`DeviceError::OutOfMemory`] if the device has
    /// no room for it.
    pub fn set_heap(&self, bytes: u64) -> Result<(), DeviceError> {
        let mut memory = self.inner.memory();
        let map = Arc::make_mut(&mut memory.map);
        if map.heap().is_some_and(|heap| !heap.is_untouched()) {
            return Err(DeviceError::HeapInUse);
        }
        if !map.replace_heap(bytes) {
            return Err(DeviceError::OutOfMemory { asked: bytes, free: map.unused() });
        }
        self.inner.heap.store(bytes, Relaxed);
        Ok(())
    }

    /// Parses, verifies and loads a PTX text.
    pub fn load_ptx(&self, text: &str) -> Result<Module, DeviceError> {
        let module = warpwright_ptx::parse(text).map_err(DeviceError::Invalid)?;
        let info = warpwright_ptx::verify(&module).map_err(DeviceError::Invalid)?;
        self.load(&module, &info).map(|module| module.with_text(text))
    }

    /// Waits until every launch is over.
    pub fn synchronize(&self) {
        self.inner.executor.drain();
    }

    /// Ends the launches that are running or waiting, wherever they are, as [`Running::cancel`] does. Later launches run as
    /// usual.
    pub fn cancel(&self) {
        self.inner.executor.stop();
    }

    /// The number of launches that have begun or are waiting, since the device was created.
    pub fn launches(&self) -> u64 {
        self.inner.launches.load(Relaxed)
    }

    /// Whether a kernel was loaded that contains `griddepcontrol.wait`: launches may overlap then.
    pub fn has_grid_waits(&self) -> bool {
        self.inner.grid_waits.load(Relaxed)
    }

    /// Takes all memory as written that there is. Launches that do not check for
    /// [uninitialised data](crate::Checks::init) do not note what they write: without this, one that does would report
    /// it.
    pub fn assume_written(&self) {
        self.synchronize();
        self.inner.memory().map.assume_written();
    }

    /// The number of bytes of global memory that are free.
    pub fn free_memory(&self) -> u64 {
        self.inner.memory().map.unused()
    }
}

/// A module on a device. Cheap to clone: the clones are one module. Its variables are freed with the last clone.
#[derive(Clone)]
pub struct Module {
    pub(crate) loaded: Arc<Loaded>,
    variables: Arc<Variables>,
}

/// The memory of a module's variables.
struct Variables {
    device: Device,
    /// The numbers of its allocations.
    allocations: Range<usize>,
}

impl Drop for Variables {
    fn drop(&mut self) {
        // Launches that still run have the memory as it was when they began.
        let mut memory = self.device.inner.memory();
        Arc::make_mut(&mut memory.map).free_variables(self.allocations.clone());
    }
}

impl Module {
    /// The same module with the PTX that it was parsed from, so that reports show its lines.
    pub fn with_text(self, text: &str) -> Module {
        self.loaded.text.get_or_init(|| text.into());
        self
    }

    /// The PTX that it was parsed from, if known.
    pub fn text(&self) -> Option<&str> {
        self.loaded.text.get().map(|text| &**text)
    }

    /// The kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelInfo> {
        self.loaded.kernels.values()
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Result<&KernelInfo, DeviceError> {
        self.loaded.kernels.get(name).ok_or_else(|| {
            let mut known: Vec<String> = self.loaded.kernels.keys().cloned().collect();
            known.sort_unstable();
            LaunchError::UnknownKernel { name: name.into(), known }.into()
        })
    }

    /// Whether it has global variables: what a launch leaves in them is there for the next.
    pub fn has_state(&self) -> bool {
        let of_functions = self.loaded.ir.functions().flat_map(|function| &function.variables);
        self.loaded.ir.globals().chain(of_functions).any(|variable| variable.space == ir::Space::Global)
    }

    /// The instructions that the virtual GPU does not support, in the order of the text. Kernels that do not reach
    /// them run.
    pub fn unsupported(&self) -> &[Unsupported] {
        &self.loaded.code.unsupported
    }

    /// Address and size of a global or constant variable.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        self.loaded.variables.get(name).copied()
    }
}
