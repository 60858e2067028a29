//! Calls of the interface, and a process that begins with certain devices.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test program takes what it needs")]

use std::sync::Once;
use warpwright_cuda::api::cuInit;
use warpwright_cuda::types::{CUDA_MEMCPY3D, CUarray, CUcontext, CUmemorytype, In, Out, Result, Status};

pub(crate) const OK: Status = Status::SUCCESS;

/// Calls a function of the interface.
macro_rules! call {
    ($call:expr) => {{
        // SAFETY: pointers are null, or good for what the function reads and writes.
        #[allow(unused_unsafe, reason = "a call may stand within what another one is given")]
        unsafe {
            $call
        }
    }};
}

/// Calls a function of the interface, which must say that it worked.
macro_rules! ok {
    ($call:expr) => {
        assert_eq!(call!($call), Status::SUCCESS, "{}", stringify!($call))
    };
}

/// Calls a function of the interface, which must fail so.
macro_rules! fails {
    ($status:ident, $call:expr) => {
        assert_eq!(call!($call), Status::$status, "{}", stringify!($call))
    };
}

pub(crate) use {call, fails, ok};

/// A pointer to a value, or to several, for a call. Nothing but a call follows it, and calls are `unsafe`.
pub(crate) fn input<T>(pointer: *const T) -> In<T> {
    // SAFETY: as above.
    unsafe { In::new(pointer) }
}

/// A pointer to the place of a value, or of several, for a call.
pub(crate) fn output<T>(pointer: *mut T) -> Out<T> {
    // SAFETY: as above.
    unsafe { Out::new(pointer) }
}

/// What a function writes by a pointer, if it succeeds.
pub(crate) fn out<T: Default>(call: impl FnOnce(Out<T>) -> Status) -> Result<T> {
    let mut value = T::default();
    call(output(&mut value)).into_result().map(|()| value)
}

/// Initialises the driver of this process with these variables, once.
pub(crate) fn begin(variables: &[(&str, &str)]) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, value) in variables {
            // SAFETY: every test comes here first, and none reads or writes the environment otherwise.
            unsafe { std::env::set_var(name, value) };
        }
        ok!(cuInit(0));
    });
}

/// A copy of nothing from nowhere, between memory of devices.
pub(crate) fn empty_copy() -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CUmemorytype::DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: CUarray::NULL,
        srcContext: CUcontext::NULL,
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CUmemorytype::DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: 0,
        dstArray: CUarray::NULL,
        dstContext: CUcontext::NULL,
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: 0,
        Height: 0,
        Depth: 0,
    }
}
