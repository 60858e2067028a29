//! Locations of instructions, in the form that `--json` prints.

use serde::Serialize;
use warpwright_ptx::ir::Origin;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

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
    /// The line of the call, where a function was inlined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inlined_at: Option<Box<SourceLine>>,
}

impl SourceLine {
    fn new(line: &vm::SourceLine, lines: &Renderer<'_>) -> SourceLine {
        let inlined_at = line.inlined_at.as_deref().map(|call| Box::new(SourceLine::new(call, lines)));
        let text = lines.source_text(line);
        SourceLine { file: line.file.clone(), line: line.line, column: line.column, text, inlined_at }
    }
}

/// The location of an instruction.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Location {
    /// Line of the PTX file, from 1.
    pub(super) ptx_line: Option<u32>,
    /// The instruction.
    pub(super) ptx: Option<String>,
    pub(super) source: Option<SourceLine>,
}

impl Location {
    /// All is `None` for what is neither in the text nor of a line of source.
    pub(super) fn new(origin: Origin, source: Option<&vm::SourceLine>, lines: &Renderer<'_>) -> Location {
        let (ptx_line, ptx) = lines.ptx(origin).unzip();
        Location { ptx_line, ptx, source: source.map(|line| SourceLine::new(line, lines)) }
    }
}
