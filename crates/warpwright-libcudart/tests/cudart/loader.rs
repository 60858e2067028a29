//! The library as a loader sees it: every name of NVIDIA's runtime library, under the versions that programs ask for.

use crate::common::{call, file, load, symbol};
use std::ffi::{CStr, c_char, c_int};

/// The names of the table, and whether each is supported.
fn names() -> impl Iterator<Item = (&'static str, bool)> {
    let lines = include_str!("../../src/api/functions.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| match line.split_once(' ') {
        Some((name, _)) => (name, false),
        None => (line, true),
    })
}

#[test]
fn every_name_is_exported() {
    let library = load(None);
    let missing: Vec<&str> =
        names().map(|(name, _)| name).filter(|name| symbol(&library, name).is_none()).collect();
    assert_eq!(missing, [""; 0]);
    assert_eq!(symbol(&library, "cudaNothing"), None);
    assert!(names().filter(|(_, is_supported)| *is_supported).count() > 390);
}

/// What is missing needs no driver to say so, whatever it is given.
#[test]
fn what_is_missing_says_so() {
    let library = load(None);
    let result = call!(library.cudaImportExternalMemory(1usize, 2usize, 3usize));
    let last = call!(library.cudaGetLastError());
    assert_eq!((result, last), (801, 801));
}

#[test]
fn errors_have_their_names() {
    let library = load(None);
    let name = |code: c_int| {
        let text = call!(*const c_char; library.cudaGetErrorName(code));
        // SAFETY: the library's names are static.
        unsafe { CStr::from_ptr(text) }.to_str().expect("a name")
    };
    let found = [0, 1, 2, 9, 98, 600, 719, 999, 12345].map(name);
    let expected = [
        "cudaSuccess",
        "cudaErrorInvalidValue",
        "cudaErrorMemoryAllocation",
        "cudaErrorInvalidConfiguration",
        "cudaErrorInvalidDeviceFunction",
        "cudaErrorNotReady",
        "cudaErrorLaunchFailure",
        "cudaErrorUnknown",
        "unrecognized error code",
    ];
    assert_eq!(found, expected);
    let text = call!(*const c_char; library.cudaGetErrorString(9 as c_int));
    // SAFETY: the library's texts are static.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"invalid configuration argument");
}

/// A number of an ELF file.
fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    let bytes = &bytes[at..at + width];
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The versions that a library of 64 bits defines, without its own name.
fn versions(file: &[u8]) -> Vec<String> {
    const DEFINITIONS: usize = 0x6fff_fffd;
    let (sections, width) = (number(file, 0x28, 8), number(file, 0x3a, 2));
    let section = |index: usize| sections + index * width;
    let is_wanted = |index: &usize| number(file, section(*index) + 4, 4) == DEFINITIONS;
    let Some(index) = (0..number(file, 0x3c, 2)).find(is_wanted) else { return Vec::new() };
    let texts = number(file, section(number(file, section(index) + 0x28, 4)) + 0x18, 8);
    let (mut at, mut found) = (number(file, section(index) + 0x18, 8), Vec::new());
    loop {
        let is_base = number(file, at + 2, 2) & 1 != 0;
        let name = texts + number(file, at + number(file, at + 12, 4), 4);
        let name = file[name..].split(|byte| *byte == 0).next().unwrap_or_default();
        if !is_base {
            found.push(String::from_utf8_lossy(name).into_owned());
        }
        match number(file, at + 16, 4) {
            0 => return found,
            next => at += next,
        }
    }
}

/// Programs ask for symbols under these versions. The linker that rustc brings along can define them.
#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn the_versions_of_both_majors_are_defined() {
    let bytes = std::fs::read(file()).expect("the library is there");
    assert_eq!(versions(&bytes), ["libcudart.so.12", "libcudart.so.13"]);
}
