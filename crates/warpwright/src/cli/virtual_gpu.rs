//! The virtual GPU as options ask for it: what it checks, how much memory it has.

use super::Failure;
use std::str::FromStr;
use warpwright_ptx::ir::Arch;
use warpwright_runtime::Device;
use warpwright_vm as vm;

/// The definition of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Race {
    /// A strong read before a block barrier acquires, as compilers' code relies on
    Normal,
    /// By the letter of the memory model
    Strict,
}

/// Whether kernels are compiled to code of this processor.
#[derive(clap::Args)]
pub(crate) struct NativeArgument {
    /// The virtual GPU compiles kernels to code of this processor, with the same results: off, auto (once they have run
    /// for some time) or always [default: auto]
    #[arg(long = "native", value_name = "WHEN", hide_possible_values = true)]
    pub(crate) when: Option<Native>,
}

impl NativeArgument {
    /// Configures a virtual GPU. Who asked for what cannot be here is told why.
    pub(crate) fn apply(&self, config: &mut vm::DeviceConfig) {
        let Some(native) = self.when else { return };
        config.native = native.into();
        if native != Native::Off
            && let Some(why) = vm::Native::unavailable()
        {
            eprintln!("warpwright: kernels are interpreted: {why}");
        }
    }
}

/// When kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Native {
    /// They are interpreted
    Off,
    /// A function is compiled once it has run for some time
    Auto,
    /// A function is compiled before its first instruction
    Always,
}

impl From<Native> for vm::Native {
    fn from(native: Native) -> Self {
        match native {
            Native::Off => vm::Native::Off,
            Native::Auto => vm::Native::Auto,
            Native::Always => vm::Native::Always,
        }
    }
}

/// A check that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Check {
    All,
    None,
    Memcheck,
    Racecheck,
    Initcheck,
    Synccheck,
    #[value(name = "synccheck=strict")]
    StrictSynccheck,
    Api,
}

/// What is to be checked.
pub(crate) fn checks(asked: &[Check]) -> Result<vm::Checks, Failure> {
    let mut checks = vm::Checks::MEMORY;
    for &check in asked {
        match check {
            Check::All => checks = vm::Checks { strict_sync: checks.strict_sync, ..vm::Checks::ALL },
            Check::None if asked.len() > 1 => {
                return Err(Failure::Message("`--check none` goes with no other check".into()));
            }
            Check::None | Check::Memcheck => {}
            Check::Racecheck => checks.race = true,
            Check::Initcheck => checks.init = true,
            Check::Synccheck => checks.sync = true,
            Check::StrictSynccheck => (checks.sync, checks.strict_sync) = (true, true),
            Check::Api => {
                return Err(Failure::Message(
                    "`--check api` is of the calls of a program: it goes with `exec`".into(),
                ));
            }
        }
    }
    Ok(checks)
}

/// A compute capability: `90`, `90a` or `sm_90a`.
pub(crate) fn compute_capability(text: &str) -> Result<Arch, String> {
    let name = if text.starts_with("sm_") { text.to_string() } else { format!("sm_{text}") };
    Arch::from_str(&name).map_err(|error| match Arch::from_str(&name.replace('.', "")) {
        Ok(arch) => format!("`{text}` is written {}", arch.to_string().trim_start_matches("sm_")),
        Err(_) if text.is_empty() => {
            "a compute capability is missing: write 80, or 75,90 for two devices".into()
        }
        Err(_) => error.to_string(),
    })
}

/// Whether it is a virtual GPU of this program, which checks and counts as it is told: not one behind the CUDA driver
/// API.
pub(crate) fn is_ours(device: &Device) -> bool {
    device.properties().driver.is_none()
}

/// What a device is like, but for its memory: of that it has half of what this machine could give, since the checks
/// keep books on it.
pub(crate) fn config(arch: Arch) -> vm::DeviceConfig {
    let mut config = vm::DeviceConfig::of(arch);
    config.memory = config.memory.min(host_memory().unwrap_or(u64::MAX) / 2);
    config
}

/// Bytes that this machine could give, where it says so.
fn host_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_capabilities() {
        assert_eq!(compute_capability("90"), Ok(Arch::sm(90)));
        assert_eq!(compute_capability("90a"), Ok(Arch::specific(90)));
        assert_eq!(compute_capability("sm_80"), Ok(Arch::sm(80)));
        assert!(compute_capability("81").is_err());
        assert!(compute_capability("hopper").is_err());
        let advised = |text: &str| {
            compute_capability(text).unwrap_err().rsplit_once(' ').map(|(_, last)| last.to_owned())
        };
        assert_eq!(
            ["8.0", "9.0a", "sm_12.0"].map(advised),
            ["80", "90a", "120"].map(|arch| Some(arch.into()))
        );
        assert_eq!(
            compute_capability(""),
            Err("a compute capability is missing: write 80, or 75,90 for two devices".into())
        );
    }
}
