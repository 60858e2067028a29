//! Textures and surfaces.

use super::array::{format, settle};
use super::entries;
use super::memory::here;
use crate::engine::{OBJECTS, ObjectKind, array, array_flags as flags, mipmapped_array};
use crate::report::log;
use crate::types::*;
use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use warpwright_ptx::op::texture::Geometry;
use warpwright_vm::{AddressMode, Channel, Filter, Image, Sampler, TexelFormat};

/// The most texels of a texture of linear memory.
pub(super) const MAX_LINEAR: usize = 1 << 28;

/// The most texels of each dimension, and bytes between rows, of a texture of pitched memory.
const MAX_PITCHED: [u64; 3] = [131_072, 65_000, 2_097_120];

/// What addresses of linear memory behind textures, and distances of its rows, are multiples of: what the attributes of
/// devices say.
pub(super) const ALIGN: u64 = 512;
const PITCH_ALIGN: u64 = 32;

/// Flags of textures.
const READ_AS_INTEGER: c_uint = 1;
const NORMALIZED_COORDINATES: c_uint = 2;
const SRGB: c_uint = 16;
const DISABLE_TRILINEAR_OPTIMIZATION: c_uint = 32;
const SEAMLESS_CUBEMAP: c_uint = 64;

/// The low and the high half of a word of a union.
fn halves(word: u64) -> (c_int, c_uint) {
    (word as u32 as c_int, (word >> 32) as u32)
}

/// What a description of a resource is of.
pub(super) fn image(resource: &CUDA_RESOURCE_DESC) -> Result<Image> {
    let invalid = Status::INVALID_VALUE;
    if resource.flags != 0 {
        return Err(invalid);
    }
    let [address, kind, a, b, c, ..] = resource.res;
    let (channel, channels) = halves(kind);
    let texels = || format(CUarray_format(channel), channels);
    let there = |bytes: u64| {
        if !address.is_multiple_of(ALIGN) {
            log::misuse(&format_args!(
                "a texture of memory at {address:#x}: addresses are multiples of {ALIGN}"
            ));
            return Err(Status::INVALID_VALUE);
        }
        crate::engine::bytes_at(address, bytes).map(drop)
    };
    match resource.resType {
        CUresourcetype::ARRAY => Ok(array(CUarray(address as usize))?.array.image().clone()),
        CUresourcetype::MIPMAPPED_ARRAY => {
            Ok(mipmapped_array(CUmipmappedArray(address as usize))?.array.array.image().clone())
        }
        CUresourcetype::LINEAR => {
            let texels = texels()?;
            let count = a / u64::from(texels.bytes());
            if count == 0 || count > MAX_LINEAR as u64 {
                return Err(invalid);
            }
            there(a)?;
            Ok(Image::linear(address, count as u32, texels))
        }
        CUresourcetype::PITCH2D => {
            let (texels, [width, height, pitch]) = (texels()?, [a, b, c]);
            let row = width.checked_mul(texels.bytes().into()).ok_or(invalid)?;
            let fits =
                [width, height, pitch].iter().zip(MAX_PITCHED).all(|(&is, max)| (1..=max).contains(&is));
            if !fits || row > pitch || !pitch.is_multiple_of(PITCH_ALIGN) {
                log::misuse(&format_args!(
                    "a texture of {width} × {height} texels with rows {pitch} bytes apart: there are {MAX_PITCHED:?} \
                     at most, and rows are multiples of {PITCH_ALIGN} bytes apart"
                ));
                return Err(invalid);
            }
            there(pitch * (height - 1) + row)?;
            Ok(Image::pitched(address, (width as u32, height as u32), pitch, texels))
        }
        _ => Err(invalid),
    }
}

/// The format of a resource view; that of the resource for 0.
fn view_format(view: c_int, own: TexelFormat) -> Result<TexelFormat> {
    use Channel::*;
    // Each with 1, 2 and 4 channels, in this order.
    const CHANNELS: [Channel; 8] = [U8, S8, U16, S16, U32, S32, F16, F32];
    match view {
        0 => Ok(own),
        1..=24 => {
            let index = view as usize - 1;
            Ok(TexelFormat { channel: CHANNELS[index / 3], channels: 1 << (index % 3) })
        }
        _ => {
            log::misuse(&format_args!("the view format {view} is not supported: compressed formats are not"));
            Err(Status::NOT_SUPPORTED)
        }
    }
}

/// An image as a resource view sees it.
fn viewed(image: &Image, view: &CUDA_RESOURCE_VIEW_DESC) -> Result<Image> {
    let (levels, layers) = (view.firstMipmapLevel..=view.lastMipmapLevel, view.firstLayer..=view.lastLayer);
    let format = view_format(view.format, image.format())?;
    let seen = image.view(image.geometry(), format, levels, layers).ok_or(Status::INVALID_VALUE)?;
    let level = seen.levels()[0];
    let depth = if image.geometry() == Geometry::D3 { level.slices as usize } else { view.depth };
    let one_row = matches!(image.geometry(), Geometry::D1 | Geometry::A1D);
    let height = if one_row { view.height } else { level.height as usize };
    if (view.width, view.height, view.depth) != (level.width as usize, height, depth) {
        return Err(Status::INVALID_VALUE);
    }
    Ok(seen)
}

/// How a texture is sampled, by its description.
pub(super) fn sampler(
    desc: &CUDA_TEXTURE_DESC,
    resource: &CUDA_RESOURCE_DESC,
    image: &Image,
) -> Result<Sampler> {
    let known =
        READ_AS_INTEGER | NORMALIZED_COORDINATES | SRGB | DISABLE_TRILINEAR_OPTIMIZATION | SEAMLESS_CUBEMAP;
    let filter = |mode: CUfilter_mode| -> Result<Filter> {
        mode.check()?;
        Ok(if mode == CUfilter_mode::LINEAR { Filter::Linear } else { Filter::Point })
    };
    let address = |mode: CUaddress_mode| match mode {
        CUaddress_mode::WRAP => Ok(AddressMode::Wrap),
        CUaddress_mode::CLAMP => Ok(AddressMode::Clamp),
        CUaddress_mode::MIRROR => Ok(AddressMode::Mirror),
        CUaddress_mode::BORDER => Ok(AddressMode::Border),
        _ => Err(Status::INVALID_VALUE),
    };
    if desc.flags & !known != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let is_cube = matches!(image.geometry(), Geometry::Cube | Geometry::ACube);
    if desc.flags & SEAMLESS_CUBEMAP != 0 && is_cube && desc.filterMode == CUfilter_mode::LINEAR {
        log::misuse(
            &"linear filtering across the edges of a cube (`CU_TRSF_SEAMLESS_CUBEMAP`) is not supported",
        );
        return Err(Status::NOT_SUPPORTED);
    }
    if desc.maxAnisotropy > 1 {
        log::note(
            &"anisotropic filtering is not simulated: the texture is filtered as with an anisotropy of 1",
        );
    }
    // A line of linear memory is neither filtered nor repeated, whatever the description says.
    let is_line = resource.resType == CUresourcetype::LINEAR;
    let [x, y, z] = if is_line { [CUaddress_mode::BORDER; 3] } else { desc.addressMode };
    let filter_mode = if is_line { CUfilter_mode::POINT } else { desc.filterMode };
    let channel = image.format().channel;
    let reads_normalized = desc.flags & READ_AS_INTEGER == 0 && channel.is_normalizable();
    let integers = !channel.is_float() && !reads_normalized;
    // Where integers are read, the border colour is an integer too.
    let border = desc.borderColor.map(|color| match integers {
        true if matches!(channel, Channel::U8 | Channel::U16 | Channel::U32) => color as u32,
        true => color as i32 as u32,
        false => color.to_bits(),
    });
    Ok(Sampler {
        address: [address(x)?, address(y)?, address(z)?],
        filter: filter(filter_mode)?,
        mip_filter: filter(desc.mipmapFilterMode)?,
        normalized: desc.flags & NORMALIZED_COORDINATES != 0 && !is_line,
        reads_normalized,
        srgb: desc.flags & SRGB != 0,
        border,
        level_bias: desc.mipmapLevelBias,
        levels: [desc.minMipmapLevelClamp, desc.maxMipmapLevelClamp],
    })
}

/// What a surface of an array is of.
pub(super) fn surface_image(handle: CUarray) -> Result<Image> {
    let array = array(handle)?;
    if array.descriptor.Flags & flags::SURFACE_LDST == 0 {
        log::misuse(&"a surface is of an array that was created with `CUDA_ARRAY3D_SURFACE_LDST`");
        return Err(Status::INVALID_VALUE);
    }
    Ok(array.array.image().clone())
}

fn is_texture(kind: &ObjectKind) -> bool {
    matches!(kind, ObjectKind::Texture { .. })
}

fn is_surface(kind: &ObjectKind) -> bool {
    matches!(kind, ObjectKind::Surface { .. })
}

fn object(handle: u64, wanted: fn(&ObjectKind) -> bool) -> Result<Arc<crate::engine::Object>> {
    here()?;
    OBJECTS.get(handle, wanted)
}

/// Destroys an object when the device has nothing to do.
fn destroy(handle: u64, wanted: fn(&ObjectKind) -> bool) -> Result<()> {
    let (context, engine) = here()?;
    OBJECTS.get(handle, wanted)?;
    settle(engine.ordinal)?;
    OBJECTS.remove(handle);
    context.check()
}

entries! {
    /// Creates a texture.
    fn cuTexObjectCreate(
        made: Out<CUtexObject>, resource: In<CUDA_RESOURCE_DESC>, sampling: In<CUDA_TEXTURE_DESC>,
        view: In<CUDA_RESOURCE_VIEW_DESC>,
    ) {
        let (context, engine) = here()?;
        made.required()?;
        let (resource, sampling, view) = (resource.get()?, sampling.get()?, view.get_if());
        let whole = image(&resource)?;
        let seen = match &view {
            Some(view) => viewed(&whole, view)?,
            None => whole,
        };
        let sampler = sampler(&sampling, &resource, &seen)?;
        made.set(OBJECTS.texture(&engine, &context, (seen, sampler), resource, (sampling, view))?)
    }

    /// Destroys a texture.
    fn cuTexObjectDestroy(handle: CUtexObject) {
        destroy(handle, is_texture)
    }

    /// Returns what a texture is of.
    fn cuTexObjectGetResourceDesc(resource: Out<CUDA_RESOURCE_DESC>, handle: CUtexObject) {
        resource.set(object(handle, is_texture)?.resource)
    }

    /// Returns how a texture is sampled.
    fn cuTexObjectGetTextureDesc(to: Out<CUDA_TEXTURE_DESC>, handle: CUtexObject) {
        match &object(handle, is_texture)?.kind {
            ObjectKind::Texture { described, .. } => to.set(described.0),
            ObjectKind::Surface { .. } => Err(Status::INVALID_VALUE),
        }
    }

    /// Returns how a texture sees its array, if it was made with a view.
    fn cuTexObjectGetResourceViewDesc(to: Out<CUDA_RESOURCE_VIEW_DESC>, handle: CUtexObject) {
        match &object(handle, is_texture)?.kind {
            ObjectKind::Texture { described, .. } => to.set(described.1.ok_or(Status::INVALID_VALUE)?),
            ObjectKind::Surface { .. } => Err(Status::INVALID_VALUE),
        }
    }

    /// Creates a surface of an array.
    fn cuSurfObjectCreate(made: Out<CUsurfObject>, resource: In<CUDA_RESOURCE_DESC>) {
        let (context, engine) = here()?;
        made.required()?;
        let resource = resource.get()?;
        if resource.resType != CUresourcetype::ARRAY {
            log::misuse(&"a surface is of an array; a level of a mipmapped array is one");
            return Err(Status::INVALID_VALUE);
        }
        let image = surface_image(CUarray(resource.res[0] as usize))?;
        made.set(OBJECTS.surface(&engine, &context, image, resource)?)
    }

    /// Destroys a surface.
    fn cuSurfObjectDestroy(handle: CUsurfObject) {
        destroy(handle, is_surface)
    }

    /// Returns what a surface is of.
    fn cuSurfObjectGetResourceDesc(resource: Out<CUDA_RESOURCE_DESC>, handle: CUsurfObject) {
        resource.set(object(handle, is_surface)?.resource)
    }
}
