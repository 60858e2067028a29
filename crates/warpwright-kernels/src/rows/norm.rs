//! Root-mean-square normalisation.

use crate::data::eight_bits::{BLOCK, quantize};
use crate::data::floats::{Dtype, Floats};
use crate::rows::row::{RowChunk, Walk, threads_for, vector};
use warpwright_dsl::*;

/// `y = h · rsqrt(mean(h²) + epsilon) · w` over rows of length `d` (Zhang and Sennrich 2019), where `h` is
/// `x`, or `x` added to a residual stream; one block per row.
///
/// `x` is `rows × d`, row-major, and so are `residual` and `y`; `w` has `d` elements. With a residual, `h` is `x +
/// residual`, rounded to the residual's type and written back there. `y` is written as floats, as int8 for the integer
/// products that follow, or as both. int8 is `quants` (`rows × d` signed bytes) and `scales`, one for each 32
/// neighbours of a row.
///
/// A row is read once if a thread's part is at most 32 numbers, otherwise twice, by 16 bytes if the type and `d` allow
/// it. Sums are in `f32`, so that rows of any length of numbers up to 10¹⁵ have a finite result, and so have rows of
/// zeros, even with an epsilon of zero. With `n = ⌈d / columns⌉` the relative error of `y` is at most `(n / 2 + 11) ·
/// 2⁻²⁴`, and one rounding to its type: `n` squares and ten partial sums are added, the root halves their error, and
/// the rest is its approximation (2⁻²²·⁹) and two products. For int8, `scale · q` is within `0.501 · scale` of that
/// `y`; blocks whose scale would be below 2⁻¹²⁶ are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "y = h * rsqrt(mean(h^2) + epsilon) * w over rows, where h is x, or the residual with x added to it",
    examples(
        "d=2048 epsilon=1e-5",
        "d=4096 residual=f32 output=none int8=true threads=512",
        "d=1536 epsilon=1e-6 dtype=f16 residual=f32 output=f16",
        "d=3584 dtype=bf16 weight=bf16 residual=bf16 output=bf16 int8=true",
        "d=33 threads=96 dtype=f16 output=bf16",
        "d=1",
        "d=1048576 threads=1024 dtype=f16 residual=f16",
        "d=4096 columns=512 threads=256 residual=f32"
    )
)]
pub struct RmsNorm {
    /// Length of a row.
    #[field(range = 1..=1 << 20, default = 4096)]
    pub d: u32,
    /// Added to the mean square: zero or more.
    #[field(range = 0.0..=1e30, default = 1e-5)]
    pub epsilon: f32,
    /// Element type of `x`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// Element type of `w`.
    #[field(default = "f32")]
    pub weight: Dtype,
    /// Element type of the residual stream that `x` is added to, if there is one.
    #[field(default = "none")]
    pub residual: Option<Dtype>,
    /// Element type of `y`, if it is written as floats.
    #[field(default = "f32")]
    pub output: Option<Dtype>,
    /// Whether `y` is written as int8. `d` is a multiple of 32 then.
    #[field(default = false)]
    pub int8: bool,
    /// Number of parallel sums of squares, which decides the last bits of `y`: a multiple of 32 up to 1024; by default
    /// the number of threads. With the same value, a block with another number of threads has the same result to the
    /// bit.
    #[field(none = "auto", range = 32..=1024, multiple_of = 32, default = "auto")]
    pub columns: Option<u32>,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`RmsNorm`].
#[derive(Args)]
#[args(of = RmsNorm)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct RmsNormArgs<M: Mode> {
    #[arg(len = rows.times(of.d.into()), dtype = of.input.ty())]
    pub x: M::AnyIn,
    #[arg(len = rows.times(of.d.into()), dtype = of.residual.map(Dtype::ty))]
    pub residual: Option<M::AnyInOut>,
    #[arg(len = of.d, dtype = of.weight.ty(), constant)]
    pub w: M::AnyIn,
    #[arg(len = rows.times(of.d.into()), dtype = of.output.map(Dtype::ty))]
    pub y: Option<M::AnyOut>,
    #[arg(len = rows.times(of.d.into()), when = of.int8)]
    pub quants: Option<M::Out<i8>>,
    #[arg(len = rows.times((of.d / BLOCK).into()), when = of.int8)]
    pub scales: Option<M::Out<f32>>,
    pub rows: M::Dim,
}

impl RmsNorm {
    /// Rows of `d` numbers, all in `f32`, with blocks for which a row is about two rounds.
    pub fn new(d: u32, epsilon: f32) -> Self {
        RmsNorm { d, epsilon, threads: threads_for(d, 4), ..Self::default() }
    }

    fn columns(&self) -> u32 {
        self.columns.unwrap_or(self.threads)
    }

    /// Neighbours that a thread takes at a time.
    fn vector(&self) -> u32 {
        let dtypes = [Some(self.input), self.residual, self.output];
        let bytes = dtypes.into_iter().flatten().map(Dtype::bytes).max();
        vector(self.d, bytes.unwrap_or(4))
    }
}

impl Kernel for RmsNorm {
    type Args<M: Mode> = RmsNormArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("rows")).any_warps()
    }

    fn check(&self) -> Result<(), BuildError> {
        let d = self.d;
        if self.int8 && !d.is_multiple_of(BLOCK) {
            return Err(BuildError::field("d", d, "a multiple of 32 where the output is int8"));
        }
        if self.output.is_none() && !self.int8 {
            return Err(BuildError::field("output", "none", "a type where the output is not int8"));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: RmsNormArgs<Body<'k>>) {
        let (row, d) = (k.ctaid(), k.dim(self.d));
        let x = Floats::from(args.x).row(row, d);
        let residual = args.residual.map(|residual| Floats::from(residual).row(row, d));
        let w = Floats::from(args.w);
        let y = args.y.map(|y| Floats::from(y).row(row, d));
        let block = row * (d / BLOCK).reg();
        let int8 =
            args.quants.zip(args.scales).map(|(quants, scales)| (quants.row(row, d), scales.at(block)));
        let (vector, epsilon) = (self.vector(), k.factor(self.epsilon));
        let walk = Walk { k, d, columns: self.columns(), vector };

        let read = |part: &RowChunk<'k>| {
            let x = x.load(part.inside, part.at, vector);
            let Some(stream) = residual else { return x };
            let before = stream.load(part.inside, part.at, vector);
            let h: Vec<_> =
                x.iter().zip(before).map(|(&x, before)| stream.dtype().round(x + before)).collect();
            stream.store(part.inside, part.at, &h);
            h
        };
        let read_again = |part: &RowChunk<'k>| residual.unwrap_or(x).load(part.inside, part.at, vector);

        let (row, squares) =
            walk.first_sum(read, |part, sum| part.values.iter().fold(sum, |sum, &h| h.mul_add(h, sum)));
        let mean = squares / d.f32();
        // A row of zeros stays one where epsilon is zero.
        let scale = (mean + epsilon).max(f32::MIN_POSITIVE).rsqrt();

        row.each(read_again, |part| {
            let w = w.load(part.inside, part.at, vector);
            let normal: Vec<_> = part.values.iter().zip(w).map(|(&h, w)| h * scale * w).collect();
            if let Some(y) = y {
                y.store(part.inside, part.at, &normal);
            }
            if let Some((quants, scales)) = int8 {
                let quantized = quantize(k, &normal, |scale| scale);
                quantized.store(part.inside, quants, part.at);
                let first = quantized.is_first(k);
                let stores = part.inside.map_or(first, |inside| inside & first);
                scales.st_if(stores, part.at / BLOCK, quantized.scale);
            }
        });
    }
}
