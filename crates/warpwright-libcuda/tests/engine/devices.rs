//! Several devices.

use crate::*;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn addresses_are_of_one_device() {
    let (first, second) = (Ctx::new(0), Ctx::new(1));
    ok!(cuCtxSetCurrent(first.0));
    let a = alloc(1000);
    ok!(cuCtxSetCurrent(second.0));
    let b = alloc(1000);
    assert_ne!(a, b);
    let data: Vec<u8> = (0..1000).map(|n| (n % 256) as u8).collect();
    upload(b, &data);
    // Between devices, in every way.
    ok!(cuMemcpyPeer(a, first.0, b, second.0, 500));
    ok!(cuMemcpyPeerAsync(a + 500, first.0, b + 500, second.0, 250, CUstream::NULL));
    ok!(cuMemcpyDtoDAsync_v2(a + 750, b + 750, 250, CUstream::NULL));
    ok!(cuCtxSynchronize());
    ok!(cuCtxSetCurrent(first.0));
    assert_eq!(download(a, 1000), data);
    assert_eq!(call!(cuMemcpyPeer(a, CUcontext(5), b, second.0, 1)), Status::INVALID_CONTEXT);
    // A kernel reaches its own device alone.
    let kernels = Kernels::load();
    kernels.add(b, 1, CUstream::NULL);
    assert_eq!(call!(cuCtxSynchronize()), Status::ILLEGAL_ADDRESS);
    ok!(cuCtxSetCurrent(second.0));
    assert_eq!(download(b, 1000), data);
    free(b);
    ok!(cuCtxSetCurrent(first.0));
    drop(first);
    drop(second);
}

/// By the documentation of `cuMemcpyPeer`, whatever streams the work of the two contexts is on.
#[test]
fn a_copy_between_contexts_comes_behind_all_work_of_both() {
    let (first, second) = (Ctx::new(0), Ctx::new(1));
    let (words, kernels, stream, b) = (pinned(1), Kernels::load(), stream(1), alloc(4));
    kernels.store_after(&words[0], b, 40, stream);
    ok!(cuCtxSetCurrent(first.0));
    let a = alloc(4);
    let gate = std::thread::spawn(|| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        set(&words[0]);
    });
    ok!(cuMemcpyPeer(a, first.0, b, second.0, 4));
    assert_eq!(download(a, 4), [40, 0, 0, 0]);
    gate.join().unwrap();
    free(a);
    ok!(cuCtxSetCurrent(second.0));
    free(b);
    free_pinned(words);
    ok!(cuStreamDestroy_v2(stream));
}

#[test]
fn devices_wait_for_each_other_by_events_and_share_pinned_memory() {
    let (first, second) = (Ctx::new(0), Ctx::new(1));
    let words = pinned(3);
    let other_kernels = Kernels::load();
    let other_stream = stream(1);
    ok!(cuCtxSetCurrent(first.0));
    let kernels = Kernels::load();
    let (mark, stream) = (event(), stream(1));
    kernels.store_after(&words[0], address(&words[1..]), 40, stream);
    ok!(cuEventRecord(mark, stream));
    // A stream of the one records only events of its own, and waits for any.
    assert_eq!(call!(cuEventRecord(mark, other_stream)), Status::INVALID_HANDLE);
    ok!(cuStreamWaitEvent(other_stream, mark, 0));
    ok!(cuCtxSetCurrent(second.0));
    other_kernels.add(address(&words[1..]), 2, other_stream);
    assert_eq!(call!(cuStreamQuery(other_stream)), Status::NOT_READY);
    // Others on the second device go on.
    other_kernels.add(address(&words[2..]), 1, CUstream::PER_THREAD);
    ok!(cuStreamSynchronize(CUstream::PER_THREAD));
    assert_eq!(words[2].load(SeqCst), 1);
    set(&words[0]);
    ok!(cuStreamSynchronize(other_stream));
    assert_eq!(words[1].load(SeqCst), 42);
    free_pinned(words);
    drop(second);
    ok!(cuCtxSetCurrent(first.0));
    drop(first);
}

#[test]
fn an_error_is_of_one_context() {
    let (first, second) = (Ctx::new(0), Ctx::new(1));
    ok!(cuCtxSetCurrent(first.0));
    let kernels = Kernels::load();
    let words = pinned(2);
    let mark = event();
    kernels.store_after(&words[0], address(&words[1..]), 1, CUstream::NULL);
    assert_eq!(kernels.launch(c"trap", &[], CUstream::NULL), OK);
    ok!(cuEventRecord(mark, CUstream::NULL));
    set(&words[0]);
    ok!(cuCtxSetCurrent(second.0));
    // Whoever waits for the failed one is not held up for ever.
    let stream = stream(1);
    ok!(cuStreamWaitEvent(stream, mark, 0));
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamDestroy_v2(stream));
    ok!(cuCtxSetCurrent(first.0));
    assert_eq!(call!(cuCtxSynchronize()), Status::LAUNCH_FAILED);
    drop(first);
    ok!(cuCtxSetCurrent(second.0));
    free(alloc(4));
    drop(second);
}
