//! `ld`, `ldu` and `st`.

use super::{
    DATA, Fit, L1Eviction, L2Eviction, LoadCache, Order, PrefetchSize, StoreCache, destinations, policy,
    sources, space_among, space_needs,
};
use crate::diag::Code;
use crate::ir::*;
use crate::op::instruction;
use crate::op::{Check, Level, Operands};

/// What loads and stores have in common.
struct Transfer {
    order: Order,
    cache: bool,
    l1: bool,
    l2: bool,
    hint: bool,
    vector: Option<VectorWidth>,
    ty: Type,
}

macro_rules! transfer {
    ($op:expr) => {
        Transfer {
            order: Order { semantics: $op.semantics, mmio: $op.mmio, scope: $op.scope, space: $op.space },
            cache: $op.cache.is_some(),
            l1: $op.l1_eviction.is_some(),
            l2: $op.l2_eviction.is_some(),
            hint: $op.cache_hint,
            vector: $op.vector,
            ty: $op.ty,
        }
    };
}

instruction! {
    /// Loads from memory.
    pub struct Ld("ld") {
        mmio: bool = "mmio",
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        cache: Option<LoadCache>,
        nc: bool = "nc",
        l1_eviction: Option<L1Eviction>,
        l2_eviction: Option<L2Eviction>,
        cache_hint: bool = "L2::cache_hint",
        prefetch: Option<PrefetchSize>,
        vector: Option<VectorWidth>,
        ty: Type,
        /// Through the proxy for data that does not change while the kernel runs.
        readonly: bool = "proxy::readonly",
    }(d: Dsts, address: Address, unified: Unified, policy: Option<Src>) -> |op, operands| op.alike(operands),
        needs: |op, needs| {
            transfer!(op).needs(needs);
            match op.prefetch {
                Some(PrefetchSize::B256) => needs.both("`.L2::256B`", (7, 4), 80),
                Some(_) => needs.both("prefetching by a load", (7, 4), 75),
                None => {}
            }
            needs.both_if(op.unified.0, "`.unified`", (8, 0), 90);
            needs.both_if(op.readonly, "`.proxy::readonly`", (9, 4), 90);
        },
        check: |op, check| {
            check.that(op.space != Some(Space::Tex), Code::StateSpace, "`.tex` is not offered");
            transfer!(op).check(check, Semantics::Acquire);
            op.check_read_only(check);
            let global = matches!(op.space, None | Some(Space::Global));
            if op.prefetch.is_some() {
                check.combination(!op.mmio, "`.mmio` excludes prefetching");
                check.that(global, Code::StateSpace, "prefetching is for global or generic accesses");
            }
            if op.unified.0 {
                op.check_unified(check);
            }
            check.data_address("address", &op.address, op.space);
            parameter_kind(check, &op.address, op.space);
            destinations(check, &op.d, op.vector, op.ty, Fit::AtLeast);
            policy(check, op.cache_hint, op.space, op.policy.as_ref());
        };

    /// Loads from an address in global memory that is the same for all threads of the warp.
    pub struct Ldu("ldu") {
        space: Option<Space>,
        vector: Option<VectorWidth>,
        ty: Type,
    }(d: Dsts, address: Address) -> found,
        needs: |op, needs| {
            needs.both_if(op.ty == Type::B128, "`.b128`", (8, 3), 70);
            space_needs(needs, op.space);
        },
        check: |op, check| {
            check.type_among(op.ty, DATA);
            space_among(check, op.space, &[None, Some(Space::Global)]);
            vector_size(check, op.vector, op.ty);
            check.combination(!is_wide(op.vector, op.ty), "256-bit vectors are not offered");
            check.data_address("address", &op.address, op.space);
            destinations(check, &op.d, op.vector, op.ty, Fit::AtLeast);
        };

    /// Stores to memory.
    pub struct St("st") {
        mmio: bool = "mmio",
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        cache: Option<StoreCache>,
        l1_eviction: Option<L1Eviction>,
        l2_eviction: Option<L2Eviction>,
        cache_hint: bool = "L2::cache_hint",
        vector: Option<VectorWidth>,
        ty: Type,
    }(address: Address, a: Srcs, policy: Option<Src>) -> nothing,
        needs: |op, needs| transfer!(op).needs(needs),
        check: |op, check| {
            if matches!(op.space, Some(Space::Const | Space::Tex | Space::ParamEntry)) {
                check.report(Code::StateSpace, "constant memory and kernel parameters cannot be written");
            }
            transfer!(op).check(check, Semantics::Release);
            check.data_address("address", &op.address, op.space);
            parameter_kind(check, &op.address, None);
            if let Some(symbol) = op.address.base.symbol()
                && is_input(check.function(), symbol)
            {
                check.report(Code::Parameter, "an input parameter cannot be written");
            }
            op.check_values(check);
            policy(check, op.cache_hint, op.space, op.policy.as_ref());
        };
}

/// Whether a vector access moves 256 bits, as `.v8` of 32-bit or `.v4` of 64-bit elements.
fn is_wide(vector: Option<VectorWidth>, ty: Type) -> bool {
    matches!((vector, ty.bits()), (Some(VectorWidth::V8), 32) | (Some(VectorWidth::V4), 64))
}

fn vector_size(check: &mut Check<'_>, vector: Option<VectorWidth>, ty: Type) {
    let Some(width) = vector else { return };
    let fine = is_wide(vector, ty) || width != VectorWidth::V8 && width.elements() as u32 * ty.bits() <= 128;
    if !fine {
        check.report(
            Code::VectorShape,
            format!("there is no `{width}{ty}`: a vector has up to 128 bits, or is `.v8` of 32 or `.v4` of 64 bits"),
        );
    }
}

impl Transfer {
    fn check(&self, check: &mut Check<'_>, strongest: Semantics) {
        check.type_among(self.ty, DATA);
        vector_size(check, self.vector, self.ty);
        self.order.check(check, strongest);
        let Order { semantics, mmio, space, .. } = self.order;
        let weak = matches!(semantics, None | Some(Semantics::Weak));
        let volatile = semantics == Some(Semantics::Volatile);
        let global = matches!(space, None | Some(Space::Global));
        check.combination(!self.cache || weak && !mmio, "a cache operator goes with weak accesses only");
        check.combination(
            !(self.cache && (self.l1 || self.l2)),
            "a cache operator and an eviction priority exclude each other",
        );
        check.combination(
            !(self.l1 || self.l2 || self.hint) || !volatile && !mmio,
            "`.volatile` and `.mmio` exclude eviction priorities and `.L2::cache_hint`",
        );
        check.combination(!mmio || self.vector.is_none(), "`.mmio` excludes vectors");
        if (self.l1 || self.l2) && !global {
            check.report(Code::StateSpace, "an eviction priority is for global or generic accesses");
        }
        let wide = is_wide(self.vector, self.ty);
        check.combination(
            !self.l2 || wide,
            "an `.L2` eviction priority goes with 256-bit accesses: `.v8` of 32 or `.v4` of 64 bits",
        );
        check.that(!wide || global, Code::StateSpace, "256-bit accesses are global or generic");
    }

    fn needs(&self, needs: &mut Needs) {
        self.order.needs(needs, self.ty);
        needs.both_if(self.l1, "an eviction priority", (7, 4), 70);
        needs.both_if(self.hint, "`.L2::cache_hint`", (7, 4), 80);
        needs.both_if(is_wide(self.vector, self.ty), "a 256-bit access", (8, 8), 100);
    }
}

impl Ld {
    /// How alike what it loads is.
    fn alike(&self, operands: &Operands<'_>) -> Level {
        let weak = !self.mmio && matches!(self.semantics, None | Some(Semantics::Weak));
        // Without a space, a variable of the function tells it by its name.
        let named = match self.address.base.symbol() {
            Some(Symbol::Local(id)) => Some(operands.function.variable(*id).space),
            _ => None,
        };
        match self.space.or(named).map(Space::base) {
            // Others write it meanwhile.
            _ if !weak => Level::Unknown,
            Some(Space::Local) => Level::Unknown,
            Some(Space::Param) if !operands.is_kernel_parameter(&self.address) => Level::Unknown,
            // Every block has memory of its own behind the same address.
            Some(Space::Shared) | None => operands.found().max(Level::BlockData),
            Some(_) => operands.found(),
        }
    }

    fn check_unified(&self, check: &mut Check<'_>) {
        if !matches!(self.space, None | Some(Space::Global)) {
            check.report(Code::StateSpace, "`.unified` is for global or generic accesses");
        }
        if let Some(symbol) = self.address.base.symbol()
            && let Some(variable) = check.variable(symbol)
            && !variable.attributes.iter().any(|attribute| matches!(attribute, Attribute::Unified(..)))
        {
            check.report(Code::OperandForm, "`.unified` is for variables with that attribute");
        }
    }

    fn check_read_only(&self, check: &mut Check<'_>) {
        let plain = self.semantics.is_none() && self.scope.is_none() && !self.mmio;
        if self.nc {
            check.combination(plain, "`.nc` excludes orderings and scopes");
            check.combination(
                !matches!(self.cache, Some(LoadCache::Lu | LoadCache::Cv)),
                "`.nc` goes with the cache operators `.ca`, `.cg` and `.cs`",
            );
            check.that(self.space == Some(Space::Global), Code::StateSpace, "`.nc` needs `.global`");
        }
        if self.readonly {
            let bare = self.cache.is_none()
                && !self.nc
                && self.l1_eviction.is_none()
                && self.l2_eviction.is_none()
                && !self.cache_hint
                && self.prefetch.is_none();
            check.combination(
                plain && bare,
                "`.proxy::readonly` excludes orderings, cache operators and hints",
            );
            check.combination(self.ty != Type::B128, "`.proxy::readonly` excludes `.b128`");
            if !matches!(self.space, None | Some(Space::Global)) {
                check.report(Code::StateSpace, "`.proxy::readonly` is for global or generic accesses");
            }
        }
    }
}

impl St {
    /// An element that is `_` is left out, which 256-bit stores alone can do.
    fn check_values(&self, check: &mut Check<'_>) {
        let gaps = self.a.as_slice().iter().filter(|value| **value == Src::Sink).count();
        if gaps == 0 || !is_wide(self.vector, self.ty) {
            return sources(check, &self.a, self.vector, self.ty, Fit::AtLeast);
        }
        // What stands in the gaps does not matter to the rules of the others.
        let filled: Vec<_> = (self.a.as_slice().iter())
            .map(|value| if *value == Src::Sink { Src::Imm(zero(self.ty)) } else { value.clone() })
            .collect();
        sources(check, &Srcs::Many(filled.into()), self.vector, self.ty, Fit::AtLeast);
    }
}

fn zero(ty: Type) -> Imm {
    if ty.is_float() { Imm::F64(0) } else { Imm::Int(0) }
}

/// Whether a symbol is an input parameter of the function.
fn is_input(function: &Function, symbol: &Symbol) -> bool {
    let Symbol::Local(id) = symbol else { return false };
    function.params.iter().any(|param| matches!(param, Param::Variable(variable) if variable == id))
}

/// Whether it is a variable of the function's body that holds a parameter of a call.
fn is_call_parameter(check: &Check<'_>, symbol: &Symbol) -> bool {
    let Symbol::Local(id) = symbol else { return false };
    let function = check.function();
    let declared = function.params.iter().chain(&function.returns);
    let is_own = declared.into_iter().any(|param| matches!(param, Param::Variable(own) if own == id));
    let is_param = check.variable(symbol).is_some_and(|variable| variable.space.base() == Space::Param);
    is_param && !is_own
}

/// `.param::entry` names the parameters of the kernel, `.param::func` the others; a parameter of a call
/// is not accessed under a guard.
fn parameter_kind(check: &mut Check<'_>, address: &Address, space: Option<Space>) {
    let Some(symbol) = address.base.symbol() else { return };
    let function = check.function();
    if check.is_guarded() && is_call_parameter(check, symbol) {
        check.report(Code::Parameter, "a parameter of a call cannot be accessed under a guard");
    }
    let of_kernel = function.kind == FunctionKind::Entry && is_input(function, symbol);
    let fine = match space {
        Some(Space::ParamEntry) => of_kernel,
        Some(Space::ParamFunc) => !of_kernel,
        _ => true,
    };
    check.that(
        fine,
        Code::StateSpace,
        "`.param::entry` names parameters of the kernel, `.param::func` all other parameters",
    );
}
