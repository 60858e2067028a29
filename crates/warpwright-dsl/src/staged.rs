//! Loops that prefetch into registers.

use super::control::Range;
use super::reg::Reg;
use super::types::Pred;
use super::{Carry, K};

/// A step of a loop that prefetches: see [`K::staged`].
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'k> {
    /// The loop counter in that step.
    pub at: Reg<'k, u32>,
    /// Whether that step exists. It is the same in all threads that have the same range.
    pub wanted: Reg<'k, Pred>,
}

impl<'k> K<'k> {
    /// A loop that loads the data of the next step into registers while it computes. `load` loads the data of the
    /// first step. `step` takes a number of the range and the data loaded for it, and returns the next state and the
    /// data that it has loaded for the step ahead. Load where `step` no longer needs the registers: the loads are
    /// then in flight while the rest of the step is computed, and no register is copied. See
    /// [`Ptr::ld_vec_or`](super::Ptr::ld_vec_or).
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// use warpwright_ptx::ir::Arch;
    ///
    /// fn row<'k>(x: Ptr<'k, Global, f32>, ahead: Ahead<'k>, before: Reg<'k, f32>) -> Reg<'k, f32> {
    ///     x.ld_if(ahead.wanted, ahead.at, before)
    /// }
    ///
    /// // Rows of 32: the next is under way while this one is added up.
    /// let built = build("sum", &LaunchRule::new(32), Arch::sm(80), |k| {
    ///     let (x, n, y) = (k.ptr::<f32>("x"), k.scalar::<u32>("n"), k.ptr_mut::<f32>("y"));
    ///     let (x, zero) = (x.at(k.lane()), k.f32(0.0));
    ///     let rows = k.range(k.u32(0)..n * 32).step(32);
    ///     let sum = k.staged(rows, zero, |first| row(x, first, zero), |ahead, loaded, sum| {
    ///         (row(x, ahead, loaded), sum + loaded)
    ///     });
    ///     y.st(k.lane(), sum);
    /// })?;
    /// # Ok::<(), warpwright_ptx::diag::Diagnostics>(())
    /// ```
    #[track_caller]
    pub fn staged<L: Carry<'k>, C: Carry<'k>>(
        self,
        range: Range<'k>,
        init: C,
        load: impl FnOnce(Ahead<'k>) -> L,
        step: impl Fn(Ahead<'k>, L, C) -> (L, C),
    ) -> C {
        let ahead = |at: Reg<'k, u32>| Ahead { at, wanted: at.lt(range.end()) };
        let first = load(ahead(range.start()));
        self.fold(range, (first, init), |at, (loaded, state)| step(ahead(at + range.stride()), loaded, state))
            .1
    }
}
