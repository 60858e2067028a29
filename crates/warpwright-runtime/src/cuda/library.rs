//! The driver's library: whether it is there, and new enough.
//!
//! The bindings panic when they are called without it, and where it has not the function. So **nothing here calls the
//! driver before [`open`] has succeeded**: it looks for the library, and asks for its version first.

use super::error::{CudaError, DriverVersion, check};
use cudarc::driver::sys;
use std::sync::OnceLock;

/// The version whose functions are used: what `cuStreamGetCaptureInfo_v2`, `cuLaunchKernelEx` and
/// `cuGraphExecKernelNodeSetParams_v2` came with, and the bindings are of.
pub(crate) const NEEDED: DriverVersion = DriverVersion { major: 12, minor: 2 };

/// The driver, which is there, new enough and initialised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    /// Its version.
    pub(crate) version: DriverVersion,
    /// Whether it has devices. Where it has none it does not even begin.
    pub(crate) has_devices: bool,
}

/// The driver. It is looked for once: where it is missing, it stays missing for this process.
pub(crate) fn open() -> Result<Library, CudaError> {
    static LIBRARY: OnceLock<Result<Library, CudaError>> = OnceLock::new();
    LIBRARY.get_or_init(find).clone()
}

fn find() -> Result<Library, CudaError> {
    // SAFETY: opening the driver's library runs its initialisers, which is what it is for.
    if !unsafe { sys::is_culib_present() } {
        let library = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
        return Err(CudaError::NoDriver { library });
    }
    let mut number = 0;
    // SAFETY: writes the number; every driver has the function, also before `cuInit`.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut number) })?;
    let version = DriverVersion::from_number(number);
    if version < NEEDED {
        return Err(CudaError::OldDriver { found: version, needed: NEEDED });
    }
    // SAFETY: no more than a call.
    match check("cuInit", unsafe { sys::cuInit(0) }) {
        Err(error) if !error.is(sys::CUresult::CUDA_ERROR_NO_DEVICE) => Err(error.into()),
        begun => Ok(Library { version, has_devices: begun.is_ok() }),
    }
}
