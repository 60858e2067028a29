//! Events: places in the order of streams.

use crate::*;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn what_was_never_recorded_is_over() {
    let _context = Ctx::new(0);
    let (event, stream) = (event(), stream(1));
    ok!(cuEventQuery(event));
    ok!(cuEventSynchronize(event));
    ok!(cuStreamWaitEvent(stream, event, 0));
    ok!(cuStreamQuery(stream));
    assert_eq!(call!(cuEventElapsedTime(output(&mut 0.0), event, event)), Status::INVALID_HANDLE);
    ok!(cuEventDestroy_v2(event));
    for status in [
        call!(cuEventQuery(event)),
        call!(cuEventDestroy_v2(event)),
        call!(cuEventRecord(event, stream)),
        call!(cuStreamWaitEvent(stream, event, 0)),
        call!(cuEventQuery(CUevent(stream.0))),
        call!(cuEventQuery(CUevent::NULL)),
    ] {
        assert_eq!(status, Status::INVALID_HANDLE);
    }
    for flags in [4, 8, 16] {
        assert_eq!(call!(cuEventCreate(output(&mut CUevent::default()), flags)), INVALID, "{flags}");
    }
    ok!(cuStreamDestroy_v2(stream));
}

#[test]
fn a_stream_waits_for_what_was_recorded_when_it_was_asked_to() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(4);
    let (first, second, mark) = (stream(1), stream(1), event());
    kernels.store_after(&words[0], address(&words[1..]), 1, first);
    ok!(cuEventRecord(mark, first));
    ok!(cuStreamWaitEvent(second, mark, 0));
    kernels.add(address(&words[2..]), 1, second);
    // Another record, and the end of the event, change nothing for those who wait.
    ok!(cuEventRecord(mark, CUstream::PER_THREAD));
    ok!(cuEventDestroy_v2(mark));
    assert_eq!(call!(cuStreamQuery(second)), Status::NOT_READY);
    assert_eq!(words[2].load(SeqCst), 0);
    set(&words[0]);
    ok!(cuStreamSynchronize(second));
    assert_eq!((words[1].load(SeqCst), words[2].load(SeqCst)), (1, 1));
    [first, second].into_iter().for_each(|stream| ok!(cuStreamDestroy_v2(stream)));
    free_pinned(words);
}

#[test]
fn time_goes_on_between_events() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(2);
    let (start, end) = (event(), event());
    let untimed = out(|event| call!(cuEventCreate(event, 2))).unwrap();
    ok!(cuEventRecord(start, CUstream::NULL));
    kernels.store_after(&words[0], address(&words[1..]), 1, CUstream::NULL);
    ok!(cuEventRecordWithFlags(end, CUstream::NULL, 0));
    ok!(cuEventRecord(untimed, CUstream::NULL));
    assert_eq!(call!(cuEventElapsedTime(output(&mut 0.0), start, end)), Status::NOT_READY);
    ok!(cuEventSynchronize(start));
    std::thread::sleep(std::time::Duration::from_millis(20));
    set(&words[0]);
    ok!(cuEventSynchronize(end));
    let elapsed = |from, to| out(|time| call!(cuEventElapsedTime(time, from, to)));
    let time = elapsed(start, end).unwrap();
    assert!((20.0..60_000.0).contains(&time), "{time}");
    assert_eq!(elapsed(end, start), Ok(-time));
    ok!(cuEventSynchronize(untimed));
    assert_eq!(elapsed(start, untimed), Err(Status::INVALID_HANDLE));
    assert_eq!(call!(cuEventRecordWithFlags(end, CUstream::NULL, 2)), INVALID);
    [start, end, untimed].into_iter().for_each(|event| ok!(cuEventDestroy_v2(event)));
    free_pinned(words);
}
