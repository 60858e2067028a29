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

/// Replaces the content of a file that is there: whoever looks sees the old text or the new.
pub(crate) fn replace(name: &str, text: &str) -> Result<(), Failure> {
    // The file that a link points to is the one to replace.
    let path =
        fs::canonicalize(name).map_err(|error| Failure::Message(format!("cannot find {name}: {error}")))?;
    write_whole(&path, text.as_bytes())
}

/// Writes a file as one step: whoever looks sees the old content, if there was one, or all of the new.
/// Devices and pipes are written to as they are.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Message(format!("cannot write {}: {error}", path.display()));
    let (path, permissions) = match fs::metadata(path) {
        Ok(there) if there.is_file() => (fs::canonicalize(path).map_err(failed)?, Some(there.permissions())),
        Ok(_) => return fs::write(path, content).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_path_buf(), None),
        Err(error) => return Err(failed(error)),
    };
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".tmp{}", std::process::id()));
    let beside = path.with_file_name(name);
    let write = || -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
        file.write_all(content)?;
        file.sync_all()?;
        if let Some(permissions) = permissions {
            fs::set_permissions(&beside, permissions)?;
        }
        fs::rename(&beside, &path)
    };
    write().map_err(|error| {
        // Left behind only if even removing it fails.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}
