//! Scattered accesses of a block to one row: the last accessor of each pair of bytes.
//!
//! If lanes access small pieces of a row in no order (fields of structures, bins of a histogram, columns of a tile),
//! one entry per piece would be many entries. A [`Scatter`] records for every two bytes of the row the last accessor
//! and the time, in one place that needs no search. It is exact: an access that does not fit (two bytes accessed by
//! different lanes, threads that are not a product of warps and lanes) is refused, and kept elsewhere.

use super::access::Spot;
use super::clock::Standing;
use super::entry::{AGENT, Bytes, Entry, Lanes, ROW_BYTES};
use super::order::{Found, View, unordered};

/// Bytes that a unit is about.
const UNIT_BYTES: u32 = 2;
const UNITS: usize = (ROW_BYTES / UNIT_BYTES as u64) as usize;
/// An instruction's number shares a word with a lane.
const PC_BITS: u32 = 27;
const PC: u32 = (1 << PC_BITS) - 1;

/// Accesses to two bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    /// The threads: these lanes of each of these warps.
    lanes: u32,
    warps: u32,
    /// The last instruction, and above it a lane that executed it.
    pc: u32,
    /// The clock, from the scatter's base.
    age: u32,
}

/// What a block did to a row, in small pieces.
#[derive(Debug)]
pub(super) struct Scatter {
    /// Which bytes it did it to.
    bytes: Bytes,
    /// Those that the execution numbered `serial` accessed.
    latest: Bytes,
    serial: u16,
    block: u32,
    /// What sort of access it is.
    class: u32,
    /// The warps that may be spoken of here.
    warps: u32,
    base: u64,
    newest: u64,
    units: Box<[Unit; UNITS]>,
}

/// The bits of two bytes.
#[inline(always)]
fn pair(bytes: Bytes, unit: usize) -> u32 {
    (bytes.half(unit * 2 / 64) >> (unit * 2 % 64)) as u32 & 3
}

/// The units of which there are bytes.
#[inline(always)]
fn units(bytes: Bytes) -> impl Iterator<Item = (usize, u32)> {
    let both = bytes.bits();
    let (first, end) =
        (both.trailing_zeros() as usize / 2, (128 - both.leading_zeros() as usize).div_ceil(2));
    (first..end).map(move |unit| (unit, pair(bytes, unit))).filter(|&(_, bits)| bits != 0)
}

/// The lanes that accessed two bytes, where it is the same for both.
#[inline(always)]
fn lanes_of(entry: &Entry, unit: usize, bits: u32) -> Option<u32> {
    let byte = unit as u32 * UNIT_BYTES;
    match bits {
        1 => Some(entry.lanes_at(byte)),
        2 => Some(entry.lanes_at(byte + 1)),
        _ => {
            let lanes = entry.lanes_at(byte);
            (lanes == entry.lanes_at(byte + 1)).then_some(lanes)
        }
    }
}

impl Scatter {
    /// For what is like `new`, of these warps.
    pub(super) fn new(new: &Entry, warps: u32) -> Scatter {
        Scatter {
            bytes: Bytes::default(),
            latest: Bytes::default(),
            serial: 0,
            block: new.block,
            class: new.class(),
            warps,
            base: new.clock,
            newest: new.clock,
            units: Box::new([Unit::default(); UNITS]),
        }
    }

    /// Discards the contents; from now on the scatter is for accesses like `new`.
    pub(super) fn renew(&mut self, new: &Entry, warps: u32) {
        (self.bytes, self.latest) = Default::default();
        (self.block, self.class, self.warps) = (new.block, new.class(), warps);
        (self.base, self.newest) = (new.clock, new.clock);
    }

    pub(super) fn clear(&mut self) {
        self.bytes = Bytes::default();
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(super) fn block(&self) -> u32 {
        self.block
    }

    pub(super) fn class(&self) -> u32 {
        self.class
    }

    /// Whether it speaks of any warp.
    pub(super) fn is_open(&self) -> bool {
        self.warps == u32::MAX
    }

    /// Whether `new` may be kept here, if it fits.
    #[inline(always)]
    pub(super) fn is_for(&self, new: &Entry) -> bool {
        self.block == new.block && self.class == new.class() && self.warps & new.warps == new.warps
    }

    pub(super) fn forget(&mut self, bytes: Bytes) {
        self.bytes = self.bytes.without(bytes);
    }

    fn entry(&self, unit: usize, bits: u32) -> Entry {
        let of = &self.units[unit];
        let bytes = Bytes::bits_at(unit as u32 * UNIT_BYTES, bits.into());
        let is_latest = !bytes.and(self.latest).is_empty();
        let serial = if is_latest { self.serial } else { self.serial.wrapping_sub(1) };
        let mut entry = Entry::of_class(self.class, serial).with(bytes, Lanes::Set(of.lanes));
        entry.clock = self.base + u64::from(of.age);
        entry.block = self.block;
        entry.pc = of.pc & PC;
        entry.warps = of.warps;
        entry
    }

    /// Keeps `new`, and says whether it could.
    #[inline]
    pub(super) fn take(&mut self, new: &Entry, view: &View<'_>) -> bool {
        let Some(Ok(age)) = new.clock.checked_sub(self.base).map(u32::try_from) else { return false };
        if new.pc > PC {
            return false;
        }
        for (at, bits) in units(new.bytes) {
            let Some(lanes) = lanes_of(new, at, bits) else { return false };
            let there = pair(self.bytes, at);
            if there != 0 && !self.fits(new, (at, bits, there), lanes, age, view) {
                return false;
            }
        }
        for (at, bits) in units(new.bytes) {
            let Some(lanes) = lanes_of(new, at, bits) else { continue };
            let there = pair(self.bytes, at);
            let unit = &mut self.units[at];
            let pc = new.pc | lanes.trailing_zeros() << PC_BITS;
            if there == 0 || unit.age != age {
                *unit = Unit { lanes, warps: new.warps, pc, age };
            } else if there & bits == bits {
                unit.lanes |= lanes;
                unit.warps |= new.warps;
                // What is said of more threads or bytes keeps the instruction that they all executed.
                if there == bits && unit.warps == new.warps {
                    unit.pc = pc;
                }
            } else {
                unit.pc = pc;
            }
        }
        if self.serial != new.serial() {
            self.serial = new.serial();
            self.latest = Bytes::default();
        }
        self.bytes = self.bytes.or(new.bytes);
        self.latest = self.latest.or(new.bytes);
        self.newest = self.newest.max(new.clock);
        true
    }

    /// Records the accesses of one warp's lanes to a few units, if this needs no look-up: each unit must be empty, or
    /// contain only accesses of the warp at this time, or of the same lanes of other warps with the same instruction.
    /// With `alone`, only those of the same threads.
    #[inline(always)]
    pub(super) fn add(&mut self, new: &Entry, spot: &Spot, alone: bool) -> bool {
        let age = new.clock.wrapping_sub(self.base);
        if age > u32::MAX.into() || new.pc > PC {
            return false;
        }
        let age = age as u32;
        let Some(units) = self.units.get_mut(spot.first..spot.first + spot.count) else { return false };
        let pc = new.pc | spot.lanes.trailing_zeros() << PC_BITS;
        let there = self.bytes.half(spot.half) & spot.bits;
        if there != 0 {
            let same = |unit: &Unit| {
                let same_lanes = unit.lanes == spot.lanes;
                let same_warps = unit.warps == new.warps;
                let fits = if alone {
                    same_lanes && same_warps
                } else {
                    same_warps || (same_lanes && unit.pc == pc)
                };
                fits && unit.age == age
            };
            if there != spot.bits || !units.iter().all(same) {
                return false;
            }
        }
        let before = if there == 0 { 0 } else { u32::MAX };
        for unit in units {
            let (lanes, warps) = (unit.lanes & before | spot.lanes, unit.warps & before | new.warps);
            *unit = Unit { lanes, warps, pc, age };
        }
        if self.serial != new.serial() {
            self.serial = new.serial();
            self.latest = Bytes::default();
        }
        self.bytes.add_half(spot.half, spot.bits);
        self.latest.add_half(spot.half, spot.bits);
        self.newest = new.clock;
        true
    }

    /// A lane of a warp writes a few units: if all that is said of them is that the same thread accessed
    /// them at this time, nothing is said of them any more.
    #[inline(always)]
    pub(super) fn replace(&mut self, new: &Entry, spot: &Spot) -> bool {
        let age = new.clock.wrapping_sub(self.base);
        let Some(units) = self.units.get(spot.first..spot.first + spot.count) else { return false };
        let own =
            |unit: &Unit| u64::from(unit.age) == age && unit.warps == new.warps && unit.lanes == spot.lanes;
        let there = self.bytes.half(spot.half) & spot.bits;
        if there == 0 {
            return true;
        }
        let is = self.block == new.block
            && there == spot.bits
            && self.class & AGENT == 0
            && spot.lanes.is_power_of_two()
            && units.iter().all(own);
        if is {
            self.bytes.drop_half(spot.half, spot.bits);
        }
        is
    }

    /// Whether a unit can represent both its contents and an access of `lanes` to its `bits`.
    #[inline(always)]
    fn fits(
        &self,
        new: &Entry,
        (at, bits, there): (usize, u32, u32),
        lanes: u32,
        age: u32,
        view: &View<'_>,
    ) -> bool {
        let unit = &self.units[at];
        if unit.age != age {
            // All of it must be of the past for those who come now.
            let part = new.with(new.bytes.and(Bytes::bits_at(at as u32 * UNIT_BYTES, 3)), new.lanes());
            return there & !bits == 0 && !unordered(&self.entry(at, there), &part, view, |_| true);
        }
        let same_pc = unit.pc & PC == new.pc;
        let (same_lanes, same_warps) = (unit.lanes == lanes, unit.warps == new.warps);
        if there != bits {
            return same_lanes && same_warps && (same_pc || there & !bits == 0 || bits & !there == 0);
        }
        same_warps
            || (same_lanes && same_pc)
            || (unit.lanes & lanes == lanes && unit.warps & new.warps == new.warps)
    }

    /// The bytes of a strong read that other threads wrote strongly.
    pub(super) fn of_others(&self, new: &Entry) -> Bytes {
        let common = self.bytes.and(new.bytes);
        units(common).fold(Bytes::default(), |all, (at, bits)| all.or(self.entry(at, bits).of_others(new)))
    }

    /// Compares the access `new` with the contents: it may replace them, and if `race` is given, the two conflict
    /// unless they are strong for each other. Returns whether something was removed.
    pub(super) fn meet(&mut self, new: &Entry, view: &View<'_>, mut race: Option<&mut Found<'_>>) -> bool {
        let common = self.bytes.and(new.bytes);
        if common.is_empty() {
            return false;
        }
        let mut like = Entry::of_class(self.class, 0);
        like.block = self.block;
        let stands = new.stands_for(&like);
        let conflicts = race.is_some() && !like.is_morally_strong(new);
        // What the own block did is replaced where it is kept.
        if !conflicts && (!stands || self.block == view.clocks.block) {
            return false;
        }
        match view.clocks.standing(self.block, self.newest, like.is_async()) {
            Standing::Known if stands => {
                self.bytes = self.bytes.without(common);
                return true;
            }
            Standing::Known => return false,
            Standing::Unknown if !conflicts => return false,
            _ => {}
        }
        let mut gone = Bytes::default();
        let mut settled = None;
        for (at, bits) in units(common) {
            let old = self.entry(at, bits);
            let open = match race.as_deref_mut() {
                Some(race) if conflicts && settled != Some(old.pc) => {
                    // Of all lanes, rather the one that is known to have executed the instruction.
                    let witness = old.with(old.bytes, Lanes::Set(1 << (self.units[at].pc >> PC_BITS)));
                    let mut tell = |meeting| {
                        let is = race(&old, meeting);
                        if is {
                            settled = Some(old.pc);
                        }
                        is
                    };
                    unordered(&witness, new, view, &mut tell) || unordered(&old, new, view, &mut tell)
                }
                _ => unordered(&old, new, view, |_| true),
            };
            if stands && (!open || conflicts) {
                gone = gone.or(old.bytes);
            }
        }
        self.bytes = self.bytes.without(gone);
        !gone.is_empty()
    }
}
