//! Graphs that are made node by node.

use crate::*;
use std::ffi::c_void;

pub(crate) fn graph() -> CUgraph {
    out(|graph| call!(cuGraphCreate(graph, 0))).unwrap()
}

pub(crate) fn add_kernel(
    graph: CUgraph,
    behind: &[CUgraphNode],
    function: CUfunction,
    params: &[u64],
) -> Result<CUgraphNode> {
    let params = Params::of(params);
    let params = kernel_params(function, &params);
    let before = input(behind.as_ptr());
    out(|node| call!(cuGraphAddKernelNode(node, graph, before, behind.len(), input(&params))))
}

pub(crate) fn add_empty(graph: CUgraph, behind: &[CUgraphNode]) -> CUgraphNode {
    let before = input(behind.as_ptr());
    out(|node| call!(cuGraphAddEmptyNode(node, graph, before, behind.len()))).unwrap()
}

pub(crate) fn context_handle() -> CUcontext {
    out(|context| call!(cuCtxGetCurrent(context))).unwrap()
}

/// A fill of a row of words.
pub(crate) fn fill(dst: CUdeviceptr, value: u32, width: usize) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS { dst, pitch: 0, value, elementSize: 4, width, height: 1 }
}

/// A copy of a row from device to device.
pub(crate) fn copy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::DEVICE,
        srcDevice: from,
        dstMemoryType: CUmemorytype::DEVICE,
        dstDevice: to,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
        // SAFETY: integers and null pointers are values of its fields.
        ..unsafe { std::mem::zeroed() }
    }
}

#[test]
fn every_kind_of_node_runs_in_its_turn() {
    let _context = Ctx::new();
    let (f, graph, a, b) = (Functions::load(), graph(), words(4), words(4));
    let context = context_handle();
    let filling = fill(a, 6, 4);
    let filled = out(|n| call!(cuGraphAddMemsetNode(n, graph, null(), 0, input(&filling), context))).unwrap();
    let multiplied = add_kernel(graph, &[filled], f.multiply, &[a, 7]).unwrap();
    let copying = copy(b, a, 16);
    let behind = input(&multiplied);
    let copied = out(|n| call!(cuGraphAddMemcpyNode(n, graph, behind, 1, input(&copying), context))).unwrap();
    let meeting = add_empty(graph, &[copied, multiplied]);
    let inner = self::graph();
    let first = add_kernel(inner, &[], f.add, &[b, 1]).unwrap();
    add_kernel(inner, &[first], f.multiply, &[b, 2]).unwrap();
    let behind = input(&meeting);
    let child = out(|n| call!(cuGraphAddChildGraphNode(n, graph, behind, 1, inner))).unwrap();
    // The node has a copy: what becomes of the graph it was made from does not matter.
    ok!(cuGraphDestroy(inner));
    type Kind = CUgraphNodeType;
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    assert_eq!(kinds, [Kind::MEMSET, Kind::KERNEL, Kind::MEMCPY, Kind::EMPTY, Kind::GRAPH]);
    let exec = ready(graph);
    for _ in 0..2 {
        ok!(cuGraphLaunch(exec, CUstream::NULL));
        assert_eq!((read(a, 4), read(b, 4)), (vec![42, 6, 6, 6], vec![86, 6, 6, 6]));
    }
    ok!(cuGraphDestroy(graph));
    assert_eq!(kind(child), Err(Status::INVALID_VALUE));
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    assert_eq!(read(b, 1), [86]);
}

#[test]
fn making_ready_tells_how_it_went() {
    let _context = Ctx::new();
    let graph = graph();
    let second = add_empty(graph, &[add_empty(graph, &[])]);
    assert_eq!((nodes(graph)[1], edges(graph)), (second, vec![(0, 1)]));
    let mut exec = CUgraphExec::NULL;
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: 4,
        hUploadStream: CUstream::NULL,
        hErrNode_out: CUgraphNode::NULL,
        result_out: CUgraphInstantiateResult::SUCCESS,
    };
    fails!(NOT_SUPPORTED, cuGraphInstantiateWithParams(output(&mut exec), graph, output(&mut params)));
    assert_eq!((params.result_out, exec), (CUgraphInstantiateResult::ERROR, CUgraphExec::NULL));
    params.flags = 0;
    ok!(cuGraphInstantiateWithParams(output(&mut exec), graph, output(&mut params)));
    assert_eq!(params.result_out, CUgraphInstantiateResult::SUCCESS);
    ok!(cuGraphLaunch(exec, CUstream::NULL));
    // Places that are left over are null.
    let (mut found, mut count) = ([CUgraphNode(1); 3], 3);
    ok!(cuGraphGetNodes(graph, output(found.as_mut_ptr()), output(&mut count)));
    assert_eq!((count, found[2]), (2, CUgraphNode::NULL));
}

#[test]
fn nodes_come_behind_others_and_go_with_their_graph() {
    let _context = Ctx::new();
    let graph = graph();
    let a = add_empty(graph, &[]);
    let b = add_empty(graph, &[a]);
    let c = add_empty(graph, &[a, b]);
    // By the documentation of the functions that add nodes.
    let twice = [a, b, b];
    let twice = input(twice.as_ptr());
    let added = out(|n: Out<CUgraphNode>| call!(cuGraphAddEmptyNode(n, graph, twice, 3)));
    assert_eq!(added, Err(Status::INVALID_VALUE), "one is named twice");
    assert_eq!(edges(graph), [(0, 1), (0, 2), (1, 2)]);
    assert_eq!(nodes(graph), [a, b, c]);
    let other = self::graph();
    for stranger in [add_empty(other, &[]), CUgraphNode(3), CUgraphNode::NULL] {
        let before = input(&stranger);
        let added = out(|n: Out<CUgraphNode>| call!(cuGraphAddEmptyNode(n, graph, before, 1)));
        assert_eq!(added, Err(Status::INVALID_VALUE));
    }
    ok!(cuGraphDestroy(graph));
    fails!(INVALID_VALUE, cuGraphDestroy(graph));
    assert_eq!(kind(a), Err(Status::INVALID_VALUE));
    fails!(INVALID_VALUE, cuGraphDestroy(CUgraph(a.0)));
    fails!(INVALID_VALUE, cuGraphCreate(nowhere(), 0));
    let mut made = CUgraph::NULL;
    fails!(INVALID_VALUE, cuGraphCreate(output(&mut made), 1));
}

#[test]
fn a_copy_is_a_graph_of_its_own() {
    let _context = Ctx::new();
    let (f, graph, word) = (Functions::load(), graph(), words(1));
    let plus = add_kernel(graph, &[], f.add, &[word, 4]).unwrap();
    let times = add_kernel(graph, &[plus], f.multiply, &[word, 3]).unwrap();
    let copy = out(|copy| call!(cuGraphClone(copy, graph))).unwrap();
    assert_eq!(edges(copy), [(0, 1)]);
    assert!(nodes(copy).iter().all(|node| ![plus, times].contains(node)));
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphLaunch(ready(copy), CUstream::NULL));
    assert_eq!(read(word, 1), [12]);
}

#[test]
fn what_makes_no_sense_is_no_node() {
    let _context = Ctx::new();
    let (f, graph, word) = (Functions::load(), graph(), words(4));
    let context = context_handle();
    assert_eq!(add_kernel(graph, &[], CUfunction::NULL, &[word, 1]), Err(Status::INVALID_HANDLE));
    let params = Params::of(&[word, 1]);
    let good = kernel_params(f.add, &params);
    let add = |params: &CUDA_KERNEL_NODE_PARAMS_v1| {
        out(|n: Out<CUgraphNode>| call!(cuGraphAddKernelNode(n, graph, null(), 0, input(params)))).err()
    };
    for bad in [
        CUDA_KERNEL_NODE_PARAMS_v1 { blockDimX: 0, ..good },
        CUDA_KERNEL_NODE_PARAMS_v1 { blockDimX: 1025, ..good },
        CUDA_KERNEL_NODE_PARAMS_v1 { sharedMemBytes: 49 << 10, ..good },
        CUDA_KERNEL_NODE_PARAMS_v1 { kernelParams: null(), ..good },
    ] {
        assert_eq!(add(&bad), Some(Status::INVALID_VALUE));
    }
    let good = fill(word, 1, 4);
    for bad in [
        fill(word, 1, 0),
        fill(word, 1, 5),
        fill(word + 2, 1, 2),
        fill(0x1000, 1, 1),
        CUDA_MEMSET_NODE_PARAMS { elementSize: 3, ..good },
        CUDA_MEMSET_NODE_PARAMS { elementSize: 1, value: 256, ..good },
        CUDA_MEMSET_NODE_PARAMS { height: 2, pitch: 8, ..good },
        CUDA_MEMSET_NODE_PARAMS { height: 0, ..good },
    ] {
        let added =
            out(|n: Out<CUgraphNode>| call!(cuGraphAddMemsetNode(n, graph, null(), 0, input(&bad), context)));
        assert_eq!(added, Err(Status::INVALID_VALUE), "{bad:?}");
    }
    for bad in [copy(word, word, 0), copy(word, word, 17), copy(0x1000, word, 4)] {
        let added =
            out(|n: Out<CUgraphNode>| call!(cuGraphAddMemcpyNode(n, graph, null(), 0, input(&bad), context)));
        assert_eq!(added, Err(Status::INVALID_VALUE));
    }
    let host = CUDA_HOST_NODE_PARAMS { function: None, userData: std::ptr::null_mut::<c_void>() };
    let added = out(|n: Out<CUgraphNode>| call!(cuGraphAddHostNode(n, graph, null(), 0, input(&host))));
    assert_eq!(added, Err(Status::INVALID_VALUE));
    assert_eq!(nodes(graph), []);
}

#[test]
fn graphs_are_only_so_deep() {
    let _context = Ctx::new();
    let mut inner = graph();
    add_empty(inner, &[]);
    for depth in 2.. {
        let outer = graph();
        let added = out(|n: Out<CUgraphNode>| call!(cuGraphAddChildGraphNode(n, outer, null(), 0, inner)));
        if added.is_err() {
            assert_eq!((added, depth), (Err(Status::INVALID_VALUE), 65));
            break;
        }
        ok!(cuGraphDestroy(inner));
        inner = outer;
    }
    ok!(cuGraphLaunch(ready(inner), CUstream::NULL));
    ok!(cuGraphDestroy(inner));
}

#[test]
fn graphs_are_drawn() {
    let _context = Ctx::new();
    let graph = graph();
    let a = add_empty(graph, &[]);
    add_empty(graph, &[a]);
    let file = std::env::temp_dir().join(format!("warpwright-graph-{}.dot", std::process::id()));
    let name = text(file.to_str().unwrap());
    ok!(cuGraphDebugDotPrint(graph, chars(&name), 0));
    let drawn = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    // The numbers are the library's to choose.
    let numbers = |word: &str| -> Vec<&str> {
        let behind = drawn.match_indices(word).map(|(at, _)| &drawn[at + word.len()..]);
        behind.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap()).collect()
    };
    let (id, ids) = (numbers("cluster_")[0], numbers("_node_"));
    let [first, second] = [ids[0], ids[1]].map(|node| format!("\"graph_{id}_node_{node}\""));
    assert_ne!(first, second);
    let expected: Vec<String> = vec![
        "digraph dot {".into(),
        format!("subgraph cluster_{id} {{"),
        format!("label=\"graph_{id}\" graph[style=\"dashed\"];"),
        format!("{first}[shape=\"box\" label=\"{}\\nEMPTY\"];", ids[0]),
        format!("{second}[shape=\"box\" label=\"{}\\nEMPTY\"];", ids[1]),
        format!("{first} -> {second};"),
        "}".into(),
        "}".into(),
    ];
    assert_eq!(drawn.lines().collect::<Vec<_>>(), expected);
    let nowhere = text("/nowhere/at/all.dot");
    fails!(OPERATING_SYSTEM, cuGraphDebugDotPrint(graph, chars(&nowhere), 0));
}
