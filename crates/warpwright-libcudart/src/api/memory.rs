//! Memory of devices and of the host.

use super::{entries, forward};
use crate::abi::{Extent, Handle, Out, PitchedPtr, PointerAttributes, Stream};
use crate::driver::driver;
use crate::error::{Error, Result};
use crate::state::major;
use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;

/// The alignment of rows for which the driver pads them, in bytes.
const ELEMENT: c_uint = 16;

/// Allocates rows: address and pitch in bytes.
fn rows(width: usize, height: usize) -> Result<(Handle, usize)> {
    let (mut address, mut pitch): (Handle, usize) = (null_mut(), 0);
    if width > 0 && height > 0 {
        driver!(cuMemAllocPitch_v2(&raw mut address, &raw mut pitch, width, height, ELEMENT))?;
    }
    Ok((address, pitch))
}

/// The kinds of memory: `cudaMemoryType`.
const UNREGISTERED: c_int = 0;
const MANAGED: c_int = 3;

/// The device of memory that has none: `cudaInvalidDeviceId`.
const NO_DEVICE: c_int = -2;

entries! {
    /// Allocates memory of the device; none for 0 bytes.
    fn cudaMalloc(address: Out<Handle>, bytes: usize) {
        match bytes {
            0 => address.set(null_mut()),
            _ => driver!(cuMemAlloc_v2(address.required()?, bytes)),
        }
    }

    /// Frees memory of the device.
    fn cudaFree(address: Handle) {
        if address.is_null() { Ok(()) } else { driver!(cuMemFree_v2(address)) }
    }

    /// Allocates pinned memory; none for 0 bytes.
    fn cudaMallocHost(address: Out<Handle>, bytes: usize) {
        match bytes {
            0 => address.set(null_mut()),
            _ => driver!(cuMemAllocHost_v2(address.required()?, bytes)),
        }
    }

    /// Allocates pinned memory with flags; none for 0 bytes.
    fn cudaHostAlloc(address: Out<Handle>, bytes: usize, flags: c_uint) {
        match bytes {
            0 => address.set(null_mut()),
            _ => driver!(cuMemHostAlloc(address.required()?, bytes, flags)),
        }
    }

    /// Frees pinned memory.
    fn cudaFreeHost(address: Handle) {
        if address.is_null() { Ok(()) } else { driver!(cuMemFreeHost(address)) }
    }

    /// Allocates rows of `width` bytes, each from an aligned address on.
    fn cudaMallocPitch(address: Out<Handle>, pitch: Out<usize>, width: usize, height: usize) {
        address.required()?;
        pitch.required()?;
        let (rows, bytes) = rows(width, height)?;
        address.set(rows)?;
        pitch.set(bytes)
    }

    /// Allocates slices of rows of `extent.width` bytes.
    fn cudaMalloc3D(memory: Out<PitchedPtr>, extent: Extent) {
        memory.required()?;
        let height = extent.height.checked_mul(extent.depth).ok_or(Error::INVALID_VALUE)?;
        let (pointer, pitch) = rows(extent.width, height)?;
        memory.set(PitchedPtr { pointer, pitch, xsize: extent.width, ysize: extent.height })
    }

    /// Returns what an address is.
    fn cudaPointerGetAttributes(attributes: Out<PointerAttributes>, address: Handle) {
        attributes.required()?;
        let (mut kind, mut is_managed, mut device) = (0 as c_uint, 0 as c_uint, NO_DEVICE);
        let (mut on_device, mut on_host): (Handle, Handle) = (null_mut(), null_mut());
        // The kind, whether it is managed, the device, the addresses on the device and on the host.
        let mut asked: [c_int; 5] = [2, 8, 9, 3, 4];
        let mut values: [Handle; 5] = [
            (&raw mut kind).cast(),
            (&raw mut is_managed).cast(),
            (&raw mut device).cast(),
            (&raw mut on_device).cast(),
            (&raw mut on_host).cast(),
        ];
        driver!(cuPointerGetAttributes(5u32, asked.as_mut_ptr(), values.as_mut_ptr(), address))?;
        let found = match kind {
            0 => PointerAttributes {
                kind: UNREGISTERED,
                device: NO_DEVICE,
                device_pointer: null_mut(),
                host_pointer: address,
            },
            _ => PointerAttributes {
                kind: if is_managed != 0 { MANAGED } else { kind.cast_signed() },
                device,
                device_pointer: on_device,
                host_pointer: on_host,
            },
        };
        attributes.set(found)?;
        if major() >= 13 {
            // What the structure has since is reserved.
            // SAFETY: the structure has as much behind these fields.
            unsafe { attributes.at(1).cast::<[u8; 64]>() }.set([0; 64])?;
        }
        Ok(())
    }
}

forward! {
    cudaMallocManaged(address: Out<Handle>, bytes: usize, flags: c_uint) = cuMemAllocManaged(address, bytes, flags);
    cudaMemGetInfo(free: Out<usize>, total: Out<usize>) = cuMemGetInfo_v2(free, total);
    cudaHostGetDevicePointer(on_device: Out<Handle>, on_host: Handle, flags: c_uint) =
        cuMemHostGetDevicePointer_v2(on_device, on_host, flags);
    cudaHostGetFlags(flags: Out<c_uint>, address: Handle) = cuMemHostGetFlags(flags, address);
    cudaHostRegister(address: Handle, bytes: usize, flags: c_uint) = cuMemHostRegister_v2(address, bytes, flags);
    cudaHostUnregister(address: Handle) = cuMemHostUnregister(address);
    cudaMallocAsync, cudaMallocAsync_ptsz |default| (address: Out<Handle>, bytes: usize, stream: Stream) =
        cuMemAllocAsync(address, bytes, default.resolve(stream));
    cudaFreeAsync, cudaFreeAsync_ptsz |default| (address: Handle, stream: Stream) =
        cuMemFreeAsync(address, default.resolve(stream));
    cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz |default| (
        address: Out<Handle>, bytes: usize, pool: Handle, stream: Stream
    ) = cuMemAllocFromPoolAsync(address, bytes, pool, default.resolve(stream));
}
