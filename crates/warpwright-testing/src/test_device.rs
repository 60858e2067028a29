//! Chooses the device of a test. If a CUDA device is asked for, a test never gets another one silently: the file named
//! by `WARPWRIGHT_TEST_TALLY` lists which device each test got.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;
use warpwright_ptx::ir::Arch;
use warpwright_runtime::{Device, DeviceSpec, Order, VmConfig, devices};

/// The environment variable that chooses the device.
const PLACE: &str = "WARPWRIGHT_TEST_DEVICE";
/// The environment variable that names the tally: a file with one line for each device that a test got, `cuda:N ARCH`,
/// or `none ARCH` if no CUDA device runs that architecture.
const TALLY: &str = "WARPWRIGHT_TEST_TALLY";

/// The environment variable that names the order of virtual GPUs.
const ORDER: &str = "WARPWRIGHT_TEST_ORDER";

/// The kind of device that tests run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestDevice {
    /// The virtual GPU, used directly.
    Vm,
    /// CUDA devices.
    Cuda,
}

/// The kind of device that the tests of this process run on.
///
/// # Panics
/// If the environment names neither: a misspelt word must not run other tests than intended.
pub fn test_device() -> TestDevice {
    static PLACED: OnceLock<TestDevice> = OnceLock::new();
    *PLACED.get_or_init(|| match std::env::var(PLACE).as_deref() {
        Err(_) | Ok("" | "vm") => TestDevice::Vm,
        Ok("cuda") => TestDevice::Cuda,
        Ok(place) if only(place).is_some() => TestDevice::Cuda,
        Ok(other) => panic!("{PLACE} is `{other}`: it must be `vm`, `cuda` or `cuda:N`"),
    })
}

/// The number of the CUDA device that a place names, if it names one.
fn only(place: &str) -> Option<u32> {
    place.strip_prefix("cuda:")?.parse().ok()
}

/// The seeds for the order of blocks. On a CUDA device they have no effect, so one run is enough.
pub fn orders(seeds: &[u64]) -> &[u64] {
    match test_device() {
        TestDevice::Vm => seeds,
        TestDevice::Cuda => &seeds[..seeds.len().min(1)],
    }
}

/// A device for a test: a virtual GPU of that configuration, or a CUDA device that runs code for its architecture. The
/// rest of the configuration does not apply to a CUDA device.
///
/// If no CUDA device runs such code, the test gets a virtual GPU, and the tally says so.
///
/// # Panics
/// If there is no device.
pub fn device(config: VmConfig) -> Device {
    let arch = config.device.arch;
    match test_device() {
        TestDevice::Vm => Device::vm(VmConfig { order: order(), ..config }).expect("a virtual GPU"),
        TestDevice::Cuda => match ordinal(arch) {
            Some(ordinal) => {
                tally(&format!("cuda:{ordinal} {arch}"));
                open(ordinal).unwrap_or_else(|error| panic!("{error}"))
            }
            None => {
                tally(&format!("none {arch}"));
                Device::vm(config).expect("a virtual GPU")
            }
        },
    }
}

/// The order of virtual GPUs.
fn order() -> Order {
    match std::env::var(ORDER) {
        Err(_) => Order::Issue,
        Ok(order) => order.parse().unwrap_or_else(|error| panic!("{ORDER}: {error}")),
    }
}

/// The CUDA device of that number, for tests of CUDA devices alone.
///
/// # Panics
/// If there is no such device.
pub fn cuda(ordinal: u32) -> Device {
    let device = open(ordinal).unwrap_or_else(|error| panic!("this test wants a CUDA device: {error}"));
    tally(&format!("cuda:{ordinal} {}", device.properties().arch));
    device
}

fn open(ordinal: u32) -> warpwright_runtime::Result<Device> {
    Device::cuda(ordinal)
}

/// The available CUDA devices, and their architectures.
fn cuda_devices() -> &'static [(u32, Arch)] {
    static DEVICES: OnceLock<Vec<(u32, Arch)>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        // What keeps them away is what this says.
        drop(open(0).unwrap_or_else(|error| panic!("{PLACE} is `cuda`: {error}")));
        let all = devices().unwrap_or_else(|error| panic!("{error}"));
        if all.iter().any(|info| !info.is_virtual) {
            stay_open();
        }
        let only = std::env::var(PLACE).ok().and_then(|place| only(&place));
        let cuda = all.iter().filter_map(|info| match info.spec {
            DeviceSpec::Cuda(ordinal) if only.is_none_or(|only| only == ordinal) => {
                Some((ordinal, info.properties.arch))
            }
            _ => None,
        });
        cuda.collect()
    })
}

/// Keeps real devices open, since creating a context takes longer than most tests do.
fn stay_open() {
    static OPEN: OnceLock<Vec<Device>> = OnceLock::new();
    OPEN.get_or_init(|| (0..).map_while(|ordinal| open(ordinal).ok()).collect());
}

/// The device of that architecture; else the first one that runs code for it.
fn ordinal(arch: Arch) -> Option<u32> {
    let found = |runs: &dyn Fn(Arch) -> bool| {
        cuda_devices().iter().find(|(_, device)| runs(*device)).map(|(ordinal, _)| *ordinal)
    };
    found(&|own| own == arch).or_else(|| found(&|own| own.runs(arch)))
}

fn tally(line: &str) {
    let Some(path) = std::env::var_os(TALLY) else { return };
    // One write a line, so that processes do not mix theirs.
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("{TALLY}: {}: {error}", path.display()));
}
