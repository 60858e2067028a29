//! Which memory each tensor and each piece of scratch has, and for how long.
//!
//! Inputs and outputs have theirs from the first step to the last, so that the host may write and read them between
//! executions. What is computed and not read by the host has it from the step that makes it to the last that reads
//! it, scratch for its step. A result has the place of an operand that is not needed afterwards where every launch of
//! the step may write it there. States and weights are elsewhere, and outlive the plan.

use super::error::PlanError;
use super::launch::{Action, ArgSource, Scratch};
use super::planned::PlannedStep;
use super::storage::{ALIGNMENT, bytes};
use crate::graph::{Role, Tensor};
use crate::place::{Block, Placement, place};
use crate::program::{Access, Program};

/// Where a tensor or a piece of scratch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Location {
    /// In the plan's memory, from this byte on.
    Arena(u64),
    /// In the plan's memory that is zero before the first launch and after each, from this byte on.
    Zeroed(u64),
    /// It is a weight.
    Weight,
    /// It is this state, or a version of it.
    State(Tensor),
}

/// What memory a plan needs beside states and weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes for inputs, outputs, intermediates and scratch.
    pub arena_bytes: u64,
    /// Bytes that are zero before the first launch. Each launch leaves them zero, so that all share them.
    pub zeroed_bytes: u64,
    /// What `arena_bytes` cannot be less than: the largest sum of what is needed at one step.
    pub bound: u64,
    pub(super) tensors: Vec<Option<Location>>,
    pub(super) scratch: Vec<Location>,
    pub(super) replaces: Vec<(Tensor, Tensor)>,
}

impl Memory {
    /// Results that have the place of an operand of the step that makes them: each with that operand.
    pub fn in_place(&self) -> &[(Tensor, Tensor)] {
        &self.replaces
    }
}

/// When a tensor is needed.
#[derive(Clone, Copy)]
struct Lifetime {
    begin: u32,
    end: u32,
}

/// First and last step of each tensor that steps have, by tensor.
fn lifetimes(program: &Program) -> Vec<Option<Lifetime>> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; program.tensors().len()];
    for (i, step) in (0u32..).zip(program.steps()) {
        for operand in step.op.operands() {
            let lifetime = lifetimes[operand.tensor.index()].get_or_insert(Lifetime { begin: i, end: i });
            lifetime.end = i;
        }
    }
    lifetimes
}

/// Finds the memory of all tensors and scratch.
pub(super) fn plan(
    program: &Program,
    steps: &[PlannedStep],
    scratch: &[Scratch],
) -> Result<Memory, PlanError> {
    let last = u32::try_from(program.steps().len().saturating_sub(1)).unwrap_or(u32::MAX);
    let mut memory = Memory { tensors: vec![None; program.tensors().len()], ..Memory::default() };
    let mut blocks: Vec<Block> = Vec::new();
    let mut block_of: Vec<Option<usize>> = vec![None; program.tensors().len()];
    let mut tensor_of: Vec<Option<Tensor>> = Vec::new();
    for (tensor, lifetime) in program.handles().zip(lifetimes(program)) {
        let info = program.info(tensor);
        let location = &mut memory.tensors[tensor.index()];
        let (begin, end) = match (info.role, lifetime) {
            (Role::Weight, _) => {
                *location = Some(Location::Weight);
                continue;
            }
            (Role::State, _) => {
                *location = Some(Location::State(program.root(tensor)));
                continue;
            }
            (Role::Input | Role::Output, _) => (0, last),
            (Role::Intermediate, Some(Lifetime { begin, end })) => (begin, end),
            // A fusion has done away with it.
            (Role::Intermediate, None) => continue,
        };
        block_of[tensor.index()] = Some(blocks.len());
        tensor_of.push(Some(tensor));
        blocks.push(Block { bytes: bytes(info.ty), begin, end, may_replace: Vec::new() });
    }
    for (step, planned) in program.steps().iter().zip(steps) {
        for result in step.op.operands().into_iter().filter(|operand| operand.access == Access::Write) {
            let Some(block) = block_of[result.tensor.index()] else { continue };
            let gone = |&operand: &Tensor| program.info(operand).role == Role::Intermediate;
            let candidates =
                step.op.reads().filter(gone).filter(|&operand| planned.may_share(result.tensor, operand));
            let candidates: Vec<usize> = candidates.filter_map(|operand| block_of[operand.index()]).collect();
            blocks[block].may_replace = candidates;
        }
    }

    let first_scratch = blocks.len();
    let mut zeroed: (usize, u64) = (usize::MAX, 0);
    for piece in scratch {
        if piece.zeroed {
            // Launches of one step may overlap no more than those of others, but their pieces are apart.
            let offset = if zeroed.0 == piece.step { zeroed.1 } else { 0 };
            memory.scratch.push(Location::Zeroed(offset));
            let end = offset.checked_add(piece.bytes()).ok_or(PlanError::TooLarge)?;
            memory.zeroed_bytes = memory.zeroed_bytes.max(end);
            let next = end.checked_next_multiple_of(ALIGNMENT).ok_or(PlanError::TooLarge)?;
            zeroed = (piece.step, next);
        } else {
            let step = u32::try_from(piece.step).unwrap_or(u32::MAX);
            memory.scratch.push(Location::Arena(0));
            tensor_of.push(None);
            blocks.push(Block { bytes: piece.bytes(), begin: step, end: step, may_replace: Vec::new() });
        }
    }

    let Placement { offsets, replaces, peak, bound } =
        place(&blocks, ALIGNMENT).ok_or(PlanError::TooLarge)?;
    (memory.arena_bytes, memory.bound) = (peak, bound);
    for (tensor, block) in block_of.iter().enumerate() {
        if let &Some(block) = block {
            memory.tensors[tensor] = Some(Location::Arena(offsets[block]));
        }
    }
    let of_scratch = memory.scratch.iter_mut().filter(|location| matches!(location, Location::Arena(_)));
    for (location, &offset) in of_scratch.zip(&offsets[first_scratch..]) {
        *location = Location::Arena(offset);
    }
    for (block, before) in replaces.iter().enumerate() {
        if let (Some(result), Some(operand)) = (tensor_of[block], before.and_then(|before| tensor_of[before]))
        {
            memory.replaces.push((result, operand));
        }
    }
    Ok(memory)
}

impl PlannedStep {
    /// Whether every launch may write `result` where `operand` lies: each argument that is a part of the operand is
    /// one whose buffer the kernel's output may be, and that output is the same part of the result.
    fn may_share(&self, result: Tensor, operand: Tensor) -> bool {
        if self.overridden || result == operand {
            return false;
        }
        let mut writes = false;
        let of = |source: &ArgSource, of: Tensor| match *source {
            ArgSource::Tensor { tensor, plane, at, len } if tensor == of => Some((plane, at, len)),
            _ => None,
        };
        for action in &self.actions {
            let launch = match action {
                Action::Launch(launch) => launch,
                Action::Copy { from, to } if [*from, *to].iter().any(|t| [result, operand].contains(t)) => {
                    return false;
                }
                Action::Copy { .. } => continue,
            };
            let outputs = launch.args.iter().zip(launch.kernel.args());
            let output = outputs.filter_map(|((_, source), desc)| Some((of(source, result)?, desc)));
            let output: Vec<_> = output.collect();
            writes |= !output.is_empty();
            for (name, source) in &launch.args {
                let Some(part) = of(source, operand) else { continue };
                let [(whole, desc)] = output[..] else { return false };
                if part != whole || !desc.shares.contains(name) {
                    return false;
                }
            }
        }
        writes
    }
}
