//! Graphs, and the capture of streams.

use super::device::enumerations;
use super::{
    CUDA_MEMCPY3D, CUcontext, CUdeviceptr, CUgraph, CUgraphNode, CUmemAccessDesc, CUmemPoolProps, CUstream,
    CUstreamBatchMemOpParams, In,
};
use std::ffi::{c_int, c_uint, c_void};

enumerations! {
    /// The kind of a node: `CUgraphNodeType`.
    CUgraphNodeType {
        KERNEL = 0,
        MEMCPY = 1,
        MEMSET = 2,
        HOST = 3,
        GRAPH = 4,
        EMPTY = 5,
        WAIT_EVENT = 6,
        EVENT_RECORD = 7,
        EXT_SEMAS_SIGNAL = 8,
        EXT_SEMAS_WAIT = 9,
        MEM_ALLOC = 10,
        MEM_FREE = 11,
        BATCH_MEM_OP = 12,
        CONDITIONAL = 13,
    }
}

enumerations! {
    /// The kind of a conditional node: `CUgraphConditionalNodeType`.
    CUgraphConditionalNodeType {
        IF = 0,
        WHILE = 1,
        SWITCH = 2,
    }
}

enumerations! {
    /// How much memory the graphs of a device have: `CUgraphMem_attribute`.
    CUgraphMem_attribute {
        USED_MEM_CURRENT = 0,
        USED_MEM_HIGH = 1,
        RESERVED_MEM_CURRENT = 2,
        RESERVED_MEM_HIGH = 3,
    }
}

enumerations! {
    /// The capture status of a stream: `CUstreamCaptureStatus`.
    CUstreamCaptureStatus {
        NONE = 0,
        ACTIVE = 1,
        INVALIDATED = 2,
    }
}

enumerations! {
    /// Which calls are forbidden while a stream captures: `CUstreamCaptureMode`.
    CUstreamCaptureMode {
        GLOBAL = 0,
        THREAD_LOCAL = 1,
        RELAXED = 2,
    }
}

enumerations! {
    /// The result of updating an executable graph: `CUgraphExecUpdateResult`.
    CUgraphExecUpdateResult {
        SUCCESS = 0,
        ERROR = 1,
        TOPOLOGY_CHANGED = 2,
        NODE_TYPE_CHANGED = 3,
        FUNCTION_CHANGED = 4,
        PARAMETERS_CHANGED = 5,
        NOT_SUPPORTED = 6,
        UNSUPPORTED_FUNCTION_CHANGE = 7,
        ATTRIBUTES_CHANGED = 8,
    }
}

enumerations! {
    /// The result of instantiating a graph: `CUgraphInstantiateResult`.
    CUgraphInstantiateResult {
        SUCCESS = 0,
        ERROR = 1,
        INVALID_STRUCTURE = 2,
        NODE_OPERATION_NOT_SUPPORTED = 3,
        MULTIPLE_CTXS_NOT_SUPPORTED = 4,
    }
}

/// A function of the client: `CUhostFn`.
pub type CUhostFn = Option<unsafe extern "C-unwind" fn(*mut c_void)>;

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_HOST_NODE_PARAMS {
    pub function: CUhostFn,
    pub userData: *mut c_void,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_MEMSET_NODE_PARAMS {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: In<CUmemAccessDesc>,
    pub accessDescCount: usize,
    pub bytesize: usize,
    /// The address, which the call returns.
    pub dptr: CUdeviceptr,
}

/// `CUDA_CONDITIONAL_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_CONDITIONAL_NODE_PARAMS {
    pub handle: u64,
    pub kind: CUgraphConditionalNodeType,
    pub size: c_uint,
    /// The graphs of the bodies, which the call returns.
    pub phGraph_out: In<CUgraph>,
    pub ctx: CUcontext,
}

/// The parameters of a node of any kind: `CUgraphNodeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUgraphNodeParams {
    pub kind: CUgraphNodeType,
    pub reserved: [c_int; 3],
    /// The structure of the kind, and zeros behind it.
    pub body: [u64; 29],
    pub reserved2: u64,
}

/// `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_MEMCPY_NODE_PARAMS {
    pub flags: c_int,
    pub reserved: c_int,
    pub copyCtx: CUcontext,
    pub copyParams: CUDA_MEMCPY3D,
}

/// `CUDA_MEMSET_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_MEMSET_NODE_PARAMS_v2 {
    pub first: CUDA_MEMSET_NODE_PARAMS,
    pub ctx: CUcontext,
}

/// `CUDA_CHILD_GRAPH_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_CHILD_GRAPH_NODE_PARAMS {
    pub graph: CUgraph,
    /// 0: the node gets a clone; 1: the graph itself; -1 in answers.
    pub ownership: c_int,
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
    pub ctx: CUcontext,
    pub count: c_uint,
    pub paramArray: In<CUstreamBatchMemOpParams>,
    pub flags: c_uint,
}

/// The annotation of an edge: `CUgraphEdgeData`. All zeros mean a plain dependency.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUgraphEdgeData {
    pub from_port: u8,
    pub to_port: u8,
    pub kind: u8,
    pub reserved: [u8; 5],
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUgraphExecUpdateResultInfo {
    pub result: CUgraphExecUpdateResult,
    pub errorNode: CUgraphNode,
    pub errorFromNode: CUgraphNode,
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct CUDA_GRAPH_INSTANTIATE_PARAMS {
    pub flags: u64,
    pub hUploadStream: CUstream,
    pub hErrNode_out: CUgraphNode,
    pub result_out: CUgraphInstantiateResult,
}
