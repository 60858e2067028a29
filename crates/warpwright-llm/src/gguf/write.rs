//! Writing files: for tests and tools.
//!
//! The writer only stores its data, and checks it when the file is made, so that calls can be chained.

use super::format::TensorFormat;
use super::parse::{ALIGNMENT_KEY, data_bytes};
use super::split::{COUNT_KEY, NUMBER_KEY, SplitInfo, TENSORS_KEY};
use super::value::{Value, encode_bytes};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A key or a name that is empty or too long.
    #[error("{what} `{name}` has {} bytes; a name has 1 to 65535", .name.len())]
    NameLength {
        /// `key` or `tensor`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two tensors have the same name.
    #[error("there are two tensors `{name}`")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// `general.alignment` is invalid.
    #[error("`general.alignment` must be a u32 that is a power of two")]
    Alignment,
    /// The format does not allow the shape.
    #[error("tensor `{name}` of {dims:?} cannot be {format}: it has 4 dimensions at most, rows are a multiple of \
             {}, and all of it is less than 2^63 bytes", .format.block())]
    Shape {
        /// The tensor.
        name: String,
        /// Its dimensions.
        dims: Vec<u64>,
        /// Its format.
        format: TensorFormat,
    },
    /// The length of the data does not match the shape.
    #[error("tensor `{name}` of {dims:?} in {format} has {expected} bytes and was given {given}")]
    DataLength {
        /// The tensor.
        name: String,
        /// Its dimensions.
        dims: Vec<u64>,
        /// Its format.
        format: TensorFormat,
        /// What they make.
        expected: usize,
        /// What was given.
        given: usize,
    },
    /// Zero parts, or more than files can number.
    #[error("a model cannot be split into {parts} parts: 1 to 65535")]
    Parts {
        /// How many there would be.
        parts: usize,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
    ty: TensorFormat,
    data: Vec<u8>,
}

/// A file to be written: version 3, little-endian.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    entries: Vec<(String, Value)>,
    tensors: Vec<Tensor>,
}

impl GgufWriter {
    /// An empty file.
    pub fn new() -> Self {
        GgufWriter::default()
    }

    /// Sets the value of a key; an existing key keeps its position. `general.alignment` also sets the alignment of the
    /// file.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        let (key, value) = (key.into(), value.into());
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.entries.push((key, value)),
        }
        self
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.entries.retain(|(known, _)| known != key);
        self
    }

    /// Appends a tensor: dimensions in ggml's order (the length of a row first), data as the format has it.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        dims: &[u64],
        ty: TensorFormat,
        data: impl Into<Vec<u8>>,
    ) -> &mut Self {
        self.tensors.push(Tensor { name: name.into(), dims: dims.to_vec(), ty, data: data.into() });
        self
    }

    /// The file's bytes.
    ///
    /// # Errors
    ///
    /// Some of the data cannot be in a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WriteError> {
        let alignment = self.check()?;
        let entries: Vec<_> = self.entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
        Ok(encode(&entries, &self.tensors, alignment))
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Those of [`to_bytes`](Self::to_bytes), and the system's.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), WriteError> {
        write_file(path.as_ref(), &self.to_bytes()?)
    }

    /// Writes parts of `tensors` tensors each into one folder, `prefix-00001-of-00003.gguf` and so on, and returns
    /// their paths. The metadata is in the first.
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write), and more parts than files can number.
    pub fn write_split(&self, prefix: impl AsRef<Path>, tensors: usize) -> Result<Vec<PathBuf>, WriteError> {
        let alignment = self.check()?;
        let parts = self.tensors.len().div_ceil(tensors.max(1));
        let count = u16::try_from(parts).ok().filter(|&count| count > 0);
        let count = count.ok_or(WriteError::Parts { parts })?;
        let all = Value::I32(i32::try_from(self.tensors.len()).unwrap_or(i32::MAX));
        let info = SplitInfo { number: 0, count, tensors: None };
        let mut paths = Vec::new();
        for (number, tensors) in (0..count).zip(self.tensors.chunks(tensors.max(1))) {
            let (own, of) = (Value::U16(number), Value::U16(count));
            let of_part = [(NUMBER_KEY, &own), (COUNT_KEY, &of), (TENSORS_KEY, &all)];
            let of_model = self.entries.iter().map(|(key, value)| (key.as_str(), value));
            // Every part is aligned in the same way, and says so.
            let entries = of_model.filter(|(key, _)| {
                (number == 0 || *key == ALIGNMENT_KEY) && of_part.iter().all(|(own, _)| own != key)
            });
            let entries: Vec<_> = entries.chain(of_part).collect();
            let mut path = prefix.as_ref().as_os_str().to_os_string();
            path.push(info.suffix(number));
            let path = PathBuf::from(path);
            write_file(&path, &encode(&entries, tensors, alignment))?;
            paths.push(path);
        }
        Ok(paths)
    }

    /// Everything that reading would refuse; the alignment.
    fn check(&self) -> Result<u32, WriteError> {
        let keys = self.entries.iter().map(|(key, _)| ("key", key));
        for (what, name) in keys.chain(self.tensors.iter().map(|tensor| ("tensor", &tensor.name))) {
            if name.is_empty() || name.len() > 65535 {
                return Err(WriteError::NameLength { what, name: name.clone() });
            }
        }
        let mut names = BTreeSet::new();
        for Tensor { name, dims, ty, data } in &self.tensors {
            if !names.insert(name) {
                return Err(WriteError::Duplicate { name: name.clone() });
            }
            let whole = dims.first().unwrap_or(&1).is_multiple_of(ty.block().into());
            let bytes = data_bytes(dims, *ty).filter(|_| whole && dims.len() <= 4);
            let (name, dims, format, given) = (name.clone(), dims.clone(), *ty, data.len());
            match bytes {
                None => return Err(WriteError::Shape { name, dims, format }),
                Some(expected) if expected != given => {
                    return Err(WriteError::DataLength { name, dims, format, expected, given });
                }
                Some(_) => {}
            }
        }
        match self.entries.iter().find(|(key, _)| key == ALIGNMENT_KEY).map(|(_, value)| value) {
            None => Ok(32),
            Some(Value::U32(alignment)) if alignment.is_power_of_two() => Ok(*alignment),
            Some(_) => Err(WriteError::Alignment),
        }
    }
}

fn encode(entries: &[(&str, &Value)], tensors: &[Tensor], alignment: u32) -> Vec<u8> {
    let alignment = alignment as usize;
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((entries.len() as u64).to_le_bytes());
    for (key, value) in entries {
        encode_bytes(key.as_bytes(), &mut out);
        out.extend(value.ty().number().to_le_bytes());
        value.encode(&mut out);
    }
    let mut offset = 0;
    for Tensor { name, dims, ty, data } in tensors {
        encode_bytes(name.as_bytes(), &mut out);
        out.extend((dims.len() as u32).to_le_bytes());
        out.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        out.extend(ty.number().to_le_bytes());
        out.extend((offset as u64).to_le_bytes());
        offset = (offset + data.len()).next_multiple_of(alignment);
    }
    for Tensor { data, .. } in tensors {
        out.resize(out.len().next_multiple_of(alignment), 0);
        out.extend(data);
    }
    // The data of the last tensor is padded too: some readers want it.
    out.resize(out.len().next_multiple_of(alignment), 0);
    out
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    std::fs::write(path, bytes).map_err(|error| WriteError::Io { path: path.to_path_buf(), error })
}
