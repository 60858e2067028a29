//! Collects findings while workers run, and makes a report of them.

use super::finding::*;
use crate::memory::SpaceKind;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Places of findings that are kept; later ones are counted only.
const MAX_FINDINGS: usize = 2000;

/// One side of a finding, before names are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawSite {
    /// The instruction.
    pub(crate) pc: u32,
    pub(crate) action: Action,
    /// The block, by its number.
    pub(crate) block: u64,
    /// The thread, by its number in the block.
    pub(crate) thread: u32,
    pub(crate) memory: Option<RawPlace>,
}

/// Where a site is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawPlace {
    pub(crate) space: SpaceKind,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    /// The frame that it is in, for local memory where that is known: its function, and where its memory starts.
    pub(crate) frame: Option<(u32, u32)>,
}

/// A finding, before names are looked up.
#[derive(Clone, Debug)]
pub(crate) struct RawFinding {
    pub(crate) kind: FindingKind,
    pub(crate) first: RawSite,
    pub(crate) second: Option<RawSite>,
    pub(crate) count: u64,
}

/// The identity of a finding: its kind and its instructions. The two sides of a race count in either order, since
/// that depends on the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pcs: (u32, u32),
    tool: Tool,
    kind: &'static str,
    detail: u32,
}

impl RawFinding {
    fn key(&self) -> Key {
        let (a, b) = (self.first.pc, self.second.map_or(self.first.pc, |second| second.pc));
        let (kind, detail) = match &self.kind {
            FindingKind::Race { between, .. } => ("race", *between as u32),
            FindingKind::UninitializedMemory { space } => (self.kind.name(), *space as u32),
            FindingKind::UndefinedValue { used, .. } => (self.kind.name(), 0x100 + *used as u32),
            kind => (kind.name(), 0),
        };
        Key { pcs: (a.min(b), a.max(b)), tool: self.kind.tool(), kind, detail }
    }

    /// Of alike findings the worst is shown, and of those the one of the first threads, so that reports do not
    /// depend on chance more than they must.
    fn order(&self) -> impl Ord + use<> {
        let of = |site: RawSite| (site.block, site.thread, site.memory.map(|place| place.address));
        (self.kind.severity(), of(self.first), self.second.map(of))
    }
}

/// What all workers of a launch have found.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    found: Mutex<BTreeMap<Key, RawFinding>>,
}

impl Collector {
    fn found(&self) -> MutexGuard<'_, BTreeMap<Key, RawFinding>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a finding in.
    pub(crate) fn add(&self, finding: RawFinding) {
        let mut found = self.found();
        let key = finding.key();
        let full = found.len() >= MAX_FINDINGS;
        match found.get_mut(&key) {
            Some(known) => {
                let count = known.count + finding.count;
                if finding.order() < known.order() {
                    *known = finding;
                }
                known.count = count;
            }
            None if full => {}
            None => {
                found.insert(key, finding);
            }
        }
    }

    /// All of them, by instruction.
    pub(crate) fn all(&self) -> Vec<RawFinding> {
        self.found().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(hazard: Hazard, first: (u32, u32), second: (u32, u32)) -> RawFinding {
        let site = |(pc, thread)| RawSite { pc, action: Action::Read, block: 0, thread, memory: None };
        let kind = FindingKind::Race {
            hazard,
            between: Between::Warps,
            space: SpaceKind::Shared,
            same_value: false,
        };
        RawFinding { kind, first: site(first), second: Some(site(second)), count: 1 }
    }

    #[test]
    fn both_orders_of_a_race_are_one_finding() {
        let collector = Collector::default();
        collector.add(race(Hazard::ReadAfterWrite, (7, 32), (9, 1)));
        collector.add(race(Hazard::WriteAfterRead, (9, 1), (7, 40)));
        collector.add(race(Hazard::WriteAfterWrite, (7, 1), (7, 40)));
        let all = collector.all();
        let seen: Vec<_> = all.iter().map(|one| (one.first.pc, one.first.thread, one.count)).collect();
        assert_eq!(seen, [(7, 1, 1), (9, 1, 2)]);
    }

    #[test]
    fn writes_of_one_value_are_a_warning_only_where_all_are() {
        let same = |thread| {
            let mut finding = race(Hazard::WriteAfterWrite, (7, thread), (7, 40));
            let FindingKind::Race { same_value, .. } = &mut finding.kind else { unreachable!() };
            *same_value = true;
            finding
        };
        let collector = Collector::default();
        collector.add(same(2));
        let severity = |collector: &Collector| collector.all().iter().map(|one| one.kind.severity()).next();
        assert_eq!(severity(&collector), Some(Severity::Warning));
        collector.add(race(Hazard::WriteAfterWrite, (7, 3), (7, 40)));
        collector.add(same(1));
        let all = collector.all();
        let seen: Vec<_> = all.iter().map(|one| (one.kind.severity(), one.first.thread, one.count)).collect();
        assert_eq!(seen, [(Severity::Error, 3, 3)]);
    }
}
