//! Multicast objects, whose addresses `multimem` instructions take.

use super::entries;
use super::virtual_memory::permitted;
use crate::engine::{GRANULARITY, Multicast, PHYSICAL, Physical, reservations};
use crate::graph::guard;
use crate::report::log;
use crate::state::{state, supports_multicast};
use crate::types::{
    CUdevice, CUdeviceptr, CUmemAllocationHandleType, CUmemGenericAllocationHandle,
    CUmulticastGranularity_flags, CUmulticastObjectProp, In, Out, Result, Status,
};
use std::ffi::c_ulonglong;
use std::sync::Arc;

/// Checks that properties are those of an object that there can be.
fn check(prop: &CUmulticastObjectProp) -> Result<()> {
    let file = CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR.0 as c_ulonglong;
    let is_size = prop.size > 0 && (prop.size as u64).is_multiple_of(GRANULARITY);
    if prop.numDevices == 0 || prop.flags != 0 || !is_size {
        log::misuse(&format_args!(
            "a multicast object of {} devices and {} bytes with flags {:#x}: it has one device, a multiple of {GRANULARITY} \
             bytes, and no flags",
            prop.numDevices, prop.size, prop.flags
        ));
        return Err(Status::INVALID_VALUE);
    }
    if prop.numDevices > 1 {
        log::misuse(&format_args!(
            "a multicast object of {} devices: virtual GPUs do not access one another's memory, so that it can have one",
            prop.numDevices
        ));
        return Err(Status::NOT_SUPPORTED);
    }
    if prop.handleTypes & !file != 0 {
        log::misuse(&"multicast objects of virtual GPUs have POSIX file descriptors alone");
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(())
}

/// What a function does with a multicast object.
fn with<T>(handle: CUmemGenericAllocationHandle, act: impl FnOnce(&Multicast) -> Result<T>) -> Result<T> {
    permitted()?;
    act(PHYSICAL.get(handle.0)?.memory.multicast()?)
}

/// Physical memory, and an offset in it.
type Bytes = (Arc<Physical>, u64);

fn of_handle(memory: CUmemGenericAllocationHandle, offset: usize) -> Result<Bytes> {
    Ok((PHYSICAL.get(memory.0)?.memory.physical()?.clone(), offset as u64))
}

fn of_address(address: CUdeviceptr) -> Result<Bytes> {
    let mapped = reservations().find(address).and_then(|found| found.mapped(address));
    let Some(mapped) = mapped else {
        log::misuse(&format_args!(
            "no memory of `cuMemCreate` is mapped at {address:#x}: other memory, that of pools too, is not bound"
        ));
        return Err(Status::INVALID_VALUE);
    };
    Ok((mapped.memory.physical()?.clone(), address - mapped.base))
}

/// Binds memory of the device, which may be given.
fn bind(
    handle: CUmemGenericAllocationHandle,
    device: Option<CUdevice>,
    at: usize,
    memory: impl FnOnce() -> Result<Bytes>,
    bytes: usize,
    flags: c_ulonglong,
) -> Result<()> {
    with(handle, |object| {
        let (physical, offset) = memory()?;
        if flags != 0 {
            log::misuse(&format_args!("memory is bound with flags {flags:#x}: there are none"));
            return Err(Status::INVALID_VALUE);
        }
        if let Some(device) = device
            && state()?.device(device)?.ordinal != object.device()?
        {
            return Err(Status::INVALID_DEVICE);
        }
        object.bind(at as u64, physical, offset, bytes as u64)
    })
}

entries! {
    /// Creates a multicast object, to which the device must be added.
    fn cuMulticastCreate(handle: Out<CUmemGenericAllocationHandle>, prop: In<CUmulticastObjectProp>) {
        permitted()?;
        handle.required()?;
        let prop = prop.get()?;
        check(&prop)?;
        handle.set(CUmemGenericAllocationHandle(Multicast::create(prop.size as u64, prop.handleTypes != 0)?))
    }

    /// Adds the device to a multicast object.
    fn cuMulticastAddDevice(handle: CUmemGenericAllocationHandle, device: CUdevice) {
        with(handle, |object| {
            let device = state()?.device(device)?;
            if !supports_multicast(device.arch()) {
                log::misuse(&format_args!(
                    "sm_{} has no multicast objects: sm_90, sm_100 and sm_103 have", device.arch().sm
                ));
                return Err(Status::NOT_SUPPORTED);
            }
            // It gets to know what is mapped.
            device.engine()?;
            object.add(device.ordinal)
        })
    }

    /// Binds physical memory, from an offset on, to a part of a multicast object.
    fn cuMulticastBindMem(
        handle: CUmemGenericAllocationHandle, at: usize, memory: CUmemGenericAllocationHandle, offset: usize,
        bytes: usize, flags: c_ulonglong
    ) {
        bind(handle, None, at, || of_handle(memory, offset), bytes, flags)
    }

    /// The same with the device that the memory is of.
    fn cuMulticastBindMem_v2(
        handle: CUmemGenericAllocationHandle, device: CUdevice, at: usize, memory: CUmemGenericAllocationHandle,
        offset: usize, bytes: usize, flags: c_ulonglong
    ) {
        bind(handle, Some(device), at, || of_handle(memory, offset), bytes, flags)
    }

    /// Binds the memory that is mapped at an address.
    fn cuMulticastBindAddr(
        handle: CUmemGenericAllocationHandle, at: usize, address: CUdeviceptr, bytes: usize, flags: c_ulonglong
    ) {
        bind(handle, None, at, || of_address(address), bytes, flags)
    }

    /// The same with the device that the memory is of.
    fn cuMulticastBindAddr_v2(
        handle: CUmemGenericAllocationHandle, device: CUdevice, at: usize, address: CUdeviceptr, bytes: usize,
        flags: c_ulonglong
    ) {
        bind(handle, Some(device), at, || of_address(address), bytes, flags)
    }

    /// Takes the memory from a part of a multicast object, after all operations are complete.
    fn cuMulticastUnbind(handle: CUmemGenericAllocationHandle, device: CUdevice, at: usize, bytes: usize) {
        guard::may_wait()?;
        with(handle, |object| {
            if state()?.device(device)?.ordinal != object.device()? {
                return Err(Status::INVALID_DEVICE);
            }
            object.unbind(at as u64, bytes as u64)
        })
    }

    /// Returns what sizes and offsets are multiples of, in bytes.
    fn cuMulticastGetGranularity(
        granularity: Out<usize>, prop: In<CUmulticastObjectProp>, which: CUmulticastGranularity_flags
    ) {
        granularity.required()?;
        which.check()?;
        check(&prop.get()?)?;
        granularity.set(GRANULARITY as usize)
    }
}
