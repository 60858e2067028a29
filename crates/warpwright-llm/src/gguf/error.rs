//! Errors in a file, with their location.

use super::format::TensorFormat;
use super::value::ValueType;
use std::fmt;
use std::io;
use thiserror::Error;

/// Why a file cannot be read, or lacks requested data.
///
/// The message is one line: the file, then the field and its byte offset, then the rule. Names from the file are
/// escaped and shortened.
#[derive(Debug, Error)]
#[error("{file}: {problem}")]
pub struct GgufError {
    file: String,
    problem: Box<Problem>,
}

impl GgufError {
    pub(super) fn new(file: &str, problem: Problem) -> Self {
        GgufError { file: file.to_string(), problem: Box::new(problem) }
    }

    /// The name of the file, as it was passed.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// What is wrong with a file. Offsets are bytes from the beginning of the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot {action} the file: {error}")]
    Io {
        /// What was tried: `open`, `map`.
        action: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// A part of the model cannot be read.
    #[error("cannot {action} the file, which is part {} of {count} of the model: {error}", u32::from(*number) + 1)]
    PartIo {
        /// What was tried: `open`, `map`.
        action: &'static str,
        /// Its number, from 0.
        number: u16,
        /// How many there are.
        count: u16,
        /// Why it failed.
        error: io::Error,
    },
    /// It is a directory, a pipe or a device.
    #[error("is {}, not a file", if *.directory { "a directory" } else { "a pipe or a device" })]
    NotAFile {
        /// Whether it is a directory.
        directory: bool,
    },
    /// It does not begin with the letters GGUF.
    #[error("is not a GGUF file: it begins with {}, not with `GGUF`", shown_bytes(.found))]
    NotGguf {
        /// What it begins with.
        found: [u8; 4],
    },
    /// It is big-endian.
    #[error(
        "is in big-endian byte order (version {version}), which is not read: convert it to little-endian"
    )]
    BigEndian {
        /// The version that it then has.
        version: u32,
    },
    /// Its version is unknown.
    #[error(
        "the version at byte 4 is {found}; versions 2 and 3 are read{}",
        if *.found == 1 { ", version 1 must be converted by the program that made it" } else { "" }
    )]
    Version {
        /// The version.
        found: u32,
    },
    /// It ends too early.
    #[error(
        "{field} at byte {offset} takes {needs} bytes, but only {left} are left: the file is cut off, or damaged"
    )]
    Truncated {
        /// The field that does not fit.
        field: String,
        /// Where it begins.
        offset: u64,
        /// Its length.
        needs: u64,
        /// What there is.
        left: u64,
    },
    /// A count exceeds what the rest of the file could hold.
    #[error("{field} at byte {offset} is {found}, but the rest of the file has room for {max} at most")]
    Count {
        /// The field.
        field: String,
        /// Where it stands.
        offset: u64,
        /// The count.
        found: u64,
        /// What there is room for.
        max: u64,
    },
    /// Text that is not UTF-8.
    #[error("{field} is not UTF-8: byte {offset} of the file begins no character")]
    NotUtf8 {
        /// The field.
        field: String,
        /// The first byte that is wrong.
        offset: u64,
    },
    /// A name that is empty or too long.
    #[error("{field} at byte {offset} has {found} bytes; a name has 1 to {max}")]
    NameLength {
        /// The field.
        field: String,
        /// Where it begins.
        offset: u64,
        /// Its length.
        found: u64,
        /// The most.
        max: u64,
    },
    /// An unknown type of values.
    #[error("{field} at byte {offset} is {found}, which is no type: types are 0 to 12")]
    UnknownType {
        /// The field.
        field: String,
        /// Where it stands.
        offset: u64,
        /// The number.
        found: u32,
    },
    /// A byte that is neither false nor true.
    #[error("{field} at byte {offset} is {found}; a truth value is 0 or 1")]
    NotBool {
        /// The field.
        field: String,
        /// Where it stands.
        offset: u64,
        /// The byte.
        found: u8,
    },
    /// Arrays are nested too deeply.
    #[error("{field} at byte {offset} is an array {depth} deep; {max} deep is the most that is read")]
    Nesting {
        /// The field.
        field: String,
        /// Where it stands.
        offset: u64,
        /// How deep it is.
        depth: u32,
        /// The most.
        max: u32,
    },
    /// A key or a tensor's name that occurs twice.
    #[error("{what} {} stands at byte {first} and again at byte {second}", shown(.name))]
    Duplicate {
        /// `key` or `tensor`.
        what: &'static str,
        /// The name.
        name: String,
        /// Where it stands first.
        first: u64,
        /// Where it stands again.
        second: u64,
    },
    /// `general.alignment` is invalid.
    #[error("`general.alignment` is {found}; it must be a u32 that is a power of two")]
    Alignment {
        /// What it is.
        found: String,
    },
    /// A tensor has too many dimensions.
    #[error("tensor {} has {found} dimensions at byte {offset}; {max} is the most", shown(.tensor))]
    DimensionCount {
        /// The tensor.
        tensor: String,
        /// Where the number stands.
        offset: u64,
        /// The number.
        found: u32,
        /// The most.
        max: u32,
    },
    /// A tensor that is larger than a file can be.
    #[error("tensor {} of {dims:?} at byte {offset} would take more than 2^63 bytes", shown(.tensor))]
    TooLarge {
        /// The tensor.
        tensor: String,
        /// Where its dimensions stand.
        offset: u64,
        /// Its dimensions.
        dims: Vec<u64>,
    },
    /// A tensor has an unknown format.
    #[error("tensor {} has format {number} at byte {offset}, {}", shown(.tensor),
        TensorFormat::removed(*.number).unwrap_or("which is not known"))]
    UnknownFormat {
        /// The tensor.
        tensor: String,
        /// Where the number stands.
        offset: u64,
        /// The number.
        number: u32,
    },
    /// A row that is not a whole number of blocks.
    #[error("tensor {} of {dims:?} at byte {offset} has rows of {} elements, but a block of {format} has {}",
        shown(.tensor), .dims.first().unwrap_or(&1), .format.block())]
    RowLength {
        /// The tensor.
        tensor: String,
        /// Where its dimensions stand.
        offset: u64,
        /// Its dimensions.
        dims: Vec<u64>,
        /// Its format.
        format: TensorFormat,
    },
    /// A tensor's data is not aligned.
    #[error("tensor {} has offset {found} at byte {offset}, which is no multiple of the alignment {alignment}",
        shown(.tensor))]
    Misaligned {
        /// The tensor.
        tensor: String,
        /// Where its offset stands.
        offset: u64,
        /// The offset.
        found: u64,
        /// The file's alignment.
        alignment: u32,
    },
    /// A tensor's data is not in the file.
    #[error("tensor {} has {bytes} bytes of data at byte {begin}, but the file has {length} bytes (its offset \
             stands at byte {offset}): the file is not complete", shown(.tensor))]
    BeyondEnd {
        /// The tensor.
        tensor: String,
        /// Where its offset stands.
        offset: u64,
        /// Where it would begin.
        begin: u64,
        /// Its bytes.
        bytes: u64,
        /// The file's bytes.
        length: u64,
    },
    /// Two tensors that share bytes.
    #[error("tensor {} begins at byte {begin}, before tensor {} ends at byte {end} (its offset stands at byte \
             {offset})", shown(.tensor), shown(.other))]
    Overlap {
        /// The tensor that begins later.
        tensor: String,
        /// Where its offset stands.
        offset: u64,
        /// The other one.
        other: String,
        /// Where the later one begins.
        begin: u64,
        /// Where the earlier one ends.
        end: u64,
    },
    /// The metadata lacks a key.
    #[error("its metadata has no {}", shown(.key))]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A key's value has another type.
    #[error("{} is {found}, but should be {expected}", shown(.key))]
    WrongType {
        /// The key.
        key: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: ValueKind,
    },
    /// A key's number does not fit the requested type.
    #[error("{}{} is {found}, which does not fit into {expected}", shown(.key), place(*.index))]
    DoesNotFit {
        /// The key.
        key: String,
        /// Which one, where it is an array.
        index: Option<usize>,
        /// What it should be.
        expected: &'static str,
        /// The number.
        found: String,
    },
    /// An array item that was requested as text is not UTF-8.
    #[error("{}[{index}] is not UTF-8", shown(.key))]
    ItemNotUtf8 {
        /// The key.
        key: String,
        /// Which item.
        index: usize,
    },
    /// A part of a model was passed without its path.
    #[error("is part {} of {count} of a split model: open it by its path, so that the others are found",
        u32::from(*number) + 1)]
    PartOnly {
        /// Its number, from 0.
        number: u16,
        /// How many there are.
        count: u16,
    },
    /// The name of a part does not tell the names of the others.
    #[error("is part {} of {count} of a split model, so its name should end in `{expected}`",
        u32::from(*number) + 1)]
    PartName {
        /// Its number, from 0.
        number: u16,
        /// How many there are.
        count: u16,
        /// How its name should end.
        expected: String,
    },
    /// The number of tensors in all parts does not match the declared one.
    #[error("the parts of the model have {found} tensors; `split.tensors.count` is {all}")]
    PartTensors {
        /// What the parts say.
        all: u64,
        /// How many there are.
        found: u64,
    },
    /// A part does not match its name, or belongs to another model.
    #[error("does not belong to `{first}`: {reason}")]
    PartMismatch {
        /// The part it was held against.
        first: String,
        /// What does not agree.
        reason: String,
    },
}

/// The type of a value; for an array, also that of its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueKind {
    /// The type.
    pub ty: ValueType,
    /// For an array, the type and number of its items.
    pub items: Option<(ValueType, usize)>,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.items {
            Some((ty, count)) => write!(f, "an array of {count} {ty}"),
            None => write!(f, "{} {}", self.ty.article(), self.ty),
        }
    }
}

/// What a message shows of a name: without control characters, and not all of a long one.
pub(super) fn shown(name: &str) -> String {
    const MAX_SHOWN: usize = 80;
    let mut text: String = name.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect();
    if name.chars().nth(MAX_SHOWN).is_some() {
        text.push('…');
    }
    format!("`{text}`")
}

fn shown_bytes(bytes: &[u8; 4]) -> String {
    format!("`{}`", bytes.escape_ascii())
}

fn place(index: Option<usize>) -> String {
    index.map(|index| format!("[{index}]")).unwrap_or_default()
}
