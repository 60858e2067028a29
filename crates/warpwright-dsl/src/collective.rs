//! Collectives: values over the lanes of a warp and the threads of a block.
//!
//! All threads of the warp, or of the block, take part.

use super::K;
use super::carry::{self, Carry};
use super::emit;
use super::reg::{IntoReg, Reg};
use super::state::{Loc, POISON, State};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::{self, Cmp, Dst, DstPair, Imm, Src, Type};
use warpwright_ptx::op::warp::*;

/// Elements that reductions combine.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no reduction of its own",
    label = "not `u32`, `i32` or `f32`",
    note = "`k.warp_reduce_by(x, |a, b| a + b)` and `k.block_reduce_by` take every state and operator"
)]
pub trait Reduce: Ordered + Word {
    /// Smaller than any other.
    #[doc(hidden)]
    const LOWEST: Imm;
    /// Larger than any other.
    #[doc(hidden)]
    const HIGHEST: Imm;
    #[doc(hidden)]
    const ZERO: Imm;
}

impl Reduce for u32 {
    const LOWEST: Imm = Imm::Int(0);
    const HIGHEST: Imm = Imm::Int(u32::MAX as i64);
    const ZERO: Imm = Imm::Int(0);
}

impl Reduce for i32 {
    const LOWEST: Imm = Imm::Int(i32::MIN as i64);
    const HIGHEST: Imm = Imm::Int(i32::MAX as i64);
    const ZERO: Imm = Imm::Int(0);
}

impl Reduce for f32 {
    const LOWEST: Imm = Imm::F32(f32::NEG_INFINITY.to_bits());
    const HIGHEST: Imm = Imm::F32(f32::INFINITY.to_bits());
    const ZERO: Imm = Imm::F32(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Sum,
    Max,
    Min,
}

impl Combine {
    pub(super) fn apply<'k, T: Reduce>(self, a: Reg<'k, T>, b: Reg<'k, T>, loc: Loc) -> Reg<'k, T> {
        use super::reg::Binary;
        let op = match self {
            Combine::Sum => Binary::Add,
            Combine::Max => Binary::Max,
            Combine::Min => Binary::Min,
        };
        a.binary(op, b, loc)
    }

    fn identity<T: Reduce>(self) -> Imm {
        match self {
            Combine::Sum => T::ZERO,
            Combine::Max => T::LOWEST,
            Combine::Min => T::HIGHEST,
        }
    }
}

const ALL_LANES: Src = Src::Imm(Imm::Int(-1));

impl State {
    /// Takes a value through the closure in words of 32 bits.
    fn as_words(
        &mut self,
        reg: ir::Reg,
        loc: Loc,
        mut word: impl FnMut(&mut Self, ir::Reg) -> ir::Reg,
    ) -> ir::Reg {
        let ty = self.value(reg).ty;
        match ty.bits() {
            32 => word(self, reg),
            64 => {
                let whole = self.register(reg, loc);
                let halves = self.pure_many(Type::U32, loc, |halves: [ir::Reg; 2]| {
                    emit::unpack(Type::B64, halves.map(Some), whole)
                });
                let halves = halves.map(|half| word(self, half));
                self.pure(ty, loc, |d| emit::pack(Type::B64, d, halves))
            }
            1 => {
                let holds = self.register(reg, loc);
                let [one, zero] = [1, 0].map(|v| Src::Imm(Imm::Int(v)));
                let bit = self.pure(Type::U32, loc, |d| emit::selp(Type::B32, d, one, zero.clone(), holds));
                let bit = word(self, bit);
                self.pure(ty, loc, |d| emit::setp(Cmp::Ne, Type::U32, d, Src::Reg(bit), zero))
            }
            _ => {
                let narrow = Src::Reg(self.register(reg, loc));
                let wide = self.pure(Type::U32, loc, |d| emit::cvt(None, Type::U32, Type::U16, d, narrow));
                let wide = word(self, wide);
                self.pure(ty, loc, |d| emit::cvt(None, Type::U16, Type::U32, d, Src::Reg(wide)))
            }
        }
    }
}

impl<'k> K<'k> {
    /// A state of another lane, register by register.
    pub(super) fn shuffle<C: Carry<'k>>(
        self,
        mode: ShuffleMode,
        value: C,
        lanes: Reg<'k, u32>,
        clamp: i64,
        loc: Loc,
    ) -> C {
        carry::map(self, &value, |reg| {
            let mut state = self.state();
            if !(state.usable(reg, loc) && state.usable(lanes.id, loc)) {
                return POISON;
            }
            let b = state.operand(lanes.id, loc);
            state.as_words(reg, loc, |state, word| {
                let a = Src::Reg(state.register(word, loc));
                let d = state.written(state.value(word).ty);
                let pair = DstPair { first: Some(d), second: None };
                let c = Src::Imm(Imm::Int(clamp));
                let op = Shfl { mode, ty: Type::B32, d: pair, a, b: b.clone(), c, mask: ALL_LANES };
                state.effect(op, None, loc);
                d
            })
        })
    }

    /// The value or state of the lane whose number differs in the bits of `mask`.
    #[track_caller]
    pub fn shuffle_xor<C: Carry<'k>>(self, value: C, mask: impl IntoReg<'k, u32>) -> C {
        let loc = Location::caller();
        self.shuffle(ShuffleMode::Bfly, value, mask.into_reg(self, loc), 31, loc)
    }

    /// The value or state of the lane `delta` lower; the own one in the lowest lanes.
    #[track_caller]
    pub fn shuffle_up<C: Carry<'k>>(self, value: C, delta: impl IntoReg<'k, u32>) -> C {
        let loc = Location::caller();
        self.shuffle(ShuffleMode::Up, value, delta.into_reg(self, loc), 0, loc)
    }

    /// The value or state of the lane `delta` higher; the own one in the highest lanes.
    #[track_caller]
    pub fn shuffle_down<C: Carry<'k>>(self, value: C, delta: impl IntoReg<'k, u32>) -> C {
        let loc = Location::caller();
        self.shuffle(ShuffleMode::Down, value, delta.into_reg(self, loc), 31, loc)
    }

    /// The value or state of that lane (modulo 32).
    #[track_caller]
    pub fn shuffle_idx<C: Carry<'k>>(self, value: C, lane: impl IntoReg<'k, u32>) -> C {
        let loc = Location::caller();
        self.shuffle(ShuffleMode::Idx, value, lane.into_reg(self, loc), 31, loc)
    }

    /// The value or state of lane `lane`, in all lanes of the warp.
    #[track_caller]
    pub fn broadcast<C: Carry<'k>>(self, value: C, lane: impl IntoReg<'k, u32>) -> C {
        self.shuffle_idx(value, lane)
    }

    fn vote<T: Element>(self, mode: VoteMode, condition: Reg<'k, Pred>, loc: Loc) -> Reg<'k, T> {
        let mut state = self.state();
        if !state.usable(condition.id, loc) {
            return Reg::new(self, POISON);
        }
        let a = Src::Reg(state.register(condition.id, loc));
        let d = state.written(T::TYPE);
        let ty = if mode == VoteMode::Ballot { Type::B32 } else { Type::Pred };
        state.effect(Vote { mode, ty, d: Dst(d), a, mask: ALL_LANES }, None, loc);
        drop(state);
        Reg::new(self, d)
    }

    /// Whether it holds in any lane of the warp.
    #[track_caller]
    pub fn any(self, condition: Reg<'k, Pred>) -> Reg<'k, Pred> {
        self.vote(VoteMode::Any, condition, Location::caller())
    }

    /// Whether it holds in all lanes of the warp.
    #[track_caller]
    pub fn all(self, condition: Reg<'k, Pred>) -> Reg<'k, Pred> {
        self.vote(VoteMode::All, condition, Location::caller())
    }

    /// Whether it is the same in all lanes of the warp.
    #[track_caller]
    pub fn uniform(self, condition: Reg<'k, Pred>) -> Reg<'k, Pred> {
        self.vote(VoteMode::Uni, condition, Location::caller())
    }

    /// The lanes in which it holds, as a mask.
    #[track_caller]
    pub fn ballot(self, condition: Reg<'k, Pred>) -> Reg<'k, u32> {
        self.vote(VoteMode::Ballot, condition, Location::caller())
    }

    /// The lanes that execute this together, as a mask.
    #[track_caller]
    pub fn active_mask(self) -> Reg<'k, u32> {
        let mut state = self.state();
        let d = state.written(Type::U32);
        state.effect(ActiveMask { ty: Type::B32, d: Dst(d) }, None, Location::caller());
        drop(state);
        Reg::new(self, d)
    }

    /// The sum over the warp, in all its lanes.
    #[track_caller]
    pub fn warp_sum<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.warp_reduce(Combine::Sum, value, Location::caller())
    }

    /// The maximum over the warp, in all its lanes.
    #[track_caller]
    pub fn warp_max<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.warp_reduce(Combine::Max, value, Location::caller())
    }

    /// The minimum over the warp, in all its lanes.
    #[track_caller]
    pub fn warp_min<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.warp_reduce(Combine::Min, value, Location::caller())
    }

    fn warp_reduce<T: Reduce>(self, combine: Combine, value: Reg<'k, T>, loc: Loc) -> Reg<'k, T> {
        if !T::TYPE.is_float() && self.target().sm >= 80 {
            return self.redux(combine, value, loc);
        }
        self.butterfly(combine, value, 32, loc)
    }

    fn redux<T: Reduce>(self, combine: Combine, value: Reg<'k, T>, loc: Loc) -> Reg<'k, T> {
        let mut state = self.state();
        if !state.usable(value.id, loc) {
            return Reg::new(self, POISON);
        }
        let a = Src::Reg(state.register(value.id, loc));
        let d = state.written(T::TYPE);
        let op = match combine {
            Combine::Sum => ReduxOp::Add,
            Combine::Max => ReduxOp::Max,
            Combine::Min => ReduxOp::Min,
        };
        let redux = Redux { op, abs: false, nan: false, ty: T::TYPE, d: Dst(d), a, mask: ALL_LANES };
        state.effect(redux, None, loc);
        drop(state);
        Reg::new(self, d)
    }

    /// Combines over runs of `lanes` lanes, a power of two.
    pub(super) fn butterfly<T: Reduce>(
        self,
        combine: Combine,
        value: Reg<'k, T>,
        lanes: u32,
        loc: Loc,
    ) -> Reg<'k, T> {
        let mut value = value;
        let mut distance = lanes / 2;
        while distance > 0 {
            let other = self.shuffle(ShuffleMode::Bfly, value, self.u32(distance), 31, loc);
            value = combine.apply(value, other, loc);
            distance /= 2;
        }
        value
    }

    /// The sum over the block, in all its threads.
    #[track_caller]
    pub fn block_sum<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.block_reduce(Combine::Sum, value, Location::caller())
    }

    /// The maximum over the block, in all its threads.
    #[track_caller]
    pub fn block_max<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.block_reduce(Combine::Max, value, Location::caller())
    }

    /// The minimum over the block, in all its threads.
    #[track_caller]
    pub fn block_min<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
        self.block_reduce(Combine::Min, value, Location::caller())
    }

    /// The warps of the block, where the launch rule says how many; a mistake elsewhere.
    pub(super) fn collective_warps(self, loc: Loc) -> Option<u32> {
        let message = match self.block_dims().map(|dims| dims.iter().product::<u32>()) {
            Some(threads) if threads % 32 == 0 && (32..=1024).contains(&threads) => {
                return Some(threads / 32);
            }
            Some(threads) => {
                format!("a collective over a block of {threads} threads; it takes whole warps of 32")
            }
            None => "a collective over the block needs a launch rule that fixes the block".into(),
        };
        self.state().mistake(Code::ModifierCombination, loc, message);
        None
    }

    /// Warps reduce by themselves, leave their results in shared memory, and each combines them all.
    fn block_reduce<T: Reduce>(self, combine: Combine, value: Reg<'k, T>, loc: Loc) -> Reg<'k, T> {
        let Some(warps) = self.collective_warps(loc) else { return Reg::new(self, POISON) };
        let partial = self.warp_reduce(combine, value, loc);
        if warps == 1 {
            return partial;
        }
        if partial.id == POISON {
            return partial;
        }
        let scratch = self.collective_scratch::<T>(0, loc);
        let (lane, warp) = (self.lane(), self.warp());
        scratch.st_if(lane.eq(0), warp, partial);
        self.sync();
        let all = if warps.is_power_of_two() {
            scratch.ld(lane & (warps - 1))
        } else {
            let neutral: Reg<'k, T> = self.constant(combine.identity::<T>());
            scratch.ld_if(lane.lt(warps), lane, neutral)
        };
        let result = self.butterfly(combine, all, warps.next_power_of_two(), loc);
        // The scratch is free for the next reduction once all have read it.
        self.sync();
        if warps.is_power_of_two() { result } else { self.broadcast(result, 0) }
    }

    /// One lane of the warp, chosen by the hardware where it can: true there, false elsewhere.
    #[track_caller]
    pub fn elect(self) -> Reg<'k, Pred> {
        if self.target().sm < 90 {
            return self.lane().eq(0);
        }
        let mut state = self.state();
        let d = state.written(Type::Pred);
        let pair = DstPair { first: None, second: Some(Some(d)) };
        state.effect(Elect { d: pair, mask: ALL_LANES }, None, Location::caller());
        drop(state);
        Reg::new(self, d)
    }

    /// The lanes that hold the same value, as a mask.
    #[track_caller]
    pub fn match_any<T: Word>(self, value: Reg<'k, T>) -> Reg<'k, u32> {
        let loc = Location::caller();
        let mut state = self.state();
        if !state.usable(value.id, loc) {
            return Reg::new(self, POISON);
        }
        let a = Src::Reg(state.register(value.id, loc));
        let d = state.written(Type::U32);
        let pair = DstPair { first: Some(d), second: None };
        state.effect(Match { mode: MatchMode::Any, ty: Type::B32, d: pair, a, mask: ALL_LANES }, None, loc);
        drop(state);
        Reg::new(self, d)
    }

    /// Whether it holds in any thread of the block.
    #[track_caller]
    pub fn block_any(self, condition: Reg<'k, Pred>) -> Reg<'k, Pred> {
        self.block_max(condition.u32()).ne(0)
    }
}
