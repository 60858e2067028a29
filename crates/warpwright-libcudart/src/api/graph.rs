//! Graphs: their nodes and edges, executable graphs, and the objects that they keep alive.

use super::{entries, forward};
use crate::abi::{Handle, In, Out};
use crate::driver::driver;
use crate::error::Result;
use crate::state::major;
use std::ptr::with_exposed_provenance_mut;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

/// The parameters of CUDA 12 have no data of edges; since CUDA 13 it is in front of the count.
fn edges_and_count(edges_or_count: usize, count_of_13: usize) -> (Handle, usize) {
    match major() {
        12 => (std::ptr::null_mut(), edges_or_count),
        _ => (with_exposed_provenance_mut(edges_or_count), count_of_13),
    }
}

/// Adds edges.
fn connect(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize) -> Result<()> {
    driver!(cuGraphAddDependencies_v2(graph, from, to, edges, count))
}

/// Removes edges.
fn disconnect(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize) -> Result<()> {
    driver!(cuGraphRemoveDependencies_v2(graph, from, to, edges, count))
}

entries! {
    /// Adds edges. CUDA 12 has no data of edges.
    fn cudaGraphAddDependencies(
        graph: Handle, from: Handle, to: Handle, edges_or_count: usize, count_of_13: usize,
    ) {
        let (edges, count) = edges_and_count(edges_or_count, count_of_13);
        connect(graph, from, to, edges, count)
    }

    /// Adds edges.
    fn cudaGraphAddDependencies_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize) {
        connect(graph, from, to, edges, count)
    }

    /// Removes edges. CUDA 12 has no data of edges.
    fn cudaGraphRemoveDependencies(
        graph: Handle, from: Handle, to: Handle, edges_or_count: usize, count_of_13: usize,
    ) {
        let (edges, count) = edges_and_count(edges_or_count, count_of_13);
        disconnect(graph, from, to, edges, count)
    }

    /// Removes edges.
    fn cudaGraphRemoveDependencies_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: usize) {
        disconnect(graph, from, to, edges, count)
    }

    /// Returns the edges, or their number. CUDA 12 has no data of edges.
    fn cudaGraphGetEdges(
        graph: Handle, from: Handle, to: Handle, edges_or_count: Out<usize>, count_of_13: Out<usize>,
    ) {
        match major() {
            12 => driver!(cuGraphGetEdges(graph, from, to, edges_or_count)),
            _ => driver!(cuGraphGetEdges_v2(graph, from, to, edges_or_count, count_of_13)),
        }
    }

    /// Returns on what a node depends. CUDA 12 has no data of edges.
    fn cudaGraphNodeGetDependencies(
        node: Handle, nodes: Handle, edges_or_count: Out<usize>, count_of_13: Out<usize>,
    ) {
        match major() {
            12 => driver!(cuGraphNodeGetDependencies(node, nodes, edges_or_count)),
            _ => driver!(cuGraphNodeGetDependencies_v2(node, nodes, edges_or_count, count_of_13)),
        }
    }

    /// Returns what depends on a node. CUDA 12 has no data of edges.
    fn cudaGraphNodeGetDependentNodes(
        node: Handle, nodes: Handle, edges_or_count: Out<usize>, count_of_13: Out<usize>,
    ) {
        match major() {
            12 => driver!(cuGraphNodeGetDependentNodes(node, nodes, edges_or_count)),
            _ => driver!(cuGraphNodeGetDependentNodes_v2(node, nodes, edges_or_count, count_of_13)),
        }
    }
}

forward! {
    cudaGraphCreate(graph: Out<Handle>, flags: c_uint) = cuGraphCreate(graph, flags);
    cudaGraphDestroy(graph: Handle) = cuGraphDestroy(graph);
    cudaGraphClone(clone: Out<Handle>, graph: Handle) = cuGraphClone(clone, graph);
    cudaGraphNodeFindInClone(found: Out<Handle>, node: Handle, clone: Handle) =
        cuGraphNodeFindInClone(found, node, clone);
    cudaGraphNodeGetType(node: Handle, kind: Out<c_int>) = cuGraphNodeGetType(node, kind);
    cudaGraphGetNodes(graph: Handle, nodes: Handle, count: Out<usize>) = cuGraphGetNodes(graph, nodes, count);
    cudaGraphGetRootNodes(graph: Handle, nodes: Handle, count: Out<usize>) = cuGraphGetRootNodes(graph, nodes, count);
    cudaGraphGetEdges_v2(graph: Handle, from: Handle, to: Handle, edges: Handle, count: Out<usize>) =
        cuGraphGetEdges_v2(graph, from, to, edges, count);
    cudaGraphNodeGetDependencies_v2(node: Handle, nodes: Handle, edges: Handle, count: Out<usize>) =
        cuGraphNodeGetDependencies_v2(node, nodes, edges, count);
    cudaGraphNodeGetDependentNodes_v2(node: Handle, nodes: Handle, edges: Handle, count: Out<usize>) =
        cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count);
    cudaGraphDestroyNode(node: Handle) = cuGraphDestroyNode(node);
    cudaGraphInstantiate = cudaGraphInstantiateWithFlags(exec: Out<Handle>, graph: Handle, flags: c_ulonglong) =
        cuGraphInstantiateWithFlags(exec, graph, flags);
    cudaGraphExecDestroy(exec: Handle) = cuGraphExecDestroy(exec);
    cudaGraphExecGetFlags(exec: Handle, flags: Out<c_ulonglong>) = cuGraphExecGetFlags(exec, flags);
    cudaGraphExecUpdate(exec: Handle, graph: Handle, info: Handle) = cuGraphExecUpdate_v2(exec, graph, info);
    cudaGraphNodeSetEnabled(exec: Handle, node: Handle, is_enabled: c_uint) =
        cuGraphNodeSetEnabled(exec, node, is_enabled);
    cudaGraphNodeGetEnabled(exec: Handle, node: Handle, is_enabled: Out<c_uint>) =
        cuGraphNodeGetEnabled(exec, node, is_enabled);
    cudaGraphDebugDotPrint(graph: Handle, path: In<c_char>, flags: c_uint) = cuGraphDebugDotPrint(graph, path, flags);
    cudaGraphGetId(graph: Handle, id: Out<c_uint>) = cuGraphGetId(graph, id);
    cudaGraphExecGetId(exec: Handle, id: Out<c_uint>) = cuGraphExecGetId(exec, id);
    cudaGraphNodeGetContainingGraph(node: Handle, graph: Out<Handle>) = cuGraphNodeGetContainingGraph(node, graph);
    cudaGraphNodeGetLocalId(node: Handle, id: Out<c_uint>) = cuGraphNodeGetLocalId(node, id);
    cudaGraphNodeGetToolsId(node: Handle, id: Out<c_ulonglong>) = cuGraphNodeGetToolsId(node, id);
    cudaUserObjectCreate(object: Out<Handle>, data: Handle, destroy: Handle, references: c_uint, flags: c_uint) =
        cuUserObjectCreate(object, data, destroy, references, flags);
    cudaUserObjectRetain(object: Handle, count: c_uint) = cuUserObjectRetain(object, count);
    cudaUserObjectRelease(object: Handle, count: c_uint) = cuUserObjectRelease(object, count);
    cudaGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint) =
        cuGraphRetainUserObject(graph, object, count, flags);
    cudaGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) =
        cuGraphReleaseUserObject(graph, object, count);
}
