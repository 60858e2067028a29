//! Nodes of graphs that allocate and free memory, and how much the graphs of a device have.

use super::entries;
use super::graph::add_node;
use super::memory::here;
use super::pool::device_of_pool;
use crate::graph::nodes::with_node;
use crate::graph::{Alloc, Graph, Task};
use crate::report::log;
use crate::state::state;
use crate::types::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUdeviceptr, CUgraph, CUgraphMem_attribute, CUgraphNode,
    CUmemLocation, CUmemLocationType, CUmemPoolProps, In, Out, Result, Status,
};
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

/// The type of allocations: pinned.
const PINNED: u32 = 1;

entries! {
    /// Adds a node that allocates, and returns the address, which stays the same in all launches.
    fn cuGraphAddMemAllocNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize,
        params: Out<CUDA_MEM_ALLOC_NODE_PARAMS>,
    ) {
        let mut given = params.given().get()?;
        add_node(node, graph, behind, count, |into| alloc(into, &mut given))?;
        params.set(given)
    }

    /// Returns the parameters of a node that allocates.
    fn cuGraphMemAllocNodeGetParams(node: CUgraphNode, params: Out<CUDA_MEM_ALLOC_NODE_PARAMS>) {
        params.set(with_node(node, |entry| match &entry.task {
            Task::Alloc(alloc) => alloc_params(alloc),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Adds a node that frees what a node has allocated, of this graph or another one.
    fn cuGraphAddMemFreeNode(
        node: Out<CUgraphNode>, graph: CUgraph, behind: In<CUgraphNode>, count: usize, address: CUdeviceptr,
    ) {
        add_node(node, graph, behind, count, |into| into.free(address))
    }

    /// Returns the address that a node frees.
    fn cuGraphMemFreeNodeGetParams(node: CUgraphNode, address: Out<CUdeviceptr>) {
        address.set(with_node(node, |entry| match &entry.task {
            Task::Free(block) => Ok(block.base()),
            _ => Err(Status::INVALID_VALUE),
        })?)
    }

    /// Returns how much memory graphs have allocated on a device. Nothing is cached: what is reserved is used.
    fn cuDeviceGetGraphMemAttribute(device: CUdevice, what: CUgraphMem_attribute, value: Out<c_void>) {
        let usage = &state()?.device(device)?.engine()?.memory.graphs;
        let [used_high, reserved_high] = usage.high();
        let bytes = match what {
            CUgraphMem_attribute::USED_MEM_CURRENT | CUgraphMem_attribute::RESERVED_MEM_CURRENT => usage.used(),
            CUgraphMem_attribute::USED_MEM_HIGH => used_high.load(Relaxed),
            CUgraphMem_attribute::RESERVED_MEM_HIGH => reserved_high.load(Relaxed),
            _ => return Err(Status::INVALID_VALUE),
        };
        // SAFETY: the interface says that the value is a `cuuint64_t`.
        unsafe { value.cast::<u64>() }.set(bytes)
    }

    /// Sets a maximum of that back to what there is: the value is 0.
    fn cuDeviceSetGraphMemAttribute(device: CUdevice, what: CUgraphMem_attribute, value: In<c_void>) {
        let usage = &state()?.device(device)?.engine()?.memory.graphs;
        let [used_high, reserved_high] = usage.high();
        let high = match what {
            CUgraphMem_attribute::USED_MEM_HIGH => used_high,
            CUgraphMem_attribute::RESERVED_MEM_HIGH => reserved_high,
            _ => return Err(Status::INVALID_VALUE),
        };
        // SAFETY: as above.
        if unsafe { value.cast::<u64>() }.get()? != 0 {
            return Err(Status::INVALID_VALUE);
        }
        high.store(usage.used(), Relaxed);
        Ok(())
    }

    /// Gives back what graphs have cached, which is nothing.
    fn cuDeviceGraphMemTrim(device: CUdevice) {
        state()?.device(device).map(drop)
    }
}

/// A node that allocates on the device that the parameters name. The address goes into them.
pub(super) fn alloc(into: &Graph, params: &mut CUDA_MEM_ALLOC_NODE_PARAMS) -> Result<Task> {
    let (context, _) = here()?;
    let CUmemPoolProps { allocation_type, handle_types, location, .. } = params.poolProps;
    let device = device_of_pool(location)?;
    if allocation_type != PINNED {
        return Err(Status::INVALID_VALUE);
    }
    if handle_types != 0 {
        log::misuse(&"memory of graphs is not shared between processes");
        return Err(Status::NOT_SUPPORTED);
    }
    let access = params.accessDescs.get_all(params.accessDescCount)?;
    for access in &access {
        device_of_pool(access.location)?;
    }
    let engine = state()?.device(device)?.engine()?;
    let alloc = into.alloc(engine, params.bytesize as u64, (context.id, context.handle), access)?;
    params.dptr = alloc.memory.block.base();
    Ok(Task::Alloc(alloc))
}

/// The parameters of a node that allocates. The list of devices belongs to the node.
pub(super) fn alloc_params(alloc: &Alloc) -> Result<CUDA_MEM_ALLOC_NODE_PARAMS> {
    let block = &alloc.memory.block;
    Ok(CUDA_MEM_ALLOC_NODE_PARAMS {
        poolProps: CUmemPoolProps {
            allocation_type: PINNED,
            handle_types: 0,
            location: CUmemLocation { kind: CUmemLocationType::DEVICE, id: alloc.memory.device() },
            security_attributes: std::ptr::null_mut(),
            max_size: 0,
            usage: 0,
            reserved: [0; 54],
        },
        // SAFETY: the list stays where it is as long as the node, which is as long as the interface promises.
        accessDescs: unsafe { In::new(alloc.access.as_ptr()) },
        accessDescCount: alloc.access.len(),
        bytesize: block.bytes() as usize,
        dptr: block.base(),
    })
}
