//! The exported functions, one file for each group of the runtime API.
//!
//! Most call one function of the driver, and are a line in `forward!`; the others are a few lines in `entries!`. **No
//! panic crosses the interface**: it becomes `cudaErrorUnknown` and a line of the log.
//!
//! ```text
//! forward! {
//!     cudaEventDestroy(event: Handle) = cuEventDestroy_v2(event);
//!     /// Two names, the second for the default stream of the thread: `default` says which one it is.
//!     cudaStreamQuery, cudaStreamQuery_ptsz |default| (stream: Stream) = cuStreamQuery(default.resolve(stream));
//! }
//! entries! {
//!     /// Doc.
//!     fn cudaMalloc(address: Out<Handle>, bytes: usize) { … }
//!     /// A function that needs no context.
//!     bare fn cudaGetDevice(device: Out<c_int>) { device.set(state::device()?) }
//!     /// Two names for one function.
//!     fn cudaMemAdvise_v2 = cudaMemAdvise(…) { … }
//! }
//! ```
#![allow(non_snake_case, reason = "the interface's names")]

/// Declares the groups, and makes their functions public.
macro_rules! groups {
    ($($group:ident)*) => {$(
        mod $group;
        pub use $group::*;
    )*};
}

groups! {
    array capture copy copy_rows device event fill function graph launch library lookup managed
    memory missing node node_params peer pool properties register status stream symbol texture
}

use crate::error::{Error, Result, noted};
use crate::{driver, log};
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a function, and notes its error.
fn call(name: &CStr, body: impl FnOnce() -> Result<()>) -> c_int {
    driver::announce(name, || {
        let name = name.to_str().unwrap_or_default();
        let code = noted(catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
            log::panicked(name, panic.as_ref());
            Err(Error::UNKNOWN)
        }));
        log::called(name, code);
        code
    })
}

/// Exports functions.
macro_rules! entries {
    () => {};
    (
        $(#[$meta:meta])* bare fn $name:ident $(, $per_thread:ident |$default:ident|)? ($($params:tt)*) $body:block
        $($rest:tt)*
    ) => {
        $crate::api::export! { [$(#[$meta])*] $name [] [$($per_thread $default)?] ($($params)*) $body [Ok(())] }
        $crate::api::entries! { $($rest)* }
    };
    (
        $(#[$meta:meta])* fn $name:ident $(= $same:ident)? $(, $per_thread:ident |$default:ident|)? ($($params:tt)*)
        $body:block $($rest:tt)*
    ) => {
        $crate::api::export! {
            [$(#[$meta])*] $name [$($same)?] [$($per_thread $default)?] ($($params)*) $body [$crate::state::context()]
        }
        $crate::api::entries! { $($rest)* }
    };
}

/// Exports functions that call one of the driver.
macro_rules! forward {
    ($(
        $(#[$meta:meta])*
        $name:ident $(= $same:ident)? $(, $per_thread:ident |$default:ident|)? ($($params:tt)*)
            = $driver:ident ($($args:tt)*);
    )*) => {$(
        $crate::api::export! {
            [$(#[$meta])* #[doc = concat!("Calls `", stringify!($driver), "`.")]]
            $name [$($same)?] [$($per_thread $default)?] ($($params)*)
            { $crate::driver::driver!($driver($($args)*)) } [$crate::state::context()]
        }
    )*};
}

/// Exports a function, and the same under another name or for another default stream.
macro_rules! export {
    ([$($meta:tt)*] $name:ident [$($same:ident)?] [] $params:tt $body:block $before:tt) => {
        $crate::api::entry! { [$($meta)*] $name [] $params $body $before }
        $(
            $crate::api::entry! {
                [#[doc = concat!("As [`", stringify!($name), "`]: they do not differ.")]] $same [] $params $body $before
            }
        )?
    };
    ([$($meta:tt)*] $name:ident [] [$per_thread:ident $default:ident] $params:tt $body:block $before:tt) => {
        $crate::api::entry! { [$($meta)*] $name [$default = Legacy] $params $body $before }
        $crate::api::entry! {
            [#[doc = concat!("[`", stringify!($name), "`] where stream 0 is the calling thread's.")]]
            $per_thread [$default = PerThread] $params $body $before
        }
    };
}

/// A function's name as C has it.
macro_rules! c_name {
    ($name:ident) => {
        match ::std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
}

/// Exports one function.
macro_rules! entry {
    (
        [$(#[$meta:meta])*] $name:ident [$($default:ident = $kind:ident)?] ($($arg:ident: $ty:ty),* $(,)?) $body:block
        [$before:expr]
    ) => {
        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// Pointers must be as the interface says: null, or valid for what it reads and writes there.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "the interface's functions have as many as they have")]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> ::std::ffi::c_int {
            $(let $default = $crate::state::DefaultStream::$kind;)?
            $crate::api::call($crate::api::c_name!($name), move || {
                $before?;
                $body
            })
        }
    };
}

pub(crate) use {c_name, entries, entry, export, forward};
