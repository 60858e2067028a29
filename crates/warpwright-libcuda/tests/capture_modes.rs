//! Which threads a capture forbids to allocate. One test alone: captures of the global mode bind the whole process.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the functions are C's")]

#[path = "support/mod.rs"]
mod support;

use support::*;
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

type Mode = CUstreamCaptureMode;

fn allocate() -> Status {
    out(|address: Out<CUdeviceptr>| call!(cuMemAlloc_v2(address, 4))).err().unwrap_or(OK)
}

/// Sets the thread's mode; the one before.
fn exchange(mode: Mode) -> Mode {
    let mut mode = mode;
    ok!(cuThreadExchangeStreamCaptureMode(output(&mut mode)));
    mode
}

#[test]
fn modes_bind_threads() {
    let context = Ctx::new();
    let context = context.0;
    let forbidden = Status::STREAM_CAPTURE_UNSUPPORTED;
    // The mode of the capture, that of the thread, whether it is the capture's thread, and what it is told.
    for (capture, thread, own, told) in [
        (Mode::GLOBAL, Mode::GLOBAL, true, forbidden),
        (Mode::GLOBAL, Mode::GLOBAL, false, forbidden),
        (Mode::GLOBAL, Mode::THREAD_LOCAL, true, forbidden),
        (Mode::GLOBAL, Mode::THREAD_LOCAL, false, OK),
        (Mode::GLOBAL, Mode::RELAXED, true, OK),
        (Mode::GLOBAL, Mode::RELAXED, false, OK),
        (Mode::THREAD_LOCAL, Mode::GLOBAL, true, forbidden),
        (Mode::THREAD_LOCAL, Mode::GLOBAL, false, OK),
        (Mode::THREAD_LOCAL, Mode::THREAD_LOCAL, true, forbidden),
        (Mode::THREAD_LOCAL, Mode::RELAXED, true, OK),
        (Mode::RELAXED, Mode::GLOBAL, true, OK),
        (Mode::RELAXED, Mode::GLOBAL, false, OK),
    ] {
        let what = format!("{capture:?} {thread:?} {own}");
        let stream = stream();
        ok!(cuStreamBeginCapture_v2(stream, capture));
        let call = move || {
            ok!(cuCtxSetCurrent(context));
            let before = exchange(thread);
            let status = allocate();
            assert_eq!(exchange(before), thread);
            status
        };
        let status = if own { call() } else { std::thread::spawn(call).join().unwrap() };
        assert_eq!(status, told, "{what}");
        let ended = out(|graph: Out<CUgraph>| call!(cuStreamEndCapture(stream, graph))).map(drop);
        let expected = if told == OK { Ok(()) } else { Err(Status::STREAM_CAPTURE_INVALIDATED) };
        assert_eq!(ended, expected, "{what}");
        assert_eq!(allocate(), OK);
    }
    fails!(INVALID_VALUE, cuThreadExchangeStreamCaptureMode(output(&mut CUstreamCaptureMode(3))));
    assert_eq!(exchange(Mode::GLOBAL), Mode::GLOBAL, "what was no mode has changed nothing");
}
