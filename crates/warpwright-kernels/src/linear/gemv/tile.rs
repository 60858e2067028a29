//! A tile of rows, from loads to stores: what the entry point runs for each block, and what a kernel that
//! does more than one thing may run for a block's worth of rows.

use super::dot::{self, Row};
use super::epilogue::{self, Output};
use super::plan::{self, GROUPS, Lanes, Rows, Slice, Slices};
use super::stage::{Source, Stage, Staging};
use super::weights::Layout;
use crate::activation::Activation;
use crate::weights::units::{PlaneAt, planes_at};
use crate::weights::{Planes, WeightFormat};
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
    /// Whether activations are multiplied as `f32`, not as bytes.
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

/// Rows of a group that are read at once: those of bytes may be more, and only these may.
const AT_ONCE: u32 = 4;

/// The shape of a product, as its body has it.
pub(super) struct Shape<'k> {
    /// Rows of the matrices.
    pub(super) n: Dim<'k>,
    pub(super) slices: Slices<'k>,
    pub(super) planes: Vec<PlaneAt<'k>>,
    /// `1 / k` and epsilon, where the activations are normalised.
    pub(super) mean: Option<[Reg<'k, f32>; 2]>,
}

impl<'k> Shape<'k> {
    fn new(k: K<'k>, product: &Product) -> Self {
        let (whole, rest) = plan::slices(product.layout(), product.k);
        Shape {
            n: k.dim(product.n),
            slices: Slices { whole: k.dim(whole), rest: k.dim(rest), warps: product.warps },
            planes: planes_at(k, &Planes::new(product.format, product.n, product.k)),
            mean: product.epsilon.map(|epsilon| [k.factor(1.0 / product.k as f32), k.factor(epsilon)]),
        }
    }
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

    /// Rows of a group of lanes, those of both matrices counted: fewer for more columns, which need the registers. A
    /// column of bytes takes the fewest, and a large matrix has tiles enough when they are large; two matrices have
    /// addresses of their own.
    pub(super) fn group_rows(&self) -> u32 {
        match self.batch {
            1 if !self.exact && self.n >= 2048 && self.gate.is_none() => 8,
            1..=4 => 4,
            _ => 2,
        }
    }

    /// Warps that are to be resident on a multiprocessor: with 16 a thread has 128 registers, and `ptxas` uses
    /// them to have all weights of a slice under way at once. Many columns of `f32` and many rows may need more.
    pub(super) fn resident_warps(&self) -> Option<u32> {
        match (self.exact, self.group_rows()) {
            (true, ..4) => None,
            (_, 8) => Some(8),
            _ => Some(16),
        }
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

    /// Most warps of a block that has so many bytes of shared memory.
    pub(super) fn most_warps(&self, shared: u32) -> u32 {
        let of_one = Product { warps: 1, ..*self }.scratch_words();
        (shared / 4 / of_one.max(1)).clamp(1, plan::MAX_WARPS)
    }

    /// Words of shared memory that a tile needs.
    pub(crate) fn scratch_words(&self) -> u32 {
        self.warps * self.staging().words() + epilogue::words(self)
    }

    /// The parts of the block's shared memory.
    fn scratch<'k>(&self, k: K<'k>) -> Scratch<'k> {
        let stage = k.shared::<f32>(self.scratch_words().max(1));
        let partial = stage.at(self.warps * self.staging().words());
        Scratch { stage, partial, squares: partial.at(self.warps * epilogue::warp_words(self)) }
    }

    /// Runs tile `tile`, with all threads of the block. When it returns, others may still read the shared memory.
    pub(crate) fn run<'k>(&self, k: K<'k>, tile: Reg<'k, u32>, operands: Operands<'k>) {
        let (scratch, lanes, shape) = (self.scratch(k), Lanes::new(k), Shape::new(k, self));
        let memory = scratch.stage.at(lanes.warp * self.staging().words());
        let rows = Rows::new(k, tile, shape.n, self.group_rows() / self.matrices());
        let sources = |lanes| {
            let stage = Stage::new(self.staging(), self.k, lanes, memory, operands.x);
            (
                stage,
                Matrices { product: *self, planes: &shape.planes, weights: operands.weights, lanes, rows },
            )
        };
        let shared = sources(lanes);
        let zeros = |count: u32| (0..count).map(|_| k.var(0.0f32)).collect::<Vec<_>>();
        let sums: Vec<_> = (0..self.group_rows()).map(|_| zeros(self.batch)).collect();
        let squares = zeros(if self.epsilon.is_some() { self.batch } else { 0 });

        plan::each_slice(k, self.layout(), shape.slices, lanes, |slice| {
            let own = slice.lanes.map(sources);
            let (stage, matrices) = own.as_ref().unwrap_or(&shared);
            // All loads of the first rows' weights are under way before the first is waited for.
            let first = matrices.load(slice, &sums, 0);
            for pass in self.staging().passes() {
                self.bring(*stage, slice, &pass, &squares);
                k.sync_warp();
                match self.exact {
                    true => dot::exact(self.layout(), *stage, &first, pass),
                    false => dot::int8(self.layout(), *stage, &first),
                }
                for others in (AT_ONCE..self.group_rows()).step_by(AT_ONCE as usize) {
                    dot::int8(self.layout(), *stage, &matrices.load(slice, &sums, others));
                }
                // The stage is free for what comes next once all lanes have read it.
                k.sync_warp();
            }
        });
        let sums = (&sums[..], &squares[..]);
        epilogue::finish(k, self, (&shape, tile, rows, lanes), scratch, sums, operands);
    }

    /// Stages the activations of a pass, and adds up their squares.
    fn bring<'k>(&self, stage: Stage<'k>, slice: Slice<'k>, pass: &Range<u32>, squares: &[Var<'k, f32>]) {
        for column in 0..self.batch {
            let seen = stage.bring(slice, column, pass.clone());
            if let (Some(seen), Some(squares)) = (seen, squares.get(column as usize)) {
                squares.set(squares.get() + seen);
            }
        }
    }
}

/// The matrices of a product, as a lane loads them.
struct Matrices<'a, 'k> {
    product: Product,
    planes: &'a [PlaneAt<'k>],
    weights: (Ptr<'k, Global, u8>, Option<Ptr<'k, Global, u8>>),
    lanes: Lanes<'k>,
    rows: Rows<'k>,
}

impl<'k> Matrices<'_, 'k> {
    /// The lane's weights of a slice, of the rows of its group from `first` on that are read at once, beside their sums.
    fn load(&self, slice: Slice<'k>, sums: &[Vec<Var<'k, f32>>], first: u32) -> Vec<Row<'k>> {
        // For each plane the bytes between rows, taken for each slice: so one address is counted along for all rows of a
        // group, and not one for each.
        let steps: Vec<_> = self.planes.iter().map(|plane| plane.pitch.anew()).collect();
        let layout = self.product.layout();
        let stride = steps[0] / layout.pieces();
        let share = |r: u32| {
            let (first, second) = self.weights;
            let weights = if r < self.rows.group { first } else { second.unwrap_or(first) };
            let (number, further) = self.rows.further(self.lanes, r % self.rows.group);
            let row = |i: usize| {
                let plane = &self.planes[i];
                let begin = plane.offset.map_or(weights, |offset| weights.at(offset));
                begin.at(plane.pitch.rows(number)).at(steps[i].reg() * further)
            };
            layout.load((slice, self.lanes), stride, row)
        };
        let rows = (first..).zip(&sums[first as usize..]).take(AT_ONCE as usize);
        rows.map(|(r, sums)| Row { share: share(r), sums: sums.clone() }).collect()
    }
}
