//! Classes of code points, and the codes that patterns are matched against.
//!
//! A text is reduced to one byte per code point: ASCII stays the same, and everything else becomes [`NOT_ASCII`] plus
//! its class. Pre-tokenizers distinguish little more than letters, numbers and spaces, so one byte decides nearly every
//! step, and a set of code points has 256 bits.
//!
//! The classes are llama.cpp's: those of Unicode 15.1, without the subdivisions of letters. White space is a class of
//! its own, and not a separator or a control character.

use std::sync::OnceLock;

/// What a code point is to a pre-tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// Unassigned, control, format, private use.
    Other,
    Number,
    Letter,
    Mark,
    Punctuation,
    Symbol,
    Space,
}

pub(super) const CLASSES: [Class; 7] = [
    Class::Other,
    Class::Number,
    Class::Letter,
    Class::Mark,
    Class::Punctuation,
    Class::Symbol,
    Class::Space,
];

/// Their letters in `classes.txt`.
const LETTERS: &str = "CNLMPSZ";

/// The code of the first class; a code below it is an ASCII character.
pub(super) const NOT_ASCII: u8 = 0x80;

impl Class {
    /// The class of any code point, ASCII too.
    pub(super) fn of(c: char) -> Class {
        let index = runs().partition_point(|&(first, _)| first <= c as u32);
        runs()[index.saturating_sub(1)].1
    }

    /// The code of the code points of this class that are not ASCII.
    pub(super) const fn code(self) -> u8 {
        NOT_ASCII + self as u8
    }
}

/// The code of a code point.
pub(super) fn code(c: char) -> u8 {
    match c as u32 {
        ascii @ 0..0x80 => ascii as u8,
        near @ 0x80..0x1_0000 => plane()[near as usize],
        _ => Class::of(c).code(),
    }
}

/// Codes of the first plane, where nearly all text is; the search through the runs is for the rest.
fn plane() -> &'static [u8] {
    static PLANE: OnceLock<Vec<u8>> = OnceLock::new();
    PLANE.get_or_init(|| {
        let mut codes = vec![Class::Other.code(); 0x1_0000];
        let ends = runs().iter().skip(1).map(|&(first, _)| first as usize).chain([codes.len()]);
        for (&(first, class), end) in runs().iter().zip(ends) {
            let run = codes.get_mut(first as usize..end.min(0x1_0000));
            run.unwrap_or_default().fill(class.code());
        }
        codes
    })
}

/// Runs of code points of one class: where each begins, in hexadecimal, and its class. It reaches to the next one. Unicode
/// 15.1; written by `tools/test-vocabularies/unicode_classes.py`.
fn runs() -> &'static [(u32, Class)] {
    static RUNS: OnceLock<Vec<(u32, Class)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let run = |word: &str| {
            let (first, class) = word.split_once(':')?;
            Some((u32::from_str_radix(first, 16).ok()?, CLASSES[LETTERS.find(class)?]))
        };
        include_str!("classes.txt").split_whitespace().filter_map(run).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_is_the_runs() {
        for c in (0x80..0x1_0000).filter_map(char::from_u32) {
            assert_eq!(code(c), Class::of(c).code(), "U+{:04X}", c as u32);
        }
    }

    #[test]
    fn classes_are_unicodes_with_white_space_taken_out() {
        for (c, class) in [
            ('\t', Class::Space),
            ('\u{1c}', Class::Other),
            ('\u{85}', Class::Space),
            ('\u{a0}', Class::Space),
            ('\u{200b}', Class::Other),
            ('\u{3000}', Class::Space),
            ('5', Class::Number),
            ('½', Class::Number),
            ('é', Class::Letter),
            ('中', Class::Letter),
            ('\u{301}', Class::Mark),
            ('«', Class::Punctuation),
            ('$', Class::Symbol),
            ('😀', Class::Symbol),
            ('\u{e000}', Class::Other),
            ('\u{2ebf0}', Class::Letter), // assigned in 15.1
            ('\u{10ffff}', Class::Other),
        ] {
            assert_eq!(Class::of(c), class, "U+{:04X}", c as u32);
        }
    }
}
