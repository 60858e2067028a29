//! How a CUDA device is used.

use super::module::CubinCache;
use std::ffi::OsStr;

/// Makes every launch wait for itself, for all CUDA devices of the process.
const SYNC_LAUNCHES: &str = "WARPWRIGHT_SYNC_LAUNCHES";
/// Gives compiled kernels tables of lines, for all CUDA devices of the process.
const LINE_INFO: &str = "WARPWRIGHT_LINE_INFO";

/// Which CUDA device, and how it is used.
///
/// ```no_run
/// use warpwright_runtime::{CudaConfig, Device};
///
/// # fn main() -> Result<(), warpwright_runtime::RuntimeError> {
/// let mut config = CudaConfig::new(0);
/// config.sync_launches = true;
/// let device = Device::cuda_with(config)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CudaConfig {
    /// The device's number, from 0 on, as the driver counts those that `CUDA_VISIBLE_DEVICES` leaves.
    pub ordinal: u32,
    /// Whether every launch, and every replay of a graph, waits until it is over, so that an error is known to be its
    /// own. Takes the host's time; for finding mistakes. At first it is what the environment variable
    /// `WARPWRIGHT_SYNC_LAUNCHES` says: on, unless it is empty, `0` or not there.
    pub sync_launches: bool,
    /// Whether compiled kernels have tables that lead from their instructions to lines of PTX and of Rust, for profilers and
    /// debuggers such as Nsight Compute. They are several times larger with them, and no slower; errors of the
    /// driver's compiler name lines without them. At first it is what the environment variable `WARPWRIGHT_LINE_INFO`
    /// says: on, unless it is empty, `0` or not there.
    pub line_info: bool,
    /// Bytes that the pool of the device keeps of buffers that were dropped: 1 GiB at first.
    pub release_threshold: u64,
    /// Where compiled kernels are kept between processes.
    pub cubin_cache: CubinCache,
}

impl CudaConfig {
    /// The device of that number.
    pub fn new(ordinal: u32) -> Self {
        CudaConfig {
            ordinal,
            sync_launches: is_on(std::env::var_os(SYNC_LAUNCHES).as_deref()),
            line_info: is_on(std::env::var_os(LINE_INFO).as_deref()),
            release_threshold: crate::device::RELEASE_THRESHOLD,
            cubin_cache: CubinCache::default(),
        }
    }
}

fn is_on(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_on_unless_it_says_otherwise() {
        let on = |value: &str| is_on(Some(OsStr::new(value)));
        assert!(on("1") && on("true"));
        assert!(!on("0") && !on("") && !is_on(None));
    }
}
