//! Memory in the order of streams.

use crate::*;
use std::ffi::c_void;

fn properties(device: i32, max: usize) -> CUmemPoolProps {
    CUmemPoolProps {
        allocation_type: 1,
        handle_types: 0,
        location: CUmemLocation { kind: CUmemLocationType::DEVICE, id: device },
        security_attributes: std::ptr::null_mut(),
        max_size: max,
        usage: 0,
        reserved: [0; 54],
    }
}

fn get(pool: CUmemoryPool, what: CUmemPool_attribute) -> u64 {
    let mut value = 0u64;
    ok!(cuMemPoolGetAttribute(pool, what, output(std::ptr::from_mut(&mut value).cast::<c_void>())));
    value
}

fn set_value(pool: CUmemoryPool, what: CUmemPool_attribute, value: u64) -> Status {
    call!(cuMemPoolSetAttribute(pool, what, input(std::ptr::from_ref(&value).cast::<c_void>())))
}

use CUmemPool_attribute as A;

#[test]
fn memory_comes_and_goes_in_the_order_of_streams() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(2);
    let pool = out(|pool| call!(cuMemPoolCreate(pool, input(&properties(0, 0))))).unwrap();
    let stream = stream(1);
    let alloc = |bytes| out(|at| call!(cuMemAllocFromPoolAsync(at, bytes, pool, stream))).unwrap();
    let (a, b) = (alloc(1000), alloc(24));
    assert_ne!(a, b);
    assert_eq!((get(pool, A::USED_MEM_CURRENT), get(pool, A::USED_MEM_HIGH)), (1024, 1024));
    // Work before the end uses it, although it was given back when the work was asked for.
    kernels.store_after(&words[0], a, 7, stream);
    ok!(cuMemcpyDtoDAsync_v2(b, a, 4, stream));
    ok!(cuMemFreeAsync(a, stream));
    assert_eq!(call!(cuMemFreeAsync(a, stream)), INVALID, "twice");
    assert_eq!(call!(cuMemFree_v2(a)), INVALID, "once more");
    assert_eq!(call!(cuMemsetD8Async(a, 0, 1, stream)), INVALID, "used afterwards");
    assert_eq!(get(pool, A::USED_MEM_CURRENT), 1024);
    set(&words[0]);
    ok!(cuStreamSynchronize(stream));
    assert_eq!((get(pool, A::USED_MEM_CURRENT), get(pool, A::USED_MEM_HIGH)), (24, 1024));
    assert_eq!(download(b, 4), [7, 0, 0, 0]);
    assert_eq!(set_value(pool, A::USED_MEM_HIGH, 5), INVALID);
    assert_eq!(set_value(pool, A::USED_MEM_HIGH, 0), OK);
    assert_eq!(get(pool, A::USED_MEM_HIGH), 24);
    ok!(cuMemPoolTrimTo(pool, 0));
    // What was allocated outlives the pool.
    ok!(cuMemPoolDestroy(pool));
    assert_eq!(call!(cuMemPoolTrimTo(pool, 0)), INVALID);
    assert_eq!(download(b, 4), [7, 0, 0, 0]);
    free(b);
    ok!(cuStreamDestroy_v2(stream));
    free_pinned(words);
}

#[test]
fn what_is_about_to_be_given_back_is_waited_for() {
    // Most of a pool is held by work that a kernel holds up; whoever needs it waits.
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(2);
    let pool = out(|pool| call!(cuMemPoolCreate(pool, input(&properties(0, 1000))))).unwrap();
    let stream = stream(1);
    let first = out(|at| call!(cuMemAllocFromPoolAsync(at, 900, pool, stream))).unwrap();
    let refused = call!(cuMemAllocFromPoolAsync(output(&mut 0), 200, pool, stream));
    assert_eq!(refused, Status::OUT_OF_MEMORY);
    kernels.store_after(&words[0], first, 1, stream);
    ok!(cuMemFreeAsync(first, stream));
    let flag = &words[0];
    let second = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            set(flag);
        });
        out(|at| call!(cuMemAllocFromPoolAsync(at, 200, pool, stream))).unwrap()
    });
    assert_ne!(first, second, "addresses do not come back");
    ok!(cuMemFreeAsync(second, stream));
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamDestroy_v2(stream));
    ok!(cuMemPoolDestroy(pool));
    free_pinned(words);
}

#[test]
fn a_device_has_a_pool_and_may_have_another() {
    let _context = Ctx::new(1);
    let default = out(|pool| call!(cuDeviceGetDefaultMemPool(pool, 1))).unwrap();
    let current = || out(|pool| call!(cuDeviceGetMemPool(pool, 1))).unwrap();
    assert_eq!(current(), default);
    let other = out(|pool| call!(cuMemPoolCreate(pool, input(&properties(1, 0))))).unwrap();
    ok!(cuDeviceSetMemPool(1, other));
    assert_eq!(current(), other);
    let at = out(|at| call!(cuMemAllocAsync(at, 64, CUstream::NULL))).unwrap();
    assert_eq!(get(other, A::USED_MEM_CURRENT), 64);
    ok!(cuMemFreeAsync(at, CUstream::NULL));
    let location = CUmemLocation { kind: CUmemLocationType::DEVICE, id: 0 };
    let access = |id, flags| CUmemAccessDesc { location: CUmemLocation { id, ..location }, flags };
    let mut flags = CUmemAccess_flags::READ;
    ok!(cuMemPoolGetAccess(output(&mut flags), other, input(&location)));
    assert_eq!(flags, CUmemAccess_flags::NONE);
    let own = access(1, CUmemAccess_flags::READWRITE);
    let foreign = access(0, CUmemAccess_flags::READWRITE);
    let mut export = properties(1, 0);
    export.handle_types = 1;
    let mut host = properties(1, 0);
    host.location.kind = CUmemLocationType::HOST;
    let mut part = properties(1, 0);
    part.location.kind = CUmemLocationType::HOST_NUMA;
    let null = || output(&mut CUmemoryPool::default());
    for (what, found, expected) in [
        ("the pool of another device", call!(cuDeviceSetMemPool(0, other)), INVALID),
        (
            "no pool",
            call!(cuMemAllocFromPoolAsync(output(&mut 0), 4, CUmemoryPool(9), CUstream::NULL)),
            INVALID,
        ),
        ("nothing", call!(cuMemAllocAsync(output(&mut 0), 0, CUstream::NULL)), INVALID),
        ("access of its own", call!(cuMemPoolSetAccess(other, input(&own), 1)), OK),
        ("access of another", call!(cuMemPoolSetAccess(other, input(&foreign), 1)), Status::INVALID_DEVICE),
        ("an attribute", set_value(other, A::RELEASE_THRESHOLD, 1 << 20), OK),
        ("a wish", set_value(other, A::REUSE_ALLOW_OPPORTUNISTIC, 0), OK),
        ("what cannot be set", set_value(other, A::USED_MEM_CURRENT, 0), INVALID),
        ("no attribute", set_value(other, A(40), 0), INVALID),
        ("shared", call!(cuMemPoolCreate(null(), input(&export))), Status::NOT_SUPPORTED),
        ("of the host", call!(cuMemPoolCreate(null(), input(&host))), INVALID),
        ("of a part of the host", call!(cuMemPoolCreate(null(), input(&part))), Status::NOT_SUPPORTED),
        ("of no device", call!(cuMemPoolCreate(null(), input(&properties(7, 0)))), Status::INVALID_DEVICE),
        ("the device's own", call!(cuMemPoolDestroy(default)), INVALID),
        ("the current one", call!(cuMemPoolDestroy(other)), OK),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(current(), default);
}

/// By the documentation of `cuMemAllocFromPoolAsync`: the pool may be of another device than the stream; and of
/// `cuCtxDestroy`: what comes from pools is in no context.
#[test]
fn a_stream_allocates_from_the_pool_of_another_device() {
    let _there = Ctx::new(0);
    let pool = out(|pool| call!(cuMemPoolCreate(pool, input(&properties(0, 0))))).unwrap();
    let at = {
        let _here = Ctx::new(1);
        let at = out(|at| call!(cuMemAllocFromPoolAsync(at, 64, pool, CUstream::NULL))).unwrap();
        let gone = out(|at| call!(cuMemAllocFromPoolAsync(at, 64, pool, CUstream::NULL))).unwrap();
        assert_eq!(get(pool, A::USED_MEM_CURRENT), 128);
        ok!(cuMemFreeAsync(gone, CUstream::NULL));
        ok!(cuCtxSynchronize());
        assert_eq!(get(pool, A::USED_MEM_CURRENT), 64, "it was given back where it was");
        at
    };
    upload(at, &[5; 64]);
    assert_eq!(download(at, 64), [5; 64], "it outlives the context");
    ok!(cuMemFreeAsync(at, CUstream::NULL));
    ok!(cuCtxSynchronize());
    assert_eq!(get(pool, A::USED_MEM_CURRENT), 0);
    ok!(cuMemPoolDestroy(pool));
}
