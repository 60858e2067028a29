//! The kernels: configuration, arguments, launch rule.

use super::activations::Source;
use super::epilogue::Output;
use super::format::Layout;
use super::plan;
use super::size::WARPS;
use super::tile::{Operands, Product};
use crate::weights::{Planes, WeightFormat};
use std::sync::Arc;
use std::{fmt, slice};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// Bytes of shared memory that a block has without asking, and that every device has for it.
const STATIC_SHARED: u32 = 48 * 1024;
const SHARED: u32 = 64 * 1024;
/// Largest shapes.
pub(super) const MAX_ROWS: u32 = 1 << 24;
pub(super) const MAX_COLUMNS: u32 = 1 << 20;
pub(super) const MAX_BATCH: u32 = 8;
/// Most matrices of a launch.
pub(super) const MAX_MATRICES: usize = 4;
const WEIGHTS: [&str; MAX_MATRICES] = ["w0", "w1", "w2", "w3"];
const BIASES: [&str; MAX_MATRICES] = ["bias0", "bias1", "bias2", "bias3"];
const RESIDUALS: &[&str; MAX_MATRICES] = &["residual0", "residual1", "residual2", "residual3"];
const RESULTS: [&str; MAX_MATRICES] = ["y0", "y1", "y2", "y3"];
/// The arguments of which each matrix has its own.
pub(super) const MATRIX_NAMES: [[&str; MAX_MATRICES]; 4] = [WEIGHTS, BIASES, *RESIDUALS, RESULTS];

/// How a [`QuantGemv`] takes its activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum Activations {
    /// `f32`: nothing is rounded before it is multiplied.
    Exact,
    /// `q8_1`: signed bytes with an `f32` scale and sum for each 32, as
    /// [`QuantizeQ8_1`](crate::QuantizeQ8_1) makes them. About two and a half times fewer instructions, for an
    /// error of up to 2⁻⁸ of the largest of each 32 activations.
    Int8,
    /// `f32` that each block quantises for itself on the way to shared memory: the error of
    /// [`Int8`](Self::Int8) without a kernel before this one, for a few instructions more.
    Rounded,
}

impl Activations {
    /// All of them.
    pub const ALL: [Activations; 3] = [Activations::Exact, Activations::Int8, Activations::Rounded];
    pub(super) const NAMES: &'static [&'static str] = &["exact", "int8", "rounded"];

    /// Its name: `exact`, `int8` or `rounded`.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Activations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A matrix of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub struct Matrix {
    /// How its weights are stored.
    pub format: WeightFormat,
    /// Its rows.
    pub n: u32,
    /// Whether a bias is added to its rows.
    pub bias: bool,
    /// Whether a vector is added to its result.
    pub residual: bool,
}

impl Matrix {
    /// A matrix of `n` rows, with nothing added to its product.
    pub fn new(format: WeightFormat, n: u32) -> Self {
        Matrix { format, n, bias: false, residual: false }
    }
}

/// `yᵢ = Wᵢ · x + biasᵢ + residualᵢ` for each matrix of the launch, or `y₀ = silu(W₀ · x) · (W₁ · x)`.
///
/// `Wᵢ` is `n × k` in the planes of `docs/weights.md`; there are `batch` columns of activations, each of `k`
/// side by side, and each result has `batch` rows of `n`. Biases have `n` elements, residuals as many as the
/// result, which may be the same buffer.
///
/// | argument | elements |
/// | --- | --- |
/// | `x` (exact, rounded) | `f32`, batch × k |
/// | `x_quants`, `x_scales`, `x_sums` (int8) | `i8`, batch × k; `f32`, batch × k / 32, twice |
/// | `w0` … | bytes: [`Planes::bytes`] |
/// | `bias0` …, where the matrix has one | `f32`, n |
/// | `residual0` …, where the matrix has one | `f32`, batch × n |
/// | `y0` …; `y0` alone for SwiGLU | `f32`, batch × n |
///
/// A group of eight lanes reads four rows at a time, 16 bytes a lane, and each weight once. The warps of a block
/// divide `k` among themselves and bring their own activations to shared memory; nothing waits for the block
/// before the sums are added up.
///
/// # Error
///
/// With `u = 2⁻²⁴`, and a row's weights `w = s · q - m` with the scale `s` and the minimum `m` of their part:
///
/// * exact: `|err| ≤ u · Σ 256 · s / t · |x| + (k / 256 + 48) · u · Σ (s |q| + m) |x|`. A quant is multiplied
///   as `b + q · t`, where `t` is 2⁻³ for four bits, 2⁻⁴, 2⁻⁵ and 2⁻⁸ for five, six and eight, and `b ≤ 3`;
///   the sum over a part's 32 weights begins with `-b Σ x`. Each of its 32 roundings is of at most
///   `(b + 4) Σ |x|`, and the sum of the activations has eight, of `b Σ |x|`. The rest are the sums over
///   slices, lanes and warps. `1 / t` is about half of the largest quant for four and five bits, the same for
///   six, and twice that for eight: what the bias costs is a bit or two.
/// * weights that are floats: `|err| ≤ (k / 8 + 32) · u · Σ |w x|`.
/// * `int8` and `rounded`: `(k / 256 + 48) · u · Σ (s |q| + m) |x|` for the activations as `q8_1` has them,
///   since the products within a part are exact (with `q` from 0 for Q4_0). That they are rounded costs
///   `Σ |w| · max |x| / 253`, with the largest of each 32 activations: where a few channels are large, the
///   others lose their bits.
///
/// Finite activations up to 10⁶ and weights as models have them are far from overflow in all sums.
///
/// Sources: ggml's `mul_mat_vec_q` for the algebra of scales and minima; the layout and the schedule are ours.
#[derive(Clone, Debug, PartialEq, warpwright_dsl::KeyPart)]
pub struct QuantGemv {
    /// Columns of the matrices: a multiple of each format's block.
    pub k: u32,
    /// One to four matrices.
    pub matrices: Vec<Matrix>,
    /// Whether two matrices of one shape and format make one result, `silu(W₀ x) · (W₁ x)`.
    pub swiglu: bool,
    /// Columns of activations: 1 to 8.
    pub batch: u32,
    /// What the activations are.
    pub activations: Activations,
    /// Warps of a block; chosen by the shape where it is `None`.
    pub warps: Option<u32>,
}

impl QuantGemv {
    /// The product of one matrix of `n × k` with one column of `f32`.
    pub fn new(format: WeightFormat, n: u32, k: u32) -> Self {
        QuantGemv {
            k,
            matrices: vec![Matrix::new(format, n)],
            swiglu: false,
            batch: 1,
            activations: Activations::Exact,
            warps: None,
        }
    }

    /// The products with the results, in the order of the tiles.
    pub(super) fn products(&self, epsilon: Option<f32>) -> Vec<Product> {
        let exact = self.activations == Activations::Exact;
        // What `check` refuses is not multiplied out.
        let product = |matrix: &Matrix| Product {
            format: matrix.format,
            n: matrix.n.min(MAX_ROWS),
            k: self.k.min(MAX_COLUMNS),
            batch: self.batch.clamp(1, MAX_BATCH),
            swiglu: self.swiglu,
            exact,
            epsilon,
            warps: 1,
        };
        let results = if self.swiglu { 1 } else { self.matrices.len() };
        let mut products: Vec<_> = self.matrices.iter().take(results).map(product).collect();
        let tiles: u64 = products.iter().map(|product| u64::from(product.tiles())).sum();
        let most = products.iter().map(|product| product.most_warps(STATIC_SHARED)).min().unwrap_or(1);
        let warps = match (self.warps, products.first()) {
            (Some(warps), _) => warps.clamp(1, plan::MAX_WARPS),
            (None, Some(first)) => plan::warps(Layout::new(first.format), first.k, tiles, most),
            (None, None) => 1,
        };
        products.iter_mut().for_each(|product| product.warps = warps);
        products
    }

    /// The configuration as part of a name.
    pub(super) fn name(&self) -> String {
        let QuantGemv { k, batch, activations, .. } = self;
        let mut name = format!("k{k}_b{batch}_{activations}");
        for Matrix { format, n, bias, residual } in &self.matrices {
            let flag = |is, text| if is { text } else { "" };
            name += &format!("_{format}_n{n}{}{}", flag(*bias, "_bias"), flag(*residual, "_residual"));
        }
        if self.swiglu {
            name += "_swiglu";
        }
        if let Some(warps) = self.warps {
            name += &format!("_w{warps}");
        }
        name
    }

    pub(super) fn arguments(&self, norm: bool) -> Vec<ArgDesc> {
        let (batch, k) = (u64::from(self.batch.min(MAX_BATCH)), u64::from(self.k.min(MAX_COLUMNS)));
        let mut args = match self.activations {
            Activations::Exact | Activations::Rounded => {
                vec![ArgDesc::input::<f32>("x", Extent::new(batch * k))]
            }
            Activations::Int8 => vec![
                ArgDesc::input::<i8>("x_quants", Extent::new(batch * k)),
                ArgDesc::input::<f32>("x_scales", Extent::new(batch * (k / 32))),
                ArgDesc::input::<f32>("x_sums", Extent::new(batch * (k / 32))),
            ],
        };
        if norm {
            args.push(ArgDesc::input::<f32>("norm", Extent::new(k)).constant());
        }
        for (i, matrix) in self.matrices.iter().take(MAX_MATRICES).enumerate() {
            let n = matrix.n.min(MAX_ROWS);
            let bytes = Planes::new(matrix.format, n, k as u32).bytes();
            args.push(ArgDesc::input::<u8>(WEIGHTS[i], Extent::new(bytes)).constant());
            let n = u64::from(n);
            if matrix.bias {
                args.push(ArgDesc::input::<f32>(BIASES[i], Extent::new(n)).constant());
            }
            if matrix.residual {
                args.push(ArgDesc::input::<f32>(RESIDUALS[i], Extent::new(batch * n)));
            }
            if !(self.swiglu && i > 0) {
                let result = ArgDesc::output::<f32>(RESULTS[i], Extent::new(batch * n));
                args.push(if matrix.residual {
                    result.may_share(slice::from_ref(&RESIDUALS[i]))
                } else {
                    result
                });
            }
        }
        args
    }

    pub(super) fn rule(&self, epsilon: Option<f32>) -> LaunchRule {
        let products = self.products(epsilon);
        let tiles: u64 = products.iter().map(|product| u64::from(product.tiles())).sum();
        let warps = products.first().map_or(1, |product| product.warps);
        let mut rule = LaunchRule::new(warps * 32).grid(Extent::new(tiles));
        rule.resident_blocks =
            products.first().and_then(|product| Some((product.resident_warps()? / warps).max(1)));
        rule
    }

    pub(super) fn judge(&self) -> Result<(), BuildError> {
        let count = self.matrices.len();
        if !(1..=MAX_MATRICES).contains(&count) {
            return Err(BuildError::field("matrices", count, format!("from 1 to {MAX_MATRICES}")));
        }
        if !(1..=MAX_BATCH).contains(&self.batch) {
            return Err(BuildError::field("batch", self.batch, format!("from 1 to {MAX_BATCH}")));
        }
        if !(1..=MAX_COLUMNS).contains(&self.k) {
            return Err(BuildError::field("k", self.k, format!("from 1 to {MAX_COLUMNS}")));
        }
        for matrix in &self.matrices {
            let (format, block) = (matrix.format, matrix.format.block());
            if !self.k.is_multiple_of(block) {
                return Err(BuildError::field(
                    "k",
                    self.k,
                    format!("a multiple of {block}, the block of {format}"),
                ));
            }
            if !(1..=MAX_ROWS).contains(&matrix.n) {
                return Err(BuildError::field("n", matrix.n, format!("from 1 to {MAX_ROWS}")));
            }
            if self.activations != Activations::Exact && format.is_float() {
                let rule = format!("exact, since weights of {format} are not quants");
                return Err(BuildError::field("activations", self.activations, rule));
            }
        }
        if self.swiglu {
            let [one, other] = self.matrices[..] else {
                return Err(BuildError::field("swiglu", true, "false, since there are not two matrices"));
            };
            if (one.format, one.n) != (other.format, other.n) {
                return Err(BuildError::field(
                    "swiglu",
                    true,
                    "false, since the two matrices differ in format or rows",
                ));
            }
            if other.residual {
                return Err(BuildError::field(
                    "residual",
                    true,
                    "false for the second matrix, which has no result",
                ));
            }
        }
        let products = self.products(None);
        let most = products.iter().map(|product| product.most_warps(SHARED)).min().unwrap_or(1);
        if let Some(warps) = self.warps
            && !(1..=most).contains(&warps)
        {
            let rule = format!("from 1 to {most}, so that the activations of a block fit its shared memory");
            return Err(BuildError::field("warps", warps, rule));
        }
        Ok(())
    }

    /// The block's tile, of whichever matrix it belongs to.
    pub(super) fn run(&self, k: K<'_>, epsilon: Option<f32>) {
        let x = match self.activations {
            Activations::Exact | Activations::Rounded => {
                let x = k.ptr("x").nc();
                Source::Floats { x, norm: epsilon.map(|_| k.ptr("norm")) }
            }
            Activations::Int8 => Source::Q8_1 {
                quants: k.ptr::<i8>("x_quants").nc().cast(),
                scales: k.ptr("x_scales").nc(),
                sums: k.ptr("x_sums").nc(),
            },
        };
        let operands: Vec<_> = (self.matrices.iter().enumerate())
            .map(|(i, matrix)| {
                let weights = k.ptr::<u8>(WEIGHTS[i]).no_allocate();
                let bias = matrix.bias.then(|| k.ptr::<f32>(BIASES[i]));
                let residual = matrix.residual.then(|| k.ptr::<f32>(RESIDUALS[i]));
                let y = (!(self.swiglu && i > 0)).then(|| k.ptr_mut::<f32>(RESULTS[i]));
                (weights, bias, residual, y)
            })
            .collect();
        let products = self.products(epsilon);
        let words = products.iter().map(Product::scratch_words).max().unwrap_or(0);
        let warps = products.first().map_or(1, |product| product.warps);
        let shared = k.size(WARPS, warps).known().map(|_| k.shared::<f32>(words.max(1)));
        let mut first = 0;
        for (i, product) in products.iter().enumerate() {
            let (weights, bias, residual, Some(y)) = operands[i] else { continue };
            let second = if self.swiglu { operands.get(1) } else { None };
            let operands = Operands {
                x,
                weights: (weights, second.map(|operand| operand.0)),
                output: Output { y, bias: [bias, second.and_then(|operand| operand.1)], residual },
            };
            let tile = k.ctaid() - first;
            let scratch = product.scratch(k, shared);
            let run = || product.run(k, tile, scratch, operands);
            let end = first + product.tiles();
            match (i == 0, i + 1 == products.len()) {
                (true, true) => run(),
                (true, false) => k.when(k.ctaid().lt(end), run),
                (false, true) => k.when(k.ctaid().ge(first), run),
                (false, false) => k.when(k.ctaid().ge(first) & k.ctaid().lt(end), run),
            }
            first = end;
        }
    }
}

impl AnyKernel for QuantGemv {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        format!("quant_gemv_{}", self.name())
    }

    fn args(&self) -> Vec<ArgDesc> {
        self.arguments(false)
    }

    fn launch(&self) -> LaunchRule {
        self.rule(None)
    }

    fn check(&self) -> Result<(), BuildError> {
        self.judge()
    }

    fn body(&self, k: K<'_>) {
        self.run(k, None);
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        self.open_sizes(None)
    }

    fn called(&self, threads: u32) -> Option<Vec<Called>> {
        let called = |(kernel, args)| Called { kernel: Arc::new(kernel), args };
        Some(self.parts(None, threads)?.into_iter().map(called).collect())
    }
}

/// A [`QuantGemv`] of normalised activations: `x · rsqrt(mean(x²) + epsilon) · norm` in the place of `x`
/// (RMSNorm: Zhang and Sennrich 2019).
///
/// The activations are multiplied by `norm` on their way to shared memory, where their squares are summed too;
/// the factor that all have in common is applied to the finished sums, so that `x` is read once. After `x` comes
/// the argument `norm`, `f32`, k. The error is that of the product with `x · norm`, and `(k / 128 + 16) · 2⁻²⁴`
/// of the result for the factor.
#[derive(Clone, Debug, PartialEq, warpwright_dsl::KeyPart)]
pub struct FusedNormGemv {
    /// The product.
    pub gemv: QuantGemv,
    /// Added to the mean square: zero or more.
    pub epsilon: f32,
}

impl FusedNormGemv {
    /// The product of one matrix of `n × k` with one normalised column of `f32`.
    pub fn new(format: WeightFormat, n: u32, k: u32, epsilon: f32) -> Self {
        FusedNormGemv { gemv: QuantGemv::new(format, n, k), epsilon }
    }
}

impl AnyKernel for FusedNormGemv {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        format!("fused_norm_gemv_{}_e{:08x}", self.gemv.name(), self.epsilon.to_bits())
    }

    fn args(&self) -> Vec<ArgDesc> {
        self.gemv.arguments(true)
    }

    fn launch(&self) -> LaunchRule {
        self.gemv.rule(Some(self.epsilon))
    }

    fn check(&self) -> Result<(), BuildError> {
        self.gemv.judge()?;
        if self.gemv.activations == Activations::Int8 {
            let rule = "exact or rounded, since activations are quantised after they are normalised";
            return Err(BuildError::field("activations", self.gemv.activations, rule));
        }
        if !(0.0..=1e30).contains(&self.epsilon) {
            return Err(BuildError::field("epsilon", self.epsilon, "from 0 to 1e30"));
        }
        Ok(())
    }

    fn body(&self, k: K<'_>) {
        self.gemv.run(k, Some(self.epsilon));
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        self.gemv.open_sizes(Some(self.epsilon))
    }

    fn called(&self, threads: u32) -> Option<Vec<Called>> {
        let called = |(gemv, args)| {
            let kernel = Arc::new(FusedNormGemv { gemv, epsilon: self.epsilon });
            Called { kernel, args }
        };
        Some(self.gemv.parts(Some(self.epsilon), threads)?.into_iter().map(called).collect())
    }
}
