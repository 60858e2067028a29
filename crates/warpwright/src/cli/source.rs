//! Reading PTX files and standard input, and writing files whole.

use super::Failure;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The name under which standard input is asked for.
pub(crate) const STDIN: &str = "-";

/// PTX of a file, or of standard input for `-`.
pub(crate) fn read(name: &str) -> Result<String, Failure> {
    utf8(name, ", and PTX is ASCII text")
}

/// Text of a file, or of standard input for `-`.
#[cfg(feature = "llm")]
pub(crate) fn read_text(name: &str) -> Result<String, Failure> {
    utf8(name, "")
}

/// Text; where it is none, `rule` is said too.
fn utf8(name: &str, rule: &str) -> Result<String, Failure> {
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
        Failure::Message(format!("cannot read {shown}: byte {at} is not UTF-8{rule}"))
    })
}

/// What messages call the file.
pub(crate) fn display_name(name: &str) -> &str {
    if name == STDIN { "<stdin>" } else { name }
}

/// Replaces the content of an existing file atomically: readers see the old text or the new.
pub(crate) fn replace(name: &str, text: &str) -> Result<(), Failure> {
    // The file that a link points to is the one to replace.
    let path =
        fs::canonicalize(name).map_err(|error| Failure::Message(format!("cannot find {name}: {error}")))?;
    write_whole(&path, text.as_bytes())
}

/// Writes a file atomically: readers see the old content, if there was any, or all of the new.
/// Devices and pipes are written to as they are.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let mut file = Replacement::create(path)?;
    file.write_all(content).map_err(|error| cannot_write(path, &error))?;
    file.finish()
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Message(format!("cannot write {}: {error}", path.display()))
}

/// A file that is written beside the one whose place it takes at the end. Dropped before that, it is gone.
/// Devices and pipes are written to as they are.
pub(crate) struct Replacement {
    file: io::BufWriter<fs::File>,
    path: PathBuf,
    /// Where it is written until it is finished.
    beside: Option<PathBuf>,
}

impl Replacement {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let create = || -> io::Result<Replacement> {
            let (path, permissions) = match fs::metadata(path) {
                // The file that a link points to is the one to replace.
                Ok(there) if there.is_file() => (fs::canonicalize(path)?, Some(there.permissions())),
                Ok(_) => {
                    let file = fs::OpenOptions::new().write(true).open(path)?;
                    return Ok(Replacement {
                        file: io::BufWriter::new(file),
                        path: path.into(),
                        beside: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_path_buf(), None),
                Err(error) => return Err(error),
            };
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".tmp{}", std::process::id()));
            let beside = path.with_file_name(name);
            let file = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
            // From here on it is removed where something fails.
            let made = Replacement { file: io::BufWriter::new(file), path, beside: Some(beside) };
            if let Some(permissions) = permissions {
                made.file.get_ref().set_permissions(permissions)?;
            }
            Ok(made)
        };
        create().map_err(|error| cannot_write(path, &error))
    }

    /// Puts it in its place.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let mut finish = || -> io::Result<()> {
            self.file.flush()?;
            if let Some(beside) = &self.beside {
                self.file.get_ref().sync_all()?;
                fs::rename(beside, &self.path)?;
                self.beside = None;
            }
            Ok(())
        };
        let finished = finish();
        finished.map_err(|error| cannot_write(&self.path, &error))
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Left behind only if even removing it fails.
            let _ = fs::remove_file(beside);
        }
    }
}
