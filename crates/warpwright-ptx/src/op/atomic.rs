//! Atomic operations and reductions in memory.

use super::memory::{Fit, destinations, policy, release, scope_needs, sources, space_among, space_needs};
use super::{Rule, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// What an atomic operation does.
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
    }(d: Dsts, address: Address, b: Srcs, policy: Option<Src>) -> unknown,
        needs: |op, needs| op.common().needs(needs);

    /// Stores `c` where memory holds `b`, atomically, and returns what was there.
    pub struct AtomCas("atom.cas") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        ty: Type,
    }(d: DstOrSink, address: Address, b: Src, c: Src) -> unknown,
        needs: |op, needs| {
            order_needs(needs, op.semantics, op.scope, op.space);
            match op.ty {
                Type::B16 => needs.both("`.cas.b16`", (6, 3), 70),
                Type::B128 => needs.both("an atomic `.b128`", (8, 3), 90),
                _ => {}
            }
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
        needs: |op, needs| op.common().needs(needs),
        check: |op, check| {
            ordering(check, op.semantics, RED_ORDERINGS);
            check.combination(op.op != AtomicOp::Exch, "a reduction is not `.exch`");
            op.common().check(check);
        };

    /// Changes memory atomically and later: shared memory of the cluster, announced to an mbarrier,
    /// or global memory.
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
            if !op.complete_tx {
                needs.both("`red.async` with `.release`", (8, 7), 100);
            }
            scope_needs(needs, Some(op.scope));
            space_needs(needs, op.space);
        };

    /// Changes each place of a multimem address atomically and later.
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
    matches!(ty, Type::F16 | Type::F16X2 | Type::BF16 | Type::BF16X2)
}

/// The types of a vector operation.
const VECTOR: &[Type] = &[Type::F16, Type::F16X2, Type::BF16, Type::BF16X2, Type::F32];

/// Spaces that atomic operations reach.
const SPACES: &[Option<Space>] =
    &[None, Some(Space::Global), Some(Space::Shared), Some(Space::SharedCta), Some(Space::SharedCluster)];

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

impl Common<'_> {
    fn check(&self, check: &mut Check<'_>) {
        use Type::*;
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
            check.combination(false, &format!("`{}` has no vector form", self.op));
        } else {
            check.type_among(self.ty, types);
        }
        check.combination(!is_half(self.ty) || self.noftz, "operations on halves need `.noftz`");
        check.combination(
            !self.noftz || is_half(self.ty) || self.ty == F32 && self.op == AtomicOp::Add,
            "`.noftz` goes with halves, and with sums of `.f32`",
        );
        if let Some(vector) = self.vector {
            if !matches!(self.space, None | Some(Space::Global)) {
                check.report(Code::StateSpace, "vector operations are global or generic");
            }
            if vector.elements() as u32 * self.ty.bits() > 128 {
                check.report(
                    Code::VectorShape,
                    format!("there is no `{vector}{}`: a vector has up to 128 bits", self.ty),
                );
            }
        }
        check.data_address("address", self.address, self.space);
        sources(check, self.b, self.vector, self.ty, Fit::Exact);
        policy(check, self.cache_hint, self.space, self.policy);
    }

    fn needs(&self, needs: &mut Needs) {
        order_needs(needs, self.semantics, self.scope, self.space);
        match self.ty {
            _ if self.vector.is_some() => needs.both("a vector operation", (8, 1), 90),
            Type::F64 => needs.sm("an atomic `.f64`", 60),
            Type::F16X2 => needs.both("an atomic `.f16x2`", (6, 2), 60),
            Type::F16 => needs.both("an atomic `.f16`", (6, 3), 70),
            Type::BF16 | Type::BF16X2 => needs.both("an atomic `.bf16`", (7, 8), 90),
            Type::B128 => needs.both("an atomic `.b128`", (8, 3), 90),
            _ => {}
        }
        if self.noftz && self.ty == Type::F32 {
            needs.both("`.noftz` with `.f32`", (9, 4), 90);
        }
        if self.cache_hint {
            needs.both("`.L2::cache_hint`", (7, 4), 80);
        }
    }
}

fn order_needs(needs: &mut Needs, semantics: Option<Semantics>, scope: Option<Scope>, space: Option<Space>) {
    if semantics.is_some() {
        needs.sm("an ordered access", 70);
    }
    if scope.is_some() {
        needs.sm("a scope", 60);
    }
    scope_needs(needs, scope);
    space_needs(needs, space);
}

fn ordering(check: &mut Check<'_>, semantics: Option<Semantics>, allowed: &[Semantics]) {
    if let Some(semantics) = semantics
        && !allowed.contains(&semantics)
    {
        let names: Vec<_> = allowed.iter().map(|semantics| format!("`{semantics}`")).collect();
        check.report(
            Code::ModifierCombination,
            format!("the ordering `{semantics}` is not offered; it takes {}", names.join(", ")),
        );
    }
}

const ATOM_ORDERINGS: &[Semantics] =
    &[Semantics::Relaxed, Semantics::Acquire, Semantics::Release, Semantics::AcqRel];
const RED_ORDERINGS: &[Semantics] = &[Semantics::Relaxed, Semantics::Release];

impl Atom {
    fn common(&self) -> Common<'_> {
        Common {
            semantics: self.semantics,
            scope: self.scope,
            space: self.space,
            op: self.op,
            noftz: self.noftz,
            cache_hint: self.cache_hint,
            vector: self.vector,
            ty: self.ty,
            address: &self.address,
            b: &self.b,
            policy: self.policy.as_ref(),
        }
    }
}

impl Rule for Atom {
    fn check(&self, check: &mut Check<'_>) {
        ordering(check, self.semantics, ATOM_ORDERINGS);
        self.common().check(check);
        if self.d != Dsts::Sink {
            destinations(check, &self.d, self.vector, self.ty, Fit::Exact);
        }
    }
}

impl Rule for AtomCas {
    fn check(&self, check: &mut Check<'_>) {
        ordering(check, self.semantics, ATOM_ORDERINGS);
        space_among(check, self.space, SPACES);
        check.type_among(self.ty, &[Type::B16, Type::B32, Type::B64, Type::B128]);
        check.data_address("address", &self.address, self.space);
        if let Some(d) = self.d.0 {
            check.reg("d", d, self.ty);
        }
        check.src("b", &self.b, self.ty);
        check.src("c", &self.c, self.ty);
    }
}

impl Red {
    fn common(&self) -> Common<'_> {
        Common {
            semantics: self.semantics,
            scope: self.scope,
            space: self.space,
            op: self.op,
            noftz: self.noftz,
            cache_hint: self.cache_hint,
            vector: self.vector,
            ty: self.ty,
            address: &self.address,
            b: &self.b,
            policy: self.policy.as_ref(),
        }
    }
}

/// The operation and operand of a reduction that happens later.
fn deferred(check: &mut Check<'_>, op: AtomicOp, ty: Type, b: &Src) {
    use Type::*;
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

impl Rule for RedAsync {
    fn check(&self, check: &mut Check<'_>) {
        deferred(check, self.op, self.ty, &self.b);
        if self.complete_tx {
            check.combination(
                self.semantics == Semantics::Relaxed && self.scope == Scope::Cluster && !self.mmio,
                "a reduction that an mbarrier counts is `.relaxed.cluster`",
            );
            space_among(check, self.space, &[None, Some(Space::SharedCluster)]);
            check.wide_address("address", &self.address, Some(Space::SharedCluster));
            match &self.barrier {
                Some(barrier) => check.address("barrier", barrier, Some(Space::SharedCluster)),
                None => check.report(Code::OperandCount, "the operand `barrier` is missing"),
            }
        } else {
            release(check, Some(self.semantics), Some(self.scope), self.space, self.mmio);
            check.wide_address("address", &self.address, self.space);
            if self.barrier.is_some() {
                check.report(
                    Code::OperandCount,
                    "the operand `barrier` needs `.mbarrier::complete_tx::bytes`",
                );
            }
        }
    }
}
