//! What is wrong with a call, and what the interface says of it.
//!
//! The rules are those of the CUDA driver API's documentation (`cuda.h` of CUDA 12.8) of the functions that the tests
//! name; each row is one sentence of it.

use crate::*;
use std::ffi::c_void;

/// `cuMemAdvise_v2`, `cuMemPrefetchAsync_v2`, `cuStreamAttachMemAsync`, `cuMemAllocManaged`.
#[test]
fn managed_memory_is_somewhere() {
    let _context = Ctx::new(0);
    let managed = out(|at| call!(cuMemAllocManaged(at, 4096, 1))).unwrap();
    let (own, words) = (stream(1), pinned(4));
    let mine = [0u64; 8];
    let mine_at = pointer(&mine).cast_mut();
    ok!(cuMemHostRegister_v2(mine_at, 64, 0));
    let at = |kind, id| CUmemLocation { kind, id };
    use CUmem_advise as What;
    use CUmemLocationType as Kind;
    for (what, kind, id, expected) in [
        (What::SET_READ_MOSTLY, Kind::INVALID, 9, OK),
        (What::UNSET_READ_MOSTLY, Kind::INVALID, 9, OK),
        (What::UNSET_PREFERRED_LOCATION, Kind::INVALID, 9, OK),
        (What::SET_PREFERRED_LOCATION, Kind::DEVICE, 1, OK),
        (What::SET_PREFERRED_LOCATION, Kind::DEVICE, 9, Status::INVALID_DEVICE),
        (What::SET_PREFERRED_LOCATION, Kind::HOST, 9, OK),
        (What::SET_PREFERRED_LOCATION, Kind::HOST_NUMA, 0, OK),
        (What::SET_PREFERRED_LOCATION, Kind::HOST_NUMA_CURRENT, 9, OK),
        (What::SET_PREFERRED_LOCATION, Kind::INVALID, 0, INVALID),
        (What::SET_ACCESSED_BY, Kind::DEVICE, 1, OK),
        (What::SET_ACCESSED_BY, Kind::DEVICE, 9, Status::INVALID_DEVICE),
        (What::SET_ACCESSED_BY, Kind::HOST, 9, OK),
        (What::SET_ACCESSED_BY, Kind::HOST_NUMA, 0, INVALID),
        (What::SET_ACCESSED_BY, Kind::HOST_NUMA_CURRENT, 0, INVALID),
        (What::UNSET_ACCESSED_BY, Kind::HOST_NUMA, 0, INVALID),
        (CUmem_advise(99), Kind::DEVICE, 0, INVALID),
    ] {
        assert_eq!(
            call!(cuMemAdvise_v2(managed, 4096, what, at(kind, id))),
            expected,
            "{what:?} {kind:?} {id}"
        );
    }
    let legacy = CUstream::NULL;
    for (what, found, expected) in [
        (
            "advice about other memory",
            call!(cuMemAdvise(address(words), 4, What::SET_READ_MOSTLY, 0)),
            INVALID,
        ),
        ("fetched", call!(cuMemPrefetchAsync_v2(managed, 64, at(Kind::DEVICE, 1), 0, own)), OK),
        (
            "fetched with flags",
            call!(cuMemPrefetchAsync_v2(managed, 64, at(Kind::DEVICE, 1), 1, own)),
            INVALID,
        ),
        ("attached to all", call!(cuStreamAttachMemAsync(legacy, managed, 0, 1)), OK),
        ("attached to the host", call!(cuStreamAttachMemAsync(own, managed, 4096, 2)), OK),
        ("attached to one stream", call!(cuStreamAttachMemAsync(own, managed, 0, 4)), OK),
        ("attached to the thread's", call!(cuStreamAttachMemAsync(CUstream::PER_THREAD, managed, 0, 4)), OK),
        ("attached to the default stream", call!(cuStreamAttachMemAsync(legacy, managed, 0, 4)), INVALID),
        ("a part of it", call!(cuStreamAttachMemAsync(own, managed, 64, 1)), INVALID),
        ("two ways", call!(cuStreamAttachMemAsync(own, managed, 0, 3)), INVALID),
        ("memory that is registered", call!(cuStreamAttachMemAsync(own, address(&mine), 64, 1)), INVALID),
        ("no bytes", call!(cuMemAllocManaged(output(&mut 0), 0, 1)), INVALID),
        ("attached to one when made", call!(cuMemAllocManaged(output(&mut 0), 8, 4)), INVALID),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    ok!(cuMemHostUnregister(mine_at));
    ok!(cuStreamDestroy_v2(own));
    free(managed);
    free_pinned(words);
}

/// `cuMemAlloc`, `cuMemAllocPitch`, `cuMemsetD2D8` and its kind, `cuMemHostGetFlags`, `cuMemGetAddressRange`.
#[test]
fn memory_that_is_no_memory() {
    let _context = Ctx::new(0);
    let at = alloc(1024);
    let (mut address, mut pitch, mut flags) = (0, 0, 7);
    let (address, pitch) = (output(&mut address), output(&mut pitch));
    let words = pinned(4);
    let mine = [0u64; 8];
    let mine_at = pointer(&mine).cast_mut();
    ok!(cuMemHostRegister_v2(mine_at, 64, 0));
    let mut combined: *mut c_void = std::ptr::null_mut();
    ok!(cuMemHostAlloc(output(&mut combined), 64, 5));
    let nowhere = Out::null();
    for (what, found, expected) in [
        ("no bytes", call!(cuMemAlloc_v2(address, 0)), INVALID),
        ("nowhere", call!(cuMemAlloc_v2(nowhere, 8)), INVALID),
        ("elements of a byte", call!(cuMemAllocPitch_v2(address, pitch, 8, 8, 1)), INVALID),
        ("elements of 32 bytes", call!(cuMemAllocPitch_v2(address, pitch, 8, 8, 32)), INVALID),
        ("rows that begin within a word", call!(cuMemsetD2D32_v2(at, 6, 1, 1, 2)), INVALID),
        ("words within a word", call!(cuMemsetD32_v2(at + 2, 1, 1)), INVALID),
        ("halves within a half", call!(cuMemsetD16_v2(at + 1, 1, 1)), INVALID),
        ("rows that overlap", call!(cuMemsetD2D8_v2(at, 7, 1, 8, 2)), INVALID),
        ("one row, whatever the pitch", call!(cuMemsetD2D32_v2(at, 6, 1, 4, 1)), OK),
        ("flags", call!(cuMemHostGetFlags(output(&mut flags), combined)), OK),
        ("flags of registered memory", call!(cuMemHostGetFlags(output(&mut 0), mine_at)), INVALID),
        ("neither base nor size", call!(cuMemGetAddressRange_v2(nowhere, Out::null(), at)), OK),
        ("where nothing is", call!(cuMemGetAddressRange_v2(nowhere, Out::null(), 12345)), Status::NOT_FOUND),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(flags, 7, "portable, write-combined, and mapped, as all of it is");
    ok!(cuMemFreeHost(combined));
    ok!(cuMemHostUnregister(mine_at));
    free(at);
    free_pinned(words);
}

/// `cuStreamWaitEvent`, `cuEventRecordWithFlags`, `cuEventCreate`, `cuEventElapsedTime`, `cuEventQuery`,
/// `cuStreamCreateWithPriority`, `cuStreamGetCaptureInfo_v3`.
#[test]
fn streams_and_events_that_do_not_fit() {
    let _context = Ctx::new(0);
    let (own, timed, never) = (stream(1), event(), event());
    let untimed = out(|event| call!(cuEventCreate(event, 2))).unwrap();
    ok!(cuEventRecord(timed, own));
    ok!(cuEventRecord(untimed, own));
    ok!(cuStreamSynchronize(own));
    let handle = Status::INVALID_HANDLE;
    let (mut a_stream, mut an_event) = (CUstream::NULL, CUevent::NULL);
    let (a_stream, an_event) = (output(&mut a_stream), output(&mut an_event));
    let elapsed = |start, end| call!(cuEventElapsedTime(output(&mut 0.0), start, end));
    let stranger = {
        let _other = Ctx::new(1);
        event()
    };
    for (what, found, expected) in [
        ("waited for as one outside", call!(cuStreamWaitEvent(own, timed, 1)), INVALID),
        ("waited for with other flags", call!(cuStreamWaitEvent(own, timed, 2)), INVALID),
        ("waited for before it was recorded", call!(cuStreamWaitEvent(own, never, 0)), OK),
        ("none waited for", call!(cuStreamWaitEvent(own, CUevent::NULL, 0)), handle),
        ("recorded as one outside", call!(cuEventRecordWithFlags(timed, own, 1)), INVALID),
        ("recorded with other flags", call!(cuEventRecordWithFlags(timed, own, 2)), INVALID),
        ("of other processes, with times", call!(cuEventCreate(an_event, 4)), INVALID),
        ("with other flags", call!(cuEventCreate(an_event, 8)), INVALID),
        ("of a context that is gone", call!(cuEventQuery(stranger)), handle),
        ("asked before it was recorded", call!(cuEventQuery(never)), OK),
        ("without times", elapsed(timed, untimed), handle),
        ("never recorded", elapsed(never, timed), handle),
        ("both", elapsed(timed, timed), OK),
        ("a stream with other flags", call!(cuStreamCreate(a_stream, 2)), INVALID),
        ("a function with flags", call!(cuStreamAddCallback(own, None, std::ptr::null_mut(), 0)), INVALID),
        ("the default stream destroyed", call!(cuStreamDestroy_v2(CUstream::NULL)), handle),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    for (asked, kept) in [(0, 0), (-3, -3), (-5, -5), (-6, -5), (1, 0), (i32::MIN, -5)] {
        let stream = out(|stream| call!(cuStreamCreateWithPriority(stream, 1, asked))).unwrap();
        assert_eq!(out(|priority| call!(cuStreamGetPriority(stream, priority))), Ok(kept), "{asked}");
        ok!(cuStreamDestroy_v2(stream));
    }
    let mut status = CUstreamCaptureStatus::ACTIVE;
    let mut edges: *const CUgraphEdgeData = std::ptr::null();
    let (status, edges) = (output(&mut status), output(&mut edges));
    let mut id = 0u64;
    let id = output(&mut id);
    let (graph, behind) = (Out::null(), Out::null());
    let count = Out::null();
    let info = call!(cuStreamGetCaptureInfo_v3(own, status, id, graph, behind, edges, count));
    assert_eq!(info, INVALID, "edges of nodes that are not asked for");
    ok!(cuStreamDestroy_v2(own));
}
