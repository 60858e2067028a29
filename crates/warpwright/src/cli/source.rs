//! Reading PTX files and standard input, and writing files whole.

use super::Failure;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

/// The name under which standard input is asked for.
pub(crate) const STDIN: &str = "-";

/// Text of a file, or of standard input for `-`.
pub(crate) fn read(name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let result = if name == STDIN {
        io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        fs::read(name).map(|content| bytes = content)
    };
    let shown = display_name(name);
    result.map_err(|error| Failure::Message(format!("cannot read {shown}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::Message(format!("cannot read {shown}: byte {at} is not UTF-8, and PTX is ASCII text"))
    })
}

/// What messages call the file.
pub(crate) fn display_name(name: &str) -> &str {
    if name == STDIN { "<stdin>" } else { name }
}

/// Replaces a file's content as one step: whoever looks sees the old text or the new.
pub(crate) fn replace(name: &str, text: &str) -> Result<(), Failure> {
    let failed = |what: &str, error: io::Error| Failure::Message(format!("cannot {what} {name}: {error}"));
    // The file that a link points to is the one to replace.
    let path = fs::canonicalize(name).map_err(|error| failed("find", error))?;
    let permissions = fs::metadata(&path).map_err(|error| failed("read", error))?.permissions();
    let beside = path.with_extension(format!("tmp{}", std::process::id()));
    let write = |beside: &Path| -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::set_permissions(beside, permissions.clone())?;
        fs::rename(beside, &path)
    };
    write(&beside).map_err(|error| {
        // Left behind only if even removing it fails.
        let _ = fs::remove_file(&beside);
        failed("write", error)
    })
}
