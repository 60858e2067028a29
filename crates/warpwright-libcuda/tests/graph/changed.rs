//! What is changed in a graph that is ready to run, and what goes away under it.

use crate::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// A graph `(x + a) · b` of a word.
fn captured(f: &Functions, stream: CUstream, word: CUdeviceptr, a: u64, b: u64) -> CUgraph {
    begin(stream);
    assert_eq!(launch(f.add, stream, &[word, a]), OK);
    assert_eq!(launch(f.multiply, stream, &[word, b]), OK);
    end(stream).unwrap()
}

fn set(exec: CUgraphExec, node: CUgraphNode, function: CUfunction, params: &[u64]) -> Status {
    let params = Params::of(params);
    let params = kernel_params(function, &params);
    call!(cuGraphExecKernelNodeSetParams(exec, node, input(&params)))
}

#[test]
fn a_run_has_the_parameters_of_when_it_was_asked_for() {
    let context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    let graph = captured(&f, stream, word, 1, 2);
    let (exec, all) = (ready(graph), nodes(graph));
    let mut expected = 0u32;
    for value in 0..20u64 {
        ok!(cuGraphLaunch(exec, stream));
        expected = (expected + 1 + value as u32) * 2;
        assert_eq!(set(exec, all[0], f.add, &[word, value + 2]), OK);
    }
    assert_eq!(read(word, 1), [expected]);
    // Another function; the graph that it was made from is as it was.
    assert_eq!(set(exec, all[0], f.multiply, &[word, 3]), OK);
    write(word, &[5]);
    ok!(cuGraphLaunch(exec, stream));
    assert_eq!(read(word, 1), [30]);
    write(word, &[5]);
    ok!(cuGraphLaunch(ready(graph), stream));
    assert_eq!(read(word, 1), [12]);

    let fill = CUDA_MEMSET_NODE_PARAMS { dst: word, pitch: 0, value: 1, elementSize: 4, width: 1, height: 1 };
    fails!(INVALID_VALUE, cuGraphExecMemsetNodeSetParams(exec, all[0], input(&fill), context.0));
    assert_eq!(set(exec, CUgraphNode(5), f.add, &[word, 1]), Status::INVALID_VALUE);
    assert_eq!(set(exec, all[0], CUfunction(5), &[word, 1]), Status::INVALID_HANDLE);
    let other = nodes(captured(&f, stream, word, 1, 1));
    assert_eq!(set(exec, other[0], f.add, &[word, 1]), Status::INVALID_VALUE, "a node of another graph");
    ok!(cuGraphDestroy(graph));
    assert_eq!(set(exec, all[0], f.add, &[word, 1]), Status::INVALID_VALUE);
    ok!(cuGraphLaunch(exec, stream));
}

#[test]
fn attributes_of_a_launch_can_be_set() {
    let _context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    let graph = captured(&f, stream, word, 6, 1);
    let node = nodes(graph)[0];
    type Id = CUlaunchAttributeID;
    for (id, value, expected) in [
        (Id::PRIORITY, -2, OK),
        (Id::COOPERATIVE, 1, OK),
        (Id::CLUSTER_DIMENSION, 1, OK),
        (Id::CLUSTER_DIMENSION, 2, Status::INVALID_CLUSTER_SIZE),
        (CUlaunchAttributeID(99), 1, Status::INVALID_VALUE),
    ] {
        let value = CUlaunchAttributeValue::of_all(&[value, 1, 1]);
        assert_eq!(call!(cuGraphKernelNodeSetAttribute(node, id, input(&value))), expected, "{id:?}");
    }
    ok!(cuGraphLaunch(ready(graph), stream));
    assert_eq!(read(word, 1), [6]);
}

#[test]
fn a_graph_of_the_same_shape_takes_the_place_of_another() {
    let _context = Ctx::new();
    let (f, stream, word, other) = (Functions::load(), stream(), words(1), words(1));
    let exec = ready(captured(&f, stream, word, 1, 2));
    let update = |graph| {
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult::ERROR,
            errorNode: CUgraphNode::NULL,
            errorFromNode: CUgraphNode::NULL,
        };
        let status = call!(cuGraphExecUpdate_v2(exec, graph, output(&mut info)));
        (status, info.result, info.errorNode)
    };
    let same = captured(&f, stream, other, 5, 4);
    assert_eq!(update(same), (OK, CUgraphExecUpdateResult::SUCCESS, CUgraphNode::NULL));
    ok!(cuGraphLaunch(exec, stream));
    assert_eq!((read(word, 1), read(other, 1)), (vec![0], vec![20]));

    let failed =
        |graph, result, node| assert_eq!(update(graph), (Status::GRAPH_EXEC_UPDATE_FAILURE, result, node));
    begin(stream);
    for value in 0..3 {
        assert_eq!(launch(f.add, stream, &[word, value]), OK);
    }
    let longer = end(stream).unwrap();
    failed(longer, CUgraphExecUpdateResult::TOPOLOGY_CHANGED, CUgraphNode::NULL);
    begin(stream);
    assert_eq!(launch(f.add, stream, &[word, 1]), OK);
    ok!(cuMemsetD32Async(word, 1, 1, stream));
    let different = end(stream).unwrap();
    failed(different, CUgraphExecUpdateResult::NODE_TYPE_CHANGED, nodes(different)[1]);
    let apart = out(|graph| call!(cuGraphCreate(graph, 0))).unwrap();
    for function in [f.add, f.multiply] {
        let params = Params::of(&[word, 1]);
        let params = kernel_params(function, &params);
        out(|node| call!(cuGraphAddKernelNode(node, apart, null(), 0, input(&params)))).unwrap();
    }
    failed(apart, CUgraphExecUpdateResult::TOPOLOGY_CHANGED, nodes(apart)[1]);
    // What failed has changed nothing.
    ok!(cuGraphLaunch(exec, stream));
    assert_eq!((read(word, 1), read(other, 1)), (vec![0], vec![100]));
    fails!(
        INVALID_VALUE,
        cuGraphExecUpdate(exec, CUgraph(1), nowhere(), output(&mut CUgraphExecUpdateResult(9)))
    );
}

#[test]
fn a_graph_whose_code_or_memory_is_gone_does_not_run() {
    let _context = Ctx::new();
    let (f, stream, word, from) = (Functions::load(), stream(), words(1), words(1));
    let exec = ready(captured(&f, stream, word, 1, 2));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuModuleUnload(f.module));
    assert_eq!(read(word, 1), [2]);
    fails!(INVALID_HANDLE, cuGraphLaunch(exec, stream));

    begin(stream);
    ok!(cuMemcpyDtoDAsync_v2(word, from, 4, stream));
    let copying = ready(end(stream).unwrap());
    begin(stream);
    ok!(cuMemsetD32Async(from, 1, 1, stream));
    let filling = ready(end(stream).unwrap());
    ok!(cuMemFree_v2(from));
    fails!(INVALID_VALUE, cuGraphLaunch(copying, stream));
    fails!(INVALID_VALUE, cuGraphLaunch(filling, stream));
    ok!(cuCtxSynchronize());
    assert_eq!(read(word, 1), [2], "the context is none the worse");
}

#[test]
fn what_a_graph_does_wrong_stays_with_its_context() {
    let _context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    begin(stream);
    assert_eq!(launch(f.add, stream, &[word, 1]), OK);
    assert_eq!(launch(function(f.module, "trap").unwrap(), stream, &[]), OK);
    assert_eq!(launch(f.add, stream, &[word, 1]), OK);
    let exec = ready(end(stream).unwrap());
    ok!(cuGraphLaunch(exec, stream));
    fails!(LAUNCH_FAILED, cuStreamSynchronize(stream));
    fails!(LAUNCH_FAILED, cuGraphLaunch(exec, stream));
}

#[test]
fn a_run_that_is_captured_is_a_node() {
    let _context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    let exec = ready(captured(&f, stream, word, 1, 3));
    begin(stream);
    ok!(cuGraphLaunch(exec, stream));
    assert_eq!(launch(f.add, stream, &[word, 100]), OK);
    ok!(cuGraphLaunch(exec, stream));
    let graph = end(stream).unwrap();
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    type Kind = CUgraphNodeType;
    assert_eq!(kinds, [Kind::GRAPH, Kind::KERNEL, Kind::GRAPH]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphLaunch(ready(graph), stream));
    assert_eq!(read(word, 1), [(3 + 100 + 1) * 3]);
}

static ORDER: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

unsafe extern "C-unwind" fn note(argument: *mut c_void) {
    std::thread::sleep(std::time::Duration::from_millis(2));
    ORDER.lock().unwrap().push(argument.addr());
}

#[test]
fn runs_of_one_graph_follow_one_another() {
    let _context = Ctx::new();
    let streams = [stream(), stream(), stream()];
    begin(streams[0]);
    for place in 1..=3 {
        ok!(cuLaunchHostFunc(streams[0], Some(note), std::ptr::without_provenance_mut(place)));
    }
    let exec = ready(end(streams[0]).unwrap());
    for stream in streams {
        ok!(cuGraphLaunch(exec, stream));
    }
    ok!(cuCtxSynchronize());
    assert_eq!(*ORDER.lock().unwrap(), [1, 2, 3, 1, 2, 3, 1, 2, 3]);
}

/// By the documentation of `cuGraphLaunch`: a run comes behind those before it, whatever it does.
#[test]
fn a_run_waits_for_one_that_its_stream_has_held_up() {
    let _context = Ctx::new();
    let (f, first, second) = (Functions::load(), stream(), stream());
    let (word, gate) = (words(1), words(1));
    let exec = ready(captured(&f, first, word, 1, 3));
    ok!(cuStreamWaitValue32_v2(first, gate, 1, 1));
    assert_eq!(launch(f.add, first, &[word, 10]), OK);
    for stream in [first, second] {
        ok!(cuGraphLaunch(exec, stream));
    }
    std::thread::sleep(std::time::Duration::from_millis(5));
    let early = call!(cuStreamQuery(second));
    write(gate, &[1]);
    assert_eq!(early, Status::NOT_READY);
    ok!(cuStreamSynchronize(second));
    assert_eq!(read(word, 1), [(11 * 3 + 1) * 3]);
    ok!(cuGraphExecDestroy(exec));
}

static IS_CALLED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C-unwind" fn take_time(_: *mut c_void) {
    IS_CALLED.store(1, SeqCst);
    std::thread::sleep(std::time::Duration::from_millis(50));
    IS_CALLED.store(2, SeqCst);
}

/// Whoever waits may give back then what the function uses.
#[test]
fn a_function_is_waited_for_although_its_context_has_failed() {
    let _context = Ctx::new();
    let (f, own, other, word) = (Functions::load(), stream(), stream(), words(1));
    begin(own);
    ok!(cuLaunchHostFunc(own, Some(take_time), std::ptr::null_mut()));
    assert_eq!(launch(f.add, own, &[word, 1]), OK);
    let exec = ready(end(own).unwrap());
    ok!(cuGraphLaunch(exec, own));
    while IS_CALLED.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(launch(function(f.module, "trap").unwrap(), other, &[]), OK);
    fails!(LAUNCH_FAILED, cuStreamSynchronize(other));
    fails!(LAUNCH_FAILED, cuStreamSynchronize(own));
    assert_eq!(IS_CALLED.load(SeqCst), 2);
}

/// By the documentation of `cuGraphExecMemcpyNodeSetParams`, `cuGraphExecMemsetNodeSetParams` and `cuGraphExecUpdate`.
#[test]
fn copies_and_fills_stay_what_they_are() {
    let context = Ctx::new();
    let (stream, a, b) = (stream(), words(16), words(16));
    let pooled = out(|at| call!(cuMemAllocAsync(at, 64, stream))).unwrap();
    let managed = out(|at| call!(cuMemAllocManaged(at, 64, 1))).unwrap();
    let other = Ctx::new();
    let elsewhere = words(16);
    ok!(cuCtxPopCurrent_v2(nowhere()));
    // A copy of one row, a copy of two, a fill of words, a fill of two rows of words.
    let make = |to: CUdeviceptr, value: u32, width: usize| {
        begin(stream);
        ok!(cuMemcpyDtoDAsync_v2(b, a, 8, stream));
        ok!(cuMemcpy2DAsync_v2(input(&rows(b, a)), stream));
        ok!(cuMemsetD32Async(to, value, width, stream));
        ok!(cuMemsetD2D32Async(to, 16, value, 2, 2, stream));
        end(stream).unwrap()
    };
    let graph = make(a, 1, 4);
    let (exec, all) = (ready(graph), nodes(graph));
    let copy = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::DEVICE,
        srcDevice: a,
        dstMemoryType: CUmemorytype::DEVICE,
        dstDevice: b,
        WidthInBytes: 8,
        Height: 1,
        Depth: 1,
        ..empty_copy()
    };
    let copies = |node, change: &dyn Fn(&mut CUDA_MEMCPY3D)| {
        let mut changed = copy;
        change(&mut changed);
        call!(cuGraphExecMemcpyNodeSetParams(exec, node, input(&changed), context.0))
    };
    let fills = |node, dst, width, height, pitch| {
        let fill = CUDA_MEMSET_NODE_PARAMS { dst, pitch, value: 7, elementSize: 4, width, height };
        call!(cuGraphExecMemsetNodeSetParams(exec, node, input(&fill), context.0))
    };
    let invalid = Status::INVALID_VALUE;
    for (what, found, expected) in [
        ("other addresses", copies(all[0], &|c| c.dstDevice = b + 16), OK),
        ("memory of another context", copies(all[0], &|c| c.dstDevice = elsewhere), invalid),
        ("memory of the host", copies(all[0], &|c| c.srcDevice = managed), invalid),
        ("two rows", copies(all[0], &|c| (c.Height, c.srcPitch, c.dstPitch) = (2, 8, 8)), invalid),
        ("of a copy of two rows", copies(all[1], &|_| ()), invalid),
        ("memory of a pool", copies(all[0], &|c| c.dstDevice = pooled), OK),
        ("nothing", copies(all[0], &|c| c.WidthInBytes = 0), invalid),
        ("a fill for a copy", fills(all[0], a, 4, 1, 0), invalid),
        ("another length", fills(all[2], a, 8, 1, 0), OK),
        ("another place", fills(all[2], b, 4, 1, 0), OK),
        ("more rows", fills(all[2], a, 4, 2, 16), invalid),
        ("another kind of place", fills(all[2], managed, 4, 1, 0), invalid),
        ("no words", fills(all[2], a, 0, 1, 0), invalid),
        ("rows elsewhere", fills(all[3], b, 2, 2, 16), OK),
        ("longer rows", fills(all[3], a, 3, 2, 16), invalid),
        ("rows further apart", fills(all[3], a, 2, 2, 32), invalid),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    let update = |graph| {
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult::ERROR,
            errorNode: CUgraphNode::NULL,
            errorFromNode: CUgraphNode::NULL,
        };
        let status = call!(cuGraphExecUpdate_v2(exec, graph, output(&mut info)));
        (status, info.result, info.errorNode)
    };
    let success = (OK, CUgraphExecUpdateResult::SUCCESS, CUgraphNode::NULL);
    assert_eq!(update(make(b, 9, 8)), success, "copies of rows can change so");
    let moved = make(managed, 1, 4);
    let changed = CUgraphExecUpdateResult::PARAMETERS_CHANGED;
    assert_eq!(update(moved), (Status::GRAPH_EXEC_UPDATE_FAILURE, changed, nodes(moved)[2]));
    ok!(cuGraphLaunch(exec, stream));
    assert_eq!(read(b, 8), [9; 8]);
    ok!(cuMemFreeAsync(pooled, stream));
    ok!(cuMemFree_v2(managed));
    drop(other);
}

/// By the documentation of `cuGraphExecUpdate`.
#[test]
fn launches_stay_what_they_are() {
    let _context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    let make = |id: CUlaunchAttributeID, value: i32| {
        let graph = captured(&f, stream, word, 1, 2);
        let value = CUlaunchAttributeValue::of(value);
        ok!(cuGraphKernelNodeSetAttribute(nodes(graph)[1], id, input(&value)));
        graph
    };
    let update = |exec, graph| {
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult::ERROR,
            errorNode: CUgraphNode::NULL,
            errorFromNode: CUgraphNode::NULL,
        };
        let status = call!(cuGraphExecUpdate_v2(exec, graph, output(&mut info)));
        (status, info)
    };
    let plain = captured(&f, stream, word, 1, 2);
    let by_priority = out(|exec| call!(cuGraphInstantiateWithFlags(exec, plain, 8))).unwrap();
    let (cooperative, urgent) =
        (make(CUlaunchAttributeID::COOPERATIVE, 1), make(CUlaunchAttributeID::PRIORITY, -1));
    let (success, changed) = (CUgraphExecUpdateResult::SUCCESS, CUgraphExecUpdateResult::ATTRIBUTES_CHANGED);
    for (what, exec, graph, result) in [
        ("cooperative", ready(plain), cooperative, changed),
        ("no longer cooperative", ready(cooperative), plain, changed),
        ("another priority", by_priority, urgent, changed),
        ("another priority, which does not count", ready(plain), urgent, success),
        ("the same", by_priority, plain, success),
    ] {
        assert_eq!(update(exec, graph).1.result, result, "{what}");
    }
    // An edge that differs is told by both its ends.
    let order = |first: usize| {
        let graph = out(|graph| call!(cuGraphCreate(graph, 0))).unwrap();
        let empty = |behind: &[CUgraphNode]| {
            let at = input(behind.as_ptr());
            out(|node| call!(cuGraphAddEmptyNode(node, graph, at, behind.len()))).unwrap()
        };
        let nodes = [empty(&[]), empty(&[])];
        (graph, nodes, empty(&[nodes[first]]))
    };
    let (old, ..) = order(0);
    let (new, nodes, last) = order(1);
    let (status, info) = update(ready(old), new);
    assert_eq!(status, Status::GRAPH_EXEC_UPDATE_FAILURE);
    let told = (info.result, info.errorNode, info.errorFromNode);
    assert_eq!(told, (CUgraphExecUpdateResult::TOPOLOGY_CHANGED, last, nodes[1]));
}

/// Two rows of a word.
fn rows(to: CUdeviceptr, from: CUdeviceptr) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CUmemorytype::DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: CUarray::NULL,
        srcPitch: 8,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CUmemorytype::DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: CUarray::NULL,
        dstPitch: 8,
        WidthInBytes: 4,
        Height: 2,
    }
}
