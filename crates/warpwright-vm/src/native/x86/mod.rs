//! The compiler: each instruction becomes a few vector instructions on its rows, of AVX-512 or of AVX2.
//!
//! What does not depend on the width of vectors stands here once: segments, the ways in and out, fuel, counts, guards,
//! branches and predicates. What the [levels](Vectors) do differently is in `avx512` and `avx2`.
//!
//! | register | holds |
//! | --- | --- |
//! | `rbx` | the [`Frame`] |
//! | `r12`, `r13`, `r14` | the rows of 32 and 64 bits, and the predicates |
//! | `r15` | [`State::entered`](super::State::entered) |
//! | `ebp` | fuel |
//! | `ecx` | the lanes of an instruction, where they are not all; the levels have them in other registers, too |
//!
//! A row is worked on in strips of a vector register, which [hold](held) them until they are needed for others.

/// An instruction for words, or the same for 64 bits.
macro_rules! of_width {
    ($compiler:expr, $wide:expr, $narrow:ident | $long:ident ($($operand:expr),*)) => {
        if $wide { $compiler.a.$long($($operand),*)? } else { $compiler.a.$narrow($($operand),*)? }
    };
}

mod access;
mod avx2;
mod avx512;
mod branch;
mod held;
mod routine;
mod verify;

use super::debug;
use super::frame::Frame;
use super::functions::{Access, Accesses, Compiled, Entry, Variant, instructions};
use super::page::Page;
use super::{Lane, Logic, Native, Operation};
use crate::decode::Code;
use crate::machine::{Counts, Inst, NONE, UNGUARDED};
use crate::memory::MemoryOp;
use crate::simd::Level;
use access::{Noted, Together, can_be_noted, is_plain};
use avx2::Avx2;
use avx512::Avx512;
use avx512::note::{Noting, noted_as};
use held::{Held, Strip};
use iced_x86::code_asm::*;
use iced_x86::{BlockEncoderOptions, IcedError};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ops::Range;

type Result<T> = std::result::Result<T, IcedError>;

/// Instructions of a segment, at most: a turn of a warp has some thousands.
const LONGEST: usize = 128;

/// Bytes of the rows of 32 and 64 bits.
const ROW32: i32 = 128;
const ROW64: i32 = 256;

/// A level of vector instructions: its registers, and what depends on them.
trait Vectors: Sized {
    type Register: Copy + 'static;

    /// Bytes of a register.
    const BYTES: i32;
    /// Registers that hold strips, and which of them are for what is read, and for results.
    const HOLD: &'static [Self::Register];
    const SOURCES: Range<usize>;
    const RESULTS: Range<usize>;
    /// Results stay in registers while they can.
    const KEEPS_RESULTS: bool;
    /// Where results are made, and where what a strip held is found when it changes in part.
    const RESULT: Self::Register;
    const OLD: Self::Register;

    fn load(a: &mut CodeAssembler, into: Self::Register, from: AsmMemoryOperand) -> Result<()>;

    fn store(a: &mut CodeAssembler, to: AsmMemoryOperand, from: Self::Register) -> Result<()>;

    /// Sets the carry if a register is equal to what is in memory.
    fn compare(a: &mut CodeAssembler, register: Self::Register, with: AsmMemoryOperand) -> Result<()>;

    /// Copies the result.
    fn copy(a: &mut CodeAssembler, into: Self::Register) -> Result<()>;

    /// Whether it compiles an operation, or leaves it to the interpreter.
    fn has(operation: Operation) -> bool;

    /// Puts the lanes of `ecx` where they are needed for the instruction.
    fn mask(of: &mut Compiler<'_, Self>) -> Result<()>;

    /// The lanes of a strip that do not execute the instruction have what is in a register, not the result.
    fn blend(of: &mut Compiler<'_, Self>, old: Self::Register, strip: Strip) -> Result<()>;

    /// Of the results of 16 bits, those above become zeros.
    fn zeros_above_half(of: &mut Compiler<'_, Self>) -> Result<()>;

    /// An operation on rows.
    fn operation(of: &mut Compiler<'_, Self>, index: usize, inst: &Inst, operation: Operation) -> Result<()>;

    /// A load or store.
    fn access(of: &mut Compiler<'_, Self>, index: usize, inst: &Inst, write: bool) -> Result<()>;

    /// Goes to a label unless the addresses of all lanes follow that of the first one.
    fn compare_addresses(
        of: &mut Compiler<'_, Self>,
        op: &MemoryOp,
        together: Together,
        unless: CodeLabel,
    ) -> Result<()>;

    /// Where the lanes access memory, from `rdx` on; `r9d` = what the access does. By the interpreter, if the cache of the
    /// access does not answer for all lanes.
    fn addresses(of: &mut Compiler<'_, Self>, number: u32, miss: CodeLabel) -> Result<()>;

    /// Has these in the frame; `r10d` = the lanes.
    fn keep_addresses(of: &mut Compiler<'_, Self>) -> Result<()>;

    /// Eight lanes after the other load sixteen bytes each, a row of a matrix of halves, which goes to a row of registers; by
    /// the addresses in the frame, from `rdx` on.
    fn load_sixteen(of: &mut Compiler<'_, Self>, rows: &[Option<u32>], transposed: bool) -> Result<()>;

    /// Notes an access to shared memory for the race check, of whole warps `ascending` from `rdx` on, or of any lanes where
    /// [`addresses`](Vectors::addresses) has them; or leaves it to the interpreter.
    fn note(of: &mut Compiler<'_, Self>, noted: &Noted<'_>, miss: CodeLabel) -> Result<()>;

    /// Keeps what a routine needs of an access, and what it would change of it, and restores that.
    fn keep(of: &mut Compiler<'_, Self>, ascending: bool) -> Result<()>;
    fn restore(of: &mut Compiler<'_, Self>, ascending: bool) -> Result<()>;

    /// The routines that do so.
    fn noting(of: &mut Compiler<'_, Self>) -> Result<()>;

    /// The strips of a row of 32 or of 64 bits.
    fn strips(wide: bool) -> Range<i32> {
        0..(if wide { ROW64 } else { ROW32 }) / Self::BYTES
    }
}

/// Compiles a function; `None` if this processor or process cannot have it, or if there is nothing to compile.
pub(super) fn compile(code: &Code, number: u32, variant: Variant) -> Option<Compiled> {
    if Native::unavailable().is_some() {
        return None;
    }
    match Level::detect() {
        level if level.has_avx512() => compile_for::<Avx512>(code, number, variant),
        level if level.has_avx2() => compile_for::<Avx2>(code, number, variant),
        _ => None,
    }
}

fn compile_for<V: Vectors>(code: &Code, number: u32, variant: Variant) -> Option<Compiled> {
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
            Operation::LoadMatrices { .. } => {
                let Inst { b, guard, .. } = code.insts[pc as usize];
                let is_whole = variant.full && guard == UNGUARDED;
                let is_unseen = variant.accesses == Accesses::Plain && !variant.counted;
                is_whole && is_unseen && is_plain(&code.memory[b as usize], false)
            }
            // Lanes that are not there are the interpreter's.
            Operation::Shuffle(_) | Operation::MultiplyFragments { .. } => {
                variant.full && code.insts[pc as usize].guard == UNGUARDED
            }
            _ => true,
        };
        let known = known && V::has(operation);
        operations[(pc - first) as usize] = known.then_some(operation);
    }
    if operations.iter().all(Option::is_none) {
        return None;
    }
    let compiled = Compiler::<V>::new(code, first, operations, variant).and_then(|mut compiler| {
        compiler.compile()?;
        compiler.finish(number)
    });
    debug_assert!(compiled.is_ok(), "the assembler refuses what is compiled: {:?}", compiled.as_ref().err());
    compiled.ok()?
}

/// What stands behind the code: a way out, or what is rare.
enum Stub {
    /// To the interpreter, at an instruction, with fuel that was not used. `counted`: its lanes were, if it has a guard.
    /// From an arm of a branch, if there is one. With results that are not in their rows.
    Exit {
        label: CodeLabel,
        pc: u32,
        refund: u32,
        counted: bool,
        branch: Option<u32>,
        unsaved: Vec<(usize, Strip)>,
    },
    /// Not all lanes of the path execute the instruction: they are counted, and if there are none, it is skipped.
    Some { label: CodeLabel, pc: u32, back: CodeLabel, skip: CodeLabel },
    /// From the interpreter to a place where registers hold strips.
    Entry { index: usize, to: CodeLabel, held: Vec<(usize, Strip)> },
}

/// The access that an instruction is.
fn access_of(inst: &Inst, operation: Operation) -> Option<Access> {
    match operation {
        Operation::Load => Some(Access { op: inst.x, write: false }),
        Operation::Store => Some(Access { op: inst.x, write: true }),
        Operation::LoadMatrices { .. } => Some(Access { op: inst.b, write: false }),
        Operation::Atomic(..) => Some(Access { op: inst.b, write: true }),
        _ => None,
    }
}

struct Compiler<'a, V> {
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
    /// Branches that have an arm, where their lanes may differ; and the one whose arm is compiled.
    arms: Vec<(CodeLabel, usize)>,
    arm_of_branch: Option<u32>,
    leave: CodeLabel,
    /// The instruction has some lanes only, which are in `ecx`.
    masked: bool,
    held: Held,
    /// The code that notes accesses, by what they have in common.
    notes: Vec<(Noting, CodeLabel)>,
    /// Where instructions begin, in assembled ones; behind the last one, the exits.
    marks: Vec<(usize, u32)>,
    vectors: PhantomData<V>,
}

fn at(offset: usize) -> AsmMemoryOperand {
    rbx + offset as i32
}

/// A row, from one of its bytes on.
fn row32(row: u32, byte: i32) -> AsmMemoryOperand {
    r12 + (row as i32 * ROW32 + byte)
}

fn row64(row: u32, byte: i32) -> AsmMemoryOperand {
    r13 + (row as i32 * ROW64 + byte)
}

fn pred(row: u32) -> AsmMemoryOperand {
    dword_ptr(r14 + 4 * row as i32)
}

fn entered(pc: u32) -> (AsmMemoryOperand, AsmMemoryOperand) {
    let place = r15 + (size_of::<Counts>() * pc as usize) as i32;
    (qword_ptr(place + offset_of!(Counts, warps) as i32), qword_ptr(place + offset_of!(Counts, lanes) as i32))
}

impl<'a, V: Vectors> Compiler<'a, V> {
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
            arms: Vec::new(),
            arm_of_branch: None,
            leave,
            masked: false,
            held: Held::default(),
            notes: Vec::new(),
            marks: Vec::new(),
            vectors: PhantomData,
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
                self.save_all()?;
                let next = self.target(index + 1);
                // The next segment stands behind this one, unless it is not there.
                if self.begins.get(index + 1).is_none_or(Option::is_none) {
                    self.a.jmp(next)?;
                }
            }
        }
        self.arms()?;
        self.stubs()
    }

    /// The interpreter comes back at the beginning of a segment, and behind what it may have been asked to do.
    fn place(&mut self, index: usize) -> Result<()> {
        use Operation::*;
        let before = index.checked_sub(1).and_then(|before| self.operations[before]);
        let asked = matches!(
            before,
            Some(
                Load | Store
                    | LoadMatrices { .. }
                    | MultiplyFragments { .. }
                    | Atomic(..)
                    | Shuffle(_)
                    | ReconvergencePoint
            )
        );
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
            branch: None,
            unsaved: self.held.unsaved().collect(),
        });
        label
    }

    /// The same at an access that native code does not do, with its guard.
    fn miss(&mut self, index: usize, inst: &Inst) -> CodeLabel {
        let label = self.a.create_label();
        let (pc, branch) = (self.first + index as u32, self.arm_of_branch);
        let refund = self.needs[index] + u32::from(branch.is_some());
        let (counted, unsaved) = (inst.guard != UNGUARDED, self.held.unsaved().collect());
        self.stubs.push(Stub::Exit { label, pc, refund, counted, branch, unsaved });
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
                Stub::Exit { mut label, pc, refund, counted, branch, unsaved } => {
                    self.a.set_label(&mut label)?;
                    for (at, strip) in unsaved {
                        V::store(&mut self.a, held::place::<V>(strip), V::HOLD[at])?;
                    }
                    if counted {
                        self.count(pc, true)?;
                    }
                    if let Some(branch) = branch {
                        self.leave_arm(branch, refund)?;
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
                    for (at, strip) in held {
                        self.fetch(V::HOLD[at], strip)?;
                    }
                    self.a.jmp(to)?;
                }
            }
        }
        V::noting(self)
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
        self.prepare(inst, operation)?;
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
            V::mask(self)?;
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

    fn operation(&mut self, index: usize, inst: &Inst, operation: Operation) -> Result<()> {
        match operation {
            Operation::Predicates(logic) => {
                self.predicate(eax, inst.a)?;
                self.predicate(edx, inst.b)?;
                match logic {
                    Logic::And => self.a.and(eax, edx)?,
                    Logic::Or => self.a.or(eax, edx)?,
                    Logic::Xor => self.a.xor(eax, edx)?,
                    Logic::Not => self.a.not(eax)?,
                }
                self.set_predicate(inst.d, eax)
            }
            Operation::CopyPredicate => {
                self.predicate(eax, inst.a)?;
                self.set_predicate(inst.d, eax)
            }
            Operation::ReconvergencePoint => {
                let exit = self.exit(index, self.needs[index]);
                self.a.cmp(
                    dword_ptr(at(offset_of!(Frame, reconverges_at))),
                    self.first as i32 + index as i32,
                )?;
                self.a.je(exit)
            }
            Operation::Load => V::access(self, index, inst, false),
            Operation::Store => V::access(self, index, inst, true),
            Operation::LoadMatrices { transposed } => {
                let miss = self.miss(index, inst);
                V::addresses(self, inst.b, miss)?;
                V::keep_addresses(self)?;
                self.a.or(dword_ptr(at(offset_of!(Frame, flags))), r9d)?;
                V::load_sixteen(self, self.code.matrix.transfers[inst.x as usize].registers(), transposed)
            }
            Operation::Atomic(op, lane, scope) => self.atomic(index, inst, (op, lane), scope),
            Operation::Nothing => Ok(()),
            _ => V::operation(self, index, inst, operation),
        }
    }

    /// `compute` makes each strip of `d`, of these lanes, from one of `a`, where results are made.
    fn unary(
        &mut self,
        inst: &Inst,
        lane: Lane,
        compute: impl Fn(&mut Self, V::Register) -> Result<()>,
    ) -> Result<()> {
        for strip in V::strips(lane.is_wide()) {
            let a = self.raw(lane.is_wide(), inst.a, strip)?;
            compute(self, a)?;
            self.put(lane, inst.d, strip)?;
        }
        Ok(())
    }

    /// The lanes of `value` become those of a predicate.
    fn set_predicate(&mut self, row: u32, value: AsmRegister32) -> Result<()> {
        let a = &mut self.a;
        if self.masked {
            // The lanes of the instruction are still in `ecx`.
            a.mov(r8d, pred(row))?;
            a.xor(value, r8d)?;
            a.and(value, ecx)?;
            a.xor(value, r8d)?;
        }
        a.mov(pred(row), value)
    }

    /// The lanes of `eax`, for which a comparison holds or, if `inverse`, does not, become those of its predicates.
    fn set_conditions(&mut self, inst: &Inst, inverse: bool) -> Result<()> {
        let a = &mut self.a;
        // A complement, and what it is combined with: see the handler.
        if (inst.imm & 4 != 0) != inverse {
            a.not(eax)?;
        }
        a.mov(esi, eax)?;
        a.not(esi)?;
        if inst.imm & 3 != 0 {
            self.predicate(edx, inst.c)?;
            for value in [eax, esi] {
                match inst.imm & 3 {
                    1 => self.a.and(value, edx)?,
                    2 => self.a.or(value, edx)?,
                    _ => self.a.xor(value, edx)?,
                }
            }
        }
        if inst.d != NONE {
            self.set_predicate(inst.d, eax)?;
        }
        if inst.x != NONE {
            self.set_predicate(inst.x, esi)?;
        }
        Ok(())
    }
}
