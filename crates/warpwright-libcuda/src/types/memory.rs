//! Types of memory and of copies.

use super::device::enumerations;
use super::{CUarray, CUcontext, CUdeviceptr};
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

enumerations! {
    /// The kind of memory.
    CUmemorytype { HOST = 1, DEVICE = 2, ARRAY = 3, UNIFIED = 4 }
    /// An attribute of an address.
    CUpointer_attribute {
        CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, P2P_TOKENS = 5, SYNC_MEMOPS = 6,
        BUFFER_ID = 7, IS_MANAGED = 8, DEVICE_ORDINAL = 9, IS_LEGACY_CUDA_IPC_CAPABLE = 10, RANGE_START_ADDR = 11,
        RANGE_SIZE = 12, MAPPED = 13, ALLOWED_HANDLE_TYPES = 14, IS_GPU_DIRECT_RDMA_CAPABLE = 15, ACCESS_FLAGS = 16,
        MEMPOOL_HANDLE = 17, MAPPING_SIZE = 18, MAPPING_BASE_ADDR = 19, MEMORY_BLOCK_ID = 20,
        IS_HW_DECOMPRESS_CAPABLE = 21,
    }
    /// An attribute of a pool.
    CUmemPool_attribute {
        REUSE_FOLLOW_EVENT_DEPENDENCIES = 1, REUSE_ALLOW_OPPORTUNISTIC = 2, REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        RELEASE_THRESHOLD = 4, RESERVED_MEM_CURRENT = 5, RESERVED_MEM_HIGH = 6, USED_MEM_CURRENT = 7, USED_MEM_HIGH = 8,
    }
    /// Advice about managed memory.
    CUmem_advise {
        SET_READ_MOSTLY = 1, UNSET_READ_MOSTLY = 2, SET_PREFERRED_LOCATION = 3, UNSET_PREFERRED_LOCATION = 4,
        SET_ACCESSED_BY = 5, UNSET_ACCESSED_BY = 6,
    }
    /// The kind of a location.
    CUmemLocationType { INVALID = 0, DEVICE = 1, HOST = 2, HOST_NUMA = 3, HOST_NUMA_CURRENT = 4 }
    /// The access of a device to memory.
    CUmemAccess_flags { NONE = 0, READ = 1, READWRITE = 3 }
    /// How memory is allocated.
    CUmemAllocationType { INVALID = 0, PINNED = 1 }
    /// A kind of handles of memory for other processes.
    CUmemAllocationHandleType { NONE = 0, POSIX_FILE_DESCRIPTOR = 1, WIN32 = 2, WIN32_KMT = 4, FABRIC = 8 }
    /// Which granularity is asked for.
    CUmemAllocationGranularity_flags { MINIMUM = 0, RECOMMENDED = 1 }
    /// Which granularity of multicast objects is asked for.
    CUmulticastGranularity_flags { MINIMUM = 0, RECOMMENDED = 1 }
    /// The kind of an operation on a value in memory.
    CUstreamBatchMemOpType {
        WAIT_VALUE_32 = 1, WRITE_VALUE_32 = 2, FLUSH_REMOTE_WRITES = 3, WAIT_VALUE_64 = 4, WRITE_VALUE_64 = 5, BARRIER = 6,
    }
}

/// The location of memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUmemLocation {
    /// Its kind.
    pub kind: CUmemLocationType,
    /// The number of the device or node.
    pub id: c_int,
}

/// The access of a device to memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUmemAccessDesc {
    /// The device.
    pub location: CUmemLocation,
    /// Its access.
    pub flags: CUmemAccess_flags,
}

/// The properties of physical memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemAllocationProp {
    /// How it is allocated: only pinned.
    pub kind: CUmemAllocationType,
    /// The kind of handles for other processes.
    pub requestedHandleTypes: CUmemAllocationHandleType,
    /// Where it is.
    pub location: CUmemLocation,
    /// Attributes of another operating system.
    pub win32HandleMetaData: *mut c_void,
    /// Compression, remote access and usage, of which devices here have none.
    pub allocFlags: [u8; 8],
}

/// The properties of a multicast object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmulticastObjectProp {
    /// How many devices it joins: one alone is supported.
    pub numDevices: c_uint,
    /// Its size in bytes.
    pub size: usize,
    /// The kinds of handles for other processes, as bits.
    pub handleTypes: c_ulonglong,
    /// Reserved: 0.
    pub flags: c_ulonglong,
}

/// The properties of a new pool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemPoolProps {
    /// The type of allocation: only 1, pinned, is supported.
    pub allocation_type: c_uint,
    /// The kind of handles for other processes; 0 for none.
    pub handle_types: c_uint,
    /// The location of its memory.
    pub location: CUmemLocation,
    /// Security attributes of another operating system.
    pub security_attributes: *mut c_void,
    /// The maximum size in bytes; 0 for no limit.
    pub max_size: usize,
    /// Reserved: 0.
    pub usage: u16,
    /// Reserved: 0.
    pub reserved: [u8; 54],
}

/// A copy of rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the interface's own names")]
pub struct CUDA_MEMCPY2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

/// A copy of slices of rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the interface's own names")]
pub struct CUDA_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    /// Reserved; in a copy between contexts, the source's context.
    pub srcContext: CUcontext,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    /// Reserved; in a copy between contexts, the target's context.
    pub dstContext: CUcontext,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

/// One of several operations on values in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUstreamBatchMemOpParams {
    /// Its kind.
    pub operation: CUstreamBatchMemOpType,
    /// Padding.
    pub padding: c_uint,
    /// The address.
    pub address: CUdeviceptr,
    /// The value.
    pub value: u64,
    /// The flags of the function of that name.
    pub flags: c_uint,
    /// Padding.
    pub padding2: c_uint,
    /// Reserved for the driver; unused.
    pub alias: CUdeviceptr,
    /// Padding.
    pub padding3: u64,
}
