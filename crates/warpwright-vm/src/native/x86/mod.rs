//! The compiler for AVX-512: each instruction becomes a few vector instructions on its rows.
//!
//! | register | holds |
//! | --- | --- |
//! | `rbx` | the [`Frame`] |
//! | `r12`, `r13`, `r14` | the rows of 32 and 64 bits, and the predicates |
//! | `r15` | [`State::entered`](super::State::entered) |
//! | `ebp` | fuel |
//! | `ecx`, then `k6` and `k7` | the lanes of an instruction, where they are not all: those of the lower and the upper half |
//!
//! A row is worked on in strips of a vector register, which [hold](held) them until they are needed for others. Results for
//! some lanes are blended with what the row holds, and stored whole: a row is the warp's own, and a store under a mask would
//! not be forwarded to the loads behind it. Memory is never written so.

/// An instruction for words, or the same for 64 bits.
macro_rules! of_width {
    ($compiler:expr, $wide:expr, $narrow:ident | $long:ident ($($operand:expr),*)) => {
        if $wide { $compiler.a.$long($($operand),*)? } else { $compiler.a.$narrow($($operand),*)? }
    };
}

/// A constant of the frame, in all lanes.
macro_rules! constant {
    ($name:ident) => {
        dword_bcst(at(offset_of!(Frame, $name)))
    };
}

mod access;
mod bits;
mod float;
mod held;
mod note;
mod operation;
mod verify;

use super::debug;
use super::frame::Frame;
use super::functions::{Access, Accesses, Compiled, Entry, Variant, instructions};
use super::page::Page;
use super::{Native, Operation};
use crate::decode::Code;
use crate::machine::{Counts, Inst, UNGUARDED};
use access::{can_be_noted, is_plain};
use held::{Held, Strip};
use iced_x86::code_asm::*;
use iced_x86::{BlockEncoderOptions, IcedError};
use note::{Noting, noted_as};
use std::mem::offset_of;
use std::ops::Range;

type Result<T> = std::result::Result<T, IcedError>;

/// Instructions of a segment, at most: a turn of a warp has some thousands.
const LONGEST: usize = 128;

/// Bytes of the rows of 32 and 64 bits.
const ROW32: i32 = 128;
const ROW64: i32 = 256;

/// Compiles a function; `None` if this processor or process cannot have it, or if there is nothing to compile.
pub(super) fn compile(code: &Code, number: u32, variant: Variant) -> Option<Compiled> {
    if Native::unavailable().is_some() {
        return None;
    }
    let Range { start: first, end } = instructions(code, number);
    let mut operations = vec![None; (end - first) as usize];
    let from = code.operations.partition_point(|&(pc, _)| pc < first);
    for &(pc, operation) in code.operations[from..].iter().take_while(|&&(pc, _)| pc < end) {
        let known = match operation {
            Operation::Load | Operation::Store | Operation::Atomic(..) => {
                let access = access_of(&code.insts[pc as usize], operation);
                let is_plain = |Access { op, write }| is_plain(&code.memory[op as usize], write);
                // Whether anything looks at parameters, constants or shared memory is known when they are accessed.
                let is_noted = |Access { op, write }| can_be_noted(&code.memory[op as usize], write);
                match (variant.accesses, operation) {
                    (Accesses::None, _) => false,
                    (Accesses::Noted, Operation::Atomic(_, _, scope)) => noted_as(scope).is_some(),
                    (Accesses::Plain, _) => access.is_some_and(is_plain),
                    (Accesses::Noted, _) => access.is_some_and(is_plain) && access.is_some_and(is_noted),
                }
            }
            // Lanes that are not there are the interpreter's.
            Operation::Shuffle(_) => variant.full && code.insts[pc as usize].guard == UNGUARDED,
            _ => true,
        };
        operations[(pc - first) as usize] = known.then_some(operation);
    }
    if operations.iter().all(Option::is_none) {
        return None;
    }
    let compiled = Compiler::new(code, first, operations, variant).and_then(|mut compiler| {
        compiler.compile()?;
        compiler.finish(number)
    });
    debug_assert!(compiled.is_ok(), "the assembler refuses what is compiled: {:?}", compiled.as_ref().err());
    compiled.ok()?
}

/// What stands behind the code: a way out, or what is rare.
enum Stub {
    /// To the interpreter, at an instruction, with fuel that was not used. `counted`: its lanes were, if it has a guard.
    Exit { label: CodeLabel, pc: u32, refund: u32, counted: bool },
    /// Not all lanes of the path execute the instruction: they are counted, and if there are none, it is skipped.
    Some { label: CodeLabel, pc: u32, back: CodeLabel, skip: CodeLabel },
    /// From the interpreter to a place where registers hold strips.
    Entry { index: usize, to: CodeLabel, held: Vec<(AsmRegisterZmm, Strip)> },
}

/// The access that an instruction is.
fn access_of(inst: &Inst, operation: Operation) -> Option<Access> {
    match operation {
        Operation::Load => Some(Access { op: inst.x, write: false }),
        Operation::Store => Some(Access { op: inst.x, write: true }),
        Operation::Atomic(..) => Some(Access { op: inst.b, write: true }),
        _ => None,
    }
}

struct Compiler<'a> {
    a: CodeAssembler,
    code: &'a Code,
    first: u32,
    operations: Vec<Option<Operation>>,
    variant: Variant,
    /// By instruction: where it is entered from the interpreter, and where a segment begins that checks its fuel.
    places: Vec<Option<CodeLabel>>,
    begins: Vec<Option<CodeLabel>>,
    /// Fuel from an instruction to the end of its segment.
    needs: Vec<u32>,
    stubs: Vec<Stub>,
    leave: CodeLabel,
    /// The instruction has some lanes only, which are in `k6` and `k7`.
    masked: bool,
    held: Held,
    /// The code that notes accesses, by what they have in common.
    notes: Vec<(Noting, CodeLabel)>,
    /// Where instructions begin, in assembled ones; behind the last one, the exits.
    marks: Vec<(usize, u32)>,
}

fn at(offset: usize) -> AsmMemoryOperand {
    rbx + offset as i32
}

fn row32(row: u32, strip: i32) -> AsmMemoryOperand {
    r12 + (row as i32 * ROW32 + 64 * strip)
}

fn row64(row: u32, strip: i32) -> AsmMemoryOperand {
    r13 + (row as i32 * ROW64 + 64 * strip)
}

fn pred(row: u32) -> AsmMemoryOperand {
    dword_ptr(r14 + 4 * row as i32)
}

fn entered(pc: u32) -> (AsmMemoryOperand, AsmMemoryOperand) {
    let place = r15 + (size_of::<Counts>() * pc as usize) as i32;
    (qword_ptr(place + offset_of!(Counts, warps) as i32), qword_ptr(place + offset_of!(Counts, lanes) as i32))
}

impl<'a> Compiler<'a> {
    fn new(code: &'a Code, first: u32, operations: Vec<Option<Operation>>, variant: Variant) -> Result<Self> {
        let mut a = CodeAssembler::new(64)?;
        let leave = a.create_label();
        let count = operations.len();
        let stubs = Vec::new();
        let (begins, places, needs) = (vec![None; count], vec![None; count], vec![0; count]);
        Ok(Compiler {
            a,
            code,
            first,
            operations,
            variant,
            places,
            begins,
            needs,
            stubs,
            leave,
            masked: false,
            held: Held::default(),
            notes: Vec::new(),
            marks: Vec::new(),
        })
    }

    fn inst(&self, index: usize) -> &'a Inst {
        &self.code.insts[self.first as usize + index]
    }

    fn compile(&mut self) -> Result<()> {
        let count = self.operations.len();
        // Where segments begin: behind what is left to the interpreter, behind branches, and where they lead.
        let mut begins = vec![false; count];
        begins[0] = true;
        let mut length = 0;
        for index in 0..count {
            length = if begins[index] { 1 } else { length + 1 };
            let ends = matches!(self.operations[index], None | Some(Operation::Branch)) || length == LONGEST;
            if ends && index + 1 < count {
                begins[index + 1] = true;
            }
            if self.operations[index] == Some(Operation::Branch) {
                let target = self.inst(index).x.wrapping_sub(self.first) as usize;
                if let Some(begin) = begins.get_mut(target) {
                    *begin = true;
                }
            }
        }
        let mut need = 0;
        for index in (0..count).rev() {
            need = match self.operations[index] {
                None => 0,
                Some(_) if index + 1 < count && !begins[index + 1] => need + 1,
                Some(_) => 1,
            };
            self.needs[index] = need;
            if begins[index] && need != 0 {
                self.begins[index] = Some(self.a.create_label());
            }
        }
        self.prologue()?;
        for index in 0..count {
            let Some(operation) = self.operations[index] else { continue };
            if let Some(mut begin) = self.begins[index] {
                let exit = self.exit(index, 0);
                self.a.set_label(&mut begin)?;
                self.begins[index] = Some(begin);
                self.a.cmp(ebp, self.needs[index])?;
                self.a.jb(exit)?;
                self.a.sub(ebp, self.needs[index])?;
                self.held.clear();
            }
            self.marks.push((self.a.instructions().len(), self.first + index as u32));
            self.place(index)?;
            if cfg!(debug_assertions) && self.needs[index] == 1 {
                self.verify_held()?;
            }
            self.instruction(index, operation)?;
            if self.needs[index] == 1 {
                let next = self.target(index + 1);
                // The next segment stands behind this one, unless it is not there.
                if self.begins.get(index + 1).is_none_or(Option::is_none) {
                    self.a.jmp(next)?;
                }
            }
        }
        self.stubs()
    }

    /// The interpreter comes back at the beginning of a segment, and behind what it may have been asked to do.
    fn place(&mut self, index: usize) -> Result<()> {
        use Operation::{Atomic, Load, ReconvergencePoint, Shuffle, Store};
        let before = index.checked_sub(1).and_then(|before| self.operations[before]);
        let asked = matches!(before, Some(Load | Store | Atomic(..) | Shuffle(_) | ReconvergencePoint));
        if self.begins[index].is_none() && !asked {
            return Ok(());
        }
        let mut place = self.a.create_label();
        self.a.set_label(&mut place)?;
        self.a.zero_bytes()?;
        let held: Vec<_> = self.held.all().collect();
        match held.is_empty() {
            true => self.places[index] = Some(place),
            false => self.stubs.push(Stub::Entry { index, to: place, held }),
        }
        Ok(())
    }

    /// Where control goes for an instruction: its segment, or the interpreter.
    fn target(&mut self, index: usize) -> CodeLabel {
        match self.begins.get(index) {
            Some(&Some(begin)) => begin,
            _ => self.exit(index, 0),
        }
    }

    /// A way out to the interpreter.
    fn exit(&mut self, index: usize, refund: u32) -> CodeLabel {
        let label = self.a.create_label();
        self.stubs.push(Stub::Exit {
            label,
            pc: self.first.wrapping_add(index as u32),
            refund,
            counted: false,
        });
        label
    }

    /// The same at an access that native code does not do, with its guard.
    fn miss(&mut self, index: usize, inst: &Inst) -> CodeLabel {
        let label = self.a.create_label();
        let (pc, refund) = (self.first + index as u32, self.needs[index]);
        self.stubs.push(Stub::Exit { label, pc, refund, counted: inst.guard != UNGUARDED });
        label
    }

    /// The code is entered with the frame and the place to go to; it returns the next instruction.
    fn prologue(&mut self) -> Result<()> {
        let a = &mut self.a;
        for register in [rbx, rbp, r12, r13, r14, r15] {
            a.push(register)?;
        }
        a.mov(rbx, rdi)?;
        a.mov(r12, qword_ptr(at(offset_of!(Frame, w32))))?;
        a.mov(r13, qword_ptr(at(offset_of!(Frame, w64))))?;
        a.mov(r14, qword_ptr(at(offset_of!(Frame, pred))))?;
        a.mov(r15, qword_ptr(at(offset_of!(Frame, entered))))?;
        a.mov(ebp, dword_ptr(at(offset_of!(Frame, fuel))))?;
        a.jmp(rsi)?;
        let mut leave = self.leave;
        a.set_label(&mut leave)?;
        self.leave = leave;
        a.mov(dword_ptr(at(offset_of!(Frame, fuel))), ebp)?;
        a.vzeroupper()?;
        for register in [r15, r14, r13, r12, rbp, rbx] {
            a.pop(register)?;
        }
        a.ret()
    }

    fn stubs(&mut self) -> Result<()> {
        self.marks.push((self.a.instructions().len(), u32::MAX));
        for stub in std::mem::take(&mut self.stubs) {
            match stub {
                Stub::Exit { mut label, pc, refund, counted } => {
                    self.a.set_label(&mut label)?;
                    if counted {
                        self.count(pc, true)?;
                    }
                    self.a.mov(eax, pc)?;
                    if refund != 0 {
                        self.a.add(ebp, refund)?;
                    }
                    self.a.jmp(self.leave)?;
                }
                Stub::Some { mut label, pc, back, skip } => {
                    self.a.set_label(&mut label)?;
                    self.count(pc, false)?;
                    let a = &mut self.a;
                    let ((warps, _), (next_warps, _)) = (entered(pc), entered(pc + 1));
                    a.test(ecx, ecx)?;
                    a.jnz(back)?;
                    a.sub(warps, 1)?;
                    a.add(next_warps, 1)?;
                    a.jmp(skip)?;
                }
                Stub::Entry { index, to, held } => {
                    let mut label = self.a.create_label();
                    self.a.set_label(&mut label)?;
                    self.places[index] = Some(label);
                    for (register, strip) in held {
                        self.fetch(register, strip)?;
                    }
                    self.a.jmp(to)?;
                }
            }
        }
        self.noting()
    }

    /// Counts the lanes of `ecx` in the place of those of the path, or takes that back.
    fn count(&mut self, pc: u32, back: bool) -> Result<()> {
        let ((_, lanes), (_, next_lanes)) = (entered(pc), entered(pc + 1));
        let a = &mut self.a;
        a.popcnt(eax, ecx)?;
        a.sub(rax, qword_ptr(at(offset_of!(Frame, lanes))))?;
        if back {
            a.neg(rax)?;
        }
        a.add(qword_ptr(at(offset_of!(Frame, corrected))), rax)?;
        a.add(lanes, rax)?;
        a.sub(next_lanes, rax)
    }

    fn finish(mut self, number: u32) -> Result<Option<Compiled>> {
        let assembled = self.a.assemble_options(0, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
        let Some(page) = Page::new(&assembled.inner.code_buffer) else { return Ok(None) };
        let offsets = &assembled.inner.new_instruction_offsets;
        let begins = |&(at, pc): &(usize, u32)| (offsets.get(at).copied().unwrap_or(0) as usize, pc);
        let known = debug::show(&debug::Function {
            code: self.code,
            number,
            variant: self.variant,
            start: page.start(),
            bytes: &assembled.inner.code_buffer,
            marks: self.marks.iter().map(begins).collect(),
        });
        let mut entries = Vec::with_capacity(self.operations.len());
        for (index, operation) in self.operations.iter().enumerate() {
            let access = operation.and_then(|operation| access_of(self.inst(index), operation));
            entries.push(match &self.places[index] {
                Some(place) => {
                    Entry { at: assembled.label_ip(place)? as u32, need: self.needs[index], access }
                }
                None => Entry { access, ..Entry::NONE },
            });
        }
        if cfg!(debug_assertions) {
            self.verify(&assembled.inner.code_buffer, &entries);
        }
        let (first, variant, entries) = (self.first, self.variant, entries.into());
        Ok(Some(Compiled { first, variant, entries, _known: known, page }))
    }

    /// `ecx` = the lanes of the path for which a guard holds: equal, if that is all of them.
    fn lanes_of(&mut self, guard: u32) -> Result<()> {
        self.predicate(ecx, guard)?;
        if self.variant.full {
            return self.a.cmp(ecx, -1);
        }
        self.a.and(ecx, dword_ptr(at(offset_of!(Frame, active))))?;
        self.a.cmp(ecx, dword_ptr(at(offset_of!(Frame, active))))
    }

    /// A register = the lanes for which a predicate operand holds.
    fn predicate(&mut self, into: AsmRegister32, operand: u32) -> Result<()> {
        self.a.mov(into, pred(operand >> 1))?;
        if operand & 1 != 0 {
            self.a.not(into)?;
        }
        Ok(())
    }

    /// An instruction. Its fuel is taken already.
    fn instruction(&mut self, index: usize, operation: Operation) -> Result<()> {
        let inst = self.inst(index);
        if operation == Operation::Branch {
            return self.branch(index, inst);
        }
        let mut skip = None;
        self.masked = inst.guard != UNGUARDED || !self.variant.full;
        if inst.guard != UNGUARDED {
            let (some, mut back, behind) =
                (self.a.create_label(), self.a.create_label(), self.a.create_label());
            self.lanes_of(inst.guard)?;
            self.a.jne(some)?;
            self.a.set_label(&mut back)?;
            let pc = self.first + index as u32;
            self.stubs.push(Stub::Some { label: some, pc, back, skip: behind });
            skip = Some(behind);
        } else if self.masked {
            self.a.mov(ecx, dword_ptr(at(offset_of!(Frame, active))))?;
        }
        if self.masked {
            self.a.kmovd(k6, ecx)?;
            self.a.kshiftrd(k7, k6, 16)?;
        }
        self.held.skipped = skip.is_some();
        self.operation(index, inst, operation)?;
        self.held.skipped = false;
        if let Some(mut skip) = skip {
            self.a.set_label(&mut skip)?;
            self.a.zero_bytes()?;
        }
        Ok(())
    }

    fn branch(&mut self, index: usize, inst: &Inst) -> Result<()> {
        let pc = self.first + index as u32;
        let ((next_warps, next_lanes), (to_warps, to_lanes)) = (entered(pc + 1), entered(inst.x));
        let taken = self.target(inst.x.wrapping_sub(self.first) as usize);
        if inst.guard != UNGUARDED {
            // The interpreter divides a path.
            let divided = self.exit(index, 1);
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
}
