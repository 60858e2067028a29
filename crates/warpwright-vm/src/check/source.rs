//! Finds the source lines of instructions: lines of Rust for kernels of the DSL, otherwise those of `.loc`.

use crate::decode::NO_STATEMENT;
use crate::module::Loaded;
use std::collections::{BTreeMap, HashMap};
use std::iter::successors;
use warpwright_ptx::ir::{ItemKind, Loc, Module, Origin};

/// Calls that are followed where functions were inlined into each other: a hostile module has any number.
const DEEPEST: usize = 32;

/// A source line of a kernel: a line of Rust for kernels of the DSL, otherwise that of `.loc`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file, as named by `.file` or the Rust compiler.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// If the line belongs to an inlined function, the line of the call.
    pub inlined_at: Option<Box<SourceLine>>,
}

impl SourceLine {
    /// The line and the lines of the calls that inlined it, innermost first.
    pub fn chain(&self) -> impl Iterator<Item = &SourceLine> {
        successors(Some(self), |line| line.inlined_at.as_deref())
    }
}

/// Finds the lines of a module's instructions.
pub(crate) struct SourceLines<'a> {
    module: &'a Loaded,
    files: BTreeMap<u32, &'a str>,
    /// By the function's number in the code: the statements from which on a line holds.
    functions: HashMap<u32, Vec<(u32, Option<SourceLine>)>>,
}

impl<'a> SourceLines<'a> {
    pub(crate) fn new(module: &'a Loaded) -> Self {
        SourceLines { module, files: files(&module.ir), functions: HashMap::new() }
    }

    /// The line that an instruction was made of.
    pub(crate) fn of(&mut self, pc: u32) -> Option<SourceLine> {
        let meta = &self.module.code.meta[pc as usize];
        if let Origin::Rust(location) = meta.origin {
            let (file, line, column) = (location.file().to_owned(), location.line(), location.column());
            return Some(SourceLine { file, line, column, inlined_at: None });
        }
        if meta.statement == NO_STATEMENT || self.files.is_empty() {
            return None;
        }
        let (module, files) = (self.module, &self.files);
        let lines = self.functions.entry(meta.function).or_insert_with(|| {
            located(module.function_at(pc).into_iter().flat_map(|function| function.locs()), files)
        });
        let after = lines.partition_point(|(at, _)| *at <= meta.statement);
        lines.get(after.checked_sub(1)?)?.1.clone()
    }
}

fn files(module: &Module) -> BTreeMap<u32, &str> {
    let files = module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::File(file) => Some((file.index, &*file.path)),
        _ => None,
    });
    files.collect()
}

/// The contents of each `.loc`. An inlined line names only the line of its call; that line was inlined itself if the
/// last earlier `.loc` for it says so.
fn located<'l>(
    locs: impl Iterator<Item = (u32, &'l Loc)>,
    files: &BTreeMap<u32, &str>,
) -> Vec<(u32, Option<SourceLine>)> {
    let mut known: HashMap<(u32, u32, u32), SourceLine> = HashMap::new();
    let mut lines = Vec::new();
    for (at, loc) in locs {
        let source = |file: u32, line: u32, column: u32| {
            // Line 0 says that there is none.
            let file = files.get(&file).filter(|_| line > 0)?;
            Some(SourceLine { file: (*file).to_owned(), line, column, inlined_at: None })
        };
        let mut line = source(loc.file, loc.line, loc.column);
        if let (Some(line), Some(call)) = (&mut line, &loc.inlined) {
            let place = (call.file, call.line, call.column);
            let mut outer = known.get(&place).cloned().or_else(|| source(place.0, place.1, place.2));
            if let Some(outer) = outer.as_mut().filter(|outer| outer.chain().count() >= DEEPEST) {
                outer.inlined_at = None;
            }
            line.inlined_at = outer.map(Box::new);
        }
        if let Some(line) = &line {
            known.insert((loc.file, loc.line, loc.column), line.clone());
        }
        lines.push((at, line));
    }
    lines
}
