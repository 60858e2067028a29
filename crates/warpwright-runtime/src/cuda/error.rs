//! Errors of the driver, and their texts.
//!
//! Every call of the driver is checked here, so that each error names its call.

use super::sys::{self, Status};
use std::ffi::CStr;
use std::fmt;

/// Why an operation with CUDA failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No driver was found.
    #[error(
        "there is no CUDA driver: no library of the name `{library}` was found; install NVIDIA's driver, or put the \
         library's directory on the loader's path; the virtual GPU, `vm`, needs none"
    )]
    NoDriver {
        /// The name of the driver's library.
        library: &'static str,
    },
    /// The driver is too old.
    #[error(
        "the CUDA driver is too old: it has version {found} of the driver API, and {needed} is needed; update it"
    )]
    OldDriver {
        /// The version that it has.
        found: DriverVersion,
        /// The oldest version that is supported.
        needed: DriverVersion,
    },
    /// There is no such device.
    #[error("there is no cuda:{ordinal}: the driver has {}", devices(*.found))]
    NoDevice {
        /// The device that was asked for.
        ordinal: u32,
        /// The number of devices.
        found: u32,
    },
    /// The driver lacks a function that every driver since the required version has.
    #[error(
        "the CUDA driver{} has no function `{function}`, which every driver since {} of the driver API has: the library \
         that the loader finds is not NVIDIA's, or not whole; install NVIDIA's driver again", of_version(*.found),
        super::library::NEEDED
    )]
    MissingFunction {
        /// Which.
        function: &'static str,
        /// The version of the driver API that it reports; `None` if it reports none.
        found: Option<DriverVersion>,
    },
    /// The device is older than every architecture that this crate generates PTX for.
    #[error(
        "cuda:{ordinal} has compute capability {major}.{minor}, which is too old: 5.0 is the oldest that there are \
         kernels for"
    )]
    OldDevice {
        /// Which.
        ordinal: u32,
        /// 3 in 3.5.
        major: u32,
        /// 5 in 3.5.
        minor: u32,
    },
    /// A list of operations could not be made into a graph.
    #[error("the graph could not be instantiated{}: {error}", node.map_or(String::new(), |at| format!(", at node {at}")))]
    Graph {
        /// The index of the operation; `None` if it is about the whole list.
        node: Option<usize>,
        /// The driver's error.
        error: CallError,
    },
    /// A call of the driver failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A version of the driver API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverVersion {
    /// 12 in 12.2.
    pub major: u32,
    /// 2 in 12.2.
    pub minor: u32,
}

impl DriverVersion {
    /// The version of a number as the driver has it: 12020 is 12.2.
    pub(crate) fn from_number(number: i32) -> Self {
        let number = number.max(0).unsigned_abs();
        DriverVersion { major: number / 1000, minor: number % 1000 / 10 }
    }

    /// The number again, as releases of CUDA are counted: 1000 · major + 10 · minor.
    pub(crate) fn release(self) -> u32 {
        1000 * self.major + 10 * self.minor
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A failed call of the driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {text} ({name}, {code})")]
#[non_exhaustive]
pub struct CallError {
    /// The name of the function.
    pub call: &'static str,
    /// The result, as a number.
    pub code: u32,
    /// The result's name, such as `CUDA_ERROR_INVALID_VALUE`.
    pub name: String,
    /// The driver's description.
    pub text: String,
}

impl CallError {
    pub(crate) fn new(call: &'static str, result: Status) -> Self {
        // SAFETY: the driver writes the address of a text, or says that it has none.
        let name = spoken(|text| unsafe { sys::cuGetErrorName(result, text) });
        // SAFETY: as above.
        let text = spoken(|text| unsafe { sys::cuGetErrorString(result, text) });
        CallError {
            call,
            code: result.0,
            name: name.unwrap_or_else(|| "an error without a name".into()),
            text: text.unwrap_or_else(|| "the driver says no more".into()),
        }
    }

    /// Whether it is that result.
    pub(crate) fn is(&self, result: Status) -> bool {
        self.code == result.0
    }
}

/// A text that a function of the driver returns.
fn spoken(ask: impl FnOnce(*mut *const std::ffi::c_char) -> Status) -> Option<String> {
    let mut text = std::ptr::null();
    if ask(&mut text) != Status::SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: the driver's texts end with a zero, and live as long as the library does, which is never closed.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Checks the result of a call.
#[inline]
pub(crate) fn check(call: &'static str, result: Status) -> Result<(), CallError> {
    if result == Status::SUCCESS { Ok(()) } else { Err(CallError::new(call, result)) }
}

/// Checks the result of a call that queries completion.
pub(crate) fn is_done(call: &'static str, result: Status) -> Result<bool, CallError> {
    if result == Status::NOT_READY { Ok(false) } else { check(call, result).map(|()| true) }
}

/// A version, to follow the driver's name.
fn of_version(version: Option<DriverVersion>) -> String {
    version.map_or(String::new(), |version| format!(", of version {version} of the driver API,"))
}

/// How many devices there are, in words.
fn devices(count: u32) -> String {
    match count {
        0 => "no device".into(),
        1 => "one, cuda:0".into(),
        _ => format!("{count}, cuda:0 to cuda:{}", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_both_parts() {
        let version = DriverVersion::from_number;
        assert_eq!(version(12020), DriverVersion { major: 12, minor: 2 });
        assert_eq!(version(13000).to_string(), "13.0");
        assert!(version(11080) < version(12020));
        assert!(version(12010) < version(12020));
        assert!(version(12100) > version(12020), "12.10 is newer than 12.2");
        assert!(version(-1) < version(0).max(version(10)));
    }

    #[test]
    fn errors_say_what_was_found_and_needed() {
        let old = CudaError::OldDriver {
            found: DriverVersion::from_number(11040),
            needed: DriverVersion::from_number(12020),
        };
        assert_eq!(
            old.to_string(),
            "the CUDA driver is too old: it has version 11.4 of the driver API, and 12.2 is needed; update it"
        );
        let text = |found| CudaError::NoDevice { ordinal: 3, found }.to_string();
        assert_eq!(text(0), "there is no cuda:3: the driver has no device");
        assert_eq!(text(1), "there is no cuda:3: the driver has one, cuda:0");
        assert_eq!(text(3), "there is no cuda:3: the driver has 3, cuda:0 to cuda:2");
    }
}
