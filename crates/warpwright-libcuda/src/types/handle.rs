//! Handles of objects. A handle is a value to look up, never a pointer to follow.

macro_rules! handles {
    ($($(#[$meta:meta])* $name:ident)*) => {$(
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub usize);

        impl $name {
            /// The null handle.
            pub const NULL: $name = $name(0);

            /// Whether it is null.
            pub fn is_null(self) -> bool {
                self.0 == 0
            }
        }

        impl From<usize> for $name {
            fn from(value: usize) -> Self {
                $name(value)
            }
        }

        impl From<$name> for usize {
            fn from(handle: $name) -> usize {
                handle.0
            }
        }
    )*};
}

handles! {
    /// A context.
    CUcontext
    /// A stream; also one of its three special values.
    CUstream
    /// An event.
    CUevent
    /// A module.
    CUmodule
    /// A function of a module, or a kernel of a library.
    CUfunction
    /// A library: code that is not tied to a context.
    CUlibrary
    /// A kernel of a library.
    CUkernel
    /// A linker.
    CUlinkState
    /// A pool of stream-ordered memory.
    CUmemoryPool
    /// A graph.
    CUgraph
    /// A node of a graph.
    CUgraphNode
    /// An executable graph.
    CUgraphExec
    /// A user object, which graphs retain.
    CUuserObject
    /// An array.
    CUarray
    /// An array with levels.
    CUmipmappedArray
    /// A texture reference of a module.
    CUtexref
    /// A surface reference of a module.
    CUsurfref
    /// Physical memory.
    CUmemGenericAllocationHandle
}

impl CUstream {
    /// The legacy default stream, which synchronises with all blocking streams.
    pub const LEGACY: CUstream = CUstream(1);
    /// The default stream of the calling thread.
    pub const PER_THREAD: CUstream = CUstream(2);
}

/// A device: its ordinal.
pub type CUdevice = std::ffi::c_int;

/// An address of device memory.
pub type CUdeviceptr = u64;
