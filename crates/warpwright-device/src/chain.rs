//! Launches that may overlap with the one in front of them in their stream (programmatic dependent launches).
//!
//! One grid runs at a time, so nothing overlaps by itself. An order that defers work begins dependent launches before
//! the launch in front of them; they stand still at their wait until that one is over. In every order, each launch has
//! an [`Edge`] to its dependent one, by which the race check compares the two.
//!
//! **Only a launch comes in front of a dependent one.** Copies, fills, waits and calls end a chain, and so do the
//! beginning and the end of a graph: the launch behind them begins when everything in front of it is complete. Recorded
//! events and released memory do not.

use crate::op::{Launch, Op};
use std::collections::HashMap;
use std::sync::Arc;
use warpwright_vm::{Edge, Running};

/// The maximum number of launches that begin early at a time.
pub(crate) const MAX_EARLY: usize = 3;

/// What is known of the launches of streams.
#[derive(Default)]
pub(crate) struct Chains {
    /// By stream: the edge from the launch that was its last operation.
    last: HashMap<u64, Edge>,
    /// Launches that have begun before their turn, in the order of their turns.
    early: HashMap<u64, Vec<Early>>,
}

/// A launch that has begun before its turn.
pub(crate) struct Early {
    pub(crate) launch: Arc<dyn Launch>,
    pub(crate) running: Running,
    pub(crate) after: Edge,
}

impl Chains {
    /// The edge from the last operation of a stream, if that was a launch.
    pub(crate) fn last(&self, stream: u64) -> Option<Edge> {
        self.last.get(&stream).cloned()
    }

    /// A launch has had its turn.
    pub(crate) fn launched(&mut self, stream: u64, after: Edge) {
        self.last.insert(stream, after);
    }

    /// An operation has its turn that is no launch.
    pub(crate) fn pass(&mut self, stream: u64, op: &Op) {
        if ends_chain(op) {
            self.last.remove(&stream);
        }
    }

    /// The end of a graph.
    pub(crate) fn end(&mut self, stream: u64) {
        self.last.remove(&stream);
    }

    /// Takes the launch whose turn it is, if it has begun.
    pub(crate) fn take(&mut self, stream: u64, launch: &Arc<dyn Launch>) -> Option<Early> {
        let early = self.early.get_mut(&stream)?;
        let found = early.first().is_some_and(|early| Arc::ptr_eq(&early.launch, launch));
        let taken = found.then(|| early.remove(0));
        if early.is_empty() {
            self.early.remove(&stream);
        }
        taken
    }

    /// The launches of a stream that have begun before their turn.
    pub(crate) fn early(&self, stream: u64) -> &[Early] {
        self.early.get(&stream).map_or(&[], |early| early)
    }

    /// Launches have begun, behind those that had before.
    pub(crate) fn begun(&mut self, stream: u64, launches: impl IntoIterator<Item = Early>) {
        self.early.entry(stream).or_default().extend(launches);
    }
}

/// Whether a launch behind an operation cannot overlap with what is in front of it.
fn ends_chain(op: &Op) -> bool {
    match op {
        Op::Launch { .. }
        | Op::Standing(_)
        | Op::Signal(_)
        | Op::Release(_)
        | Op::Retain { .. }
        | Op::Nothing => false,
        // The rest of one is in the middle of it.
        Op::Batch(ops, next) => *next == 0 && ops.first().is_none_or(|first| !is_rest(first)),
        _ => true,
    }
}

fn is_rest(op: &Op) -> bool {
    match op {
        Op::Standing(_) | Op::Running(_) => true,
        Op::Batch(ops, next) => *next > 0 || ops.first().is_some_and(is_rest),
        _ => false,
    }
}

/// The launches at the beginning of a list that may overlap with the one in front of the list. What is behind a launch
/// that waits first begins when all in front of that launch is complete.
pub(crate) fn dependents<'o>(ops: impl Iterator<Item = &'o Op>) -> Vec<Arc<dyn Launch>> {
    let mut launches = Vec::new();
    for op in ops.take(MAX_EARLY) {
        let Op::Launch { launch, overlaps: true } = op else { break };
        launches.push(launch.clone());
        if launch.waits_first() {
            break;
        }
    }
    launches
}
