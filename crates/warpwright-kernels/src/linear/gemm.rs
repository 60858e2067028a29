//! Products of many tokens with weights of half precision, on the tensor cores.

use super::block::{BIAS, BlockTile, COLUMNS, DEPTH, Epilogue, N, OUT, RESIDUAL, ROWS, WEIGHTS};
use super::scale_rows::pitch;
use crate::data::floats::Dtype;
use crate::entry::{Domain, Entry, Field, boxed};
use crate::weights::{Part, Planes, WeightFormat};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// `y = scale · (x · Wᵀ) + bias + residual` for `W` of `f16` or `bf16`.
///
/// - `w` is the plane of `n` rows of `k` weights (see [`Planes`]): row-major, rows filled up with zeros to a
///   multiple of 8 weights;
/// - `x` is `tokens × k` of the type of the weights, row-major ([`GemmInput::Plain`]), or, with `scales`, what
///   [`ScaleRows`](crate::ScaleRows) makes of activations of any type and size ([`GemmInput::Scaled`]);
/// - `bias`, if there is one, is `n` numbers of `f32`; `residual`, if there is one, is `tokens × n` like `y`, and
///   may be the same buffer;
/// - `y` is `tokens × n`, row-major, of type `out`; what `f16` cannot hold becomes ±65504.
///
/// A block makes a tile of `rows` tokens by `columns` from tiles of 64 weights of each row in shared memory,
/// whose copies run ahead. Any sizes will do; rows of `x` that are not a multiple of 16 bytes are copied in
/// smaller units.
///
/// Products of halves are exact and are added in `f32`, so that for plain activations
/// `|err| ≤ (2k + 16) · 2⁻²³ · Σ|xᵢ||wᵢ|`, and one rounding to `out`. With scaled ones `k` counts once for
/// each term, and `ScaleRows` says what is lost of `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, warpwright_dsl::KeyPart)]
pub struct Gemm {
    /// Type of the weights: `F16`, or from `sm_80` on `Bf16`.
    pub dtype: Dtype,
    /// Rows of `W`, columns of `y`.
    pub n: u32,
    /// Weights of a row.
    pub k: u32,
    /// How the activations are given.
    pub input: GemmInput,
    /// Tokens of a block's tile: 16, 32, 64 or 128.
    pub rows: u32,
    /// Columns of a block's tile: 128, or 64 for more blocks of a small product.
    pub columns: u32,
    /// Tiles in shared memory at a time: 1 to 4, 2 is double buffering. Shared memory bounds them.
    pub stages: u32,
    /// Whether a bias is added.
    pub bias: bool,
    /// Whether a residual is added.
    pub residual: bool,
    /// Element type of `y`.
    pub out: Dtype,
}

/// How activations are given to a product on the tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum GemmInput {
    /// Halves of the type of the weights.
    Plain,
    /// What [`ScaleRows`](crate::ScaleRows) makes: so many terms of the type of the weights, and scales.
    Scaled {
        /// 1 or 2.
        terms: u32,
    },
}

/// Bytes of shared memory that a block may have before `sm_80`, and on the smallest device since.
const SHARED: [u32; 2] = [64 << 10, 99 << 10];

impl Gemm {
    /// Products with `n` rows of `k` weights, of plain activations, by tiles of 128 tokens, double-buffered, as
    /// `f32`.
    pub fn new(dtype: Dtype, n: u32, k: u32) -> Self {
        Gemm {
            dtype,
            n,
            k,
            input: GemmInput::Plain,
            rows: 128,
            columns: 128,
            stages: 2,
            bias: false,
            residual: false,
            out: Dtype::F32,
        }
    }

    fn tile(&self) -> BlockTile {
        BlockTile { rows: self.rows, columns: self.columns }
    }

    /// Terms of `x`, and elements of a row of one.
    fn terms(&self) -> (u32, u32) {
        match self.input {
            GemmInput::Plain => (1, self.k),
            GemmInput::Scaled { terms } => (terms, pitch(self.k)),
        }
    }

    fn epilogue(&self) -> Epilogue {
        let Gemm { n, bias, residual, out, .. } = *self;
        Epilogue { n, scaled: self.input != GemmInput::Plain, bias, residual, out }
    }

    fn planes(&self) -> Planes {
        let format = if self.dtype == Dtype::Bf16 { WeightFormat::Bf16 } else { WeightFormat::F16 };
        Planes::new(format, self.n, self.k)
    }

    fn shared_bytes(&self) -> u32 {
        let rows = self.terms().0.saturating_mul(self.rows).saturating_add(self.columns);
        rows.saturating_mul(self.stages).saturating_mul(2 * DEPTH)
    }

    fn product<T: Factor>(&self, k: K<'_>) {
        let tile = self.tile();
        let (x, w) = (k.ptr::<T>("x"), k.ptr::<T>("w"));
        let outputs = self.epilogue().declare(k);
        let [row, column] = tile.place(k);
        let (terms, length) = self.terms();
        // Zeros are all that lies beyond the end of a row in a tile of `x`.
        let whole = length.is_multiple_of(DEPTH);
        let terms: Vec<_> = (0..terms)
            .map(|term| {
                let rows = x.at(term * length).matrix(outputs.tokens(), length);
                rows.pitch(terms * length).columns_fit(whole)
            })
            .collect();
        let pitch = self.planes().get(Part::Values).map_or(0, |plane| (plane.row_bytes / 2) as u32);
        let w = w.matrix(self.n, pitch).columns_fit(pitch.is_multiple_of(DEPTH));
        let w = w.rows_fit(self.n.is_multiple_of(self.columns));

        let pipeline = k.pipeline(self.stages);
        let x_tiles: Vec<_> = terms.iter().map(|_| pipeline.tile::<T>(self.rows, DEPTH)).collect();
        let w_tile = pipeline.tile::<T>(self.columns, DEPTH);
        let ([warp_rows, warp_columns], warp_place) = (tile.warp(), tile.warp_place(k));
        let sums = pipeline.run(
            self.k.div_ceil(DEPTH),
            k.accumulators(warp_rows, warp_columns),
            |stage, step| {
                for (tile, &x) in x_tiles.iter().zip(&terms) {
                    tile.at(stage).load(x, row, step * DEPTH);
                }
                w_tile.at(stage).load(w, column, step * DEPTH);
            },
            |stage, _, sums| {
                let x: Vec<_> = x_tiles.iter().map(|tile| tile.at(stage)).collect();
                tile.multiply(warp_place, &x, w_tile.at(stage), sums)
            },
        );
        outputs.store(self.n, sums, [row + warp_place[0], column + warp_place[1]]);
    }
}

impl AnyKernel for Gemm {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let Gemm { dtype, n, k, rows, columns, stages, .. } = self;
        let terms = match self.input {
            GemmInput::Plain => 0,
            GemmInput::Scaled { terms } => terms,
        };
        format!("gemm_{dtype}_{}_n{n}_k{k}_x{terms}_t{rows}x{columns}_s{stages}", self.epilogue().name())
    }

    fn args(&self) -> Vec<ArgDesc> {
        let (terms, length) = self.terms();
        let row = u64::from(terms) * u64::from(length);
        let half = self.dtype.ty();
        let weights = Extent::new(self.planes().bytes() / 2);
        let mut args = vec![
            ArgDesc::buffer("x", half, Role::In, Extent::dim("tokens").times(row)),
            ArgDesc::buffer("w", half, Role::In, weights).constant(),
        ];
        args.extend(self.epilogue().args());
        args
    }

    fn launch(&self) -> LaunchRule {
        let rule = self.tile().launch(self.n);
        let late = self.dtype == Dtype::Bf16 || self.shared_bytes() > SHARED[0];
        if late { rule.min_sm(80) } else { rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        if self.dtype == Dtype::F32 {
            return Err(BuildError::field("dtype", self.dtype, "f16 or bf16"));
        }
        for (field, side) in [("n", self.n), ("k", self.k)] {
            if side == 0 || side > 1 << 22 {
                return Err(BuildError::field(field, side, "from 1 to 4194304"));
            }
        }
        if let GemmInput::Scaled { terms } = self.input
            && !(1..=2).contains(&terms)
        {
            return Err(BuildError::field("terms", terms, "1 or 2"));
        }
        self.tile().check()?;
        if !(1..=4).contains(&self.stages) || self.shared_bytes() > SHARED[1] {
            let bytes = 2 * DEPTH * (self.terms().0 * self.rows + self.columns);
            let rule = format!(
                "from 1 to 4, and at most {}, the stages of {bytes} bytes that fit",
                SHARED[1] / bytes
            );
            return Err(BuildError::field("stages", self.stages, rule));
        }
        Ok(())
    }

    fn body(&self, k: K<'_>) {
        match self.dtype {
            Dtype::Bf16 => self.product::<Bf16>(k),
            _ => self.product::<F16>(k),
        }
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "gemm",
    doc: "y = scale * (x * transpose(W)) + bias + residual for W of f16 or bf16, on the tensor cores",
    fields: &[
        Field {
            name: "dtype",
            domain: Domain::OneOf(&["f16", "bf16"]),
            default: Some("f16"),
            doc: "type of the weights",
        },
        N,
        WEIGHTS,
        Field {
            name: "terms",
            domain: Domain::int(0, 2),
            default: Some("0"),
            doc: "0 for plain x, else the terms that scale_rows has made of it",
        },
        ROWS,
        COLUMNS,
        Field {
            name: "stages",
            domain: Domain::int(1, 4),
            default: Some("2"),
            doc: "tiles in shared memory at a time",
        },
        BIAS,
        RESIDUAL,
        OUT,
    ],
    examples: &[
        "dtype=f16 n=14336",
        "dtype=bf16 n=128256 k=2048",
        "dtype=bf16 k=14336 residual=true terms=2",
        "dtype=f16 n=1536 k=1536 bias=true out=f16 rows=64",
        "dtype=f16 terms=1 rows=32 stages=4",
        "dtype=bf16 terms=2 rows=16 stages=3 out=bf16",
        "dtype=f16 n=33 k=50 rows=16 columns=64 stages=1",
    ],
    make: |config| {
        let input = match config.u32("terms") {
            0 => GemmInput::Plain,
            terms => GemmInput::Scaled { terms },
        };
        boxed(Gemm {
            input,
            rows: config.u32("rows"),
            columns: config.u32("columns"),
            stages: config.u32("stages"),
            bias: config.flag("bias"),
            residual: config.flag("residual"),
            out: config.dtype("out"),
            ..Gemm::new(config.dtype("dtype"), config.u32("n"), config.u32("k"))
        })
    },
};
