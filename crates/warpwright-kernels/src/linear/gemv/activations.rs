//! Activations: a warp brings those of its slice into shared memory, where its four groups read them.
//!
//! A chunk of four activations of the lane `u` of every group lies at `(chunk · 8 + u) · 4`: the eight lanes
//! of a group read 128 bytes side by side, the four groups the same ones, and eight neighbouring lanes write
//! side by side. The sums over parts, which the biases and minima of the formats are multiplied with, are
//! made on the way. Many columns are staged in two passes, each for half of the chunks.

use super::format::{CHUNK, Layout};
use super::plan::{GROUPS, LANES, Lanes, Slice};
use std::ops::Range;
use warpwright_dsl::*;

/// Words of the sums of a column.
const SUMS: u32 = LANES * 4;
/// Weights that share a scale on the `int8` path.
pub(super) const BLOCK: u32 = 32;

/// The activations in global memory.
#[derive(Clone, Copy)]
pub(crate) enum Source<'k> {
    /// `f32`, `columns × k`.
    Floats {
        /// The activations.
        x: Ptr<'k, Global, f32>,
        /// What they are multiplied by, one for each of the `k`.
        norm: Option<Ptr<'k, Global, f32>>,
    },
    /// Quantised before.
    Q8_1 {
        /// The quants, four in a word, `columns × k`.
        quants: Ptr<'k, Global, u32>,
        /// The scales of each 32: a parameter.
        scales: Ptr<'k, Global, f32>,
        /// The sums of each 32: a parameter.
        sums: Ptr<'k, Global, f32>,
    },
}

/// What is known on the host of how activations are staged.
#[derive(Clone, Copy)]
pub(super) struct Staging {
    pub(super) layout: Layout,
    /// Columns of activations.
    pub(super) columns: u32,
    /// Whether they are staged as `f32`, not as `q8_1`.
    pub(super) exact: bool,
}

impl Staging {
    /// The chunks that are staged at a time: all, or each half where more than two columns of `f32` would need
    /// much memory.
    pub(super) fn passes(self) -> Vec<Range<u32>> {
        let chunks = self.layout.chunks();
        let passes = if self.exact && self.columns > 2 && chunks > 8 { 2 } else { 1 };
        (0..passes).map(|i| i * chunks / passes..(i + 1) * chunks / passes).collect()
    }

    /// Words of the activations of a column.
    pub(super) fn staged(self) -> u32 {
        let per_pass = self.layout.chunks() / self.passes().len() as u32;
        let weights = per_pass * CHUNK * LANES;
        if self.exact { weights } else { weights / 4 }
    }

    fn column_words(self) -> u32 {
        self.staged() + if self.exact { SUMS } else { self.layout.slice() / BLOCK * 2 }
    }

    /// Words of shared memory that a warp needs.
    pub(super) fn words(self) -> u32 {
        self.columns * self.column_words()
    }
}

/// Floats that are being brought.
pub(super) struct Floats<'k> {
    x: Ptr<'k, Global, f32>,
    norm: Option<Ptr<'k, Global, f32>>,
    /// The sum of the squares that this lane has seen.
    squares: Option<Reg<'k, f32>>,
}

/// Where a warp stages its activations.
#[derive(Clone, Copy)]
pub(super) struct Stage<'k> {
    pub(super) staging: Staging,
    /// Weights of a row of the matrix: where one more column begins, and whether in fours.
    k: u32,
    pub(super) lanes: Lanes<'k>,
    memory: Ptr<'k, Shared, f32>,
    /// Which of four chunks this lane brings, for the lane `unit` of the groups.
    pub(super) row: Reg<'k, u32>,
    /// Where the first begins in the slice.
    begin: Reg<'k, u32>,
    /// The same for four chunks of bytes.
    begin_int8: Reg<'k, u32>,
    /// Scales for half of the lanes, sums for the other.
    factors: Option<Ptr<'k, Global, f32>>,
}

impl<'k> Stage<'k> {
    pub(super) fn new(
        staging: Staging,
        k: u32,
        lanes: Lanes<'k>,
        memory: Ptr<'k, Shared, f32>,
        source: Source<'k>,
    ) -> Self {
        let layout = staging.layout;
        let row = lanes.lane / LANES;
        let begin_of = |chunk| lanes.unit * layout.run() + layout.chunk_at_device(chunk);
        let factors = match source {
            Source::Floats { .. } => None,
            Source::Q8_1 { scales, sums, .. } => Some(lanes.lane.lt(16).select_ptr(scales, sums)),
        };
        let (begin, begin_int8) = (begin_of(row), begin_of(row * GROUPS));
        Stage { staging, k, lanes, memory, row, begin, begin_int8, factors }
    }

    pub(super) fn column(self, column: u32) -> Ptr<'k, Shared, f32> {
        self.memory.at(column * self.staging.column_words())
    }

    /// Stages the chunks of a pass for a column. Yields the sum of the squares that this lane has seen, where
    /// the activations are normalised.
    pub(super) fn bring(
        self,
        k: K<'k>,
        source: Source<'k>,
        slice: Slice<'k>,
        column: u32,
        pass: Range<u32>,
    ) -> Option<Reg<'k, f32>> {
        match source {
            Source::Floats { x, norm } => {
                let mut floats =
                    Floats { x: x.at(k.u64(u64::from(column) * u64::from(self.k))), norm, squares: None };
                if self.staging.exact {
                    self.bring_exact(k, &mut floats, slice, column, pass);
                } else {
                    self.bring_rounded(k, &mut floats, slice, column);
                }
                floats.squares
            }
            Source::Q8_1 { quants, .. } => {
                self.bring_q8_1(k, quants, slice, column);
                None
            }
        }
    }

    fn bring_exact(self, k: K<'k>, floats: &mut Floats<'k>, slice: Slice<'k>, column: u32, pass: Range<u32>) {
        let layout = self.staging.layout;
        let stage = self.column(column);
        let mut sums: Vec<Reg<'k, f32>> = Vec::new();
        for first in pass.clone().step_by(GROUPS as usize) {
            let values = self.read(k, floats, slice, first);
            let place = (first - pass.start) * LANES * CHUNK;
            stage.st_vec((self.row * LANES + self.lanes.unit) * CHUNK + place, values);
            if layout.parts() > 0 {
                let [a, b, c, d] = values;
                let sum = (a + b) + (c + d);
                match sums.last_mut() {
                    Some(last) if !first.is_multiple_of(layout.part_chunks()) => *last = *last + sum,
                    _ => sums.push(sum),
                }
            }
        }
        self.keep_sums(k, stage.at(self.staging.staged()), &sums);
    }

    /// Reads this lane's chunk of the four from `first` on, zeros beyond the slice's end.
    pub(super) fn read(
        self,
        k: K<'k>,
        floats: &mut Floats<'k>,
        slice: Slice<'k>,
        first: u32,
    ) -> [Reg<'k, f32>; 4] {
        let layout = self.staging.layout;
        let further = layout.chunk_at(first);
        let (at, place) = (slice.number * layout.slice() + self.begin + further, self.begin + further);
        let load = |from: Ptr<'k, Global, f32>| {
            let from = from.at(at);
            match slice.rest {
                None if self.k.is_multiple_of(CHUNK) => from.ld_vec(0),
                None => [0, 1, 2, 3].map(|i| from.ld(i)),
                Some(rest) if self.k.is_multiple_of(CHUNK) => {
                    from.ld_vec_if(place.lt(rest.weights), 0, k.f32(0.0))
                }
                Some(rest) => [0, 1, 2, 3].map(|i| from.ld_if((place + i).lt(rest.weights), i, k.f32(0.0))),
            }
        };
        let values: [_; 4] = load(floats.x);
        let Some(norm) = floats.norm else { return values };
        floats.squares = values
            .into_iter()
            .fold(floats.squares, |sum, v| Some(sum.map_or_else(|| v * v, |sum| v.mul_add(v, sum))));
        let weights = load(norm);
        std::array::from_fn(|i| values[i] * weights[i])
    }

    /// Adds the sums of the four lanes that have chunks of a part, and keeps for each part what the bias makes
    /// of it, and where there are minima, what they are multiplied with.
    fn keep_sums(self, k: K<'k>, memory: Ptr<'k, Shared, f32>, sums: &[Reg<'k, f32>]) {
        let layout = self.staging.layout;
        let across = |value: Reg<'k, f32>, lanes: u32| value + k.shuffle_xor(value, lanes);
        let kept: Vec<_> = (sums.iter())
            .map(|&sum| across(across(sum, LANES), 2 * LANES))
            .flat_map(|sum| {
                let minimum = layout.has_minima().then(|| sum * layout.exact_step());
                [Some(sum * -layout.exact_bias()), minimum].into_iter().flatten()
            })
            .collect();
        let keeps = self.row.eq(0);
        match kept[..] {
            [a] => memory.st_if(keeps, self.lanes.unit, a),
            [a, b] => memory.st_vec_if(keeps, self.lanes.unit * 2, [a, b]),
            [a, b, c, d] => memory.st_vec_if(keeps, self.lanes.unit * 4, [a, b, c, d]),
            _ => debug_assert!(kept.is_empty(), "one, two or four sums in every pass"),
        }
    }

    fn bring_q8_1(self, k: K<'k>, quants: Ptr<'k, Global, u32>, slice: Slice<'k>, column: u32) {
        let (layout, lane, begin) = (self.staging.layout, self.lanes.lane, self.begin_int8);
        let stage = self.column(column);
        let base = u64::from(column) * u64::from(self.k);
        // Sixteen bytes a lane: four chunks.
        let from = quants.at(k.u64(base / 4)).at(slice.number * (layout.slice() / 4) + begin / 4);
        let words: [_; 4] = match slice.rest {
            None => from.ld_vec(0),
            Some(rest) => from.ld_vec_if(begin.lt(rest.weights), 0, 0),
        };
        stage.cast::<u32>().st_vec(lane * 4, words);
        let Some(factors) = self.factors else { return };
        // Half of the lanes bring the scales of sixteen blocks, the others their sums.
        let (block, blocks) = (lane % 16, layout.slice() / BLOCK);
        let from = factors.at(k.u64(base / u64::from(BLOCK))).at(slice.number * blocks + block);
        let factor = match slice.rest {
            None => from.ld(0),
            Some(rest) => from.ld_if((block * BLOCK).lt(rest.weights), 0, k.f32(0.0)),
        };
        stage.at(self.staging.staged()).st(block * 2 + lane / 16, factor);
    }

    /// The four activations that chunk `chunk` of the lane's share is multiplied with, in the pass that has it.
    pub(super) fn exact(self, column: u32, chunk: u32, pass: &Range<u32>) -> [Reg<'k, f32>; 4] {
        self.column(column).ld_vec(self.lanes.unit * CHUNK + (chunk - pass.start) * LANES * CHUNK)
    }

    /// What the sums of the pass's parts begin with, and for formats with minima the sums over the parts, in
    /// units of the quants' step.
    pub(super) fn sums(self, column: u32, parts: u32) -> Vec<(Reg<'k, f32>, Option<Reg<'k, f32>>)> {
        let sums = self.column(column).at(self.staging.staged());
        let minima = self.staging.layout.has_minima();
        let kept = match parts * if minima { 2 } else { 1 } {
            0 => Vec::new(),
            1 => vec![sums.ld(self.lanes.unit)],
            2 => sums.ld_vec::<2>(self.lanes.unit * 2).to_vec(),
            _ => sums.ld_vec::<4>(self.lanes.unit * 4).to_vec(),
        };
        if minima {
            kept.chunks_exact(2).map(|pair| (pair[0], Some(pair[1]))).collect()
        } else {
            kept.into_iter().map(|bias| (bias, None)).collect()
        }
    }

    /// The quants that chunks `4 i .. 4 i + 4` of the lane's share are multiplied with, one word each.
    pub(super) fn int8(self, column: u32, i: u32) -> [Reg<'k, u32>; 4] {
        self.column(column).cast::<u32>().ld_vec(self.lanes.unit * 4 + i * LANES * 4)
    }

    /// The scale and the sum of the block that each part of the lane's share is multiplied with.
    pub(super) fn int8_scales(self, column: u32) -> Vec<[Reg<'k, f32>; 2]> {
        let pairs = self.column(column).at(self.staging.staged());
        let (layout, unit) = (self.staging.layout, self.lanes.unit);
        if layout.units() {
            let [a, b, c, d] = pairs.ld_vec(unit * 4);
            // Two blocks in a unit, one or two parts in a block.
            let per_block = layout.parts() / 2;
            return (0..layout.parts()).map(|part| if part < per_block { [a, b] } else { [c, d] }).collect();
        }
        // A run is a block, or half of one.
        let block = unit / (BLOCK / layout.run());
        (0..layout.runs()).map(|i| pairs.ld_vec(block * 2 + i * (LANES * layout.run() / BLOCK) * 2)).collect()
    }
}
