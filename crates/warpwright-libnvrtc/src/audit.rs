//! Other paths to the libraries that this one stands for: `warpwright exec` makes it an auditor of the loader.
//!
//! `LD_LIBRARY_PATH` is not asked where a program opens a library by its path, as NVIDIA's Python packages do, or where
//! an `RPATH` comes first. The loader asks an auditor (`rtld-audit(7)`) about every path that it tries. The auditor is
//! this library once more, in a namespace of its own, and only these functions run there.

use std::ffi::{CStr, CString, OsStr, c_char, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use warpwright_standin::{FOLDER, REAL, link_to_real};

/// Beginnings of the names of libraries whose stand-ins ask for NVIDIA's.
const STANDINS: [&str; 2] = ["libnvrtc.", "libnvJitLink."];

/// The library of that name in the folder.
struct Library {
    name: Vec<u8>,
    path: CString,
}

/// What is in the folder.
struct Folder {
    path: PathBuf,
    libraries: Vec<Library>,
}

fn folder() -> Option<&'static Folder> {
    static FOLDERS: OnceLock<Option<Folder>> = OnceLock::new();
    let find = || {
        let path = PathBuf::from(std::env::var_os(FOLDER)?);
        let library = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry.ok()?;
            let path = CString::new(entry.path().as_os_str().as_bytes()).ok()?;
            Some(Library { name: entry.file_name().as_bytes().to_vec(), path })
        };
        let libraries = std::fs::read_dir(&path).ok()?.filter_map(library).collect();
        Some(Folder { path, libraries })
    };
    FOLDERS.get_or_init(find).as_ref()
}

/// The library that is opened instead of the one at a path.
fn instead_of(path: &[u8]) -> Option<&'static CStr> {
    let name = path.rsplit(|byte| *byte == b'/').next().filter(|name| name.len() < path.len())?;
    if !name.starts_with(b"lib") || path.windows(REAL.len()).any(|part| part == REAL.as_bytes()) {
        return None;
    }
    let folder = folder()?;
    let library = folder.libraries.iter().find(|library| library.name == name)?;
    let real = Path::new(OsStr::from_bytes(path));
    // A path that leads nowhere is one of several that the loader tries.
    if real.parent() == Some(&folder.path) || !real.exists() {
        return None;
    }
    if let Ok(name) = std::str::from_utf8(name)
        && STANDINS.iter().any(|standin| name.starts_with(standin))
        && let Ok(real) = std::path::absolute(real)
    {
        // It may be there: then another process has made it.
        let _ = std::os::unix::fs::symlink(real, link_to_real(&folder.path, name));
    }
    Some(&library.path)
}

/// Tells the loader which version of its interface an auditor has: the one that is offered, since what is used here is
/// in all of them.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(offered: c_uint) -> c_uint {
    offered
}

/// Tells the loader which path to try for a name or path that it is about to try.
///
/// # Safety
///
/// The name must be a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    _cookie: *mut usize,
    _why: c_uint,
) -> *const c_char {
    if name.is_null() {
        return name;
    }
    // SAFETY: the loader's, a text.
    let path = unsafe { CStr::from_ptr(name) };
    let found = std::panic::catch_unwind(|| instead_of(path.to_bytes()));
    found.ok().flatten().map_or(name, CStr::as_ptr)
}
