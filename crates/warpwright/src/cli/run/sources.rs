//! The files that `.loc` names, as far as they can be read here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::Span;

/// Larger files are no sources.
const LARGEST: u64 = 16 << 20;

/// Texts of source files, by the names that the module gives them.
#[derive(Default)]
pub(super) struct Sources {
    texts: BTreeMap<String, String>,
}

impl Sources {
    /// Reads those of the files that can be read. A relative name is looked up from here, then from
    /// the folder of the PTX file.
    pub(super) fn read<'a>(names: impl Iterator<Item = &'a str>, ptx: &str) -> Sources {
        let beside = Path::new(ptx).parent().unwrap_or(Path::new(""));
        let mut texts = BTreeMap::new();
        for name in names {
            if !texts.contains_key(name)
                && let Some(text) =
                    [PathBuf::from(name), beside.join(name)].iter().find_map(|path| text(path))
            {
                texts.insert(name.to_string(), text);
            }
        }
        Sources { texts }
    }

    /// The lines of each text.
    pub(super) fn lines(&self) -> BTreeMap<&str, LineIndex<'_>> {
        self.texts.iter().map(|(name, text)| (&**name, LineIndex::new(text))).collect()
    }
}

fn text(path: &Path) -> Option<String> {
    let there = fs::metadata(path).ok()?;
    if !there.is_file() || there.len() > LARGEST {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// What a line says, without the spaces around it; `None` where there is no such line.
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
}
