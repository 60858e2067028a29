//! Tiles from what each lane has, and back: for kernels that load fragments themselves.
//!
//! Inner dimensions may be in any order, as long as it is the same in both factors, and so may rows and columns,
//! as long as whoever reads the product knows. So 16 bytes of a row, as they come from memory, are fragments of
//! two products, without shared memory in between.

use super::super::reg::Reg;
use super::{Acc, B, Factor, Half, K, Tile, TileRole};
use crate::diag::Code;
use crate::ir::{Dst, RegSrc, Type};
use crate::op::matrix::{MatrixElement, Movmatrix, TileShape};
use std::panic::Location;

impl<'k> K<'k> {
    /// The factor (`A` or `B`) whose registers these are, in each lane as the table of [`Tile`] says: blocks
    /// by rows, of an A tile four registers each, of a B tile two.
    #[track_caller]
    pub fn factor_of<R: TileRole, T: Factor>(
        self,
        rows: u32,
        columns: u32,
        words: &[Reg<'k, u32>],
    ) -> Tile<'k, R, T> {
        let loc = Location::caller();
        let tile = Tile::shaped(self, rows, columns, loc, |count| {
            let mut state = self.state();
            if words.len() != count {
                let message =
                    format!("{} registers for a tile of {rows}x{columns}, which has {count}", words.len());
                return vec![state.mistake(Code::VectorShape, loc, message); count];
            }
            words.iter().map(|word| state.register(word.id, loc)).collect()
        });
        if words.len() == tile.register_count() { tile } else { Tile::poison(self, rows, columns) }
    }

    /// Accumulators whose registers these are: see [`factor_of`](Self::factor_of).
    #[track_caller]
    pub fn accumulators_of(self, rows: u32, columns: u32, sums: &[Reg<'k, f32>]) -> Tile<'k, Acc, f32> {
        let loc = Location::caller();
        let tile = Tile::shaped(self, rows, columns, loc, |count| {
            if sums.len() != count {
                let message =
                    format!("{} registers for a tile of {rows}x{columns}, which has {count}", sums.len());
                return vec![self.state().mistake(Code::VectorShape, loc, message); count];
            }
            sums.iter().map(|sum| sum.id).collect()
        });
        if sums.len() == tile.register_count() { tile } else { Tile::poison(self, rows, columns) }
    }
}

impl<'k> Tile<'k, Acc, f32> {
    /// The lane's elements, in the order of the table of [`Tile`]; none of the tile of a mistake.
    pub fn to_vec(self) -> Vec<Reg<'k, f32>> {
        self.registers().unwrap_or_default().into_iter().map(|id| Reg::new(self.k, id)).collect()
    }

    /// The accumulators, rounded, as the right factor of the next product: 8×8 elements at a time are turned
    /// around in the warp. Rows are a multiple of 16.
    #[track_caller]
    pub fn as_b<T: Half>(self) -> Tile<'k, B, T> {
        let (k, loc) = (self.k, Location::caller());
        let Some(sums) = self.usable(loc) else { return Tile::poison(k, self.rows, self.columns) };
        Tile::shaped(k, self.rows, self.columns, loc, |_| {
            let turn = |pair: &[crate::ir::Reg]| {
                let packed = T::pack(Reg::new(k, pair[0]), Reg::new(k, pair[1]));
                let mut state = k.state();
                let a = RegSrc(packed);
                let d = state.written(Type::U32);
                let op = Movmatrix {
                    shape: TileShape::M8N8,
                    trans: true,
                    element: MatrixElement::B16,
                    d: Dst(d),
                    a,
                };
                state.effect(op, None, loc);
                d
            };
            sums.chunks_exact(2).map(turn).collect()
        })
    }
}
