//! Graphs, their nodes and edges; instantiating and launching graphs.

use super::entries;
use crate::engine::{Stream, permitted};
use crate::graph::exec::EXECS;
use crate::graph::nodes::{Edge, NodeId, destroy, with_node};
use crate::graph::{self, Exec, Graph, Task, ids};
use crate::lock;
use crate::report::log;
use crate::types::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphNode, CUgraphNodeType, CUstream, In, Out,
    Result, Status, text,
};
use std::collections::HashSet;
use std::ffi::{c_char, c_uint};

entries! {
    /// Creates an empty graph.
    fn cuGraphCreate(made: Out<CUgraph>, flags: c_uint) {
        permitted()?;
        crate::state::state()?;
        made.required()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        made.set(Graph::create(false)?.handle)
    }

    /// Destroys a graph with its nodes. Executable graphs made from it remain.
    fn cuGraphDestroy(graph: CUgraph) {
        permitted()?;
        destroy(graph)
    }

    /// Clones a graph.
    fn cuGraphClone(made: Out<CUgraph>, of: CUgraph) {
        made.required()?;
        made.set(graph::graph(of)?.copy(false)?.handle)
    }

    /// Returns the nodes, in the order of their creation.
    fn cuGraphGetNodes(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) {
        let handles: Vec<_> = lock(&graph::graph(graph)?.state).values().map(|entry| entry.handle).collect();
        list(&handles, nodes, count)
    }

    /// Returns the edges.
    fn cuGraphGetEdges(graph: CUgraph, from: Out<CUgraphNode>, to: Out<CUgraphNode>, count: Out<usize>) {
        if from.is_null() != to.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        tell_edges(graph, from, to, Out::null(), count)
    }

    /// Returns the edges, and what they are.
    fn cuGraphGetEdges_v2(
        graph: CUgraph,
        from: Out<CUgraphNode>,
        to: Out<CUgraphNode>,
        edges: Out<CUgraphEdgeData>,
        count: Out<usize>,
    ) {
        if from.is_null() != to.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        tell_edges(graph, from, to, edges, count)
    }

    /// Adds edges, each from a node to one that was made later.
    fn cuGraphAddDependencies(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) {
        each_edge(graph, (from, to), In::null(), count, Graph::connect)
    }

    /// The same with annotations of the edges: plain and programmatic ones.
    fn cuGraphAddDependencies_v2(
        graph: CUgraph,
        from: In<CUgraphNode>,
        to: In<CUgraphNode>,
        edges: In<CUgraphEdgeData>,
        count: usize,
    ) {
        each_edge(graph, (from, to), edges, count, Graph::connect)
    }

    /// Returns the type of a node.
    fn cuGraphNodeGetType(handle: CUgraphNode, kind: Out<CUgraphNodeType>) {
        kind.required()?;
        kind.set(with_node(handle, |entry| Ok(entry.task.kind()))?)
    }

    /// Writes a graph to a file, as text for Graphviz.
    fn cuGraphDebugDotPrint(graph: CUgraph, file: In<c_char>, flags: c_uint) {
        let graph = graph::graph(graph)?;
        let dot = graph::dot(&graph, flags).map_err(|_| Status::UNKNOWN)?;
        let file = text(file)?;
        std::fs::write(&file, dot).map_err(|error| {
            log::misuse(&format_args!("{file}: {error}"));
            Status::OPERATING_SYSTEM
        })
    }

    /// Instantiates a graph. An error is reported as a node and a text.
    fn cuGraphInstantiate_v2 = cuGraphInstantiate(
        made: Out<CUgraphExec>, graph: CUgraph, node: Out<CUgraphNode>, message: Out<c_char>, room: usize,
    ) {
        made.required()?;
        if !message.is_null() && room > 0 {
            message.set_text("", room)?;
        }
        node.set_if(CUgraphNode::NULL);
        let exec = Exec::create(&*graph::graph(graph)?, 0).map_err(|failure| {
            node.set_if(failure.node);
            failure.status
        })?;
        made.set(exec)
    }

    /// Instantiates a graph.
    fn cuGraphInstantiateWithFlags(made: Out<CUgraphExec>, graph: CUgraph, flags: u64) {
        made.required()?;
        made.set(Exec::create(&*graph::graph(graph)?, flags).map_err(|failure| failure.status)?)
    }

    /// Instantiates a graph, and returns a detailed result.
    fn cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz |default| (
        made: Out<CUgraphExec>,
        graph: CUgraph,
        params: Out<CUDA_GRAPH_INSTANTIATE_PARAMS>,
    ) {
        made.required()?;
        let mut told = params.given().get()?;
        let graph = graph::graph(graph)?;
        if told.flags & graph::exec::UPLOAD != 0 {
            Stream::get(default.resolve(told.hUploadStream))?;
        }
        let exec = Exec::create(&graph, told.flags);
        (told.result_out, told.hErrNode_out) = match &exec {
            Ok(_) => (CUgraphInstantiateResult::SUCCESS, CUgraphNode::NULL),
            Err(failure) => (failure.result, failure.node),
        };
        params.set(told)?;
        made.set(exec.map_err(|failure| failure.status)?)
    }

    /// Launches a graph on a stream.
    fn cuGraphLaunch, cuGraphLaunch_ptsz |default| (exec: CUgraphExec, stream: CUstream) {
        permitted()?;
        let exec = graph::exec(exec)?;
        exec.launch(&Stream::get(default.resolve(stream))?)
    }

    /// Uploads a graph, which has no effect.
    fn cuGraphUpload, cuGraphUpload_ptsz |default| (exec: CUgraphExec, stream: CUstream) {
        graph::exec(exec)?;
        Stream::get(default.resolve(stream)).map(drop)
    }

    /// Destroys an executable graph. Launches that were issued are completed.
    fn cuGraphExecDestroy(exec: CUgraphExec) {
        permitted()?;
        crate::state::state()?;
        EXECS.remove(exec.0).map(drop).map_err(|_| Status::INVALID_VALUE)
    }

    /// Updates an executable graph from a graph of the same shape.
    fn cuGraphExecUpdate(
        exec: CUgraphExec,
        graph: CUgraph,
        node: Out<CUgraphNode>,
        result: Out<CUgraphExecUpdateResult>,
    ) {
        result.required()?;
        let told = update(exec, graph)?;
        node.set_if(told.errorNode);
        result.set(told.result)?;
        updated(told.result)
    }

    /// Updates an executable graph from a graph of the same shape.
    fn cuGraphExecUpdate_v2(exec: CUgraphExec, graph: CUgraph, info: Out<CUgraphExecUpdateResultInfo>) {
        info.required()?;
        let told = update(exec, graph)?;
        info.set(told)?;
        updated(told.result)
    }
}

/// Does something with each pair of nodes that a call names, and with what is between them.
pub(super) fn each_edge(
    graph: CUgraph,
    (from, to): (In<CUgraphNode>, In<CUgraphNode>),
    edges: In<CUgraphEdgeData>,
    count: usize,
    each: fn(&Graph, NodeId, NodeId, Edge) -> Result<()>,
) -> Result<()> {
    permitted()?;
    let graph = graph::graph(graph)?;
    let edges = super::capture::edges(edges, count)?;
    let (from, to) = (ids(&graph, &from.get_all(count)?)?, ids(&graph, &to.get_all(count)?)?);
    from.into_iter().zip(to).zip(edges).try_for_each(|((from, to), edge)| each(&graph, from, to, edge))
}

/// Returns the edges. A client that does not ask what they are gets no programmatic ones.
fn tell_edges(
    graph: CUgraph,
    from: Out<CUgraphNode>,
    to: Out<CUgraphNode>,
    data: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Result<()> {
    let edges = graph::graph(graph)?.edges();
    if from.is_null() {
        return count.set(edges.len());
    }
    told_edges(edges.iter().map(|(_, _, edge)| *edge), data, count)?;
    let (starts, ends): (Vec<_>, Vec<_>) = edges.into_iter().map(|(from, to, _)| (from, to)).unzip();
    let room = count.given().get()?;
    list(&starts, from, count)?;
    count.set(room)?;
    list(&ends, to, count)
}

/// Returns what edges are, as many as the client has room for. One that does not ask gets no programmatic ones.
pub(super) fn told_edges(
    edges: impl Iterator<Item = Edge>,
    data: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Result<()> {
    let programmatic = CUgraphEdgeData { from_port: 1, kind: 1, ..CUgraphEdgeData::default() };
    let kinds = edges.map(|edge| match edge {
        Edge::Plain => CUgraphEdgeData::default(),
        Edge::Programmatic => programmatic,
    });
    let kinds: Vec<CUgraphEdgeData> = kinds.collect();
    if data.is_null() && kinds.contains(&programmatic) {
        log::misuse(
            &"there are programmatic edges, of which only the function tells that returns what edges are",
        );
        return Err(Status::LOSSY_QUERY);
    }
    let room = count.given().get()?;
    if data.is_null() {
        return Ok(());
    }
    let filling = std::iter::repeat_n(CUgraphEdgeData::default(), room.saturating_sub(kinds.len()));
    data.set_all(kinds.into_iter().take(room).chain(filling))
}

/// Returns the number of items, or as many items as the client has room for; unused entries become null.
pub(super) fn list(nodes: &[CUgraphNode], out: Out<CUgraphNode>, count: Out<usize>) -> Result<()> {
    if out.is_null() {
        return count.set(nodes.len());
    }
    let room = count.given().get()?;
    let filling = std::iter::repeat_n(CUgraphNode::NULL, room.saturating_sub(nodes.len()));
    out.set_all(nodes.iter().copied().take(room).chain(filling))?;
    count.set(nodes.len().min(room))
}

fn update(exec: CUgraphExec, graph: CUgraph) -> Result<CUgraphExecUpdateResultInfo> {
    let exec = graph::exec(exec)?;
    let null = CUgraphNode::NULL;
    let (result, errorNode, errorFromNode) = match exec.update(&*graph::graph(graph)?) {
        Ok(()) => (CUgraphExecUpdateResult::SUCCESS, null, null),
        Err(mismatch) => (mismatch.result, mismatch.node, mismatch.from),
    };
    Ok(CUgraphExecUpdateResultInfo { result, errorNode, errorFromNode })
}

fn updated(result: CUgraphExecUpdateResult) -> Result<()> {
    if result == CUgraphExecUpdateResult::SUCCESS { Ok(()) } else { Err(Status::GRAPH_EXEC_UPDATE_FAILURE) }
}

/// Adds a node to a graph.
pub(super) fn add_node(
    out: Out<CUgraphNode>,
    graph: CUgraph,
    behind: In<CUgraphNode>,
    count: usize,
    task: impl FnOnce(&Graph) -> Result<Task>,
) -> Result<()> {
    add_node_with_edges(out, graph, behind, In::null(), count, task)
}

/// Adds a node to a graph, with annotations of its edges.
pub(super) fn add_node_with_edges(
    out: Out<CUgraphNode>,
    graph: CUgraph,
    behind: In<CUgraphNode>,
    edges: In<CUgraphEdgeData>,
    count: usize,
    task: impl FnOnce(&Graph) -> Result<Task>,
) -> Result<()> {
    permitted()?;
    out.required()?;
    let graph = graph::graph(graph)?;
    let behind = ids(&graph, &behind.get_all(count)?)?;
    let edges = super::capture::edges(edges, count)?;
    let mut seen = HashSet::new();
    if !behind.iter().all(|id| seen.insert(*id)) {
        log::misuse(&"a node is to come behind another one, and that is named twice");
        return Err(Status::INVALID_VALUE);
    }
    let (id, handle) = graph.add(task(&graph)?, &[])?;
    let connected = behind.into_iter().zip(edges).try_for_each(|(from, edge)| graph.connect(from, id, edge));
    connected.inspect_err(|_| graph.remove(id))?;
    out.set(handle)
}
