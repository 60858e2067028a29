//! Loads and stores: by vectors where the lanes of a warp, or of half of one, are one behind the other, by one word where
//! they are at the same place, else by gathers and scatters, or lane by lane where each has sixteen bytes.

use super::super::access::{Noted, Together, by_sixteen, elements};
use super::super::{Accesses, ROW32, Vectors, at, row32, row64};
use super::{Avx512, Compiler, Frame, Result};
use crate::check::race::{READ, WRITE};
use crate::machine::{Inst, LANES};
use crate::memory::{Element, MemoryOp};
use crate::native::frame::{Cache, Ramps};
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Where the addresses of the lanes are, in 32 bits.
pub(super) const HALVES: [AsmRegisterZmm; 2] = [zmm2, zmm3];

/// What is loaded, strip by strip of each element.
const LOADED: [AsmRegisterZmm; 8] = [zmm20, zmm21, zmm22, zmm23, zmm24, zmm1, zmm4, zmm6];

/// The row of an element, whether it has 64 bits, and its strips.
fn rows(op: &MemoryOp) -> impl Iterator<Item = (usize, u32, bool, i32)> {
    elements(op)
        .flat_map(|(number, row, wide)| Avx512::strips(wide).map(move |strip| (number, row, wide, strip)))
}

/// A table for permutations, at a place of the frame.
macro_rules! table {
    ($name:ident) => {
        zmmword_ptr(at(offset_of!(Frame, $name)))
    };
}

impl Compiler<'_> {
    /// A load or store.
    pub(super) fn access(&mut self, index: usize, inst: &Inst, write: bool) -> Result<()> {
        let op = &self.code.memory[inst.x as usize];
        let kind = if write { WRITE } else { READ };
        let noted = |together| Noted { index, number: inst.x, op, kind, together };
        let miss = self.miss(index, inst);
        let (mut general, mut done) = (self.a.create_label(), self.a.create_label());
        let together = self.together(op, write);
        // What is stored is in registers before ways part.
        let mut strips = LOADED;
        if together.is_some() && write {
            for (at, (_, row, wide, strip)) in rows(op).enumerate() {
                strips[at] = self.raw(wide, row, strip)?;
            }
        }
        if let Some(together) = together {
            self.address(inst.x, together, (miss, general))?;
            self.see(&noted(Some(together)), miss)?;
            self.fetch_stored(op, write, &strips)?;
            match (together, write) {
                (Together::Same, _) => self.load_same(op)?,
                (Together::Ascending, false) => self.load_ascending(op)?,
                (Together::Ascending, true) => self.store_ascending(op, &strips)?,
            }
            self.a.jmp(done)?;
        }
        self.a.set_label(&mut general)?;
        self.a.zero_bytes()?;
        self.addresses(inst.x, miss)?;
        self.a.or(dword_ptr(at(offset_of!(Frame, flags))), r9d)?;
        self.see(&noted(None), miss)?;
        // What may be skipped is not held, so that what is read since may have its registers.
        let kept = together.is_some() && !self.masked;
        if kept {
            self.fetch_stored(op, write, &strips)?;
        }
        match by_sixteen(op) {
            Some(wide) if !(write && self.masked) => {
                self.keep_addresses()?;
                for strip in Avx512::strips(wide) {
                    match write {
                        true => self.store_lanes(op, (wide, strip), &strips)?,
                        false => self.load_lanes(op, (wide, strip))?,
                    }
                }
            }
            _ => self.by_elements(op, write, kept, strips)?,
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()?;
        if !write {
            for ((_, row, wide, strip), loaded) in rows(op).zip(LOADED) {
                self.a.vmovdqa64(zmm0, loaded)?;
                if wide { self.put64(row, strip)? } else { self.put32(row, strip)? }
            }
        }
        Ok(())
    }

    /// Element by element, by gathers and scatters. What is stored is in its registers, if it was `kept` there.
    fn by_elements(
        &mut self,
        op: &MemoryOp,
        write: bool,
        kept: bool,
        strips: [AsmRegisterZmm; 8],
    ) -> Result<()> {
        let mut places = rows(op).zip(strips);
        while let Some(((number, row, wide, strip), first)) = places.next() {
            let add = (op.bytes as usize * number) as i32;
            if write && op.bytes < 4 {
                places.next();
                self.store_narrow(op, row, add)?;
                continue;
            }
            if !wide {
                let value = if write && !kept { self.raw(false, row, strip)? } else { first };
                self.words(op, value, strip, add, write)?;
            } else if let Some((_, second)) = places.next() {
                let mut values = [first, second];
                if write && !kept {
                    values = [self.raw(true, row, strip)?, self.raw(true, row, strip + 1)?];
                }
                self.pairs(op, values, strip / 2, add, write)?;
            }
        }
        Ok(())
    }

    /// What is stored is in its registers again.
    fn fetch_stored(&mut self, op: &MemoryOp, write: bool, strips: &[AsmRegisterZmm; 8]) -> Result<()> {
        // What may be skipped is not held, and so is lost by a call.
        let is_noted = self.variant.accesses == Accesses::Noted;
        if write && (self.may_call(op) || is_noted && self.held.skipped) {
            for ((_, row, wide, strip), &into) in rows(op).zip(strips) {
                self.fetch(into, (wide, row, strip))?;
            }
        }
        Ok(())
    }

    /// Goes to a label unless the addresses of all lanes follow that of the first one.
    pub(super) fn compare_addresses(
        &mut self,
        op: &MemoryOp,
        together: Together,
        unless: CodeLabel,
    ) -> Result<()> {
        let (row, wide, bytes) = (op.address.row, op.address.wide, op.bytes * op.elements.len() as u32);
        let first = if wide { row64(row, 0) } else { row32(row, 0) };
        of_width!(self, wide, vpbroadcastd | vpbroadcastq(zmm25, first));
        for strip in 0..if wide { 4 } else { 2 } {
            let lanes = self.raw(wide, row, strip)?;
            let mut expected = zmm25;
            if together == Together::Ascending {
                let ramp = self.ramp(bytes, wide, strip);
                of_width!(self, wide, vpaddd | vpaddq(zmm26, zmm25, ramp));
                expected = zmm26;
            }
            let into = if strip == 0 { k1 } else { k1.k1() };
            of_width!(self, wide, vpcmpeqd | vpcmpeqq(into, expected, lanes));
        }
        of_width!(self, wide, kortestw | kortestb(k1, k1));
        self.a.jnc(unless)
    }

    /// All lanes load from `rdx`.
    fn load_same(&mut self, op: &MemoryOp) -> Result<()> {
        for ((number, _, wide, _), into) in rows(op).zip(LOADED) {
            self.load_element(op, number)?;
            match wide {
                true => self.a.vpbroadcastq(into, rax)?,
                false => self.a.vpbroadcastd(into, eax)?,
            }
        }
        Ok(())
    }

    /// Lanes load one behind the other from `rdx` on.
    fn load_ascending(&mut self, op: &MemoryOp) -> Result<()> {
        let wide = op.elements.iter().any(|element| matches!(element, Element::Wide(_)));
        let count = op.elements.len();
        let at_once = if wide { 8 } else { 16 };
        for strip in 0..32 / at_once {
            let place = rdx + strip * at_once * (op.bytes as usize * count) as i32;
            // The register of an element, where it is not skipped.
            let into = |element: usize| {
                let mut places = rows(op).zip(LOADED);
                let of = places.find(|((number, _, _, of), _)| *number == element && *of == strip);
                of.map(|(_, register)| register)
            };
            match (count, op.bytes, wide) {
                (1, ..) => {
                    let Some(into) = into(0) else { continue };
                    match (op.bytes, wide, op.signed) {
                        (1, _, false) => self.a.vpmovzxbd(into, xmmword_ptr(place))?,
                        (1, _, true) => self.a.vpmovsxbd(into, xmmword_ptr(place))?,
                        (2, _, false) => self.a.vpmovzxwd(into, ymmword_ptr(place))?,
                        (2, _, true) => self.a.vpmovsxwd(into, ymmword_ptr(place))?,
                        (4, false, _) => self.a.vmovdqu32(into, zmmword_ptr(place))?,
                        (4, true, false) => self.a.vpmovzxdq(into, ymmword_ptr(place))?,
                        (4, true, true) => self.a.vpmovsxdq(into, ymmword_ptr(place))?,
                        _ => self.a.vmovdqu64(into, zmmword_ptr(place))?,
                    }
                }
                (2, ..) => {
                    self.a.vmovdqu64(zmm25, zmmword_ptr(place))?;
                    self.a.vmovdqu64(zmm26, zmmword_ptr(place + 64))?;
                    let tables = match wide {
                        true => [table!(even_pairs), table!(odd_pairs)],
                        false => [table!(even), table!(odd)],
                    };
                    for (element, table) in tables.into_iter().enumerate() {
                        let Some(into) = into(element) else { continue };
                        self.a.vmovdqa64(into, zmm25)?;
                        self.a.vmovdqu64(zmm27, table)?;
                        of_width!(self, wide, vpermt2d | vpermt2q(into, zmm27, zmm26));
                    }
                }
                _ => {
                    // Pairs of elements, of the first and of the last eight lanes; then the elements of each.
                    for (pair, table) in [table!(even_pairs), table!(odd_pairs)].into_iter().enumerate() {
                        self.a.vmovdqu64(zmm27, table)?;
                        for (eight, register) in (0..).zip([zmm25, zmm26]) {
                            self.a.vmovdqu64(register, zmmword_ptr(place + 128 * eight))?;
                            self.a.vpermt2q(register, zmm27, zmmword_ptr(place + (128 * eight + 64)))?;
                        }
                        for (element, table) in [table!(even), table!(odd)].into_iter().enumerate() {
                            let Some(into) = into(2 * pair + element) else { continue };
                            self.a.vmovdqu64(zmm27, table)?;
                            self.a.vmovdqa64(into, zmm25)?;
                            self.a.vpermt2d(into, zmm27, zmm26)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Lanes store one behind the other from `rdx` on.
    fn store_ascending(&mut self, op: &MemoryOp, strips: &[AsmRegisterZmm; 8]) -> Result<()> {
        let wide = op.elements.iter().any(|element| matches!(element, Element::Wide(_)));
        let count = op.elements.len();
        let (at_once, of_element) = if wide { (8, 4) } else { (16, 2) };
        for strip in 0..of_element {
            let place = rdx + strip as i32 * at_once * (op.bytes as usize * count) as i32;
            let value = |element: usize| strips[element * of_element + strip];
            match (count, op.bytes, wide) {
                (1, 1, _) => self.a.vpmovdb(xmmword_ptr(place), value(0))?,
                (1, 2, _) => self.a.vpmovdw(ymmword_ptr(place), value(0))?,
                (1, 4, true) => self.a.vpmovqd(ymmword_ptr(place), value(0))?,
                (1, ..) => self.a.vmovdqu64(zmmword_ptr(place), value(0))?,
                (2, ..) => {
                    let tables = match wide {
                        true => [table!(low_pairs), table!(high_pairs)],
                        false => [table!(low), table!(high)],
                    };
                    for (half, table) in (0..).zip(tables) {
                        self.a.vmovdqa64(zmm25, value(0))?;
                        self.a.vmovdqu64(zmm27, table)?;
                        of_width!(self, wide, vpermt2d | vpermt2q(zmm25, zmm27, value(1)));
                        self.a.vmovdqu64(zmmword_ptr(place + 64 * half), zmm25)?;
                    }
                }
                _ => {
                    // The first and the last eight lanes of pairs of elements; then these lane by lane.
                    for (eight, table) in (0..).zip([table!(low), table!(high)]) {
                        self.a.vmovdqu64(zmm27, table)?;
                        for (pair, register) in [zmm25, zmm26].into_iter().enumerate() {
                            self.a.vmovdqa64(register, value(2 * pair))?;
                            self.a.vpermt2d(register, zmm27, value(2 * pair + 1))?;
                        }
                        for (four, table) in (0..).zip([table!(low_pairs), table!(high_pairs)]) {
                            self.a.vmovdqu64(zmm27, table)?;
                            self.a.vmovdqa64(zmm5, zmm25)?;
                            self.a.vpermt2q(zmm5, zmm27, zmm26)?;
                            self.a.vmovdqu64(zmmword_ptr(place + (128 * eight + 64 * four)), zmm5)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Where a lane accesses sixteen bytes, by its offset in the frame.
    fn of_lane(&mut self, lane: i32) -> Result<AsmMemoryOperand> {
        self.a.mov(eax, dword_ptr(at(offset_of!(Frame, offsets) + 4 * lane as usize)))?;
        Ok(xmmword_ptr(rdx + rax))
    }

    /// Sixteen bytes of each lane of a strip, which become strips of elements.
    fn load_lanes(&mut self, op: &MemoryOp, (wide, strip): (bool, i32)) -> Result<()> {
        // Each register has a lane of each of four groups that follow each other.
        let registers =
            &[(zmm25, xmm25), (zmm26, xmm26), (zmm27, xmm27), (zmm0, xmm0)][..if wide { 2 } else { 4 }];
        let group = registers.len() as i32;
        for part in 0..4 {
            for (lane, &(register, low)) in (0..).zip(registers) {
                let from = self.of_lane(4 * group * strip + group * part + lane)?;
                match part {
                    0 => self.a.vmovdqu32(low, from)?,
                    _ => self.a.vinserti32x4(register, register, from, part as u32)?,
                }
            }
        }
        if !wide {
            self.a.vunpcklps(zmm5, zmm25, zmm26)?;
            self.a.vunpckhps(zmm25, zmm25, zmm26)?;
            self.a.vunpcklps(zmm26, zmm27, zmm0)?;
            self.a.vunpckhps(zmm27, zmm27, zmm0)?;
        }
        for ((number, .., of), into) in rows(op).zip(LOADED) {
            match (wide, number) {
                _ if of != strip => {}
                (true, 0) => self.a.vpunpcklqdq(into, zmm25, zmm26)?,
                (true, _) => self.a.vpunpckhqdq(into, zmm25, zmm26)?,
                (false, 0) => self.a.vunpcklpd(into, zmm5, zmm26)?,
                (false, 1) => self.a.vunpckhpd(into, zmm5, zmm26)?,
                (false, 2) => self.a.vunpcklpd(into, zmm25, zmm27)?,
                (false, _) => self.a.vunpckhpd(into, zmm25, zmm27)?,
            }
        }
        Ok(())
    }

    /// Sixteen bytes of each lane of a strip, from registers with the strips of elements, one lane after the other.
    fn store_lanes(
        &mut self,
        op: &MemoryOp,
        (wide, strip): (bool, i32),
        strips: &[AsmRegisterZmm; 8],
    ) -> Result<()> {
        let mut values = [zmm0; 4];
        for ((number, .., of), &register) in rows(op).zip(strips) {
            if of == strip {
                values[number] = register;
            }
        }
        let [first, second, third, fourth] = values;
        let of_lanes: &[_] = if wide {
            self.a.vpunpcklqdq(zmm25, first, second)?;
            self.a.vpunpckhqdq(zmm26, first, second)?;
            &[(zmm25, xmm25), (zmm26, xmm26)]
        } else {
            self.a.vunpcklps(zmm25, first, second)?;
            self.a.vunpckhps(zmm26, first, second)?;
            self.a.vunpcklps(zmm27, third, fourth)?;
            self.a.vunpckhps(zmm0, third, fourth)?;
            self.a.vunpcklpd(zmm5, zmm25, zmm27)?;
            self.a.vunpckhpd(zmm25, zmm25, zmm27)?;
            self.a.vunpcklpd(zmm27, zmm26, zmm0)?;
            self.a.vunpckhpd(zmm26, zmm26, zmm0)?;
            &[(zmm5, xmm5), (zmm25, xmm25), (zmm27, xmm27), (zmm26, xmm26)]
        };
        let group = of_lanes.len() as i32;
        for part in 0..4 {
            for (lane, &(register, low)) in (0..).zip(of_lanes) {
                let to = self.of_lane(4 * group * strip + group * part + lane)?;
                match part {
                    0 => self.a.vmovdqu32(to, low)?,
                    _ => self.a.vextracti32x4(to, register, part as u32)?,
                }
            }
        }
        Ok(())
    }

    /// Bytes or half words, one lane after the other.
    fn store_narrow(&mut self, op: &MemoryOp, row: u32, add: i32) -> Result<()> {
        self.keep_addresses()?;
        let a = &mut self.a;
        let mut next = a.create_label();
        a.set_label(&mut next)?;
        a.tzcnt(eax, r10d)?;
        a.mov(r11d, dword_ptr(rbx + 4 * rax + offset_of!(Frame, offsets) as i32))?;
        a.mov(esi, dword_ptr(r12 + 4 * rax + row as i32 * ROW32))?;
        match op.bytes {
            1 => a.mov(byte_ptr(rdx + r11 + add), sil)?,
            _ => a.mov(word_ptr(rdx + r11 + add), si)?,
        }
        a.blsr(r10d, r10d)?;
        a.jnz(next)
    }

    /// The addresses of the lanes in memory, for one lane after the other; `r10d` = the lanes.
    pub(super) fn keep_addresses(&mut self) -> Result<()> {
        for (half, offsets) in (0..).zip(HALVES) {
            self.a.vmovdqu32(zmmword_ptr(at(offset_of!(Frame, offsets) + 64 * half)), offsets)?;
        }
        match self.masked {
            true => self.a.mov(r10d, ecx),
            false => self.a.mov(r10d, -1),
        }
    }

    /// The addresses, which were kept.
    pub(super) fn restore_addresses(&mut self) -> Result<()> {
        for (half, offsets) in (0..).zip(HALVES) {
            self.a.vmovdqu32(offsets, zmmword_ptr(at(offset_of!(Frame, offsets) + 64 * half)))?;
        }
        Ok(())
    }

    pub(super) fn load_sixteen(&mut self, rows: &[Option<u32>], transposed: bool) -> Result<()> {
        for (matrix, row) in rows.iter().enumerate() {
            let Some(row) = *row else { continue };
            for (half, into) in [zmm25, zmm26].into_iter().enumerate() {
                let low = if half == 0 { xmm25 } else { xmm26 };
                for quarter in 0..4 {
                    let lane = 8 * matrix + 4 * half + quarter;
                    let from = xmmword_ptr(rdx + rax);
                    self.a.mov(eax, dword_ptr(at(offset_of!(Frame, offsets) + 4 * lane)))?;
                    match quarter {
                        0 => self.a.vmovdqu32(low, from)?,
                        _ => self.a.vinserti32x4(into, into, from, quarter as u32)?,
                    }
                }
            }
            for (strip, half) in (0..).zip([zmm25, zmm26]) {
                if transposed {
                    let table = offset_of!(Frame, transposed) + 64 * strip as usize;
                    self.a.vmovdqu64(zmm0, zmmword_ptr(at(table)))?;
                    self.a.vpermi2w(zmm0, zmm25, zmm26)?;
                } else {
                    self.a.vmovdqa64(zmm0, half)?;
                }
                self.put32(row, strip)?;
            }
        }
        Ok(())
    }

    /// Where the lanes access memory, from `rdx` on; `r9d` = what the access does. By the interpreter, if the cache of the
    /// access does not answer for all lanes.
    pub(super) fn addresses(&mut self, number: u32, miss: CodeLabel) -> Result<()> {
        let op = &self.code.memory[number as usize];
        let bytes = op.bytes * op.elements.len() as u32;
        let cache = self.cache(number, miss)?;
        self.base(cache)?;
        let start = cache + offset_of!(Cache, start) as i32;
        let last = cache + offset_of!(Cache, last) as i32;
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
            let low = offset_of!(Frame, below) + 4 * bytes.trailing_zeros() as usize;
            a.vptestmd(k2, zmm25, dword_bcst(at(low)))?;
            a.korw(k1, k1, k2)?;
        }
        a.kortestw(k1, k1)?;
        a.jne(miss)
    }

    /// Sixteen lanes of 32 bits, in a register, by the addresses from `rdx` on.
    fn words(
        &mut self,
        op: &MemoryOp,
        value: AsmRegisterZmm,
        half: i32,
        add: i32,
        write: bool,
    ) -> Result<()> {
        let from = HALVES[half as usize];
        if op.bytes < 4 {
            // The word that has it, and how far it must be shifted.
            self.a.mov(eax, add)?;
            self.a.vpbroadcastd(zmm26, eax)?;
            self.a.vpaddd(zmm26, zmm26, from)?;
            self.a.vpandd(zmm27, zmm26, dword_bcst(at(offset_of!(Frame, below) + 8)))?;
            self.a.vpxord(zmm26, zmm26, zmm27)?;
            self.sixteen(half)?;
            self.a.vpxord(value, value, value)?;
            self.a.vpgatherdd(value.k1(), dword_ptr(rdx + zmm26))?;
            self.a.vpslld(zmm27, zmm27, 3)?;
            self.a.vpsrlvd(value, value, zmm27)?;
            self.a.vpslld(value, value, 32 - 8 * op.bytes)?;
            return match op.signed {
                true => self.a.vpsrad(value, value, 32 - 8 * op.bytes),
                false => self.a.vpsrld(value, value, 32 - 8 * op.bytes),
            };
        }
        let is_single = op.elements.len() == 1 && !self.masked;
        let (mut scattered, mut same, mut done) =
            (self.a.create_label(), self.a.create_label(), self.a.create_label());
        if !self.masked {
            self.a.vpbroadcastd(zmm25, if half == 0 { xmm2 } else { xmm3 })?;
        }
        if is_single {
            // Lanes one behind the other are a vector.
            self.a.vpaddd(zmm26, zmm25, self.ramp(4, false, 0))?;
            self.a.vpcmpeqd(k1, zmm26, from)?;
            self.a.kortestw(k1, k1)?;
            self.a.jnc(if write { scattered } else { same })?;
            self.a.vmovd(eax, if half == 0 { xmm2 } else { xmm3 })?;
            match write {
                true => self.a.vmovdqu32(zmmword_ptr(rdx + rax), value)?,
                false => self.a.vmovdqu32(value, zmmword_ptr(rdx + rax))?,
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
                self.a.vpbroadcastd(value, dword_ptr(rdx + rax + add))?;
                self.a.jmp(done)?;
            }
        }
        self.a.set_label(&mut scattered)?;
        self.a.zero_bytes()?;
        self.sixteen(half)?;
        if write {
            self.a.vpscatterdd(dword_ptr(rdx + from + add).k1(), value)?;
        } else {
            self.a.vpxord(value, value, value)?;
            self.a.vpgatherdd(value.k1(), dword_ptr(rdx + from + add))?;
        }
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    /// The places of a strip of lanes that are so many bytes from each other.
    pub(super) fn ramp(&self, bytes: u32, wide: bool, strip: i32) -> AsmMemoryOperand {
        let step = bytes.trailing_zeros() as usize;
        let ramp = match wide {
            true => offset_of!(Ramps, wide) + 8 * LANES * step,
            false => offset_of!(Ramps, narrow) + 4 * LANES * step,
        };
        zmmword_ptr(at(offset_of!(Frame, ramps) + ramp + 64 * strip as usize))
    }

    /// The same of 64 bits, in two registers, of elements of four or eight bytes.
    fn pairs(
        &mut self,
        op: &MemoryOp,
        values: [AsmRegisterZmm; 2],
        half: i32,
        add: i32,
        write: bool,
    ) -> Result<()> {
        let from = HALVES[half as usize];
        let (mut scattered, mut done) = (self.a.create_label(), self.a.create_label());
        if op.elements.len() == 1 && !self.masked {
            self.a.vpbroadcastd(zmm25, if half == 0 { xmm2 } else { xmm3 })?;
            self.a.vpaddd(zmm26, zmm25, self.ramp(op.bytes, false, 0))?;
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
        self.a.zero_bytes()
    }

    /// `k1` = the lanes of a half, which a gather or scatter takes.
    pub(super) fn sixteen(&mut self, half: i32) -> Result<()> {
        match (self.masked, half) {
            (false, _) => self.a.kxnorw(k1, k1, k1),
            (_, 0) => self.a.kmovw(k1, k6),
            _ => self.a.kmovw(k1, k7),
        }
    }
}
