//! Functions: the kernels of modules, their attributes and parameters.

use super::module::{Code, FUNCTIONS};
use crate::report::log;
use crate::types::{CUfunction, CUfunction_attribute as Attribute, CUmodule, Result, Status};
use std::ffi::{CString, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use warpwright_ptx::ir::Arch;
use warpwright_vm::{KernelInfo, KernelParam};

/// The shared memory of a block without opt-in, in bytes.
pub(super) const SHARED_BY_DEFAULT: u64 = 48 << 10;

/// The maximum number of threads of a block.
const MAX_THREADS: u32 = 1024;

/// The maximum number of registers of a thread.
const MAX_REGISTERS: u32 = 255;

/// The blocks of the largest cluster without opt-in, and with it.
pub(super) const PORTABLE_CLUSTER: u32 = 8;
const LARGEST_CLUSTER: u32 = 16;

/// The blocks of a cluster along x, y and z.
const CLUSTER_SIZES: [Attribute; 3] = [
    Attribute::REQUIRED_CLUSTER_WIDTH,
    Attribute::REQUIRED_CLUSTER_HEIGHT,
    Attribute::REQUIRED_CLUSTER_DEPTH,
];

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

/// The attributes that a client can set, by their numbers.
type Settings = [AtomicI32; 16];

/// The defaults.
fn unset(kernel: &KernelInfo) -> Settings {
    let mut settings = [0; 16];
    let left = SHARED_BY_DEFAULT.saturating_sub(kernel.static_shared);
    settings[Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES.0 as usize] = left as c_int;
    settings[Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT.0 as usize] = -1;
    settings.map(AtomicI32::new)
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
                    settings: unset(kernel),
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

    /// The value of an attribute that can be set.
    fn setting(&self, attribute: Attribute) -> &AtomicI32 {
        &self.settings[attribute.0 as usize]
    }

    fn arch(&self) -> Arch {
        self.code.context.device.arch()
    }

    /// The maximum number of threads of a block of this kernel.
    pub(crate) fn max_threads(&self) -> u32 {
        let required = self.kernel.required_block.map(|block| block.iter().product());
        required.or(self.kernel.max_threads).unwrap_or(MAX_THREADS).min(MAX_THREADS)
    }

    /// The maximum dynamic shared memory of a launch, in bytes.
    pub(crate) fn max_dynamic_shared(&self) -> u64 {
        self.setting(Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES).load(Relaxed).max(0) as u64
    }

    /// The cluster of its launches that the client has set, in blocks along x, y and z.
    pub(crate) fn cluster(&self) -> Option<[u32; 3]> {
        let set = CLUSTER_SIZES.map(|size| self.setting(size).load(Relaxed) as u32);
        Some(set).filter(|set| *set != [0; 3])
    }

    /// The blocks of the largest cluster that it may be launched in.
    pub(crate) fn max_cluster(&self) -> u32 {
        let larger = self.setting(Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED).load(Relaxed) != 0;
        let most = if larger { LARGEST_CLUSTER } else { PORTABLE_CLUSTER };
        self.kernel.max_cluster.unwrap_or(most).min(most)
    }

    /// What the kernel says about its cluster along an axis, or else what was set.
    fn cluster_size(&self, attribute: Attribute) -> c_int {
        let axis = CLUSTER_SIZES.iter().position(|size| *size == attribute).unwrap_or(0);
        match self.kernel.required_cluster {
            Some(required) if required[0] != 0 => required[axis] as c_int,
            _ => self.setting(attribute).load(Relaxed),
        }
    }

    /// The offset and size of a parameter, in bytes.
    pub(crate) fn param(&self, index: usize) -> Result<&KernelParam> {
        self.kernel.params.get(index).ok_or(Status::INVALID_VALUE)
    }

    /// The value of an attribute.
    pub(crate) fn attribute(&self, attribute: Attribute) -> Result<c_int> {
        let (kernel, facts) = (&self.kernel, &self.code.facts);
        let of_bytes = |bytes: u64| c_int::try_from(bytes).unwrap_or(c_int::MAX);
        Ok(match attribute {
            Attribute::MAX_THREADS_PER_BLOCK => self.max_threads() as c_int,
            Attribute::SHARED_SIZE_BYTES => of_bytes(kernel.static_shared),
            Attribute::CONST_SIZE_BYTES => of_bytes(facts.constant_bytes),
            Attribute::LOCAL_SIZE_BYTES => of_bytes(kernel.local_bytes),
            Attribute::NUM_REGS => registers(kernel, self.code.max_registers) as c_int,
            // The architecture, not the version of the text: libraries of kernels choose their tuning by it.
            Attribute::PTX_VERSION => c_int::from(facts.arch.sm),
            Attribute::BINARY_VERSION => c_int::from(self.arch().sm),
            Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES
            | Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT
            | Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            | Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE => self.setting(attribute).load(Relaxed),
            Attribute::REQUIRED_CLUSTER_WIDTH
            | Attribute::REQUIRED_CLUSTER_HEIGHT
            | Attribute::REQUIRED_CLUSTER_DEPTH => self.cluster_size(attribute),
            Attribute::CLUSTER_SIZE_MUST_BE_SET => (kernel.required_cluster == Some([0; 3])).into(),
            // Nothing was compiled to cache global loads by itself.
            Attribute::CACHE_MODE_CA => 0,
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    /// Sets an attribute, if it can be set.
    pub(crate) fn set_attribute(&self, attribute: Attribute, value: c_int) -> Result<()> {
        let is_good = match attribute {
            Attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                let (name, arch) = (self.name(), self.arch());
                let max = arch.limits().shared_per_block.saturating_sub(self.kernel.static_shared);
                let fits = u64::try_from(value).is_ok_and(|bytes| bytes <= max);
                if !fits {
                    log::misuse(&format_args!(
                        "{value} bytes of dynamic shared memory for kernel `{name}`: from 0 to {max} are possible on {arch}"
                    ));
                }
                fits
            }
            Attribute::PREFERRED_SHARED_MEMORY_CARVEOUT => (-1..=100).contains(&value),
            Attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED => (0..=1).contains(&value),
            Attribute::REQUIRED_CLUSTER_WIDTH
            | Attribute::REQUIRED_CLUSTER_HEIGHT
            | Attribute::REQUIRED_CLUSTER_DEPTH => value >= 0,
            Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE => (0..=2).contains(&value),
            _ => false,
        };
        if !is_good {
            return Err(Status::INVALID_VALUE);
        }
        if CLUSTER_SIZES.contains(&attribute)
            && self.kernel.required_cluster.is_some_and(|sizes| sizes[0] != 0)
        {
            log::misuse(&format_args!("kernel `{}` has the cluster that it was compiled for", self.name()));
            return Err(Status::NOT_PERMITTED);
        }
        self.setting(attribute).store(value, Relaxed);
        Ok(())
    }
}

/// The registers of a kernel, as far as they are known without a compiler that allocates them.
pub(super) fn registers(kernel: &KernelInfo, max: Option<u32>) -> u32 {
    kernel.registers.clamp(1, max.unwrap_or(MAX_REGISTERS).min(MAX_REGISTERS))
}
