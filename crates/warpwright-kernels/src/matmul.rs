//! Matrix product on the tensor cores.

use std::marker::PhantomData;
use warpwright_ptx::dsl::*;

/// `C = A·B`: `A` is `m × k`, `B` is `k × n`, `C` is `m × n`, all row-major, of any size.
///
/// A block makes a tile of 128×128 of `C`; each of its eight warps makes 64×32 of it on the tensor cores,
/// from tiles of `A` and `B` whose copies run ahead. Copies move 16 bytes at a time where the rows of a
/// matrix are a multiple of that (`k` and `n` multiples of 8 elements of 16 bits), and 8, 4 or 2
/// where they are not.
///
/// Products are exact and are added in `f32`, in blocks that the hardware truncates:
/// `|err| ≤ (2k + 16) · 2⁻²³ · Σ|aᵢ||bᵢ|`, and one rounding to `O`. Factors of `f32` are rounded to
/// `tf32` before, which adds `2⁻¹⁰ · Σ|aᵢ||bᵢ|`.
#[derive(Clone, Copy, Debug)]
pub struct Matmul<T, O> {
    /// Columns of `B` and `C`.
    pub n: u32,
    /// Columns of `A`, rows of `B`.
    pub k: u32,
    /// Tiles of `A` and `B` in shared memory at a time: 2 is double buffering.
    pub stages: u32,
    /// Element types of the factors and of `C`.
    pub elements: PhantomData<(T, O)>,
}

/// Side of a block's tile of `C`.
const TILE: u32 = 128;
/// Columns of `A` and rows of `B` in a tile.
const DEPTH: u32 = 32;
/// A warp's tile of `C`.
const WARP_ROWS: u32 = 64;
const WARP_COLUMNS: u32 = 32;
const WARPS: u32 = (TILE / WARP_ROWS) * (TILE / WARP_COLUMNS);

impl<T, O> Matmul<T, O> {
    /// Products with a `k × n` matrix, double-buffered.
    pub fn new(n: u32, k: u32) -> Self {
        Matmul { n, k, stages: 2, elements: PhantomData }
    }
}

impl<T: Factor, O: Float> Kernel for Matmul<T, O> {
    fn entry(&self) -> String {
        let (factor, sum) = (T::TYPE.name(), O::TYPE.name());
        format!("matmul_{factor}_{sum}_n{}_k{}_s{}", self.n, self.k, self.stages)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let (n, k) = (u64::from(self.n), u64::from(self.k));
        vec![
            ArgDesc::input::<T>("a", Extent::dim("m").times(k)),
            ArgDesc::input::<T>("b", Extent::new(k * n)),
            ArgDesc::output::<O>("c", Extent::dim("m").times(n)),
            ArgDesc::scalar::<u32>("m"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        let rule = LaunchRule::new(32 * WARPS).min_sm(T::SINCE).grid_3d([
            Extent::new(self.n.div_ceil(TILE).into()),
            Extent::dim("m").per(TILE.into()),
            Extent::new(1),
        ]);
        // Without edges to look after, two blocks have room for their registers.
        let whole = self.k.is_multiple_of(DEPTH) && self.n.is_multiple_of(8);
        LaunchRule { resident_blocks: whole.then_some(2), ..rule }
    }

    fn body(&self, k: K<'_>) {
        let (a, b, c) = (k.ptr::<T>("a"), k.ptr::<T>("b"), k.ptr_mut::<O>("c"));
        let m = k.scalar::<u32>("m");
        // The loop ends with the last tile that has something of both.
        let whole = self.k.is_multiple_of(DEPTH);
        let a = a.matrix(m, self.k).columns_fit(whole);
        let b = b.matrix(self.k, self.n).rows_fit(whole).columns_fit(self.n.is_multiple_of(TILE));
        let (row, column) = (k.ctaid_y() * TILE, k.ctaid() * TILE);
        let warp_row = k.warp() / (TILE / WARP_COLUMNS) * WARP_ROWS;
        let warp_column = k.warp() % (TILE / WARP_COLUMNS) * WARP_COLUMNS;

        let pipeline = k.pipeline(self.stages);
        let (a_tiles, b_tiles) = (pipeline.tile::<T>(TILE, DEPTH), pipeline.tile::<T>(DEPTH, TILE));
        let sums = pipeline.run(
            self.k.div_ceil(DEPTH),
            k.accumulators(WARP_ROWS, WARP_COLUMNS),
            |stage, tile| {
                a_tiles.at(stage).load(a, row, tile * DEPTH);
                b_tiles.at(stage).load(b, tile * DEPTH, column);
            },
            |stage, _, sums| {
                let a = a_tiles.at(stage).rows(warp_row, WARP_ROWS);
                let b = b_tiles.at(stage).columns(warp_column, WARP_COLUMNS);
                // One instruction deep at a time, so that few fragments are held.
                let step = 32 / T::TYPE.bytes();
                (0..DEPTH).step_by(step as usize).fold(sums, |sums, depth| {
                    a.columns(depth, step).load_a().mma(b.rows(depth, step).load_b(), sums)
                })
            },
        );
        sums.store(c.matrix(m, self.n), row + warp_row, column + warp_column);
    }
}
