//! Contexts: stacks of threads, primary ones, what is in them, and what becomes of those who use them afterwards.
#![cfg(target_os = "linux")]

mod common;

use common::{context, get, input, ok, output};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

/// A device without a part of the cache for what is to stay.
const OLD: CUdevice = 5;

/// Devices, since primary contexts are of the whole process: one for each test that has one.
const PLAIN: CUdevice = 0;
const RETAINED: CUdevice = 1;
const RESET: CUdevice = 2;
const MEMORY: CUdevice = 3;
const SHARED: CUdevice = 4;

fn begin() {
    common::begin(&[
        ("WARPWRIGHT_DEVICES", "90,80,80,90,80,75"),
        ("WARPWRIGHT_MEMORY", "1G"),
        ("WARPWRIGHT_WORKERS", "1"),
        ("WARPWRIGHT_LOG", "off"),
    ]);
}

fn current() -> CUcontext {
    // SAFETY: a place for a handle.
    get(|context| unsafe { cuCtxGetCurrent(context) }).unwrap()
}

fn device() -> Result<CUdevice> {
    // SAFETY: a place for a number.
    get(|device| unsafe { cuCtxGetDevice(device) })
}

fn synchronize() -> Status {
    // SAFETY: it takes no pointers.
    unsafe { cuCtxSynchronize() }
}

fn pop() -> Result<CUcontext> {
    // SAFETY: a place for a handle.
    get(|context| unsafe { cuCtxPopCurrent_v2(context) })
}

fn destroy(context: CUcontext) -> Status {
    // SAFETY: any value may be given.
    unsafe { cuCtxDestroy_v2(context) }
}

#[test]
fn a_thread_works_in_the_top_of_its_stack() {
    begin();
    assert_eq!(current(), CUcontext::NULL);
    assert_eq!((device(), synchronize()), (Err(Status::INVALID_CONTEXT), Status::INVALID_CONTEXT));
    assert_eq!(pop(), Err(Status::INVALID_CONTEXT));

    let (first, second) = (context(PLAIN), context(MEMORY));
    assert_eq!((current(), device(), synchronize()), (second, Ok(MEMORY), Status::SUCCESS));
    // SAFETY: handles are any values.
    unsafe {
        ok(cuCtxPushCurrent_v2(first));
        assert_eq!((current(), device()), (first, Ok(PLAIN)));
        assert_eq!(pop(), Ok(first));
        assert_eq!(pop(), Ok(second));
        assert_eq!(current(), first);
        ok(cuCtxSetCurrent(second));
        assert_eq!(current(), second, "in place of the first");
        ok(cuCtxSetCurrent(CUcontext::NULL));
        assert_eq!(current(), CUcontext::NULL);
        // Another thread has a stack of its own.
        std::thread::spawn(|| assert_eq!(current(), CUcontext::NULL)).join().unwrap();
    }
    ok(destroy(first));
    ok(destroy(second));
}

#[test]
fn whoever_uses_a_context_afterwards_is_told() {
    begin();
    let made = context(PLAIN);
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        // SAFETY: handles are any values.
        ok(unsafe { cuCtxSetCurrent(made) });
        ready.send(()).unwrap();
        told.recv().unwrap();
        assert_eq!(current(), made, "it stays on the stack");
        assert_eq!(synchronize(), Status::CONTEXT_IS_DESTROYED);
        assert_eq!(device(), Err(Status::CONTEXT_IS_DESTROYED));
        // SAFETY: a place for a number.
        let allocated = get(|address: Out<CUdeviceptr>| unsafe { cuMemAlloc_v2(address, 16) });
        assert_eq!(allocated, Err(Status::CONTEXT_IS_DESTROYED));
        assert_eq!(pop(), Ok(made));
        assert_eq!(synchronize(), Status::INVALID_CONTEXT);
    });
    is_ready.recv().unwrap();
    ok(destroy(made));
    assert_eq!(current(), CUcontext::NULL, "it was popped here");
    tell.send(()).unwrap();
    other.join().unwrap();

    // SAFETY: handles are any values; a place for a number.
    unsafe {
        // The handle is none any more; where it is current, it is a context that was destroyed.
        assert_eq!(destroy(made), Status::INVALID_CONTEXT);
        assert_eq!(cuCtxPushCurrent_v2(made), Status::INVALID_CONTEXT);
        assert_eq!(cuCtxSetCurrent(made), Status::INVALID_CONTEXT);
        let mut version = 0;
        assert_eq!(cuCtxGetApiVersion(made, output(&mut version)), Status::INVALID_CONTEXT);
        for made_up in [1, 8, 0x7fff_0000_1234, usize::MAX, made.0 + 0x1000] {
            assert_eq!(destroy(CUcontext(made_up)), Status::INVALID_CONTEXT, "{made_up:#x}");
        }
    }
}

#[test]
fn handles_of_other_things_are_no_contexts() {
    begin();
    let made = context(PLAIN);
    // SAFETY: handles are any values; a place for a handle.
    unsafe {
        let stream: CUstream = get(|stream| cuStreamCreate(stream, 0)).unwrap();
        assert_eq!(cuCtxPushCurrent_v2(CUcontext(stream.0)), Status::INVALID_CONTEXT);
        assert_eq!(cuStreamSynchronize(CUstream(made.0)), Status::INVALID_HANDLE);
        ok(destroy(made));
        // It went with its context.
        assert_eq!(cuStreamSynchronize(stream), Status::INVALID_HANDLE);
    }
}

#[test]
fn a_primary_context_lives_as_long_as_it_is_retained() {
    begin();
    let state = || {
        let (mut flags, mut active) = (99, 99);
        // SAFETY: places for numbers.
        ok(unsafe { cuDevicePrimaryCtxGetState(RETAINED, output(&mut flags), output(&mut active)) });
        (flags, active)
    };
    // SAFETY: places for handles; handles are any values.
    let retain = || get(|context| unsafe { cuDevicePrimaryCtxRetain(context, RETAINED) }).unwrap();
    let release = || unsafe { cuDevicePrimaryCtxRelease_v2(RETAINED) };
    assert_eq!(state(), (0, 0));
    assert_eq!(release(), Status::INVALID_CONTEXT);
    // SAFETY: it takes no pointers.
    unsafe {
        ok(cuDevicePrimaryCtxSetFlags_v2(RETAINED, 4));
        assert_eq!(cuDevicePrimaryCtxSetFlags_v2(RETAINED, 3), Status::INVALID_VALUE, "two ways to wait");
        assert_eq!(cuDevicePrimaryCtxSetFlags_v2(RETAINED, 1 << 20), Status::INVALID_VALUE);
    }
    let primary = retain();
    assert_eq!((retain(), state()), (primary, (4, 1)));
    // SAFETY: handles are any values; a place for a number.
    unsafe {
        ok(cuCtxSetCurrent(primary));
        assert_eq!((synchronize(), device()), (Status::SUCCESS, Ok(RETAINED)));
        assert_eq!(get(|flags| cuCtxGetFlags(flags)), Ok(4));
        assert_eq!(destroy(primary), Status::INVALID_CONTEXT, "it is released, not destroyed");
        ok(release());
        ok(synchronize());
        let event: CUevent = get(|event| cuEventCreate(event, 0)).unwrap();
        ok(release());
        assert_eq!((state(), synchronize()), ((4, 0), Status::CONTEXT_IS_DESTROYED));
        assert_eq!(release(), Status::INVALID_CONTEXT);
        // It comes again where it was, without what was in it.
        assert_eq!(retain(), primary);
        assert_eq!((current(), synchronize()), (primary, Status::SUCCESS));
        assert_eq!(cuEventSynchronize(event), Status::INVALID_HANDLE);
        ok(release());
        ok(cuCtxSetCurrent(CUcontext::NULL));
    }
}

#[test]
fn a_primary_context_that_is_retained_during_its_last_release_stays() {
    /// Waits for the test.
    extern "C-unwind" fn wait(told: *mut c_void) {
        // SAFETY: the test waits for this to end before the flag goes.
        let told = unsafe { &*told.cast::<AtomicBool>() };
        while !told.load(Relaxed) {
            std::thread::yield_now();
        }
    }
    begin();
    let (told, releasing) = (AtomicBool::new(false), AtomicBool::new(false));
    // SAFETY: places for handles; handles are any values.
    let retain = || get(|context| unsafe { cuDevicePrimaryCtxRetain(context, SHARED) }).unwrap();
    let release = || unsafe { cuDevicePrimaryCtxRelease_v2(SHARED) };
    let primary = retain();
    // SAFETY: as above; the flag outlives the scope, which does not end before the function has.
    unsafe {
        ok(cuCtxSetCurrent(primary));
        let data = (&raw const told).cast_mut().cast();
        ok(cuLaunchHostFunc(CUstream::NULL, Some(wait), data));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            releasing.store(true, Relaxed);
            ok(release());
        });
        while !releasing.load(Relaxed) {
            std::thread::yield_now();
        }
        // The release is under way now, as far as can be seen, and waits for the function.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(retain(), primary);
        told.store(true, Relaxed);
    });
    assert_eq!(synchronize(), Status::SUCCESS, "it is retained");
    ok(release());
    assert_eq!(synchronize(), Status::CONTEXT_IS_DESTROYED);
    // SAFETY: handles are any values.
    ok(unsafe { cuCtxSetCurrent(CUcontext::NULL) });
}

#[test]
fn a_reset_takes_what_is_in_it() {
    begin();
    // SAFETY: places for handles and numbers; handles are any values.
    unsafe {
        let primary = get(|context| cuDevicePrimaryCtxRetain(context, RESET)).unwrap();
        ok(cuCtxSetCurrent(primary));
        let free = || {
            let (mut free, mut total) = (0, 0);
            ok(cuMemGetInfo_v2(output(&mut free), output(&mut total)));
            free
        };
        let before = free();
        let address = get(|address: Out<CUdeviceptr>| cuMemAlloc_v2(address, 1 << 20)).unwrap();
        assert!(free() < before);
        ok(cuDevicePrimaryCtxReset_v2(RESET));
        assert_eq!(synchronize(), Status::CONTEXT_IS_DESTROYED);
        assert_eq!(get(|context| cuDevicePrimaryCtxRetain(context, RESET)), Ok(primary));
        assert_eq!(free(), before);
        assert_eq!(cuMemFree_v2(address), Status::INVALID_VALUE);
        ok(cuDevicePrimaryCtxRelease_v2(RESET));
        ok(cuDevicePrimaryCtxRelease_v2(RESET));
        ok(cuCtxSetCurrent(CUcontext::NULL));
    }
}

#[test]
fn what_can_be_asked_of_a_context() {
    begin();
    let made = context(PLAIN);
    // SAFETY: places for numbers; handles are any values.
    unsafe {
        let other = context(MEMORY);
        let id = |context| get(|id| cuCtxGetId(context, id)).unwrap();
        assert_ne!(id(made), id(other));
        assert_eq!(id(CUcontext::NULL), id(other), "null is the current one");
        assert_eq!(get(|version| cuCtxGetApiVersion(made, version)), Ok(3020));
        assert_eq!(get(|device| cuCtxGetDevice_v2(device, made)), Ok(PLAIN));
        let (mut least, mut greatest): (c_int, c_int) = (99, 99);
        ok(cuCtxGetStreamPriorityRange(output(&mut least), output(&mut greatest)));
        assert!(greatest < least && least == 0, "a lower number is a greater priority");

        let limit = |which| get(|value| cuCtxGetLimit(value, which));
        assert_eq!(limit(CUlimit::STACK_SIZE), Ok(1024));
        ok(cuCtxSetLimit(CUlimit::STACK_SIZE, 4096));
        assert_eq!(limit(CUlimit::STACK_SIZE), Ok(4096));
        assert_eq!(cuCtxSetLimit(CUlimit::STACK_SIZE, 1 << 30), Status::INVALID_VALUE);
        assert_eq!(limit(CUlimit::MALLOC_HEAP_SIZE), Ok(8 << 20));
        assert_eq!(cuCtxSetLimit(CUlimit::MALLOC_HEAP_SIZE, 1 << 40), Status::OUT_OF_MEMORY);
        ok(cuCtxSetLimit(CUlimit::MALLOC_HEAP_SIZE, 32 << 20));
        assert_eq!(limit(CUlimit::MALLOC_HEAP_SIZE), Ok(32 << 20));
        assert_eq!(limit(CUlimit::CIG_ENABLED), Ok(0));
        assert_eq!(cuCtxSetLimit(CUlimit::CIG_ENABLED, 1), Status::UNSUPPORTED_LIMIT);
        assert_eq!(limit(CUlimit(77)), Err(Status::INVALID_VALUE));

        ok(cuCtxSetCacheConfig(CUfunc_cache::PREFER_L1));
        assert_eq!(get(|config| cuCtxGetCacheConfig(config)), Ok(CUfunc_cache::PREFER_L1));
        assert_eq!(cuCtxSetCacheConfig(CUfunc_cache(9)), Status::INVALID_VALUE);
        assert_eq!(cuCtxSetFlags(3), Status::INVALID_VALUE);
        ok(cuCtxSetFlags(1));
        assert_eq!(get(|flags| cuCtxGetFlags(flags)), Ok(1));

        let params = CUctxCreateParams { execAffinityParams: 0, numExecAffinityParams: 0, cigParams: 8 };
        let mut none = CUcontext::NULL;
        let status = cuCtxCreate_v4(output(&mut none), input(&params), 0, PLAIN);
        assert_eq!((status, none), (Status::NOT_SUPPORTED, CUcontext::NULL));
        assert_eq!(current(), other, "nothing was pushed");
        ok(destroy(other));
        ok(destroy(made));
    }
}

/// By the documentation of these functions in the CUDA driver API (Peer Context Memory Access, Context Management).
#[test]
fn what_is_not_to_be_had_says_so() {
    begin();
    let (new, same, old) = (context(PLAIN), context(PLAIN), context(OLD));
    // SAFETY: handles are any values.
    unsafe {
        assert_eq!(cuCtxResetPersistingL2Cache(), Status::NOT_SUPPORTED);
        ok(cuCtxSetCurrent(new));
        ok(cuCtxResetPersistingL2Cache());
        for (what, found, expected) in [
            ("itself", cuCtxEnablePeerAccess(new, 0), Status::INVALID_CONTEXT),
            ("of its device", cuCtxEnablePeerAccess(same, 0), Status::PEER_ACCESS_UNSUPPORTED),
            ("of another device", cuCtxEnablePeerAccess(old, 0), Status::PEER_ACCESS_UNSUPPORTED),
            ("flags", cuCtxEnablePeerAccess(old, 1), Status::INVALID_VALUE),
            ("none", cuCtxEnablePeerAccess(CUcontext(8), 0), Status::INVALID_CONTEXT),
            ("not enabled", cuCtxDisablePeerAccess(old), Status::PEER_ACCESS_NOT_ENABLED),
            ("none disabled", cuCtxDisablePeerAccess(CUcontext(8)), Status::INVALID_CONTEXT),
        ] {
            assert_eq!(found, expected, "{what}");
        }
        for context in [new, same, old] {
            ok(destroy(context));
        }
        ok(cuCtxSetCurrent(CUcontext::NULL));
    }
}

#[test]
fn threads_make_and_destroy_contexts() {
    begin();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            std::thread::spawn(move || {
                for round in 0..20 {
                    let made = context(PLAIN);
                    // SAFETY: places for numbers; handles are any values.
                    unsafe {
                        let address = get(|address: Out<CUdeviceptr>| cuMemAlloc_v2(address, 64)).unwrap();
                        ok(cuMemsetD32_v2(address, thread * 100 + round, 16));
                        let mut word = 0u32;
                        ok(cuMemcpyDtoH_v2((&raw mut word).cast(), address, 4));
                        assert_eq!(word, thread * 100 + round);
                        if round % 2 == 0 {
                            ok(cuMemFree_v2(address));
                        }
                    }
                    ok(destroy(made));
                    assert_eq!(current(), CUcontext::NULL);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_context_waits_for_itself_alone() {
    begin();
    let mut word = 0u32;
    let place = &raw mut word;
    // SAFETY: places for handles and addresses; the word stays until the context that waits for it is gone.
    unsafe {
        let waiting = context(PLAIN);
        let flags = 2; // mapped
        ok(cuMemHostRegister_v2(place.cast(), 4, flags));
        let at = place as CUdeviceptr;
        ok(cuStreamWaitValue32_v2(CUstream::NULL, at, 1, 0));
        let other = context(PLAIN);
        ok(synchronize());
        ok(destroy(other));
        // The first one still waits; now it need not.
        place.write_volatile(1);
        ok(cuCtxSetCurrent(waiting));
        ok(synchronize());
        ok(cuMemHostUnregister(place.cast()));
        ok(destroy(waiting));
    }
}
