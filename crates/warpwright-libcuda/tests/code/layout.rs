//! Structures and numbers of the interface, held against cudarc's.

use crate::*;
use cudarc::driver::sys;
use std::mem::{align_of, offset_of, size_of};

macro_rules! same {
    ($ours:ty, $theirs:ty { $($field:ident = $their:ident),* $(,)? }) => {
        assert_eq!(size_of::<$ours>(), size_of::<$theirs>(), stringify!($ours));
        assert_eq!(align_of::<$ours>(), align_of::<$theirs>(), stringify!($ours));
        $(assert_eq!(
            offset_of!($ours, $field),
            offset_of!($theirs, $their),
            concat!(stringify!($ours), ".", stringify!($field))
        );)*
    };
}

macro_rules! numbers {
    ($ours:ty, $theirs:ty { $($name:ident = $their:ident),* $(,)? }) => {
        assert_eq!(size_of::<$ours>(), size_of::<$theirs>(), stringify!($ours));
        $(assert_eq!(<$ours>::$name.0 as u32, <$theirs>::$their as u32, stringify!($their));)*
    };
}

#[test]
fn structures_lie_as_in_c() {
    same!(CUlaunchConfig, sys::CUlaunchConfig {
        gridDimX = gridDimX, gridDimY = gridDimY, gridDimZ = gridDimZ, blockDimX = blockDimX, blockDimY = blockDimY,
        blockDimZ = blockDimZ, sharedMemBytes = sharedMemBytes, hStream = hStream, attrs = attrs, numAttrs = numAttrs,
    });
    same!(CUlaunchAttribute, sys::CUlaunchAttribute { id = id, pad = pad, value = value });
    same!(CUlaunchAttributeValue, sys::CUlaunchAttributeValue { pad = pad, numbers = cooperative });
    same!(CUDA_KERNEL_NODE_PARAMS_v1, sys::CUDA_KERNEL_NODE_PARAMS_v1 {
        func = func, gridDimX = gridDimX, gridDimY = gridDimY, gridDimZ = gridDimZ, blockDimX = blockDimX,
        blockDimY = blockDimY, blockDimZ = blockDimZ, sharedMemBytes = sharedMemBytes, kernelParams = kernelParams,
        extra = extra,
    });
    same!(CUDA_KERNEL_NODE_PARAMS_v2, sys::CUDA_KERNEL_NODE_PARAMS_v2 { first = func, kern = kern, ctx = ctx });
    same!(CUDA_HOST_NODE_PARAMS, sys::CUDA_HOST_NODE_PARAMS { function = fn_, userData = userData });
    same!(CUDA_MEMSET_NODE_PARAMS, sys::CUDA_MEMSET_NODE_PARAMS {
        dst = dst, pitch = pitch, value = value, elementSize = elementSize, width = width, height = height,
    });
    // Of CUDA 12.3, which the bindings here are older than: eight bytes.
    assert_eq!((size_of::<CUgraphEdgeData>(), align_of::<CUgraphEdgeData>()), (8, 1));
    assert_eq!(offset_of!(CUgraphEdgeData, kind), 2);
    same!(CUgraphExecUpdateResultInfo, sys::CUgraphExecUpdateResultInfo {
        result = result, errorNode = errorNode, errorFromNode = errorFromNode,
    });
    same!(CUDA_GRAPH_INSTANTIATE_PARAMS, sys::CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags = flags, hUploadStream = hUploadStream, hErrNode_out = hErrNode_out, result_out = result_out,
    });
    same!(CUDA_ARRAY_DESCRIPTOR, sys::CUDA_ARRAY_DESCRIPTOR {
        Width = Width, Height = Height, Format = Format, NumChannels = NumChannels,
    });
    same!(CUDA_ARRAY3D_DESCRIPTOR, sys::CUDA_ARRAY3D_DESCRIPTOR {
        Width = Width, Height = Height, Depth = Depth, Format = Format, NumChannels = NumChannels, Flags = Flags,
    });
    same!(CUDA_RESOURCE_DESC, sys::CUDA_RESOURCE_DESC { resType = resType, res = res, flags = flags });
    same!(CUDA_TEXTURE_DESC, sys::CUDA_TEXTURE_DESC {
        addressMode = addressMode, filterMode = filterMode, flags = flags, maxAnisotropy = maxAnisotropy,
        mipmapFilterMode = mipmapFilterMode, mipmapLevelBias = mipmapLevelBias,
        minMipmapLevelClamp = minMipmapLevelClamp, maxMipmapLevelClamp = maxMipmapLevelClamp,
        borderColor = borderColor, reserved = reserved,
    });
    same!(CUDA_RESOURCE_VIEW_DESC, sys::CUDA_RESOURCE_VIEW_DESC {
        format = format, width = width, height = height, depth = depth, firstMipmapLevel = firstMipmapLevel,
        lastMipmapLevel = lastMipmapLevel, firstLayer = firstLayer, lastLayer = lastLayer, reserved = reserved,
    });
    same!(CUDA_MEMCPY3D, sys::CUDA_MEMCPY3D {
        srcXInBytes = srcXInBytes, srcY = srcY, srcZ = srcZ, srcLOD = srcLOD, srcMemoryType = srcMemoryType,
        srcHost = srcHost, srcDevice = srcDevice, srcArray = srcArray, srcContext = reserved0,
        srcPitch = srcPitch, srcHeight = srcHeight, dstXInBytes = dstXInBytes, dstY = dstY, dstZ = dstZ,
        dstLOD = dstLOD, dstMemoryType = dstMemoryType, dstHost = dstHost, dstDevice = dstDevice,
        dstArray = dstArray, dstContext = reserved1, dstPitch = dstPitch, dstHeight = dstHeight,
        WidthInBytes = WidthInBytes, Height = Height, Depth = Depth,
    });
}

#[test]
fn numbers_are_those_of_c() {
    numbers!(CUjit_option, sys::CUjit_option {
        MAX_REGISTERS = CU_JIT_MAX_REGISTERS, THREADS_PER_BLOCK = CU_JIT_THREADS_PER_BLOCK,
        WALL_TIME = CU_JIT_WALL_TIME, INFO_LOG_BUFFER = CU_JIT_INFO_LOG_BUFFER,
        INFO_LOG_BUFFER_SIZE_BYTES = CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ERROR_LOG_BUFFER = CU_JIT_ERROR_LOG_BUFFER,
        ERROR_LOG_BUFFER_SIZE_BYTES = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        OPTIMIZATION_LEVEL = CU_JIT_OPTIMIZATION_LEVEL, TARGET_FROM_CUCONTEXT = CU_JIT_TARGET_FROM_CUCONTEXT,
        TARGET = CU_JIT_TARGET, FALLBACK_STRATEGY = CU_JIT_FALLBACK_STRATEGY,
        GENERATE_DEBUG_INFO = CU_JIT_GENERATE_DEBUG_INFO, LOG_VERBOSE = CU_JIT_LOG_VERBOSE,
        GENERATE_LINE_INFO = CU_JIT_GENERATE_LINE_INFO, CACHE_MODE = CU_JIT_CACHE_MODE,
    });
    numbers!(CUarray_format, sys::CUarray_format {
        UNSIGNED_INT8 = CU_AD_FORMAT_UNSIGNED_INT8, UNSIGNED_INT16 = CU_AD_FORMAT_UNSIGNED_INT16,
        UNSIGNED_INT32 = CU_AD_FORMAT_UNSIGNED_INT32, SIGNED_INT8 = CU_AD_FORMAT_SIGNED_INT8,
        SIGNED_INT16 = CU_AD_FORMAT_SIGNED_INT16, SIGNED_INT32 = CU_AD_FORMAT_SIGNED_INT32,
        HALF = CU_AD_FORMAT_HALF, FLOAT = CU_AD_FORMAT_FLOAT,
    });
    numbers!(CUaddress_mode, sys::CUaddress_mode {
        WRAP = CU_TR_ADDRESS_MODE_WRAP, CLAMP = CU_TR_ADDRESS_MODE_CLAMP, MIRROR = CU_TR_ADDRESS_MODE_MIRROR,
        BORDER = CU_TR_ADDRESS_MODE_BORDER,
    });
    numbers!(CUfilter_mode, sys::CUfilter_mode { POINT = CU_TR_FILTER_MODE_POINT, LINEAR = CU_TR_FILTER_MODE_LINEAR });
    numbers!(CUresourcetype, sys::CUresourcetype {
        ARRAY = CU_RESOURCE_TYPE_ARRAY, MIPMAPPED_ARRAY = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
        LINEAR = CU_RESOURCE_TYPE_LINEAR, PITCH2D = CU_RESOURCE_TYPE_PITCH2D,
    });
    numbers!(CUjitInputType, sys::CUjitInputType {
        CUBIN = CU_JIT_INPUT_CUBIN, PTX = CU_JIT_INPUT_PTX, FATBINARY = CU_JIT_INPUT_FATBINARY,
        OBJECT = CU_JIT_INPUT_OBJECT, LIBRARY = CU_JIT_INPUT_LIBRARY, NVVM = CU_JIT_INPUT_NVVM,
    });
    numbers!(CUfunction_attribute, sys::CUfunction_attribute {
        MAX_THREADS_PER_BLOCK = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        SHARED_SIZE_BYTES = CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        CONST_SIZE_BYTES = CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
        LOCAL_SIZE_BYTES = CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, NUM_REGS = CU_FUNC_ATTRIBUTE_NUM_REGS,
        PTX_VERSION = CU_FUNC_ATTRIBUTE_PTX_VERSION, BINARY_VERSION = CU_FUNC_ATTRIBUTE_BINARY_VERSION,
        CACHE_MODE_CA = CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
        MAX_DYNAMIC_SHARED_SIZE_BYTES = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        PREFERRED_SHARED_MEMORY_CARVEOUT = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        NON_PORTABLE_CLUSTER_SIZE_ALLOWED = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    });
    numbers!(CUlaunchAttributeID, sys::CUlaunchAttributeID {
        COOPERATIVE = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CLUSTER_DIMENSION = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        PROGRAMMATIC_STREAM_SERIALIZATION = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        PRIORITY = CU_LAUNCH_ATTRIBUTE_PRIORITY,
    });
    numbers!(CUgraphNodeType, sys::CUgraphNodeType {
        KERNEL = CU_GRAPH_NODE_TYPE_KERNEL, MEMCPY = CU_GRAPH_NODE_TYPE_MEMCPY, MEMSET = CU_GRAPH_NODE_TYPE_MEMSET,
        HOST = CU_GRAPH_NODE_TYPE_HOST, GRAPH = CU_GRAPH_NODE_TYPE_GRAPH, EMPTY = CU_GRAPH_NODE_TYPE_EMPTY,
        WAIT_EVENT = CU_GRAPH_NODE_TYPE_WAIT_EVENT, EVENT_RECORD = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        BATCH_MEM_OP = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
    });
    numbers!(CUgraphExecUpdateResult, sys::CUgraphExecUpdateResult {
        TOPOLOGY_CHANGED = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
        NODE_TYPE_CHANGED = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
        PARAMETERS_CHANGED = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
        UNSUPPORTED_FUNCTION_CHANGE = CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,
    });
    numbers!(CUgraphInstantiateResult, sys::CUgraphInstantiateResult {
        ERROR = CUDA_GRAPH_INSTANTIATE_ERROR, INVALID_STRUCTURE = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
        MULTIPLE_CTXS_NOT_SUPPORTED = CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED,
    });
    numbers!(CUstreamCaptureMode, sys::CUstreamCaptureMode {
        GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL, THREAD_LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED,
    });
    numbers!(CUstreamCaptureStatus, sys::CUstreamCaptureStatus {
        NONE = CU_STREAM_CAPTURE_STATUS_NONE, ACTIVE = CU_STREAM_CAPTURE_STATUS_ACTIVE,
        INVALIDATED = CU_STREAM_CAPTURE_STATUS_INVALIDATED,
    });
    numbers!(CUmoduleLoadingMode, sys::CUmoduleLoadingMode {
        EAGER = CU_MODULE_EAGER_LOADING, LAZY = CU_MODULE_LAZY_LOADING,
    });
}
