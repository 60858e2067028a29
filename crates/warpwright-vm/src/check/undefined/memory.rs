//! Undefined values and memory: loads that begin them, and stores.

use super::{Origin, Shadow, What, all};
use crate::check::{RawPlace, Touch, Use};
use crate::machine::{LANES, LanesOf, Machine};
use crate::memory::{Group, RegionKind, SpaceKind};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;

impl<'a> Machine<'a> {
    /// Lanes are about to read bytes of local memory that were never written: what a lane reads from `start` on of what
    /// the instruction loads. Returns the lanes for which the instruction is none that only loads.
    #[cold]
    pub(in crate::check) fn load_local(&mut self, group: &Group<'a>, start: u32, lanes: u32) -> u32 {
        let is_load = self.load_undefined(group, start, lanes, |m, lane, at| {
            let at = group.offsets[lane] + u64::from(at);
            let word = (at >> 2) as u32;
            (m.warp.local_written[word as usize][lane] >> (at & 3) & 1 == 0).then(|| {
                let stored = m.warp.undefined.stored.get(&(word, lane)).copied();
                let place = || m.local_place(group.offsets[lane], group.bytes);
                stored.unwrap_or_else(|| m.origin(lane, What::Memory(place())))
            })
        });
        if is_load { 0 } else { lanes }
    }

    /// Lanes are about to read shared or global memory of which bytes were never written, or hold undefined values.
    /// Returns the lanes where this is no finding by itself: they load shared memory, where code reads beyond the end of a
    /// tile that is not full; or they load global memory of which something was written, since structs are copied with the
    /// gaps between their members.
    #[cold]
    pub(in crate::check) fn load_partly(&mut self, group: &Group<'a>, start: u32, missing: u32) -> u32 {
        let is_written = |m: &Self, at: u64| match group.region.kind {
            RegionKind::Global(allocation) => allocation.written.is_set(at, 1),
            _ => m.cluster.checks.are_written(at, 1),
        };
        let stored = |m: &Self, at: u64| match group.region.kind {
            RegionKind::Global(_) => None,
            _ => m.cluster.checks.undefined_at(at),
        };
        let bytes = |lane: usize| (0..u64::from(group.bytes)).map(move |at| group.offsets[lane] + at);
        let lanes = |has: &dyn Fn(u64) -> bool| {
            LanesOf(missing).filter(|&lane| bytes(lane).any(has)).fold(0, |all, lane| all | 1 << lane)
        };
        let undefined = lanes(&|at| stored(self, at).is_some());
        let partly = match group.region.kind {
            RegionKind::Global(_) => lanes(&|at| is_written(self, at)),
            _ => missing,
        };
        let origin = |m: &Self, lane: usize, at: u32| {
            let at = group.offsets[lane] + u64::from(at);
            let known = stored(m, at);
            known.or_else(|| {
                (!is_written(m, at)).then(|| m.origin(lane, What::Memory(m.place_of(group, lane))))
            })
        };
        if partly == 0 || self.load_undefined(group, start, partly, origin) {
            return partly;
        }
        if let Some(lane) = LanesOf(undefined).next() {
            let first = bytes(lane).find_map(|at| stored(self, at));
            self.report_undefined(first.unwrap_or_default(), lane, Use::Operand, None);
        }
        undefined
    }

    /// A lane is about to copy a run of bytes: what was never written there is undefined here. Where nothing of it was,
    /// that is a finding.
    pub(crate) fn look_for_unwritten_run(&mut self, read: Touch, from: &Group<'a>, to: &Group<'a>) {
        let (first, bytes) = (from.offsets[0], u64::from(from.bytes));
        let are_written = |m: &Self, at: u64, bytes: u64| match from.region.kind {
            RegionKind::Global(allocation) => allocation.written.is_set(at, bytes),
            _ => m.cluster.checks.are_written(at, bytes),
        };
        let is_whole = are_written(self, first, bytes);
        let missing = (0..bytes).filter(|at| !is_whole && !are_written(self, first + at, 1));
        let missing: Vec<u64> = missing.collect();
        if bytes != 0 && missing.len() as u64 == bytes {
            self.add_unwritten(read, from, from.mask);
        }
        self.define_run(to);
        let lane = from.mask.trailing_zeros() as usize & 31;
        for at in missing {
            let known = match from.region.kind {
                RegionKind::Global(_) => None,
                _ => self.cluster.checks.undefined_at(first + at),
            };
            let origin = known.unwrap_or_else(|| self.origin(lane, What::Memory(self.place_of(from, lane))));
            self.undefine_byte(to, to.offsets[0] + at, origin);
        }
    }

    /// What a run of bytes holds is defined from here on.
    pub(crate) fn define_run(&mut self, run: &Group<'a>) {
        let (first, bytes) = (run.offsets[0], u64::from(run.bytes));
        match run.region.kind {
            RegionKind::Global(allocation) => allocation.written.set(first, bytes),
            _ => self.cluster.checks.define(first, bytes),
        }
    }

    /// What a run of bytes holds is undefined from here on.
    pub(crate) fn forget_run(&mut self, run: &Group<'a>) {
        if !self.launch.options.checks.init {
            return;
        }
        let lane = run.mask.trailing_zeros() as usize & 31;
        let origin = self.origin(lane, What::Memory(self.place_of(run, lane)));
        for at in 0..u64::from(run.bytes) {
            self.undefine_byte(run, run.offsets[0] + at, origin);
        }
    }

    fn undefine_byte(&mut self, run: &Group<'a>, at: u64, origin: Origin) {
        match run.region.kind {
            RegionKind::Global(allocation) => allocation.written.clear(at, 1),
            _ => self.cluster.checks.undefine(at, origin),
        }
    }

    /// The place that a lane accesses.
    fn place_of(&self, group: &Group<'a>, lane: usize) -> RawPlace {
        let offset = group.offsets[lane];
        let (space, address) = match group.region.kind {
            RegionKind::Global(allocation) => (SpaceKind::Global, allocation.base + offset),
            _ => (SpaceKind::Shared, self.launch.shape.shared_address(offset)),
        };
        RawPlace { space, address, bytes: group.bytes, frame: None }
    }

    /// Lanes are about to load bytes of which some are undefined: where the value comes from says `undefined` of a byte
    /// that a lane reads. Returns whether the instruction is one that only loads.
    fn load_undefined(
        &mut self,
        group: &Group<'a>,
        start: u32,
        lanes: u32,
        undefined: impl Fn(&Self, usize, u32) -> Option<Origin>,
    ) -> bool {
        let (elements, ty) = match self.launch.module.op(self.pc) {
            Some(Op::Ld(op)) => (&op.d, op.ty),
            Some(Op::Ldu(op)) => (&op.d, op.ty),
            _ => return false,
        };
        let Some(function) = self.launch.module.function_at(self.pc) else { return false };
        let frame = self.warp.paths[self.warp.current].frame;
        let (mut missing, mut origins) = ([0; LANES], [Origin::default(); LANES]);
        for lane in LanesOf(lanes) {
            for at in (0..group.bytes).rev() {
                if let Some(origin) = undefined(self, lane, at) {
                    missing[lane] |= 1 << (start + at);
                    origins[lane] = origin;
                }
            }
        }
        let (bytes, bits) = (ty.bits() / 8, ty.bits());
        for (index, reg) in elements.as_slice().enumerate() {
            let Some(reg) = reg else { continue };
            let width = function.register_type(reg).bits();
            // Other parts of the same load may have been looked at before.
            let before = self.warp.undefined.registers.get(&(frame, reg)).map(|shadow| shadow.bits);
            self.warp.undefined.set(frame, reg, lanes, |lane| {
                let of_element = u32::checked_shr(missing[lane], index as u32 * bytes).unwrap_or(0);
                let undefined = (0..bytes.min(16)).filter(|at| of_element >> at & 1 != 0);
                let mut undefined = undefined.fold(0u128, |all, at| all | 0xff << (8 * at));
                if ty.is_signed() && undefined >> (bits - 1) & 1 != 0 {
                    undefined |= all(width) & !all(bits);
                }
                (undefined | before.map_or(0, |before| before[lane]), origins[lane])
            });
        }
        self.hold_fuel();
        true
    }

    /// A warp loads words of tensor memory that nobody wrote, of which `unwritten` gives the address by register and lane.
    /// A load of all lanes reads what a product of half of them leaves out, so it is no finding by itself.
    #[cold]
    pub(crate) fn load_unwritten_tensor(&mut self, unwritten: impl Fn(usize, usize) -> Option<u32>) {
        let Some(Op::Tcgen05Ld(op)) = self.launch.module.op(self.pc) else { return };
        let (frame, lanes) = (self.warp.paths[self.warp.current].frame, self.mask);
        for (index, reg) in op.d.as_slice().enumerate() {
            let Some(reg) = reg else { continue };
            let marks: [_; LANES] = std::array::from_fn(|lane| match unwritten(index, lane) {
                Some(address) => {
                    let place =
                        RawPlace { space: SpaceKind::Tensor, address: address.into(), bytes: 4, frame: None };
                    (all(32), self.origin(lane, What::Memory(place)))
                }
                None => (0, Origin::default()),
            });
            self.warp.undefined.set(frame, reg, lanes, |lane| marks[lane]);
        }
        self.hold_fuel();
    }

    /// From the next instruction on, fuel is handed out by [`Self::follow`].
    pub(super) fn hold_fuel(&mut self) {
        self.held += self.fuel;
        self.warp.clock -= u64::from(self.fuel);
        self.fuel = 0;
    }

    /// A place in local memory, with the frame that it is in.
    pub(super) fn local_place(&self, offset: u64, bytes: u32) -> RawPlace {
        let mut index = self.warp.paths[self.warp.current].frame;
        let mut owner = None;
        while let Some(frame) = self.warp.frames.get(index as usize) {
            if offset >= u64::from(frame.local) {
                owner = Some((frame.function, frame.local));
                break;
            }
            index = frame.parent;
        }
        RawPlace { space: SpaceKind::Local, address: offset, bytes, frame: owner }
    }

    /// A store: what is undefined of what is written is undefined there. To global memory it is a use if nothing is
    /// defined of what is written, or of a floating-point number: structs are copied with the gaps between their members,
    /// as integers.
    #[cold]
    pub(in crate::check) fn store_undefined(&mut self, group: &Group<'a>) {
        let Some(Op::St(op)) = self.launch.module.op(self.pc) else { return };
        let frame = self.warp.paths[self.warp.current].frame;
        let bytes = op.ty.bits() / 8;
        let elements: Vec<Option<&Shadow>> =
            op.a.as_slice()
                .iter()
                .map(|src| match src {
                    Src::Reg(reg) => self.warp.undefined.registers.get(&(frame, *reg)).map(Box::as_ref),
                    _ => None,
                })
                .collect();
        let undefined = |lane: usize, at: u32| {
            let shadow = elements[(at / bytes) as usize]?;
            (shadow.bits[lane] >> (8 * (at % bytes)) & 0xff == 0xff).then_some(shadow.origins[lane])
        };
        if let RegionKind::Global(allocation) = group.region.kind {
            let is_undefined =
                |lane: usize, mut range: std::ops::Range<u32>| range.all(|at| undefined(lane, at).is_some());
            let used = |lane: usize, at: u32| {
                let wholly = if op.ty.is_float() { at..at + bytes } else { 0..group.bytes };
                is_undefined(lane, wholly).then_some((lane, undefined(lane, at)?))
            };
            let elements = || (0..group.bytes).step_by(bytes as usize);
            if let Some((lane, origin)) =
                LanesOf(group.mask).find_map(|lane| elements().find_map(|at| used(lane, at)))
            {
                let address = allocation.base + group.offsets[lane];
                let place = RawPlace { space: SpaceKind::Global, address, bytes: group.bytes, frame: None };
                self.report_undefined(origin, lane, Use::Store, Some(place));
            }
        }
        let mut stored = Vec::new();
        for lane in LanesOf(group.mask) {
            let of_byte =
                |at| undefined(lane, at).map(|origin| (group.offsets[lane] + u64::from(at), lane, origin));
            stored.extend((0..group.bytes).filter_map(of_byte));
        }
        for (at, lane, origin) in stored {
            match group.region.kind {
                RegionKind::Global(allocation) => allocation.written.clear(at, 1),
                RegionKind::Local => {
                    self.warp.local_written[(at >> 2) as usize][lane] &= !(1 << (at & 3));
                    self.warp.undefined.stored.insert(((at >> 2) as u32, lane), origin);
                }
                _ => self.cluster.checks.undefine(at, origin),
            }
        }
    }
}
