//! Comparisons and selections.

use super::instruction;
use crate::diag::Code;
use crate::ir::Type::*;
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
        },
        check: |op, check| {
            let operands = (&op.a, &op.b, op.c.as_ref());
            comparison(check, op.cmp, op.bool_op, op.ftz, op.ty, operands);
            check.pred_dst("d", op.d.first);
            if let Some(second) = op.d.second {
                check.pred_dst("d", second);
                if matches!(op.ty, F16 | BF16) {
                    check.report(Code::OperandForm, format!("a comparison of `{}` has one result", op.ty));
                }
                if op.d.first.is_none() && second.is_none() {
                    check.report(Code::OperandForm, "one of the results must be a register");
                }
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
            needs.sm_if(is_half(op.ty) || is_half(op.d_type), "`set` with `.f16`", 53);
            if is_half(op.ty) && !op.d_type.is_float() {
                needs.version("an integer result of comparing `.f16`", 6, 5);
            }
        },
        check: |op, check| {
            let operands = (&op.a, &op.b, op.c.as_ref());
            comparison(check, op.cmp, op.bool_op, op.ftz, op.ty, operands);
            let fine = match op.d_type {
                U32 | S32 => true,
                F32 => !is_half(op.ty),
                U16 | S16 => matches!(op.ty, F16 | BF16),
                F16 => !is_bf16(op.ty) && op.ty != F16X2,
                BF16 => !matches!(op.ty, F16X2 | BF16X2),
                F16X2 | BF16X2 => op.ty == op.d_type,
                _ => false,
            };
            check.combination(
                fine,
                format_args!("a comparison of `{}` has no result of type `{}`", op.ty, op.d_type),
            );
            check.dst("d", op.d, op.d_type);
        };

    /// `a` if the predicate `c` holds, else `b`.
    pub struct Selp("selp") {
        ty: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        check: |op, check| selection(check, op.ty, op.d, [&op.a, &op.b], (&op.c, Pred));

    /// `a` if `c` is not negative, else `b`.
    pub struct Slct("slct") {
        ftz: bool = "ftz",
        ty: Type,
        c_type: Type,
    }(d: Dst, a: Src, b: Src, c: Src) -> pointwise,
        check: |op, check| {
            check.type_among(op.c_type, &[S32, F32]);
            check.combination(!op.ftz || op.c_type == F32, "`.ftz` goes with a selector of type `.f32`");
            selection(check, op.ty, op.d, [&op.a, &op.b], (&op.c, op.c_type));
        };
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
const COMPARED: &[Type] = &[B16, B32, B64, U16, U32, U64, S16, S32, S64, F16, F16X2, BF16, BF16X2, F32, F64];

/// What can be selected.
const SELECTED: &[Type] = &[B16, B32, B64, U16, U32, U64, S16, S32, S64, F32, F64];

fn is_half(ty: Type) -> bool {
    matches!(ty, F16 | F16X2 | BF16 | BF16X2)
}

fn is_bf16(ty: Type) -> bool {
    matches!(ty, BF16 | BF16X2)
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
        check
            .combination(compares(cmp, ty), format_args!("the comparison `{cmp}` is not offered for `{ty}`"));
    }
    check
        .combination(!ftz || matches!(ty, F32 | F16 | F16X2), "`.ftz` goes with `.f32`, `.f16` and `.f16x2`");
    check.src("a", a, ty);
    check.src("b", b, ty);
    let together = bool_op.is_some() == c.is_some();
    check.that(together, Code::OperandCount, "the operand `c` goes with `.and`, `.or` or `.xor`");
    if is_bf16(ty) && matches!(c, Some(Src::Imm(_))) {
        check.report(Code::OperandForm, format_args!("operand `c` of a comparison of `{ty}` is no constant"));
    }
    check.src("c", c, Pred);
}

/// Checks what is selected, by a `c` of its own type.
fn selection(check: &mut Check<'_>, ty: Type, d: Dst, [a, b]: [&Src; 2], (c, c_type): (&Src, Type)) {
    check.type_among(ty, SELECTED);
    check.dst("d", d, ty);
    check.src("a", a, ty);
    check.src("b", b, ty);
    check.src("c", c, c_type);
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
