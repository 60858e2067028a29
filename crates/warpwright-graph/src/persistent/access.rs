//! The bytes that instances access; overlaps between two instances decide their order.

use super::schedule::{Instance, Operand};
use crate::graph::{Role, Tensor};
use crate::launch::{ArgSource, planes};
use crate::plan::{Location, Plan};
use std::ops::Range;
use warpwright_dsl::Role as ArgRole;

/// Memory that is apart from all other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Space {
    /// The plan's memory.
    Arena,
    /// Its scratch that stays zero.
    Zeroed,
    /// A part of a state.
    State(Tensor, usize),
    /// A buffer outside the plan.
    External(&'static str),
}

/// What an argument does with which bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The argument.
    pub(super) arg: &'static str,
    pub(super) space: Space,
    pub(super) bytes: Range<u64>,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl Access {
    /// Whether two touch the same bytes, and one of them changes them.
    pub(super) fn conflicts(&self, other: &Access) -> bool {
        (self.writes || other.writes)
            && self.space == other.space
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// What an instance touches, weights and numbers left out. Operands that the plan does not have touch nothing: the check
/// tells of them.
pub(super) fn accesses(plan: &Plan, instance: &Instance) -> Vec<Access> {
    let mut all = Vec::new();
    for (desc, operand) in instance.operands() {
        if desc.role == ArgRole::Scalar {
            continue;
        }
        let Some((space, bytes)) = place(plan, &operand, u64::from(desc.dtype.bytes())) else { continue };
        let (reads, writes) = (desc.role != ArgRole::Out, desc.role != ArgRole::In);
        all.push(Access { arg: desc.name, space, bytes, reads, writes });
    }
    all
}

/// The memory of an operand whose elements have this size.
fn place(plan: &Plan, operand: &Operand, size: u64) -> Option<(Space, Range<u64>)> {
    match *operand {
        Operand::External(name) => Some((Space::External(name), 0..u64::MAX)),
        Operand::Plan(ArgSource::Tensor { tensor, plane, at, len }) => {
            let program = plan.program();
            if !program.has(tensor) || program.info(tensor).role == Role::Weight {
                return None;
            }
            let part = planes(program.ty(tensor)).into_iter().nth(plane)?;
            let bytes = |begin: u64| {
                let begin = begin.saturating_add(at.saturating_mul(size));
                begin..begin.saturating_add(len.saturating_mul(size))
            };
            match plan.location(tensor)? {
                Location::Arena(offset) => Some((Space::Arena, bytes(offset.saturating_add(part.offset)))),
                Location::State(state) => Some((Space::State(state, plane), bytes(0))),
                Location::Zeroed(_) | Location::Weight => None,
            }
        }
        Operand::Plan(ArgSource::Scratch(id)) => {
            let bytes = plan.scratch().get(id.index())?.bytes();
            match plan.scratch_location(id)? {
                Location::Arena(offset) => Some((Space::Arena, offset..offset.saturating_add(bytes))),
                Location::Zeroed(offset) => Some((Space::Zeroed, offset..offset.saturating_add(bytes))),
                Location::Weight | Location::State(_) => None,
            }
        }
        Operand::Plan(_) => None,
    }
}

/// Why the order of two instances matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Conflict {
    /// The second one writes where the first has read or written something else.
    Place,
    /// The second one reads what the first has written.
    Value,
}

/// Why the order of two instances matters, if it does: what the first and the second one touch.
pub(super) fn conflict(first: &[Access], second: &[Access]) -> Option<Conflict> {
    let pairs = first.iter().flat_map(|a| second.iter().map(move |b| (a, b)));
    let conflicts = pairs.filter(|(a, b)| a.conflicts(b));
    conflicts.map(|(a, b)| if a.writes && b.reads { Conflict::Value } else { Conflict::Place }).max()
}
