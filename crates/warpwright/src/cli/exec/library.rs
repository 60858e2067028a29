//! Search for the library: by an option, or near the program.

use std::fmt;
use std::path::{Path, PathBuf};

/// Its file, as cargo builds it. It is called that and nothing else, so that no loader takes it for a driver.
const FILE: &str = "libwarpwright_cuda.so";

/// The CUDA runtime's file, which is beside it.
const RUNTIME: &str = "libwarpwright_cudart.so";

/// The variable that says where it is.
const VARIABLE: &str = "WARPWRIGHT_LIBCUDA";

/// Why a program cannot be run on virtual GPUs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// What was named is not there.
    Named {
        /// Who named it.
        by: &'static str,
        path: PathBuf,
    },
    /// It is nowhere near the program.
    NotFound { looked: Vec<PathBuf> },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Named { by, path } => {
                write!(f, "{by} names {}, where there is no {FILE}", path.display())
            }
            Error::NotFound { looked } => {
                write!(f, "{FILE}, the CUDA driver API over the virtual GPU, was not found")?;
                let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
                write!(
                    f,
                    "\n  looked for in: {}\n  build it: cargo build -p warpwright-libcuda --release, in the \
                     project's folder\n  or fetch it with the release that this program is from, and put it beside \
                     the program, or say where it is: --library PATH, or {VARIABLE}",
                    looked.join(", ")
                )
            }
        }
    }
}

/// The library that was named, or the first that is near this program.
pub(super) fn find(option: Option<&Path>) -> Result<PathBuf, Error> {
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = option.map(|path| ("--library", path)).or(variable.as_deref().map(|path| (VARIABLE, path)));
    if let Some((by, path)) = named {
        return named_library(path).ok_or_else(|| Error::Named { by, path: path.to_path_buf() });
    }
    // Through links: the program may be called by one from a folder of its own.
    let program = std::env::current_exe().and_then(|program| program.canonicalize()).unwrap_or_default();
    let looked = near(program.parent().unwrap_or(Path::new("")));
    match looked.iter().find_map(|folder| named_library(&folder.join(FILE))) {
        Some(library) => Ok(library),
        None => Err(Error::NotFound { looked }),
    }
}

/// The CUDA runtime beside the library. Programs that link NVIDIA's find no other in its place if there is none.
pub(super) fn runtime(library: &Path) -> Option<PathBuf> {
    named_library(&library.with_file_name(RUNTIME))
}

/// The file of that path, or the one in that folder; without links, since it is linked to from elsewhere.
fn named_library(path: &Path) -> Option<PathBuf> {
    let path = if path.is_dir() { path.join(FILE) } else { path.to_path_buf() };
    path.canonicalize().ok().filter(|path| path.is_file())
}

/// Where it may be, for a program in that folder: beside it; where systems have libraries; and where cargo has built
/// it with another profile.
fn near(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_path_buf()];
    if let Some(above) = folder.parent() {
        folders.extend([above.join("lib"), above.join("release"), above.join("debug")]);
    }
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_for_beside_the_program_first() {
        let folders = near(Path::new("/opt/bin"));
        assert_eq!(folders, ["/opt/bin", "/opt/lib", "/opt/release", "/opt/debug"].map(PathBuf::from));
    }
}
