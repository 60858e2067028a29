//! Errors of device operations.

use crate::decode::LoadError;
use crate::launch::LaunchError;
use std::fmt;
use warpwright_ptx::diag::Diagnostics;
use warpwright_ptx::ir::Arch;

/// An error of a device operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// A text is not PTX, or the verifier refuses it.
    Invalid(Diagnostics),
    /// A module could not be loaded.
    Load(LoadError),
    /// A module is for a target that the device does not support.
    Target {
        /// The module's target.
        module: Arch,
        /// The device's architecture.
        device: Arch,
    },
    /// A launch was refused.
    Launch(LaunchError),
    /// There is not enough memory.
    OutOfMemory {
        /// Bytes requested.
        asked: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// Kernels have memory of the heap whose size is to be changed, or had some.
    HeapInUse,
    /// A module has no global or constant variable of that name.
    UnknownVariable {
        /// The name.
        name: String,
    },
    /// A copy has the wrong length.
    Length {
        /// Elements of the buffer.
        buffer: usize,
        /// Elements of the slice.
        slice: usize,
    },
    /// A range of bytes that is not inside its buffer.
    Range {
        /// Where it begins.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// Host memory cannot be mapped, since it overlaps other memory of the device.
    Overlap {
        /// Where it begins.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
        /// Where the other memory begins.
        other: u64,
        /// Size of the other memory in bytes.
        other_bytes: u64,
    },
    /// Host memory cannot be mapped, since the device uses some of its addresses for something else.
    Window {
        /// Where it begins.
        address: u64,
        /// Its size in bytes.
        bytes: u64,
        /// Beginning of those addresses, which belong to shared or local memory, parameters or functions.
        window: u64,
    },
    /// Bytes that are not completely inside one buffer, variable or piece of mapped memory.
    NoMemory {
        /// Address of the first.
        address: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// There is no such array, or a texture cannot read an image so.
    Image {
        /// The rule that it breaks.
        mistake: &'static str,
    },
    /// The operating system refused to create threads.
    Threads(std::io::Error),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Invalid(diagnostics) => {
                f.write_str("the text is no valid PTX:")?;
                diagnostics.iter().try_for_each(|diagnostic| write!(f, "\n{diagnostic}"))
            }
            DeviceError::Load(error) => write!(f, "cannot load the module: {error}"),
            DeviceError::Target { module, device } => {
                write!(f, "the module is for {module}, which a device of {device} does not run")
            }
            DeviceError::Launch(error) => error.fmt(f),
            DeviceError::HeapInUse => f.write_str(
                "kernels have used the heap of `malloc`: its size is set before the first of them runs",
            ),
            DeviceError::OutOfMemory { asked, free } => {
                write!(f, "{asked} bytes of device memory were asked for, and {free} are free")
            }
            DeviceError::UnknownVariable { name } => {
                write!(f, "the module has no global or constant variable `{name}`")
            }
            DeviceError::Length { buffer, slice } => {
                write!(f, "the buffer has {buffer} elements and the slice {slice}: they must be equal")
            }
            DeviceError::Range { offset, bytes, buffer } => {
                write!(f, "{bytes} bytes from byte {offset} on are not inside a buffer of {buffer} bytes")
            }
            DeviceError::Overlap { address, bytes, other, other_bytes } => write!(
                f,
                "{bytes} bytes of the host at {address:#x} cannot be mapped: the device has {other_bytes} bytes at \
                 {other:#x}"
            ),
            DeviceError::Window { address, bytes, window } => write!(
                f,
                "{bytes} bytes of the host at {address:#x} cannot be mapped: addresses from {window:#x} on mean \
                 shared or local memory, parameters or functions"
            ),
            DeviceError::NoMemory { address, bytes } => {
                write!(f, "the device has no memory of {bytes} bytes at {address:#x}")
            }
            DeviceError::Image { mistake } => f.write_str(mistake),
            DeviceError::Threads(error) => write!(f, "cannot start host threads: {error}"),
        }
    }
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DeviceError::Load(error) => Some(error),
            DeviceError::Launch(error) => Some(error),
            DeviceError::Threads(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LaunchError> for DeviceError {
    fn from(error: LaunchError) -> Self {
        DeviceError::Launch(error)
    }
}

impl From<LoadError> for DeviceError {
    fn from(error: LoadError) -> Self {
        DeviceError::Load(error)
    }
}
