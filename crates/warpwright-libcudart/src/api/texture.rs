//! Textures and surfaces: the runtime's descriptions, and the driver's.

use super::array::{channels, format};
use super::{entries, forward};
use crate::abi::{
    ChannelDesc, DriverResourceDesc, DriverTextureDesc, Handle, In, Out, ResourceDesc, TextureDesc,
};
use crate::driver::driver;
use crate::error::{Error, Result};
use std::ffi::{c_int, c_uint, c_ulonglong};

/// The kinds of resources: `cudaResourceType`.
const ARRAY: c_int = 0;
const MIPMAPPED: c_int = 1;
const LINEAR: c_int = 2;
const PITCHED: c_int = 3;

/// The flags of a texture: `CU_TRSF_…`.
const READ_AS_INTEGER: c_uint = 1;
const NORMALIZED_COORDINATES: c_uint = 2;
const SRGB: c_uint = 0x10;
const NO_TRILINEAR: c_uint = 0x20;
const SEAMLESS: c_uint = 0x40;

/// The read mode that makes floats of integers: `cudaReadModeNormalizedFloat`.
const NORMALIZED_FLOAT: c_int = 1;

fn resource(desc: In<ResourceDesc>) -> Result<DriverResourceDesc> {
    // SAFETY: every description begins with its kind.
    let kind = unsafe { desc.cast::<c_int>() }.get()?;
    let mut resource = DriverResourceDesc::zeroed();
    resource.kind = kind;
    match kind {
        ARRAY | MIPMAPPED => {
            // SAFETY: the handle is behind the kind, aligned.
            resource.pointer = unsafe { desc.cast::<[Handle; 2]>() }.get()?[1];
        }
        LINEAR | PITCHED => {
            let desc = desc.get()?;
            resource.pointer = desc.pointer;
            (resource.format, resource.channels) = format(desc.channels)?;
            resource.width = desc.width;
            if kind == PITCHED {
                (resource.height, resource.pitch) = (desc.height, desc.pitch);
            }
        }
        _ => return Err(Error::INVALID_VALUE),
    }
    Ok(resource)
}

fn resource_of(resource: &DriverResourceDesc) -> Result<ResourceDesc> {
    let is_memory = matches!(resource.kind, LINEAR | PITCHED);
    let none = ChannelDesc { x: 0, y: 0, z: 0, w: 0, kind: 0 };
    Ok(ResourceDesc {
        kind: resource.kind,
        pointer: resource.pointer,
        channels: if is_memory { channels(resource.format, resource.channels)? } else { none },
        width: resource.width,
        height: resource.height,
        pitch: resource.pitch,
    })
}

fn texture(desc: &TextureDesc) -> DriverTextureDesc {
    let flag = |is_set: bool, flag: c_uint| if is_set { flag } else { 0 };
    DriverTextureDesc {
        address_modes: desc.address_modes,
        filter: desc.filter,
        flags: flag(desc.read_mode != NORMALIZED_FLOAT, READ_AS_INTEGER)
            | flag(desc.is_normalized != 0, NORMALIZED_COORDINATES)
            | flag(desc.srgb != 0, SRGB)
            | flag(desc.no_trilinear != 0, NO_TRILINEAR)
            | flag(desc.seamless != 0, SEAMLESS),
        anisotropy: desc.anisotropy,
        mipmap_filter: desc.mipmap_filter,
        mipmap_bias: desc.mipmap_bias,
        mipmap_min: desc.mipmap_min,
        mipmap_max: desc.mipmap_max,
        border: desc.border,
        reserved: [0; 12],
    }
}

fn texture_of(desc: &DriverTextureDesc) -> TextureDesc {
    let has = |flag: c_uint| c_int::from(desc.flags & flag != 0);
    TextureDesc {
        address_modes: desc.address_modes,
        filter: desc.filter,
        read_mode: if has(READ_AS_INTEGER) == 0 { NORMALIZED_FLOAT } else { 0 },
        srgb: has(SRGB),
        border: desc.border,
        is_normalized: has(NORMALIZED_COORDINATES),
        anisotropy: desc.anisotropy,
        mipmap_filter: desc.mipmap_filter,
        mipmap_bias: desc.mipmap_bias,
        mipmap_min: desc.mipmap_min,
        mipmap_max: desc.mipmap_max,
        no_trilinear: has(NO_TRILINEAR),
        seamless: has(SEAMLESS),
    }
}

entries! {
    /// Makes a texture. The view, which may be null, is the driver's too.
    fn cudaCreateTextureObject(
        object: Out<c_ulonglong>,
        desc: In<ResourceDesc>,
        texture_desc: In<TextureDesc>,
        view: Handle,
    ) {
        let (resource, texture) = (resource(desc)?, texture(&texture_desc.get()?));
        driver!(cuTexObjectCreate(object.required()?, &raw const resource, &raw const texture, view))
    }

    /// Destroys a texture.
    fn cudaDestroyTextureObject(object: c_ulonglong) {
        if object == 0 { Ok(()) } else { driver!(cuTexObjectDestroy(object)) }
    }

    /// Returns what a texture reads.
    fn cudaGetTextureObjectResourceDesc(desc: Out<ResourceDesc>, object: c_ulonglong) {
        let mut resource = DriverResourceDesc::zeroed();
        driver!(cuTexObjectGetResourceDesc(&raw mut resource, object))?;
        desc.set(resource_of(&resource)?)
    }

    /// Returns how a texture reads.
    fn cudaGetTextureObjectTextureDesc(desc: Out<TextureDesc>, object: c_ulonglong) {
        let mut texture = DriverTextureDesc::zeroed();
        driver!(cuTexObjectGetTextureDesc(&raw mut texture, object))?;
        desc.set(texture_of(&texture))
    }

    /// Makes a surface of an array.
    fn cudaCreateSurfaceObject(object: Out<c_ulonglong>, desc: In<ResourceDesc>) {
        let resource = resource(desc)?;
        driver!(cuSurfObjectCreate(object.required()?, &raw const resource))
    }

    /// Destroys a surface.
    fn cudaDestroySurfaceObject(object: c_ulonglong) {
        if object == 0 { Ok(()) } else { driver!(cuSurfObjectDestroy(object)) }
    }

    /// Returns what a surface writes.
    fn cudaGetSurfaceObjectResourceDesc(desc: Out<ResourceDesc>, object: c_ulonglong) {
        let mut resource = DriverResourceDesc::zeroed();
        driver!(cuSurfObjectGetResourceDesc(&raw mut resource, object))?;
        desc.set(resource_of(&resource)?)
    }
}

forward! {
    cudaGetTextureObjectResourceViewDesc(view: Handle, object: c_ulonglong) =
        cuTexObjectGetResourceViewDesc(view, object);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_texture_is_the_same_in_both_descriptions() {
        for bits in 0..32 {
            let has = |bit: c_int| c_int::from(bits >> bit & 1 != 0);
            let mut desc = TextureDesc::zeroed();
            desc.address_modes = [1, 2, 3];
            desc.read_mode = has(0);
            desc.is_normalized = has(1);
            desc.srgb = has(2);
            desc.no_trilinear = has(3);
            desc.seamless = has(4);
            desc.border = [0.5, 1.0, 2.0, 4.0];
            let back = texture_of(&texture(&desc));
            assert_eq!(format!("{back:?}"), format!("{desc:?}"));
        }
    }
}
