//! `z = x + y`.

use crate::entry::{DTYPE, Entry, THREADS, boxed, by_dtype};
use std::marker::PhantomData;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// `z = x + y` over vectors of any length `n`; each thread adds one element.
#[derive(Clone, Copy, Debug, warpwright_dsl::KeyPart)]
pub struct VectorAdd<T> {
    /// Threads of a block.
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

impl<T: Float> AnyKernel for VectorAdd<T> {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        format!("vector_add_{}_t{}", T::TYPE.name(), self.threads)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let n = Extent::dim("n");
        vec![
            ArgDesc::input::<T>("x", n),
            ArgDesc::input::<T>("y", n),
            ArgDesc::output::<T>("z", n),
            ArgDesc::scalar::<u32>("n"),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("n").per(self.threads.into()))
    }

    fn body(&self, k: K<'_>) {
        let (x, y, z) = (k.ptr::<T>("x"), k.ptr::<T>("y"), k.ptr_mut::<T>("z"));
        let n = k.scalar::<u32>("n");
        let i = k.global_tid();
        k.when(i.lt(n), || z.st(i, (x.ld(i).f32() + y.ld(i).f32()).to()));
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "vector_add",
    doc: "z = x + y, one element per thread",
    fields: &[DTYPE, THREADS],
    examples: &["dtype=f16", "dtype=bf16", "threads=32", "threads=1024"],
    make: |config| {
        macro_rules! make {
            ($ty:ty) => {
                boxed(VectorAdd::<$ty>::new(config.u32("threads")))
            };
        }
        by_dtype!(config.dtype("dtype"), make)
    },
};
