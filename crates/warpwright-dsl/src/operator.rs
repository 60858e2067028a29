//! Reductions and scans over states of any kind, by an operator that the kernel defines.
//!
//! The operator must be associative: `(a ∘ b) ∘ c = a ∘ (b ∘ c)`. It need not be commutative, since states are
//! combined in the order of the lanes and threads, and it needs no neutral element. All threads of the warp, or of
//! the block, take part; a reduction returns the same bits in all of them. For sums, minima and maxima of numbers,
//! [`K::warp_sum`], [`K::block_max`] and the like are faster.

use super::K;
use super::carry::{Carry, registers, with_registers};
use super::reg::{IntoReg, Reg};
use super::state::{Loc, POISON};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::ir::Type;

/// An expression with `T` standing for the element type of a register's type.
macro_rules! of_type {
    ($ty:expr, $name:ident => $value:expr) => {
        of_type!(@ $ty, $name => $value; F32 f32, F64 f64, S32 i32, U64 u64, S64 i64, U16 u16, S16 i16,
            U8 u8, S8 i8, F16 F16, BF16 Bf16, F16X2 F16x2, BF16X2 Bf16x2)
    };
    (@ $ty:expr, $name:ident => $value:expr; $($case:ident $element:ty),*) => {
        match $ty {
            $(Type::$case => {
                type $name = $element;
                $value
            })*
            _ => {
                type $name = u32;
                $value
            }
        }
    };
}

impl<'k> K<'k> {
    /// The states of the lanes of the warp, combined by the operator: see [`block_reduce_by`](Self::block_reduce_by).
    #[track_caller]
    pub fn warp_reduce_by<C: Carry<'k>>(self, state: C, operator: impl Fn(C, C) -> C) -> C {
        self.on_line(Location::caller(), || {
            let first = self.reduce_down(state, 32, &operator);
            self.broadcast(first, 0)
        })
    }

    /// The states of the threads of the block, combined by the operator in the threads' order, in all of them.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// /// The largest of the block's numbers, and the least index that has it.
    /// fn argmax<'k>(k: K<'k>, x: Reg<'k, f32>, i: Reg<'k, u32>) -> (Reg<'k, f32>, Reg<'k, u32>) {
    ///     k.block_reduce_by((x, i), |a, b| {
    ///         let second = b.0.gt(a.0) | b.0.eq(a.0) & b.1.lt(a.1);
    ///         second.choose(b, a)
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn block_reduce_by<C: Carry<'k>>(self, state: C, operator: impl Fn(C, C) -> C) -> C {
        let loc = Location::caller();
        let Some(warps) = self.collective_warps(loc) else { return C::poison(self) };
        self.on_line(loc, || {
            let first = self.reduce_down(state, 32, &operator);
            if warps == 1 {
                return self.broadcast(first, 0);
            }
            let of_warps = self.of_warps(first, self.lane().eq(0), warps, loc);
            let first = self.reduce_down(of_warps, warps, &operator);
            self.broadcast(first, 0)
        })
    }

    /// The states of the lanes up to this one, itself included, combined by the operator.
    #[track_caller]
    pub fn warp_scan_by<C: Carry<'k>>(self, state: C, operator: impl Fn(C, C) -> C) -> C {
        self.on_line(Location::caller(), || {
            [1, 2, 4, 8, 16].into_iter().fold(state, |state, distance| {
                let lower = self.shuffle_up(state, distance);
                self.lane().ge(distance).choose(operator(lower, state), state)
            })
        })
    }

    /// The states of the threads up to this one, itself included, combined by the operator, and those of the block.
    ///
    /// ```
    /// use warpwright_dsl::*;
    /// /// The sums of segments: each begins where `head` holds.
    /// fn segmented<'k>(k: K<'k>, head: Reg<'k, Pred>, x: Reg<'k, f32>) -> Reg<'k, f32> {
    ///     let ((_, sum), _) = k.block_scan_by((head, x), |a, b| (a.0 | b.0, b.0.select(b.1, a.1 + b.1)));
    ///     sum
    /// }
    /// ```
    #[track_caller]
    pub fn block_scan_by<C: Carry<'k>>(self, state: C, operator: impl Fn(C, C) -> C) -> (C, C) {
        let loc = Location::caller();
        let Some(warps) = self.collective_warps(loc) else { return (C::poison(self), C::poison(self)) };
        self.on_line(loc, || {
            let in_warp = self.warp_scan_by(state, &operator);
            if warps == 1 {
                return (in_warp, self.broadcast(in_warp, 31));
            }
            let of_warps = self.of_warps(in_warp, self.lane().eq(31), warps, loc);
            let of_warps = self.warp_scan_by(of_warps, &operator);
            let warp = self.warp();
            let before = self.shuffle_idx(of_warps, warp - 1);
            let up_to = warp.gt(0).choose(operator(before, in_warp), in_warp);
            (up_to, self.broadcast(of_warps, warps - 1))
        })
    }

    /// The states of the first `lanes` lanes combined in their order, in lane 0. The result in other lanes is
    /// meaningless.
    fn reduce_down<C: Carry<'k>>(self, state: C, lanes: u32, operator: &impl Fn(C, C) -> C) -> C {
        let distances = std::iter::successors(Some(1), |distance| Some(distance * 2));
        distances.take_while(|distance| *distance < lanes).fold(state, |state, distance| {
            let both = operator(state, self.shuffle_down(state, distance));
            if lanes.is_power_of_two() {
                both
            } else {
                (self.lane() + distance).lt(lanes).choose(both, state)
            }
        })
    }

    /// The state of thread `thread` of the block, in all its threads.
    #[track_caller]
    pub fn block_broadcast<C: Carry<'k>>(self, state: C, thread: impl IntoReg<'k, u32>) -> C {
        let loc = Location::caller();
        let thread = thread.into_reg(self, loc);
        self.on_line(loc, || self.through_scratch(state, self.linear_tid().eq(thread), [self.u32(0); 2], loc))
    }

    /// In lane `i` of each warp the state that warp `i` has where the predicate holds, in one lane of it. Lanes beyond
    /// the warps have that of the last.
    fn of_warps<C: Carry<'k>>(self, state: C, holds: Reg<'k, Pred>, warps: u32, loc: Loc) -> C {
        let (lane, warp) = (self.lane(), self.warp());
        let place = if warps.is_power_of_two() { lane & (warps - 1) } else { lane.min(warps - 1) };
        self.through_scratch(state, holds, [warp, place], loc)
    }

    /// The threads for which the predicate holds store their state at `to` of the scratch; each thread loads the
    /// state at `from`.
    fn through_scratch<C: Carry<'k>>(
        self,
        state: C,
        holds: Reg<'k, Pred>,
        [to, from]: [Reg<'k, u32>; 2],
        loc: Loc,
    ) -> C {
        let regs = registers(&state);
        let types: Vec<_> = regs.iter().map(|&reg| self.state().type_of(reg)).collect();
        for (which, (&reg, ty)) in regs.iter().zip(&types).enumerate() {
            match ty {
                Some(Type::Pred) => {
                    let bit = Reg::<Pred>::new(self, reg).u32();
                    self.collective_scratch::<u32>(which, loc).st_if(holds, to, bit);
                }
                Some(ty) => of_type!(*ty, T => {
                    self.collective_scratch::<T>(which, loc).st_if(holds, to, Reg::new(self, reg))
                }),
                None => return C::poison(self),
            }
        }
        self.sync();
        let regs: Vec<_> = (types.iter().enumerate())
            .map(|(which, ty)| match ty {
                Some(Type::Pred) => self.collective_scratch::<u32>(which, loc).ld(from).ne(0).id,
                Some(ty) => of_type!(*ty, T => self.collective_scratch::<T>(which, loc).ld(from).id),
                None => POISON,
            })
            .collect();
        // The scratch is free for the next once all have read it.
        self.sync();
        with_registers(self, &state, &regs)
    }
}
