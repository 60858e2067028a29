//! Fragments loaded straight from global memory, without going through shared memory.
//!
//! The inner dimension of a product may be in any order that is the same in both factors, and the rows of the result
//! in any order that its reader knows. So a lane loads neighbouring elements of a row, 16 bytes at once if the type
//! allows, and uses them as fragments unchanged:
//!
//! ```text
//!                     each 8 rows n (transposed: columns of B)       each 16 rows k (transposed: columns of A)
//! lane 4g + t         row g                                          rows 2t, 2t + 1, 2t + 8, 2t + 9
//!   halves            elements 8t..8t + 8 of every 32                elements 8g..8g + 8 of every 64
//!   bytes             elements 8t..8t + 8 of every 32                elements 4g..4g + 4 of every 32
//! ```
//!
//! So columns are permuted within runs of 32 or 64. The factor that multiplies B is loaded in the same order
//! ([`K::rows_for_fragments`]), and code that stores the product of A receives the columns
//! ([`Tile::reduce_scatter`]).

use super::super::carry::carry_field;
use super::super::guard::{Guard, both};
use super::super::handle::handle;
use super::super::reg::{IntoReg, Reg};
use super::super::spread::List;
use super::super::types::*;
use super::super::{Carry, Ptr};
use super::{A, Acc, B, Half, K, Matrix, Tile, TileRole};
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;

/// Elements that can be loaded straight into fragments.
pub trait Direct: Data {
    /// The type that they are multiplied as: halves unchanged, and signed bytes exactly as `F16`.
    type Factor: Half;
    /// The length of the runs of columns that are permuted in an A tile.
    #[doc(hidden)]
    const RUN_OF_A: u32;
    /// Converts a word of a row to the halves of a B tile, two in each register.
    #[doc(hidden)]
    fn of_row<'k>(word: Reg<'k, u32>) -> Vec<Reg<'k, u32>>;
    /// Converts a word of two neighbouring rows to the halves of an A tile, one element of each row in each register.
    #[doc(hidden)]
    fn of_rows<'k>(rows: [Reg<'k, u32>; 2]) -> Vec<Reg<'k, u32>>;
}

macro_rules! halves {
    ($($half:ty)*) => {
        $(impl Direct for $half {
            type Factor = $half;
            const RUN_OF_A: u32 = 64;

            fn of_row(word: Reg<'_, u32>) -> Vec<Reg<'_, u32>> {
                vec![word]
            }

            fn of_rows<'k>([row, next]: [Reg<'k, u32>; 2]) -> Vec<Reg<'k, u32>> {
                // The low halves of both, and the high ones.
                [0x5410u32, 0x7632].map(|which| row.prmt(next, which)).to_vec()
            }
        })*
    };
}
halves!(F16 Bf16);

impl Direct for i8 {
    type Factor = F16;
    const RUN_OF_A: u32 = 32;

    fn of_row(word: Reg<'_, u32>) -> Vec<Reg<'_, u32>> {
        exact_halves(word ^ SIGNS)
    }

    fn of_rows<'k>(rows: [Reg<'k, u32>; 2]) -> Vec<Reg<'k, u32>> {
        let [row, next] = rows.map(|row| row ^ SIGNS);
        // Two elements of both.
        [0x5140u32, 0x7362].iter().flat_map(|&which| exact_halves(row.prmt(next, which))).collect()
    }
}

/// With the signs' bits turned over, bytes count from -128.
const SIGNS: u32 = 0x8080_8080;

/// The four bytes, which count from -128, as halves, two in each register. A byte is the last of the half 1024 + byte,
/// from which 1024 + 128 is subtracted: instructions for conversions run at a quarter of the rate.
fn exact_halves(bytes: Reg<'_, u32>) -> Vec<Reg<'_, u32>> {
    const HIGH: u32 = 0x6464_6464;
    [0x4140u32, 0x4342].map(|which| (bytes.prmt(HIGH, which).bits::<F16x2>() - 1152.0).bits()).to_vec()
}

/// The factor that fragments are for: A or B.
pub trait DirectRole: TileRole {
    /// The number of matrix rows that go together, of lanes that share a row, and of rows per lane.
    #[doc(hidden)]
    const LANES: u32;
    #[doc(hidden)]
    fn run<T: Direct>() -> u32;
    #[doc(hidden)]
    fn rows<'k>(k: K<'k>, count: u32) -> Vec<Reg<'k, u32>>;
    #[doc(hidden)]
    fn part(k: K<'_>) -> Reg<'_, u32>;
}

impl DirectRole for B {
    const LANES: u32 = 4;

    fn run<T: Direct>() -> u32 {
        32
    }

    fn rows(k: K<'_>, count: u32) -> Vec<Reg<'_, u32>> {
        (0..count).step_by(8).map(|row| k.lane_bits(2, 7) + row).collect()
    }

    fn part(k: K<'_>) -> Reg<'_, u32> {
        k.lane_bits(0, 3)
    }
}

impl DirectRole for A {
    const LANES: u32 = 8;

    fn run<T: Direct>() -> u32 {
        T::RUN_OF_A
    }

    fn rows(k: K<'_>, count: u32) -> Vec<Reg<'_, u32>> {
        let pair = k.lane_bits(0, 3) * 2;
        (0..count).step_by(16).flat_map(|row| [0, 1, 8, 9].map(|next| pair + (row + next))).collect()
    }

    fn part(k: K<'_>) -> Reg<'_, u32> {
        k.lane_bits(2, 7)
    }
}

/// Rows of a matrix of `T`, loaded and transposed for the factor `R`: state that a loop can carry, so that the next
/// rows are in flight while these are used. See [`Matrix::fragments`].
pub struct Fragments<'k, R, T> {
    words: List<'k, u32>,
    /// Rows, and columns up to whole runs.
    rows: u32,
    columns: u32,
    kind: PhantomData<(R, T)>,
}

handle!(Fragments<R, T>);

impl<R, T> std::fmt::Debug for Fragments<'_, R, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fragments({}x{})", self.rows, self.columns)
    }
}

carry_field!(
    [R: DirectRole, T: Direct] Fragments<'k, R, T>, words,
    |k| Fragments { words: List::poison(k), rows: 0, columns: 0, kind: PhantomData },
    |rows, see| see(rows.rows, rows.columns)
);

impl<'k, T: Direct> Matrix<'k, T> {
    /// `count` rows from `row` on, with all columns, transposed as a factor needs them: a multiple of 8 rows for `B`,
    /// of 16 for `A`. Where `wanted` does not hold, the result is `before`, or zeros. Beyond the matrix's last
    /// column, and its last row unless the rows [fit](Self::rows_fit), it is zeros as well. Memory is not accessed
    /// there.
    ///
    /// The host must know the number of columns, a multiple of 8; rows begin at multiples of 16 bytes.
    #[track_caller]
    pub fn fragments<R: DirectRole>(
        self,
        row: impl IntoReg<'k, u32>,
        count: u32,
        wanted: impl Guard<'k>,
        before: Option<Fragments<'k, R, T>>,
    ) -> Fragments<'k, R, T> {
        let (k, loc, wanted) = (self.kernel(), Location::caller(), wanted.predicate());
        let row = row.into_reg(k, loc);
        let width = self.host_columns(loc);
        let (_, down) = R::granule(16);
        if !count.is_multiple_of(down.max(8)) || !width.is_multiple_of(8) {
            let message = format!("fragments of {count} rows and {width} columns of the {} tile", R::NAME);
            k.state().mistake(Code::VectorShape, loc, message);
            return Carry::poison(k);
        }
        let (run, part) = (R::run::<T>(), R::part(k));
        let own = run / R::LANES;
        let before = before.map(|before| before.words.to_vec());
        let mut words: Vec<Reg<'k, u32>> = Vec::new();
        k.on_line(loc, || {
            for down in R::rows(k, count) {
                for first in (0..width).step_by(run as usize) {
                    let fits = self.columns_fit(first + run <= width);
                    let (from, inside) = fits.place(row + down, part * own + first);
                    let wanted = both(wanted, inside);
                    let other = |i: usize| before.as_ref().map_or(k.u32(0), |words| words[i]);
                    let from = from.cast::<u32>();
                    match own * T::TYPE.bytes() {
                        16 => words.extend(load::<4>(from, wanted, &other, words.len())),
                        8 => words.extend(load::<2>(from, wanted, &other, words.len())),
                        _ => words.extend(load::<1>(from, wanted, &other, words.len())),
                    }
                }
            }
        });
        let columns = width.next_multiple_of(run);
        Fragments { words: k.list(words), rows: count, columns, kind: PhantomData }
    }
}

fn load<'k, const N: usize>(
    from: Ptr<'k, Global, u32>,
    wanted: Option<Reg<'k, Pred>>,
    other: &impl Fn(usize) -> Reg<'k, u32>,
    first: usize,
) -> [Reg<'k, u32>; N] {
    from.ld_vec_or(wanted, 0, std::array::from_fn(|i| other(first + i)))
}

impl<'k, R: DirectRole, T: Direct> Fragments<'k, R, T> {
    /// The length of the runs in which columns are permuted: 32 for B; for A 64 for halves and 32 for bytes.
    pub fn run_length(self) -> u32 {
        R::run::<T>()
    }

    /// The number of runs of columns; the last may be incomplete.
    pub fn runs(self) -> u32 {
        self.columns / R::run::<T>()
    }

    /// The columns of one run. If you add up a product run by run, only the part in use occupies registers.
    #[track_caller]
    pub fn run(self, k: K<'k>, run: u32) -> Self {
        let (length, words) = (R::run::<T>(), self.words.to_vec());
        let of_run = (length / R::LANES * T::TYPE.bytes() / 4) as usize;
        let rows = words.chunks_exact(of_run * self.runs().max(1) as usize);
        let words: Vec<_> =
            rows.flat_map(|row| row.chunks_exact(of_run).nth(run as usize)).flatten().copied().collect();
        Fragments { words: k.list(words), columns: length, ..self }
    }
}

impl<'k, T: Direct> Fragments<'k, B, T> {
    /// The right factor, columns × rows.
    #[track_caller]
    pub fn operand(self, k: K<'k>) -> Tile<'k, B, T::Factor> {
        let words: Vec<_> = self.words.to_vec().into_iter().flat_map(T::of_row).collect();
        // Of every run a row has four registers, two for each step.
        let of_row = words.len() / (self.rows as usize / 8).max(1);
        let steps = (0..of_row).step_by(2);
        let regs =
            steps.flat_map(|step| words.chunks_exact(of_row).flat_map(move |row| &row[step..step + 2]));
        k.factor_of(self.columns, self.rows, &regs.copied().collect::<Vec<_>>())
    }
}

impl<'k, T: Direct> Fragments<'k, A, T> {
    /// The left factor, columns × rows. In its rows, as in those of its products, the columns of the matrix are
    /// permuted: see [`Tile::reduce_scatter`].
    #[track_caller]
    pub fn operand(self, k: K<'k>) -> Tile<'k, A, T::Factor> {
        let words = self.words.to_vec();
        let of_row = words.len() / (self.rows as usize / 4).max(1);
        // By pairs of rows: an element of both in each register.
        let pairs = words.chunks_exact(2 * of_row).map(|pair| {
            let (row, next) = pair.split_at(of_row);
            row.iter().zip(next).flat_map(|(&row, &next)| T::of_rows([row, next])).collect::<Vec<_>>()
        });
        let pairs: Vec<_> = pairs.collect();
        // Two elements of four rows are a step of 16 rows of the factor.
        let elements = (0..pairs.first().map_or(0, Vec::len)).step_by(2);
        let regs =
            elements.flat_map(|element| pairs.iter().flat_map(move |pair| &pair[element..element + 2]));
        k.factor_of(self.columns, self.rows, &regs.copied().collect::<Vec<_>>())
    }
}

impl<'k> K<'k> {
    /// Rows in the order that [`Fragments`] of B have in the inner dimension: `rows × columns` accumulators whose
    /// columns, up to whole runs of 32, are permuted in the same way. `load` returns the 8 neighbours of a row from a
    /// column on, a multiple of 8.
    #[track_caller]
    pub fn rows_for_fragments(
        self,
        rows: u32,
        columns: u32,
        load: impl Fn(Reg<'k, u32>, Reg<'k, u32>) -> Vec<Reg<'k, f32>>,
    ) -> Tile<'k, Acc, f32> {
        let (row, part) = (self.lane_bits(2, 7), self.lane_bits(0, 3));
        let mut sums = Vec::new();
        for down in (0..rows).step_by(8) {
            for first in (0..columns).step_by(32) {
                sums.extend(load(row + down, part * 8 + first));
            }
        }
        self.accumulators_of(rows, columns.next_multiple_of(32), &sums)
    }
}
