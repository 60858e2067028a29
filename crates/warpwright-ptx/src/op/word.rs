//! Modifier words: `.rn`, `.f32`, `.shared::cta`.

/// 64-bit FNV-1a: the hash of a word, so that a table of words is compared as numbers.
pub const fn word_hash(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

/// A word of the text, with its hash.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    hash: u64,
    text: &'a str,
}

impl<'a> Word<'a> {
    /// The word `text`, without its dot.
    pub fn new(text: &'a str) -> Self {
        Word { hash: word_hash(text), text }
    }

    /// The hash, which is compared first.
    pub fn hash(self) -> u64 {
        self.hash
    }

    /// The text, without its dot.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Whether it is that keyword.
    pub fn is(self, keyword: Keyword) -> bool {
        self.hash == keyword.hash && self.text == keyword.text
    }
}

/// A word known to the program, hashed at compile time: `const { Keyword::new("ftz") }`.
#[derive(Clone, Copy, Debug)]
pub struct Keyword {
    hash: u64,
    text: &'static str,
}

impl Keyword {
    /// The keyword `text`, without its dot.
    pub const fn new(text: &'static str) -> Self {
        Keyword { hash: word_hash(text), text }
    }

    /// The text, without its dot.
    pub const fn text(self) -> &'static str {
        self.text
    }
}

/// A closed set of words, one of which can be used as a modifier.
pub trait Modifier: Copy + Sized {
    /// The words, for messages.
    const EXPECTED: &'static [&'static str];

    /// The value of a word.
    fn from_word(word: Word<'_>) -> Option<Self>;

    /// The word, without its dot.
    fn text(self) -> &'static str;
}

/// A field of an instruction that is zero or one modifier in the text.
pub trait ModifierField: Sized {
    /// Takes the field's modifier from those of the instruction.
    fn read(reader: &mut super::InstrReader<'_>) -> Option<Self>;

    /// Prints it with its dot.
    fn print(&self, out: &mut crate::print::Writer<'_>);
}

impl<M: Modifier> ModifierField for M {
    fn read(reader: &mut super::InstrReader<'_>) -> Option<Self> {
        reader.modifier()
    }

    fn print(&self, out: &mut crate::print::Writer<'_>) {
        out.modifier(self.text());
    }
}

impl<M: Modifier> ModifierField for Option<M> {
    fn read(reader: &mut super::InstrReader<'_>) -> Option<Self> {
        Some(reader.modifier_opt())
    }

    fn print(&self, out: &mut crate::print::Writer<'_>) {
        if let Some(modifier) = self {
            out.modifier(modifier.text());
        }
    }
}

/// Declares enums of modifier words.
///
/// ```text
/// modifiers! {
///     /// Doc.
///     pub enum Scope { /** The block. */ Cta = "cta", … }
/// }
/// ```
macro_rules! modifiers {
    ($($(#[$doc:meta])* pub enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $crate::op::Modifier for $name {
            const EXPECTED: &'static [&'static str] = &[$($word),*];

            fn from_word(word: $crate::op::Word<'_>) -> Option<Self> {
                let hash = word.hash();
                let found = $(if hash == const { $crate::op::word_hash($word) } { $name::$variant } else)*
                { return None };
                ($crate::op::Modifier::text(found) == word.text()).then_some(found)
            }

            fn text(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, ".{}", $crate::op::Modifier::text(*self))
            }
        }
    )*};
}
pub(crate) use modifiers;
