//! Comparisons and selections.

use super::{Rule, instruction};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

instruction! {
    /// Compares, into a predicate (and its complement).
    pub struct Setp("setp") {
        cmp: Cmp,
        bool_op: Option<BoolOp>,
        ftz: bool = "ftz",
        ty: Type,
    }(d: DstPair, a: Src, b: Src, c: Option<Src>) -> |op, operands| {
            operands.of_thread(&op.a, op.parts_warps())
        },
        needs: |op, needs| {
            if is_bf16(op.ty) {
                needs.both("comparison of `.bf16`", (7, 8), 90);
            } else if is_half(op.ty) {
                needs.sm("comparison of `.f16`", 53);
            }
        };

    /// Compares, into a register.
    pub struct Set("set") {
        cmp: Cmp,
        bool_op: Option<BoolOp>,
        ftz: bool = "ftz",
        d_type: Type,
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Option<Src>) -> pointwise,
        needs: |op, needs| {
            if is_bf16(op.ty) || is_bf16(op.d_type) {
                return needs.both("`set` with `.bf16`", (7, 8), 90);
            }
            if is_half(op.ty) || is_half(op.d_type) {
                needs.sm("`set` with `.f16`", 53);
            }
            if is_half(op.ty) && !op.d_type.is_float() {
                needs.version("an integer result of comparing `.f16`", 6, 5);
            }
        };

    /// `a` where the predicate `c` holds, else `b`.
    pub struct Selp("selp") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise;

    /// `a` where `c` is not negative, else `b`.
    pub struct Slct("slct") {
        ftz: bool = "ftz",
        ty: Type,
        c_type: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise;
}

/// Whether a comparison is offered for a type.
fn compares(cmp: Cmp, ty: Type) -> bool {
    use Cmp::*;
    match ty.kind() {
        TypeKind::Bits => matches!(cmp, Eq | Ne),
        TypeKind::Signed => matches!(cmp, Eq | Ne | Lt | Le | Gt | Ge),
        TypeKind::Unsigned => matches!(cmp, Eq | Ne | Lt | Le | Gt | Ge | Lo | Ls | Hi | Hs),
        _ => !matches!(cmp, Lo | Ls | Hi | Hs),
    }
}

/// What can be compared.
const COMPARED: &[Type] = &[
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::F16X2,
    Type::BF16,
    Type::BF16X2,
    Type::F32,
    Type::F64,
];

/// What can be selected.
const SELECTED: &[Type] = &[
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];

fn is_half(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16X2 | Type::BF16 | Type::BF16X2)
}

fn is_bf16(ty: Type) -> bool {
    matches!(ty, Type::BF16 | Type::BF16X2)
}

/// Checks the comparison of `a` with `b` and what it is combined with.
fn comparison(
    check: &mut Check<'_>,
    cmp: Cmp,
    bool_op: Option<BoolOp>,
    ftz: bool,
    ty: Type,
    (a, b, c): (&Src, &Src, Option<&Src>),
) {
    if check.type_among(ty, COMPARED) {
        check.combination(compares(cmp, ty), &format!("the comparison `{cmp}` is not offered for `{ty}`"));
    }
    check.combination(
        !ftz || matches!(ty, Type::F32 | Type::F16 | Type::F16X2),
        "`.ftz` goes with `.f32`, `.f16` and `.f16x2`",
    );
    check.src("a", a, ty);
    check.src("b", b, ty);
    if bool_op.is_some() != c.is_some() {
        check.report(Code::OperandCount, "the operand `c` goes with `.and`, `.or` or `.xor`");
    }
    if let Some(c) = c {
        if is_bf16(ty) && matches!(c, Src::Imm(_)) {
            check.report(Code::OperandForm, format!("operand `c` of a comparison of `{ty}` is no constant"));
        }
        check.src("c", c, Type::Pred);
    }
}

impl Setp {
    /// Whether it compares with a constant between two warps, so that no warp lies on both sides of it.
    fn parts_warps(&self) -> bool {
        self.c.is_none()
            && match (self.cmp, &self.b) {
                (Cmp::Lt | Cmp::Ge | Cmp::Lo | Cmp::Hs, Src::Imm(Imm::Int(n))) => n % 32 == 0,
                (Cmp::Le | Cmp::Gt | Cmp::Ls | Cmp::Hi, Src::Imm(Imm::Int(n))) => n % 32 == 31,
                _ => false,
            }
    }
}

impl Rule for Setp {
    fn check(&self, check: &mut Check<'_>) {
        let operands = (&self.a, &self.b, self.c.as_ref());
        comparison(check, self.cmp, self.bool_op, self.ftz, self.ty, operands);
        check.pred_dst("d", self.d.first);
        if let Some(second) = self.d.second {
            check.pred_dst("d", second);
            if matches!(self.ty, Type::F16 | Type::BF16) {
                check.report(Code::OperandForm, format!("a comparison of `{}` has one result", self.ty));
            }
            if self.d.first.is_none() && second.is_none() {
                check.report(Code::OperandForm, "one of the results must be a register");
            }
        }
    }
}

impl Rule for Set {
    fn check(&self, check: &mut Check<'_>) {
        use Type::*;
        let operands = (&self.a, &self.b, self.c.as_ref());
        comparison(check, self.cmp, self.bool_op, self.ftz, self.ty, operands);
        let fine = match self.d_type {
            U32 | S32 => true,
            F32 => !is_half(self.ty),
            U16 | S16 => matches!(self.ty, F16 | BF16),
            F16 => !is_bf16(self.ty) && self.ty != F16X2,
            BF16 => !matches!(self.ty, F16X2 | BF16X2),
            F16X2 | BF16X2 => self.ty == self.d_type,
            _ => false,
        };
        check.combination(
            fine,
            &format!("a comparison of `{}` has no result of type `{}`", self.ty, self.d_type),
        );
        check.dst("d", self.d, self.d_type);
    }
}

impl Rule for Selp {
    fn check(&self, check: &mut Check<'_>) {
        check.type_among(self.ty, SELECTED);
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.ty);
        check.src("b", &self.b, self.ty);
        check.src("c", &self.c, Type::Pred);
    }
}

impl Rule for Slct {
    fn check(&self, check: &mut Check<'_>) {
        check.type_among(self.ty, SELECTED);
        check.type_among(self.c_type, &[Type::S32, Type::F32]);
        check
            .combination(!self.ftz || self.c_type == Type::F32, "`.ftz` goes with a selector of type `.f32`");
        check.dst("d", self.d, self.ty);
        check.src("a", &self.a, self.ty);
        check.src("b", &self.b, self.ty);
        check.src("c", &self.c, self.c_type);
    }
}
