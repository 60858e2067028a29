//! Sources of shared tiles of halves, for kernels whose inputs are halves or `f32`.

use super::super::reg::IntoReg;
use super::super::types::*;
use super::{Fillable, Half, Matrix, SharedTile};

/// Elements that a shared tile of `T` can be filled from: `T` itself, and `f32`.
pub trait TileSource<T: Half>: Data + Sized {
    /// Fills the tile from a row of the matrix on: [`load`](SharedTile::load), or
    /// [`load_rounded`](SharedTile::load_rounded).
    fn fill<'k, X: Fillable>(tile: SharedTile<'k, T, X>, from: Matrix<'k, Self>, row: impl IntoReg<'k, u32>);
}

macro_rules! themselves {
    ($($half:ty)*) => {
        $(impl TileSource<$half> for $half {
            #[track_caller]
            fn fill<'k, X: Fillable>(
                tile: SharedTile<'k, $half, X>,
                from: Matrix<'k, $half>,
                row: impl IntoReg<'k, u32>,
            ) {
                tile.load(from, row, 0);
            }
        })*
    };
}
themselves!(F16 Bf16);

impl<T: Half> TileSource<T> for f32 {
    #[track_caller]
    fn fill<'k, X: Fillable>(tile: SharedTile<'k, T, X>, from: Matrix<'k, f32>, row: impl IntoReg<'k, u32>) {
        tile.load_rounded(from, row, 0);
    }
}
