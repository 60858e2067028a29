//! Functions of the driver by name.

use super::entries;
use crate::abi::{Handle, In, Out};
use crate::driver::{self, driver};
use crate::error::Result;
use crate::state::{self, DefaultStream};
use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

/// The flag for functions whose stream 0 is the calling thread's: `cudaEnablePerThreadDefaultStream`.
const PER_THREAD: c_ulonglong = 2;

fn find(
    name: In<c_char>,
    function: Out<Handle>,
    version: c_int,
    flags: c_ulonglong,
    status: Out<c_int>,
    default: DefaultStream,
) -> Result<()> {
    driver::initialized()?;
    let flags = match (flags, default) {
        (0, DefaultStream::PerThread) => PER_THREAD,
        _ => flags,
    };
    driver!(cuGetProcAddress_v2(name, function.required()?, version, flags, status))
}

entries! {
    /// Returns the driver's function that a base name means to a program of this version of CUDA.
    bare fn cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz |default| (
        name: In<c_char>,
        function: Out<Handle>,
        flags: c_ulonglong,
        status: Out<c_int>,
    ) {
        let version = driver::version()?.min(state::version());
        find(name, function, version, flags, status, default)
    }

    /// Returns the driver's function that a base name means to a program of a version of CUDA.
    bare fn cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz |default| (
        name: In<c_char>,
        function: Out<Handle>,
        version: c_uint,
        flags: c_ulonglong,
        status: Out<c_int>,
    ) {
        find(name, function, version.cast_signed(), flags, status, default)
    }
}
