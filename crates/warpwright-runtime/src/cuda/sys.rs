//! The functions of the driver that are called here, with what they return as numbers.
//!
//! The bindings have an enum for what calls return, of the codes that their version of CUDA knows. A newer driver has
//! more, and a value that an enum has not is undefined behaviour when it is there. So **what the driver writes or
//! returns is a number here** ([`Status`], [`CaptureStatus`], [`CaptureMode`]), and the functions are looked up by name
//! in the library that the bindings have loaded, which is the only one. Handles, structures and what is only given to the driver
//! are the bindings'.
//!
//! Names are those of the library and not of C's header: `cuStreamDestroy_v2` is what `cuStreamDestroy` is a macro for.
//!
//! What the bindings still call themselves: `CudaContext::new` and its drop, for the primary context
//! ([`retain`](super::context::retain) asks for it first, so that what refuses it is met here), and what
//! `interop` has them do with their own streams and slices.

use cudarc::driver::sys::culib;
pub(crate) use cudarc::driver::sys::is_culib_present;
pub(crate) use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUevent_flags,
    CUfunction, CUfunction_attribute, CUgraph, CUgraphExec, CUgraphNode, CUhostFn, CUjitInputType,
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig, CUlinkState,
    CUmemoryPool, CUmemorytype, CUmodule, CUstream, CUstream_flags, CUuserObject, CUuserObject_flags,
    CUuserObjectRetain_flags, CUuuid, cuuint64_t,
};
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};
use std::sync::OnceLock;

/// Numbers that the driver may write, with names for some.
macro_rules! numbers {
    ($($(#[$doc:meta])* $number:ident: $of:ident { $($name:ident = $theirs:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub(crate) struct $number(pub(crate) c_uint);

        impl $number {
            $(pub(crate) const $name: Self = $number(cudarc::driver::sys::$of::$theirs as c_uint);)*
        }
    )*};
}

numbers! {
    /// What a call returns. Those that are told apart here have names.
    Status: CUresult {
        SUCCESS = CUDA_SUCCESS,
        INVALID_VALUE = CUDA_ERROR_INVALID_VALUE,
        OUT_OF_MEMORY = CUDA_ERROR_OUT_OF_MEMORY,
        NOT_INITIALIZED = CUDA_ERROR_NOT_INITIALIZED,
        DEINITIALIZED = CUDA_ERROR_DEINITIALIZED,
        NO_DEVICE = CUDA_ERROR_NO_DEVICE,
        INVALID_IMAGE = CUDA_ERROR_INVALID_IMAGE,
        NO_BINARY_FOR_GPU = CUDA_ERROR_NO_BINARY_FOR_GPU,
        ECC_UNCORRECTABLE = CUDA_ERROR_ECC_UNCORRECTABLE,
        INVALID_PTX = CUDA_ERROR_INVALID_PTX,
        NVLINK_UNCORRECTABLE = CUDA_ERROR_NVLINK_UNCORRECTABLE,
        UNSUPPORTED_PTX_VERSION = CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        INVALID_SOURCE = CUDA_ERROR_INVALID_SOURCE,
        SHARED_OBJECT_SYMBOL_NOT_FOUND = CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
        SHARED_OBJECT_INIT_FAILED = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
        OPERATING_SYSTEM = CUDA_ERROR_OPERATING_SYSTEM,
        NOT_FOUND = CUDA_ERROR_NOT_FOUND,
        NOT_READY = CUDA_ERROR_NOT_READY,
        ILLEGAL_ADDRESS = CUDA_ERROR_ILLEGAL_ADDRESS,
        LAUNCH_TIMEOUT = CUDA_ERROR_LAUNCH_TIMEOUT,
        CONTEXT_IS_DESTROYED = CUDA_ERROR_CONTEXT_IS_DESTROYED,
        ASSERT = CUDA_ERROR_ASSERT,
        HARDWARE_STACK_ERROR = CUDA_ERROR_HARDWARE_STACK_ERROR,
        ILLEGAL_INSTRUCTION = CUDA_ERROR_ILLEGAL_INSTRUCTION,
        MISALIGNED_ADDRESS = CUDA_ERROR_MISALIGNED_ADDRESS,
        INVALID_ADDRESS_SPACE = CUDA_ERROR_INVALID_ADDRESS_SPACE,
        INVALID_PC = CUDA_ERROR_INVALID_PC,
        LAUNCH_FAILED = CUDA_ERROR_LAUNCH_FAILED,
        EXTERNAL_DEVICE = CUDA_ERROR_EXTERNAL_DEVICE,
        MPS_CLIENT_TERMINATED = CUDA_ERROR_MPS_CLIENT_TERMINATED,
        STREAM_CAPTURE_UNSUPPORTED = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        UNKNOWN = CUDA_ERROR_UNKNOWN,
    }

    /// Whether a stream captures.
    CaptureStatus: CUstreamCaptureStatus {
        NONE = CU_STREAM_CAPTURE_STATUS_NONE,
        ACTIVE = CU_STREAM_CAPTURE_STATUS_ACTIVE,
    }

    /// What a capture forbids, and to whom.
    CaptureMode: CUstreamCaptureMode {
        RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED,
    }

    /// An option of the driver's compiler.
    JitOption: CUjit_option {
        INFO_LOG_BUFFER = CU_JIT_INFO_LOG_BUFFER,
        INFO_LOG_BUFFER_SIZE_BYTES = CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ERROR_LOG_BUFFER = CU_JIT_ERROR_LOG_BUFFER,
        ERROR_LOG_BUFFER_SIZE_BYTES = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        GENERATE_LINE_INFO = CU_JIT_GENERATE_LINE_INFO,
        LOG_VERBOSE = CU_JIT_LOG_VERBOSE,
    }
}

impl Status {
    // Drivers after 12.2 have these.
    /// An error that is kept in its context.
    pub(crate) const CONTAINED: Self = Status(226);
    /// Memory of tensor cores was not given back.
    pub(crate) const TENSOR_MEMORY_LEAK: Self = Status(721);
}

/// The map of a tensor. The driver alone knows what is in it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct TensorMap(pub(crate) [u8; 128]);

/// The type that the bindings have for a parameter, where it is not the same.
#[cfg(test)]
macro_rules! theirs {
    ($type:ty) => {
        $type
    };
    ($type:ty, $theirs:ty) => {
        $theirs
    };
}

/// Makes the table of functions, and a function for each that calls what is there. `=>` is what the bindings have.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty $(=> $theirs:ty)?),* $(,)?);)*) => {
        /// Where the functions are.
        #[allow(non_snake_case, reason = "the driver's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> Status,)*
        }

        impl Functions {
            /// Looks for all of them. The name of one that is not there.
            ///
            /// # Safety
            ///
            /// As for [`lookup`].
            unsafe fn find() -> Result<Self, &'static str> {
                Ok(Functions {$(
                    // SAFETY: what has that name has that type; the rest is the caller's promise.
                    $name: unsafe { lookup(concat!(stringify!($name), "\0")) }.ok_or(stringify!($name))?,
                )*})
            }
        }

        $(
            /// The driver's function of that name.
            ///
            /// # Safety
            ///
            /// As the driver says.
            #[inline]
            #[allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's")]
            pub(crate) unsafe fn $name($($argument: $type),*) -> Status {
                match FUNCTIONS.get() {
                    // SAFETY: the caller's promise; the library stays loaded.
                    Some(functions) => unsafe { (functions.$name)($($argument),*) },
                    None => Status::NOT_INITIALIZED,
                }
            }
        )*

        #[cfg(test)]
        mod signatures {
            use super::*;
            use cudarc::driver::sys::{
                CUjit_option, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus, CUtensorMap,
                CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
                CUtensorMapL2promotion, CUtensorMapSwizzle,
            };

            $(const _: unsafe fn($(theirs!($type $(, $theirs)?)),*) -> CUresult = cudarc::driver::sys::$name;)*
        }
    };
}

functions! {
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxSetCurrent(context: CUcontext);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: CUdevice);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetPCIBusId(id: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    cuEventQuery(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventSynchronize(event: CUevent);
    cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
    cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    cuGetErrorName(error: Status => CUresult, text: *mut *const c_char);
    cuGetErrorString(error: Status => CUresult, text: *mut *const c_char);
    cuGraphAddChildGraphNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        behind: *const CUgraphNode,
        count: usize,
        child: CUgraph,
    );
    cuGraphAddKernelNode_v2(
        node: *mut CUgraphNode,
        graph: CUgraph,
        behind: *const CUgraphNode,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    );
    cuGraphAddMemcpyNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        behind: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMCPY3D,
        context: CUcontext,
    );
    cuGraphAddMemsetNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        behind: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS,
        context: CUcontext,
    );
    cuGraphCreate(graph: *mut CUgraph, flags: c_uint);
    cuGraphDestroy(graph: CUgraph);
    cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph);
    cuGraphExecDestroy(exec: CUgraphExec);
    cuGraphExecKernelNodeSetParams_v2(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    );
    cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    cuGraphKernelNodeSetAttribute(
        node: CUgraphNode,
        attribute: CUlaunchAttributeID,
        value: *const CUlaunchAttributeValue,
    );
    cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
    cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, references: c_uint, flags: c_uint);
    cuGraphUpload(exec: CUgraphExec, stream: CUstream);
    cuInit(flags: c_uint);
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        function: CUfunction,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    cuLinkAddData_v2(
        state: CUlinkState,
        kind: CUjitInputType,
        data: *mut c_void,
        size: usize,
        name: *const c_char,
        count: c_uint,
        options: *mut JitOption => *mut CUjit_option,
        values: *mut *mut c_void,
    );
    cuLinkComplete(state: CUlinkState, image: *mut *mut c_void, size: *mut usize);
    cuLinkCreate_v2(
        count: c_uint,
        options: *mut JitOption => *mut CUjit_option,
        values: *mut *mut c_void,
        state: *mut CUlinkState,
    );
    cuLinkDestroy(state: CUlinkState);
    cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    cuMemFreeHost(start: *mut c_void);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemHostAlloc(start: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, start: *mut c_void, flags: c_uint);
    cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
    cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyPeerAsync(
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
        stream: CUstream,
    );
    cuMemsetD16Async(to: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream);
    cuMemsetD2D16Async(
        to: CUdeviceptr,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
        stream: CUstream,
    );
    cuMemsetD2D32Async(
        to: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        stream: CUstream,
    );
    cuMemsetD2D8Async(
        to: CUdeviceptr,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
        stream: CUstream,
    );
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut JitOption => *mut CUjit_option,
        values: *mut *mut c_void,
    );
    cuModuleUnload(module: CUmodule);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: CUfunction,
        threads: c_int,
        dynamic_shared: usize,
    );
    cuStreamBeginCapture_v2(stream: CUstream, mode: CaptureMode => CUstreamCaptureMode);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuStreamGetCaptureInfo_v2(
        stream: CUstream,
        status: *mut CaptureStatus => *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        count: *mut usize,
    );
    cuStreamIsCapturing(stream: CUstream, status: *mut CaptureStatus => *mut CUstreamCaptureStatus);
    cuStreamQuery(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuTensorMapEncodeTiled(
        map: *mut TensorMap => *mut CUtensorMap,
        element: c_uint => CUtensorMapDataType,
        rank: c_uint,
        address: *mut c_void,
        dims: *const u64,
        strides: *const u64,
        tile: *const u32,
        steps: *const u32,
        interleave: c_uint => CUtensorMapInterleave,
        swizzle: c_uint => CUtensorMapSwizzle,
        promotion: c_uint => CUtensorMapL2promotion,
        fill: c_uint => CUtensorMapFloatOOBfill,
    );
    cuThreadExchangeStreamCaptureMode(mode: *mut CaptureMode => *mut CUstreamCaptureMode);
    cuUserObjectCreate(
        object: *mut CUuserObject,
        data: *mut c_void,
        destructor: CUhostFn,
        references: c_uint,
        flags: c_uint,
    );
    cuUserObjectRelease(object: CUuserObject, references: c_uint);
}

/// The functions of the driver, when all of them are there.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Looks for the functions that are called here. The name of one that the driver has not.
///
/// # Safety
///
/// The driver's library is there: the bindings panic where it is not.
pub(crate) unsafe fn load() -> Result<(), &'static str> {
    if FUNCTIONS.get().is_none() {
        // SAFETY: the caller's promise.
        let functions = unsafe { Functions::find() }?;
        // Somebody else has found the same meanwhile, if it is taken.
        let _ = FUNCTIONS.set(functions);
    }
    Ok(())
}

/// A function of the driver's library, of a name that ends with a zero. `None` where it has none of that name.
///
/// # Safety
///
/// The driver's library is there: the bindings panic where it is not. `F` is the type of a pointer to what has that name.
pub(crate) unsafe fn lookup<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller's promise. A null that a library may have under a name is no function.
    unsafe { culib().get::<Option<F>>(name.as_bytes()) }.ok().and_then(|function| *function)
}
