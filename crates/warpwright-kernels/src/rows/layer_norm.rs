//! Normalisation by mean and variance.

use crate::data::floats::{Dtype, Floats};
use crate::rows::row::{RowChunk, Walk, threads_for, vector};
use warpwright_dsl::*;

/// `y = (x − mean(x)) · rsqrt(variance(x) + epsilon) · w + b` over rows of length `d` (Ba, Kiros and Hinton 2016); one
/// block per row. The variance is the mean of `(x − mean)²`.
///
/// `x` and `y` are `rows × d`, row-major; `w` and, where there is a bias, `b` have `d` elements.
///
/// A row is read once if a thread's part is at most 32 numbers, otherwise three times, by 16 bytes if the type and `d`
/// allow it: deviations are computed from the mean itself, so that rows far from zero keep their digits. Sums are in
/// `f32`, so that numbers up to 10¹⁵ have a finite result.
///
/// With `n = ⌈d / columns⌉ + 7` numbers to a column, `r = rsqrt(variance + epsilon)` and `z = (x − mean) · r` the error of
/// `y` is at most `((n / 2 + 12) |z · w| + |y|) · 2⁻²⁴ + |w| · e · (1 + |z| · e / 2)`, where
/// `e = (n + 12) · 2⁻²⁴ · r · mean(|x|)`, and one rounding to its type. `e` is what the mean errs, in deviations: `n` and ten
/// sums and a quotient; it shifts `x − mean`, and adds its square to the variance. The first term is the rounding of a
/// deviation, half of what `n` squares and twelve sums and quotients err, the root's approximation (2⁻²²·⁹) and a product.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "y = (x - mean) * rsqrt(variance + epsilon) * w + b over rows, one block per row",
    examples(
        "d=768",
        "d=1280 dtype=f16 weight=f16 output=f16 threads=96",
        "d=5120 bias=false dtype=bf16 weight=bf16 output=bf16 threads=512",
        "d=33 epsilon=1e-6 threads=96",
        "d=1",
        "d=1048576 threads=1024 dtype=f16",
        "d=4096 columns=512 threads=256"
    )
)]
pub struct LayerNorm {
    /// Length of a row.
    #[field(range = 1..=1 << 20, default = 4096)]
    pub d: u32,
    /// Added to the variance. It is not zero: the deviations of equal numbers are what their mean errs.
    #[field(range = 1e-12..=1e30, default = 1e-5)]
    pub epsilon: f32,
    /// Whether `b` is added.
    #[field(default = true)]
    pub bias: bool,
    /// Element type of `x`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// Element type of `w` and `b`.
    #[field(default = "f32")]
    pub weight: Dtype,
    /// Element type of `y`.
    #[field(default = "f32")]
    pub output: Dtype,
    /// How many sums are added up beside one another, which is what `y` depends on in its last bits: see
    /// the field of that name of [`RmsNorm`](crate::RmsNorm).
    #[field(none = "auto", range = 32..=1024, multiple_of = 32, default = "auto")]
    pub columns: Option<u32>,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`LayerNorm`].
#[derive(Args)]
#[args(of = LayerNorm)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct LayerNormArgs<M: Mode> {
    #[arg(len = rows.times(of.d.into()), dtype = of.input.ty())]
    pub x: M::AnyIn,
    #[arg(len = of.d, dtype = of.weight.ty(), constant)]
    pub w: M::AnyIn,
    #[arg(len = of.d, dtype = of.bias.then(|| of.weight.ty()), constant)]
    pub b: Option<M::AnyIn>,
    #[arg(len = rows.times(of.d.into()), dtype = of.output.ty())]
    pub y: M::AnyOut,
    pub rows: M::Dim,
}

impl LayerNorm {
    /// Rows of `d` numbers, all in `f32`, with a bias and blocks for which a row is about two rounds.
    pub fn new(d: u32, epsilon: f32) -> Self {
        let (input, weight, output) = (Dtype::F32, Dtype::F32, Dtype::F32);
        let threads = threads_for(d, 4);
        LayerNorm { d, epsilon, bias: true, input, weight, output, columns: None, threads }
    }
}

impl Kernel for LayerNorm {
    type Args<M: Mode> = LayerNormArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("rows")).any_warps()
    }

    fn body<'k>(&self, k: K<'k>, args: LayerNormArgs<Body<'k>>) {
        let (row, d) = (k.ctaid(), k.dim(self.d));
        let x = Floats::from(args.x).row(row, d);
        let (w, b) = (Floats::from(args.w), args.b.map(Floats::from));
        let y = Floats::from(args.y).row(row, d);
        let (epsilon, columns) = (k.factor(self.epsilon), self.columns.unwrap_or(self.threads));
        let vector = vector(self.d, self.input.bytes().max(self.output.bytes()));
        let walk = Walk { k, d, columns, vector };

        let read = |part: &RowChunk<'k>| x.load(part.inside, part.at, vector);
        let (row, sum) = walk.first_sum(read, |part, sum| part.values.iter().fold(sum, |sum, &x| sum + x));
        let mean = sum / d.f32();
        let squares = row.sum(read, |part, sum| {
            part.values.iter().fold(sum, |sum, &x| {
                // Outside of the row there is no deviation.
                let deviation = part.inside.map_or(x - mean, |inside| inside.select(x - mean, 0.0));
                deviation.mul_add(deviation, sum)
            })
        });
        let scale = (squares / d.f32() + epsilon).rsqrt();

        row.each(read, |part| {
            let of_column = |floats: Floats<'k>| floats.load(part.inside, part.at, vector);
            let (w, b) = (of_column(w), b.map(of_column));
            let normal = part.values.iter().zip(w).enumerate().map(|(i, (&x, w))| {
                let z = (x - mean) * scale;
                b.as_ref().map_or(z * w, |b| z.mul_add(w, b[i]))
            });
            y.store(part.inside, part.at, &normal.collect::<Vec<_>>());
        });
    }
}
