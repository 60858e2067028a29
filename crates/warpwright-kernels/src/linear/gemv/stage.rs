//! Activations: a warp brings those of its slice into shared memory, where its four groups read them.
//!
//! ```text
//!   f32      piece c of the lanes u is chunk c, four numbers          in one pass, or two of half the chunks
//!   bytes    piece r of the lanes u is run r, four chunks
//!   piece p of the lanes u stands at (u · (pieces + 1) + p) · 4 words
//! ```
//!
//! The eight lanes of a group read a piece of 16 bytes each, the four groups the same ones: because of the one that is left
//! free behind each lane's pieces, they lie in different banks. Behind them stand lists of a number for each part of the
//! lanes: the totals, and the scales of bytes. They are made on the way.
//!
//! The warp loads 32 neighbouring chunks of `f32` at a time, so that eight lanes meet in one line of the cache.

use super::plan::{LANES, Lanes, Slice};
use super::tile::Product;
use super::weights::{CHUNK, Layout, MIN_PART};
use crate::data::eight_bits::{BLOCK, magnitude};
use std::ops::Range;
use warpwright_dsl::*;

/// `x + 1.5 · 2²³` is `x` rounded to an integer, to nearest, in the low bits of the sum.
const TO_INTEGER: f32 = 12_582_912.0;

/// Words of a piece.
const PIECE: u32 = 4;

/// Lanes of a warp.
const WARP: u32 = 32;

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

    /// Chunks that are staged at a time.
    fn pass_chunks(&self) -> u32 {
        self.layout().chunks / self.passes().len() as u32
    }

    /// Words between the pieces of neighbouring lanes.
    fn lane_words(&self) -> u32 {
        (if self.exact { self.pass_chunks() } else { self.layout().chunks / MIN_PART } + 1) * PIECE
    }

    /// Words of the activations of a column, and with the lists behind them.
    fn column_words(&self) -> [u32; 2] {
        let (words, lists) = (LANES * self.lane_words(), if self.exact { 1 } else { 2 });
        [words, words + lists * self.layout().parts() * LANES]
    }

    /// Neighbouring chunks of a pass that are one lane's. Those of numbers are brought singly: runs of two would meet in
    /// banks.
    fn run_chunks(&self) -> u32 {
        if self.layout().units.is_some() { self.pass_chunks() } else { 1 }
    }

    /// The chunks of `f32` that a lane brings, as steps from its first one: lanes and chunks further.
    fn steps(&self) -> impl Iterator<Item = [u32; 2]> {
        let run = self.run_chunks();
        let step = move |i| [WARP / run * i % LANES, i * WARP / (LANES * run) * run];
        (0..self.pass_chunks() * LANES / WARP).map(step)
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
    /// For which lane this one brings activations first, and which of its pieces: chunks of `f32`, runs of bytes.
    brings: [Reg<'k, u32>; 2],
    /// Where they begin in the slice.
    begin: Reg<'k, u32>,
}

impl<'k> Stage<'k> {
    pub(super) fn new(
        product: &Product,
        lanes: Lanes<'k>,
        memory: Ptr<'k, Shared, f32>,
        source: Source<'k>,
    ) -> Self {
        let (layout, run) = (product.layout(), product.run_chunks());
        let (brings, chunk) = match source {
            Source::Floats { .. } => {
                let chunk = lanes.lane / (LANES * run) * run + lanes.lane % run;
                ([lanes.lane / run % LANES, chunk], chunk)
            }
            Source::Bytes { .. } => {
                let turn = lanes.lane / LANES;
                ([lanes.in_group, turn], turn * MIN_PART)
            }
        };
        let begin = brings[0] * layout.run + layout.chunk_at(chunk);
        Stage { product: *product, lanes, memory, source, brings, begin }
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
            let mut chunks = self.read(slice, x, pass);
            if let (Some(norm), Some(sum)) = (norm, squares.get(column as usize)) {
                let seen = chunks.iter().flatten().fold(k.f32(0.0), |sum, &x| x.mul_add(x, sum));
                sum.set(sum.get() + seen);
                for (x, norm) in chunks.iter_mut().zip(self.read(slice, norm, pass)) {
                    *x = std::array::from_fn(|i| x[i] * norm[i]);
                }
            }
            match self.product.exact {
                true => self.keep_floats(column, &chunks),
                false => self.quantise(column, &chunks),
            }
        }
    }

    /// Reads this lane's chunks of a pass, zeros beyond the slice's end.
    fn read(self, slice: Slice<'k>, from: Ptr<'k, Global, f32>, pass: &Range<u32>) -> Vec<[Reg<'k, f32>; 4]> {
        let layout = self.layout();
        let from = from.at(slice.number * layout.slice() + self.begin);
        let chunk = |[lanes, chunks]: [u32; 2]| {
            let run = layout.run / CHUNK;
            let further = lanes * layout.run + chunks / run * (LANES * layout.run) + pass.start * CHUNK;
            let inside = |i: u32| slice.rest.map(|rest| (self.begin + (further + i)).lt(rest));
            match self.product.k.is_multiple_of(CHUNK) {
                true => from.ld_vec_if(inside(0), further, 0.0),
                false => [0, 1, 2, 3].map(|i| from.ld_if(inside(i), further + i, 0.0)),
            }
        };
        self.product.steps().map(chunk).collect()
    }

    fn keep_floats(self, column: u32, chunks: &[[Reg<'k, f32>; 4]]) {
        let (pitch, [lane, chunk]) = (self.product.lane_words(), self.brings);
        let stage = self.column(column).at(lane * pitch + chunk * PIECE);
        for ([lanes, further], &values) in self.product.steps().zip(chunks) {
            stage.st_vec(lanes * pitch + further * PIECE, values);
        }
        if self.layout().units.is_none() {
            return;
        }
        let (k, part) = (self.lanes.lane.kernel(), self.layout().part_chunks());
        let totals: Vec<_> = chunks.iter().map(|&[a, b, c, d]| (a + b) + (c + d)).collect();
        let parts = self.product.pass_chunks() / part;
        let list = self.list(column, TOTALS, parts);
        // The chunks of a part are those of neighbouring lanes.
        k.spread(totals.len(), part).each_sum(&totals, |step, total, here| {
            let lane = lane + step * (WARP / self.product.run_chunks());
            list.st_if(here, lane * parts + chunk / part, total);
        });
    }

    /// Quantises 32 neighbours at a time: `q = round(x / scale)` with `scale = max |x| / 127`. Blocks whose scale would be
    /// below 2⁻¹²⁶ are zeros.
    fn quantise(self, column: u32, chunks: &[[Reg<'k, f32>; 4]]) {
        let (k, [lane, chunk]) = (self.lanes.lane.kernel(), self.brings);
        let (pitch, part) = (self.product.lane_words(), self.layout().part_chunks());
        let stage = self.column(column).cast::<u32>().at(lane * pitch + chunk);
        let (first, parts) = ((chunk % part).eq(0), self.layout().parts());
        for ([lanes, _], chunk_values) in self.product.steps().zip(chunks) {
            let largest = chunk_values.iter().fold(k.u32(0), |max, &x| max.max(magnitude(x)));
            let largest = neighbours(BLOCK / CHUNK, largest, |one, other| one.max(other));
            let scale = largest.bits::<f32>() * (1.0 / 127.0);
            let inverse = scale.ge(f32::MIN_POSITIVE).select(scale.rcp_approx(), 0.0);
            let [a, b, c, d] = chunk_values.map(|x| x.mul_add(inverse, TO_INTEGER).bits::<u32>());
            // The low byte of each.
            let word = a.prmt(b, 0x0040).prmt(c.prmt(d, 0x0040), 0x5410);
            stage.st(lanes * pitch, word);
            let total = neighbours(part, sum(&[word]), |one, other| one + other);
            for (list, value) in [(TOTALS, total.bits()), (SCALES, scale)] {
                let place = (lane + lanes) * parts + chunk / part;
                self.list(column, list, parts).st_if(Some(first), place, value);
            }
        }
    }

    /// Stages bytes that were quantised before: each lane has a run, of which it knows the sum.
    fn keep_bytes(
        self,
        slice: Slice<'k>,
        column: u32,
        (quants, scales): (Ptr<'k, Global, u32>, Ptr<'k, Global, f32>),
    ) {
        let (k, layout, [lane, turn]) = (self.lanes.lane.kernel(), self.layout(), self.brings);
        let inside = slice.rest.map(|rest| self.begin.lt(rest));
        let from = |of: u32| slice.number * (layout.slice() / of) + self.begin / of;
        let words: [_; 4] = quants.ld_vec_if(inside, from(4), 0);
        let place = lane * self.product.lane_words() + turn * PIECE;
        self.column(column).cast::<u32>().st_vec(place, words);
        let scale = scales.ld_if(inside, from(BLOCK), 0.0);

        let (runs, own) = (layout.part_chunks() / MIN_PART, sum(&words));
        // A part of two runs is that of two lanes, the first of which keeps its total.
        let total = if runs == 2 { own + k.shuffle_xor(own, LANES) } else { own };
        let keeps = (runs == 2).then(|| (turn & 1).eq(0));
        for (list, value) in [(TOTALS, total.bits()), (SCALES, scale)] {
            self.list(column, list, layout.parts()).st_if(keeps, lane * layout.parts() + turn / runs, value);
        }
    }

    /// A list behind the activations, of `parts` numbers for each of the lanes `in_group`.
    fn list(self, column: u32, list: u32, parts: u32) -> Ptr<'k, Shared, f32> {
        self.column(column).at(self.product.column_words()[0] + list * LANES * parts)
    }

    /// What a list has for so many parts of the lane. Totals of bytes are the bits of whole numbers.
    pub(super) fn kept(self, column: u32, list: u32, parts: usize) -> Vec<Reg<'k, f32>> {
        let parts = parts as u32;
        self.list(column, list, parts).ld_many(None, self.lanes.in_group * parts, parts, 0.0)
    }

    /// Piece `piece` of the lane's.
    fn piece<T: Data>(self, column: Ptr<'k, Shared, T>, piece: u32) -> [Reg<'k, T>; PIECE as usize] {
        column.ld_vec(self.lanes.in_group * self.product.lane_words() + piece * PIECE)
    }

    /// The activations that a chunk of the lane is multiplied with, in the pass that has it.
    pub(super) fn floats(self, column: u32, chunk: u32, pass: &Range<u32>) -> [Reg<'k, f32>; 4] {
        self.piece(self.column(column), chunk - pass.start)
    }

    /// The bytes that the chunks of run `run` of the lane are multiplied with, a word each.
    pub(super) fn bytes(self, column: u32, run: u32) -> [Reg<'k, u32>; MIN_PART as usize] {
        self.piece(self.column(column).cast(), run)
    }
}

/// The values of each `lanes` neighbouring lanes combined, in all of them.
fn neighbours<'k, T: Reduce>(
    lanes: u32,
    value: Reg<'k, T>,
    combine: impl Fn(Reg<'k, T>, Reg<'k, T>) -> Reg<'k, T>,
) -> Reg<'k, T> {
    let distances = std::iter::successors(Some(1), |distance| Some(distance * 2));
    let distances = distances.take_while(|&distance| distance < lanes);
    distances.fold(value, |value, distance| combine(value, value.kernel().shuffle_xor(value, distance)))
}

/// The sum of the signed bytes of some words.
fn sum<'k>(words: &[Reg<'k, u32>]) -> Reg<'k, i32> {
    let k = words[0].kernel();
    words.iter().fold(k.i32(0), |sum, word| word.bits::<i32>().dp4a(k.i32(0x0101_0101), sum))
}
