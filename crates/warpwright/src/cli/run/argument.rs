//! Kernel arguments on the command line:
//!
//! ```text
//! u32:5  s32:-1  f16:0.5  b32:0x3f800000     a scalar
//! null                                       a null pointer
//! raw:0100ff  raw:@file                      bytes, for a parameter of any type
//! in:x.npy                                   a buffer with an array
//! inout:x.npy                                the same; the file is overwritten with the result
//! out:f32:1024:y.npy  out:f32:64x128:y.npy   an output buffer, which is written to the file
//! zeros:f32:1024                             a buffer of zeros
//! poison:f32:1024                            an uninitialised buffer
//! ```

use super::scalar;
use crate::cli::npy::{Dtype, element_count};
use std::path::PathBuf;
use warpwright_ptx::ir::Type;

/// An argument, its files not yet read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Argument {
    /// A value of a type, little-endian.
    Scalar { ty: Type, bytes: Vec<u8> },
    /// The pointer to nothing.
    Null,
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// The bytes of a file.
    RawFile(PathBuf),
    /// A pointer to a buffer.
    Buffer(Buffer),
}

/// A buffer of the device.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Buffer {
    /// With the array of a file.
    In(PathBuf),
    /// With the array of a file, which is rewritten.
    InOut(PathBuf),
    /// Of that shape, not initialised; a file gets what the kernel leaves in it.
    Out(Elements, PathBuf),
    /// With zeros.
    Zeros(Elements),
    /// Not initialised.
    Poison(Elements),
}

/// Elements in C order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Elements {
    pub(super) ty: Type,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<u64>,
    /// Size of them all.
    pub(super) bytes: u64,
}

/// The forms, for messages.
const FORMS: &str = "an argument is a scalar such as u32:5, s32:-1, b32:0xff or f32:1.5; null; raw:HEX or raw:@FILE; \
                     in:FILE.npy, inout:FILE.npy, out:TYPE:SHAPE:FILE.npy, zeros:TYPE:SHAPE or poison:TYPE:SHAPE";

impl Argument {
    /// Reads the text of an argument. The error is what is wrong with it, without the text.
    pub(super) fn parse(text: &str) -> Result<Argument, String> {
        if text == "null" {
            return Ok(Argument::Null);
        }
        let (form, rest) = text.split_once(':').ok_or_else(|| unknown(text))?;
        let buffer = match form {
            "raw" => {
                return match rest.strip_prefix('@') {
                    Some(file) => Ok(Argument::RawFile(path(file)?)),
                    None => hex(rest).map(Argument::Raw),
                };
            }
            "in" => Buffer::In(path(rest)?),
            "inout" => Buffer::InOut(path(rest)?),
            "out" => {
                let mut parts = rest.splitn(3, ':');
                let (ty, shape, file) = (parts.next(), parts.next(), parts.next());
                let (Some(ty), Some(shape), Some(file)) = (ty, shape, file) else {
                    return Err(
                        "what stands here is out:TYPE:SHAPE:FILE, such as out:f32:64x128:y.npy".into()
                    );
                };
                Buffer::Out(Elements::parse(ty, shape)?, path(file)?)
            }
            "zeros" | "poison" => {
                let (ty, shape) = rest.split_once(':').ok_or_else(|| {
                    format!("what stands here is {form}:TYPE:SHAPE, such as {form}:f32:1024")
                })?;
                let elements = Elements::parse(ty, shape)?;
                if form == "zeros" { Buffer::Zeros(elements) } else { Buffer::Poison(elements) }
            }
            _ => {
                let ty = scalar::TYPES.iter().copied().find(|ty| ty.name() == form);
                let ty = ty.ok_or_else(|| unknown(form))?;
                return Ok(Argument::Scalar { ty, bytes: scalar::parse(ty, rest)? });
            }
        };
        Ok(Argument::Buffer(buffer))
    }
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("the name of a file is missing".into()) } else { Ok(text.into()) }
}

/// What to say of a word that begins no form.
fn unknown(word: &str) -> String {
    if let Some(ty) = scalar::TYPES.iter().find(|ty| ty.name() == word) {
        return format!("a value is missing, such as {}:1", ty.name());
    }
    match elsewhere(word) {
        Some(ty) => format!("`{word}` is {ty} in PTX"),
        None => format!("`{word}` is none of the forms: {FORMS}"),
    }
}

/// The PTX name of a type that is named as in other languages.
fn elsewhere(word: &str) -> Option<&'static str> {
    Some(match word {
        "i8" | "int8" | "char" => "s8",
        "i16" | "int16" | "short" => "s16",
        "i32" | "int32" | "int" => "s32",
        "i64" | "int64" | "long" => "s64",
        "uint8" | "uchar" | "bool" => "u8",
        "uint16" | "ushort" => "u16",
        "uint32" | "uint" => "u32",
        "uint64" | "ulong" | "usize" => "u64",
        "float16" | "half" => "f16",
        "bfloat16" => "bf16",
        "float32" | "float" => "f32",
        "float64" | "double" => "f64",
        _ => return None,
    })
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if let Some(other) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
        return Err(format!("`{other}` is no hexadecimal digit; bytes of a file are raw:@FILE"));
    }
    if digits.len() % 2 == 1 {
        return Err(format!("{} hexadecimal digits are no whole number of bytes", digits.len()));
    }
    let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
    Ok(digits.as_bytes().chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect())
}

impl Elements {
    fn parse(ty: &str, shape: &str) -> Result<Elements, String> {
        let (ty, dtype) = element_type(ty)?;
        let shape = shape
            .split('x')
            .map(|dim| {
                let digits = !dim.is_empty() && dim.bytes().all(|byte| byte.is_ascii_digit());
                dim.parse().ok().filter(|_| digits)
            })
            .collect::<Option<Vec<u64>>>()
            .ok_or_else(|| format!("`{shape}` is not a shape such as 1024 or 64x128"))?;
        Elements::new(ty, dtype, shape)
    }

    pub(super) fn new(ty: Type, dtype: Dtype, shape: Vec<u64>) -> Result<Elements, String> {
        let bytes = element_count(&shape).and_then(|count| count.checked_mul(dtype.size as u64));
        let bytes = bytes.ok_or("the shape exceeds 2⁶⁴ bytes")?;
        Ok(Elements { ty, dtype, shape, bytes })
    }
}

/// Elements of a buffer: what a scalar can be, and fp8.
fn element_type(name: &str) -> Result<(Type, Dtype), String> {
    let ty = Type::ALL.iter().copied().find(|ty| ty.name() == name);
    ty.and_then(|ty| Some((ty, Dtype::of(ty)?))).ok_or_else(|| match elsewhere(name) {
        Some(ty) => format!("`{name}` is {ty} in PTX"),
        None => format!(
            "`{name}` is not the type of an element: u8 to u64, s8 to s64, b8 to b64, f16, bf16, f32, f64, e4m3 and e5m2 are"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(ty: Type, shape: &[u64]) -> Elements {
        Elements::new(ty, Dtype::of(ty).expect("NumPy has it"), shape.to_vec()).expect("it is small")
    }

    #[test]
    fn every_form_is_read() {
        let scalar = |ty, bytes: &[u8]| Argument::Scalar { ty, bytes: bytes.to_vec() };
        let one = elements(Type::F32, &[1024]);
        for (text, wanted) in [
            ("u8:1", scalar(Type::U8, &[1])),
            ("s32:-1", scalar(Type::S32, &[255; 4])),
            ("u32:5", scalar(Type::U32, &[5, 0, 0, 0])),
            ("u64:9", scalar(Type::U64, &[9, 0, 0, 0, 0, 0, 0, 0])),
            ("b16:0x1234", scalar(Type::B16, &[0x34, 0x12])),
            ("f16:1", scalar(Type::F16, &[0, 0x3c])),
            ("bf16:1", scalar(Type::BF16, &[0x80, 0x3f])),
            ("f32:1.5", scalar(Type::F32, &1.5f32.to_le_bytes())),
            ("f64:2", scalar(Type::F64, &2f64.to_le_bytes())),
            ("null", Argument::Null),
            ("raw:01fF", Argument::Raw(vec![1, 255])),
            ("raw:", Argument::Raw(vec![])),
            ("raw:@data.bin", Argument::RawFile("data.bin".into())),
            ("in:x.npy", Argument::Buffer(Buffer::In("x.npy".into()))),
            ("in:a:b/x.npy", Argument::Buffer(Buffer::In("a:b/x.npy".into()))),
            ("inout:a/x.npy", Argument::Buffer(Buffer::InOut("a/x.npy".into()))),
            ("out:f32:1024:y.npy", Argument::Buffer(Buffer::Out(one.clone(), "y.npy".into()))),
            (
                "out:bf16:64x128:a:b/y.npy",
                Argument::Buffer(Buffer::Out(elements(Type::BF16, &[64, 128]), "a:b/y.npy".into())),
            ),
            ("zeros:f32:1024", Argument::Buffer(Buffer::Zeros(one.clone()))),
            ("poison:f32:1024", Argument::Buffer(Buffer::Poison(one))),
            ("zeros:e4m3:0", Argument::Buffer(Buffer::Zeros(elements(Type::E4M3, &[0])))),
        ] {
            assert_eq!(Argument::parse(text).as_ref(), Ok(&wanted), "{text}");
        }
        assert_eq!(elements(Type::F16, &[3, 5]).bytes, 30);
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for text in [
            "",
            "5",
            "nul",
            "null:",
            "x.npy",
            "i32:1",
            "f32",
            "f32:",
            "pred:1",
            "f16x2:1",
            "e4m3:1",
            "b128:1",
            "u4:1",
            "raw:0",
            "raw:0g",
            "raw:@",
            "in:",
            "inout:",
            "out:y.npy",
            "out:f32:y.npy",
            "out:f32:1024:",
            "out:f32:12y:y.npy",
            "out:float:12:y.npy",
            "zeros:f32",
            "zeros:f32:",
            "zeros:f32:x",
            "zeros:f32:-1",
            "zeros:f32:4x",
            "zeros:f32:99999999999999999999",
            "zeros:f32:4294967296x4294967296",
            "poison:pred:4",
            "poison:texref:4",
            "poison:f16x2:4",
        ] {
            assert!(Argument::parse(text).is_err(), "{text}");
        }
    }
}
