//! Transposition of a matrix.

use std::marker::PhantomData;
use warpwright_dsl::*;

/// Side of the square tile that a block transposes.
const TILE: u32 = 32;

/// `y = xᵀ`: `x` is `rows × columns`, `y` is `columns × rows`, both row-major. A block moves a tile of
/// 32×32 through shared memory, so that it reads and writes global memory along rows.
#[derive(Clone, Copy, Debug, Config)]
pub(crate) struct Transpose<T> {
    /// Rows of `x`.
    #[field(range = 1..=1 << 16, default = 1024)]
    pub(crate) rows: u32,
    /// Columns of `x`.
    #[field(range = 1..=65535, default = 1024)]
    pub(crate) columns: u32,
    /// Element type.
    pub(crate) element: PhantomData<T>,
}

impl<T> Transpose<T> {
    /// Rows of the tile that a block's threads cover at once.
    const THREAD_ROWS: u32 = 8;

    /// A matrix of that size.
    pub(crate) fn new(rows: u32, columns: u32) -> Self {
        Transpose { rows, columns, element: PhantomData }
    }
}

/// The arguments of [`Transpose`].
#[derive(Args)]
#[args(of = Transpose::<T>)]
pub(crate) struct TransposeArgs<T: Data, M: Mode> {
    #[arg(len = Extent::new(of.rows.into()).times(of.columns.into()))]
    pub(crate) x: M::In<T>,
    #[arg(len = Extent::new(of.rows.into()).times(of.columns.into()))]
    pub(crate) y: M::Out<T>,
}

impl<T: Data> Kernel for Transpose<T> {
    type Args<M: Mode> = TransposeArgs<T, M>;

    fn launch(&self) -> LaunchRule {
        let tiles = |side: u32| Extent::new(side.div_ceil(TILE).into());
        LaunchRule::new(0).block_3d([TILE, Self::THREAD_ROWS, 1]).grid_3d([
            tiles(self.columns),
            tiles(self.rows),
            Extent::new(1),
        ])
    }

    fn body<'k>(&self, k: K<'k>, TransposeArgs { x, y }: TransposeArgs<T, Body<'k>>) {
        // A column more than the tile: the threads that read a column meet 32 different banks.
        let pitch = TILE + 1;
        let tile = k.shared::<T>(TILE * pitch);
        let (column, row) = (k.ctaid() * TILE, k.ctaid_y() * TILE);
        let (tx, ty) = (k.tid(), k.tid_y());

        for step in (0..TILE).step_by(Self::THREAD_ROWS as usize) {
            let (r, c) = (row + ty + step, column + tx);
            let inside = r.lt(self.rows) & c.lt(self.columns);
            k.when(inside, || tile.st((ty + step) * pitch + tx, x.ld(r * self.columns + c)));
        }
        k.sync();
        for step in (0..TILE).step_by(Self::THREAD_ROWS as usize) {
            let (r, c) = (column + ty + step, row + tx);
            let inside = r.lt(self.columns) & c.lt(self.rows);
            k.when(inside, || y.st(r * self.rows + c, tile.ld(tx * pitch + ty + step)));
        }
    }
}
