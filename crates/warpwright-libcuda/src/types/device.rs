//! What is asked of devices and contexts.

use std::ffi::{c_int, c_uint};

/// A name that no other device has.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUuuid {
    /// Its bytes, in the order in which they are written.
    pub bytes: [u8; 16],
}

/// A part of the multiprocessors.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUexecAffinityParam {
    /// What `value` is: 0 for a number of multiprocessors.
    pub kind: c_int,
    /// How many.
    pub value: c_uint,
}

/// What a context is made with. Pointers are values here: none is followed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUctxCreateParams {
    /// Leads to parts of the multiprocessors.
    pub execAffinityParams: usize,
    /// How many there are.
    pub numExecAffinityParams: c_int,
    /// Leads to what graphics shares.
    pub cigParams: usize,
}

macro_rules! enumerations {
    ($($(#[$meta:meta])* $name:ident { $($value:ident = $number:literal),* $(,)? })*) => {$(
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub ::std::ffi::c_int);

        #[allow(missing_docs, reason = "the interface's names")]
        impl $name {
            $(pub const $value: $name = $name($number);)*

            /// Whether it is one of its values.
            pub fn check(self) -> $crate::types::Result<()> {
                match self.0 {
                    $($number => Ok(()),)*
                    _ => Err($crate::types::Status::INVALID_VALUE),
                }
            }
        }
    )*};
}

pub(super) use enumerations;

enumerations! {
    /// What a context may limit.
    CUlimit {
        STACK_SIZE = 0,
        PRINTF_FIFO_SIZE = 1,
        MALLOC_HEAP_SIZE = 2,
        DEV_RUNTIME_SYNC_DEPTH = 3,
        DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
        MAX_L2_FETCH_GRANULARITY = 5,
        PERSISTING_L2_CACHE_SIZE = 6,
        SHMEM_SIZE = 7,
        CIG_ENABLED = 8,
        CIG_SHMEM_FALLBACK_ENABLED = 9,
    }

    /// What kernels want of the memory that caches and shared memory divide.
    CUfunc_cache {
        PREFER_NONE = 0,
        PREFER_SHARED = 1,
        PREFER_L1 = 2,
        PREFER_EQUAL = 3,
    }

    /// What is between two devices.
    CUdevice_P2PAttribute {
        PERFORMANCE_RANK = 1,
        ACCESS_SUPPORTED = 2,
        NATIVE_ATOMIC_SUPPORTED = 3,
        ACCESS_ACCESS_SUPPORTED = 4,
    }
}

/// What is asked of a device. The numbers stand with their values in `state/attributes.rs`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CUdevice_attribute(pub c_int);
