//! Launches of kernels and of host functions.

use super::{entries, forward};
use crate::abi::{Dim3, DriverLaunchConfig, Handle, In, LaunchConfig, Stream};
use crate::code;
use crate::driver::driver;
use crate::error::{Error, Result};
use crate::state;
use std::ffi::{c_int, c_uint};

/// The device attributes that bound the block and the grid: `CU_DEVICE_ATTRIBUTE_…`.
const MAX_THREADS_PER_BLOCK: c_int = 1;
const MAX_BLOCK_DIM_X: c_int = 2;
const MAX_GRID_DIM_X: c_int = 5;

/// The kinds of launches that the driver has a function for.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Cooperative,
}

/// Launches the kernel of a host function.
fn launch(
    host: Handle,
    grid: Dim3,
    block: Dim3,
    params: Handle,
    shared: usize,
    stream: Stream,
    kind: Kind,
) -> Result<()> {
    let (kernel, shared) = (code::kernel(host)?, bytes(shared)?);
    let no_extra: Handle = std::ptr::null_mut();
    let result = match kind {
        Kind::Plain => driver!(cuLaunchKernel(
            kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, params, no_extra
        )),
        Kind::Cooperative => driver!(cuLaunchCooperativeKernel(
            kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, params
        )),
    };
    result.map_err(|error| explained(error, grid, block))
}

/// Shared memory in bytes, as the driver counts it.
fn bytes(shared: usize) -> Result<c_uint> {
    c_uint::try_from(shared).map_err(|_| Error::INVALID_VALUE)
}

/// The error of a launch: what the driver calls an invalid value is an invalid configuration if it is grid or block.
fn explained(error: Error, grid: Dim3, block: Dim3) -> Error {
    let fits = |dims: Dim3, first: c_int| {
        let dims = [dims.x, dims.y, dims.z];
        (first..)
            .zip(dims)
            .all(|(attribute, dim)| dim > 0 && limit(attribute).is_none_or(|limit| u64::from(dim) <= limit))
    };
    let threads = u64::from(block.x).saturating_mul(block.y.into()).saturating_mul(block.z.into());
    let is_possible = || {
        fits(grid, MAX_GRID_DIM_X)
            && fits(block, MAX_BLOCK_DIM_X)
            && limit(MAX_THREADS_PER_BLOCK).is_none_or(|limit| threads <= limit)
    };
    if error == Error::INVALID_VALUE && !is_possible() { Error::INVALID_CONFIGURATION } else { error }
}

/// A limit of the thread's device.
fn limit(attribute: c_int) -> Option<u64> {
    let (device, mut value) = (state::handle(state::device().ok()?).ok()?, 0 as c_int);
    driver!(cuDeviceGetAttribute(&raw mut value, attribute, device)).ok()?;
    u64::try_from(value).ok()
}

/// A configuration as the driver has it, with its default stream.
pub(super) fn configuration(
    config: In<LaunchConfig>,
    default: state::DefaultStream,
) -> Result<DriverLaunchConfig> {
    let config = config.get()?;
    Ok(DriverLaunchConfig {
        grid: config.grid,
        block: config.block,
        shared: bytes(config.shared)?,
        stream: default.resolve(config.stream),
        attributes: config.attributes,
        attribute_count: config.attribute_count,
    })
}

entries! {
    /// Launches the kernel of a host function.
    fn cudaLaunchKernel, cudaLaunchKernel_ptsz |default| (
        host: Handle,
        grid: Dim3,
        block: Dim3,
        params: Handle,
        shared: usize,
        stream: Stream,
    ) {
        launch(host, grid, block, params, shared, default.resolve(stream), Kind::Plain)
    }

    /// Launches what [`super::register::__cudaGetKernel`] has returned, which is the host function.
    fn __cudaLaunchKernel, __cudaLaunchKernel_ptsz |default| (
        host: Handle,
        grid: Dim3,
        block: Dim3,
        params: Handle,
        shared: usize,
        stream: Stream,
    ) {
        launch(host, grid, block, params, shared, default.resolve(stream), Kind::Plain)
    }

    /// Launches a cooperative kernel: all of its blocks are resident at once.
    fn cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz |default| (
        host: Handle,
        grid: Dim3,
        block: Dim3,
        params: Handle,
        shared: usize,
        stream: Stream,
    ) {
        launch(host, grid, block, params, shared, default.resolve(stream), Kind::Cooperative)
    }

    /// Launches a kernel with attributes.
    fn cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz |default| (
        config: In<LaunchConfig>,
        host: Handle,
        params: Handle,
    ) {
        let config = configuration(config, default)?;
        let no_extra: Handle = std::ptr::null_mut();
        driver!(cuLaunchKernelEx(&raw const config, code::kernel(host)?, params, no_extra))
            .map_err(|error| explained(error, config.grid, config.block))
    }
}

forward! {
    cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz |default| (stream: Stream, function: Handle, data: Handle) =
        cuLaunchHostFunc(default.resolve(stream), function, data);
    /// Also says how the stream waits for the function, which makes no difference here.
    cudaLaunchHostFunc_v2, cudaLaunchHostFunc_v2_ptsz |default| (
        stream: Stream, function: Handle, data: Handle, _mode: c_uint
    ) = cuLaunchHostFunc(default.resolve(stream), function, data);
}
