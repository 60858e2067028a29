//! Early exits: loops and blocks that `break` with a value.

use super::K;
use super::carry::{Carry, registers, same_shape, with_registers};
use super::reg;
use super::state::{self, Def, Labelled, Loc, Node, State};
use super::types::Pred;
use std::cell::Cell;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::Reg;

/// An exit of a loop or block, with a value: see [`K::loop_`] and [`K::labelled`].
///
/// The closure receives it and cannot keep it:
///
/// ```compile_fail,E0521
/// use warpwright_dsl::*;
/// fn wrong<'k>(k: K<'k>) {
///     let kept = std::cell::Cell::new(None::<&Break<'k, ()>>);
///     k.labelled(|out| kept.set(Some(out)));
/// }
/// ```
pub struct Break<'k, R> {
    k: K<'k>,
    id: u32,
    /// What the first way out yields.
    shape: Cell<Option<R>>,
}

impl<R> std::fmt::Debug for Break<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Break({})", self.id)
    }
}

impl<'k, R: Carry<'k>> Break<'k, R> {
    /// Leaves with `value`, in all threads that reach this.
    #[track_caller]
    pub fn break_(&self, value: R) {
        self.leaves(None, value, Location::caller());
    }

    /// Leaves with `value` in the threads for which the predicate holds; the others continue.
    #[track_caller]
    pub fn break_if(&self, condition: reg::Reg<'k, Pred>, value: R) {
        self.leaves(Some(condition), value, Location::caller());
    }

    /// A way out; `condition` is absent where all threads that come here take it.
    fn leaves(&self, condition: Option<reg::Reg<'k, Pred>>, value: R, loc: Loc) {
        let Some(guard) = self.k.state().guard(condition, loc) else { return };
        let shape = self.shape.get().unwrap_or(value);
        self.shape.set(Some(shape));
        let what = "what is left has a tile of one shape here and of another there";
        let values = registers(&value);
        if !same_shape(self.k, (&shape, &value), what, loc) {
            return;
        }
        let mut state = self.k.state();
        if !values.iter().all(|&reg| state.usable(reg, loc)) {
            return;
        }
        let id = state.breaks.len() as u32;
        let condition = guard.map(|(reg, _)| reg);
        state.breaks.push(state::Break { loc, condition, of: self.id, values });
        state.push_node(Node::Break(id));
    }
}

impl<'k> K<'k> {
    /// Loops until the body breaks, and returns the value of the break. The body takes the state and returns the
    /// next, as in a [`fold`](Self::fold); it may break anywhere inside.
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
    /// Threads that have left wait behind the loop for the others of their warp.
    #[track_caller]
    pub fn loop_<C: Carry<'k>, R: Carry<'k>>(self, init: C, body: impl Fn(&Break<'k, R>, C) -> C) -> R {
        let loc = Location::caller();
        self.left("loop", loc, |out| {
            self.looped("loop", None, None, false, init, loc, |state| (body(out, state), None));
            None
        })
    }

    /// A block that can be left with a value from anywhere inside, including loops and branches; otherwise it returns
    /// the closure's result. It corresponds to Rust's `'out: { … break 'out value … }`.
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
        let (block, outer) = self.state().open(None);
        let id = self.state().labelled.len() as u32;
        self.state().labelled.push(Labelled { name, body: block, last: None, met: Vec::new() });
        let out = Break { k: self, id, shape: Cell::new(None) };
        if let Some(value) = body(&out) {
            out.leaves(None, value, loc);
            let last = (self.state().breaks.len() as u32).wrapping_sub(1);
            self.state().labelled[id as usize].last = Some(last);
        }
        let mut state = self.state();
        state.close(outer);
        state.push_node(Node::Labelled(id));
        let Some(shape) = out.shape.get() else {
            state.mistake(Code::Parameter, loc, "a loop that nothing breaks never ends");
            drop(state);
            return R::poison(self);
        };
        let met = state.meet(id);
        drop(state);
        with_registers(self, &shape, &met)
    }
}

impl State {
    /// The results of the exits of a labelled block: those of a single exit, or registers that each exit writes.
    fn meet(&mut self, id: u32) -> Vec<Reg> {
        let ways: Vec<_> = (0..self.breaks.len()).filter(|&way| self.breaks[way].of == id).collect();
        let Some(&first) = ways.first() else { return Vec::new() };
        let values = self.breaks[first].values.clone();
        if ways.len() > 1 {
            let met: Vec<_> = (values.iter().enumerate())
                .map(|(i, &value)| self.define(self.value(value).ty, Def::Met(id, i as u32)))
                .collect();
            self.labelled[id as usize].met = met.clone();
            return met;
        }
        let outlives = |state: &Self, value: Reg| state.block(state.value(value).block).open;
        (values.into_iter())
            .map(|value| match outlives(self, value) {
                true => value,
                false => self.define(self.value(value).ty, Def::Result(value)),
            })
            .collect()
    }
}
