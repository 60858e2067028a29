//! Eviction of cached files.

use super::{IMAGE, REFUSED, TEMPORARY};
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file that was being written so long ago was left by a process that died.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A file of ours.
struct Found {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Removes the files of a directory that were used least recently until they have a sixteenth less than that many
/// bytes, if they have more; but not `keep`. Returns how many bytes are left.
pub(super) fn evict(directory: &Path, max_bytes: u64, keep: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let mut files: Vec<Found> = entries.filter_map(|entry| own(&entry.ok()?)).collect();
    let mut total = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.bytes));
    if total <= max_bytes {
        return total;
    }
    let max = max_bytes - max_bytes / 16;
    files.sort_by_key(|file| file.used);
    for file in files.iter().filter(|file| file.path != keep) {
        if total <= max {
            break;
        }
        // What another process has removed is gone too.
        if fs::remove_file(&file.path).is_ok() || !file.path.exists() {
            total = total.saturating_sub(file.bytes);
        }
    }
    total
}

/// The file, if it is one of ours that is complete. One that was abandoned is removed.
fn own(entry: &DirEntry) -> Option<Found> {
    let name = entry.file_name();
    let name = name.to_str()?;
    let is_key = |stem: &str| stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    let kept = [IMAGE, REFUSED].iter().any(|suffix| name.strip_suffix(suffix).is_some_and(is_key));
    let temporary = name.strip_suffix(TEMPORARY).is_some_and(|stem| {
        stem.split('-').count() == 3 && stem.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
    });
    if !kept && !temporary {
        return None;
    }
    let found = entry.metadata().ok().filter(|found| found.is_file())?;
    let used = found.modified().ok()?;
    if temporary {
        if used.elapsed().is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
        return None;
    }
    Some(Found { path: entry.path(), bytes: found.len(), used })
}
