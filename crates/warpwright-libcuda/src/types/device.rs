//! Types of devices and contexts.

use std::ffi::{c_int, c_uint};

/// The UUID of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUuuid {
    /// Its bytes, in the order of its text.
    pub bytes: [u8; 16],
}

/// An execution affinity: a number of multiprocessors.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUexecAffinityParam {
    /// The kind of `value`: 0 for a number of multiprocessors.
    pub kind: c_int,
    /// The number of multiprocessors.
    pub value: c_uint,
}

/// The parameters of a new context. Pointers are plain values here, and never followed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUctxCreateParams {
    /// The address of the execution affinities.
    pub execAffinityParams: usize,
    /// The number of execution affinities.
    pub numExecAffinityParams: c_int,
    /// The address of the parameters for sharing with graphics.
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

            /// Whether it is a declared value.
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
    /// A limit of a context.
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

    /// The preferred split of a multiprocessor's memory into L1 cache and shared memory.
    CUfunc_cache {
        PREFER_NONE = 0,
        PREFER_SHARED = 1,
        PREFER_L1 = 2,
        PREFER_EQUAL = 3,
    }

    /// An attribute of the link between two devices.
    CUdevice_P2PAttribute {
        PERFORMANCE_RANK = 1,
        ACCESS_SUPPORTED = 2,
        NATIVE_ATOMIC_SUPPORTED = 3,
        ACCESS_ACCESS_SUPPORTED = 4,
    }
}

/// An attribute of a device. The numbers are listed with their values in `state/attributes.rs`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CUdevice_attribute(pub c_int);
