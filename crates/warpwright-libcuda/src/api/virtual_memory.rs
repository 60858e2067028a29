//! Virtual memory management: reserved addresses, physical memory, and which is mapped where.

use super::entries;
use crate::engine::{self, GRANULARITY, Mappable, PHYSICAL, Physical, release_physical, reservations};
use crate::graph::guard;
use crate::report::log;
use crate::state::state;
use crate::types::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle,
    CUmemLocation, CUmemLocationType, In, Out, Result, Status,
};
use std::ffi::{c_int, c_ulonglong, c_void};

/// Neither these functions nor those of multicast objects need a context.
pub(super) fn permitted() -> Result<()> {
    engine::permitted()?;
    state().map(drop)
}

/// Checks that properties are those of memory of a device, for this process or for others by file descriptors.
/// Returns the device.
fn device_of(prop: &CUmemAllocationProp) -> Result<i32> {
    prop.kind.check()?;
    if prop.kind != CUmemAllocationType::PINNED {
        return Err(Status::INVALID_VALUE);
    }
    prop.requestedHandleTypes.check()?;
    if !matches!(
        prop.requestedHandleTypes,
        CUmemAllocationHandleType::NONE | CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR
    ) {
        log::misuse(&"physical memory of a virtual GPU is shared by POSIX file descriptors alone");
        return Err(Status::NOT_SUPPORTED);
    }
    prop.location.kind.check()?;
    match prop.location.kind {
        CUmemLocationType::DEVICE => {
            let device = state()?.device(prop.location.id)?;
            Ok(device.ordinal)
        }
        CUmemLocationType::INVALID => Err(Status::INVALID_VALUE),
        _ => {
            log::misuse(
                &"physical memory of a virtual GPU is a device's: memory of the host is not supported",
            );
            Err(Status::NOT_SUPPORTED)
        }
    }
}

fn check_handle_type(kind: CUmemAllocationHandleType) -> Result<()> {
    kind.check()?;
    if kind == CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR { Ok(()) } else { Err(Status::NOT_SUPPORTED) }
}

entries! {
    /// Reserves addresses, at a multiple of `align`, or of the granularity if that is 0; if they are free, from `wish` on.
    fn cuMemAddressReserve(
        address: Out<CUdeviceptr>, bytes: usize, align: usize, wish: CUdeviceptr, flags: c_ulonglong
    ) {
        permitted()?;
        let is_size = bytes > 0 && (bytes as u64).is_multiple_of(GRANULARITY);
        if !is_size || flags != 0 || align != 0 && !align.is_power_of_two() {
            return Err(Status::INVALID_VALUE);
        }
        address.required()?.set(reservations().reserve(bytes as u64, align as u64, wish)?)
    }

    /// Frees reserved addresses, all of them.
    fn cuMemAddressFree(address: CUdeviceptr, bytes: usize) {
        permitted()?;
        reservations().free(address, bytes as u64)
    }

    /// Creates physical memory.
    fn cuMemCreate(
        handle: Out<CUmemGenericAllocationHandle>, bytes: usize, prop: In<CUmemAllocationProp>, flags: c_ulonglong
    ) {
        permitted()?;
        guard::may_wait()?;
        handle.required()?;
        let prop = prop.get()?;
        let ordinal = device_of(&prop)?;
        if bytes == 0 || !(bytes as u64).is_multiple_of(GRANULARITY) || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let is_shareable = prop.requestedHandleTypes != CUmemAllocationHandleType::NONE;
        let engine = state()?.device(ordinal)?.engine()?;
        handle.set(CUmemGenericAllocationHandle(Physical::create(engine, bytes as u64, is_shareable)?))
    }

    /// Releases a handle of physical memory, which stays where it is mapped.
    fn cuMemRelease(handle: CUmemGenericAllocationHandle) {
        permitted()?;
        release_physical(handle.0)
    }

    /// Maps the first bytes of physical memory at reserved addresses. No device may access them yet.
    fn cuMemMap(
        address: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: c_ulonglong
    ) {
        permitted()?;
        if offset != 0 || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        reservations().map(address, bytes as u64, &PHYSICAL.get(handle.0)?.memory)
    }

    /// Unmaps memory, after all operations are complete: of one or several mappings, whole.
    fn cuMemUnmap(address: CUdeviceptr, bytes: usize) {
        permitted()?;
        guard::may_wait()?;
        reservations().unmap(address, bytes as u64)
    }

    /// Sets which devices may access memory of one or several mappings, whole. Devices have no access to one another's.
    fn cuMemSetAccess(address: CUdeviceptr, bytes: usize, access: In<CUmemAccessDesc>, count: usize) {
        permitted()?;
        if count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        for CUmemAccessDesc { location, flags } in access.get_all(count)? {
            flags.check()?;
            if location.kind != CUmemLocationType::DEVICE {
                return Err(Status::INVALID_VALUE);
            }
            let device = state()?.device(location.id)?;
            reservations().set_access(address, bytes as u64, device.ordinal, flags)?;
        }
        Ok(())
    }

    /// Returns the access that a device has to memory at an address.
    fn cuMemGetAccess(flags: Out<c_ulonglong>, location: In<CUmemLocation>, address: CUdeviceptr) {
        permitted()?;
        flags.required()?;
        let location = location.get()?;
        if location.kind != CUmemLocationType::DEVICE {
            return Err(Status::INVALID_VALUE);
        }
        let device = state()?.device(location.id)?;
        let mapped = reservations().find(address).and_then(|found| found.mapped(address));
        let mapped = mapped.ok_or(Status::INVALID_VALUE)?;
        let is_its = mapped.ordinal == device.ordinal;
        let access = if is_its { mapped.access } else { CUmemAccess_flags::NONE };
        flags.set(c_ulonglong::from(access.0.unsigned_abs()))
    }

    /// Returns what sizes and addresses are multiples of, in bytes.
    fn cuMemGetAllocationGranularity(
        granularity: Out<usize>, prop: In<CUmemAllocationProp>, which: CUmemAllocationGranularity_flags
    ) {
        granularity.required()?;
        which.check()?;
        device_of(&prop.get()?)?;
        granularity.set(GRANULARITY as usize)
    }

    /// Returns the properties of physical memory.
    fn cuMemGetAllocationPropertiesFromHandle(
        prop: Out<CUmemAllocationProp>, handle: CUmemGenericAllocationHandle
    ) {
        prop.required()?;
        let found = PHYSICAL.get(handle.0)?;
        let physical = found.memory.physical()?;
        prop.set(CUmemAllocationProp {
            kind: CUmemAllocationType::PINNED,
            requestedHandleTypes: match physical.is_shareable {
                true => CUmemAllocationHandleType::POSIX_FILE_DESCRIPTOR,
                false => CUmemAllocationHandleType::NONE,
            },
            location: CUmemLocation { kind: CUmemLocationType::DEVICE, id: physical.ordinal },
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: [0; 8],
        })
    }

    /// Returns a handle of the physical memory that is mapped at an address, to be released as every handle.
    fn cuMemRetainAllocationHandle(handle: Out<CUmemGenericAllocationHandle>, address: *mut c_void) {
        permitted()?;
        handle.required()?;
        handle.set(CUmemGenericAllocationHandle(reservations().retain(address.addr() as u64)?))
    }

    /// Returns a file descriptor of physical memory, for other processes. It is the client's to close.
    fn cuMemExportToShareableHandle(
        to: Out<c_void>, handle: CUmemGenericAllocationHandle, kind: CUmemAllocationHandleType, flags: c_ulonglong
    ) {
        to.required()?;
        check_handle_type(kind)?;
        let found = PHYSICAL.get(handle.0)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the interface says that handles of this type are file descriptors.
        unsafe { to.cast::<c_int>() }.set(match &found.memory {
            Mappable::Physical(physical) => physical.export()?,
            Mappable::Multicast(object) => object.export()?,
        })
    }

    /// Returns a handle of the physical memory of a file descriptor, which is passed in the place of a pointer and stays
    /// the client's.
    fn cuMemImportFromShareableHandle(
        handle: Out<CUmemGenericAllocationHandle>, from: *mut c_void, kind: CUmemAllocationHandleType
    ) {
        permitted()?;
        handle.required()?;
        check_handle_type(kind)?;
        let file = c_int::try_from(from.addr()).map_err(|_| Status::INVALID_VALUE)?;
        handle.set(CUmemGenericAllocationHandle(engine::import(file)?))
    }
}
