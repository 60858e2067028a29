//! Atomic operations.

use super::Ptr;
use super::pointer::Index;
use super::reg::{IntoReg, Reg};
use super::state::POISON;
use super::types::*;
use std::panic::Location;
use warpwright_ptx::ir::{DstOrSink, Dsts, Scope, Semantics, Src, Srcs, Type};
use warpwright_ptx::op::atomic::{Atom, AtomCas, AtomicOp, Red};

/// Elements that can be added to atomically.
pub trait AtomicAdd: Data {
    /// The type of the operation.
    #[doc(hidden)]
    const ADD: Type = Self::TYPE;
}
impl AtomicAdd for u32 {}
impl AtomicAdd for i32 {}
impl AtomicAdd for u64 {}
impl AtomicAdd for i64 {
    // Sums do not depend on the sign.
    const ADD: Type = Type::U64;
}
impl AtomicAdd for f32 {}
impl AtomicAdd for f64 {}
impl AtomicAdd for F16 {}
impl AtomicAdd for F16x2 {}

/// Elements with atomic minimum and maximum.
pub trait AtomicMinMax: Data {}
impl AtomicMinMax for u32 {}
impl AtomicMinMax for i32 {}
impl AtomicMinMax for u64 {}
impl AtomicMinMax for i64 {}

/// Elements that can be exchanged atomically.
pub trait AtomicBits: Data {}
impl AtomicBits for u32 {}
impl AtomicBits for i32 {}
impl AtomicBits for u64 {}
impl AtomicBits for i64 {}
impl AtomicBits for f32 {}
impl AtomicBits for f64 {}

/// Ordering and scope of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    semantics: Semantics,
    scope: Scope,
}

impl<'k, S: Visible, T: Data> Ptr<'k, S, T> {
    fn order(self) -> Order {
        let (semantics, scope) = self.ordering();
        Order { semantics: semantics.unwrap_or(Semantics::Relaxed), scope: scope.unwrap_or(Scope::Gpu) }
    }

    fn atom(
        self,
        op: AtomicOp,
        ty: Type,
        index: impl Index<'k>,
        value: Reg<'k, T>,
        loc: super::state::Loc,
    ) -> Reg<'k, T> {
        let order = self.order();
        let address = self.at_loc(index, loc).address();
        let mut state = self.k.state();
        if address.base == warpwright_ptx::ir::AddressBase::Reg(POISON) || !state.usable(value.id, loc) {
            return Reg::new(self.k, POISON);
        }
        let b = Srcs::One(Src::Reg(state.register(value.id, loc)));
        let d = state.written(T::TYPE);
        let op = Atom {
            semantics: Some(order.semantics),
            scope: Some(order.scope),
            space: Some(S::SPACE),
            op,
            noftz: matches!(ty, Type::F16 | Type::F16X2),
            cache_hint: false,
            vector: None,
            ty,
            d: Dsts::One(d),
            address,
            b,
            policy: None,
        };
        state.effect(op, None, loc);
        drop(state);
        Reg::new(self.k, d)
    }

    fn red(self, op: AtomicOp, ty: Type, index: impl Index<'k>, value: Reg<'k, T>, loc: super::state::Loc) {
        let order = self.order();
        let address = self.at_loc(index, loc).address();
        let mut state = self.k.state();
        if address.base == warpwright_ptx::ir::AddressBase::Reg(POISON) || !state.usable(value.id, loc) {
            return;
        }
        let value = state.register(value.id, loc);
        // A reduction has no acquiring side.
        let semantics = match order.semantics {
            Semantics::Release | Semantics::AcqRel => Semantics::Release,
            _ => Semantics::Relaxed,
        };
        let op = Red {
            semantics: Some(semantics),
            scope: Some(order.scope),
            space: Some(S::SPACE),
            op,
            noftz: matches!(ty, Type::F16 | Type::F16X2),
            cache_hint: false,
            vector: None,
            ty,
            address,
            b: Srcs::One(Src::Reg(value)),
            policy: None,
        };
        state.effect(op, None, loc);
    }
}

macro_rules! atomics {
    ($($bound:ident { $($(#[$doc:meta])* $name:ident $op:ident $ty:expr;)* })*) => {
        $(impl<'k, S: Visible, T: $bound> Ptr<'k, S, T> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, index: impl Index<'k>, value: impl IntoReg<'k, T>) -> Reg<'k, T> {
                let loc = Location::caller();
                let value = value.into_reg(self.k, loc);
                self.atom(AtomicOp::$op, $ty, index, value, loc)
            })*
        })*
    };
}

atomics! {
    AtomicAdd {
        /// Adds to element `index`; yields what was there. Relaxed at device scope unless the pointer
        /// says otherwise, as are the others.
        atomic_add Add T::ADD;
    }
    AtomicMinMax {
        /// Stores the smaller; yields what was there.
        atomic_min Min T::TYPE;
        /// Stores the larger; yields what was there.
        atomic_max Max T::TYPE;
        /// Stores the bitwise and; yields what was there.
        atomic_and And super::emit::bits_type(T::TYPE);
        /// Stores the bitwise or; yields what was there.
        atomic_or Or super::emit::bits_type(T::TYPE);
        /// Stores the bitwise exclusive or; yields what was there.
        atomic_xor Xor super::emit::bits_type(T::TYPE);
    }
    AtomicBits {
        /// Stores the value; yields what was there.
        atomic_exch Exch super::emit::bits_type(T::TYPE);
    }
}

impl<'k, S: Visible, T: AtomicBits> Ptr<'k, S, T> {
    /// Stores `value` in element `index` if its bits are those of `expected`; yields what was there.
    #[track_caller]
    pub fn atomic_cas(
        self,
        index: impl Index<'k>,
        expected: impl IntoReg<'k, T>,
        value: impl IntoReg<'k, T>,
    ) -> Reg<'k, T> {
        let loc = Location::caller();
        let (expected, value) = (expected.into_reg(self.k, loc), value.into_reg(self.k, loc));
        let order = self.order();
        let address = self.at_loc(index, loc).address();
        let mut state = self.k.state();
        if address.base == warpwright_ptx::ir::AddressBase::Reg(POISON)
            || !state.usable(expected.id, loc)
            || !state.usable(value.id, loc)
        {
            return Reg::new(self.k, POISON);
        }
        let (b, c) = (state.register(expected.id, loc).into(), state.register(value.id, loc).into());
        let d = state.written(T::TYPE);
        let op = AtomCas {
            semantics: Some(order.semantics),
            scope: Some(order.scope),
            space: Some(S::SPACE),
            ty: super::emit::bits_type(T::TYPE),
            d: DstOrSink(Some(d)),
            address,
            b,
            c,
        };
        state.effect(op, None, loc);
        drop(state);
        Reg::new(self.k, d)
    }
}

impl<'k, S: Visible> Ptr<'k, S, u32> {
    /// Counts element `index` up, and from `last` back to zero; yields what was there. So `last + 1` threads
    /// that count leave it as they have found it.
    #[track_caller]
    pub fn atomic_count(self, index: impl Index<'k>, last: impl IntoReg<'k, u32>) -> Reg<'k, u32> {
        let loc = Location::caller();
        let last = last.into_reg(self.k, loc);
        self.atom(AtomicOp::Inc, Type::U32, index, last, loc)
    }
}

impl<'k, S: Visible, T: AtomicAdd> Ptr<'k, S, T> {
    /// Adds to element `index`, and does not ask what was there.
    #[track_caller]
    pub fn reduce_add(self, index: impl Index<'k>, value: impl IntoReg<'k, T>) {
        let loc = Location::caller();
        let value = value.into_reg(self.k, loc);
        self.red(AtomicOp::Add, T::ADD, index, value, loc);
    }
}

impl<'k, S: Visible, T: AtomicMinMax> Ptr<'k, S, T> {
    /// Stores the larger, and does not ask what was there.
    #[track_caller]
    pub fn reduce_max(self, index: impl Index<'k>, value: impl IntoReg<'k, T>) {
        let loc = Location::caller();
        let value = value.into_reg(self.k, loc);
        self.red(AtomicOp::Max, T::TYPE, index, value, loc);
    }

    /// Stores the smaller, and does not ask what was there.
    #[track_caller]
    pub fn reduce_min(self, index: impl Index<'k>, value: impl IntoReg<'k, T>) {
        let loc = Location::caller();
        let value = value.into_reg(self.k, loc);
        self.red(AtomicOp::Min, T::TYPE, index, value, loc);
    }
}
