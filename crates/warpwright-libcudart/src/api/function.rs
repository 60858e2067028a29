//! Kernels by their host functions: attributes, occupancy.

use super::entries;
use super::launch::configuration;
use crate::abi::{FuncAttributes, Handle, In, LaunchConfig, Out};
use crate::code;
use crate::driver::driver;
use crate::error::{Error, Result};
use crate::state::{DefaultStream, handle};
use std::ffi::{c_char, c_int, c_uint};

/// The attributes of a function: `CU_FUNC_ATTRIBUTE_…`, numbered as the runtime numbers those that can be set.
const SETTABLE: std::ops::RangeInclusive<c_int> = 8..=16;

/// An attribute of a function; 0 if the driver does not know it.
fn attribute(function: Handle, attribute: c_int) -> c_int {
    let mut value: c_int = 0;
    match driver!(cuFuncGetAttribute(&raw mut value, attribute, function)) {
        Ok(()) => value,
        Err(_) => 0,
    }
}

/// The driver counts blocks of threads as `int`s.
fn size(value: c_int) -> usize {
    usize::try_from(value).unwrap_or(0)
}

fn blocks(number: Out<c_int>, host: Handle, threads: c_int, shared: usize, flags: c_uint) -> Result<()> {
    let function = code::function(host)?;
    driver!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        number.required()?,
        function,
        threads,
        shared,
        flags
    ))
}

entries! {
    /// Returns the attributes of a kernel.
    fn cudaFuncGetAttributes(attributes: Out<FuncAttributes>, host: Handle) {
        attributes.required()?;
        let function = code::function(host)?;
        let of = |number| attribute(function, number);
        attributes.set(FuncAttributes {
            shared: size(of(1)),
            constant: size(of(2)),
            local: size(of(3)),
            max_threads: of(0),
            registers: of(4),
            ptx: of(5),
            binary: of(6),
            cache_mode: of(7),
            max_dynamic_shared: of(8),
            carveout: of(9),
            cluster_must_be_set: of(10),
            cluster: [of(11), of(12), of(13)],
            cluster_policy: of(15),
            non_portable_cluster: of(14),
            reserved: [0; 16],
        })
    }

    /// Sets an attribute of a kernel.
    fn cudaFuncSetAttribute(host: Handle, attribute: c_int, value: c_int) {
        if !SETTABLE.contains(&attribute) {
            return Err(Error::INVALID_VALUE);
        }
        driver!(cuFuncSetAttribute(code::function(host)?, attribute, value))
    }

    /// Sets an attribute of a kernel on a device.
    fn cudaKernelSetAttributeForDevice(kernel: Handle, attribute: c_int, value: c_int, device: c_int) {
        driver!(cuKernelSetAttribute(attribute, value, kernel, handle(device)?))
    }

    /// Sets the preferred cache configuration of a kernel.
    fn cudaFuncSetCacheConfig(host: Handle, config: c_int) {
        driver!(cuFuncSetCacheConfig(code::function(host)?, config))
    }

    /// Sets how a kernel's shared memory is divided into banks, which has no effect on devices that cannot change it.
    fn cudaFuncSetSharedMemConfig(host: Handle, config: c_int) {
        code::kernel(host)?;
        if (0..=2).contains(&config) { Ok(()) } else { Err(Error::INVALID_VALUE) }
    }

    /// Returns the name of a kernel.
    fn cudaFuncGetName(name: Out<*const c_char>, host: Handle) {
        driver!(cuKernelGetName(name.required()?, code::kernel(host)?))
    }

    /// Returns offset and size of a parameter of a kernel, in bytes.
    fn cudaFuncGetParamInfo(host: Handle, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        driver!(cuKernelGetParamInfo(code::kernel(host)?, index, offset, bytes))
    }

    /// Returns the number of parameters of a kernel.
    fn cudaFuncGetParamCount(host: Handle, count: Out<usize>) {
        driver!(cuKernelGetParamCount(code::kernel(host)?, count))
    }

    /// Returns the number of blocks of a kernel that a multiprocessor has room for.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        number: Out<c_int>, host: Handle, threads: c_int, shared: usize,
    ) {
        blocks(number, host, threads, shared, 0)
    }

    /// The same, with flags.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        number: Out<c_int>, host: Handle, threads: c_int, shared: usize, flags: c_uint,
    ) {
        blocks(number, host, threads, shared, flags)
    }

    /// Returns the shared memory that each of some blocks on a multiprocessor may still have, in bytes.
    fn cudaOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, host: Handle, blocks: c_int, threads: c_int) {
        driver!(cuOccupancyAvailableDynamicSMemPerBlock(bytes.required()?, code::function(host)?, blocks, threads))
    }

    /// Returns the largest cluster of a kernel that fits the device, in blocks.
    fn cudaOccupancyMaxPotentialClusterSize(blocks: Out<c_int>, host: Handle, config: In<LaunchConfig>) {
        let config = configuration(config, DefaultStream::Legacy)?;
        driver!(cuOccupancyMaxPotentialClusterSize(blocks.required()?, code::function(host)?, &raw const config))
    }

    /// Returns the number of clusters of a kernel that fit the device.
    fn cudaOccupancyMaxActiveClusters(clusters: Out<c_int>, host: Handle, config: In<LaunchConfig>) {
        let config = configuration(config, DefaultStream::Legacy)?;
        driver!(cuOccupancyMaxActiveClusters(clusters.required()?, code::function(host)?, &raw const config))
    }
}
