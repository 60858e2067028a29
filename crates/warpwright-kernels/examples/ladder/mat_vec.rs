//! A matrix times a vector.

use std::array::from_fn;
use std::marker::PhantomData;
use warpwright_dsl::*;

/// Rows of a warp.
const ROWS: usize = 8;

/// `y = W·x`: `W` is `n × k`, row-major, and `x` has `k` elements. A block is one warp with eight rows.
///
/// Sums are in `f32`: `|err| ≤ (k / 32 + 8) · 2⁻²⁴ · Σ|wᵢ||xᵢ|`.
#[derive(Clone, Copy, Debug, Config)]
pub(crate) struct MatVec<T> {
    /// Rows of `W`.
    #[field(range = 1..=1 << 16, default = 1024)]
    pub(crate) n: u32,
    /// Columns of `W`.
    #[field(range = 1..=65535, default = 1024)]
    pub(crate) k: u32,
    /// Element type of `W` and `x`.
    pub(crate) element: PhantomData<T>,
}

impl<T> MatVec<T> {
    /// A matrix of that size.
    pub(crate) fn new(n: u32, k: u32) -> Self {
        MatVec { n, k, element: PhantomData }
    }
}

/// The arguments of [`MatVec`].
#[derive(Args)]
#[args(of = MatVec::<T>)]
pub(crate) struct MatVecArgs<T: Float, M: Mode> {
    #[arg(len = Extent::new(of.n.into()).times(of.k.into()), constant)]
    pub(crate) w: M::In<T>,
    #[arg(len = of.k, constant)]
    pub(crate) x: M::In<T>,
    #[arg(len = of.n)]
    pub(crate) y: M::Out<f32>,
}

impl<T: Float> Kernel for MatVec<T> {
    type Args<M: Mode> = MatVecArgs<T, M>;

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32).grid(Extent::new(self.n.into()).per(ROWS as u64))
    }

    fn body<'k>(&self, k: K<'k>, MatVecArgs { w, x, y }: MatVecArgs<T, Body<'k>>) {
        let first = k.ctaid() * ROWS as u32;
        // Beyond the matrix the last row stands in; its sums are not stored.
        let rows: [_; ROWS] = from_fn(|i| w.at((first + i as u32).min(self.n - 1) * self.k));

        let sums = k.fold(k.warp_strided(self.k), [k.f32(0.0); ROWS], |column, sums| {
            let x = x.ld(column).f32();
            from_fn(|i| rows[i].ld(column).f32().mul_add(x, sums[i]))
        });
        k.spread(ROWS, 32).each_sum(&sums, |i, sum, keeper| {
            let row = first + i;
            k.when(row.lt(self.n), || y.st_if(keeper, row, sum));
        });
    }
}
