//! Origins of IR values.

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

/// The origin of a declaration or statement: PTX text, a line of Rust, or unknown.
///
/// All origins compare equal, so two modules with the same content are equal.
#[derive(Clone, Copy, Debug, Default)]
pub enum Origin {
    /// Created by a program without a location.
    #[default]
    Unknown,
    /// A range of the PTX text that was parsed.
    Text(Span),
    /// The Rust line that generated it, in a kernel written in the DSL.
    Rust(&'static Location<'static>),
}

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

impl Eq for Origin {}
