//! Loads and stores: by vectors where the lanes of a half of a warp are one behind the other, by one word where they are at
//! the same, else by gathers and scatters. Atomic operations of shared memory go lane by lane.

use super::{Compiler, Frame, ROW32, Result, at};
use crate::machine::{Inst, NONE};
use crate::memory::{Element, MemoryOp, SpaceKind};
use crate::native::Lane;
use crate::native::frame::{CHANGED, Cache};
use iced_x86::code_asm::*;
use std::mem::offset_of;
use warpwright_ptx::op::atomic::AtomicOp;

/// Where the addresses of the lanes are, in 32 bits.
const HALVES: [AsmRegisterZmm; 2] = [zmm2, zmm3];

/// Whether native code does an access.
pub(super) fn is_plain(op: &MemoryOp, write: bool) -> bool {
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

impl Compiler<'_> {
    /// A load or store.
    pub(super) fn access(&mut self, index: usize, inst: &Inst, write: bool) -> Result<()> {
        let op = &self.code.memory[inst.x as usize];
        let miss = self.miss(index, inst);
        self.addresses(inst.x, miss)?;
        self.a.or(dword_ptr(at(offset_of!(Frame, flags))), r9d)?;
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

    /// An atomic operation on words of memory that the lanes do one after the other. It is left to the interpreter where it
    /// changes nothing: then that does nothing else when it does it again.
    pub(super) fn atomic(&mut self, index: usize, inst: &Inst, op: AtomicOp, lane: Lane) -> Result<()> {
        let miss = self.miss(index, inst);
        self.addresses(inst.b, miss)?;
        for (half, offsets) in (0..).zip(HALVES) {
            self.a.vmovdqu32(zmmword_ptr(at(offset_of!(Frame, offsets) + 64 * half)), offsets)?;
        }
        let a = &mut self.a;
        let mut next = a.create_label();
        let memory = dword_ptr(rdx + r11);
        // `r9d`: what it does, `r10d`: lanes that are left, `r8d`: bits that were changed.
        match self.masked {
            true => a.mov(r10d, ecx)?,
            false => a.mov(r10d, -1)?,
        }
        a.xor(r8d, r8d)?;
        a.set_label(&mut next)?;
        a.tzcnt(eax, r10d)?;
        a.mov(r11d, dword_ptr(rbx + 4 * rax + offset_of!(Frame, offsets) as i32))?;
        a.mov(esi, dword_ptr(r12 + 4 * rax + inst.a as i32 * ROW32))?;
        a.mov(edi, memory)?;
        a.mov(dword_ptr(rbx + 4 * rax + offset_of!(Frame, found) as i32), edi)?;
        match op {
            AtomicOp::Add => a.add(esi, edi)?,
            AtomicOp::And => a.and(esi, edi)?,
            AtomicOp::Or => a.or(esi, edi)?,
            AtomicOp::Xor => a.xor(esi, edi)?,
            AtomicOp::Min | AtomicOp::Max => {
                a.cmp(edi, esi)?;
                match (op, lane) {
                    (AtomicOp::Min, Lane::S32) => a.cmovl(esi, edi)?,
                    (AtomicOp::Min, _) => a.cmovb(esi, edi)?,
                    (_, Lane::S32) => a.cmovg(esi, edi)?,
                    (_, _) => a.cmova(esi, edi)?,
                }
            }
            AtomicOp::Exch | AtomicOp::Inc | AtomicOp::Dec => {}
        }
        a.mov(memory, esi)?;
        a.xor(esi, edi)?;
        a.or(r8d, esi)?;
        a.blsr(r10d, r10d)?;
        a.jnz(next)?;
        a.test(r8d, r8d)?;
        a.jz(miss)?;
        a.or(r9d, CHANGED)?;
        a.or(dword_ptr(at(offset_of!(Frame, flags))), r9d)?;
        if inst.d != NONE {
            for half in 0..2 {
                self.a.vmovdqu32(zmm0, zmmword_ptr(at(offset_of!(Frame, found) + 64 * half as usize)))?;
                self.put32(inst.d, half)?;
            }
        }
        Ok(())
    }

    /// Where the lanes access memory, from `rdx` on; `r9d` = what the access does. By the interpreter, if the cache of the
    /// access does not answer for all lanes.
    fn addresses(&mut self, number: u32, miss: CodeLabel) -> Result<()> {
        let op = &self.code.memory[number as usize];
        let bytes = op.bytes * op.elements.len() as u32;
        let cache = r8 + (size_of::<Cache>() * number as usize) as i32;
        let start = cache + offset_of!(Cache, start) as i32;
        let last = cache + offset_of!(Cache, last) as i32;
        self.a.mov(r8, qword_ptr(at(offset_of!(Frame, caches))))?;
        self.a.mov(r9d, dword_ptr(cache + offset_of!(Cache, flags) as i32))?;
        self.a.test(r9d, r9d)?;
        self.a.je(miss)?;
        self.a.mov(rdx, qword_ptr(at(offset_of!(Frame, shared))))?;
        self.a.and(rdx, qword_ptr(cache + offset_of!(Cache, from_shared) as i32))?;
        self.a.add(rdx, qword_ptr(cache + offset_of!(Cache, host) as i32))?;
        // Where the lanes access it, from its beginning on, in 32 bits; lanes that do not, at the beginning.
        if op.address.wide {
            self.a.vpbroadcastq(zmm20, qword_ptr(start))?;
            for (strip, into) in (0..).zip([zmm21, zmm22, zmm23, zmm24]) {
                let row = self.raw(true, op.address.row, strip)?;
                match self.masked {
                    true => {
                        self.a.kshiftrd(k5, k6, 8 * strip as u32)?;
                        self.a.vpsubq(into.k5().z(), row, zmm20)?;
                    }
                    false => self.a.vpsubq(into, row, zmm20)?,
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
                let row = self.raw(false, op.address.row, strip)?;
                match (self.masked, strip) {
                    (false, _) => self.a.vpsubd(into, row, zmm20)?,
                    (_, 0) => self.a.vpsubd(into.k6().z(), row, zmm20)?,
                    _ => self.a.vpsubd(into.k7().z(), row, zmm20)?,
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
        a.jne(miss)
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
        let value = if write { self.raw(false, row, half)? } else { zmm0 };
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
            match write {
                true => self.a.vmovdqu32(zmmword_ptr(rdx + rax), value)?,
                false => self.a.vmovdqu32(zmm0, zmmword_ptr(rdx + rax))?,
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
                self.a.jmp(done)?;
            }
        }
        self.a.set_label(&mut scattered)?;
        self.a.zero_bytes()?;
        self.sixteen(half)?;
        if write {
            self.a.vpscatterdd(dword_ptr(rdx + from + add).k1(), value)?;
        } else {
            self.a.vpxord(zmm0, zmm0, zmm0)?;
            self.a.vpgatherdd(zmm0.k1(), dword_ptr(rdx + from + add))?;
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()?;
        if write { Ok(()) } else { self.put32(row, half) }
    }

    /// The same of a row of 64 bits, of elements of four or eight bytes.
    fn pairs(&mut self, op: &MemoryOp, row: u32, half: i32, add: i32, write: bool) -> Result<()> {
        let from = HALVES[half as usize];
        // What is stored, or what is loaded.
        let mut values = [zmm20, zmm21];
        if write {
            for (strip, value) in (2 * half..).zip(&mut values) {
                *value = self.raw(true, row, strip)?;
            }
        }
        let (mut scattered, mut done) = (self.a.create_label(), self.a.create_label());
        if op.elements.len() == 1 && !self.masked {
            self.a.vpbroadcastd(zmm25, if half == 0 { xmm2 } else { xmm3 })?;
            let steps = if op.bytes == 8 { offset_of!(Frame, steps8) } else { offset_of!(Frame, steps4) };
            self.a.vpaddd(zmm26, zmm25, zmmword_ptr(at(steps)))?;
            self.a.vpcmpeqd(k1, zmm26, from)?;
            self.a.kortestw(k1, k1)?;
            self.a.jnc(scattered)?;
            self.a.vmovd(eax, if half == 0 { xmm2 } else { xmm3 })?;
            for (strip, value) in (0..).zip(values) {
                let there = rdx + rax + op.bytes as i32 * 8 * strip;
                match (write, op.bytes) {
                    (true, 8) => self.a.vmovdqu64(zmmword_ptr(there), value)?,
                    (true, _) => self.a.vpmovqd(ymmword_ptr(there), value)?,
                    (_, 8) => self.a.vmovdqu64(value, zmmword_ptr(there))?,
                    _ if op.signed => self.a.vpmovsxdq(value, ymmword_ptr(there))?,
                    _ => self.a.vpmovzxdq(value, ymmword_ptr(there))?,
                }
            }
            self.a.jmp(done)?;
        }
        self.a.set_label(&mut scattered)?;
        self.a.zero_bytes()?;
        self.a.vextracti64x4(ymm5, from, 1)?;
        for (strip, value) in (0..).zip(values) {
            let lanes = match (strip, half) {
                (1, _) => ymm5,
                (_, 0) => ymm2,
                _ => ymm3,
            };
            match self.masked {
                true => self.a.kshiftrd(k1, k6, 8 * (2 * half + strip) as u32)?,
                false => self.a.kxnorw(k1, k1, k1)?,
            }
            match (write, op.bytes) {
                (true, 8) => self.a.vpscatterdq(qword_ptr(rdx + lanes + add).k1(), value)?,
                (true, _) => {
                    self.a.vpmovqd(ymm0, value)?;
                    self.a.vpscatterdd(dword_ptr(rdx + lanes + add).k1(), ymm0)?;
                }
                (_, 8) => {
                    self.a.vpxorq(value, value, value)?;
                    self.a.vpgatherdq(value.k1(), qword_ptr(rdx + lanes + add))?;
                }
                _ => {
                    self.a.vpxorq(zmm0, zmm0, zmm0)?;
                    self.a.vpgatherdd(ymm0.k1(), dword_ptr(rdx + lanes + add))?;
                    match op.signed {
                        true => self.a.vpmovsxdq(value, ymm0)?,
                        false => self.a.vpmovzxdq(value, ymm0)?,
                    }
                }
            }
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()?;
        if !write {
            for (strip, value) in (2 * half..).zip(values) {
                self.a.vmovdqa64(zmm0, value)?;
                self.put64(row, strip)?;
            }
        }
        Ok(())
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
