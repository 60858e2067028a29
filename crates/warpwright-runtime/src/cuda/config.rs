//! Configuration of a CUDA device.

use super::module::CubinCache;
use std::ffi::OsStr;

/// The environment variable that makes every launch synchronous, on all CUDA devices of the process.
const SYNC_LAUNCHES: &str = "WARPWRIGHT_SYNC_LAUNCHES";
/// The environment variable that adds line tables to compiled kernels, on all CUDA devices of the process.
const LINE_INFO: &str = "WARPWRIGHT_LINE_INFO";

/// Selects and configures a CUDA device.
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
    /// The device's number, from 0, in the order of the driver, which counts only devices that `CUDA_VISIBLE_DEVICES`
    /// leaves visible.
    pub ordinal: u32,
    /// Whether every launch, and every replay of a graph, waits for its own completion, so that an error belongs to it
    /// for certain. This costs host time; use it to find mistakes. The default comes from the environment variable
    /// `WARPWRIGHT_SYNC_LAUNCHES`: on, unless it is unset, empty or `0`.
    pub sync_launches: bool,
    /// Whether compiled kernels contain tables that map instructions to lines of PTX and of Rust, for profilers and
    /// debuggers such as Nsight Compute. The tables make kernels several times larger and no slower; errors of the
    /// driver's compiler name lines without them. The default comes from the environment variable
    /// `WARPWRIGHT_LINE_INFO`: on, unless it is unset, empty or `0`.
    pub line_info: bool,
    /// Bytes of dropped buffers that the device's pool keeps. The default is 1 GiB.
    pub release_threshold: u64,
    /// Where compiled kernels are cached between processes.
    pub cubin_cache: CubinCache,
}

impl CudaConfig {
    /// The default configuration of the device of that number.
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
