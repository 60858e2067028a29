//! The configuration, which `warpwright exec` writes into the environment.
//!
//! | variable | value | default |
//! | --- | --- | --- |
//! | `WARPWRIGHT_CHECK` | `all`, `none`, or some of `memcheck,racecheck,initcheck,synccheck,synccheck=strict`; also `api` | `memcheck` |
//! | `WARPWRIGHT_RACE` | the definition of a race: `normal`, or `strict`, by the letter | `normal` |
//! | `WARPWRIGHT_NATIVE` | whether kernels are compiled: `off`, `auto` or `always` | `auto` |
//! | `WARPWRIGHT_SIMD` | the virtual GPU's: vector instructions that are used at most, `base`, `avx2` or `avx512` | the processor's |
//! | `WARPWRIGHT_DEVICES` | architectures, one device each: `75,80,90` | `90` |
//! | `WARPWRIGHT_MEMORY` | memory of each device in bytes, with `K`, `M`, `G` or `T` | `64G` |
//! | `WARPWRIGHT_WORKERS` | host threads of each device; 0 for one for each core | `0` |
//! | `WARPWRIGHT_ORDER` | execution order of streams: `issue`, `reverse`, `random:SEED` | `issue` |
//! | `WARPWRIGHT_MAX_INSTRUCTIONS` | a kernel that executes more, counted once per thread, is ended | 2⁴⁰ |
//! | `WARPWRIGHT_DRIVER_VERSION` | the CUDA version that the driver reports | `13050` |
//! | `WARPWRIGHT_REFUSE` | functions that are refused, in all their versions, and their results: `cuMemAlloc=2` | none |
//! | `WARPWRIGHT_LOG` | `missing`: missing and misused functions; `calls`: each call as well; `off` | `missing` |
//! | `WARPWRIGHT_FINDINGS` | a file that findings are appended to as lines of JSON | text, to stderr |
//! | `WARPWRIGHT_EXIT_STATUS` | exit status of a process with errors that would exit with 0 | none |
//! | `WARPWRIGHT_FAILED` | a file that a process with errors makes | none |
//! | `WARPWRIGHT_ON_ERROR` | `stop`: an error of a kernel stays with its context; `continue`: one call returns it | `stop` |
//! | `WARPWRIGHT_LEAKS` | `1`: leaks are errors too, and reported | `0` |
//! | `CUDA_VISIBLE_DEVICES` | as for the driver: ordinals, until the first invalid one | all |

use super::settings::Settings;
use crate::api;
use crate::types::Status;
use std::path::PathBuf;
use thiserror::Error;
use warpwright_device::Order;
use warpwright_ptx::ir::Arch;
use warpwright_vm::{Checks, Native, Options, Race, Schedule};

/// The configuration of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// What may change later.
    pub(crate) settings: Settings,
    /// The architectures of the devices that the client sees.
    pub(crate) devices: Vec<Arch>,
    /// Bytes of each device.
    pub(crate) memory: u64,
    /// Host threads of each device, 0 for one for each core.
    pub(crate) workers: u32,
    /// Whether kernels are compiled.
    pub(crate) native: Native,
    /// 1000 · major + 10 · minor.
    pub(crate) driver_version: u32,
    /// Functions that are refused, and their results.
    pub(crate) refused: Vec<(&'static str, Status)>,
    /// The verbosity of the log.
    pub(crate) log: LogLevel,
    /// The file for findings as lines of JSON; `None` for stderr as text.
    pub(crate) findings: Option<PathBuf>,
    /// The exit status after errors.
    pub(crate) exit_status: Option<u8>,
    /// The file that a process with errors makes.
    pub(crate) failed: Option<PathBuf>,
    /// What an error of a kernel does to its context.
    pub(crate) on_error: OnError,
    /// Whether leaks are errors.
    pub(crate) leaks: bool,
}

/// What an error of a kernel does to its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnError {
    /// It stays, as on a GPU.
    Stop,
    /// The next call that waits returns it, and the context goes on.
    Continue,
}

/// The verbosity of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogLevel {
    /// Nothing.
    Off,
    /// Missing, misused and refused functions.
    Missing,
    /// Every call as well.
    Calls,
}

/// A variable with an invalid value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{variable}={value}: {rule}")]
pub(crate) struct ConfigError {
    variable: &'static str,
    value: String,
    rule: &'static str,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            settings: Settings {
                checks: Checks::MEMORY,
                api: false,
                race: Race::Normal,
                order: Order::Issue,
                schedule: Schedule::Parallel,
                max_instructions: Options::default().max_instructions,
            },
            devices: vec![Arch::sm(90)],
            memory: 64 << 30,
            workers: 0,
            native: Native::Auto,
            driver_version: 13050,
            refused: Vec::new(),
            log: LogLevel::Missing,
            findings: None,
            exit_status: None,
            failed: None,
            on_error: OnError::Stop,
            leaks: false,
        }
    }
}

impl Config {
    /// Reads the configuration from the environment.
    pub(crate) fn from_environment() -> Result<Config, ConfigError> {
        Config::read(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
        let (of, default) = (Variables(&variable), Config::default());
        let mut config = Config {
            settings: Settings {
                checks: of.read(
                    "WARPWRIGHT_CHECK",
                    "all, none, or some of memcheck, racecheck, initcheck, synccheck, synccheck=strict; also api",
                    default.settings.checks,
                    checks,
                )?,
                api: of
                    .read("WARPWRIGHT_CHECK", "", default.settings.api, |text| Some(has_api(text)))?,
                race: of.read("WARPWRIGHT_RACE", "normal or strict", default.settings.race, race)?,
                order: of.read(
                    "WARPWRIGHT_ORDER",
                    "issue, reverse, or random: and a number",
                    default.settings.order,
                    |text| text.parse().ok(),
                )?,
                schedule: default.settings.schedule,
                max_instructions: of.read(
                    "WARPWRIGHT_MAX_INSTRUCTIONS",
                    "a number of instructions, from 1 on",
                    default.settings.max_instructions,
                    |text| text.parse().ok().filter(|limit| *limit > 0),
                )?,
            },
            devices: of.read(
                "WARPWRIGHT_DEVICES",
                "architectures such as 75,80,90",
                default.devices,
                |text| items(text).map(arch).collect(),
            )?,
            memory: of.read(
                "WARPWRIGHT_MEMORY",
                "bytes, at least 1M, with K, M, G or T",
                default.memory,
                |text| bytes(text).filter(|bytes| (1 << 20..1 << 46).contains(bytes)),
            )?,
            workers: of.read(
                "WARPWRIGHT_WORKERS",
                "a number of threads up to 1024",
                default.workers,
                |text| text.parse().ok().filter(|workers| *workers <= 1024),
            )?,
            native: of.read("WARPWRIGHT_NATIVE", "off, auto or always", default.native, |text| match text {
                "" => Some(default.native),
                _ => text.parse().ok(),
            })?,
            driver_version: of.read(
                "WARPWRIGHT_DRIVER_VERSION",
                "1000 · major + 10 · minor, from 11000",
                default.driver_version,
                |text| text.parse().ok().filter(|version| (11000..100_000).contains(version)),
            )?,
            refused: of.read(
                "WARPWRIGHT_REFUSE",
                "exported functions, and what they return: cuMemAlloc=2",
                default.refused,
                |text| items(text).map(refusal).collect::<Option<Vec<_>>>().map(|all| all.concat()),
            )?,
            log: of.read("WARPWRIGHT_LOG", "missing, calls or off", default.log, |text| match text {
                "off" => Some(LogLevel::Off),
                "missing" => Some(LogLevel::Missing),
                "calls" => Some(LogLevel::Calls),
                _ => None,
            })?,
            findings: of.read("WARPWRIGHT_FINDINGS", "a file", default.findings, |text| Some(file(text)))?,
            failed: of.read("WARPWRIGHT_FAILED", "a file", default.failed, |text| Some(file(text)))?,
            exit_status: of.read(
                "WARPWRIGHT_EXIT_STATUS",
                "a status from 1 to 255",
                default.exit_status,
                |text| text.parse().ok().filter(|status| *status > 0).map(Some),
            )?,
            on_error: of.read(
                "WARPWRIGHT_ON_ERROR",
                "stop or continue",
                default.on_error,
                |text| match text {
                    "stop" => Some(OnError::Stop),
                    "continue" => Some(OnError::Continue),
                    _ => None,
                },
            )?,
            leaks: of.read("WARPWRIGHT_LEAKS", "0 or 1", default.leaks, |text| match text {
                "" | "0" => Some(false),
                "1" => Some(true),
                _ => None,
            })?,
        };
        if let Some(visible) = variable("CUDA_VISIBLE_DEVICES") {
            config.devices = visible_devices(&config.devices, &visible);
        }
        Ok(config)
    }
}

/// A file; none if it has no name.
fn file(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty())
}

/// The variables of the environment.
struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// The value of a variable, or its default.
    fn read<T>(
        &self,
        variable: &'static str,
        rule: &'static str,
        default: T,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let Some(value) = (self.0)(variable) else { return Ok(default) };
        parse(value.trim()).ok_or(ConfigError { variable, value, rule })
    }
}

/// The items between commas.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// The check that is not of kernels.
const API: &str = "api";

/// Whether `api` is among the checks.
pub(super) fn has_api(text: &str) -> bool {
    text.split(',').any(|name| name.trim() == API)
}

pub(super) fn race(text: &str) -> Option<Race> {
    match text {
        "normal" => Some(Race::Normal),
        "strict" => Some(Race::Strict),
        _ => None,
    }
}

pub(super) fn checks(text: &str) -> Option<Checks> {
    let of_kernels: Vec<&str> = text.split(',').filter(|name| name.trim() != API).collect();
    of_kernels.join(",").parse().ok()
}

/// `cuMemAlloc=2`: an exported function, with its versions, and a status other than success.
fn refusal(text: &str) -> Option<Vec<(&'static str, Status)>> {
    let (name, status) = text.split_once('=')?;
    let (name, status) = (name.trim(), status.trim().parse().ok().filter(|status| *status > 0)?);
    let is_it = |known: &&'static str| known.strip_prefix(name).is_some_and(is_version);
    let refused: Vec<_> = api::names().filter(is_it).map(|known| (known, Status(status))).collect();
    Some(refused).filter(|refused| !refused.is_empty())
}

/// Whether what is behind a name makes it a version of the function, for one of the default streams or none: `_v2_ptsz`.
fn is_version(suffix: &str) -> bool {
    let suffix = suffix.strip_suffix("_ptsz").or_else(|| suffix.strip_suffix("_ptds")).unwrap_or(suffix);
    suffix.is_empty() || suffix.strip_prefix("_v").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// `90`, `sm_90`, `90a`. Architectures that no instruction set was published for are refused.
fn arch(name: &str) -> Option<Arch> {
    let digits = name.strip_prefix("sm_").unwrap_or(name);
    let arch: Arch = format!("sm_{digits}").parse().ok()?;
    arch.introduced().map(|_| Arch::sm(arch.sm))
}

fn bytes(text: &str) -> Option<u64> {
    let shift = match text.bytes().last()?.to_ascii_uppercase() {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The driver takes ordinals until the first that no device has, and shows none where one is named twice.
fn visible_devices(devices: &[Arch], text: &str) -> Vec<Arch> {
    let ordinals = text.split(',').map_while(|name| name.trim().parse::<usize>().ok());
    let ordinals: Vec<usize> = ordinals.take_while(|ordinal| *ordinal < devices.len()).collect();
    let twice = ordinals.iter().enumerate().any(|(i, ordinal)| ordinals[..i].contains(ordinal));
    if twice { Vec::new() } else { ordinals.iter().map(|ordinal| devices[*ordinal]).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::read(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(read(&[]), Ok(Config::default()));
        assert_eq!(read(&[("WARPWRIGHT_NATIVE", "")]), Ok(Config::default()));
    }

    #[test]
    fn everything_can_be_said() {
        let config = read(&[
            ("WARPWRIGHT_CHECK", "racecheck, api, synccheck=strict"),
            ("WARPWRIGHT_RACE", "strict"),
            ("WARPWRIGHT_DEVICES", "75, sm_80,90a"),
            ("WARPWRIGHT_MEMORY", "3g"),
            ("WARPWRIGHT_WORKERS", "2"),
            ("WARPWRIGHT_NATIVE", "always"),
            ("WARPWRIGHT_ORDER", "random:5"),
            ("WARPWRIGHT_MAX_INSTRUCTIONS", "1000"),
            ("WARPWRIGHT_DRIVER_VERSION", "12020"),
            ("WARPWRIGHT_REFUSE", "cuMemAlloc=2, cuArrayCreate_v2 = 9999,cuStreamQuery=3, cuMemcpyDtoH=4"),
            ("WARPWRIGHT_LOG", "calls"),
            ("WARPWRIGHT_FINDINGS", "found.jsonl"),
            ("WARPWRIGHT_EXIT_STATUS", "9"),
            ("WARPWRIGHT_FAILED", "failed"),
            ("WARPWRIGHT_ON_ERROR", "continue"),
            ("WARPWRIGHT_LEAKS", "1"),
            ("CUDA_VISIBLE_DEVICES", "2,0,5,1"),
        ]);
        let expected = Config {
            settings: Settings {
                checks: Checks { race: true, sync: true, strict_sync: true, ..Checks::MEMORY },
                api: true,
                race: Race::Strict,
                order: Order::Random(5),
                schedule: Schedule::Parallel,
                max_instructions: 1000,
            },
            devices: vec![Arch::sm(90), Arch::sm(75)],
            memory: 3 << 30,
            workers: 2,
            native: Native::Always,
            driver_version: 12020,
            refused: [
                ("cuMemAlloc_v2", 2),
                ("cuMemAlloc", 2),
                ("cuArrayCreate_v2", 9999),
                ("cuStreamQuery", 3),
                ("cuStreamQuery_ptsz", 3),
                ("cuMemcpyDtoH_v2", 4),
                ("cuMemcpyDtoH_v2_ptds", 4),
                ("cuMemcpyDtoH", 4),
            ]
            .map(|(name, status)| (name, Status(status)))
            .to_vec(),
            log: LogLevel::Calls,
            findings: Some("found.jsonl".into()),
            exit_status: Some(9),
            failed: Some("failed".into()),
            on_error: OnError::Continue,
            leaks: true,
        };
        assert_eq!(config, Ok(expected));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (variable, value) in [
            ("WARPWRIGHT_CHECK", "everything"),
            ("WARPWRIGHT_RACE", "letter"),
            ("WARPWRIGHT_DEVICES", "80,81"),
            ("WARPWRIGHT_MEMORY", "1000"),
            ("WARPWRIGHT_MEMORY", "99999999T"),
            ("WARPWRIGHT_MEMORY", "€"),
            ("WARPWRIGHT_WORKERS", "-1"),
            ("WARPWRIGHT_NATIVE", "on"),
            ("WARPWRIGHT_ORDER", "random"),
            ("WARPWRIGHT_MAX_INSTRUCTIONS", "0"),
            ("WARPWRIGHT_DRIVER_VERSION", "12.8"),
            ("WARPWRIGHT_REFUSE", "cuMemAllocAsync"),
            ("WARPWRIGHT_REFUSE", "cuMemAllocAsync=0"),
            ("WARPWRIGHT_REFUSE", "cuMemAllocAsink=2"),
            ("WARPWRIGHT_LOG", "loud"),
            ("WARPWRIGHT_EXIT_STATUS", "256"),
            ("WARPWRIGHT_ON_ERROR", "ignore"),
            ("WARPWRIGHT_LEAKS", "yes"),
        ] {
            let error = read(&[(variable, value)]).unwrap_err();
            assert_eq!((error.variable, error.value.as_str()), (variable, value));
        }
    }

    #[test]
    fn a_device_named_twice_hides_all() {
        let of = |text| visible_devices(&[Arch::sm(75), Arch::sm(80)], text);
        assert_eq!(of("1"), [Arch::sm(80)]);
        assert_eq!(of("1,1"), []);
        assert_eq!(of(""), []);
        assert_eq!(of("-1"), []);
    }
}
