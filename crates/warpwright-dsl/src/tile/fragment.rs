//! Fragments: loaded from shared tiles into the registers of a warp.
//!
//! A fragment consists of matrices of 8 rows of 16 bytes, each of them one register of every lane: lane `4·g + t`
//! holds the four bytes at `4·t` of row `g`. An A tile consists of blocks of 16 rows by 32 bytes:
//!
//! ```text
//!             bytes 0..16   16..32
//!   rows 0..8      0          2         four registers, in this order
//!   rows 8..16     1          3
//! ```
//!
//! A B tile consists of blocks of 32 bytes along k by 8 columns, two registers each. `ldmatrix` loads four such
//! matrices at once, with the addresses of their 32 rows from the lanes.

use super::super::emit;
use super::super::pointer::INVALID;
use super::super::reg::{Binary, Reg};
use super::super::state::{Loc, State};
use super::product::Factor;
use super::swizzle::CHUNK;
use super::{A, B, K, Readable, SharedTile, Tile, TileRole};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{self, Dsts, Rounding, Space, Type};
use warpwright_ptx::op::matrix::{Ldmatrix, MatrixCount, MatrixElement, TileShape};

impl<'k, T: Factor, X: Readable> SharedTile<'k, T, X> {
    /// Loads the window, m × k, as the left factor of a product for the warp, with one `ldmatrix` of four matrices
    /// for every 16 rows by 32 bytes. `f32` are rounded to `tf32`, to nearest, ties away from zero.
    ///
    /// m is a multiple of 16, k of 32 bytes (`E0016` otherwise), and the window begins at a multiple of 16 bytes in
    /// its row (`E0019`). All lanes of the warp call it together after the tile was filled (`E0033` if the build sees
    /// that it was not).
    #[track_caller]
    pub fn load_a(self) -> Tile<'k, A, T> {
        let (k, rows, columns, loc) = (self.k, self.rows, self.columns, Location::caller());
        self.fragment(rows, columns, loc, |tile, regs| {
            let (row, bytes) = (k.lane_bits(0, 15), k.lane_bits(0, 16));
            for i in (0..rows).step_by(16) {
                for b in (0..columns * T::TYPE.bytes()).step_by(32) {
                    regs.extend(tile.matrices(4, false, (row + i, bytes + b), loc));
                }
            }
        })
    }

    /// Loads the window, k × n, as the right factor of a product. `ldmatrix` transposes halves, 16 columns at once;
    /// `f32` are read one by one. k is a multiple of 32 bytes, n of 8; otherwise it is like [`load_a`](Self::load_a).
    #[track_caller]
    pub fn load_b(self) -> Tile<'k, B, T> {
        let (k, rows, columns, loc) = (self.k, self.rows, self.columns, Location::caller());
        self.fragment(rows, columns, loc, |tile, regs| {
            let inner = 32 / T::TYPE.bytes();
            for i in (0..rows).step_by(inner as usize) {
                if T::TYPE.bits() == 16 {
                    // Columns of 16 bits are gathered by the transposing load.
                    let (row, bytes) = (k.lane_bits(0, 15), k.lane_bits(0, 16));
                    for j in (0..columns).step_by(16) {
                        let matrices = if columns - j < 16 { 2 } else { 4 };
                        regs.extend(tile.matrices(matrices, true, (row + i, bytes + 2 * j), loc));
                    }
                } else {
                    let (g, t) = (k.lane_bits(2, 7), k.lane_bits(0, 3));
                    for j in (0..columns).step_by(8) {
                        for half in [0, inner / 2] {
                            regs.push(tile.place(t + (i + half), g + j, loc).cast::<u32>().ld(0).id);
                        }
                    }
                }
            }
        })
    }

    /// Loads the window, n × k, transposed, as the right factor of a product, as `Q·Kᵀ` needs K. n is a multiple of
    /// 8, k of 32 bytes; otherwise it is like [`load_a`](Self::load_a).
    #[track_caller]
    pub fn load_bt(self) -> Tile<'k, B, T> {
        let (k, n, columns, loc) = (self.k, self.rows, self.columns, Location::caller());
        self.fragment(columns, n, loc, |tile, regs| {
            let (low, high) = (k.lane_bits(0, 7), k.lane_bits(4, 1));
            let (row, bytes) = (low + high * 8, k.lane_bits(0, 8) * 2);
            for b in (0..columns * T::TYPE.bytes()).step_by(32) {
                for j in (0..n).step_by(16) {
                    let matrices = if n - j < 16 { 2 } else { 4 };
                    regs.extend(tile.matrices(matrices, false, (row + j, bytes + b), loc));
                }
            }
        })
    }

    /// A factor of that shape, from the registers that are loaded of the window.
    fn fragment<R: TileRole>(
        self,
        rows: u32,
        columns: u32,
        loc: Loc,
        load: impl FnOnce(Self, &mut Vec<ir::Reg>),
    ) -> Tile<'k, R, T> {
        self.check_chunks(loc);
        let tile = self.reads(false, loc);
        Tile::shaped(self.k, rows, columns, loc, |count| {
            let mut regs = Vec::with_capacity(count);
            load(tile, &mut regs);
            rounded::<T>(self.k, regs, loc)
        })
    }

    /// Matrices begin at whole chunks.
    fn check_chunks(self, loc: Loc) {
        let mut state = self.k.state();
        if state.alignment_of(self.column.id, T::TYPE.bytes()) < CHUNK {
            let message = format!(
                "the columns of a fragment begin at a multiple of {}, which is {CHUNK} bytes",
                CHUNK / T::TYPE.bytes()
            );
            state.mistake(Code::Alignment, loc, message);
        }
    }

    /// Two or four matrices, whose rows' places the lanes give.
    fn matrices(
        self,
        count: u32,
        transposed: bool,
        (row, bytes): (Reg<'k, u32>, Reg<'k, u32>),
        loc: Loc,
    ) -> Vec<ir::Reg> {
        let k = self.k;
        let start = self.column.binary(Binary::Mul, k.u32(T::TYPE.bytes()), loc);
        let place = (self.row.binary(Binary::Add, row, loc), start.binary(Binary::Add, bytes, loc));
        let pointer = k.swizzled(self.base.id, self.layout, place, loc);
        let mut state = k.state();
        if pointer == INVALID {
            return vec![super::super::state::POISON; count as usize];
        }
        let regs: Vec<_> = (0..count).map(|_| state.written(Type::U32)).collect();
        let p = state.address_of(pointer);
        let op = Ldmatrix {
            shape: TileShape::M8N8,
            num: if count == 4 { MatrixCount::X4 } else { MatrixCount::X2 },
            trans: transposed,
            space: Some(Space::Shared),
            element: MatrixElement::B16,
            source: None,
            r: Dsts::Many(regs.iter().copied().map(Some).collect()),
            p,
        };
        state.effect(op, None, loc);
        regs
    }
}

/// The registers as the product takes them: `f32` are rounded to `tf32`.
fn rounded<T: Factor>(k: K<'_>, regs: Vec<ir::Reg>, loc: Loc) -> Vec<ir::Reg> {
    if T::PRODUCT != Type::TF32 || k.target().sm < T::SINCE {
        return regs;
    }
    let mut state = k.state();
    regs.into_iter().map(|reg| to_tf32(&mut state, reg, loc)).collect()
}

/// To nearest, ties away from zero: the rounding that every target has.
fn to_tf32(state: &mut State, reg: ir::Reg, loc: Loc) -> ir::Reg {
    if !state.usable(reg, loc) {
        return reg;
    }
    state.pure(Type::U32, loc, |d| emit::cvt(Some(Rounding::Rna), Type::TF32, Type::F32, d, reg.into()))
}
