//! Nodes of graphs and their parameters, in graphs and in executable graphs.

use super::copy_rows::copy_of;
use super::entries;
use super::graph::add_node;
use super::node_params::{Change, replace_in};
use crate::code::{self, Launch, Shape};
use crate::engine::{EVENTS, HostFunction};
use crate::graph::nodes::{DEEPEST, with_node};
use crate::graph::{self, Fill, Graph, Kernel, Task};
use crate::report::log;
use crate::types::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUkernel,
    CUlaunchAttributeID, CUlaunchAttributeValue, In, Out, Result, Status,
};
use std::sync::Arc;

entries! {
    /// Adds a kernel node.
    fn cuGraphAddKernelNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_KERNEL_NODE_PARAMS_v1>,
    ) {
        add_node(node, graph, behind, count, |_| kernel(&params.get()?))
    }

    /// Adds a kernel node, also for a library's kernel.
    fn cuGraphAddKernelNode_v2(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_KERNEL_NODE_PARAMS_v2>,
    ) {
        add_node(node, graph, behind, count, |_| kernel(&first_version(&params.get()?)?))
    }

    /// Changes a kernel node for later launches.
    fn cuGraphExecKernelNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v1>,
    ) {
        replace_in(exec, node, Change::Kernel(params.get()?))
    }

    /// Changes a kernel node for later launches, also to a library's kernel.
    fn cuGraphExecKernelNodeSetParams_v2(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v2>,
    ) {
        replace_in(exec, node, Change::Kernel(first_version(&params.get()?)?))
    }

    /// Sets an attribute of a kernel node.
    fn cuGraphKernelNodeSetAttribute(
        node: CUgraphNode, id: CUlaunchAttributeID, value: In<CUlaunchAttributeValue>,
    ) {
        let value = value.get()?;
        with_node(node, |entry| match &mut entry.task {
            Task::Kernel(kernel) => kernel.set_attribute(id, value),
            _ => Err(Status::INVALID_VALUE),
        })
    }

    /// Adds a copy node.
    fn cuGraphAddMemcpyNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, params: In<CUDA_MEMCPY3D>,
        context: CUcontext,
    ) {
        add_node(node, graph, behind, count, |_| copy(&params.get()?, context))
    }

    /// Changes a copy node for later launches.
    fn cuGraphExecMemcpyNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_MEMCPY3D>, context: CUcontext,
    ) {
        replace_in(exec, node, Change::Task(copy(&params.get()?, context)?))
    }

    /// Adds a memset node.
    fn cuGraphAddMemsetNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_MEMSET_NODE_PARAMS>, context: CUcontext,
    ) {
        add_node(node, graph, behind, count, |_| fill(&params.get()?, context))
    }

    /// Changes a memset node for later launches.
    fn cuGraphExecMemsetNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_MEMSET_NODE_PARAMS>, context: CUcontext,
    ) {
        replace_in(exec, node, Change::Task(fill(&params.get()?, context)?))
    }

    /// Adds a host node, which calls a function.
    fn cuGraphAddHostNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_HOST_NODE_PARAMS>,
    ) {
        add_node(node, graph, behind, count, |_| host(params.get()?))
    }

    /// Adds a child graph node, with a copy of a graph.
    fn cuGraphAddChildGraphNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, child: CUgraph,
    ) {
        add_node(node, graph, behind, count, |into| self::child(into, child, false))
    }

    /// Changes the graph of a child graph node for later launches, to one of the same shape.
    fn cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        graph::exec(exec)?.update_child(node, &*graph::graph(child)?)
    }

    /// Adds an empty node.
    fn cuGraphAddEmptyNode(node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize) {
        add_node(node, graph, behind, count, |_| Ok(Task::Empty))
    }

    /// Adds an event record node.
    fn cuGraphAddEventRecordNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, event: CUevent,
    ) {
        add_node(node, graph, behind, count, |_| Ok(Task::Record(EVENTS.get(event.0)?)))
    }

    /// Adds an event wait node.
    fn cuGraphAddEventWaitNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, event: CUevent,
    ) {
        add_node(node, graph, behind, count, |_| Ok(Task::Wait(EVENTS.get(event.0)?)))
    }
}

/// A node with a clone of a graph, or with the graph itself.
pub(super) fn child(into: &Graph, child: CUgraph, moves: bool) -> Result<Task> {
    let child = graph::graph(child)?;
    if into.depth() + child.depth() > DEEPEST {
        log::misuse(&format_args!("more than {DEEPEST} graphs inside of one another"));
        return Err(Status::INVALID_VALUE);
    }
    child.is_no_moved_one()?;
    Ok(Task::Child(if moves { child.move_into(into)? } else { child.copy(true)? }))
}

pub(super) fn kernel(params: &CUDA_KERNEL_NODE_PARAMS_v1) -> Result<Task> {
    Ok(Task::Kernel(Kernel::new(launch(params, None)?)))
}

fn launch(params: &CUDA_KERNEL_NODE_PARAMS_v1, of: Option<&Shape>) -> Result<Launch> {
    let shape = Shape {
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block: [params.blockDimX, params.blockDimY, params.blockDimZ],
        shared: params.sharedMemBytes,
        cooperative: of.is_some_and(|shape| shape.cooperative),
        cluster: of.and_then(|shape| shape.cluster),
    };
    Launch::new(code::function(params.func)?, shape, params.kernelParams, params.extra)
}

/// The function, given directly, or as a kernel and a context.
pub(super) fn first_version(params: &CUDA_KERNEL_NODE_PARAMS_v2) -> Result<CUDA_KERNEL_NODE_PARAMS_v1> {
    let func = match (params.first.func, params.kern) {
        (func, CUkernel::NULL) => func,
        (CUfunction::NULL, kernel) => {
            let context = match params.ctx {
                CUcontext::NULL => crate::state::current()?,
                handle => crate::state::CONTEXTS.get(handle.0).map_err(|_| Status::INVALID_CONTEXT)?,
            };
            code::KERNELS.get(kernel.0)?.function(&context)?.handle
        }
        _ => {
            log::misuse(&"a function and a kernel are given: give one of them");
            return Err(Status::INVALID_VALUE);
        }
    };
    Ok(CUDA_KERNEL_NODE_PARAMS_v1 { func, ..params.first })
}

/// The launch with other parameters, and the same attributes.
pub(super) fn change(kernel: &mut Kernel, params: &CUDA_KERNEL_NODE_PARAMS_v1) -> Result<()> {
    let launch = launch(params, Some(&kernel.launch.shape))?;
    if launch.function.code.context.id != kernel.launch.function.code.context.id {
        log::misuse(&"a launch stays in its context");
        return Err(Status::INVALID_VALUE);
    }
    kernel.launch = Arc::new(launch);
    Ok(())
}

/// Checks that the context of a node exists.
pub(super) fn check_context(context: CUcontext) -> Result<()> {
    crate::state::CONTEXTS.get(context.0).map_err(|_| Status::INVALID_CONTEXT)?.check()
}

pub(super) fn copy(params: &CUDA_MEMCPY3D, context: CUcontext) -> Result<Task> {
    check_context(context)?;
    let copy = copy_of(params)?.ok_or(Status::INVALID_VALUE)?;
    Ok(Task::Copy(Arc::new(copy)))
}

pub(super) fn fill(params: &CUDA_MEMSET_NODE_PARAMS, context: CUcontext) -> Result<Task> {
    check_context(context)?;
    Ok(Task::Fill(Fill::new(params)?))
}

pub(super) fn host(params: CUDA_HOST_NODE_PARAMS) -> Result<Task> {
    let function = params.function.ok_or(Status::INVALID_VALUE)?;
    Ok(Task::Host(HostFunction::new(function, params.userData)))
}
