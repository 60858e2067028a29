//! Conversions between tiles and each lane's registers.

use super::super::reg::Reg;
use super::{Acc, Factor, K, Tile, TileRole};
use std::panic::Location;
use warpwright_ptx::diag::Code;

impl<'k> K<'k> {
    /// The factor (`A` or `B`) with these registers, which each lane provides in the order of the table of [`Tile`]:
    /// blocks by rows, with four registers each for an A tile, two for a B tile.
    #[track_caller]
    pub(crate) fn factor_of<R: TileRole, T: Factor>(
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

    /// Accumulators made of these registers, which each lane provides in the order of the table of [`Tile`]: blocks
    /// by rows.
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
    /// The lane's elements, in the order of the table of [`Tile`]. It is empty for the tile of a mistake.
    pub fn to_vec(self) -> Vec<Reg<'k, f32>> {
        self.registers().unwrap_or_default().into_iter().map(|id| Reg::new(self.k, id)).collect()
    }
}
