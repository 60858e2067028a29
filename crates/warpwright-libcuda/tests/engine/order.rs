//! The order of things: what waits for what, and what goes on.

use crate::*;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

#[test]
fn calls_return_while_a_kernel_runs() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(2);
    let (stream, mark) = (stream(0), event());
    kernels.store_after(&words[0], address(&words[1..]), 7, stream);
    ok!(cuEventRecord(mark, stream));
    assert_eq!(call!(cuStreamQuery(stream)), Status::NOT_READY);
    assert_eq!(call!(cuEventQuery(mark)), Status::NOT_READY);
    assert_eq!(words[1].load(SeqCst), 0);
    set(&words[0]);
    ok!(cuEventSynchronize(mark));
    assert_eq!(words[1].load(SeqCst), 7);
    ok!(cuEventQuery(mark));
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamQuery(stream));
    // A stream that is destroyed does what it was asked for, and its handle is gone at once.
    words[0].store(0, SeqCst);
    kernels.store_after(&words[0], address(&words[1..]), 8, stream);
    ok!(cuStreamDestroy_v2(stream));
    assert_eq!(call!(cuStreamSynchronize(stream)), Status::INVALID_HANDLE);
    set(&words[0]);
    ok!(cuCtxSynchronize());
    assert_eq!(words[1].load(SeqCst), 8);
    ok!(cuEventDestroy_v2(mark));
    free_pinned(words);
}

/// What a test's functions of the client's have written down.
static WRITTEN: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

unsafe extern "C-unwind" fn write_down(argument: *mut c_void) {
    WRITTEN.lock().unwrap().push((argument.addr() >> 8, (argument.addr() & 0xff) as u32));
}

unsafe extern "C-unwind" fn write_status(_: CUstream, status: Status, argument: *mut c_void) {
    WRITTEN.lock().unwrap().push((argument.addr(), status.0 as u32));
}

/// What was written down for a key, in order.
pub(crate) fn written(key: usize) -> Vec<u32> {
    WRITTEN.lock().unwrap().iter().filter(|(k, _)| *k == key).map(|(_, value)| *value).collect()
}

pub(crate) fn call_host(stream: CUstream, key: usize, value: usize) -> Status {
    call!(cuLaunchHostFunc(stream, Some(write_down), std::ptr::without_provenance_mut(key << 8 | value)))
}

pub(crate) fn call_back(stream: CUstream, key: usize) -> Status {
    call!(cuStreamAddCallback(stream, Some(write_status), std::ptr::without_provenance_mut(key), 0))
}

#[test]
fn functions_of_the_host_take_their_turn() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let flag = pinned(2);
    let stream = stream(1);
    kernels.store_after(&flag[0], address(&flag[1..]), 1, stream);
    for value in 0..20 {
        assert_eq!(call_host(stream, 1, value), OK);
    }
    assert_eq!(call_back(stream, 1), OK);
    assert!(written(1).is_empty());
    set(&flag[0]);
    ok!(cuStreamSynchronize(stream));
    assert_eq!(written(1), (0..20).chain([0]).collect::<Vec<u32>>());
    assert_eq!(call!(cuLaunchHostFunc(stream, None, std::ptr::null_mut())), INVALID);
    assert_eq!(call!(cuStreamAddCallback(stream, None, std::ptr::null_mut(), 0)), INVALID);
    let flags = call!(cuStreamAddCallback(stream, Some(write_status), std::ptr::null_mut(), 1));
    assert_eq!(flags, INVALID);
    ok!(cuStreamDestroy_v2(stream));
    free_pinned(flag);
}

unsafe extern "C-unwind" fn call_the_driver(argument: *mut c_void) {
    let stream = CUstream(argument.addr());
    let statuses = [
        call!(cuStreamSynchronize(stream)),
        call!(cuCtxSynchronize()),
        call!(cuMemAlloc_v2(output(&mut 0), 4)),
        call!(cuMemcpyHtoD_v2(1 << 40, pointer(&[0]), 4)),
        call!(cuDevicePrimaryCtxRelease_v2(0)),
        call!(cuDevicePrimaryCtxReset_v2(0)),
    ];
    for status in statuses {
        WRITTEN.lock().unwrap().push((2, status.0 as u32));
    }
}

#[test]
fn functions_of_the_host_may_not_call_the_driver() {
    let _context = Ctx::new(0);
    let stream = stream(1);
    let argument = std::ptr::without_provenance_mut(stream.0);
    ok!(cuLaunchHostFunc(stream, Some(call_the_driver), argument));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(written(2), [Status::NOT_PERMITTED.0 as u32; 6]);
    ok!(cuStreamDestroy_v2(stream));
}

static GATES: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

unsafe extern "C-unwind" fn wait_at_a_gate(argument: *mut c_void) {
    until("the gate", || GATES[argument.addr()].load(SeqCst) != 0);
}

/// Nobody waits any more.
pub(crate) fn open_gates() {
    GATES.iter().for_each(|gate| gate.store(1, SeqCst));
}

#[test]
fn the_default_stream_does_not_wait_for_streams_that_do_not_care() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(1);
    let stream = stream(1);
    ok!(cuLaunchHostFunc(stream, Some(wait_at_a_gate), std::ptr::without_provenance_mut(1)));
    kernels.add(address(words), 1, CUstream::NULL);
    ok!(cuStreamSynchronize(CUstream::NULL));
    ok!(cuStreamQuery(CUstream::NULL));
    assert_eq!((words[0].load(SeqCst), call!(cuStreamQuery(stream))), (1, Status::NOT_READY));
    let at = alloc(4);
    upload(at, &[1, 2, 3, 4]);
    assert_eq!(download(at, 4), [1, 2, 3, 4]);
    GATES[1].store(1, SeqCst);
    ok!(cuStreamSynchronize(stream));
    free(at);
    ok!(cuStreamDestroy_v2(stream));
    free_pinned(words);
}

#[test]
fn a_function_that_takes_its_time_holds_up_its_stream_alone() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(3);
    let (held, free_one, blocking) = (stream(0), stream(1), stream(0));
    ok!(cuLaunchHostFunc(held, Some(wait_at_a_gate), std::ptr::null_mut()));
    kernels.add(address(words), 1, held);
    kernels.add(address(&words[1..]), 1, free_one);
    kernels.add(address(&words[2..]), 1, blocking);
    ok!(cuStreamSynchronize(free_one));
    ok!(cuStreamSynchronize(blocking));
    let values = || words.iter().map(|word| word.load(SeqCst)).collect::<Vec<_>>();
    assert_eq!(values(), [0, 1, 1]);
    assert_eq!(call!(cuStreamQuery(held)), Status::NOT_READY);
    // The default stream waits for it, and the other blocking stream for the default stream.
    kernels.add(address(words), 10, CUstream::NULL);
    kernels.add(address(&words[2..]), 10, blocking);
    kernels.add(address(&words[1..]), 10, free_one);
    ok!(cuStreamSynchronize(free_one));
    assert_eq!(values(), [0, 11, 1]);
    for stream in [CUstream::NULL, CUstream::LEGACY, blocking] {
        assert_eq!(call!(cuStreamQuery(stream)), Status::NOT_READY);
    }
    GATES[0].store(1, SeqCst);
    ok!(cuStreamSynchronize(CUstream::LEGACY));
    ok!(cuStreamSynchronize(blocking));
    assert_eq!(values(), [11, 11, 11]);
    for stream in [held, free_one, blocking] {
        ok!(cuStreamDestroy_v2(stream));
    }
    free_pinned(words);
}

#[test]
fn values_in_memory_are_waited_for_and_written() {
    let _context = Ctx::new(0);
    let words = pinned(4);
    let (waits, writes) = (stream(1), stream(1));
    let [a, b, c] = [0, 1, 2].map(|n| address(&words[n..]));
    // In the wrong order: the stream that waits was first.
    ok!(cuStreamWaitValue32_v2(waits, a, 5, 0));
    ok!(cuStreamWriteValue32_v2(waits, b, 1, 0));
    assert_eq!(call!(cuStreamQuery(waits)), Status::NOT_READY);
    ok!(cuStreamWriteValue32_v2(writes, a, 4, 0));
    ok!(cuStreamSynchronize(writes));
    assert_eq!((words[1].load(SeqCst), call!(cuStreamQuery(waits))), (0, Status::NOT_READY));
    ok!(cuStreamWriteValue32_v2(writes, a, 6, 0));
    ok!(cuStreamSynchronize(waits));
    assert_eq!(words[1].load(SeqCst), 1);
    // Comparisons, of which each is made true by the host.
    for (flags, value, wrong, right) in [
        (0, 0x8000_0000u32, 0x7fff_ffff, 0x8000_0001),
        (1, 3, 2, 3),
        (2, 6, 9, 4),
        (3, 0xffff_fff0, 0x0f, 0x0e),
        (1 << 30, 2, 1, 2),
    ] {
        words[0].store(wrong, SeqCst);
        ok!(cuStreamWaitValue32_v2(waits, a, value, flags));
        ok!(cuStreamWriteValue64_v2(waits, c, 0x1_0000_0000 + u64::from(flags), 0));
        std::thread::sleep(std::time::Duration::from_millis(3));
        assert_eq!(call!(cuStreamQuery(waits)), Status::NOT_READY, "{flags}");
        words[0].store(right, SeqCst);
        ok!(cuStreamSynchronize(waits));
        assert_eq!((words[2].load(SeqCst), words[3].load(SeqCst)), (flags, 1));
    }
    ok!(cuStreamWaitValue64_v2(waits, c, 0x1_0000_0000, 2));
    ok!(cuStreamSynchronize(waits));
    let op = |operation, address, value| CUstreamBatchMemOpParams {
        operation,
        padding: 0,
        address,
        value,
        flags: 0,
        padding2: 0,
        alias: 0,
        padding3: 0,
    };
    let ops = [
        op(CUstreamBatchMemOpType::WRITE_VALUE_32, a, 70),
        op(CUstreamBatchMemOpType::WAIT_VALUE_32, a, 70),
        op(CUstreamBatchMemOpType::WRITE_VALUE_32, b, 71),
    ];
    ok!(cuStreamBatchMemOp_v2(waits, 3, input(ops.as_ptr()), 0));
    ok!(cuStreamSynchronize(waits));
    assert_eq!((words[0].load(SeqCst), words[1].load(SeqCst)), (70, 71));
    for (what, found) in [
        ("odd", call!(cuStreamWaitValue32_v2(waits, a + 2, 0, 0))),
        ("nowhere", call!(cuStreamWriteValue32_v2(waits, 64, 0, 0))),
        ("half", call!(cuStreamWriteValue64_v2(waits, address(&words[3..]), 0, 0))),
        ("flags", call!(cuStreamWaitValue32_v2(waits, a, 0, 4))),
        ("flags of a write", call!(cuStreamWriteValue32_v2(waits, a, 0, 2))),
        ("too many", call!(cuStreamBatchMemOp_v2(waits, 256, input(ops.as_ptr()), 0))),
    ] {
        assert_eq!(found, INVALID, "{what}");
    }
    [waits, writes].into_iter().for_each(|stream| ok!(cuStreamDestroy_v2(stream)));
    free_pinned(words);
}

#[test]
fn streams_say_what_they_are() {
    let context = Ctx::new(1);
    let stream = out(|stream| call!(cuStreamCreateWithPriority(stream, 1, -99))).unwrap();
    let other = self::stream(0);
    let priority = |stream| out(|priority| call!(cuStreamGetPriority(stream, priority))).unwrap();
    let flags = |stream| out(|flags| call!(cuStreamGetFlags(stream, flags))).unwrap();
    let id = |stream| out(|id| call!(cuStreamGetId(stream, id))).unwrap();
    assert_eq!((priority(stream), priority(other), priority(CUstream::NULL)), (-5, 0, 0));
    assert_eq!((flags(stream), flags(other), flags(CUstream::LEGACY)), (1, 0, 0));
    assert_eq!(id(CUstream::NULL), id(CUstream::LEGACY));
    let ids = [stream, other, CUstream::NULL, CUstream::PER_THREAD].map(id);
    assert!((0..4).all(|a| (0..a).all(|b| ids[a] != ids[b])), "{ids:?}");
    for stream in [stream, CUstream::NULL, CUstream::PER_THREAD] {
        let of = out(|context| call!(cuStreamGetCtx(stream, context))).unwrap();
        let device = out(|device| call!(cuStreamGetDevice(stream, device))).unwrap();
        assert_eq!((of, device), (context.0, 1));
    }
    // Where null is the thread's own stream.
    assert_eq!(out(|id| call!(cuStreamGetId_ptsz(CUstream::NULL, id))).unwrap(), ids[3]);
    assert_eq!(call!(cuStreamCreate(output(&mut CUstream::default()), 2)), INVALID);
    for null in [CUstream::NULL, CUstream::LEGACY, CUstream::PER_THREAD] {
        assert_eq!(call!(cuStreamDestroy_v2(null)), Status::INVALID_HANDLE);
    }
    [stream, other].into_iter().for_each(|stream| ok!(cuStreamDestroy_v2(stream)));
    assert_eq!(call!(cuStreamDestroy_v2(stream)), Status::INVALID_HANDLE);
    assert_eq!(call!(cuStreamGetId(stream, output(&mut 0))), Status::INVALID_HANDLE);
}
