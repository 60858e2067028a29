//! Products of many tokens with quantised weights, on the tensor cores.

use super::block::{BlockTile, COLUMNS, DEPTH, Outputs, ROWS};
use super::scale_rows::pitch;
use crate::data::floats::Dtype;
use crate::weights::halves::HalfReader;
use crate::weights::{Planes, QUANTISED, WeightFormat};
use warpwright_dsl::*;

/// `y = scale · (x · Wᵀ) + bias + residual` for quantised `W`: prefill, and decoding of more than eight tokens.
///
/// - `x` and `scales` are the output of [`ScaleRows`](crate::ScaleRows) for `tokens × k` activations, with `terms`
///   split terms of [`WeightFormat::half`]: `f16`, and `bf16` for MXFP4, whose scales exceed the range of `f16`;
/// - `w` is the planes of `n` rows of `k` weights, see [`Planes`];
/// - `bias`, if there is one, is `n` numbers of `f32`; `residual`, if there is one, is `tokens × n` like `y`, and may
///   be the same buffer;
/// - `y` is `tokens × n`, row-major, of type `out`; values beyond the range of `f16` become ±65504.
///
/// A block makes a tile of `rows` tokens by 128 columns (or 64). An iteration takes 64 weights of each row: while the
/// warps multiply, `cp.async` brings the next activations to shared memory, and the next chunks of 16 bytes of quants
/// are loaded to registers; then these are decoded in pairs of halves and stored to shared memory. Decoding uses the
/// bits of half precision: a byte in the mantissa of 1024 gives 1024 plus the byte, so that one permutation and one
/// exact subtraction convert bytes to numbers (Kim et al., *Who Says Elephants Can't Run*, 2022).
///
/// # Error
///
/// Products of halves are exact and are added in `f32`. Let `u = 2⁻¹¹`, `X = |xᵢ|`, and `S` the magnitude of each
/// weight; for formats with a minimum add `3/2 · |d·sc·z - dmin·m|`, the weight of the middle code `z`: 2 for codes of
/// 2 bits, 8 of 4, 16 of 5. Then
///
/// ```text
/// |err| ≤ Σ X·S · (a + w + (2·terms·k + 16)·2⁻²³) · (1 + 2⁻⁹)  +  2⁻³⁸ · max X · Σ S  +  |y|·2⁻²³
///    activations  a = u for one term, u² for two, with u = 2⁻⁸ where they are bf16
///    weights      w = 0 for mxfp4 and nvfp4, u where a part's scale is a half, 2u where it is a product
/// ```
///
/// and one rounding to `out`. Weights smaller than 2⁻¹³ are exact. Activations may be any finite numbers. For weights
/// that become `f16`, `d·sc·q` with the format's largest `q`, and `dmin·m`, must be less than 65504, the limit of half
/// precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "y = scale * (x * transpose(W)) + bias + residual for quantised W, on the tensor cores",
    examples(
        "format=q4_k n=14336",
        "format=q4_k k=14336 residual=true terms=2",
        "format=q4_k terms=2 rows=64 out=bf16",
        "format=q5_k out=f16",
        "format=q6_k n=128256",
        "format=q6_k k=14336 residual=true",
        "format=q8_0 n=1536 k=1536 bias=true",
        "format=q4_0 rows=64",
        "format=q4_1 k=896",
        "format=q5_0 n=896 k=896",
        "format=q5_1 k=1056 n=33",
        "format=mxfp4 k=2880 n=5760",
        "format=q4_k rows=16 columns=64",
        "format=q4_k n=14336 rows=256",
        "format=q6_k k=14336 rows=256 residual=true",
        "format=q6_k rows=32 terms=2",
        "format=q8_0 n=1 k=32 rows=16 columns=64 out=bf16"
    )
)]
pub struct QuantGemm {
    /// How the weights are stored: a quantised format; [`Gemm`](crate::Gemm) is for halves.
    #[field(domain = QUANTISED, default = "q4_k")]
    pub format: WeightFormat,
    /// Rows of `W`, columns of `y`.
    #[field(range = 1..=1 << 22, default = 4096)]
    pub n: u32,
    /// Weights of a row, a multiple of the format's block.
    #[field(range = 1..=1 << 22, default = 4096)]
    pub k: u32,
    /// Terms of each activation, as [`ScaleRows`](crate::ScaleRows) makes them: 1, or 2 for errors that the weights alone
    /// make.
    #[field(range = 1..=2, default = 1)]
    pub terms: u32,
    /// Tokens of a block's tile: 16, 32, 64, 128, or with 128 columns and one term 256. More share each decoded weight,
    /// fewer waste less on short batches. 256, and 128 with two terms, need `sm_80`, for their shared memory.
    #[field(domain = ROWS, default = 128)]
    pub rows: u32,
    /// Columns of a block's tile: 128, or 64 for more blocks of a small product.
    #[field(domain = COLUMNS, default = 128)]
    pub columns: u32,
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

/// The arguments of [`QuantGemm`].
#[derive(Args)]
#[args(of = QuantGemm)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct QuantGemmArgs<M: Mode> {
    #[arg(len = tokens.times(u64::from(of.terms) * u64::from(pitch(of.k))), dtype = of.format.half().ty())]
    pub x: M::AnyIn,
    #[arg(len = Extent::new(Planes::new(of.format, of.n, of.k).bytes()), constant)]
    pub w: M::In<u8>,
    #[arg(len = tokens)]
    pub scales: M::In<f32>,
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

impl QuantGemm {
    /// Products with `n` rows of `k` weights, of activations in one term, by tiles of 128 tokens, as `f32`.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        QuantGemm { format, n, k, ..Self::default() }
    }

    fn tile(&self) -> BlockTile {
        BlockTile { rows: self.rows, columns: self.columns }
    }
}

impl Kernel for QuantGemm {
    type Args<M: Mode> = QuantGemmArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let rule = self.tile().launch(self.n);
        let large = self.rows.saturating_mul(self.terms) > 128;
        if large || self.format.half() == Dtype::Bf16 { rule.min_sm(80) } else { rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        self.format.check_row("k", self.k)?;
        self.tile().check()?;
        match self.rows {
            256 if self.terms > 1 => {
                Err(BuildError::field("terms", self.terms, "1 where there are 256 rows"))
            }
            _ => Ok(()),
        }
    }

    fn body<'k>(&self, k: K<'k>, args: QuantGemmArgs<Body<'k>>) {
        match self.format.half() {
            Dtype::Bf16 => self.multiply::<Bf16>(k, args),
            _ => self.multiply::<F16>(k, args),
        }
    }
}

impl QuantGemm {
    /// The product, by halves of a type.
    fn multiply<'k, T: Factor>(&self, k: K<'k>, args: QuantGemmArgs<Body<'k>>) {
        let (tile, pitch) = (self.tile(), pitch(self.k));
        let QuantGemmArgs { x, w, scales, bias, residual, y, tokens } = args;
        let [row, column] = tile.place(k);
        let terms: Vec<_> = (0..self.terms)
            .map(|term| {
                let rows = x.typed::<T>().at(term * pitch).matrix(tokens, pitch).pitch(self.terms * pitch);
                rows.aligned(16).columns_fit(true)
            })
            .collect();
        // A thread has a row of `w`, or two share one. Neighbours have neighbouring rows, so that what they store meets in
        // no bank. Columns of `y` that there are not may be made of any weights.
        let half = (self.columns < tile.threads()).then(|| k.tid() / self.columns);
        let of_w = if half.is_some() { k.tid() % self.columns } else { k.tid() };
        let row_of_w = column + of_w;
        let row_of_w = if self.n.is_multiple_of(self.columns) { row_of_w } else { row_of_w.min(self.n - 1) };
        let Some(weights) = HalfReader::new((self.format, self.n, self.k), w, (k, half)) else { return };
        let columns_of_w = weights.columns(k);

        let pipeline = k.pipeline(2);
        let x_tiles: Vec<_> = terms.iter().map(|_| pipeline.tile::<T>(self.rows, DEPTH)).collect();
        let w_tile = pipeline.tile::<T>(self.columns, DEPTH);
        let ([warp_rows, warp_columns], warp_place) = (tile.warp(), tile.warp_place(k));
        let sums = pipeline.run_fed(
            self.k.div_ceil(DEPTH),
            k.accumulators(warp_rows, warp_columns),
            |stage, step| {
                for (tile, &x) in x_tiles.iter().zip(&terms) {
                    tile.at(stage).load(x, row, step * DEPTH);
                }
            },
            |step| {
                let (loaded, columns) = (weights.load(row_of_w, step), &columns_of_w);
                move |stage| {
                    for (&column, halves) in columns.iter().zip(loaded.decode()) {
                        let [a, b, c, d, e, f, g, h] = halves;
                        w_tile.at(stage).st_words(of_w, column, [a, b, c, d]);
                        w_tile.at(stage).st_words(of_w, column + 8, [e, f, g, h]);
                    }
                }
            },
            |stage, _, sums| {
                let x: Vec<_> = x_tiles.iter().map(|tile| tile.at(stage)).collect();
                tile.multiply(warp_place, &x, w_tile.at(stage), sums)
            },
        );
        let factor = weights.tensor_scale();
        let outputs = Outputs { n: self.n, scales: Some(scales), factor, bias, residual, y, tokens };
        outputs.store(sums, [row + warp_place[0], column + warp_place[1]]);
    }
}
