//! Guards: optional predicates.

use super::reg::Reg;
use super::state::{Loc, State};
use super::types::Pred;
use warpwright_ptx::ir;

/// A condition for an operation: it takes place in the threads for which the predicate holds, or in all threads if
/// there is no predicate.
///
/// So you write code once that needs a predicate for some shapes only:
///
/// ```
/// use warpwright_dsl::*;
/// /// The element of a row of `width`, walked by `threads`; 0 past its end.
/// fn element<'k>(k: K<'k>, row: Ptr<'k, Global, f32>, width: u32, threads: u32) -> Reg<'k, f32> {
///     let inside = (width % threads != 0).then(|| k.tid().lt(width));
///     row.ld_if(inside, k.tid(), 0.0)
/// }
/// ```
///
/// A condition is a predicate, such as the result of a comparison:
///
/// ```compile_fail,E0277
/// use warpwright_dsl::*;
/// fn wrong<'k>(k: K<'k>, x: Reg<'k, f32>) {
///     k.when(x, || {})
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition of the device",
    label = "not a `Reg<Pred>` or an `Option<Reg<Pred>>`",
    note = "comparisons make predicates: `i.lt(n)`, `x.ne(0)`; they combine by `&`, `|`, `^` and `!`",
    note = "a condition that the host knows is a Rust `if` around the line"
)]
pub trait Guard<'k> {
    /// The predicate.
    #[doc(hidden)]
    fn predicate(self) -> Option<Reg<'k, Pred>>;
}

impl<'k> Guard<'k> for Reg<'k, Pred> {
    fn predicate(self) -> Option<Reg<'k, Pred>> {
        Some(self)
    }
}

impl<'k> Guard<'k> for Option<Reg<'k, Pred>> {
    fn predicate(self) -> Option<Reg<'k, Pred>> {
        self
    }
}

/// Where all of them hold that there are.
impl<'k, const N: usize> Guard<'k> for [Option<Reg<'k, Pred>>; N] {
    fn predicate(self) -> Option<Reg<'k, Pred>> {
        self.into_iter().flatten().reduce(|one, other| one & other)
    }
}

/// Where both hold.
pub(super) fn both<'k>(one: Option<Reg<'k, Pred>>, other: Option<Reg<'k, Pred>>) -> Option<Reg<'k, Pred>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one & other),
        (one, other) => one.or(other),
    }
}

impl State {
    /// The guard of an instruction; `None` where the predicate may not be used here.
    pub(super) fn guard(
        &mut self,
        predicate: Option<Reg<'_, Pred>>,
        loc: Loc,
    ) -> Option<Option<(ir::Reg, bool)>> {
        let Some(predicate) = predicate else { return Some(None) };
        self.usable(predicate.id, loc).then(|| Some((self.register(predicate.id, loc), false)))
    }
}
