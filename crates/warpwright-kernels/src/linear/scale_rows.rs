//! Activations for the tensor cores: scaled halves that can hold any finite `f32`.

use crate::data::floats::{Dtype, Floats, HALVES};
use warpwright_dsl::*;

/// Converts activations for [`Gemm`](crate::Gemm) and [`QuantGemm`](crate::QuantGemm) to rows of halves with a scale
/// each, once for all products with the same `x`. One block per row.
///
/// `x` is `tokens × d`, row-major, of type `dtype`. The outputs are
///
/// - `scales`, an `f32` for each token: the power of two that puts the row's largest magnitude between 2¹⁴ and
///   2¹⁵ (no smaller than 2⁻¹²⁶, and 2⁻¹²⁶ for a row of zeros);
/// - `halves`, `tokens × terms × pitch` of type `half`, where `pitch` is `d` rounded up to a multiple of 64 and
///   elements beyond `d` are zero. The first split term is `x / scale`, rounded; the second is the remainder, rounded.
///
/// Division by the scale is exact, so with `u = 2⁻¹¹` for `f16` and `2⁻⁸` for `bf16`
///
/// ```text
/// |x - scale · Σ terms| ≤ max(u^terms · |x|, 2⁻³⁹ · max|row|)       f16
/// |x - scale · Σ terms| ≤ max(u^terms · |x|, 2⁻¹⁴⁷ · max|row|)      bf16
/// ```
///
/// The second bound comes from the smallest half, 2⁻²⁵ after rounding, times the scale. `x` is finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "rows of activations as halves with a scale, for products on the tensor cores",
    examples(
        "d=2048 terms=2",
        "d=1536 dtype=bf16",
        "d=14336 dtype=f16 terms=2",
        "d=1 half=bf16 terms=2",
        "d=1048576 half=bf16"
    )
)]
pub struct ScaleRows {
    /// Length of a row.
    #[field(range = 1..=1 << 24, default = 4096)]
    pub d: u32,
    /// Element type of `x`.
    #[field(default = "f32")]
    pub dtype: Dtype,
    /// Element type of the terms.
    #[field(domain = HALVES, default = "f16")]
    pub half: Dtype,
    /// Halves that each number is the sum of: 1 or 2.
    #[field(range = 1..=2, default = 1)]
    pub terms: u32,
}

/// The arguments of [`ScaleRows`].
#[derive(Args)]
#[args(of = ScaleRows)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct ScaleRowsArgs<M: Mode> {
    #[arg(len = tokens.times(of.d.into()), dtype = of.dtype.ty())]
    pub x: M::AnyIn,
    #[arg(len = tokens.times(u64::from(of.terms) * u64::from(of.pitch())), dtype = of.half.ty())]
    pub halves: M::AnyOut,
    #[arg(len = tokens)]
    pub scales: M::Out<f32>,
    pub tokens: M::Dim,
}

/// Threads of a block.
const THREADS: u32 = 256;
/// Elements that a thread takes at a time.
const VECTOR: u32 = 8;
/// What the pitch is a multiple of: what a product takes of a row at a time.
const STEP: u32 = 64;

/// Elements of a row of prepared activations.
pub(crate) fn pitch(d: u32) -> u32 {
    d.checked_next_multiple_of(STEP).unwrap_or(u32::MAX)
}

impl ScaleRows {
    /// Rows of `d` numbers of `f32`, as one term of `f16`.
    pub fn new(d: u32) -> Self {
        ScaleRows { d, dtype: Dtype::F32, half: Dtype::F16, terms: 1 }
    }

    /// Elements of a row of `halves`, one term.
    pub fn pitch(&self) -> u32 {
        pitch(self.d)
    }
}

impl Kernel for ScaleRows {
    type Args<M: Mode> = ScaleRowsArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(THREADS).grid(Extent::dim("tokens"))
    }

    fn body<'k>(&self, k: K<'k>, ScaleRowsArgs { x, halves, scales, .. }: ScaleRowsArgs<Body<'k>>) {
        let (d, pitch) = (self.d, self.pitch());
        let x = Floats::from(x).at(k.ctaid() * d);
        let halves = Floats::from(halves).at(k.ctaid() * (self.terms * pitch));
        // A vector of the row; zeros beyond its end.
        let load = |i: Reg<'k, u32>| -> Vec<Reg<'k, f32>> {
            if d.is_multiple_of(VECTOR) {
                let inside = i.lt(d / VECTOR);
                return x.ld_vec_if(inside, i * VECTOR, VECTOR);
            }
            (0..VECTOR).map(|j| x.ld_if((i * VECTOR + j).lt(d), i * VECTOR + j)).collect()
        };

        let vectors = k.strided(pitch / VECTOR);
        let largest = k.fold(vectors, k.f32(0.0), |i, largest| {
            load(i).into_iter().fold(largest, |largest, x| largest.max(x.abs()))
        });
        let largest = k.block_max(largest);
        // Powers of two by their exponents: `scale` is 2^(e - 14) for a largest of 2^e and more.
        let exponent = (largest.bits::<u32>() >> 23).max(15) - 14;
        let scale = (exponent << 23).bits::<f32>();
        let inverse = ((k.u32(254) - exponent) << 23).bits::<f32>();
        k.when(k.tid().eq(0), || scales.st(k.ctaid(), scale));

        k.each(vectors, |i| {
            let mut rest: Vec<_> = load(i).into_iter().map(|x| x * inverse).collect();
            for term in 0..self.terms {
                halves.at(term * pitch).st_vec(i * VECTOR, &rest);
                for x in &mut rest {
                    *x = *x - self.half.round(*x);
                }
            }
        });
    }
}
