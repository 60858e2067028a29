//! What the race check notes of accesses to shared memory, and whether they read what was written: as
//! [`Deferred`](crate::check::race) and the check of uninitialised memory do it. Where these would do more than that, the
//! access is the interpreter's.
//!
//! Notes are made by routines, one for all accesses of a function that have as much in common as [`Noting`] says.
//!
//! | register | holds |
//! | --- | --- |
//! | `rdx` | where the first lane or the region is |
//! | `zmm2`, `zmm3` | where the lanes are, from there on |
//! | `esi` | the place of `rdx` in shared memory |
//! | `rdi` | the numbers of words from there on |
//! | `r9d` | the head of the note; then whether the access must be left to the interpreter |
//! | `r10`, `r11` | the note, and what is behind it |
//! | `eax` | the instruction |

use super::super::access::{Noted, Together};
use super::super::routine::NoteShared;
use super::super::{Vectors, at};
use super::access::HALVES;
use super::{Avx512, Compiler, Frame, Result};
use crate::check::race::{ASCENDING, ATOMIC, DEVICE, NOTE, Notes, READ, SAME, WRITE};
use iced_x86::code_asm::*;
use std::mem::offset_of;
use warpwright_ptx::ir::Scope;

/// What the accesses that a routine notes have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Noting {
    /// A whole warp does it at once, lane by lane.
    ascending: bool,
    /// Bytes that a lane accesses.
    bytes: u32,
    /// As heads of notes have it.
    kind: u32,
    /// Some lanes only.
    masked: bool,
}

impl Noting {
    fn is_write(self) -> bool {
        self.kind == WRITE
    }

    fn is_atomic(self) -> bool {
        self.kind & ATOMIC != 0
    }
}

/// The kind as which an atomic operation is noted that orders nothing.
pub(in super::super) fn noted_as(scope: Option<Scope>) -> Option<u32> {
    match scope? {
        Scope::Cta => Some(ATOMIC),
        // Whether a cluster is a block is known at the launch.
        Scope::Cluster => None,
        Scope::Gpu | Scope::Sys => Some(ATOMIC | DEVICE),
    }
}

/// A part of what a note needs, at its place of the frame.
macro_rules! notes {
    ($name:ident) => {
        at(offset_of!(Frame, notes) + offset_of!(Notes, $name))
    };
}

/// Words of a note before those of scattered lanes.
const PC: i32 = 0;
const HEAD: i32 = 4;
const MASK: i32 = 8;
const STARTS: i32 = 12;

/// Why nothing was noted: it must not be; not all was written.
const MISSED: u32 = 1;
const UNWRITTEN: u32 = 2;

impl Compiler<'_> {
    /// Calls the routine for an access.
    pub(super) fn note_shared(&mut self, noted: &Noted<'_>, miss: CodeLabel) -> Result<()> {
        let (ascending, kind) = (noted.together == Some(Together::Ascending), noted.kind);
        let noting = Noting { ascending, bytes: noted.bytes(), kind, masked: self.masked };
        let routine = match self.notes.iter().find(|(other, _)| *other == noting) {
            Some(&(_, label)) => label,
            None => {
                let label = self.a.create_label();
                self.notes.push((noting, label));
                label
            }
        };
        self.a.mov(eax, self.first + noted.index as u32)?;
        self.a.mov(r9d, noted.head())?;
        self.a.call(routine)?;
        self.a.test(r9d, r9d)?;
        if kind != WRITE {
            return self.a.jnz(miss);
        }
        // What is written for the first time is noted by a call.
        let mut done = self.a.create_label();
        self.a.jz(done)?;
        self.a.cmp(r9d, UNWRITTEN)?;
        self.a.jne(miss)?;
        Avx512::keep(self, ascending)?;
        self.ask::<NoteShared>((noted.index, noted.number, noted.asked()), miss)?;
        Avx512::restore(self, ascending)?;
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    /// The routines.
    pub(super) fn noting(&mut self) -> Result<()> {
        for (noting, mut label) in std::mem::take(&mut self.notes) {
            self.a.set_label(&mut label)?;
            self.masked = noting.masked;
            let (mut miss, mut unwritten) = (self.a.create_label(), self.a.create_label());
            self.note_by(noting, (miss, unwritten))?;
            self.a.set_label(&mut miss)?;
            self.a.mov(r9d, MISSED)?;
            self.a.ret()?;
            self.a.set_label(&mut unwritten)?;
            self.a.mov(r9d, UNWRITTEN)?;
            self.a.ret()?;
        }
        Ok(())
    }

    fn note_by(&mut self, noting: Noting, (miss, unwritten): (CodeLabel, CodeLabel)) -> Result<()> {
        let a = &mut self.a;
        a.mov(r10, qword_ptr(notes!(next)))?;
        a.cmp(r10, qword_ptr(notes!(end)))?;
        a.jae(miss)?;
        if noting.is_atomic() {
            a.cmp(dword_ptr(notes!(combined)), 0)?;
            a.je(miss)?;
        }
        a.lea(r11, qword_ptr(r10 + 4 * NOTE as i32))?;
        a.mov(rsi, rdx)?;
        a.sub(rsi, qword_ptr(at(offset_of!(Frame, shared))))?;
        a.mov(rdi, qword_ptr(notes!(words)))?;
        a.add(rdi, rsi)?;
        a.or(r9d, dword_ptr(notes!(warp)))?;
        a.mov(dword_ptr(r10 + PC), eax)?;
        self.is_written(noting, unwritten)?;
        match noting.ascending {
            true => {
                self.claim_ascending(noting, 0..noting.bytes as i32 / 2, miss)?;
                let a = &mut self.a;
                a.or(r9d, (ASCENDING | ASCENDING << 2) as i32)?;
                a.mov(dword_ptr(r10 + STARTS), esi)?;
                a.add(esi, 16 * noting.bytes)?;
                a.mov(dword_ptr(r10 + (STARTS + 4)), esi)?;
            }
            false => {
                for half in 0..2 {
                    self.claim_half(noting, half, miss)?;
                }
            }
        }
        let a = &mut self.a;
        match noting.masked {
            true => a.mov(dword_ptr(r10 + MASK), ecx)?,
            false => a.mov(dword_ptr(r10 + MASK), -1)?,
        }
        a.mov(dword_ptr(r10 + HEAD), r9d)?;
        a.mov(qword_ptr(notes!(next)), r11)?;
        a.xor(r9d, r9d)?;
        a.ret()
    }

    /// Whether all bytes were written that lanes access. Where a store writes some for the first time, it is the
    /// interpreter's.
    fn is_written(&mut self, noting: Noting, miss: CodeLabel) -> Result<()> {
        let ones = at(offset_of!(Frame, ones) + 4 * noting.bytes.trailing_zeros() as usize);
        let mut all = self.a.create_label();
        self.a.mov(r8, qword_ptr(at(offset_of!(Frame, written))))?;
        self.a.test(r8, r8)?;
        self.a.jz(all)?;
        self.a.vpbroadcastd(zmm25, esi)?;
        for half in 0..2 {
            let ramp = self.ramp(noting.bytes, false, half);
            match noting.ascending {
                true => self.a.vpaddd(zmm4, zmm25, ramp)?,
                false => self.a.vpaddd(zmm4, zmm25, HALVES[half as usize])?,
            }
            self.sixteen(half)?;
            let a = &mut self.a;
            a.kmovw(k2, k1)?;
            a.vpsrld(zmm5, zmm4, 5)?;
            a.vpxord(zmm0, zmm0, zmm0)?;
            a.vpgatherdd(zmm0.k2(), dword_ptr(r8 + zmm5 * 4))?;
            a.vpslld(zmm4, zmm4, 27)?;
            a.vpsrld(zmm4, zmm4, 27)?;
            a.vpsrlvd(zmm0, zmm0, zmm4)?;
            a.vpandnd(zmm0, zmm0, dword_bcst(ones))?;
            a.vptestmd(k1.k1(), zmm0, zmm0)?;
            a.kortestw(k1, k1)?;
            a.jnz(miss)?;
        }
        self.a.set_label(&mut all)?;
        self.a.zero_bytes()
    }

    /// Claims vectors of words one behind the other, from `rdi` on, for the threads of lanes one behind the other.
    fn claim_ascending(
        &mut self,
        noting: Noting,
        vectors: std::ops::Range<i32>,
        miss: CodeLabel,
    ) -> Result<()> {
        let shift = noting.bytes.trailing_zeros() - 2;
        let threads = offset_of!(Frame, threads) + 4 * size_of::<[u32; 32]>() * shift as usize;
        self.a.vpbroadcastd(zmm25, dword_ptr(notes!(mine)))?;
        for vector in vectors {
            let words = zmmword_ptr(rdi + 64 * vector);
            self.a.vmovdqu32(zmm0, words)?;
            self.a.vpaddd(zmm5, zmm25, zmmword_ptr(at(threads + 64 * vector as usize)))?;
            self.a.kxnorw(k1, k1, k1)?;
            self.claim(noting, miss)?;
            self.a.vmovdqu32(words, zmm6)?;
        }
        Ok(())
    }

    /// Claims words that are in `zmm0` for the threads whose writes have the numbers in `zmm5`, for the lanes of `k1`: in
    /// `zmm6`.
    fn claim(&mut self, noting: Noting, miss: CodeLabel) -> Result<()> {
        let a = &mut self.a;
        let first = at(offset_of!(Frame, first));
        // Of an earlier interval, or the thread's own.
        a.vpcmpud(k4.k1(), zmm0, dword_bcst(notes!(interval)), 1)?;
        a.vpord(zmm4, zmm0, dword_bcst(first))?;
        a.vpcmpeqd(k3.k1(), zmm4, zmm5)?;
        a.korw(k5, k4, k3)?;
        if noting.kind != READ {
            a.kandnw(k5, k5, k1)?;
            a.kortestw(k5, k5)?;
            a.jnz(miss)?;
            return a.vmovdqa32(zmm6, zmm5);
        }
        a.kandnw(k5, k5, k1)?;
        a.vptestmd(k5.k5(), zmm0, dword_bcst(first))?;
        a.kortestw(k5, k5)?;
        a.jnz(miss)?;
        a.vpbroadcastd(zmm6, dword_ptr(notes!(several)))?;
        a.vmovdqa32(zmm6.k3(), zmm0)?;
        a.vpxord(zmm6.k4(), zmm5, dword_bcst(first))
    }

    /// Claims the words of half of the lanes.
    fn claim_half(&mut self, noting: Noting, half: i32, miss: CodeLabel) -> Result<()> {
        let bytes = noting.bytes as i32;
        let (from, low) = if half == 0 { (zmm2, xmm2) } else { (zmm3, xmm3) };
        let (mut scattered, mut ascending, mut done) =
            (self.a.create_label(), self.a.create_label(), self.a.create_label());
        let start = dword_ptr(r10 + (STARTS + 4 * half));
        if !noting.masked && !noting.is_atomic() {
            let a = &mut self.a;
            a.vmovd(eax, low)?;
            a.lea(r8d, dword_ptr(rax + rsi))?;
            a.mov(start, r8d)?;
            a.vpbroadcastd(zmm25, low)?;
            a.vpcmpeqd(k1, zmm25, from)?;
            a.kortestw(k1, k1)?;
            if noting.is_write() {
                a.jc(miss)?;
            } else {
                a.jnc(ascending)?;
                if bytes < 4 {
                    a.and(eax, -4)?;
                }
                for word in 0..(bytes / 4).max(1) {
                    let word = dword_ptr(rdi + rax + 4 * word);
                    let mut claimed = a.create_label();
                    a.mov(r8d, word)?;
                    a.cmp(r8d, dword_ptr(notes!(interval)))?;
                    a.jb(claimed)?;
                    a.test(r8d, 1)?;
                    a.jnz(miss)?;
                    a.set_label(&mut claimed)?;
                    a.mov(r8d, dword_ptr(notes!(several)))?;
                    a.mov(word, r8d)?;
                }
                a.or(r9d, (SAME << (2 * half)) as i32)?;
                a.jmp(done)?;
            }
            self.a.set_label(&mut ascending)?;
            self.a.zero_bytes()?;
            if bytes >= 4 {
                let ramp = self.ramp(noting.bytes, false, 0);
                self.a.vpaddd(zmm26, zmm25, ramp)?;
                self.a.vpcmpeqd(k1, zmm26, from)?;
                self.a.kortestw(k1, k1)?;
                self.a.jnc(scattered)?;
                // The vectors of the second half begin behind those of the first one, for which lanes count, too.
                let vectors = bytes / 4;
                self.a.sub(eax, 64 * vectors * half)?;
                self.a.movsxd(rax, eax)?;
                self.a.add(rdi, rax)?;
                self.claim_ascending(noting, vectors * half..vectors * (half + 1), miss)?;
                self.a.sub(rdi, rax)?;
                self.a.or(r9d, (ASCENDING << (2 * half)) as i32)?;
                self.a.jmp(done)?;
            }
        }
        self.a.set_label(&mut scattered)?;
        self.a.zero_bytes()?;
        self.claim_scattered(noting, half, miss)?;
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    fn claim_scattered(&mut self, noting: Noting, half: i32, miss: CodeLabel) -> Result<()> {
        let from = HALVES[half as usize];
        let threads = offset_of!(Frame, threads) + 64 * half as usize;
        self.a.vpbroadcastd(zmm25, esi)?;
        self.a.vpaddd(zmm25, zmm25, from)?;
        self.a.vmovdqu32(zmmword_ptr(r11), zmm25)?;
        self.a.add(r11, 64)?;
        // Lanes at the place of an earlier one.
        let mut place = from;
        if noting.bytes < 4 {
            self.a.vpsrld(zmm26, from, 2)?;
            self.a.vpslld(zmm26, zmm26, 2)?;
            place = zmm26;
        }
        if noting.is_atomic() {
            self.a.vpbroadcastd(zmm5, dword_ptr(notes!(combined)))?;
        } else {
            self.sixteen(half)?;
            self.a.vpconflictd(zmm25, place)?;
            self.a.vpbroadcastmw2d(zmm27, k1)?;
            self.a.vptestmd(k2.k1(), zmm25, zmm27)?;
            if noting.is_write() {
                self.a.kortestw(k2, k2)?;
                self.a.jnz(miss)?;
            }
            self.a.vpbroadcastd(zmm25, dword_ptr(notes!(mine)))?;
            self.a.vpaddd(zmm5, zmm25, zmmword_ptr(at(threads)))?;
        }
        for word in 0..(noting.bytes as i32 / 4).max(1) {
            let words = |lanes: AsmRegisterZmm| dword_ptr(rdi + lanes + 4 * word);
            self.sixteen(half)?;
            self.a.kmovw(k3, k1)?;
            self.a.vpxord(zmm0, zmm0, zmm0)?;
            self.a.vpgatherdd(zmm0.k3(), words(place))?;
            self.claim(noting, miss)?;
            let a = &mut self.a;
            if noting.kind == READ {
                a.vpbroadcastd(zmm6.k2(), dword_ptr(notes!(several)))?;
            }
            let mut claimed = a.create_label();
            a.vpcmpd(k3.k1(), zmm6, zmm0, 4)?;
            a.kortestw(k3, k3)?;
            a.jz(claimed)?;
            a.vpscatterdd(words(place).k3(), zmm6)?;
            a.set_label(&mut claimed)?;
            a.zero_bytes()?;
        }
        Ok(())
    }
}
