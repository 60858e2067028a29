//! The control-flow graph of a function: basic blocks, their edges, and dominators.
//!
//! A block is a run of statements that control enters at the first and leaves at the last. Labels begin blocks;
//! branches, returns, exits, traps and calls that do not return end them. Other instructions with a guard do not end
//! a block. All algorithms here are iterative and close to linear in the number of statements.

use super::grouped::Grouped;
use crate::ir::*;
use crate::op::Op;
use crate::op::control::{Call, Callee, Way};

/// A block of a [`Cfg`], by its number in the order of the text. The function begins at block 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

impl BlockId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A basic block.
#[derive(Clone, Debug)]
pub struct Block {
    /// First statement, by its index in the body.
    pub first: u32,
    /// One past the last statement.
    pub end: u32,
    /// The statement that transfers control at its end, if there is one.
    pub terminator: Option<u32>,
    /// Whether threads may leave the function at its end: by `ret`, `exit`, `trap`, a call that does not return, or
    /// past the last statement.
    pub leaves: bool,
}

impl Block {
    /// The statements, by their index in the body.
    pub fn statements(&self) -> std::ops::Range<usize> {
        self.first as usize..self.end as usize
    }
}

/// The control-flow graph of a function.
#[derive(Clone, Debug)]
pub struct Cfg {
    blocks: Vec<Block>,
    successors: Edges,
    predecessors: Edges,
    order: Vec<BlockId>,
    reachable: Vec<bool>,
}

impl Cfg {
    /// The graph of a function's body. A prototype has one empty block.
    pub fn new(index: &ModuleIndex<'_>, function: &Function) -> Self {
        Builder::new(index, function).build()
    }

    /// The blocks, in the order of the text.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// A block.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// The blocks that control may go to from the end of a block, each once.
    pub fn successors(&self, id: BlockId) -> &[BlockId] {
        self.successors.of(id)
    }

    /// The blocks that control may come from.
    pub fn predecessors(&self, id: BlockId) -> &[BlockId] {
        self.predecessors.of(id)
    }

    /// The reachable blocks, each after those that dominate it.
    pub fn reverse_postorder(&self) -> &[BlockId] {
        &self.order
    }

    /// Whether control can reach the block.
    pub fn is_reachable(&self, id: BlockId) -> bool {
        self.reachable[id.index()]
    }

    /// The block that contains a statement, by the statement's index in the body.
    pub fn block_of(&self, statement: usize) -> BlockId {
        let after = self.blocks.partition_point(|block| block.first as usize <= statement);
        BlockId(after.saturating_sub(1) as u32)
    }

    /// The dominator tree: its root is block 0.
    pub fn dominators(&self) -> DominatorTree {
        DominatorTree::new(&self.successors, &self.predecessors, BlockId(0))
    }

    /// The post-dominator tree. Its root represents the end of the function: it is [`Cfg::exit`], which is not a
    /// block.
    pub fn post_dominators(&self) -> DominatorTree {
        post_dominators(self.blocks.len(), |id, visit| {
            self.successors(id).iter().for_each(|&next| visit(next));
            if self.block(id).leaves {
                visit(self.exit());
            }
        })
    }

    /// The node of the post-dominator tree that represents the end of the function.
    pub fn exit(&self) -> BlockId {
        BlockId(self.blocks.len() as u32)
    }
}

/// Post-dominators of a graph of `count` blocks; `edges` shows the targets of a block, the end of
/// the function as block `count`. Loops that never end count as if they could end.
pub(super) fn post_dominators(
    count: usize,
    edges: impl Fn(BlockId, &mut dyn FnMut(BlockId)),
) -> DominatorTree {
    let exit = BlockId(count as u32);
    let mut list = Vec::with_capacity(2 * count);
    for id in (0..count as u32).map(BlockId) {
        edges(id, &mut |next| list.push((id, next)));
    }
    let forward = Edges::new(count + 1, &list);
    let backward = Edges::new(count + 1, &reversed(&list));
    let mut reached = vec![false; count + 1];
    let mut stack = vec![exit];
    reached[count] = true;
    // From the innermost block: of what never ends, the first is one that only goes back.
    let postorder = forward.reverse_postorder(BlockId(0)).into_iter().rev();
    let mut endless = Vec::new();
    for id in postorder {
        while let Some(at) = stack.pop() {
            for &next in backward.of(at) {
                if !std::mem::replace(&mut reached[next.index()], true) {
                    stack.push(next);
                }
            }
        }
        if !std::mem::replace(&mut reached[id.index()], true) {
            endless.push((id, exit));
            stack.push(id);
        }
    }
    if endless.is_empty() {
        return DominatorTree::new(&backward, &forward, exit);
    }
    list.extend(endless);
    DominatorTree::new(&Edges::new(count + 1, &reversed(&list)), &Edges::new(count + 1, &list), exit)
}

fn reversed(list: &[(BlockId, BlockId)]) -> Vec<(BlockId, BlockId)> {
    list.iter().map(|&(from, to)| (to, from)).collect()
}

/// Edges of a graph, by where they start.
#[derive(Clone, Debug)]
pub(super) struct Edges(Grouped<BlockId>);

impl Edges {
    pub(super) fn new(count: usize, list: &[(BlockId, BlockId)]) -> Self {
        Edges(Grouped::new(count, list.iter().map(|(from, to)| (from.index(), *to))))
    }

    pub(super) fn of(&self, id: BlockId) -> &[BlockId] {
        self.0.of(id.index())
    }

    fn count(&self) -> usize {
        self.0.count()
    }

    /// The nodes that `root` reaches, in reverse postorder.
    fn reverse_postorder(&self, root: BlockId) -> Vec<BlockId> {
        let mut seen = vec![false; self.count()];
        let mut order = Vec::with_capacity(self.count());
        let mut stack = vec![(root, 0)];
        seen[root.index()] = true;
        while let Some((at, next)) = stack.last_mut() {
            let at = *at;
            match self.of(at).get(*next) {
                Some(&target) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[target.index()], true) {
                        stack.push((target, 0));
                    }
                }
                None => {
                    order.push(at);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }
}

/// A dominator tree.
#[derive(Clone, Debug)]
pub struct DominatorTree {
    parent: Vec<Option<BlockId>>,
    depth: Vec<u32>,
    enter: Vec<u32>,
    leave: Vec<u32>,
}

impl DominatorTree {
    /// By the algorithm of Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm", 2001).
    fn new(successors: &Edges, predecessors: &Edges, root: BlockId) -> Self {
        let count = successors.count();
        let order = successors.reverse_postorder(root);
        let mut position = vec![u32::MAX; count];
        for (i, id) in order.iter().enumerate() {
            position[id.index()] = i as u32;
        }
        // In terms of positions, so that a dominator has the smaller number.
        let mut parent = vec![u32::MAX; order.len()];
        parent[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for (i, id) in order.iter().enumerate().skip(1) {
                let mut best = u32::MAX;
                for from in predecessors.of(*id) {
                    let mut other = position[from.index()];
                    if other == u32::MAX || parent[other as usize] == u32::MAX {
                        continue;
                    }
                    if best == u32::MAX {
                        best = other;
                        continue;
                    }
                    while best != other {
                        while best > other {
                            best = parent[best as usize];
                        }
                        while other > best {
                            other = parent[other as usize];
                        }
                    }
                }
                if parent[i] != best {
                    parent[i] = best;
                    changed = true;
                }
            }
        }
        let mut tree = DominatorTree {
            parent: vec![None; count],
            depth: vec![u32::MAX; count],
            enter: vec![u32::MAX; count],
            leave: vec![0; count],
        };
        // Subtree sizes from the leaves up, then intervals from the root down.
        let mut size = vec![1u32; order.len()];
        for i in (1..order.len()).rev() {
            size[parent[i] as usize] += size[i];
        }
        let mut free = vec![0u32; order.len()];
        for (i, id) in order.iter().enumerate() {
            let (start, depth) = match i {
                0 => (0, 0),
                _ => {
                    let up = parent[i] as usize;
                    tree.parent[id.index()] = Some(order[up]);
                    let start = free[up];
                    free[up] += size[i];
                    (start, tree.depth[order[up].index()] + 1)
                }
            };
            tree.enter[id.index()] = start;
            tree.leave[id.index()] = start + size[i];
            tree.depth[id.index()] = depth;
            free[i] = start + 1;
        }
        tree
    }

    /// The immediate dominator of a block; `None` for the root and for blocks that are not in the tree.
    pub fn parent(&self, id: BlockId) -> Option<BlockId> {
        self.parent[id.index()]
    }

    /// Whether `a` dominates `b`; each block in the tree dominates itself.
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        let at = self.enter[b.index()];
        at != u32::MAX && self.enter[a.index()] <= at && at < self.leave[a.index()]
    }

    /// Distance from the root; `None` for blocks that are not in the tree.
    pub fn depth(&self, id: BlockId) -> Option<u32> {
        Some(self.depth[id.index()]).filter(|&depth| depth != u32::MAX)
    }
}

struct Builder<'a> {
    index: &'a ModuleIndex<'a>,
    function: &'a Function,
    blocks: Vec<Block>,
    /// The block that a label begins; `u32::MAX` where it is none.
    labels: Vec<u32>,
    /// The statement of a label that names a table or prototype.
    tables: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(index: &'a ModuleIndex<'a>, function: &'a Function) -> Self {
        let count = function.labels.len();
        Builder {
            index,
            function,
            blocks: Vec::new(),
            labels: vec![u32::MAX; count],
            tables: vec![u32::MAX; count],
        }
    }

    fn build(mut self) -> Cfg {
        self.split();
        let count = self.blocks.len();
        let mut edges = Vec::with_capacity(2 * count);
        let mut seen = vec![u32::MAX; count];
        for i in 0..count {
            self.edges_of(i as u32, &mut edges, &mut seen);
        }
        let successors = Edges::new(count, &edges);
        let predecessors = Edges::new(count, &reversed(&edges));
        let order = successors.reverse_postorder(BlockId(0));
        let mut reachable = vec![false; count];
        for id in &order {
            reachable[id.index()] = true;
        }
        Cfg { blocks: self.blocks, successors, predecessors, order, reachable }
    }

    fn split(&mut self) {
        let mut first = 0;
        let mut occupied = false;
        let statements = self.function.statements();
        for (i, statement) in statements.iter().enumerate() {
            let i = i as u32;
            match &statement.kind {
                StatementKind::Label(label) => {
                    if occupied {
                        self.blocks.push(Block { first, end: i, terminator: None, leaves: false });
                        first = i;
                        occupied = false;
                    }
                    if let Some(block) = self.labels.get_mut(label.0 as usize) {
                        *block = self.blocks.len() as u32;
                    }
                }
                StatementKind::BranchTargets { label, .. } | StatementKind::CallPrototype { label, .. } => {
                    if let Some(table) = self.tables.get_mut(label.0 as usize) {
                        *table = i;
                    }
                }
                StatementKind::Instruction(instruction) => {
                    occupied = true;
                    if self.ends_block(&instruction.op) {
                        self.blocks.push(Block { first, end: i + 1, terminator: Some(i), leaves: false });
                        first = i + 1;
                        occupied = false;
                    }
                }
                _ => {}
            }
        }
        let end = statements.len() as u32;
        let labelled = self.labels.contains(&(self.blocks.len() as u32));
        if occupied || labelled || self.blocks.is_empty() {
            self.blocks.push(Block { first, end, terminator: None, leaves: false });
        } else if let Some(last) = self.blocks.last_mut() {
            last.end = end;
        }
    }

    fn ends_block(&self, op: &Op) -> bool {
        match op.way() {
            Way::To(_) | Way::Table(_) | Way::Away => true,
            Way::Call(call) => self.never_returns(call),
            Way::Next => false,
        }
    }

    fn never_returns(&self, call: &Call) -> bool {
        if let Callee::Function(Symbol::Global(name)) = &call.callee
            && let Some(GlobalSymbol::Function(callee)) = self.index.get(name)
        {
            return callee.directives.contains(&FunctionDirective::NoReturn);
        }
        let Some(&at) = call.prototype.and_then(|label| self.tables.get(label.0 as usize)) else {
            return false;
        };
        let statement = self.function.statements().get(at as usize).map(|statement| &statement.kind);
        matches!(statement, Some(StatementKind::CallPrototype { prototype, .. }) if prototype.noreturn)
    }

    fn edges_of(&mut self, block: u32, edges: &mut Vec<(BlockId, BlockId)>, seen: &mut [u32]) {
        let last = block as usize + 1 == self.blocks.len();
        let statements = self.function.statements();
        let instruction =
            self.blocks[block as usize].terminator.and_then(|at| match &statements[at as usize].kind {
                StatementKind::Instruction(instruction) => Some(instruction),
                _ => None,
            });
        let falls_through = instruction.is_none_or(|instruction| instruction.guard.is_some());
        let mut leaves = falls_through && last;
        let mut edge = |to: u32| {
            if let Some(mark) = seen.get_mut(to as usize)
                && *mark != block
            {
                *mark = block;
                edges.push((BlockId(block), BlockId(to)));
            }
        };
        if falls_through {
            edge(block + 1);
        }
        match instruction.map_or(Way::Next, |instruction| instruction.op.way()) {
            Way::To(label) => edge(self.labels.get(label.0 as usize).copied().unwrap_or(u32::MAX)),
            Way::Table(label) => {
                let table = self.tables.get(label.0 as usize).copied().unwrap_or(u32::MAX);
                if let Some(StatementKind::BranchTargets { targets, .. }) =
                    statements.get(table as usize).map(|statement| &statement.kind)
                {
                    for target in targets {
                        edge(self.labels.get(target.0 as usize).copied().unwrap_or(u32::MAX));
                    }
                }
            }
            Way::Call(_) | Way::Away => leaves = true,
            Way::Next => {}
        }
        self.blocks[block as usize].leaves = leaves;
    }
}
