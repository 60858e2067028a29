//! Lowering of blocks to a function: the live instructions in order, with registers and labels.

use super::address::Resolver;
use super::emit;
use super::kernel::{Block, Built, LaunchRule, dynamic_name, is_identifier};
use super::live::Liveness;
use super::renaming::{CLASSES, Named, Registers, Renaming, class};
use super::state::{BODY, BlockId, Break, Def, ENTRY, Inst, Labelled, Loc, Node, POISON, State};
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::{Access, Op, VisitorMut, control};

/// Static shared memory that every target has.
const STATIC_SHARED: u64 = 48 << 10;

/// The module of a kernel; `None` where a mistake was made.
pub(super) fn module(state: &mut State, entry: &str, launch: &LaunchRule, loc: Loc) -> Option<Built> {
    if !is_identifier(entry) {
        state.mistake(Code::Syntax, loc, format!("`{entry}` is no name for a kernel"));
    }
    let mut launch = launch.clone();
    state.size_call_memory();
    let offsets = place_shared(state, &mut launch, loc);
    if !state.mistakes.is_empty() {
        return None;
    }
    state.find_checks();
    if !state.mistakes.is_empty() {
        return None;
    }
    let mut resolver = Resolver::new(state, &offsets, loc);
    resolver.run();
    let addresses = std::mem::take(&mut resolver.addresses);
    let live = Liveness::run(state);
    let calls = state.number_words(&live.0);
    let mut writer = Flattener::new(state, &addresses, live);
    writer.block(ENTRY);
    writer.block(BODY);
    writer.push(control::Ret { uniform: false }, None, loc);
    let function = function(writer, entry, &launch, &offsets, loc);
    let mut module = Module::new(Version::OLDEST, state.target);
    let dynamic = state.dynamic.is_some() || offsets.iter().any(Option::is_some);
    if dynamic {
        let mut variable = Variable::new(Space::Shared, Type::B8, dynamic_name());
        variable.linkage = Linkage::Extern;
        variable.align = state.arrays.iter().filter_map(|array| array.align).chain([16]).max();
        variable.dims = vec![None];
        module.items.push(ItemKind::Variable(variable).into());
    }
    for constant in std::mem::take(&mut state.constants) {
        module.items.push(Item { origin: constant.origin, kind: ItemKind::Variable(constant) });
    }
    module.version = lowest_version(&function, state.target);
    module.items.push(Item { origin: Origin::Rust(loc), kind: ItemKind::Function(Box::new(function)) });
    Some(Built { module, launch, calls })
}

/// The lowest version that the target and the instructions need.
fn lowest_version(function: &Function, target: Arch) -> Version {
    let mut version = target.introduced().unwrap_or(Version::NEWEST).max(Version::OLDEST);
    let mut needs = Needs::new();
    for instruction in function.instructions() {
        needs.clear();
        instruction.op.needs(&mut needs);
        for (_, need) in needs.iter() {
            if let Requirement::Version(needed) = need {
                version = version.max(needed);
            }
        }
    }
    let clustered = (function.directives.iter())
        .any(|directive| matches!(directive, FunctionDirective::ReqNCtaPerCluster(_)));
    if clustered { version.max(Version::new(7, 8)) } else { version }
}

/// Lays out shared arrays: as variables of the function up to 48 KiB, otherwise in the dynamic memory, after the part
/// that the launch rule requests. Returns the offset of each array in dynamic memory.
fn place_shared(state: &mut State, launch: &mut LaunchRule, loc: Loc) -> Vec<Option<i64>> {
    let size = |variable: &Variable| variable.bytes().unwrap_or(u64::MAX >> 1).next_multiple_of(16);
    let is_shared = |variable: &&Variable| variable.space == Space::Shared;
    let align = |array: &Variable| u64::from(array.align.unwrap_or(16));
    let total = (state.arrays.iter().filter(is_shared))
        .fold(0, |end: u64, array| end.next_multiple_of(align(array)).saturating_add(size(array)));
    let mut offsets = vec![None; state.arrays.len()];
    let mut dynamic = u64::from(launch.dynamic_shared);
    if total > STATIC_SHARED {
        dynamic = dynamic.next_multiple_of(16);
        for (array, offset) in state.arrays.iter().zip(&mut offsets) {
            if array.space == Space::Shared {
                dynamic = dynamic.next_multiple_of(align(array));
                *offset = i64::try_from(dynamic).ok();
                dynamic = dynamic.saturating_add(size(array));
            }
        }
        launch.static_shared = 0;
    } else {
        launch.static_shared = total as u32;
    }
    let limit = state.target.limits().shared_per_block;
    let all = dynamic.saturating_add(launch.static_shared.into());
    if all > limit {
        // The line that asked for the first byte too many.
        let mut end = u64::from(launch.dynamic_shared);
        let too_many = (state.arrays.iter().filter(is_shared)).find(|array| {
            end = end.saturating_add(size(array));
            end > limit
        });
        let line = match too_many.map(|array| array.origin) {
            Some(Origin::Rust(line)) if u64::from(launch.dynamic_shared) <= limit => line,
            _ => state.dynamic.unwrap_or(loc),
        };
        let message =
            format!("{all} bytes of shared memory; a block has at most {limit} on {}", state.target);
        state.mistake(Code::SharedMemory, line, message);
    }
    launch.dynamic_shared = u32::try_from(dynamic).unwrap_or(u32::MAX);
    offsets
}

fn function(
    writer: Flattener<'_>,
    entry: &str,
    launch: &LaunchRule,
    offsets: &[Option<i64>],
    loc: Loc,
) -> Function {
    let registers = writer.registers();
    let state = &mut *writer.state;
    let mut function = Function::new(FunctionKind::Entry, entry);
    function.origin = Origin::Rust(loc);
    function.linkage = Linkage::Visible;
    function.params = (0..state.params.len() as u32).map(|id| Param::Variable(VarId(id))).collect();
    function.variables = std::mem::take(&mut state.params).into_iter().map(|(param, _)| param).collect();
    function.directives.push(match launch.block {
        Block::Exactly(dims) => FunctionDirective::ReqNtid(dims.to_vec()),
        Block::AtMost(dims) => FunctionDirective::MaxNtid(dims.to_vec()),
    });
    if let Some(blocks) = launch.resident_blocks {
        function.directives.push(FunctionDirective::MinNCtaPerSm(blocks));
    }
    if let Some(cluster) = launch.cluster {
        function.directives.push(FunctionDirective::ReqNCtaPerCluster(cluster.to_vec()));
    }
    let mut statements = Vec::with_capacity(writer.lines.len() + CLASSES.len() + offsets.len());
    let mut first = 0;
    for (class, &count) in CLASSES.iter().zip(&registers.counts) {
        if count == 0 {
            continue;
        }
        let index = function.registers.len() as u32;
        function.registers.push(RegisterRange {
            origin: Origin::Unknown,
            ty: class.0,
            vector: None,
            name: class.1.into(),
            first: Reg(first),
            count,
            numbered: true,
        });
        first += count;
        statements.push(StatementKind::Registers { first: index, count: 1 }.into());
    }
    for (array, offset) in std::mem::take(&mut state.arrays).into_iter().zip(offsets) {
        if offset.is_none() {
            let id = VarId(function.variables.len() as u32);
            statements.push(Statement { origin: array.origin, kind: StatementKind::Variable(id) });
            function.variables.push(array);
        }
    }
    function.labels = writer.finish(registers, &mut statements);
    function.body = Some(statements);
    function
}

/// A line of the body, before its registers have their numbers.
enum LoweredStatement {
    Inst(u32),
    Label(LabelId),
    NoUnroll,
    BranchTargets(LabelId, Vec<LabelId>),
}

/// Writes the blocks out in order.
struct Flattener<'a> {
    state: &'a mut State,
    addresses: &'a [Address],
    live_values: Vec<bool>,
    live_insts: Vec<bool>,
    lines: Vec<LoweredStatement>,
    /// By value: the last line that reads it, from 1; 0 where none does.
    last_read: Vec<u32>,
    /// By value: the last line that writes it, likewise.
    written: Vec<u32>,
    /// By value: the value whose register it shares.
    alias: Vec<Reg>,
    /// With its place in the text, once it is defined.
    labels: Vec<(String, u32)>,
    /// By labelled block: the label behind it, once the block is being written.
    ends: Vec<LabelId>,
    /// By labelled block: the loop that it ends with, likewise.
    tails: Vec<Option<u32>>,
    defined: u32,
    loops: u32,
}

impl<'a> Flattener<'a> {
    fn new(
        state: &'a mut State,
        addresses: &'a [Address],
        (live_values, live_insts): (Vec<bool>, Vec<bool>),
    ) -> Self {
        let count = state.values.len();
        Flattener {
            live_values,
            live_insts,
            lines: Vec::with_capacity(state.insts.len() + 32),
            last_read: vec![0; count],
            written: vec![0; count],
            alias: (0..count as u32).map(Reg).collect(),
            labels: Vec::new(),
            ends: vec![LabelId(u32::MAX); state.labelled.len()],
            tails: vec![None; state.labelled.len()],
            defined: 0,
            loops: 0,
            addresses,
            state,
        }
    }

    /// Appends an instruction.
    fn push(&mut self, op: impl Into<Op>, guard: Option<(Reg, bool)>, loc: Loc) {
        let id = self.state.push_inst(op, guard, POISON, loc);
        self.instruction(id);
    }

    fn instruction(&mut self, id: u32) {
        self.lines.push(LoweredStatement::Inst(id));
        let line = self.lines.len() as u32;
        for &(access, reg) in self.state.operands_of(id) {
            let list = if access == Access::Write { &mut self.written } else { &mut self.last_read };
            list[reg.0 as usize] = line;
        }
        if let Some((guard, _)) = self.state.insts[id as usize].guard {
            self.last_read[guard.0 as usize] = line;
        }
    }

    fn label(&mut self, name: String) -> LabelId {
        self.labels.push((name, 0));
        LabelId(self.labels.len() as u32 - 1)
    }

    /// Labels are numbered in the order of the text.
    fn number_label(&mut self, label: LabelId) {
        self.labels[label.0 as usize].1 = self.defined;
        self.defined += 1;
    }

    fn define_label(&mut self, label: LabelId) {
        self.number_label(label);
        self.lines.push(LoweredStatement::Label(label));
    }

    fn next_number(&mut self) -> u32 {
        self.loops += 1;
        self.loops
    }

    fn block(&mut self, block: BlockId) {
        let nodes = std::mem::take(&mut self.state.blocks[block.0 as usize].nodes);
        self.nodes(&nodes);
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for &node in nodes {
            match node {
                Node::Inst(id) => {
                    if self.live_insts[id as usize] {
                        self.instruction(id);
                    }
                }
                Node::Loop(id) => self.looped(id as usize),
                Node::If(id) => self.branch(id as usize),
                Node::Switch(id) => self.switch(id as usize),
                Node::Labelled(id) => self.labelled(id as usize),
                Node::Break(id) => self.leave(id as usize),
            }
        }
    }

    /// The source operand of a copy.
    fn source(&self, reg: Reg) -> Src {
        let value = self.state.value(reg);
        match value.def {
            Def::Const(Imm::Int(v)) if value.ty == Type::Pred => Src::Imm(Imm::Int(-v)),
            Def::Const(imm) => Src::Imm(imm),
            _ => Src::Reg(self.register(reg)),
        }
    }

    fn register(&self, reg: Reg) -> Reg {
        register_of(self.state, &self.alias, reg)
    }

    fn copy(&mut self, to: Reg, from: Src, loc: Loc) {
        let ty = emit::register_type(self.state.value(to).ty);
        self.push(emit::mov(ty, to, from), None, loc);
    }

    fn looped(&mut self, id: usize) {
        let number = self.next_number();
        let looped = &self.state.loops[id];
        let (loc, body, guard, again) = (looped.loc, looped.body, looped.guard, looped.again);
        let (name, no_unroll) = (looped.name, looped.no_unroll);
        let bumps = looped.bumps.clone();
        let mut carried = looped.carried.clone();
        carried.retain(|carried| self.live_values[carried.value.0 as usize]);
        for carried in &carried {
            let from = self.source(carried.init);
            self.copy(carried.value, from, loc);
        }
        for bump in &bumps {
            let from = self.source(bump.init);
            self.copy(bump.pointer, from, loc);
        }
        let top = self.label(format!("{name}_{number}"));
        let end = guard.map(|guard| {
            let end = self.label(format!("{name}_{number}_end"));
            self.push(emit::bra(end), Some((guard, true)), loc);
            end
        });
        let nodes = std::mem::take(&mut self.state.blocks[body.0 as usize].nodes);
        let (test, nodes) = nodes.split_at(self.test_of(id, &nodes));
        self.nodes(test);
        self.define_label(top);
        if no_unroll {
            self.lines.push(LoweredStatement::NoUnroll);
        }
        self.nodes(nodes);
        for bump in bumps {
            let ty = if bump.wide { Type::S64 } else { Type::S32 };
            self.push(emit::add(ty, bump.pointer, Src::Reg(bump.pointer), bump.step), None, loc);
        }
        let mut copies = Vec::with_capacity(carried.len());
        for i in 0..carried.len() {
            let (value, next) = (carried[i].value, carried[i].next);
            let elsewhere = carried.iter().enumerate().any(|(j, other)| {
                let other = self.register(other.next);
                j != i && (other == value || other == next)
            });
            let inner = self.state.value(next);
            let single = matches!(inner.def, Def::Inst(_)) && inner.block == body;
            let free = self.alias[next.0 as usize] == next
                && self.last_read[value.0 as usize] <= self.written[next.0 as usize];
            if single && free && !elsewhere {
                self.alias[next.0 as usize] = value;
            } else {
                copies.push((value, self.source(next)));
            }
        }
        self.parallel_copy(copies, loc);
        let again = again.map(|again| (again, false)).or_else(|| self.test_again(test));
        self.push(emit::bra(top), again, loc);
        if let Some(end) = end {
            self.define_label(end);
        }
    }

    /// A loop that begins by computing whether to break, and ends the block that it breaks, is tested before it and at
    /// its bottom, as one with a condition is. Yields how many of its nodes that is.
    fn test_of(&self, id: usize, nodes: &[Node]) -> usize {
        let pure = |node: &&Node| matches!(node, Node::Inst(inst) if self.state.insts[*inst as usize].pure);
        let count = nodes.iter().take_while(pure).count();
        let Some(&Node::Break(at)) = nodes.get(count) else { return 0 };
        let way = &self.state.breaks[at as usize];
        let ends = self.tails[way.of as usize] == Some(id as u32);
        if ends && way.condition.is_some() { count + 1 } else { 0 }
    }

    /// Writes the test that a loop begins with once more; yields when to go on.
    fn test_again(&mut self, test: &[Node]) -> Option<(Reg, bool)> {
        for node in test {
            match *node {
                Node::Inst(inst) if self.live_insts[inst as usize] => {
                    let Inst { guard, loc, .. } = self.state.insts[inst as usize];
                    let op = self.state.ops[inst as usize].clone();
                    self.push(op, guard, loc);
                }
                Node::Break(way) => {
                    self.left_values(way as usize);
                    return self.state.breaks[way as usize].condition.map(|condition| (condition, true));
                }
                _ => {}
            }
        }
        None
    }

    /// Copies as if all at once: a swap works.
    fn parallel_copy(&mut self, mut copies: Vec<(Reg, Src)>, loc: Loc) {
        copies.retain(|(to, from)| *from != Src::Reg(*to));
        while !copies.is_empty() {
            // One whose target no other copy still reads.
            let free = (0..copies.len()).find(|&i| {
                let to = Src::Reg(copies[i].0);
                copies.iter().enumerate().all(|(j, (_, from))| i == j || *from != to)
            });
            match free {
                Some(i) => {
                    let (to, from) = copies.remove(i);
                    self.copy(to, from, loc);
                }
                None => {
                    // Only cycles are left: one value of each waits in a register of its own.
                    let held = copies[0].0;
                    let ty = self.state.value(held).ty;
                    let spare = self.state.define_in(BODY, ty, Def::Variable);
                    self.alias.push(spare);
                    self.last_read.push(0);
                    self.written.push(0);
                    self.copy(spare, Src::Reg(held), loc);
                    for (_, from) in &mut copies {
                        if *from == Src::Reg(held) {
                            *from = Src::Reg(spare);
                        }
                    }
                }
            }
        }
    }

    fn branch(&mut self, id: usize) {
        let number = self.next_number();
        let branch = &self.state.ifs[id];
        let (loc, condition, then, otherwise) = (branch.loc, branch.condition, branch.then, branch.otherwise);
        let end = self.label(format!("when_{number}_end"));
        match otherwise {
            None => {
                self.push(emit::bra(end), Some((condition, true)), loc);
                self.block(then);
            }
            Some(otherwise) => {
                let other = self.label(format!("else_{number}"));
                self.push(emit::bra(other), Some((condition, true)), loc);
                self.block(then);
                self.push(emit::bra(end), None, loc);
                self.define_label(other);
                self.block(otherwise);
            }
        }
        self.define_label(end);
    }

    fn switch(&mut self, id: usize) {
        let number = self.next_number();
        let switch = &self.state.switches[id];
        let (loc, index, inside, cases) = (switch.loc, switch.index, switch.inside, switch.cases.clone());
        let end = self.label(format!("switch_{number}_end"));
        let table = self.label(format!("switch_{number}"));
        let targets: Vec<_> = (0..cases.len()).map(|i| self.label(format!("case_{number}_{i}"))).collect();
        self.push(emit::bra(end), Some((inside, true)), loc);
        self.number_label(table);
        self.lines.push(LoweredStatement::BranchTargets(table, targets.clone()));
        let index = RegSrc(index);
        self.push(control::BrxIdx { uniform: false, index, table }, None, loc);
        let last = cases.len() - 1;
        for (i, (case, target)) in cases.into_iter().zip(targets).enumerate() {
            self.define_label(target);
            self.block(case);
            if i != last {
                self.push(emit::bra(end), None, loc);
            }
        }
        self.define_label(end);
    }

    fn labelled(&mut self, id: usize) {
        let number = self.next_number();
        let &Labelled { name, body, .. } = &self.state.labelled[id];
        let end = self.label(format!("{name}_{number}_end"));
        self.ends[id] = end;
        self.tails[id] = match self.state.block(body).nodes.last() {
            Some(&Node::Loop(last)) => Some(last),
            _ => None,
        };
        self.block(body);
        self.define_label(end);
    }

    fn leave(&mut self, id: usize) {
        self.left_values(id);
        let &Break { loc, condition, of, .. } = &self.state.breaks[id];
        if self.state.labelled[of as usize].last != Some(id as u32) {
            let guard = condition.map(|condition| (condition, false));
            self.push(emit::bra(self.ends[of as usize]), guard, loc);
        }
    }

    /// The values that a break leaves: copied where several ways meet.
    fn left_values(&mut self, id: usize) {
        let Break { loc, of, ref values, .. } = self.state.breaks[id];
        let values = values.clone();
        for (i, &value) in values.iter().enumerate() {
            if let Some(&met) = self.state.labelled[of as usize].met.get(i)
                && self.live_values[met.0 as usize]
            {
                let from = self.source(value);
                self.copy(met, from, loc);
            }
        }
        // Behind the block, a value is read as it is now: the jump is the next line.
        let line = self.lines.len() as u32 + 1;
        for value in values {
            let constant = matches!(self.state.value(value).def, Def::Const(_));
            if self.live_values[value.0 as usize] && !constant {
                self.last_read[value.0 as usize] = line;
            }
        }
    }

    /// The registers that the lines use.
    fn registers(&self) -> Registers {
        let mut counts = [0; 6];
        let mut names = vec![Named::Nowhere; self.state.values.len()];
        for (i, (read, written)) in self.last_read.iter().zip(&self.written).enumerate() {
            let unused = (*read, *written) == (0, 0);
            if unused || matches!(self.state.value(Reg(i as u32)).def, Def::Resolved(_)) {
                continue;
            }
            let root = register_of(self.state, &self.alias, Reg(i as u32));
            if root.0 as usize != i {
                names[i] = Named::Like(root);
            }
            let slot = &mut names[root.0 as usize];
            if matches!(slot, Named::Nowhere) {
                let class = class(self.state.value(root).ty);
                *slot = Named::Next(class as u8);
                counts[class] += 1;
            }
        }
        let mut next = [0; 6];
        for i in 1..6 {
            next[i] = next[i - 1] + counts[i - 1];
        }
        Registers { counts, next, names }
    }

    /// Appends the statements, and yields the labels. Registers are numbered in the order in which
    /// they appear.
    fn finish(self, registers: Registers, statements: &mut Vec<Statement>) -> Vec<Label> {
        let State { values, insts, ops, .. } = self.state;
        let mut labels = self.labels;
        let numbers: Vec<_> = labels.iter().map(|label| LabelId(label.1)).collect();
        let number = |label: LabelId| numbers[label.0 as usize];
        let first = statements.len();
        // Moved first and renamed after: to move what has just been written is slow.
        statements.extend(self.lines.into_iter().map(|line| match line {
            LoweredStatement::Inst(id) => {
                let Inst { guard, loc, .. } = insts[id as usize];
                let guard = guard.map(|(reg, negated)| Guard { reg, negated });
                let op = std::mem::replace(&mut ops[id as usize], Op::Trap(control::Trap {}));
                let kind = StatementKind::Instruction(Instruction { guard, op });
                Statement { origin: Origin::Rust(loc), kind }
            }
            LoweredStatement::Label(label) => StatementKind::Label(number(label)).into(),
            LoweredStatement::NoUnroll => StatementKind::Pragma(vec!["nounroll".into()]).into(),
            LoweredStatement::BranchTargets(label, targets) => {
                let targets = targets.into_iter().map(number).collect();
                StatementKind::BranchTargets { label: number(label), targets }.into()
            }
        }));
        let mut renaming = Renaming { values, registers, labels: &numbers, addresses: self.addresses };
        for statement in &mut statements[first..] {
            if let StatementKind::Instruction(instruction) = &mut statement.kind {
                if let Some(guard) = &mut instruction.guard {
                    renaming.reg(Access::Read, &mut guard.reg);
                }
                instruction.op.visit_mut(&mut renaming);
            }
        }
        labels.sort_unstable_by_key(|label| label.1);
        labels.into_iter().map(|(name, _)| Label { name: name.into() }).collect()
    }
}

/// The value whose register a value lives in.
fn register_of(state: &State, alias: &[Reg], mut reg: Reg) -> Reg {
    loop {
        let next = match state.value(reg).def {
            Def::Result(value) => value,
            _ => alias[reg.0 as usize],
        };
        if next == reg {
            return reg;
        }
        reg = next;
    }
}
