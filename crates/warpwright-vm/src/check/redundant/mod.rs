//! Loads whose value some threads of the block can never use.
//!
//! ```text
//! ld.global.b32      %r2, [%rd1];     // by all threads
//! add.s32            %r3, %r2, 1;
//! setp.eq.s32        %p1, %r1, 0;     // of %tid.x
//! @%p1 st.global.b32 [%rd1], %r3;     // by one
//! ```
//!
//! is how Triton compiles a scalar, or a tile of fewer elements than the block has threads: several threads compute
//! the same, and one stores. By the letter of the memory model the other loads race with that store. But whatever they
//! return, it is dropped, so the race check looks at them in strict mode only.
//!
//! A thread uses a value if an instruction that does more than compute reads it, or reads what was computed from it,
//! and the guard of that instruction may hold in the thread. Guards are evaluated as far as they depend on the index of
//! the thread alone ([`values`]); all others may hold. A register counts as one value, wherever it is written and read.
//! What a lane gives in a shuffle is used if one that reads it there uses it. A branch uses what decides it, unless all
//! that it chooses between is how to compute registers (`arms`): then these depend on it. A load that no thread uses is
//! none of these: it is looked at.

mod arms;
mod values;

use super::flow::{Flow, flow};
use crate::launch::Shape;
use arms::Arms;
use std::collections::HashMap;
use values::Values;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::{Access, Op};

/// Threads of a block, by warp.
type Threads = Box<[u32]>;

/// For loads whose value only some threads of a block use, by the number of their statement: these threads.
#[derive(Debug, Default)]
pub(crate) struct UsedLoads(HashMap<u32, Threads>);

impl UsedLoads {
    /// Those of a kernel that is launched with a shape.
    pub(crate) fn new(module: &Module, kernel: &Function, shape: &Shape) -> Self {
        let mut values = Values::new(kernel, shape);
        let guards: Vec<Option<Threads>> =
            kernel.instructions().map(|instruction| values.holds(instruction.guard?)).collect();
        if guards.iter().all(Option::is_none) {
            return UsedLoads::default();
        }
        let all = values.all();
        let none: Threads = vec![0; all.len()].into();
        let used = used_registers(module, kernel, &guards, &mut values);
        let statements = kernel.statements().iter().enumerate();
        let loads = statements.filter_map(|(at, statement)| {
            let StatementKind::Instruction(Instruction { op: Op::Ld(load), .. }) = &statement.kind else {
                return None;
            };
            let mut threads = none.clone();
            for reg in load.d.as_slice().flatten() {
                unite(&mut threads, &used[reg.0 as usize]);
            }
            (threads != all && threads != none).then_some((at as u32, threads))
        });
        UsedLoads(loads.collect())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all threads may use what a statement loads.
    pub(crate) fn is_all(&self, statement: u32) -> bool {
        self.0.get(&statement).is_none_or(|threads| threads.iter().all(|&lanes| lanes == u32::MAX))
    }

    /// The lanes of a warp that may use what a statement loads.
    pub(crate) fn lanes(&self, statement: u32, warp: usize) -> u32 {
        self.0.get(&statement).map_or(u32::MAX, |threads| threads[warp])
    }
}

/// For each register, the threads that may use what it holds. `guards` are those of the instructions that do not hold in
/// every thread.
fn used_registers(
    module: &Module,
    kernel: &Function,
    guards: &[Option<Threads>],
    values: &mut Values<'_>,
) -> Vec<Threads> {
    let arms = Arms::new(module, kernel);
    let all = values.all();
    let mut used: Vec<Threads> = vec![vec![0; all.len()].into(); kernel.register_count() as usize];
    // What computes a register.
    let mut from: Vec<Vec<&Instruction>> = vec![Vec::new(); used.len()];
    let mut open = Vec::new();
    for ((at, instruction), guard) in instructions(kernel).zip(guards) {
        let results = match computes(&instruction.op) {
            true => Some(written(instruction)),
            false => arms.chosen_by(at),
        };
        if let Some(results) = results {
            results.into_iter().for_each(|reg| from[reg.0 as usize].push(instruction));
            continue;
        }
        accesses(instruction, |access, reg| {
            if access != Access::Write && unite(&mut used[reg.0 as usize], guard.as_ref().unwrap_or(&all)) {
                open.push(reg);
            }
        });
    }
    while let Some(result) = open.pop() {
        for instruction in &from[result.0 as usize] {
            let mut threads = used[result.0 as usize].clone();
            if let Op::Shfl(shuffle) = &instruction.op {
                threads = values.give(shuffle, &threads);
            }
            accesses(instruction, |access, reg| {
                if access != Access::Write && unite(&mut used[reg.0 as usize], &threads) {
                    open.push(reg);
                }
            });
        }
    }
    used
}

/// Whether an instruction only writes registers, which depend on nothing but those that it reads, in its thread or, by a
/// shuffle, in another.
fn computes(op: &Op) -> bool {
    let carry = op.carry();
    let is_more = match flow(op) {
        Flow::Shuffle(_) => !matches!(op, Op::Shfl(_)),
        flow => matches!(flow, Flow::Uses | Flow::Load | Flow::Store(_) | Flow::Call),
    };
    !is_more && !carry.reads && !carry.writes
}

/// The instructions of a function, each with the number of its statement.
fn instructions(function: &Function) -> impl Iterator<Item = (usize, &Instruction)> {
    function.statements().iter().enumerate().filter_map(|(at, statement)| match &statement.kind {
        StatementKind::Instruction(instruction) => Some((at, instruction)),
        _ => None,
    })
}

/// The registers that an instruction writes.
fn written(instruction: &Instruction) -> Vec<Reg> {
    let mut written = Vec::new();
    instruction.op.visit(&mut |access: Access, reg: Reg| {
        if access != Access::Read {
            written.push(reg);
        }
    });
    written
}

/// What an instruction reads and writes, its guard first.
fn accesses(instruction: &Instruction, mut each: impl FnMut(Access, Reg)) {
    if let Some(guard) = instruction.guard {
        each(Access::Read, guard.reg);
    }
    instruction.op.visit(&mut each);
}

/// Adds threads; whether any of them are new.
fn unite(to: &mut Threads, more: &[u32]) -> bool {
    let mut grows = false;
    for (to, more) in to.iter_mut().zip(more) {
        grows |= more & !*to != 0;
        *to |= more;
    }
    grows
}
