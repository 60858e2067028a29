//! Products of many tokens with weights of half precision, on the tensor cores.

use super::block::{BlockTile, COLUMNS, DEPTH, Outputs, ROWS};
use super::scale_rows::pitch;
use crate::data::floats::{Dtype, HALVES};
use crate::weights::{Planes, WeightFormat};
use warpwright_dsl::*;

/// `y = scale · (x · Wᵀ) + bias + residual` for `W` of `f16` or `bf16`.
///
/// - `w` is the plane of `n` rows of `k` weights (see [`Planes`]): row-major, rows padded with zeros to a multiple of 8
///   weights;
/// - `x` is `tokens × k` of the type of the weights, row-major; or, with `terms` and `scales`, the output of
///   [`ScaleRows`](crate::ScaleRows) for activations of any type and size, in split terms;
/// - `bias`, if there is one, is `n` numbers of `f32`; `residual`, if there is one, is `tokens × n` like `y`, and may
///   be the same buffer;
/// - `y` is `tokens × n`, row-major, of type `out`; values beyond the range of `f16` become ±65504.
///
/// A block makes a tile of `rows` tokens by `columns` from tiles of 64 weights of each row in shared memory, whose
/// copies run ahead. All sizes are allowed; rows of `x` that are not a multiple of 16 bytes are copied in smaller
/// units.
///
/// Products of halves are exact and are added in `f32`, so that for plain activations `|err| ≤ (2k + 16) · 2⁻²³ ·
/// Σ|xᵢ||wᵢ|`, and one rounding to `out`. For scaled activations `k` counts once per term, and `ScaleRows` gives the
/// error of `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "y = scale * (x * transpose(W)) + bias + residual for W of f16 or bf16, on the tensor cores",
    examples(
        "dtype=f16 n=14336",
        "dtype=bf16 n=128256 k=2048",
        "dtype=bf16 k=14336 residual=true terms=2",
        "dtype=f16 n=1536 k=1536 bias=true out=f16 rows=64",
        "dtype=f16 terms=1 rows=32 stages=4",
        "dtype=bf16 terms=2 rows=16 stages=3 out=bf16",
        "dtype=f16 n=33 k=50 rows=16 columns=64 stages=1"
    )
)]
pub struct Gemm {
    /// Type of the weights: `F16`, or from `sm_80` on `Bf16`.
    #[field(domain = HALVES, default = "f16")]
    pub dtype: Dtype,
    /// Rows of `W`, columns of `y`.
    #[field(range = 1..=1 << 22, default = 4096)]
    pub n: u32,
    /// Weights of a row.
    #[field(range = 1..=1 << 22, default = 4096)]
    pub k: u32,
    /// Terms of each activation, of the type of the weights, that [`ScaleRows`](crate::ScaleRows) has made: 0 for plain
    /// activations of that type, without scales.
    #[field(range = 0..=2, default = 0)]
    pub terms: u32,
    /// Tokens of a block's tile: 16, 32, 64 or 128.
    #[field(domain = ROWS, default = 128)]
    pub rows: u32,
    /// Columns of a block's tile: 128, or 64 for more blocks of a small product.
    #[field(domain = COLUMNS, default = 128)]
    pub columns: u32,
    /// Tiles in shared memory at a time: 2 is double buffering. Shared memory bounds them.
    #[field(range = 1..=4, default = 2)]
    pub stages: u32,
    /// Whether a bias is added to each row.
    #[field(default = false)]
    pub bias: bool,
    /// Whether a residual is added, a matrix like `y`, which may be `y`.
    #[field(default = false)]
    pub residual: bool,
    /// Element type of `y` and the residual.
    #[field(default = "f32")]
    pub out: Dtype,
}

/// The arguments of [`Gemm`].
#[derive(Args)]
#[args(of = Gemm)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct GemmArgs<M: Mode> {
    #[arg(len = tokens.times(of.row()), dtype = of.dtype.ty())]
    pub x: M::AnyIn,
    #[arg(len = Extent::new(of.planes().bytes() / 2), dtype = of.dtype.ty(), constant)]
    pub w: M::AnyIn,
    #[arg(len = tokens, when = of.terms > 0)]
    pub scales: Option<M::In<f32>>,
    #[arg(len = of.n, when = of.bias, constant)]
    pub bias: Option<M::In<f32>>,
    #[arg(len = tokens.times(of.n.into()), dtype = of.residual.then(|| of.out.ty()))]
    pub residual: Option<M::AnyIn>,
    #[arg(
        len = tokens.times(of.n.into()),
        dtype = of.out.ty(),
        shares = if of.residual { &["residual"] } else { &[] }
    )]
    pub y: M::AnyOut,
    pub tokens: M::Scalar<u32>,
}

/// Bytes of shared memory that a block may have before `sm_80`, and on the smallest device since.
const SHARED: [u32; 2] = [64 << 10, 99 << 10];

impl Gemm {
    /// Products with `n` rows of `k` weights, of plain activations, by tiles of 128 tokens, double-buffered, as
    /// `f32`.
    pub fn new(dtype: Dtype, n: u32, k: u32) -> Self {
        Gemm { dtype, n, k, ..Self::default() }
    }

    fn tile(&self) -> BlockTile {
        BlockTile { rows: self.rows, columns: self.columns }
    }

    /// Terms of `x`, and elements of a row of one.
    fn terms(&self) -> (u32, u32) {
        match self.terms {
            0 => (1, self.k),
            terms => (terms, pitch(self.k)),
        }
    }

    /// Elements of a row of `x`, all terms.
    fn row(&self) -> u64 {
        let (terms, length) = self.terms();
        u64::from(terms) * u64::from(length)
    }

    fn planes(&self) -> Planes {
        let format = if self.dtype == Dtype::Bf16 { WeightFormat::Bf16 } else { WeightFormat::F16 };
        Planes::new(format, self.n, self.k)
    }

    fn shared_bytes(&self) -> u32 {
        let rows = self.terms().0.saturating_mul(self.rows).saturating_add(self.columns);
        rows.saturating_mul(self.stages).saturating_mul(2 * DEPTH)
    }

    fn product<'k, T: Factor>(&self, k: K<'k>, args: GemmArgs<Body<'k>>) {
        let tile = self.tile();
        let (x, w) = (args.x.typed::<T>(), args.w.typed::<T>());
        let GemmArgs { scales, bias, residual, y, tokens, .. } = args;
        let outputs = Outputs { n: self.n, scales, factor: None, bias, residual, y, tokens };
        let [row, column] = tile.place(k);
        let (terms, length) = self.terms();
        // Zeros are all that lies beyond the end of a row in a tile of `x`.
        let whole = length.is_multiple_of(DEPTH);
        let terms: Vec<_> = (0..terms)
            .map(|term| {
                let rows = x.at(term * length).matrix(tokens, length);
                rows.pitch(terms * length).columns_fit(whole)
            })
            .collect();
        let pitch = self.planes().get("values").map_or(0, |plane| (plane.row_bytes / 2) as u32);
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
        outputs.store(sums, [row + warp_place[0], column + warp_place[1]]);
    }
}

impl Kernel for Gemm {
    type Args<M: Mode> = GemmArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let rule = self.tile().launch(self.n);
        let late = self.dtype == Dtype::Bf16 || self.shared_bytes() > SHARED[0];
        if late { rule.min_sm(80) } else { rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        self.tile().check()?;
        if self.shared_bytes() > SHARED[1] {
            let bytes = 2 * DEPTH * (self.terms().0 * self.rows + self.columns);
            let rule = format!(
                "from 1 to 4, and at most {}, the stages of {bytes} bytes that fit",
                SHARED[1] / bytes
            );
            return Err(BuildError::field("stages", self.stages, rule));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: GemmArgs<Body<'k>>) {
        match self.dtype {
            Dtype::Bf16 => self.product::<Bf16>(k, args),
            _ => self.product::<F16>(k, args),
        }
    }
}
