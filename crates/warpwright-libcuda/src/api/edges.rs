//! Edges and nodes of graphs: who depends on whom, and what they are called.

use super::entries;
use super::graph::{each_edge, list, told_edges};
use crate::engine::permitted;
use crate::graph::nodes::{Edge, Entry, node, with_node};
use crate::graph::{self, Graph, exec};
use crate::lock;
use crate::report::log;
use crate::types::{CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphNode, In, Out, Result, Status};
use std::ffi::{c_uint, c_ulonglong};

/// A neighbour of a node, and the edge to it or from it.
type Neighbour = (CUgraphNode, Edge);

entries! {
    /// Returns the nodes that depend on no other.
    fn cuGraphGetRootNodes(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) {
        let graph = graph::graph(graph)?;
        let is_root = |entry: &&Entry| entry.dependencies.is_empty();
        let roots: Vec<_> = lock(&graph.state).values().filter(is_root).map(|entry| entry.handle).collect();
        list(&roots, nodes, count)
    }

    /// Returns what a node depends on.
    fn cuGraphNodeGetDependencies(node: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) {
        tell(&before(node)?, nodes, Out::null(), count)
    }

    /// The same, and what the edges are.
    fn cuGraphNodeGetDependencies_v2(
        node: CUgraphNode, nodes: Out<CUgraphNode>, edges: Out<CUgraphEdgeData>, count: Out<usize>,
    ) {
        tell(&before(node)?, nodes, edges, count)
    }

    /// Returns what depends on a node.
    fn cuGraphNodeGetDependentNodes(node: CUgraphNode, nodes: Out<CUgraphNode>, count: Out<usize>) {
        tell(&behind(node)?, nodes, Out::null(), count)
    }

    /// The same, and what the edges are.
    fn cuGraphNodeGetDependentNodes_v2(
        node: CUgraphNode, nodes: Out<CUgraphNode>, edges: Out<CUgraphEdgeData>, count: Out<usize>,
    ) {
        tell(&behind(node)?, nodes, edges, count)
    }

    /// Removes edges.
    fn cuGraphRemoveDependencies(graph: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) {
        each_edge(graph, (from, to), In::null(), count, Graph::disconnect)
    }

    /// The same with what the edges are.
    fn cuGraphRemoveDependencies_v2(
        graph: CUgraph,
        from: In<CUgraphNode>,
        to: In<CUgraphNode>,
        edges: In<CUgraphEdgeData>,
        count: usize,
    ) {
        each_edge(graph, (from, to), edges, count, Graph::disconnect)
    }

    /// Removes a node with its edges.
    fn cuGraphDestroyNode(handle: CUgraphNode) {
        permitted()?;
        let (graph, id) = node(handle)?;
        graph.may_lose_nodes()?;
        graph.remove(id);
        Ok(())
    }

    /// Finds the node of a clone that was made from a node.
    fn cuGraphNodeFindInClone(found: Out<CUgraphNode>, handle: CUgraphNode, clone: CUgraph) {
        found.required()?;
        let (_, id) = node(handle)?;
        let clone = graph::graph(clone)?;
        let state = lock(&clone.state);
        let copy = state.values().find(|entry| entry.original == Some(id)).ok_or_else(|| {
            log::misuse(&format_args!("no node of the graph was cloned from {:#x}", handle.0));
            Status::INVALID_VALUE
        })?;
        found.set(copy.handle)
    }

    /// Returns the graph of a node.
    fn cuGraphNodeGetContainingGraph(handle: CUgraphNode, graph: Out<CUgraph>) {
        graph.required()?.set(node(handle)?.0.handle)
    }

    /// Returns the number of a node, as `cuGraphDebugDotPrint` writes it.
    fn cuGraphNodeGetLocalId(handle: CUgraphNode, id: Out<c_uint>) {
        id.required()?.set(number(node(handle)?.1)?)
    }

    /// Returns the number of a node for tools, which is the same.
    fn cuGraphNodeGetToolsId(handle: CUgraphNode, id: Out<c_ulonglong>) {
        id.required()?.set(node(handle)?.1)
    }

    /// Returns the number of a graph, as `cuGraphDebugDotPrint` writes it.
    fn cuGraphGetId(graph: CUgraph, id: Out<c_uint>) {
        id.required()?.set(number(graph::graph(graph)?.id)?)
    }

    /// Returns the number of an executable graph.
    fn cuGraphExecGetId(exec: CUgraphExec, id: Out<c_uint>) {
        id.required()?.set(number(graph::exec(exec)?.id)?)
    }

    /// Returns the flags of an executable graph.
    fn cuGraphExecGetFlags(exec: CUgraphExec, flags: Out<u64>) {
        flags.required()?.set(graph::exec(exec)?.flags & !exec::UPLOAD)
    }

    /// Sets whether launches of an executable graph execute a node: a kernel, a copy or a fill.
    fn cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        graph::exec(exec)?.set_enabled(node, enabled != 0)
    }

    /// Returns whether launches of an executable graph execute a node.
    fn cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: Out<c_uint>) {
        enabled.required()?.set(graph::exec(exec)?.is_enabled(node)?.into())
    }
}

fn number(id: u64) -> Result<c_uint> {
    c_uint::try_from(id).map_err(|_| Status::OUT_OF_MEMORY)
}

fn kind(entry: &Entry, from: u64) -> Edge {
    if entry.programmatic.contains(&from) { Edge::Programmatic } else { Edge::Plain }
}

fn before(handle: CUgraphNode) -> Result<Vec<Neighbour>> {
    let (graph, id) = node(handle)?;
    let state = lock(&graph.state);
    let entry = state.get(&id).ok_or(Status::INVALID_VALUE)?;
    let neighbour = |from: &u64| Some((state.get(from)?.handle, kind(entry, *from)));
    Ok(entry.dependencies.iter().filter_map(neighbour).collect())
}

fn behind(handle: CUgraphNode) -> Result<Vec<Neighbour>> {
    let (graph, id) = node(handle)?;
    with_node(handle, |_| Ok(()))?;
    let state = lock(&graph.state);
    let behind = state.values().filter(|entry| entry.dependencies.contains(&id));
    Ok(behind.map(|entry| (entry.handle, kind(entry, id))).collect())
}

fn tell(
    found: &[Neighbour],
    nodes: Out<CUgraphNode>,
    edges: Out<CUgraphEdgeData>,
    count: Out<usize>,
) -> Result<()> {
    if nodes.is_null() {
        return count.required()?.set(found.len());
    }
    told_edges(found.iter().map(|(_, edge)| *edge), edges, count)?;
    let handles: Vec<CUgraphNode> = found.iter().map(|(handle, _)| *handle).collect();
    list(&handles, nodes, count)
}
