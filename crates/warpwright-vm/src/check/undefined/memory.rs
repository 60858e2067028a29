//! Undefined values and memory: loads that begin them, and stores.

use super::{Load, Shadow, all};
use crate::check::{RawPlace, Use};
use crate::machine::{LANES, LanesOf, Machine, Row32};
use crate::memory::{Group, RegionKind, SpaceKind};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;

impl<'a> Machine<'a> {
    /// Lanes are about to load bytes of local memory that were never written: what a lane reads from `start` on of what
    /// the instruction loads. Returns the lanes for which the instruction is none that only loads.
    #[cold]
    pub(in crate::check) fn load_undefined(&mut self, group: &Group<'a>, start: u32, lanes: u32) -> u32 {
        let (elements, ty) = match self.launch.op(self.pc) {
            Some(Op::Ld(op)) => (&op.d, op.ty),
            Some(Op::Ldu(op)) => (&op.d, op.ty),
            _ => return lanes,
        };
        let Some(function) = self.launch.function_at(self.pc) else { return lanes };
        let frame = self.warp.paths[self.warp.current].frame;
        let missing: Row32 = std::array::from_fn(|lane| {
            let byte = |at: u32| {
                let at = group.offsets[lane] + u64::from(at);
                self.warp.local_written[(at >> 2) as usize][lane] >> (at & 3) & 1 == 0
            };
            let is_here = lanes >> lane & 1 != 0;
            (0..group.bytes).filter(|&at| is_here && byte(at)).fold(0, |bits, at| bits | 1 << (start + at))
        });
        let loads: [Load; LANES] = std::array::from_fn(|lane| {
            let Some(first) = missing[lane].checked_ilog2().map(|_| missing[lane].trailing_zeros()) else {
                return Load::default();
            };
            let at = group.offsets[lane];
            let word = (at + u64::from(first - start)) >> 2;
            let stored = self.warp.undefined.stored.get(&(word as u32, lane));
            stored
                .copied()
                .unwrap_or_else(|| Load { pc: self.pc, place: Some(self.local_place(at, group.bytes)) })
        });
        let (bytes, bits) = (ty.bits() / 8, ty.bits());
        for (index, reg) in elements.as_slice().enumerate() {
            let Some(reg) = reg else { continue };
            let width = function.register_type(reg).bits();
            // Other parts of the same load may have been looked at before.
            let before = self.warp.undefined.registers.get(&(frame, reg)).map(|shadow| shadow.bits);
            self.warp.undefined.set(frame, reg, lanes, |lane| {
                let of_element = missing[lane].checked_shr(index as u32 * bytes).unwrap_or(0);
                let undefined = (0..bytes.min(16)).filter(|at| of_element >> at & 1 != 0);
                let mut undefined = undefined.fold(0u128, |all, at| all | 0xff << (8 * at));
                if ty.is_signed() && undefined >> (bits - 1) & 1 != 0 {
                    undefined |= all(width) & !all(bits);
                }
                (undefined | before.map_or(0, |before| before[lane]), loads[lane])
            });
        }
        self.hold_fuel();
        0
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

    /// A store: what is undefined of what is written to local memory leaves its bytes unwritten; elsewhere it is used.
    #[cold]
    pub(in crate::check) fn store_undefined(&mut self, group: &Group<'a>) {
        let Some(Op::St(op)) = self.launch.op(self.pc) else { return };
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
        let is_undefined = |lane: usize, at: u32| {
            let bits = elements[(at / bytes) as usize].map_or(0, |shadow| shadow.bits[lane]);
            bits >> (8 * (at % bytes)) & 0xff == 0xff
        };
        let load = |lane: usize, at: u32| elements[(at / bytes) as usize].map(|shadow| shadow.loads[lane]);
        if let RegionKind::Local = group.region.kind {
            let mut unwritten = Vec::new();
            for lane in LanesOf(group.mask) {
                for at in (0..group.bytes).filter(|&at| is_undefined(lane, at)) {
                    unwritten.push((
                        group.offsets[lane] + u64::from(at),
                        lane,
                        load(lane, at).unwrap_or_default(),
                    ));
                }
            }
            for (at, lane, load) in unwritten {
                self.warp.local_written[(at >> 2) as usize][lane] &= !(1 << (at & 3));
                self.warp.undefined.stored.insert(((at >> 2) as u32, lane), load);
            }
            return;
        }
        // Structs are copied with the gaps between their members.
        let wholly = |lane: &usize| (0..group.bytes).all(|at| is_undefined(*lane, at));
        if let Some(lane) = LanesOf(group.mask).find(wholly) {
            let (space, base) = match group.region.kind {
                RegionKind::Global(allocation) => (SpaceKind::Global, allocation.base),
                _ => (SpaceKind::Shared, 0),
            };
            let address = base + group.offsets[lane];
            let place = RawPlace { space, address, bytes: group.bytes, frame: None };
            self.report_undefined(load(lane, 0).unwrap_or_default(), lane, Use::Store, Some(place));
        }
    }
}
