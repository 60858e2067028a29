//! From instructions to the lines that they stand on, and to the lines of source that `.loc` names.

use super::sources::Sources;
use serde::Serialize;
use std::collections::BTreeMap;
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::{ItemKind, Module, Origin, Span, StatementKind};

/// A line of the source that the PTX was made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct SourceLine {
    /// As the module names it.
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    /// What stands there, where the file can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// Where an instruction stands.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Place {
    #[serde(skip)]
    pub(super) span: Option<Span>,
    /// Line of the PTX file, from 1.
    pub(super) ptx_line: Option<u32>,
    /// The instruction.
    pub(super) ptx: Option<String>,
    pub(super) source: Option<SourceLine>,
}

/// Finds lines.
pub(super) struct Locator<'a> {
    lines: LineIndex<'a>,
    /// By the start of an instruction: what `.loc` says of it.
    locations: BTreeMap<u32, SourceLine>,
}

#[cfg(feature = "llm")]
impl Default for Locator<'_> {
    /// Of kernels without a text.
    fn default() -> Self {
        Locator { lines: LineIndex::new(""), locations: BTreeMap::new() }
    }
}

impl<'a> Locator<'a> {
    pub(super) fn new(module: &Module, text: &'a str) -> Self {
        let files: BTreeMap<u32, &str> = module
            .items
            .iter()
            .filter_map(|item| match &item.kind {
                ItemKind::File(file) => Some((file.index, &*file.path)),
                _ => None,
            })
            .collect();
        let mut locations = BTreeMap::new();
        for function in module.functions() {
            let mut current = None;
            for statement in function.statements() {
                match (&statement.kind, statement.origin) {
                    // Line 0 says that there is none.
                    (StatementKind::Loc(loc), _) => {
                        let file = files.get(&loc.file).filter(|_| loc.line > 0);
                        current = file.map(|file| SourceLine {
                            file: file.to_string(),
                            line: loc.line,
                            column: loc.column,
                            text: None,
                        });
                    }
                    (StatementKind::Instruction(_), Origin::Text(span)) => {
                        if let Some(line) = &current {
                            locations.insert(span.start, line.clone());
                        }
                    }
                    _ => {}
                }
            }
        }
        Locator { lines: LineIndex::new(text), locations }
    }

    /// The lines of the PTX file.
    pub(super) fn lines(&self) -> &LineIndex<'a> {
        &self.lines
    }

    /// Reads the files that `.loc` names, and keeps what stands on their lines.
    pub(super) fn read_sources(&mut self, ptx: &str) -> Sources {
        let sources = Sources::read(self.locations.values().map(|line| &*line.file), ptx);
        let texts = sources.lines();
        for line in self.locations.values_mut() {
            let lines = texts.get(&*line.file);
            line.text = lines.and_then(|lines| {
                let span = super::sources::line_span(lines, line.line)?;
                Some(lines.text()[span.range()].to_string())
            });
        }
        drop(texts);
        sources
    }

    /// Where something stands: in the text, or of a kernel of the DSL in Rust; all is `None` for what is neither.
    pub(super) fn place(&self, origin: Origin) -> Place {
        let span = match origin {
            Origin::Text(span) => span,
            // A kernel of the DSL: its line of Rust is all that there is.
            Origin::Rust(location) => {
                let (file, line, column) = (location.file().to_string(), location.line(), location.column());
                return Place {
                    source: Some(SourceLine { file, line, column, text: None }),
                    ..Place::default()
                };
            }
            Origin::Unknown => return Place::default(),
        };
        let ptx = self.lines.text().get(span.range()).map(one_line);
        Place {
            span: Some(span),
            ptx_line: Some(self.lines.position(span.start).line),
            ptx,
            source: self.locations.get(&span.start).cloned(),
        }
    }
}

/// A statement that may stand on several lines, with single spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_ptx::parse;

    #[test]
    fn instructions_are_where_loc_says() {
        let text = "\
.version 8.0
.target sm_80
.address_size 64
.file 1 \"a.cu\"
.entry k()
{
    .reg .b32 %r<2>;
    mov.u32 %r0, 1;
    .loc 1 7 3
    mov.u32
        %r1,   2;
    .loc 1 0 0
    add.u32 %r1, %r1, %r0;
    ret;
}
.entry other()
{
    ret;
}
";
        let module = parse(text).expect("it is PTX");
        let locator = Locator::new(&module, text);
        let places: Vec<_> = module
            .functions()
            .flat_map(|function| function.statements())
            .filter(|statement| matches!(statement.kind, StatementKind::Instruction(_)))
            .map(|statement| locator.place(statement.origin))
            .collect();
        let lines: Vec<_> = places.iter().map(|place| place.ptx_line).collect();
        assert_eq!(lines, [8, 10, 13, 14, 18].map(Some));
        assert_eq!(places[1].ptx.as_deref(), Some("mov.u32 %r1, 2;"));
        let sources: Vec<_> = places.iter().map(|place| place.source.clone()).collect();
        let seven = SourceLine { file: "a.cu".into(), line: 7, column: 3, text: None };
        assert_eq!(sources, [None, Some(seven), None, None, None]);
    }
}
