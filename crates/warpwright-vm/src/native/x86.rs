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
//! A row is worked on in strips of a vector register. Results for some lanes are blended with what the row holds, and
//! stored whole: a row is the warp's own, and a store under a mask would not be forwarded to the loads behind it. Memory is
//! never written so.

use super::frame::{Cache, Frame, OUTWARD, PROGRESS, READ};
use super::functions::{Compiled, Entry, Variant};
use super::page::Page;
use super::{Binary, Lane, Logic, Operation, Relation};
use crate::decode::Code;
use crate::machine::{Counts, Inst, NONE, UNGUARDED};
use crate::memory::{Element, MemoryOp, SpaceKind};
use iced_x86::code_asm::*;
use iced_x86::{BlockEncoderOptions, IcedError};
use std::mem::offset_of;

type Result<T> = std::result::Result<T, IcedError>;

/// Instructions of a segment, at most: a turn of a warp has some thousands.
const LONGEST: usize = 128;

/// Bytes of the rows of 32 and 64 bits.
const ROW32: i32 = 128;
const ROW64: i32 = 256;

/// Compiles a function; `None` if this processor or process cannot have it, or if there is nothing to compile.
pub(super) fn compile(code: &Code, number: u32, variant: Variant) -> Option<Compiled> {
    if !crate::simd::Level::detect().has_avx512() {
        return None;
    }
    let first = code.functions[number as usize].entry;
    let end = code.functions.get(number as usize + 1).map_or(code.insts.len() as u32, |next| next.entry);
    let mut operations = vec![None; (end - first) as usize];
    let from = code.operations.partition_point(|&(pc, _)| pc < first);
    for &(pc, operation) in code.operations[from..].iter().take_while(|&&(pc, _)| pc < end) {
        let known = match operation {
            Operation::Load | Operation::Store => {
                let write = operation == Operation::Store;
                variant.memory && is_plain(&code.memory[code.insts[pc as usize].x as usize], write)
            }
            _ => true,
        };
        operations[(pc - first) as usize] = known.then_some(operation);
    }
    if operations.iter().all(Option::is_none) {
        return None;
    }
    let compiled = Compiler::new(code, first, operations, variant).and_then(|mut compiler| {
        compiler.compile()?;
        compiler.finish()
    });
    debug_assert!(compiled.is_ok(), "the assembler refuses what is compiled: {:?}", compiled.as_ref().err());
    compiled.ok()?
}

/// Whether native code does an access.
fn is_plain(op: &MemoryOp, write: bool) -> bool {
    use SpaceKind::*;
    let elements = op.elements.iter().all(|element| match (*element, op.bytes) {
        (Element::Sink, _) | (Element::Narrow(_) | Element::Wide(_), 4) | (Element::Wide(_), 8) => true,
        (Element::Narrow(_), 1 | 2) => !write,
        _ => false,
    });
    let space = matches!(op.space, Global | Generic | Const | Shared) || op.space == Param && !write;
    op.order.strong.is_none()
        && !op.address.frame
        && elements
        && space
        && op.bytes * op.elements.len() as u32 <= 16
}

/// What stands behind the code: a way out, or what is rare.
enum Stub {
    /// To the interpreter, at an instruction, with fuel that was not used. `counted`: its lanes were, if it has a guard.
    Exit { label: CodeLabel, pc: u32, refund: u32, counted: bool },
    /// Not all lanes of the path execute the instruction: they are counted, and if there are none, it is skipped.
    Some { label: CodeLabel, pc: u32, back: CodeLabel, skip: CodeLabel },
}

struct Compiler<'a> {
    a: CodeAssembler,
    code: &'a Code,
    first: u32,
    operations: Vec<Option<Operation>>,
    variant: Variant,
    /// By instruction: where it is entered from the interpreter, and where a segment begins that checks its fuel.
    places: Vec<CodeLabel>,
    begins: Vec<Option<CodeLabel>>,
    /// Fuel from an instruction to the end of its segment.
    needs: Vec<u32>,
    stubs: Vec<Stub>,
    leave: CodeLabel,
    /// The instruction has some lanes only, which are in `k6` and `k7`.
    masked: bool,
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

/// Eight lanes of a row of 32 bits.
fn row32_eight(row: u32, strip: i32) -> AsmMemoryOperand {
    r12 + (row as i32 * ROW32 + 32 * strip)
}

fn pred(row: u32) -> AsmMemoryOperand {
    dword_ptr(r14 + 4 * row as i32)
}

fn entered(pc: u32) -> (AsmMemoryOperand, AsmMemoryOperand) {
    let place = r15 + (size_of::<Counts>() * pc as usize) as i32;
    (qword_ptr(place + offset_of!(Counts, warps) as i32), qword_ptr(place + offset_of!(Counts, lanes) as i32))
}

/// Where the addresses of the lanes are, in 32 bits.
const HALVES: [AsmRegisterZmm; 2] = [zmm2, zmm3];

impl<'a> Compiler<'a> {
    fn new(code: &'a Code, first: u32, operations: Vec<Option<Operation>>, variant: Variant) -> Result<Self> {
        let mut a = CodeAssembler::new(64)?;
        let places = operations.iter().map(|_| a.create_label()).collect();
        let leave = a.create_label();
        let count = operations.len();
        let stubs = Vec::new();
        let (begins, needs) = (vec![None; count], vec![0; count]);
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
            }
            let mut place = self.places[index];
            self.a.set_label(&mut place)?;
            self.places[index] = place;
            self.a.zero_bytes()?;
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
            }
        }
        Ok(())
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

    fn finish(mut self) -> Result<Option<Compiled>> {
        let assembled = self.a.assemble_options(0, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
        let Some(page) = Page::new(&assembled.inner.code_buffer) else { return Ok(None) };
        let mut entries = Vec::with_capacity(self.operations.len());
        for (index, operation) in self.operations.iter().enumerate() {
            entries.push(match operation {
                Some(_) => {
                    Entry { at: assembled.label_ip(&self.places[index])? as u32, need: self.needs[index] }
                }
                None => Entry::NONE,
            });
        }
        let accesses = (self.first..).zip(&self.operations).filter_map(|(pc, operation)| match operation {
            Some(Operation::Load) => Some((pc, false)),
            Some(Operation::Store) => Some((pc, true)),
            _ => None,
        });
        Ok(Some(Compiled { first: self.first, entries: entries.into(), accesses: accesses.collect(), page }))
    }

    /// `ecx` = the lanes for which a predicate operand holds.
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
            self.predicate(ecx, inst.guard)?;
            let (some, mut back, behind) =
                (self.a.create_label(), self.a.create_label(), self.a.create_label());
            if self.variant.full {
                self.a.cmp(ecx, -1)?;
            } else {
                self.a.and(ecx, dword_ptr(at(offset_of!(Frame, active))))?;
                self.a.cmp(ecx, dword_ptr(at(offset_of!(Frame, active))))?;
            }
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
        self.operation(index, inst, operation)?;
        if let Some(mut skip) = skip {
            self.a.set_label(&mut skip)?;
            self.a.zero_bytes()?;
        }
        Ok(())
    }

    fn operation(&mut self, index: usize, inst: &Inst, operation: Operation) -> Result<()> {
        match operation {
            Operation::Binary(binary, Lane::F32) => self.floats(inst, binary),
            Operation::Binary(binary, lane) if lane.is_wide() => self.binary64(inst, binary, lane),
            Operation::Binary(binary, lane) => self.binary32(inst, binary, lane),
            Operation::Wide(lane, adds) => self.wide(inst, lane, adds),
            Operation::MulHigh(lane) => {
                for strip in 0..2 {
                    for (part, into) in [(0, ymm0), (1, ymm1)] {
                        self.product(inst, lane, 2 * strip + part)?;
                        self.a.vpsrlq(zmm4, zmm4, 32)?;
                        self.a.vpmovqd(into, zmm4)?;
                    }
                    self.a.vinserti64x4(zmm0, zmm0, ymm1, 1)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Not(lane) => {
                self.a.vpternlogd(zmm5, zmm5, zmm5, 0xff)?;
                for strip in self.strips(lane) {
                    match lane.is_wide() {
                        true => self.a.vpxorq(zmm0, zmm5, zmmword_ptr(row64(inst.a, strip)))?,
                        false => self.a.vpxord(zmm0, zmm5, zmmword_ptr(row32(inst.a, strip)))?,
                    }
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Copy(lane) => {
                for strip in self.strips(lane) {
                    self.load(zmm0, lane, inst.a, strip)?;
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Lop3 => {
                for strip in 0..2 {
                    self.load(zmm0, Lane::U32, inst.a, strip)?;
                    self.load(zmm1, Lane::U32, inst.b, strip)?;
                    self.a.vpternlogd(zmm0, zmm1, zmmword_ptr(row32(inst.c, strip)), inst.imm as u32)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Select(lane) => {
                self.predicate(eax, inst.c)?;
                self.a.kmovd(k1, eax)?;
                for strip in self.strips(lane) {
                    self.load(zmm0, lane, inst.b, strip)?;
                    match lane.is_wide() {
                        true => self.a.vmovdqu64(zmm0.k1(), zmmword_ptr(row64(inst.a, strip)))?,
                        false => self.a.vmovdqu32(zmm0.k1(), zmmword_ptr(row32(inst.a, strip)))?,
                    }
                    self.a.kshiftrd(k1, k1, if lane.is_wide() { 8 } else { 16 })?;
                    self.put(lane, inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extend { bits, signed, wide: false } => {
                for strip in 0..2 {
                    self.a.vpslld(zmm0, zmmword_ptr(row32(inst.a, strip)), 32 - bits)?;
                    match signed {
                        true => self.a.vpsrad(zmm0, zmm0, 32 - bits)?,
                        false => self.a.vpsrld(zmm0, zmm0, 32 - bits)?,
                    }
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extend { bits, signed, wide: true } => {
                for strip in 0..4 {
                    self.extend(zmm0, if signed { Lane::S32 } else { Lane::U32 }, inst.a, strip)?;
                    if bits < 32 {
                        self.a.vpsllq(zmm0, zmm0, 64 - bits)?;
                        match signed {
                            true => self.a.vpsraq(zmm0, zmm0, 64 - bits)?,
                            false => self.a.vpsrlq(zmm0, zmm0, 64 - bits)?,
                        }
                    }
                    self.put64(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::LowHalf => {
                for strip in 0..2 {
                    self.low_words(inst.a, strip)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::PackHalves => {
                for strip in 0..2 {
                    self.load(zmm0, Lane::U16, inst.a, strip)?;
                    self.a.vpslld(zmm1, zmmword_ptr(row32(inst.b, strip)), 16)?;
                    self.a.vpord(zmm0, zmm0, zmm1)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::PackWords => {
                for strip in 0..4 {
                    self.extend(zmm0, Lane::U32, inst.a, strip)?;
                    self.extend(zmm1, Lane::U32, inst.b, strip)?;
                    self.a.vpsllq(zmm1, zmm1, 32)?;
                    self.a.vporq(zmm0, zmm0, zmm1)?;
                    self.put64(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::SplitPair => {
                for strip in 0..2 {
                    if inst.d != NONE {
                        self.low_words(inst.a, strip)?;
                        self.put32(inst.d, strip)?;
                    }
                    if inst.b != NONE {
                        for (part, into) in [(0, ymm0), (1, ymm1)] {
                            self.load(zmm2, Lane::U64, inst.a, 2 * strip + part)?;
                            self.a.vpsrlq(zmm2, zmm2, 32)?;
                            self.a.vpmovqd(into, zmm2)?;
                        }
                        self.a.vinserti64x4(zmm0, zmm0, ymm1, 1)?;
                        self.put32(inst.b, strip)?;
                    }
                }
                Ok(())
            }
            Operation::ToFloat(lane) => {
                for strip in 0..2 {
                    self.load(zmm0, lane, inst.a, strip)?;
                    match lane {
                        Lane::S16 | Lane::S32 => self.a.vcvtdq2ps(zmm0, zmm0)?,
                        _ => self.a.vcvtudq2ps(zmm0, zmm0)?,
                    }
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::FromBf16 => {
                for strip in 0..2 {
                    self.a.vpslld(zmm0, zmmword_ptr(row32(inst.a, strip)), 16)?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Negate => {
                for strip in 0..2 {
                    self.a.vpternlogd(zmm1, zmm1, zmm1, 0xff)?;
                    self.a.vpslld(zmm1, zmm1, 31)?;
                    self.a.vpxord(zmm0, zmm1, zmmword_ptr(row32(inst.a, strip)))?;
                    self.canonical()?;
                    self.put32(inst.d, strip)?;
                }
                Ok(())
            }
            Operation::Extremum { max, nan } => self.extremum(inst, max, nan),
            Operation::Dp4a(signed) => self.dot_product(inst, signed),
            Operation::Compare(relation, lane) => self.compare(inst, relation, lane),
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
            Operation::Load => self.access(index, inst, false),
            Operation::Store => self.access(index, inst, true),
            Operation::Nothing => Ok(()),
            // It ends a segment.
            Operation::Branch => Ok(()),
        }
    }

    /// The strips of a row.
    fn strips(&self, lane: Lane) -> std::ops::Range<i32> {
        if lane.is_wide() { 0..4 } else { 0..2 }
    }

    /// A strip of a row. Of 16 bits, those above are the sign or zeros, whatever the row has there.
    fn load(&mut self, into: AsmRegisterZmm, lane: Lane, row: u32, strip: i32) -> Result<()> {
        match lane {
            Lane::U64 | Lane::S64 => self.a.vmovdqu64(into, zmmword_ptr(row64(row, strip))),
            Lane::U16 => {
                self.a.vmovdqu32(into, zmmword_ptr(row32(row, strip)))?;
                self.a.vpandd(into, into, dword_bcst(at(offset_of!(Frame, half))))
            }
            Lane::S16 => {
                self.a.vpslld(into, zmmword_ptr(row32(row, strip)), 16)?;
                self.a.vpsrad(into, into, 16)
            }
            Lane::U32 | Lane::S32 | Lane::F32 => self.a.vmovdqu32(into, zmmword_ptr(row32(row, strip))),
        }
    }

    /// Eight words of a row, with their sign or zeros above.
    fn extend(&mut self, into: AsmRegisterZmm, lane: Lane, row: u32, strip: i32) -> Result<()> {
        match lane {
            Lane::S32 => self.a.vpmovsxdq(into, ymmword_ptr(row32_eight(row, strip))),
            _ => self.a.vpmovzxdq(into, ymmword_ptr(row32_eight(row, strip))),
        }
    }

    /// `zmm0` = the low words of sixteen lanes of a row of 64 bits.
    fn low_words(&mut self, row: u32, strip: i32) -> Result<()> {
        for (part, into) in [(0, ymm0), (1, ymm1)] {
            self.load(zmm2, Lane::U64, row, 2 * strip + part)?;
            self.a.vpmovqd(into, zmm2)?;
        }
        self.a.vinserti64x4(zmm0, zmm0, ymm1, 1)
    }

    /// The lanes of `zmm0` become a strip of a row.
    fn put(&mut self, lane: Lane, row: u32, strip: i32) -> Result<()> {
        if lane.is_half() {
            self.a.vpandd(zmm0, zmm0, dword_bcst(at(offset_of!(Frame, half))))?;
        }
        if lane.is_wide() { self.put64(row, strip) } else { self.put32(row, strip) }
    }

    fn put32(&mut self, row: u32, strip: i32) -> Result<()> {
        let to = zmmword_ptr(row32(row, strip));
        if !self.masked {
            return self.a.vmovdqu32(to, zmm0);
        }
        self.a.vmovdqu32(zmm31, to)?;
        match strip {
            0 => self.a.vmovdqa32(zmm31.k6(), zmm0)?,
            _ => self.a.vmovdqa32(zmm31.k7(), zmm0)?,
        }
        self.a.vmovdqu32(to, zmm31)
    }

    fn put64(&mut self, row: u32, strip: i32) -> Result<()> {
        let to = zmmword_ptr(row64(row, strip));
        if !self.masked {
            return self.a.vmovdqu64(to, zmm0);
        }
        self.a.kshiftrd(k5, k6, 8 * strip as u32)?;
        self.a.vmovdqu64(zmm31, to)?;
        self.a.vmovdqa64(zmm31.k5(), zmm0)?;
        self.a.vmovdqu64(to, zmm31)
    }

    fn binary32(&mut self, inst: &Inst, binary: Binary, lane: Lane) -> Result<()> {
        let signed = matches!(lane, Lane::S16 | Lane::S32);
        let shifts = matches!(binary, Binary::ShiftLeft | Binary::ShiftRight);
        for strip in 0..2 {
            self.load(zmm0, lane, inst.a, strip)?;
            self.load(zmm1, if shifts { Lane::U32 } else { lane }, inst.b, strip)?;
            let a = &mut self.a;
            match binary {
                Binary::Add => a.vpaddd(zmm0, zmm0, zmm1)?,
                Binary::Sub => a.vpsubd(zmm0, zmm0, zmm1)?,
                Binary::Mul => a.vpmulld(zmm0, zmm0, zmm1)?,
                Binary::MulAdd => {
                    a.vpmulld(zmm0, zmm0, zmm1)?;
                    a.vpaddd(zmm0, zmm0, zmmword_ptr(row32(inst.c, strip)))?;
                }
                Binary::And => a.vpandd(zmm0, zmm0, zmm1)?,
                Binary::Or => a.vpord(zmm0, zmm0, zmm1)?,
                Binary::Xor => a.vpxord(zmm0, zmm0, zmm1)?,
                Binary::Min if signed => a.vpminsd(zmm0, zmm0, zmm1)?,
                Binary::Min => a.vpminud(zmm0, zmm0, zmm1)?,
                Binary::Max if signed => a.vpmaxsd(zmm0, zmm0, zmm1)?,
                Binary::Max => a.vpmaxud(zmm0, zmm0, zmm1)?,
                Binary::ShiftLeft => a.vpsllvd(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight if signed => a.vpsravd(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight => a.vpsrlvd(zmm0, zmm0, zmm1)?,
            }
            self.put(lane, inst.d, strip)?;
        }
        Ok(())
    }

    fn binary64(&mut self, inst: &Inst, binary: Binary, lane: Lane) -> Result<()> {
        let signed = lane == Lane::S64;
        for strip in 0..4 {
            self.load(zmm0, lane, inst.a, strip)?;
            let b = zmmword_ptr(row64(inst.b, strip));
            if matches!(binary, Binary::ShiftLeft | Binary::ShiftRight) {
                self.extend(zmm1, Lane::U32, inst.b, strip)?;
            }
            let a = &mut self.a;
            match binary {
                Binary::Add => a.vpaddq(zmm0, zmm0, b)?,
                Binary::Sub => a.vpsubq(zmm0, zmm0, b)?,
                Binary::Mul => a.vpmullq(zmm0, zmm0, b)?,
                Binary::MulAdd => {
                    a.vpmullq(zmm0, zmm0, b)?;
                    a.vpaddq(zmm0, zmm0, zmmword_ptr(row64(inst.c, strip)))?;
                }
                Binary::And => a.vpandq(zmm0, zmm0, b)?,
                Binary::Or => a.vporq(zmm0, zmm0, b)?,
                Binary::Xor => a.vpxorq(zmm0, zmm0, b)?,
                Binary::Min if signed => a.vpminsq(zmm0, zmm0, b)?,
                Binary::Min => a.vpminuq(zmm0, zmm0, b)?,
                Binary::Max if signed => a.vpmaxsq(zmm0, zmm0, b)?,
                Binary::Max => a.vpmaxuq(zmm0, zmm0, b)?,
                Binary::ShiftLeft => a.vpsllvq(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight if signed => a.vpsravq(zmm0, zmm0, zmm1)?,
                Binary::ShiftRight => a.vpsrlvq(zmm0, zmm0, zmm1)?,
            }
            self.put64(inst.d, strip)?;
        }
        Ok(())
    }

    fn floats(&mut self, inst: &Inst, binary: Binary) -> Result<()> {
        for strip in 0..2 {
            self.load(zmm0, Lane::F32, inst.a, strip)?;
            let b = zmmword_ptr(row32(inst.b, strip));
            let a = &mut self.a;
            match binary {
                Binary::Add => a.vaddps(zmm0, zmm0, b)?,
                Binary::Sub => a.vsubps(zmm0, zmm0, b)?,
                Binary::Mul => a.vmulps(zmm0, zmm0, b)?,
                _ => {
                    a.vmovdqu32(zmm1, b)?;
                    a.vfmadd213ps(zmm0, zmm1, zmmword_ptr(row32(inst.c, strip)))?;
                }
            }
            self.canonical()?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// Every NaN of `zmm0` becomes the same one.
    fn canonical(&mut self) -> Result<()> {
        self.a.vcmpps(k1, zmm0, zmm0, 3)?;
        self.a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan))))
    }

    fn extremum(&mut self, inst: &Inst, max: bool, nan: bool) -> Result<()> {
        for strip in 0..2 {
            self.load(zmm1, Lane::F32, inst.a, strip)?;
            self.load(zmm4, Lane::F32, inst.b, strip)?;
            let a = &mut self.a;
            // Minus zero is less than plus zero; signalling NaNs are put right below.
            a.vrangeps(zmm0, zmm1, zmm4, if max { 5 } else { 4 })?;
            a.vcmpps(k1, zmm1, zmm1, 3)?;
            a.vcmpps(k2, zmm4, zmm4, 3)?;
            if nan {
                a.korw(k1, k1, k2)?;
                a.vpbroadcastd(zmm0.k1(), dword_ptr(at(offset_of!(Frame, nan))))?;
            } else {
                a.vmovdqa32(zmm0.k1(), zmm4)?;
                a.vmovdqa32(zmm0.k2(), zmm1)?;
                self.canonical()?;
            }
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// Bytes at even and at odd places are multiplied as half words, which are added in pairs.
    fn dot_product(&mut self, inst: &Inst, signed: [bool; 2]) -> Result<()> {
        for strip in 0..2 {
            for ((row, signed), (even, odd)) in
                [inst.a, inst.b].into_iter().zip(signed).zip([(zmm1, zmm4), (zmm5, zmm6)])
            {
                self.load(odd, Lane::U32, row, strip)?;
                self.a.vpsllw(even, odd, 8)?;
                if signed {
                    self.a.vpsraw(even, even, 8)?;
                    self.a.vpsraw(odd, odd, 8)?;
                } else {
                    self.a.vpsrlw(even, even, 8)?;
                    self.a.vpsrlw(odd, odd, 8)?;
                }
            }
            self.a.vpmaddwd(zmm1, zmm1, zmm5)?;
            self.a.vpmaddwd(zmm4, zmm4, zmm6)?;
            self.a.vpaddd(zmm0, zmm1, zmm4)?;
            self.a.vpaddd(zmm0, zmm0, zmmword_ptr(row32(inst.c, strip)))?;
            self.put32(inst.d, strip)?;
        }
        Ok(())
    }

    /// `zmm4` = the whole products of eight lanes.
    fn product(&mut self, inst: &Inst, lane: Lane, strip: i32) -> Result<()> {
        self.extend(zmm4, lane, inst.a, strip)?;
        self.extend(zmm5, lane, inst.b, strip)?;
        match lane {
            Lane::S32 => self.a.vpmuldq(zmm4, zmm4, zmm5),
            _ => self.a.vpmuludq(zmm4, zmm4, zmm5),
        }
    }

    fn wide(&mut self, inst: &Inst, lane: Lane, adds: bool) -> Result<()> {
        if !lane.is_half() {
            for strip in 0..4 {
                self.product(inst, lane, strip)?;
                match adds {
                    true => self.a.vpaddq(zmm0, zmm4, zmmword_ptr(row64(inst.c, strip)))?,
                    false => self.a.vmovdqa64(zmm0, zmm4)?,
                }
                self.put64(inst.d, strip)?;
            }
            return Ok(());
        }
        for strip in 0..2 {
            for (into, row) in [(zmm0, inst.a), (zmm1, inst.b)] {
                self.load(into, lane, row, strip)?;
            }
            self.a.vpmulld(zmm0, zmm0, zmm1)?;
            if adds {
                self.a.vpaddd(zmm0, zmm0, zmmword_ptr(row32(inst.c, strip)))?;
            }
            self.put32(inst.d, strip)?;
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

    fn compare(&mut self, inst: &Inst, relation: Relation, lane: Lane) -> Result<()> {
        // As the processor numbers them: of floating-point numbers, those that hold for no NaN.
        let number = match (lane, relation) {
            (Lane::F32, Relation::Equal) => 0,
            (Lane::F32, Relation::Unequal) => 0x0c,
            (Lane::F32, Relation::Less) => 0x11,
            (Lane::F32, Relation::LessOrEqual) => 0x12,
            (Lane::F32, Relation::Ordered) => 7,
            (_, Relation::Equal) => 0,
            (_, Relation::Unequal) => 4,
            (_, Relation::Less) => 1,
            (_, _) => 2u32,
        };
        for strip in self.strips(lane) {
            self.load(zmm0, lane, inst.a, strip)?;
            self.load(zmm1, lane, inst.b, strip)?;
            let a = &mut self.a;
            match lane {
                Lane::F32 => a.vcmpps(k1, zmm0, zmm1, number)?,
                Lane::S16 | Lane::S32 => a.vpcmpd(k1, zmm0, zmm1, number)?,
                Lane::S64 => a.vpcmpq(k1, zmm0, zmm1, number)?,
                Lane::U64 => a.vpcmpuq(k1, zmm0, zmm1, number)?,
                Lane::U16 | Lane::U32 => a.vpcmpud(k1, zmm0, zmm1, number)?,
            }
            let width = if lane.is_wide() { 8 } else { 16 };
            match strip {
                0 => a.kmovw(eax, k1)?,
                _ => {
                    a.kmovw(edx, k1)?;
                    a.shl(edx, width * strip as u32)?;
                    a.or(eax, edx)?;
                }
            }
        }
        let a = &mut self.a;
        // A complement, and what it is combined with: see the handler.
        if inst.imm & 4 != 0 {
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

    fn branch(&mut self, index: usize, inst: &Inst) -> Result<()> {
        let pc = self.first + index as u32;
        let ((next_warps, next_lanes), (to_warps, to_lanes)) = (entered(pc + 1), entered(inst.x));
        let taken = self.target(inst.x.wrapping_sub(self.first) as usize);
        if inst.guard != UNGUARDED {
            // The interpreter divides a path.
            let divided = self.exit(index, 1);
            let mut jumps = self.a.create_label();
            let next = self.target(index + 1);
            self.predicate(ecx, inst.guard)?;
            if self.variant.full {
                self.a.cmp(ecx, -1)?;
            } else {
                self.a.and(ecx, dword_ptr(at(offset_of!(Frame, active))))?;
                self.a.cmp(ecx, dword_ptr(at(offset_of!(Frame, active))))?;
            }
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

    /// A load or store: by the interpreter, if its cache does not answer for all lanes.
    fn access(&mut self, index: usize, inst: &Inst, write: bool) -> Result<()> {
        let code = self.code;
        let op = &code.memory[inst.x as usize];
        let bytes = op.bytes * op.elements.len() as u32;
        let miss = self.miss(index, inst);
        let cache = r8 + (size_of::<Cache>() * inst.x as usize) as i32;
        let start = cache + offset_of!(Cache, start) as i32;
        let last = cache + offset_of!(Cache, last) as i32;
        self.a.mov(r8, qword_ptr(at(offset_of!(Frame, caches))))?;
        self.a.cmp(dword_ptr(cache + offset_of!(Cache, is_valid) as i32), 0)?;
        self.a.je(miss)?;
        self.a.mov(rdx, qword_ptr(cache + offset_of!(Cache, host) as i32))?;
        if op.space == SpaceKind::Shared {
            self.a.add(rdx, qword_ptr(at(offset_of!(Frame, shared))))?;
        }
        // Where the lanes access it, from its beginning on, in 32 bits; lanes that do not, at the beginning.
        if op.address.wide {
            self.a.vpbroadcastq(zmm20, qword_ptr(start))?;
            for (strip, into) in (0..).zip([zmm21, zmm22, zmm23, zmm24]) {
                self.load(into, Lane::U64, op.address.row, strip)?;
                match self.masked {
                    true => {
                        self.a.kshiftrd(k5, k6, 8 * strip as u32)?;
                        self.a.vpsubq(into.k5().z(), into, zmm20)?;
                    }
                    false => self.a.vpsubq(into, into, zmm20)?,
                }
            }
            let a = &mut self.a;
            a.vpmaxuq(zmm25, zmm21, zmm22)?;
            a.vpmaxuq(zmm26, zmm23, zmm24)?;
            a.vpmaxuq(zmm25, zmm25, zmm26)?;
            a.vpcmpuq(k1, zmm25, qword_bcst(last), 6)?;
            for (half, low, high) in [(zmm2, zmm21, zmm22), (zmm3, zmm23, zmm24)] {
                let (into, above) = if half == zmm2 { (ymm2, ymm4) } else { (ymm3, ymm4) };
                a.vpmovqd(into, low)?;
                a.vpmovqd(above, high)?;
                a.vinserti64x4(half, half, above, 1)?;
            }
        } else {
            self.a.vpbroadcastd(zmm20, dword_ptr(start))?;
            for (strip, into) in (0..).zip(HALVES) {
                self.load(into, Lane::U32, op.address.row, strip)?;
                match (self.masked, strip) {
                    (false, _) => self.a.vpsubd(into, into, zmm20)?,
                    (_, 0) => self.a.vpsubd(into.k6().z(), into, zmm20)?,
                    _ => self.a.vpsubd(into.k7().z(), into, zmm20)?,
                }
            }
            self.a.vpmaxud(zmm25, zmm2, zmm3)?;
            self.a.vpcmpud(k1, zmm25, dword_bcst(last), 6)?;
        }
        let a = &mut self.a;
        if bytes > 1 {
            a.vpord(zmm25, zmm2, zmm3)?;
            let low = offset_of!(Frame, low) + 4 * bytes.trailing_zeros() as usize;
            a.vptestmd(k2, zmm25, dword_bcst(at(low)))?;
            a.korw(k1, k1, k2)?;
        }
        a.kortestw(k1, k1)?;
        a.jne(miss)?;
        let mut flags = if write { PROGRESS } else { 0 };
        if matches!(op.space, SpaceKind::Global | SpaceKind::Generic | SpaceKind::Const) {
            flags |= if write { READ | OUTWARD } else { READ };
        }
        if flags != 0 {
            a.or(dword_ptr(at(offset_of!(Frame, flags))), flags)?;
        }
        for (number, &element) in op.elements.iter().enumerate() {
            let add = op.bytes as i32 * number as i32;
            match element {
                Element::Narrow(row) => {
                    for half in 0..2 {
                        self.words(op, row, half, add, write)?;
                    }
                }
                Element::Wide(row) => {
                    for half in 0..2 {
                        self.pairs(op, row, half, add, write)?;
                    }
                }
                Element::Sink | Element::Double(_) => {}
            }
        }
        Ok(())
    }

    /// Sixteen lanes of a row of 32 bits, by the addresses in a register from `rdx` on.
    fn words(&mut self, op: &MemoryOp, row: u32, half: i32, add: i32, write: bool) -> Result<()> {
        let from = HALVES[half as usize];
        if op.bytes < 4 {
            // The word that has it, and how far it must be shifted.
            self.a.mov(eax, add)?;
            self.a.vpbroadcastd(zmm26, eax)?;
            self.a.vpaddd(zmm26, zmm26, from)?;
            self.a.vpandd(zmm27, zmm26, dword_bcst(at(offset_of!(Frame, low) + 8)))?;
            self.a.vpxord(zmm26, zmm26, zmm27)?;
            self.sixteen(half)?;
            self.a.vpxord(zmm0, zmm0, zmm0)?;
            self.a.vpgatherdd(zmm0.k1(), dword_ptr(rdx + zmm26))?;
            self.a.vpslld(zmm27, zmm27, 3)?;
            self.a.vpsrlvd(zmm0, zmm0, zmm27)?;
            self.a.vpslld(zmm0, zmm0, 32 - 8 * op.bytes)?;
            match op.signed {
                true => self.a.vpsrad(zmm0, zmm0, 32 - 8 * op.bytes)?,
                false => self.a.vpsrld(zmm0, zmm0, 32 - 8 * op.bytes)?,
            }
            return self.put32(row, half);
        }
        let is_single = op.elements.len() == 1 && !self.masked;
        let (mut scattered, mut same, mut done) =
            (self.a.create_label(), self.a.create_label(), self.a.create_label());
        if !self.masked {
            self.a.vpbroadcastd(zmm25, if half == 0 { xmm2 } else { xmm3 })?;
        }
        if is_single {
            // Lanes one behind the other are a vector.
            self.a.vpaddd(zmm26, zmm25, zmmword_ptr(at(offset_of!(Frame, steps4))))?;
            self.a.vpcmpeqd(k1, zmm26, from)?;
            self.a.kortestw(k1, k1)?;
            self.a.jnc(if write { scattered } else { same })?;
            self.a.vmovd(eax, if half == 0 { xmm2 } else { xmm3 })?;
            if write {
                self.load(zmm0, Lane::U32, row, half)?;
                self.a.vmovdqu32(zmmword_ptr(rdx + rax), zmm0)?;
            } else {
                self.a.vmovdqu32(zmm0, zmmword_ptr(rdx + rax))?;
                self.put32(row, half)?;
            }
            self.a.jmp(done)?;
        }
        if !write {
            self.a.set_label(&mut same)?;
            self.a.zero_bytes()?;
            if !self.masked {
                self.a.vpcmpeqd(k1, zmm25, from)?;
                self.a.kortestw(k1, k1)?;
                self.a.jnc(scattered)?;
                self.a.vmovd(eax, if half == 0 { xmm2 } else { xmm3 })?;
                self.a.vpbroadcastd(zmm0, dword_ptr(rdx + rax + add))?;
                self.put32(row, half)?;
                self.a.jmp(done)?;
            }
        }
        self.a.set_label(&mut scattered)?;
        self.a.zero_bytes()?;
        self.sixteen(half)?;
        if write {
            self.load(zmm0, Lane::U32, row, half)?;
            self.a.vpscatterdd(dword_ptr(rdx + from + add).k1(), zmm0)?;
        } else {
            self.a.vpxord(zmm0, zmm0, zmm0)?;
            self.a.vpgatherdd(zmm0.k1(), dword_ptr(rdx + from + add))?;
            self.put32(row, half)?;
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    /// The same of a row of 64 bits, of elements of four or eight bytes.
    fn pairs(&mut self, op: &MemoryOp, row: u32, half: i32, add: i32, write: bool) -> Result<()> {
        let from = HALVES[half as usize];
        let (mut scattered, mut done) = (self.a.create_label(), self.a.create_label());
        if op.elements.len() == 1 && !self.masked {
            self.a.vpbroadcastd(zmm25, if half == 0 { xmm2 } else { xmm3 })?;
            let steps = if op.bytes == 8 { offset_of!(Frame, steps8) } else { offset_of!(Frame, steps4) };
            self.a.vpaddd(zmm26, zmm25, zmmword_ptr(at(steps)))?;
            self.a.vpcmpeqd(k1, zmm26, from)?;
            self.a.kortestw(k1, k1)?;
            self.a.jnc(scattered)?;
            self.a.vmovd(eax, if half == 0 { xmm2 } else { xmm3 })?;
            for strip in 0..2 {
                let there = rdx + rax + op.bytes as i32 * 8 * strip;
                let strip = 2 * half + strip;
                match (write, op.bytes) {
                    (true, 8) => {
                        self.load(zmm0, Lane::U64, row, strip)?;
                        self.a.vmovdqu64(zmmword_ptr(there), zmm0)?;
                    }
                    (true, _) => {
                        self.load(zmm0, Lane::U64, row, strip)?;
                        self.a.vpmovqd(ymmword_ptr(there), zmm0)?;
                    }
                    (_, 8) => {
                        self.a.vmovdqu64(zmm0, zmmword_ptr(there))?;
                        self.put64(row, strip)?;
                    }
                    _ => {
                        match op.signed {
                            true => self.a.vpmovsxdq(zmm0, ymmword_ptr(there))?,
                            false => self.a.vpmovzxdq(zmm0, ymmword_ptr(there))?,
                        }
                        self.put64(row, strip)?;
                    }
                }
            }
            self.a.jmp(done)?;
        }
        self.a.set_label(&mut scattered)?;
        self.a.zero_bytes()?;
        self.a.vextracti64x4(ymm5, from, 1)?;
        for strip in 0..2 {
            let lanes = match (strip, half) {
                (1, _) => ymm5,
                (_, 0) => ymm2,
                _ => ymm3,
            };
            let strip = 2 * half + strip;
            match self.masked {
                true => self.a.kshiftrd(k1, k6, 8 * strip as u32)?,
                false => self.a.kxnorw(k1, k1, k1)?,
            }
            match (write, op.bytes) {
                (true, 8) => {
                    self.load(zmm0, Lane::U64, row, strip)?;
                    self.a.vpscatterdq(qword_ptr(rdx + lanes + add).k1(), zmm0)?;
                }
                (true, _) => {
                    self.load(zmm0, Lane::U64, row, strip)?;
                    self.a.vpmovqd(ymm0, zmm0)?;
                    self.a.vpscatterdd(dword_ptr(rdx + lanes + add).k1(), ymm0)?;
                }
                (_, 8) => {
                    self.a.vpxorq(zmm0, zmm0, zmm0)?;
                    self.a.vpgatherdq(zmm0.k1(), qword_ptr(rdx + lanes + add))?;
                    self.put64(row, strip)?;
                }
                _ => {
                    self.a.vpxorq(zmm0, zmm0, zmm0)?;
                    self.a.vpgatherdd(ymm0.k1(), dword_ptr(rdx + lanes + add))?;
                    match op.signed {
                        true => self.a.vpmovsxdq(zmm0, ymm0)?,
                        false => self.a.vpmovzxdq(zmm0, ymm0)?,
                    }
                    self.put64(row, strip)?;
                }
            }
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    /// `k1` = the lanes of a half, which a gather or scatter takes.
    fn sixteen(&mut self, half: i32) -> Result<()> {
        match (self.masked, half) {
            (false, _) => self.a.kxnorw(k1, k1, k1),
            (_, 0) => self.a.kmovw(k1, k6),
            _ => self.a.kmovw(k1, k7),
        }
    }
}
