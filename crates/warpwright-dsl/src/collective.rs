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
use warpwright_ptx::op::Op;
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

    /// The value or state of lane `lane`, in all lanes of the warp.
    #[track_caller]
    pub fn broadcast<C: Carry<'k>>(self, value: C, lane: impl IntoReg<'k, u32>) -> C {
        self.shuffle_idx(value, lane)
    }

    /// An instruction of the warp on a register of every lane.
    fn of_lanes<T: Element, U: Element, O: Into<Op>>(
        self,
        value: Reg<'k, T>,
        loc: Loc,
        op: impl FnOnce(ir::Reg, Src) -> O,
    ) -> Reg<'k, U> {
        if !self.state().usable(value.id, loc) {
            return Reg::new(self, POISON);
        }
        let a = Src::Reg(self.state().register(value.id, loc));
        self.written(loc, |d| op(d, a))
    }

    fn vote<T: Element>(self, mode: VoteMode, condition: Reg<'k, Pred>, loc: Loc) -> Reg<'k, T> {
        let ty = if mode == VoteMode::Ballot { Type::B32 } else { Type::Pred };
        self.of_lanes(condition, loc, |d, a| Vote { mode, ty, d: Dst(d), a, mask: ALL_LANES })
    }

    /// The lanes that execute this together, as a mask.
    #[track_caller]
    pub fn active_mask(self) -> Reg<'k, u32> {
        self.written(Location::caller(), |d| ActiveMask { ty: Type::B32, d: Dst(d) })
    }

    fn warp_reduce<T: Reduce>(self, combine: Combine, value: Reg<'k, T>, loc: Loc) -> Reg<'k, T> {
        if !T::TYPE.is_float() && self.target().sm >= 80 {
            return self.redux(combine, value, loc);
        }
        self.butterfly(combine, value, 32, loc)
    }

    fn redux<T: Reduce>(self, combine: Combine, value: Reg<'k, T>, loc: Loc) -> Reg<'k, T> {
        let op = match combine {
            Combine::Sum => ReduxOp::Add,
            Combine::Max => ReduxOp::Max,
            Combine::Min => ReduxOp::Min,
        };
        self.of_lanes(value, loc, |d, a| Redux {
            op,
            abs: false,
            nan: false,
            ty: T::TYPE,
            d: Dst(d),
            a,
            mask: ALL_LANES,
        })
    }

    /// Combines over runs of `lanes` lanes, a power of two.
    pub(super) fn butterfly<T: Reduce>(
        self,
        combine: Combine,
        value: Reg<'k, T>,
        lanes: u32,
        loc: Loc,
    ) -> Reg<'k, T> {
        (0..lanes.ilog2()).rev().fold(value, |value, bit| {
            let other = self.shuffle(ShuffleMode::Bfly, value, self.u32(1 << bit), 31, loc);
            combine.apply(value, other, loc)
        })
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
        if warps == 1 || partial.id == POISON {
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

    /// True in one lane of the warp, chosen by the hardware where it can; false in the others.
    #[track_caller]
    pub fn elect(self) -> Reg<'k, Pred> {
        if self.target().sm < 90 {
            return self.lane().eq(0);
        }
        self.written(Location::caller(), |d| Elect {
            d: DstPair { first: None, second: Some(Some(d)) },
            mask: ALL_LANES,
        })
    }

    /// The lanes that hold the same value, as a mask.
    #[track_caller]
    pub fn match_any<T: Word>(self, value: Reg<'k, T>) -> Reg<'k, u32> {
        self.of_lanes(value, Location::caller(), |d, a| {
            let d = DstPair { first: Some(d), second: None };
            Match { mode: MatchMode::Any, ty: Type::B32, d, a, mask: ALL_LANES }
        })
    }

    /// Whether it holds in any thread of the block.
    #[track_caller]
    pub fn block_any(self, condition: Reg<'k, Pred>) -> Reg<'k, Pred> {
        self.block_max(condition.u32()).ne(0)
    }
}

macro_rules! shuffles {
    ($($(#[$doc:meta])* $name:ident($lanes:ident) $mode:ident $clamp:literal;)*) => {
        impl<'k> K<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name<C: Carry<'k>>(self, value: C, $lanes: impl IntoReg<'k, u32>) -> C {
                let loc = Location::caller();
                self.shuffle(ShuffleMode::$mode, value, $lanes.into_reg(self, loc), $clamp, loc)
            })*
        }
    };
}

shuffles! {
    /// The value or state of the lane whose number differs from this lane's in the bits of `mask`.
    shuffle_xor(mask) Bfly 31;
    /// The value or state of the lane `delta` lower; the lane's own in the lowest lanes.
    shuffle_up(delta) Up 0;
    /// The value or state of the lane `delta` higher; the lane's own in the highest lanes.
    shuffle_down(delta) Down 31;
    /// The value or state of that lane (modulo 32).
    shuffle_idx(lane) Idx 31;
}

macro_rules! votes {
    ($($(#[$doc:meta])* $name:ident $mode:ident $result:ty;)*) => {
        impl<'k> K<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, condition: Reg<'k, Pred>) -> Reg<'k, $result> {
                self.vote(VoteMode::$mode, condition, Location::caller())
            })*
        }
    };
}

votes! {
    /// Whether it holds in any lane of the warp.
    any Any Pred;
    /// Whether it holds in all lanes of the warp.
    all All Pred;
    /// Whether it has the same value in all lanes of the warp.
    uniform Uni Pred;
    /// The lanes in which it holds, as a mask.
    ballot Ballot u32;
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $reduce:ident $combine:ident;)*) => {
        impl<'k> K<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name<T: Reduce>(self, value: Reg<'k, T>) -> Reg<'k, T> {
                self.$reduce(Combine::$combine, value, Location::caller())
            })*
        }
    };
}

reductions! {
    /// The sum over the warp, in all its lanes.
    warp_sum warp_reduce Sum;
    /// The maximum over the warp, in all its lanes.
    warp_max warp_reduce Max;
    /// The minimum over the warp, in all its lanes.
    warp_min warp_reduce Min;
    /// The sum over the block, in all its threads.
    block_sum block_reduce Sum;
    /// The maximum over the block, in all its threads.
    block_max block_reduce Max;
    /// The minimum over the block, in all its threads.
    block_min block_reduce Min;
}
