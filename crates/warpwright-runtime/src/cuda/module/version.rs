//! The PTX version that a module declares to the driver.
//!
//! A driver refuses versions newer than itself. nvcc writes the version of its own release, whatever the code needs; so
//! a version that the driver does not accept is lowered to one that it accepts, provided that nothing in the module
//! needs more.

use crate::cuda::DriverVersion;
use std::fmt;
use warpwright_ptx::ir::{Arch, Feature, Module, Version};
use warpwright_ptx::verify::ModuleInfo;

/// A module needs a newer PTX version than the driver accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtxVersionError {
    /// The version that the module says.
    pub found: Version,
    /// The version that it needs.
    pub needed: Version,
    /// What needs it; `None` where the target does.
    pub feature: Option<Feature>,
    /// The module's target.
    pub target: Arch,
    /// The driver.
    pub driver: DriverVersion,
    /// The newest version that the driver accepts; `None` for one that is older than all that are known.
    pub accepted: Option<Version>,
}

impl fmt::Display for PtxVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PtxVersionError { found, needed, feature, target, driver, accepted } = self;
        write!(f, "the module needs PTX {needed}, for ")?;
        match feature {
            Some(feature) => f.write_str(feature)?,
            None => write!(f, "its target {target}")?,
        }
        if found > needed {
            write!(f, " (it says {found})")?;
        }
        write!(f, "; the driver, of CUDA {driver}, ")?;
        match accepted {
            Some(accepted) => write!(f, "accepts PTX up to {accepted}")?,
            None => f.write_str("accepts none that is known")?,
        }
        match needed.cuda_release() {
            Some(release) => {
                write!(
                    f,
                    ": install a driver of CUDA {} or later",
                    DriverVersion::from_number(release as i32)
                )
            }
            None => f.write_str(": install a newer driver"),
        }
    }
}

impl std::error::Error for PtxVersionError {}

/// The version that a module declares to a driver: its own if the driver accepts it, else the newest that the driver
/// accepts.
pub(super) fn version_for(
    module: &Module,
    info: &ModuleInfo,
    driver: DriverVersion,
) -> Result<Version, PtxVersionError> {
    let accepted = Version::accepted_by(driver.release());
    if accepted.is_some_and(|accepted| module.version <= accepted) {
        return Ok(module.version);
    }
    let target = module.target.arch;
    let (needed, feature) = info.lowest_version(target);
    match accepted {
        Some(accepted) if needed <= accepted => Ok(accepted),
        _ => Err(PtxVersionError { found: module.version, needed, feature, target, driver, accepted }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = ".entry k() { ret; }";
    const LANE: &str = ".entry k() { .reg .b128 x; ret; }";

    /// What becomes of the version of a text, for a driver.
    fn given(version: &str, target: &str, body: &str, driver: i32) -> Result<Version, PtxVersionError> {
        let text = format!(".version {version}\n.target {target}\n.address_size 64\n{body}");
        let module = warpwright_ptx::parse(&text).expect("it parses");
        let info = warpwright_ptx::verify(&module).expect("it is valid");
        version_for(&module, &info, DriverVersion::from_number(driver))
    }

    #[test]
    fn a_version_is_lowered_no_further_than_the_driver_asks() {
        let v = Version::new;
        assert_eq!(given("9.0", "sm_80", COPY, 13000), Ok(v(9, 0)), "the driver accepts it");
        assert_eq!(given("7.0", "sm_80", COPY, 13000), Ok(v(7, 0)), "nothing is raised");
        assert_eq!(given("9.0", "sm_80", COPY, 12040), Ok(v(8, 4)));
        assert_eq!(given("9.0", "sm_80", LANE, 12030), Ok(v(8, 3)), "just what is needed");
        assert_eq!(
            given("9.5", "sm_80", COPY, 14010),
            Ok(v(9, 5)),
            "drivers that are not known accept all that is"
        );
    }

    #[test]
    fn what_cannot_be_lowered_says_what_asks_for_it() {
        let error = given("9.0", "sm_80", LANE, 12020).expect_err("`.b128` came with 8.3");
        let found = (error.found, error.needed, error.feature, error.accepted);
        let v = Version::new;
        assert_eq!(found, (v(9, 0), v(8, 3), Some("a `.b128` variable"), Some(v(8, 2))));
        assert_eq!(
            error.to_string(),
            "the module needs PTX 8.3, for a `.b128` variable (it says 9.0); the driver, of CUDA 12.2, accepts PTX up \
             to 8.2: install a driver of CUDA 12.3 or later"
        );

        let error = given("8.7", "sm_120", COPY, 12040).expect_err("the target came with 8.7");
        assert_eq!((error.needed, error.feature, error.target), (v(8, 7), None, Arch::sm(120)));
        assert_eq!(
            error.to_string(),
            "the module needs PTX 8.7, for its target sm_120; the driver, of CUDA 12.4, accepts PTX up to 8.4: \
             install a driver of CUDA 12.8 or later"
        );
    }
}
