//! The metadata of a file: keys and values in the file's order, converted to Rust types.

use super::error::{GgufError, Problem};
use super::value::{Array, Value, ValueType};
use std::sync::Arc;

/// Keys and values.
///
/// Integers can be read in any width that holds the value, and floats in either width; there are no other conversions.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The file, for messages.
    file: Arc<str>,
    entries: Vec<(String, Value)>,
    /// Indices of the entries in the order of their keys.
    sorted: Vec<u32>,
}

impl Metadata {
    /// `sorted` has the indices of the entries in the order of their keys.
    pub(super) fn new(file: Arc<str>, entries: Vec<(String, Value)>, sorted: Vec<u32>) -> Self {
        Metadata { file, entries, sorted }
    }

    /// What is wrong with this file.
    pub(super) fn error(&self, problem: Problem) -> GgufError {
        GgufError::new(&self.file, problem)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let find = |&index: &u32| self.entries[index as usize].0.as_str().cmp(key);
        let at = self.sorted.binary_search_by(find).ok()?;
        Some(&self.entries[self.sorted[at] as usize].1)
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values in the file's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a key as one of the types that [`FromValue`] lists; `None` if the file does not have the key.
    ///
    /// # Errors
    ///
    /// The value has another type, or does not fit.
    pub fn optional<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, GgufError> {
        let value = self.get(key).map(|value| T::from_value(key, value));
        value.transpose().map_err(|problem| self.error(problem))
    }

    /// The value of a key that the file must have.
    ///
    /// # Errors
    ///
    /// Those of [`optional`](Self::optional), and a missing key.
    pub fn required<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, GgufError> {
        let missing = || self.error(Problem::MissingKey { key: key.to_string() });
        self.optional(key)?.ok_or_else(missing)
    }

    /// An integer.
    ///
    /// # Errors
    ///
    /// As [`required`](Self::required), like those of the methods below.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        self.required(key)
    }

    /// An integer.
    pub fn u64(&self, key: &str) -> Result<u64, GgufError> {
        self.required(key)
    }

    /// A float.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        self.required(key)
    }

    /// A truth value.
    pub fn bool(&self, key: &str) -> Result<bool, GgufError> {
        self.required(key)
    }

    /// Text.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        self.required(key)
    }

    /// An array of text.
    pub fn strings(&self, key: &str) -> Result<impl ExactSizeIterator<Item = &str>, GgufError> {
        Ok(self.required::<Vec<&str>>(key)?.into_iter())
    }

    /// An array of floats.
    pub fn f32s(&self, key: &str) -> Result<Vec<f32>, GgufError> {
        self.required(key)
    }

    /// An array of integers.
    pub fn i32s(&self, key: &str) -> Result<Vec<i32>, GgufError> {
        self.required(key)
    }

    /// An array of integers.
    pub fn u32s(&self, key: &str) -> Result<Vec<u32>, GgufError> {
        self.required(key)
    }
}

/// Indices of `count` names in the order of the names; `Err` has two indices, the lower one first, whose names
/// are the same.
pub(super) fn sorted_by_name<'a>(
    count: usize,
    name: impl Fn(usize) -> &'a str,
) -> Result<Vec<u32>, (usize, usize)> {
    // There is a name for every index, and names take more bytes in a file than an index does here.
    let mut sorted: Vec<u32> = (0..count).map_while(|index| u32::try_from(index).ok()).collect();
    sorted.sort_by_key(|&index| name(index as usize));
    let twice = sorted.windows(2).find(|pair| name(pair[0] as usize) == name(pair[1] as usize));
    // The sort is stable.
    twice.map_or(Ok(()), |pair| Err((pair[0] as usize, pair[1] as usize)))?;
    Ok(sorted)
}

/// A type that metadata values can be read as: integers, floats, `bool`, `&str`, `&Array`, and vectors of integers, of
/// floats and of `&str`.
pub trait FromValue<'a>: Sized {
    /// The value of `key`, or what is wrong with it.
    #[doc(hidden)]
    fn from_value(key: &str, value: &'a Value) -> Result<Self, Problem>;
}

fn wrong_type(key: &str, value: &Value, expected: &'static str) -> Problem {
    Problem::WrongType { key: key.to_string(), expected, found: value.kind() }
}

/// One number, from a value or from an item of an array.
trait Number: Sized {
    const NAME: &'static str;
    const ARRAY: &'static str;
    /// `None` where the value is no number of this kind, `Some(None)` where it does not fit.
    fn convert(value: &Value) -> Option<Option<Self>>;
    /// Whether a type is a number of this kind.
    fn takes(ty: ValueType) -> bool;
}

macro_rules! numbers {
    ($($ty:ident, $array:literal, $kind:ident, $convert:expr;)*) => {$(
        impl Number for $ty {
            const NAME: &'static str = stringify!($ty);
            const ARRAY: &'static str = $array;

            fn convert(value: &Value) -> Option<Option<Self>> {
                value.$kind().map($convert)
            }

            fn takes(ty: ValueType) -> bool {
                is_number(ty).is_some_and(|kind| kind == stringify!($kind))
            }
        }

        impl<'a> FromValue<'a> for $ty {
            fn from_value(key: &str, value: &'a Value) -> Result<Self, Problem> {
                one(key, value)
            }
        }

        impl<'a> FromValue<'a> for Vec<$ty> {
            fn from_value(key: &str, value: &'a Value) -> Result<Self, Problem> {
                several(key, value)
            }
        }
    )*};
}

numbers! {
    u8, "an array of integers (u8)", integer, |value| value.try_into().ok();
    i8, "an array of integers (i8)", integer, |value| value.try_into().ok();
    u16, "an array of integers (u16)", integer, |value| value.try_into().ok();
    i16, "an array of integers (i16)", integer, |value| value.try_into().ok();
    u32, "an array of integers (u32)", integer, |value| value.try_into().ok();
    i32, "an array of integers (i32)", integer, |value| value.try_into().ok();
    u64, "an array of integers (u64)", integer, |value| value.try_into().ok();
    i64, "an array of integers (i64)", integer, |value| value.try_into().ok();
    f32, "an array of floats", float, narrow;
    f64, "an array of floats", float, Some;
}

/// What is finite stays so.
fn narrow(value: f64) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "it rounds")]
    let narrow = value as f32;
    (narrow.is_finite() || !value.is_finite()).then_some(narrow)
}

fn is_number(ty: ValueType) -> Option<&'static str> {
    match ty {
        ValueType::U8 | ValueType::I8 | ValueType::U16 | ValueType::I16 => Some("integer"),
        ValueType::U32 | ValueType::I32 | ValueType::U64 | ValueType::I64 => Some("integer"),
        ValueType::F32 | ValueType::F64 => Some("float"),
        ValueType::Bool | ValueType::String | ValueType::Array => None,
    }
}

fn does_not_fit<T: Number>(key: &str, index: Option<usize>, value: &Value) -> Problem {
    let found = match (value.integer(), value.float()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(float)) => float.to_string(),
        (None, None) => value.ty().to_string(),
    };
    Problem::DoesNotFit { key: key.to_string(), index, expected: T::NAME, found }
}

fn one<T: Number>(key: &str, value: &Value) -> Result<T, Problem> {
    match T::convert(value) {
        Some(Some(number)) => Ok(number),
        Some(None) => Err(does_not_fit::<T>(key, None, value)),
        None => Err(wrong_type(key, value, T::NAME)),
    }
}

fn several<T: Number>(key: &str, value: &Value) -> Result<Vec<T>, Problem> {
    let wrong = || wrong_type(key, value, T::ARRAY);
    let Value::Array(array) = value else { return Err(wrong()) };
    // What has no items has any type.
    if !array.is_empty() && !T::takes(array.ty()) {
        return Err(wrong());
    }
    let items = array.iter().enumerate().map(|(index, item)| match T::convert(&item) {
        Some(Some(number)) => Ok(number),
        _ => Err(does_not_fit::<T>(key, Some(index), &item)),
    });
    items.collect()
}

impl<'a> FromValue<'a> for bool {
    fn from_value(key: &str, value: &'a Value) -> Result<Self, Problem> {
        match value {
            Value::Bool(value) => Ok(*value),
            _ => Err(wrong_type(key, value, "a bool")),
        }
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_value(key: &str, value: &'a Value) -> Result<Self, Problem> {
        match value {
            Value::String(value) => Ok(value),
            _ => Err(wrong_type(key, value, "a string")),
        }
    }
}

impl<'a> FromValue<'a> for &'a Array {
    fn from_value(key: &str, value: &'a Value) -> Result<Self, Problem> {
        match value {
            Value::Array(value) => Ok(value),
            _ => Err(wrong_type(key, value, "an array")),
        }
    }
}

impl<'a> FromValue<'a> for Vec<&'a str> {
    fn from_value(key: &str, value: &'a Value) -> Result<Self, Problem> {
        let wrong = || wrong_type(key, value, "an array of strings");
        let array = <&Array>::from_value(key, value).map_err(|_| wrong())?;
        if array.is_empty() {
            return Ok(Vec::new());
        }
        let strings = array.byte_strings().ok_or_else(wrong)?;
        let texts = strings.enumerate().map(|(index, bytes)| {
            let problem = |_| Problem::ItemNotUtf8 { key: key.to_string(), index };
            std::str::from_utf8(bytes).map_err(problem)
        });
        texts.collect()
    }
}
