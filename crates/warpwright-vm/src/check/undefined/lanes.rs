//! Undefined values and other lanes: registers that a lane has not written, and shuffles.

use super::{Origin, What, all};
use crate::machine::{LANES, LanesOf, Machine, Row32};
use warpwright_ptx::ir::{DstPair, Reg, Src};

impl Machine<'_> {
    /// Lanes of `missing` are about to read a register that they have not written.
    #[cold]
    pub(crate) fn read_unassigned(&mut self, reg: Reg, missing: u32) {
        let Some(function) = self.launch.module.function_at(self.pc) else { return };
        let frame = self.warp.paths[self.warp.current].frame;
        let bits = all(function.register_type(reg).bits());
        let origins: [Origin; LANES] = std::array::from_fn(|lane| self.origin(lane, What::Register(reg)));
        self.warp.undefined.set(frame, reg, missing, |lane| (bits, origins[lane]));
        self.hold_fuel();
    }

    /// Lanes give a value in a shuffle. Returns which of its bits are undefined.
    pub(crate) fn give(&mut self, data: &Src) -> Row32 {
        let frame = self.warp.paths[self.warp.current].frame;
        let undefined = &mut self.warp.undefined;
        let shadow = match data {
            Src::Reg(reg) => undefined.registers.get(&(frame, *reg)),
            _ => None,
        };
        let Some(shadow) = shadow else { return [0; LANES] };
        LanesOf(self.mask).for_each(|lane| undefined.given[lane] = shadow.origins[lane]);
        shadow.bits.map(|bits| bits as u32)
    }

    /// A shuffle has brought lanes values `from` others, of which these bits are undefined. Where the other is `absent`,
    /// the value is, and nothing was brought.
    #[cold]
    pub(crate) fn shuffled(
        &mut self,
        to: DstPair,
        from: &[usize; LANES],
        brought: &Row32,
        (absent, present): (u32, u32),
    ) {
        let frame = self.warp.paths[self.warp.current].frame;
        let results: [(u128, Origin); LANES] = std::array::from_fn(|lane| match from[lane] {
            _ if absent >> lane & 1 != 0 => (all(32), self.origin(lane, What::Lane { present })),
            from => (brought[from].into(), self.warp.undefined.given[from]),
        });
        let undefined = &mut self.warp.undefined;
        if let Some(reg) = to.second.flatten() {
            undefined.define(frame, reg, self.mask);
        }
        if let Some(reg) = to.first {
            undefined.set(frame, reg, self.mask, |lane| results[lane]);
        }
        if !undefined.is_empty() {
            self.hold_fuel();
        }
    }
}
