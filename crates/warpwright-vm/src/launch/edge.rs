//! Programmatic dependent launches: launches that may begin before the one in front of them has ended.
//!
//! An [`Edge`] leads from a launch to its dependent one. On hardware the dependent launch may begin once every block of
//! the earlier one has executed `griddepcontrol.launch_dependents` or ended; its `griddepcontrol.wait` returns when the
//! earlier launch is complete and its memory visible. Here a dependent launch whose `wait` cannot return yet stands
//! still there, as one that waits for others does. It may begin at any time, even before the earlier launch has: only a
//! program that breaks the rules can tell.
//!
//! *The race check.* Launches of a chain are compared when both are over ([`Footprint`]), so the order in which they
//! ran has no influence:
//!
//! - Accesses before the wait are unordered with the earlier launch, and with those in front of it that may still have
//!   been in flight when it released its dependents: all of them if a block did so before its own wait. `wait` makes
//!   earlier grids visible to the grid, not just to the thread that executes it, so an access that a barrier orders
//!   behind another thread's wait is behind the wait. What other blocks did does not count: each block must pass its
//!   own.
//! - A launch that has a block without a wait may be complete before the launches in front of it are. They stay
//!   unordered with the launches behind it, whatever these wait for.
//! - `ld.global.nc` needs memory that does not change while the launch is in flight: behind the wait, too, it conflicts
//!   with writes of a launch that may have overlapped.

use super::Launch;
use crate::check::race::{Footprint, Meeting};
use crate::check::{
    Between, Finding, FindingKind, Hazard, RawFinding, RawPlace, RawSite, SourceLines, between,
};
use crate::memory::SpaceKind;
use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, Weak};

/// Launches of a chain that can be in flight at once: the grids that can be resident on a device (CUDA programming
/// guide, compute capabilities 7.5 and later).
const MAX_GRIDS: usize = 128;

/// A programmatic edge from a launch to the next one.
#[derive(Clone, Default)]
pub struct Edge(Arc<State>);

#[derive(Default)]
struct State {
    /// The earlier launch is complete.
    over: AtomicBool,
    record: Mutex<Option<Record>>,
}

/// What the dependent launch needs to know of those in front of it.
struct Record {
    grid: Arc<Grid>,
    /// The launches that may have been in flight when the earlier one began.
    at_begin: Vec<Arc<Grid>>,
    /// Those that may have been in flight when it was complete.
    at_end: Vec<Arc<Grid>>,
    /// Whether it released its dependents before its own wait.
    released_early: bool,
    /// Whether one of its blocks did not wait.
    unpassed: bool,
}

/// A launch that is over, and what it accessed.
struct Grid {
    launch: Arc<Launch>,
    footprint: Footprint,
}

impl Edge {
    /// An edge from a launch that is still to come.
    pub fn new() -> Edge {
        Edge::default()
    }

    /// The earlier launch is over, or will never run.
    pub fn open(&self) {
        self.0.over.store(true, Release);
    }

    fn is_open(&self) -> bool {
        self.0.over.load(Acquire)
    }
}

/// The programmatic edges of a launch.
#[derive(Clone, Default)]
pub struct Edges {
    /// From the launch in front of it, which it may overlap with.
    pub before: Option<Edge>,
    /// To the launch behind it.
    pub after: Option<Edge>,
}

/// The edges as the launch itself holds them.
#[derive(Default)]
pub(super) struct Neighbours {
    before: Option<Edge>,
    /// Weak, since the record at the edge holds the launch.
    after: Option<Weak<State>>,
    /// A block has released dependents before its wait; a block has ended without one.
    released_early: AtomicBool,
    unpassed: AtomicBool,
}

impl From<&Edges> for Neighbours {
    fn from(edges: &Edges) -> Self {
        Neighbours {
            before: edges.before.clone(),
            after: edges.after.as_ref().map(|edge| Arc::downgrade(&edge.0)),
            ..Neighbours::default()
        }
    }
}

/// What the workers have accessed, for launches that may overlap with others.
#[derive(Debug, Default)]
pub(crate) struct Footprints {
    pub(crate) all: Footprint,
    /// Before the wait.
    pub(crate) early: Footprint,
    /// By `ld.global.nc` behind the wait.
    pub(crate) non_coherent: Footprint,
}

impl Footprints {
    pub(super) fn merge(&mut self, other: Footprints) {
        self.all.merge(other.all);
        self.early.merge(other.early);
        self.non_coherent.merge(other.non_coherent);
    }
}

impl Launch {
    /// Whether it may begin before the launch in front of it has ended.
    pub(crate) fn is_dependent(&self) -> bool {
        self.neighbours.before.is_some()
    }

    /// Whether what it accesses is kept for comparison with its neighbours.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.is_dependent() || self.neighbours.after.is_some()
    }

    /// Whether `griddepcontrol.wait` does not return yet.
    pub(crate) fn is_held(&self) -> bool {
        self.neighbours.before.as_ref().is_some_and(|edge| !edge.is_open())
    }

    /// A block has released the dependent launches before it passed its wait.
    pub(crate) fn released_early(&self) {
        self.neighbours.released_early.store(true, Relaxed);
    }

    /// A block has ended without a wait.
    pub(crate) fn ended_unpassed(&self) {
        self.neighbours.unpassed.store(true, Relaxed);
        self.released_early();
    }

    /// It is complete: dependent launches may pass their wait.
    pub(super) fn open_dependents(&self) {
        if let Some(after) = self.neighbours.after.as_ref().and_then(Weak::upgrade) {
            Edge(after).open();
        }
    }

    /// Compares it with the launches that it may have overlapped with, and leaves what the next one needs for that.
    /// Called once, at the end of each launch of a chain in their order.
    pub(super) fn settle(self: &Arc<Self>, mut footprints: Footprints) -> Vec<Finding> {
        let (mut at_begin, mut at_end) = (Vec::new(), Vec::new());
        let record = self.neighbours.before.as_ref().and_then(|edge| super::lock(&edge.0.record).take());
        if let Some(earlier) = record {
            let in_flight =
                if earlier.released_early { earlier.at_begin.clone() } else { earlier.at_end.clone() };
            at_end = if earlier.unpassed { earlier.at_begin } else { earlier.at_end };
            at_begin = in_flight;
            at_begin.push(earlier.grid);
            let surplus = at_begin.len().saturating_sub(MAX_GRIDS);
            at_begin.drain(..surplus);
        }
        footprints.all.settle();
        footprints.early.settle();
        footprints.non_coherent.settle();
        let mut findings = Vec::new();
        for grid in &at_begin {
            let unordered = at_end.iter().any(|other| Arc::ptr_eq(grid, other));
            let own = if unordered { &footprints.all } else { &footprints.early };
            findings.extend(self.conflicts(grid, own, false));
            if !unordered {
                findings.extend(self.conflicts(grid, &footprints.non_coherent, true));
            }
        }
        self.races.clear();
        if let Some(after) = self.neighbours.after.as_ref().and_then(Weak::upgrade) {
            let grid = Arc::new(Grid { launch: self.clone(), footprint: footprints.all });
            let released_early = self.neighbours.released_early.load(Relaxed);
            let unpassed = self.neighbours.unpassed.load(Relaxed);
            *super::lock(&after.record) = Some(Record { grid, at_begin, at_end, released_early, unpassed });
        }
        findings
    }

    /// The conflicts of some of its accesses with an earlier launch, one for each two instructions.
    fn conflicts(&self, earlier: &Grid, own: &Footprint, non_coherent: bool) -> Vec<Finding> {
        let mut found: BTreeMap<(u32, u32), (Meeting, u64)> = BTreeMap::new();
        own.meet(&earlier.footprint, &mut |meeting| {
            let key = (meeting.earlier.pc, meeting.later.pc);
            found.entry(key).or_insert((meeting, 0)).1 += 1;
        });
        if found.is_empty() {
            return Vec::new();
        }
        let mut lines = (SourceLines::new(&earlier.launch.module), SourceLines::new(&self.module));
        let finding = |(meeting, count): (Meeting, u64)| {
            let site = |touched: &crate::check::race::Touched| RawSite {
                pc: touched.pc,
                action: touched.action,
                block: touched.block,
                thread: touched.thread(meeting.address),
                memory: Some(RawPlace {
                    space: SpaceKind::Global,
                    address: meeting.address,
                    bytes: touched.width,
                    frame: None,
                }),
            };
            let (first, second) = (site(&meeting.earlier), site(&meeting.later));
            let hazard = match (first.action.changes_memory(), second.action.changes_memory()) {
                (true, true) => Hazard::WriteAfterWrite,
                (true, false) => Hazard::ReadAfterWrite,
                _ => Hazard::WriteAfterRead,
            };
            let kind = match non_coherent {
                true => FindingKind::NonCoherent,
                false => FindingKind::Race {
                    hazard,
                    between: Between::Launches,
                    space: SpaceKind::Global,
                    same_value: false,
                },
            };
            let raw = RawFinding { kind, first, second: Some(second), count };
            between((&earlier.launch, &mut lines.0), (self, &mut lines.1), raw)
        };
        found.into_values().map(finding).collect()
    }
}
