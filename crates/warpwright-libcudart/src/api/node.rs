//! Nodes of graphs, added and changed.

use super::copy_rows::{slices, slices_of};
use super::node_params::{NodeParams, any, any_of, bytes, context, kernel, kernel_of};
use super::symbol::range;
use super::{entries, forward};
use crate::abi::{
    DriverKernelNodeParams, DriverMemcpy3D, Handle, In, KernelNodeParams, Memcpy3DParms, MemsetParams, Out,
};
use crate::driver::driver;
use crate::error::Result;
use crate::state::major;
use std::ptr::with_exposed_provenance_mut;
use std::ffi::{c_int, c_uint, c_ulonglong};

/// Where a new node goes: the graph, and what it depends on.
struct Place {
    node: Out<Handle>,
    graph: Handle,
    dependencies: Handle,
    count: usize,
}

impl Place {
    fn copy(&self, copy: &DriverMemcpy3D) -> Result<()> {
        let Place { node, graph, dependencies, count } = *self;
        let copy = std::ptr::from_ref(copy);
        driver!(cuGraphAddMemcpyNode(node.required()?, graph, dependencies, count, copy, context()?))
    }
}

/// Changes a copy of an executable graph.
fn set_copy(exec: Handle, node: Handle, copy: &DriverMemcpy3D) -> Result<()> {
    driver!(cuGraphExecMemcpyNodeSetParams(exec, node, std::ptr::from_ref(copy), context()?))
}

/// Changes a copy of a graph.
fn set_node_copy(node: Handle, copy: &DriverMemcpy3D) -> Result<()> {
    driver!(cuGraphMemcpyNodeSetParams(node, std::ptr::from_ref(copy)))
}

entries! {
    /// Adds a kernel.
    fn cudaGraphAddKernelNode(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, params: In<KernelNodeParams>,
    ) {
        let params = kernel(params)?;
        driver!(cuGraphAddKernelNode_v2(node.required()?, graph, dependencies, count, &raw const params))
    }

    /// Changes a kernel of a graph.
    fn cudaGraphKernelNodeSetParams(node: Handle, params: In<KernelNodeParams>) {
        let params = kernel(params)?;
        driver!(cuGraphKernelNodeSetParams_v2(node, &raw const params))
    }

    /// Returns the parameters of a kernel of a graph.
    fn cudaGraphKernelNodeGetParams(node: Handle, params: Out<KernelNodeParams>) {
        let mut found = DriverKernelNodeParams::zeroed();
        driver!(cuGraphKernelNodeGetParams_v2(node, &raw mut found))?;
        params.set(kernel_of(&found)?)
    }

    /// Changes a kernel of an executable graph.
    fn cudaGraphExecKernelNodeSetParams(exec: Handle, node: Handle, params: In<KernelNodeParams>) {
        let params = kernel(params)?;
        driver!(cuGraphExecKernelNodeSetParams_v2(exec, node, &raw const params))
    }

    /// Adds a copy of slices.
    fn cudaGraphAddMemcpyNode(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, params: In<Memcpy3DParms>,
    ) {
        Place { node, graph, dependencies, count }.copy(&slices(&params.get()?)?)
    }

    /// Adds a copy of bytes.
    fn cudaGraphAddMemcpyNode1D(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, to: Handle, from: Handle, size: usize,
        kind: c_int,
    ) {
        Place { node, graph, dependencies, count }.copy(&bytes(to, from, size, kind)?)
    }

    /// Adds a copy to a variable.
    fn cudaGraphAddMemcpyNodeToSymbol(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, symbol: Handle, from: Handle,
        size: usize, offset: usize, kind: c_int,
    ) {
        let copy = bytes(range(symbol, size, offset)?, from, size, kind)?;
        Place { node, graph, dependencies, count }.copy(&copy)
    }

    /// Adds a copy from a variable.
    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, to: Handle, symbol: Handle,
        size: usize, offset: usize, kind: c_int,
    ) {
        let copy = bytes(to, range(symbol, size, offset)?, size, kind)?;
        Place { node, graph, dependencies, count }.copy(&copy)
    }

    /// Changes a copy of a graph.
    fn cudaGraphMemcpyNodeSetParams(node: Handle, params: In<Memcpy3DParms>) {
        set_node_copy(node, &slices(&params.get()?)?)
    }

    /// Changes a copy of bytes of a graph.
    fn cudaGraphMemcpyNodeSetParams1D(node: Handle, to: Handle, from: Handle, size: usize, kind: c_int) {
        set_node_copy(node, &bytes(to, from, size, kind)?)
    }

    /// Changes a copy of a graph to a variable.
    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: Handle, symbol: Handle, from: Handle, size: usize, offset: usize, kind: c_int,
    ) {
        set_node_copy(node, &bytes(range(symbol, size, offset)?, from, size, kind)?)
    }

    /// Changes a copy of a graph from a variable.
    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: Handle, to: Handle, symbol: Handle, size: usize, offset: usize, kind: c_int,
    ) {
        set_node_copy(node, &bytes(to, range(symbol, size, offset)?, size, kind)?)
    }

    /// Returns the parameters of a copy of a graph.
    fn cudaGraphMemcpyNodeGetParams(node: Handle, params: Out<Memcpy3DParms>) {
        let mut found = DriverMemcpy3D::zeroed();
        driver!(cuGraphMemcpyNodeGetParams(node, &raw mut found))?;
        params.set(slices_of(&found)?)
    }

    /// Changes a copy of an executable graph.
    fn cudaGraphExecMemcpyNodeSetParams(exec: Handle, node: Handle, params: In<Memcpy3DParms>) {
        set_copy(exec, node, &slices(&params.get()?)?)
    }

    /// Changes a copy of bytes of an executable graph.
    fn cudaGraphExecMemcpyNodeSetParams1D(
        exec: Handle, node: Handle, to: Handle, from: Handle, size: usize, kind: c_int,
    ) {
        set_copy(exec, node, &bytes(to, from, size, kind)?)
    }

    /// Changes a copy of an executable graph to a variable.
    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        exec: Handle, node: Handle, symbol: Handle, from: Handle, size: usize, offset: usize, kind: c_int,
    ) {
        set_copy(exec, node, &bytes(range(symbol, size, offset)?, from, size, kind)?)
    }

    /// Changes a copy of an executable graph from a variable.
    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: Handle, node: Handle, to: Handle, symbol: Handle, size: usize, offset: usize, kind: c_int,
    ) {
        set_copy(exec, node, &bytes(to, range(symbol, size, offset)?, size, kind)?)
    }

    /// Adds a fill.
    fn cudaGraphAddMemsetNode(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, params: In<MemsetParams>,
    ) {
        driver!(cuGraphAddMemsetNode(node.required()?, graph, dependencies, count, params, context()?))
    }

    /// Changes a fill of an executable graph.
    fn cudaGraphExecMemsetNodeSetParams(exec: Handle, node: Handle, params: In<MemsetParams>) {
        driver!(cuGraphExecMemsetNodeSetParams(exec, node, params, context()?))
    }

    /// Adds a node of any kind. CUDA 12 has no data of edges.
    fn cudaGraphAddNode(
        node: Out<Handle>, graph: Handle, dependencies: Handle, edges_or_count: usize,
        count_or_params: usize, params_of_13: Out<NodeParams>,
    ) {
        let (edges, count, params) = match major() {
            // SAFETY: CUDA 12's parameters stand in this place.
            12 => (0, edges_or_count, unsafe { Out::new(with_exposed_provenance_mut(count_or_params)) }),
            _ => (edges_or_count, count_or_params, params_of_13),
        };
        add(node, graph, dependencies, with_exposed_provenance_mut(edges), count, params)
    }

    /// Adds a node of any kind.
    fn cudaGraphAddNode_v2(
        node: Out<Handle>, graph: Handle, dependencies: Handle, edges: Handle, count: usize, params: Out<NodeParams>,
    ) {
        add(node, graph, dependencies, edges, count, params)
    }

    /// Returns the parameters of a node of any kind.
    fn cudaGraphNodeGetParams(node: Handle, params: Out<NodeParams>) {
        let mut found = NodeParams::zeroed();
        driver!(cuGraphNodeGetParams(node, &raw mut found))?;
        params.set(any_of(found)?)
    }

    /// Changes a node of any kind.
    fn cudaGraphNodeSetParams(node: Handle, params: In<NodeParams>) {
        let params = any(params)?;
        driver!(cuGraphNodeSetParams(node, &raw const params))
    }

    /// Changes a node of any kind of an executable graph.
    fn cudaGraphExecNodeSetParams(exec: Handle, node: Handle, params: In<NodeParams>) {
        let params = any(params)?;
        driver!(cuGraphExecNodeSetParams(exec, node, &raw const params))
    }

    /// Makes a handle by which kernels decide about a conditional node.
    fn cudaGraphConditionalHandleCreate(handle: Out<c_ulonglong>, graph: Handle, value: c_uint, flags: c_uint) {
        driver!(cuGraphConditionalHandleCreate(handle.required()?, graph, context()?, value, flags))
    }

    /// The same, in a context.
    fn cudaGraphConditionalHandleCreate_v2(
        handle: Out<c_ulonglong>, graph: Handle, wanted: Handle, value: c_uint, flags: c_uint,
    ) {
        let context = if wanted.is_null() { context()? } else { wanted };
        driver!(cuGraphConditionalHandleCreate(handle.required()?, graph, context, value, flags))
    }
}

/// Adds a node of any kind. The driver may write into the client's parameters, such as the graphs of a conditional node.
fn add(
    node: Out<Handle>,
    graph: Handle,
    dependencies: Handle,
    edges: Handle,
    count: usize,
    params: Out<NodeParams>,
) -> Result<()> {
    let mut given = any(params.given())?;
    driver!(cuGraphAddNode_v2(node.required()?, graph, dependencies, edges, count, &raw mut given))?;
    given.return_results(params)
}

forward! {
    cudaGraphAddEmptyNode(node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize) =
        cuGraphAddEmptyNode(node, graph, dependencies, count);
    cudaGraphAddHostNode(node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, params: Handle) =
        cuGraphAddHostNode(node, graph, dependencies, count, params);
    cudaGraphAddChildGraphNode(node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, child: Handle) =
        cuGraphAddChildGraphNode(node, graph, dependencies, count, child);
    cudaGraphAddEventRecordNode(node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, event: Handle) =
        cuGraphAddEventRecordNode(node, graph, dependencies, count, event);
    cudaGraphAddEventWaitNode(node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, event: Handle) =
        cuGraphAddEventWaitNode(node, graph, dependencies, count, event);
    cudaGraphAddMemAllocNode(node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, params: Handle) =
        cuGraphAddMemAllocNode(node, graph, dependencies, count, params);
    cudaGraphAddMemFreeNode(node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, address: Handle) =
        cuGraphAddMemFreeNode(node, graph, dependencies, count, address);
    cudaGraphAddExternalSemaphoresSignalNode(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, params: Handle
    ) = cuGraphAddExternalSemaphoresSignalNode(node, graph, dependencies, count, params);
    cudaGraphAddExternalSemaphoresWaitNode(
        node: Out<Handle>, graph: Handle, dependencies: Handle, count: usize, params: Handle
    ) = cuGraphAddExternalSemaphoresWaitNode(node, graph, dependencies, count, params);
    cudaGraphHostNodeGetParams(node: Handle, params: Handle) = cuGraphHostNodeGetParams(node, params);
    cudaGraphHostNodeSetParams(node: Handle, params: Handle) = cuGraphHostNodeSetParams(node, params);
    cudaGraphExecHostNodeSetParams(exec: Handle, node: Handle, params: Handle) =
        cuGraphExecHostNodeSetParams(exec, node, params);
    cudaGraphMemsetNodeGetParams(node: Handle, params: Out<MemsetParams>) = cuGraphMemsetNodeGetParams(node, params);
    cudaGraphMemsetNodeSetParams(node: Handle, params: In<MemsetParams>) = cuGraphMemsetNodeSetParams(node, params);
    cudaGraphMemAllocNodeGetParams(node: Handle, params: Handle) = cuGraphMemAllocNodeGetParams(node, params);
    cudaGraphMemFreeNodeGetParams(node: Handle, address: Handle) = cuGraphMemFreeNodeGetParams(node, address);
    cudaGraphChildGraphNodeGetGraph(node: Handle, graph: Out<Handle>) = cuGraphChildGraphNodeGetGraph(node, graph);
    cudaGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, child: Handle) =
        cuGraphExecChildGraphNodeSetParams(exec, node, child);
    cudaGraphEventRecordNodeGetEvent(node: Handle, event: Out<Handle>) = cuGraphEventRecordNodeGetEvent(node, event);
    cudaGraphEventRecordNodeSetEvent(node: Handle, event: Handle) = cuGraphEventRecordNodeSetEvent(node, event);
    cudaGraphEventWaitNodeGetEvent(node: Handle, event: Out<Handle>) = cuGraphEventWaitNodeGetEvent(node, event);
    cudaGraphEventWaitNodeSetEvent(node: Handle, event: Handle) = cuGraphEventWaitNodeSetEvent(node, event);
    cudaGraphExecEventRecordNodeSetEvent(exec: Handle, node: Handle, event: Handle) =
        cuGraphExecEventRecordNodeSetEvent(exec, node, event);
    cudaGraphExecEventWaitNodeSetEvent(exec: Handle, node: Handle, event: Handle) =
        cuGraphExecEventWaitNodeSetEvent(exec, node, event);
    cudaGraphKernelNodeCopyAttributes(to: Handle, from: Handle) = cuGraphKernelNodeCopyAttributes(to, from);
    cudaGraphKernelNodeGetAttribute(node: Handle, attribute: c_int, value: Handle) =
        cuGraphKernelNodeGetAttribute(node, attribute, value);
    cudaGraphKernelNodeSetAttribute(node: Handle, attribute: c_int, value: Handle) =
        cuGraphKernelNodeSetAttribute(node, attribute, value);
}
