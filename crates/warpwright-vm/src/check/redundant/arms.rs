//! Branches that choose how to compute registers, and nothing else.

use super::{computes, instructions, written};
use crate::check::flow::{Flow, flow};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::verify::{BlockId, Cfg};

/// The blocks of a function, and what stands in them.
pub(super) struct Arms {
    cfg: Cfg,
    /// Where the ways from the end of each block join; `None` if that is the end of the function.
    joins: Vec<Option<BlockId>>,
    /// For each block, the registers that it writes; `None` if it does more than compute and branch.
    computes: Vec<Option<Vec<Reg>>>,
    /// The statements that are conditional branches, in order.
    branches: Vec<usize>,
}

impl Arms {
    pub(super) fn new(module: &Module, function: &Function) -> Self {
        let cfg = Cfg::new(&ModuleIndex::new(module), function);
        let mut blocks = vec![Some(Vec::new()); cfg.blocks().len()];
        let mut branches = Vec::new();
        for (at, instruction) in instructions(function) {
            let block = &mut blocks[cfg.block_of(at).index()];
            let is_branch = matches!(instruction.op, Op::Bra(_));
            if is_branch && instruction.guard.is_some() {
                branches.push(at);
            }
            // Lanes that part give each other nothing.
            let stays = computes(&instruction.op) && !matches!(flow(&instruction.op), Flow::Shuffle(_));
            match block {
                Some(registers) if is_branch || stays => registers.extend(written(instruction)),
                _ => *block = None,
            }
        }
        let post_dominators = cfg.post_dominators();
        let join = |block| post_dominators.parent(BlockId(block)).filter(|&join| join != cfg.exit());
        let joins = (0..blocks.len() as u32).map(join).collect();
        Arms { cfg, joins, computes: blocks, branches }
    }

    /// The registers that are written between a branch and the place where its ways join, if all blocks there only
    /// compute; `None` if they do more, do not join, or the statement is no conditional branch.
    pub(super) fn chosen_by(&self, statement: usize) -> Option<Vec<Reg>> {
        self.branches.binary_search(&statement).ok()?;
        let block = self.cfg.block_of(statement);
        let join = self.joins[block.index()]?;
        let (mut seen, mut open, mut chosen) = (vec![false; self.computes.len()], vec![block], Vec::new());
        while let Some(from) = open.pop() {
            for &next in self.cfg.successors(from) {
                if next != join && !std::mem::replace(&mut seen[next.index()], true) {
                    chosen.extend(self.registers(next)?);
                    open.push(next);
                }
            }
        }
        Some(chosen)
    }

    fn registers(&self, block: BlockId) -> Option<&[Reg]> {
        self.computes[block.index()].as_deref()
    }
}
