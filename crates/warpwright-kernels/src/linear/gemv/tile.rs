//! A tile of rows, from loads to stores, which the kernel runs for each block.

use super::dot;
use super::epilogue;
use super::plan::{GROUPS, Lanes, MAX_WARPS, Rows, Slice, Slices};
use super::stage::{Source, Stage};
use super::weights::{Layout, Share};
use crate::activation::Activation;
use crate::weights::units::{MatrixAt, Units};
use crate::weights::{Planes, WeightFormat};
use std::ops::Range;
use warpwright_dsl::*;

/// A product of one matrix, or of a pair of them, with columns of activations: what is known on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Product {
    /// The format of the matrices.
    pub(super) format: WeightFormat,
    /// Their rows.
    pub(super) n: u32,
    /// Their columns.
    pub(super) k: u32,
    /// Columns of activations: 1 to 8.
    pub(super) batch: u32,
    /// The activation `a`, where there are two matrices, for `a(W₀ x) · (W₁ x)`.
    pub(super) gate: Option<Activation>,
    /// Whether activations are multiplied as `f32`, not as bytes.
    pub(super) exact: bool,
    /// Added to the mean square, if the activations are normalised.
    pub(super) epsilon: Option<f32>,
    /// Warps of the block.
    pub(super) warps: u32,
    /// Rows of a group of lanes, where not as [`group_rows`](Self::group_rows) has it.
    pub(super) rows: Option<u32>,
}

/// What the product reads and writes.
pub(super) struct Operands<'k> {
    /// The activations.
    pub(super) x: Source<'k>,
    /// The matrices, in planes: two where there is a gate.
    pub(super) weights: Vec<Ptr<'k, Global, u8>>,
    /// Added to each row of a matrix: `n`.
    pub(super) bias: Vec<Option<Ptr<'k, Global, f32>>>,
    /// Added to the result: `columns × n`.
    pub(super) residual: Option<Ptr<'k, Global, f32>>,
    /// The result, `columns × n`.
    pub(super) y: Ptr<'k, Global, f32>,
}

/// Rows of a group that are read at once.
const AT_ONCE: u32 = 4;

/// Bytes of a line of the L2 cache.
const LINE: u32 = 128;

impl Product {
    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.format)
    }

    /// Rows of a group of lanes, those of both matrices counted. A column of bytes takes the fewest registers, and a large
    /// matrix has tiles enough when they are large; two matrices have addresses of their own.
    pub(super) fn group_rows(&self) -> u32 {
        let max = self.max_rows();
        match self.rows {
            Some(rows) => rows.min(max),
            None if self.exact || self.gate.is_some() || self.n < 2048 => max.min(4),
            None => max,
        }
    }

    /// Rows that a group of lanes has registers for: fewer for more columns.
    pub(super) fn max_rows(&self) -> u32 {
        match self.batch {
            1 => 8,
            2..=4 => 4,
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
    pub(super) fn tile_rows(&self) -> u32 {
        self.group_rows() / self.matrices() * GROUPS
    }

    /// Tiles that cover all rows.
    pub(super) fn tiles(&self) -> u32 {
        self.n.div_ceil(self.tile_rows())
    }

    /// Sums of a warp: by matrix, column and row of the tile.
    pub(super) fn sums(&self) -> u32 {
        self.group_rows() * GROUPS * self.batch
    }

    /// Words of shared memory that a warp needs: what it stages, its sums, and a sum of squares for each column.
    pub(super) fn warp_words(&self) -> u32 {
        let squares = if self.epsilon.is_some() { self.batch } else { 0 };
        (self.staged_words() + self.sums() + squares).next_multiple_of(4)
    }

    /// Maximum number of warps of a block with this much shared memory, in bytes.
    pub(super) fn max_warps(&self, shared: u32) -> u32 {
        (shared / 4 / self.warp_words()).clamp(1, MAX_WARPS)
    }

    /// What sums over the lanes are in units of.
    pub(super) fn unit(&self) -> f32 {
        let layout = self.layout();
        layout.units.filter(|_| !self.exact).map_or(layout.floating().step, Units::height)
    }

    /// Brings the beginnings of the tile's rows of codes or numbers into L2, which needs nothing of the launches in front.
    /// With the blocks of a device that is about what its memory has under way at a time.
    fn fetch_ahead<'k>(&self, k: K<'k>, shape: &Shape<'k>) {
        if !k.can_overlap() {
            return;
        }
        // Each thread has a line of a row.
        let rows = shape.rows.tile().min(self.n);
        let (row, line) = (shape.rows.stored(k.tid() % rows).0, k.tid() / rows);
        let row_bytes =
            Planes::new(self.format, self.n, self.k).iter().next().map_or(0, |plane| plane.row_bytes);
        let lines = (row_bytes as u32).div_ceil(LINE);
        let inside = (lines < (self.warps * 32).div_ceil(rows)).then(|| line.lt(lines));
        for matrix in &shape.matrices {
            matrix.row(row)[0].prefetch_if(inside, line * LINE);
        }
    }

    /// Runs tile `tile`, with all threads of the block. When it returns, others may still read the shared memory.
    pub(super) fn run<'k>(&self, k: K<'k>, tile: Reg<'k, u32>, operands: &Operands<'k>) {
        let shape = Shape::new(k, self, tile, &operands.weights);
        self.fetch_ahead(k, &shape);
        k.wait_for_launches();
        k.release_launches();
        let memory = k.shared::<f32>(self.warps * self.warp_words());
        let own = memory.at(shape.lanes.warp * self.warp_words());
        let zeros = |count: u32| (0..count).map(|_| k.var(0.0f32)).collect::<Vec<_>>();
        let sums: Vec<_> = (0..self.group_rows()).map(|_| zeros(self.batch)).collect();
        let squares = zeros(if self.epsilon.is_some() { self.batch } else { 0 });

        let sources = |lanes| (Stage::new(self, lanes, own, operands.x), shape.group(lanes));
        let shared = sources(shape.lanes);
        shape.slices.each(k, shape.lanes, |slice, lanes| {
            let anew = lanes.map(sources);
            let (stage, group) = anew.as_ref().unwrap_or(&shared);
            let weights = |rows| shape.weights((slice, lanes.unwrap_or(shape.lanes)), group, rows);
            // All loads of the first rows' weights are under way before the first is waited for.
            let first = weights(0..self.group_rows().min(AT_ONCE));
            for pass in self.passes() {
                stage.bring(slice, &pass, &squares);
                k.sync_warp();
                let dot = |rows: &[Share<'k>], sums: &[Vec<Var<'k, f32>>]| match self.exact {
                    true => dot::exact(*stage, &pass, rows, sums),
                    false => dot::int8(*stage, rows, sums),
                };
                dot(&first, &sums);
                for from in (AT_ONCE..self.group_rows()).step_by(AT_ONCE as usize) {
                    dot(&weights(from..from + AT_ONCE), &sums[from as usize..]);
                }
                // The stage is free for what comes next once all lanes have read it.
                k.sync_warp();
            }
        });
        epilogue::merge(k, self, &shape, memory, (&sums, &squares), operands);
    }
}

/// The product, as a block has it.
pub(super) struct Shape<'k> {
    layout: Layout,
    slices: Slices<'k>,
    pub(super) lanes: Lanes<'k>,
    pub(super) rows: Rows<'k>,
    pub(super) matrices: Vec<MatrixAt<'k>>,
    /// `1 / k` and epsilon, where the activations are normalised.
    pub(super) mean: Option<[Reg<'k, f32>; 2]>,
}

impl<'k> Shape<'k> {
    fn new(k: K<'k>, product: &Product, tile: Reg<'k, u32>, weights: &[Ptr<'k, Global, u8>]) -> Self {
        let (lanes, layout) = (Lanes::new(k), product.layout());
        let group = product.group_rows() / product.matrices();
        let matrix = MatrixAt::new(k, &Planes::new(product.format, product.n, product.k), weights[0]);
        Shape {
            layout,
            slices: Slices::new(k, layout, product.k, product.warps),
            lanes,
            rows: Rows::new(k, tile, k.dim(product.n), group),
            matrices: weights.iter().map(|&weights| matrix.with(weights)).collect(),
            mean: product.epsilon.map(|epsilon| [k.factor(1.0 / product.k as f32), k.factor(epsilon)]),
        }
    }

    /// The first row of the lane's group, by matrix and plane.
    fn group(&self, lanes: Lanes<'k>) -> Vec<Vec<Ptr<'k, Global, u8>>> {
        let row = self.rows.of_group(lanes);
        self.matrices.iter().map(|matrix| matrix.row(row)).collect()
    }

    /// The lane's weights of a slice, of some rows of its group.
    fn weights(
        &self,
        (slice, lanes): (Slice<'k>, Lanes<'k>),
        group: &[Vec<Ptr<'k, Global, u8>>],
        rows: Range<u32>,
    ) -> Vec<Share<'k>> {
        // For each plane the bytes between rows, taken for each slice: so one address is counted along for all rows of a
        // group, and not one for each.
        let steps: Vec<_> = self.matrices[0].pitches().into_iter().map(Dim::anew).collect();
        let stride = steps[0] / self.layout.units.map_or(1, |units| units.quants.pieces());
        let share = |r| {
            let first = &group[(r / self.rows.group) as usize];
            let further = self.rows.further(lanes, r % self.rows.group);
            let row = |plane: usize| first[plane].at(steps[plane].reg() * further);
            self.layout.load((slice, lanes), stride, row)
        };
        rows.map(share).collect()
    }
}
