//! Locations of instructions.

use serde::{Deserialize, Serialize};
use std::iter::successors;
use warpwright_ptx::ir::Origin;
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

/// A line of the source that the PTX was made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Source {
    /// The file, as the module names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// What stands there, where the file can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The line of the call, where a function was inlined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined_at: Option<Box<Source>>,
}

impl Source {
    /// A line, with its text where the renderer can read it.
    pub fn new(line: &vm::SourceLine, renderer: &Renderer<'_>) -> Source {
        let inlined_at = line.inlined_at.as_deref().map(|call| Box::new(Source::new(call, renderer)));
        let text = renderer.source_text(line);
        Source { file: line.file.clone(), line: line.line, column: line.column, text, inlined_at }
    }

    /// The line and the lines of the calls that inlined it, innermost first.
    pub fn chain(&self) -> impl Iterator<Item = &Source> {
        successors(Some(self), |line| line.inlined_at.as_deref())
    }
}

/// The location of an instruction. All is `None` for what is neither in a text nor of a line of source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// Line of the PTX, from 1.
    pub ptx_line: Option<u32>,
    /// The instruction.
    pub ptx: Option<String>,
    /// The line of source.
    pub source: Option<Source>,
}

impl Site {
    /// The location of what came from `origin`, in the PTX of the renderer.
    pub fn new(origin: Origin, source: Option<&vm::SourceLine>, renderer: &Renderer<'_>) -> Site {
        let (ptx_line, ptx) = renderer.ptx(origin).unzip();
        Site { ptx_line, ptx, source: source.map(|line| Source::new(line, renderer)) }
    }
}
