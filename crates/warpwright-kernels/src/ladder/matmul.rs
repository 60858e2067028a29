//! Matrix product on the tensor cores.

use super::matmul_tiled::{INNER, N};
use crate::entry::{DTYPES, Domain, Entry, Field, boxed, by_dtype};
use std::marker::PhantomData;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// `C = A·B`: `A` is `m × k`, `B` is `k × n`, `C` is `m × n`, all row-major, of any size.
///
/// Each warp of a block makes 64×32 of `C` on the tensor cores, so that 2×4 of them make 128×128, from tiles
/// of `A` and `B` in shared memory whose copies run ahead. Copies move 16 bytes at a time where the rows of a
/// matrix are a multiple of that (`k` and `n` multiples of 8 elements of 16 bits), and 8, 4 or 2
/// where they are not.
///
/// Products are exact and are added in `f32`, in blocks that the hardware truncates:
/// `|err| ≤ (2k + 16) · 2⁻²³ · Σ|aᵢ||bᵢ|`, and one rounding to `O`. Factors of `f32` are rounded to
/// `tf32` before, which adds `2⁻¹⁰ · Σ|aᵢ||bᵢ|`.
#[derive(Clone, Copy, Debug, warpwright_dsl::KeyPart)]
pub struct Matmul<T, O> {
    /// Columns of `B` and `C`.
    pub n: u32,
    /// Columns of `A`, rows of `B`.
    pub k: u32,
    /// Tiles of `A` and `B` in shared memory at a time: 2 is double buffering.
    pub stages: u32,
    /// Warps of a block, down and across `C`: 1 to 8 in all. More share what is loaded, fewer make more
    /// blocks of a small product.
    pub warps: [u32; 2],
    /// Element types of the factors and of `C`.
    pub elements: PhantomData<(T, O)>,
}

/// Columns of `A` and rows of `B` in a tile.
const DEPTH: u32 = 32;
/// A warp's tile of `C`.
const WARP_ROWS: u32 = 64;
const WARP_COLUMNS: u32 = 32;

impl<T, O> Matmul<T, O> {
    /// Products with a `k × n` matrix, double-buffered, by blocks of 2×4 warps.
    pub fn new(n: u32, k: u32) -> Self {
        Matmul { n, k, stages: 2, warps: [2, 4], elements: PhantomData }
    }

    /// Rows and columns of a block's tile of `C`.
    fn tile(&self) -> [u32; 2] {
        let [down, across] = self.warps.map(|warps| warps.clamp(1, 8));
        [down * WARP_ROWS, across * WARP_COLUMNS]
    }
}

impl<T: Factor, O: Float> AnyKernel for Matmul<T, O> {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let (factor, sum) = (T::TYPE.name(), O::TYPE.name());
        let Matmul { n, k, stages, warps: [down, across], .. } = self;
        format!("matmul_{factor}_{sum}_n{n}_k{k}_s{stages}_w{down}x{across}")
    }

    fn args(&self) -> Vec<ArgDesc> {
        let (n, k) = (u64::from(self.n), u64::from(self.k));
        vec![
            ArgDesc::input::<T>("a", Extent::dim("m").times(k)),
            ArgDesc::input::<T>("b", Extent::new(k * n)),
            ArgDesc::output::<O>("c", Extent::dim("m").times(n)),
            ArgDesc::scalar::<u32>("m"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        let [rows, columns] = self.tile();
        let warps = (rows / WARP_ROWS) * (columns / WARP_COLUMNS);
        let rule = LaunchRule::new(32 * warps.min(32)).min_sm(T::SINCE).grid_3d([
            Extent::new(self.n.div_ceil(columns).into()),
            Extent::dim("m").per(rows.into()),
            Extent::new(1),
        ]);
        // Without edges to look after, 16 warps have room for their registers.
        let whole = self.k.is_multiple_of(DEPTH) && self.n.is_multiple_of(8);
        LaunchRule { resident_blocks: whole.then_some((16 / warps).max(1)), ..rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        let [down, across] = self.warps;
        if !(1..=8).contains(&down.saturating_mul(across)) {
            let rule = "1 to 8 in all, which have room for their registers";
            return Err(BuildError::field("warps", format!("{down}x{across}"), rule));
        }
        Ok(())
    }

    fn body(&self, k: K<'_>) {
        let (a, b, c) = (k.ptr::<T>("a"), k.ptr::<T>("b"), k.ptr_mut::<O>("c"));
        let m = k.scalar::<u32>("m");
        let [rows, columns] = self.tile();
        // The loop ends with the last tile that has something of both.
        let whole = self.k.is_multiple_of(DEPTH);
        let a = a.matrix(m, self.k).columns_fit(whole);
        let b = b.matrix(self.k, self.n).rows_fit(whole).columns_fit(self.n.is_multiple_of(columns));
        let (row, column) = (k.ctaid_y() * rows, k.ctaid() * columns);
        let warp_row = k.warp() / (columns / WARP_COLUMNS) * WARP_ROWS;
        let warp_column = k.warp() % (columns / WARP_COLUMNS) * WARP_COLUMNS;

        let pipeline = k.pipeline(self.stages);
        let (a_tiles, b_tiles) = (pipeline.tile::<T>(rows, DEPTH), pipeline.tile::<T>(DEPTH, columns));
        let sums = pipeline.run(
            self.k.div_ceil(DEPTH),
            k.accumulators(WARP_ROWS, WARP_COLUMNS),
            |stage, tile| {
                a_tiles.at(stage).load(a, row, tile * DEPTH);
                b_tiles.at(stage).load(b, tile * DEPTH, column);
            },
            |stage, _, sums| {
                let a = a_tiles.at(stage).rows(warp_row, WARP_ROWS);
                let b = b_tiles.at(stage).columns(warp_column, WARP_COLUMNS);
                // One instruction deep at a time, so that few fragments are held.
                let step = 32 / T::TYPE.bytes();
                (0..DEPTH).step_by(step as usize).fold(sums, |sums, depth| {
                    a.columns(depth, step).load_a().mma(b.rows(depth, step).load_b(), sums)
                })
            },
        );
        sums.store(c.matrix(m, self.n), row + warp_row, column + warp_column);
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "matmul",
    doc: "c = a * b on the tensor cores, added in f32",
    fields: &[
        Field {
            name: "dtype",
            domain: DTYPES,
            default: Some("f16"),
            doc: "element type of a and b: bf16 and f32, which is rounded to tf32, from sm_80 on",
        },
        Field { name: "out", domain: DTYPES, default: Some("f32"), doc: "element type of c" },
        N,
        INNER,
        Field {
            name: "stages",
            domain: Domain::int(1, 3),
            default: Some("2"),
            doc: "tiles of a and b in shared memory at a time",
        },
        Field {
            name: "warps_down",
            domain: Domain::int(1, 2),
            default: Some("2"),
            doc: "warps of a block along the rows of c, 64 each",
        },
        Field {
            name: "warps_across",
            domain: Domain::int(1, 4),
            default: Some("4"),
            doc: "warps of a block along the columns of c, 32 each",
        },
    ],
    examples: &[
        "dtype=bf16 out=bf16",
        "dtype=f32",
        "out=f16 n=33 k=1000",
        "n=1 k=1",
        "stages=1 warps_down=1",
        "stages=3 warps_across=3",
        "warps_across=1",
    ],
    make: |config| {
        let (n, k, stages) = (config.u32("n"), config.u32("k"), config.u32("stages"));
        let warps = [config.u32("warps_down"), config.u32("warps_across")];
        macro_rules! make {
            ($ty:ty) => {{
                macro_rules! out {
                    ($out:ty) => {
                        boxed(Matmul::<$ty, $out> { stages, warps, ..Matmul::new(n, k) })
                    };
                }
                by_dtype!(config.dtype("out"), out)
            }};
        }
        by_dtype!(config.dtype("dtype"), make)
    },
};
