//! The types of the runtime's interface, and those of the driver's that it fills in, as in C.
//!
//! Pointers that are only passed on are [`Handle`]s, as the opaque handles are. Those that the runtime follows are
//! [`In`] and [`Out`].

use crate::error::Error;
use std::ffi::{c_int, c_uint, c_void};
use warpwright_ffi::InterfaceError;

/// A handle of the driver, an address, or a pointer that is passed on.
pub type Handle = *mut c_void;

/// A stream: `cudaStream_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub usize);

impl Stream {
    /// The legacy default stream.
    pub const LEGACY: Stream = Stream(1);
    /// The thread's default stream.
    pub const PER_THREAD: Stream = Stream(2);

    /// Whether it stands for the default stream.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// The address to which the client wants a value written.
pub type Out<T> = warpwright_ffi::Out<T, Error>;

/// The address of a value of the client.
pub type In<T> = warpwright_ffi::In<T, Error>;

impl InterfaceError for Error {
    const INVALID_VALUE: Error = Error::INVALID_VALUE;
}

/// Declares structs of plain values as C lays them out. All bits may be zero.
macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $ty:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "the interface's fields, in its order")]
        pub struct $name { $(pub $field: $ty),* }

        impl $name {
            /// With all bits zero.
            #[allow(dead_code, reason = "some are only read")]
            pub(crate) fn zeroed() -> Self {
                // SAFETY: the fields are integers, floats, pointers that may be null, and structs and arrays of them.
                unsafe { std::mem::zeroed() }
            }
        }
    )*};
}

structs! {
    /// `dim3`.
    Dim3 { x: c_uint, y: c_uint, z: c_uint }
    /// `cudaExtent`: bytes or elements, rows, slices.
    Extent { width: usize, height: usize, depth: usize }
    /// `cudaPos`.
    Pos { x: usize, y: usize, z: usize }
    /// `cudaPitchedPtr`: memory of rows.
    PitchedPtr { pointer: Handle, pitch: usize, xsize: usize, ysize: usize }
    /// `cudaChannelFormatDesc`: bits of each channel, and what they mean.
    ChannelDesc { x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int }
    /// `cudaMemcpy3DParms`.
    Memcpy3DParms {
        src_array: Handle, src_pos: Pos, src: PitchedPtr, dst_array: Handle, dst_pos: Pos, dst: PitchedPtr,
        extent: Extent, kind: c_int,
    }
    /// `cudaMemcpy3DPeerParms`.
    Memcpy3DPeerParms {
        src_array: Handle, src_pos: Pos, src: PitchedPtr, src_device: c_int, dst_array: Handle, dst_pos: Pos,
        dst: PitchedPtr, dst_device: c_int, extent: Extent,
    }
    /// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`: one side, and the other.
    DriverMemcpy3D {
        src_x: usize, src_y: usize, src_z: usize, src_level: usize, src_type: c_uint, src_host: Handle,
        src_device: Handle, src_array: Handle, src_context: Handle, src_pitch: usize, src_height: usize,
        dst_x: usize, dst_y: usize, dst_z: usize, dst_level: usize, dst_type: c_uint, dst_host: Handle,
        dst_device: Handle, dst_array: Handle, dst_context: Handle, dst_pitch: usize, dst_height: usize,
        width: usize, height: usize, depth: usize,
    }
    /// `CUDA_ARRAY3D_DESCRIPTOR`.
    DriverArray { width: usize, height: usize, depth: usize, format: c_uint, channels: c_uint, flags: c_uint }
    /// `cudaPointerAttributes`, as far as both major versions have it.
    PointerAttributes { kind: c_int, device: c_int, device_pointer: Handle, host_pointer: Handle }
    /// `cudaFuncAttributes`.
    FuncAttributes {
        shared: usize, constant: usize, local: usize, max_threads: c_int, registers: c_int, ptx: c_int, binary: c_int,
        cache_mode: c_int, max_dynamic_shared: c_int, carveout: c_int, cluster_must_be_set: c_int,
        cluster: [c_int; 3], cluster_policy: c_int, non_portable_cluster: c_int, reserved: [c_int; 16],
    }
    /// `cudaLaunchConfig_t`.
    LaunchConfig {
        grid: Dim3, block: Dim3, shared: usize, stream: Stream, attributes: Handle, attribute_count: c_uint,
    }
    /// `CUlaunchConfig`.
    DriverLaunchConfig {
        grid: Dim3, block: Dim3, shared: c_uint, stream: Stream, attributes: Handle, attribute_count: c_uint,
    }
    /// `cudaKernelNodeParams`.
    KernelNodeParams { function: Handle, grid: Dim3, block: Dim3, shared: c_uint, params: Handle, extra: Handle }
    /// `CUDA_KERNEL_NODE_PARAMS`.
    DriverKernelNodeParams {
        function: Handle, grid: Dim3, block: Dim3, shared: c_uint, params: Handle, extra: Handle, kernel: Handle,
        context: Handle,
    }
    /// `cudaMemsetParams`, which is `CUDA_MEMSET_NODE_PARAMS` too.
    MemsetParams {
        dst: Handle, pitch: usize, value: c_uint, element_bytes: c_uint, width: usize, height: usize,
    }
    /// `cudaMemLocation`.
    Location { kind: c_int, id: c_int }
    /// `cudaMemPoolPtrExportData`, and handles for other processes.
    Opaque64 { bytes: [u8; 64] }
    /// `cudaUUID_t`.
    Uuid { bytes: [u8; 16] }
    /// `cudaTextureDesc`.
    TextureDesc {
        address_modes: [c_int; 3], filter: c_int, read_mode: c_int, srgb: c_int, border: [f32; 4],
        is_normalized: c_int, anisotropy: c_uint, mipmap_filter: c_int, mipmap_bias: f32, mipmap_min: f32,
        mipmap_max: f32, no_trilinear: c_int, seamless: c_int,
    }
    /// `CUDA_TEXTURE_DESC`.
    DriverTextureDesc {
        address_modes: [c_int; 3], filter: c_int, flags: c_uint, anisotropy: c_uint, mipmap_filter: c_int,
        mipmap_bias: f32, mipmap_min: f32, mipmap_max: f32, border: [f32; 4], reserved: [c_int; 12],
    }
    /// `cudaResourceDesc` of linear and pitched memory; for an array, `pointer` is its handle. CUDA 13 has more behind
    /// it.
    ResourceDesc {
        kind: c_int, pointer: Handle, channels: ChannelDesc, width: usize, height: usize, pitch: usize,
    }
    /// `CUDA_RESOURCE_DESC`, likewise. `width` is the number of bytes of linear memory.
    DriverResourceDesc {
        kind: c_int, pointer: Handle, format: c_uint, channels: c_uint, width: usize, height: usize, pitch: usize,
        reserved: [u64; 11], flags: c_uint,
    }
}
