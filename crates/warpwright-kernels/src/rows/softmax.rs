//! Softmax over rows.

use crate::data::floats::{Dtype, Floats};
use crate::rows::row::{RowChunk, Walk, threads_for, vector};
use std::f32::consts::LOG2_E;
use warpwright_dsl::*;

/// `y = eˣ / Σ eˣ` over rows of length `d`; one block per row. `x` and `y` are `rows × d`, row-major.
///
/// The maximum is subtracted first, so that no finite input overflows. `-inf` is a mask: its probability is zero, and a
/// row of only `-inf` becomes zeros. `+inf` counts as the largest finite number: several `+inf` of a row share the
/// probability. A row with a NaN becomes NaN.
///
/// A row is read once if a thread's part is at most 32 numbers, otherwise three times, by 16 bytes if the type and `d`
/// allow it. Exponentials have an error of 2 ulp for an argument that was rounded three times, and sums are in `f32`:
/// with `n = ⌈d / columns⌉`, `|err| ≤ (n + 3 (max − x + ln d) + 23) · 2⁻²⁴` of the result, and one rounding to its
/// type; values below 2⁻¹²⁶ may become zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "y = exp(x) / sum(exp(x)) over rows, one block per row",
    examples(
        "d=128256 threads=1024",
        "d=151936 dtype=f16 threads=1024",
        "d=33 dtype=bf16 output=bf16 threads=96",
        "d=1 dtype=f16 output=f16",
        "d=1048576 dtype=bf16 threads=1024",
        "d=1000 columns=128 threads=32"
    )
)]
pub struct Softmax {
    /// Length of a row.
    #[field(range = 1..=1 << 20, default = 4096)]
    pub d: u32,
    /// Element type of `x`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// Element type of `y`.
    #[field(default = "f32")]
    pub output: Dtype,
    /// Number of parallel sums, which decides the last bits of `y`: a multiple of 32 up to 1024; by default the number
    /// of threads. With the same value, a block with another number of threads has the same result to the bit.
    #[field(none = "auto", range = 32..=1024, multiple_of = 32, default = "auto")]
    pub columns: Option<u32>,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`Softmax`].
#[derive(Args)]
#[args(of = Softmax)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct SoftmaxArgs<M: Mode> {
    #[arg(len = rows.times(of.d.into()), dtype = of.input.ty())]
    pub x: M::AnyIn,
    #[arg(len = rows.times(of.d.into()), dtype = of.output.ty())]
    pub y: M::AnyOut,
    pub rows: M::Dim,
}

impl Softmax {
    /// Rows of `d` numbers in `f32`, with blocks for which a row is about two rounds.
    pub fn new(d: u32) -> Self {
        Softmax { d, input: Dtype::F32, output: Dtype::F32, columns: None, threads: threads_for(d, 4) }
    }

    fn columns(&self) -> u32 {
        self.columns.unwrap_or(self.threads)
    }

    /// Neighbours that a thread takes at a time.
    fn vector(&self) -> u32 {
        vector(self.d, self.input.bytes().max(self.output.bytes()))
    }
}

impl Kernel for Softmax {
    type Args<M: Mode> = SoftmaxArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("rows")).any_warps()
    }

    fn body<'k>(&self, k: K<'k>, args: SoftmaxArgs<Body<'k>>) {
        let (row, d) = (k.ctaid(), k.dim(self.d));
        let x = Floats::from(args.x).row(row, d);
        let y = Floats::from(args.y).row(row, d);
        let vector = self.vector();
        let walk = Walk { k, d, columns: self.columns(), vector };

        let read = |part: &RowChunk<'k>| {
            let values = x.load(part.inside, part.at, vector);
            let finite = |x: Reg<'k, f32>| x.gt(f32::MAX).select(f32::MAX, x);
            let masked = |x| part.inside.map_or(x, |inside| inside.select(x, f32::NEG_INFINITY));
            values.into_iter().map(|x| masked(finite(x))).collect()
        };
        // From the smallest finite number on: in a row of masks the others are still infinitely far below.
        let (row, max) =
            walk.first(read, k.f32(f32::MIN), |part, max| part.values.iter().fold(max, |max, &x| max.max(x)));
        let max = k.block_max(max);
        let exp = |x: Reg<'k, f32>| ((x - max) * LOG2_E).exp2();

        let sum = row.sum(read, |part, sum| part.values.iter().fold(sum, |sum, &x| sum + exp(x)));
        let scale = sum.eq(0.0).select(0.0, sum.rcp());

        row.each(read, |part| {
            let shares: Vec<_> = part.values.iter().map(|&x| exp(x) * scale).collect();
            y.store(part.inside, part.at, &shares);
        });
    }
}
