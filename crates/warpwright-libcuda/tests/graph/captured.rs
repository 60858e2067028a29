//! What is captured, and what ends a capture badly.

use crate::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

type State = CUstreamCaptureStatus;

#[test]
fn what_was_captured_runs_each_time_and_not_before() {
    let _context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    begin(stream);
    assert_eq!(status_of(stream), State::ACTIVE);
    assert_eq!(launch(f.add, stream, &[word, 3]), OK);
    assert_eq!(launch(f.multiply, stream, &[word, 5]), OK);
    ok!(cuMemsetD32Async(word, 1, 0, stream));
    let graph = end(stream).unwrap();
    assert_eq!(status_of(stream), State::NONE);
    assert_eq!(read(word, 1), [0], "nothing was done");
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    assert_eq!(kinds, [CUgraphNodeType::KERNEL, CUgraphNodeType::KERNEL]);
    assert_eq!(edges(graph), [(0, 1)]);
    let exec = ready(graph);
    ok!(cuGraphDestroy(graph));
    for expected in [15, 90, 465] {
        ok!(cuGraphLaunch(exec, stream));
        assert_eq!(read(word, 1), [expected]);
    }
    // Many runs, one after the other.
    write(word, &[0]);
    for _ in 0..4 {
        ok!(cuGraphLaunch(exec, stream));
    }
    ok!(cuGraphExecDestroy(exec));
    assert_eq!(read(word, 1), [((15 * 5 + 15) * 5 + 15) * 5 + 15], "runs that were asked for are done");
    fails!(INVALID_VALUE, cuGraphLaunch(exec, stream));
    fails!(INVALID_VALUE, cuGraphExecDestroy(exec));
}

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C-unwind" fn count(argument: *mut c_void) {
    CALLS.fetch_add(argument.addr() as u32, SeqCst);
}

#[test]
fn copies_fills_and_functions_are_captured() {
    let _context = Ctx::new();
    let (f, stream, a, b) = (Functions::load(), stream(), words(4), words(4));
    let (from, mut to) = ([7u32, 8, 9, 10], [0u32; 4]);
    let to_at = to.as_mut_ptr();
    begin(stream);
    ok!(cuMemsetD32Async(b, 3, 4, stream));
    ok!(cuMemcpyHtoDAsync_v2(a, from.as_ptr().cast::<c_void>(), 16, stream));
    assert_eq!(launch(f.add, stream, &[a, 100]), OK);
    ok!(cuMemcpyDtoDAsync_v2(b, a, 8, stream));
    ok!(cuLaunchHostFunc(stream, Some(count), std::ptr::without_provenance_mut(1000)));
    ok!(cuMemcpyDtoHAsync_v2(to_at.cast::<c_void>(), b, 16, stream));
    let graph = end(stream).unwrap();
    type Kind = CUgraphNodeType;
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    assert_eq!(kinds, [Kind::MEMSET, Kind::MEMCPY, Kind::KERNEL, Kind::MEMCPY, Kind::HOST, Kind::MEMCPY]);
    assert_eq!(edges(graph), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
    let exec = ready(graph);
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuStreamSynchronize(stream));
    // SAFETY: the copies into it are done.
    assert_eq!(unsafe { to_at.cast::<[u32; 4]>().read() }, [107, 8, 3, 3]);
    assert_eq!(CALLS.load(SeqCst), 2000);
}

/// What a client is told of a capture: status, number, graph, and what the next node comes behind.
fn info(stream: CUstream) -> (State, u64, CUgraph, Vec<CUgraphNode>) {
    let (mut status, mut id, mut graph) = (State::NONE, 0, CUgraph::NULL);
    let (mut behind, mut count) = (std::ptr::null(), 0);
    ok!(cuStreamGetCaptureInfo_v2(
        stream,
        output(&mut status),
        output(&mut id),
        output(&mut graph),
        output(&mut behind),
        output(&mut count),
    ));
    // SAFETY: the nodes that the call has just told of.
    let behind =
        if count == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(behind, count) }.to_vec() };
    (status, id, graph, behind)
}

#[test]
fn a_capture_tells_of_itself() {
    let _context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    assert_eq!(info(stream), (State::NONE, 0, CUgraph::NULL, vec![]));
    begin(stream);
    let (status, id, graph, behind) = info(stream);
    assert_eq!((status, behind), (State::ACTIVE, vec![]));
    let mut made = Vec::new();
    for value in 0..3 {
        assert_eq!(launch(f.add, stream, &[word, value]), OK);
        let (_, same, also, behind) = info(stream);
        assert_eq!((same, also, behind.len()), (id, graph, 1));
        made.extend(behind);
    }
    assert_eq!(nodes(graph), made);
    // What the next node comes behind can be changed.
    ok!(cuStreamUpdateCaptureDependencies(stream, input(&made[0]), 1, 1));
    assert_eq!(launch(f.add, stream, &[word, 3]), OK);
    ok!(cuStreamUpdateCaptureDependencies(stream, input(&made[2]), 1, 0));
    assert_eq!(info(stream).3.len(), 2);
    assert_eq!(launch(f.add, stream, &[word, 4]), OK);
    fails!(INVALID_VALUE, cuStreamUpdateCaptureDependencies(stream, input(&made[2]), 1, 2));
    assert_eq!(end(stream), Ok(graph));
    assert_eq!(edges(graph), [(0, 1), (0, 3), (1, 2), (2, 4), (3, 4)]);
    fails!(ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(stream, input(&made[2]), 1, 0));
    begin(stream);
    assert_ne!(info(stream).1, id, "another capture");
    ok!(cuGraphDestroy(end(stream).unwrap()));
}

#[test]
fn a_capture_goes_into_a_graph_that_there_is() {
    let _context = Ctx::new();
    let (f, stream, word) = (Functions::load(), stream(), words(1));
    let graph = out(|graph| call!(cuGraphCreate(graph, 0))).unwrap();
    let params = Params::of(&[word, 2]);
    let params = kernel_params(f.add, &params);
    let node = out(|node| call!(cuGraphAddKernelNode(node, graph, null(), 0, input(&params)))).unwrap();
    ok!(cuStreamBeginCaptureToGraph(stream, graph, input(&node), null(), 1, LOCAL));
    assert_eq!(launch(f.multiply, stream, &[word, 10]), OK);
    assert_eq!(end(stream), Ok(graph));
    assert_eq!(edges(graph), [(0, 1)]);
    ok!(cuGraphLaunch(ready(graph), stream));
    assert_eq!(read(word, 1), [20]);
}

#[test]
fn a_capture_begins_and_ends_where_it_may() {
    let _context = Ctx::new();
    let (one, other) = (stream(), stream());
    for default in [CUstream::NULL, CUstream::LEGACY] {
        fails!(STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(default, LOCAL));
    }
    fails!(INVALID_VALUE, cuStreamBeginCapture_v2(one, CUstreamCaptureMode(3)));
    fails!(INVALID_HANDLE, cuStreamBeginCapture_v2(CUstream(0x77), LOCAL));
    assert_eq!(end(one), Err(Status::ILLEGAL_STATE));
    begin(one);
    fails!(ILLEGAL_STATE, cuStreamBeginCapture_v2(one, LOCAL));
    assert_eq!(end(other), Err(Status::ILLEGAL_STATE));
    fails!(INVALID_VALUE, cuStreamEndCapture(one, nowhere()));
    // The thread's own stream can be captured; a capture of nothing is a graph of nothing.
    begin(CUstream::PER_THREAD);
    let nothing = end(CUstream::PER_THREAD).unwrap();
    assert_eq!(nodes(nothing), []);
    ok!(cuGraphLaunch(ready(nothing), other));
    end(one).unwrap();
}

#[test]
fn another_thread_ends_a_relaxed_capture_alone() {
    let context = Ctx::new();
    let (word, f) = (words(1), Functions::load());
    for (mode, ended) in
        [(LOCAL, Err(Status::STREAM_CAPTURE_WRONG_THREAD)), (CUstreamCaptureMode::RELAXED, Ok(()))]
    {
        let stream = stream();
        ok!(cuStreamBeginCapture_v2(stream, mode));
        let context = context.0;
        let (add, of_other) = (f.add, move || {
            ok!(cuCtxSetCurrent(context));
            end(stream).map(drop)
        });
        assert_eq!(launch(add, stream, &[word, 1]), OK);
        assert_eq!(std::thread::spawn(of_other).join().unwrap(), ended);
        assert_eq!(end(stream).is_ok(), ended.is_err(), "it goes on");
    }
}

#[test]
fn what_cannot_be_captured_ends_it() {
    let _context = Ctx::new();
    let (f, word) = (Functions::load(), words(1));
    let outside = event();
    ok!(cuEventRecord(outside, stream()));
    let mut buffer = [0u32; 1];
    let at = buffer.as_mut_ptr().cast::<c_void>();
    type Call<'a> = (&'a str, &'a dyn Fn(CUstream) -> Status, Status);
    let calls: [Call<'_>; 8] = [
        ("synchronise", &|stream| call!(cuStreamSynchronize(stream)), Status::STREAM_CAPTURE_UNSUPPORTED),
        ("query", &|stream| call!(cuStreamQuery(stream)), Status::STREAM_CAPTURE_UNSUPPORTED),
        ("wait for the context", &|_| call!(cuCtxSynchronize()), Status::STREAM_CAPTURE_UNSUPPORTED),
        (
            "allocate",
            &|_| out(|p: Out<u64>| call!(cuMemAlloc_v2(p, 4))).err().unwrap_or(OK),
            Status::STREAM_CAPTURE_UNSUPPORTED,
        ),
        ("load", &|_| load(PTX).err().unwrap_or(OK), Status::STREAM_CAPTURE_UNSUPPORTED),
        ("query an event", &|_| call!(cuEventQuery(outside)), Status::STREAM_CAPTURE_UNSUPPORTED),
        (
            "wait for an event",
            &|stream| call!(cuStreamWaitEvent(stream, outside, 0)),
            Status::STREAM_CAPTURE_ISOLATION,
        ),
        (
            "callback",
            &|stream| call!(cuStreamAddCallback(stream, None, std::ptr::null_mut(), 0)),
            Status::INVALID_VALUE,
        ),
    ];
    for (what, illegal, status) in calls {
        let stream = stream();
        begin(stream);
        assert_eq!(launch(f.add, stream, &[word, 1]), OK);
        assert_eq!(illegal(stream), status, "{what}");
        if status == Status::INVALID_VALUE {
            end(stream).unwrap();
            continue;
        }
        assert_eq!(status_of(stream), State::INVALIDATED, "{what}");
        assert_eq!(launch(f.add, stream, &[word, 1]), Status::STREAM_CAPTURE_INVALIDATED, "{what}");
        let mut graph = CUgraph(9);
        fails!(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, output(&mut graph)));
        assert!(graph.is_null());
        // The stream can be used again.
        assert_eq!(status_of(stream), State::NONE);
        assert_eq!(launch(f.add, stream, &[word, 1]), OK);
        ok!(cuStreamSynchronize(stream));
    }
    assert_eq!(read(word, 1), [7], "one for each that was invalid");
    ok!(cuMemcpyDtoH_v2(at, word, 4));
}

#[test]
fn the_default_stream_waits_for_no_capture() {
    let _context = Ctx::new();
    let (f, word) = (Functions::load(), words(1));
    let blocking: CUstream = out(|stream| call!(cuStreamCreate(stream, 0))).unwrap();
    begin(blocking);
    // Asking is harmless.
    let mut status = State::NONE;
    fails!(STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(CUstream::LEGACY, output(&mut status)));
    assert_eq!(status_of(blocking), State::ACTIVE);
    assert_eq!(launch(f.add, CUstream::LEGACY, &[word, 1]), Status::STREAM_CAPTURE_IMPLICIT);
    assert_eq!(status_of(blocking), State::INVALIDATED);
    assert_eq!(end(blocking), Err(Status::STREAM_CAPTURE_INVALIDATED));
    assert_eq!(launch(f.add, CUstream::LEGACY, &[word, 1]), OK);
    // Streams that it does not wait for may capture meanwhile.
    let free = stream();
    begin(free);
    assert_eq!(launch(f.add, CUstream::LEGACY, &[word, 1]), OK);
    end(free).unwrap();
    assert_eq!(read(word, 1), [2]);
}

#[test]
fn what_the_default_stream_refuses_is_never_waited_for() {
    let _context = Ctx::new();
    let event: CUevent = out(|event| call!(cuEventCreate(event, 2))).unwrap();
    let (own, blocking) = (stream(), out(|stream| call!(cuStreamCreate(stream, 0))).unwrap());
    // A graph that records an event, and whose runs wait for each other.
    begin(own);
    ok!(cuLaunchHostFunc(own, Some(count), std::ptr::null_mut()));
    ok!(cuEventRecordWithFlags(event, own, 1));
    let exec = ready(end(own).unwrap());
    begin(blocking);
    fails!(STREAM_CAPTURE_IMPLICIT, cuEventRecord(event, CUstream::LEGACY));
    fails!(STREAM_CAPTURE_IMPLICIT, cuGraphLaunch(exec, CUstream::LEGACY));
    assert_eq!(end(blocking), Err(Status::STREAM_CAPTURE_INVALIDATED));
    // It was recorded nowhere, and the next run is the first one.
    ok!(cuEventSynchronize(event));
    ok!(cuGraphLaunch(exec, own));
    ok!(cuEventSynchronize(event));
    ok!(cuStreamSynchronize(own));
}

#[test]
fn streams_that_go_take_their_captures_along() {
    let _context = Ctx::new();
    let (f, word, one) = (Functions::load(), words(1), stream());
    begin(one);
    assert_eq!(launch(f.add, one, &[word, 1]), OK);
    ok!(cuStreamDestroy_v2(one));
    assert_eq!(end(one), Err(Status::INVALID_HANDLE));
    let two = stream();
    begin(two);
    end(two).unwrap();
    // What was left is no hindrance.
    ok!(cuCtxSynchronize());
    assert_eq!(read(word, 1), [0]);
}

#[test]
fn values_in_memory_are_waited_for_and_written_in_each_run() {
    let _context = Ctx::new();
    let (stream, at) = (stream(), words(4));
    let op = |operation, word: u64, value| CUstreamBatchMemOpParams {
        operation,
        padding: 0,
        address: at + 4 * word,
        value,
        flags: 0,
        padding2: 0,
        alias: 0,
        padding3: 0,
    };
    let ops = [
        op(CUstreamBatchMemOpType::WRITE_VALUE_32, 0, 7),
        op(CUstreamBatchMemOpType::BARRIER, 0, 0),
        op(CUstreamBatchMemOpType::WAIT_VALUE_32, 1, 2),
        op(CUstreamBatchMemOpType::WRITE_VALUE_64, 2, 9 << 32 | 8),
    ];
    begin(stream);
    ok!(cuStreamBatchMemOp_v2(stream, 4, input(ops.as_ptr()), 0));
    ok!(cuStreamWaitValue64_v2(stream, at + 8, 9 << 32 | 8, 1));
    ok!(cuStreamWriteValue32_v2(stream, at + 4, 0, 0));
    let graph = end(stream).unwrap();
    assert_eq!(read(at, 4), [0; 4], "nothing was done");
    let kinds: Vec<_> = nodes(graph).into_iter().map(|node| kind(node).unwrap()).collect();
    assert_eq!(kinds, [CUgraphNodeType::BATCH_MEM_OP; 3]);
    assert_eq!(edges(graph), [(0, 1), (1, 2)]);
    let exec = ready(graph);
    for _ in 0..2 {
        ok!(cuGraphLaunch(exec, stream));
        fails!(NOT_READY, cuStreamQuery(stream));
        write(at + 4, &[2]);
        ok!(cuStreamSynchronize(stream));
        assert_eq!(read(at, 4), [7, 0, 8, 9]);
        write(at, &[0; 4]);
    }
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphExecDestroy(exec));
}
