//! Activations: a warp brings those of its slice into shared memory, where its four groups read them.
//!
//! ```text
//!   f32      chunk c of the lanes u, four numbers each:  (c · 8 + u) · 4       in one pass, or two of half the chunks
//!   bytes    run r of the lanes u, 16 bytes each:        (r · 8 + u) · 4 words
//! ```
//!
//! The eight lanes of a group read 128 bytes side by side, the four groups the same ones, and eight neighbouring lanes
//! write side by side. Behind them stand lists of a number for each part of the lanes: the totals, and the scales of bytes.
//! They are made on the way: of four lanes `row`, each has one of four neighbouring chunks.

use super::plan::{LANES, Lanes, Slice};
use super::tile::Product;
use super::weights::{CHUNK, Layout, MIN_PART};
use crate::data::eight_bits::{BLOCK, magnitude};
use std::ops::Range;
use warpwright_dsl::*;

/// `x + 1.5 · 2²³` is `x` rounded to an integer, to nearest, in the low bits of the sum.
const TO_INTEGER: f32 = 12_582_912.0;

/// The lists of a column.
pub(super) const TOTALS: u32 = 0;
pub(super) const SCALES: u32 = 1;

/// The activations in global memory.
#[derive(Clone, Copy)]
pub(super) enum Source<'k> {
    /// `f32`, `columns × k`.
    Floats {
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

impl Product {
    /// The chunks that are staged at a time: all, or each half where more than two columns of `f32` would need
    /// much memory.
    pub(super) fn passes(&self) -> Vec<Range<u32>> {
        let chunks = self.layout().chunks;
        let passes = if self.exact && self.batch > 2 && chunks > 8 { 2 } else { 1 };
        (0..passes).map(|i| i * chunks / passes..(i + 1) * chunks / passes).collect()
    }

    /// Words of the activations of a column, and with the lists behind them.
    fn column_words(&self) -> [u32; 2] {
        let chunks = self.layout().chunks / self.passes().len() as u32 * LANES;
        let (words, lists) = if self.exact { (chunks * CHUNK, 1) } else { (chunks, 2) };
        [words, words + lists * self.layout().parts() * LANES]
    }

    /// Words of shared memory in which a warp stages its activations.
    pub(super) fn staged_words(&self) -> u32 {
        self.batch * self.column_words()[1]
    }
}

/// Where a warp stages its activations.
#[derive(Clone, Copy)]
pub(super) struct Stage<'k> {
    product: Product,
    lanes: Lanes<'k>,
    memory: Ptr<'k, Shared, f32>,
    source: Source<'k>,
    /// Which of four chunks this lane brings, from 0 on, for the lane `in_group` of the groups; of bytes which of four runs.
    turn: Reg<'k, u32>,
    /// Where the first begins in the slice.
    begin: Reg<'k, u32>,
}

impl<'k> Stage<'k> {
    pub(super) fn new(
        product: &Product,
        lanes: Lanes<'k>,
        memory: Ptr<'k, Shared, f32>,
        source: Source<'k>,
    ) -> Self {
        let (turn, layout) = (lanes.lane / LANES, product.layout());
        let chunk = if matches!(source, Source::Bytes { .. }) { turn * MIN_PART } else { turn };
        let begin = lanes.in_group * layout.run + layout.chunk_at(chunk);
        Stage { product: *product, lanes, memory, source, turn, begin }
    }

    pub(super) fn layout(self) -> Layout {
        self.product.layout()
    }

    /// Something of each column.
    pub(super) fn columns<T>(self, of: impl Fn(u32) -> T) -> Vec<T> {
        (0..self.product.batch).map(of).collect()
    }

    fn column(self, column: u32) -> Ptr<'k, Shared, f32> {
        self.memory.at(column * self.product.column_words()[1])
    }

    /// Stages the chunks of a pass, and adds the squares of what is to be normalised to the columns' sums of them.
    pub(super) fn bring(self, slice: Slice<'k>, pass: &Range<u32>, squares: &[Var<'k, f32>]) {
        let k = self.lanes.lane.kernel();
        for column in 0..self.product.batch {
            // The column's first of so many that count as one.
            let first = |of: u32| k.u64(u64::from(column) * u64::from(self.product.k / of));
            let (x, norm) = match self.source {
                Source::Floats { x, norm } => (x.at(first(1)), norm),
                Source::Bytes { quants, scales } => {
                    self.keep_bytes(slice, column, (quants.at(first(4)), scales.at(first(BLOCK))));
                    continue;
                }
            };
            // The lane's chunk of each four.
            let firsts = pass.clone().step_by(MIN_PART as usize);
            let mut chunks: Vec<_> = firsts.clone().map(|first| self.read(slice, x, first)).collect();
            if let (Some(norm), Some(sum)) = (norm, squares.get(column as usize)) {
                let seen = chunks.iter().flatten().fold(k.f32(0.0), |sum, &x| x.mul_add(x, sum));
                sum.set(sum.get() + seen);
                for (x, first) in chunks.iter_mut().zip(firsts) {
                    let norm = self.read(slice, norm, first);
                    *x = std::array::from_fn(|i| x[i] * norm[i]);
                }
            }
            match self.product.exact {
                true => self.keep_floats(column, &chunks),
                false => self.quantise(column, &chunks),
            }
        }
    }

    /// Reads this lane's chunk of the four from `first` on, zeros beyond the slice's end.
    fn read(self, slice: Slice<'k>, from: Ptr<'k, Global, f32>, first: u32) -> [Reg<'k, f32>; 4] {
        let (k, layout) = (self.lanes.lane.kernel(), self.layout());
        let place = self.begin + layout.chunk_at(k.u32(first));
        let from = from.at(slice.number * layout.slice() + place);
        let inside = |i: u32| slice.rest.map(|rest| (place + i).lt(rest));
        match self.product.k.is_multiple_of(CHUNK) {
            true => from.ld_vec_if(inside(0), 0, 0.0),
            false => [0, 1, 2, 3].map(|i| from.ld_if(inside(i), i, 0.0)),
        }
    }

    fn keep_floats(self, column: u32, chunks: &[[Reg<'k, f32>; 4]]) {
        let (layout, stage) = (self.layout(), self.column(column));
        for (i, &values) in (0..).zip(chunks) {
            stage.st_vec(
                (self.turn * LANES + self.lanes.in_group) * CHUNK + i * (MIN_PART * LANES * CHUNK),
                values,
            );
        }
        let totals = chunks.chunks_exact((layout.part_chunks() / MIN_PART) as usize).map(|part| {
            let sums = part.iter().map(|&[a, b, c, d]| (a + b) + (c + d));
            self.over_turns().sum_over_runs(sums.reduce(|sum, more| sum + more).unwrap_or(part[0][0]))
        });
        self.keep(column, TOTALS, &totals.collect::<Vec<_>>());
    }

    /// Quantises 32 neighbours at a time: `q = round(x / scale)` with `scale = max |x| / 127`. Blocks whose scale would be
    /// below 2⁻¹²⁶ are zeros.
    fn quantise(self, column: u32, chunks: &[[Reg<'k, f32>; 4]]) {
        let (k, stage) = (self.lanes.lane.kernel(), self.column(column).cast::<u32>());
        let (mut sums, mut scales) = (Vec::new(), Vec::new());
        for (block, runs) in (0..).zip(chunks.chunks((BLOCK / 16) as usize)) {
            let largest = runs.iter().flatten().fold(k.u32(0), |max, &x| max.max(magnitude(x)));
            let scale = self.over_turns().max_over_runs(largest).bits::<f32>() * (1.0 / 127.0);
            let inverse = scale.ge(f32::MIN_POSITIVE).select(scale.rcp_approx(), 0.0);
            for (run, chunk) in (block * 2..).zip(runs) {
                let [a, b, c, d] = chunk.map(|x| x.mul_add(inverse, TO_INTEGER).bits::<u32>());
                // The low byte of each.
                let word = a.prmt(b, 0x0040).prmt(c.prmt(d, 0x0040), 0x5410);
                stage.st((self.lanes.in_group + run * LANES) * MIN_PART + self.turn, word);
                sums.push(self.over_turns().sum_over_runs(sum(&[word])));
                scales.push(scale);
            }
        }
        let runs = (self.layout().part_chunks() / MIN_PART) as usize;
        let total = |part: &[Reg<'k, i32>]| part.iter().skip(1).fold(part[0], |sum, &more| sum + more);
        self.keep(column, TOTALS, &sums.chunks(runs).map(|part| total(part).bits()).collect::<Vec<_>>());
        self.keep(column, SCALES, &scales.into_iter().step_by(runs).collect::<Vec<_>>());
    }

    /// Stages bytes that were quantised before: each lane has a run, of which it knows the sum.
    fn keep_bytes(
        self,
        slice: Slice<'k>,
        column: u32,
        (quants, scales): (Ptr<'k, Global, u32>, Ptr<'k, Global, f32>),
    ) {
        let (k, layout, stage) = (self.lanes.lane.kernel(), self.layout(), self.column(column));
        let inside = slice.rest.map(|rest| self.begin.lt(rest));
        let from = |of: u32| slice.number * (layout.slice() / of) + self.begin / of;
        let words: [_; 4] = quants.ld_vec_if(inside, from(4), 0);
        stage.cast::<u32>().st_vec(self.lanes.lane * MIN_PART, words);
        let scale = scales.ld_if(inside, from(BLOCK), 0.0);

        let (runs, own) = (layout.part_chunks() / MIN_PART, sum(&words));
        // A part of two runs is that of two lanes, the first of which keeps its total.
        let total = if runs == 2 { own + k.shuffle_xor(own, LANES) } else { own };
        let keeps = (runs == 2).then(|| (self.turn & 1).eq(0));
        for (list, value) in [(TOTALS, total.bits()), (SCALES, scale)] {
            let place = self.lanes.in_group * layout.parts() + self.turn / runs;
            self.list(column, list, layout.parts()).st_if(keeps, place, value);
        }
    }

    /// The lanes of a group, whose places all four rows have.
    fn over_turns(self) -> Spread<'k> {
        self.lanes.lane.kernel().spread(1, LANES)
    }

    /// A list behind the activations, of `parts` numbers for each of the lanes `in_group`.
    fn list(self, column: u32, list: u32, parts: u32) -> Ptr<'k, Shared, f32> {
        self.column(column).at(self.product.column_words()[0] + list * LANES * parts)
    }

    /// Keeps a number for each part of the pass.
    fn keep(self, column: u32, list: u32, values: &[Reg<'k, f32>]) {
        let parts = values.len() as u32;
        self.list(column, list, parts).st_many(self.turn.eq(0), self.lanes.in_group * parts, values);
    }

    /// What a list has for so many parts of the lane. Totals of bytes are the bits of whole numbers.
    pub(super) fn kept(self, column: u32, list: u32, parts: usize) -> Vec<Reg<'k, f32>> {
        let parts = parts as u32;
        self.list(column, list, parts).ld_many(None, self.lanes.in_group * parts, parts, 0.0)
    }

    /// The activations that a chunk of the lane is multiplied with, in the pass that has it.
    pub(super) fn floats(self, column: u32, chunk: u32, pass: &Range<u32>) -> [Reg<'k, f32>; 4] {
        self.column(column).ld_vec(self.lanes.in_group * CHUNK + (chunk - pass.start) * LANES * CHUNK)
    }

    /// The bytes that the chunks of run `run` of the lane are multiplied with, a word each.
    pub(super) fn bytes(self, column: u32, run: u32) -> [Reg<'k, u32>; MIN_PART as usize] {
        self.column(column).cast::<u32>().ld_vec((self.lanes.in_group + run * LANES) * MIN_PART)
    }
}

/// The sum of the signed bytes of some words.
fn sum<'k>(words: &[Reg<'k, u32>]) -> Reg<'k, i32> {
    let k = words[0].kernel();
    words.iter().fold(k.i32(0), |sum, word| word.bits::<i32>().dp4a(k.i32(0x0101_0101), sum))
}
