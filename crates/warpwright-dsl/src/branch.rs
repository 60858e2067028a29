//! Branches: `if`, `else if`, `else`, cases and roles.

use super::K;
use super::carry::{Carry, registers, same_shape, with_registers};
use super::guard::Guard;
use super::reg::Reg;
use super::state::{self, BlockId, Def, Loc, Node, POISON, Switch};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::ir::{self, Cmp};

/// An `if` that an `else` may follow: see [`K::if_`].
#[derive(Debug)]
pub struct If<'k, C> {
    k: K<'k>,
    loc: Loc,
    /// Where the branches meet.
    outer: BlockId,
    /// The result of the first branch, and the registers that each branch writes.
    value: Option<(C, Vec<ir::Reg>)>,
    /// The last condition, where it could be used, and the block that it is in.
    last: (Option<u32>, BlockId),
}

impl<'k, C: Carry<'k>> If<'k, C> {
    /// The branch for threads in which no earlier condition holds and this one does. The condition is computed only
    /// in threads that reach it.
    #[track_caller]
    pub fn else_if(mut self, condition: impl Fn() -> Reg<'k, Pred>, then: impl Fn() -> C) -> Self {
        self.otherwise(|this| {
            let condition = condition();
            this.branch(condition, then);
        });
        self
    }

    /// The branch for threads in which no condition holds. Returns the results of the branches.
    #[track_caller]
    pub fn else_(mut self, otherwise: impl Fn() -> C) -> C {
        self.otherwise(|this| this.yields(otherwise()));
        match &self.value {
            Some((shape, merged)) => with_registers(self.k, shape, merged),
            None => C::poison(self.k),
        }
    }

    /// A condition in the current block, with its branch.
    fn branch(&mut self, condition: Reg<'k, Pred>, then: impl Fn() -> C) {
        let (k, loc) = (self.k, self.loc);
        let usable = k.state().usable(condition.id, loc);
        let condition = usable.then(|| k.state().register(condition.id, loc));
        let (then, ()) = k.block(|| self.yields(then()));
        let mut state = k.state();
        let id = condition.map(|condition| {
            let id = state.ifs.len() as u32;
            state.ifs.push(state::If { loc, condition, then, otherwise: None });
            state.push_node(Node::If(id));
            id
        });
        self.last = (id, state.current);
    }

    fn otherwise(&mut self, body: impl FnOnce(&mut Self)) {
        let (id, block) = self.last;
        let (otherwise, ()) = self.k.within(block, || self.k.block(|| body(self)));
        if let Some(id) = id {
            self.k.state().ifs[id as usize].otherwise = Some(otherwise);
        }
    }

    /// The current block is a branch that yields `value`.
    fn yields(&mut self, value: C) {
        let (k, loc) = (self.k, self.loc);
        let Some((shape, merged)) = &self.value else {
            let mut regs = registers(&value);
            let mut state = k.state();
            for reg in &mut regs {
                if !state.usable(*reg, loc) {
                    *reg = POISON;
                    continue;
                }
                let ty = state.value(*reg).ty;
                let variable = state.define_in(self.outer, ty, Def::Variable);
                state.write(variable, *reg, loc);
                *reg = variable;
            }
            self.value = Some((value, regs));
            return;
        };
        let what = "one branch yields a tile of one shape and the other of another";
        if !same_shape(k, (shape, &value), what, loc) {
            return;
        }
        let regs = registers(&value);
        let mut state = k.state();
        for (&variable, reg) in merged.iter().zip(regs) {
            if variable != POISON && state.usable(reg, loc) {
                state.write(variable, reg, loc);
            }
        }
    }
}

impl<'k> K<'k> {
    pub(super) fn block<C>(self, body: impl FnOnce() -> C) -> (BlockId, C) {
        let (block, outer) = self.state().open(None);
        let result = body();
        self.state().close(outer);
        (block, result)
    }

    /// Runs the closure in the threads for which the predicate holds: see [`Guard`].
    #[track_caller]
    pub fn when(self, condition: impl Guard<'k>, then: impl Fn()) {
        match condition.predicate() {
            Some(condition) => drop(self.branch(condition, then, Location::caller())),
            None => then(),
        }
    }

    /// Runs one closure where the predicate holds and the other elsewhere, and returns their results.
    #[track_caller]
    pub fn if_else<C: Carry<'k>>(
        self,
        condition: Reg<'k, Pred>,
        then: impl Fn() -> C,
        otherwise: impl Fn() -> C,
    ) -> C {
        self.branch(condition, then, Location::caller()).else_(otherwise)
    }

    /// A chain of branches; each thread runs one of them. All return values of one type.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// /// The steps of x and y on the way around a square.
    /// fn step<'k>(k: K<'k>, i: Reg<'k, u32>, n: u32) -> (Reg<'k, i32>, Reg<'k, i32>) {
    ///     k.if_(i.lt(n), || (k.i32(1), k.i32(0)))
    ///         .else_if(|| i.lt(2 * n), || (k.i32(0), k.i32(1)))
    ///         .else_if(|| i.lt(3 * n), || (k.i32(-1), k.i32(0)))
    ///         .else_(|| (k.i32(0), k.i32(-1)))
    /// }
    /// ```
    ///
    /// Branches that return nothing need no `else_`.
    #[track_caller]
    pub fn if_<C: Carry<'k>>(self, condition: Reg<'k, Pred>, then: impl Fn() -> C) -> If<'k, C> {
        self.branch(condition, then, Location::caller())
    }

    pub(super) fn branch<C: Carry<'k>>(
        self,
        condition: Reg<'k, Pred>,
        then: impl Fn() -> C,
        loc: Loc,
    ) -> If<'k, C> {
        let (loc, outer) = {
            let state = self.state();
            (state.line.unwrap_or(loc), state.current)
        };
        let mut chain = If { k: self, loc, outer, value: None, last: (None, outer) };
        chain.branch(condition, then);
        chain
    }

    /// One step of a fold where the predicate holds: the state goes through the closure; elsewhere it is unchanged.
    /// Where most threads keep the state, nothing is copied.
    #[track_caller]
    pub fn fold_if<C: Carry<'k>>(self, condition: Reg<'k, Pred>, init: C, then: impl Fn(C) -> C) -> C {
        let loc = self.state().line.unwrap_or(Location::caller());
        let inits = registers(&init);
        let mut state = self.state();
        if !state.usable(condition.id, loc) || !inits.iter().all(|&reg| state.usable(reg, loc)) {
            return init;
        }
        let condition = state.register(condition.id, loc);
        let variables: Vec<_> = inits
            .iter()
            .map(|&reg| {
                let ty = state.value(reg).ty;
                let variable = state.written(ty);
                state.write(variable, reg, loc);
                variable
            })
            .collect();
        drop(state);
        let held = with_registers(self, &init, &variables);
        let (block, ()) = self.block(|| {
            let next = then(held);
            let what = "a state begins as a tile of one shape and goes on as one of another";
            if !same_shape(self, (&init, &next), what, loc) {
                return;
            }
            let mut nexts = registers(&next);
            let mut state = self.state();
            for (i, next) in nexts.iter_mut().enumerate() {
                // What another write would change first.
                if state.usable(*next, loc) && variables.contains(next) && *next != variables[i] {
                    let ty = state.value(*next).ty;
                    let held = state.written(ty);
                    state.write(held, *next, loc);
                    *next = held;
                }
            }
            for (&variable, next) in variables.iter().zip(nexts) {
                if next != variable && state.usable(next, loc) {
                    state.write(variable, next, loc);
                }
            }
        });
        let mut state = self.state();
        let id = state.ifs.len() as u32;
        state.ifs.push(state::If { loc, condition, then: block, otherwise: None });
        state.push_node(Node::If(id));
        drop(state);
        held
    }

    /// Runs the closure for one of the cases `0..cases`, chosen on the device; for none if `index` is outside that
    /// range. While the kernel is built, the closure runs once for every case.
    #[track_caller]
    pub fn switch(self, index: Reg<'k, u32>, cases: u32, case: impl Fn(u32)) {
        let loc = Location::caller();
        if cases == 0 || !self.state().usable(index.id, loc) {
            return;
        }
        let inside = {
            let mut state = self.state();
            let bound = state.constant(u32::TYPE, ir::Imm::Int(cases.into()));
            state.compare(Cmp::Lt, u32::TYPE, index.id, bound, loc)
        };
        let index = {
            let mut state = self.state();
            state.register(index.id, loc)
        };
        let blocks = (0..cases).map(|i| self.block(|| case(i)).0).collect();
        let mut state = self.state();
        let id = state.switches.len() as u32;
        state.switches.push(Switch { loc, index, inside, cases: blocks });
        state.push_node(Node::Switch(id));
    }

    /// Gives each warp of the block a role: the first `warps[0]` warps have role 0, and so on. The closure runs for
    /// every role with the warp's number within it. Warps beyond the last role do nothing.
    #[track_caller]
    pub fn roles(self, warps: &[u32], role: impl Fn(usize, Reg<'k, u32>)) {
        let warp = self.warp();
        let mut first = 0;
        for (i, &count) in warps.iter().enumerate() {
            let mine = if first == 0 { warp.lt(count) } else { warp.ge(first) & warp.lt(first + count) };
            self.when(mine, || role(i, warp - first));
            first += count;
        }
    }
}
