//! Loads, stores and reductions at multimem addresses, each of which stands for one location on each of several
//! devices.

use super::{Fit, Order, destinations, sources, space_among};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::{instruction, modifiers};

modifiers! {
    /// How values at a multimem address are combined.
    pub enum MultimemOp {
        /// Minimum.
        Min = "min",
        /// Maximum.
        Max = "max",
        /// Sum.
        Add = "add",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
    }

    /// Precision of the intermediate sums.
    pub enum AccPrecision {
        /// `.f32`, of halves.
        F32 = "acc::f32",
        /// `.f16`, of FP8 formats.
        F16 = "acc::f16",
    }
}

instruction! {
    /// Loads from each location and combines the values.
    pub struct MultimemLdReduce("multimem.ld_reduce") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        op: MultimemOp,
        acc: Option<AccPrecision>,
        vector: Option<VectorWidth>,
        ty: Type,
    }(d: Dsts, address: Address) -> unknown,
        needs: |op, needs| {
            op.common().needs(needs);
            match op.acc {
                Some(AccPrecision::F32) => needs.version("`.acc::f32`", 8, 2),
                Some(AccPrecision::F16) => fp8_needs(needs, "`.acc::f16`"),
                None => {}
            }
        },
        check: |op, check| {
            op.common().check(check);
            let fine = match op.acc {
                None => true,
                Some(AccPrecision::F32) => is_half(op.ty) && op.op == MultimemOp::Add,
                Some(AccPrecision::F16) => is_fp8(op.ty) && op.op == MultimemOp::Add,
            };
            check.combination(
                fine,
                "`.acc::f32` goes with `.add` of halves, `.acc::f16` with `.add` of FP8 formats",
            );
            destinations(check, &op.d, op.vector, op.ty, Fit::Exact);
        };

    /// Stores to each location.
    pub struct MultimemSt("multimem.st") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        vector: Option<VectorWidth>,
        ty: Type,
    }(address: Address, a: Srcs) -> nothing,
        needs: |op, needs| op.common().needs(needs),
        check: |op, check| {
            op.common().check(check);
            sources(check, &op.a, op.vector, op.ty, Fit::Exact);
        };

    /// Combines a value into each location.
    pub struct MultimemRed("multimem.red") {
        semantics: Option<Semantics>,
        scope: Option<Scope>,
        space: Option<Space>,
        op: MultimemOp,
        vector: Option<VectorWidth>,
        ty: Type,
    }(address: Address, a: Srcs) -> nothing,
        needs: |op, needs| op.common().needs(needs),
        check: |op, check| {
            op.common().check(check);
            check.combination(op.semantics != Some(Semantics::Weak), "a reduction is not `.weak`");
            check.combination(!is_fp8(op.ty), "FP8 formats are not offered");
            check.combination(
                !op.ty.is_float() || op.op == MultimemOp::Add,
                "floating-point reductions are `.add`",
            );
            sources(check, &op.a, op.vector, op.ty, Fit::Exact);
        };
}

fn is_half(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16X2 | Type::BF16 | Type::BF16X2)
}

fn is_fp8(ty: Type) -> bool {
    matches!(ty, Type::E5M2 | Type::E5M2X2 | Type::E5M2X4 | Type::E4M3 | Type::E4M3X2 | Type::E4M3X4)
}

/// Whether an operation is offered for a type; without an operation, whether a store is.
fn offers(op: Option<MultimemOp>, ty: Type) -> bool {
    use Type::*;
    match op {
        None => matches!(ty, B32 | B64 | U32 | U64 | S32 | S64 | F32 | F64) || is_half(ty) || is_fp8(ty),
        Some(MultimemOp::Add) => matches!(ty, U32 | S32 | U64 | F32 | F64) || is_half(ty) || is_fp8(ty),
        Some(MultimemOp::Min | MultimemOp::Max) => {
            matches!(ty, U32 | S32 | U64 | S64) || is_half(ty) || is_fp8(ty)
        }
        Some(MultimemOp::And | MultimemOp::Or | MultimemOp::Xor) => matches!(ty, B32 | B64),
    }
}

/// Floating-point accesses move 32, 64 or 128 bits; integers are no vectors.
fn has_shape(vector: Option<VectorWidth>, ty: Type) -> bool {
    let Some(vector) = vector else { return ty.bits() >= 32 };
    ty.is_float() && ty != Type::F64 && matches!(vector.elements() as u32 * ty.bits(), 32 | 64 | 128)
}

/// What all three have in common.
struct Common<'a> {
    order: Order,
    strongest: Semantics,
    op: Option<MultimemOp>,
    vector: Option<VectorWidth>,
    ty: Type,
    address: &'a Address,
    /// Whether the address may be in a register that is too narrow, and is widened.
    widens: bool,
}

impl Common<'_> {
    fn check(&self, check: &mut Check<'_>) {
        check.combination(self.order.semantics != Some(Semantics::Volatile), "`.volatile` is not offered");
        self.order.check(check, self.strongest);
        space_among(check, self.order.space, &[None, Some(Space::Global)]);
        if !offers(self.op, self.ty) {
            let what = self.op.map_or("a store".to_string(), |op| format!("`{op}`"));
            check.report(Code::ModifierCombination, format!("{what} is not offered for `{}`", self.ty));
        } else if !has_shape(self.vector, self.ty) {
            let vector = self.vector.map_or(String::new(), |vector| vector.to_string());
            check.report(
                Code::VectorShape,
                format!(
                    "there is no `{vector}{}` access: floating-point values fill 32, 64 or 128 bits",
                    self.ty
                ),
            );
        }
        match self.widens {
            true => check.data_address("address", self.address, self.order.space),
            false => check.wide_data_address("address", self.address, self.order.space),
        }
    }

    fn needs(&self, needs: &mut Needs) {
        needs.both("`multimem`", (8, 1), 90);
        self.order.needs(needs, self.ty);
        if is_fp8(self.ty) {
            fp8_needs(needs, "`multimem` of an FP8 format");
        }
    }
}

fn fp8_needs(needs: &mut Needs, feature: &'static str) {
    needs.targets(feature, (8, 6), Requirement::Specific { specific: &[120, 121], family: &[100, 110] });
}

impl MultimemLdReduce {
    fn common(&self) -> Common<'_> {
        Common {
            order: Order { semantics: self.semantics, mmio: false, scope: self.scope, space: self.space },
            strongest: Semantics::Acquire,
            op: Some(self.op),
            vector: self.vector,
            ty: self.ty,
            address: &self.address,
            widens: true,
        }
    }
}

impl MultimemSt {
    fn common(&self) -> Common<'_> {
        Common {
            order: Order { semantics: self.semantics, mmio: false, scope: self.scope, space: self.space },
            strongest: Semantics::Release,
            op: None,
            vector: self.vector,
            ty: self.ty,
            address: &self.address,
            widens: true,
        }
    }
}

impl MultimemRed {
    fn common(&self) -> Common<'_> {
        Common {
            order: Order { semantics: self.semantics, mmio: false, scope: self.scope, space: self.space },
            strongest: Semantics::Release,
            op: Some(self.op),
            vector: self.vector,
            ty: self.ty,
            address: &self.address,
            widens: false,
        }
    }
}
