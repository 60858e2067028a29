//! Devices.

use super::{entries, forward};
use crate::abi::{ChannelDesc, Handle, In, Out};
use crate::driver::{self, driver};
use crate::error::{Error, Result};
use crate::state::{self, handle};
use std::ffi::{c_char, c_int, c_uint};

/// The flag of a device that maps pinned memory, as all do.
const MAP_HOST: c_uint = 8;
/// The flags that the driver knows.
const FLAGS: c_uint = 0x9f;

/// The number of devices.
pub(super) fn count() -> Result<c_int> {
    driver::initialized()?;
    let mut count: c_int = 0;
    driver!(cuDeviceGetCount(&raw mut count))?;
    if count == 0 { Err(Error::NO_DEVICE) } else { Ok(count) }
}

entries! {
    /// Returns the number of devices.
    bare fn cudaGetDeviceCount(number: Out<c_int>) {
        number.required()?.set(0)?;
        number.set(count()?)
    }

    /// Returns the thread's device.
    bare fn cudaGetDevice(device: Out<c_int>) { device.set(state::device()?) }

    /// Sets the thread's device, and makes its context.
    bare fn cudaSetDevice(device: c_int) { state::enter(device) }

    /// Makes the context of a device, with flags if `options` is 1. The thread keeps its own.
    bare fn cudaInitDevice(device: c_int, flags: c_uint, options: c_uint) {
        let before = state::device()?;
        if options & 1 != 0 {
            driver!(cuDevicePrimaryCtxSetFlags_v2(handle(device)?, flags & FLAGS & !MAP_HOST))?;
        }
        state::enter(device)?;
        state::enter(before)
    }

    /// Says which devices the runtime may choose from. A thread's device is 0 until it sets another, so only a list
    /// that begins with 0 has no effect.
    bare fn cudaSetValidDevices(devices: In<c_int>, length: c_int) {
        let length = usize::try_from(length).map_err(|_| Error::INVALID_VALUE)?;
        let devices = devices.get_all(length)?;
        devices.iter().try_for_each(|&device| handle(device).map(drop))?;
        match devices.first() {
            None | Some(0) => Ok(()),
            Some(_) => Err(Error::NOT_SUPPORTED),
        }
    }

    /// Sets the flags of the thread's device, such as how it waits.
    bare fn cudaSetDeviceFlags(flags: c_uint) {
        if flags & !FLAGS != 0 {
            return Err(Error::INVALID_VALUE);
        }
        driver!(cuDevicePrimaryCtxSetFlags_v2(handle(state::device()?)?, flags & !MAP_HOST))
    }

    /// Returns the flags of the thread's device.
    bare fn cudaGetDeviceFlags(flags: Out<c_uint>) {
        let (mut set, mut is_active) = (0 as c_uint, 0 as c_int);
        driver!(cuDevicePrimaryCtxGetState(handle(state::device()?)?, &raw mut set, &raw mut is_active))?;
        flags.set(set | MAP_HOST)
    }

    /// Ends the context of the thread's device, with everything in it.
    bare fn cudaDeviceReset() { state::reset() }

    /// As [`cudaDeviceReset`].
    bare fn cudaThreadExit() { state::reset() }

    /// Returns an attribute of a device.
    bare fn cudaDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        driver!(cuDeviceGetAttribute(value.required()?, attribute, handle(device)?))
    }

    /// Returns an attribute of a pair of devices.
    bare fn cudaDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_int, from: c_int, to: c_int) {
        driver!(cuDeviceGetP2PAttribute(value.required()?, attribute, handle(from)?, handle(to)?))
    }

    /// Returns the device at a place of the bus.
    bare fn cudaDeviceGetByPCIBusId(device: Out<c_int>, bus: In<c_char>) {
        driver::initialized()?;
        driver!(cuDeviceGetByPCIBusId(device.required()?, bus))
    }

    /// Returns the place of a device on the bus.
    bare fn cudaDeviceGetPCIBusId(bus: Out<c_char>, room: c_int, device: c_int) {
        driver!(cuDeviceGetPCIBusId(bus.required()?, room, handle(device)?))
    }

    /// Returns the default pool of a device.
    bare fn cudaDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) {
        driver!(cuDeviceGetDefaultMemPool(pool.required()?, handle(device)?))
    }

    /// Returns the pool of a device.
    bare fn cudaDeviceGetMemPool(pool: Out<Handle>, device: c_int) {
        driver!(cuDeviceGetMemPool(pool.required()?, handle(device)?))
    }

    /// Sets the pool of a device.
    bare fn cudaDeviceSetMemPool(device: c_int, pool: Handle) { driver!(cuDeviceSetMemPool(handle(device)?, pool)) }

    /// Returns an attribute of the memory of a device's graphs.
    bare fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, value: Handle) {
        driver!(cuDeviceGetGraphMemAttribute(handle(device)?, attribute, value))
    }

    /// Sets an attribute of the memory of a device's graphs.
    bare fn cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: Handle) {
        driver!(cuDeviceSetGraphMemAttribute(handle(device)?, attribute, value))
    }

    /// Frees the memory of a device's graphs that none uses.
    bare fn cudaDeviceGraphMemTrim(device: c_int) { driver!(cuDeviceGraphMemTrim(handle(device)?)) }

    /// Returns the number of elements that a linear texture may have.
    bare fn cudaDeviceGetTexture1DLinearMaxWidth(width: Out<usize>, channels: In<ChannelDesc>, device: c_int) {
        let (format, count) = super::array::format(channels.get()?)?;
        driver!(cuDeviceGetTexture1DLinearMaxWidth(width.required()?, format, count, handle(device)?))
    }

    /// Returns how shared memory is divided into banks of 4 bytes; no device can change it.
    bare fn cudaDeviceGetSharedMemConfig(config: Out<c_int>) { config.set(1) }

    /// Sets how shared memory is divided into banks, which has no effect on devices that cannot change it.
    bare fn cudaDeviceSetSharedMemConfig(config: c_int) {
        if (0..=2).contains(&config) { Ok(()) } else { Err(Error::INVALID_VALUE) }
    }

    /// Sets whether the device's code may use double precision, which all devices have.
    bare fn cudaSetDoubleForDevice(_value: Out<f64>) { Ok(()) }

    /// As [`cudaSetDoubleForDevice`], for the host.
    bare fn cudaSetDoubleForHost(_value: Out<f64>) { Ok(()) }
}

forward! {
    cudaDeviceSynchronize = cudaThreadSynchronize() = cuCtxSynchronize();
    cudaDeviceGetLimit = cudaThreadGetLimit(value: Out<usize>, limit: c_int) = cuCtxGetLimit(value, limit);
    cudaDeviceSetLimit = cudaThreadSetLimit(limit: c_int, value: usize) = cuCtxSetLimit(limit, value);
    cudaDeviceGetCacheConfig = cudaThreadGetCacheConfig(config: Out<c_int>) = cuCtxGetCacheConfig(config);
    cudaDeviceSetCacheConfig = cudaThreadSetCacheConfig(config: c_int) = cuCtxSetCacheConfig(config);
    cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) =
        cuCtxGetStreamPriorityRange(least, greatest);
    cudaCtxResetPersistingL2Cache() = cuCtxResetPersistingL2Cache();
    cudaDeviceFlushGPUDirectRDMAWrites(target: c_int, scope: c_int) = cuFlushGPUDirectRDMAWrites(target, scope);
    cudaProfilerStart() = cuProfilerStart();
    cudaProfilerStop() = cuProfilerStop();
}
