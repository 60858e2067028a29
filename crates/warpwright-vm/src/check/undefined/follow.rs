//! Follows undefined values from instruction to instruction.

use super::{CARRY, Origin, What, all};
use crate::check::flow::{Flow, flow};
use crate::check::{Action, Cause, FindingKind, RawFinding, RawPlace, RawSite, Use};
use crate::decode::{File, NO_STATEMENT};
use crate::machine::{LANES, Machine, Warp};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::{Access, Op};

/// Followed statements after which registers that are dead are forgotten.
const SWEEP: u32 = 64;

/// All bits of the elements, of so many bits, of which some is set.
fn elements(any: u128, bits: u32) -> u128 {
    let masks = (0..128 / bits).map(|at| all(bits) << (bits * at));
    masks.filter(|mask| any & mask != 0).fold(0, |all, mask| all | mask)
}

/// The sums of a product of a warpgroup, and whether they are added.
fn added_sums(op: &Op) -> Option<(&[Reg], &Src)> {
    match op {
        Op::WgmmaMmaAsync(op) => Some((&op.d.0, &op.scale_d)),
        Op::WgmmaMmaAsyncSp(op) => Some((&op.d.0, &op.scale_d)),
        _ => None,
    }
}

impl<'a> Machine<'a> {
    /// Whether a predicate, or a constant, is false for all lanes.
    fn is_false(&self, src: &Src) -> bool {
        match src {
            Src::Reg(reg) => self.registers.predicate(self.slot(*reg).1 << 1) & self.mask == 0,
            Src::Not(reg) => !self.registers.predicate(self.slot(*reg).1 << 1) & self.mask == 0,
            src => src.imm().and_then(Imm::bits) == Some(0),
        }
    }

    /// Hands out fuel for the next instruction, after following what it does with undefined values; for all that is
    /// left, where there are none.
    #[cold]
    pub(crate) fn follow(&mut self, pc: u32) {
        let given = if self.warp.undefined.is_empty() { self.held } else { 1 };
        self.held -= given;
        self.fuel += given;
        self.warp.clock += u64::from(given);
        if self.warp.undefined.is_empty() {
            return;
        }
        let launch = self.launch;
        let meta = &launch.code.meta;
        // Once for each statement, at what is counted as it: checks of its registers come before.
        if meta[pc as usize].opcode.is_none() {
            return;
        }
        let Some(function) = launch.module.function_at(pc) else { return };
        let Some(statement) = function.statements().get(meta[pc as usize].statement as usize) else { return };
        if let StatementKind::Instruction(instruction) = &statement.kind {
            (self.pc, self.mask) = (pc, self.active);
            self.follow_instruction(function, instruction);
        }
        self.warp.undefined.followed += 1;
        if self.warp.undefined.followed >= SWEEP {
            self.sweep(pc);
        }
    }

    fn follow_instruction(&mut self, function: &'a Function, instruction: &'a Instruction) {
        let frame = self.warp.paths[self.warp.current].frame;
        if let Some(guard) = instruction.guard {
            self.use_register(frame, guard.reg, self.active, Use::Guard);
            let (_, row) = self.slot(guard.reg);
            self.mask &= self.registers.predicate(row << 1 | u32::from(guard.negated));
        }
        if self.mask == 0 {
            return;
        }
        let op = &instruction.op;
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        op.visit(&mut |access: Access, reg: Reg| {
            if access != Access::Write && !reads.contains(&reg) {
                reads.push(reg);
            }
            if access != Access::Read && !writes.contains(&reg) {
                writes.push(reg);
            }
        });
        // A product that does not add does not read its sums.
        if let Some((sums, adds)) = added_sums(op)
            && self.is_false(adds)
        {
            reads.retain(|reg| !sums.contains(reg));
        }
        let carry = op.carry();
        reads.extend(carry.reads.then_some(CARRY));
        writes.extend(carry.writes.then_some(CARRY));
        let undefined = &self.warp.undefined.registers;
        reads
            .retain(|&reg| undefined.get(&(frame, reg)).is_some_and(|s| s.lanes(u128::MAX) & self.mask != 0));
        let mut results: Option<Vec<[u128; LANES]>> = None;
        match flow(op) {
            Flow::Load => self.use_registers(frame, &reads, Use::Address),
            Flow::Store(address) => {
                let addresses: Vec<_> = reads.iter().copied().filter(|&reg| Some(reg) == address).collect();
                self.use_registers(frame, &addresses, Use::Address);
                if !self.launch.options.checks.init {
                    self.use_registers(frame, &reads, Use::Store);
                }
            }
            Flow::Shuffle(controls) => {
                // The exchange itself tells of the results.
                reads.retain(|reg| controls.contains(reg));
                return self.use_registers(frame, &reads, Use::Operand);
            }
            Flow::Uses => self.use_registers(frame, &reads, Use::Operand),
            Flow::Call => {
                if let Op::Call(call) = op {
                    self.follow_call(frame, call, &reads);
                }
            }
            _ if reads.is_empty() => {}
            Flow::Moves(data) if reads.iter().all(|reg| data.contains(reg)) => {
                results = Some(self.differences(frame, &reads, &writes, 1));
            }
            Flow::Bitwise => results = Some(self.differences(frame, &reads, &writes, reads.len())),
            flow => {
                let decided = self.decided(op, &reads);
                let undefined = &self.warp.undefined.registers;
                // A conversion may read a part of its register.
                let read = match op {
                    Op::Cvt(op) => all(op.a_type.bits()),
                    _ => u128::MAX,
                };
                let any: [u128; LANES] = std::array::from_fn(|lane| {
                    let of = |reg: &Reg| undefined.get(&(frame, *reg)).map_or(0, |shadow| shadow.bits[lane]);
                    let any = reads.iter().map(of).fold(0, |all, bits| all | bits) & read;
                    if decided >> lane & 1 != 0 { 0 } else { any }
                });
                let of_register = |(index, &reg): (usize, &Reg)| {
                    let width = if reg == CARRY { 1 } else { function.register_type(reg).bits() };
                    any.map(|any| match flow {
                        _ if any == 0 => 0,
                        Flow::Carries if reg != CARRY => (any | any.wrapping_neg()) & all(width),
                        // A comparison has a predicate for each.
                        Flow::Elements(bits) if width < bits => {
                            u128::from(any >> (bits * index as u32) & all(bits) != 0)
                        }
                        Flow::Elements(bits) => elements(any, bits),
                        _ => all(width),
                    })
                };
                results = Some(writes.iter().enumerate().map(of_register).collect());
            }
        }
        let undefined = &mut self.warp.undefined;
        let origins: [Origin; LANES] = std::array::from_fn(|lane| {
            let shadows = reads.iter().filter_map(|&reg| undefined.registers.get(&(frame, reg)));
            shadows
                .filter(|shadow| shadow.bits[lane] != 0)
                .map(|shadow| shadow.origins[lane])
                .next()
                .unwrap_or_default()
        });
        for (index, &reg) in writes.iter().enumerate() {
            let bits = results.as_ref().map_or([0; LANES], |results| results[index]);
            undefined.set(frame, reg, self.mask, |lane| (bits[lane], origins[lane]));
        }
    }

    /// The bits of what the present instruction writes that differ with the undefined bits of what it reads, if up to
    /// `apart` of those registers are set apart from one another.
    fn differences(&mut self, frame: u32, reads: &[Reg], writes: &[Reg], apart: usize) -> Vec<[u128; LANES]> {
        let (pc, launch) = (self.pc, self.launch);
        let meta = &launch.code.meta;
        let place = |at: u32| (meta[at as usize].function, meta[at as usize].statement);
        let end = (pc..meta.len() as u32).find(|&at| place(at) != place(pc)).unwrap_or(meta.len() as u32);
        let shadows: Vec<_> =
            reads.iter().map(|&reg| self.warp.undefined.registers[&(frame, reg)].bits).collect();
        let before: Vec<_> = reads.iter().chain(writes).map(|&reg| (reg, self.value(reg))).collect();
        let mut first: Vec<[u128; LANES]> = Vec::new();
        let mut differ = vec![[0; LANES]; writes.len()];
        for run in 0..1u32 << apart {
            for (index, (&reg, bits)) in reads.iter().zip(&shadows).enumerate() {
                let ones = run >> (index % apart.max(1)) & 1 != 0;
                let value = &before[index].1;
                self.set_value(
                    reg,
                    &std::array::from_fn(|lane| match ones {
                        true => value[lane] | bits[lane],
                        false => value[lane] & !bits[lane],
                    }),
                );
            }
            for at in pc..end {
                self.pc = at;
                let inst = &launch.code.insts[at as usize];
                let _ = (inst.run)(self, inst);
            }
            let results: Vec<_> = writes.iter().map(|&reg| self.value(reg)).collect();
            before.iter().for_each(|(reg, value)| self.set_value(*reg, value));
            if run == 0 {
                first = results;
                continue;
            }
            for (differ, (first, now)) in differ.iter_mut().zip(first.iter().zip(&results)) {
                (0..LANES).for_each(|lane| differ[lane] |= first[lane] ^ now[lane]);
            }
        }
        self.pc = pc;
        differ
    }

    /// The lanes in which the predicate that a comparison is combined with decides alone.
    fn decided(&self, op: &Op, undefined: &[Reg]) -> u32 {
        let (bool_op, predicate) = match op {
            Op::Setp(op) => (op.bool_op, &op.c),
            Op::Set(op) => (op.bool_op, &op.c),
            _ => return 0,
        };
        let (reg, negated) = match predicate {
            Some(Src::Reg(reg)) => (*reg, 0),
            Some(Src::Not(reg)) => (*reg, 1),
            _ => return 0,
        };
        if undefined.contains(&reg) {
            return 0;
        }
        let holds = self.registers.predicate(self.slot(reg).1 << 1 | negated);
        match bool_op {
            Some(BoolOp::And) => !holds,
            Some(BoolOp::Or) => holds,
            _ => 0,
        }
    }

    pub(super) fn use_registers(&mut self, frame: u32, reads: &[Reg], how: Use) {
        reads.iter().for_each(|&reg| self.use_register(frame, reg, self.mask, how));
    }

    /// The present instruction uses a register in these lanes. What has been reported counts as defined.
    fn use_register(&mut self, frame: u32, reg: Reg, lanes: u32, how: Use) {
        let Some(shadow) = self.warp.undefined.registers.get(&(frame, reg)) else { return };
        let lanes = shadow.lanes(u128::MAX) & lanes;
        if lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            self.report_undefined(shadow.origins[lane], lane, how, None);
            self.warp.undefined.define(frame, reg, lanes);
        }
    }

    pub(super) fn report_undefined(&self, origin: Origin, lane: usize, how: Use, stored: Option<RawPlace>) {
        let action = if stored.is_some() { Action::Write } else { Action::Execute };
        let first = RawSite { memory: stored, ..self.site(action, lane) };
        let Origin { pc, thread, what } = origin;
        let (action, memory, cause) = match what {
            What::Passed => (Action::Read, None, Cause::Memory),
            What::Memory(place) => (Action::Read, Some(place), Cause::Memory),
            What::Register(reg) => {
                let name = self
                    .launch
                    .module
                    .function_at(pc)
                    .map(|function| function.register_name(reg).to_string());
                (Action::Execute, None, Cause::Register(name.unwrap_or_default()))
            }
            What::Lane { present } => (Action::Execute, None, Cause::Lane { present }),
        };
        let second = RawSite { pc, thread, memory, ..self.site(action, lane) };
        let statement = |pc: u32| {
            (self.launch.code.meta[pc as usize].function, self.launch.code.meta[pc as usize].statement)
        };
        let second = (statement(pc) != statement(self.pc)).then_some(second);
        let kind = FindingKind::UndefinedValue { used: how, cause };
        self.launch.findings.add(RawFinding { kind, first, second, count: 1 });
    }

    /// A value that is undefined from the present instruction on.
    pub(super) fn origin(&self, lane: usize, what: What) -> Origin {
        Origin { pc: self.pc, thread: self.thread(lane), what }
    }

    /// Forgets registers that are dead: nothing reads them before it writes them.
    fn sweep(&mut self, pc: u32) {
        let launch = self.launch;
        // The running path is where it says, and not where it was last.
        self.warp.paths[self.warp.current].pc = pc;
        let Warp { undefined, frames, .. } = &*self.warp;
        let live = |frame: u32, reg: Reg| {
            let Some(function) = frames.get(frame as usize).map(|frame| frame.function) else { return 0 };
            let code = &launch.code.functions[function as usize];
            if reg == CARRY {
                return 0;
            }
            let range = code.slots.live(reg);
            let places = self.warp.places_in(frame);
            places
                .filter(|&(pc, _)| {
                    let statements = launch.code.meta[pc as usize..=code.exit as usize].iter();
                    let next = statements.map(|meta| meta.statement).find(|&at| at != NO_STATEMENT);
                    range.contains(&next.unwrap_or(code.statements))
                })
                .fold(0, |lanes, (_, mask)| lanes | mask)
        };
        let dead: Vec<_> =
            undefined.registers.keys().map(|&(frame, reg)| (frame, reg, !live(frame, reg))).collect();
        let undefined = &mut self.warp.undefined;
        undefined.followed = 0;
        dead.into_iter().for_each(|(frame, reg, lanes)| undefined.define(frame, reg, lanes));
    }

    /// The file and row of a register of the running function.
    fn slot(&self, reg: Reg) -> (File, u32) {
        self.launch.code.functions[self.warp.frame().function as usize].slots.rows[reg.0 as usize]
    }

    fn value(&self, reg: Reg) -> [u128; LANES] {
        if reg == CARRY {
            return [0; LANES];
        }
        let (file, row) = self.slot(reg);
        match file {
            File::Narrow => self.registers.row32(row).map(u128::from),
            File::Wide => self.registers.row64(row).map(u128::from),
            File::Double => {
                let (low, high) = (self.registers.row64(row), self.registers.row64(row + 1));
                std::array::from_fn(|lane| u128::from(low[lane]) | u128::from(high[lane]) << 64)
            }
            File::Predicate => {
                let lanes = self.registers.predicate(row << 1);
                std::array::from_fn(|lane| u128::from(lanes >> lane & 1))
            }
        }
    }

    fn set_value(&mut self, reg: Reg, value: &[u128; LANES]) {
        if reg == CARRY {
            return;
        }
        let (file, row) = self.slot(reg);
        match file {
            File::Narrow => *self.registers.row32_mut(row) = value.map(|value| value as u32),
            File::Wide => *self.registers.row64_mut(row) = value.map(|value| value as u64),
            File::Double => {
                *self.registers.row64_mut(row) = value.map(|value| value as u64);
                *self.registers.row64_mut(row + 1) = value.map(|value| (value >> 64) as u64);
            }
            File::Predicate => {
                let lanes = (0..LANES).fold(0, |lanes, lane| lanes | (value[lane] as u32 & 1) << lane);
                self.registers.set_predicate(row, lanes, u32::MAX);
            }
        }
    }
}
