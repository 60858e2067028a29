//! PTX versions, as drivers accept them.

use super::*;
use std::process::Command;
use warpwright_ptx::ir::Version;
use warpwright_runtime::{ModuleError, RuntimeError};

/// The version of the driver that a process is to find which a test has started.
const DRIVER: &str = "WARPWRIGHT_DRIVER_VERSION";

/// A module that needs 8.3, for `.b128`.
fn wide(version: &str) -> String {
    let head = format!(".version {version}\n.target sm_70");
    ADD.replace(".version 6.3\n.target sm_70", &head)
        .replace(".reg .b32 %r<3>;", ".reg .b32 %r<3>; .reg .b128 %w;")
}

/// What a driver is given is what it accepts, and what it cannot be given is refused with what asks for more.
fn holds_on_this_driver() -> Result<()> {
    let device = open(CubinCache::off());
    let driver = device.properties().driver;
    let release = driver.map_or(u32::MAX, |version| 1000 * version.major + 10 * version.minor);
    let accepted = Version::accepted_by(release).expect("a driver that is known");
    for version in ["6.3", "8.0", "8.3", "9.0", "9.5"] {
        adds(&device.load_ptx(&ADD.replace("6.3", version))?)?;
    }
    for version in ["8.3", "8.8", "9.5"] {
        let loaded = device.load_ptx(&wide(version));
        if accepted >= Version::new(8, 3) {
            adds(&loaded?)?;
            continue;
        }
        let Err(RuntimeError::Module(error)) = loaded else { panic!("{version} on {driver:?}: {loaded:?}") };
        let ModuleError::Version(error) = *error else { panic!("{version} on {driver:?}: {error}") };
        assert_eq!((error.needed, error.accepted), (Version::new(8, 3), Some(accepted)));
        assert_eq!((error.feature, Some(error.driver)), (Some("a `.b128` variable"), driver));
    }
    Ok(())
}

#[test]
fn every_driver_is_given_what_it_accepts() -> Result<()> {
    holds_on_this_driver()?;
    // A virtual driver can be of any version; a real one, and the virtual GPU, is as it is.
    let is_virtual_driver = test_device() == TestDevice::Cuda && open(CubinCache::off()).is_virtual();
    if std::env::var_os(DRIVER).is_some() || !is_virtual_driver {
        return Ok(());
    }
    for version in ["12020", "12030", "12060", "13000", "13050"] {
        let name = "versions::every_driver_is_given_what_it_accepts";
        let own = std::env::current_exe().expect("this program");
        let ran = Command::new(own)
            .args([name, "--exact"])
            .env(DRIVER, version)
            .output()
            .expect("it can be started");
        assert!(ran.status.success(), "{version}: {}", String::from_utf8_lossy(&ran.stdout));
    }
    Ok(())
}
