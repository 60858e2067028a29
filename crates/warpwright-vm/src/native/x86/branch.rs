//! Branches.
//!
//! A path that a branch divides is the interpreter's, but for this: where the lanes that branch are at once where all meet
//! again, the others have an *arm* of some instructions, which is compiled once more for these lanes. What is left of the
//! path when the arm ends is what it was before. Where native code is left in an arm, the path is divided.

use super::{Compiler, Frame, Result, Vectors, at, entered};
use crate::machine::{Inst, UNGUARDED};
use crate::native::Operation;
use iced_x86::code_asm::*;
use std::mem::{offset_of, replace};
use std::ops::Range;

/// Instructions of an arm, at most.
const LONGEST: usize = 16;

impl<V: Vectors> Compiler<'_, V> {
    pub(super) fn branch(&mut self, index: usize, inst: &Inst) -> Result<()> {
        let pc = self.first + index as u32;
        let ((next_warps, next_lanes), (to_warps, to_lanes)) = (entered(pc + 1), entered(inst.x));
        let taken = self.target(inst.x.wrapping_sub(self.first) as usize);
        if inst.guard != UNGUARDED {
            let divided = match self.arm_of(index) {
                Some(_) => {
                    let label = self.a.create_label();
                    self.arms.push((label, index));
                    label
                }
                None => self.exit(index, 1),
            };
            let mut jumps = self.a.create_label();
            let next = self.target(index + 1);
            self.lanes_of(inst.guard)?;
            self.a.je(jumps)?;
            self.a.test(ecx, ecx)?;
            self.a.jnz(divided)?;
            // No lane executes it.
            let a = &mut self.a;
            let (warps, lanes) = entered(pc);
            a.mov(rax, qword_ptr(at(offset_of!(Frame, lanes))))?;
            a.sub(warps, 1)?;
            a.sub(lanes, rax)?;
            a.add(next_warps, 1)?;
            a.add(next_lanes, rax)?;
            a.sub(qword_ptr(at(offset_of!(Frame, corrected))), rax)?;
            a.jmp(next)?;
            a.set_label(&mut jumps)?;
        }
        let a = &mut self.a;
        a.mov(rax, qword_ptr(at(offset_of!(Frame, lanes))))?;
        a.sub(next_warps, 1)?;
        a.sub(next_lanes, rax)?;
        a.add(to_warps, 1)?;
        a.add(to_lanes, rax)?;
        a.jmp(taken)
    }

    /// The arm of a branch: the instructions up to its target, if lanes wait there that branch.
    fn arm_of(&self, index: usize) -> Option<Range<usize>> {
        let inst = self.inst(index);
        let arm = index + 1..inst.x.wrapping_sub(self.first) as usize;
        let fits = |operation: &Option<Operation>| {
            use Operation::*;
            let needs_all =
                matches!(operation, Some(Shuffle(_) | MultiplyFragments { .. } | LoadMatrices { .. }));
            operation.is_some() && !needs_all && !matches!(operation, Some(Branch | ReconvergencePoint))
        };
        let is_arm = inst.c == inst.x
            && (1..=LONGEST).contains(&arm.len())
            && self.operations.get(arm.end) == Some(&Some(Operation::ReconvergencePoint))
            && self.operations[arm.clone()].iter().all(fits)
            && self.begins[arm.clone()].iter().skip(1).all(Option::is_none);
        is_arm.then_some(arm)
    }

    /// The arms of branches that divide a path: `ecx` = the lanes that branch.
    pub(super) fn arms(&mut self) -> Result<()> {
        for (label, index) in std::mem::take(&mut self.arms) {
            self.arm(label, index)?;
        }
        Ok(())
    }

    fn arm(&mut self, mut label: CodeLabel, index: usize) -> Result<()> {
        let Some(arm) = self.arm_of(index) else { return Ok(()) };
        let (pc, meets) = (self.first + index as u32, self.first + arm.end as u32);
        // With the point at which the path waits then.
        let need = arm.len() as u32 + 1;
        let divided = self.exit(index, 1);
        let all = self.target(arm.end);
        let (active, outer_active) = (at(offset_of!(Frame, active)), at(offset_of!(Frame, outer_active)));
        let (lanes, outer_lanes) = (at(offset_of!(Frame, lanes)), at(offset_of!(Frame, outer_lanes)));
        let ((_, branch_lanes), (_, next_lanes)) = (entered(pc), entered(pc + 1));
        let a = &mut self.a;
        a.set_label(&mut label)?;
        // Where the warp has other paths, their order changes; and who waits at the same place already is not of the path.
        a.cmp(dword_ptr(at(offset_of!(Frame, is_only_path))), 0)?;
        a.je(divided)?;
        a.cmp(dword_ptr(at(offset_of!(Frame, reconverges_at))), meets as i32)?;
        a.je(divided)?;
        a.cmp(ebp, need)?;
        a.jb(divided)?;
        a.sub(ebp, need)?;
        a.mov(rax, qword_ptr(at(offset_of!(Frame, divergent))))?;
        a.add(qword_ptr(rax + 8 * pc), 1)?;
        a.mov(eax, dword_ptr(active))?;
        a.mov(dword_ptr(outer_active), eax)?;
        a.andn(eax, ecx, eax)?;
        a.mov(dword_ptr(active), eax)?;
        // `rax`, `rcx`: how many lanes execute the arm, and do not.
        a.popcnt(eax, eax)?;
        a.popcnt(ecx, ecx)?;
        a.mov(rsi, qword_ptr(lanes))?;
        a.mov(qword_ptr(outer_lanes), rsi)?;
        a.mov(qword_ptr(lanes), rax)?;
        a.sub(branch_lanes, rax)?;
        a.imul_3(rsi, rcx, need as i32)?;
        a.add(rsi, rax)?;
        a.sub(qword_ptr(at(offset_of!(Frame, corrected))), rsi)?;
        a.sub(rax, rcx)?;
        a.add(next_lanes, rax)?;
        self.held.clear();
        let full = replace(&mut self.variant.full, false);
        self.arm_of_branch = Some(pc);
        for index in arm {
            let Some(operation) = self.operations[index] else { continue };
            self.marks.push((self.a.instructions().len(), self.first + index as u32));
            self.instruction(index, operation)?;
        }
        self.save_all()?;
        self.arm_of_branch = None;
        self.variant.full = full;
        // Those lanes come to the point, and then all of them.
        let ((warps, point_lanes), (next_warps, next_lanes)) = (entered(meets), entered(meets + 1));
        let a = &mut self.a;
        a.mov(rax, qword_ptr(lanes))?;
        a.mov(rcx, qword_ptr(outer_lanes))?;
        a.mov(edx, dword_ptr(outer_active))?;
        a.add(warps, 1)?;
        a.add(point_lanes, rcx)?;
        a.sub(next_warps, 1)?;
        a.sub(next_lanes, rax)?;
        a.mov(qword_ptr(lanes), rcx)?;
        a.mov(dword_ptr(active), edx)?;
        a.jmp(all)
    }

    /// Native code is left in an arm, with fuel that was not used.
    pub(super) fn leave_arm(&mut self, branch: u32, refund: u32) -> Result<()> {
        let a = &mut self.a;
        a.mov(rax, qword_ptr(at(offset_of!(Frame, outer_lanes))))?;
        a.sub(rax, qword_ptr(at(offset_of!(Frame, lanes))))?;
        a.imul_3(rax, rax, refund as i32)?;
        a.add(qword_ptr(at(offset_of!(Frame, corrected))), rax)?;
        a.mov(dword_ptr(at(offset_of!(Frame, divided_by))), branch)
    }
}
