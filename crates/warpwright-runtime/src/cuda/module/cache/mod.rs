//! Compiled images on disk, so that a module is compiled once for a device and driver, and not in every process.
//!
//! An image is a file of its own, named by the hash of all that it depends on ([`key`]), and checked in full when it is
//! read ([`entry`]). **What cannot be read or written is as if it were not cached: nothing here fails.**
//!
//! Any number of processes and threads share a directory without locks. A file is written under a name of its own and
//! renamed when it is complete, so that readers see all of it or nothing; two that compile the same module write the
//! same file, and either may win. A file that vanishes meanwhile was never there.
//!
//! What was used least recently goes first, by the time of the file, which every use sets.

mod config;
mod entry;
mod evict;
mod key;

pub use config::CubinCache;
pub(super) use key::{Key, Platform};

use entry::Read;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

/// What the names of cached images end with.
const IMAGE: &str = ".image";
/// What the names of files that are being written end with.
const TEMPORARY: &str = ".tmp";
/// What the names of texts end with that the driver's compiler refused.
const REFUSED: &str = ".ptx";

/// A directory of compiled images.
#[derive(Debug)]
pub(super) struct Cache {
    directory: PathBuf,
    /// The maximum total size of its files, in bytes.
    max_bytes: u64,
    /// Bytes that were found when the directory was last looked through, with those written since; `u64::MAX` before
    /// that.
    estimate: AtomicU64,
    /// Bytes written since.
    written: AtomicU64,
}

impl Cache {
    /// The cache of a configuration; `None` where there is none.
    pub(super) fn open(config: &CubinCache) -> Option<Self> {
        let directory = config.directory.clone()?;
        let max_bytes = config.max_bytes;
        (max_bytes > 0).then(|| Cache {
            directory,
            max_bytes,
            estimate: AtomicU64::new(u64::MAX),
            written: AtomicU64::new(0),
        })
    }

    fn path(&self, key: &Key, suffix: &str) -> PathBuf {
        self.directory.join(format!("{key}{suffix}"))
    }

    /// The image of a key, if it is there and as it was written. A file that is not is removed.
    pub(super) fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key, IMAGE);
        match entry::read(&path, key, self.max_bytes) {
            Read::Image { image, file } => {
                // The file may belong to another user, and its system may want it open for writing.
                let now = SystemTime::now();
                let _ = file.set_modified(now).or_else(|_| {
                    fs::OpenOptions::new().append(true).open(&path).and_then(|file| file.set_modified(now))
                });
                Some(image)
            }
            Read::Damaged => {
                let _ = fs::remove_file(&path);
                None
            }
            Read::Missing => None,
        }
    }

    /// Keeps an image, if it can.
    pub(super) fn put(&self, key: &Key, image: &[u8]) {
        let bytes = entry::size(image);
        if bytes > self.max_bytes {
            return;
        }
        let path = self.path(key, IMAGE);
        if self.write(&path, |file| entry::write(file, key, image)).is_ok() {
            self.account(bytes, &path);
        }
    }

    /// Forgets an image.
    pub(super) fn remove(&self, key: &Key) {
        let _ = fs::remove_file(self.path(key, IMAGE));
    }

    /// Keeps a text that the driver's compiler refused, for people to look at: where.
    pub(super) fn keep_refused(&self, key: &Key, text: &str) -> Option<PathBuf> {
        let path = self.path(key, REFUSED);
        self.write(&path, |file| std::io::Write::write_all(file, text.as_bytes())).ok()?;
        self.account(text.len() as u64, &path);
        Some(path)
    }

    /// Writes a file of the directory, all of it or nothing.
    fn write(
        &self,
        path: &Path,
        content: impl FnOnce(&mut fs::File) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        make_private(&self.directory)?;
        let temporary = self.directory.join(temporary_name());
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        // Not synchronised with the disk: what a crash leaves half written is found out by its checksum.
        let written = content(&mut file);
        drop(file);
        let renamed = written.and_then(|()| fs::rename(&temporary, path));
        if renamed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        renamed
    }

    /// A file was written: evicts others where there are too many bytes. The directory is looked through when this
    /// process first writes, when there seem to be too many, and now and then, since others write too.
    fn account(&self, bytes: u64, path: &Path) {
        let written = self.written.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let known = self.estimate.fetch_update(Relaxed, Relaxed, |known| Some(known.saturating_add(bytes)));
        let known = known.unwrap_or(u64::MAX).saturating_add(bytes);
        if known > self.max_bytes || written > self.max_bytes / 32 {
            let left = evict::evict(&self.directory, self.max_bytes, path);
            self.estimate.store(left, Relaxed);
            self.written.store(0, Relaxed);
        }
    }
}

/// Makes a directory that only its owner looks into, as the rules for cache directories ask, with those above it.
fn make_private(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// A name that no other process, thread or machine uses at this time.
fn temporary_name() -> String {
    static FILES: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (process, file) = (std::process::id(), FILES.fetch_add(1, Relaxed));
    format!("{process:x}-{file:x}-{:x}{TEMPORARY}", now.as_nanos())
}

#[cfg(test)]
mod tests;
