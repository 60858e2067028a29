//! Allocation of tensor memory, and moves between it and registers.
//!
//! A warp reaches the 32 lanes of its number in its warpgroup. With thread t, register r, and columns that follow the
//! address (of 16 bits: two for each that is counted here):
//!
//! ```text
//!   .32x32b      lane t                            column r
//!   .16x64b      lane t / 4 + 8 · (t % 2)          column 2r + t / 2 % 2
//!   .16x128b     lane t / 4 + 8 · (r % 2)          column 4 · (r / 2) + t % 4
//!   .16x256b     lane t / 4 + 8 · (r / 2 % 2)      column 8 · (r / 4) + 2 · (t % 4) + r % 2
//!   .16x32bx2    lane t % 16                       column r, of the second half of the threads behind the distance
//! ```

use crate::check::race::AccessKind;
use crate::check::{Action, FindingKind, RawFinding, RawPlace, RawSite, Touch};
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{FULL, LANES, Machine, Row32, Step, TENSOR_LANES, TensorMemory, is_column_count};
use crate::memory::{AccessSpec, Address, FaultKind, Order, SpaceKind};
use crate::num::extremum::Extremum;
use crate::op::mbarrier::At;
use std::collections::HashMap;
use std::ops::Range;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::tcgen05::*;

/// More than any number of columns.
const OUTSIDE: i64 = 1 << 16;

/// Lanes that a warp reaches.
const REACH: usize = 32;

pub(super) fn alloc(op: &Tcgen05Alloc, d: &mut Decoder<'_, '_>) {
    let (group, columns) = (op.cta_group, d.src32(&op.columns, Type::U32));
    let to = At::decode(d, &op.to, op.space);
    d.emit_boxed(move |m, _| m.allocate_columns(group, to, columns).unwrap_or_else(|step| step));
}

pub(super) fn dealloc(op: &Tcgen05Dealloc, d: &mut Decoder<'_, '_>) {
    let group = op.cta_group;
    let (address, columns) = (d.src32(&op.address, Type::U32), d.src32(&op.columns, Type::U32));
    d.emit_fallible(move |m| {
        m.whole_warp()?;
        m.ranks_of(group)?;
        let address = m.uniform("the address", *m.registers.row32(address))?;
        let count = m.uniform("the number of columns", *m.registers.row32(columns))?;
        let rank = m.block.rank;
        if address >> 16 == 0 && m.block.tensor.has(address..address.saturating_add(count)) {
            let thread = m.mask.trailing_zeros() as usize % LANES;
            m.uses_columns(thread, rank, address..address + count, 0..TENSOR_LANES, (true, true));
        }
        if address >> 16 == 0 && m.block.tensor.free(address, count) {
            return Ok(());
        }
        let allocated = m.block.tensor.allocated();
        let message = format!(
            "{count} columns of tensor memory from {address:#x} on are freed, and were not allocated together: \
             allocated are columns {allocated}"
        );
        Err(m.trap(TrapKind::BadOperand, message))
    });
}

impl Machine<'_> {
    fn allocate_columns(&mut self, group: CtaGroup, to: At, columns: u32) -> Result<Step, Step> {
        self.whole_warp()?;
        let ranks = self.ranks_of(group)?;
        let count = self.uniform("the number of columns", *self.registers.row32(columns))?;
        let tensor = &mut self.block.tensor;
        if !tensor.waits {
            let message = if tensor.relinquished {
                "tensor memory is allocated after `tcgen05.relinquish_alloc_permit`".to_owned()
            } else if !is_column_count(count) {
                format!("{count} columns of tensor memory are allocated: it is a power of two from 32 to 512")
            } else {
                String::new()
            };
            if !message.is_empty() {
                return Err(self.trap(TrapKind::BadOperand, message));
            }
            let by = (self.pc, self.thread(0));
            let Some(first) = self.block.tensor.allocate(count, by) else {
                return Ok(self.wait_for_columns(to));
            };
            self.worker.progress = true;
            self.write_column(to, first);
            if group == CtaGroup::Two {
                self.block.tensor.pairs += 1;
            }
        }
        let peer = ranks.into_iter().find(|&rank| rank != self.block.rank);
        let pairs = self.block.tensor.pairs;
        self.block.tensor.waits =
            peer.is_some_and(|peer| self.cluster.blocks[peer as usize].tensor.pairs < pairs);
        Ok(if self.block.tensor.waits { self.wait_for_columns(to) } else { Step::Next })
    }

    /// Others must free columns first, or allocate theirs.
    fn wait_for_columns(&mut self, to: At) -> Step {
        let spec = AccessSpec { space: to.space, bytes: 4, align: 4, write: false };
        self.polled(spec, &self.addresses(&to.address), false);
        self.not_yet();
        self.give_way();
        Step::Goto(self.pc)
    }

    /// The first thread of the warp writes the address of what was allocated, in order with the accesses of all of its
    /// threads to the same place.
    fn write_column(&mut self, to: At, first: u32) {
        self.warp_synced(&[FULL; LANES], self.mask);
        let addresses = self.addresses(&to.address);
        let spec = AccessSpec { space: to.space, bytes: 4, align: 4, write: true };
        let mut todo = self.mask & self.mask.wrapping_neg();
        while let Some(group) = self.next_group(spec, &addresses, &mut todo) {
            self.touches(Touch { kind: AccessKind::Write, element: 4, order: Order::WEAK }, &group, &[]);
            self.write32(&group, 0, &[first; LANES]);
        }
        self.warp_synced(&[FULL; LANES], self.mask);
    }

    /// The tensor memory of a block of the cluster.
    pub(super) fn tensor(&mut self, rank: u32) -> &mut TensorMemory {
        if rank == self.block.rank {
            &mut self.block.tensor
        } else {
            &mut self.cluster.blocks[rank as usize].tensor
        }
    }

    /// Whether columns of a block's tensor memory are allocated. If not, that is reported.
    pub(super) fn has_columns(&mut self, lane: usize, rank: u32, columns: Range<u32>, write: bool) -> bool {
        let tensor = self.tensor(rank);
        if tensor.has(columns.clone()) {
            return true;
        }
        let missing = tensor.missing(columns.clone()).unwrap_or(columns.start);
        let fault = if tensor.was_allocated(missing) { FaultKind::Freed } else { FaultKind::OutOfBounds };
        let action = if write { Action::Write } else { Action::Read };
        let bytes = 4 * (columns.end - missing);
        self.found_in_tensor_memory(FindingKind::Access(fault), action, lane, missing, bytes);
        false
    }

    /// A thread has read a word that nobody wrote.
    pub(super) fn found_unwritten(&mut self, lane: usize, at: usize, column: u32) {
        let kind = FindingKind::UninitializedMemory { space: SpaceKind::Tensor };
        self.found_in_tensor_memory(kind, Action::Read, lane, (at as u32) << 16 | column, 4);
    }

    #[cold]
    fn found_in_tensor_memory(
        &self,
        kind: FindingKind,
        action: Action,
        lane: usize,
        address: u32,
        bytes: u32,
    ) {
        let place = RawPlace { space: SpaceKind::Tensor, address: address.into(), bytes, frame: None };
        let first = RawSite { memory: Some(place), ..self.site(action, lane) };
        self.launch.findings.add(RawFinding { kind, first, second: None, count: 1 });
    }
}

/// A move between tensor memory and the registers of a warp.
struct Move {
    shape: TensorShape,
    address: Address,
    /// The registers' rows.
    rows: Box<[u32]>,
    /// Two columns for a register, with 16 bits each.
    packs: bool,
    /// How far the second half is from the first.
    split: i32,
}

impl Move {
    fn decode(
        d: &mut Decoder<'_, '_>,
        shape: TensorShape,
        address: &warpwright_ptx::ir::Address,
        rows: Box<[u32]>,
        packs: bool,
        split: Option<&Src>,
    ) -> Move {
        let split = split.and_then(Src::imm).and_then(|imm| imm.bits()).unwrap_or(0) as i64;
        // What is farther is outside, too.
        let split = split.clamp(-OUTSIDE, OUTSIDE) as i32;
        Move { shape, address: d.address(address), rows, packs, split }
    }

    /// The lane, from the first one on, and the column of a register of a thread.
    fn place(&self, thread: usize, register: usize) -> (usize, i32) {
        let (t, r) = (thread, register);
        let (lane, column, behind) = match self.shape {
            TensorShape::S32x32b => (t, r, 0),
            TensorShape::S16x64b => (t / 4 + 8 * (t % 2), 2 * r + t / 2 % 2, 0),
            TensorShape::S16x128b => (t / 4 + 8 * (r % 2), 4 * (r / 2) + t % 4, 0),
            TensorShape::S16x256b => (t / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (t % 4) + r % 2, 0),
            TensorShape::S16x32bx2 => (t % 16, r, if t < 16 { 0 } else { self.split }),
        };
        (lane, column as i32 * self.columns_each() + behind)
    }

    /// Columns that a register has.
    fn columns_each(&self) -> i32 {
        1 + i32::from(self.packs)
    }

    /// Where the warp is to read or write: the first lane and column. None if that is not allowed.
    fn start(&self, m: &mut Machine<'_>, write: bool) -> Result<Option<(usize, i32)>, Step> {
        m.whole_warp()?;
        let addresses = m.addresses(&self.address).map(|address| address as u32);
        let address = m.uniform("the address", addresses)?;
        let (lane, column) = ((address >> 16) as usize, (address & 0xffff) as i32);
        let count = if self.shape == TensorShape::S32x32b { REACH } else { REACH / 2 };
        let first = REACH * (m.warp_index % (TENSOR_LANES / REACH));
        // The ISA leaves undefined what others' lanes are; GPUs take the warp's own, and programs rely on it.
        let (given, lane) = (lane, first + lane % REACH);
        if given != lane {
            let kind = FindingKind::Access(FaultKind::OtherLanes);
            let thread = m.mask.trailing_zeros() as usize % LANES;
            let action = if write { Action::Write } else { Action::Read };
            m.found_in_tensor_memory(kind, action, thread, address, 4 * self.rows.len() as u32);
        }
        if !(first..=first + REACH - count).contains(&lane) || lane % count != 0 {
            let message = format!(
                "a warp accesses lanes {lane} to {} of tensor memory: it is warp {} of its warpgroup, which reaches \
                 lanes {first} to {}{}",
                lane + count - 1,
                m.warp_index % 4,
                first + REACH - 1,
                if count == REACH { "" } else { ", from the first or the 17th of them on" }
            );
            return Err(m.trap(TrapKind::BadOperand, message));
        }
        let each = self.columns_each();
        let last = (0..LANES).map(|t| self.place(t, self.rows.len() - 1).1).max().unwrap_or(0) + each;
        let least = (0..LANES).map(|t| self.place(t, 0).1).min().unwrap_or(0);
        if column + least < 0 {
            let message = format!(
                "a warp accesses tensor memory from column {column} on, and its second half begins {} columns before \
                 that: the first column is 0",
                -self.split
            );
            return Err(m.trap(TrapKind::BadOperand, message));
        }
        let columns = (column + least) as u32..(column + last) as u32;
        let is_half = self.shape == TensorShape::S16x32bx2 && self.split != 0;
        let rank = m.block.rank;
        // Between two halves there may be anything.
        let parts = if is_half {
            let width = self.rows.len() as i32 * each;
            let part = |at: i32| (column + at) as u32..(column + at + width) as u32;
            vec![part(0), part(self.split)]
        } else {
            vec![columns]
        };
        let mut all = true;
        for part in parts {
            let thread = m.mask.trailing_zeros() as usize % LANES;
            let has = m.has_columns(thread, rank, part.clone(), write);
            if has {
                m.uses_columns(thread, rank, part, lane..lane + count, (true, write));
            }
            all &= has;
        }
        Ok(all.then_some((lane, column)))
    }

    /// Words that nobody wrote are `found`: their addresses, by register and thread.
    fn load(
        &self,
        m: &mut Machine<'_>,
        found: impl FnOnce(&mut Machine<'_>, &HashMap<(usize, usize), u32>),
    ) -> Result<Vec<Row32>, Step> {
        let mut loaded = vec![[0; LANES]; self.rows.len()];
        let Some((lane, column)) = self.start(m, false)? else { return Ok(loaded) };
        let mut unwritten = HashMap::new();
        for (register, row) in loaded.iter_mut().enumerate() {
            for (thread, value) in row.iter_mut().enumerate() {
                let (within, behind) = self.place(thread, register);
                let (at, column) = (lane + within, (column + behind) as u32);
                let word = |at, column| m.block.tensor.word(at, column);
                *value = word(at, column);
                if self.packs {
                    *value = *value & 0xffff | word(at, column + 1) << 16;
                }
                let missing = (column..column + self.columns_each() as u32)
                    .find(|&c| !m.block.tensor.is_written(at, c));
                unwritten.extend(missing.map(|column| ((register, thread), (at as u32) << 16 | column)));
            }
        }
        if !unwritten.is_empty() && m.launch.options.checks.init {
            found(m, &unwritten);
        }
        for (&row, values) in self.rows.iter().zip(&loaded) {
            m.registers.set32(row, values, m.mask);
        }
        Ok(loaded)
    }

    fn store(&self, m: &mut Machine<'_>) -> Result<(), Step> {
        let Some((lane, column)) = self.start(m, true)? else { return Ok(()) };
        m.worker.progress = true;
        m.block.tensor.changes += 1;
        for (register, &row) in self.rows.iter().enumerate() {
            let values = *m.registers.row32(row);
            for (thread, value) in values.into_iter().enumerate() {
                let (within, behind) = self.place(thread, register);
                let (at, column) = (lane + within, (column + behind) as u32);
                if self.packs {
                    m.block.tensor.set(at, column, value & 0xffff);
                    m.block.tensor.set(at, column + 1, value >> 16);
                } else {
                    m.block.tensor.set(at, column, value);
                }
            }
        }
        Ok(())
    }
}

pub(super) fn load(op: &Tcgen05Ld, d: &mut Decoder<'_, '_>) {
    let rows = op.d.as_slice().flatten().map(|reg| d.row(reg)).collect();
    let of = Move::decode(d, op.shape, &op.address, rows, op.pack, op.split.as_ref());
    d.emit_fallible(move |m| {
        let found = |m: &mut Machine<'_>, unwritten: &HashMap<(usize, usize), u32>| {
            m.load_unwritten_tensor(|register, thread| unwritten.get(&(register, thread)).copied());
        };
        of.load(m, found).map(drop)
    });
}

pub(super) fn store(op: &Tcgen05St, d: &mut Decoder<'_, '_>) {
    let rows = op.a.as_slice().iter().map(|src| d.src32(src, Type::B32)).collect();
    let of = Move::decode(d, op.shape, &op.address, rows, op.unpack, op.split.as_ref());
    d.emit_fallible(move |m| of.store(m));
}

pub(super) fn load_reduced(op: &Tcgen05LdRed, d: &mut Decoder<'_, '_>) {
    let rows = op.d.as_slice().flatten().map(|reg| d.row(reg)).collect();
    let of = Move::decode(d, op.shape, &op.address, rows, false, op.split.as_ref());
    let (to, ty, abs) = (d.dst(op.reduced), op.ty, op.abs);
    let form = Extremum { max: op.reduction == TensorReduction::Max, nan: op.nan, ..Extremum::default() };
    d.emit_fallible(move |m| {
        let loaded = of.load(m, |m, unwritten| {
            if let Some((&(_, thread), &address)) = unwritten.iter().min() {
                m.found_unwritten(thread, (address >> 16) as usize, address & 0xffff);
            }
        })?;
        let reduced = std::array::from_fn(|thread| {
            let values = loaded.iter().map(|row| if abs { row[thread] & !(1 << 31) } else { row[thread] });
            values.reduce(|a, b| extremum(ty, form, a, b)).unwrap_or(0)
        });
        m.registers.set32(to, &reduced, m.mask);
        Ok(())
    });
}

/// The smaller or larger of two values, as `min` and `max` have it.
fn extremum(ty: Type, form: Extremum, a: u32, b: u32) -> u32 {
    match (ty, form.max) {
        (Type::F32, _) => form.f32(f32::from_bits(a), f32::from_bits(b)).to_bits(),
        (Type::S32, true) => (a as i32).max(b as i32) as u32,
        (Type::S32, false) => (a as i32).min(b as i32) as u32,
        (_, true) => a.max(b),
        (_, false) => a.min(b),
    }
}

/// The lane and the column of an address.
pub(super) fn to_lanes(address: u32) -> (usize, u32) {
    ((address >> 16) as usize, address & 0xffff)
}
