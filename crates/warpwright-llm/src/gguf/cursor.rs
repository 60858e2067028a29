//! Reading a file's header from front to back. Every read is checked against the end of the file, and its error names
//! the field.

use super::error::{Problem, shown};
use super::value::ValueType;
use std::fmt;

/// What is being read: rendered only for a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    Magic,
    Version,
    TensorCount,
    MetadataCount,
    Key(u64),
    Type(&'a str),
    Value(&'a str),
    ItemType(&'a str),
    ItemCount(&'a str),
    Item(&'a str, u64),
    TensorName(u64),
    DimensionCount(&'a str),
    Dimension(&'a str, u32),
    Format(&'a str),
    Offset(&'a str),
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Field::Magic => write!(f, "the letters `GGUF`"),
            Field::Version => write!(f, "the version"),
            Field::TensorCount => write!(f, "the number of tensors"),
            Field::MetadataCount => write!(f, "the number of metadata"),
            Field::Key(index) => write!(f, "key {index} of the metadata"),
            Field::Type(key) => write!(f, "the type of {}", shown(key)),
            Field::Value(key) => write!(f, "the value of {}", shown(key)),
            Field::ItemType(key) => write!(f, "the type of the items of {}", shown(key)),
            Field::ItemCount(key) => write!(f, "the number of items of {}", shown(key)),
            Field::Item(key, index) => write!(f, "{}[{index}]", shown(key)),
            Field::TensorName(index) => write!(f, "the name of tensor {index}"),
            Field::DimensionCount(name) => write!(f, "the number of dimensions of tensor {}", shown(name)),
            Field::Dimension(name, index) => write!(f, "dimension {index} of tensor {}", shown(name)),
            Field::Format(name) => write!(f, "the format of tensor {}", shown(name)),
            Field::Offset(name) => write!(f, "the offset of tensor {}", shown(name)),
        }
    }
}

pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `needs` bytes.
    pub(super) fn take(&mut self, needs: u64, field: Field<'_>) -> Result<&'a [u8], Problem> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(needs).ok().and_then(|needs| rest.get(..needs));
        let Some(taken) = taken else {
            return Err(Problem::Truncated {
                field: field.to_string(),
                offset: self.at as u64,
                needs,
                left: rest.len() as u64,
            });
        };
        self.at += taken.len();
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self, field: Field<'_>) -> Result<[u8; N], Problem> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, field)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self, field: Field<'_>) -> Result<u32, Problem> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, field: Field<'_>) -> Result<u64, Problem> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// A number of things that take at least `least` bytes each.
    pub(super) fn count(&mut self, field: Field<'_>, least: u64) -> Result<u64, Problem> {
        let offset = self.at as u64;
        let found = self.u64(field)?;
        self.fits(found, field, offset, least)?;
        Ok(found)
    }

    /// Whether the rest of the file has room for `found` things of at least `least` bytes each.
    pub(super) fn fits(&self, found: u64, field: Field<'_>, offset: u64, least: u64) -> Result<(), Problem> {
        let max = self.left() as u64 / least;
        match found > max {
            true => Err(Problem::Count { field: field.to_string(), offset, found, max }),
            false => Ok(()),
        }
    }

    pub(super) fn ty(&mut self, field: Field<'_>) -> Result<ValueType, Problem> {
        let offset = self.at as u64;
        let found = self.u32(field)?;
        ValueType::from_number(found).ok_or_else(|| Problem::UnknownType {
            field: field.to_string(),
            offset,
            found,
        })
    }

    pub(super) fn bool(&mut self, field: Field<'_>) -> Result<bool, Problem> {
        let offset = self.at as u64;
        match self.array(field)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [found] => Err(Problem::NotBool { field: field.to_string(), offset, found }),
        }
    }

    /// The bytes of a string, after its length.
    pub(super) fn bytes(&mut self, field: Field<'_>) -> Result<&'a [u8], Problem> {
        let needs = self.u64(field)?;
        self.take(needs, field)
    }

    pub(super) fn text(&mut self, field: Field<'_>) -> Result<&'a str, Problem> {
        let bytes = self.bytes(field)?;
        std::str::from_utf8(bytes).map_err(|error| Problem::NotUtf8 {
            field: field.to_string(),
            offset: (self.at - bytes.len() + error.valid_up_to()) as u64,
        })
    }

    /// Text with a name's length.
    pub(super) fn name(&mut self, field: Field<'_>, max: u64) -> Result<&'a str, Problem> {
        let offset = self.at as u64;
        let text = self.text(field)?;
        let found = text.len() as u64;
        match found == 0 || found > max {
            true => Err(Problem::NameLength { field: field.to_string(), offset, found, max }),
            false => Ok(text),
        }
    }
}
