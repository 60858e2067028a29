//! Captures of several streams: they part and meet by events.

use crate::*;

#[test]
fn streams_part_and_meet() {
    let _context = Ctx::new();
    let (f, word) = (Functions::load(), words(3));
    let (main, left, right) = (stream(), stream(), stream());
    let (parted, of_left, of_right) = (event(), event(), event());
    begin(main);
    assert_eq!(launch(f.add, main, &[word, 2]), OK);
    ok!(cuEventRecord(parted, main));
    for (side, done, place) in [(left, of_left, 1), (right, of_right, 2)] {
        ok!(cuStreamWaitEvent(side, parted, 0));
        assert_eq!(status_of(side), CUstreamCaptureStatus::ACTIVE);
        assert_eq!(launch(f.add, side, &[word + 4 * place, 10 * place]), OK);
        ok!(cuEventRecord(done, side));
    }
    assert_eq!(launch(f.multiply, main, &[word, 5]), OK);
    ok!(cuStreamWaitEvent(main, of_left, 0));
    ok!(cuStreamWaitEvent(main, of_right, 0));
    assert_eq!(launch(f.multiply, main, &[word, 7]), OK);
    assert_eq!(end(left), Err(Status::STREAM_CAPTURE_UNMATCHED));
    let graph = end(main).unwrap();
    assert_eq!(edges(graph), [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]);
    for side in [left, right] {
        assert_eq!(status_of(side), CUstreamCaptureStatus::NONE);
    }
    ok!(cuGraphLaunch(ready(graph), left));
    assert_eq!(read(word, 3), [70, 10, 20]);
    // An event of a capture is none that could be waited for.
    fails!(CAPTURED_EVENT, cuEventQuery(parted));
    fails!(CAPTURED_EVENT, cuEventSynchronize(parted));
    fails!(CAPTURED_EVENT, cuStreamWaitEvent(left, parted, 0));
    ok!(cuEventRecord(parted, left));
    ok!(cuEventSynchronize(parted));
}

#[test]
fn work_that_was_not_waited_for_is_no_graph() {
    let _context = Ctx::new();
    let (f, word, main, side, mark) = (Functions::load(), words(1), stream(), stream(), event());
    begin(main);
    assert_eq!(launch(f.add, main, &[word, 1]), OK);
    ok!(cuEventRecord(mark, main));
    ok!(cuStreamWaitEvent(side, mark, 0));
    assert_eq!(launch(f.add, side, &[word, 1]), OK);
    assert_eq!(end(main), Err(Status::STREAM_CAPTURE_UNJOINED));
    assert_eq!(status_of(side), CUstreamCaptureStatus::NONE);
    // A stream that took part and was asked for nothing has nothing to wait for.
    begin(main);
    assert_eq!(launch(f.add, main, &[word, 1]), OK);
    ok!(cuEventRecord(mark, main));
    ok!(cuStreamWaitEvent(side, mark, 0));
    let graph = end(main).unwrap();
    assert_eq!(nodes(graph).len(), 1);
    assert_eq!(launch(f.add, side, &[word, 1]), OK);
    assert_eq!(read(word, 1), [1]);
}

#[test]
fn captures_do_not_merge() {
    let _context = Ctx::new();
    let (one, other, mark) = (stream(), stream(), event());
    begin(one);
    begin(other);
    ok!(cuEventRecord(mark, one));
    fails!(STREAM_CAPTURE_MERGE, cuStreamWaitEvent(other, mark, 0));
    assert_eq!(end(one), Err(Status::STREAM_CAPTURE_INVALIDATED));
    assert_eq!(end(other), Err(Status::STREAM_CAPTURE_INVALIDATED));
    // The default stream takes part in none.
    begin(one);
    ok!(cuEventRecord(mark, one));
    fails!(STREAM_CAPTURE_IMPLICIT, cuStreamWaitEvent(CUstream::LEGACY, mark, 0));
    assert_eq!(end(one), Err(Status::STREAM_CAPTURE_INVALIDATED));
}

#[test]
fn events_from_and_for_outside_are_nodes() {
    let _context = Ctx::new();
    let (f, word, main, side) = (Functions::load(), words(1), stream(), stream());
    let (before, after) = (event(), event());
    begin(main);
    ok!(cuStreamWaitEvent(main, before, 1));
    assert_eq!(launch(f.multiply, main, &[word, 2]), OK);
    ok!(cuEventRecordWithFlags(after, main, 1));
    let graph = end(main).unwrap();
    let all = nodes(graph);
    assert_eq!(kind(all[0]), Ok(CUgraphNodeType::WAIT_EVENT));
    assert_eq!(kind(all[2]), Ok(CUgraphNodeType::EVENT_RECORD));
    let exec = ready(graph);
    for (value, expected) in [(3, 6), (4, 20)] {
        assert_eq!(launch(f.add, side, &[word, value]), OK);
        ok!(cuEventRecord(before, side));
        ok!(cuGraphLaunch(exec, main));
        ok!(cuEventSynchronize(after));
        let mut now = [0u32];
        ok!(cuMemcpyDtoH_v2(now.as_mut_ptr().cast::<std::ffi::c_void>(), word, 4));
        assert_eq!(now, [expected]);
    }
}

#[test]
fn threads_capture_and_run_at_once() {
    std::thread::scope(|scope| {
        for thread in 1..=6u64 {
            scope.spawn(move || {
                let _context = Ctx::new();
                let (f, word, stream) = (Functions::load(), words(1), stream());
                for round in 1..=10u64 {
                    write(word, &[0]);
                    begin(stream);
                    for _ in 0..round {
                        assert_eq!(launch(f.add, stream, &[word, thread]), OK);
                    }
                    let graph = end(stream).unwrap();
                    let exec = ready(graph);
                    ok!(cuGraphLaunch(exec, stream));
                    ok!(cuGraphLaunch(exec, stream));
                    assert_eq!(read(word, 1), [(2 * round * thread) as u32]);
                    ok!(cuGraphExecDestroy(exec));
                    ok!(cuGraphDestroy(graph));
                }
            });
        }
    });
}
