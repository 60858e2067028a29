//! `z = x + y`.

use std::marker::PhantomData;
use warpwright_dsl::*;

/// `z = x + y` over vectors of any length `n`; each thread adds one element.
#[derive(Clone, Copy, Debug, Config)]
#[config(
    doc = "z = x + y, one element per thread",
    examples("dtype=f16", "dtype=bf16", "threads=32", "threads=1024")
)]
pub struct VectorAdd<T> {
    /// Threads of a block.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
    /// Element type of all three vectors; sums are rounded once, from `f32`.
    pub element: PhantomData<T>,
}

impl<T> VectorAdd<T> {
    /// Vectors of `T`, added by blocks of `threads` threads.
    pub fn new(threads: u32) -> Self {
        VectorAdd { threads, element: PhantomData }
    }
}

/// The arguments of [`VectorAdd`].
#[derive(Args)]
#[args(of = VectorAdd::<T>)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct VectorAddArgs<T: Float, M: Mode> {
    #[arg(len = n)]
    pub x: M::In<T>,
    #[arg(len = n)]
    pub y: M::In<T>,
    #[arg(len = n)]
    pub z: M::Out<T>,
    pub n: M::Scalar<u32>,
}

impl<T: Float> Kernel for VectorAdd<T> {
    type Args<M: Mode> = VectorAddArgs<T, M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("n").per(self.threads.into()))
    }

    fn body<'k>(&self, k: K<'k>, VectorAddArgs { x, y, z, n }: VectorAddArgs<T, Body<'k>>) {
        let i = k.global_tid();
        k.when(i.lt(n), || z.st(i, (x.ld(i).f32() + y.ld(i).f32()).to()));
    }
}
