//! The temporary folder in which the libraries have the names of the driver and of the CUDA runtime: for one program
//! only.

use crate::cli::Failure;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The names under which programs ask the loader for the driver.
const DRIVER: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// The names under which they ask it for the runtime.
const RUNTIME: [&str; 3] = ["libcudart.so.12", "libcudart.so.13", "libcudart.so"];

/// Such a folder. Dropping it removes it.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new folder, accessible only to this user, with one library as the driver, and another as the runtime if there
    /// is one.
    pub(super) fn new(driver: &Path, runtime: Option<&Path>) -> Result<Folder, Failure> {
        let parent = std::env::temp_dir();
        let cannot = |error| {
            Failure::Message(format!("cannot make a folder in {} for the driver: {error}", parent.display()))
        };
        if parent.as_os_str().as_encoded_bytes().iter().any(|byte| b":;".contains(byte)) {
            return Err(Failure::Message(format!(
                "the folder for temporary files is {}, and a colon or a semicolon cannot stand in LD_LIBRARY_PATH: \
                 set TMPDIR to another one",
                parent.display()
            )));
        }
        let parent = std::path::absolute(&parent).map_err(cannot)?;
        let folder = make(&parent).map(Folder).map_err(cannot)?;
        let runtime = runtime.into_iter().flat_map(|library| RUNTIME.map(|name| (name, library)));
        for (name, library) in DRIVER.map(|name| (name, driver)).into_iter().chain(runtime) {
            symlink(library, folder.0.join(name)).map_err(cannot)?;
        }
        Ok(folder)
    }

    /// The loader's path with this folder before what is there.
    pub(super) fn before(&self, path: Option<OsString>) -> OsString {
        let mut folders = self.0.clone().into_os_string();
        // An empty entry would be the current folder.
        if let Some(path) = path.filter(|path| !path.is_empty()) {
            folders.push(":");
            folders.push(path);
        }
        folders
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is links that lead nowhere worse than where they led before.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a new folder; an existing one is never used.
fn make(parent: &Path) -> std::io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    for attempt in 0..1000 {
        let path = parent.join(format!("warpwright-exec-{}-{:x}", std::process::id(), time + attempt));
        match builder.create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}
