//! Atomic operations.

use super::Ptr;
use super::guard::Guard;
use super::pointer::Index;
use super::reg::{IntoReg, Reg};
use super::state::{Loc, POISON, State};
use super::types::*;
use std::panic::Location;
use warpwright_ptx::ir::{self, Address, AddressBase, DstOrSink, Dsts, Scope, Semantics, Src, Srcs, Type};
use warpwright_ptx::op::atomic::{Atom, AtomCas, AtomicOp, Red};

/// Elements that can be added to atomically.
pub trait AtomicAdd: Data {
    /// The type of the operation.
    #[doc(hidden)]
    const ADD: Type = Self::TYPE;
}
impl AtomicAdd for i64 {
    // Sums do not depend on the sign.
    const ADD: Type = Type::U64;
}

/// Elements with atomic minimum and maximum.
pub trait AtomicMinMax: Data {}

/// Elements that can be exchanged atomically.
pub trait AtomicBits: Data {}

macro_rules! elements {
    ($($bound:ident: $($ty:ty)*;)*) => {
        $($(impl $bound for $ty {})*)*
    };
}

elements! {
    AtomicAdd: u32 i32 u64 f32 f64 F16 F16x2;
    AtomicMinMax: u32 i32 u64 i64;
    AtomicBits: u32 i32 u64 i64 f32 f64;
}

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

    /// The place of an operation and its guard, where all that it takes may be used.
    fn place(
        self,
        condition: Option<Reg<'k, Pred>>,
        index: impl Index<'k>,
        values: &[Reg<'k, T>],
        loc: Loc,
    ) -> Option<(Address, Option<(ir::Reg, bool)>)> {
        let address = self.at_loc(index, loc).address();
        let mut state = self.k.state();
        let usable = address.base != AddressBase::Reg(POISON)
            && values.iter().all(|value| state.usable(value.id, loc));
        if usable { state.guard(condition, loc).map(|guard| (address, guard)) } else { None }
    }

    /// An operation that returns the old value; `default` where the guard is false.
    fn atom(
        self,
        op: AtomicOp,
        ty: Type,
        (condition, default): (Option<Reg<'k, Pred>>, Reg<'k, T>),
        index: impl Index<'k>,
        value: Reg<'k, T>,
        loc: Loc,
    ) -> Reg<'k, T> {
        let order = self.order();
        let Some((address, guard)) = self.place(condition, index, &[value], loc) else {
            return Reg::new(self.k, POISON);
        };
        let mut state = self.k.state();
        let b = Srcs::One(Src::Reg(state.register(value.id, loc)));
        let d = state.written(T::TYPE);
        state.unless(guard, d, default.id, loc);
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
        state.effect(op, guard, loc);
        drop(state);
        Reg::new(self.k, d)
    }

    fn red(
        self,
        op: AtomicOp,
        ty: Type,
        condition: Option<Reg<'k, Pred>>,
        index: impl Index<'k>,
        value: Reg<'k, T>,
        loc: Loc,
    ) {
        let order = self.order();
        let Some((address, guard)) = self.place(condition, index, &[value], loc) else { return };
        let mut state = self.k.state();
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
        state.effect(op, guard, loc);
    }
}

impl State {
    /// The result of a guarded instruction where the guard is false: `default`.
    fn unless(&mut self, guard: Option<(ir::Reg, bool)>, d: ir::Reg, default: ir::Reg, loc: Loc) {
        if guard.is_some() && self.usable(default, loc) {
            let (ty, default) = (super::emit::register_type(self.value(d).ty), self.operand(default, loc));
            self.effect(super::emit::mov(ty, d, default), None, loc);
        }
    }
}

macro_rules! atomics {
    ($($bound:ident { $($(#[$doc:meta])* $name:ident $name_if:ident $op:ident $ty:expr;)* })*) => {
        $(impl<'k, S: Visible, T: $bound> Ptr<'k, S, T> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, index: impl Index<'k>, value: impl IntoReg<'k, T>) -> Reg<'k, T> {
                self.$name_if(None, index, value, Reg::new(self.k, POISON))
            }

            #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") where the predicate holds; \
                elsewhere it yields `default`.")]
            #[track_caller]
            pub fn $name_if(
                self,
                condition: impl Guard<'k>,
                index: impl Index<'k>,
                value: impl IntoReg<'k, T>,
                default: impl IntoReg<'k, T>,
            ) -> Reg<'k, T> {
                let loc = Location::caller();
                let (value, default) = (value.into_reg(self.k, loc), default.into_reg(self.k, loc));
                self.atom(AtomicOp::$op, $ty, (condition.predicate(), default), index, value, loc)
            })*
        })*
    };
}

atomics! {
    AtomicAdd {
        /// Adds to element `index`; returns the old value. This and the other operations are relaxed at device scope
        /// unless the pointer specifies otherwise.
        atomic_add atomic_add_if Add T::ADD;
    }
    AtomicMinMax {
        /// Stores the smaller; returns the old value.
        atomic_min atomic_min_if Min T::TYPE;
        /// Stores the larger; returns the old value.
        atomic_max atomic_max_if Max T::TYPE;
        /// Stores the bitwise and; returns the old value.
        atomic_and atomic_and_if And super::emit::bits_type(T::TYPE);
        /// Stores the bitwise or; returns the old value.
        atomic_or atomic_or_if Or super::emit::bits_type(T::TYPE);
        /// Stores the bitwise exclusive or; returns the old value.
        atomic_xor atomic_xor_if Xor super::emit::bits_type(T::TYPE);
    }
    AtomicBits {
        /// Stores the value; returns the old value.
        atomic_exch atomic_exch_if Exch super::emit::bits_type(T::TYPE);
    }
}

macro_rules! reductions {
    ($($bound:ident { $($(#[$doc:meta])* $name:ident $name_if:ident $op:ident $ty:expr;)* })*) => {
        $(impl<'k, S: Visible, T: $bound> Ptr<'k, S, T> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, index: impl Index<'k>, value: impl IntoReg<'k, T>) {
                self.$name_if(None, index, value);
            }

            #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") where the predicate holds.")]
            #[track_caller]
            pub fn $name_if(
                self,
                condition: impl Guard<'k>,
                index: impl Index<'k>,
                value: impl IntoReg<'k, T>,
            ) {
                let loc = Location::caller();
                let value = value.into_reg(self.k, loc);
                self.red(AtomicOp::$op, $ty, condition.predicate(), index, value, loc);
            })*
        })*
    };
}

reductions! {
    AtomicAdd {
        /// Adds to element `index` without returning the old value.
        reduce_add reduce_add_if Add T::ADD;
    }
    AtomicMinMax {
        /// Stores the larger without returning the old value.
        reduce_max reduce_max_if Max T::TYPE;
        /// Stores the smaller without returning the old value.
        reduce_min reduce_min_if Min T::TYPE;
    }
}

impl<'k, S: Visible, T: AtomicBits> Ptr<'k, S, T> {
    /// Stores `value` in element `index` if its bits equal those of `expected`; returns the old value.
    #[track_caller]
    pub fn atomic_cas(
        self,
        index: impl Index<'k>,
        expected: impl IntoReg<'k, T>,
        value: impl IntoReg<'k, T>,
    ) -> Reg<'k, T> {
        self.atomic_cas_if(None, index, expected, value, Reg::new(self.k, POISON))
    }

    /// [`atomic_cas`](Self::atomic_cas) where the predicate holds; elsewhere it returns `default`.
    #[track_caller]
    pub fn atomic_cas_if(
        self,
        condition: impl Guard<'k>,
        index: impl Index<'k>,
        expected: impl IntoReg<'k, T>,
        value: impl IntoReg<'k, T>,
        default: impl IntoReg<'k, T>,
    ) -> Reg<'k, T> {
        let loc = Location::caller();
        let [expected, value] = [expected.into_reg(self.k, loc), value.into_reg(self.k, loc)];
        let default = default.into_reg(self.k, loc);
        let order = self.order();
        let Some((address, guard)) = self.place(condition.predicate(), index, &[expected, value], loc) else {
            return Reg::new(self.k, POISON);
        };
        let mut state = self.k.state();
        let (b, c) = (state.register(expected.id, loc).into(), state.register(value.id, loc).into());
        let d = state.written(T::TYPE);
        state.unless(guard, d, default.id, loc);
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
        state.effect(op, guard, loc);
        drop(state);
        Reg::new(self.k, d)
    }
}

impl<'k, S: Visible> Ptr<'k, S, u32> {
    /// Increments element `index`, and wraps from `last` to zero; returns the old value. After `last + 1` increments
    /// the element has its original value again.
    #[track_caller]
    pub fn atomic_count(self, index: impl Index<'k>, last: impl IntoReg<'k, u32>) -> Reg<'k, u32> {
        let loc = Location::caller();
        let last = last.into_reg(self.k, loc);
        self.atom(AtomicOp::Inc, Type::U32, (None, last), index, last, loc)
    }
}
