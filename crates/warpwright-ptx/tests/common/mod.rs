//! What the integration tests share: finding PTX files, and checks that hold for every module.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use warpwright_ptx::ir::{Module, Origin};
use warpwright_ptx::{parse, print};

/// The workspace's `tests/` folder.
pub(crate) fn test_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// Every `.ptx` file under `folder`, sorted.
///
/// # Panics
/// If the folder cannot be read: missing test data is a failure.
pub(crate) fn ptx_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a folder's entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The text of a test file.
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Line of an origin in `text`, from 1. What lies past the end counts as the last line.
pub(crate) fn line_of(text: &str, origin: Origin) -> usize {
    let Origin::Text(span) = origin else { return 1 };
    let start = (span.start as usize).min(text.trim_end().len());
    text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Checks that printing and parsing again changes nothing. Returns the printed text.
pub(crate) fn round_trip(module: &Module) -> Result<String, String> {
    let printed = print(module);
    let again = parse(&printed).map_err(|diagnostics| {
        let first = diagnostics.iter().next().expect("a refusal has a reason");
        let line = line_of(&printed, first.origin);
        let text = printed.lines().nth(line - 1).unwrap_or("").trim();
        format!("the printed text does not parse: {first}, at `{text}`")
    })?;
    if again != *module {
        return Err("the printed text parses as another module".to_string());
    }
    let twice = print(&again);
    if twice != printed {
        let line = twice.lines().zip(printed.lines()).find(|(a, b)| a != b);
        return Err(format!("printing is not idempotent: {line:?}"));
    }
    Ok(printed)
}

/// Ends a table-driven test: panics with all failures if there are any.
pub(crate) fn report(what: &str, checked: usize, failures: &[String]) {
    assert!(checked > 0, "no {what} found");
    if !failures.is_empty() {
        panic!("{} of {checked} {what} fail:\n{}", failures.len(), failures.join("\n"));
    }
}
