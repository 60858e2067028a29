//! Finds the driver's library and checks its version.
//!
//! cudarc panics without the library. So **the driver is not called before [`open`] has succeeded**: it looks for the
//! library, asks for its version, and then looks for every [function](super::sys) that is called.

use super::error::{CudaError, DriverVersion, check};
use super::sys::{self, Status};
use std::ffi::c_int;
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

fn missing(function: &'static str, found: Option<DriverVersion>) -> CudaError {
    CudaError::MissingFunction { function, found }
}

fn find() -> Result<Library, CudaError> {
    // SAFETY: opening the driver's library runs its initialisers, which is what it is for.
    if !unsafe { sys::is_culib_present() } {
        let library = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
        return Err(CudaError::NoDriver { library });
    }
    let mut number = 0;
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> Status;
    // SAFETY: the library is there, and what has that name has that type.
    let get_version = unsafe { sys::lookup::<GetVersion>("cuDriverGetVersion\0") };
    let get_version = get_version.ok_or(missing("cuDriverGetVersion", None))?;
    // SAFETY: writes the number, also before `cuInit`.
    check("cuDriverGetVersion", unsafe { get_version(&mut number) })?;
    let version = DriverVersion::from_number(number);
    if version < NEEDED {
        return Err(CudaError::OldDriver { found: version, needed: NEEDED });
    }
    // SAFETY: the library is there.
    unsafe { sys::load() }.map_err(|function| missing(function, Some(version)))?;
    // SAFETY: no more than a call.
    match check("cuInit", unsafe { sys::cuInit(0) }) {
        Err(error) if !error.is(Status::NO_DEVICE) => Err(error.into()),
        begun => Ok(Library { version, has_devices: begun.is_ok() }),
    }
}
