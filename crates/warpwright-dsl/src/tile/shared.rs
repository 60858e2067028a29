//! Tiles in shared memory.

use super::super::Ptr;
use super::super::guard::both;
use super::super::handle::handle;
use super::super::pointer::INVALID;
use super::super::reg::{Binary, IntoReg, Reg};
use super::super::state::Loc;
use super::super::types::*;
use super::sealed::Sealed;
use super::swizzle::{CHUNK, Layout};
use super::{Half, K, Matrix};
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::Imm;

/// The operations that a shared tile allows.
pub trait TileAccess: Copy + Sealed + 'static {}
/// The block may fill the tile.
pub trait Fillable: TileAccess {}
/// The block may read the tile.
pub trait Readable: TileAccess {}

/// Can be filled and read; the kernel orders both with [`K::sync`].
#[derive(Clone, Copy, Debug)]
pub struct Open;
/// A pipeline's stage whose copies begin: it can be filled but not read.
#[derive(Clone, Copy, Debug)]
pub struct Filling;
/// A pipeline's stage whose copies are complete: it can be read, and not filled until its next turn.
#[derive(Clone, Copy, Debug)]
pub struct Ready;

macro_rules! accesses {
    ($($access:ident: $($also:ident)*;)*) => {
        $(impl Sealed for $access {}
        impl TileAccess for $access {}
        $(impl $also for $access {})*)*
    };
}

accesses! {
    Open: Fillable Readable;
    Filling: Fillable;
    Ready: Readable;
}

/// A matrix in the block's shared memory, or a window of one: a handle, free to copy.
///
/// Rows and columns count elements of the matrix. In memory it is row-major and not padded, but the 16-byte chunks of
/// a row are permuted: chunk `c` of row `r` lies at chunk `c ^ f(r)`, where `f` differs in neighbouring rows. So the
/// eight rows of a matrix of a fragment use each of the 32 banks once, and so do neighbouring chunks of a row. No
/// kernel depends on the position of an element.
///
/// Other threads see a thread's stores after [`K::sync`]. `X` is the set of operations that are allowed: a tile of
/// [`K::shared_tile`] is [`Open`]; a stage of a [`Pipeline`](super::Pipeline) is [`Filling`], then [`Ready`], so that
/// incomplete data cannot be read:
///
/// ```compile_fail,E0599
/// use warpwright_dsl::*;
/// fn wrong<'k>(tile: StagedTile<'k, F16>, stage: Stage<'k, Filling>) -> Tile<'k, A, F16> {
///     tile.at(stage).load_a()
/// }
/// ```
///
/// and data that others are reading cannot be overwritten:
///
/// ```compile_fail,E0599
/// use warpwright_dsl::*;
/// fn wrong<'k>(tile: StagedTile<'k, F16>, stage: Stage<'k, Ready>, next: Matrix<'k, F16>) {
///     tile.at(stage).load(next, 0, 0)
/// }
/// ```
pub struct SharedTile<'k, T, X = Open> {
    pub(super) k: K<'k>,
    /// Which it is: the pointer to its beginning, or to that of its first stage.
    pub(super) tile: u32,
    /// The whole matrix, as bytes.
    pub(super) base: Ptr<'k, Shared, u8>,
    pub(super) layout: Layout,
    /// Where the window begins.
    pub(super) row: Reg<'k, u32>,
    pub(super) column: Reg<'k, u32>,
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// The turn of a pipeline in which it is a stage's; the pipeline waits for its copies.
    pub(super) turn: Option<u32>,
    pub(super) kind: PhantomData<(T, X)>,
}

handle!(SharedTile<T, X>);

impl<T: Data, X> std::fmt::Debug for SharedTile<'_, T, X> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedTile({}x{} {})", self.rows, self.columns, T::TYPE.name())
    }
}

impl<'k> K<'k> {
    /// A matrix of `rows × columns` that the block shares, with undefined contents. The bytes of a row must be a
    /// multiple of 16, and the matrix must take at most 16 MiB and fit into a block's limit; otherwise it is a
    /// mistake (`E0025`). More than 48 KiB of shared memory in total becomes dynamic.
    #[track_caller]
    pub fn shared_tile<T: Data>(self, rows: u32, columns: u32) -> SharedTile<'k, T> {
        self.shared_tiles(1, rows, columns, Location::caller())
    }

    /// Room for `count` matrices, one after the other; the first of them.
    pub(super) fn shared_tiles<T: Data>(
        self,
        count: u32,
        rows: u32,
        columns: u32,
        loc: Loc,
    ) -> SharedTile<'k, T> {
        let row_bytes = u64::from(columns) * u64::from(T::TYPE.bytes());
        let bytes = u64::from(count) * u64::from(rows) * row_bytes;
        let chunk = u64::from(CHUNK);
        let base = if row_bytes == 0 || row_bytes % chunk != 0 || rows == 0 || bytes > 1 << 24 {
            let message = format!(
                "a shared tile of {rows}x{columns} {}: its rows are whole multiples of {CHUNK} bytes, \
                 and it fits into shared memory",
                T::TYPE.name()
            );
            self.state().mistake(Code::SharedMemory, loc, message);
            Ptr::with_id(self, INVALID)
        } else {
            self.shared_at::<u8>(bytes as u32, loc)
        };
        SharedTile {
            k: self,
            tile: base.id,
            base,
            layout: Layout::new((row_bytes as u32).max(CHUNK), T::TYPE.bytes()),
            row: self.u32(0),
            column: self.u32(0),
            rows,
            columns,
            turn: None,
            kind: PhantomData,
        }
    }
}

impl<'k, T: Data, X: TileAccess> SharedTile<'k, T, X> {
    /// `count` rows from `start` on. If `start` is a register, nothing checks that the rows exist. If it is a host
    /// number, rows that do not exist are a mistake (`E0025`).
    #[track_caller]
    pub fn rows(self, start: impl IntoReg<'k, u32>, count: u32) -> Self {
        let loc = Location::caller();
        let start = start.into_reg(self.k, loc);
        self.check_window("rows", start, count, self.rows, loc);
        SharedTile { row: self.row.binary(Binary::Add, start, loc), rows: count, ..self }
    }

    /// `count` columns from `start` on: see [`rows`](Self::rows).
    #[track_caller]
    pub fn columns(self, start: impl IntoReg<'k, u32>, count: u32) -> Self {
        let loc = Location::caller();
        let start = start.into_reg(self.k, loc);
        self.check_window("columns", start, count, self.columns, loc);
        let column = self.column.binary(Binary::Add, start, loc);
        SharedTile { column, columns: count, ..self }
    }

    fn check_window(self, what: &str, start: Reg<'k, u32>, count: u32, of: u32, loc: Loc) {
        let first = self.k.state().int_of(start.id).unwrap_or(0);
        if first < 0 || first + i64::from(count) > i64::from(of) {
            let message = format!("{count} {what} from {first} on, of a shared tile that has {of}");
            self.k.state().mistake(Code::SharedMemory, loc, message);
        }
    }

    /// The pointer to an element, whose 16 bytes lie together.
    pub(super) fn place(self, row: Reg<'k, u32>, column: Reg<'k, u32>, loc: Loc) -> Ptr<'k, Shared, T> {
        let row = self.row.binary(Binary::Add, row, loc);
        let column = self.column.binary(Binary::Add, column, loc);
        let bytes = column.binary(Binary::Mul, self.k.u32(T::TYPE.bytes()), loc);
        Ptr::with_id(self.k, self.k.swizzled(self.base.id, self.layout, (row, bytes), loc))
    }

    /// Stores an element.
    #[track_caller]
    pub fn st(self, row: impl IntoReg<'k, u32>, column: impl IntoReg<'k, u32>, value: impl IntoReg<'k, T>) {
        let loc = Location::caller();
        let value = value.into_reg(self.k, loc);
        self.st_vec(row, column, [value]);
    }

    /// Stores elements of a row from a column on, a multiple of `N`: at most 16 bytes.
    #[track_caller]
    pub fn st_vec<const N: usize>(
        self,
        row: impl IntoReg<'k, u32>,
        column: impl IntoReg<'k, u32>,
        values: [Reg<'k, T>; N],
    ) {
        let loc = Location::caller();
        let (row, column) = (row.into_reg(self.k, loc), column.into_reg(self.k, loc));
        self.stores(loc).vector(row, column, N, loc).st_vec(0, values);
    }

    /// Stores the bits of elements of a row, two halves per word, from a column on that is a multiple of their
    /// number: at most 16 bytes.
    #[track_caller]
    pub fn st_words<const N: usize>(
        self,
        row: impl IntoReg<'k, u32>,
        column: impl IntoReg<'k, u32>,
        words: [Reg<'k, u32>; N],
    ) {
        let loc = Location::caller();
        let (row, column) = (row.into_reg(self.k, loc), column.into_reg(self.k, loc));
        let count = N * 4 / T::TYPE.bytes() as usize;
        self.stores(loc).vector(row, column, count, loc).cast::<u32>().st_vec(0, words);
    }

    /// The pointer to `count` elements that lie together.
    fn vector(self, row: Reg<'k, u32>, column: Reg<'k, u32>, count: usize, loc: Loc) -> Ptr<'k, Shared, T> {
        self.check_window("rows", row, 1, self.rows, loc);
        self.check_window("columns", column, count as u32, self.columns, loc);
        let sum = self.column.binary(Binary::Add, column, loc);
        let mut state = self.k.state();
        let form = state.form_of(sum.id);
        let count = count as i64;
        let regular = state.forms.terms(form).iter().all(|term| term.coefficient % count == 0);
        let constant = state.forms.constant(form);
        if regular && constant % count != 0 {
            let message = format!("{count} elements from column {constant} on: not aligned");
            state.mistake(Code::Alignment, loc, message);
            return Ptr::with_id(self.k, INVALID);
        }
        drop(state);
        self.place(row, column, loc)
    }
}

impl<'k, T: Data, X: Readable> SharedTile<'k, T, X> {
    /// An element.
    #[track_caller]
    pub fn ld(self, row: impl IntoReg<'k, u32>, column: impl IntoReg<'k, u32>) -> Reg<'k, T> {
        let [value] = self.ld_vec(row, column);
        value
    }

    /// `N` elements of a row from a column on, a multiple of `N`: at most 16 bytes.
    #[track_caller]
    pub fn ld_vec<const N: usize>(
        self,
        row: impl IntoReg<'k, u32>,
        column: impl IntoReg<'k, u32>,
    ) -> [Reg<'k, T>; N] {
        let loc = Location::caller();
        let (row, column) = (row.into_reg(self.k, loc), column.into_reg(self.k, loc));
        self.reads(true, loc).vector(row, column, N, loc).ld_vec(0)
    }
}

impl<'k, T: Data, X: Fillable> SharedTile<'k, T, X> {
    /// Copies a window from global memory: the tile's shape, from `row` and `column` of the matrix on, with zeros
    /// outside the matrix. The whole block copies, 16 bytes per thread if the matrix allows it (see
    /// [`Matrix::aligned`]).
    ///
    /// The window may begin before the matrix, as for a stencil with a rim. Write the position as a difference such
    /// as `k.ctaid() * 16 - 1`, or convert it from an `i32`. A `u32` that wrapped in another way is not a position
    /// before the matrix.
    ///
    /// The data is complete after [`K::sync`]; for a tile of a pipeline, when its stage is computed. The launch rule
    /// must fix the block (`E0013`). Filling twice without a wait, or filling while other warps read, is a mistake
    /// (`E0033`).
    #[track_caller]
    pub fn load(self, from: Matrix<'k, T>, row: impl IntoReg<'k, u32>, column: impl IntoReg<'k, u32>) {
        let loc = Location::caller();
        let k = self.k;
        let (row, column) = (row.into_reg(k, loc), column.into_reg(k, loc));
        let Some(threads) = self.loading_threads(loc) else { return };
        let tile = self.fills(loc);
        k.on_line(loc, || tile.load_by(threads, from, row, column, loc));
    }

    /// The bytes that the beginning of the window is a multiple of in its row.
    fn window_alignment(self) -> u32 {
        self.k.state().alignment_of(self.column.id, T::TYPE.bytes())
    }

    /// The threads of the block; a mistake where they are not known.
    fn loading_threads(self, loc: Loc) -> Option<u32> {
        let dims = self.k.block_dims();
        if dims.is_none() {
            let message = "a load by the block needs a launch rule that fixes the block";
            self.k.state().mistake(Code::ModifierCombination, loc, message);
        }
        dims.map(|dims| dims.iter().product::<u32>().max(1))
    }

    fn load_by(self, threads: u32, from: Matrix<'k, T>, row: Reg<'k, u32>, column: Reg<'k, u32>, loc: Loc) {
        let unit = from.alignment(column, CHUNK).min(self.window_alignment());
        self.each_unit(threads, unit / T::TYPE.bytes(), |(r, further), c, mine| {
            let to = self.place(r + further, c, loc);
            let (from, inside) = from.place_further((row + r, further), column + c);
            self.copy_unit(to, from, unit, mine, inside);
        });
    }

    /// [`load`](Self::load) from a matrix of `f32` through registers, rounding its elements to `T`; four elements per
    /// access if the matrix allows it. Values beyond half precision become its largest number.
    #[track_caller]
    pub fn load_rounded(
        self,
        from: Matrix<'k, f32>,
        row: impl IntoReg<'k, u32>,
        column: impl IntoReg<'k, u32>,
    ) where
        T: Half,
    {
        let loc = Location::caller();
        let k = self.k;
        let (row, column) = (row.into_reg(k, loc), column.into_reg(k, loc));
        let Some(threads) = self.loading_threads(loc) else { return };
        let tile = self.fills(loc);
        k.on_line(loc, || {
            let window = k.state().alignment_of(self.column.id, 1);
            let elements = (from.alignment(column, CHUNK) / 4).min(window);
            tile.each_unit(threads, elements, |(r, further), c, mine| {
                let to = tile.place(r + further, c, loc);
                let (from, inside) = from.place_further((row + r, further), column + c);
                match elements {
                    4 => round_words::<T, 4, 2>(to, from, mine, inside),
                    2 => round_words::<T, 2, 1>(to, from, mine, inside),
                    _ => round_word(to, from, mine, inside),
                }
            });
        });
    }

    /// Copies `unit` bytes where `mine` holds, zeros unless `inside` holds.
    fn copy_unit(
        self,
        to: Ptr<'k, Shared, T>,
        from: Ptr<'k, Global, T>,
        unit: u32,
        mine: Option<Reg<'k, Pred>>,
        inside: Option<Reg<'k, Pred>>,
    ) {
        let k = self.k;
        if self.turn.is_some() && unit >= 4 && k.target().sm >= 80 {
            return k.when(mine, || k.cp_async_if(inside, to, from, unit));
        }
        match unit {
            16 => copy_words::<u32, 4>(to, from, mine, inside),
            8 => copy_words::<u32, 2>(to, from, mine, inside),
            4 => copy_words::<u32, 1>(to, from, mine, inside),
            2 => copy_words::<u16, 1>(to, from, mine, inside),
            _ => copy_words::<u8, 1>(to, from, mine, inside),
        }
    }
}

/// The same through registers.
fn copy_words<'k, W: Data, const N: usize>(
    to: Ptr<'k, Shared, impl Data>,
    from: Ptr<'k, Global, impl Data>,
    mine: Option<Reg<'k, Pred>>,
    inside: Option<Reg<'k, Pred>>,
) {
    let zero: Reg<'k, W> = from.k.constant(Imm::Int(0));
    let words: [Reg<'k, W>; N] = from.cast::<W>().ld_vec_if(both(mine, inside), 0, zero);
    to.cast::<W>().st_vec_if(mine, 0, words);
}

/// The same for `f32` that are rounded, in pairs.
fn round_words<'k, T: Half, const N: usize, const PAIRS: usize>(
    to: Ptr<'k, Shared, T>,
    from: Ptr<'k, Global, f32>,
    mine: Option<Reg<'k, Pred>>,
    inside: Option<Reg<'k, Pred>>,
) {
    let values: [Reg<'k, f32>; N] = from.ld_vec_if(both(mine, inside), 0, 0.0);
    let words: [_; PAIRS] = std::array::from_fn(|i| T::pack_finite(values[2 * i], values[2 * i + 1]));
    to.cast::<u32>().st_vec_if(mine, 0, words);
}

/// The same for one.
fn round_word<'k, T: Half>(
    to: Ptr<'k, Shared, T>,
    from: Ptr<'k, Global, f32>,
    mine: Option<Reg<'k, Pred>>,
    inside: Option<Reg<'k, Pred>>,
) {
    let value = from.ld_if(both(mine, inside), 0, 0.0);
    to.cast::<u16>().st_if(mine, 0, T::pack_finite(value, value).to::<u16>());
}
