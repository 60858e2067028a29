//! Arrays.

use super::entries;
use super::memory::here;
use crate::engine::{ClientArray, ClientMipmappedArray, array, array_flags as flags, mipmapped_array};
use crate::graph::guard;
use crate::report::log;
use crate::types::*;
use std::ffi::{c_int, c_uint};
use warpwright_ptx::op::texture::Geometry;
use warpwright_vm::{ArrayShape, Channel, TexelFormat};

/// The format of texels.
pub(super) fn format(channel: CUarray_format, channels: c_uint) -> Result<TexelFormat> {
    let channel = match channel {
        CUarray_format::UNSIGNED_INT8 => Channel::U8,
        CUarray_format::UNSIGNED_INT16 => Channel::U16,
        CUarray_format::UNSIGNED_INT32 => Channel::U32,
        CUarray_format::SIGNED_INT8 => Channel::S8,
        CUarray_format::SIGNED_INT16 => Channel::S16,
        CUarray_format::SIGNED_INT32 => Channel::S32,
        CUarray_format::HALF => Channel::F16,
        CUarray_format::FLOAT => Channel::F32,
        CUarray_format(other) => {
            log::misuse(&format_args!(
                "the array format {other:#x} is not supported: integers of 8, 16 and 32 bits, `HALF` and `FLOAT` are"
            ));
            return Err(Status::INVALID_VALUE);
        }
    };
    if matches!(channels, 1 | 2 | 4) {
        Ok(TexelFormat { channel, channels })
    } else {
        Err(Status::INVALID_VALUE)
    }
}

/// Flags that change nothing here.
const WITHOUT_EFFECT: c_uint = flags::SURFACE_LDST | flags::TEXTURE_GATHER | flags::COLOR_ATTACHMENT;

/// The shape of an array by its description: a height or a depth of 0 means that there is no such dimension.
fn shape(descriptor: &CUDA_ARRAY3D_DESCRIPTOR, levels: Option<c_uint>) -> Result<ArrayShape> {
    let CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth, Format, NumChannels, Flags } = *descriptor;
    let (layered, cube) = (Flags & flags::LAYERED != 0, Flags & flags::CUBEMAP != 0);
    let unknown = Flags & !(flags::LAYERED | flags::CUBEMAP | WITHOUT_EFFECT);
    if unknown != 0 {
        log::misuse(&format_args!("the flags {unknown:#x} of an array are not supported"));
        return Err(Status::NOT_SUPPORTED);
    }
    let geometry = match (layered, cube, Height, Depth) {
        (true, true, ..) => Geometry::ACube,
        (false, true, ..) => Geometry::Cube,
        (true, _, 0, _) => Geometry::A1D,
        (true, ..) => Geometry::A2D,
        (_, _, 0, 0) => Geometry::D1,
        (_, _, _, 0) => Geometry::D2,
        _ => Geometry::D3,
    };
    let needs_depth = layered || cube;
    if Width == 0 || needs_depth && Depth == 0 || geometry == Geometry::D3 && Height == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let max = max_extents(geometry);
    let extents = [Width, Height, Depth];
    if extents.iter().zip(max).any(|(&extent, max)| extent > max as usize) {
        log::misuse(&format_args!(
            "an array of {extents:?} texels is larger than {max:?}, the most of `{geometry}`"
        ));
        return Err(Status::INVALID_VALUE);
    }
    let extent = |n: usize| (n as u32).max(1);
    let mut shape = ArrayShape {
        geometry,
        width: Width as u32,
        height: extent(Height),
        slices: extent(Depth),
        levels: None,
        format: format(Format, NumChannels)?,
    };
    // More levels than there are halves are those that there are.
    shape.levels = levels.map(|levels| levels.min(shape.max_levels()));
    Ok(shape)
}

/// The most texels of each dimension, or layers, of an array: what the attributes of devices say.
fn max_extents(geometry: Geometry) -> [u32; 3] {
    match geometry {
        Geometry::D1 => [131_072, 0, 0],
        Geometry::D2 => [131_072, 65_536, 0],
        Geometry::D3 => [16_384, 16_384, 16_384],
        Geometry::A1D => [32_768, 0, 2048],
        Geometry::A2D => [32_768, 32_768, 2048],
        Geometry::Cube => [32_768, 32_768, 6],
        _ => [32_768, 32_768, 2046],
    }
}

fn create(descriptor: CUDA_ARRAY3D_DESCRIPTOR) -> Result<CUarray> {
    let (context, engine) = here()?;
    guard::may_wait()?;
    ClientArray::create(&engine, &context, descriptor, shape(&descriptor, None)?)
}

/// Waits until no operation of the device uses what is to be destroyed.
pub(super) fn settle(ordinal: CUdevice) -> Result<()> {
    guard::may_wait()?;
    let engines = crate::engine::engines()?;
    engines.iter().filter(|engine| engine.ordinal == ordinal).for_each(|engine| engine.drain());
    Ok(())
}

entries! {
    /// Creates an array of one or two dimensions.
    fn cuArrayCreate_v2(made: Out<CUarray>, descriptor: In<CUDA_ARRAY_DESCRIPTOR>) {
        made.required()?;
        let CUDA_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels } = descriptor.get()?;
        made.set(create(CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth: 0, Format, NumChannels, Flags: 0 })?)
    }

    /// Creates an array.
    fn cuArray3DCreate_v2(made: Out<CUarray>, descriptor: In<CUDA_ARRAY3D_DESCRIPTOR>) {
        made.required()?.set(create(descriptor.get()?)?)
    }

    /// Returns what an array is made of, without its depth.
    fn cuArrayGetDescriptor_v2(descriptor: Out<CUDA_ARRAY_DESCRIPTOR>, handle: CUarray) {
        here()?;
        let CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Format, NumChannels, .. } = array(handle)?.descriptor;
        descriptor.set(CUDA_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels })
    }

    /// Returns what an array is made of.
    fn cuArray3DGetDescriptor_v2(descriptor: Out<CUDA_ARRAY3D_DESCRIPTOR>, handle: CUarray) {
        here()?;
        descriptor.set(array(handle)?.descriptor)
    }

    /// Frees an array, when the device has nothing to do.
    fn cuArrayDestroy(handle: CUarray) {
        let (context, _) = here()?;
        settle(array(handle)?.ordinal)?;
        ClientArray::destroy(handle)?;
        context.check()
    }

    /// Creates an array with levels.
    fn cuMipmappedArrayCreate(
        made: Out<CUmipmappedArray>, descriptor: In<CUDA_ARRAY3D_DESCRIPTOR>, levels: c_uint,
    ) {
        made.required()?;
        let descriptor = descriptor.get()?;
        let (context, engine) = here()?;
        guard::may_wait()?;
        let shape = shape(&descriptor, Some(levels.max(1)))?;
        made.set(ClientMipmappedArray::create(&engine, &context, descriptor, shape)?)
    }

    /// Returns a level of an array: an array that exists as long as that one.
    fn cuMipmappedArrayGetLevel(level: Out<CUarray>, handle: CUmipmappedArray, number: c_uint) {
        here()?;
        level.set(mipmapped_array(handle)?.level(number)?)
    }

    /// Frees an array with its levels, when the device has nothing to do.
    fn cuMipmappedArrayDestroy(handle: CUmipmappedArray) {
        let (context, _) = here()?;
        settle(mipmapped_array(handle)?.array.ordinal)?;
        ClientMipmappedArray::destroy(handle)?;
        context.check()
    }

    /// The most texels of a texture of linear memory.
    fn cuDeviceGetTexture1DLinearMaxWidth(
        width: Out<usize>, channel: CUarray_format, channels: c_uint, device: CUdevice,
    ) {
        crate::state::state()?.device(device)?;
        let bytes = format(channel, channels)?.bytes() as usize;
        width.set(super::texture::MAX_LINEAR.min((c_int::MAX as usize + 1) / bytes))
    }
}
