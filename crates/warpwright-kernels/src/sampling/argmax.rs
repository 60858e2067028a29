//! The index of the largest number of a row.

use super::rank;
use crate::data::floats::{Dtype, Floats};
use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// The index of the largest number of each row: greedy sampling. `x` is `rows × n`, row-major; `indices` has a `u32`
/// for each row.
///
/// Of several equal numbers (-0 and 0 are equal) it is the first. A row with NaN or `+inf` has no largest number: its
/// index is `u32::MAX`. Nothing is rounded, and the order of execution makes no difference.
///
/// Several blocks read a row, 16 bytes to a thread if the type and `n` allow it. Each block merges its result into
/// `best[row]`, an integer ordered by number and then by index. The last block to arrive, counted in `arrived[row]`,
/// writes the index. Both buffers must be zero before the first launch, and each launch leaves them zero. A single
/// block needs neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "the index of the largest number of each row, the first of several",
    examples("n=151936 dtype=f16", "n=32000 blocks=1 threads=1024", "n=50257 dtype=bf16", "n=1 blocks=1")
)]
pub struct Argmax {
    /// Numbers of a row.
    #[field(range = 1..=1 << 24, default = 128256)]
    pub n: u32,
    /// Element type of `x`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// Blocks that share a row.
    #[field(range = 1..=1024, default = 8)]
    pub blocks: u32,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 512)]
    pub threads: u32,
}

/// The arguments of [`Argmax`].
#[derive(Args)]
#[args(of = Argmax)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct ArgmaxArgs<M: Mode> {
    #[arg(len = rows.times(of.n.into()), dtype = of.input.ty())]
    pub x: M::AnyIn,
    #[arg(len = rows, when = of.blocks > 1)]
    pub best: Option<M::InOut<u64>>,
    #[arg(len = rows, when = of.blocks > 1)]
    pub arrived: Option<M::InOut<u32>>,
    #[arg(len = rows)]
    pub indices: M::Out<u32>,
    pub rows: M::Dim,
}

impl Argmax {
    /// Rows of `n` numbers in `f32`, with a block for each 16384 of them.
    pub fn new(n: u32) -> Self {
        Argmax { n, input: Dtype::F32, blocks: n.div_ceil(16384).clamp(1, 64), threads: 512 }
    }

    fn vector(&self) -> u32 {
        (1 << self.n.max(1).trailing_zeros()).min(16 / self.input.bytes())
    }
}

impl Kernel for Argmax {
    type Args<M: Mode> = ArgmaxArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let grid = [Extent::dim("rows"), Extent::new(self.blocks.into()), Extent::new(1)];
        LaunchRule::new(self.threads).grid_3d(grid).any_warps()
    }

    fn body<'k>(&self, k: K<'k>, args: ArgmaxArgs<Body<'k>>) {
        let ArgmaxArgs { x, best, arrived, indices, .. } = args;
        let merge = best.zip(arrived);
        let row = k.ctaid();
        let (n, blocks) = (k.dim(self.n), k.dim(self.blocks).reg());
        let x = Floats::from(x).row(row, n);
        let vector = self.vector();

        // Indices grow, so that what is not larger came later. A NaN to begin with: anything is better. What makes a row
        // unsound is larger than all else in it.
        let threads = k.threads();
        let first = k.ctaid_y() * threads + k.tid();
        let chunks = k.range(first..(n / vector).reg()).step(blocks * threads).unroll(4);
        let none = (k.f32(f32::NAN), k.u32(u32::MAX));
        let (value, index) = k.fold(chunks, none, |chunk, best| {
            let values = x.ld_vec(chunk * vector, vector);
            (0..).zip(values).fold(best, |(best, index), (i, x)| {
                let x = x.le(f32::MAX).select(x, f32::INFINITY);
                let better = !x.le(best);
                (better.select(x, best), better.select(chunk * vector + i, index))
            })
        });
        let own = rank(value);
        let unsound = rank(k.f32(f32::INFINITY));
        let best = k.block_max(own);
        let index = k.block_min(own.eq(best).select(index, u32::MAX));

        k.when(k.tid().eq(0), || {
            let Some((merged, arrived)) = merge else {
                return indices.st(row, best.eq(unsound).select(u32::MAX, index));
            };
            // The earlier of two that are equal is the larger.
            let key = (best.to::<u64>() << 32) | (!index).to::<u64>();
            merged.reduce_max(row, key);
            let before = arrived.acq_rel(Scope::Gpu).atomic_add(row, 1);
            k.when(before.eq(blocks - 1), || {
                let key = merged.atomic_exch(row, 0);
                arrived.st(row, 0);
                let (best, index) = ((key >> 32).to::<u32>(), !key.to::<u32>());
                indices.st(row, best.eq(unsound).select(u32::MAX, index));
            });
        });
    }
}
