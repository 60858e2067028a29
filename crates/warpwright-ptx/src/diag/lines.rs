//! Lines and columns of positions in a text.

use super::Diagnostic;
use crate::ir::{Origin, Span};

/// A line and a column, both from 1. The column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// The lines of a text, for looking up offsets quickly.
#[derive(Clone, Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    /// Where each line begins.
    starts: Vec<u32>,
}

impl<'t> LineIndex<'t> {
    /// Finds the lines of a text. Text beyond 4 GiB is ignored.
    pub fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = ends.map_while(|(at, _)| u32::try_from(at + 1).ok());
        LineIndex { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Number of lines: one more than there are line ends.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The position of a byte. An offset beyond the end means the end.
    pub fn position(&self, offset: u32) -> Position {
        let offset = self.clamp(offset);
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1] as usize;
        let column = self.text[start..offset as usize].chars().count() + 1;
        Position { line: line as u32, column: column as u32 }
    }

    /// The positions of the first byte of a span and of the byte past its last.
    pub fn range(&self, span: Span) -> (Position, Position) {
        (self.position(span.start), self.position(span.end))
    }

    /// The bytes of a line, counted from 1, without its end.
    pub fn line(&self, line: u32) -> std::ops::Range<usize> {
        let index = (line.max(1) as usize - 1).min(self.starts.len() - 1);
        let start = self.starts[index] as usize;
        let end = self.starts.get(index + 1).map_or(self.text.len(), |&next| next as usize - 1);
        start..end
    }

    /// The offset, moved back to the start of a character of the text.
    pub(super) fn clamp(&self, offset: u32) -> u32 {
        let mut at = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at as u32
    }
}

impl Diagnostic {
    /// The position of its origin, in the text or in the Rust source of a kernel.
    pub fn position(&self, lines: &LineIndex<'_>) -> Option<Position> {
        match self.origin {
            Origin::Text(span) => Some(lines.position(span.start)),
            Origin::Rust(location) => Some(Position { line: location.line(), column: location.column() }),
            Origin::Unknown => None,
        }
    }

    /// The range of the text that it refers to; `None` if it does not refer to text.
    pub fn span(&self) -> Option<Span> {
        match self.origin {
            Origin::Text(span) => Some(span),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_offsets() {
        let lines = LineIndex::new("ab\nc\u{e9}d\n\nx");
        let at = |offset| {
            let position = lines.position(offset);
            (position.line, position.column)
        };
        assert_eq!([at(0), at(2), at(3), at(4)], [(1, 1), (1, 3), (2, 1), (2, 2)]);
        assert_eq!([at(6), at(7), at(8), at(9), at(100)], [(2, 3), (2, 4), (3, 1), (4, 1), (4, 2)]);
        assert_eq!((lines.len(), lines.line(2), lines.line(4)), (4, 3..7, 9..10));
    }
}
