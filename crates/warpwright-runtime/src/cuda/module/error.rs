//! Why a module was not loaded.

use super::version::PtxVersionError;
use crate::cuda::{CallError, DriverVersion};
use std::fmt;
use std::path::PathBuf;
use warpwright_ptx::ir::Arch;

/// Why a CUDA device did not load a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The module is for a target that the device does not run.
    #[error(
        "the module is for {module}, which a device of {device} does not run; build it for {device} or before"
    )]
    Target {
        /// The target.
        module: Arch,
        /// The device.
        device: Arch,
    },
    /// The module needs a newer driver.
    #[error(transparent)]
    Version(#[from] PtxVersionError),
    /// The driver's compiler rejected the module.
    #[error(transparent)]
    Jit(#[from] Box<JitError>),
}

/// The driver's compiler rejected a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JitError {
    /// The kernels of the module.
    pub kernels: Vec<String>,
    /// The device's architecture.
    pub arch: Arch,
    /// The driver.
    pub driver: DriverVersion,
    /// The call that failed.
    pub source: CallError,
    /// The compiler's log. Each line of it that names a line of the PTX is followed by what stands there: the
    /// instruction, its function and, if known, the line of the source that it comes from.
    pub log: String,
    /// The PTX text that the driver was given.
    pub ptx: String,
    /// The file with that text for inspection, if it could be written.
    pub file: Option<PathBuf>,
}

impl fmt::Display for JitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JitError { kernels, arch, driver, source, log, file, .. } = self;
        write!(f, "the driver, of CUDA {driver}, cannot compile ")?;
        match &kernels[..] {
            [] => f.write_str("a module without kernels")?,
            [kernel] => write!(f, "kernel `{kernel}`")?,
            [first, rest @ ..] => write!(f, "a module of `{first}` and {} more", rest.len())?,
        }
        write!(f, " for {arch}: {source}")?;
        match log.trim_end() {
            "" => f.write_str("\nits log is empty")?,
            log => write!(f, "\nits log:\n{log}")?,
        }
        match file {
            Some(file) => write!(f, "\nthe PTX is in {}", file.display()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for JitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
