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
    pub(crate) handle: CUfunction,
    pub(crate) module: CUmodule,
    pub(crate) code: Arc<Code>,
    pub(crate) kernel: KernelInfo,
    /// Its name as clients read it.
    pub(crate) c_name: CString,
    settings: Settings,
}

/// What a client can set of a function.
struct Settings {
    /// The most dynamic shared memory of a launch, in bytes.
    dynamic_shared: AtomicI32,
    /// The part of the cache that should be shared memory, in percent; −1 to leave it.
    carveout: AtomicI32,
    non_portable_clusters: AtomicI32,
    /// Blocks of a cluster along x, y and z; 0 where none is asked for.
    cluster: [AtomicI32; 3],
    cluster_scheduling: AtomicI32,
}

impl Settings {
    fn of(kernel: &KernelInfo) -> Self {
        let left = SHARED_BY_DEFAULT.saturating_sub(kernel.static_shared);
        Settings {
            dynamic_shared: AtomicI32::new(left as c_int),
            carveout: AtomicI32::new(-1),
            non_portable_clusters: AtomicI32::new(0),
            cluster: [0; 3].map(AtomicI32::new),
            cluster_scheduling: AtomicI32::new(0),
        }
    }
}

impl Function {
    /// The functions of a module, with their handles.
    pub(super) fn all(code: &Arc<Code>, module: CUmodule) -> Vec<Arc<Function>> {
        let kernels = code.facts.kernels.iter().filter_map(|name| code.vm().kernel(name).ok());
        let make = |kernel: &KernelInfo| {
            // No name in PTX has a zero byte.
            let c_name = CString::new(kernel.name.as_str()).unwrap_or_default();
            let function = |handle| {
                Arc::new(Function {
                    handle: CUfunction(handle),
                    module,
                    code: code.clone(),
                    settings: Settings::of(kernel),
                    kernel: kernel.clone(),
                    c_name,
                })
            };
            FUNCTIONS.insert_with(function).ok().map(|(_, function)| function)
        };
        kernels.filter_map(make).collect()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.kernel.name
    }

    fn arch(&self) -> Arch {
        self.code.context.device.arch()
    }

    /// The most threads of a block that it runs with.
    pub(crate) fn max_threads(&self) -> u32 {
        max_threads(&self.kernel)
    }

    /// The most dynamic shared memory that a launch may ask for, in bytes.
    pub(crate) fn max_dynamic_shared(&self) -> u64 {
        self.settings.dynamic_shared.load(Relaxed).max(0) as u64
    }

    /// Blocks of a cluster that its launches must have, along x, y and z; 0 where none was asked for.
    pub(crate) fn cluster(&self) -> [c_int; 3] {
        self.settings.cluster.each_ref().map(|blocks| blocks.load(Relaxed))
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
    let facts = &code.facts;
    let of_bytes = |bytes: u64| c_int::try_from(bytes).unwrap_or(c_int::MAX);
    Ok(match attribute {
        Attribute::MAX_THREADS_PER_BLOCK => max_threads(kernel) as c_int,
        Attribute::SHARED_SIZE_BYTES => of_bytes(kernel.static_shared),
        Attribute::CONST_SIZE_BYTES => of_bytes(facts.constant_bytes),
        Attribute::LOCAL_SIZE_BYTES => of_bytes(kernel.local_bytes),
        Attribute::NUM_REGS => registers(kernel, code.max_registers) as c_int,
        Attribute::PTX_VERSION => c_int::from(facts.version.major) * 10 + c_int::from(facts.version.minor),
        Attribute::BINARY_VERSION => c_int::from(arch.sm),
        Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES => settings.dynamic_shared.load(Relaxed),
        Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT => settings.carveout.load(Relaxed),
        Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED => settings.non_portable_clusters.load(Relaxed),
        Attribute::REQUIRED_CLUSTER_WIDTH => settings.cluster[0].load(Relaxed),
        Attribute::REQUIRED_CLUSTER_HEIGHT => settings.cluster[1].load(Relaxed),
        Attribute::REQUIRED_CLUSTER_DEPTH => settings.cluster[2].load(Relaxed),
        Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE => settings.cluster_scheduling.load(Relaxed),
        // Nothing was compiled to cache global loads by itself, or for clusters.
        Attribute::CACHE_MODE_CA | Attribute::CLUSTER_SIZE_MUST_BE_SET => 0,
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
    let keep = |setting: &AtomicI32| {
        setting.store(value, Relaxed);
        Ok(())
    };
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
            keep(&settings.carveout)
        }
        Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED if (0..=1).contains(&value) => {
            keep(&settings.non_portable_clusters)
        }
        Attribute::REQUIRED_CLUSTER_WIDTH if value >= 0 => keep(&settings.cluster[0]),
        Attribute::REQUIRED_CLUSTER_HEIGHT if value >= 0 => keep(&settings.cluster[1]),
        Attribute::REQUIRED_CLUSTER_DEPTH if value >= 0 => keep(&settings.cluster[2]),
        Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE if (0..=2).contains(&value) => {
            keep(&settings.cluster_scheduling)
        }
        _ => Err(Status::INVALID_VALUE),
    }
}
