//! Calls of the interface, and a process that begins with certain devices.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test program takes what it needs")]

use std::sync::Once;
use warpwright_cuda::api::cuInit;
use warpwright_cuda::types::{Out, Result, Status};

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

/// What a function writes by a pointer, if it succeeds.
pub(crate) fn out<T: Default>(call: impl FnOnce(Out<T>) -> Status) -> Result<T> {
    let mut value = T::default();
    call(Out::from(&mut value)).into_result().map(|()| value)
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
