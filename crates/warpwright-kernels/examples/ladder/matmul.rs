//! Matrix product on the tensor cores.

use std::marker::PhantomData;
use warpwright_dsl::*;

/// `C = A·B`: `A` is `m × k`, `B` is `k × n`, `C` is `m × n`, all row-major, of any size.
///
/// Each warp of a block makes 64×32 of `C` on the tensor cores, so that 2×4 of them make 128×128, from tiles
/// of `A` and `B` in shared memory whose copies run ahead. Copies move 16 bytes at a time where the rows of a
/// matrix are a multiple of that (`k` and `n` multiples of 8 elements of 16 bits), and 8, 4 or 2
/// where they are not.
///
/// Products are exact and are added in `f32`, in blocks that the hardware truncates:
/// `|err| ≤ (2k + 16) · 2⁻²³ · Σ|aᵢ||bᵢ|`, and one rounding to `O`. Factors of `f32` are rounded to
/// `tf32` before, which adds `2⁻¹⁰ · Σ|aᵢ||bᵢ|`.
#[derive(Clone, Copy, Debug, Config)]
pub(crate) struct Matmul<T, O> {
    /// Columns of `B` and `C`.
    #[field(range = 1..=1 << 20, default = 4096)]
    pub(crate) n: u32,
    /// Columns of `A`, rows of `B`.
    #[field(range = 0..=1 << 20, default = 4096)]
    pub(crate) k: u32,
    /// Tiles of `A` and `B` in shared memory at a time: 2 is double buffering.
    #[field(range = 1..=3, default = 2)]
    pub(crate) stages: u32,
    /// Warps of a block down `C`, with 64 rows each: 1 to 8 in all. More share what is loaded, fewer make more
    /// blocks of a small product.
    #[field(range = 1..=8, default = 2)]
    pub(crate) warps_down: u32,
    /// Warps of a block across `C`, with 32 columns each.
    #[field(range = 1..=8, default = 4)]
    pub(crate) warps_across: u32,
    /// Element types of the factors and of `C`.
    pub(crate) elements: PhantomData<(T, O)>,
}

/// Columns of `A` and rows of `B` in a tile.
const DEPTH: u32 = 32;
/// A warp's tile of `C`.
const WARP_ROWS: u32 = 64;
const WARP_COLUMNS: u32 = 32;

impl<T, O> Matmul<T, O> {
    /// Products with a `k × n` matrix, double-buffered, by blocks of 2×4 warps.
    pub(crate) fn new(n: u32, k: u32) -> Self {
        Matmul { n, k, stages: 2, warps_down: 2, warps_across: 4, elements: PhantomData }
    }

    /// Rows and columns of a block's tile of `C`.
    fn tile(&self) -> [u32; 2] {
        let [down, across] = [self.warps_down, self.warps_across].map(|warps| warps.clamp(1, 8));
        [down * WARP_ROWS, across * WARP_COLUMNS]
    }
}

/// The arguments of [`Matmul`].
#[derive(Args)]
#[args(of = Matmul::<T, O>)]
pub(crate) struct MatmulArgs<T: Factor, O: Float, M: Mode> {
    #[arg(len = m.times(of.k.into()))]
    pub(crate) a: M::In<T>,
    #[arg(len = Extent::new(of.k.into()).times(of.n.into()))]
    pub(crate) b: M::In<T>,
    #[arg(len = m.times(of.n.into()))]
    pub(crate) c: M::Out<O>,
    pub(crate) m: M::Scalar<u32>,
}

impl<T: Factor, O: Float> Kernel for Matmul<T, O> {
    type Args<M: Mode> = MatmulArgs<T, O, M>;

    fn launch(&self) -> LaunchRule {
        let [rows, columns] = self.tile();
        let warps = (rows / WARP_ROWS) * (columns / WARP_COLUMNS);
        let rule = LaunchRule::new(32 * warps.min(32)).min_sm(T::SINCE).grid_3d([
            Extent::new(self.n.div_ceil(columns).into()),
            Extent::dim("m").per(rows.into()),
            Extent::new(1),
        ]);
        // Without edges to look after, 16 warps have room for their registers.
        let whole = self.k.is_multiple_of(DEPTH) && self.n.is_multiple_of(8);
        LaunchRule { resident_blocks: whole.then_some((16 / warps).max(1)), ..rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        if self.warps_down * self.warps_across > 8 {
            let rule = "1 to 8 in all, which have room for their registers";
            return Err(BuildError::field("warps_down", self.warps_down, rule));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, MatmulArgs { a, b, c, m }: MatmulArgs<T, O, Body<'k>>) {
        let [rows, columns] = self.tile();
        // The loop ends with the last tile that has something of both.
        let whole = self.k.is_multiple_of(DEPTH);
        let a = a.matrix(m, self.k).columns_fit(whole);
        let b = b.matrix(self.k, self.n).rows_fit(whole).columns_fit(self.n.is_multiple_of(columns));
        let (row, column) = (k.ctaid_y() * rows, k.ctaid() * columns);
        let warp_row = k.warp() / (columns / WARP_COLUMNS) * WARP_ROWS;
        let warp_column = k.warp() % (columns / WARP_COLUMNS) * WARP_COLUMNS;

        let pipeline = k.pipeline(self.stages);
        let (a_tiles, b_tiles) = (pipeline.tile::<T>(rows, DEPTH), pipeline.tile::<T>(DEPTH, columns));
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
