//! One file: header, metadata, tensors.
//!
//! ```text
//! "GGUF"  u32 version  u64 tensors  u64 metadata
//! metadata × { string key, u32 type, value }
//! tensors  × { string name, u32 dimensions, u64 each, u32 format, u64 offset }
//! padding to the alignment, and from there, where the offsets say, the data of the tensors
//! ```
//!
//! A string is a `u64` and so many bytes; an array is a `u32` type, a `u64` count and the items. All numbers are
//! little-endian.
//!
//! **The file is not trusted**: a count is compared with the size of the rest of the file before anything is allocated
//! for it, so that memory use is at most a small multiple of the header's bytes.

use super::cursor::{Cursor, Field};
use super::error::Problem;
use super::format::TensorFormat;
use super::map::{Bytes, Source};
use super::metadata::sorted_by_name;
use super::tensor::TensorInfo;
use super::value::{Array, Value, ValueType};
use std::ops::Range;
use std::sync::Arc;

/// What the specification allows to a key.
const LONGEST_NAME: u64 = 65535;
/// What ggml has.
const MAX_DIMENSIONS: u32 = 4;
/// No known key has an array of arrays.
const DEEPEST_ARRAY: u32 = 4;
/// Where a file does not say.
const DEFAULT_ALIGNMENT: u32 = 32;
/// The key that says.
pub(super) const ALIGNMENT_KEY: &str = "general.alignment";

/// A file that holds what it says.
pub(super) struct Parsed {
    pub(super) version: u32,
    pub(super) alignment: u32,
    pub(super) entries: Vec<(String, Value)>,
    /// Indices of the entries in the order of their keys.
    pub(super) sorted: Vec<u32>,
    pub(super) tensors: Vec<TensorInfo>,
}

/// A tensor, and where in the header it stands.
struct Placed {
    info: TensorInfo,
    name_at: u64,
    offset_at: u64,
}

/// Reads a file; its tensors are said to be in part `part`.
pub(super) fn parse(source: &Arc<Source>, part: usize) -> Result<Parsed, Problem> {
    let bytes = source.bytes();
    let mut cursor = Cursor::new(bytes);
    let version = version(&mut cursor)?;
    // A name and a number of dimensions, a format and an offset; a key, a type and a byte.
    let tensor_count = cursor.count(Field::TensorCount, 8 + 1 + 4 + 4 + 8)?;
    let metadata_count = cursor.count(Field::MetadataCount, 8 + 1 + 4 + 1)?;

    let mut entries = Vec::new();
    let mut keys_at = Vec::new();
    for index in 0..metadata_count {
        keys_at.push(cursor.at() as u64);
        let key = cursor.name(Field::Key(index), LONGEST_NAME)?;
        let ty = cursor.ty(Field::Type(key))?;
        let value = value(&mut cursor, key, ty, source)?;
        entries.push((key.to_string(), value));
    }
    let alignment = alignment(&entries)?;
    let sorted = distinct("key", &entries, |entry| &entry.0, |index| keys_at[index])?;

    let mut tensors = Vec::new();
    for index in 0..tensor_count {
        tensors.push(tensor(&mut cursor, index, part)?);
    }
    distinct("tensor", &tensors, |tensor| &tensor.info.name, |index| tensors[index].name_at)?;
    let data = (cursor.at() as u64).next_multiple_of(alignment.into());
    place(&mut tensors, data, alignment, bytes.len())?;
    let tensors = tensors.into_iter().map(|tensor| tensor.info).collect();
    Ok(Parsed { version, alignment, entries, sorted, tensors })
}

fn version(cursor: &mut Cursor<'_>) -> Result<u32, Problem> {
    let magic: [u8; 4] = cursor.array(Field::Magic)?;
    if &magic != b"GGUF" {
        return Err(Problem::NotGguf { found: magic });
    }
    match cursor.u32(Field::Version)? {
        version @ 2..=3 => Ok(version),
        // The bytes of a small number, the other way round.
        found if found != 0 && found.trailing_zeros() >= 16 => {
            Err(Problem::BigEndian { version: found.swap_bytes() })
        }
        found => Err(Problem::Version { found }),
    }
}

fn value(cursor: &mut Cursor<'_>, key: &str, ty: ValueType, source: &Arc<Source>) -> Result<Value, Problem> {
    let field = Field::Value(key);
    Ok(match ty {
        ValueType::Bool => Value::Bool(cursor.bool(field)?),
        ValueType::String => Value::String(cursor.text(field)?.to_string()),
        ValueType::Array => {
            let ty = cursor.ty(Field::ItemType(key))?;
            let len = cursor.count(Field::ItemCount(key), ty.least_bytes())?;
            let start = cursor.at();
            skip_items(cursor, key, ty, len, 1)?;
            // The count fits: an item takes a byte at least.
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            Value::Array(Array::new(ty, len, Bytes::new(source.clone(), start..cursor.at())))
        }
        _ => {
            let bytes = cursor.take(ty.least_bytes(), field)?;
            Value::number(ty, bytes).expect("all other types are those of numbers, and these are its bytes")
        }
    })
}

/// Checks `len` items of an array, of which there is room for the least that they could take.
fn skip_items(
    cursor: &mut Cursor<'_>,
    key: &str,
    ty: ValueType,
    len: u64,
    depth: u32,
) -> Result<(), Problem> {
    match ty {
        ValueType::String => {
            for index in 0..len {
                cursor.bytes(Field::Item(key, index))?;
            }
        }
        ValueType::Bool => {
            for index in 0..len {
                cursor.bool(Field::Item(key, index))?;
            }
        }
        ValueType::Array => {
            for index in 0..len {
                let (field, offset) = (Field::Item(key, index), cursor.at() as u64);
                if depth == DEEPEST_ARRAY {
                    let (field, depth) = (field.to_string(), depth + 1);
                    return Err(Problem::Nesting { field, offset, depth, max: DEEPEST_ARRAY });
                }
                let ty = cursor.ty(field)?;
                let len = cursor.count(field, ty.least_bytes())?;
                skip_items(cursor, key, ty, len, depth + 1)?;
            }
        }
        // There is room for them, so this does not overflow.
        _ => drop(cursor.take(len * ty.least_bytes(), Field::Value(key))?),
    }
    Ok(())
}

fn alignment(entries: &[(String, Value)]) -> Result<u32, Problem> {
    match entries.iter().find(|(key, _)| key == ALIGNMENT_KEY).map(|(_, value)| value) {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(Value::U32(alignment)) if alignment.is_power_of_two() => Ok(*alignment),
        Some(Value::U32(found)) => Err(Problem::Alignment { found: found.to_string() }),
        Some(other) => Err(Problem::Alignment { found: other.kind().to_string() }),
    }
}

fn distinct<T>(
    what: &'static str,
    things: &[T],
    name: impl Fn(&T) -> &String,
    at: impl Fn(usize) -> u64,
) -> Result<Vec<u32>, Problem> {
    let twice = |(first, second)| Problem::Duplicate {
        what,
        name: name(&things[first]).clone(),
        first: at(first),
        second: at(second),
    };
    sorted_by_name(things.len(), |index| name(&things[index])).map_err(twice)
}

/// What the header says of a tensor. Its range begins at its offset.
fn tensor(cursor: &mut Cursor<'_>, index: u64, part: usize) -> Result<Placed, Problem> {
    let name_at = cursor.at() as u64;
    let name = cursor.name(Field::TensorName(index), LONGEST_NAME)?;
    let owned = || name.to_string();
    let dims_at = cursor.at() as u64;
    let count = cursor.u32(Field::DimensionCount(name))?;
    if count > MAX_DIMENSIONS {
        let max = MAX_DIMENSIONS;
        return Err(Problem::DimensionCount { tensor: owned(), offset: dims_at, found: count, max });
    }
    let mut dims = Vec::new();
    for index in 0..count {
        dims.push(cursor.u64(Field::Dimension(name, index))?);
    }
    let format_at = cursor.at() as u64;
    let number = cursor.u32(Field::Format(name))?;
    let Some(ty) = TensorFormat::from_number(number) else {
        return Err(Problem::UnknownFormat { tensor: owned(), offset: format_at, number });
    };
    let offset_at = cursor.at() as u64;
    let offset = cursor.u64(Field::Offset(name))?;

    if !dims.first().unwrap_or(&1).is_multiple_of(ty.block().into()) {
        return Err(Problem::RowLength { tensor: owned(), offset: dims_at, dims, format: ty });
    }
    let too_large =
        |dims: &[u64]| Problem::TooLarge { tensor: owned(), offset: dims_at, dims: dims.to_vec() };
    let bytes = data_bytes(&dims, ty).ok_or_else(|| too_large(&dims))?;
    // Whether it lies in the file is seen when it is known where the data begins.
    let start = usize::try_from(offset).ok();
    let end = start.and_then(|start| start.checked_add(bytes));
    let (Some(start), Some(end)) = (start, end) else { return Err(too_large(&dims)) };
    Ok(Placed { info: TensorInfo { name: owned(), dims, ty, part, range: start..end }, name_at, offset_at })
}

/// Bytes of a tensor's data; `None` if they, or its elements, or those that it would have if no dimension were
/// zero, are too many to count.
pub(super) fn data_bytes(dims: &[u64], ty: TensorFormat) -> Option<usize> {
    let max = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim.max(1)))?;
    max.checked_mul(ty.block_bytes().into()).filter(|&bytes| bytes <= i64::MAX as u64)?;
    let elements: u64 = dims.iter().product();
    usize::try_from(elements / u64::from(ty.block()) * u64::from(ty.block_bytes())).ok()
}

/// Moves ranges to where the data begins, and checks that they are in the file, aligned and apart.
fn place(tensors: &mut [Placed], data: u64, alignment: u32, length: usize) -> Result<(), Problem> {
    for Placed { info, offset_at, .. } in &mut *tensors {
        let (found, offset) = (info.range.start as u64, *offset_at);
        if !found.is_multiple_of(alignment.into()) {
            return Err(Problem::Misaligned { tensor: info.name.clone(), offset, found, alignment });
        }
        let moved = shift(&info.range, data).filter(|range| range.end <= length);
        info.range = moved.ok_or_else(|| Problem::BeyondEnd {
            tensor: info.name.clone(),
            offset,
            begin: data.saturating_add(found),
            bytes: info.bytes(),
            length: length as u64,
        })?;
    }
    let mut order: Vec<&Placed> = tensors.iter().filter(|tensor| !tensor.info.range.is_empty()).collect();
    order.sort_by_key(|tensor| tensor.info.range.start);
    for pair in order.windows(2) {
        let (other, tensor) = (&pair[0].info, &pair[1].info);
        if tensor.range.start < other.range.end {
            return Err(Problem::Overlap {
                tensor: tensor.name.clone(),
                offset: pair[1].offset_at,
                other: other.name.clone(),
                begin: tensor.offset(),
                end: other.range.end as u64,
            });
        }
    }
    Ok(())
}

fn shift(range: &Range<usize>, by: u64) -> Option<Range<usize>> {
    let by = usize::try_from(by).ok()?;
    Some(range.start.checked_add(by)?..range.end.checked_add(by)?)
}
