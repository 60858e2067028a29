//! Matrix product by tiles in shared memory, on the ordinary arithmetic units.

use std::array::from_fn;
use std::marker::PhantomData;
use warpwright_dsl::*;

/// `C = A·B`: `A` is `m × k`, `B` is `k × n`, `C` is `m × n`, all row-major, of any size.
///
/// A block makes a tile of 128×128 of `C` from tiles of `A` and `B` in shared memory; each of its 16×16
/// threads makes 8×8 elements in registers. Products are added in `f32`, one at a time:
/// `|err| ≤ k · 2⁻²⁴ · Σ|aᵢ||bᵢ|`, and one rounding to `T`.
#[derive(Clone, Copy, Debug, Config)]
pub(crate) struct MatmulTiled<T> {
    /// Columns of `B` and `C`.
    #[field(range = 1..=1 << 20, default = 4096)]
    pub(crate) n: u32,
    /// Columns of `A`, rows of `B`.
    #[field(range = 0..=1 << 20, default = 4096)]
    pub(crate) k: u32,
    /// Element type of all three matrices.
    pub(crate) element: PhantomData<T>,
}

/// Side of a block's tile of `C`.
const TILE: u32 = 128;
/// Columns of `A` and rows of `B` in a tile.
const DEPTH: u32 = 8;
/// Threads of a block, along each side.
const THREADS: u32 = 16;
/// Side of a thread's part of `C`.
const PART: usize = (TILE / THREADS) as usize;

impl<T> MatmulTiled<T> {
    /// Products with a `k × n` matrix.
    pub(crate) fn new(n: u32, k: u32) -> Self {
        MatmulTiled { n, k, element: PhantomData }
    }
}

/// The arguments of [`MatmulTiled`].
#[derive(Args)]
#[args(of = MatmulTiled::<T>)]
pub(crate) struct MatmulTiledArgs<T: Float, M: Mode> {
    #[arg(len = m.times(of.k.into()))]
    pub(crate) a: M::In<T>,
    #[arg(len = Extent::new(of.k.into()).times(of.n.into()))]
    pub(crate) b: M::In<T>,
    #[arg(len = m.times(of.n.into()))]
    pub(crate) c: M::Out<T>,
    pub(crate) m: M::Scalar<u32>,
}

impl<T: Float> Kernel for MatmulTiled<T> {
    type Args<M: Mode> = MatmulTiledArgs<T, M>;

    fn launch(&self) -> LaunchRule {
        let rule = LaunchRule::new(0).block_3d([THREADS, THREADS, 1]).grid_3d([
            Extent::new(self.n.div_ceil(TILE).into()),
            Extent::dim("m").per(TILE.into()),
            Extent::new(1),
        ]);
        // A register more than 128 would halve the warps that hide each other's waits.
        LaunchRule { resident_blocks: Some(2), ..rule }
    }

    fn body<'k>(&self, k: K<'k>, MatmulTiledArgs { a, b, c, m }: MatmulTiledArgs<T, Body<'k>>) {
        let (a, b, c) = (a.matrix(m, self.k), b.matrix(self.k, self.n), c.matrix(m, self.n));
        let (a_tile, b_tile) = (k.shared_tile::<T>(TILE, DEPTH), k.shared_tile::<T>(DEPTH, TILE));
        let (row, column) = (k.ctaid_y() * TILE, k.ctaid() * TILE);
        // Neighbours take neighbouring columns, four at a time, and neighbouring rows.
        let row_of = |i: usize| k.tid_y() + THREADS * i as u32;
        let column_of = |j: usize| (k.tid() + THREADS * j as u32) * 4;

        let zero = [[k.f32(0.0); PART]; PART];
        let sums = k.fold(k.range(0..self.k).step(DEPTH), zero, |depth, sums| {
            a_tile.load(a, row, depth);
            b_tile.load(b, depth, column);
            k.sync();
            let sums = (0..DEPTH).step_by(2).fold(sums, |sums, p| {
                let left: [_; PART] = from_fn(|i| a_tile.ld_vec::<2>(row_of(i), p));
                (0..2).fold(sums, |sums, q| {
                    let right = [0, 1].map(|j| b_tile.ld_vec::<4>(p + q, column_of(j)));
                    let right: [_; PART] = from_fn(|j| right[j / 4][j % 4].f32());
                    from_fn(|i| {
                        let left = left[i][q as usize].f32();
                        from_fn(|j| left.mul_add(right[j], sums[i][j]))
                    })
                })
            });
            k.sync();
            sums
        });

        for (i, sums) in sums.iter().enumerate() {
            for j in [0, 1] {
                let values: [_; 4] = from_fn(|q| sums[4 * j + q].to());
                c.st(row + row_of(i), column + column_of(j), values);
            }
        }
    }
}
