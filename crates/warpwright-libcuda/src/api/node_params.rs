//! The parameters of nodes: returned, and changed.

use super::entries;
use super::graph::add_node;
use super::node::{change, check_context, copy, fill, first_version, host};
use super::stream::value_ops;
use crate::engine::{EVENTS, HostFunction, handle_of_array};
use crate::graph::nodes::with_node;
use crate::graph::{self, Kernel, Task, Values};
use crate::report::log;
use crate::state::current;
use crate::types::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1,
    CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUarray, CUcontext, CUevent, CUgraph,
    CUgraphExec, CUgraphNode, CUgraphNodeType, CUkernel, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUmemorytype, In, Out, Result, Status,
};
use std::ffi::c_uint;
use warpwright_device::{Copy, Memory, Side};

/// What a node becomes.
pub(super) enum Change {
    /// A kernel with other parameters and the same attributes.
    Kernel(CUDA_KERNEL_NODE_PARAMS_v1),
    /// Another task of the same kind.
    Task(Task),
}

entries! {
    /// Returns the parameters of a kernel node.
    fn cuGraphKernelNodeGetParams(node: CUgraphNode, params: Out<CUDA_KERNEL_NODE_PARAMS_v1>) {
        params.set(of_kernel(node, |kernel| Ok(kernel_params(kernel).first))?)
    }

    /// Returns the parameters of a kernel node, with the context of its function.
    fn cuGraphKernelNodeGetParams_v2(node: CUgraphNode, params: Out<CUDA_KERNEL_NODE_PARAMS_v2>) {
        params.set(of_kernel(node, |kernel| Ok(kernel_params(kernel)))?)
    }

    /// Changes a kernel node.
    fn cuGraphKernelNodeSetParams(node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v1>) {
        replace(node, Change::Kernel(params.get()?))
    }

    /// Changes a kernel node, also to a library's kernel.
    fn cuGraphKernelNodeSetParams_v2(node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v2>) {
        replace(node, Change::Kernel(first_version(&params.get()?)?))
    }

    /// Returns an attribute of a kernel node.
    fn cuGraphKernelNodeGetAttribute(
        node: CUgraphNode, id: CUlaunchAttributeID, value: Out<CUlaunchAttributeValue>,
    ) {
        value.required()?;
        value.set(of_kernel(node, |kernel| kernel.attribute(id))?)
    }

    /// Gives a kernel node the attributes of another one.
    fn cuGraphKernelNodeCopyAttributes(to: CUgraphNode, from: CUgraphNode) {
        let from = of_kernel(from, |kernel| Ok(kernel.clone()))?;
        of_kernel(to, |kernel| kernel.set_attributes_of(&from))
    }

    /// Returns the parameters of a copy node. The offsets are in the addresses.
    fn cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: Out<CUDA_MEMCPY3D>) {
        tell(node, params, |task| match task {
            Task::Copy(copy) => Some(copy_params(copy)),
            _ => None,
        })
    }

    /// Changes a copy node.
    fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: In<CUDA_MEMCPY3D>) {
        replace(node, Change::Task(copy(&params.get()?, current()?.handle)?))
    }

    /// Returns the parameters of a memset node.
    fn cuGraphMemsetNodeGetParams(node: CUgraphNode, params: Out<CUDA_MEMSET_NODE_PARAMS>) {
        tell(node, params, |task| match task {
            Task::Fill(fill) => Some(fill.params()),
            _ => None,
        })
    }

    /// Changes a memset node.
    fn cuGraphMemsetNodeSetParams(node: CUgraphNode, params: In<CUDA_MEMSET_NODE_PARAMS>) {
        replace(node, Change::Task(fill(&params.get()?, current()?.handle)?))
    }

    /// Returns the function of a host node.
    fn cuGraphHostNodeGetParams(node: CUgraphNode, params: Out<CUDA_HOST_NODE_PARAMS>) {
        tell(node, params, |task| match task {
            Task::Host(function) => Some(host_params(*function)),
            _ => None,
        })
    }

    /// Changes a host node.
    fn cuGraphHostNodeSetParams(node: CUgraphNode, params: In<CUDA_HOST_NODE_PARAMS>) {
        replace(node, Change::Task(host(params.get()?)?))
    }

    /// Changes a host node for later launches.
    fn cuGraphExecHostNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_HOST_NODE_PARAMS>) {
        replace_in(exec, node, Change::Task(host(params.get()?)?))
    }

    /// Returns the graph of a child graph node.
    fn cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: Out<CUgraph>) {
        tell(node, graph, |task| match task {
            Task::Child(graph) => Some(graph.handle),
            _ => None,
        })
    }

    /// Returns the event that a node records.
    fn cuGraphEventRecordNodeGetEvent(node: CUgraphNode, event: Out<CUevent>) {
        event.set(event_of(node, CUgraphNodeType::EVENT_RECORD)?)
    }

    /// Changes the event that a node records.
    fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent) {
        replace(node, Change::Task(Task::Record(EVENTS.get(event.0)?)))
    }

    /// Changes the event that a node records for later launches.
    fn cuGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        replace_in(exec, node, Change::Task(Task::Record(EVENTS.get(event.0)?)))
    }

    /// Returns the event that a node waits for.
    fn cuGraphEventWaitNodeGetEvent(node: CUgraphNode, event: Out<CUevent>) {
        event.set(event_of(node, CUgraphNodeType::WAIT_EVENT)?)
    }

    /// Changes the event that a node waits for.
    fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent) {
        replace(node, Change::Task(Task::Wait(EVENTS.get(event.0)?)))
    }

    /// Changes the event that a node waits for in later launches.
    fn cuGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        replace_in(exec, node, Change::Task(Task::Wait(EVENTS.get(event.0)?)))
    }

    /// Adds a node that waits for values in memory and writes them.
    fn cuGraphAddBatchMemOpNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
    ) {
        add_node(node, graph, behind, count, |_| values(&params.get()?))
    }

    /// Returns the operations of a node on values in memory.
    fn cuGraphBatchMemOpNodeGetParams(node: CUgraphNode, params: Out<CUDA_BATCH_MEM_OP_NODE_PARAMS>) {
        params.set(with_node(node, |entry| match &entry.task {
            Task::Values(values) => values_params(values),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Changes the operations of a node on values in memory.
    fn cuGraphBatchMemOpNodeSetParams(node: CUgraphNode, params: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>) {
        replace(node, Change::Task(values(&params.get()?)?))
    }

    /// Changes the operations of a node on values in memory for later launches.
    fn cuGraphExecBatchMemOpNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
    ) {
        replace_in(exec, node, Change::Task(values(&params.get()?)?))
    }
}

/// Changes a node of a graph.
pub(super) fn replace(node: CUgraphNode, new: Change) -> Result<()> {
    with_node(node, |entry| match (&mut entry.task, new) {
        (Task::Kernel(kernel), Change::Kernel(params)) => change(kernel, &params),
        (task, Change::Task(new)) if task.kind() == new.kind() => {
            *task = new;
            Ok(())
        }
        _ => Err(Status::INVALID_VALUE),
    })
}

/// Changes a node of an executable graph for later launches.
pub(super) fn replace_in(exec: CUgraphExec, node: CUgraphNode, new: Change) -> Result<()> {
    let exec = graph::exec(exec)?;
    match new {
        Change::Kernel(params) => exec.with_node(node, CUgraphNodeType::KERNEL, |task| match task {
            Task::Kernel(kernel) => change(kernel, &params),
            _ => Err(Status::INVALID_VALUE),
        }),
        Change::Task(new) => exec.with_node(node, new.kind(), |old| {
            if !old.takes_alone(&new) {
                log::misuse(
                    &"a node of an executable graph takes memory that is mapped as before, and copies of one row",
                );
                return Err(Status::INVALID_VALUE);
            }
            *old = new;
            Ok(())
        }),
    }
}

fn of_kernel<R>(node: CUgraphNode, with: impl FnOnce(&mut Kernel) -> Result<R>) -> Result<R> {
    with_node(node, |entry| match &mut entry.task {
        Task::Kernel(kernel) => with(kernel),
        _ => Err(Status::INVALID_VALUE),
    })
}

fn event_of(node: CUgraphNode, kind: CUgraphNodeType) -> Result<CUevent> {
    with_node(node, |entry| match &entry.task {
        Task::Record(event) | Task::Wait(event) if entry.task.kind() == kind => Ok(event.handle),
        _ => Err(Status::INVALID_VALUE),
    })
}

/// The parameters of a kernel. The list of values belongs to the node.
pub(super) fn kernel_params(kernel: &Kernel) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    let launch = &kernel.launch;
    let ([gridDimX, gridDimY, gridDimZ], [blockDimX, blockDimY, blockDimZ]) =
        (launch.shape.grid, launch.shape.block);
    CUDA_KERNEL_NODE_PARAMS_v2 {
        first: CUDA_KERNEL_NODE_PARAMS_v1 {
            func: launch.function.handle,
            gridDimX,
            gridDimY,
            gridDimZ,
            blockDimX,
            blockDimY,
            blockDimZ,
            sharedMemBytes: launch.shape.shared,
            kernelParams: launch.params(),
            extra: In::null(),
        },
        kern: CUkernel::NULL,
        ctx: launch.function.code.context.handle,
    }
}

/// One side of a copy as the interface describes it: kind, pointer, array, offsets, pitch and rows of a slice.
struct Told {
    kind: CUmemorytype,
    address: u64,
    array: CUarray,
    at: [usize; 3],
    pitch: usize,
    height: usize,
}

impl Told {
    fn of(side: &Side, copy: &Copy) -> Told {
        let layout = side.layout;
        let pitch = if layout.pitch == 0 { copy.width } else { layout.pitch };
        let height = if layout.slice == 0 { copy.height } else { layout.slice / pitch };
        let (kind, address) = match &side.memory {
            Memory::Known(bytes) if bytes.is_mapped() => (CUmemorytype::HOST, bytes.address()),
            Memory::Known(bytes) => (CUmemorytype::DEVICE, bytes.address()),
            Memory::Host(host) => (CUmemorytype::HOST, host.address()),
            Memory::Staged(_) => (CUmemorytype::HOST, 0),
        };
        match handle_of_array(address).filter(|_| kind == CUmemorytype::DEVICE) {
            Some((array, base)) => {
                let (from, slice) = (address - base, layout.slice.max(1));
                let at = [from % slice % pitch, from % slice / pitch, from / slice].map(|at| at as usize);
                Told { kind: CUmemorytype::ARRAY, address: 0, array, at, pitch: 0, height: 0 }
            }
            None => {
                let (pitch, height) = (pitch as usize, height as usize);
                Told { kind, address, array: CUarray::NULL, at: [0; 3], pitch, height }
            }
        }
    }

    fn host(&self) -> usize {
        if self.kind == CUmemorytype::HOST { self.address as usize } else { 0 }
    }

    fn device(&self) -> u64 {
        if self.kind == CUmemorytype::DEVICE { self.address } else { 0 }
    }
}

/// The parameters of a copy. The offsets in memory are in the addresses.
pub(super) fn copy_params(copy: &Copy) -> CUDA_MEMCPY3D {
    let (from, to) = (Told::of(&copy.source, copy), Told::of(&copy.target, copy));
    CUDA_MEMCPY3D {
        srcXInBytes: from.at[0],
        srcY: from.at[1],
        srcZ: from.at[2],
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: std::ptr::with_exposed_provenance(from.host()),
        srcDevice: from.device(),
        srcArray: from.array,
        srcContext: CUcontext::NULL,
        srcPitch: from.pitch,
        srcHeight: from.height,
        dstXInBytes: to.at[0],
        dstY: to.at[1],
        dstZ: to.at[2],
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: std::ptr::with_exposed_provenance_mut(to.host()),
        dstDevice: to.device(),
        dstArray: to.array,
        dstContext: CUcontext::NULL,
        dstPitch: to.pitch,
        dstHeight: to.height,
        WidthInBytes: copy.width as usize,
        Height: copy.height as usize,
        Depth: copy.depth as usize,
    }
}

/// Writes what the task of a node of one kind says; another kind's says nothing.
fn tell<T>(node: CUgraphNode, to: Out<T>, of: impl FnOnce(&Task) -> Option<T>) -> Result<()> {
    to.set(with_node(node, |entry| of(&entry.task).ok_or(Status::INVALID_VALUE))?)
}

/// The parameters of a host node.
pub(super) fn host_params(function: HostFunction) -> CUDA_HOST_NODE_PARAMS {
    let (function, userData) = function.parts();
    CUDA_HOST_NODE_PARAMS { function: Some(function), userData }
}

/// A node that waits for values in memory and writes them.
pub(super) fn values(params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Result<Task> {
    if !params.ctx.is_null() {
        check_context(params.ctx)?;
    }
    let ops = value_ops(params.count, params.paramArray, params.flags)?;
    Ok(Task::Values(Values::new(ops.into())))
}

/// The parameters of such a node. The list of operations belongs to it.
pub(super) fn values_params(values: &Values) -> Result<CUDA_BATCH_MEM_OP_NODE_PARAMS> {
    let params = values.params();
    Ok(CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: current()?.handle,
        count: params.len() as c_uint,
        // SAFETY: the list stays where it is as long as the node, which is as long as the interface promises.
        paramArray: unsafe { In::new(params.as_ptr()) },
        flags: 0,
    })
}
