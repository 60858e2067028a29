//! Rows made longer or shorter: heads of a length that kernels of attention take.

use crate::data::floats::{Dtype, FloatBuffers};
use crate::data::wide;
use crate::entry::{DTYPES, Domain, Entry, Field, THREADS, boxed, check_threads};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// Rows of `to` numbers from rows of `from`: the same numbers, cut off at the end or followed by zeros.
///
/// `x` is `rows × from`, `y` is `rows × to`, both row-major, of one type. Numbers are copied as they are. 16 bytes to a
/// thread where the type and both lengths allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, warpwright_dsl::KeyPart)]
pub struct ResizeRows {
    /// Numbers of a row of `x`.
    pub from: u32,
    /// Numbers of a row of `y`.
    pub to: u32,
    /// Element type of both.
    pub dtype: Dtype,
    /// Threads of a block: a multiple of 32.
    pub threads: u32,
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

impl AnyKernel for ResizeRows {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let ResizeRows { from, to, dtype, threads } = self;
        format!("resize_rows_{dtype}_n{from}_{to}_t{threads}")
    }

    fn args(&self) -> Vec<ArgDesc> {
        let row = |len: u32| Extent::dim("rows").times(len.into());
        vec![
            ArgDesc::buffer("x", self.dtype.ty(), Role::In, row(self.from)),
            ArgDesc::buffer("y", self.dtype.ty(), Role::Out, row(self.to)),
            ArgDesc::scalar::<u32>("rows"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        let chunks = u64::from(self.to / self.vector());
        LaunchRule::new(self.threads).grid(Extent::dim("rows").times(chunks).per(self.threads.max(1).into()))
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        vec![("from", SizeValue::U32(self.from)), ("to", SizeValue::U32(self.to))]
    }

    fn check(&self) -> Result<(), BuildError> {
        for (field, len) in [("from", self.from), ("to", self.to)] {
            if !(1..=1 << 20).contains(&len) {
                return Err(BuildError::field(field, len, "from 1 to 1048576"));
            }
        }
        check_threads(self.threads)
    }

    fn body(&self, k: K<'_>) {
        let (x, y) = (k.floats("x", self.dtype).nc(), k.floats_mut("y", self.dtype));
        let (from, to) = (k.size("from", self.from), k.size("to", self.to));
        let vector = self.vector();
        let chunks = to.reg() / vector;
        let chunk = k.global_tid();
        let (row, at) = (chunk / chunks, chunk % chunks * vector);
        let inside = row.lt(k.scalar::<u32>("rows"));
        let there = inside & at.lt(from.reg());
        let numbers = x.at(row.to::<u64>() * wide(from)).load(Some(there), at, vector);
        y.at(row.to::<u64>() * wide(to)).store(Some(inside), at, &numbers);
    }
}

const fn length(name: &'static str, default: &'static str, doc: &'static str) -> Field {
    Field { name, domain: Domain::int(1, 1 << 20), default: Some(default), doc }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "resize_rows",
    doc: "rows of another length: cut off at the end, or filled up with zeros",
    fields: &[
        length("from", "100", "numbers of a row of x"),
        length("to", "112", "numbers of a row of y"),
        Field { name: "dtype", domain: DTYPES, default: Some("f32"), doc: "element type of x and y" },
        THREADS,
    ],
    examples: &["from=112 to=100", "from=40 to=48 dtype=f16", "from=33 to=7 dtype=bf16"],
    make: |config| {
        boxed(ResizeRows {
            dtype: config.dtype("dtype"),
            threads: config.u32("threads"),
            ..ResizeRows::new(config.u32("from"), config.u32("to"))
        })
    },
};
