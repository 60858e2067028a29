//! Values of metadata: numbers, text, and arrays of them.
//!
//! An array stays in the file's encoding (vocabularies are megabytes) and is decoded on access.

use super::error::ValueKind;
use super::map::Bytes;
use std::fmt;

macro_rules! value_types {
    ($($variant:ident($held:ty) = $number:literal, $name:literal, $least:literal: $doc:literal;)*) => {
        /// The type of a value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ValueType {
            $(#[doc = $doc] $variant,)*
        }

        impl ValueType {
            /// Every type, in the order of their numbers.
            pub const ALL: &[ValueType] = &[$(ValueType::$variant,)*];

            /// The number by which a file names it.
            pub const fn number(self) -> u32 {
                match self { $(ValueType::$variant => $number,)* }
            }

            /// Its name: `u32`, `string`.
            pub const fn name(self) -> &'static str {
                match self { $(ValueType::$variant => $name,)* }
            }

            /// Bytes of one in a file; of a string and of an array, the least.
            pub(super) const fn least_bytes(self) -> u64 {
                match self { $(ValueType::$variant => $least,)* }
            }
        }

        /// A value of metadata.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Value {
            $(#[doc = $doc] $variant($held),)*
        }

        impl Value {
            /// Its type.
            pub fn ty(&self) -> ValueType {
                match self { $(Value::$variant(_) => ValueType::$variant,)* }
            }
        }
    };
}

value_types! {
    U8(u8) = 0, "u8", 1: "Unsigned, 8 bits.";
    I8(i8) = 1, "i8", 1: "Signed, 8 bits.";
    U16(u16) = 2, "u16", 2: "Unsigned, 16 bits.";
    I16(i16) = 3, "i16", 2: "Signed, 16 bits.";
    U32(u32) = 4, "u32", 4: "Unsigned, 32 bits.";
    I32(i32) = 5, "i32", 4: "Signed, 32 bits.";
    F32(f32) = 6, "f32", 4: "Single precision.";
    Bool(bool) = 7, "bool", 1: "False or true.";
    String(String) = 8, "string", 8: "Text.";
    Array(Array) = 9, "array", 12: "Several values of one type.";
    U64(u64) = 10, "u64", 8: "Unsigned, 64 bits.";
    I64(i64) = 11, "i64", 8: "Signed, 64 bits.";
    F64(f64) = 12, "f64", 8: "Double precision.";
}

impl ValueType {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    pub(super) fn article(self) -> &'static str {
        match self {
            ValueType::I8 | ValueType::I16 | ValueType::I32 | ValueType::I64 => "an",
            ValueType::F32 | ValueType::F64 | ValueType::Array => "an",
            _ => "a",
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Value {
    /// Its type, and that of its items.
    pub fn kind(&self) -> ValueKind {
        let items = match self {
            Value::Array(array) => Some((array.ty(), array.len())),
            _ => None,
        };
        ValueKind { ty: self.ty(), items }
    }

    /// The number, if it is an integer of any width.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Value::U8(value) => value.into(),
            Value::I8(value) => value.into(),
            Value::U16(value) => value.into(),
            Value::I16(value) => value.into(),
            Value::U32(value) => value.into(),
            Value::I32(value) => value.into(),
            Value::U64(value) => value.into(),
            Value::I64(value) => value.into(),
            _ => return None,
        })
    }

    /// The number, if it is a float of either width.
    pub fn float(&self) -> Option<f64> {
        match *self {
            Value::F32(value) => Some(value.into()),
            Value::F64(value) => Some(value),
            _ => None,
        }
    }

    /// Whether a file would have the same bytes: not a number is the same as itself.
    pub(super) fn is_same(&self, other: &Value) -> bool {
        let bytes = |value: &Value| {
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            bytes
        };
        self.ty() == other.ty() && bytes(self) == bytes(other)
    }
}

/// A string as files have it: its length, then its bytes.
pub(super) fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

/// Values of one type.
#[derive(Clone)]
pub struct Array {
    ty: ValueType,
    len: usize,
    /// The items as a file has them.
    bytes: Bytes,
}

impl Array {
    pub(super) fn new(ty: ValueType, len: usize, bytes: Bytes) -> Self {
        Array { ty, len, bytes }
    }

    /// An array of arrays, or of any values of the type of the first one (`u8` if there is none). `None` if the types
    /// differ.
    pub fn of(values: &[Value]) -> Option<Self> {
        let ty = values.first().map_or(ValueType::U8, Value::ty);
        let mut bytes = Vec::new();
        for value in values {
            if value.ty() != ty {
                return None;
            }
            value.encode(&mut bytes);
        }
        Some(Array { ty, len: values.len(), bytes: bytes.into() })
    }

    /// The type of its items.
    pub fn ty(&self) -> ValueType {
        self.ty
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The items in order, as values. Invalid UTF-8 becomes U+FFFD.
    pub fn iter(&self) -> impl Iterator<Item = Value> {
        let mut items = Items(self.bytes.as_slice());
        (0..self.len).map_while(move |_| items.value(self.ty, &self.bytes))
    }

    /// The bytes of each string, if this is an array of strings.
    pub fn byte_strings(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let mut items = Items(self.bytes.as_slice());
        let strings = (0..self.len).map_while(move |_| items.string());
        (self.ty == ValueType::String).then_some(strings)
    }

    /// Its items as the file has them.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.ty.number().to_le_bytes());
        out.extend((self.len as u64).to_le_bytes());
        out.extend(self.payload());
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}]", self.ty, self.len)
    }
}

impl PartialEq for Array {
    /// Whether a file would have the same bytes.
    fn eq(&self, other: &Self) -> bool {
        (self.ty, self.len, self.payload()) == (other.ty, other.len, other.payload())
    }
}

/// The items of an array that was checked when the file was opened. Nothing is there where the file has been
/// changed since.
struct Items<'a>(&'a [u8]);

impl<'a> Items<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let len = u64::from_le_bytes(self.array()?);
        self.take(usize::try_from(len).ok()?)
    }

    /// An array, which is a part of `within`.
    fn nested(&mut self, within: &Bytes) -> Option<Array> {
        let ty = ValueType::from_number(u32::from_le_bytes(self.array()?))?;
        let len = usize::try_from(u64::from_le_bytes(self.array()?)).ok()?;
        let all = self.0;
        self.skip(ty, len)?;
        let end = within.as_slice().len();
        Some(Array { ty, len, bytes: within.slice(end - all.len()..end - self.0.len()) })
    }

    /// `within` is what all of it is a part of.
    fn value(&mut self, ty: ValueType, within: &Bytes) -> Option<Value> {
        Some(match ty {
            ValueType::Bool => Value::Bool(self.array()? != [0]),
            ValueType::String => Value::String(String::from_utf8_lossy(self.string()?).into_owned()),
            ValueType::Array => Value::Array(self.nested(within)?),
            _ => Value::number(ty, self.take(ty.least_bytes() as usize)?)?,
        })
    }

    fn skip(&mut self, ty: ValueType, len: usize) -> Option<()> {
        match ty {
            ValueType::String => (0..len).try_for_each(|_| self.string().map(drop)),
            ValueType::Array => (0..len).try_for_each(|_| {
                let ty = ValueType::from_number(u32::from_le_bytes(self.array()?))?;
                let len = usize::try_from(u64::from_le_bytes(self.array()?)).ok()?;
                self.skip(ty, len)
            }),
            _ => self.take(len.checked_mul(usize::try_from(ty.least_bytes()).ok()?)?).map(drop),
        }
    }
}

macro_rules! from_numbers {
    ($($variant:ident($ty:ty)),*) => {
        impl Value {
            /// What stands in a file after the type.
            pub(super) fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Value::$variant(value) => out.extend(value.to_le_bytes()),)*
                    Value::Bool(value) => out.push((*value).into()),
                    Value::String(value) => encode_bytes(value.as_bytes(), out),
                    Value::Array(array) => array.encode(out),
                }
            }

            /// A number from its bytes; `None` where the type is none of a number, or has other bytes.
            pub(super) fn number(ty: ValueType, bytes: &[u8]) -> Option<Value> {
                Some(match ty {
                    $(ValueType::$variant => Value::$variant(<$ty>::from_le_bytes(bytes.try_into().ok()?)),)*
                    ValueType::Bool | ValueType::String | ValueType::Array => return None,
                })
            }
        }

        $(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Self {
                Value::$variant(value)
            }
        }

        impl From<&[$ty]> for Value {
            fn from(values: &[$ty]) -> Self {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                Value::Array(Array::new(ValueType::$variant, values.len(), bytes.into()))
            }
        }

        impl From<Vec<$ty>> for Value {
            fn from(values: Vec<$ty>) -> Self {
                values.as_slice().into()
            }
        }
        )*
    };
}

from_numbers!(U8(u8), I8(i8), U16(u16), I16(i16), U32(u32), I32(i32), F32(f32), U64(u64), I64(i64), F64(f64));

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::String(value.to_string())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::String(value)
    }
}

impl From<Array> for Value {
    fn from(value: Array) -> Self {
        Value::Array(value)
    }
}

impl From<&[bool]> for Value {
    fn from(values: &[bool]) -> Self {
        let bytes: Vec<u8> = values.iter().map(|value| (*value).into()).collect();
        Value::Array(Array::new(ValueType::Bool, values.len(), bytes.into()))
    }
}

macro_rules! from_strings {
    ($($ty:ty),*) => {$(
        impl From<&[$ty]> for Value {
            fn from(values: &[$ty]) -> Self {
                Array::strings(values.iter().map(|value| value.as_bytes())).into()
            }
        }

        impl From<Vec<$ty>> for Value {
            fn from(values: Vec<$ty>) -> Self {
                values.as_slice().into()
            }
        }
    )*};
}

from_strings!(&str, String);

impl Array {
    /// An array of strings, which need not be UTF-8.
    pub fn strings<'a>(strings: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut bytes = Vec::new();
        let mut len = 0;
        for string in strings {
            encode_bytes(string, &mut bytes);
            len += 1;
        }
        Array { ty: ValueType::String, len, bytes: bytes.into() }
    }
}
