//! Registers that the warps of a block exchange through shared memory, as they lie: lane by lane, so that nothing meets
//! in a bank and no layout has to be known.

use super::pointer::Ptr;
use super::reg::Reg;
use super::types::*;
use super::K;
use std::panic::Location;
use warpwright_ptx::diag::Code;

const LANES: u32 = 32;
/// Registers that move at once.
const VECTOR: u32 = 4;

/// Registers of a warp that are kept in shared memory, and are the same for all warps of the block: see [`K::park`].
#[derive(Clone, Copy, Debug)]
pub struct Parked<'k> {
    k: K<'k>,
    memory: Ptr<'k, Shared, u32>,
    count: u32,
}

impl<'k> K<'k> {
    /// Keeps `count` registers of each lane in shared memory, for when registers are wanted for something else: what
    /// `words` makes of them in the first warp. `count` is a multiple of 4. All threads of the block call it.
    #[track_caller]
    pub fn park(self, count: u32, words: impl Fn() -> Vec<Reg<'k, u32>>) -> Parked<'k> {
        let loc = Location::caller();
        let memory = self.shared_at::<u32>(count.max(1) * LANES, loc);
        self.when(self.warp().eq(0), || {
            let words = words();
            if words.len() as u32 != count || !count.is_multiple_of(VECTOR) {
                let message = format!("{} registers for {count} that are kept; four at a time", words.len());
                self.state().mistake(Code::VectorShape, loc, message);
                return;
            }
            for (first, vector) in (0..).step_by(VECTOR as usize).zip(words.chunks_exact(VECTOR as usize)) {
                memory.st_vec(place(self, first), [vector[0], vector[1], vector[2], vector[3]]);
            }
        });
        self.sync();
        Parked { k: self, memory, count }
    }

    /// Adds up registers over the warps of the block, and leaves the sums to all of them: `each` gets the number of a
    /// vector among `values` and its sums over the warps, lane by lane, once in one of the warps. Up to `bytes` of shared
    /// memory are used, or what four registers of all threads take. All threads of the block call it.
    ///
    /// It is added up in the order of the warps.
    #[track_caller]
    pub fn reduce_scatter(
        self,
        values: &[[Reg<'k, f32>; 4]],
        bytes: u32,
        each: impl Fn(Reg<'k, u32>, [Reg<'k, f32>; 4]),
    ) {
        let (loc, warps, total) = (Location::caller(), self.threads().div_ceil(LANES), values.len() as u32);
        let vector_bytes = VECTOR * LANES * 4;
        let at_once = (bytes / (warps * vector_bytes)).clamp(1, total.max(1));
        let memory = self.shared_at::<f32>(warps * at_once * VECTOR * LANES, loc);
        let of_warp = |warp: Reg<'k, u32>| memory.at(warp * (at_once * VECTOR * LANES));
        for (first, part) in (0..).step_by(at_once as usize).zip(values.chunks(at_once as usize)) {
            let own = of_warp(self.warp());
            for (i, &vector) in (0..).zip(part) {
                own.st_vec(place(self, i * VECTOR), vector);
            }
            self.sync();
            self.each(self.range(self.warp()..self.u32(part.len() as u32)).step(warps), |i| {
                let at = place(self, 0) + i * (VECTOR * LANES);
                let parts = (0..warps).map(|warp| of_warp(self.u32(warp)).ld_vec::<4>(at));
                let sum = parts.reduce(|sum, part| std::array::from_fn(|i| sum[i] + part[i]));
                each(i + first, sum.unwrap_or([self.f32(0.0); 4]));
            });
            if first + at_once < total {
                self.sync();
            }
        }
    }
}

/// Where a lane's registers from a multiple of four on lie.
fn place(k: K<'_>, first: u32) -> Reg<'_, u32> {
    k.lane() * VECTOR + first * LANES
}

impl<'k> Parked<'k> {
    /// `count` of the lane's registers from `first` on, both multiples of 4.
    #[track_caller]
    pub fn get(self, first: u32, count: u32) -> Vec<Reg<'k, u32>> {
        let whole = first.is_multiple_of(VECTOR) && count.is_multiple_of(VECTOR);
        if !whole || first + count > self.count {
            let message = format!("{count} registers from {first} on of {} that are kept", self.count);
            self.k.state().mistake(Code::VectorShape, Location::caller(), message);
            return Vec::new();
        }
        let vectors = (first..first + count).step_by(VECTOR as usize);
        vectors.flat_map(|first| self.memory.ld_vec::<4>(place(self.k, first))).collect()
    }
}
