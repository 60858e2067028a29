//! The bytes of a file: mapped, compiled in, or in a vector.
//!
//! The one file of the crate with `unsafe`: it maps a file. **Changing or truncating a model file while it is mapped
//! changes it under the running program.** Changed bytes give other numbers, and nothing worse: all data from the
//! mapping is checked each time that it is read (text is checked again to be UTF-8, lengths are compared with the
//! data), and no code relies on two reads being equal. A truncated file ends the program: access beyond its end raises
//! `SIGBUS` on Unix. To replace a model, rename a new file over it, which leaves the mapped one unchanged.
#![allow(unsafe_code)]

use super::error::Problem;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// All bytes of a file.
#[derive(Debug)]
pub(super) enum Source {
    /// A file.
    Mapped(memmap2::Mmap),
    /// Compiled in.
    Static(&'static [u8]),
    /// In memory.
    Owned(Vec<u8>),
}

impl Source {
    /// Maps a file.
    pub(super) fn map(path: &Path) -> Result<Self, Problem> {
        let failed = |action| move |error| Problem::Io { action, error };
        // Asked first: opening a pipe would wait for whoever writes into it.
        let found = fs::metadata(path).map_err(failed("open"))?;
        if !found.is_file() {
            return Err(Problem::NotAFile { directory: found.is_dir() });
        }
        let file = File::open(path).map_err(failed("open"))?;
        if found.len() == 0 {
            // An empty mapping is refused on some systems.
            return Ok(Source::Owned(Vec::new()));
        }
        // SAFETY: The mapping is read only and private to this value. It is handed out as `&[u8]`, any of whose
        // values is valid. Another process may still write to the file or truncate it, which no program can
        // prevent: the module's documentation says what happens then.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed("map"))?;
        Ok(Source::Mapped(map))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Source::Mapped(map) => map,
            Source::Static(bytes) => bytes,
            Source::Owned(bytes) => bytes,
        }
    }
}

/// Some bytes of a file, which they keep mapped.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    source: Arc<Source>,
    range: Range<usize>,
}

impl Bytes {
    pub(super) fn new(source: Arc<Source>, range: Range<usize>) -> Self {
        Bytes { source, range }
    }

    /// Some of these bytes, counted from the first.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        let start = self.range.start + range.start;
        Bytes { source: self.source.clone(), range: start..self.range.start + range.end }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.source.bytes().get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Bytes { source: Arc::new(Source::Owned(bytes)), range }
    }
}
