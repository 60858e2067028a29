//! Loops.

use super::K;
use super::carry::{Carry, registers, same_shape, with_registers};
use super::emit;
use super::reg::{Binary, Host, IntoReg, Reg};
use super::state::{Carried, Def, Loc, Loop, Node, POISON};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::Cmp;

/// A range of numbers that a device loop counts through.
#[derive(Clone, Copy, Debug)]
pub struct Range<'k> {
    lo: Reg<'k, u32>,
    hi: Reg<'k, u32>,
    step: Reg<'k, u32>,
    unroll: u32,
    trips: Trips,
    no_unroll: bool,
}

/// What is known of a range's number of trips while the kernel is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trips {
    Unknown,
    Exactly(u32),
    /// Each thread makes that many, or one more.
    OrOneMore(u32),
}

/// Types that a Rust `for` can iterate over: ranges of the device are not among them.
///
/// ```compile_fail,E0277
/// use warpwright_dsl::*;
/// fn wrong<'k>(k: K<'k>, y: Ptr<'k, Global, u32>) {
///     for i in k.range(0..4) {
///         y.st(i, 0);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the host cannot run through a range of the device",
    label = "use `k.each(range, |i| ..)`, or `k.fold(range, init, |i, state| ..)` where state goes around",
    note = "a Rust `for i in 0..4` writes its body four times: it unrolls"
)]
pub trait RunsThrough<R> {}

// So that the compiler says the above.
impl<'k> Iterator for Range<'k>
where
    Host: RunsThrough<Range<'k>>,
{
    type Item = Reg<'k, u32>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

impl<'k> Range<'k> {
    pub(super) fn start(self) -> Reg<'k, u32> {
        self.lo
    }

    pub(super) fn end(self) -> Reg<'k, u32> {
        self.hi
    }

    pub(super) fn stride(self) -> Reg<'k, u32> {
        self.step
    }

    /// Counts by `step`, which is not zero.
    #[track_caller]
    pub fn step(mut self, step: impl IntoReg<'k, u32>) -> Self {
        let loc = Location::caller();
        self.step = step.into_reg(self.lo.k, loc);
        if self.step.k.state().int_of(self.step.id) == Some(0) {
            self.step.k.state().mistake(Code::ImmediateRange, loc, "a range that steps by zero never ends");
            self.step = self.step.k.u32(1);
        }
        self.stepping(self.step, false)
    }

    fn stepping(mut self, step: Reg<'k, u32>, below_step: bool) -> Self {
        self.step = step;
        self.count_trips(below_step);
        self
    }

    /// Runs the closure `n` times per iteration, with a second loop for the remainder.
    #[track_caller]
    pub fn unroll(mut self, n: u32) -> Self {
        if n == 0 {
            let loc = Location::caller();
            self.lo.k.state().mistake(Code::ImmediateRange, loc, "a loop is unrolled once at least");
        }
        self.unroll = n.max(1);
        self
    }

    /// Asks `ptxas` not to unroll the loop.
    pub fn no_unroll(mut self) -> Self {
        self.no_unroll = true;
        self
    }

    /// Finds the number of trips, where the bounds are constants. `below_step`: the range begins
    /// somewhere below its step, differently in each thread.
    fn count_trips(&mut self, below_step: bool) {
        let state = self.lo.k.state();
        let known = |reg: Reg<'k, u32>| state.int_of(reg.id).and_then(|v| u32::try_from(v).ok());
        self.trips = match (known(self.lo), known(self.hi), known(self.step)) {
            (Some(lo), Some(hi), Some(step)) if step > 0 => {
                Trips::Exactly(hi.saturating_sub(lo).div_ceil(step))
            }
            (None, Some(hi), Some(step)) if step > 0 && below_step => match hi % step {
                0 => Trips::Exactly(hi / step),
                _ => Trips::OrOneMore(hi / step),
            },
            _ => Trips::Unknown,
        };
    }
}

impl<'k> K<'k> {
    /// `lo, lo + 1, … < hi`. Both bounds have one type: if one is a register, write the other as `k.u32(number)`.
    #[track_caller]
    pub fn range<B: IntoReg<'k, u32>>(self, bounds: std::ops::Range<B>) -> Range<'k> {
        let loc = Location::caller();
        let (lo, hi) = (bounds.start.into_reg(self, loc), bounds.end.into_reg(self, loc));
        let mut range =
            Range { lo, hi, step: self.u32(1), unroll: 1, trips: Trips::Unknown, no_unroll: false };
        range.count_trips(false);
        range
    }

    /// `0, 1, … < n`.
    #[track_caller]
    pub fn upto(self, n: impl IntoReg<'k, u32>) -> Range<'k> {
        let n = n.into_reg(self, Location::caller());
        self.range(self.u32(0)..n)
    }

    /// `tid, tid + ntid, … < n`: the threads of the block step through `0..n` together, neighbours side by side.
    #[track_caller]
    pub fn strided(self, n: impl IntoReg<'k, u32>) -> Range<'k> {
        let n = n.into_reg(self, Location::caller());
        self.range(self.tid()..n).stepping(self.ntid(), true)
    }

    /// `lane, lane + 32, … < n`: the lanes of the warp step through `0..n` together.
    #[track_caller]
    pub fn warp_strided(self, n: impl IntoReg<'k, u32>) -> Range<'k> {
        let n = n.into_reg(self, Location::caller());
        self.range(self.lane()..n).stepping(self.u32(32), true)
    }

    /// The threads of the whole grid step through `0..n` together.
    #[track_caller]
    pub fn grid_strided(self, n: impl IntoReg<'k, u32>) -> Range<'k> {
        let n = n.into_reg(self, Location::caller());
        self.range(self.global_tid()..n).stepping(self.nctaid() * self.ntid(), false)
    }

    /// Loops on the device.
    #[track_caller]
    pub fn each(self, range: Range<'k>, body: impl Fn(Reg<'k, u32>)) {
        self.counted("each", range, (), |i, ()| body(i), Location::caller());
    }

    /// Loops on the device with state: `body` takes the state and returns the next. Returns the last.
    #[track_caller]
    pub fn fold<C: Carry<'k>>(self, range: Range<'k>, init: C, body: impl Fn(Reg<'k, u32>, C) -> C) -> C {
        self.counted("fold", range, init, body, Location::caller())
    }

    /// A loop that counts, on the line of whoever asked for it.
    pub(super) fn counted<C: Carry<'k>>(
        self,
        name: &'static str,
        range: Range<'k>,
        init: C,
        body: impl Fn(Reg<'k, u32>, C) -> C,
        loc: Loc,
    ) -> C {
        let Range { lo, hi, step, unroll, trips, no_unroll } = range;
        for bound in [lo, hi, step] {
            if !self.state().usable(bound.id, loc) {
                return init;
            }
        }
        let at = |i: Reg<'k, u32>, copies: u32| {
            let offset = step.binary(Binary::Mul, self.u32(copies), loc);
            i.binary(Binary::Add, offset, loc)
        };
        let replay = |i: Reg<'k, u32>, carry: C, copies: u32| {
            (0..copies).fold(carry, |carry, copy| body(at(i, copy), carry))
        };
        let (least, exact) = match trips {
            Trips::Exactly(n) => (n, true),
            Trips::OrOneMore(n) => (n, false),
            Trips::Unknown if unroll == 1 => {
                return self.count(name, (lo, hi, step), (false, no_unroll), init, &body, loc).1;
            }
            Trips::Unknown => {
                // `i + (unroll - 1) · step < hi`, with the sum on the other side: it could wrap.
                let ahead = at(self.u32(0), unroll - 1);
                let limit = hi.binary(Binary::Max, ahead, loc).binary(Binary::Sub, ahead, loc);
                let stride = at(self.u32(0), unroll);
                let trip = |i, carry| replay(i, carry, unroll);
                let (i, carry) = self.count(name, (lo, limit, stride), (false, true), init, &trip, loc);
                return self.count(name, (i, hi, step), (false, true), carry, &body, loc).1;
            }
        };
        if unroll == 1 && least > 1 {
            return self.count(name, (lo, hi, step), (true, no_unroll), init, &body, loc).1;
        }
        // All threads make the same number of whole trips, and then the same number of single ones.
        let whole = least / unroll;
        let (i, carry) = if whole > 1 {
            let first = self.state().int_of(lo.id).unwrap_or(0);
            let first = self.u32(u32::try_from(first).unwrap_or(0));
            let (limit, stride) = (at(first, whole * unroll), at(self.u32(0), unroll));
            let trip = |i, carry| replay(i, carry, unroll);
            self.count(name, (lo, limit, stride), (true, true), init, &trip, loc)
        } else {
            (at(lo, whole * unroll), replay(lo, init, whole * unroll))
        };
        let carry = replay(i, carry, least % unroll);
        if exact {
            return carry;
        }
        let last = at(i, least % unroll);
        let more = Reg::new(self, self.state().compare(Cmp::Lt, u32::TYPE, last.id, hi.id, loc));
        self.branch(more, || body(last, carry), loc).else_(|| carry)
    }

    /// A counting loop; yields the counter and the state after it.
    fn count<C: Carry<'k>>(
        self,
        name: &'static str,
        (lo, hi, step): (Reg<'k, u32>, Reg<'k, u32>, Reg<'k, u32>),
        (entered, no_unroll): (bool, bool),
        init: C,
        body: &dyn Fn(Reg<'k, u32>, C) -> C,
        loc: Loc,
    ) -> (Reg<'k, u32>, C) {
        let enter =
            (!entered).then(|| Reg::new(self, self.state().compare(Cmp::Lt, u32::TYPE, lo.id, hi.id, loc)));
        self.looped(name, enter, Some(step), no_unroll, (lo, init), loc, |(i, carry)| {
            let carry = body(i, carry);
            let next = i.binary(Binary::Add, step, loc);
            let again = Reg::new(self, self.state().compare(Cmp::Lt, u32::TYPE, next.id, hi.id, loc));
            ((next, carry), Some(again))
        })
    }

    /// The loop that all others are: guard before, test at the bottom. Where the body yields no
    /// test, it is left from inside.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn looped<C: Carry<'k>>(
        self,
        name: &'static str,
        guard: Option<Reg<'k, Pred>>,
        step: Option<Reg<'k, u32>>,
        no_unroll: bool,
        init: C,
        loc: Loc,
        body: impl FnOnce(C) -> (C, Option<Reg<'k, Pred>>),
    ) -> C {
        let inits = registers(&init);
        let mut state = self.state();
        let guard = match guard {
            Some(guard) if !state.usable(guard.id, loc) => return init,
            Some(guard) => Some(state.register(guard.id, loc)),
            None => None,
        };
        for &reg in &inits {
            if !state.usable(reg, loc) {
                return init;
            }
        }
        let id = state.loops.len() as u32;
        let (block, outer) = state.open(Some(id));
        let carried: Vec<_> = (inits.iter().enumerate())
            .map(|(i, &init)| {
                let ty = state.value(init).ty;
                let value = state.define(ty, Def::Carried(id, i as u32));
                Carried { value, init, next: POISON }
            })
            .collect();
        let values: Vec<_> = carried.iter().map(|carried| carried.value).collect();
        let induction = step.map(|step| (values[0], step.id));
        state.loops.push(Loop {
            name,
            loc,
            guard,
            body: block,
            again: None,
            carried,
            induction,
            bumps: Vec::new(),
            no_unroll,
        });
        drop(state);
        let (next, again) = body(with_registers(self, &init, &values));
        let nexts = registers(&next);
        let what = "a loop's state begins as a tile of one shape and goes on as one of another";
        let alike = same_shape(self, (&init, &next), what, loc);
        let mut state = self.state();
        let usable = alike
            && again.is_none_or(|again| state.usable(again.id, loc))
            && nexts.iter().all(|&reg| state.usable(reg, loc));
        if usable {
            let again = again.map(|again| state.register(again.id, loc));
            let looped = &mut state.loops[id as usize];
            looped.again = again;
            for (carried, &next) in looped.carried.iter_mut().zip(&nexts) {
                carried.next = next;
            }
        }
        state.close(outer);
        if !usable {
            // Reported above, or poison that was reported before.
            drop(state);
            return with_registers(self, &init, &[]);
        }
        state.push_node(Node::Loop(id));
        let results: Vec<_> = (values.iter())
            .map(|&value| {
                let ty = state.value(value).ty;
                state.define(ty, Def::Result(value))
            })
            .collect();
        drop(state);
        with_registers(self, &init, &results)
    }

    /// Loops while `condition` holds. Both closures observe changes of [`Var`]s and memory.
    #[track_caller]
    pub fn while_(self, condition: impl Fn() -> Reg<'k, Pred>, body: impl Fn()) {
        let loc = Location::caller();
        let guard = condition();
        self.looped("while", Some(guard), None, false, (), loc, |()| {
            body();
            ((), Some(condition()))
        });
    }

    /// Loops with state while `condition` holds for the state.
    #[track_caller]
    pub fn fold_while<C: Carry<'k>>(
        self,
        init: C,
        condition: impl Fn(C) -> Reg<'k, Pred>,
        body: impl Fn(C) -> C,
    ) -> C {
        let loc = Location::caller();
        let guard = condition(init);
        self.looped("while", Some(guard), None, false, init, loc, |carry| {
            let next = body(carry);
            (next, Some(condition(next)))
        })
    }

    /// Ends the thread where the predicate holds.
    #[track_caller]
    pub fn exit_if(self, condition: Reg<'k, Pred>) {
        self.not_called("an exit", Location::caller());
        self.append_if(condition, warpwright_ptx::op::control::Exit {});
    }

    /// Aborts the kernel.
    #[track_caller]
    pub fn trap(self) {
        self.append(warpwright_ptx::op::control::Trap {});
    }

    /// A variable: state that closures may read and change, for cases where a fold would be awkward.
    #[track_caller]
    pub fn var<T: Element>(self, init: impl IntoReg<'k, T>) -> Var<'k, T> {
        let loc = Location::caller();
        let init = init.into_reg(self, loc);
        let mut state = self.state();
        let id = if state.usable(init.id, loc) {
            let id = state.written(T::TYPE);
            state.write(id, init.id, loc);
            id
        } else {
            POISON
        };
        drop(state);
        Var { reg: Reg::new(self, id) }
    }
}

/// A variable of the kernel: see [`K::var`].
#[derive(Clone, Copy, Debug)]
pub struct Var<'k, T: Element> {
    reg: Reg<'k, T>,
}

impl<'k, T: Element> Var<'k, T> {
    /// What it holds now.
    #[track_caller]
    pub fn get(self) -> Reg<'k, T> {
        let loc = Location::caller();
        self.reg.unary(loc, |d, a| emit::mov(emit::register_type(T::TYPE), d, a))
    }

    /// Makes it hold `value`.
    #[track_caller]
    pub fn set(self, value: impl IntoReg<'k, T>) {
        let loc = Location::caller();
        let value = value.into_reg(self.reg.k, loc);
        let mut state = self.reg.k.state();
        if state.usable(self.reg.id, loc) && state.usable(value.id, loc) {
            state.write(self.reg.id, value.id, loc);
        }
    }
}
