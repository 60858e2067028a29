//! Nodes of graphs: what they do, read and set in graphs and in those that are ready to run.

use super::copy_rows::copy_of;
use super::entries;
use super::graph::add_node;
use crate::code::{self, Launch, Shape};
use crate::engine::EVENTS;
use crate::graph::nodes::{DEEPEST, with_node};
use crate::graph::{self, EventTask, Fill, Graph, Host, Kernel, Task};
use crate::report::log;
use crate::types::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode,
    CUgraphNodeType, CUkernel, CUlaunchAttributeID, CUlaunchAttributeValue, In, Out, Result, Status,
};

entries! {
    /// Adds a launch.
    fn cuGraphAddKernelNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_KERNEL_NODE_PARAMS_v1>,
    ) {
        add_node(node, graph, behind, count, |_| Ok(Task::kernel(launch(&params.get()?, false)?)))
    }

    /// Adds a launch, also of a library's kernel.
    fn cuGraphAddKernelNode_v2(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_KERNEL_NODE_PARAMS_v2>,
    ) {
        add_node(node, graph, behind, count, |_| Ok(Task::kernel(launch(&first_version(&params.get()?)?, false)?)))
    }

    /// A launch, as it would be described. The pointers are good until it is changed.
    fn cuGraphKernelNodeGetParams(node: CUgraphNode, params: Out<CUDA_KERNEL_NODE_PARAMS_v1>) {
        params.required()?;
        params.set(with_kernel(node, |kernel| Ok(kernel.describe()))?)
    }

    /// The same, where the kernel may be a library's.
    fn cuGraphKernelNodeGetParams_v2(node: CUgraphNode, params: Out<CUDA_KERNEL_NODE_PARAMS_v2>) {
        params.required()?;
        let (v1, context) =
            with_kernel(node, |kernel| Ok((kernel.describe(), kernel.launch.function().code().context().handle())))?;
        params.set(CUDA_KERNEL_NODE_PARAMS_v2 {
            func: v1.func,
            gridDimX: v1.gridDimX,
            gridDimY: v1.gridDimY,
            gridDimZ: v1.gridDimZ,
            blockDimX: v1.blockDimX,
            blockDimY: v1.blockDimY,
            blockDimZ: v1.blockDimZ,
            sharedMemBytes: v1.sharedMemBytes,
            kernelParams: v1.kernelParams,
            extra: v1.extra,
            kern: CUkernel::NULL,
            ctx: context,
        })
    }

    /// Changes a launch.
    fn cuGraphKernelNodeSetParams(node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v1>) {
        let params = params.get()?;
        with_kernel(node, |kernel| change(kernel, &params))
    }

    /// Changes a launch, also to one of a library's kernel.
    fn cuGraphKernelNodeSetParams_v2(node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v2>) {
        let params = first_version(&params.get()?)?;
        with_kernel(node, |kernel| change(kernel, &params))
    }

    /// Changes a launch of later runs.
    fn cuGraphExecKernelNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v1>,
    ) {
        change_in(exec, node, &params.get()?)
    }

    /// Changes a launch of later runs, also to one of a library's kernel.
    fn cuGraphExecKernelNodeSetParams_v2(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_KERNEL_NODE_PARAMS_v2>,
    ) {
        change_in(exec, node, &first_version(&params.get()?)?)
    }

    /// An attribute of a launch.
    fn cuGraphKernelNodeGetAttribute(
        node: CUgraphNode, id: CUlaunchAttributeID, value: Out<CUlaunchAttributeValue>,
    ) {
        value.required()?;
        value.set(with_kernel(node, |kernel| kernel.attribute(id))?)
    }

    /// Sets an attribute of a launch.
    fn cuGraphKernelNodeSetAttribute(
        node: CUgraphNode, id: CUlaunchAttributeID, value: In<CUlaunchAttributeValue>,
    ) {
        let value = value.get()?;
        with_kernel(node, |kernel| kernel.set_attribute(id, value))
    }

    /// Gives a launch the attributes of another one.
    fn cuGraphKernelNodeCopyAttributes(target: CUgraphNode, source: CUgraphNode) {
        let source = with_kernel(source, |kernel| Ok(kernel.clone()))?;
        with_kernel(target, |kernel| {
            *kernel = kernel.clone().with_attributes_of(&source)?;
            Ok(())
        })
    }

    /// Adds a copy.
    fn cuGraphAddMemcpyNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, params: In<CUDA_MEMCPY3D>,
        context: CUcontext,
    ) {
        add_node(node, graph, behind, count, |_| copy(params, Some(context)))
    }

    /// A copy, as it was described.
    fn cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: Out<CUDA_MEMCPY3D>) {
        params.required()?;
        params.set(with_node(node, |entry| match &entry.task {
            Task::Copy(copy) => Ok(copy.describe()),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Changes a copy.
    fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: In<CUDA_MEMCPY3D>) {
        replace(node, copy(params, None)?)
    }

    /// Changes a copy of later runs.
    fn cuGraphExecMemcpyNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_MEMCPY3D>, context: CUcontext,
    ) {
        replace_in(exec, node, copy(params, Some(context))?)
    }

    /// Adds memory that becomes a value.
    fn cuGraphAddMemsetNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_MEMSET_NODE_PARAMS>, context: CUcontext,
    ) {
        add_node(node, graph, behind, count, |_| fill(params, Some(context)))
    }

    /// What memory becomes, as it was described.
    fn cuGraphMemsetNodeGetParams(node: CUgraphNode, params: Out<CUDA_MEMSET_NODE_PARAMS>) {
        params.required()?;
        params.set(with_node(node, |entry| match &entry.task {
            Task::Fill(fill) => Ok(fill.given),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Changes what memory becomes.
    fn cuGraphMemsetNodeSetParams(node: CUgraphNode, params: In<CUDA_MEMSET_NODE_PARAMS>) {
        replace(node, fill(params, None)?)
    }

    /// Changes what memory becomes in later runs.
    fn cuGraphExecMemsetNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_MEMSET_NODE_PARAMS>, context: CUcontext,
    ) {
        replace_in(exec, node, fill(params, Some(context))?)
    }

    /// Adds a call of a function.
    fn cuGraphAddHostNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: In<CUDA_HOST_NODE_PARAMS>,
    ) {
        add_node(node, graph, behind, count, |_| Ok(Task::Host(Host::new(&params.get()?)?)))
    }

    /// A call of a function, as it was described.
    fn cuGraphHostNodeGetParams(node: CUgraphNode, params: Out<CUDA_HOST_NODE_PARAMS>) {
        params.required()?;
        params.set(with_node(node, |entry| match &entry.task {
            Task::Host(host) => Ok(host.describe()),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Changes a call of a function.
    fn cuGraphHostNodeSetParams(node: CUgraphNode, params: In<CUDA_HOST_NODE_PARAMS>) {
        replace(node, Task::Host(Host::new(&params.get()?)?))
    }

    /// Changes a call of a function in later runs.
    fn cuGraphExecHostNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: In<CUDA_HOST_NODE_PARAMS>) {
        replace_in(exec, node, Task::Host(Host::new(&params.get()?)?))
    }

    /// Adds a copy of a graph.
    fn cuGraphAddChildGraphNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, child: CUgraph,
    ) {
        add_node(node, graph, behind, count, |into| self::child(into, child))
    }

    /// The graph that a node is.
    fn cuGraphChildGraphNodeGetGraph(node: CUgraphNode, child: Out<CUgraph>) {
        child.required()?;
        child.set(with_node(node, |entry| match &entry.task {
            Task::Child(graph) => Ok(graph.handle()),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Changes the graph that a node is in later runs to one of the same shape.
    fn cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        graph::exec(exec)?.update_child(node, &*graph::graph(child)?)
    }

    /// Adds a node that does nothing.
    fn cuGraphAddEmptyNode(node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize) {
        add_node(node, graph, behind, count, |_| Ok(Task::Empty))
    }

    /// Adds the recording of an event.
    fn cuGraphAddEventRecordNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, event: CUevent,
    ) {
        add_node(node, graph, behind, count, |_| Ok(Task::Record(event_task(event)?)))
    }

    /// The event that is recorded.
    fn cuGraphEventRecordNodeGetEvent(node: CUgraphNode, event: Out<CUevent>) {
        event.required()?;
        event.set(with_node(node, |entry| match &entry.task {
            Task::Record(event) => Ok(event.handle),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Changes the event that is recorded.
    fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent) {
        replace(node, Task::Record(event_task(event)?))
    }

    /// Changes the event that is recorded in later runs.
    fn cuGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        replace_in(exec, node, Task::Record(event_task(event)?))
    }

    /// Adds waiting for an event.
    fn cuGraphAddEventWaitNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, event: CUevent,
    ) {
        add_node(node, graph, behind, count, |_| Ok(Task::Wait(event_task(event)?)))
    }

    /// The event that is waited for.
    fn cuGraphEventWaitNodeGetEvent(node: CUgraphNode, event: Out<CUevent>) {
        event.required()?;
        event.set(with_node(node, |entry| match &entry.task {
            Task::Wait(event) => Ok(event.handle),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Changes the event that is waited for.
    fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent) {
        replace(node, Task::Wait(event_task(event)?))
    }

    /// Changes the event that is waited for in later runs.
    fn cuGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        replace_in(exec, node, Task::Wait(event_task(event)?))
    }
}

fn child(into: &Graph, child: CUgraph) -> Result<Task> {
    let child = graph::graph(child)?;
    if into.depth() + child.depth() > DEEPEST {
        log::misuse(&format_args!("more than {DEEPEST} graphs inside of one another"));
        return Err(Status::INVALID_VALUE);
    }
    Ok(Task::Child(child.copy(true)?))
}

fn launch(params: &CUDA_KERNEL_NODE_PARAMS_v1, cooperative: bool) -> Result<Launch> {
    let shape = Shape {
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block: [params.blockDimX, params.blockDimY, params.blockDimZ],
        shared: params.sharedMemBytes,
        cooperative,
    };
    Launch::new(code::function(params.func)?, shape, params.kernelParams, params.extra)
}

/// The function is given by itself, or as a kernel and a context.
fn first_version(params: &CUDA_KERNEL_NODE_PARAMS_v2) -> Result<CUDA_KERNEL_NODE_PARAMS_v1> {
    let func = match (params.func, params.kern) {
        (func, CUkernel::NULL) => func,
        (CUfunction::NULL, kernel) => {
            let context = match params.ctx {
                CUcontext::NULL => crate::state::current()?,
                handle => crate::state::CONTEXTS.get(handle.0).map_err(|_| Status::INVALID_CONTEXT)?,
            };
            code::KERNELS.get(kernel.0)?.function(&context)?.handle()
        }
        _ => {
            log::misuse(&"a function and a kernel are given: give one of them");
            return Err(Status::INVALID_VALUE);
        }
    };
    Ok(CUDA_KERNEL_NODE_PARAMS_v1 {
        func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
    })
}

fn with_kernel<R>(node: CUgraphNode, with: impl FnOnce(&mut Kernel) -> Result<R>) -> Result<R> {
    with_node(node, |entry| match &mut entry.task {
        Task::Kernel(kernel) => with(kernel),
        _ => Err(Status::INVALID_VALUE),
    })
}

/// A launch becomes another one, with its attributes.
fn change(kernel: &mut Kernel, params: &CUDA_KERNEL_NODE_PARAMS_v1) -> Result<()> {
    let launch = launch(params, kernel.launch.shape().cooperative)?;
    if launch.function().code().context().id() != kernel.launch.function().code().context().id() {
        log::misuse(&"a launch stays in its context");
        return Err(Status::INVALID_VALUE);
    }
    *kernel = Kernel::new(launch).with_attributes_of(kernel)?;
    Ok(())
}

fn change_in(exec: CUgraphExec, node: CUgraphNode, params: &CUDA_KERNEL_NODE_PARAMS_v1) -> Result<()> {
    graph::exec(exec)?.with_node(node, CUgraphNodeType::KERNEL, |task| match task {
        Task::Kernel(kernel) => change(kernel, params),
        _ => Err(Status::INVALID_VALUE),
    })
}

fn replace(node: CUgraphNode, task: Task) -> Result<()> {
    with_node(node, |entry| match entry.task.kind() == task.kind() {
        true => {
            entry.task = task;
            Ok(())
        }
        false => Err(Status::INVALID_VALUE),
    })
}

fn replace_in(exec: CUgraphExec, node: CUgraphNode, task: Task) -> Result<()> {
    graph::exec(exec)?.with_node(node, task.kind(), |old| {
        if !old.takes_alone(&task) {
            log::misuse(
                &"a node of an executable graph takes memory that is mapped as before, and copies of one row",
            );
            return Err(Status::INVALID_VALUE);
        }
        *old = task;
        Ok(())
    })
}

/// The context of a node that is given one must be there.
fn check_context(context: Option<CUcontext>) -> Result<()> {
    match context {
        None => Ok(()),
        Some(context) => crate::state::CONTEXTS.get(context.0).map_err(|_| Status::INVALID_CONTEXT)?.check(),
    }
}

fn copy(params: In<CUDA_MEMCPY3D>, context: Option<CUcontext>) -> Result<Task> {
    check_context(context)?;
    let params = params.get()?;
    let copy = copy_of(&params)?.ok_or(Status::INVALID_VALUE)?;
    Ok(Task::copy(params, copy))
}

fn fill(params: In<CUDA_MEMSET_NODE_PARAMS>, context: Option<CUcontext>) -> Result<Task> {
    check_context(context)?;
    Ok(Task::Fill(Fill::new(params.get()?)?))
}

fn event_task(handle: CUevent) -> Result<EventTask> {
    Ok(EventTask { event: EVENTS.get(handle.0)?, handle })
}
