//! Functions: the kernels of modules, their attributes and parameters.

use super::module::{Code, FUNCTIONS};
use crate::report::log;
use crate::types::{CUfunction, CUfunction_attribute as Attribute, CUmodule, Result, Status};
use std::ffi::{CString, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use warpwright_ptx::ir::Arch;
use warpwright_vm::{KernelInfo, KernelParam};

/// Shared memory that a block has without asking for more, in bytes.
pub(super) const SHARED_BY_DEFAULT: u64 = 48 << 10;

/// The most threads of a block.
const MOST_THREADS: u32 = 1024;

/// The most registers of a thread.
const MOST_REGISTERS: u32 = 255;

/// A kernel of a module.
pub(crate) struct Function {
    handle: CUfunction,
    module: CUmodule,
    code: Arc<Code>,
    kernel: KernelInfo,
    /// Its name as clients read it.
    name: CString,
    settings: Settings,
}

/// What a client can set of a function.
struct Settings {
    /// The most dynamic shared memory of a launch, in bytes.
    dynamic_shared: AtomicI32,
    /// The part of the cache that should be shared memory, in percent; −1 to leave it.
    carveout: AtomicI32,
    non_portable_clusters: AtomicI32,
}

impl Settings {
    fn of(kernel: &KernelInfo) -> Self {
        let left = SHARED_BY_DEFAULT.saturating_sub(kernel.static_shared);
        Settings {
            dynamic_shared: AtomicI32::new(left as c_int),
            carveout: AtomicI32::new(-1),
            non_portable_clusters: AtomicI32::new(0),
        }
    }
}

impl Function {
    /// The functions of a module, with their handles.
    pub(super) fn all(code: &Arc<Code>, module: CUmodule) -> Vec<Arc<Function>> {
        let kernels = code.facts().kernels.iter().filter_map(|name| code.vm().kernel(name).ok());
        let make = |kernel: &KernelInfo| {
            // No name in PTX has a zero byte.
            let name = CString::new(kernel.name.as_str()).unwrap_or_default();
            let mut made = None;
            let handle = FUNCTIONS.insert_with(|handle| {
                let function = Arc::new(Function {
                    handle: CUfunction(handle),
                    module,
                    code: code.clone(),
                    settings: Settings::of(kernel),
                    kernel: kernel.clone(),
                    name,
                });
                made.insert(function).clone()
            });
            handle.ok().and(made)
        };
        kernels.filter_map(make).collect()
    }

    /// What clients call it.
    pub(crate) fn handle(&self) -> CUfunction {
        self.handle
    }

    /// Its module's handle.
    pub(crate) fn module(&self) -> CUmodule {
        self.module
    }

    /// The code that it is in.
    pub(crate) fn code(&self) -> &Arc<Code> {
        &self.code
    }

    /// What the virtual GPU knows of it.
    pub(crate) fn kernel(&self) -> &KernelInfo {
        &self.kernel
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.kernel.name
    }

    /// Its name as clients read it, as long as it is loaded.
    pub(crate) fn c_name(&self) -> &CString {
        &self.name
    }

    fn arch(&self) -> Arch {
        self.code.context().device().arch()
    }

    /// The most threads of a block that it runs with.
    pub(crate) fn max_threads(&self) -> u32 {
        max_threads(&self.kernel)
    }

    /// The most dynamic shared memory that a launch may ask for, in bytes.
    pub(crate) fn max_dynamic_shared(&self) -> u64 {
        self.settings.dynamic_shared.load(Relaxed).max(0) as u64
    }

    /// A parameter: its place and size in bytes.
    pub(crate) fn param(&self, index: usize) -> Result<&KernelParam> {
        self.kernel.params.get(index).ok_or(Status::INVALID_VALUE)
    }

    /// The value of an attribute.
    pub(crate) fn attribute(&self, attribute: Attribute) -> Result<c_int> {
        attribute_of(&self.kernel, &self.code, self.arch(), &self.settings, attribute)
    }

    /// Sets an attribute, where it can be set.
    pub(crate) fn set_attribute(&self, attribute: Attribute, value: c_int) -> Result<()> {
        set_attribute(&self.kernel, self.arch(), &self.settings, attribute, value)
    }
}

/// The registers of a kernel, as far as they are known without a compiler that allocates them.
pub(super) fn registers(kernel: &KernelInfo, most: Option<u32>) -> u32 {
    kernel.registers.clamp(1, most.unwrap_or(MOST_REGISTERS).min(MOST_REGISTERS))
}

fn max_threads(kernel: &KernelInfo) -> u32 {
    let required = kernel.required_block.map(|block| block.iter().product());
    required.or(kernel.max_threads).unwrap_or(MOST_THREADS).min(MOST_THREADS)
}

fn attribute_of(
    kernel: &KernelInfo,
    code: &Code,
    arch: Arch,
    settings: &Settings,
    attribute: Attribute,
) -> Result<c_int> {
    let facts = code.facts();
    let of_bytes = |bytes: u64| c_int::try_from(bytes).unwrap_or(c_int::MAX);
    Ok(match attribute {
        Attribute::MAX_THREADS_PER_BLOCK => max_threads(kernel) as c_int,
        Attribute::SHARED_SIZE_BYTES => of_bytes(kernel.static_shared),
        Attribute::CONST_SIZE_BYTES => of_bytes(facts.constant_bytes),
        Attribute::LOCAL_SIZE_BYTES => of_bytes(kernel.local_bytes),
        Attribute::NUM_REGS => registers(kernel, code.max_registers()) as c_int,
        Attribute::PTX_VERSION => c_int::from(facts.version.major) * 10 + c_int::from(facts.version.minor),
        Attribute::BINARY_VERSION => c_int::from(arch.sm),
        Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES => settings.dynamic_shared.load(Relaxed),
        Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT => settings.carveout.load(Relaxed),
        Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED => settings.non_portable_clusters.load(Relaxed),
        // Nothing was compiled to cache global loads by itself, and no kernel asks for clusters.
        Attribute::CACHE_MODE_CA
        | Attribute::CLUSTER_SIZE_MUST_BE_SET
        | Attribute::REQUIRED_CLUSTER_WIDTH
        | Attribute::REQUIRED_CLUSTER_HEIGHT
        | Attribute::REQUIRED_CLUSTER_DEPTH
        | Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE => 0,
        _ => return Err(Status::INVALID_VALUE),
    })
}

fn set_attribute(
    kernel: &KernelInfo,
    arch: Arch,
    settings: &Settings,
    attribute: Attribute,
    value: c_int,
) -> Result<()> {
    match attribute {
        Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let most = arch.limits().shared_per_block.saturating_sub(kernel.static_shared);
            if u64::try_from(value).is_ok_and(|bytes| bytes <= most) {
                settings.dynamic_shared.store(value, Relaxed);
                return Ok(());
            }
            log::misuse(&format_args!(
                "{value} bytes of dynamic shared memory for kernel `{}`: it can have from 0 to {most} on {arch}",
                kernel.name
            ));
            Err(Status::INVALID_VALUE)
        }
        Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT if (-1..=100).contains(&value) => {
            settings.carveout.store(value, Relaxed);
            Ok(())
        }
        Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED if (0..=1).contains(&value) => {
            settings.non_portable_clusters.store(value, Relaxed);
            Ok(())
        }
        // It says which of two ways blocks of a cluster are spread, and there are none.
        Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE if (0..=2).contains(&value) => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}
