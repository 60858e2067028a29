//! Loads and stores of up to eight elements per lane.

use super::access::{Group, for_lanes, is_consecutive};
use super::allocation::{Exclusive, update};
use super::{AccessSpec, Allocation, RegionKind};
use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::machine::{LANES, Machine, Row32, Row64, lanewise};
use crate::names::named;
use std::sync::atomic::Ordering::Relaxed;
use warpwright_ptx::ir::Scope;

named! {
    /// The state space of an address.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum SpaceKind {
        /// Generic: the address determines the space.
        Generic = "generic",
        /// Global memory.
        Global = "global",
        /// Constant memory.
        Const = "constant",
        /// Shared memory of the block.
        Shared = "shared",
        /// Shared memory of any block of the cluster.
        SharedCluster = "shared::cluster",
        /// Memory of the thread.
        Local = "local",
        /// Parameters of the kernel.
        Param = "parameter",
        /// Memory that textures and surfaces reach: arrays, and global memory.
        Texture = "texture",
        /// Multimem addresses, which stand for memory of a multicast object.
        Multimem = "multimem",
        /// Tensor memory: an address has a lane in its upper half, and a column of 32 bits in its lower one.
        Tensor = "tensor",
    }
}

/// Memory ordering of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// It takes part in synchronisation, with the threads of this scope.
    pub(crate) strong: Option<Scope>,
    /// What was seen comes before what follows.
    pub(crate) acquire: bool,
    /// What was done comes before it.
    pub(crate) release: bool,
    /// A load of what a compare-and-swap of the same place is about to check.
    pub(crate) proposes: bool,
    /// A load that caches may answer which nothing keeps coherent.
    pub(crate) non_coherent: bool,
    /// A read by a texture or surface, whose caches do not see what the launch has written.
    pub(crate) texture: bool,
}

impl Order {
    /// An ordinary access.
    pub(crate) const WEAK: Order = Order {
        strong: None,
        acquire: false,
        release: false,
        proposes: false,
        non_coherent: false,
        texture: false,
    };
}

/// An address operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    /// The row with the base.
    pub(crate) row: u32,
    /// The row has 64 bits.
    pub(crate) wide: bool,
    /// The base counts from the frame's local memory.
    pub(crate) frame: bool,
    /// Added to it.
    pub(crate) offset: i64,
}

/// Where an element goes to or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// Nowhere: it is skipped.
    Sink,
    /// A row of up to 32 bits.
    Narrow(u32),
    /// A row of 64 bits.
    Wide(u32),
    /// Two rows of 64 bits.
    Double(u32),
}

/// A decoded load or store.
#[derive(Clone, Debug)]
pub(crate) struct MemoryOp {
    pub(crate) address: Address,
    pub(crate) space: SpaceKind,
    /// Bytes of an element: 1, 2, 4, 8 or 16.
    pub(crate) bytes: u32,
    pub(crate) elements: Box<[Element]>,
    /// A narrow element is extended by its sign.
    pub(crate) signed: bool,
    pub(crate) order: Order,
}

impl MemoryOp {
    /// What keeps others away from a strong access of more than a word.
    #[inline(always)]
    fn whole<'a>(&self, group: &Group<'a>) -> Option<Exclusive<'a>> {
        match group.region.kind {
            RegionKind::Global(allocation) if self.order.strong.is_some() && group.bytes > 4 => {
                Some(allocation.exclusive())
            }
            _ => None,
        }
    }

    pub(crate) fn spec(&self, write: bool) -> AccessSpec {
        let bytes = self.bytes * self.elements.len() as u32;
        AccessSpec { space: self.space, bytes, align: bytes, write }
    }
}

/// Half a warp.
const HALF: usize = LANES / 2;

/// What stores a region, in words.
pub(super) trait Words {
    /// The words at the offsets plus `add`, for the lanes of the group. Other lanes get any word.
    fn read(&self, group: &Group<'_>, add: u64) -> Row32;
}

macro_rules! with_words {
    ($m:ident, $group:ident, |$words:ident| $body:expr) => {
        match $group.region.kind {
            RegionKind::Global($words) => $body,
            RegionKind::Shared => {
                let $words = &$m.cluster.shared[..];
                $body
            }
            RegionKind::Local => {
                let $words = &$m.warp.local[..];
                $body
            }
            RegionKind::Param => {
                let $words = &$m.launch.shape.params[..];
                $body
            }
        }
    };
}

pub(super) use with_words;

impl Words for Allocation {
    #[inline(always)]
    fn read(&self, &Group { mask, ref offsets, .. }: &Group<'_>, add: u64) -> Row32 {
        let mut out = [0; LANES];
        if mask != u32::MAX {
            for_lanes(mask, |lane| out[lane] = self.word(offsets[lane] + add).load(Relaxed));
            return out;
        }
        // Tiles are often as wide as half a warp.
        for (out, offsets) in out.chunks_exact_mut(HALF).zip(offsets.chunks_exact(HALF)) {
            let first = offsets[0] + add;
            if is_consecutive(offsets, 4) {
                let words = self.run(first, HALF);
                (0..HALF).for_each(|lane| out[lane] = words[lane].load(Relaxed));
            } else if is_consecutive(offsets, 0) {
                out.fill(self.word(first).load(Relaxed));
            } else {
                (0..HALF).for_each(|lane| out[lane] = self.word(offsets[lane] + add).load(Relaxed));
            }
        }
        out
    }
}

impl Words for [u32] {
    #[inline(always)]
    fn read(&self, Group { offsets, .. }: &Group<'_>, add: u64) -> Row32 {
        let mut out = [0; LANES];
        let Some(last) = self.len().checked_sub(1) else { return out };
        // Without a check for each lane this is one gathering load.
        for lane in 0..LANES {
            out[lane] = self[((offsets[lane].wrapping_add(add) >> 2) as usize).min(last)];
        }
        out
    }
}

impl Words for [Row32] {
    #[inline(always)]
    fn read(&self, &Group { mask, ref offsets, .. }: &Group<'_>, add: u64) -> Row32 {
        if mask == u32::MAX && is_consecutive(offsets, 0) {
            return self[((offsets[0] + add) >> 2) as usize];
        }
        let mut out = [0; LANES];
        for_lanes(mask, |lane| out[lane] = self[((offsets[lane] + add) >> 2) as usize][lane]);
        out
    }
}

/// Elements of 64 bits.
#[inline(always)]
fn read64<W: Words + ?Sized>(words: &W, group: &Group<'_>, add: u64) -> Row64 {
    let (low, high) = (Words::read(words, group, add), words.read(group, add + 4));
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = u64::from(low[lane]) | u64::from(high[lane]) << 32;
    }
    out
}

/// Takes bytes or half words out of words, and extends them.
#[inline(always)]
pub(super) fn narrow(words: &mut Row32, offsets: &Row64, add: u64, bytes: u32, signed: bool) {
    let width = 8 * bytes;
    for lane in 0..LANES {
        // Lanes that take no part have any offset.
        let at = offsets[lane].wrapping_add(add);
        let value = words[lane] >> (8 * (at & 3) as u32) << (32 - width);
        words[lane] = if signed { ((value as i32) >> (32 - width)) as u32 } else { value >> (32 - width) };
    }
}

impl<'a> Machine<'a> {
    /// The addresses of all lanes.
    #[inline(always)]
    pub(crate) fn addresses(&self, address: &Address) -> Row64 {
        let base = if address.frame { u64::from(self.warp.frame().local) } else { 0 };
        let offset = base.wrapping_add(address.offset as u64);
        let mut out = [0; LANES];
        if address.wide {
            let row = self.registers.row64(address.row);
            for lane in 0..LANES {
                out[lane] = row[lane].wrapping_add(offset);
            }
        } else {
            let row = self.registers.row32(address.row);
            for lane in 0..LANES {
                out[lane] = u64::from(row[lane].wrapping_add(offset as u32));
            }
        }
        out
    }

    /// The byte at a generic address of a thread, where there is one.
    pub(crate) fn peek_byte(&self, lane: usize, address: u64) -> Option<u8> {
        let spec = AccessSpec { space: SpaceKind::Generic, bytes: 1, align: 1, write: false };
        let region = self.region_of(spec, address)?;
        let offset = address.wrapping_sub(region.start).wrapping_add(region.origin);
        let group = Group { region, bytes: 1, mask: 1 << lane, offsets: [offset; LANES] };
        let word = with_words!(self, group, |words| Words::read(words, &group, 0))[lane];
        Some((word >> (8 * (offset & 3))) as u8)
    }

    /// The words of memory that a lane accesses.
    pub(crate) fn words_of<const N: usize>(&self, group: &Group<'_>, lane: usize) -> [u32; N] {
        std::array::from_fn(|at| {
            with_words!(self, group, |words| Words::read(words, group, 4 * at as u64))[lane]
        })
    }

    /// Executes a load.
    #[inline(always)]
    pub(crate) fn load(&mut self, op: &'a MemoryOp) {
        let addresses = self.addresses(&op.address);
        let spec = op.spec(false);
        if op.order.strong.is_some() {
            self.polled(spec, &addresses, false);
        }
        let mut todo = self.mask;
        while let Some(group) = self.next_group(spec, &addresses, &mut todo) {
            let touch = Touch { kind: AccessKind::Read, element: op.bytes, order: op.order };
            self.touches(touch, &group, &[]);
            let _whole = op.whole(&group);
            for (index, &element) in op.elements.iter().enumerate() {
                self.load_element(op, &group, u64::from(op.bytes) * index as u64, element);
            }
            self.observed(touch, &group);
        }
    }

    #[inline(always)]
    fn load_element(&mut self, op: &MemoryOp, group: &Group<'a>, add: u64, element: Element) {
        match (element, op.bytes) {
            (Element::Sink, _) => {}
            (Element::Narrow(row), bytes) => {
                let mut values = with_words!(self, group, |words| Words::read(words, group, add));
                if bytes < 4 {
                    narrow(&mut values, &group.offsets, add, bytes, op.signed);
                }
                self.registers.set32(row, &values, group.mask);
            }
            (Element::Wide(row), 8) => {
                let values = with_words!(self, group, |words| read64(words, group, add));
                self.registers.set64(row, &values, group.mask);
            }
            (Element::Double(row), _) => {
                for half in 0..2 {
                    let add = add + 8 * u64::from(half);
                    let values = with_words!(self, group, |words| read64(words, group, add));
                    self.registers.set64(row + half, &values, group.mask);
                }
            }
            (Element::Wide(row), bytes) => {
                let mut values = with_words!(self, group, |words| Words::read(words, group, add));
                narrow(&mut values, &group.offsets, add, bytes, op.signed);
                let wide =
                    lanewise(&values, |value| if op.signed { value as i32 as u64 } else { value.into() });
                self.registers.set64(row, &wide, group.mask);
            }
        }
    }

    /// Executes a store.
    #[inline(always)]
    pub(crate) fn store(&mut self, op: &'a MemoryOp) {
        let addresses = self.addresses(&op.address);
        let spec = op.spec(true);
        self.worker.progress = true;
        let mut todo = self.mask;
        while let Some(group) = self.next_group(spec, &addresses, &mut todo) {
            let touch = Touch { kind: AccessKind::Write, element: op.bytes, order: op.order };
            self.touches(touch, &group, &op.elements);
            let _whole = op.whole(&group);
            self.store_elements(op, &group);
        }
    }

    /// Writes what a store writes of a group.
    #[inline(always)]
    pub(crate) fn store_elements(&mut self, op: &MemoryOp, group: &Group<'a>) {
        for (index, &element) in op.elements.iter().enumerate() {
            self.store_element(op.bytes, group, u64::from(op.bytes) * index as u64, element);
        }
    }

    #[inline(always)]
    fn store_element(&mut self, bytes: u32, group: &Group<'a>, add: u64, element: Element) {
        match (element, bytes) {
            (Element::Sink, _) => {}
            (Element::Narrow(row), bytes) => {
                let values = *self.registers.row32(row);
                self.write_narrow(group, add, &values, bytes);
            }
            (Element::Wide(row), 8) => {
                let values = *self.registers.row64(row);
                self.write64(group, add, &values);
            }
            (Element::Wide(row), bytes) => {
                let values = lanewise(self.registers.row64(row), |value| value as u32);
                self.write_narrow(group, add, &values, bytes);
            }
            (Element::Double(row), _) => {
                for half in 0..2 {
                    let values = *self.registers.row64(row + half);
                    self.write64(group, add + 8 * u64::from(half), &values);
                }
            }
        }
    }

    #[inline(always)]
    fn write64(&mut self, group: &Group<'a>, add: u64, values: &Row64) {
        self.write32(group, add, &lanewise(values, |value| value as u32));
        self.write32(group, add + 4, &lanewise(values, |value| (value >> 32) as u32));
    }

    /// Writes bytes, half words or words.
    #[inline(always)]
    fn write_narrow(&mut self, group: &Group<'a>, add: u64, values: &Row32, bytes: u32) {
        if bytes == 4 {
            self.write32(group, add, values)
        } else {
            self.write_parts(group, add, values, bytes)
        }
    }

    /// Writes whole words. Where lanes write the same one, the last lane wins.
    #[inline(always)]
    pub(crate) fn write32(&mut self, group: &Group<'a>, add: u64, values: &Row32) {
        let Group { region, mask, ref offsets, .. } = *group;
        let consecutive = mask == u32::MAX && is_consecutive(offsets, 4);
        match region.kind {
            RegionKind::Global(allocation) if consecutive => {
                let words = allocation.run(offsets[0] + add, LANES);
                for lane in 0..LANES {
                    words[lane].store(values[lane], Relaxed);
                }
            }
            RegionKind::Global(allocation) => for_lanes(mask, |lane| {
                allocation.word(offsets[lane] + add).store(values[lane], Relaxed);
            }),
            RegionKind::Shared if consecutive => {
                let first = ((offsets[0] + add) >> 2) as usize;
                self.cluster.shared[first..first + LANES].copy_from_slice(values);
            }
            RegionKind::Shared => {
                let words = &mut self.cluster.shared[..];
                for_lanes(mask, |lane| words[((offsets[lane] + add) >> 2) as usize] = values[lane]);
            }
            RegionKind::Local if mask == u32::MAX && is_consecutive(offsets, 0) => {
                self.warp.local[((offsets[0] + add) >> 2) as usize] = *values;
            }
            RegionKind::Local => {
                let words = &mut self.warp.local[..];
                for_lanes(mask, |lane| words[((offsets[lane] + add) >> 2) as usize][lane] = values[lane]);
            }
            RegionKind::Param => {}
        }
    }

    /// Writes bytes or half words. Neighbours that fill a word are written as one.
    fn write_parts(&mut self, group: &Group<'a>, add: u64, values: &Row32, bytes: u32) {
        let Group { region, mask, ref offsets, .. } = *group;
        let ones = u32::MAX >> (32 - 8 * bytes);
        let part = |lane: usize| {
            let at = offsets[lane] + add;
            let shift = 8 * (at & 3) as u32;
            (at & !3, ones << shift, (values[lane] & ones) << shift)
        };
        match region.kind {
            RegionKind::Global(allocation) => {
                // Lanes in order, so that the last one wins where several write the same.
                let mut pending: Option<(u64, u32, u32)> = None;
                let flush = |(at, mask, value): (u64, u32, u32)| match mask {
                    u32::MAX => allocation.word(at).store(value, Relaxed),
                    _ => update(allocation.word(at), mask, value),
                };
                for_lanes(mask, |lane| {
                    let (at, bits, value) = part(lane);
                    pending = match pending {
                        Some((word, mask, old)) if word == at => Some((at, mask | bits, old & !bits | value)),
                        other => {
                            other.into_iter().for_each(flush);
                            Some((at, bits, value))
                        }
                    };
                });
                pending.into_iter().for_each(flush);
            }
            RegionKind::Shared => {
                let words = &mut self.cluster.shared[..];
                for_lanes(mask, |lane| {
                    let (at, bits, value) = part(lane);
                    let word = &mut words[(at >> 2) as usize];
                    *word = *word & !bits | value;
                });
            }
            RegionKind::Local => {
                let words = &mut self.warp.local[..];
                for_lanes(mask, |lane| {
                    let (at, bits, value) = part(lane);
                    let word = &mut words[(at >> 2) as usize][lane];
                    *word = *word & !bits | value;
                });
            }
            RegionKind::Param => {}
        }
    }
}
