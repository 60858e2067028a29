//! Loads, stores and atomic operations: what is the same at all levels. Levels load and store by vectors where all lanes are
//! one behind the other, by one word where they are at the same place, else lane by lane. Atomic operations of shared
//! memory go lane by lane.

use super::avx512::note::noted_as;
use super::routine::{CountAccess, NoteGlobal};
use super::{Accesses, Compiler, Frame, ROW32, ROW64, Result, Vectors, at};
use crate::check::race::{ASCENDING, ATOMIC, NON_COHERENT, SAME, head};
use crate::machine::{Inst, LANES, NONE};
use crate::memory::{Element, MemoryOp, SpaceKind};
use crate::native::Lane;
use crate::native::frame::{CHANGED, Cache, SHARED};
use iced_x86::code_asm::*;
use std::mem::offset_of;
use warpwright_ptx::ir::Scope;
use warpwright_ptx::op::atomic::AtomicOp;

/// Bytes of the rows of an access, at most: AVX-512 has registers for so many.
const MOST: i32 = 8 * 64;

/// Whether native code does an access.
pub(super) fn is_plain(op: &MemoryOp, write: bool) -> bool {
    use SpaceKind::*;
    let known = op.elements.iter().all(|element| {
        matches!(
            (*element, op.bytes),
            (Element::Sink, _) | (Element::Narrow(_), 1 | 2 | 4) | (Element::Wide(_), 4 | 8)
        )
    });
    let space = matches!(op.space, Global | Generic | Const | Shared) || op.space == Param && !write;
    op.order.strong.is_none()
        && !op.address.frame
        && known
        && space
        && op.bytes * op.elements.len() as u32 <= 16
        && elements(op).map(|(.., wide)| if wide { ROW64 } else { ROW32 }).sum::<i32>() <= MOST
}

/// Whether the race check may only note an access.
pub(super) fn can_be_noted(op: &MemoryOp, write: bool) -> bool {
    use SpaceKind::{Const, Generic, Global, Param, Shared};
    match op.space {
        Param | Const => !write,
        Generic | Shared | Global => !op.order.proposes && !op.order.texture,
        _ => false,
    }
}

/// The elements of an access that have rows: the row of each, and whether it has 64 bits.
pub(super) fn elements(op: &MemoryOp) -> impl Iterator<Item = (usize, u32, bool)> {
    op.elements.iter().enumerate().filter_map(|(number, element)| match *element {
        Element::Narrow(row) => Some((number, row, false)),
        Element::Wide(row) => Some((number, row, true)),
        Element::Sink | Element::Double(_) => None,
    })
}

/// Whether each lane accesses sixteen bytes, of four words or of two elements of 64 bits; and whether of these.
pub(super) fn by_sixteen(op: &MemoryOp) -> Option<bool> {
    let has = |wide| elements(op).all(|(.., is_wide)| is_wide == wide);
    match (op.bytes, op.elements.len()) {
        (4, 4) if has(false) => Some(false),
        (8, 2) if has(true) => Some(true),
        _ => None,
    }
}

/// How whole warps do an access at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// All lanes load from one place.
    Same,
    /// Lane by lane.
    Ascending,
}

/// An access that is noted, or counted.
pub(super) struct Noted<'a> {
    pub(super) index: usize,
    /// Its number in the code's table.
    pub(super) number: u32,
    pub(super) op: &'a MemoryOp,
    /// As heads of notes have it.
    pub(super) kind: u32,
    /// How a whole warp does it at once.
    pub(super) together: Option<Together>,
}

impl Noted<'_> {
    /// Bytes that a lane accesses.
    pub(super) fn bytes(&self) -> u32 {
        self.op.bytes * self.op.elements.len() as u32
    }

    /// The head of its note, without its halves and the warp.
    pub(super) fn head(&self) -> u32 {
        head(self.kind, self.bytes(), self.op.bytes)
    }

    /// The head that routines are asked with: it says how a whole warp does it, too.
    pub(super) fn asked(&self) -> u32 {
        let way = match self.together {
            None => 0,
            Some(Together::Same) => SAME,
            Some(Together::Ascending) => ASCENDING,
        };
        self.head() | way
    }
}

impl<V: Vectors> Compiler<'_, V> {
    /// Saves what an access reads of rows, and makes room for what it needs in registers until it cannot be left any more.
    pub(super) fn prepare_access(&mut self, op: &MemoryOp, write: bool) -> Result<()> {
        let strips = |wide| V::strips(wide).len();
        let mut count = strips(op.address.wide);
        // Of the address, the first lane is read there.
        self.save_strip((op.address.wide, op.address.row, 0))?;
        for (_, row, wide) in elements(op).take_while(|_| write) {
            count += strips(wide);
            if op.bytes < 4 {
                self.save_row(wide, row)?;
            }
        }
        self.make_room(count)
    }

    /// Notes and counts an access, if accesses are; or leaves it to the interpreter.
    pub(super) fn see(&mut self, noted: &Noted<'_>, miss: CodeLabel) -> Result<()> {
        self.note(noted, miss)?;
        self.count_access(noted, miss)
    }

    /// Counts an access that native code does.
    fn count_access(&mut self, noted: &Noted<'_>, miss: CodeLabel) -> Result<()> {
        if !self.is_counted(noted.op) {
            return Ok(());
        }
        self.held.clear();
        V::keep(self, noted.together.is_some())?;
        self.ask::<CountAccess>((noted.index, noted.number, noted.asked()), miss)?;
        V::restore(self, noted.together.is_some())
    }

    fn note(&mut self, noted: &Noted<'_>, miss: CodeLabel) -> Result<()> {
        if !self.asks_to_note(noted.op) {
            return match (noted.op.space, self.variant.accesses) {
                (SpaceKind::Shared, Accesses::Noted) => V::note(self, noted, miss),
                _ => Ok(()),
            };
        }
        let (mut global, mut done) = (self.a.create_label(), self.a.create_label());
        // What is needed again is loaded then.
        self.held.clear();
        let by = r8 + (size_of::<Cache>() * noted.number as usize + offset_of!(Cache, noted)) as i32;
        self.a.cmp(qword_ptr(by), SHARED as i32)?;
        self.a.jb(done)?;
        if noted.op.space == SpaceKind::Generic {
            self.a.ja(global)?;
            V::note(self, noted, miss)?;
            self.a.jmp(done)?;
        }
        self.a.set_label(&mut global)?;
        self.a.zero_bytes()?;
        let coherence = if noted.op.order.non_coherent { NON_COHERENT } else { 0 };
        V::keep(self, noted.together.is_some())?;
        self.ask::<NoteGlobal>((noted.index, noted.number, noted.asked() | coherence), miss)?;
        V::restore(self, noted.together.is_some())?;
        self.a.set_label(&mut done)?;
        self.a.zero_bytes()
    }

    /// Whether a routine may be called that sees an access: registers may change.
    pub(super) fn may_call(&self, op: &MemoryOp) -> bool {
        self.asks_to_note(op) || self.is_counted(op)
    }

    fn asks_to_note(&self, op: &MemoryOp) -> bool {
        self.variant.accesses == Accesses::Noted && matches!(op.space, SpaceKind::Global | SpaceKind::Generic)
    }

    fn is_counted(&self, op: &MemoryOp) -> bool {
        self.variant.counted && op.space != SpaceKind::Param
    }

    /// Whether whole warps may do an access at once. Where an instruction has a guard, [`address`](Self::address) asks
    /// whether it holds for all lanes.
    pub(super) fn together(&self, op: &MemoryOp, write: bool) -> Option<Together> {
        if !self.variant.full {
            return None;
        }
        if matches!(op.space, SpaceKind::Param | SpaceKind::Const) && !write {
            return Some(Together::Same);
        }
        let wide = |element: &Element| matches!(element, Element::Wide(_));
        let has_wide = op.elements.iter().any(wide);
        let is_alike =
            op.elements.iter().all(|element| *element == Element::Sink || wide(element) == has_wide);
        let has_form = match (op.bytes, op.elements.len()) {
            (1 | 2, 1) => true,
            (4, 1) => true,
            (4, 2 | 4) => !has_wide,
            (8, 1 | 2) => has_wide,
            _ => false,
        };
        // Bytes of lanes one behind the other may be of one word.
        let has_form = has_form && (self.variant.accesses != Accesses::Noted || op.bytes >= 4);
        let has_sinks = op.elements.contains(&Element::Sink);
        (is_alike && has_form && !(write && has_sinks)).then_some(Together::Ascending)
    }

    /// `rdx` = where the host has what the first lane accesses, if all lanes do, the others follow it, and all of that is in
    /// the region of the cache. Else by `general`, or by the interpreter if there is no region.
    pub(super) fn address(
        &mut self,
        number: u32,
        together: Together,
        (miss, general): (CodeLabel, CodeLabel),
    ) -> Result<()> {
        let op = &self.code.memory[number as usize];
        let bytes = op.bytes * op.elements.len() as u32;
        let cache = self.cache(number, miss)?;
        let row = op.address.row;
        let wide = op.address.wide;
        let first = if wide { super::row64(row, 0) } else { super::row32(row, 0) };
        V::compare_addresses(self, op, together, general)?;
        self.all_lanes(general)?;
        let start = cache + offset_of!(Cache, start) as i32;
        if wide {
            self.a.mov(rax, qword_ptr(first))?;
            self.a.sub(rax, qword_ptr(start))?;
        } else {
            self.a.mov(eax, dword_ptr(first))?;
            self.a.sub(eax, dword_ptr(start))?;
        }
        self.a.mov(r10, qword_ptr(cache + offset_of!(Cache, last) as i32))?;
        if together == Together::Ascending {
            self.a.sub(r10, (LANES as u32 - 1) as i32 * bytes as i32)?;
            self.a.jb(general)?;
        }
        self.a.cmp(rax, r10)?;
        self.a.ja(general)?;
        if bytes > 1 {
            self.a.test(eax, bytes as i32 - 1)?;
            self.a.jnz(general)?;
        }
        self.base(cache)?;
        self.a.add(rdx, rax)?;
        self.a.or(dword_ptr(at(offset_of!(Frame, flags))), r9d)
    }

    /// Goes to a label unless all lanes execute the instruction.
    pub(super) fn all_lanes(&mut self, unless: CodeLabel) -> Result<()> {
        if self.masked {
            self.a.cmp(ecx, -1)?;
            self.a.jne(unless)?;
        }
        Ok(())
    }

    /// `r9d` = what an access does, by its cache, which is at the place that this returns.
    pub(super) fn cache(&mut self, number: u32, miss: CodeLabel) -> Result<AsmMemoryOperand> {
        let cache = r8 + (size_of::<Cache>() * number as usize) as i32;
        self.a.mov(r8, qword_ptr(at(offset_of!(Frame, caches))))?;
        self.a.mov(r9d, dword_ptr(cache + offset_of!(Cache, flags) as i32))?;
        self.a.test(r9d, r9d)?;
        self.a.je(miss)?;
        Ok(cache)
    }

    /// `rdx` = where the host has the region of a cache.
    pub(super) fn base(&mut self, cache: AsmMemoryOperand) -> Result<()> {
        self.a.mov(rdx, qword_ptr(at(offset_of!(Frame, shared))))?;
        self.a.and(rdx, qword_ptr(cache + offset_of!(Cache, from_shared) as i32))?;
        self.a.add(rdx, qword_ptr(cache + offset_of!(Cache, host) as i32))
    }

    /// `rax` = an element of an access, from `rdx` on.
    pub(super) fn load_element(&mut self, op: &MemoryOp, number: usize) -> Result<()> {
        let place = rdx + (op.bytes as usize * number) as i32;
        match (op.bytes, op.signed) {
            (1, false) => self.a.movzx(eax, byte_ptr(place)),
            (1, true) => self.a.movsx(eax, byte_ptr(place)),
            (2, false) => self.a.movzx(eax, word_ptr(place)),
            (2, true) => self.a.movsx(eax, word_ptr(place)),
            (4, true) => self.a.movsxd(rax, dword_ptr(place)),
            (4, false) => self.a.mov(eax, dword_ptr(place)),
            _ => self.a.mov(rax, qword_ptr(place)),
        }
    }

    /// An atomic operation on words of memory that the lanes do one after the other. It is left to the interpreter where it
    /// changes nothing: then that does nothing else when it does it again.
    pub(super) fn atomic(
        &mut self,
        index: usize,
        inst: &Inst,
        (op, lane): (AtomicOp, Lane),
        scope: Option<Scope>,
    ) -> Result<()> {
        let miss = self.miss(index, inst);
        let access = &self.code.memory[inst.b as usize];
        let noted = |kind| Noted { index, number: inst.b, op: access, kind, together: None };
        V::addresses(self, inst.b, miss)?;
        if let Some(kind) = noted_as(scope) {
            self.note(&noted(kind), miss)?;
            self.cache(inst.b, miss)?;
        }
        V::keep_addresses(self)?;
        let a = &mut self.a;
        let mut next = a.create_label();
        let memory = dword_ptr(rdx + r11);
        // `r9d`: what it does, `r10d`: lanes that are left, `r8d`: bits that were changed.
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
        self.count_access(&noted(ATOMIC), miss)?;
        if inst.d != NONE {
            for strip in V::strips(false) {
                let found = at(offset_of!(Frame, found) + (V::BYTES * strip) as usize);
                V::load(&mut self.a, V::RESULT, found)?;
                self.put32(inst.d, strip)?;
            }
        }
        Ok(())
    }
}
