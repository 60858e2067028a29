//! Where an IR value came from.

use std::panic::Location;

/// A byte range of the source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just past the last byte.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`, in bytes.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// The smallest range that covers both.
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// The range as indices of the source text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Where a declaration or statement came from: PTX text, a line of Rust, or nowhere in particular.
///
/// All origins compare equal, so that two modules that say the same thing are equal.
#[derive(Clone, Copy, Debug, Default)]
pub enum Origin {
    /// Made by a program, with no location.
    #[default]
    Unknown,
    /// A range of the PTX text that was parsed.
    Text(Span),
    /// The Rust line that asked for it, in a kernel written in the DSL.
    Rust(&'static Location<'static>),
}

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

impl Eq for Origin {}
