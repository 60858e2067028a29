//! One remembered access of a warp to bytes of one row of memory.

use super::access::{Agent, Spot};
use super::knowledge::AGENTS;

/// Bytes of a row: what one warp access covers with 4 bytes a lane.
pub(super) const ROW_BYTES: u64 = 128;

/// The lanes of a mask, ascending.
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros();
            mask &= mask - 1;
            lane
        })
    })
}

/// A set of the 128 bytes of a row. Two words, so that an entry needs no 16-byte alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes {
    low: u64,
    high: u64,
}

impl Bytes {
    /// The whole row.
    pub(super) const ALL: Bytes = Bytes { low: u64::MAX, high: u64::MAX };

    /// `count` bytes from `start`; both inside the row.
    pub(super) fn range(start: u32, count: u32) -> Bytes {
        let ones = if count >= 128 { u128::MAX } else { (1u128 << count) - 1 };
        Bytes::from_bits(ones << start)
    }

    fn from_bits(bits: u128) -> Bytes {
        Bytes { low: bits as u64, high: (bits >> 64) as u64 }
    }

    /// The bytes from `start` on whose bits are set.
    pub(super) fn bits_at(start: u32, bits: u128) -> Bytes {
        Bytes::from_bits(bits << start)
    }

    /// Bits of the first or the last 64 bytes.
    #[inline(always)]
    pub(super) fn half(self, half: usize) -> u64 {
        if half == 0 { self.low } else { self.high }
    }

    /// Adds bits of the first or the last 64 bytes.
    #[inline(always)]
    pub(super) fn add_half(&mut self, half: usize, bits: u64) {
        if half == 0 {
            self.low |= bits;
        } else {
            self.high |= bits;
        }
    }

    /// Takes bits of the first or the last 64 bytes away.
    #[inline(always)]
    pub(super) fn drop_half(&mut self, half: usize, bits: u64) {
        if half == 0 {
            self.low &= !bits;
        } else {
            self.high &= !bits;
        }
    }

    pub(super) fn bits(self) -> u128 {
        u128::from(self.low) | u128::from(self.high) << 64
    }

    /// The first byte, of several.
    pub(super) fn first(self) -> u32 {
        if self.low == 0 { 64 + self.high.trailing_zeros() } else { self.low.trailing_zeros() }
    }

    pub(super) fn is_empty(self) -> bool {
        self.low | self.high == 0
    }

    pub(super) fn and(self, other: Bytes) -> Bytes {
        Bytes { low: self.low & other.low, high: self.high & other.high }
    }

    pub(super) fn or(self, other: Bytes) -> Bytes {
        Bytes { low: self.low | other.low, high: self.high | other.high }
    }

    pub(super) fn without(self, other: Bytes) -> Bytes {
        Bytes { low: self.low & !other.low, high: self.high & !other.high }
    }

    pub(super) fn contains(self, other: Bytes) -> bool {
        other.without(self).is_empty()
    }

    pub(super) fn count(self) -> u32 {
        self.low.count_ones() + self.high.count_ones()
    }
}

/// Which lanes accessed a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    /// All of these lanes accessed every byte of the entry.
    Set(u32),
    /// Byte `b` of the row was accessed by lane `(b >> shift) + base`: neighbours beside neighbours.
    Affine { shift: u8, base: i8 },
}

/// The scope of a strong access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The block (and, until clusters are launched, the cluster).
    Block,
    /// The device, or the system.
    Device,
}

/// An asynchronous agent did it: one more than its number, or 0.
pub(super) const AGENT: u32 = 7 << AGENT_SHIFT;
const AGENT_SHIFT: u32 = 3;
const WRITE: u32 = 1 << 6;
const STRONG: u32 = 1 << 7;
const ATOMIC: u32 = 1 << 8;
const DEVICE: u32 = 1 << 9;
const AFFINE: u32 = 1 << 10;
const SIZE_SHIFT: u32 = 12;
const SIZE: u32 = 7 << SIZE_SHIFT;
const SERIAL_SHIFT: u32 = 16;
/// The common part of two executions of one instruction: everything but the serial number.
const STATIC: u32 = (1 << SERIAL_SHIFT) - 1;
/// What accesses have in common that mean the same to others.
const CLASS: u32 = STATIC & !AFFINE;

/// An access to bytes of a row: 48 bytes, so that the shadow of memory touched a row at a time is about as
/// large as the memory. Several warps share an entry where all they did is the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// Which bytes of the row. None: there is no entry.
    pub(super) bytes: Bytes,
    /// The block's clock then.
    pub(super) clock: u64,
    pub(super) block: u32,
    /// The instruction.
    pub(super) pc: u32,
    /// The warps: of each of them, the same lanes accessed the same bytes.
    pub(super) warps: u32,
    /// A set of lanes, or `shift | (base + 64) << 8`.
    lanes: u32,
    meta: u32,
}

/// What all bytes of one executed instruction have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) block: u32,
    pub(super) clock: u64,
    pub(super) pc: u32,
    pub(super) warp: u8,
    pub(super) write: bool,
    pub(super) atomic: bool,
    /// The scope of a strong access.
    pub(super) strong: Option<Scope>,
    /// Bytes of the scalar: power of two up to 16.
    pub(super) element: u32,
    /// Tells executions of one instruction apart; wraps.
    pub(super) serial: u16,
}

impl Stamp {
    /// An entry of no bytes.
    pub(super) fn entry(&self) -> Entry {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let meta = u32::from(self.warp / AGENTS) << AGENT_SHIFT
            | flag(self.write, WRITE)
            | flag(self.atomic, ATOMIC)
            | flag(self.strong.is_some(), STRONG)
            | flag(self.strong == Some(Scope::Device), DEVICE)
            | (self.element.trailing_zeros() << SIZE_SHIFT) & SIZE
            | u32::from(self.serial) << SERIAL_SHIFT;
        Entry {
            bytes: Bytes::default(),
            clock: self.clock,
            block: self.block,
            pc: self.pc,
            warps: 1 << (self.warp % AGENTS),
            lanes: 0,
            meta,
        }
    }
}

impl Entry {
    /// The same access to other bytes, by other lanes.
    #[inline(always)]
    pub(super) fn with(&self, bytes: Bytes, lanes: Lanes) -> Entry {
        let (lanes, affine) = match lanes {
            Lanes::Set(mask) => (mask, 0),
            Lanes::Affine { shift, base } => {
                (u32::from(shift) | ((i32::from(base) + 64) as u32) << 8, AFFINE)
            }
        };
        Entry { bytes, lanes, meta: self.meta & !AFFINE | affine, ..*self }
    }

    pub(super) fn is_write(&self) -> bool {
        self.meta & WRITE != 0
    }

    pub(super) fn is_atomic(&self) -> bool {
        self.meta & ATOMIC != 0
    }

    pub(super) fn is_strong(&self) -> bool {
        self.meta & STRONG != 0
    }

    /// Whether it is strong for the device.
    pub(super) fn is_device(&self) -> bool {
        self.meta & DEVICE != 0
    }

    /// The conflict class of an access: accesses of a class conflict with the same accesses.
    pub(super) fn class(&self) -> u32 {
        self.meta & CLASS
    }

    pub(super) fn serial(&self) -> u16 {
        (self.meta >> SERIAL_SHIFT) as u16
    }

    /// An entry of a class that is part of an access known otherwise.
    pub(super) fn of_class(class: u32, serial: u16) -> Entry {
        Entry { meta: class & CLASS | u32::from(serial) << SERIAL_SHIFT, ..Entry::default() }
    }

    /// The first of the warps; from [`AGENTS`] on, the warp's asynchronous agent.
    pub(super) fn warp(&self) -> u8 {
        let agent = (self.meta & AGENT) >> AGENT_SHIFT;
        self.warps.trailing_zeros() as u8 % AGENTS + agent as u8 * AGENTS
    }

    /// One entry for each warp.
    pub(super) fn each_warp(&self) -> impl Iterator<Item = Entry> {
        lanes(self.warps).map(|warp| Entry { warps: 1 << warp, ..*self })
    }

    pub(super) fn is_async(&self) -> bool {
        self.meta & AGENT != 0
    }

    /// The agent that performed it.
    pub(super) fn agent(&self) -> Option<Agent> {
        use Agent::{Copies, Counted, GroupReads, GroupWrites, Products, Stores, Tensor};
        let agents = [Copies, Stores, Counted, GroupReads, GroupWrites, Products, Tensor];
        agents.get(((self.meta & AGENT) >> AGENT_SHIFT).wrapping_sub(1) as usize).copied()
    }

    /// Bytes of the scalar that was accessed.
    pub(super) fn element(&self) -> u32 {
        1 << ((self.meta & SIZE) >> SIZE_SHIFT)
    }

    pub(super) fn lanes(&self) -> Lanes {
        if self.meta & AFFINE == 0 {
            return Lanes::Set(self.lanes);
        }
        Lanes::Affine { shift: self.lanes as u8, base: ((self.lanes >> 8) as i32 - 64) as i8 }
    }

    /// The lanes that accessed a byte of the entry.
    #[inline(always)]
    pub(super) fn lanes_at(&self, byte: u32) -> u32 {
        match self.lanes() {
            Lanes::Set(mask) => mask,
            Lanes::Affine { shift, base } => {
                1u32.checked_shl(((byte >> shift) as i32 + i32::from(base)) as u32).unwrap_or(0)
            }
        }
    }

    /// Takes lanes out of a set; false where the entry has another form.
    pub(super) fn drop_lanes(&mut self, lanes: u32) -> bool {
        if self.meta & AFFINE != 0 {
            return false;
        }
        self.lanes &= !lanes;
        if self.lanes == 0 {
            self.bytes = Bytes::default();
        }
        true
    }

    /// Whether it says of a spot only that its one lane, of the warp of `new`, accessed it at this time.
    pub(super) fn is_by(&self, new: &Entry, spot: &Spot) -> bool {
        let first = spot.first as u32 * 2;
        let lane = |byte: u32| self.lanes_at(byte) == spot.lanes;
        self.clock == new.clock
            && self.block == new.block
            && self.warps == new.warps
            && !self.is_async()
            && spot.lanes.is_power_of_two()
            && match self.lanes() {
                Lanes::Set(lanes) => lanes == spot.lanes,
                Lanes::Affine { .. } => lane(first) && lane(first + spot.count as u32 * 2 - 1),
            }
    }

    /// Whether both have the same bytes per lane: every common byte was accessed by one thread only,
    /// the same in both, if the warp is the same.
    pub(super) fn is_lanewise(&self, other: &Entry) -> bool {
        self.lanes == other.lanes
            && (self.meta ^ other.meta) & AFFINE == 0
            && (self.meta & AFFINE != 0 || self.lanes.is_power_of_two())
    }

    /// Whether the threads of `new`, of one warp, read what others of them or other threads wrote strongly here: at
    /// which bytes.
    pub(super) fn of_others(&self, new: &Entry) -> Bytes {
        let common = self.bytes.and(new.bytes);
        if common.is_empty() || !self.is_strong() || self.is_async() || self.meta & SIZE != new.meta & SIZE {
            return Bytes::default();
        }
        if self.block != new.block || self.warps != new.warps {
            return common;
        }
        if self.is_lanewise(new) {
            return Bytes::default();
        }
        let (mut left, mut others) = (common.bits(), 0);
        while left != 0 {
            let byte = left.trailing_zeros();
            let lanes = self.lanes_at(byte);
            if !lanes.is_power_of_two() || lanes != new.lanes_at(byte) {
                others |= 1 << byte;
            }
            left &= left - 1;
        }
        Bytes::from_bits(others)
    }

    /// Whether it is the same instruction of the same block at the same time.
    fn is_same_time(&self, other: &Entry) -> bool {
        self.clock == other.clock
            && self.pc == other.pc
            && self.block == other.block
            && (self.meta ^ other.meta) & STATIC == 0
    }

    /// Whether it is one and the same execution of an instruction.
    pub(super) fn is_same_execution(&self, other: &Entry) -> bool {
        self.clock == other.clock
            && self.pc == other.pc
            && self.block == other.block
            && self.warps == other.warps
            && (self.meta ^ other.meta) & !AFFINE == 0
    }

    /// Whether `new` adds nothing: the threads made the same access to the bytes before, and nothing that could order
    /// one of the two differently happened in between.
    #[inline(always)]
    pub(super) fn says(&self, new: &Entry) -> bool {
        self.clock == new.clock
            && self.lanes == new.lanes
            && self.block == new.block
            && self.warps & new.warps == new.warps
            && (self.meta ^ new.meta) & STATIC == 0
            && self.bytes.contains(new.bytes)
    }

    /// Takes `new` in, if one entry can say both.
    pub(super) fn absorb(&mut self, new: &Entry) -> bool {
        if !self.is_same_time(new) {
            return false;
        }
        if self.lanes == new.lanes && self.warps == new.warps {
            self.bytes = self.bytes.or(new.bytes);
        } else if self.bytes == new.bytes && self.warps == new.warps && self.meta & AFFINE == 0 {
            self.lanes |= new.lanes;
        } else if self.bytes == new.bytes && self.lanes == new.lanes {
            self.warps |= new.warps;
        } else {
            return false;
        }
        self.meta = new.meta;
        true
    }

    /// Whether the two are strong for each other: then they may meet in any order.
    pub(super) fn is_morally_strong(&self, other: &Entry) -> bool {
        let both = self.meta & other.meta;
        both & STRONG != 0
            && (self.meta ^ other.meta) & SIZE == 0
            && (self.block == other.block || both & DEVICE != 0)
    }

    /// Whether everything that would conflict with `old`, unordered, would conflict with this too. Then this can
    /// represent both, once `old` is ordered before it (or was reported). A strong write may be observed, and with it
    /// earlier writes, but never a read.
    pub(super) fn stands_for(&self, old: &Entry) -> bool {
        if old.is_write() && !self.is_write() {
            return false;
        }
        !self.is_strong()
            || (old.is_strong()
                && self.is_write() == old.is_write()
                && self.block == old.block
                && (self.meta ^ old.meta) & SIZE == 0
                && (self.meta & DEVICE) <= (old.meta & DEVICE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Entry>(), 48);
    }

    #[test]
    fn an_affine_entry_knows_each_bytes_lane() {
        let stamp = Stamp {
            block: 7,
            clock: 9,
            pc: 3,
            warp: 5,
            write: true,
            atomic: false,
            strong: None,
            element: 4,
            serial: 1,
        };
        let entry = stamp.entry().with(Bytes::range(16, 112), Lanes::Affine { shift: 3, base: -2 });
        assert_eq!(entry.lanes_at(16), 1);
        assert_eq!(entry.lanes_at(31), 2);
        assert_eq!(entry.lanes_at(127), 1 << 13);
        assert_eq!((entry.warp(), entry.element(), entry.is_write()), (5, 4, true));
    }
}
