//! The library's options as environment variables: one variable for each option on the command line. Other variables
//! stay as in the user's environment.

use super::{Arguments, Log};
use crate::cli::virtual_gpu::Check;
use crate::cli::{Failure, virtual_gpu};
use clap::ValueEnum;
use std::ffi::OsString;

/// The variables, by name.
pub(super) type Variables = Vec<(&'static str, OsString)>;

/// What the options come to.
pub(super) fn variables(arguments: &Arguments) -> Result<Variables, Failure> {
    let mut variables = Variables::new();
    let mut set = |name, value: OsString| variables.push((name, value));
    if !arguments.check.is_empty() {
        let of_kernels: Vec<_> =
            arguments.check.iter().filter(|check| **check != Check::Api).copied().collect();
        virtual_gpu::checks(&of_kernels)?;
        set("WARPWRIGHT_CHECK", list(arguments.check.iter().map(name)).into());
    }
    if let Some(race) = &arguments.race {
        set("WARPWRIGHT_RACE", name(race).into());
    }
    if let Some(native) = &arguments.native.when {
        set("WARPWRIGHT_NATIVE", name(native).into());
    }
    if !arguments.sm.is_empty() {
        let number = |arch: &warpwright_ptx::ir::Arch| {
            let text = arch.to_string();
            text.strip_prefix("sm_").unwrap_or(&text).to_string()
        };
        set("WARPWRIGHT_DEVICES", list(arguments.sm.iter().map(number)).into());
    }
    if let Some(release) = arguments.driver {
        set("WARPWRIGHT_DRIVER_VERSION", release.to_string().into());
    }
    if let Some(bytes) = arguments.memory {
        set("WARPWRIGHT_MEMORY", bytes.to_string().into());
    }
    if let Some(workers) = arguments.workers {
        set("WARPWRIGHT_WORKERS", workers.to_string().into());
    }
    if let Some(order) = arguments.order {
        set("WARPWRIGHT_ORDER", order.to_string().into());
    }
    if let Some(limit) = arguments.max_instructions {
        set("WARPWRIGHT_MAX_INSTRUCTIONS", limit.to_string().into());
    }
    if let Some(file) = &arguments.findings {
        // The program may go to another folder before it begins.
        let path = std::path::absolute(file)
            .map_err(|error| Failure::Message(format!("--findings {}: {error}", file.display())))?;
        set("WARPWRIGHT_FINDINGS", path.into());
    }
    if let Some(status) = arguments.fail {
        set("WARPWRIGHT_EXIT_STATUS", status.to_string().into());
    }
    if let Some(on_error) = &arguments.on_error {
        set("WARPWRIGHT_ON_ERROR", name(on_error).into());
    }
    if arguments.leaks {
        set("WARPWRIGHT_LEAKS", "1".into());
    }
    if let Some(log) = arguments.log {
        let value = match log {
            Log::Missing => "missing",
            Log::Calls => "calls",
            Log::Off => "off",
        };
        set("WARPWRIGHT_LOG", value.into());
    }
    Ok(variables)
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

/// A number of bytes: `1048576`, `1024K`, `512M`, `8G`, `1T`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, unit)) if !unit.is_ascii_digit() => {
            let shift = match unit.to_ascii_uppercase() {
                'K' => 10,
                'M' => 20,
                'G' => 30,
                'T' => 40,
                _ => return Err(format!("`{unit}` is no unit: there are K, M, G and T, of 1024 each")),
            };
            (&text[..at], shift)
        }
        _ => (text, 0),
    };
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok());
    let bytes = number.flatten().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| {
        format!("`{text}` is not a number of bytes: a whole number from 1 on, and K, M, G or T behind it")
    })
}

/// A version of CUDA, `12.8`, as the driver reports it: 12080.
pub(super) fn release(text: &str) -> Result<u32, String> {
    let number =
        |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok());
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    let parts = number(major).flatten().zip(number(minor).flatten());
    let known = parts.filter(|(major, minor)| (11..100).contains(major) && *minor < 10);
    known.map(|(major, minor)| 1000 * major + 10 * minor).ok_or_else(|| {
        // As the driver reports it.
        let reported = number(text).flatten().filter(|reported| reported % 10 == 0);
        let written = reported.map(|reported| format!("{}.{}", reported / 1000, reported % 1000 / 10));
        match written.filter(|written| release(written) == Ok(reported.unwrap_or(0))) {
            Some(written) => format!("`{text}` is the driver's number of CUDA {written}: write {written}"),
            None => format!("`{text}` is no version of CUDA from 11.0 on, such as 12.8 or 13.5"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        assert_eq!(release("12.8"), Ok(12080));
        assert_eq!(release("13"), Ok(13000));
        for text in ["", "12080", "10.2", "12.", ".8", "12.10", "+12.8", "12.8.1", "v12"] {
            assert!(release(text).is_err(), "{text:?}");
        }
        let advised =
            |text: &str| release(text).unwrap_err().rsplit_once("write ").map(|(_, what)| what.to_owned());
        for (text, expected) in [
            ("12080", Some("12.8")),
            ("13000", Some("13.0")),
            ("10020", None),
            ("12085", None),
            ("12100", None),
            ("v12", None),
        ] {
            assert_eq!(advised(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("16k"), Ok(16 << 10));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("8G"), Ok(8 << 30));
        assert_eq!(size("1T"), Ok(1 << 40));
        for text in ["", "0", "G", "-1", "+1", "1.5G", "8GB", "8 G", "16777216T", "8é", "8P"] {
            assert!(size(text).is_err(), "{text:?}");
        }
    }
}
