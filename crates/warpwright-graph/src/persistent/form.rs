//! How instances form phases and stages.
//!
//! One rule: *a phase ends where an instance reads the result of a large one.* All blocks share a large instance, so
//! all of them must wait for its end anyway, and a barrier is the cheapest way. A small instance keeps a few blocks
//! busy for a moment; its readers wait for those few blocks, as a later stage of the same phase. So does an instance
//! that only reuses the memory of a large one: products of the same activations may come in several launches.
//!
//! ```text
//!  embedding, q · k · v │ rope and append, attention │ o │ gate · up │ down, ...│ logits │ penalties, draw, advance
//!  small      large     │ small            large     │   │           │          │        │ small
//! ```
//!
//! So a layer has five phases, because it has five large instances (or groups of them) that depend on one another.
//! Instances that a plan leaves unfused, such as norms or resized heads, form a stage before their reader.

use super::access::{Conflict, accesses, conflict};
use super::schedule::{Instance, Phase, Stage};
use crate::plan::Plan;

/// Phases of instances in the order of the plan. What depends on what is seen by the bytes that they touch, so that
/// memory which several tensors have one after the other keeps its order too.
pub(super) fn phases(plan: &Plan, instances: &[Instance]) -> Vec<Phase> {
    let touched: Vec<_> = instances.iter().map(|instance| accesses(plan, instance)).collect();
    let mut phases: Vec<Phase> = Vec::new();
    // Instances of the last phase with their stages.
    let mut placed: Vec<(usize, usize)> = Vec::new();
    for (i, instance) in instances.iter().enumerate() {
        let (mut stage, mut ends) = (0, phases.is_empty());
        for &(other, at) in &placed {
            // Parts of one launch do not depend on one another.
            if instances[other].origin == instance.origin {
                continue;
            }
            if let Some(conflict) = conflict(&touched[other], &touched[i]) {
                stage = stage.max(at + 1);
                ends |= instances[other].large && conflict == Conflict::Value;
            }
        }
        if ends {
            phases.push(Phase::default());
            placed.clear();
            stage = 0;
        }
        if let Some(phase) = phases.last_mut() {
            // A stage more than there are, at most: what is needed is in the one before.
            phase.stages.resize_with(phase.stages.len().max(stage + 1), Stage::default);
            phase.stages[stage].instances.push(i);
        }
        placed.push((i, stage));
    }
    phases
}
