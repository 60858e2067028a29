//! `cargo xtask dist`: the program as one file for Linux machines that are older than this one.
//!
//! A program that is built as usual asks for the C library of the machine that built it. Zig has the symbols of older
//! ones; cargo-zigbuild links with them. Both come from PyPI.

use crate::run::{cargo, root, run, target_dir};
use crate::tools;
use std::path::{Path, PathBuf};

/// The oldest GNU C library that the program runs with.
const GLIBC: (u32, u32) = (2, 31);

/// The largest that the file may be.
const MAX_BYTES: u64 = 50 << 20;

pub(crate) fn run_all() -> Result<(), String> {
    let file = build()?;
    let bytes = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let size = bytes.len() as u64;
    let newest = newest_glibc(&bytes);
    println!("{}: {:.1} MB, glibc {}.{}", file.display(), size as f64 / 1e6, newest.0, newest.1);
    if size > MAX_BYTES {
        return Err(format!("it may have {MAX_BYTES} bytes"));
    }
    if newest > GLIBC {
        return Err(format!("it may ask for glibc {}.{}", GLIBC.0, GLIBC.1));
    }
    Ok(())
}

/// Builds the program, without symbols.
fn build() -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("the file is for Linux on x86-64, and built there".into());
    }
    let python = tools::python_with("dist", &root().join("tools/dist/requirements.txt"))?;
    let programs = python.parent().unwrap_or(Path::new("")).to_path_buf();
    let before = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&before));
    let paths = std::env::join_paths(paths).map_err(|error| error.to_string())?;
    let triple = "x86_64-unknown-linux-gnu";
    let mut command = cargo();
    command.args(["zigbuild", "--release", "--locked", "--package", "warpwright", "--bin", "warpwright"]);
    command.args(["--target", &format!("{triple}.{}.{}", GLIBC.0, GLIBC.1)]);
    run(command.env("PATH", paths).env("CARGO_PROFILE_RELEASE_STRIP", "symbols"))?;
    Ok(target_dir().join(triple).join("release/warpwright"))
}

/// The newest version of the GNU C library that a program asks for: the largest `GLIBC_2.N` among its bytes.
fn newest_glibc(bytes: &[u8]) -> (u32, u32) {
    const NAME: &[u8] = b"GLIBC_";
    let versions = bytes.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let read = |at: usize| {
        let text = bytes[at + NAME.len()..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
        let text = String::from_utf8(text.copied().collect()).ok()?;
        let (major, rest) = text.split_once('.')?;
        let minor = rest.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    versions.filter_map(|(at, _)| read(at)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn the_newest_version_is_found() {
        assert_eq!(newest_glibc(b"..GLIBC_2.4\0GLIBC_2.17\0GLIBC_2.2.5\0GLIBC_PRIVATE\0"), (2, 17));
        assert_eq!(newest_glibc(b"nothing"), (0, 0));
    }
}
