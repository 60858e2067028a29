//! `z = x + y`.

use std::marker::PhantomData;
use warpwright_dsl::*;

/// `z = x + y` over vectors of any length `n`; each thread adds one element.
#[derive(Clone, Copy, Debug, Config)]
pub(crate) struct VectorAdd<T> {
    /// Threads of a block.
    #[field(domain = Domain::THREADS, default = 256)]
    pub(crate) threads: u32,
    /// Element type of all three vectors; sums are rounded once, from `f32`.
    pub(crate) element: PhantomData<T>,
}

impl<T> VectorAdd<T> {
    /// Vectors of `T`, added by blocks of `threads` threads.
    pub(crate) fn new(threads: u32) -> Self {
        VectorAdd { threads, element: PhantomData }
    }
}

/// The arguments of [`VectorAdd`].
#[derive(Args)]
#[args(of = VectorAdd::<T>)]
pub(crate) struct VectorAddArgs<T: Float, M: Mode> {
    #[arg(len = n)]
    pub(crate) x: M::In<T>,
    #[arg(len = n)]
    pub(crate) y: M::In<T>,
    #[arg(len = n)]
    pub(crate) z: M::Out<T>,
    pub(crate) n: M::Scalar<u32>,
}

impl<T: Float> Kernel for VectorAdd<T> {
    type Args<M: Mode> = VectorAddArgs<T, M>;

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("n").per(self.threads.into()))
    }

    fn body<'k>(&self, k: K<'k>, VectorAddArgs { x, y, z, n }: VectorAddArgs<T, Body<'k>>) {
        let i = k.global_tid();
        k.when(i.lt(n), || z.st(i, (x.ld(i).f32() + y.ld(i).f32()).to()));
    }
}
