//! Tiles: matrices that a warp multiplies on the tensor cores, and the shared memory they come from.
//!
//! ```text
//!             load                    load_a, load_b, load_bt             mma
//!  Matrix ─────────────► SharedTile ───────────────────────────► Tile ─────────► accumulators
//!  global      ▲         swizzled                                registers            │
//!              │                                                    ▲      as_a       │
//!          Pipeline: copies run ahead                               └─────────────────┤
//!                                                         Matrix ◄────────────────────┘ store
//! ```
//!
//! The Rust type of a [`Tile`] includes its role, its element type and its scope; its shape is a host number, known
//! when the kernel is built. If shapes do not fit, the mistake names both tiles. The layout of a [`SharedTile`]
//! avoids bank conflicts for both rows and columns of its matrices.
//!
//! This module chooses the swizzle of shared tiles, the layout of fragments over lanes, and the instructions; a
//! kernel specifies rows and columns. You can also load rows as factors straight from global memory
//! ([`Matrix::fragments`]), and use accumulators as the next factors in place, in one term or several ([`Terms`]).

macro_rules! operators {
    ($ty:ty: $operand:ident) => {
        operators!($ty: $operand, Add add, Sub sub, Mul mul, Div div);
    };
    ($ty:ty: $operand:ident, $($trait:ident $method:ident),*) => {
        $(impl<'k, X: $operand<'k>> std::ops::$trait<X> for $ty {
            type Output = Self;
            #[track_caller]
            fn $method(self, other: X) -> Self {
                self.combine(Binary::$trait, other, Location::caller())
            }
        })*
    };
}

mod across;
mod columns;
mod direct;
mod element;
mod fragment;
mod lanes;
mod matrix;
mod order;
mod pipeline;
mod product;
mod rows;
mod shared;
mod source;
mod swizzle;
mod terms;
mod units;

pub use across::KeptTile;
pub use columns::{Columns, PerColumn};
pub use direct::{Direct, DirectRole, Fragments};
pub use element::Operand;
pub use matrix::Matrix;
pub(super) use order::Order;
pub use pipeline::{Pipeline, Stage, StagedTile};
pub use product::{Factor, Half};
pub use rows::{RowOperand, Rows};
pub use shared::{Fillable, Filling, Open, Readable, Ready, SharedTile, TileAccess};
pub use source::TileSource;
pub(super) use swizzle::AddressTerm;
pub use terms::Terms;

use super::K;
use super::carry::Carry;
use super::handle::handle;
use super::reg::Reg;
use super::state::{BlockId, Loc, POISON};
use super::types::*;
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir;

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// The role of a tile in a product `A·B + accumulators`.
pub trait TileRole: Copy + Sealed + 'static {
    /// Its name in messages.
    #[doc(hidden)]
    const NAME: &'static str;
    /// The numbers that its rows and columns are multiples of; `inner` is the inner dimension of one instruction.
    #[doc(hidden)]
    fn granule(inner: u32) -> (u32, u32);
}

/// The left factor: m × k, m a multiple of 16 and k of 32 bytes (16 halves, 8 `f32`).
#[derive(Clone, Copy, Debug)]
pub struct A;
/// The right factor: k × n, k a multiple of 32 bytes (16 halves, 8 `f32`) and n of 8.
#[derive(Clone, Copy, Debug)]
pub struct B;
/// The accumulators: m × n, both multiples of 8, and m of 16 where a product is added.
#[derive(Clone, Copy, Debug)]
pub struct Acc;

macro_rules! roles {
    ($($role:ident $name:literal |$inner:ident| $granule:expr;)*) => {
        $(impl Sealed for $role {}
        impl TileRole for $role {
            const NAME: &'static str = $name;
            fn granule($inner: u32) -> (u32, u32) {
                $granule
            }
        })*
    };
}

roles! {
    A "A" |inner| (16, inner);
    B "B" |inner| (inner, 8);
    Acc "accumulator" |_inner| (8, 8);
}

/// The threads that hold a tile.
pub trait TileScope: Copy + Sealed + 'static {}

/// A warp: every lane holds a part, and all of them take part in every operation.
#[derive(Clone, Copy, Debug)]
pub struct Warp;
impl Sealed for Warp {}
impl TileScope for Warp {}

/// A matrix in the registers of a warp: a handle, free to copy, and state that a fold carries.
///
/// The role `R` is [`A`], [`B`] or [`Acc`]; accumulators are `f32`. Rows and columns count elements and are known
/// when the kernel is built. An impossible shape, or two shapes that do not match, is a mistake (`E0016`). A tile
/// takes `rows · columns · bytes / 128` registers of each lane.
///
/// Lane `4g + t`, with `g` from 0 to 7 and `t` from 0 to 3, holds
///
/// | of | registers | rows | columns |
/// | --- | --- | --- | --- |
/// | 8×8 accumulators | 0, 1 | g | 2t, 2t + 1 |
/// | 16 rows × 32 bytes of A | 0, 2 | g | bytes 4t, and 16 + 4t |
/// | | 1, 3 | g + 8 | bytes 4t, and 16 + 4t |
/// | 32 bytes × 8 columns of B | 0, 1 | bytes 4t, and 16 + 4t | g |
///
/// A larger tile consists of such blocks, by rows. All lanes of the warp take part in every operation, so use none of
/// them where the warp diverges. Kernels need not know the layout: see [`map_at`](Tile::map_at),
/// [`row_sum`](Tile::row_sum), [`as_a`](Tile::as_a).
///
/// ```
/// use warpwright_dsl::*;
/// use warpwright_ptx::ir::Arch;
///
/// // One warp: softmax(q · keysᵀ), 16 x 64, of half-precision q (16 x 32) and keys (64 x 32)
/// let built = build("scores", &LaunchRule::new(32), Arch::sm(80), |k| {
///     let (q, keys) = (k.ptr::<F16>("q").matrix(16, 32), k.ptr::<F16>("keys").matrix(64, 32));
///     let y = k.ptr_mut::<f32>("y").matrix(16, 64);
///     let (q_tile, keys_tile) = (k.shared_tile::<F16>(16, 32), k.shared_tile::<F16>(64, 32));
///     q_tile.load(q, 0, 0);
///     keys_tile.load(keys, 0, 0);
///     k.sync();
///     let scores = q_tile.load_a().mma(keys_tile.load_bt(), k.accumulators(16, 64));
///     let weights = ((scores - scores.row_max()) * std::f32::consts::LOG2_E).exp2();
///     (weights / weights.row_sum()).store(y, 0, 0);
/// })?;
/// # Ok::<(), warpwright_ptx::diag::Diagnostics>(())
/// ```
///
/// A factor cannot replace a factor of another role or type, and integers are not factors:
///
/// ```compile_fail,E0599
/// use warpwright_dsl::*;
/// fn wrong<'k>(b: Tile<'k, B, F16>, c: Tile<'k, Acc, f32>) -> Tile<'k, Acc, f32> {
///     b.mma(b, c)
/// }
/// ```
///
/// ```compile_fail,E0308
/// use warpwright_dsl::*;
/// fn wrong<'k>(a: Tile<'k, A, F16>, b: Tile<'k, B, Bf16>, c: Tile<'k, Acc, f32>) -> Tile<'k, Acc, f32> {
///     a.mma(b, c)
/// }
/// ```
///
/// ```compile_fail,E0599
/// use warpwright_dsl::*;
/// fn wrong(tile: SharedTile<'_, u32>) {
///     tile.load_a();
/// }
/// ```
pub struct Tile<'k, R, T, S = Warp> {
    k: K<'k>,
    /// The first of its registers among [`State::fragments`](super::state::State::fragments).
    first: u32,
    rows: u32,
    columns: u32,
    kind: PhantomData<(R, T, S)>,
}

handle!(Tile<R, T, S>);

impl<R: TileRole, T: Data, S: TileScope> std::fmt::Debug for Tile<'_, R, T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tile({})", self.describe())
    }
}

/// Marks the tile of a mistake: it has no registers, and neither has anything computed from it.
const POISONED: u32 = u32::MAX;

/// Registers that a lane has.
const LANE_REGISTERS: u64 = 255;

impl<'k, R: TileRole, T: Data, S: TileScope> Tile<'k, R, T, S> {
    /// Number of rows.
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// Number of columns.
    pub fn columns(self) -> u32 {
        self.columns
    }

    /// The tile for a message.
    fn describe(self) -> String {
        format!("the {} tile of {}x{} {}", R::NAME, self.rows, self.columns, T::TYPE.name())
    }

    fn poison(k: K<'k>, rows: u32, columns: u32) -> Self {
        Tile { k, first: POISONED, rows, columns, kind: PhantomData }
    }

    /// The tile of that shape, if there can be one: a mistake otherwise.
    fn shaped(k: K<'k>, rows: u32, columns: u32, loc: Loc, fill: impl FnOnce(usize) -> Vec<ir::Reg>) -> Self {
        let poison = Self::poison(k, rows, columns);
        let (down, across) = R::granule(32 / T::TYPE.bytes().max(1));
        let registers = u64::from(rows) * u64::from(columns) * u64::from(T::TYPE.bytes()) / 128;
        let whole = |extent: u32, granule: u32| extent > 0 && extent.is_multiple_of(granule);
        let wrong = if !whole(rows, down) || !whole(columns, across) {
            Some(format!("{} cannot be: its sides are multiples of {down} and {across}", poison.describe()))
        } else if registers > LANE_REGISTERS {
            Some(format!(
                "{} takes {registers} registers of each lane; there are {LANE_REGISTERS}",
                poison.describe()
            ))
        } else {
            None
        };
        match wrong {
            Some(message) => {
                k.state().mistake(Code::VectorShape, loc, message);
                poison
            }
            None => {
                let regs = k.on_line(loc, || fill(registers as usize));
                Self::from_registers(k, rows, columns, &regs)
            }
        }
    }

    fn from_registers(k: K<'k>, rows: u32, columns: u32, regs: &[ir::Reg]) -> Self {
        let mut state = k.state();
        let first = state.fragments.len() as u32;
        state.fragments.extend_from_slice(regs);
        drop(state);
        Tile { k, first, rows, columns, kind: PhantomData }
    }

    /// `count` rows from `start` on, in their existing registers. Both are whole blocks of the role (8 rows of
    /// accumulators, 16 of A, 32 bytes of the inner dimension of B); otherwise it is a mistake (`E0016`).
    #[track_caller]
    pub fn row_block(self, start: u32, count: u32) -> Self {
        let (k, loc) = (self.k, Location::caller());
        let (down, _) = R::granule(32 / T::TYPE.bytes().max(1));
        let whole = start.is_multiple_of(down) && count.is_multiple_of(down) && count > 0;
        if !whole || u64::from(start) + u64::from(count) > self.rows.into() {
            let message =
                format!("{count} rows from {start} on of {}: its blocks are {down} rows", self.describe());
            k.state().mistake(Code::VectorShape, loc, message);
            return Self::poison(k, count, self.columns);
        }
        let Some(regs) = self.usable(loc) else { return Self::poison(k, count, self.columns) };
        let of_row = |row: u32| regs.len() * row as usize / self.rows as usize;
        Self::from_registers(k, count, self.columns, &regs[of_row(start)..of_row(start + count)])
    }

    /// The tile stacked on top of another of the same width (`E0016` otherwise), in their existing registers.
    #[track_caller]
    pub fn over(self, below: Self) -> Self {
        let (k, rows, loc) = (self.k, self.rows + below.rows, Location::caller());
        if self.columns != below.columns {
            let message = format!("{} does not lie over {}", self.describe(), below.describe());
            k.state().mistake(Code::VectorShape, loc, message);
            return Self::poison(k, rows, self.columns);
        }
        match (self.usable(loc), below.usable(loc)) {
            (Some(upper), Some(lower)) => {
                Self::from_registers(k, rows, self.columns, &[upper, lower].concat())
            }
            _ => Self::poison(k, rows, self.columns),
        }
    }

    fn register_count(self) -> usize {
        (u64::from(self.rows) * u64::from(self.columns) * u64::from(T::TYPE.bytes()) / 128) as usize
    }

    /// The registers of a lane, in the order of the role; `None` for the tile of a mistake.
    fn registers(self) -> Option<Vec<ir::Reg>> {
        if self.first == POISONED {
            return None;
        }
        let first = self.first as usize;
        Some(self.k.state().fragments[first..first + self.register_count()].to_vec())
    }

    /// The registers, all of which may be used here.
    fn usable(self, loc: Loc) -> Option<Vec<ir::Reg>> {
        let regs = self.registers()?;
        let mut state = self.k.state();
        regs.iter().all(|&reg| state.usable(reg, loc)).then_some(regs)
    }
}

impl<'k, R: TileRole, T: Data, S: TileScope> Carry<'k> for Tile<'k, R, T, S> {
    fn each(&self, see: &mut dyn FnMut(ir::Reg)) {
        match self.registers() {
            Some(regs) => regs.into_iter().for_each(see),
            None => see(POISON),
        }
    }

    fn rebuild(&self, k: K<'k>, next: &mut dyn FnMut() -> ir::Reg) -> Self {
        let count = self.registers().map_or(1, |regs| regs.len());
        let regs: Vec<_> = (0..count).map(|_| next()).collect();
        if self.first == POISONED || regs.contains(&POISON) {
            return Self::poison(k, self.rows, self.columns);
        }
        Self::from_registers(k, self.rows, self.columns, &regs)
    }

    fn poison(k: K<'k>) -> Self {
        Self::poison(k, 0, 0)
    }

    fn shape(&self, see: &mut dyn FnMut(u32, u32)) {
        see(self.rows, self.columns);
    }
}

impl<'k> K<'k> {
    /// Accumulators that are zero. Rows and columns are multiples of 8 (rows of 16 where products are added), and all
    /// of them fit into 255 registers of each lane; otherwise it is a mistake (`E0016`).
    #[track_caller]
    pub fn accumulators(self, rows: u32, columns: u32) -> Tile<'k, Acc, f32> {
        let zero = self.f32(0.0).id;
        Tile::shaped(self, rows, columns, Location::caller(), |count| vec![zero; count])
    }

    /// Runs the closure; its instructions and mistakes are attributed to the line.
    pub(crate) fn on_line<V>(self, loc: Loc, build: impl FnOnce() -> V) -> V {
        let mut state = self.state();
        let before = state.line;
        state.line = before.or(Some(loc));
        drop(state);
        let value = build();
        self.state().line = before;
        value
    }

    /// Runs the closure with its instructions going to an open block.
    pub(crate) fn within<V>(self, block: BlockId, build: impl FnOnce() -> V) -> V {
        let current = std::mem::replace(&mut self.state().current, block);
        let value = build();
        self.state().current = current;
        value
    }

    /// What [`AddressTerm`] says, computed once in `block`.
    fn part(self, part: AddressTerm, block: BlockId, build: impl FnOnce() -> Reg<'k, u32>) -> Reg<'k, u32> {
        let known = {
            let state = self.state();
            let open = |reg: ir::Reg| state.block(state.value(reg).block).open;
            state.shared_parts.iter().find(|(known, reg)| *known == part && open(*reg)).map(|known| known.1)
        };
        if let Some(known) = known {
            return Reg::new(self, known);
        }
        let reg = self.within(block, build);
        if reg.id != POISON {
            self.state().shared_parts.push((part, reg.id));
        }
        reg
    }
}
