//! The memory of each tensor and each piece of scratch, and its lifetime.
//!
//! Inputs and outputs have their memory from the first step to the last, so that the host may write and read them
//! between executions. Intermediates have it from the step that makes them to the last step that reads them; scratch
//! has it for one step. A result replaces an operand that is not needed afterwards if every launch of the step may
//! write it there. States and weights are stored elsewhere and outlive the plan.

use crate::graph::{Role, Tensor};
use crate::launch::{ALIGNMENT, Action, ArgSource, PlanError, PlannedStep, Scratch, bytes};
use crate::place::{Block, Placement, place};
use crate::program::Program;

/// The location of a tensor or a piece of scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Location {
    /// In the plan's memory, at this byte offset.
    Arena(u64),
    /// In the plan's memory that is zero before the first launch and after each, at this byte offset.
    Zeroed(u64),
    /// It is a weight.
    Weight,
    /// It is this state, or a version of it.
    State(Tensor),
}

/// The memory that a plan needs in addition to states and weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes for inputs, outputs, intermediates and scratch.
    pub arena_bytes: u64,
    /// Bytes that are zero before the first launch. Each launch leaves them zero, so that all share them.
    pub zeroed_bytes: u64,
    /// The lower bound of `arena_bytes`: the largest sum of bytes needed at one step.
    pub bound: u64,
    pub(super) tensors: Vec<Option<Location>>,
    pub(super) scratch: Vec<Location>,
    pub(super) replaces: Vec<(Tensor, Tensor)>,
}

impl Memory {
    /// Results that replace an operand of the step that makes them, each with that operand.
    pub fn in_place(&self) -> &[(Tensor, Tensor)] {
        &self.replaces
    }
}

/// Whose a block of the arena is.
#[derive(Clone, Copy)]
enum Owner {
    Tensor(Tensor),
    Scratch(usize),
}

/// The blocks of the arena, before they have places.
#[derive(Default)]
struct Arena {
    blocks: Vec<Block>,
    owners: Vec<Owner>,
    /// By tensor.
    of_tensors: Vec<Option<usize>>,
}

/// Finds the memory of all tensors and scratch.
pub(super) fn plan(
    program: &Program,
    steps: &[PlannedStep],
    scratch: &[Scratch],
) -> Result<Memory, PlanError> {
    let mut memory = Memory {
        tensors: program.handles().map(|tensor| elsewhere(program, tensor)).collect(),
        ..Memory::default()
    };
    let mut arena = Arena::of_tensors(program);
    arena.find_in_place(program, steps);
    memory.add_scratch(&mut arena, scratch)?;

    let Arena { blocks, owners, .. } = arena;
    let placement = place(&blocks, ALIGNMENT).ok_or(PlanError::TooLarge)?;
    let Placement { offsets, replaces, peak, bound } = placement;
    (memory.arena_bytes, memory.bound) = (peak, bound);
    for (&owner, (offset, before)) in owners.iter().zip(offsets.into_iter().zip(replaces)) {
        match owner {
            Owner::Tensor(tensor) => memory.tensors[tensor.index()] = Some(Location::Arena(offset)),
            Owner::Scratch(piece) => memory.scratch[piece] = Location::Arena(offset),
        }
        if let (Owner::Tensor(result), Some(Owner::Tensor(operand))) = (owner, before.map(|i| owners[i])) {
            memory.replaces.push((result, operand));
        }
    }
    Ok(memory)
}

/// Where a tensor is that the plan has no memory for.
fn elsewhere(program: &Program, tensor: Tensor) -> Option<Location> {
    match program.info(tensor).role {
        Role::Weight => Some(Location::Weight),
        Role::State => Some(Location::State(program.root(tensor))),
        Role::Input | Role::Output | Role::Intermediate => None,
    }
}

impl Arena {
    /// A block for each tensor that is computed, written by the host or read by it.
    fn of_tensors(program: &Program) -> Self {
        // First and last step of each tensor that steps have.
        let mut lifetimes: Vec<Option<(u32, u32)>> = vec![None; program.tensors().len()];
        for (i, step) in (0..).zip(program.steps()) {
            for operand in step.op.operands() {
                lifetimes[operand.tensor.index()].get_or_insert((i, i)).1 = i;
            }
        }
        let last = (program.steps().len() as u32).saturating_sub(1);
        let mut arena = Arena::default();
        for (tensor, lifetime) in program.handles().zip(lifetimes) {
            let info = program.info(tensor);
            let lifetime = match info.role {
                Role::Weight | Role::State => None,
                Role::Input | Role::Output => Some((0, last)),
                // A tensor of no step is one that a fusion has done away with.
                Role::Intermediate => lifetime,
            };
            arena.of_tensors.push(lifetime.map(|(begin, end)| {
                arena.owners.push(Owner::Tensor(tensor));
                arena.blocks.push(Block { bytes: bytes(info.ty), begin, end, may_replace: Vec::new() });
                arena.blocks.len() - 1
            }));
        }
        arena
    }

    /// Finds the operands whose place a result may have: none that the host writes or reads.
    fn find_in_place(&mut self, program: &Program, steps: &[PlannedStep]) {
        for (step, planned) in program.steps().iter().zip(steps) {
            for result in step.op.writes() {
                let Some(block) = self.of_tensors[result.index()] else { continue };
                let operands = step.op.reads().filter(|&operand| {
                    program.info(operand).role == Role::Intermediate && planned.may_share(result, operand)
                });
                let operands = operands.filter_map(|operand| self.of_tensors[operand.index()]);
                self.blocks[block].may_replace = operands.collect();
            }
        }
    }
}

impl Memory {
    /// Scratch that is zeroed is shared by all steps, and apart within one; other scratch is in the arena.
    fn add_scratch(&mut self, arena: &mut Arena, scratch: &[Scratch]) -> Result<(), PlanError> {
        let (mut step, mut end) = (usize::MAX, 0u64);
        for (i, piece) in scratch.iter().enumerate() {
            if piece.zeroed {
                let begin =
                    if piece.step == step { end.checked_next_multiple_of(ALIGNMENT) } else { Some(0) };
                let begin = begin.ok_or(PlanError::TooLarge)?;
                (step, end) = (piece.step, begin.checked_add(piece.bytes()).ok_or(PlanError::TooLarge)?);
                self.zeroed_bytes = self.zeroed_bytes.max(end);
                self.scratch.push(Location::Zeroed(begin));
            } else {
                let at = piece.step as u32;
                arena.owners.push(Owner::Scratch(i));
                arena.blocks.push(Block {
                    bytes: piece.bytes(),
                    begin: at,
                    end: at,
                    may_replace: Vec::new(),
                });
                self.scratch.push(Location::Arena(0));
            }
        }
        Ok(())
    }
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
