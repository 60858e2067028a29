//! Atomic operations and reductions in memory.

use super::{Rule, instruction, modifiers};
use crate::ir::*;
use crate::verify::Check;

modifiers! {
    /// What an atomic operation does.
    pub enum AtomicOp {
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Store if equal.
        Cas = "cas",
        /// Store.
        Exch = "exch",
        /// Sum.
        Add = "add",
        /// Increment up to a bound, then zero.
        Inc = "inc",
        /// Decrement, from zero to a bound.
        Dec = "dec",
        /// Minimum.
        Min = "min",
        /// Maximum.
        Max = "max",
    }
}

instruction! {
    /// Changes memory atomically and returns what was there.
    pub struct Atom("atom") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        op: AtomicOp,
        noftz: bool = "noftz",
        cache_hint: bool = "L2::cache_hint",
        vector: Option<VectorWidth>,
        ty: Type,
    }(d: Dsts, address: Address, b: Srcs, c: Option<Srcs>)

    /// Changes memory atomically.
    pub struct Red("red") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        op: AtomicOp,
        noftz: bool = "noftz",
        cache_hint: bool = "L2::cache_hint",
        vector: Option<VectorWidth>,
        ty: Type,
    }(address: Address, b: Srcs, policy: Option<Src>)
}

impl Rule for Atom {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Red {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
