//! What fails stays failed, and says so; what is beside it goes on.

use crate::order::{call_back, call_host, written};
use crate::*;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

#[test]
fn after_a_trap_nothing_of_the_context_is_done() {
    let context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(4);
    let (one, other, mark, late) = (stream(1), stream(1), event(), event());
    let at = alloc(4);
    ok!(cuMemsetD32_v2(at, 0, 1));
    kernels.store_after(&words[0], address(&words[1..]), 1, one);
    assert_eq!(kernels.launch(c"trap", &[], one), OK);
    ok!(cuEventRecord(mark, one));
    ok!(cuStreamWaitEvent(other, mark, 0));
    kernels.add(address(&words[2..]), 1, one);
    kernels.add(address(&words[2..]), 1, other);
    assert_eq!(call_host(one, 3, 1), OK);
    assert_eq!(call_back(one, 4), OK);
    ok!(cuEventRecord(late, other));
    set(&words[0]);
    let failed = Status::LAUNCH_FAILED;
    assert_eq!(call!(cuStreamSynchronize(other)), failed);
    // It stays: whoever asks for something is told.
    for (what, found) in [
        ("the stream", call!(cuStreamSynchronize(one))),
        ("its query", call!(cuStreamQuery(one))),
        ("the event", call!(cuEventSynchronize(late))),
        ("its query", call!(cuEventQuery(mark))),
        ("the context", call!(cuCtxSynchronize())),
        ("an allocation", call!(cuMemAlloc_v2(output(&mut 0), 4))),
        ("an end of one", call!(cuMemFree_v2(at))),
        ("a copy", call!(cuMemcpyDtoH_v2(pointer_mut(&mut [0u8; 4]), at, 4))),
        ("a fill", call!(cuMemsetD8Async(at, 0, 4, one))),
        ("a launch", kernels.launch(c"trap", &[], other)),
        ("a stream", call!(cuStreamCreate(output(&mut CUstream::default()), 0))),
    ] {
        assert_eq!(found, failed, "{what}");
    }
    assert_eq!((words[1].load(SeqCst), words[2].load(SeqCst)), (1, 0));
    // Functions of the host are not called, but those that are told how it went.
    until("the callback", || !written(4).is_empty());
    assert_eq!((written(3), written(4)), (vec![], vec![failed.0 as u32]));
    // Other contexts go on, and a new one begins.
    let next = Ctx::new(0);
    let kernels = Kernels::load();
    let at = alloc(4);
    ok!(cuMemsetD32_v2(at, 41, 1));
    kernels.add(at, 1, CUstream::NULL);
    assert_eq!(download(at, 4), [42, 0, 0, 0]);
    drop(next);
    drop(context);
}

#[test]
fn memory_that_was_given_back_is_not_reached() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let at = alloc(4);
    free(at);
    kernels.add(at, 1, CUstream::NULL);
    assert_eq!(call!(cuCtxSynchronize()), Status::ILLEGAL_ADDRESS);
}

#[test]
fn nobody_waits_for_a_value_in_a_context_that_has_failed() {
    let _context = Ctx::new(0);
    let (kernels, words) = (Kernels::load(), pinned(1));
    let (held, other) = (stream(0), stream(1));
    ok!(cuStreamWaitValue32_v2(held, address(words), 1, 0));
    let waits = std::thread::spawn(move || call!(cuStreamSynchronize(held)));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(kernels.launch(c"trap", &[], other), OK);
    assert_eq!(waits.join().unwrap(), Status::LAUNCH_FAILED);
    assert_eq!(call!(cuStreamSynchronize(CUstream::LEGACY)), Status::LAUNCH_FAILED);
    assert_eq!(call!(cuCtxSynchronize()), Status::LAUNCH_FAILED);
}

#[test]
fn out_of_memory_harms_nothing() {
    let _context = Ctx::new(1);
    let (mut bytes, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(output(&mut bytes), output(&mut total)));
    // As drivers answer: OptiX wants no free bytes, llama.cpp not all.
    let mut one = 0;
    let nowhere = Out::null();
    ok!(cuMemGetInfo_v2(nowhere, output(&mut one)));
    assert_eq!(one, total);
    ok!(cuMemGetInfo_v2(output(&mut one), nowhere));
    assert_eq!(total, MEMORY);
    assert!(bytes <= total);
    assert_eq!(call!(cuMemAlloc_v2(output(&mut 0), bytes + 1)), Status::OUT_OF_MEMORY);
    let stream = stream(1);
    assert_eq!(call!(cuMemAllocAsync(output(&mut 0), MEMORY + 1, stream)), Status::OUT_OF_MEMORY);
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamDestroy_v2(stream));
    free(alloc(1 << 20));
}

#[test]
fn nobody_waits_for_room_that_will_not_be() {
    let _context = Ctx::new(1);
    let (words, held) = (pinned(1), stream(1));
    ok!(cuStreamWaitValue32_v2(held, address(words), 1, 0));
    // Only who is told of this sets the word.
    assert_eq!(call!(cuMemAlloc_v2(output(&mut 0), 2 * MEMORY)), Status::OUT_OF_MEMORY);
    assert_eq!(call!(cuMemAllocAsync(output(&mut 0), 2 * MEMORY, held)), Status::OUT_OF_MEMORY);
    set(&words[0]);
    ok!(cuStreamSynchronize(held));
    ok!(cuStreamDestroy_v2(held));
    free_pinned(words);
}

#[test]
fn addresses_of_nothing_are_refused() {
    let _context = Ctx::new(0);
    let (at, mut mine) = (alloc(16), [0u8; 16]);
    let own = address(&mine);
    let nowhere = |at: usize| std::ptr::without_provenance_mut::<std::ffi::c_void>(at);
    free(at);
    let kept = alloc(16);
    for (what, found) in [
        ("given back", call!(cuMemcpy(at, own, 16))),
        ("given back, as the source", call!(cuMemcpy(own, at, 16))),
        ("no memory", call!(cuMemcpy(0x1234, own, 16))),
        ("no memory of the host", call!(cuMemcpyHtoD_v2(kept, nowhere(0x1234), 16))),
        ("no memory of the host", call!(cuMemcpyDtoH_v2(nowhere(0x1234), kept, 16))),
        ("the end of all", call!(cuMemcpyDtoH_v2(nowhere(usize::MAX - 8), kept, 16))),
        ("the end of all", call!(cuMemHostRegister_v2(nowhere(usize::MAX - 100), 99, 0))),
        ("more than there can be", call!(cuMemcpyHtoD_v2(kept, pointer_mut(&mut mine), usize::MAX))),
    ] {
        assert_eq!(found, INVALID, "{what}");
    }
    ok!(cuMemcpy(kept, own, 16));
    free(kept);
}

#[test]
fn a_context_waits_for_its_work_when_it_ends() {
    let outer = Ctx::new(0);
    let words = pinned(2);
    let inner = Ctx::new(0);
    let kernels = Kernels::load();
    let stream = stream(1);
    kernels.store_after(&words[0], address(&words[1..]), 5, stream);
    let flag = &words[0];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            set(flag);
        });
        drop(inner);
    });
    assert_eq!(words[1].load(SeqCst), 5);
    // What was in it is gone.
    assert_eq!(call!(cuStreamSynchronize(stream)), Status::INVALID_HANDLE);
    free_pinned(words);
    drop(outer);
}
