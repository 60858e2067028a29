//! Root-mean-square normalisation.

use std::marker::PhantomData;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// `y = x · rsqrt(mean(x²) + epsilon) · w` over rows of length `d` (Zhang and Sennrich 2019); one block
/// per row. `x` and `y` are `rows × d`, row-major, and `w` has `d` elements.
///
/// Sums are in `f32`: `|err| ≤ (d / threads + 12) · 2⁻²⁴` of the result, and one rounding to `T`.
#[derive(Clone, Copy, Debug, warpwright_dsl::KeyPart)]
pub struct RmsNorm<T> {
    /// Length of a row.
    pub d: u32,
    /// Added to the mean square.
    pub epsilon: f32,
    /// Threads of a block: a multiple of 32.
    pub threads: u32,
    /// Element type of `x`, `w` and `y`.
    pub element: PhantomData<T>,
}

impl<T> RmsNorm<T> {
    /// Rows of `d` elements of `T`, with blocks of 256 threads.
    pub fn new(d: u32, epsilon: f32) -> Self {
        RmsNorm { d, epsilon, threads: 256, element: PhantomData }
    }
}

impl<T: Float> AnyKernel for RmsNorm<T> {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let (ty, bits) = (T::TYPE.name(), self.epsilon.to_bits());
        format!("rms_norm_{ty}_d{}_e{bits:08x}_t{}", self.d, self.threads)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let all = Extent::dim("rows").times(self.d.into());
        vec![
            ArgDesc::input::<T>("x", all),
            ArgDesc::input::<T>("w", self.d).constant(),
            ArgDesc::output::<T>("y", all),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("rows"))
    }

    fn body(&self, k: K<'_>) {
        let d = self.d;
        let (x, w, y) = (k.ptr::<T>("x"), k.ptr::<T>("w"), k.ptr_mut::<T>("y"));
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
