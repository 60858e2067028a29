//! Softmax over rows.

use std::f32::consts::LOG2_E;
use std::marker::PhantomData;
use warpwright_dsl::*;

/// `y = eˣ / Σ eˣ` over rows of length `d`; one block per row. `x` and `y` are `rows × d`, row-major.
///
/// The maximum is subtracted first, so that no finite input overflows. A row of `-inf` alone yields NaN.
/// Exponentials are to 2 ulp of an argument that was rounded three times, and sums are in `f32`:
/// `|err| ≤ (d / threads + 3 (max − x + ln d) + 21) · 2⁻²⁴` of the result, and one rounding to `T`.
#[derive(Clone, Copy, Debug, Config)]
pub(crate) struct Softmax<T> {
    /// Length of a row.
    pub(crate) d: u32,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub(crate) threads: u32,
    /// Element type of `x` and `y`.
    pub(crate) element: PhantomData<T>,
}

impl<T> Softmax<T> {
    /// Rows of `d` elements of `T`, with blocks of 256 threads.
    pub(crate) fn new(d: u32) -> Self {
        Softmax { d, threads: 256, element: PhantomData }
    }
}

/// The arguments of [`Softmax`].
#[derive(Args)]
#[args(of = Softmax::<T>)]
pub(crate) struct SoftmaxArgs<T: Float, M: Mode> {
    #[arg(len = rows.times(of.d.into()))]
    pub(crate) x: M::In<T>,
    #[arg(len = rows.times(of.d.into()))]
    pub(crate) y: M::Out<T>,
    pub(crate) rows: M::Dim,
}

impl<T: Float> Kernel for Softmax<T> {
    type Args<M: Mode> = SoftmaxArgs<T, M>;

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("rows"))
    }

    fn body<'k>(&self, k: K<'k>, SoftmaxArgs { x, y, .. }: SoftmaxArgs<T, Body<'k>>) {
        let d = self.d;
        let row = k.ctaid() * d;
        let (x, y) = (x.at(row), y.at(row));
        let columns = k.strided(d).unroll(8);

        let max = k.fold(columns, k.f32(f32::NEG_INFINITY), |i, max| max.max(x.ld(i).f32()));
        let max = k.block_max(max);
        let exp = |i| ((x.ld(i).f32() - max) * LOG2_E).exp2();

        let sum = k.fold(columns, k.f32(0.0), |i, sum| sum + exp(i));
        let scale = k.block_sum(sum).rcp();

        k.each(columns, |i| y.st(i, (exp(i) * scale).to()));
    }
}
