//! The exported functions, one file for each group of the driver API.
//!
//! Each is a line or two: it converts the client's values, calls the implementation and returns the result. The macro
//! `entries!` generates the C function, and a row of the table that `cuGetProcAddress` searches. **No panic crosses the
//! interface**: it becomes `CUDA_ERROR_UNKNOWN` and a line of the log.
//!
//! ```text
//! entries! {
//!     /// Doc.
//!     fn cuDeviceGetCount(count: Out<c_int>) { count.set(state()?.devices.len() as c_int) }
//!
//!     /// What takes a stream and has a variant for the default stream of the thread: `default` says which one it is.
//!     fn cuStreamQuery, cuStreamQuery_ptsz |default| (stream: CUstream) { query(default.resolve(stream)) }
//!
//!     /// Two versions that do not differ here.
//!     fn cuCtxDestroy_v2 = cuCtxDestroy(context: CUcontext) { destroy(context) }
//! }
//! ```
#![allow(non_snake_case, reason = "the interface's names")]

mod any_node;
mod array;
mod capture;
mod condition;
mod context;
mod copy;
mod copy_rows;
mod device;
mod edges;
mod error;
mod event;
mod fill;
mod function;
mod graph;
mod graph_memory;
mod host;
mod init;
mod jitlink;
mod launch;
mod library;
mod lookup;
mod memory;
mod missing;
mod module;
mod multicast;
mod node;
mod node_params;
mod object;
mod own;
mod pointer;
mod pool;
mod primary;
mod reference;
mod stream;
mod tensor_map;
mod texture;
mod virtual_memory;

use crate::report::{calls, log, misuse};
use crate::state::{has_forked, refusal};
use crate::types::{CUstream, Result, Status};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use jitlink::*;
use module::read_file;
pub use own::*;

/// Makes the functions of the groups public, and lists all of them.
macro_rules! groups {
    ($($group:ident)*) => {
        $(pub use $group::*;)*

        /// Every exported function, by group.
        static GROUPS: &[&[&Entry]] = &[$($group::ENTRIES,)* missing::ENTRIES];
    };
}

groups! {
    any_node array capture condition context copy copy_rows device edges error event fill function graph graph_memory host
    init launch library lookup memory module multicast node node_params object pointer pool primary reference stream tensor_map
    texture virtual_memory
}

/// An exported function.
pub(crate) struct Entry {
    /// Its name, with the suffix of its version.
    pub(crate) name: &'static str,
    /// Its address. It has the signature that the interface defines for the name.
    pub(crate) address: *const (),
    /// Whether it is implemented.
    pub(crate) is_supported: bool,
    calls: AtomicU64,
}

// SAFETY: the address of a function is not followed here, and functions may be called from any thread.
unsafe impl Sync for Entry {}

unsafe extern "C-unwind" {
    // POSIX. It ends no thread but one that may be cancelled at any time, and such a one calls no libraries.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// The state of a thread that cannot be cancelled.
const CANNOT_BE_CANCELLED: c_int = 1;

/// Sets whether the thread can be cancelled; returns the previous state.
fn set_cancel_state(state: c_int) -> c_int {
    let mut before = state;
    // SAFETY: a state of POSIX, and a place for the one before.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

/// Functions that need no driver, and so work in the child of a process that had one.
const FOR_CHILDREN: [&str; 5] =
    ["cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress", "cuGetProcAddress_v2"];

impl Entry {
    const fn new(name: &'static str, address: *const (), is_supported: bool) -> Self {
        Entry { name, address, is_supported, calls: AtomicU64::new(0) }
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    fn call(&'static self, body: impl FnOnce() -> Result<()>) -> Status {
        // Threads that are not there may have held any lock.
        if has_forked() && !FOR_CHILDREN.contains(&self.name) {
            return Status::NOT_INITIALIZED;
        }
        self.calls.fetch_add(1, Relaxed);
        // That would unwind it from where it waits or writes, and what it holds there would never be free again.
        let cancel_state = set_cancel_state(CANNOT_BE_CANCELLED);
        let outer = calls::enter(self.name);
        let refused = refusal(self.name);
        let body = || refused.map_or_else(body, Err);
        // What a panic leaves behind is behind locks that take poison for granted.
        let status = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(result) => Status::from(result),
            Err(panic) => {
                log::panicked(self.name, panic.as_ref());
                Status::UNKNOWN
            }
        };
        log::called(self.name, status);
        misuse::returned(calls::current(), status, refused.is_some());
        calls::leave(outer);
        set_cancel_state(cancel_state);
        status
    }
}

/// The functions in the order of their groups.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|group| group.iter().copied())
}

/// The names of all exported functions of the driver API, including missing ones.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|entry| entry.name)
}

/// Whether a function is implemented.
pub(crate) fn is_supported(name: &str) -> bool {
    all().any(|entry| entry.name == name && entry.is_supported)
}

/// The meaning of stream 0 for a variant of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// The legacy default stream.
    Legacy,
    /// The calling thread's default stream.
    PerThread,
}

impl DefaultStream {
    /// The actual stream, never null.
    pub(crate) fn resolve(self, stream: CUstream) -> CUstream {
        match self {
            _ if !stream.is_null() => stream,
            DefaultStream::Legacy => CUstream::LEGACY,
            DefaultStream::PerThread => CUstream::PER_THREAD,
        }
    }
}

/// Exports functions, and defines the group's `ENTRIES`.
macro_rules! entries {
    ($(
        $(#[$meta:meta])*
        fn $name:ident $(= $same:ident)? $(, $per_thread:ident |$default:ident|)? ($($params:tt)*) $body:block
    )*) => {
        $($crate::api::export! {
            [$(#[$meta])*] $name [$($same)? $($per_thread $default)?] ($($params)*) $body
        })*

        /// The functions of this group.
        pub(super) static ENTRIES: &[&$crate::api::Entry] =
            &[$(&$name::ENTRY, $(&$same::ENTRY,)? $(&$per_thread::ENTRY,)?)*];
    };
}

/// Exports a function, with an identical version, or with its variant for the thread's default stream.
macro_rules! export {
    ([$($meta:tt)*] $name:ident [] $params:tt $body:block) => {
        $crate::api::entry! { [$($meta)*] $name [] $params $body }
    };
    ([$($meta:tt)*] $name:ident [$same:ident] $params:tt $body:block) => {
        $crate::api::entry! { [$($meta)*] $name [] $params $body }
        $crate::api::entry! {
            [#[doc = concat!("As [`", stringify!($name), "`]: they do not differ.")]] $same [] $params $body
        }
    };
    ([$($meta:tt)*] $name:ident [$per_thread:ident $default:ident] $params:tt $body:block) => {
        $crate::api::entry! { [$($meta)*] $name [$default = Legacy] $params $body }
        $crate::api::entry! {
            [#[doc = concat!("[`", stringify!($name), "`] where stream 0 is the calling thread's.")]]
            $per_thread [$default = PerThread] $params $body
        }
    };
}

/// Exports one function. Its row of the table is in a module of the same name.
macro_rules! entry {
    ([$(#[$meta:meta])*] $name:ident [$($default:ident = $kind:ident)?] ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        mod $name {
            pub(super) static ENTRY: $crate::api::Entry =
                $crate::api::Entry::new(stringify!($name), super::$name as *const (), true);
        }

        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// Pointers must be as the interface says: null, or valid for what it reads and writes there.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "the interface's functions have as many as they have")]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::types::Status {
            $(let $default = $crate::api::DefaultStream::$kind;)?
            $name::ENTRY.call(move || $body)
        }
    };
}

pub(crate) use {entries, entry, export};
