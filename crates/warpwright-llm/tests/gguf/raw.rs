//! Headers field by field, right or wrong, and folders for files.

use std::path::{Path, PathBuf};

/// Bytes of a file to be.
#[derive(Clone, Default)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// A header of version 3 that promises so many tensors and metadata: 24 bytes.
    pub(crate) fn header(tensors: u64, metadata: u64) -> Self {
        Raw::default().bytes(b"GGUF").u32(3).u64(tensors).u64(metadata)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.u64(text.len() as u64).bytes(text.as_bytes())
    }

    /// A tensor's name, dimensions, format and offset.
    pub(crate) fn tensor(self, name: &str, dims: &[u64], format: u32, offset: u64) -> Self {
        let raw = self.text(name).u32(dims.len() as u32);
        dims.iter().fold(raw, |raw, &dim| raw.u64(dim)).u32(format).u64(offset)
    }

    /// Padding up to a multiple of `alignment`.
    pub(crate) fn pad(mut self, alignment: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(alignment), 0);
        self
    }
}

/// A folder that goes away with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("warpwright-gguf-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder can be made");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is the system's to clear away.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
