//! Location and size of the cache.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// A cache of compiled kernels, shared between processes: its directory and its maximum size.
///
/// The driver compiles a kernel for the device that loads it, which takes milliseconds to seconds. The result is stored
/// in a file, which is used again for the same PTX on a device of the same name and architecture with the same driver.
/// A change of any of these makes another file. The least recently used files are removed when the cache is full. Files
/// are verified in full when they are read: a damaged file is removed, and its kernel compiled again. A directory that
/// cannot be read or written acts as no cache, and is not an error. Any number of processes may share it.
///
/// ```
/// use warpwright_runtime::CubinCache;
///
/// let mut cache = CubinCache::at("/var/cache/my-server");
/// cache.max_bytes = 100 << 20;
/// assert!(CubinCache::off().directory.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CubinCache {
    /// The directory, which is created when it is needed; `None` for no cache.
    pub directory: Option<PathBuf>,
    /// The maximum total size of its files in bytes; the default is 1 GiB. Several processes that write at once may
    /// exceed it slightly.
    pub max_bytes: u64,
}

impl Default for CubinCache {
    /// The cache that the environment selects: none if `WARPWRIGHT_CACHE` is `off`; else the directory
    /// `WARPWRIGHT_CACHE_DIR`; else `warpwright/cubin` in the platform's cache directory: `$XDG_CACHE_HOME` or
    /// `~/.cache` on Linux, `%LOCALAPPDATA%` on Windows and `~/Library/Caches` on macOS. If there is none of these, no
    /// cache.
    fn default() -> Self {
        let directory = directory(&|name| env::var_os(name), env::home_dir());
        CubinCache { directory, ..CubinCache::off() }
    }
}

impl CubinCache {
    /// A cache in that directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        CubinCache { directory: Some(directory.into()), ..CubinCache::off() }
    }

    /// No cache: every process compiles its kernels anew.
    pub fn off() -> Self {
        CubinCache { directory: None, max_bytes: 1 << 30 }
    }
}

/// The directory, by the environment.
fn directory(variable: &dyn Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if variable("WARPWRIGHT_CACHE").is_some_and(|value| value.eq_ignore_ascii_case("off")) {
        return None;
    }
    let given = |name| variable(name).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty());
    if let Some(own) = given("WARPWRIGHT_CACHE_DIR") {
        return Some(own);
    }
    let home = home.filter(|path| path.is_absolute());
    let caches = if cfg!(windows) {
        given("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library/Caches"))
    } else {
        // A relative path there is to be ignored, says the specification of base directories.
        given("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or(home.map(|home| home.join(".cache")))
    };
    caches.map(|caches| caches.join("warpwright").join("cubin"))
}

#[cfg(all(test, unix, not(target_os = "macos")))]
mod tests {
    use super::*;

    /// The directory for these variables.
    fn with(variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let home = variable("HOME").map(PathBuf::from);
        directory(&variable, home).map(|path| path.display().to_string())
    }

    #[test]
    fn the_environment_says_where() {
        let some = |path: &str| Some(path.to_owned());
        assert_eq!(with(&[("HOME", "/h")]), some("/h/.cache/warpwright/cubin"));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/fast")]), some("/fast/warpwright/cubin"));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "near")]), some("/h/.cache/warpwright/cubin"));
        assert_eq!(with(&[("HOME", "/h"), ("WARPWRIGHT_CACHE_DIR", "here")]), some("here"));
        assert_eq!(with(&[("HOME", "/h"), ("WARPWRIGHT_CACHE_DIR", "")]), some("/h/.cache/warpwright/cubin"));
        assert_eq!(with(&[("WARPWRIGHT_CACHE_DIR", "/d"), ("WARPWRIGHT_CACHE", "off")]), None);
        assert_eq!(with(&[("WARPWRIGHT_CACHE_DIR", "/d"), ("WARPWRIGHT_CACHE", "on")]), some("/d"));
        assert_eq!(with(&[]), None, "nowhere");
        assert_eq!(with(&[("HOME", "not/absolute")]), None);
    }
}
