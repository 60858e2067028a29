//! Types of arrays, textures and surfaces.

use super::device::enumerations;
use std::ffi::{c_int, c_uint};

/// The handle of a texture, as kernels get it.
pub type CUtexObject = u64;

/// The handle of a surface, as kernels get it.
pub type CUsurfObject = u64;

enumerations! {
    /// The format of a channel.
    CUarray_format {
        UNSIGNED_INT8 = 1, UNSIGNED_INT16 = 2, UNSIGNED_INT32 = 3, SIGNED_INT8 = 8, SIGNED_INT16 = 9, SIGNED_INT32 = 10,
        HALF = 16, FLOAT = 32,
    }
    /// What is read outside of a texture.
    CUaddress_mode { WRAP = 0, CLAMP = 1, MIRROR = 2, BORDER = 3 }
    /// How texels or levels are filtered.
    CUfilter_mode { POINT = 0, LINEAR = 1 }
    /// What a texture or surface is of.
    CUresourcetype { ARRAY = 0, MIPMAPPED_ARRAY = 1, LINEAR = 2, PITCH2D = 3 }
}

/// The map of a tensor, as kernels get it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUtensorMap {
    /// What it says, which is the driver's own matter.
    pub bytes: [u8; 128],
}

impl Default for CUtensorMap {
    fn default() -> Self {
        CUtensorMap { bytes: [0; 128] }
    }
}

/// What an array of one or two dimensions is made of.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the interface's own names")]
pub struct CUDA_ARRAY_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
}

/// What an array is made of.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the interface's own names")]
pub struct CUDA_ARRAY3D_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: CUarray_format,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

/// What a texture or surface is of.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the interface's own names")]
pub struct CUDA_RESOURCE_DESC {
    pub resType: CUresourcetype,
    /// A union: the handle of an array; or an address, format and channels, and a size, or width, height and pitch.
    pub res: [u64; 16],
    pub flags: c_uint,
}

/// How a texture is sampled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the interface's own names")]
pub struct CUDA_TEXTURE_DESC {
    pub addressMode: [CUaddress_mode; 3],
    pub filterMode: CUfilter_mode,
    pub flags: c_uint,
    pub maxAnisotropy: c_uint,
    pub mipmapFilterMode: CUfilter_mode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub borderColor: [f32; 4],
    pub reserved: [c_int; 12],
}

/// How a texture sees its array.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the interface's own names")]
pub struct CUDA_RESOURCE_VIEW_DESC {
    pub format: c_int,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: c_uint,
    pub lastMipmapLevel: c_uint,
    pub firstLayer: c_uint,
    pub lastLayer: c_uint,
    pub reserved: [c_uint; 16],
}
