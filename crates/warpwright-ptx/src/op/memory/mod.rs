//! Loads, stores, prefetches, cache policies and the stack.

mod cache;
mod deferred;
mod load_store;
mod multimem;
mod stack;

pub use cache::*;
pub(in crate::op) use deferred::release;
pub use deferred::{MultimemStAsync, StAsync, StBulk};
pub use load_store::*;
pub use multimem::*;
pub use stack::*;

use super::modifiers;
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;
use crate::op::check::list;

modifiers! {
    /// The caching of a load.
    pub enum LoadCache {
        /// At all levels.
        Ca = "ca",
        /// At the global level (L2) only.
        Cg = "cg",
        /// Streaming: likely used once.
        Cs = "cs",
        /// Last use.
        Lu = "lu",
        /// Not at all: fetch again.
        Cv = "cv",
    }

    /// The caching of a store.
    pub enum StoreCache {
        /// Write back, at all levels.
        Wb = "wb",
        /// At the global level (L2) only.
        Cg = "cg",
        /// Streaming: likely used once.
        Cs = "cs",
        /// Through to system memory.
        Wt = "wt",
    }

    /// Priority in the L1 cache.
    pub enum L1Eviction {
        /// Normal.
        Normal = "L1::evict_normal",
        /// Not changed.
        Unchanged = "L1::evict_unchanged",
        /// First to be evicted.
        First = "L1::evict_first",
        /// Last to be evicted.
        Last = "L1::evict_last",
        /// Not kept.
        NoAllocate = "L1::no_allocate",
    }

    /// Priority in the L2 cache.
    pub enum L2Eviction {
        /// Normal.
        Normal = "L2::evict_normal",
        /// First to be evicted.
        First = "L2::evict_first",
        /// Last to be evicted.
        Last = "L2::evict_last",
    }

    /// The number of bytes that a load prefetches into L2.
    pub enum PrefetchSize {
        /// 64 bytes.
        B64 = "L2::64B",
        /// 128 bytes.
        B128 = "L2::128B",
        /// 256 bytes.
        B256 = "L2::256B",
    }
}

/// What a load or store can move.
const DATA: &[Type] = &[B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64];

/// How an access is ordered, and with whom.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) semantics: Option<Semantics>,
    pub(super) mmio: bool,
    pub(super) scope: Option<Scope>,
    pub(super) space: Option<Space>,
}

impl Order {
    /// `strongest` is the ordering beyond `.relaxed` that the access can have.
    pub(super) fn check(self, check: &mut Check<'_>, strongest: Semantics) {
        let space = self.space.map(Space::base);
        match self.semantics {
            None | Some(Semantics::Weak | Semantics::Volatile) => {
                check.combination(self.scope.is_none(), "a scope goes with `.relaxed`, `.acquire` or `.release`");
                check.combination(!self.mmio, "`.mmio` goes with `.relaxed`, `.acquire` or `.release`");
                let weak = self.semantics != Some(Semantics::Volatile);
                if !weak && !matches!(space, None | Some(Space::Global | Space::Shared | Space::Local)) {
                    check.report(Code::StateSpace, "`.volatile` accesses are global, shared, local or generic");
                }
            }
            Some(semantics) if semantics == Semantics::Relaxed || semantics == strongest => {
                check.combination(self.scope.is_some(), "an ordered access needs a scope: `.cta`, `.cluster`, `.gpu` or `.sys`");
                if self.mmio {
                    check.combination(matches!(self.scope, None | Some(Scope::Sys)), "`.mmio` has the scope `.sys`");
                }
                if !matches!(space, None | Some(Space::Global)) && (self.mmio || space != Some(Space::Shared)) {
                    let allowed = if self.mmio { "global" } else { "global, shared" };
                    check.report(Code::StateSpace, format!("the access must be {allowed} or generic in this form"));
                }
            }
            Some(semantics) => check.combination(
                false,
                format_args!("the ordering `{semantics}` is not offered; it takes `.weak`, `.volatile`, `.relaxed` or `{strongest}`"),
            ),
        }
    }

    pub(super) fn needs(self, needs: &mut Needs, ty: Type) {
        match self.semantics {
            Some(Semantics::Volatile) if self.space == Some(Space::Local) => {
                needs.version("`.volatile` with `.local`", 9, 1);
            }
            None | Some(Semantics::Volatile) => {}
            Some(Semantics::Relaxed | Semantics::Weak) => needs.sm("an ordered access", 70),
            Some(_) => {
                needs.sm("an ordered access", 70);
                needs.both_if(self.mmio, "`.mmio` with `.acquire` or `.release`", (9, 3), 75);
            }
        }
        needs.both_if(self.mmio, "`.mmio`", (8, 2), 70);
        scope_needs(needs, self.scope);
        space_needs(needs, self.space);
        if ty == B128 {
            needs.both("`.b128`", (8, 3), 70);
            needs.version_if(self.scope == Some(Scope::Sys), "`.b128` with `.sys`", 8, 4);
        }
    }
}

pub(super) fn scope_needs(needs: &mut Needs, scope: Option<Scope>) {
    needs.both_if(scope == Some(Scope::Cluster), "the scope `.cluster`", (7, 8), 90);
}

pub(super) fn space_needs(needs: &mut Needs, space: Option<Space>) {
    match space {
        Some(Space::SharedCta) => needs.version("`::cta`", 7, 8),
        Some(Space::SharedCluster) => needs.both("`::cluster`", (7, 8), 90),
        Some(Space::ParamEntry) => needs.version("`::entry`", 8, 3),
        Some(Space::ParamFunc) => needs.version("`::func`", 8, 3),
        _ => {}
    }
}

/// The state space must be one of `allowed` (`None`: generic addressing).
pub(super) fn space_among(check: &mut Check<'_>, space: Option<Space>, allowed: &[Option<Space>]) -> bool {
    let fine = allowed.contains(&space);
    if !fine {
        let name =
            |space: &Option<Space>| space.map_or("generic addressing".into(), |space| format!("`{space}`"));
        let names: Vec<_> = allowed.iter().map(name).collect();
        let message = format!("{} is not offered; it takes {}", name(&space), names.join(", "));
        check.report(Code::StateSpace, message);
    }
    fine
}

/// An ordering that is given must be one of `allowed`.
pub(super) fn ordering_among(
    check: &mut Check<'_>,
    semantics: Option<Semantics>,
    allowed: &[Semantics],
    separator: &str,
) {
    if let Some(semantics) = semantics
        && !allowed.contains(&semantics)
    {
        let names = list(allowed, separator);
        check.combination(false, format_args!("the ordering `{semantics}` is not offered; it takes {names}"));
    }
}

/// The `policy` operand goes with `.L2::cache_hint`, for accesses to global memory.
pub(super) fn policy(check: &mut Check<'_>, hint: bool, space: Option<Space>, policy: Option<&Src>) {
    check.combination(hint == policy.is_some(), "`.L2::cache_hint` and the operand `policy` go together");
    if hint && !matches!(space, None | Some(Space::Global)) {
        check.report(Code::StateSpace, "`.L2::cache_hint` is for global or generic accesses");
    }
    check.src("policy", policy, U64);
}

/// Number of operands that `vector` calls for; whether `given` is that number. `as_vector` says
/// whether the operand stands in braces.
fn shape(
    check: &mut Check<'_>,
    name: &str,
    vector: Option<VectorWidth>,
    given: usize,
    as_vector: bool,
) -> bool {
    let wanted = vector.map_or(1, VectorWidth::elements);
    let fine = given == wanted && (as_vector || wanted == 1);
    if !fine {
        let message = match vector {
            Some(vector) => {
                format!("operand `{name}` must be a vector of {wanted} elements, as `{vector}` says")
            }
            None => format!("operand `{name}` is a vector, and no modifier says so"),
        };
        check.report(Code::VectorShape, message);
    }
    fine
}

/// The registers of a vector must agree with each other. Where they are of different types, they
/// count as untyped: the result is the type that they are to be checked against.
pub(super) fn element_type(
    check: &mut Check<'_>,
    name: &str,
    mut regs: impl Iterator<Item = Reg>,
    ty: Type,
) -> Option<Type> {
    let Some(first) = regs.next() else { return Some(ty) };
    let first = check.reg_type(first);
    let mut alike = true;
    for reg in regs {
        let other = check.reg_type(reg);
        if !first.agrees_with(other) || !other.agrees_with(first) {
            let message = format!("the registers of the vector `{name}` do not agree in type");
            check.report(Code::OperandType, message);
            return None;
        }
        alike &= other == first;
    }
    Some(if alike { ty } else { untyped(ty.bits()) })
}

/// The untyped type of that many bits.
pub(super) fn untyped(bits: u32) -> Type {
    match bits {
        8 => B8,
        16 => B16,
        32 => B32,
        64 => B64,
        _ => B128,
    }
}

/// How the registers of an access relate to its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// Of its size.
    Exact,
    /// Of its size or wider.
    AtLeast,
}

/// Registers written by an access.
pub(super) fn destinations(check: &mut Check<'_>, d: &Dsts, vector: Option<VectorWidth>, ty: Type, fit: Fit) {
    if !shape(check, "d", vector, d.len(), matches!(d, Dsts::Many(_))) {
        return;
    }
    if vector.is_some() && d.as_slice().flatten().next().is_none() && matches!(d, Dsts::Many(_)) {
        return check.report(Code::VectorShape, "some element of the vector `d` must be a register");
    }
    let Some(ty) = element_type(check, "d", d.as_slice().flatten(), ty) else { return };
    for reg in d.as_slice().flatten() {
        match fit {
            Fit::Exact => check.reg("d", reg, ty),
            Fit::AtLeast => check.reg_at_least("d", reg, ty),
        }
    }
}

/// Values read by an access.
pub(super) fn sources(check: &mut Check<'_>, a: &Srcs, vector: Option<VectorWidth>, ty: Type, fit: Fit) {
    let values = a.as_slice();
    if !shape(check, "a", vector, values.len(), matches!(a, Srcs::Many(_))) {
        return;
    }
    let Some(reg_ty) = element_type(check, "a", values.iter().filter_map(Src::reg), ty) else { return };
    for value in values {
        match value {
            Src::Reg(reg) if fit == Fit::AtLeast => check.reg_at_least("a", *reg, reg_ty),
            Src::Sum(reg, _) if fit == Fit::AtLeast => {
                check.summand("a", *reg);
                check.reg_at_least("a", *reg, reg_ty);
            }
            Src::Reg(reg) => check.reg("a", *reg, reg_ty),
            other => check.src("a", other, ty),
        }
    }
}
