//! Activations: a warp brings those of its slice into shared memory, where its four groups read them.
//!
//! A chunk of four activations of the lane `u` of every group lies at `(chunk · 8 + u) · 4`: the eight lanes
//! of a group read 128 bytes side by side, the four groups the same ones, and eight neighbouring lanes write
//! side by side. The sums over parts, which the biases and minima of the formats are multiplied with, are
//! made on the way.

use super::format::{CHUNK, Layout};
use super::plan::{LANES, Lanes, Slice};
use warpwright_ptx::dsl::*;

/// Words of the sums of a column.
const SUMS: u32 = LANES * 4;
/// Weights that share a scale on the `int8` path.
const BLOCK: u32 = 32;

/// The activations in global memory.
#[derive(Clone, Copy)]
pub(crate) enum Source<'k> {
    /// `f32`, `columns × k`.
    Exact {
        /// The activations.
        x: Ptr<'k, Global, f32>,
        /// What they are multiplied by, one for each of the `k`.
        norm: Option<Ptr<'k, Global, f32>>,
    },
    /// Quantised to `q8_1`.
    Int8 {
        /// The quants, four in a word, `columns × k`.
        quants: Ptr<'k, Global, u32>,
        /// The scales of each 32.
        scales: Ptr<'k, Global, f32>,
        /// The sums of each 32.
        sums: Ptr<'k, Global, f32>,
    },
}

/// Where a warp stages its activations.
#[derive(Clone, Copy)]
pub(super) struct Stage<'k> {
    layout: Layout,
    /// Weights of a row of the matrix.
    k: u32,
    lanes: Lanes<'k>,
    memory: Ptr<'k, Shared, f32>,
    /// The first chunk that this lane brings, and how many further the next one is.
    first: Reg<'k, u32>,
    step: u32,
    /// Where that chunk begins in the slice.
    begin: Reg<'k, u32>,
    /// The same of the bytes of the `int8` path.
    begin_int8: Reg<'k, u32>,
    /// The lane's place among the four that bring chunks of the same lane of the groups.
    half: Reg<'k, u32>,
    odd: Reg<'k, u32>,
}

impl<'k> Stage<'k> {
    /// Words of shared memory that a warp needs for that many columns.
    pub(super) fn words(layout: Layout, columns: u32, exact: bool) -> u32 {
        columns * Self::column_words(layout, exact)
    }

    fn column_words(layout: Layout, exact: bool) -> u32 {
        if exact { layout.slice() + SUMS } else { layout.slice() / 4 + layout.slice() / BLOCK * 2 }
    }

    pub(super) fn new(layout: Layout, k: u32, lanes: Lanes<'k>, memory: Ptr<'k, Shared, f32>) -> Self {
        let row = lanes.lane / LANES;
        let (half, odd) = (row / 2, row % 2);
        // Lanes 8 apart bring neighbouring chunks, so that every sector is read in one request.
        let (first, step) = if layout.units() { (half * 8 + odd, 2) } else { (row, 4) };
        let per_run = layout.run() / CHUNK;
        let begin_of = |chunk: Reg<'k, u32>| {
            lanes.unit * layout.run() + chunk / per_run * (LANES * layout.run()) + chunk % per_run * CHUNK
        };
        let (begin, begin_int8) = (begin_of(first), begin_of(row * 4));
        Stage { layout, k, lanes, memory, first, step, begin, begin_int8, half, odd }
    }

    fn column(self, column: u32, exact: bool) -> Ptr<'k, Shared, f32> {
        self.memory.at(column * Self::column_words(self.layout, exact))
    }

    /// Brings column `from` of the slice as column `column` of the stage. Yields the sum of the squares that
    /// this lane has seen, where they are asked for.
    pub(super) fn bring_exact(
        self,
        k: K<'k>,
        (x, norm): (Ptr<'k, Global, f32>, Option<Ptr<'k, Global, f32>>),
        slice: Slice<'k>,
        (from, column): (u32, u32),
    ) -> Option<Reg<'k, f32>> {
        let Stage { layout, first, step, begin, .. } = self;
        let at = slice.number * layout.slice() + begin;
        let stage = self.column(column, true);
        let mut squares: Option<Reg<'k, f32>> = None;
        let mut sums: Vec<Reg<'k, f32>> = Vec::new();
        let requests = layout.chunks() / 4;
        // This lane's chunks of the same part.
        let together =
            if layout.units() { layout.part_chunks() / 2 } else { layout.part_chunks().div_ceil(4) };
        for i in 0..requests {
            let further = layout.chunk_at(i * step);
            let load = |ptr: Ptr<'k, Global, f32>| self.load(k, ptr.at(at + further), begin + further, slice);
            let mut values = load(x.at(k.u64(u64::from(from) * u64::from(self.k))));
            if let Some(norm) = norm {
                let squared = values.into_iter().fold(squares, |sum, v| {
                    Some(match sum {
                        Some(sum) => v.mul_add(v, sum),
                        None => v * v,
                    })
                });
                squares = squared;
                let weights = load(norm);
                values = std::array::from_fn(|j| values[j] * weights[j]);
            }
            stage.st_vec((first * LANES + self.lanes.unit) * CHUNK + i * step * LANES * CHUNK, values);
            if layout.parts() > 0 {
                let [a, b, c, d] = values;
                let sum = (a + b) + (c + d);
                match sums.last_mut() {
                    Some(last) if i % together != 0 => *last = *last + sum,
                    _ => sums.push(sum),
                }
            }
        }
        self.keep_sums(k, stage.at(layout.slice()), &sums);
        squares
    }

    /// Four activations, zeros beyond the slice's end.
    fn load(
        self,
        k: K<'k>,
        from: Ptr<'k, Global, f32>,
        place: Reg<'k, u32>,
        slice: Slice<'k>,
    ) -> [Reg<'k, f32>; 4] {
        let whole = slice.weights == self.layout.slice();
        if self.k.is_multiple_of(CHUNK) {
            return if whole {
                from.ld_vec(0)
            } else {
                from.ld_vec_if(place.lt(slice.weights), 0, k.f32(0.0))
            };
        }
        [0, 1, 2, 3].map(|j| {
            if whole { from.ld(j) } else { from.ld_if((place + j).lt(slice.weights), j, k.f32(0.0)) }
        })
    }

    /// Adds the sums of lanes whose chunks are of the same part, and keeps those of all parts.
    fn keep_sums(self, k: K<'k>, memory: Ptr<'k, Shared, f32>, sums: &[Reg<'k, f32>]) {
        let layout = self.layout;
        let bias = -layout.exact_bias();
        let across = |value: Reg<'k, f32>, lanes: u32| value + k.shuffle_xor(value, lanes);
        let Stage { half, odd, .. } = self;
        match *sums {
            [] => {}
            [sum] => {
                // Q4_K and Q5_K: of both lanes that have the sum, one keeps it for the bias, one for the minimum.
                let factor = odd.eq(0).select(bias, layout.exact_step());
                memory.st(self.lanes.unit * 4 + odd * 2 + half, across(sum, 8) * factor);
            }
            [first, second] if layout.units() => {
                // Q6_K: each keeps one of their two.
                let (first, second) = (across(first, 8), across(second, 8));
                let sum = odd.eq(0).select(first, second);
                memory.st(self.lanes.unit * 4 + half * 2 + odd, sum * bias);
            }
            ref sums => {
                let sums: Vec<_> = sums.iter().map(|&sum| across(across(sum, 8), 16) * bias).collect();
                let keeps = self.lanes.lane.lt(LANES);
                let at = self.lanes.unit * layout.parts();
                match *sums {
                    [a, b, c, d] => memory.st_vec_if(keeps, at, [a, b, c, d]),
                    [a, b] => memory.st_vec_if(keeps, at, [a, b]),
                    _ => k.refuse("sums of a number of parts that no format has"),
                }
            }
        }
    }

    /// Brings column `from` of the slice as column `column` of the stage.
    pub(super) fn bring_int8(
        self,
        k: K<'k>,
        (quants, factors): (Ptr<'k, Global, u32>, Ptr<'k, Global, f32>),
        slice: Slice<'k>,
        (from, column): (u32, u32),
    ) {
        let lane = self.lanes.lane;
        let layout = self.layout;
        let whole = slice.weights == layout.slice();
        let stage = self.column(column, false);
        let begin = self.begin_int8;
        let base = u64::from(from) * u64::from(self.k);
        // Sixteen bytes a lane: four chunks.
        let from = quants.at(k.u64(base / 4)).at(slice.number * (layout.slice() / 4) + self.begin_int8 / 4);
        let words: [_; 4] =
            if whole { from.ld_vec(0) } else { from.ld_vec_if(begin.lt(slice.weights), 0, 0) };
        stage.cast::<u32>().st_vec(lane * 4, words);
        // One half of the lanes brings the scales of sixteen blocks, the other one their sums.
        let (block, blocks) = (lane % 16, layout.slice() / BLOCK);
        let from = factors.at(k.u64(base / u64::from(BLOCK))).at(slice.number * blocks + block);
        let factor =
            if whole { from.ld(0) } else { from.ld_if((block * BLOCK).lt(slice.weights), 0, k.f32(0.0)) };
        stage.at(layout.slice() / 4).st(block * 2 + lane / 16, factor);
    }

    /// The four activations that chunk `chunk` of the lane's share is multiplied with.
    pub(super) fn exact(self, column: u32, chunk: u32) -> [Reg<'k, f32>; 4] {
        self.column(column, true).ld_vec(self.lanes.unit * CHUNK + chunk * LANES * CHUNK)
    }

    /// What the sums of the lane's parts begin with, and for formats with minima the sums over the parts, in
    /// units of the quants' step.
    pub(super) fn sums(self, column: u32) -> Vec<Reg<'k, f32>> {
        let sums = self.column(column, true).at(self.layout.slice());
        match self.layout.parts() {
            0 => Vec::new(),
            2 if !self.layout.has_minima() => sums.ld_vec::<2>(self.lanes.unit * 2).to_vec(),
            _ => sums.ld_vec::<4>(self.lanes.unit * 4).to_vec(),
        }
    }

    /// The quants that chunks `4 i .. 4 i + 4` of the lane's share are multiplied with, one word each.
    pub(super) fn int8(self, column: u32, i: u32) -> [Reg<'k, u32>; 4] {
        self.column(column, false).cast::<u32>().ld_vec(self.lanes.unit * 4 + i * LANES * 4)
    }

    /// The scales in the first half of the lanes, the sums in the other.
    pub(super) fn factors(
        lanes: Lanes<'k>,
        scales: Ptr<'k, Global, f32>,
        sums: Ptr<'k, Global, f32>,
    ) -> Ptr<'k, Global, f32> {
        lanes.lane.lt(16).select_ptr(scales, sums)
    }

    /// The scale and the sum of the block that each part of the lane's share is multiplied with.
    pub(super) fn int8_scales(self, column: u32) -> Vec<[Reg<'k, f32>; 2]> {
        let pairs = self.column(column, false).at(self.layout.slice() / 4);
        let unit = self.lanes.unit;
        let (runs, run) = (self.layout.runs(), self.layout.run());
        if self.layout.units() {
            let [a, b, c, d] = pairs.ld_vec(unit * 4);
            // Two blocks in a unit, one or two parts in a block.
            let per_block = self.layout.parts() / 2;
            return (0..2 * per_block).map(|part| if part < per_block { [a, b] } else { [c, d] }).collect();
        }
        // A run is a block, or half of one.
        let block = unit / (BLOCK / run);
        (0..runs).map(|i| pairs.ld_vec(block * 2 + i * (LANES * run / BLOCK) * 2)).collect()
    }
}
