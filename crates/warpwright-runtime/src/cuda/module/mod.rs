//! Modules of a CUDA device: from verified PTX to kernels that can be launched.
//!
//! ```text
//!  ir::Module ── version the driver accepts ── PTX text ──┬── cache ──────────────────────┬── CUmodule ── kernels
//!                                                         └── compiler ── image ── cache ─┘
//! ```
//!
//! - `version`: the PTX version that the text says.
//! - `compile`: the driver's compiler. `log`: what it says, and which lines of Rust that is about.
//! - `cache/`: images on disk.
//! - `kernel`: a kernel's attributes, shared memory and occupancy.
//!
//! The text has `.loc` directives for the Rust lines of kernels, so the lines in the compiler's log lead there. Running
//! code leads there if line tables are enabled, for profilers and debuggers. **No lock is held while the compiler
//! runs**: threads that load the same module each compile it.

mod cache;
mod compile;
mod error;
mod kernel;
mod log;
mod version;

pub use cache::CubinCache;
pub use error::{JitError, ModuleError};
pub use version::PtxVersionError;

use super::context::{Context, Unbound};
use super::deferred_free::DeferredFree;
use super::error::{CallError, DriverVersion};
use crate::cuda::sys::{self, CUmodule, Status};
use crate::device::DeviceStatistics;
use crate::error::{Result, RuntimeError};
use crate::function::{self, FunctionAttributes};
use cache::{Cache, Key, Platform};
use compile::Refused;
pub(crate) use kernel::Kernel;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use warpwright_ptx::ir::{self, Arch};
use warpwright_ptx::print::{Options, print_with};
use warpwright_ptx::verify::ModuleInfo;

/// What modules are compiled for, and how.
pub(crate) struct Target {
    /// The driver's version.
    pub(crate) driver: DriverVersion,
    /// The device's name.
    pub(crate) device: String,
    /// The device's architecture.
    pub(crate) arch: Arch,
    /// Whether there are tables of lines.
    pub(crate) line_info: bool,
}

/// Loads modules on a device.
pub(crate) struct Loader {
    context: Arc<Context>,
    deferred: Arc<DeferredFree>,
    target: Target,
    build: String,
    cache: Option<Cache>,
    compiled: AtomicU64,
    cached: AtomicU64,
    compile_nanoseconds: AtomicU64,
}

/// A module that a CUDA device has loaded.
pub(crate) struct Module {
    handle: CUmodule,
    context: Arc<Context>,
    deferred: Arc<DeferredFree>,
    kernels: HashMap<String, Kernel>,
    /// What the compiler said; empty where the image was there already.
    log: String,
}

// SAFETY: a module's handle may be used from any thread on which its context is current; every use binds it first.
unsafe impl Send for Module {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Module {}

impl Loader {
    /// For the device of a context.
    pub(crate) fn new(
        context: Arc<Context>,
        deferred: Arc<DeferredFree>,
        target: Target,
        cache: &CubinCache,
    ) -> Self {
        let cache = Cache::open(cache);
        // Drivers of one version of the API have different compilers. Where there is no such file, the version has to do.
        let build = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let (compiled, cached, compile_nanoseconds) = Default::default();
        Loader { context, deferred, target, build, cache, compiled, cached, compile_nanoseconds }
    }

    /// What it has done.
    pub(crate) fn statistics(&self) -> DeviceStatistics {
        DeviceStatistics {
            modules_compiled: self.compiled.load(Relaxed),
            modules_cached: self.cached.load(Relaxed),
            compile_time: Duration::from_nanos(self.compile_nanoseconds.load(Relaxed)),
            ..DeviceStatistics::default()
        }
    }

    /// Loads a module that the verifier has accepted.
    pub(crate) fn load(&self, module: &ir::Module, info: &ModuleInfo) -> Result<Module> {
        let (target, device) = (module.target.arch, self.target.arch);
        if !device.runs(target) {
            return Err(ModuleError::Target { module: target, device }.into());
        }
        let version = version::version_for(module, info, self.target.driver).map_err(ModuleError::from)?;
        let ptx = text(module, version);
        let declared: Vec<(String, FunctionAttributes)> = function::declared(module, info).collect();
        let key = Key::new(&ptx, &self.platform());
        self.context.bind()?;
        let _unbound = Unbound::new();
        if let Some(image) = self.cache.as_ref().and_then(|cache| cache.get(&key)) {
            match self.load_image(&image, &declared) {
                Ok(module) => {
                    self.cached.fetch_add(1, Relaxed);
                    return Ok(module);
                }
                Err(refused) if is_about_image(&refused.error) => self.forget(&key),
                Err(refused) => return Err(refused.error.into()),
            }
        }
        let begin = Instant::now();
        let image = compile::compile(&ptx, self.target.line_info);
        let time = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.compile_nanoseconds.fetch_add(time, Relaxed);
        let loaded = image.and_then(|(image, log)| {
            let mut module = self.load_image(&image, &declared)?;
            module.log = log;
            Ok((module, image))
        });
        let (module, image) = loaded.map_err(|refused| self.refused(&key, &declared, refused, ptx))?;
        self.compiled.fetch_add(1, Relaxed);
        if let Some(cache) = &self.cache {
            cache.put(&key, &image);
        }
        Ok(module)
    }

    /// What images depend on, beside their PTX.
    fn platform(&self) -> Platform<'_> {
        let Target { driver, device, arch, line_info } = &self.target;
        Platform {
            driver: driver.release(),
            build: &self.build,
            device,
            arch: *arch,
            options: compile::options(*line_info),
        }
    }

    fn forget(&self, key: &Key) {
        if let Some(cache) = &self.cache {
            cache.remove(key);
        }
    }

    /// A module from its image, with its kernels.
    fn load_image(&self, image: &[u8], declared: &[(String, FunctionAttributes)]) -> Result<Module, Refused> {
        let handle = compile::load(image)?;
        let (context, deferred) = (self.context.clone(), self.deferred.clone());
        let mut module = Module { handle, context, deferred, kernels: HashMap::new(), log: String::new() };
        for (name, attributes) in declared {
            let kernel = Kernel::of(handle, name, attributes);
            let kernel = kernel.map_err(|error| Refused { error, log: String::new() })?;
            module.kernels.insert(name.clone(), kernel);
        }
        Ok(module)
    }

    /// The error of a text that the driver does not take. What it says of the device, and not of the text, is that.
    fn refused(
        &self,
        key: &Key,
        declared: &[(String, FunctionAttributes)],
        refused: Refused,
        ptx: String,
    ) -> RuntimeError {
        let Refused { error, log } = refused;
        if log.trim().is_empty() && !is_about_image(&error) {
            return error.into();
        }
        let file = self.cache.as_ref().and_then(|cache| cache.keep_refused(key, &ptx));
        let error = JitError {
            kernels: declared.iter().map(|(name, _)| name.clone()).collect(),
            arch: self.target.arch,
            driver: self.target.driver,
            source: error,
            log: log::explained(&log, &ptx),
            ptx,
            file,
        };
        ModuleError::from(Box::new(error)).into()
    }
}

impl Module {
    /// What the compiler said; empty where the image was there already.
    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    /// A kernel; `None` where the module has none of that name.
    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.get(name)
    }

    /// Blocks of a kernel that a multiprocessor holds; 0 where it has no such kernel or blocks.
    pub(crate) fn occupancy(&self, kernel: &str, threads: u32, dynamic_shared: u32) -> u32 {
        let kernel = self.kernel(kernel).filter(|_| self.context.bind().is_ok());
        kernel.and_then(|kernel| kernel.occupancy(threads, dynamic_shared).ok()).unwrap_or(0)
    }

    /// Allows launches of a kernel that much dynamic shared memory.
    pub(crate) fn allow_dynamic_shared(&self, kernel: &str, bytes: u32) -> Result<()> {
        self.context.bind()?;
        match self.kernel(kernel) {
            Some(kernel) => Ok(kernel.allow_dynamic_shared(bytes)?),
            None => Ok(()),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Kernels of it may be running on any stream.
        let loaded = Loaded { context: self.context.clone(), handle: self.handle };
        self.deferred.after(None, Box::new(loaded));
    }
}

/// A module of which no kernel runs any more.
struct Loaded {
    context: Arc<Context>,
    handle: CUmodule,
}

// SAFETY: as for modules.
unsafe impl Send for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nothing else has the handle, and none of its kernels runs. An error is the context's.
            let _ = unsafe { sys::cuModuleUnload(self.handle) };
        }
    }
}

/// The text of a module that says that version.
fn text(module: &ir::Module, version: ir::Version) -> String {
    let options = Options { rust_locations: true };
    compile::sanitise(if module.version == version {
        print_with(module, &options)
    } else {
        print_with(&ir::Module { version, ..module.clone() }, &options)
    })
}

/// Whether an error is about what was to be loaded, and not about the device or its memory.
fn is_about_image(error: &CallError) -> bool {
    [
        Status::INVALID_IMAGE,
        Status::NO_BINARY_FOR_GPU,
        Status::INVALID_PTX,
        Status::UNSUPPORTED_PTX_VERSION,
        Status::INVALID_SOURCE,
        Status::SHARED_OBJECT_SYMBOL_NOT_FOUND,
        Status::SHARED_OBJECT_INIT_FAILED,
        Status::NOT_FOUND,
    ]
    .into_iter()
    .any(|result| error.is(result))
}
