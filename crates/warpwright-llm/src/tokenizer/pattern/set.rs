//! A set of code points by their codes, plus ranges of non-ASCII code points.

use crate::tokenizer::unicode::{Class, NOT_ASCII};

/// Which code points one step of a pattern takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// By code; what `ranges` does not decide.
    codes: [bool; 256],
    /// Inclusive ranges of code points that are neither ASCII nor white space, which their code does not
    /// tell apart.
    ranges: Vec<(char, char)>,
    /// Whether a code point in `ranges` is in the set.
    within: bool,
}

impl Set {
    pub(super) fn empty() -> Set {
        Set { codes: [false; 256], ranges: Vec::new(), within: true }
    }

    pub(super) fn contains(&self, code: u8, c: impl FnOnce() -> char) -> bool {
        if self.ranges.is_empty() || code < NOT_ASCII || code == Class::Space.code() {
            return self.codes[code as usize];
        }
        let c = c();
        match self.ranges.iter().any(|&(first, last)| (first..=last).contains(&c)) {
            true => self.within,
            false => self.codes[code as usize],
        }
    }

    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Every code that a member of the set can have.
    pub(super) fn codes(&self) -> [bool; 256] {
        let mut codes = self.codes;
        if self.has_ranges() && self.within {
            codes[NOT_ASCII as usize..].fill(true);
        }
        codes
    }

    pub(super) fn add(&mut self, first: char, last: char) {
        for ascii in first as u32..=(last as u32).min(0x7f) {
            self.codes[ascii as usize] = true;
        }
        if !last.is_ascii() {
            self.ranges.push((first.max('\u{80}'), last));
        }
    }

    /// Adds the members of a class, ASCII and not.
    pub(super) fn add_class(&mut self, class: Class) {
        for ascii in 0..NOT_ASCII {
            self.codes[ascii as usize] |= Class::of(ascii as char) == class;
        }
        self.codes[class.code() as usize] = true;
    }

    pub(super) fn negated(mut self) -> Set {
        self.codes = self.codes.map(|member| !member);
        self.within = !self.within;
        self
    }

    /// What is in both; `None` where a range would have to depend on the class too.
    pub(super) fn and(self, other: Set) -> Option<Set> {
        let (ranges, within) = match (self.has_ranges(), other.has_ranges()) {
            (false, false) => (Vec::new(), true),
            (true, false) if !self.within => (self.ranges, false),
            (false, true) if !other.within => (other.ranges, false),
            _ => return None,
        };
        let codes = std::array::from_fn(|code| self.codes[code] && other.codes[code]);
        Some(Set { codes, ranges, within })
    }
}
