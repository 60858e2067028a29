//! Rows made longer or shorter, to head lengths that attention kernels support.

use crate::data::floats::{Dtype, Floats};
use warpwright_dsl::*;

/// Rows of `to` numbers from rows of `from`: the same numbers, truncated or padded with zeros.
///
/// `x` is `rows × from`, `y` is `rows × to`, both row-major, of one type. Numbers are copied unchanged, 16 bytes to a
/// thread if the type and both lengths allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "rows of another length: cut off at the end, or filled up with zeros",
    examples("from=112 to=100", "from=40 to=48 dtype=f16", "from=33 to=7 dtype=bf16")
)]
pub struct ResizeRows {
    /// Numbers of a row of `x`.
    #[field(range = 1..=1 << 20, default = 100)]
    pub from: u32,
    /// Numbers of a row of `y`.
    #[field(range = 1..=1 << 20, default = 112)]
    pub to: u32,
    /// Element type of both.
    #[field(default = "f32")]
    pub dtype: Dtype,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`ResizeRows`].
#[derive(Args)]
#[args(of = ResizeRows)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct ResizeRowsArgs<M: Mode> {
    #[arg(len = rows.times(of.from.into()), dtype = of.dtype.ty())]
    pub x: M::AnyIn,
    #[arg(len = rows.times(of.to.into()), dtype = of.dtype.ty())]
    pub y: M::AnyOut,
    pub rows: M::Scalar<u32>,
}

impl ResizeRows {
    /// Rows of `f32`.
    pub fn new(from: u32, to: u32) -> Self {
        ResizeRows { from, to, dtype: Dtype::F32, threads: 256 }
    }

    /// Numbers that a thread makes.
    fn vector(&self) -> u32 {
        (1 << (self.from | self.to).trailing_zeros().min(4)).min(16 / self.dtype.bytes())
    }
}

impl Kernel for ResizeRows {
    type Args<M: Mode> = ResizeRowsArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let chunks = u64::from(self.to / self.vector());
        LaunchRule::new(self.threads).grid(Extent::dim("rows").times(chunks).per(self.threads.max(1).into()))
    }

    fn body<'k>(&self, k: K<'k>, args: ResizeRowsArgs<Body<'k>>) {
        let (x, y) = (Floats::from(args.x), Floats::from(args.y));
        let (from, to) = (k.dim(self.from), k.dim(self.to));
        let vector = self.vector();
        let chunks = (to / vector).reg();
        let chunk = k.global_tid();
        let (row, at) = (chunk / chunks, chunk % chunks * vector);
        let inside = row.lt(args.rows);
        let there = inside & at.lt(from);
        let numbers = x.at(row.to::<u64>() * from.wide()).load(Some(there), at, vector);
        y.at(row.to::<u64>() * to.wide()).store(Some(inside), at, &numbers);
    }
}
