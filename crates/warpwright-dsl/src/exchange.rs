//! Registers that the warps of a block exchange through shared memory. They are stored lane by lane, so there are no
//! bank conflicts and no layout to know.

use super::K;
use super::pointer::Ptr;
use super::reg::{IntoReg, Reg};
use super::row_wise::RowVector;
use super::spread::List;
use super::types::*;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::Scope;

const LANES: u32 = 32;
/// Registers that move at once.
const VECTOR: u32 = 4;

/// Registers that are kept in registers or in shared memory: see [`K::keep`].
#[derive(Clone, Copy, Debug)]
pub enum Kept<'k> {
    /// In registers.
    Held(List<'k, u32>),
    /// In shared memory, lane by lane.
    Parked(Ptr<'k, Shared, u32>),
}

/// Values for rows that each warp of a block has published in shared memory: see [`K::publish`].
#[derive(Clone, Copy, Debug)]
pub struct Published<'k, const N: usize> {
    memory: Ptr<'k, Shared, f32>,
    rows: u32,
}

impl<'k> K<'k> {
    /// Keeps `count` registers of each lane, a multiple of 4, which have the same values in all warps of the block.
    /// If `held` is true they stay in registers; otherwise they go to shared memory and free registers for other
    /// uses, and only the first warp calls `words`. All threads of the block call it.
    #[track_caller]
    pub fn keep(self, held: bool, count: u32, words: impl Fn() -> Vec<Reg<'k, u32>>) -> Kept<'k> {
        let loc = Location::caller();
        let checked = || {
            let words = words();
            if words.len() as u32 != count || !count.is_multiple_of(VECTOR) {
                let message = format!("{} registers for {count} that are kept; four at a time", words.len());
                self.state().mistake(Code::VectorShape, loc, message);
            }
            words
        };
        if held {
            return Kept::Held(self.list(checked()));
        }
        let memory = self.shared_at::<u32>(count.max(1) * LANES, loc);
        self.when(self.warp().eq(0), || park(memory, &checked()));
        self.sync();
        Kept::Parked(memory)
    }

    /// Parks registers of the warp, a multiple of 4, in shared memory that belongs to it. All lanes call it.
    pub(crate) fn park(self, memory: Ptr<'k, Shared, u32>, words: &[Reg<'k, u32>]) -> Kept<'k> {
        self.sync_warp();
        park(memory, words);
        self.sync_warp();
        Kept::Parked(memory)
    }

    /// Publishes `N` values for each of `rows` rows, separately for each warp of the block, so that all warps can
    /// read them. All threads of the block call it.
    #[track_caller]
    pub fn publish<R: RowVector<'k>, const N: usize>(self, rows: u32, values: [R; N]) -> Published<'k, N> {
        let count = self.threads().div_ceil(LANES) * rows * N as u32;
        let memory = self.shared_at::<f32>(count, Location::caller());
        let own = memory.at(self.warp() * (rows * N as u32));
        for (i, values) in (0..).zip(values) {
            values.each(|row, value| own.st(row * N as u32 + i, value));
        }
        self.sync();
        Published { memory, rows }
    }

    /// Whether the block is the last of `of` blocks that arrive at a counter; the last block sees everything that the
    /// others wrote before they arrived. A counter is zero before the first block arrives and again after the last.
    /// All threads of the block call it.
    #[track_caller]
    pub fn is_last_to_arrive(
        self,
        counters: Ptr<'k, Global, u32>,
        counter: Reg<'k, u32>,
        of: Reg<'k, u32>,
    ) -> Reg<'k, Pred> {
        let last = self.shared_at::<u32>(1, Location::caller());
        self.sync();
        self.when(self.tid().eq(0), || {
            let before = counters.acq_rel(Scope::Gpu).atomic_count(counter, of - 1);
            last.st(0, before.eq(of - 1).u32());
        });
        self.sync();
        last.ld(0).ne(0)
    }

    /// Adds up registers over the warps of the block and distributes the sums among the warps. `each` receives the
    /// number of a vector among `values` and its sums over the warps, lane by lane; it is called once for each
    /// vector, in one of the warps. `at_once` vectors are in shared memory at a time, each of them 512 bytes per
    /// warp. All threads of the block call it.
    ///
    /// The sums are added in the order of the warps.
    #[track_caller]
    pub fn reduce_scatter(
        self,
        values: &[[Reg<'k, f32>; 4]],
        at_once: u32,
        each: impl Fn(Reg<'k, u32>, [Reg<'k, f32>; 4]),
    ) {
        let (loc, warps, total) = (Location::caller(), self.threads().div_ceil(LANES), values.len() as u32);
        let at_once = at_once.clamp(1, total.max(1));
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

/// Stores registers lane by lane.
fn park<'k>(memory: Ptr<'k, Shared, u32>, words: &[Reg<'k, u32>]) {
    for (first, vector) in (0..).step_by(VECTOR as usize).zip(words.chunks_exact(VECTOR as usize)) {
        memory.st_vec(place(memory.k, first), [vector[0], vector[1], vector[2], vector[3]]);
    }
}

/// Where a lane's registers from a multiple of four on lie.
fn place(k: K<'_>, first: u32) -> Reg<'_, u32> {
    k.lane() * VECTOR + first * LANES
}

impl<'k> Kept<'k> {
    /// `count` of the lane's registers from `first` on, both multiples of 4.
    #[track_caller]
    pub fn get(self, first: u32, count: u32) -> Vec<Reg<'k, u32>> {
        match self {
            Kept::Held(all) => all.to_vec().into_iter().skip(first as usize).take(count as usize).collect(),
            Kept::Parked(memory) => {
                let vectors = (first..first + count).step_by(VECTOR as usize);
                vectors.flat_map(|first| memory.ld_vec::<4>(place(memory.k, first))).collect()
            }
        }
    }
}

impl<'k, const N: usize> Published<'k, N> {
    /// The values that a warp has published for a row.
    #[track_caller]
    pub fn of_warp(self, warp: impl IntoReg<'k, u32>, row: Reg<'k, u32>) -> [Reg<'k, f32>; N] {
        let warp = warp.into_reg(self.memory.k, Location::caller());
        self.memory.at(warp * (self.rows * N as u32)).ld_vec::<N>(row * N as u32)
    }

    /// The values that all warps of the block have published for a row.
    #[track_caller]
    pub fn of_warps(self, row: Reg<'k, u32>) -> Vec<[Reg<'k, f32>; N]> {
        let warps = self.memory.k.threads().div_ceil(LANES);
        (0..warps).map(|warp| self.of_warp(warp, row)).collect()
    }
}
