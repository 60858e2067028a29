//! Atomic operations and reductions in memory.

use super::memory::{
    Fit, destinations, ordering_among, policy, release, scope_needs, sources, space_among, space_needs,
};
use super::{instruction, modifiers};
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// The operation.
    pub enum AtomicOp {
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
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

/// What `atom` and `red` have in common.
struct Common<'a> {
    semantics: Option<Semantics>,
    scope: Option<Scope>,
    space: Option<Space>,
    op: AtomicOp,
    noftz: bool,
    cache_hint: bool,
    vector: Option<VectorWidth>,
    ty: Type,
    address: &'a Address,
    b: &'a Srcs,
    policy: Option<&'a Src>,
}

macro_rules! common {
    ($op:expr) => {
        Common {
            semantics: $op.semantics,
            scope: $op.scope,
            space: $op.space,
            op: $op.op,
            noftz: $op.noftz,
            cache_hint: $op.cache_hint,
            vector: $op.vector,
            ty: $op.ty,
            address: &$op.address,
            b: &$op.b,
            policy: $op.policy.as_ref(),
        }
    };
}

instruction! {
    /// Changes memory atomically and returns the old value.
    pub struct Atom("atom") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        op: AtomicOp,
        noftz: bool = "noftz",
        cache_hint: bool = "L2::cache_hint",
        vector: Option<VectorWidth>,
        ty: Type,
    }(d: Dsts, address: Address, b: Srcs, policy: Option<Src>) -> unknown,
        needs: |op, needs| common!(op).needs(needs),
        check: |op, check| {
            ordering_among(check, op.semantics, ATOM_ORDERINGS, ", ");
            common!(op).check(check);
            if op.d != Dsts::Sink {
                destinations(check, &op.d, op.vector, op.ty, Fit::Exact);
            }
        };

    /// Stores `c` if memory holds `b`, atomically, and returns the old value.
    pub struct AtomCas("atom.cas") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(d: DstOrSink, address: Address, b: Src, c: Src) -> unknown,
        needs: |op, needs| {
            order_needs(needs, op.semantics, op.scope, op.space);
            match op.ty {
                B16 => needs.both("`.cas.b16`", (6, 3), 70),
                B128 => needs.both("an atomic `.b128`", (8, 3), 90),
                _ => {}
            }
        },
        check: |op, check| {
            ordering_among(check, op.semantics, ATOM_ORDERINGS, ", ");
            space_among(check, op.space, SPACES);
            check.type_among(op.ty, &[B16, B32, B64, B128]);
            check.data_address("address", &op.address, op.space);
            if let Some(d) = op.d.0 {
                check.reg("d", d, op.ty);
            }
            check.src("b", &op.b, op.ty);
            check.src("c", &op.c, op.ty);
        };

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
    }(address: Address, b: Srcs, policy: Option<Src>) -> nothing,
        needs: |op, needs| common!(op).needs(needs),
        check: |op, check| {
            ordering_among(check, op.semantics, RED_ORDERINGS, ", ");
            check.combination(op.op != AtomicOp::Exch, "a reduction is not `.exch`");
            common!(op).check(check);
        };

    /// Changes memory atomically and asynchronously: shared memory of the cluster, with completion at an mbarrier, or
    /// global memory.
    pub struct RedAsync("red.async") {
        mmio: bool = "mmio",
        semantics: Semantics,
        scope: Scope,
        space: Option<Space>,
        /// The mbarrier counts the bytes.
        complete_tx: bool = "mbarrier::complete_tx::bytes",
        op: AtomicOp,
        ty: Type,
    }(address: Address, b: Src, barrier: Option<Address>) -> nothing,
        needs: |op, needs| {
            needs.both("`red.async`", (8, 1), 90);
            needs.both_if(!op.complete_tx, "`red.async` with `.release`", (8, 7), 100);
            scope_needs(needs, Some(op.scope));
            space_needs(needs, op.space);
        },
        check: |op, check| {
            deferred(check, op.op, op.ty, &op.b);
            if op.complete_tx {
                check.combination(
                    op.semantics == Semantics::Relaxed && op.scope == Scope::Cluster && !op.mmio,
                    "a reduction that an mbarrier counts is `.relaxed.cluster`",
                );
                space_among(check, op.space, &[None, Some(Space::SharedCluster)]);
                check.wide_address("address", &op.address, Some(Space::SharedCluster));
                check.address("barrier", &op.barrier, Some(Space::SharedCluster));
                check.that(op.barrier.is_some(), Code::OperandCount, "the operand `barrier` is missing");
            } else {
                release(check, Some(op.semantics), Some(op.scope), op.space, op.mmio);
                check.wide_address("address", &op.address, op.space);
                check.that(
                    op.barrier.is_none(),
                    Code::OperandCount,
                    "the operand `barrier` needs `.mbarrier::complete_tx::bytes`",
                );
            }
        };

    /// Changes each location of a multimem address atomically and asynchronously.
    pub struct MultimemRedAsync("multimem.red.async") {
        semantics: Semantics,
        scope: Scope,
        space: Option<Space>,
        op: AtomicOp,
        ty: Type,
    }(address: Address, b: Src) -> nothing,
        needs: |_, needs| needs.both("`multimem.red.async`", (9, 3), 100),
        check: |op, check| {
            deferred(check, op.op, op.ty, &op.b);
            release(check, Some(op.semantics), Some(op.scope), op.space, false);
            check.wide_address("address", &op.address, op.space);
        };
}

fn is_half(ty: Type) -> bool {
    matches!(ty, F16 | F16X2 | BF16 | BF16X2)
}

/// The types of a vector operation.
const VECTOR: &[Type] = &[F16, F16X2, BF16, BF16X2, F32];

/// Spaces that atomic operations reach.
const SPACES: &[Option<Space>] =
    &[None, Some(Space::Global), Some(Space::Shared), Some(Space::SharedCta), Some(Space::SharedCluster)];

impl Common<'_> {
    fn check(&self, check: &mut Check<'_>) {
        space_among(check, self.space, SPACES);
        let types: &[Type] = match (self.op, self.vector.is_some()) {
            (AtomicOp::Add, true) => VECTOR,
            (AtomicOp::Min | AtomicOp::Max, true) => &VECTOR[..4],
            (_, true) => &[],
            (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor, _) => &[B32, B64],
            (AtomicOp::Exch, _) => &[B32, B64, B128],
            (AtomicOp::Add, _) => &[U32, S32, U64, F16, F16X2, BF16, BF16X2, F32, F64],
            (AtomicOp::Inc | AtomicOp::Dec, _) => &[U32],
            (AtomicOp::Min | AtomicOp::Max, _) => &[U32, S32, U64, S64],
        };
        if types.is_empty() {
            check.combination(false, format_args!("`{}` has no vector form", self.op));
        } else {
            check.type_among(self.ty, types);
        }
        check.combination(!is_half(self.ty) || self.noftz, "operations on halves need `.noftz`");
        check.combination(
            !self.noftz || is_half(self.ty) || self.ty == F32 && self.op == AtomicOp::Add,
            "`.noftz` goes with halves, and with sums of `.f32`",
        );
        if let Some(vector) = self.vector {
            let global = matches!(self.space, None | Some(Space::Global));
            check.that(global, Code::StateSpace, "vector operations are global or generic");
            check.that(
                vector.elements() as u32 * self.ty.bits() <= 128,
                Code::VectorShape,
                format_args!("there is no `{vector}{}`: a vector has up to 128 bits", self.ty),
            );
        }
        check.data_address("address", self.address, self.space);
        sources(check, self.b, self.vector, self.ty, Fit::Exact);
        policy(check, self.cache_hint, self.space, self.policy);
    }

    fn needs(&self, needs: &mut Needs) {
        order_needs(needs, self.semantics, self.scope, self.space);
        match self.ty {
            _ if self.vector.is_some() => needs.both("a vector operation", (8, 1), 90),
            F64 => needs.sm("an atomic `.f64`", 60),
            F16X2 => needs.both("an atomic `.f16x2`", (6, 2), 60),
            F16 => needs.both("an atomic `.f16`", (6, 3), 70),
            BF16 | BF16X2 => needs.both("an atomic `.bf16`", (7, 8), 90),
            B128 => needs.both("an atomic `.b128`", (8, 3), 90),
            _ => {}
        }
        needs.both_if(self.noftz && self.ty == F32, "`.noftz` with `.f32`", (9, 4), 90);
        needs.both_if(self.cache_hint, "`.L2::cache_hint`", (7, 4), 80);
    }
}

fn order_needs(needs: &mut Needs, semantics: Option<Semantics>, scope: Option<Scope>, space: Option<Space>) {
    needs.sm_if(semantics.is_some(), "an ordered access", 70);
    needs.sm_if(scope.is_some(), "a scope", 60);
    scope_needs(needs, scope);
    space_needs(needs, space);
}

const ATOM_ORDERINGS: &[Semantics] =
    &[Semantics::Relaxed, Semantics::Acquire, Semantics::Release, Semantics::AcqRel];
const RED_ORDERINGS: &[Semantics] = &[Semantics::Relaxed, Semantics::Release];

/// The operation and operand of a reduction that happens later.
fn deferred(check: &mut Check<'_>, op: AtomicOp, ty: Type, b: &Src) {
    let types: &[Type] = match op {
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => &[B32],
        AtomicOp::Add => &[U32, S32, U64, S64],
        AtomicOp::Inc | AtomicOp::Dec => &[U32],
        AtomicOp::Min | AtomicOp::Max => &[U32, S32],
        AtomicOp::Exch => return check.combination(false, "a reduction is not `.exch`"),
    };
    check.type_among(ty, types);
    check.src("b", b, ty);
}
