//! Code and launches: options of the compiler, attributes of functions and of launches.

use super::device::enumerations;
use super::{CUcontext, CUevent, CUfunction, CUkernel, CUstream, In};
use std::ffi::{c_char, c_int, c_uint};

enumerations! {
    /// An option of the compiler or the linker: `CUjit_option`.
    CUjit_option {
        MAX_REGISTERS = 0,
        THREADS_PER_BLOCK = 1,
        WALL_TIME = 2,
        INFO_LOG_BUFFER = 3,
        INFO_LOG_BUFFER_SIZE_BYTES = 4,
        ERROR_LOG_BUFFER = 5,
        ERROR_LOG_BUFFER_SIZE_BYTES = 6,
        OPTIMIZATION_LEVEL = 7,
        TARGET_FROM_CUCONTEXT = 8,
        TARGET = 9,
        FALLBACK_STRATEGY = 10,
        GENERATE_DEBUG_INFO = 11,
        LOG_VERBOSE = 12,
        GENERATE_LINE_INFO = 13,
        CACHE_MODE = 14,
    }
}

enumerations! {
    /// The kind of a linker input: `CUjitInputType`.
    CUjitInputType {
        CUBIN = 0,
        PTX = 1,
        FATBINARY = 2,
        OBJECT = 3,
        LIBRARY = 4,
        NVVM = 5,
    }
}

enumerations! {
    /// An attribute of a function: `CUfunction_attribute`.
    CUfunction_attribute {
        MAX_THREADS_PER_BLOCK = 0,
        SHARED_SIZE_BYTES = 1,
        CONST_SIZE_BYTES = 2,
        LOCAL_SIZE_BYTES = 3,
        NUM_REGS = 4,
        PTX_VERSION = 5,
        BINARY_VERSION = 6,
        CACHE_MODE_CA = 7,
        MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
        CLUSTER_SIZE_MUST_BE_SET = 10,
        REQUIRED_CLUSTER_WIDTH = 11,
        REQUIRED_CLUSTER_HEIGHT = 12,
        REQUIRED_CLUSTER_DEPTH = 13,
        NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
        CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
    }
}

enumerations! {
    /// An attribute of a launch: `CUlaunchAttributeID`.
    CUlaunchAttributeID {
        IGNORE = 0,
        ACCESS_POLICY_WINDOW = 1,
        COOPERATIVE = 2,
        SYNCHRONIZATION_POLICY = 3,
        CLUSTER_DIMENSION = 4,
        CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
        PROGRAMMATIC_STREAM_SERIALIZATION = 6,
        PROGRAMMATIC_EVENT = 7,
        PRIORITY = 8,
        MEM_SYNC_DOMAIN_MAP = 9,
        MEM_SYNC_DOMAIN = 10,
        PREFERRED_CLUSTER_DIMENSION = 11,
        LAUNCH_COMPLETION_EVENT = 12,
        DEVICE_UPDATABLE_KERNEL_NODE = 13,
        PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
        NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
    }
}

enumerations! {
    /// How a module's functions are loaded: `CUmoduleLoadingMode`.
    CUmoduleLoadingMode {
        EAGER = 1,
        LAZY = 2,
    }
}

enumerations! {
    /// Whether a function is loaded: `CUfunctionLoadingState`.
    CUfunctionLoadingState {
        UNLOADED = 0,
        LOADED = 1,
    }
}

/// An option for loading a library: `CUlibraryOption`.
pub type CUlibraryOption = c_uint;

/// A function that returns the dynamic shared memory of a block of that size, in bytes: `CUoccupancyB2DSize`.
pub type CUoccupancyB2DSize = Option<unsafe extern "C" fn(threads: c_int) -> usize>;

/// The value of a launch attribute. Its meaning depends on the attribute, and the client sets all of its bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUlaunchAttributeValue {
    /// All of it.
    pub pad: [c_char; 64],
    /// Its first bytes as numbers: a dimension, a flag, a priority.
    pub numbers: [c_int; 16],
    /// What begins with an event.
    pub event: CUevent,
}

impl CUlaunchAttributeValue {
    /// The value of an attribute that is a number.
    pub fn number(&self) -> c_int {
        let [number] = self.first();
        number
    }

    /// The first numbers of the value; there are 16.
    pub fn first<const N: usize>(&self) -> [c_int; N] {
        // SAFETY: integers may have any bits. Callers ask for as many as the attribute has, which are those that
        // clients have written.
        std::array::from_fn(|i| unsafe { self.numbers[i] })
    }

    /// A value that is a number.
    pub fn of(number: c_int) -> Self {
        Self::of_all(&[number])
    }

    /// A value of up to 16 numbers.
    pub fn of_all(first: &[c_int]) -> Self {
        let mut numbers = [0; 16];
        numbers[..first.len()].copy_from_slice(first);
        CUlaunchAttributeValue { numbers }
    }
}

/// A launch attribute: `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUlaunchAttribute {
    /// Its identifier.
    pub id: CUlaunchAttributeID,
    /// Padding.
    pub pad: [c_char; 4],
    /// Its value.
    pub value: CUlaunchAttributeValue,
}

/// The shape of a launch, its stream and its attributes: `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUlaunchConfig {
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: CUstream,
    pub attrs: In<CUlaunchAttribute>,
    pub numAttrs: c_uint,
}

/// The parameters of a kernel: an array with a pointer to each value.
pub type KernelParams = In<In<u8>>;

/// The parameters of a kernel as a buffer: a list of names and values.
pub type Extra = In<usize>;

/// A kernel node of a graph: `CUDA_KERNEL_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_KERNEL_NODE_PARAMS_v1 {
    pub func: CUfunction,
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub kernelParams: KernelParams,
    pub extra: Extra,
}

/// The same, for kernels of libraries too: `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_KERNEL_NODE_PARAMS_v2 {
    pub first: CUDA_KERNEL_NODE_PARAMS_v1,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}
