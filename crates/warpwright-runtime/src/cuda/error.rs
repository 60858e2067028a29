//! What the driver says no to, and how people read it.
//!
//! Every call of the driver is checked here, so that each error has the name of its call.

use super::sys::{self, Status};
use std::ffi::CStr;
use std::fmt;

/// Why something cannot be done with CUDA.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no driver.
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
        /// What it has.
        found: DriverVersion,
        /// What is needed at least.
        needed: DriverVersion,
    },
    /// There is no such device.
    #[error("there is no cuda:{ordinal}: the driver has {}", devices(*.found))]
    NoDevice {
        /// Which was asked for.
        ordinal: u32,
        /// How many there are.
        found: u32,
    },
    /// The driver has not a function that every driver since the needed version has.
    #[error(
        "the CUDA driver{} has no function `{function}`, which every driver since {} of the driver API has: the library \
         that the loader finds is not NVIDIA's, or not whole; install NVIDIA's driver again", of_version(*.found),
        super::library::NEEDED
    )]
    MissingFunction {
        /// Which.
        function: &'static str,
        /// The version of the driver API that it says it has; `None` where it does not say.
        found: Option<DriverVersion>,
    },
    /// The device is older than every architecture that PTX is made for here.
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
    /// A list of operations did not become a graph.
    #[error("the graph was not made ready for replays{}: {error}", node.map_or(String::new(), |at| format!(", at node {at}")))]
    Graph {
        /// The operation's place; `None` where it is all of them.
        node: Option<usize>,
        /// What the driver says.
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

/// A call of the driver that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {text} ({name}, {code})")]
#[non_exhaustive]
pub struct CallError {
    /// The function.
    pub call: &'static str,
    /// What it returned, as a number.
    pub code: u32,
    /// The number's name: `CUDA_ERROR_INVALID_VALUE`.
    pub name: String,
    /// What the driver says of it.
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

/// A text that a function of the driver has.
fn spoken(ask: impl FnOnce(*mut *const std::ffi::c_char) -> Status) -> Option<String> {
    let mut text = std::ptr::null();
    if ask(&mut text) != Status::SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: the driver's texts end with a zero, and live as long as the library does, which is never closed.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// What a call has returned.
#[inline]
pub(crate) fn check(call: &'static str, result: Status) -> Result<(), CallError> {
    if result == Status::SUCCESS { Ok(()) } else { Err(CallError::new(call, result)) }
}

/// What a call has returned that asks whether something is done.
pub(crate) fn is_done(call: &'static str, result: Status) -> Result<bool, CallError> {
    if result == Status::NOT_READY { Ok(false) } else { check(call, result).map(|()| true) }
}

/// A version behind the driver's name.
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
