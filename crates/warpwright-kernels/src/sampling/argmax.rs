//! The largest of a row.

use super::rank;
use crate::data::floats::{Dtype, FloatBuffers};
use crate::entry::{DTYPES, Domain, Entry, Field, boxed, check_threads, smaller};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::Scope;

/// The index of the largest number of each row: greedy sampling. `x` is `rows × n`, row-major, `indices` has a
/// `u32` for each row.
///
/// Of several that are equal, -0 and 0 among them, it is the first. NaN is never the largest; in a row of
/// nothing else the index is 0. Nothing is rounded, and the order of execution makes no difference.
///
/// A row is read by several blocks, 16 bytes to a thread where the type and `n` allow. Each merges its best
/// into `best[row]`, an integer that orders as numbers do and then by index, and the last to arrive, counted
/// in `arrived[row]`, writes the index. Both are zero before the first launch, and each launch leaves them so. A
/// single block needs neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, warpwright_dsl::KeyPart)]
pub struct Argmax {
    /// Numbers of a row.
    pub n: u32,
    /// Element type of `x`.
    pub input: Dtype,
    /// Blocks that share a row.
    pub blocks: u32,
    /// Threads of a block: a multiple of 32.
    pub threads: u32,
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

impl AnyKernel for Argmax {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let Argmax { n, input, blocks, threads } = self;
        format!("argmax_n{n}_{input}_b{blocks}_t{threads}")
    }

    fn args(&self) -> Vec<ArgDesc> {
        let rows = Extent::dim("rows");
        let mut args = vec![ArgDesc::buffer("x", self.input.ty(), Role::In, rows.times(self.n.into()))];
        if self.blocks > 1 {
            args.push(ArgDesc::in_out::<u64>("best", rows));
            args.push(ArgDesc::in_out::<u32>("arrived", rows));
        }
        args.push(ArgDesc::output::<u32>("indices", rows));
        args
    }

    fn launch(&self) -> LaunchRule {
        let grid = [Extent::dim("rows"), Extent::new(self.blocks.into()), Extent::new(1)];
        LaunchRule::new(self.threads).grid_3d(grid)
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        vec![("n", SizeValue::U32(self.n)), ("blocks", SizeValue::U32(self.blocks))]
    }

    /// With smaller blocks: the index does not depend on them.
    fn called(&self, threads: u32) -> Option<Vec<Called>> {
        smaller(self, self.threads, threads, |threads| Argmax { threads, ..*self })
    }

    fn check(&self) -> Result<(), BuildError> {
        if !(1..=1 << 24).contains(&self.n) {
            return Err(BuildError::field("n", self.n, "from 1 to 16777216"));
        }
        if !(1..=1024).contains(&self.blocks) {
            return Err(BuildError::field("blocks", self.blocks, "from 1 to 1024"));
        }
        check_threads(self.threads)
    }

    fn body(&self, k: K<'_>) {
        let row = k.ctaid();
        let (n, blocks) = (k.size("n", self.n), k.size("blocks", self.blocks).reg());
        let x = k.floats("x", self.input).row(row, n);
        let merge = (self.blocks > 1).then(|| (k.ptr_mut::<u64>("best"), k.ptr_mut::<u32>("arrived")));
        let indices = k.ptr_mut::<u32>("indices");
        let vector = self.vector();

        // Indices grow, so that what is not larger came later. A NaN to begin with: anything is better.
        let first = k.ctaid_y() * self.threads + k.tid();
        let chunks = k.range(first..n.reg() / vector).step(blocks * self.threads).unroll(4);
        let none = (k.f32(f32::NAN), k.u32(u32::MAX));
        let (value, index) = k.fold(chunks, none, |chunk, best| {
            let values = x.ld_vec(chunk * vector, vector);
            (0..).zip(values).fold(best, |(best, index), (i, x)| {
                let better = !x.le(best) & x.eq(x);
                (better.select(x, best), better.select(chunk * vector + i, index))
            })
        });
        let own = rank(value);
        let best = k.block_max(own);
        let index = k.block_min(own.eq(best).select(index, u32::MAX));

        k.when(k.tid().eq(0), || {
            let Some((merged, arrived)) = merge else {
                return indices.st(row, best.eq(0).select(0, index));
            };
            // The earlier of two that are equal is the larger.
            let key = (best.to::<u64>() << 32) | (!index).to::<u64>();
            merged.reduce_max(row, key);
            let before = arrived.acq_rel(Scope::Gpu).atomic_add(row, 1);
            k.when(before.eq(blocks - 1), || {
                let key = merged.atomic_exch(row, 0);
                arrived.st(row, 0);
                let (best, index) = (key >> 32, !key.to::<u32>());
                indices.st(row, best.eq(0).select(0, index));
            });
        });
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "argmax",
    doc: "the index of the largest number of each row, the first of several",
    fields: &[
        Field {
            name: "n",
            domain: Domain::int(1, 1 << 24),
            default: Some("128256"),
            doc: "numbers of a row",
        },
        Field { name: "dtype", domain: DTYPES, default: Some("f32"), doc: "element type of x" },
        Field {
            name: "blocks",
            domain: Domain::int(1, 1024),
            default: Some("8"),
            doc: "blocks that share a row",
        },
        Field { name: "threads", domain: Domain::THREADS, default: Some("512"), doc: "threads of a block" },
    ],
    examples: &["n=151936 dtype=f16", "n=32000 blocks=1 threads=1024", "n=50257 dtype=bf16", "n=1 blocks=1"],
    make: |config| {
        boxed(Argmax {
            n: config.u32("n"),
            input: config.dtype("dtype"),
            blocks: config.u32("blocks"),
            threads: config.u32("threads"),
        })
    },
};
