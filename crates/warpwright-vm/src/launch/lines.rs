//! Counts by instruction. Few reports are read to the line, and a line owns its texts: they are made when somebody looks.

use super::report::LineCounters;
use crate::check::SourceLines;
use crate::counters::PlaceCounters;
use crate::machine::Counts;
use crate::module::Loaded;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// [`LineCounters`] by instruction, in the order of the text.
#[derive(Clone, Default)]
pub struct Lines {
    counted: Option<Arc<Counted>>,
    made: OnceLock<Vec<LineCounters>>,
}

/// What lines are made of, each by instruction.
struct Counted {
    module: Arc<Loaded>,
    counts: Vec<Counts>,
    divergent: Vec<u64>,
    /// Where traffic was counted.
    places: Vec<PlaceCounters>,
}

impl Lines {
    /// Of the instructions with an opcode that were executed.
    pub(super) fn new(
        module: &Arc<Loaded>,
        counts: &[Counts],
        divergent: &[u64],
        places: &[PlaceCounters],
    ) -> Self {
        let counted = Counted {
            module: module.clone(),
            counts: counts.to_vec(),
            divergent: divergent.to_vec(),
            places: places.to_vec(),
        };
        Lines { counted: Some(Arc::new(counted)), made: OnceLock::new() }
    }
}

impl Counted {
    fn lines(&self) -> Vec<LineCounters> {
        let code = &*self.module.code;
        let mut sources = SourceLines::new(&self.module);
        let executed = self.counts.iter().enumerate().filter(|(_, counts)| counts.warps != 0);
        let lines = executed.filter_map(|(pc, counts)| {
            let meta = &code.meta[pc];
            let place = self.places.get(pc).copied().unwrap_or_default();
            Some(LineCounters {
                opcode: code.opcodes[usize::from(meta.opcode?)],
                origin: meta.origin,
                source: sources.of(pc as u32),
                warps: counts.warps,
                lanes: counts.lanes,
                divergent: self.divergent[pc],
                global: place.global,
                shared: place.shared,
                bank_conflicts: place.conflicts,
                barrier: place.barrier,
                fetches: place.fetches,
                fetched: place.fetched,
            })
        });
        lines.collect()
    }
}

impl Deref for Lines {
    type Target = [LineCounters];

    fn deref(&self) -> &[LineCounters] {
        self.made.get_or_init(|| self.counted.as_deref().map(Counted::lines).unwrap_or_default())
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
