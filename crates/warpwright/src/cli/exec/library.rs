//! Search for the libraries: the driver's by an option or near the program, the others beside it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Its file, as cargo builds it. It is called that and nothing else, so that no loader takes it for a driver.
const FILE: &str = "libwarpwright_cuda.so";

/// The variable that says where it is.
const VARIABLE: &str = "WARPWRIGHT_LIBCUDA";

/// What builds all libraries.
const BUILD: &str = "cargo build --release -p warpwright-libcuda -p warpwright-libcudart -p warpwright-libnvrtc -p \
                     warpwright-libnvjitlink, in the project's folder";

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
                let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
                let [runtime, linker, compiler] = Role::OTHERS.map(|(_, file)| file);
                write!(
                    f,
                    "{FILE}, the CUDA driver API over the virtual GPU, was not found\n  looked for in: {}\n  build it \
                     and what belongs beside it, {runtime}, {linker} and {compiler}: {BUILD}\n  or fetch them with the \
                     release that this program is from, and put them beside the program, or say where it is: \
                     --library PATH, or {VARIABLE}",
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

/// What a library stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Driver,
    Runtime,
    Linker,
    Compiler,
}

impl Role {
    /// The files beside the driver's.
    const OTHERS: [(Role, &str); 3] = [
        (Role::Runtime, "libwarpwright_cudart.so"),
        (Role::Linker, "libwarpwright_nvjitlink.so"),
        (Role::Compiler, "libwarpwright_nvrtc.so"),
    ];

    /// The names by which programs ask for it.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Role::Driver => &["libcuda.so.1", "libcuda.so"],
            Role::Runtime => &["libcudart.so.12", "libcudart.so.13", "libcudart.so"],
            Role::Linker => &["libnvJitLink.so.12", "libnvJitLink.so.13", "libnvJitLink.so"],
            Role::Compiler => &["libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"],
        }
    }

    /// Whether the loader finds it by its name alone. The others ask NVIDIA's, which have to be there too.
    pub(super) fn is_searched(self) -> bool {
        matches!(self, Role::Driver | Role::Runtime)
    }
}

/// The libraries that are there. A program finds NVIDIA's in the place of one that is missing.
pub(super) struct Libraries(Vec<(Role, PathBuf)>);

impl Libraries {
    /// The driver's library, and those beside it.
    pub(super) fn beside(driver: PathBuf) -> Libraries {
        let there = |(role, file)| Some((role, named_library(&driver.with_file_name(file))?));
        let others: Vec<_> = Role::OTHERS.into_iter().filter_map(there).collect();
        Libraries([(Role::Driver, driver)].into_iter().chain(others).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Role, &Path)> {
        self.0.iter().map(|(role, path)| (*role, path.as_path()))
    }

    /// What to say to the user of a program whose libraries were not found, if some of ours are not there.
    pub(super) fn missing(&self) -> Option<String> {
        let is_there = |role| self.iter().any(|(other, _)| other == role);
        let missing = Role::OTHERS.into_iter().filter(|(role, _)| !is_there(*role));
        let files: Vec<_> = missing.map(|(_, file)| file).collect();
        let (_, driver) = self.iter().next()?;
        (!files.is_empty()).then(|| {
            format!(
                "the program may need what is not beside {}: {}\n  build all of them: {BUILD}",
                driver.display(),
                files.join(", ")
            )
        })
    }

    /// The auditor of the loader, which is in the compiler's library.
    pub(super) fn auditor(&self) -> Option<&Path> {
        self.iter().find(|(role, _)| *role == Role::Compiler).map(|(_, path)| path)
    }
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
