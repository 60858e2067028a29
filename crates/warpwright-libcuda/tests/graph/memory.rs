//! Nodes that allocate and free memory.

use crate::by_hand::{add_empty, add_kernel, context_handle, copy, fill, graph};
use crate::conditional::NodeParams;
use crate::*;
use std::ffi::c_void;

const INVALID: Status = Status::INVALID_VALUE;

/// The parameters of an allocation on the device.
fn params(bytes: usize) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    // SAFETY: integers and null pointers are values of its fields.
    let mut params: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    params.poolProps.allocation_type = 1;
    params.poolProps.location = CUmemLocation { kind: CUmemLocationType::DEVICE, id: 0 };
    params.bytesize = bytes;
    params
}

/// A node that allocates, and the address.
fn alloc(graph: CUgraph, behind: &[CUgraphNode], bytes: usize) -> (CUgraphNode, CUdeviceptr) {
    let (mut params, mut node) = (params(bytes), CUgraphNode::NULL);
    let before = input(behind.as_ptr());
    ok!(cuGraphAddMemAllocNode(output(&mut node), graph, before, behind.len(), output(&mut params)));
    (node, params.dptr)
}

fn free(graph: CUgraph, behind: &[CUgraphNode], address: CUdeviceptr) -> Result<CUgraphNode> {
    let before = input(behind.as_ptr());
    out(|node| call!(cuGraphAddMemFreeNode(node, graph, before, behind.len(), address)))
}

fn add_fill(graph: CUgraph, behind: CUgraphNode, to: CUdeviceptr, value: u32) -> CUgraphNode {
    let (filling, context) = (fill(to, value, 1), context_handle());
    out(|n| call!(cuGraphAddMemsetNode(n, graph, input(&behind), 1, input(&filling), context))).unwrap()
}

fn add_copy(graph: CUgraph, behind: CUgraphNode, to: CUdeviceptr, from: CUdeviceptr) -> CUgraphNode {
    let (copying, context) = (copy(to, from, 4), context_handle());
    out(|n| call!(cuGraphAddMemcpyNode(n, graph, input(&behind), 1, input(&copying), context))).unwrap()
}

#[test]
fn an_address_has_memory_from_its_node_to_the_free_in_each_launch() {
    let _context = Ctx::new();
    let (f, graph, word) = (Functions::load(), graph(), words(1));
    let (allocated, at) = alloc(graph, &[], 4);
    assert_eq!(out(|base| call!(cuMemGetAddressRange_v2(base, nowhere(), at + 3))), Ok(at));
    let filled = add_fill(graph, allocated, at, 6);
    let multiplied = add_kernel(graph, &[filled], f.multiply, &[at, 7]).unwrap();
    let copied = add_copy(graph, multiplied, word, at);
    let freed = free(graph, &[copied], at).unwrap();
    type Kind = CUgraphNodeType;
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    assert_eq!(kinds, [Kind::MEM_ALLOC, Kind::MEMSET, Kind::KERNEL, Kind::MEMCPY, Kind::MEM_FREE]);
    let mut told = params(0);
    ok!(cuGraphMemAllocNodeGetParams(allocated, output(&mut told)));
    assert_eq!((told.dptr, told.bytesize, told.poolProps.location.id), (at, 4, 0));
    assert_eq!(out(|address| call!(cuGraphMemFreeNodeGetParams(freed, address))), Ok(at));
    fails!(INVALID_VALUE, cuGraphMemFreeNodeGetParams(copied, output(&mut 0)));
    let exec = ready(graph);
    for _ in 0..3 {
        write(word, &[0]);
        ok!(cuGraphLaunch(exec, CUstream::NULL));
        assert_eq!(read(word, 1), [42]);
    }
    // Nobody else frees it, and in between there is nothing.
    fails!(INVALID_VALUE, cuMemFree_v2(at));
    fails!(INVALID_VALUE, cuMemFreeAsync(at, CUstream::NULL));
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    fails!(NOT_FOUND, cuMemGetAddressRange_v2(nowhere(), nowhere(), at));
}

#[test]
fn what_is_reached_outside_of_its_time_is_an_illegal_address() {
    for by_kernel in [true, false] {
        for late in [true, false] {
            let context = Ctx::new();
            let (f, graph) = (Functions::load(), graph());
            let (allocated, at) = alloc(graph, &[], 4);
            let filled = add_fill(graph, allocated, at, 0);
            let freed = free(graph, &[filled], at).unwrap();
            let behind = if late { freed } else { filled };
            match by_kernel {
                true => add_kernel(graph, &[behind], f.add, &[at, 1]).unwrap(),
                false => add_fill(graph, behind, at, 1),
            };
            // Where it is not late, the free comes behind all the same: nodes run in the order of their creation then.
            let exec = ready(graph);
            ok!(cuGraphLaunch(exec, CUstream::NULL));
            fails!(ILLEGAL_ADDRESS, cuCtxSynchronize());
            ok!(cuGraphExecDestroy(exec));
            ok!(cuGraphDestroy(graph));
            drop(context);
        }
    }
}

#[test]
fn what_a_graph_does_not_free_stays_until_somebody_does() {
    let _context = Ctx::new();
    let (f, graph, word, stream) = (Functions::load(), graph(), words(1), stream());
    let (allocated, at) = alloc(graph, &[], 4);
    add_fill(graph, allocated, at, 5);
    let exec = ready(graph);
    let other = self::graph();
    let behind = add_kernel(other, &[], f.add, &[at, 2]).unwrap();
    free(other, &[add_copy(other, behind, word, at)], at).unwrap();
    let freeing = ready(other);
    fails!(INVALID_VALUE, cuGraphLaunch(freeing, stream));
    for by in 0..4 {
        ok!(cuGraphLaunch(exec, stream));
        fails!(INVALID_VALUE, cuGraphLaunch(exec, stream));
        match by {
            0 => ok!(cuMemFreeAsync(at, stream)),
            1 => ok!(cuMemFree_v2(at)),
            2 => {
                ok!(cuGraphLaunch(freeing, stream));
                fails!(INVALID_VALUE, cuGraphLaunch(freeing, stream));
                assert_eq!(read(word, 1), [7]);
            }
            _ => {
                assert_eq!(launch(f.add, stream, &[at, 4]), OK);
                assert_eq!(read(at, 1), [9]);
            }
        }
    }
    // It outlives its graph.
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    assert_eq!(read(at, 1), [9]);
    ok!(cuMemFree_v2(at));
    fails!(NOT_FOUND, cuMemGetAddressRange_v2(nowhere(), nowhere(), at));
    ok!(cuGraphExecDestroy(freeing));
    ok!(cuGraphDestroy(other));
}

#[test]
fn a_launch_frees_what_the_one_before_has_left_if_that_is_wanted() {
    const AUTO_FREE: u64 = 1;
    let _context = Ctx::new();
    let (f, graph, stream) = (Functions::load(), graph(), stream());
    let (allocated, at) = alloc(graph, &[], 4);
    add_fill(graph, allocated, at, 5);
    let exec = out(|exec| call!(cuGraphInstantiateWithFlags(exec, graph, AUTO_FREE))).unwrap();
    for _ in 0..3 {
        ok!(cuGraphLaunch(exec, stream));
        assert_eq!(launch(f.add, stream, &[at, 1]), OK);
        assert_eq!(read(at, 1), [6]);
    }
    ok!(cuMemFreeAsync(at, stream));
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn capture_makes_such_nodes() {
    let _context = Ctx::new();
    let (f, word, stream, outside) = (Functions::load(), words(1), stream(), words(1));
    begin(stream);
    let at = out(|at| call!(cuMemAllocAsync(at, 4, stream))).unwrap();
    ok!(cuMemsetD32Async(at, 20, 1, stream));
    assert_eq!(launch(f.add, stream, &[at, 1]), OK);
    ok!(cuMemcpyDtoDAsync_v2(word, at, 4, stream));
    ok!(cuMemFreeAsync(at, stream));
    fails!(INVALID_VALUE, cuMemFreeAsync(outside, stream));
    let graph = end(stream).unwrap();
    type Kind = CUgraphNodeType;
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    assert_eq!(kinds, [Kind::MEM_ALLOC, Kind::MEMSET, Kind::KERNEL, Kind::MEMCPY, Kind::MEM_FREE]);
    assert_eq!(edges(graph), [(0, 1), (1, 2), (2, 3), (3, 4)]);
    let exec = ready(graph);
    for _ in 0..2 {
        write(word, &[0]);
        ok!(cuGraphLaunch(exec, stream));
        assert_eq!(read(word, 1), [21]);
    }
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn what_such_graphs_cannot_do_is_refused() {
    let _context = Ctx::new();
    let (graph, other, stream) = (graph(), graph(), stream());
    let (allocated, at) = alloc(graph, &[], 4);
    let freed = free(graph, &[allocated], at).unwrap();
    assert_eq!(free(graph, &[freed], at), Err(INVALID), "twice");
    assert_eq!(free(other, &[], at), Err(INVALID), "by another graph too");
    assert_eq!(free(other, &[], words(1)), Err(INVALID), "no graph's");
    assert_eq!(free(other, &[], 4), Err(INVALID), "no memory");
    let (behind, left) = alloc(graph, &[freed], 4);
    assert!(left != at && free(other, &[], left).is_ok());
    assert_eq!(free(graph, &[behind], left), Err(INVALID), "another one does");
    fails!(NOT_SUPPORTED, cuGraphClone(output(&mut CUgraph::default()), graph));
    let mut node = CUgraphNode::NULL;
    let parent = self::graph();
    fails!(NOT_SUPPORTED, cuGraphAddChildGraphNode(output(&mut node), parent, null(), 0, graph));
    let exec = ready(graph);
    fails!(NOT_SUPPORTED, cuGraphInstantiateWithFlags(output(&mut CUgraphExec::default()), graph, 0));
    begin(stream);
    fails!(STREAM_CAPTURE_UNSUPPORTED, cuGraphLaunch(exec, stream));
    end(stream).unwrap();
    ok!(cuGraphExecDestroy(exec));
    ready(graph);
    for (what, bytes, device, handles, expected) in [
        ("nothing", 0, 0, 0, INVALID),
        ("no device", 4, 9, 0, Status::INVALID_DEVICE),
        ("shared", 4, 0, 1, Status::NOT_SUPPORTED),
    ] {
        let mut params = params(bytes);
        (params.poolProps.location.id, params.poolProps.handle_types) = (device, handles);
        let place = output(&mut params);
        let status = call!(cuGraphAddMemAllocNode(output(&mut node), other, null(), 0, place));
        assert_eq!(status, expected, "{what}");
    }
    add_empty(graph, &[freed]);
}

#[test]
fn graphs_tell_how_much_memory_they_have() {
    let _context = Ctx::new();
    let mut high = 0u64;
    let value = |high: &mut u64| output(std::ptr::from_mut(high).cast::<c_void>());
    type Of = CUgraphMem_attribute;
    let graph = graph();
    let (allocated, at) = alloc(graph, &[], 1 << 27);
    free(graph, &[allocated], at).unwrap();
    let exec = ready(graph);
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    ok!(cuCtxSynchronize());
    // Other tests have a few bytes.
    ok!(cuDeviceGetGraphMemAttribute(0, Of::USED_MEM_HIGH, value(&mut high)));
    assert_eq!(high >> 27, 1);
    let one = 1u64;
    fails!(
        INVALID_VALUE,
        cuDeviceSetGraphMemAttribute(0, Of::USED_MEM_HIGH, input(std::ptr::from_ref(&one).cast()))
    );
    let zero = 0u64;
    ok!(cuDeviceSetGraphMemAttribute(0, Of::USED_MEM_HIGH, input(std::ptr::from_ref(&zero).cast())));
    ok!(cuDeviceGetGraphMemAttribute(0, Of::USED_MEM_HIGH, value(&mut high)));
    assert_eq!(high >> 27, 0);
    ok!(cuDeviceGetGraphMemAttribute(0, Of::RESERVED_MEM_HIGH, value(&mut high)));
    assert_eq!(high >> 27, 1);
    ok!(cuDeviceGraphMemTrim(0));
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

/// By the documentation of `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`.
#[test]
fn a_graph_with_memory_moves_into_a_node() {
    let _context = Ctx::new();
    let (f, outer, inner, word) = (Functions::load(), graph(), graph(), words(1));
    let (allocated, at) = alloc(inner, &[], 4);
    let filled = add_fill(inner, allocated, at, 6);
    let copied = add_copy(inner, add_kernel(inner, &[filled], f.multiply, &[at, 7]).unwrap(), word, at);
    free(inner, &[copied], at).unwrap();
    let into = |graph: CUgraph, child: CUgraph, ownership: i32| {
        let mut params = NodeParams::new(CUgraphNodeType::GRAPH);
        params.body = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: child, ownership };
        let place = params.place();
        out(|node| call!(cuGraphAddNode(node, graph, null(), 0, place)))
    };
    assert_eq!(into(outer, inner, 0), Err(Status::NOT_SUPPORTED), "it has no clone");
    assert_eq!(into(inner, inner, 1), Err(Status::INVALID_VALUE));
    let exec = ready(inner);
    assert_eq!(into(outer, inner, 1), Err(Status::NOT_SUPPORTED), "there is an executable graph of it");
    ok!(cuGraphExecDestroy(exec));
    let node = into(outer, inner, 1).unwrap();
    assert_eq!(into(inner, outer, 1), Err(Status::INVALID_VALUE), "a circle");
    add_kernel(outer, &[node], f.add, &[word, 1]).unwrap();
    assert_eq!(out(|graph| call!(cuGraphChildGraphNodeGetGraph(node, graph))), Ok(inner));
    let exec = ready(outer);
    for _ in 0..3 {
        write(word, &[0]);
        ok!(cuGraphLaunch(exec, CUstream::NULL));
        assert_eq!(read(word, 1), [43]);
    }
    // It is the node's.
    let (other, mut result) = (graph(), CUgraphExecUpdateResult::SUCCESS);
    assert_eq!([0, 1].map(|ownership| into(other, inner, ownership)), [Err(Status::INVALID_VALUE); 2]);
    fails!(INVALID_VALUE, cuGraphDestroy(inner));
    fails!(INVALID_VALUE, cuGraphInstantiateWithFlags(output(&mut CUgraphExec::default()), inner, 0));
    fails!(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, inner, nowhere(), output(&mut result)));
    let more = cuGraphAddMemAllocNode;
    let (mut params, mut made) = (params(4), CUgraphNode::NULL);
    fails!(NOT_SUPPORTED, more(output(&mut made), inner, null(), 0, output(&mut params)));
    // What the graph has inside limits it too.
    fails!(NOT_SUPPORTED, cuGraphClone(output(&mut CUgraph::default()), outer));
    fails!(NOT_SUPPORTED, cuGraphDestroyNode(node));
    fails!(NOT_SUPPORTED, cuGraphInstantiateWithFlags(output(&mut CUgraphExec::default()), outer, 0));
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(outer));
    fails!(INVALID_VALUE, cuGraphGetNodes(inner, nowhere(), output(&mut 0)));
    // Without memory it also has clones, in those of the graph around it.
    let (outer, inner) = (graph(), graph());
    add_kernel(inner, &[], f.add, &[word, 100]).unwrap();
    into(outer, inner, 1).unwrap();
    let clone = out(|clone| call!(cuGraphClone(clone, outer))).unwrap();
    ok!(cuGraphDestroy(outer));
    let exec = ready(clone);
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    assert_eq!(read(word, 1), [143]);
    ok!(cuGraphExecDestroy(exec));
}
