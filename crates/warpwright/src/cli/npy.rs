//! NumPy's `.npy` files: one array with its element type and shape.
//!
//! A file is `\x93NUMPY`, a version, the length of a header, the header (a Python literal such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}`) and the elements. The format is
//! NumPy's `numpy.lib.format`, versions 1.0, 2.0 and 3.0.
//!
//! Arrays are held as kernels want them: C order (the last index runs fastest), little-endian.
//! Files in Fortran order or big-endian are turned round on reading. Nothing here is allocated
//! that the file's own length does not justify.
//!
//! The crates that read this format bring a parser generator and a C compiler for the header's
//! literal, which is JSON but for a few letters.

use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use warpwright_ptx::ir::{Type, TypeKind};

const MAGIC: &[u8] = b"\x93NUMPY";
/// What the elements are aligned to in the file.
const ALIGN: usize = 64;
/// The most dimensions that NumPy itself takes.
const MAX_DIMS: usize = 64;

/// What an element means to NumPy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A byte that is 0 or 1.
    Bool,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// IEEE 754.
    Float,
}

/// Type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dtype {
    pub(crate) kind: Kind,
    /// Size in bytes: 1, 2, 4 or 8.
    pub(crate) size: usize,
}

impl Dtype {
    /// The type in which NumPy holds elements of a PTX type: 16-bit floating point is `float16`,
    /// what NumPy does not know (`bf16`, fp8) an unsigned integer of its size.
    pub(crate) fn of(ty: Type) -> Option<Dtype> {
        if ty.bits() < 8 || ty.bits() > 64 {
            return None;
        }
        let kind = match ty {
            Type::F16 | Type::F32 | Type::F64 => Kind::Float,
            Type::BF16 => Kind::Unsigned,
            _ => match ty.kind() {
                TypeKind::Signed => Kind::Signed,
                TypeKind::Bits | TypeKind::Unsigned => Kind::Unsigned,
                TypeKind::Float if ty.bits() == 8 => Kind::Unsigned,
                _ => return None,
            },
        };
        Some(Dtype { kind, size: ty.bytes() as usize })
    }

    fn letter(self) -> char {
        match self.kind {
            Kind::Bool => 'b',
            Kind::Unsigned => 'u',
            Kind::Signed => 'i',
            Kind::Float => 'f',
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.size * 8;
        match self.kind {
            Kind::Bool => f.write_str("bool"),
            Kind::Unsigned => write!(f, "uint{bits}"),
            Kind::Signed => write!(f, "int{bits}"),
            Kind::Float => write!(f, "float{bits}"),
        }
    }
}

/// An array in C order, its elements little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    pub(crate) dtype: Dtype,
    /// Dimensions, outermost first; empty for a single element.
    pub(crate) shape: Vec<u64>,
    pub(crate) data: Vec<u8>,
}

/// Why the bytes are no array that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// The file does not begin as one of this format.
    NotNpy,
    /// A version of the format that is not known.
    Version(u8, u8),
    /// The file ends within its header.
    HeaderCut { needed: u64, there: u64 },
    /// The header is not the literal that it must be.
    Header(String),
    /// Elements that PTX has no type for.
    Dtype(String),
    /// The shape's size in bytes does not fit 64 bits.
    TooLarge,
    /// The elements are not as many as the shape says.
    Length { needed: u64, there: u64 },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotNpy => f.write_str("it is not a NumPy file: it does not begin with \\x93NUMPY"),
            Error::Version(major, minor) => {
                write!(f, "version {major}.{minor} of the NumPy format is not known; 1.0, 2.0 and 3.0 are")
            }
            Error::HeaderCut { needed, there } => {
                write!(f, "the file is cut: its header ends at byte {needed}, the file at {there}")
            }
            Error::Header(what) => write!(f, "its header is damaged: {what}"),
            Error::Dtype(descr) => write!(
                f,
                "its elements are `{descr}`; what can be passed is bool, int8 to int64, uint8 to uint64, \
                 float16, float32 and float64; `astype` converts"
            ),
            Error::TooLarge => f.write_str("its header is damaged: the shape exceeds 2⁶⁴ bytes"),
            Error::Length { needed, there } => {
                let state = if there < needed { "is cut" } else { "goes on after its array" };
                write!(f, "the file {state}: the shape needs {needed} bytes of elements, {there} are there")
            }
        }
    }
}

/// Reads a file's bytes.
pub(crate) fn read(mut file: Vec<u8>) -> Result<Array, Error> {
    let there = file.len() as u64;
    let cut = |needed: u64| Error::HeaderCut { needed, there };
    if !file.starts_with(MAGIC) {
        return Err(Error::NotNpy);
    }
    let (major, minor) = match file.get(6..8) {
        Some(&[major, minor]) => (major, minor),
        _ => return Err(cut(10)),
    };
    let (length, start) = match (major, minor) {
        (1, 0) => match file.get(8..10) {
            Some(&[a, b]) => (u64::from(u16::from_le_bytes([a, b])), 10),
            _ => return Err(cut(10)),
        },
        (2 | 3, 0) => match file.get(8..12) {
            Some(&[a, b, c, d]) => (u64::from(u32::from_le_bytes([a, b, c, d])), 12),
            _ => return Err(cut(12)),
        },
        _ => return Err(Error::Version(major, minor)),
    };
    let end = start + length;
    if end > there {
        return Err(cut(end));
    }
    let (start, end) = (start as usize, end as usize);
    // Before version 3, the header is Latin-1; what is needed of it is ASCII in all of them.
    let header = Header::parse(&file[start..end])?;
    let descr = header.descr.as_str().map_or_else(|| header.descr.to_string(), str::to_string);
    let (dtype, big_endian) = dtype(&descr).ok_or(Error::Dtype(descr.chars().take(80).collect()))?;
    let elements = element_count(&header.shape).ok_or(Error::TooLarge)?;
    let needed = elements.checked_mul(dtype.size as u64).ok_or(Error::TooLarge)?;
    let there = (file.len() - end) as u64;
    if needed != there {
        return Err(Error::Length { needed, there });
    }
    file.drain(..end);
    let mut data = file;
    if big_endian && dtype.size > 1 {
        data.chunks_exact_mut(dtype.size).for_each(<[u8]>::reverse);
    }
    if header.fortran_order {
        data = from_fortran(&data, &header.shape, dtype.size);
    }
    Ok(Array { dtype, shape: header.shape, data })
}

/// Number of elements of a shape; `None` beyond 64 bits.
pub(crate) fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))
}

/// Elements in Fortran order (the first index runs fastest), put in C order.
fn from_fortran(data: &[u8], shape: &[u64], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let strides: Vec<usize> = shape
        .iter()
        .scan(size, |stride, &dim| {
            let this = *stride;
            *stride = stride.wrapping_mul(dim as usize);
            Some(this)
        })
        .collect();
    let mut index = vec![0u64; shape.len()];
    let mut at = 0;
    while out.len() < data.len() {
        out.extend_from_slice(&data[at..at + size]);
        for dim in (0..shape.len()).rev() {
            index[dim] += 1;
            at += strides[dim];
            if index[dim] < shape[dim] {
                break;
            }
            at -= strides[dim] * shape[dim] as usize;
            index[dim] = 0;
        }
    }
    out
}

/// The bytes of a file that holds the array.
pub(crate) fn write(dtype: Dtype, shape: &[u64], data: &[u8]) -> Vec<u8> {
    let mut file = header(dtype, shape);
    file.extend_from_slice(data);
    file
}

/// What stands before the elements of an array, which follow in C order, little-endian.
pub(crate) fn header(dtype: Dtype, shape: &[u64]) -> Vec<u8> {
    let order = if dtype.size == 1 { '|' } else { '<' };
    let shape = match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header = format!(
        "{{'descr': '{order}{}{}', 'fortran_order': False, 'shape': {shape}, }}",
        dtype.letter(),
        dtype.size
    );
    // At most 64 dimensions of 20 digits: the header fits the 16 bits of version 1.
    let before = MAGIC.len() + 4;
    let padded = (before + header.len() + 1).next_multiple_of(ALIGN) - before;
    header.extend(std::iter::repeat_n(' ', padded - 1 - header.len()));
    header.push('\n');
    let mut file = Vec::with_capacity(before + header.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&[1, 0]);
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file
}

/// The header's literal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// A string, or the list of a structured type.
    descr: Value,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Header, Error> {
        let header: Header = serde_json::from_str(&json(&String::from_utf8_lossy(bytes)))
            .map_err(|error| Error::Header(error.to_string()))?;
        match header.shape.len() {
            0..=MAX_DIMS => Ok(header),
            _ => Err(Error::Header("the shape has more than 64 dimensions".into())),
        }
    }
}

/// A literal of Python's as JSON has it: quotes of one kind, tuples as lists, no comma behind the last item. What is no
/// such literal becomes what is no JSON.
fn json(literal: &str) -> String {
    let mut json = String::with_capacity(literal.len());
    let mut within = None;
    for letter in literal.chars() {
        match (within, letter) {
            (None, '\'' | '"') => {
                within = Some(letter);
                json.push('"');
            }
            (Some(quote), _) if quote == letter => {
                within = None;
                json.push('"');
            }
            (Some(_), '"' | '\\') => json.extend(['\\', letter]),
            (Some(_), _) => json.push(letter),
            // `True` and `False`; JSON's own words are none of Python's.
            (None, 'T' | 'F') => json.push(letter.to_ascii_lowercase()),
            (None, 't' | 'f') => json.push(letter.to_ascii_uppercase()),
            // Python 2 wrote long integers so.
            (None, 'L') if json.ends_with(|last: char| last.is_ascii_digit()) => {}
            (None, '(') => json.push('['),
            (None, ')' | '}') => {
                json.truncate(json.trim_end().len());
                json.truncate(json.strip_suffix(',').unwrap_or(&json).len());
                json.push(if letter == ')' { ']' } else { letter });
            }
            (None, _) => json.push(letter),
        }
    }
    json
}

/// An element type such as `<f4`, and whether it is big-endian.
fn dtype(descr: &str) -> Option<(Dtype, bool)> {
    let (order, rest) = match descr.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), rest @ ..] => (*order, rest),
        rest => (b'=', rest),
    };
    let (kind, sizes): (_, &[usize]) = match rest.first()? {
        b'?' if rest.len() == 1 => return Some((Dtype { kind: Kind::Bool, size: 1 }, false)),
        b'b' => (Kind::Bool, &[1]),
        b'u' => (Kind::Unsigned, &[1, 2, 4, 8]),
        b'i' => (Kind::Signed, &[1, 2, 4, 8]),
        b'f' => (Kind::Float, &[2, 4, 8]),
        _ => return None,
    };
    let size = match rest[1..] {
        [digit @ b'1'..=b'8'] => usize::from(digit - b'0'),
        _ => return None,
    };
    // `|` says that there is no order, which only single bytes can say.
    let fits = sizes.contains(&size) && (order != b'|' || size == 1);
    fits.then_some((Dtype { kind, size }, order == b'>' || order == b'=' && cfg!(target_endian = "big")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Dtype = Dtype { kind: Kind::Float, size: 4 };

    /// A file of that version and header, with those elements.
    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = [MAGIC, &[version, 0]].concat();
        match version {
            1 => file.extend((header.len() as u16).to_le_bytes()),
            _ => file.extend((header.len() as u32).to_le_bytes()),
        }
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    fn header(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
    }

    #[test]
    fn what_is_written_reads_back() {
        for ty in [Type::U8, Type::S16, Type::F16, Type::BF16, Type::B32, Type::F32, Type::S64, Type::F64] {
            let dtype = Dtype::of(ty).expect("NumPy has it");
            for shape in [&[][..], &[3], &[2, 3], &[0], &[4, 0, 2], &[1; MAX_DIMS]] {
                let count = element_count(shape).expect("small") as usize;
                let data: Vec<u8> = (0..count * dtype.size).map(|i| i as u8).collect();
                let bytes = write(dtype, shape, &data);
                assert_eq!((bytes.len() - data.len()) % ALIGN, 0, "{ty} {shape:?}");
                assert_eq!(read(bytes), Ok(Array { dtype, shape: shape.to_vec(), data }), "{ty} {shape:?}");
            }
        }
    }

    #[test]
    fn all_versions_are_read() {
        let data: Vec<u8> = [1.0f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let wanted = Array { dtype: F32, shape: vec![2], data: data.clone() };
        for version in [1, 2, 3] {
            assert_eq!(read(file(version, &header("<f4", "False", "(2,)"), &data)), Ok(wanted.clone()));
        }
        // As Python 2 wrote it, and with the fields in another order and quotes of the other kind.
        assert_eq!(read(file(1, &header("<f4", "False", "(2L,)"), &data)), Ok(wanted.clone()));
        let other = "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}";
        assert_eq!(read(file(1, other, &data)), Ok(wanted));
    }

    #[test]
    fn big_endian_elements_are_turned_round() {
        let array = read(file(1, &header(">u2", "False", "(2,)"), &[0x12, 0x34, 0xab, 0xcd]));
        let dtype = Dtype { kind: Kind::Unsigned, size: 2 };
        assert_eq!(array, Ok(Array { dtype, shape: vec![2], data: vec![0x34, 0x12, 0xcd, 0xab] }));
    }

    #[test]
    fn fortran_order_becomes_c_order() {
        // Element [i][j][k] of a 2×3×2 array is 100·i + 10·j + k.
        let mut data = Vec::new();
        for k in 0..2u8 {
            for j in 0..3u8 {
                data.extend((0..2u8).map(|i| 100 * i + 10 * j + k));
            }
        }
        let array = read(file(1, &header("|u1", "True", "(2, 3, 2)"), &data)).expect("it is an array");
        assert_eq!(array.data, [0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121]);
        let empty = read(file(1, &header("<f4", "True", "(3, 0)"), &[])).expect("it is an array");
        assert_eq!((empty.shape, empty.data), (vec![3, 0], vec![]));
    }

    #[test]
    fn damaged_files_say_what_is_wrong() {
        let good = file(1, &header("<f4", "False", "(2,)"), &[0; 8]);
        assert_eq!(read(b"PK\x03\x04".to_vec()), Err(Error::NotNpy));
        assert_eq!(read(vec![]), Err(Error::NotNpy));
        assert_eq!(read(file(4, "{}", &[])), Err(Error::Version(4, 0)));
        for cut in 6..good.len() - 8 {
            assert!(
                matches!(read(good[..cut].to_vec()), Err(Error::HeaderCut { there, needed }) if there == cut as u64 && needed > there),
                "cut at {cut}"
            );
        }
        for cut in good.len() - 8..good.len() {
            let there = (cut + 8 - good.len()) as u64;
            assert_eq!(read(good[..cut].to_vec()), Err(Error::Length { needed: 8, there }));
        }
        let longer = [&good[..], &[0]].concat();
        assert_eq!(read(longer), Err(Error::Length { needed: 8, there: 9 }));
        // A shape that no memory holds is refused by the file's length, or by its own size.
        let vast = read(file(1, &header("<f4", "False", "(4611686018427387903,)"), &[0; 8]));
        assert_eq!(vast, Err(Error::Length { needed: 4 * 4611686018427387903, there: 8 }));
        let vaster = read(file(1, &header("<f8", "False", "(4294967296, 4294967296)"), &[0; 8]));
        assert_eq!(vaster, Err(Error::TooLarge));
    }

    #[test]
    fn any_damage_is_an_error_or_an_array_of_the_file_s_size() {
        let good = file(1, &header("<f4", "True", "(2, 1)"), &[0; 8]);
        for at in 0..good.len() {
            for byte in 0..=u8::MAX {
                let mut bytes = good.clone();
                bytes[at] = byte;
                if let Ok(array) = read(bytes) {
                    assert_eq!(element_count(&array.shape).map(|n| n * array.dtype.size as u64), Some(8));
                    assert_eq!(array.data.len(), 8);
                }
            }
        }
    }

    #[test]
    fn damaged_headers_are_refused() {
        for text in [
            "",
            "{",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'shape': (2,)}",
            "{'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
            "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'other': False, 'shape': (2,)}",
        ] {
            assert!(matches!(read(file(1, text, &[0; 8])), Err(Error::Header(_))), "{text}");
        }
        for descr in ["<c8", "<f16", "<U4", "|S3", "<M8[ns]", "|O", "<i3", "|u2", "f", "", "<f44"] {
            let refused = read(file(1, &header(descr, "False", "(2,)"), &[0; 8]));
            assert_eq!(refused, Err(Error::Dtype(descr.to_string())));
        }
        let structured = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}";
        assert!(matches!(read(file(1, structured, &[0; 8])), Err(Error::Dtype(_))));
    }
}
