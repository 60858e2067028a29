//! Graphs, their nodes and edges; making them ready to run, and running them.

use super::capture::plain_edges;
use super::entries;
use crate::engine::{Stream, permitted};
use crate::graph::exec::EXECS;
use crate::graph::nodes::{destroy, destroy_node, with_node};
use crate::graph::{self, Entry, Exec, Graph, NodeId, Task, ids, node};
use crate::report::log;
use crate::types::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphNode, CUgraphNodeType, CUstream, In, Out,
    Result, Status, text,
};
use std::collections::HashSet;
use std::ffi::{c_char, c_uint};

entries! {
    /// An empty graph.
    fn cuGraphCreate(made: Out<CUgraph>, flags: c_uint) {
        permitted()?;
        crate::state::state()?;
        made.required()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        made.set(Graph::create(false)?.handle())
    }

    /// Destroys a graph with its nodes. What was made ready to run stays so.
    fn cuGraphDestroy(graph: CUgraph) {
        permitted()?;
        destroy(graph)
    }

    /// The same graph again.
    fn cuGraphClone(made: Out<CUgraph>, of: CUgraph) {
        made.required()?;
        made.set(graph::graph(of)?.copy(false)?.handle())
    }

    /// The node of a copy that a node of its original became.
    fn cuGraphNodeFindInClone(found: Out<CUgraphNode>, original: CUgraphNode, copy: CUgraph) {
        found.required()?;
        let (_, id) = node(original)?;
        let copy = graph::graph(copy)?;
        let state = copy.state();
        let handle = state.values().find(|entry| entry.copy_of == Some(id)).map(|entry| entry.handle);
        drop(state);
        found.set(handle.ok_or(Status::INVALID_VALUE)?)
    }

    /// The nodes, in the order in which they were made.
    fn cuGraphGetNodes(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) {
        let handles = graph::graph(graph)?.state().values().map(|entry| entry.handle).collect();
        list(handles, nodes, count, CUgraphNode::NULL)
    }

    /// The nodes that come behind none.
    fn cuGraphGetRootNodes(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) {
        let graph = graph::graph(graph)?;
        let state = graph.state();
        let roots = state.values().filter(|entry| entry.dependencies.is_empty()).map(|entry| entry.handle).collect();
        drop(state);
        list(roots, nodes, count, CUgraphNode::NULL)
    }

    /// The edges.
    fn cuGraphGetEdges(graph: CUgraph, from: Out<CUgraphNode>, to: Out<CUgraphNode>, count: Out<usize>) {
        list_edges(graph, from, to, Out::null(), count)
    }

    /// The edges, with what they are beyond their ends, which is nothing.
    fn cuGraphGetEdges_v2(
        graph: CUgraph,
        from: Out<CUgraphNode>,
        to: Out<CUgraphNode>,
        data: Out<CUgraphEdgeData>,
        count: Out<usize>,
    ) {
        list_edges(graph, from, to, data, count)
    }

    /// Adds edges.
    fn cuGraphAddDependencies(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) {
        change_edges(graph, from, to, In::null(), count, Graph::add_edges)
    }

    /// Adds edges, which must be plain ones.
    fn cuGraphAddDependencies_v2(
        graph: CUgraph,
        from: In<CUgraphNode>,
        to: In<CUgraphNode>,
        data: In<CUgraphEdgeData>,
        count: usize,
    ) {
        change_edges(graph, from, to, data, count, Graph::add_edges)
    }

    /// Takes edges away.
    fn cuGraphRemoveDependencies(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) {
        change_edges(graph, from, to, In::null(), count, Graph::remove_edges)
    }

    /// Takes edges away, which must be plain ones.
    fn cuGraphRemoveDependencies_v2(
        graph: CUgraph,
        from: In<CUgraphNode>,
        to: In<CUgraphNode>,
        data: In<CUgraphEdgeData>,
        count: usize,
    ) {
        change_edges(graph, from, to, data, count, Graph::remove_edges)
    }

    /// What comes before a node.
    fn cuGraphNodeGetDependencies(handle: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) {
        list(dependencies(handle)?, nodes, count, CUgraphNode::NULL)
    }

    /// What comes before a node, by plain edges.
    fn cuGraphNodeGetDependencies_v2(
        handle: CUgraphNode,
        nodes: Out<CUgraphNode>,
        data: Out<CUgraphEdgeData>,
        count: Out<usize>,
    ) {
        list_with_edges(dependencies(handle)?, nodes, data, count)
    }

    /// What comes behind a node.
    fn cuGraphNodeGetDependentNodes(handle: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) {
        list(dependents(handle)?, nodes, count, CUgraphNode::NULL)
    }

    /// What comes behind a node, by plain edges.
    fn cuGraphNodeGetDependentNodes_v2(
        handle: CUgraphNode,
        nodes: Out<CUgraphNode>,
        data: Out<CUgraphEdgeData>,
        count: Out<usize>,
    ) {
        list_with_edges(dependents(handle)?, nodes, data, count)
    }

    /// What kind of node it is.
    fn cuGraphNodeGetType(handle: CUgraphNode, kind: Out<CUgraphNodeType>) {
        kind.required()?;
        kind.set(with_node(handle, |entry| Ok(entry.task.kind()))?)
    }

    /// The graph that a node is in.
    fn cuGraphNodeGetContainingGraph(handle: CUgraphNode, graph: Out<CUgraph>) {
        graph.required()?;
        graph.set(node(handle)?.0.handle())
    }

    /// A number that no other node of its graph has.
    fn cuGraphNodeGetLocalId(handle: CUgraphNode, id: Out<c_uint>) {
        id.required()?;
        id.set(node(handle)?.1 as c_uint)
    }

    /// A number that no other node has.
    fn cuGraphNodeGetToolsId(handle: CUgraphNode, id: Out<u64>) {
        id.required()?;
        id.set(node(handle)?.1)
    }

    /// A number that no other graph has.
    fn cuGraphGetId(graph: CUgraph, id: Out<c_uint>) {
        id.required()?;
        id.set(graph::graph(graph)?.id() as c_uint)
    }

    /// Destroys a node with its edges.
    fn cuGraphDestroyNode(handle: CUgraphNode) {
        destroy_node(handle)
    }

    /// Writes a graph to a file as text for Graphviz.
    fn cuGraphDebugDotPrint(graph: CUgraph, file: In<c_char>, flags: c_uint) {
        let graph = graph::graph(graph)?;
        let dot = graph::dot(&graph, flags).map_err(|_| Status::UNKNOWN)?;
        let file = text(file)?;
        std::fs::write(&file, dot).map_err(|error| {
            log::misuse(&format_args!("{file}: {error}"));
            Status::OPERATING_SYSTEM
        })
    }

    /// Makes a graph ready to run. What is wrong with it is told by a node and a text.
    fn cuGraphInstantiate_v2(
        made: Out<CUgraphExec>,
        graph: CUgraph,
        node: Out<CUgraphNode>,
        message: Out<c_char>,
        room: usize,
    ) {
        instantiate(made, graph, node, message, room)
    }

    /// As [`cuGraphInstantiate_v2`]: they do not differ.
    fn cuGraphInstantiate(
        made: Out<CUgraphExec>,
        graph: CUgraph,
        node: Out<CUgraphNode>,
        message: Out<c_char>,
        room: usize,
    ) {
        instantiate(made, graph, node, message, room)
    }

    /// Makes a graph ready to run.
    fn cuGraphInstantiateWithFlags(made: Out<CUgraphExec>, graph: CUgraph, flags: u64) {
        made.required()?;
        made.set(Exec::create(&*graph::graph(graph)?, flags).map_err(|failure| failure.status)?)
    }

    /// Makes a graph ready to run, and tells how that went.
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

    /// Runs a graph in the order of a stream.
    fn cuGraphLaunch, cuGraphLaunch_ptsz |default| (exec: CUgraphExec, stream: CUstream) {
        permitted()?;
        let exec = graph::exec(exec)?;
        exec.launch(&Stream::get(default.resolve(stream))?)
    }

    /// There is nothing to prepare on a device.
    fn cuGraphUpload, cuGraphUpload_ptsz |default| (exec: CUgraphExec, stream: CUstream) {
        graph::exec(exec)?;
        Stream::get(default.resolve(stream)).map(drop)
    }

    /// Destroys an executable graph. Runs that were asked for are done.
    fn cuGraphExecDestroy(exec: CUgraphExec) {
        permitted()?;
        crate::state::state()?;
        EXECS.remove(exec.0).map(drop).map_err(|_| Status::INVALID_VALUE)
    }

    /// How it was made.
    fn cuGraphExecGetFlags(exec: CUgraphExec, flags: Out<u64>) {
        flags.required()?;
        flags.set(graph::exec(exec)?.flags())
    }

    /// A number that no other executable graph has.
    fn cuGraphExecGetId(exec: CUgraphExec, id: Out<c_uint>) {
        id.required()?;
        id.set(graph::exec(exec)?.id() as c_uint)
    }

    /// Makes an executable graph what another graph of the same shape is.
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

    /// Makes an executable graph what another graph of the same shape is.
    fn cuGraphExecUpdate_v2(exec: CUgraphExec, graph: CUgraph, info: Out<CUgraphExecUpdateResultInfo>) {
        info.required()?;
        let told = update(exec, graph)?;
        info.set(told)?;
        updated(told.result)
    }

    /// Whether a node runs.
    fn cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: Out<c_uint>) {
        enabled.required()?;
        enabled.set(graph::exec(exec)?.is_enabled(node)?.into())
    }

    /// Has a node run, or be passed over.
    fn cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        graph::exec(exec)?.enable(node, enabled != 0)
    }
}

fn instantiate(
    made: Out<CUgraphExec>,
    graph: CUgraph,
    node: Out<CUgraphNode>,
    message: Out<c_char>,
    room: usize,
) -> Result<()> {
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

/// Tells how many there are, or as many as the client has room for; places that are left over get `rest`.
fn list<T: Copy>(items: Vec<T>, out: Out<T>, count: Out<usize>, rest: T) -> Result<()> {
    if !out.is_null() {
        let room = count.given().get()?;
        let filling = std::iter::repeat_n(rest, room.saturating_sub(items.len()));
        out.set_all(items.iter().copied().take(room).chain(filling))?;
        return count.set(items.len().min(room));
    }
    count.set(items.len())
}

fn list_with_edges(
    nodes: Vec<CUgraphNode>,
    out: Out<CUgraphNode>,
    data: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Result<()> {
    if !data.is_null() {
        out.required()?;
        let room = count.given().get()?;
        data.set_all(std::iter::repeat_n(CUgraphEdgeData::default(), room))?;
    }
    list(nodes, out, count, CUgraphNode::NULL)
}

fn list_edges(
    graph: CUgraph,
    from: Out<CUgraphNode>,
    to: Out<CUgraphNode>,
    data: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Result<()> {
    if from.is_null() != to.is_null() || from.is_null() && !data.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let edges = graph::graph(graph)?.edges();
    if from.is_null() {
        return count.set(edges.len());
    }
    let room = count.given().get()?;
    let (starts, ends) = edges.into_iter().unzip();
    list(starts, from, count, CUgraphNode::NULL)?;
    count.set(room)?;
    list_with_edges(ends, to, data, count)
}

fn change_edges(
    graph: CUgraph,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    data: In<CUgraphEdgeData>,
    count: usize,
    change: impl FnOnce(&Graph, &[(NodeId, NodeId)]) -> Result<()>,
) -> Result<()> {
    plain_edges(data, count)?;
    let graph = graph::graph(graph)?;
    let (from, to) = (ids(&graph, &from.get_all(count)?)?, ids(&graph, &to.get_all(count)?)?);
    let edges: Vec<_> = from.into_iter().zip(to).collect();
    change(&graph, &edges)
}

fn dependencies(handle: CUgraphNode) -> Result<Vec<CUgraphNode>> {
    let (graph, id) = node(handle)?;
    let state = graph.state();
    let entry: &Entry = state.get(&id).ok_or(Status::INVALID_VALUE)?;
    Ok(entry.dependencies.iter().filter_map(|id| Some(state.get(id)?.handle)).collect())
}

fn dependents(handle: CUgraphNode) -> Result<Vec<CUgraphNode>> {
    let (graph, id) = node(handle)?;
    let state = graph.state();
    Ok(state.values().filter(|entry| entry.dependencies.contains(&id)).map(|entry| entry.handle).collect())
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

/// A node that is added to a graph.
pub(super) fn add_node(
    out: Out<CUgraphNode>,
    graph: CUgraph,
    behind: In<CUgraphNode>,
    count: usize,
    task: impl FnOnce(&Graph) -> Result<Task>,
) -> Result<()> {
    permitted()?;
    out.required()?;
    let graph = graph::graph(graph)?;
    let behind = ids(&graph, &behind.get_all(count)?)?;
    let mut seen = HashSet::new();
    if !behind.iter().all(|id| seen.insert(*id)) {
        log::misuse(&"a node is to come behind another one, and that is named twice");
        return Err(Status::INVALID_VALUE);
    }
    out.set(graph.add(task(&graph)?, &behind)?.1)
}
