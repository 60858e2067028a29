//! Reductions over runs of lanes, and prefix sums over the warp and the block.
//!
//! All threads of the warp, or of the block, take part.

use super::K;
use super::collective::{Combine, Reduce};
use super::reg::Reg;
use super::state::{Loc, POISON};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::diag::Code;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// Integers for prefix sums: their sums do not depend on the order.
pub trait Scan: Integer + sealed::Sealed {
    #[doc(hidden)]
    fn from_lane<'k>(value: Reg<'k, Self>, lane: Reg<'k, u32>) -> Reg<'k, Self>;
}

impl Scan for u32 {
    fn from_lane<'k>(value: Reg<'k, u32>, lane: Reg<'k, u32>) -> Reg<'k, u32> {
        value.k.shuffle_idx(value, lane)
    }
}

impl Scan for u64 {
    fn from_lane<'k>(value: Reg<'k, u64>, lane: Reg<'k, u32>) -> Reg<'k, u64> {
        let k = value.k;
        let [low, high] = [value, value >> 32].map(|half| k.shuffle_idx(half.to::<u32>(), lane).to::<u64>());
        (high << 32) | low
    }
}

impl<'k> K<'k> {
    /// The sum over each run of `lanes` lanes, a power of two up to 32, in all of them.
    #[track_caller]
    pub fn group_sum<T: Reduce>(self, value: Reg<'k, T>, lanes: u32) -> Reg<'k, T> {
        self.group_reduce(Combine::Sum, value, lanes, Location::caller())
    }

    /// The maximum over each run of `lanes` lanes, a power of two up to 32, in all of them.
    #[track_caller]
    pub fn group_max<T: Reduce>(self, value: Reg<'k, T>, lanes: u32) -> Reg<'k, T> {
        self.group_reduce(Combine::Max, value, lanes, Location::caller())
    }

    fn group_reduce<T: Reduce>(
        self,
        combine: Combine,
        value: Reg<'k, T>,
        lanes: u32,
        loc: Loc,
    ) -> Reg<'k, T> {
        if !lanes.is_power_of_two() || lanes > 32 {
            let message = format!("a reduction over runs of {lanes} lanes; powers of two up to 32 can");
            return Reg::new(self, self.state().mistake(Code::ModifierCombination, loc, message));
        }
        self.butterfly(combine, value, lanes, loc)
    }

    /// The sum over the lanes up to this one, itself included.
    #[track_caller]
    pub fn warp_scan<T: Scan>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.on_line(Location::caller(), || {
            let lane = self.lane();
            [1, 2, 4, 8, 16].into_iter().fold(value, |sum, distance| {
                let lower = T::from_lane(sum, lane - distance);
                lane.ge(distance).select(sum + lower, sum)
            })
        })
    }

    /// The sum over the threads up to this one, itself included, and the sum over the block.
    #[track_caller]
    pub fn block_scan<T: Scan>(self, value: Reg<'k, T>) -> [Reg<'k, T>; 2] {
        let loc = Location::caller();
        let Some(warps) = self.collective_warps(loc) else { return [Reg::new(self, POISON); 2] };
        self.on_line(loc, || {
            let in_warp = self.warp_scan(value);
            if in_warp.id == POISON || warps == 1 {
                return [in_warp, T::from_lane(in_warp, self.u32(31))];
            }
            let scratch = self.collective_scratch::<T>(0, loc);
            let (lane, warp) = (self.lane(), self.warp());
            scratch.st_if(lane.eq(31), warp, in_warp);
            self.sync();
            let zero: Reg<'k, T> = self.constant(warpwright_ptx::ir::Imm::Int(0));
            let warps_up_to = self.warp_scan(scratch.ld_if(lane.lt(warps), lane, zero));
            // The scratch is free for the next once all have read it.
            self.sync();
            let before = T::from_lane(warps_up_to, warp - 1);
            [warp.gt(0).select(in_warp + before, in_warp), T::from_lane(warps_up_to, self.u32(warps - 1))]
        })
    }
}
