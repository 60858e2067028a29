//! The temporary folder in which the libraries have NVIDIA's names: for one program only.
//!
//! The loader looks there first for the driver and the CUDA runtime. A folder within has all names, also those of the
//! compiler and the linker, which must not be found where NVIDIA's are not installed. It serves where a program opens a
//! library by a path, or an `RPATH` leads to one: the loader asks an auditor then, which answers from it.

use super::library::Libraries;
use super::ptxas;
use crate::cli::Failure;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Such a folder. Dropping it removes it.
pub(super) struct Folder {
    path: PathBuf,
    /// The library that the loader asks about paths.
    auditor: Option<PathBuf>,
}

impl Folder {
    /// A new folder, accessible only to this user.
    pub(super) fn new(libraries: &Libraries) -> Result<Folder, Failure> {
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
        let path = make(&parent).map_err(cannot)?;
        let folder = Folder { path, auditor: libraries.auditor().map(Path::to_path_buf) };
        fs::create_dir(folder.instead()).map_err(cannot)?;
        for (role, library) in libraries.iter() {
            for name in role.names() {
                symlink(library, folder.instead().join(name)).map_err(cannot)?;
                if role.is_searched() {
                    symlink(library, folder.path.join(name)).map_err(cannot)?;
                }
            }
        }
        // Without itself this program cannot be the assembler, and programs that look for one find another.
        if let Ok(program) = std::env::current_exe() {
            symlink(program, folder.path.join(ptxas::NAME)).map_err(cannot)?;
        }
        Ok(folder)
    }

    /// What the library makes where it has found an error.
    pub(super) fn failed(&self) -> PathBuf {
        self.path.join("failed")
    }

    /// Whether a process has found an error.
    pub(super) fn has_failed(&self) -> bool {
        self.failed().exists()
    }

    /// The file for findings that go to no file of the user's.
    pub(super) fn findings(&self) -> PathBuf {
        self.path.join("findings")
    }

    /// Where the libraries have the names of those that a path may lead to.
    fn instead(&self) -> PathBuf {
        self.path.join("instead")
    }

    /// The variables by which the loader finds what is here, each before what the user has set; and those by which
    /// Triton does, if the user has not set them.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let before = |name, first: &Path| (name, before(first, std::env::var_os(name)));
        let mut variables = vec![before("LD_LIBRARY_PATH", &self.path)];
        for (name, path) in [
            ("TRITON_PTXAS_PATH", self.path.join(ptxas::NAME)),
            ("TRITON_PTXAS_BLACKWELL_PATH", self.path.join(ptxas::NAME)),
            ("TRITON_LIBCUDA_PATH", self.path.clone()),
        ] {
            if std::env::var_os(name).is_none() {
                variables.push((name, path.into()));
            }
        }
        if let Some(auditor) = &self.auditor {
            variables.push(before("LD_AUDIT", auditor));
            variables.push(("WARPWRIGHT_FOLDER", self.instead().into()));
        }
        variables
    }
}

/// A list of the loader with something before what is there.
fn before(first: &Path, list: Option<OsString>) -> OsString {
    let mut all = first.as_os_str().to_owned();
    // An empty entry would be the current folder.
    if let Some(list) = list.filter(|list| !list.is_empty()) {
        all.push(":");
        all.push(list);
    }
    all
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is links that lead nowhere worse than where they led before.
        let _ = fs::remove_dir_all(&self.path);
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
