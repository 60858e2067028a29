//! Loops whose loads run ahead, into registers.

use super::control::Range;
use super::reg::Reg;
use super::types::Pred;
use super::{Carry, K};

/// A step of a loop whose loads run ahead: see [`K::staged`].
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'k> {
    /// What the loop counts in that step.
    pub at: Reg<'k, u32>,
    /// Whether there is such a step: the same in all threads for which the range is the same.
    pub wanted: Reg<'k, Pred>,
}

impl<'k> K<'k> {
    /// A loop that computes with what it has loaded a step before, into registers: `load` says what the first step needs,
    /// and `step` takes what was loaded for a number of the range and yields, beside the next state, what it has loaded
    /// for the step ahead. It loads where it is done with the registers that it loads into, so that loads are under way
    /// while the rest of the step is computed and none is copied: see [`Ptr::ld_vec_or`](super::Ptr::ld_vec_or).
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
