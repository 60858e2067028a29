//! Registers that products of a warpgroup still use, and those that no fence has made known to them.
//!
//! `wgmma.mma_async` reads and writes its registers until its group has been waited for, and finds in them what stood there
//! at the last `wgmma.fence`. Both can be told from the text. What is told here holds on every path to an instruction, so
//! that a path that is never taken makes no finding; nothing is found where only some paths are wrong.

use super::Decoder;
use crate::machine::Step;
use std::collections::{BTreeMap, HashMap};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::family::{Family, Wgmma};
use warpwright_ptx::op::{Access, Op};
use warpwright_ptx::verify::cfg::{BlockId, Cfg};

/// Groups that are told apart: more than may be pending behind any wait.
const MAX_GROUPS: u32 = 8;

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Early {
    /// The other instruction, by its statement: the product that uses the register, or what has written it; itself, where
    /// there is no fence at all.
    pub(super) other: u32,
    /// There is no fence between the two; otherwise no wait.
    pub(super) unfenced: bool,
}

/// What holds at a place on every path to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// Registers that products use: groups that were committed since, and the product's statement.
    used: BTreeMap<Reg, (u32, u32)>,
    /// Registers that were written since the last fence, and where.
    written: BTreeMap<Reg, u32>,
    /// There may have been a fence.
    fenced: bool,
}

impl State {
    /// What holds on the paths of both.
    fn meet(&mut self, other: &State) {
        self.used.retain(|reg, (groups, product)| {
            let Some(&(other_groups, other_product)) = other.used.get(reg) else { return false };
            *groups = other_groups.max(*groups);
            *product = other_product.min(*product);
            true
        });
        self.written.retain(|reg, at| other.written.get(reg).map(|&other| *at = other.min(*at)).is_some());
        self.fenced |= other.fenced;
    }

    /// What an instruction does, and what is wrong with it.
    fn step(&mut self, at: u32, instruction: &Instruction) -> Option<Early> {
        let is_guarded = instruction.guard.is_some();
        match instruction.op.family() {
            Family::Wgmma(Wgmma::WgmmaFence(_)) => {
                self.written.clear();
                self.fenced = true;
            }
            Family::Wgmma(Wgmma::WgmmaCommitGroup(_)) => {
                self.used.values_mut().for_each(|(groups, _)| *groups = MAX_GROUPS.min(*groups + 1));
            }
            Family::Wgmma(Wgmma::WgmmaWaitGroup(op)) => {
                let pending = op.n.imm().and_then(|imm| imm.bits()).unwrap_or(0);
                self.used.retain(|_, (groups, _)| u64::from(*groups) <= pending);
            }
            Family::Wgmma(Wgmma::WgmmaMmaAsync(op)) => return self.multiply(at, &op.d.0, &op.a, is_guarded),
            Family::Wgmma(Wgmma::WgmmaMmaAsyncSp(op)) => {
                return self.multiply(at, &op.d.0, &op.a, is_guarded);
            }
            _ => {
                let mut early = None;
                instruction.op.visit(&mut |access: Access, reg: Reg| {
                    if let Some(&(_, product)) = self.used.get(&reg) {
                        early = Some(Early { other: product, unfenced: false });
                    }
                    if access != Access::Read && !is_guarded {
                        self.written.insert(reg, at);
                    }
                });
                return early;
            }
        }
        None
    }

    fn multiply(&mut self, at: u32, sums: &[Reg], a: &Srcs, is_guarded: bool) -> Option<Early> {
        let left: &[Src] = if let Srcs::Many(left) = a { left } else { &[] };
        let left = left.iter().filter_map(|src| if let Src::Reg(reg) = src { Some(reg) } else { None });
        let registers: Vec<Reg> = sums.iter().chain(left).copied().collect();
        let written = registers.iter().find_map(|reg| self.written.get(reg).copied());
        let unfenced = if self.fenced { written } else { Some(at) };
        if !is_guarded {
            self.used.extend(registers.into_iter().map(|reg| (reg, (0, at))));
        }
        unfenced.map(|other| Early { other, unfenced: true })
    }
}

/// The instructions of a function that use registers too early, by their statements.
pub(super) fn early_uses(function: &Function, cfg: &Cfg) -> HashMap<u32, Early> {
    let mut found = HashMap::new();
    let is_product =
        |op: &Op| matches!(op.family(), Family::Wgmma(Wgmma::WgmmaMmaAsync(_) | Wgmma::WgmmaMmaAsyncSp(_)));
    if !function.instructions().any(|instruction| is_product(&instruction.op)) {
        return found;
    }
    let mut ends: HashMap<BlockId, State> = HashMap::new();
    // Until nothing changes: what holds on every path becomes less.
    loop {
        let mut changed = false;
        found.clear();
        for (number, &id) in cfg.reverse_postorder().iter().enumerate() {
            let entry = State { fenced: function.kind != FunctionKind::Entry, ..State::default() };
            let before = cfg.predecessors(id).iter().filter_map(|from| ends.get(from));
            let mut before = before.chain((number == 0).then_some(&entry));
            let mut state = before.next().cloned().unwrap_or_default();
            before.for_each(|other| state.meet(other));
            for at in cfg.block(id).statements() {
                if let StatementKind::Instruction(instruction) = &function.statements()[at].kind
                    && let Some(early) = state.step(at as u32, instruction)
                {
                    found.insert(at as u32, early);
                }
            }
            changed |= ends.get(&id) != Some(&state);
            ends.insert(id, state);
        }
        if !changed {
            return found;
        }
    }
}

impl Decoder<'_, '_> {
    /// Emits what reports an instruction that uses registers too early, before it.
    pub(super) fn emit_early_use(&mut self, early: Early) {
        // Not counted as the instruction.
        let opcode = self.opcode.take();
        self.emit_boxed(move |m, _| {
            m.used_early(early.other, early.unfenced);
            Step::Next
        });
        self.opcode = opcode;
    }
}
