//! A tile of rows, from loads to stores: what the entry point runs for each block, and what a kernel that
//! does more than one thing may run for a block's worth of rows.

use super::activations::{Source, Stage, Staging};
use super::dot::{self, Row};
use super::epilogue::{self, Output};
use super::format::{Layout, Share};
use super::plan::{self, GROUPS, LANES, Lanes, Rows, Slice};
use super::scales::{Exchange, Loaded};
use super::shape::{PlaneAt, Shape};
use crate::activation::Activation;
use crate::weights::{Part, WeightFormat};
use std::ops::Range;
use warpwright_dsl::*;

/// A product of one matrix, or of a pair of them, with columns of activations: what is known on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Product {
    /// The format of the matrices.
    pub(crate) format: WeightFormat,
    /// Their rows.
    pub(crate) n: u32,
    /// Their columns.
    pub(crate) k: u32,
    /// Columns of activations: 1 to 8.
    pub(crate) batch: u32,
    /// The activation `a`, where there are two matrices, for `a(W₀ x) · (W₁ x)`.
    pub(crate) gate: Option<Activation>,
    /// Whether activations are multiplied as `f32`, not as `q8_1`.
    pub(crate) exact: bool,
    /// What is added to the mean square, where the activations are normalised.
    pub(crate) epsilon: Option<f32>,
    /// Warps of the block.
    pub(crate) warps: u32,
}

/// What the product reads and writes.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'k> {
    /// The activations.
    pub(crate) x: Source<'k>,
    /// The matrices, in planes; the second of them where there is a gate.
    pub(crate) weights: (Ptr<'k, Global, u8>, Option<Ptr<'k, Global, u8>>),
    /// Where the results go, and what is added to them.
    pub(crate) output: Output<'k>,
}

/// Shared memory of a tile: where the first warp's begins of each.
#[derive(Clone, Copy)]
pub(crate) struct Scratch<'k> {
    /// What a warp stages.
    stage: Ptr<'k, Shared, f32>,
    /// Sums of the warps.
    pub(super) partial: Ptr<'k, Shared, f32>,
    /// Sums of squares of the warps.
    pub(super) squares: Ptr<'k, Shared, f32>,
}

impl Product {
    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.format)
    }

    /// Rows of a group of lanes, those of both matrices counted: fewer for more columns, which need the
    /// registers.
    pub(super) fn group_rows(&self) -> u32 {
        if self.batch <= 4 { 4 } else { 2 }
    }

    /// Warps that are to be resident on a multiprocessor: with 16 a thread has 128 registers, and `ptxas` uses
    /// them to have all weights of a slice under way at once. Many columns of `f32` may need more.
    pub(super) fn resident_warps(&self) -> Option<u32> {
        (!self.exact || self.batch <= 4).then_some(16)
    }

    pub(super) fn matrices(&self) -> u32 {
        if self.gate.is_some() { 2 } else { 1 }
    }

    /// Rows of a tile.
    pub(crate) fn tile_rows(&self) -> u32 {
        self.group_rows() / self.matrices() * GROUPS
    }

    /// Tiles that cover all rows.
    pub(crate) fn tiles(&self) -> u32 {
        self.n.div_ceil(self.tile_rows())
    }

    fn staging(&self) -> Staging {
        Staging { layout: self.layout(), columns: self.batch, exact: self.exact }
    }

    fn warp_words(&self) -> u32 {
        self.staging().words() + Exchange::words(self.layout(), self.group_rows())
    }

    /// Most warps of a block that has so many bytes of shared memory.
    pub(super) fn most_warps(&self, shared: u32) -> u32 {
        let of_one = Product { warps: 1, ..*self }.scratch_words();
        (shared / 4 / of_one.max(1)).clamp(1, plan::MAX_WARPS)
    }

    /// Words of shared memory that a tile needs.
    pub(crate) fn scratch_words(&self) -> u32 {
        self.warps * self.warp_words() + epilogue::words(self)
    }

    /// The parts of the block's shared memory.
    fn scratch<'k>(&self, k: K<'k>) -> Scratch<'k> {
        let stage = k.shared::<f32>(self.scratch_words().max(1));
        let partial = stage.at(self.warps * self.warp_words());
        Scratch { stage, partial, squares: partial.at(self.warps * epilogue::warp_words(self)) }
    }

    /// Runs tile `tile`, with all threads of the block. When it returns, others may still read the shared memory.
    pub(crate) fn run<'k>(&self, k: K<'k>, tile: Reg<'k, u32>, operands: Operands<'k>) {
        let scratch = self.scratch(k);
        let layout = self.layout();
        let lanes = Lanes::new(k);
        let shape = Shape::new(k, self);
        let memory = scratch.stage.at(lanes.warp * self.warp_words());
        let rows = Rows::new(k, tile, shape.n, self.group_rows() / self.matrices());
        let sources = |lanes| {
            let stage = Stage::new(self.staging(), self.k, lanes, memory, operands.x);
            let exchange = Exchange::new(layout, lanes, self.group_rows(), memory.at(self.staging().words()));
            (stage, exchange, Matrices::new(*self, &shape, operands.weights, lanes, rows, exchange))
        };
        let shared = sources(lanes);

        let zeros = |count: u32| (0..count).map(|_| k.var(0.0f32)).collect::<Vec<_>>();
        let sums: Vec<_> = (0..self.group_rows()).map(|_| zeros(self.batch)).collect();
        let squares = zeros(if self.epsilon.is_some() { self.batch } else { 0 });

        plan::each_slice(k, layout, shape.slices, lanes, |slice| {
            let own = slice.lanes.map(sources);
            let (stage, exchange, matrices) = own.as_ref().unwrap_or(&shared);
            let (stage, exchange) = (*stage, *exchange);
            let steps = matrices.steps();
            // All loads of weights are under way before the first is waited for.
            let shares: Vec<_> = (0..self.group_rows()).map(|r| matrices.share(slice, &steps, r)).collect();
            let loaded = matrices.scales(k, slice, &steps, exchange);
            let bring = |pass: &Range<u32>| {
                for column in 0..self.batch {
                    let seen = stage.bring(k, operands.x, slice, column, pass.clone());
                    if let (Some(seen), Some(squares)) = (seen, squares.get(column as usize)) {
                        squares.set(squares.get() + seen);
                    }
                }
            };
            let passes = self.staging().passes();
            bring(&passes[0]);
            if let Some(loaded) = &loaded {
                exchange.store(loaded);
            }
            k.sync_warp();
            let rows: Vec<_> = (shares.into_iter().zip(&sums).zip(0..))
                .map(|((share, sums), r)| Row { share, scales: exchange.scales(r), sums: sums.clone() })
                .collect();
            for (i, pass) in passes.into_iter().enumerate() {
                if i > 0 {
                    bring(&pass);
                    k.sync_warp();
                }
                if self.exact {
                    dot::exact(layout, stage, &rows, pass);
                } else {
                    dot::int8(k, layout, stage, &rows);
                }
                // The stage is free for what comes next once all lanes have read it.
                k.sync_warp();
            }
        });

        epilogue::finish(k, self, (&shape, tile, rows, lanes), scratch, (&sums, &squares), operands.output);
    }
}

/// The matrices of a product, as a lane loads them.
struct Matrices<'k> {
    product: Product,
    planes: Vec<PlaneAt<'k>>,
    lanes: Lanes<'k>,
    /// The rows that the lane works on, each with its matrix.
    rows: Vec<WeightRow<'k>>,
    /// The row whose scales the lane loads.
    scales: WeightRow<'k>,
}

/// For each plane the bytes between rows, taken for each slice: so one address is counted along for all rows of a
/// group, and not one for each.
type Steps<'k> = Vec<Dim<'k>>;

/// A row of a matrix.
#[derive(Clone, Copy)]
struct WeightRow<'k> {
    weights: Ptr<'k, Global, u8>,
    /// Its number, less `further`.
    number: Reg<'k, u32>,
    further: u32,
}

impl<'k> Matrices<'k> {
    fn new(
        product: Product,
        shape: &Shape<'k>,
        (first, second): (Ptr<'k, Global, u8>, Option<Ptr<'k, Global, u8>>),
        lanes: Lanes<'k>,
        rows: Rows<'k>,
        exchange: Exchange<'k>,
    ) -> Self {
        let matrix = |r: u32| if r < rows.group { first } else { second.unwrap_or(first) };
        let r = exchange.row();
        let of_scales = match second {
            Some(second) => r.lt(rows.group).select_ptr(first, second),
            None => first,
        };
        let row = |r: u32| {
            let (number, further) = rows.further(lanes, r % rows.group);
            WeightRow { weights: matrix(r), number, further }
        };
        Matrices {
            product,
            planes: shape.planes.clone(),
            lanes,
            rows: (0..product.group_rows()).map(row).collect(),
            scales: WeightRow {
                weights: of_scales,
                number: rows.of_group(lanes, r % rows.group),
                further: 0,
            },
        }
    }

    fn steps(&self) -> Steps<'k> {
        self.planes.iter().map(|plane| plane.pitch.anew()).collect()
    }

    /// A row of a plane, as words.
    fn row(&self, steps: &Steps<'k>, part: Part, row: WeightRow<'k>) -> Option<Ptr<'k, Global, u32>> {
        let (plane, step) = self.planes.iter().zip(steps).find(|(plane, _)| plane.part == part)?;
        let from = plane.offset.map_or(row.weights, |offset| row.weights.at(offset));
        Some(from.at(plane.pitch.rows(row.number)).at(*step * row.further).cast())
    }

    /// The lane's share of row `r` of its group.
    fn share(&self, slice: Slice<'k>, steps: &Steps<'k>, r: u32) -> Share<'k> {
        let layout = self.product.layout();
        let Lanes { unit, half, in_quad, .. } = self.lanes;
        let plane = |part| self.row(steps, part, self.rows[r as usize]);
        let part = if self.product.format.is_float() { Part::Values } else { Part::Quants };
        let Some(quants) = plane(part) else { return Share { words: Vec::new(), upper: Vec::new() } };

        let mut words = Vec::new();
        let mut upper = Vec::new();
        let run = layout.run();
        if layout.units() {
            let condition = slice.rest.map(|rest| unit.lt(rest.weights / run));
            // The halves of four units lie one after the other.
            let at = slice.number * 64 + half * 32 + in_quad * 4;
            for half in [0, 16] {
                words.extend(load::<4>(quants.at(half), at, condition));
            }
            if let Some(fifth) = plane(Part::Fifth) {
                upper.extend(load::<2>(fifth, slice.number * 16 + unit * 2, condition));
            }
            if let Some(bits) = plane(Part::Upper) {
                upper.extend(load::<4>(bits, slice.number * 32 + unit * 4, condition));
            }
        } else {
            for i in 0..layout.runs() {
                let condition = slice.rest.map(|rest| (unit * run + i * LANES * run).lt(rest.weights));
                let at = slice.number * (layout.runs() * LANES * 4) + unit * 4;
                words.extend(load::<4>(quants.at(i * LANES * 4), at, condition));
            }
        }
        Share { words, upper }
    }

    /// This lane's part of the scales of all rows.
    fn scales(
        &self,
        k: K<'k>,
        slice: Slice<'k>,
        steps: &Steps<'k>,
        exchange: Exchange<'k>,
    ) -> Option<Loaded<'k>> {
        let part = if self.product.layout().has_minima() { Part::Headers } else { Part::Scales };
        let scales = self.row(steps, part, self.scales)?;
        let factors = self.row(steps, Part::D, self.scales).map(Ptr::cast);
        let plane = self.planes.iter().find(|plane| plane.part == part)?;
        Some(exchange.load(k, plane.pitch, slice, scales, factors))
    }
}

/// Words in one access, zeros where the condition does not hold.
fn load<'k, const N: usize>(
    from: Ptr<'k, Global, u32>,
    at: Reg<'k, u32>,
    condition: Option<Reg<'k, Pred>>,
) -> [Reg<'k, u32>; N] {
    match condition {
        Some(condition) => from.ld_vec_if(condition, at, 0),
        None => from.ld_vec(at),
    }
}
