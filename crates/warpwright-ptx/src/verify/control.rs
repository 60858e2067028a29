//! Control dependence: the branches that decide whether, and how often, a block runs.

use super::cfg::{BlockId, Cfg, DominatorTree, Edges, post_dominators};
use crate::ir::*;
use crate::op::control::Way;
use crate::op::{Convergence, Level};

/// The threads that agree on whether they run each block, as far as the given branches determine it.
#[derive(Clone, Debug)]
pub(super) struct Control {
    graph: Merging,
    exit: BlockId,
    levels: Vec<Level>,
    causes: Vec<u32>,
    /// For each level: the next node up the post-dominator tree that is below that level.
    jumps: [Vec<u32>; Level::ALL.len()],
}

impl Control {
    /// Before any branch is named, all threads run everything.
    pub(super) fn new(function: &Function, cfg: &Cfg) -> Self {
        let count = cfg.blocks().len();
        Control {
            graph: Merging::new(function, cfg),
            exit: cfg.exit(),
            levels: vec![Level::Grid; count],
            causes: vec![u32::MAX; count],
            jumps: Default::default(),
        }
    }

    /// The threads that agree on a block.
    pub(super) fn level(&self, id: BlockId) -> Level {
        self.levels[id.index()]
    }

    /// The branch that gave a block its level: the index of a statement.
    pub(super) fn cause(&self, id: BlockId) -> Option<usize> {
        Some(self.causes[id.index()]).filter(|&cause| cause != u32::MAX).map(|cause| cause as usize)
    }

    /// The blocks that some branch decides on, whatever the branch is about.
    pub(super) fn conditional(&self) -> Vec<bool> {
        let mut all = self.clone();
        for id in (0..self.levels.len() as u32).map(BlockId) {
            all.divide(id, 0, Level::Unknown, &mut |_| {});
        }
        all.levels.iter().map(|&level| level != Level::Grid).collect()
    }

    /// The branch at the end of a block diverges: raises the level of the blocks that depend on it, and passes them
    /// on.
    pub(super) fn divide(
        &mut self,
        id: BlockId,
        statement: u32,
        level: Level,
        raised: &mut dyn FnMut(BlockId),
    ) {
        if self.graph.edges.of(id).len() < 2 {
            return;
        }
        let stop = self.graph.tree.parent(id).and_then(|up| self.graph.tree.depth(up)).unwrap_or(0);
        for i in 0..self.graph.edges.of(id).len() {
            let mut at = self.graph.edges.of(id)[i];
            loop {
                at = self.below(at, level);
                let depth = self.graph.tree.depth(at).unwrap_or(0);
                if depth <= stop {
                    break;
                }
                if at != self.exit {
                    self.levels[at.index()] = level;
                    self.causes[at.index()] = statement;
                    raised(at);
                }
                match self.graph.tree.parent(at) {
                    Some(up) => at = up,
                    None => break,
                }
            }
        }
    }

    /// The closest post-dominator of a block, itself included, that is not at the level yet.
    fn below(&mut self, id: BlockId, level: Level) -> BlockId {
        let exit = self.exit;
        let jumps = &mut self.jumps[level as usize];
        if jumps.is_empty() {
            jumps.extend(0..=exit.0);
        }
        let mut at = id;
        loop {
            let next = jumps[at.index()];
            if next != at.0 {
                // Halves the way for those who come after.
                let after = jumps[next as usize];
                jumps[at.index()] = after;
                at = BlockId(after);
                continue;
            }
            if at == exit || self.levels[at.index()] < level {
                return at;
            }
            let up = self.graph.tree.parent(at).unwrap_or(exit);
            jumps[at.index()] = up.0;
            at = up;
        }
    }
}

/// The graph for control dependence: without the paths that leave past all collectives, and without the work after
/// them.
#[derive(Clone, Debug)]
struct Merging {
    edges: Edges,
    tree: DominatorTree,
}

impl Merging {
    fn new(function: &Function, cfg: &Cfg) -> Self {
        let Ahead { collective, meeting } = Ahead::new(function, cfg);
        let count = cfg.blocks().len();
        let exit = cfg.exit();
        let mut list = Vec::with_capacity(2 * count);
        for id in (0..count as u32).map(BlockId) {
            let all = || cfg.successors(id).iter().copied();
            let prune = collective[id.index()] && all().any(|next| meeting[next.index()]);
            list.extend(all().filter(|next| !prune || meeting[next.index()]).map(|next| (id, next)));
            if cfg.block(id).leaves && !prune {
                list.push((id, exit));
            }
        }
        let edges = Edges::new(count + 1, &list);
        let tree = post_dominators(count, |id, visit| edges.of(id).iter().for_each(|&next| visit(next)));
        Merging { edges, tree }
    }
}

/// What control may still come to, from the beginning of each block on.
struct Ahead {
    /// A barrier or other collective.
    collective: Vec<bool>,
    /// A collective, or work that is done after one too.
    meeting: Vec<bool>,
}

impl Ahead {
    fn new(function: &Function, cfg: &Cfg) -> Self {
        let count = cfg.blocks().len();
        let mut collective = vec![false; count];
        let mut works = vec![false; count];
        let statements = function.statements();
        for (i, block) in cfg.blocks().iter().enumerate() {
            for statement in &statements[block.statements()] {
                if let StatementKind::Instruction(instruction) = &statement.kind {
                    works[i] |= !matches!(instruction.op.way(), Way::To(_) | Way::Away);
                    collective[i] |= instruction.op.convergence() != Convergence::None;
                }
            }
        }
        let after = spread(&collective, |id| cfg.successors(id));
        let goals: Vec<bool> = (0..count).map(|i| collective[i] || (after[i] && works[i])).collect();
        let back = |set: &[bool]| -> Vec<bool> {
            spread(set, |id| cfg.predecessors(id))
                .iter()
                .zip(set)
                .map(|(reached, own)| reached | own)
                .collect()
        };
        Ahead { meeting: back(&goals), collective: back(&collective) }
    }
}

/// What can be reached from the blocks of a set by at least one edge.
fn spread<'g>(from: &[bool], edges: impl Fn(BlockId) -> &'g [BlockId]) -> Vec<bool> {
    let mut reached = vec![false; from.len()];
    let mut stack: Vec<_> = (0..from.len() as u32).map(BlockId).filter(|id| from[id.index()]).collect();
    while let Some(at) = stack.pop() {
        for &next in edges(at) {
            if !std::mem::replace(&mut reached[next.index()], true) {
                stack.push(next);
            }
        }
    }
    reached
}
