//! Properties of CUDA devices, from the driver's attributes: queried without a context, so that listing devices is
//! cheap.

use super::context::attribute;
use super::error::{CallError, CudaError, check};
use super::library::{self, Library};
use super::sys::{self, CUdevice, CUdevice_attribute as Attribute, CUuuid, Status};
use crate::device::{DeviceInfo, DeviceSpec, Properties};
use std::ffi::{c_char, c_int};
use warpwright_ptx::ir::Arch;

/// How many devices there are.
pub(crate) fn count() -> Result<u32, CudaError> {
    if !library::open()?.has_devices {
        return Ok(0);
    }
    let mut count: c_int = 0;
    // SAFETY: writes the number.
    match check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) }) {
        Err(error) if error.is(Status::NO_DEVICE) => Ok(0),
        result => Ok(result.map(|()| u32::try_from(count).unwrap_or(0))?),
    }
}

/// The device of that number.
pub(crate) fn describe(ordinal: u32) -> Result<DeviceInfo, CudaError> {
    let library = library::open()?;
    let device = device(ordinal)?;
    let ask = |which| Ok::<_, CallError>(attribute(device, which)?.max(0).unsigned_abs());
    let compute_capability = (
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    // In kHz, of two transfers each, and in bits. Some drivers no longer say the clock.
    let clock = ask(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    let width = ask(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
    let bandwidth = u64::from(clock) * 2000 * u64::from(width / 8);
    let mut memory = 0;
    // SAFETY: writes the number.
    check("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut memory, device) })?;
    let properties = Properties {
        name: name(device)?,
        arch: arch(ordinal, compute_capability)?,
        multiprocessors: ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        threads_per_multiprocessor: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        blocks_per_multiprocessor: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        threads_per_block: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        shared_per_multiprocessor: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?
            .into(),
        shared_per_block: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?.into(),
        shared_per_block_optin: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?.into(),
        memory: memory as u64,
        l2_cache: Some(ask(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into()),
        bandwidth: Some(bandwidth).filter(|&bandwidth| bandwidth > 0),
        driver: Some(library.version),
    };
    let (spec, is_virtual) = (DeviceSpec::Cuda(ordinal), library.host_threads(device).is_some());
    let (pci_bus_id, uuid) = (pci_bus_id(device), uuid(device));
    Ok(DeviceInfo { spec, properties, compute_capability, is_virtual, pci_bus_id, uuid })
}

/// The driver's handle of a device.
pub(crate) fn device(ordinal: u32) -> Result<CUdevice, CudaError> {
    let found = count()?;
    let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < found);
    let Some(number) = number else { return Err(CudaError::NoDevice { ordinal, found }) };
    let mut device = 0;
    // SAFETY: writes the handle.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, number) })?;
    Ok(device)
}

/// The architecture that a device is used as: the newest known one that it runs kernels of.
fn arch(ordinal: u32, (major, minor): (u32, u32)) -> Result<Arch, CudaError> {
    let found = major.saturating_mul(10).saturating_add(minor);
    let bases = Arch::all().filter(|&arch| arch == Arch::sm(arch.sm));
    let known = bases.filter(|arch| u32::from(arch.sm) <= found).max_by_key(|arch| arch.sm);
    known.ok_or(CudaError::OldDevice { ordinal, major, minor })
}

fn name(device: CUdevice) -> Result<String, CallError> {
    let mut text: [c_char; 256] = [0; 256];
    // SAFETY: writes at most that many bytes, a zero among them.
    check("cuDeviceGetName", unsafe {
        sys::cuDeviceGetName(text.as_mut_ptr(), text.len() as c_int, device)
    })?;
    Ok(read(&text))
}

fn pci_bus_id(device: CUdevice) -> Option<String> {
    let mut text: [c_char; 32] = [0; 32];
    // SAFETY: writes at most that many bytes, a zero among them.
    let asked = unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as c_int, device) };
    check("cuDeviceGetPCIBusId", asked).ok().map(|()| read(&text))
}

fn uuid(device: CUdevice) -> Option<[u8; 16]> {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: writes the bytes.
    let asked = unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) };
    check("cuDeviceGetUuid", asked).ok().map(|()| uuid.bytes.map(|byte| byte as u8))
}

/// A text that the driver has written, which ends at a zero or with its room.
fn read(text: &[c_char]) -> String {
    // C's characters have a sign on some targets and none on others.
    let bytes: Vec<u8> = text.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Library {
    /// Host threads that run the blocks of a device, where the driver is the virtual GPU's, which says so by a function
    /// of its own; `None` for NVIDIA's.
    pub(crate) fn host_threads(self, device: CUdevice) -> Option<u32> {
        type HostThreads = unsafe extern "C" fn(c_int) -> c_int;
        // SAFETY: the library is there, since `self` is, and a function of that name has that type.
        let threads = unsafe { sys::lookup::<HostThreads>("warpwrightHostThreads\0") }?;
        // SAFETY: takes any number.
        u32::try_from(unsafe { threads(device) }).ok().filter(|&threads| threads > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_used_as_the_newest_architecture_that_it_runs() {
        assert_eq!(arch(0, (9, 0)), Ok(Arch::sm(90)));
        assert_eq!(arch(0, (8, 6)), Ok(Arch::sm(86)));
        assert_eq!(arch(0, (12, 9)), Ok(Arch::sm(121)), "one that nobody knows yet");
        assert_eq!(arch(2, (3, 5)), Err(CudaError::OldDevice { ordinal: 2, major: 3, minor: 5 }));
    }

    #[test]
    fn texts_end_where_the_driver_says_or_where_there_is_no_more_room() {
        assert_eq!(read(&[b'a' as c_char, b'b' as c_char, 0, b'c' as c_char]), "ab");
        assert_eq!(read(&[b'a' as c_char; 3]), "aaa");
    }
}
