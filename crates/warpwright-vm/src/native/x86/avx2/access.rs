//! Loads and stores: by vectors where the lanes of a warp, or eight of them, are one behind the other, by one word where
//! they are at the same place, else by gathers, or lane by lane where each has sixteen bytes, and by stores of one lane after
//! the other.
//!
//! What is stored is in the rows, and what is loaded goes there, whichever way an access takes.

use super::super::access::{Noted, Together, by_sixteen, elements};
use super::super::held::{Strip, place};
use super::super::{Accesses, ROW32, ROW64, Vectors, at, row32, row64};
use super::{Avx2, Compiler, Frame, Result};
use crate::check::race::{READ, WRITE};
use crate::machine::{Inst, LANES};
use crate::memory::{Element, MemoryOp};
use crate::native::frame::{Cache, Ramps};
use iced_x86::code_asm::*;
use std::mem::offset_of;
use std::ops::Range;

/// The numbers of the lanes of a strip in memory, of which each is so many bytes from the next.
fn offsets(strip: i32, bytes: i32) -> AsmMemoryOperand {
    at(offset_of!(Frame, offsets) + (bytes * strip) as usize)
}

/// Lanes of a strip.
fn lanes(wide: bool) -> i32 {
    Avx2::BYTES / if wide { 8 } else { 4 }
}

impl Compiler<'_> {
    pub(super) fn load_or_store(&mut self, index: usize, inst: &Inst, write: bool) -> Result<()> {
        let op = &self.code.memory[inst.x as usize];
        let miss = self.miss(index, inst);
        self.held.free(Avx2::SOURCES);
        let before = self.held.clone();
        let (mut general, mut done) = (self.a.create_label(), self.a.create_label());
        let together = self.together(op, write);
        let kind = if write { WRITE } else { READ };
        let noted = |together| Noted { index, number: inst.x, op, kind, together };
        let masked = self.masked;
        if let (Some(Together::Ascending), false, &[Element::Narrow(row)], 4) =
            (together, write, &op.elements[..], op.bytes)
            && self.variant.accesses == Accesses::Plain
            && !self.variant.counted
        {
            self.load_halves(inst.x, row, (miss, general))?;
            self.a.jmp(done)?;
        } else if let Some(together) = together {
            self.address(inst.x, together, (miss, general))?;
            self.masked = false;
            self.see(&noted(Some(together)), miss)?;
            match (together, write) {
                (Together::Same, _) => self.load_same(op)?,
                (Together::Ascending, false) => self.load_ascending(op)?,
                (Together::Ascending, true) => self.store_ascending(op)?,
            }
            self.a.jmp(done)?;
        }
        self.masked = masked;
        self.a.set_label(&mut general)?;
        self.a.zero_bytes()?;
        let after = std::mem::replace(&mut self.held, before);
        self.offsets(inst.x, miss)?;
        self.a.or(dword_ptr(at(offset_of!(Frame, flags))), r9d)?;
        self.see(&noted(None), miss)?;
        if write {
            self.scatter(op)?;
        } else {
            self.gather(op)?;
            for (_, row, wide) in elements(op) {
                Avx2::strips(wide).for_each(|strip| self.held.forget((wide, row, strip)));
            }
        }
        if together.is_some() {
            // Registers hold the same by both ways.
            let before = std::mem::replace(&mut self.held, after);
            for (at, strip) in before.missing(&self.held) {
                self.fetch(Avx2::HOLD[at], strip)?;
            }
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    /// Compares strips of addresses with `ymm1`, or with what is so many bytes from there, lane by lane: equal, if they are
    /// that.
    pub(super) fn follow(
        &mut self,
        (wide, row): (bool, u32),
        strips: Range<i32>,
        apart: Option<u32>,
    ) -> Result<()> {
        for (at, strip) in (0..).zip(strips) {
            let lanes = self.peek(ymm2, (wide, row, strip))?;
            let into = if at == 0 { ymm0 } else { ymm2 };
            if let Some(bytes) = apart {
                let ramp = self.ramp(bytes, wide, at);
                of_width!(self, wide, vpsubd | vpsubq(into, lanes, ramp));
                self.a.vpxor(into, into, ymm1)?;
            } else {
                self.a.vpxor(into, lanes, ymm1)?;
            }
            if at != 0 {
                self.a.vpor(ymm0, ymm0, ymm2)?;
            }
        }
        self.a.vptest(ymm0, ymm0)
    }

    /// Each half of a warp loads words one behind the other, or the same one; else by `general`. Behind it, an instruction is
    /// taken to have all lanes.
    fn load_halves(&mut self, number: u32, into: u32, (miss, general): (CodeLabel, CodeLabel)) -> Result<()> {
        const LAST: i32 = 4 * (LANES as i32 / 2 - 1);
        let op = &self.code.memory[number as usize];
        let (row, wide) = (op.address.row, op.address.wide);
        let cache = self.cache(number, miss)?;
        self.all_lanes(general)?;
        self.masked = false;
        let (start, last) = (offset_of!(Cache, start) as i32, offset_of!(Cache, last) as i32);
        self.base(cache)?;
        self.a.mov(r10, qword_ptr(cache + last))?;
        self.a.sub(r10, LAST)?;
        self.a.jb(general)?;
        // The row may be that of the addresses, so that it is written when all is there.
        let loaded = [ymm3, ymm5, ymm6, ymm7];
        for (half, loaded) in (0..).zip(loaded.chunks(2)) {
            let (mut other, mut done) = (self.a.create_label(), self.a.create_label());
            let first = if wide { row64(row, 128 * half) } else { row32(row, 64 * half) };
            of_width!(self, wide, vpbroadcastd | vpbroadcastq(ymm1, first));
            if wide {
                self.a.mov(rax, qword_ptr(first))?;
                self.a.sub(rax, qword_ptr(cache + start))?;
            } else {
                self.a.mov(eax, dword_ptr(first))?;
                self.a.sub(eax, dword_ptr(cache + start))?;
            }
            self.a.test(eax, 3)?;
            self.a.jnz(general)?;
            let strips = Avx2::strips(wide).end / 2;
            self.follow((wide, row), half * strips..(half + 1) * strips, Some(4))?;
            self.a.jnz(other)?;
            self.a.cmp(rax, r10)?;
            self.a.ja(general)?;
            for (strip, &loaded) in (0..).zip(loaded) {
                self.a.vmovdqu(loaded, ymmword_ptr(rdx + rax + 32 * strip))?;
            }
            self.a.jmp(done)?;
            self.a.set_label(&mut other)?;
            self.follow((wide, row), half * strips..(half + 1) * strips, None)?;
            self.a.jnz(general)?;
            self.a.cmp(rax, qword_ptr(cache + last))?;
            self.a.ja(general)?;
            for &loaded in loaded {
                self.a.vpbroadcastd(loaded, dword_ptr(rdx + rax))?;
            }
            self.a.set_label(&mut done)?;
            self.a.zero_bytes()?;
        }
        self.a.or(dword_ptr(at(offset_of!(Frame, flags))), r9d)?;
        for (strip, loaded) in (0..).zip(loaded) {
            self.a.vmovdqa(ymm0, loaded)?;
            self.put32(into, strip)?;
        }
        Ok(())
    }

    /// All lanes load from `rdx`.
    fn load_same(&mut self, op: &MemoryOp) -> Result<()> {
        for (number, row, wide) in elements(op) {
            self.load_element(op, number)?;
            self.a.vmovq(xmm0, rax)?;
            of_width!(self, wide, vpbroadcastd | vpbroadcastq(ymm0, xmm0));
            for strip in Avx2::strips(wide) {
                self.put_strip((wide, row, strip))?;
            }
        }
        Ok(())
    }

    /// Lanes load one behind the other from `rdx` on.
    fn load_ascending(&mut self, op: &MemoryOp) -> Result<()> {
        let wide = elements(op).any(|(.., wide)| wide);
        let bytes = op.bytes as i32 * op.elements.len() as i32;
        for strip in Avx2::strips(wide) {
            let place = rdx + lanes(wide) * bytes * strip;
            let put = |of: &mut Self, element: usize| {
                let row = elements(op).find(|&(number, ..)| number == element);
                row.map_or(Ok(()), |(_, row, _)| of.put_strip((wide, row, strip)))
            };
            match (op.elements.len(), wide) {
                (1, _) => {
                    match (op.bytes, wide, op.signed) {
                        (1, _, false) => self.a.vpmovzxbd(ymm0, qword_ptr(place))?,
                        (1, _, true) => self.a.vpmovsxbd(ymm0, qword_ptr(place))?,
                        (2, _, false) => self.a.vpmovzxwd(ymm0, xmmword_ptr(place))?,
                        (2, _, true) => self.a.vpmovsxwd(ymm0, xmmword_ptr(place))?,
                        (4, true, false) => self.a.vpmovzxdq(ymm0, xmmword_ptr(place))?,
                        (4, true, true) => self.a.vpmovsxdq(ymm0, xmmword_ptr(place))?,
                        _ => self.a.vmovdqu(ymm0, ymmword_ptr(place))?,
                    }
                    put(self, 0)?;
                }
                (2, _) => {
                    self.a.vmovdqu(ymm1, ymmword_ptr(place))?;
                    self.a.vmovdqu(ymm2, ymmword_ptr(place + 32))?;
                    for element in 0..2 {
                        match (wide, element) {
                            (false, 0) => self.a.vshufps(ymm0, ymm1, ymm2, 0x88)?,
                            (false, _) => self.a.vshufps(ymm0, ymm1, ymm2, 0xdd)?,
                            (true, 0) => self.a.vpunpcklqdq(ymm0, ymm1, ymm2)?,
                            (true, _) => self.a.vpunpckhqdq(ymm0, ymm1, ymm2)?,
                        }
                        self.a.vpermq(ymm0, ymm0, 0xd8)?;
                        put(self, element)?;
                    }
                }
                _ => {
                    // Each register has a lane, and the fourth one from it on.
                    for (lane, (register, low)) in
                        (0..).zip([(ymm1, xmm1), (ymm2, xmm2), (ymm5, xmm5), (ymm6, xmm6)])
                    {
                        self.a.vmovdqu(low, xmmword_ptr(place + 16 * lane))?;
                        self.a.vinserti128(register, register, xmmword_ptr(place + 16 * (lane + 4)), 1)?;
                    }
                    for pair in 0..2 {
                        match pair {
                            0 => {
                                self.a.vunpcklps(ymm3, ymm1, ymm2)?;
                                self.a.vunpcklps(ymm7, ymm5, ymm6)?;
                            }
                            _ => {
                                self.a.vunpckhps(ymm3, ymm1, ymm2)?;
                                self.a.vunpckhps(ymm7, ymm5, ymm6)?;
                            }
                        }
                        self.a.vunpcklpd(ymm0, ymm3, ymm7)?;
                        put(self, 2 * pair)?;
                        self.a.vunpckhpd(ymm0, ymm3, ymm7)?;
                        put(self, 2 * pair + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lanes store one behind the other from `rdx` on.
    fn store_ascending(&mut self, op: &MemoryOp) -> Result<()> {
        let wide = elements(op).any(|(.., wide)| wide);
        let rows: Vec<_> = elements(op).map(|(_, row, _)| row).collect();
        // Strips of the row whose lanes fill a vector.
        let at_once = if rows.len() == 1 { (if wide { 8 } else { 4 }) / op.bytes as i32 } else { 1 };
        let bytes = lanes(wide) * op.bytes as i32 * rows.len() as i32;
        for strip in Avx2::strips(wide).step_by(at_once as usize) {
            let place = rdx + bytes * strip;
            let value = |of: &mut Self, register, element: usize, next| {
                of.peek(register, (wide, rows[element], strip + next))
            };
            match (rows.len(), at_once) {
                (1, 1) => {
                    let value = value(self, ymm0, 0, 0)?;
                    self.a.vmovdqu(ymmword_ptr(place), value)?;
                }
                (1, 2) if wide => {
                    let low = value(self, ymm0, 0, 0)?;
                    let high = value(self, ymm1, 0, 1)?;
                    self.a.vshufps(ymm0, low, high, 0x88)?;
                    self.a.vpermq(ymm0, ymm0, 0xd8)?;
                    self.a.vmovdqu(ymmword_ptr(place), ymm0)?;
                }
                (1, 2) => {
                    for (next, register) in (0..).zip([ymm0, ymm1]) {
                        let value = value(self, register, 0, next)?;
                        self.a.vpand(register, value, constant!(half))?;
                    }
                    self.a.vpackusdw(ymm0, ymm0, ymm1)?;
                    self.a.vpermq(ymm0, ymm0, 0xd8)?;
                    self.a.vmovdqu(ymmword_ptr(place), ymm0)?;
                }
                (1, _) => {
                    for (next, register) in (0..).zip([ymm0, ymm1, ymm2, ymm3]) {
                        let value = value(self, register, 0, next)?;
                        self.a.vpand(register, value, constant!(byte))?;
                    }
                    self.a.vpackusdw(ymm0, ymm0, ymm1)?;
                    self.a.vpackusdw(ymm2, ymm2, ymm3)?;
                    self.a.vpackuswb(ymm0, ymm0, ymm2)?;
                    self.a.vmovdqu(ymm1, constant!(halves))?;
                    self.a.vpermd(ymm0, ymm1, ymm0)?;
                    self.a.vmovdqu(ymmword_ptr(place), ymm0)?;
                }
                (2, _) => {
                    let first = value(self, ymm0, 0, 0)?;
                    let second = value(self, ymm1, 1, 0)?;
                    of_width!(self, wide, vpunpckldq | vpunpcklqdq(ymm2, first, second));
                    of_width!(self, wide, vpunpckhdq | vpunpckhqdq(ymm3, first, second));
                    for (half, halves) in [(0, 0x20), (1, 0x31)] {
                        self.a.vperm2i128(ymm0, ymm2, ymm3, halves)?;
                        self.a.vmovdqu(ymmword_ptr(place + 32 * half), ymm0)?;
                    }
                }
                _ => {
                    for (pair, (low, high)) in [(ymm2, ymm3), (ymm5, ymm6)].into_iter().enumerate() {
                        let first = value(self, ymm0, 2 * pair, 0)?;
                        let second = value(self, ymm1, 2 * pair + 1, 0)?;
                        self.a.vunpcklps(low, first, second)?;
                        self.a.vunpckhps(high, first, second)?;
                    }
                    // A lane, and the fourth one from it on.
                    for lane in 0..4 {
                        match lane {
                            0 => self.a.vunpcklpd(ymm0, ymm2, ymm5)?,
                            1 => self.a.vunpckhpd(ymm0, ymm2, ymm5)?,
                            2 => self.a.vunpcklpd(ymm0, ymm3, ymm6)?,
                            _ => self.a.vunpckhpd(ymm0, ymm3, ymm6)?,
                        }
                        self.a.vmovdqu(xmmword_ptr(place + 16 * lane), xmm0)?;
                        self.a.vextracti128(xmmword_ptr(place + 16 * (lane + 4)), ymm0, 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The frame has where the lanes access memory, from `rdx` on; lanes that do not, at the beginning. `r9d` = what the
    /// access does.
    pub(super) fn offsets(&mut self, number: u32, miss: CodeLabel) -> Result<()> {
        let op = &self.code.memory[number as usize];
        let (row, wide, bytes) = (op.address.row, op.address.wide, op.bytes * op.elements.len() as u32);
        self.held.free(Avx2::SOURCES);
        let cache = self.cache(number, miss)?;
        self.base(cache)?;
        let start = cache + offset_of!(Cache, start) as i32;
        of_width!(self, wide, vpbroadcastd | vpbroadcastq(ymm5, start));
        // `ymm6`: the largest of eight lanes, `ymm7`: the bits that lanes have.
        for strip in Avx2::strips(wide) {
            let into = if wide && strip % 2 != 0 { ymm1 } else { ymm0 };
            let lanes = self.peek(into, (wide, row, strip))?;
            of_width!(self, wide, vpsubd | vpsubq(into, lanes, ymm5));
            if self.masked {
                self.signs(ymm2, ymm4, wide, strip)?;
                self.a.vpxor(ymm3, ymm3, ymm3)?;
                of_width!(self, wide, vblendvps | vblendvpd(into, ymm3, into, ymm2));
            }
            match strip {
                0 => self.a.vmovdqa(ymm7, into)?,
                _ => self.a.vpor(ymm7, ymm7, into)?,
            }
            let eight = if wide { strip / 2 } else { strip };
            if wide {
                if into == ymm0 {
                    continue;
                }
                self.a.vshufps(ymm0, ymm0, ymm1, 0x88)?;
                self.a.vpermq(ymm0, ymm0, 0xd8)?;
            }
            match eight {
                0 => self.a.vmovdqa(ymm6, ymm0)?,
                _ => self.a.vpmaxud(ymm6, ymm6, ymm0)?,
            }
            self.a.vmovdqu(ymmword_ptr(offsets(eight, 32)), ymm0)?;
        }
        let step = bytes.trailing_zeros() as usize;
        let refused = match wide {
            true => offset_of!(Frame, refused_wide) + 32 * step,
            false => offset_of!(Frame, refused) + 32 * step,
        };
        self.a.vptest(ymm7, ymmword_ptr(at(refused)))?;
        self.a.jnz(miss)?;
        self.a.vpbroadcastd(ymm1, dword_ptr(cache + offset_of!(Cache, last) as i32))?;
        self.a.vpsubd(ymm1, ymm1, ymm6)?;
        self.a.vptest(ymm1, constant!(sign))?;
        self.a.jnz(miss)
    }

    /// Loads by the addresses in the frame.
    fn gather(&mut self, op: &MemoryOp) -> Result<()> {
        if let Some(wide) = by_sixteen(op) {
            return self.load_lanes(op, wide);
        }
        for (number, row, wide) in elements(op) {
            let add = (op.bytes as usize * number) as i32;
            if op.bytes == 4 && !wide {
                for half in 0..2 {
                    self.gather_words(row, half, add)?;
                }
                continue;
            }
            for strip in Avx2::strips(wide) {
                match op.bytes {
                    1 | 2 => self.gather_narrow(op, (wide, row, strip), add)?,
                    _ => self.gather_wide(op, (wide, row, strip), add)?,
                }
            }
        }
        Ok(())
    }

    /// Sixteen bytes of each lane, which become strips of elements.
    fn load_lanes(&mut self, op: &MemoryOp, wide: bool) -> Result<()> {
        // Each register has a lane, and one from the middle of the strip on.
        let registers = [(ymm1, xmm1), (ymm5, xmm5), (ymm6, xmm6), (ymm7, xmm7)];
        let half = lanes(wide) / 2;
        for strip in Avx2::strips(wide) {
            let from = |of: &mut Self, lane: i32| {
                let lane = lanes(wide) * strip + lane;
                of.a.mov(eax, dword_ptr(offsets(lane, 4)))?;
                Ok(xmmword_ptr(rdx + rax))
            };
            for (lane, (register, low)) in (0..half).zip(registers) {
                let first = from(self, lane)?;
                self.a.vmovdqu(low, first)?;
                let second = from(self, lane + half)?;
                self.a.vinserti128(register, register, second, 1)?;
            }
            if !wide {
                self.a.vunpcklps(ymm0, ymm1, ymm5)?;
                self.a.vunpckhps(ymm1, ymm1, ymm5)?;
                self.a.vunpcklps(ymm5, ymm6, ymm7)?;
                self.a.vunpckhps(ymm6, ymm6, ymm7)?;
                self.a.vunpckhpd(ymm7, ymm0, ymm5)?;
            }
            for (number, row, _) in elements(op) {
                match (wide, number) {
                    (true, 0) => self.a.vpunpcklqdq(ymm0, ymm1, ymm5)?,
                    (true, _) => self.a.vpunpckhqdq(ymm0, ymm1, ymm5)?,
                    (false, 0) => self.a.vunpcklpd(ymm0, ymm0, ymm5)?,
                    (false, 1) => self.a.vmovdqa(ymm0, ymm7)?,
                    (false, 2) => self.a.vunpcklpd(ymm0, ymm1, ymm6)?,
                    (false, _) => self.a.vunpckhpd(ymm0, ymm1, ymm6)?,
                }
                self.store_strip((wide, row, strip))?;
            }
        }
        Ok(())
    }

    /// Sixteen bytes of each lane, from strips of elements, one lane after the other.
    fn store_lanes(&mut self, op: &MemoryOp, wide: bool) -> Result<()> {
        let rows: Vec<_> = elements(op).map(|(_, row, _)| row).collect();
        let of_lanes = [(ymm0, xmm0), (ymm1, xmm1), (ymm2, xmm2), (ymm3, xmm3)];
        let half = lanes(wide) / 2;
        for strip in Avx2::strips(wide) {
            let mut values = [ymm0, ymm1, ymm2, ymm3];
            for (value, &row) in values.iter_mut().zip(&rows) {
                *value = self.peek(*value, (wide, row, strip))?;
            }
            let [first, second, third, fourth] = values;
            if wide {
                self.a.vpunpckhqdq(ymm3, first, second)?;
                self.a.vpunpcklqdq(ymm0, first, second)?;
                self.a.vmovdqa(ymm1, ymm3)?;
            } else {
                self.a.vunpcklps(ymm5, first, second)?;
                self.a.vunpckhps(ymm6, first, second)?;
                self.a.vunpcklps(ymm7, third, fourth)?;
                self.a.vunpckhps(ymm3, third, fourth)?;
                self.a.vunpcklpd(ymm0, ymm5, ymm7)?;
                self.a.vunpckhpd(ymm1, ymm5, ymm7)?;
                self.a.vunpcklpd(ymm2, ymm6, ymm3)?;
                self.a.vunpckhpd(ymm3, ymm6, ymm3)?;
            }
            for lane in 0..2 * half {
                self.a.mov(eax, dword_ptr(offsets(lanes(wide) * strip + lane, 4)))?;
                let (register, low) = of_lanes[(lane % half) as usize];
                match lane < half {
                    true => self.a.vmovdqu(xmmword_ptr(rdx + rax), low)?,
                    false => self.a.vextracti128(xmmword_ptr(rdx + rax), register, 1)?,
                }
            }
        }
        Ok(())
    }

    /// A register = the lanes of a strip, which a gather takes.
    fn gathered(&mut self, into: AsmRegisterYmm, wide: bool, strip: i32) -> Result<()> {
        match self.masked {
            true => self.signs(into, ymm4, wide, strip),
            false => self.a.vpcmpeqd(into, into, into),
        }
    }

    /// Stores the lanes of the result in a strip.
    fn store_strip(&mut self, strip: Strip) -> Result<()> {
        if self.masked {
            self.fetch(ymm3, strip)?;
            Avx2::blend(self, ymm3, strip)?;
        }
        Avx2::store(&mut self.a, place::<Avx2>(strip), Avx2::RESULT)
    }

    /// Bytes or half words: the word that has each, and how far it must be shifted.
    fn gather_narrow(&mut self, op: &MemoryOp, strip: Strip, add: i32) -> Result<()> {
        self.a.mov(eax, add)?;
        self.a.vmovd(xmm1, eax)?;
        self.a.vpbroadcastd(ymm1, xmm1)?;
        self.a.vpaddd(ymm1, ymm1, ymmword_ptr(offsets(strip.2, 32)))?;
        self.a.vpbroadcastd(ymm2, dword_ptr(at(offset_of!(Frame, below) + 8)))?;
        self.a.vpand(ymm2, ymm2, ymm1)?;
        self.a.vpxor(ymm1, ymm1, ymm2)?;
        self.a.vpslld(ymm2, ymm2, 3)?;
        self.gathered(ymm3, false, strip.2)?;
        self.a.vpxor(ymm0, ymm0, ymm0)?;
        self.a.vpgatherdd_3(ymm0, dword_ptr(rdx + ymm1), ymm3)?;
        self.a.vpsrlvd(ymm0, ymm0, ymm2)?;
        self.a.vpslld(ymm0, ymm0, 32 - 8 * op.bytes)?;
        match op.signed {
            true => self.a.vpsrad(ymm0, ymm0, 32 - 8 * op.bytes)?,
            false => self.a.vpsrld(ymm0, ymm0, 32 - 8 * op.bytes)?,
        }
        self.store_strip(strip)
    }

    /// Sixteen words, or the same one.
    fn gather_words(&mut self, row: u32, half: i32, add: i32) -> Result<()> {
        let strips = [(false, row, 2 * half), (false, row, 2 * half + 1)];
        let (mut scattered, mut done) = (self.a.create_label(), self.a.create_label());
        if !self.masked {
            let first = dword_ptr(offsets(2 * half, 32));
            self.a.vpbroadcastd(ymm1, first)?;
            self.a.mov(eax, first)?;
            self.a.vpxor(ymm2, ymm1, ymmword_ptr(offsets(2 * half, 32)))?;
            self.a.vpxor(ymm3, ymm1, ymmword_ptr(offsets(2 * half + 1, 32)))?;
            self.a.vpor(ymm2, ymm2, ymm3)?;
            self.a.vptest(ymm2, ymm2)?;
            self.a.jnz(scattered)?;
            self.a.vpbroadcastd(ymm0, dword_ptr(rdx + rax + add))?;
            for strip in strips {
                Avx2::store(&mut self.a, place::<Avx2>(strip), Avx2::RESULT)?;
            }
            self.a.jmp(done)?;
        }
        self.a.set_label(&mut scattered)?;
        self.a.zero_bytes()?;
        for strip in strips {
            // What lanes hold that do not load stays there.
            self.old_or_zero(strip)?;
            self.a.vmovdqu(ymm1, ymmword_ptr(offsets(strip.2, 32)))?;
            self.gathered(ymm2, false, strip.2)?;
            self.a.vpgatherdd_3(ymm0, dword_ptr(rdx + ymm1 + add), ymm2)?;
            Avx2::store(&mut self.a, place::<Avx2>(strip), Avx2::RESULT)?;
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    /// `ymm0` = what a gather leaves where lanes do not load.
    fn old_or_zero(&mut self, strip: Strip) -> Result<()> {
        match self.masked {
            true => self.fetch(ymm0, strip),
            false => self.a.vpxor(ymm0, ymm0, ymm0),
        }
    }

    /// Four lanes of 64 bits, from words or pairs of them.
    fn gather_wide(&mut self, op: &MemoryOp, strip: Strip, add: i32) -> Result<()> {
        self.a.vmovdqu(xmm1, xmmword_ptr(offsets(strip.2, 16)))?;
        self.gathered(ymm2, true, strip.2)?;
        if op.bytes == 8 {
            self.old_or_zero(strip)?;
            self.a.vpgatherdq_3(ymm0, qword_ptr(rdx + xmm1 + add), ymm2)?;
            return Avx2::store(&mut self.a, place::<Avx2>(strip), Avx2::RESULT);
        }
        // The signs of four words are the signs of their lanes.
        self.a.vextracti128(xmm3, ymm2, 1)?;
        self.a.vshufps(xmm2, xmm2, xmm3, 0xdd)?;
        self.a.vpxor(xmm0, xmm0, xmm0)?;
        self.a.vpgatherdd_3(xmm0, dword_ptr(rdx + xmm1 + add), xmm2)?;
        match op.signed {
            true => self.a.vpmovsxdq(ymm0, xmm0)?,
            false => self.a.vpmovzxdq(ymm0, xmm0)?,
        }
        self.store_strip(strip)
    }

    /// Stores by the addresses in the frame, one lane after the other.
    fn scatter(&mut self, op: &MemoryOp) -> Result<()> {
        if let (Some(wide), false) = (by_sixteen(op), self.masked) {
            return self.store_lanes(op, wide);
        }
        let mut next = self.a.create_label();
        // `eax`: the lane; `r10d`: lanes that are left, of some.
        if self.masked {
            self.a.mov(r10d, ecx)?;
            self.a.set_label(&mut next)?;
            self.a.tzcnt(eax, r10d)?;
            self.store_lane(op, 0)?;
            self.a.blsr(r10d, r10d)?;
            return self.a.jnz(next);
        }
        const AT_ONCE: i32 = 4;
        self.a.xor(eax, eax)?;
        self.a.set_label(&mut next)?;
        for lane in 0..AT_ONCE {
            self.store_lane(op, lane)?;
        }
        self.a.add(eax, AT_ONCE)?;
        self.a.cmp(eax, LANES as i32)?;
        self.a.jb(next)
    }

    /// The lane `eax`, or one from it on.
    fn store_lane(&mut self, op: &MemoryOp, lane: i32) -> Result<()> {
        let a = &mut self.a;
        a.mov(r11d, dword_ptr(rbx + 4 * rax + (offset_of!(Frame, offsets) as i32 + 4 * lane)))?;
        for (number, row, wide) in elements(op) {
            let to = rdx + r11 + (op.bytes as usize * number) as i32;
            match wide {
                true => a.mov(rsi, qword_ptr(r13 + 8 * rax + (row as i32 * ROW64 + 8 * lane)))?,
                false => a.mov(esi, dword_ptr(r12 + 4 * rax + (row as i32 * ROW32 + 4 * lane)))?,
            }
            match op.bytes {
                1 => a.mov(byte_ptr(to), sil)?,
                2 => a.mov(word_ptr(to), si)?,
                4 => a.mov(dword_ptr(to), esi)?,
                _ => a.mov(qword_ptr(to), rsi)?,
            }
        }
        Ok(())
    }

    /// The places of a strip of lanes that are so many bytes from each other.
    pub(super) fn ramp(&self, bytes: u32, wide: bool, strip: i32) -> AsmMemoryOperand {
        let step = bytes.trailing_zeros() as usize;
        let ramp = match wide {
            true => offset_of!(Ramps, wide) + 8 * LANES * step,
            false => offset_of!(Ramps, narrow) + 4 * LANES * step,
        };
        ymmword_ptr(at(offset_of!(Frame, ramps) + ramp + 32 * strip as usize))
    }
}
