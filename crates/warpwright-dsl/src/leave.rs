//! Leaving from the middle: loops and blocks that `break` with a value.

use super::K;
use super::carry::{Carry, Meeting};
use super::reg::Reg;
use super::state::{self, BlockId, Labelled, Loc, Node};
use super::types::Pred;
use std::cell::RefCell;
use std::panic::Location;
use warpwright_ptx::diag::Code;

/// The way out of a loop or block, with a value: see [`K::loop_`] and [`K::labelled`].
///
/// The closure is given it and cannot keep it:
///
/// ```compile_fail,E0521
/// use warpwright_dsl::*;
/// fn wrong<'k>(k: K<'k>) {
///     let kept = std::cell::Cell::new(None::<&Break<'k, ()>>);
///     k.labelled(|out| kept.set(Some(out)));
/// }
/// ```
#[derive(Debug)]
pub struct Break<'k, R> {
    k: K<'k>,
    id: u32,
    /// Where the ways out meet.
    outer: BlockId,
    meeting: RefCell<Meeting<R>>,
}

impl<'k, R: Carry<'k>> Break<'k, R> {
    /// Leaves with `value`: the threads that come here.
    #[track_caller]
    pub fn break_(&self, value: R) {
        self.leaves(None, value, Location::caller());
    }

    /// Leaves with `value` in the threads for which the predicate holds; the others go on.
    #[track_caller]
    pub fn break_if(&self, condition: Reg<'k, Pred>, value: R) {
        self.leaves(Some(condition), value, Location::caller());
    }

    fn leaves(&self, condition: Option<Reg<'k, Pred>>, value: R, loc: Loc) {
        let Some(guard) = self.k.state().guard(condition, loc) else { return };
        self.yields(value, loc);
        let mut state = self.k.state();
        let id = state.breaks.len() as u32;
        state.breaks.push(state::Break { loc, condition: guard.map(|(reg, _)| reg), of: self.id });
        state.push_node(Node::Break(id));
    }

    fn yields(&self, value: R, loc: Loc) {
        let what = "what is left has a tile of one shape here and of another there";
        self.meeting.borrow_mut().yields(self.k, self.outer, value, what, loc);
    }
}

impl<'k> K<'k> {
    /// Loops until the body breaks, and yields what it broke with. The body takes the state and returns the next, as
    /// in a [`fold`](Self::fold); it may break from anywhere inside.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// /// The first slot of an open hash table, from `slot` on, that holds `key` or nothing (0).
    /// fn find<'k>(k: K<'k>, keys: Ptr<'k, Global, u32>, slot: Reg<'k, u32>, key: Reg<'k, u32>) -> Reg<'k, u32> {
    ///     k.loop_(slot, |out, slot| {
    ///         let held = keys.ld(slot);
    ///         out.break_if(held.eq(key) | held.eq(0), slot);
    ///         (slot + 1) & 0xffff
    ///     })
    /// }
    /// ```
    ///
    /// Threads that have left wait for the others of their warp behind the loop.
    #[track_caller]
    pub fn loop_<C: Carry<'k>, R: Carry<'k>>(self, init: C, body: impl Fn(&Break<'k, R>, C) -> C) -> R {
        let loc = Location::caller();
        self.left("loop", loc, |out| {
            self.looped("loop", None, None, false, init, loc, |state| (body(out, state), None));
            None
        })
    }

    /// A block that may be left with a value from anywhere inside, loops and branches included; else it yields what
    /// the closure returns. Rust's `'out: { … break 'out value … }`.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// /// The first of `n` elements that is negative; `n` where none is.
    /// fn first_negative<'k>(k: K<'k>, x: Ptr<'k, Global, f32>, n: Reg<'k, u32>) -> Reg<'k, u32> {
    ///     k.labelled(|out| {
    ///         k.each(k.upto(n), |i| out.break_if(x.ld(i).lt(0.0), i));
    ///         n
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn labelled<R: Carry<'k>>(self, body: impl Fn(&Break<'k, R>) -> R) -> R {
        self.left("labelled", Location::caller(), |out| Some(body(out)))
    }

    fn left<R: Carry<'k>>(
        self,
        name: &'static str,
        loc: Loc,
        body: impl FnOnce(&Break<'k, R>) -> Option<R>,
    ) -> R {
        let (id, outer) = {
            let mut state = self.state();
            let id = state.labelled.len() as u32;
            // Its block is known once it is closed.
            let body = state.current;
            state.labelled.push(Labelled { name, body });
            (id, state.current)
        };
        let out = Break { k: self, id, outer, meeting: RefCell::new(Meeting::new()) };
        let (block, ()) = self.block(|| {
            if let Some(value) = body(&out) {
                out.yields(value, loc);
            }
        });
        let mut state = self.state();
        state.labelled[id as usize].body = block;
        state.push_node(Node::Labelled(id));
        drop(state);
        let value = out.meeting.borrow().value(self);
        value.unwrap_or_else(|| {
            self.state().mistake(Code::Parameter, loc, "a loop that nothing breaks never ends");
            R::poison(self)
        })
    }
}
