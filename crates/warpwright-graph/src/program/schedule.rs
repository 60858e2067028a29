//! Reordering of steps while passes merge several steps into one.
//!
//! ```text
//!  before    a   P₁   b   c   P₂   d        b takes what P₁ makes, c does not
//!  after     a   c   [P₁ P₂]   b   d
//! ```
//!
//! Steps between the parts move before the merged step; those that depend on a part move after it. If a part depends on
//! such a step, there is no order and nothing is merged. All other steps keep their positions.
//!
//! A step depends on the step that makes what it reads. A step that changes a state depends on those that read the
//! previous version, because the change is in place.

use super::step::{Access, Step, StepOp};
use super::uses::Uses;
use crate::graph::{NodeId, Role, TensorInfo};

/// A list of steps with gaps where parts have been taken out. Numbers of steps are places in it; what is there
/// may be moved by a [`merge`](Self::merge).
pub(crate) struct Schedule<'a> {
    tensors: &'a [TensorInfo],
    places: Vec<Option<Step>>,
    uses: Uses,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(tensors: &'a [TensorInfo], steps: Vec<Step>) -> Self {
        let uses = Uses::of(&steps, tensors.len());
        Schedule { tensors, places: steps.into_iter().map(Some).collect(), uses }
    }

    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// What is done at a place, unless it is a gap.
    pub(crate) fn op(&self, place: usize) -> Option<&StepOp> {
        Some(&self.places.get(place)?.as_ref()?.op)
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    /// The steps in order.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.places.into_iter().flatten().collect()
    }

    /// The nodes of some steps, in the graph's order.
    pub(crate) fn nodes(&self, parts: &[usize]) -> Vec<NodeId> {
        let steps = parts.iter().filter_map(|&part| self.places[part].as_ref());
        let mut nodes: Vec<NodeId> = steps.flat_map(|step| &step.nodes).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether `op` can do what the steps at `parts` do, in their stead: it makes all that others need, takes
    /// nothing that they made, changes the same states, and no other step stands between them.
    ///
    /// `parts` are in order, each once.
    pub(crate) fn can_merge(&self, parts: &[usize], op: &StepOp) -> bool {
        parts.is_sorted_by(|a, b| a < b) && self.keeps_results(parts, op) && self.behind(parts).is_some()
    }

    fn keeps_results(&self, parts: &[usize], op: &StepOp) -> bool {
        let is_part = |step: usize| parts.binary_search(&step).is_ok();
        let mut fine = true;
        let (mut writes, mut changes) = (Vec::new(), Vec::new());
        op.visit(&mut |tensor, access| match access {
            Access::Read => fine &= !self.uses.maker(tensor).is_some_and(is_part),
            Access::Write => {
                fine &= self.uses.maker(tensor).is_some_and(is_part) && !writes.contains(&tensor);
                writes.push(tensor);
            }
        });
        for part in parts {
            let Some(part) = self.op(*part) else { return false };
            changes.extend(part.changes());
            part.visit(&mut |tensor, access| {
                let inside = || {
                    let role = self.tensors[tensor.index()].role;
                    role == Role::Intermediate && self.uses.readers(tensor).iter().all(|&r| is_part(r))
                };
                fine &= access == Access::Read || writes.contains(&tensor) || inside();
            });
        }
        let after = op.changes();
        fine && after.len() == changes.len() && after.iter().all(|change| changes.contains(change))
    }

    /// The steps between the parts that depend on a part; `None` where a part depends on one of those.
    fn behind(&self, parts: &[usize]) -> Option<Vec<usize>> {
        let (&first, &last) = (parts.first()?, parts.last()?);
        // Of each step from the first part on, whether it is a part or depends on one.
        let mut marked = vec![false; last - first + 1];
        let mut behind: Vec<usize> = Vec::new();
        for place in first..=last {
            let Some(op) = self.op(place) else { continue };
            let part = parts.binary_search(&place).is_ok();
            // A part may depend on another part.
            let on = |step: usize| match part {
                true => behind.binary_search(&step).is_ok(),
                false => (first..place).contains(&step) && marked[step - first],
            };
            let mut depends = false;
            op.visit(&mut |tensor, access| {
                depends |= access == Access::Read && self.uses.maker(tensor).is_some_and(on);
            });
            let changes = op.changes();
            depends |= changes.iter().any(|&(before, _)| self.uses.readers(before).iter().any(|&r| on(r)));
            match (part, depends) {
                (true, true) => return None,
                (true, false) => {}
                (false, true) => behind.push(place),
                (false, false) => continue,
            }
            marked[place - first] = true;
        }
        Some(behind)
    }

    /// Puts `op` in the place of the steps at `parts`, and gives its place. `None`, and nothing changed, where
    /// [`can_merge`](Self::can_merge) would say so.
    pub(crate) fn merge(&mut self, parts: &[usize], op: StepOp) -> Option<usize> {
        if !parts.is_sorted_by(|a, b| a < b) || !self.keeps_results(parts, &op) {
            return None;
        }
        let behind = self.behind(parts)?;
        let step = Step { op, nodes: self.nodes(parts) };
        for &part in parts {
            self.take(part);
        }
        let last = *parts.last()?;
        let Some(&from) = behind.first() else {
            self.put(last, step);
            return Some(last);
        };
        // Those behind have as many places or more between the first of them and the last part.
        let mut moved: Vec<Step> = behind.iter().filter_map(|&place| self.take(place)).collect();
        let before: Vec<Step> = (from..last).filter_map(|place| self.take(place)).collect();
        let new = from + before.len();
        moved.insert(0, step);
        for (i, step) in before.into_iter().chain(moved).enumerate() {
            self.put(from + i, step);
        }
        Some(new)
    }

    fn take(&mut self, place: usize) -> Option<Step> {
        let step = self.places[place].take()?;
        self.uses.remove(place, &step.op);
        Some(step)
    }

    fn put(&mut self, place: usize, step: Step) {
        self.uses.add(place, &step.op);
        self.places[place] = Some(step);
    }
}
