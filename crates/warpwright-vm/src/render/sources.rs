//! Source files of instructions, if they can be read.

use crate::check::SourceLine;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::Span;

/// Larger files are no sources.
const LARGEST: u64 = 16 << 20;

/// Texts of source files, by the names that modules give them.
#[derive(Default)]
pub(super) struct Sources {
    /// Where relative names are looked up as well.
    pub(super) beside: Option<PathBuf>,
    texts: RefCell<HashMap<String, Option<Rc<str>>>>,
}

impl Sources {
    /// The text of a file is known, and not read.
    pub(super) fn add(&self, file: &str, text: &str) {
        self.texts.borrow_mut().insert(file.to_owned(), Some(text.into()));
    }

    /// The text of a file, if it can be read. A relative name is looked up from here, then from the folder of the PTX. Rust's
    /// compiler names files as seen from the workspace, and tests run in a package of it, so those are looked up from
    /// the folders around this one too.
    pub(super) fn text(&self, file: &str) -> Option<Rc<str>> {
        if let Some(known) = self.texts.borrow().get(file) {
            return known.clone();
        }
        let around = std::env::current_dir().ok().filter(|_| file.ends_with(".rs"));
        let around =
            around.iter().flat_map(|folder| folder.ancestors().skip(1)).map(|folder| folder.join(file));
        let beside = self.beside.iter().map(|folder| folder.join(file));
        let text =
            std::iter::once(PathBuf::from(file)).chain(beside).chain(around).find_map(|path| read(&path));
        self.texts.borrow_mut().insert(file.to_owned(), text.clone());
        text
    }
}

fn read(path: &Path) -> Option<Rc<str>> {
    let there = fs::metadata(path).ok()?;
    if !there.is_file() || there.len() > LARGEST {
        return None;
    }
    Some(fs::read_to_string(path).ok()?.into())
}

/// The text of a line, without surrounding spaces; `None` if the line does not exist.
pub(super) fn line_span(lines: &LineIndex<'_>, line: u32) -> Option<Span> {
    if line == 0 || line as usize > lines.len() {
        return None;
    }
    let range = lines.line(line);
    let text = &lines.text()[range.clone()];
    let start = range.start + (text.len() - text.trim_start().len());
    let end = start + text.trim().len();
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(end).ok()?))
}

/// The marked part of a line. Rust gives the column of a call, and one line of a DSL kernel may contain several
/// instructions, so the name at that column is marked. Otherwise the whole line is.
pub(super) fn mark(text: &str, line: &SourceLine) -> Option<Span> {
    let lines = LineIndex::new(text);
    let whole = line_span(&lines, line.line)?;
    if !line.file.ends_with(".rs") || line.column == 0 {
        return Some(whole);
    }
    let range = lines.line(line.line);
    let at = text[range.clone()].char_indices().nth(line.column as usize - 1);
    let Some(start) = at.map(|(at, _)| range.start + at).filter(|at| *at < whole.end as usize) else {
        return Some(whole);
    };
    let rest = &text[start..whole.end as usize];
    let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let bytes = if name > 0 { name } else { rest.chars().next().map_or(0, char::len_utf8) };
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(start + bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_lines() {
        let lines = LineIndex::new("a\n  b c \r\n\n");
        let text = |line| line_span(&lines, line).map(|span| &lines.text()[span.range()]);
        assert_eq!(
            [text(0), text(1), text(2), text(3), text(4)],
            [None, Some("a"), Some("b c"), Some(""), Some("")]
        );
        assert_eq!(text(5), None);
    }

    #[test]
    fn names_are_marked_in_rust_and_lines_elsewhere() {
        let text = "\n    y.st(i, x.ld(i) + é);\n";
        let marked = |file: &str, line, column| {
            let line = SourceLine { file: file.into(), line, column, inlined_at: None };
            mark(text, &line).map(|span| &text[span.range()])
        };
        let whole = Some("y.st(i, x.ld(i) + é);");
        assert_eq!([marked("a.rs", 2, 7), marked("a.rs", 2, 15)], [Some("st"), Some("ld")]);
        assert_eq!([marked("a.rs", 2, 21), marked("a.rs", 2, 23)], [Some("+"), Some("é")]);
        assert_eq!([marked("a.rs", 2, 0), marked("a.rs", 2, 99)], [whole; 2]);
        assert_eq!([marked("a.cu", 2, 7), marked("a.rs", 9, 1)], [whole, None]);
    }
}
