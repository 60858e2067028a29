//! Detects reads of registers before they are written.
//!
//! The control-flow graph determines the registers for which this is possible; they are few, and most code has none.
//! Each has a row in the predicate file that records the lanes for which it has been written.

use super::{Decoder, Rows};
use crate::machine::{FULL, Step};
use warpwright_ptx::ir::{Instruction, Reg};
use warpwright_ptx::op::Access;

/// The registers of an instruction that may not have been written before it.
#[derive(Default)]
pub(super) struct Touched {
    pub(super) reads: Vec<Reg>,
    pub(super) writes: Vec<Reg>,
}

impl Decoder<'_, '_> {
    /// Gives a row to every register that may be read before it is written.
    pub(super) fn track_assignments(&mut self) {
        for index in 0..self.slots.unassigned.len() {
            let reg = self.slots.unassigned[index];
            let row = self.frame.rows.pred;
            self.frame.rows.pred += 1;
            self.frame.unassigned_predicates.push(row);
            self.assigned.insert(reg, row);
        }
    }

    /// The use of such registers by an instruction.
    pub(super) fn tracked(&self, instruction: &Instruction) -> Touched {
        let mut touched = Touched::default();
        if self.assigned.is_empty() {
            return touched;
        }
        if let Some(guard) = instruction.guard
            && self.assigned.contains_key(&guard.reg)
        {
            touched.reads.push(guard.reg);
        }
        instruction.op.visit(&mut |access: Access, reg: Reg| {
            if !self.assigned.contains_key(&reg) {
                return;
            }
            if access != Access::Write && !touched.reads.contains(&reg) {
                touched.reads.push(reg);
            }
            if access != Access::Read {
                touched.writes.push(reg);
            }
        });
        touched
    }

    /// Emits what notes that a register has been written.
    pub(super) fn emit_assignment(&mut self, reg: Reg) {
        let row = self.assigned[&reg];
        self.emit_handler(
            |m, i| {
                m.registers.set_predicate(i.d, FULL, m.mask);
                Step::Next
            },
            Rows { d: row, ..Rows::default() },
        );
    }

    /// Emits what notes a register that has not been written as undefined.
    pub(super) fn emit_assignment_check(&mut self, reg: Reg) {
        let row = self.assigned[&reg];
        // Before the instruction, and not counted as it.
        let opcode = self.opcode.take();
        // The guard itself cannot guard the check of it.
        let is_guard = self.guard != crate::machine::UNGUARDED && self.guard >> 1 == self.row(reg) && {
            self.register(reg).0 == super::File::Predicate
        };
        let guard = self.guard;
        if is_guard {
            self.guard = crate::machine::UNGUARDED;
        }
        self.emit_handler(
            |m, i| {
                let missing = m.mask & !m.registers.predicate(i.a << 1);
                if missing != 0 && m.launch.options.checks.init {
                    m.read_unassigned(Reg(i.x), missing);
                    m.registers.set_predicate(i.a, FULL, missing);
                }
                Step::Next
            },
            Rows { a: row, x: reg.0, ..Rows::default() },
        );
        self.guard = guard;
        self.opcode = opcode;
    }
}
