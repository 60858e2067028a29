//! Arrays: their formats, and what they are.

use super::{entries, forward};
use crate::abi::{ChannelDesc, DriverArray, Extent, Handle, In, Out};
use crate::driver::driver;
use crate::error::{Error, Result};
use std::ffi::{c_int, c_uint};

/// The kinds of channels: `cudaChannelFormatKind`.
const SIGNED: c_int = 0;
const UNSIGNED: c_int = 1;
const FLOAT: c_int = 2;

/// The driver's formats of channels, with kind and bits: `CUarray_format`.
const FORMATS: [(c_uint, c_int, c_int); 8] = [
    (0x01, UNSIGNED, 8),
    (0x02, UNSIGNED, 16),
    (0x03, UNSIGNED, 32),
    (0x08, SIGNED, 8),
    (0x09, SIGNED, 16),
    (0x0a, SIGNED, 32),
    (0x10, FLOAT, 16),
    (0x20, FLOAT, 32),
];

/// The formats whose kind says bits and number of channels: kind of the runtime, format of the driver, bits, channels.
const NORMALIZED: [(c_int, c_uint, c_int, c_uint); 12] = [
    (5, 0xc0, 8, 1),
    (6, 0xc1, 8, 2),
    (7, 0xc2, 8, 4),
    (8, 0xc3, 16, 1),
    (9, 0xc4, 16, 2),
    (10, 0xc5, 16, 4),
    (11, 0xc6, 8, 1),
    (12, 0xc7, 8, 2),
    (13, 0xc8, 8, 4),
    (14, 0xc9, 16, 1),
    (15, 0xca, 16, 2),
    (16, 0xcb, 16, 4),
];

/// The driver's format and number of channels.
pub(super) fn format(channels: ChannelDesc) -> Result<(c_uint, c_uint)> {
    let bits = [channels.x, channels.y, channels.z, channels.w];
    let count = bits.iter().take_while(|bits| **bits != 0).count();
    if let Some(row) = NORMALIZED.iter().find(|row| row.0 == channels.kind) {
        return Ok((row.1, row.3));
    }
    let are_alike = count > 0 && count != 3 && bits[..count].iter().all(|one| *one == bits[0]);
    let are_alike = are_alike && bits[count..].iter().all(|one| *one == 0);
    let found = FORMATS.iter().find(|row| (row.1, row.2) == (channels.kind, channels.x));
    match found {
        Some(row) if are_alike => Ok((row.0, count as c_uint)),
        _ => Err(Error::INVALID_CHANNEL_DESCRIPTOR),
    }
}

/// The channels of a driver's format.
pub(super) fn channels(format: c_uint, count: c_uint) -> Result<ChannelDesc> {
    let normalized = NORMALIZED.iter().find(|row| row.1 == format);
    let plain = FORMATS.iter().find(|row| row.0 == format);
    let (kind, bits, count) = match (normalized, plain) {
        (Some(row), _) => (row.0, row.2, row.3),
        (None, Some(row)) => (row.1, row.2, count),
        (None, None) => return Err(Error::NOT_SUPPORTED),
    };
    let of = |channel: c_uint| if channel < count { bits } else { 0 };
    Ok(ChannelDesc { x: of(0), y: of(1), z: of(2), w: of(3), kind })
}

/// What an array is.
pub(super) fn describe(array: Handle) -> Result<DriverArray> {
    let mut found = DriverArray::zeroed();
    driver!(cuArray3DGetDescriptor_v2(&raw mut found, array))?;
    Ok(found)
}

/// The bytes of an element of an array.
pub(super) fn element_bytes(array: &DriverArray) -> Result<usize> {
    let channels = channels(array.format, array.channels)?;
    let bits = channels.x + channels.y + channels.z + channels.w;
    Ok(usize::try_from(bits).unwrap_or(0) / 8)
}

/// The driver's description of a new array.
fn descriptor(desc: In<ChannelDesc>, extent: Extent, flags: c_uint) -> Result<DriverArray> {
    let (format, channels) = format(desc.get()?)?;
    let Extent { width, height, depth } = extent;
    Ok(DriverArray { width, height, depth, format, channels, flags })
}

entries! {
    /// Allocates an array of one or two dimensions.
    fn cudaMallocArray(array: Out<Handle>, desc: In<ChannelDesc>, width: usize, height: usize, flags: c_uint) {
        let array = array.required()?;
        let wanted = descriptor(desc, Extent { width, height, depth: 0 }, flags)?;
        driver!(cuArray3DCreate_v2(array, &raw const wanted))
    }

    /// Allocates an array of up to three dimensions, or with layers.
    fn cudaMalloc3DArray(array: Out<Handle>, desc: In<ChannelDesc>, extent: Extent, flags: c_uint) {
        let array = array.required()?;
        let wanted = descriptor(desc, extent, flags)?;
        driver!(cuArray3DCreate_v2(array, &raw const wanted))
    }

    /// Allocates an array with levels of detail.
    fn cudaMallocMipmappedArray(
        array: Out<Handle>,
        desc: In<ChannelDesc>,
        extent: Extent,
        levels: c_uint,
        flags: c_uint,
    ) {
        let array = array.required()?;
        let wanted = descriptor(desc, extent, flags)?;
        driver!(cuMipmappedArrayCreate(array, &raw const wanted, levels))
    }

    /// Frees an array.
    fn cudaFreeArray(array: Handle) {
        if array.is_null() { Ok(()) } else { driver!(cuArrayDestroy(array)) }
    }

    /// Frees an array with levels of detail.
    fn cudaFreeMipmappedArray(array: Handle) {
        if array.is_null() { Ok(()) } else { driver!(cuMipmappedArrayDestroy(array)) }
    }

    /// Returns channels, size and flags of an array, each if the client wants it.
    fn cudaArrayGetInfo(desc: Out<ChannelDesc>, extent: Out<Extent>, flags: Out<c_uint>, array: Handle) {
        let found = describe(array)?;
        desc.set_if(channels(found.format, found.channels)?);
        extent.set_if(Extent { width: found.width, height: found.height, depth: found.depth });
        flags.set_if(found.flags);
        Ok(())
    }

    /// Returns the channels of an array.
    fn cudaGetChannelDesc(desc: Out<ChannelDesc>, array: Handle) {
        let found = describe(array)?;
        desc.set(channels(found.format, found.channels)?)
    }

    /// Returns the bytes that an array takes on a device, and their alignment.
    fn cudaArrayGetMemoryRequirements(requirements: Handle, array: Handle, device: c_int) {
        driver!(cuArrayGetMemoryRequirements(requirements, array, crate::state::handle(device)?))
    }

    /// Returns the bytes that an array with levels of detail takes on a device, and their alignment.
    fn cudaMipmappedArrayGetMemoryRequirements(requirements: Handle, array: Handle, device: c_int) {
        driver!(cuMipmappedArrayGetMemoryRequirements(requirements, array, crate::state::handle(device)?))
    }
}

forward! {
    cudaGetMipmappedArrayLevel(level_array: Out<Handle>, array: Handle, level: c_uint) =
        cuMipmappedArrayGetLevel(level_array, array, level);
    cudaArrayGetPlane(plane_array: Out<Handle>, array: Handle, plane: c_uint) =
        cuArrayGetPlane(plane_array, array, plane);
    cudaArrayGetSparseProperties(properties: Handle, array: Handle) = cuArrayGetSparseProperties(properties, array);
    cudaMipmappedArrayGetSparseProperties(properties: Handle, array: Handle) =
        cuMipmappedArrayGetSparseProperties(properties, array);
}

/// Makes a description of channels.
#[unsafe(no_mangle)]
pub extern "C" fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelDesc {
    ChannelDesc { x, y, z, w, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_channels_are_inverse() {
        let plain = FORMATS.iter().flat_map(|row| [1, 2, 4].map(|count| (row.0, count)));
        let normalized = NORMALIZED.iter().map(|row| (row.1, row.3));
        for (driver, count) in plain.chain(normalized) {
            let channels = channels(driver, count).unwrap();
            assert_eq!(format(channels), Ok((driver, count)), "{channels:?}");
        }
    }

    #[test]
    fn channels_must_be_alike() {
        let of = |x, y, z, w, kind| format(ChannelDesc { x, y, z, w, kind });
        for wrong in
            [of(0, 0, 0, 0, 0), of(8, 16, 0, 0, 0), of(8, 8, 8, 0, 1), of(8, 0, 8, 0, 1), of(8, 0, 0, 0, 2)]
        {
            assert_eq!(wrong, Err(Error::INVALID_CHANNEL_DESCRIPTOR));
        }
    }
}
