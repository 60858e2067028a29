//! The kernels: configuration, arguments, launch rule.

use super::plan::MAX_WARPS;
use super::stage::Source;
use super::tile::{Operands, Product};
use crate::activation::Activation;
use crate::data::eight_bits::BLOCK;
use crate::weights::{Planes, WeightFormat};
use warpwright_dsl::*;

/// Bytes of shared memory that a block has without asking, and that every device has for it.
const STATIC_SHARED: u32 = 48 * 1024;
/// What the smallest device can have, less what a kernel that calls the body needs besides.
const SHARED: u32 = 63 * 1024;
/// Largest shapes.
pub(crate) const MAX_ROWS: u32 = 1 << 24;
pub(crate) const MAX_COLUMNS: u32 = 1 << 20;
pub(crate) const MAX_BATCH: u32 = 8;
/// Most matrices of a launch.
pub(crate) const MAX_MATRICES: usize = 4;
/// Warps of a block, where nothing else is asked for.
const WARPS: u32 = 8;
/// The bias and residual of each matrix.
static RESIDUALS: [&str; MAX_MATRICES] = ["residual0", "residual1", "residual2", "residual3"];

/// How a [`QuantGemv`] takes its activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Choice)]
pub enum Activations {
    /// `f32`: nothing is rounded before it is multiplied.
    Exact,
    /// Signed bytes with an `f32` scale for each 32, as made by [`QuantizeInt8`](crate::QuantizeInt8). This takes about
    /// two and a half times fewer instructions; the error is up to 2⁻⁸ of the largest of each 32 activations.
    Int8,
    /// `f32` that each block quantises on the way to shared memory: the error of [`Int8`](Self::Int8) without a
    /// preceding kernel, for a few more instructions.
    Rounded,
}

/// A matrix of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, KeyPart, Config)]
pub struct Matrix {
    /// Rows of each matrix.
    #[field(range = 1..=MAX_ROWS, default = 4096)]
    pub n: u32,
    /// How the weights of each matrix are stored.
    #[field(default = "q4_k")]
    pub format: WeightFormat,
    /// Whether a bias is added to the rows of each matrix.
    #[field(default = false)]
    pub bias: bool,
    /// Whether a vector is added to each result.
    #[field(default = false)]
    pub residual: bool,
}

impl Matrix {
    /// A matrix of `n` rows, without bias or residual.
    pub fn new(format: WeightFormat, n: u32) -> Self {
        Matrix { format, n, ..Self::default() }
    }
}

/// `yᵢ = Wᵢ · x + biasᵢ + residualᵢ` for each matrix of the launch, or, with a gate, `y₀ = a(W₀ · x) · (W₁ · x)` with
/// an [`Activation`] `a` and two matrices: their biases are included before the gate, the residual is added after it.
///
/// `Wᵢ` is `n × k` in the planes of `docs/weights.md`. There are `batch` columns of activations, each of `k` contiguous
/// elements, and each result has `batch` rows of `n`. A bias has `n` elements. A residual has the shape of the result
/// and may be the same buffer.
///
/// | argument | elements |
/// | --- | --- |
/// | `x` (exact, rounded) | `f32`, batch × k |
/// | `norm`, where there is an epsilon | `f32`, k |
/// | `x_quants`, `x_scales` (int8) | `i8`, batch × k; `f32`, batch × k / 32 |
/// | `w0` … | bytes: [`Planes::bytes`] |
/// | `bias0` …, where the matrix has one | `f32`, n |
/// | `residual0` …, where the matrix has one | `f32`, batch × n |
/// | `y0` …; `y0` alone where there is a gate | `f32`, batch × n |
///
/// With an [`epsilon`](Self::epsilon) the activations are normalised (RMSNorm: Zhang and Sennrich 2019): `x` is
/// replaced by `x · rsqrt(mean(x²) + epsilon) · norm`. They are multiplied by `norm` on their way to shared memory,
/// where their squares are summed too; the common factor is applied to the finished sums, so that `x` is read once.
///
/// A group of eight lanes reads two to eight rows at a time, 16 bytes a lane, and each weight once. The warps of a
/// block divide `k` among themselves and load their own activations to shared memory; there is no block barrier before
/// the final sums.
///
/// # Error
///
/// With `u = 2⁻²⁴`, and a row's weights `w = s · q - m` with the scale `s` and the minimum `m` of their part:
///
/// * exact: `|err| ≤ u · Σ 256 · s / t · |x| + (k / 256 + 48) · u · Σ (s |q| + m) |x|`. A quant is multiplied
///   of up to six bits as `2 + code · t` with `t = 2^(1 - bits)`; the sum over a part's 32 weights begins with
///   `-b Σ x`, where `b ≤ 3` is what the quant 0 is so. Each of its 32 roundings is of at most `(b + 4) Σ |x|`, and
///   the sum of the activations has eight, of `b Σ |x|`. Codes of eight bits are multiplied as they are: the sum
///   begins with `-128 Σ x`, its roundings are of at most `383 Σ |x|`, and in the bound `t` counts as 2⁻⁶. The rest
///   are the sums over slices, lanes and warps. What the bias costs is a bit or two.
/// * weights that are floats: `|err| ≤ (k / 8 + 32) · u · Σ |w x|`.
/// * `int8` and `rounded`: `(k / 256 + 48) · u · Σ (s |q| + m) |x|` for the activations as `int8` has them,
///   since the products within a part are exact (with `q` from 0 for Q4_0). That they are rounded costs
///   `Σ |w| · max |x| / 253`, with the largest of each 32 activations: where a few channels are large, the
///   others lose their bits.
/// * with a gate: of a first product `g` that is off by `e` and a second one `h` that is off by `f`, the result is off
///   by `E · (|h| + f) + |a(g)| · f` and `u` of itself, where `E` is the error of the [`Activation`] of `g` and
///   `e`: at most `1.13 e`, and the activation's own error.
///
/// * with an epsilon: the error of the product with `x · norm`, and `(k / 128 + 16) · u` of the result for the factor.
///
/// Finite activations up to 10⁶ and weights as models have them are far from overflow in all sums.
///
/// Sources: ggml's `mul_mat_vec_q` for the algebra of scales and minima; the layout and the schedule are ours.
#[derive(Clone, Debug, PartialEq, Config)]
#[config(
    doc = "y = w * x + bias + residual for quantised matrices and up to eight columns, or act(w0 * x) * (w1 * x)",
    examples(
        "n=4096 k=14336",
        "n=14336 k=4096 warps=2",
        "n=4096 k=14336 activations=int8",
        "n=14336 k=4096 activations=int8 warps=2",
        "n=4096 k=14336 format=q6_k residual=true",
        "n=4096 k=14336 format=q6_k activations=int8",
        "n=896 k=896 format=q5_0",
        "n=128256 k=2048 format=q6_k warps=2",
        "n=8192+8192 k=2048 gate=silu warps=2",
        "n=8192+8192 k=2048 gate=silu activations=int8 warps=2",
        "n=10240+10240 k=2560 gate=gelu_tanh warps=1",
        "n=1536+256+256 k=1536 format=q4_k+q4_k+q6_k bias=true",
        "n=4096 k=4096 batch=2",
        "n=4096 k=4096 batch=4",
        "n=4096 k=4096 batch=8",
        "n=4096 k=4096 batch=8 activations=int8",
        "n=4096 k=4096 batch=8 format=q6_k",
        "n=4096 k=4096 batch=8 format=f16",
        "n=4096 k=14336 activations=rounded",
        "n=8192 k=28672",
        "n=3584 k=18944 format=q6_k",
        "n=4096 k=14336 warps=14 rows=8",
        "n=4096 k=14336 format=q6_k warps=14 rows=8",
        "n=14336+14336 k=4096 gate=silu warps=4 rows=8",
        "n=1 k=256",
        "n=17 k=1056 format=q8_0 batch=3",
        "n=33 k=77 format=bf16 batch=5",
        "n=2048+512+512 k=2048 format=q4_k+q4_k+q6_k epsilon=1e-5",
        "n=1536+256+256 k=1536 epsilon=1e-6 bias=true format=q4_k+q4_k+q6_k",
        "n=14336+14336 k=4096 gate=silu epsilon=1e-5 warps=2",
        "n=14336+14336 k=4096 gate=silu activations=rounded epsilon=1e-5 warps=2",
        "n=4096 k=4096 format=q8_0 batch=2 epsilon=1e-5",
        "n=4096 k=4096 format=f16 epsilon=1e-5"
    )
)]
pub struct QuantGemv {
    /// Columns of the matrices: a multiple of each format's block.
    #[field(range = 1..=MAX_COLUMNS, default = 4096)]
    pub k: u32,
    /// One to four matrices.
    #[field(table, max = MAX_MATRICES as u32)]
    pub matrices: Vec<Matrix>,
    /// The activation `a` of the gate, if two matrices of one shape and format make one result, `a(W₀ x) · (W₁ x)`.
    #[field(default = "none")]
    pub gate: Option<Activation>,
    /// Columns of activations.
    #[field(range = 1..=MAX_BATCH, default = 1)]
    pub batch: u32,
    /// Added to the mean square, if the activations are normalised first.
    #[field(none = "none", range = 0.0..=1e30, default = "none")]
    pub epsilon: Option<f32>,
    /// The form of the activations.
    #[field(default = "exact")]
    pub activations: Activations,
    /// Warps of a block: `None` for about eight, as the slices of a row can be shared evenly. How many keep a device
    /// busy is a [choice](crate::tune::GemvShape).
    #[field(none = "auto", range = 1..=MAX_WARPS, default = "auto")]
    pub warps: Option<u32>,
    /// Rows that eight lanes work on at a time, of both matrices where there is a gate: `None` for as many as there are
    /// registers for, and 4 instead of 8 for fewer than 2048 rows, gates and exact activations. More read activations less
    /// often, and are fewer tiles.
    #[field(none = "auto", domain = Domain::OneOf(&["auto", "2", "4", "8"]), default = "auto")]
    pub rows: Option<u32>,
}

/// The arguments of [`QuantGemv`]: lists have an element for each matrix.
#[derive(Args)]
#[args(of = QuantGemv)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct QuantGemvArgs<M: Mode> {
    #[arg(len = of.inputs(1), when = of.activations != Activations::Int8)]
    pub x: Option<M::In<f32>>,
    #[arg(len = of.inputs(1), when = of.activations == Activations::Int8)]
    pub x_quants: Option<M::In<i8>>,
    #[arg(len = of.inputs(BLOCK), when = of.activations == Activations::Int8)]
    pub x_scales: Option<M::In<f32>>,
    #[arg(len = of.k, when = of.epsilon.is_some(), constant)]
    pub norm: Option<M::In<f32>>,
    #[arg(len = of.weights(i), count = of.matrices.len(), names("w0", "w1", "w2", "w3"), constant)]
    pub w: Vec<M::In<u8>>,
    #[arg(
        len = of.matrices[i].n,
        count = of.matrices.len(),
        names("bias0", "bias1", "bias2", "bias3"),
        when = of.matrices[i].bias,
        constant
    )]
    pub bias: Vec<Option<M::In<f32>>>,
    #[arg(
        len = of.results(i),
        count = of.matrices.len(),
        names("residual0", "residual1", "residual2", "residual3"),
        when = of.matrices[i].residual
    )]
    pub residual: Vec<Option<M::In<f32>>>,
    #[arg(
        len = of.results(i),
        count = of.matrices.len(),
        names("y0", "y1", "y2", "y3"),
        when = i == 0 || of.gate.is_none(),
        shares = if of.matrices[i].residual { &RESIDUALS[i..=i] } else { &[] }
    )]
    pub y: Vec<Option<M::Out<f32>>>,
}

impl QuantGemv {
    /// The product of one matrix of `n × k` with one column of `f32`.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        QuantGemv { k, matrices: vec![Matrix::new(format, n)], ..Self::default() }
    }

    /// The products with the results, in the order of the tiles, and how many tiles they are.
    fn products(&self) -> (Vec<Product>, u64) {
        let product = |matrix: &Matrix| Product {
            format: matrix.format,
            n: matrix.n,
            k: self.k,
            // What `check` refuses is not multiplied out.
            batch: self.batch.clamp(1, MAX_BATCH),
            gate: self.gate,
            exact: self.activations == Activations::Exact,
            epsilon: self.epsilon,
            warps: 1,
            rows: self.rows,
        };
        let results = if self.gate.is_some() { 1 } else { self.matrices.len() };
        let mut products: Vec<_> = self.matrices.iter().take(results).map(product).collect();
        let tiles = products.iter().map(|product| u64::from(product.tiles())).sum();
        let near = |first: &Product| first.warps_near(WARPS, max_warps(&products, STATIC_SHARED));
        let warps = self.warps.or(products.first().map(near)).unwrap_or(1).clamp(1, MAX_WARPS);
        products.iter_mut().for_each(|product| product.warps = warps);
        (products, tiles)
    }

    /// Tiles of the launch.
    pub(crate) fn tiles(&self) -> u64 {
        self.products().1
    }

    /// About as many warps as are wanted, as the slices of a row can be shared evenly and shared memory allows.
    pub(crate) fn warps_near(&self, wanted: u32) -> u32 {
        let (products, _) = self.products();
        products.first().map_or(1, |first| first.warps_near(wanted, max_warps(&products, STATIC_SHARED)))
    }

    /// Elements of the activations, of which so many count as one.
    fn inputs(&self, of: u32) -> Extent {
        Extent::new(u64::from(self.batch) * u64::from(self.k / of))
    }

    /// Bytes of matrix `i`.
    fn weights(&self, i: usize) -> Extent {
        let Matrix { format, n, .. } = self.matrices[i];
        Extent::new(Planes::new(format, n, self.k).bytes())
    }

    /// Elements of its result.
    fn results(&self, i: usize) -> Extent {
        Extent::new(u64::from(self.matrices[i].n) * u64::from(self.batch))
    }
}

/// Maximum number of warps of a block with this much shared memory, in bytes.
fn max_warps(products: &[Product], shared: u32) -> u32 {
    products.iter().map(|product| product.max_warps(shared)).min().unwrap_or(1)
}

impl Kernel for QuantGemv {
    type Args<M: Mode> = QuantGemvArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let (products, tiles) = self.products();
        let Some(first) = products.first() else { return LaunchRule::new(32) };
        let mut rule = LaunchRule::new(first.warps * 32).grid(Extent::new(tiles)).any_warps();
        rule.resident_blocks = first.resident_warps().map(|resident| (resident / first.warps).max(1));
        rule
    }

    fn check(&self) -> Result<(), BuildError> {
        for &Matrix { format, .. } in &self.matrices {
            format.check_row("k", self.k)?;
            if self.activations != Activations::Exact && format.is_float() {
                let rule = format!("exact, since weights of {format} are not quants");
                return Err(BuildError::field("activations", self.activations, rule));
            }
        }
        match (self.gate, &self.matrices[..]) {
            (Some(gate), [one, other]) if (one.format, one.n) != (other.format, other.n) => {
                let rule = "none, since the two matrices differ in format or rows";
                return Err(BuildError::field("gate", gate, rule));
            }
            (Some(_), [_, other]) if other.residual => {
                let rule = "false for the second matrix, which has no result";
                return Err(BuildError::field("residual", true, rule));
            }
            (None, _) | (_, [_, _]) => {}
            (Some(gate), _) => {
                return Err(BuildError::field("gate", gate, "none, since there are not two matrices"));
            }
        }
        if let (Some(_), Activations::Int8) = (self.epsilon, self.activations) {
            let rule = "exact or rounded, since activations are quantised after they are normalised";
            return Err(BuildError::field("activations", self.activations, rule));
        }
        let max = max_warps(&self.products().0, SHARED);
        let fit = self.products().0.iter().map(Product::max_rows).min().unwrap_or(8);
        if let Some(rows) = self.rows.filter(|&rows| rows > fit) {
            let rule = format!("{fit} at most, which there are registers for");
            return Err(BuildError::field("rows", rows, rule));
        }
        if let Some(warps) = self.warps.filter(|warps| !(1..=max).contains(warps)) {
            let rule = format!("from 1 to {max}, so that the activations of a block fit its shared memory");
            return Err(BuildError::field("warps", warps, rule));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: QuantGemvArgs<Body<'k>>) {
        let x = match (args.x, args.x_quants, args.x_scales) {
            (Some(x), ..) => Source::Floats { x, norm: args.norm },
            (None, Some(quants), Some(scales)) => Source::Bytes { quants: quants.cast(), scales },
            _ => return,
        };
        let (mut products, _) = self.products();
        products.iter_mut().for_each(|product| product.warps = k.threads() / 32);
        let tiles: Vec<_> = products.iter().map(Product::tiles).collect();
        // The block's tile, of whichever matrix it belongs to.
        k.pieces(&tiles, |i, tile| {
            let (Some(y), residual) = (args.y[i], args.residual[i]) else { return };
            let own = if self.gate.is_some() { 0..2 } else { i..i + 1 };
            let weights = args.w[own.clone()].iter().map(|weights| weights.no_allocate()).collect();
            products[i].run(k, tile, &Operands { x, weights, bias: args.bias[own].to_vec(), residual, y });
        });
    }
}
