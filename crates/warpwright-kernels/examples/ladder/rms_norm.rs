//! Root-mean-square normalisation.

use std::marker::PhantomData;
use warpwright_dsl::*;

/// `y = x · rsqrt(mean(x²) + epsilon) · w` over rows of length `d` (Zhang and Sennrich 2019); one block
/// per row. `x` and `y` are `rows × d`, row-major, and `w` has `d` elements.
///
/// Sums are in `f32`: `|err| ≤ (d / threads + 12) · 2⁻²⁴` of the result, and one rounding to `T`.
#[derive(Clone, Copy, Debug, Config)]
pub(crate) struct RmsNorm<T> {
    /// Length of a row.
    pub(crate) d: u32,
    /// Added to the mean square.
    pub(crate) epsilon: f32,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub(crate) threads: u32,
    /// Element type of `x`, `w` and `y`.
    pub(crate) element: PhantomData<T>,
}

impl<T> RmsNorm<T> {
    /// Rows of `d` elements of `T`, with blocks of 256 threads.
    pub(crate) fn new(d: u32, epsilon: f32) -> Self {
        RmsNorm { d, epsilon, threads: 256, element: PhantomData }
    }
}

/// The arguments of [`RmsNorm`].
#[derive(Args)]
#[args(of = RmsNorm::<T>)]
pub(crate) struct RmsNormArgs<T: Float, M: Mode> {
    #[arg(len = rows.times(of.d.into()))]
    pub(crate) x: M::In<T>,
    #[arg(len = of.d, constant)]
    pub(crate) w: M::In<T>,
    #[arg(len = rows.times(of.d.into()))]
    pub(crate) y: M::Out<T>,
    pub(crate) rows: M::Dim,
}

impl<T: Float> Kernel for RmsNorm<T> {
    type Args<M: Mode> = RmsNormArgs<T, M>;

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("rows"))
    }

    fn body<'k>(&self, k: K<'k>, RmsNormArgs { x, w, y, .. }: RmsNormArgs<T, Body<'k>>) {
        let d = self.d;
        let row = k.ctaid() * d;
        let (x, y) = (x.at(row), y.at(row));

        let squares = k.fold(k.strided(d).unroll(8), k.f32(0.0), |i, sum| {
            let v = x.ld(i).f32();
            v.mul_add(v, sum)
        });
        let scale = (k.block_sum(squares) / d as f32 + self.epsilon).rsqrt();

        k.each(k.strided(d).unroll(8), |i| {
            y.st(i, (x.ld(i).f32() * scale * w.ld(i).f32()).to());
        });
    }
}
