//! User objects: what graphs keep for the client, and for how long.

use crate::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

const NO_SYNC: u32 = 1;
const MOVE: u32 = 1;

/// What the destructor of an object writes down: how often it was called, and what the driver said to it then.
#[derive(Default)]
struct Ended {
    times: AtomicU32,
    said: AtomicU32,
}

unsafe extern "C-unwind" fn destroy(argument: *mut c_void) {
    // SAFETY: the tests keep it for ever.
    let ended = unsafe { &*argument.cast::<Ended>() };
    ended.said.store(call!(cuStreamSynchronize(CUstream::LEGACY)).0 as u32, SeqCst);
    ended.times.fetch_add(1, SeqCst);
}

fn object(references: u32) -> (CUuserObject, &'static Ended) {
    let ended: &Ended = Box::leak(Box::default());
    let argument = std::ptr::from_ref(ended).cast_mut().cast::<c_void>();
    let object =
        out(|object| call!(cuUserObjectCreate(object, argument, Some(destroy), references, NO_SYNC)));
    (object.unwrap(), ended)
}

/// It ends now, and once.
fn ends(ended: &Ended) {
    let start = Instant::now();
    while ended.times.load(SeqCst) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the destructor is never called");
        std::thread::yield_now();
    }
    assert_eq!(ended.said.load(SeqCst), Status::NOT_PERMITTED.0 as u32);
    // A second call would come from the same thread, behind that of another object.
    let (object, other) = object(1);
    ok!(cuUserObjectRelease(object, 1));
    while other.times.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(ended.times.load(SeqCst), 1);
}

/// It does not end: an object that ends later has ended.
fn stays(ended: &Ended) {
    let (object, other) = object(1);
    ok!(cuUserObjectRelease(object, 1));
    ends(other);
    assert_eq!(ended.times.load(SeqCst), 0);
}

fn graph() -> CUgraph {
    out(|graph| call!(cuGraphCreate(graph, 0))).unwrap()
}

#[test]
fn references_are_counted() {
    let _context = Ctx::new();
    let (object, ended) = object(2);
    ok!(cuUserObjectRetain(object, 3));
    ok!(cuUserObjectRelease(object, 4));
    fails!(INVALID_VALUE, cuUserObjectRelease(object, 2));
    let graph = graph();
    // New ones, and the last one of the client's.
    ok!(cuGraphRetainUserObject(graph, object, 2, 0));
    ok!(cuGraphRetainUserObject(graph, object, 1, MOVE));
    fails!(INVALID_VALUE, cuGraphRetainUserObject(graph, object, 1, MOVE));
    fails!(INVALID_VALUE, cuUserObjectRelease(object, 1));
    ok!(cuGraphReleaseUserObject(graph, object, 2));
    stays(ended);
    fails!(INVALID_VALUE, cuGraphReleaseUserObject(graph, object, 2));
    ok!(cuGraphReleaseUserObject(graph, object, 1));
    ends(ended);
    fails!(INVALID_VALUE, cuUserObjectRetain(object, 1));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn what_is_wrong_is_refused() {
    let _context = Ctx::new();
    let (object, ended) = object(1);
    let graph = graph();
    let null = std::ptr::null_mut::<c_void>();
    let create = |destructor: CUhostFn, references, flags| {
        out(|object| call!(cuUserObjectCreate(object, null, destructor, references, flags)))
    };
    for (what, found) in [
        ("no destructor", create(None, 1, NO_SYNC)),
        ("no references", create(Some(destroy), 0, NO_SYNC)),
        ("too many references", create(Some(destroy), 1 << 31, NO_SYNC)),
        ("no flag", create(Some(destroy), 1, 0)),
        ("another flag", create(Some(destroy), 1, 2)),
    ] {
        assert_eq!(found, Err(Status::INVALID_VALUE), "{what}");
    }
    fails!(INVALID_VALUE, cuUserObjectCreate(nowhere(), null, Some(destroy), 1, NO_SYNC));
    fails!(INVALID_VALUE, cuUserObjectRetain(object, 0));
    fails!(INVALID_VALUE, cuUserObjectRelease(object, 0));
    fails!(INVALID_VALUE, cuGraphRetainUserObject(graph, object, 0, 0));
    fails!(INVALID_VALUE, cuGraphRetainUserObject(graph, object, 1, 2));
    fails!(INVALID_VALUE, cuGraphReleaseUserObject(graph, object, 1));
    fails!(INVALID_VALUE, cuUserObjectRetain(CUuserObject(graph.0), 1));
    fails!(INVALID_VALUE, cuGraphRetainUserObject(CUgraph(object.0), object, 1, 0));
    stays(ended);
    ok!(cuUserObjectRelease(object, 1));
    ends(ended);
    ok!(cuGraphDestroy(graph));
}

#[test]
fn the_last_graph_that_has_it_is_its_end() {
    let _context = Ctx::new();
    let (object, ended) = object(1);
    let (graph, word) = (graph(), words(1));
    ok!(cuGraphRetainUserObject(graph, object, 1, MOVE));
    // A copy, one inside of another graph, one that is ready to run, and one of a launch that was captured.
    let copy = out(|copy| call!(cuGraphClone(copy, graph))).unwrap();
    ok!(cuGraphDestroy(graph));
    stays(ended);
    let outer = self::graph();
    out(|node| call!(cuGraphAddChildGraphNode(node, outer, null(), 0, copy))).unwrap();
    ok!(cuGraphDestroy(copy));
    stays(ended);
    let exec = ready(outer);
    ok!(cuGraphDestroy(outer));
    stays(ended);
    let stream = stream();
    begin(stream);
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuMemsetD32Async(word, 9, 1, stream));
    let captured = end(stream).unwrap();
    ok!(cuGraphExecDestroy(exec));
    stays(ended);
    let exec = ready(captured);
    ok!(cuGraphDestroy(captured));
    ok!(cuGraphLaunch(exec, stream));
    assert_eq!(read(word, 1), [9]);
    stays(ended);
    ok!(cuGraphExecDestroy(exec));
    ends(ended);
}

#[test]
fn a_run_that_is_not_done_keeps_it() {
    let _context = Ctx::new();
    let (object, ended) = object(1);
    let (stream, word) = (stream(), words(1));
    begin(stream);
    ok!(cuStreamWaitValue32_v2(stream, word, 5, 1));
    let graph = end(stream).unwrap();
    ok!(cuGraphRetainUserObject(graph, object, 1, MOVE));
    let exec = ready(graph);
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuGraphExecDestroy(exec));
    stays(ended);
    write(word, &[5]);
    ok!(cuStreamSynchronize(stream));
    ends(ended);
}

#[test]
fn an_update_brings_its_own() {
    let _context = Ctx::new();
    let (word, all) = (words(1), [(); 4].map(|()| object(1)));
    let with = |(object, _): (CUuserObject, &Ended)| {
        let stream = stream();
        begin(stream);
        ok!(cuMemsetD32Async(word, 1, 1, stream));
        let graph = end(stream).unwrap();
        ok!(cuGraphRetainUserObject(graph, object, 1, MOVE));
        graph
    };
    let graphs = all.map(with);
    let exec = ready(graphs[0]);
    ok!(cuGraphDestroy(graphs[0]));
    let mut told = CUgraphExecUpdateResult::SUCCESS;
    ok!(cuGraphExecUpdate(exec, graphs[1], nowhere(), output(&mut told)));
    ends(all[0].1);
    ok!(cuGraphDestroy(graphs[1]));
    stays(all[1].1);
    ok!(cuGraphExecDestroy(exec));
    ends(all[1].1);
    // The same for a graph that a node is.
    let outer = graph();
    let node = out(|node| call!(cuGraphAddChildGraphNode(node, outer, null(), 0, graphs[2]))).unwrap();
    let exec = ready(outer);
    ok!(cuGraphDestroy(graphs[2]));
    ok!(cuGraphExecChildGraphNodeSetParams(exec, node, graphs[3]));
    ok!(cuGraphDestroy(graphs[3]));
    stays(all[2].1);
    ok!(cuGraphDestroy(outer));
    ends(all[2].1);
    stays(all[3].1);
    ok!(cuGraphExecDestroy(exec));
    ends(all[3].1);
}
