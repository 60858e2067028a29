//! Nodes of any kind, by one structure.

use super::condition::{conditional, conditional_params};
use super::entries;
use super::graph::{add_node, add_node_with_edges};
use super::graph_memory::{alloc, alloc_params};
use super::node::{child, copy, fill, first_version, host, kernel};
use super::node_params::{
    Change, copy_params, host_params, kernel_params, replace, replace_in, values, values_params,
};
use crate::engine::EVENTS;
use crate::graph::nodes::with_node;
use crate::graph::{Graph, Task};
use crate::report::log;
use crate::state::current;
use crate::types::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_CHILD_GRAPH_NODE_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS,
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY_NODE_PARAMS,
    CUDA_MEMSET_NODE_PARAMS_v2, CUcontext, CUdeviceptr, CUevent, CUgraph, CUgraphEdgeData, CUgraphExec,
    CUgraphNode, CUgraphNodeParams, CUgraphNodeType as Kind, In, Out, Result, Status,
};
use std::ffi::c_int;

/// The parameters of a node with the structure of its kind.
#[repr(C)]
#[derive(Clone, Copy)]
struct Of<T> {
    kind: Kind,
    reserved: [c_int; 3],
    body: T,
}

/// What becomes of child graphs: the node has a clone, or the graph itself; and what answers say.
const CLONE: c_int = 0;
const MOVE: c_int = 1;
const NO_OWNERSHIP: c_int = -1;

entries! {
    /// Adds a node of any kind.
    fn cuGraphAddNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, params: Out<CUgraphNodeParams>,
    ) {
        add_node(node, graph, behind, count, |into| task(Some(into), params))
    }

    /// Adds a node of any kind, with annotations of its edges.
    fn cuGraphAddNode_v2 = cuGraphAddNode_v3(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, edges: In<CUgraphEdgeData>, count: usize,
        params: Out<CUgraphNodeParams>,
    ) {
        add_node_with_edges(node, graph, behind, edges, count, |into| task(Some(into), params))
    }

    /// Changes a node of any kind.
    fn cuGraphNodeSetParams_v2 = cuGraphNodeSetParams(node: CUgraphNode, params: Out<CUgraphNodeParams>) {
        replace(node, change(params)?)
    }

    /// Changes a node of any kind for later launches of an executable graph.
    fn cuGraphExecNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: Out<CUgraphNodeParams>) {
        if params.given().get()?.kind == Kind::GRAPH {
            let child = body::<CUDA_CHILD_GRAPH_NODE_PARAMS>(params)?.graph;
            return crate::graph::exec(exec)?.update_child(node, &*crate::graph::graph(child)?);
        }
        replace_in(exec, node, change(params)?)
    }

    /// Returns the parameters of a node of any kind.
    fn cuGraphNodeGetParams(node: CUgraphNode, params: Out<CUgraphNodeParams>) {
        params.required()?;
        with_node(node, |entry| tell(&entry.task, params))
    }
}

/// The structure of the kind.
fn body<T: Copy>(params: Out<CUgraphNodeParams>) -> Result<T> {
    const { assert!(size_of::<Of<T>>() <= size_of::<CUgraphNodeParams>()) };
    // SAFETY: the client's structure, of which the interface says that it has that one behind the kind.
    unsafe { params.given().cast::<Of<T>>() }.get().map(|of| of.body)
}

/// Returns the structure of the kind.
fn set_body<T: Copy>(params: Out<CUgraphNodeParams>, kind: Kind, body: T) -> Result<()> {
    const { assert!(size_of::<Of<T>>() <= size_of::<CUgraphNodeParams>()) };
    // SAFETY: as above.
    unsafe { params.cast::<Of<T>>() }.set(Of { kind, reserved: [0; 3], body })
}

/// The context of a node, or the current one.
fn context(given: CUcontext) -> Result<CUcontext> {
    if given.is_null() { Ok(current()?.handle) } else { Ok(given) }
}

/// The task of a node for a graph, or of one that is changed. What is allocated with the node goes into the parameters.
fn task(into: Option<&Graph>, params: Out<CUgraphNodeParams>) -> Result<Task> {
    let kind = params.given().get()?.kind;
    let new = |what: &str| {
        into.ok_or_else(|| {
            log::misuse(&format_args!("the parameters of {what} stay as they are"));
            Status::NOT_SUPPORTED
        })
    };
    Ok(match kind {
        Kind::KERNEL => kernel(&first_version(&body::<CUDA_KERNEL_NODE_PARAMS_v2>(params)?)?)?,
        Kind::MEMCPY => {
            let given: CUDA_MEMCPY_NODE_PARAMS = body(params)?;
            copy(&given.copyParams, context(given.copyCtx)?)?
        }
        Kind::MEMSET => {
            let given: CUDA_MEMSET_NODE_PARAMS_v2 = body(params)?;
            fill(&given.first, context(given.ctx)?)?
        }
        Kind::HOST => host(body::<CUDA_HOST_NODE_PARAMS>(params)?)?,
        Kind::GRAPH => {
            let into = new("a child graph node")?;
            let given: CUDA_CHILD_GRAPH_NODE_PARAMS = body(params)?;
            if ![CLONE, MOVE].contains(&given.ownership) {
                log::misuse(&format_args!("{} is no ownership of a child graph", given.ownership));
                return Err(Status::INVALID_VALUE);
            }
            child(into, given.graph, given.ownership == MOVE)?
        }
        Kind::EMPTY => Task::Empty,
        Kind::WAIT_EVENT => Task::Wait(EVENTS.get(body::<CUevent>(params)?.0)?),
        Kind::EVENT_RECORD => Task::Record(EVENTS.get(body::<CUevent>(params)?.0)?),
        Kind::MEM_ALLOC => {
            let into = new("a node that allocates")?;
            let mut given: CUDA_MEM_ALLOC_NODE_PARAMS = body(params)?;
            let task = alloc(into, &mut given)?;
            set_body(params, kind, given)?;
            task
        }
        Kind::MEM_FREE => new("a node that frees")?.free(body::<CUdeviceptr>(params)?)?,
        Kind::BATCH_MEM_OP => values(&body::<CUDA_BATCH_MEM_OP_NODE_PARAMS>(params)?)?,
        Kind::CONDITIONAL => {
            let into = new("a conditional node")?;
            let mut given: CUDA_CONDITIONAL_NODE_PARAMS = body(params)?;
            let task = conditional(into, &mut given)?;
            set_body(params, kind, given)?;
            task
        }
        Kind::EXT_SEMAS_SIGNAL | Kind::EXT_SEMAS_WAIT => {
            log::misuse(&"external semaphores are not supported, nor are nodes of them");
            return Err(Status::NOT_SUPPORTED);
        }
        other => {
            log::misuse(&format_args!("{} is no kind of a node, or none that is supported", other.0));
            return Err(Status::INVALID_VALUE);
        }
    })
}

/// What a node becomes. Kernels keep their attributes.
fn change(params: Out<CUgraphNodeParams>) -> Result<Change> {
    Ok(match params.given().get()?.kind {
        Kind::KERNEL => Change::Kernel(first_version(&body::<CUDA_KERNEL_NODE_PARAMS_v2>(params)?)?),
        _ => Change::Task(task(None, params)?),
    })
}

/// Returns the parameters of a task.
fn tell(task: &Task, params: Out<CUgraphNodeParams>) -> Result<()> {
    let kind = task.kind();
    params.set(CUgraphNodeParams { kind, reserved: [0; 3], body: [0; 29], reserved2: 0 })?;
    match task {
        Task::Kernel(kernel) => set_body(params, kind, kernel_params(kernel)),
        Task::Copy(copy) => {
            let copyCtx = current()?.handle;
            let given =
                CUDA_MEMCPY_NODE_PARAMS { flags: 0, reserved: 0, copyCtx, copyParams: copy_params(copy) };
            set_body(params, kind, given)
        }
        Task::Fill(fill) => {
            let ctx = current()?.handle;
            set_body(params, kind, CUDA_MEMSET_NODE_PARAMS_v2 { first: fill.params(), ctx })
        }
        Task::Host(function) => set_body(params, kind, host_params(*function)),
        Task::Child(graph) => {
            let given = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: graph.handle, ownership: NO_OWNERSHIP };
            set_body(params, kind, given)
        }
        Task::Empty => Ok(()),
        Task::Record(event) | Task::Wait(event) => set_body(params, kind, event.handle),
        Task::Values(values) => set_body(params, kind, values_params(values)?),
        Task::Alloc(alloc) => set_body(params, kind, alloc_params(alloc)?),
        Task::Free(block) => set_body::<CUdeviceptr>(params, kind, block.base()),
        Task::Conditional(conditional) => set_body(params, kind, conditional_params(conditional)),
    }
}
