//! Products of tiles, with the instruction of the target.

use super::super::reg::Reg;
use super::super::state::{Loc, State};
use super::super::types::*;
use super::sealed::Sealed;
use super::{A, Acc, B, K, Tile};
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{self, Dsts, Layout, Src, Srcs, Type};
use warpwright_ptx::op::matrix::{Mma, MmaShape};

/// Elements that tensor cores multiply. `f32` is rounded to `tf32` (10 bits of fraction) when a tile is
/// loaded.
pub trait Factor: Data + Sealed {
    /// The type that is multiplied.
    #[doc(hidden)]
    const PRODUCT: Type;
    /// The first target that supports it, as `sm_N`.
    const SINCE: u16;
}

macro_rules! factors {
    ($($ty:ident = $product:ident since $sm:literal;)*) => {
        $(impl Sealed for $ty {}
        impl Factor for $ty {
            const PRODUCT: Type = Type::$product;
            const SINCE: u16 = $sm;
        })*
    };
}

factors! {
    F16 = F16 since 75;
    Bf16 = BF16 since 80;
    f32 = TF32 since 80;
}

/// Factors of 16 bits: accumulators can be rounded to them in place.
pub trait Half: Factor {
    #[doc(hidden)]
    fn pack<'k>(low: Reg<'k, f32>, high: Reg<'k, f32>) -> ir::Reg;
    /// Packs two into a word; values that are too large become the largest number.
    #[doc(hidden)]
    fn pack_finite<'k>(low: Reg<'k, f32>, high: Reg<'k, f32>) -> Reg<'k, u32>;
    /// Unpacks both numbers of a word, the low one first.
    #[doc(hidden)]
    fn unpack(word: Reg<'_, u32>) -> [Reg<'_, f32>; 2];
    #[doc(hidden)]
    fn bits(value: f32) -> u16;
}

macro_rules! halves {
    ($($half:ident, $pair:ident: $pack:ident $pack_finite:ident $bits:ident;)*) => {
        $(impl Half for $half {
            fn pack<'k>(low: Reg<'k, f32>, high: Reg<'k, f32>) -> ir::Reg {
                low.$pack(high).id
            }

            fn pack_finite<'k>(low: Reg<'k, f32>, high: Reg<'k, f32>) -> Reg<'k, u32> {
                low.$pack_finite(high).bits()
            }

            fn unpack(word: Reg<'_, u32>) -> [Reg<'_, f32>; 2] {
                word.bits::<$pair>().f32x2()
            }

            fn bits(value: f32) -> u16 {
                $bits(value)
            }
        })*
    };
}

halves! {
    F16, F16x2: pack_f16 pack_f16_saturating f16_bits;
    Bf16, Bf16x2: pack_bf16 pack_bf16 bf16_bits;
}

impl<'k, T: Factor> Tile<'k, A, T> {
    /// `self · b + acc`, on the tensor cores.
    ///
    /// Needs `sm_75` for `F16`, `sm_80` for `Bf16` and `f32`.
    #[track_caller]
    pub fn mma(self, b: Tile<'k, B, T>, acc: Tile<'k, Acc, f32>) -> Tile<'k, Acc, f32> {
        let (k, loc) = (self.k, Location::caller());
        let poison = Tile::poison(k, acc.rows, acc.columns);
        if !self.fits(b, acc, loc) {
            return poison;
        }
        let (Some(a), Some(b_regs), Some(mut sums)) = (self.usable(loc), b.usable(loc), acc.usable(loc))
        else {
            return poison;
        };
        let (rows, columns) = ((self.rows / 16) as usize, (b.columns / 8) as usize);
        let steps = a.len() / (4 * rows);
        let mut state = k.state();
        for step in 0..steps {
            for j in 0..columns {
                let b = &b_regs[2 * (step * columns + j)..][..2];
                for i in 0..rows {
                    let a = &a[4 * (i * steps + step)..][..4];
                    // Rows 0 to 7 of the block, and 8 to 15.
                    let [upper, lower] = [0, 1].map(|half| 2 * ((2 * i + half) * columns + j));
                    let mut block = [sums[upper], sums[upper + 1], sums[lower], sums[lower + 1]];
                    multiply::<T>(&mut state, a, b, &mut block, loc);
                    sums[upper..][..2].copy_from_slice(&block[..2]);
                    sums[lower..][..2].copy_from_slice(&block[2..]);
                }
            }
        }
        drop(state);
        Tile::from_registers(k, acc.rows, acc.columns, &sums)
    }

    /// The columns from `start` on that one instruction takes, 32 bytes of every row, as a factor of that part of the
    /// inner dimension. Use it to add up a product step by step.
    #[track_caller]
    pub fn k_step(self, start: u32) -> Self {
        self.k_steps(start, 32 / T::TYPE.bytes())
    }

    /// `count` columns from `start` on: several [steps](Self::k_step).
    #[track_caller]
    pub fn k_steps(self, start: u32, count: u32) -> Self {
        let (k, loc) = (self.k, Location::caller());
        let width = 32 / T::TYPE.bytes();
        let whole = start.is_multiple_of(width) && count.is_multiple_of(width) && count > 0;
        if !whole || u64::from(start) + u64::from(count) > self.columns.into() {
            let message = format!(
                "{count} columns from {start} on of {}: its steps are {width} columns",
                self.describe()
            );
            k.state().mistake(Code::VectorShape, loc, message);
            return Tile::poison(k, self.rows, count);
        }
        let Some(regs) = self.usable(loc) else { return Tile::poison(k, self.rows, count) };
        let [all, step, steps] = [self.columns, start, count].map(|columns| 4 * (columns / width) as usize);
        let regs: Vec<_> = regs.chunks_exact(all).flat_map(|row| &row[step..][..steps]).copied().collect();
        Tile::from_registers(k, self.rows, count, &regs)
    }

    /// Whether the target multiplies the type and the shapes go together; a mistake otherwise.
    fn fits(self, b: Tile<'k, B, T>, acc: Tile<'k, Acc, f32>, loc: Loc) -> bool {
        let target = self.k.target();
        let mut state = self.k.state();
        if target.sm < T::SINCE {
            let (ty, sm) = (T::PRODUCT.name(), T::SINCE);
            let message = format!("products of {ty} need sm_{sm} or later; the target is {target}");
            state.mistake(Code::NeedsTarget, loc, message);
            return false;
        }
        let (one, other, rule) = if self.columns != b.rows {
            (self.describe(), b.describe(), "the columns of the first are the rows of the second")
        } else if self.rows != acc.rows {
            (self.describe(), acc.describe(), "they have the same rows")
        } else if b.columns != acc.columns {
            (b.describe(), acc.describe(), "they have the same columns")
        } else {
            return true;
        };
        state.mistake(Code::VectorShape, loc, format!("{one} does not go with {other}: {rule}"));
        false
    }
}

/// `sums += a · b` for a block of 16 rows, 32 bytes along k and 8 columns.
fn multiply<T: Factor>(state: &mut State, a: &[ir::Reg], b: &[ir::Reg], sums: &mut [ir::Reg], loc: Loc) {
    // Where an instruction takes half the block, the halves follow one another.
    let (shape, instructions) = match (T::PRODUCT, state.target.sm) {
        (Type::TF32, _) => (MmaShape::M16N8K8, 1),
        (_, ..80) => (MmaShape::M16N8K8, 2),
        _ => (MmaShape::M16N8K16, 1),
    };
    let sources = |regs: &[ir::Reg]| Srcs::Many(regs.iter().map(|&reg| Src::Reg(reg)).collect());
    for part in 0..instructions {
        let (a_count, b_count) = (4 / instructions, 2 / instructions);
        let (a, b) = (sources(&a[part * a_count..][..a_count]), sources(&b[part * b_count..][..b_count]));
        let c = Srcs::Many(sums.iter().map(|&sum| state.operand(sum, loc)).collect());
        let next = state.pure_many::<4>(Type::F32, loc, |d| {
            Mma {
                shape,
                a_layout: Layout::Row,
                b_layout: Layout::Col,
                kind: None,
                block_scale: false,
                scale_vec: None,
                satfinite: false,
                d_type: Type::F32,
                a_type: T::PRODUCT,
                b_type: T::PRODUCT,
                c_type: Type::F32,
                scale_type: None,
                rounding: None,
                bit_op: None,
                popc: false,
                d: Dsts::Many(d.iter().copied().map(Some).collect()),
                a,
                b,
                c,
                scale_a: None,
                selector_a: None,
                scale_b: None,
                selector_b: None,
            }
            .into()
        });
        sums.copy_from_slice(&next);
    }
}

/// Words of 8×8 halves, by rows, as those of A: four such blocks are one of 16×16.
pub(super) fn blocks_of_a<W: Copy>(words: &[W], columns: u32) -> Vec<W> {
    let across = (columns / 8) as usize;
    let pairs = |rows: &[W]| {
        let (upper, lower) = rows.split_at(across);
        let pairs = upper.chunks_exact(2).zip(lower.chunks_exact(2));
        pairs.flat_map(|(upper, lower)| [upper[0], lower[0], upper[1], lower[1]]).collect::<Vec<_>>()
    };
    words.chunks_exact(2 * across).flat_map(pairs).collect()
}

/// The same, transposed, as those of B: two such blocks side by side are one of 16 rows and 8 columns.
pub(super) fn blocks_of_bt<W: Copy>(words: &[W], columns: u32) -> Vec<W> {
    let across = (columns / 8) as usize;
    let step = |at| words.chunks_exact(across).flat_map(move |row| [row[at], row[at + 1]]);
    (0..across).step_by(2).flat_map(step).collect()
}

impl<'k> K<'k> {
    /// The right factor, k × n, whose elements are all `value`, rounded to `T`. It takes one register. A product with
    /// ones sums rows with the arithmetic of the tensor cores.
    #[track_caller]
    pub fn factor_b<T: Half>(self, rows: u32, columns: u32, value: f32) -> Tile<'k, B, T> {
        let loc = Location::caller();
        Tile::shaped(self, rows, columns, loc, |count| {
            let mut state = self.state();
            let bits = i64::from(T::bits(value)) * 0x1_0001;
            let pair = state.constant(Type::U32, ir::Imm::Int(bits));
            vec![state.register(pair, loc); count]
        })
    }
}

impl<'k> Tile<'k, Acc, f32> {
    /// The accumulators, rounded, as the left factor of the next product, without exchange between lanes. Columns are
    /// a multiple of 16.
    #[track_caller]
    pub fn as_a<T: Half>(self) -> Tile<'k, A, T> {
        let (k, loc) = (self.k, Location::caller());
        let Some(sums) = self.usable(loc) else { return Tile::poison(k, self.rows, self.columns) };
        Tile::shaped(k, self.rows, self.columns, loc, |_| {
            let pack = |pair: &[ir::Reg]| T::pack(Reg::new(k, pair[0]), Reg::new(k, pair[1]));
            let words: Vec<_> = sums.chunks_exact(2).map(pack).collect();
            blocks_of_a(&words, self.columns)
        })
    }
}
