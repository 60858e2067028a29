//! Activations: a warp brings those of its slice into shared memory, where its four groups read them.
//!
//! ```text
//!   f32      chunk c of the lanes u, four numbers each:  (c · 8 + u) · 4       in one pass, or two of half the chunks
//!   bytes    run r of the lanes u, 16 bytes each:        (r · 8 + u) · 4 words
//! ```
//!
//! The eight lanes of a group read 128 bytes side by side, the four groups the same ones, and eight neighbouring lanes
//! write side by side. Behind them stand the sums over the lanes' parts, and the scales of bytes. They are made on the way:
//! of four lanes `row`, each has one of four neighbouring chunks.

use super::plan::{LANES, Lanes, Slice};
use super::weights::{CHUNK, Layout, RUN};
use crate::data::eight_bits::BLOCK;
use std::ops::Range;
use warpwright_dsl::*;

/// `x + 1.5 · 2²³` is `x` rounded to an integer, to nearest, in the low bits of the sum.
const TO_INTEGER: f32 = 12_582_912.0;

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
    Bytes {
        /// The quants, four in a word, `columns × k`.
        quants: Ptr<'k, Global, u32>,
        /// The scales of each 32.
        scales: Ptr<'k, Global, f32>,
    },
}

/// What is known on the host of how activations are staged.
#[derive(Clone, Copy)]
pub(super) struct Staging {
    pub(super) layout: Layout,
    /// Columns of activations.
    pub(super) columns: u32,
    /// Whether they are staged as `f32`, not as bytes.
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
    fn staged(self) -> u32 {
        let per_pass = self.layout.chunks() / self.passes().len() as u32;
        let weights = per_pass * CHUNK * LANES;
        if self.exact { weights } else { weights / 4 }
    }

    fn column_words(self) -> u32 {
        self.staged() + if self.exact { 1 } else { 2 } * self.layout.parts() * LANES
    }

    /// Words of shared memory that a warp needs.
    pub(super) fn words(self) -> u32 {
        self.columns * self.column_words()
    }
}

/// Where a warp stages its activations.
#[derive(Clone, Copy)]
pub(super) struct Stage<'k> {
    staging: Staging,
    /// Weights of a row of the matrix: where one more column begins, and whether in fours.
    k: u32,
    lanes: Lanes<'k>,
    memory: Ptr<'k, Shared, f32>,
    source: Source<'k>,
    /// Which of four chunks this lane brings, for the lane `unit` of the groups; of bytes which of four runs.
    row: Reg<'k, u32>,
    /// Where the first begins in the slice.
    begin: Reg<'k, u32>,
}

impl<'k> Stage<'k> {
    pub(super) fn new(
        staging: Staging,
        k: u32,
        lanes: Lanes<'k>,
        memory: Ptr<'k, Shared, f32>,
        source: Source<'k>,
    ) -> Self {
        let row = lanes.lane / LANES;
        let chunk = if matches!(source, Source::Bytes { .. }) { row * RUN } else { row };
        let begin = lanes.unit * staging.layout.run() + staging.layout.chunk_at(chunk);
        Stage { staging, k, lanes, memory, source, row, begin }
    }

    /// The parts of a pass, counted over all.
    pub(super) fn parts(self, pass: &Range<u32>) -> Range<usize> {
        let layout = self.staging.layout;
        match layout.parts() {
            0 => 0..0,
            _ => (pass.start / layout.part_chunks()) as usize..(pass.end / layout.part_chunks()) as usize,
        }
    }

    /// Something of each column.
    pub(super) fn each_column<T>(self, of: impl Fn(u32) -> T) -> Vec<T> {
        (0..self.staging.columns).map(of).collect()
    }

    fn column(self, column: u32) -> Ptr<'k, Shared, f32> {
        self.memory.at(column * self.staging.column_words())
    }

    /// Stages the chunks of a pass for a column. Yields the sum of the squares that this lane has seen, where
    /// the activations are normalised.
    pub(super) fn bring(self, slice: Slice<'k>, column: u32, pass: Range<u32>) -> Option<Reg<'k, f32>> {
        let Source::Floats { norm, .. } = self.source else {
            self.bring_bytes(slice, column);
            return None;
        };
        // The lane's chunk of each four.
        let mut squares: Option<Reg<'k, f32>> = None;
        let firsts = pass.clone().step_by(RUN as usize);
        let chunks: Vec<_> = firsts
            .map(|first| {
                let [values, weights] = self.read(slice, column, first);
                if norm.is_none() {
                    return values;
                }
                let sum =
                    |sum: Option<Reg<'k, f32>>, v: Reg<'k, f32>| sum.map_or(v * v, |sum| v.mul_add(v, sum));
                squares = values.into_iter().fold(squares, |all, v| Some(sum(all, v)));
                std::array::from_fn(|i| values[i] * weights[i])
            })
            .collect();
        match self.staging.exact {
            true => self.keep_floats(column, &chunks),
            false => self.keep_rounded(column, &chunks),
        }
        squares
    }

    /// Reads this lane's chunk of the four from `first` on, zeros beyond the slice's end; and what it is multiplied by.
    fn read(self, slice: Slice<'k>, column: u32, first: u32) -> [[Reg<'k, f32>; 4]; 2] {
        let k = self.lanes.lane.kernel();
        let Source::Floats { x, norm } = self.source else { return [[k.f32(0.0); 4]; 2] };
        let layout = self.staging.layout;
        let place = self.begin + layout.chunk_at(k.u32(first));
        let load = |from: Ptr<'k, Global, f32>| {
            let from = from.at(slice.number * layout.slice() + place);
            match slice.rest {
                None if self.k.is_multiple_of(CHUNK) => from.ld_vec(0),
                None => [0, 1, 2, 3].map(|i| from.ld(i)),
                Some(rest) if self.k.is_multiple_of(CHUNK) => from.ld_vec_if(place.lt(rest), 0, k.f32(0.0)),
                Some(rest) => [0, 1, 2, 3].map(|i| from.ld_if((place + i).lt(rest), i, k.f32(0.0))),
            }
        };
        let values = load(x.at(k.u64(u64::from(column) * u64::from(self.k))));
        [values, norm.map_or(values, load)]
    }

    /// The sum of a number of the four lanes that have the chunks of a run, in all of them.
    fn over_run<T: Number>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        let k = self.lanes.lane.kernel();
        [LANES, 2 * LANES].into_iter().fold(value, |sum, lanes| sum + k.shuffle_xor(sum, lanes))
    }

    fn keep_floats(self, column: u32, chunks: &[[Reg<'k, f32>; 4]]) {
        let (layout, stage) = (self.staging.layout, self.column(column));
        for (i, &values) in (0..).zip(chunks) {
            stage.st_vec((self.row * LANES + self.lanes.unit) * CHUNK + i * (RUN * LANES * CHUNK), values);
        }
        if layout.parts() == 0 {
            return;
        }
        let sums = chunks.chunks((layout.part_chunks() / RUN) as usize).map(|part| {
            let sums = part.iter().map(|&[a, b, c, d]| (a + b) + (c + d));
            self.over_run(sums.reduce(|sum, more| sum + more).unwrap_or(part[0][0]))
        });
        self.keep(column, 0, &sums.collect::<Vec<_>>());
    }

    /// Quantises 32 neighbours at a time: `q = round(x / scale)` with `scale = max |x| / 127`. Blocks whose scale would be
    /// below 2⁻¹²⁶ are zeros.
    fn keep_rounded(self, column: u32, chunks: &[[Reg<'k, f32>; 4]]) {
        let (k, stage) = (self.lanes.lane.kernel(), self.column(column).cast::<u32>());
        let (mut totals, mut scales) = (Vec::new(), Vec::new());
        for (block, runs) in (0..).zip(chunks.chunks((BLOCK / 16) as usize)) {
            let largest = runs.iter().flatten().fold(k.f32(0.0), |most, x| most.max(x.abs()));
            let largest = [LANES, 2 * LANES]
                .into_iter()
                .fold(largest, |most, lanes| most.max(k.shuffle_xor(most, lanes)));
            let scale = largest * (1.0 / 127.0);
            let inverse = scale.ge(f32::MIN_POSITIVE).select(scale.rcp_approx(), 0.0);
            for (run, chunk) in (block * 2..).zip(runs) {
                let [a, b, c, d] = chunk.map(|x| x.mul_add(inverse, TO_INTEGER).bits::<u32>());
                // The low byte of each.
                let word = a.prmt(b, 0x0040).prmt(c.prmt(d, 0x0040), 0x5410);
                stage.st((self.lanes.unit + run * LANES) * RUN + self.row, word);
                totals.push(self.over_run(total(k, &[word])));
                scales.push(scale);
            }
        }
        let runs = (self.staging.layout.part_chunks() / RUN) as usize;
        let sum = |part: &[Reg<'k, i32>]| part.iter().skip(1).fold(part[0], |sum, &more| sum + more);
        self.keep(column, 0, &totals.chunks(runs).map(|part| sum(part).bits()).collect::<Vec<_>>());
        self.keep(column, 1, &scales.into_iter().step_by(runs).collect::<Vec<_>>());
    }

    /// Brings bytes that were quantised before: each lane has a run, of which it knows the sum.
    fn bring_bytes(self, slice: Slice<'k>, column: u32) {
        let Source::Bytes { quants, scales } = self.source else { return };
        let (k, layout, stage) = (self.lanes.lane.kernel(), self.staging.layout, self.column(column));
        let (base, inside) =
            (u64::from(column) * u64::from(self.k), slice.rest.map(|rest| self.begin.lt(rest)));
        let from = quants.at(k.u64(base / 4)).at(slice.number * (layout.slice() / 4) + self.begin / 4);
        let words: [_; 4] = from.ld_vec_if(inside, 0, 0);
        stage.cast::<u32>().st_vec(self.lanes.lane * RUN, words);
        let from = scales.at(k.u64(base / u64::from(BLOCK)));
        let block = slice.number * (layout.slice() / BLOCK) + self.begin / BLOCK;
        let scale = from.ld_if(inside, block, k.f32(0.0));

        let (runs, own) = (layout.part_chunks() / RUN, total(k, &words));
        // A part of two runs is that of two lanes, the first of which keeps its sum.
        let sum = if runs == 2 { own + k.shuffle_xor(own, LANES) } else { own };
        let keeps = (runs == 2).then(|| (self.row & 1).eq(0));
        let kept = stage.at(self.staging.staged());
        for (list, value) in [(0, sum.bits()), (1, scale)] {
            let place = (list * LANES + self.lanes.unit) * layout.parts() + self.row / runs;
            kept.st_if(keeps, place, value);
        }
    }

    /// Keeps a number for each part of the lanes `unit`.
    fn keep(self, column: u32, list: u32, values: &[Reg<'k, f32>]) {
        let memory = self.column(column).at(self.staging.staged() + list * LANES * values.len() as u32);
        let (keeps, unit) = (self.row.eq(0), self.lanes.unit);
        match *values {
            [a] => memory.st_if(keeps, unit, a),
            [a, b] => memory.st_vec_if(keeps, unit * 2, [a, b]),
            [a, b, c, d] => memory.st_vec_if(keeps, unit * 4, [a, b, c, d]),
            _ => debug_assert!(values.is_empty(), "one, two or four parts in every pass"),
        }
    }

    /// The sums over so many parts of the lane, of numbers or of bytes; or where `list` is 1 the scales of bytes.
    pub(super) fn kept<T: Data>(self, column: u32, list: u32, parts: usize) -> Vec<Reg<'k, T>> {
        let memory = self.column(column).at(self.staging.staged() + list * LANES * parts as u32).cast::<T>();
        let unit = self.lanes.unit;
        match parts {
            0 => Vec::new(),
            1 => vec![memory.ld(unit)],
            2 => memory.ld_vec::<2>(unit * 2).to_vec(),
            _ => memory.ld_vec::<4>(unit * 4).to_vec(),
        }
    }

    /// The activations that a chunk of the lane is multiplied with, in the pass that has it.
    pub(super) fn floats(self, column: u32, chunk: u32, pass: &Range<u32>) -> [Reg<'k, f32>; 4] {
        self.column(column).ld_vec(self.lanes.unit * CHUNK + (chunk - pass.start) * LANES * CHUNK)
    }

    /// The bytes that the chunks of run `run` of the lane are multiplied with, a word each.
    pub(super) fn bytes(self, column: u32, run: u32) -> [Reg<'k, u32>; RUN as usize] {
        self.column(column).cast::<u32>().ld_vec((self.lanes.unit + run * LANES) * RUN)
    }
}

/// The sum of the signed bytes of some words.
fn total<'k>(k: K<'k>, words: &[Reg<'k, u32>]) -> Reg<'k, i32> {
    words.iter().fold(k.i32(0), |sum, word| word.bits::<i32>().dp4a(k.i32(0x0101_0101), sum))
}
