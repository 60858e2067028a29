//! A kernel's configuration as data: its fields with their domains, its name, and a key that distinguishes it from
//! every other configuration.
//!
//! All of it is derived from the struct: see [`Config`].

use super::BuildError;
use std::any::{TypeId, type_name};
use std::fmt;

/// A kernel's configuration.
///
/// You derive it. Tools print the doc comments of the struct and of its fields (their first sentences).
///
/// | attribute | |
/// | --- | --- |
/// | `#[config(name = "...")]` | the kernel's name, instead of the struct's in snake case |
/// | `#[config(doc = "...")]` | what it does, instead of the doc comment's first sentence |
/// | `#[config(examples("d=4096 epsilon=1e-6", ...))]` | configurations of real models and at the edges |
/// | `#[field(default = ...)]` | the value where none is given |
/// | `#[field(range = 1..=64, multiple_of = 2)]` | the values that a number may have |
/// | `#[field(name = "...")]` | its name in texts, instead of the field's |
/// | `#[field(none = "auto")]` | of an `Option`: the word for `None`; the default is `none` |
/// | `#[field(max = 4)]` | of a `Vec`: the maximum number of values |
/// | `#[field(table, max = 4)]` | of a `Vec` of configurations: each of their fields is a field whose values are listed side by side (`n=64+32 bias=true+false`). The first field determines the number of rows; where another has fewer values, its last value is repeated |
/// | `#[field(domain = ...)]` | the values that it may have, as a [`Domain`] |
/// | `#[field(opaque)]` | it has no text: a kernel with such a field can be configured in Rust only |
///
/// If all fields have defaults, [`Default`] is derived as well.
///
/// ```
/// use warpwright_dsl::{Config, Configure};
///
/// /// Norms of rows. More than one row at a time.
/// #[derive(Config)]
/// struct RowNorm {
///     /// Length of a row.
///     #[field(range = 1..=4096)]
///     d: u32,
///     /// Added to the mean square.
///     #[field(range = 0.0..=1.0, default = 1e-5)]
///     epsilon: f32,
/// }
///
/// let norm = RowNorm::from_texts(&["64", "1e-6"]).expect("texts of the fields' types");
/// assert_eq!((RowNorm::NAME, RowNorm::DOC, RowNorm::FIELDS[0].doc), ("row_norm", "Norms of rows", "Length of a row"));
/// assert_eq!(norm.entry(), "row_norm_d64_epsilon1e_6");
/// assert!(norm.check_fields().is_ok() && RowNorm { d: 0, ..norm }.check_fields().is_err());
/// ```
pub trait Config: 'static {
    /// The kernel's name.
    const NAME: &'static str;
    /// What the kernel does.
    const DOC: &'static str;
    /// The fields that have texts.
    const FIELDS: &'static [Field];
    /// Whether the texts of the fields, together with the types, fully describe the configuration.
    const SAYS_ALL: bool;

    /// The values of [`FIELDS`](Self::FIELDS).
    fn texts(&self) -> Vec<String>;

    /// The specialisation key, which distinguishes the configuration from every other one, of any kernel.
    fn key(&self) -> Key;

    /// The entry name: the kernel's name, the types that it is made for, and the fields that are not at their
    /// defaults. It is for readers: two configurations may have the same one.
    fn entry(&self) -> String {
        let mut entry = Self::NAME.to_owned();
        if let Some((_, types)) = type_name::<Self>().split_once('<') {
            for ty in types.trim_end_matches('>').split(", ") {
                let ty = ty.rsplit("::").next().unwrap_or(ty).to_ascii_lowercase();
                entry.push('_');
                entry.extend(ty.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
            }
        }
        for (field, text) in Self::FIELDS.iter().zip(self.texts()) {
            if field.default != Some(&text) {
                entry.push('_');
                entry.push_str(field.name);
                entry.extend(text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
            }
        }
        if !Self::SAYS_ALL {
            entry += &format!("_{:016x}", self.key().hash());
        }
        entry
    }

    /// Checks that each field has a value of its domain.
    fn check_fields(&self) -> Result<(), BuildError> {
        for (field, text) in Self::FIELDS.iter().zip(self.texts()) {
            if !field.domain.contains(&text) {
                return Err(BuildError::field(field.name, text, field.domain.to_string()));
            }
        }
        Ok(())
    }
}

/// A configuration that can be read from texts. Deriving [`Config`] derives it.
pub trait Configure: Config + Sized {
    /// Configurations of real models and edge cases, as assignments separated by spaces.
    const EXAMPLES: &'static [&'static str];

    /// The configuration with these values of [`FIELDS`](Config::FIELDS), each parsed as its field's type.
    fn from_texts(values: &[&str]) -> Result<Self, BuildError>;
}

/// The values of a configuration's fields in order, for derived code.
#[doc(hidden)]
#[derive(Debug)]
pub struct Texts<'a> {
    fields: std::slice::Iter<'static, Field>,
    values: std::slice::Iter<'a, &'a str>,
}

impl<'a> Texts<'a> {
    pub fn of<T: Config>(values: &'a [&'a str]) -> Self {
        Texts { fields: T::FIELDS.iter(), values: values.iter() }
    }

    fn next(&mut self) -> (&'static str, &'a str) {
        let name = self.fields.next().map_or("", |field| field.name);
        (name, self.values.next().copied().unwrap_or_default())
    }

    /// The value of the next field.
    pub fn value<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, BuildError> {
        let (field, value) = self.next();
        parse(value).ok_or_else(|| BuildError::field(field, value, "a value of the field's type"))
    }

    /// The rows of the table whose columns are the next fields.
    pub fn rows<R: Configure>(&mut self) -> Result<Vec<R>, BuildError> {
        let columns: Vec<_> = R::FIELDS.iter().map(|_| self.next()).collect();
        let columns: Vec<(_, Vec<_>)> =
            columns.into_iter().map(|(field, values)| (field, values.split('+').collect())).collect();
        let Some((first, rows)) = columns.first().map(|(field, values)| (field, values.len())) else {
            return Ok(Vec::new());
        };
        if let Some((field, values)) = columns.iter().find(|(_, values)| values.len() > rows) {
            let rule = format!("as many values as `{first}` has at most, which are {rows}");
            return Err(BuildError::field(field, values.join("+"), rule));
        }
        let row = |i: usize| {
            let cells = columns.iter().filter_map(|(_, values)| values.get(i).or(values.last()).copied());
            R::from_texts(&cells.collect::<Vec<_>>())
        };
        (0..rows).map(row).collect()
    }
}

/// The texts of a table's columns. In all but the first, repeated values at the end are left out.
#[doc(hidden)]
pub fn columns<R: Config>(rows: &[R]) -> Vec<String> {
    let rows: Vec<_> = rows.iter().map(R::texts).collect();
    let column = |i: usize| {
        let mut values: Vec<_> = rows.iter().map(|row| row[i].as_str()).collect();
        while let (1.., [.., one, other]) = (i, &values[..])
            && one == other
        {
            values.pop();
        }
        values.join("+")
    };
    (0..R::FIELDS.len()).map(column).collect()
}

/// The fields of a configuration: its own fields, and the fields of tables with at most that many rows as lists.
#[doc(hidden)]
pub const fn joined<const N: usize>(parts: &[(&'static [Field], Option<u32>)]) -> [Field; N] {
    let mut all = [Field { name: "", domain: Domain::FLAG, default: None, doc: "" }; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let (fields, max) = parts[part];
        let mut i = 0;
        while i < fields.len() {
            all[at] = fields[i];
            if let Some(max) = max {
                all[at].domain = Domain::List { of: &fields[i].domain, max };
            }
            (at, i) = (at + 1, i + 1);
        }
        part += 1;
    }
    all
}

/// A field of a kernel's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The values that it can have.
    pub domain: Domain,
    /// The value if none is given; `None` if one is required.
    pub default: Option<&'static str>,
    /// What it means.
    pub doc: &'static str,
}

/// The values that a field can have. The kernel's `check` verifies conditions on several fields.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Domain {
    /// Whole numbers.
    Int {
        /// The smallest.
        from: u64,
        /// The largest.
        to: u64,
        /// The number that they are multiples of.
        multiple_of: u64,
    },
    /// Numbers.
    Float {
        /// The smallest.
        from: f32,
        /// The largest.
        to: f32,
    },
    /// Values of another domain, or a word with a meaning of its own.
    Or {
        /// The word.
        word: &'static str,
        /// The other domain.
        of: &'static Domain,
    },
    /// Names.
    OneOf(&'static [&'static str]),
    /// A list of values of another domain, separated by `+`.
    List {
        /// The domain of each value.
        of: &'static Domain,
        /// The maximum number of values.
        max: u32,
    },
}

impl Domain {
    /// Whole numbers.
    pub const fn int(from: u32, to: u32) -> Self {
        Domain::multiples(1, from, to)
    }

    /// Whole numbers that are multiples of another.
    pub const fn multiples(of: u32, from: u32, to: u32) -> Self {
        Domain::Int { from: from as u64, to: to as u64, multiple_of: of as u64 }
    }

    /// Yes or no.
    pub const FLAG: Domain = Domain::OneOf(&["false", "true"]);
    /// Threads of a block.
    pub const THREADS: Domain = Domain::Int { from: 32, to: 1024, multiple_of: 32 };

    /// The name of its type: `u32`, `u64`, `f32`, `name` or `list`.
    pub fn ty(self) -> &'static str {
        match self {
            Domain::Int { to, .. } if to > u32::MAX.into() => "u64",
            Domain::Int { .. } => "u32",
            Domain::Float { .. } => "f32",
            Domain::Or { of, .. } => of.ty(),
            Domain::OneOf(_) => "name",
            Domain::List { .. } => "list",
        }
    }

    /// Whether it contains the value.
    pub fn contains(self, value: &str) -> bool {
        match self {
            Domain::Int { from, to, multiple_of } => value
                .parse()
                .is_ok_and(|value: u64| (from..=to).contains(&value) && value.is_multiple_of(multiple_of)),
            Domain::Float { from, to } => value.parse().is_ok_and(|value: f32| (from..=to).contains(&value)),
            Domain::Or { word, of } => value == word || of.contains(value),
            Domain::OneOf(names) => names.contains(&value),
            Domain::List { of, max } => {
                value.split('+').count() <= max as usize && value.split('+').all(|value| of.contains(value))
            }
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WORD: u64 = u32::MAX as u64;
        match self {
            Domain::Int { from: 0, to: WORD, multiple_of: 1 } => f.write_str("a whole number"),
            Domain::Int { from, to, multiple_of: 1 } => write!(f, "from {from} to {to}"),
            Domain::Int { from, to, multiple_of } => {
                write!(f, "a multiple of {multiple_of} from {from} to {to}")
            }
            Domain::Float { from: f32::MIN, to: f32::MAX } => f.write_str("a number"),
            Domain::Float { from, to } => write!(f, "a number from {from:?} to {to:?}"),
            Domain::Or { word, of } => write!(f, "{word} or {of}"),
            Domain::OneOf(names) => match names.split_last() {
                Some((last, [])) => f.write_str(last),
                Some((last, others)) => write!(f, "{} or {last}", others.join(", ")),
                None => f.write_str("nothing"),
            },
            Domain::List { of, max } => write!(f, "up to {max} values with + between them, each {of}"),
        }
    }
}

/// The specialisation key of a configuration: its type and the values of its fields.
///
/// Only derived code makes a key, so it includes every field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    ty: TypeId,
    parts: Vec<u8>,
}

impl Key {
    /// The key of a type, without fields yet.
    #[doc(hidden)]
    pub fn of<T: 'static>() -> Self {
        Key { ty: TypeId::of::<T>(), parts: Vec::new() }
    }

    /// The key of a value whose type derives [`KeyPart`].
    pub fn derived<T: KeyPart + 'static>(value: &T) -> Self {
        let mut key = Key::of::<T>();
        value.feed(&mut key.parts);
        key
    }

    /// The values of the fields.
    #[doc(hidden)]
    pub fn parts(&mut self) -> &mut Vec<u8> {
        &mut self.parts
    }

    /// A hash of the values that is the same everywhere (FNV-1a), for names.
    pub(super) fn hash(&self) -> u64 {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.parts.iter().fold(0xcbf2_9ce4_8422_2325, mix)
    }
}

/// A value that is part of a specialisation key. You derive it for structs and enums of such values.
///
/// [`feed`](Self::feed) must append different bytes for different values, and no value's bytes may begin with another's.
pub trait KeyPart {
    /// Appends bytes that distinguish the value from others.
    fn feed(&self, key: &mut Vec<u8>);
}

macro_rules! key_parts {
    ($([$($param:tt)*] $ty:ty: |$value:ident| $part:expr;)*) => {
        $(impl<$($param)*> KeyPart for $ty {
            fn feed(&self, key: &mut Vec<u8>) {
                let $value = self;
                $part.feed(key);
            }
        })*
    };
}

// As what tells them apart.
key_parts! {
    [] usize: |value| (*value as u64);
    [] f32: |value| value.to_bits();
    [] f64: |value| value.to_bits();
    [] String: |value| value.as_str();
    [T: KeyPart] Vec<T>: |value| value.as_slice();
    [T: KeyPart, const N: usize] [T; N]: |value| value.as_slice();
    [T: KeyPart + ?Sized] &T: |value| (**value);
}

macro_rules! key_bytes {
    ($($ty:ty)*) => {
        $(impl KeyPart for $ty {
            fn feed(&self, key: &mut Vec<u8>) {
                key.extend(self.to_le_bytes());
            }
        })*
    };
}
key_bytes!(u8 i8 u16 i16 u32 i32 u64 i64);

impl KeyPart for bool {
    fn feed(&self, key: &mut Vec<u8>) {
        key.push((*self).into());
    }
}

impl KeyPart for str {
    fn feed(&self, key: &mut Vec<u8>) {
        self.len().feed(key);
        key.extend(self.as_bytes());
    }
}

/// The type is in the key.
impl<T> KeyPart for std::marker::PhantomData<T> {
    fn feed(&self, _: &mut Vec<u8>) {}
}

impl<T: KeyPart> KeyPart for Option<T> {
    fn feed(&self, key: &mut Vec<u8>) {
        self.is_some().feed(key);
        if let Some(value) = self {
            value.feed(key);
        }
    }
}

impl<T: KeyPart> KeyPart for [T] {
    fn feed(&self, key: &mut Vec<u8>) {
        self.len().feed(key);
        self.iter().for_each(|value| value.feed(key));
    }
}

/// A value with a text. The text identifies the value and parses back to it.
pub trait FieldValue: KeyPart + Sized {
    /// The values of the type.
    const DOMAIN: Domain;

    /// Parses a text.
    fn parse(text: &str) -> Option<Self>;

    /// The text of the value.
    fn text(&self) -> String;
}

/// An enum without data whose values are names. You derive it: the name of a value is the variant's in snake case, or
/// that of `#[name("...")]`.
///
/// ```
/// use warpwright_dsl::Choice;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Choice)]
/// enum Pairs {
///     Interleaved,
///     #[name("neox")]
///     HalvesApart,
/// }
///
/// assert_eq!(Pairs::ALL.map(Pairs::name), ["interleaved", "neox"]);
/// assert_eq!(Pairs::from_name("neox"), Some(Pairs::HalvesApart));
/// ```
pub trait Choice: FieldValue + Copy {
    /// The names, in the order of the variants.
    const NAMES: &'static [&'static str];
}

macro_rules! values {
    ($($ty:ty: $format:literal, $domain:expr;)*) => {
        $(impl FieldValue for $ty {
            const DOMAIN: Domain = $domain;

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn text(&self) -> String {
                format!($format, self)
            }
        })*
    };
}

values! {
    u32: "{}", Domain::Int { from: 0, to: u32::MAX as u64, multiple_of: 1 };
    u64: "{}", Domain::Int { from: 0, to: u64::MAX, multiple_of: 1 };
    f32: "{:?}", Domain::Float { from: f32::MIN, to: f32::MAX };
    bool: "{}", Domain::FLAG;
}

impl<T: FieldValue> FieldValue for Option<T> {
    const DOMAIN: Domain = Domain::Or { word: "none", of: &T::DOMAIN };

    fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(None),
            text => T::parse(text).map(Some),
        }
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "none".into(), T::text)
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    const DOMAIN: Domain = Domain::List { of: &T::DOMAIN, max: u32::MAX };

    fn parse(text: &str) -> Option<Self> {
        text.split('+').map(T::parse).collect()
    }

    fn text(&self) -> String {
        self.iter().map(T::text).collect::<Vec<_>>().join("+")
    }
}
