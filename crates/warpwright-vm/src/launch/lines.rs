//! Counts by instruction. Few reports are read to the line, and a line owns its texts: they are made when somebody looks.

use super::Launch;
use super::report::LineCounters;
use crate::check::{SourceLine, SourceLines};
use crate::counters::PlaceCounters;
use crate::decode::Code;
use crate::machine::Counts;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use warpwright_ptx::ir::Origin;

/// [`LineCounters`] by instruction, in the order of the text.
#[derive(Clone, Default)]
pub struct Lines {
    counted: Option<Arc<Counted>>,
    made: OnceLock<Vec<LineCounters>>,
}

/// What lines are made of.
struct Counted {
    code: Arc<Code>,
    executed: Vec<Executed>,
    /// By instruction, where traffic was counted.
    places: Vec<PlaceCounters>,
}

/// An instruction that was executed.
struct Executed {
    pc: u32,
    counts: Counts,
    divergent: u64,
    /// Its line of a text. Lines of Rust are known by the instruction.
    source: Option<SourceLine>,
}

impl Lines {
    /// Of the instructions with an opcode that were executed.
    pub(super) fn new(
        launch: &Launch,
        counts: &[Counts],
        divergent: &[u64],
        places: &[PlaceCounters],
    ) -> Self {
        let mut lines = SourceLines::new(launch);
        let is_executed =
            |&(pc, counts): &(usize, &Counts)| counts.warps != 0 && launch.code.meta[pc].opcode.is_some();
        let executed = counts.iter().enumerate().filter(is_executed).map(|(pc, counts)| {
            let is_text = !matches!(launch.code.meta[pc].origin, Origin::Rust(_));
            Executed {
                pc: pc as u32,
                counts: *counts,
                divergent: divergent[pc],
                source: if is_text { lines.of(pc as u32) } else { None },
            }
        });
        let counted =
            Counted { executed: executed.collect(), code: launch.code.clone(), places: places.to_vec() };
        Lines { counted: Some(Arc::new(counted)), made: OnceLock::new() }
    }
}

impl Counted {
    fn line(&self, executed: &Executed) -> LineCounters {
        let Executed { pc, counts, divergent, .. } = *executed;
        let meta = &self.code.meta[pc as usize];
        let source = match meta.origin {
            Origin::Rust(location) => Some(SourceLine {
                file: location.file().to_owned(),
                line: location.line(),
                column: location.column(),
                inlined_at: None,
            }),
            _ => executed.source.clone(),
        };
        let place = self.places.get(pc as usize).copied().unwrap_or_default();
        LineCounters {
            origin: meta.origin,
            source,
            opcode: meta.opcode.map_or("", |opcode| self.code.opcodes[usize::from(opcode)]),
            warps: counts.warps,
            lanes: counts.lanes,
            divergent,
            global: place.global,
            shared: place.shared,
            bank_conflicts: place.conflicts,
            barrier: place.barrier,
            fetches: place.fetches,
            fetched: place.fetched,
        }
    }
}

impl Deref for Lines {
    type Target = [LineCounters];

    fn deref(&self) -> &[LineCounters] {
        self.made.get_or_init(|| {
            let counted = self.counted.iter();
            counted
                .flat_map(|counted| counted.executed.iter().map(|executed| counted.line(executed)))
                .collect()
        })
    }
}

impl<'a> IntoIterator for &'a Lines {
    type Item = &'a LineCounters;
    type IntoIter = std::slice::Iter<'a, LineCounters>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}
