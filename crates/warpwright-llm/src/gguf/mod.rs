//! GGUF files: read by mapping them, checked before use, and written.
//!
//! A [`Gguf`] is a model's metadata and tensors, from one file or from several parts. The module knows ggml's tensor
//! formats and the types of values. It does not interpret keys, except those that describe the file
//! (`general.alignment`, `split.*`).
//!
//! **Opening checks the whole header**: every count, offset, length, type and name, so that later reads succeed. It
//! takes one pass over the header. [`GgufError`] names the wrong field and its byte offset. No file makes this panic,
//! or allocate more than a small multiple of its header. Arrays and tensor data stay in the mapping.
//!
//! Truncating a file while it is open ends the program, as with every mapped file: to replace a model, rename a new
//! file over it.
//!
//! ```
//! use warpwright_llm::gguf::write::GgufWriter;
//! use warpwright_llm::gguf::{Gguf, TensorFormat};
//!
//! let mut file = GgufWriter::new();
//! file.set("general.architecture", "llama").set("llama.block_count", 6u32);
//! file.tensor("output_norm.weight", &[2], TensorFormat::F32, bytes_of(&[1.0, 0.5]));
//! let gguf = Gguf::from_bytes(file.to_bytes()?)?;
//!
//! assert_eq!(gguf.metadata().str("general.architecture")?, "llama");
//! assert_eq!(gguf.metadata().u64("llama.block_count")?, 6);
//! assert_eq!(gguf.metadata().optional::<f32>("llama.rope.freq_base")?, None);
//! let norm = gguf.tensor("output_norm.weight").expect("the file has it");
//! assert_eq!(gguf.data(norm), bytes_of(&[1.0, 0.5]));
//! # fn bytes_of(floats: &[f32]) -> Vec<u8> { floats.iter().flat_map(|x| x.to_le_bytes()).collect() }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cursor;
mod error;
mod format;
mod map;
mod metadata;
mod parse;
mod split;
mod tensor;
mod value;
pub mod write;

pub use error::{GgufError, Problem, ValueKind};
pub use format::TensorFormat;
pub use metadata::{FromValue, Metadata};
pub use tensor::TensorInfo;
pub use value::{Array, Value, ValueType};

use map::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model's metadata and tensors.
#[derive(Debug)]
pub struct Gguf {
    /// One, or all parts in their order.
    parts: Vec<Part>,
    tensors: Vec<TensorInfo>,
    /// Indices of the tensors in the order of their names.
    sorted: Vec<u32>,
}

/// One file of a model; a model has one or several.
#[derive(Debug)]
pub struct Part {
    name: Arc<str>,
    source: Arc<Source>,
    version: u32,
    alignment: u32,
    tensors: usize,
    metadata: Metadata,
}

impl Part {
    /// Reads everything but what it means to be a part.
    fn read(name: &str, source: Source, number: usize) -> Result<(Self, Vec<TensorInfo>), GgufError> {
        let source = Arc::new(source);
        let wrong = |problem| GgufError::new(name, problem);
        let parse::Parsed { version, alignment, entries, sorted, tensors } =
            parse::parse(&source, number).map_err(wrong)?;
        let name: Arc<str> = name.into();
        let metadata = Metadata::new(name.clone(), entries, sorted);
        let part = Part { name, source, version, alignment, tensors: tensors.len(), metadata };
        Ok((part, tensors))
    }

    fn open(path: &Path) -> Result<(Self, Vec<TensorInfo>), GgufError> {
        let name = path.display().to_string();
        let source = Source::map(path).map_err(|problem| GgufError::new(&name, problem))?;
        Part::read(&name, source, 0)
    }

    /// Opens part `number` of `count`.
    fn open_one_of(path: &Path, number: u16, count: u16) -> Result<(Self, Vec<TensorInfo>), GgufError> {
        let name = path.display().to_string();
        let source = Source::map(path).map_err(|problem| match problem {
            Problem::Io { action, error } => Problem::PartIo { action, number, count, error },
            problem => problem,
        });
        let source = source.map_err(|problem| GgufError::new(&name, problem))?;
        Part::read(&name, source, number.into())
    }

    /// Its path, as it was opened; `<memory>` for bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The alignment of its tensors, in bytes.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.source.bytes().len() as u64
    }

    /// Number of its tensors.
    pub fn tensors(&self) -> usize {
        self.tensors
    }
}

impl Gguf {
    /// Opens a file; for a part of a model, opens all parts, which must be in the same folder.
    ///
    /// # Errors
    ///
    /// A file cannot be opened or is invalid, or the parts do not belong together.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        let path = path.as_ref();
        let (part, tensors) = Part::open(path)?;
        let Some(info) = split::SplitInfo::of(&part.metadata)? else {
            return Gguf::join(vec![part], tensors);
        };
        let paths = info.paths(path).map_err(|problem| GgufError::new(&part.name, problem))?;
        Gguf::open_parts(paths, info)
    }

    fn open_parts(paths: impl Iterator<Item = PathBuf>, info: split::SplitInfo) -> Result<Self, GgufError> {
        let (mut parts, mut tensors) = (Vec::new(), Vec::new());
        for (number, path) in (0..info.count).zip(paths) {
            let (part, more) = Part::open_one_of(&path, number, info.count)?;
            split::check(parts.first().unwrap_or(&part), info, &part, number)?;
            parts.push(part);
            tensors.extend(more);
        }
        let gguf = Gguf::join(parts, tensors)?;
        match info.tensors {
            Some(all) if all != gguf.tensors.len() as u64 => {
                let found = gguf.tensors.len() as u64;
                Err(gguf.metadata().error(Problem::PartTensors { all, found }))
            }
            _ => Ok(gguf),
        }
    }

    /// Reads bytes that are compiled in.
    ///
    /// # Errors
    ///
    /// They are not a valid file, or they are one of several parts.
    pub fn from_static(bytes: &'static [u8]) -> Result<Self, GgufError> {
        Gguf::whole(Source::Static(bytes))
    }

    /// Reads bytes.
    ///
    /// # Errors
    ///
    /// They are not a valid file, or they are one of several parts.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, GgufError> {
        Gguf::whole(Source::Owned(bytes))
    }

    fn whole(source: Source) -> Result<Self, GgufError> {
        let (part, tensors) = Part::read("<memory>", source, 0)?;
        if let Some(split::SplitInfo { number, count, .. }) = split::SplitInfo::of(&part.metadata)? {
            return Err(part.metadata.error(Problem::PartOnly { number, count }));
        }
        Gguf::join(vec![part], tensors)
    }

    fn join(parts: Vec<Part>, tensors: Vec<TensorInfo>) -> Result<Self, GgufError> {
        match metadata::sorted_by_name(tensors.len(), |index| &tensors[index].name) {
            Ok(sorted) => Ok(Gguf { parts, tensors, sorted }),
            // One part has distinct names.
            Err((first, second)) => {
                let part = |index: usize| &parts[tensors[index].part];
                Err(part(second).metadata.error(Problem::PartMismatch {
                    first: part(first).name().to_string(),
                    reason: format!("tensor {} is in both", error::shown(&tensors[first].name)),
                }))
            }
        }
    }

    /// The metadata; for several parts, that of the first.
    pub fn metadata(&self) -> &Metadata {
        &self.parts[0].metadata
    }

    /// The file, or all parts in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The path of the file, or of the first part; `<memory>` for bytes.
    pub fn name(&self) -> &str {
        self.parts[0].name()
    }

    /// The tensors of all parts, in the order of the files.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        let find = |&index: &u32| self.tensors[index as usize].name.as_str().cmp(name);
        let at = self.sorted.binary_search_by(find).ok()?;
        Some(&self.tensors[self.sorted[at] as usize])
    }

    /// The data of a tensor of this model, [`bytes`](TensorInfo::bytes) long: rows one after the other, each of whole
    /// blocks. Data of a mapped file is aligned as the file declares; other data is not.
    ///
    /// For a tensor of another model the result is meaningless or empty.
    pub fn data(&self, tensor: &TensorInfo) -> &[u8] {
        let part = self.parts.get(tensor.part);
        part.and_then(|part| part.source.bytes().get(tensor.range.clone())).unwrap_or_default()
    }
}
