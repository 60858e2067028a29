//! Modules on a device: compiled once, found again by later processes, whatever becomes of the files, and refused with
//! the line that is to blame. On the virtual GPU, which compiles nothing, the same programs run, and leave no files.

#![allow(unsafe_code, reason = "raw launches are unsafe")]

mod cached;
mod refused;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use warpwright_runtime::{CubinCache, CudaConfig, Device, LaunchConfig, Module, Result, VmConfig};
use warpwright_testing::{TestDevice, test_device};

/// `y[i] += 5` for a block, on any device.
const ADD: &str = "
.version 6.3
.target sm_70
.address_size 64

.visible .entry add(.param .u64 y)
.maxntid 64, 1, 1
{
    .local .align 8 .b8 own[40];
    .shared .align 4 .b8 all[256];
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [y];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.u32 %r2, %r2, 5;
    st.global.u32 [%rd3], %r2;
    ret;
}
";

/// A device, as a process sees it that has begun: it knows of nothing but what is in the cache.
fn open(cache: CubinCache) -> Device {
    open_with(cache, false)
}

/// The same, whose compiled kernels have tables of lines or none.
fn open_with(cache: CubinCache, line_info: bool) -> Device {
    let device = match test_device() {
        TestDevice::Vm => Device::vm(VmConfig::default()),
        TestDevice::Cuda => {
            let mut config = CudaConfig::new(0);
            (config.cubin_cache, config.line_info) = (cache, line_info);
            Device::cuda_with(config)
        }
    };
    device.unwrap_or_else(|error| panic!("{error}"))
}

/// That the module's `add` adds five.
fn adds(module: &Module) -> Result<()> {
    let stream = module.device().default_stream();
    let y = stream.clone_htod(&[1u32, 2, 3, 4])?;
    let add = module.load_function("add")?;
    let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (4, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: four threads for four elements.
    unsafe { stream.launch_builder(&add).arg(&y).launch(config) }?;
    assert_eq!(stream.clone_dtoh(&y)?, [6, 7, 8, 9]);
    Ok(())
}

/// That a device has compiled so many modules, and found so many in the cache. A virtual GPU does neither.
#[track_caller]
fn expect(device: &Device, compiled: u64, cached: u64) {
    let statistics = device.statistics();
    let found = (statistics.modules_compiled, statistics.modules_cached);
    match test_device() {
        TestDevice::Vm => assert_eq!(found, (0, 0)),
        TestDevice::Cuda => assert_eq!(found, (compiled, cached)),
    }
    assert_eq!(statistics.compile_time.is_zero(), statistics.modules_compiled == 0);
}

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("warpwright-modules-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        Scratch(directory)
    }

    fn cache(&self) -> CubinCache {
        CubinCache::at(&self.0)
    }

    /// Its files whose names end so.
    fn files(&self, suffix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten();
        let paths = entries.map(|entry| entry.expect("a file").path());
        paths.filter(|path| path.to_str().is_some_and(|path| path.ends_with(suffix))).collect()
    }

    /// The only image; `None` on a virtual GPU, which leaves no files.
    fn image(&self) -> Option<PathBuf> {
        let mut images = self.files(".image");
        let expected = match test_device() {
            TestDevice::Vm => 0,
            TestDevice::Cuda => 1,
        };
        assert_eq!(images.len(), expected);
        images.pop()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("it is there")
}
