//! The stack of a thread: `alloca`, `stacksave`, `stackrestore`.

use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::instruction;

instruction! {
    /// Allocates bytes on the stack; `align` is a power of two up to 2²³, by default 8.
    pub struct Alloca("alloca") {
        ty: Type,
    }(d: Dst, size: Src, align: Option<Src>) -> unknown,
        needs: |_, needs| needs.both("`alloca`", (7, 3), 52),
        check: |op, check| {
            stack_type(check, op.ty);
            check.dst("d", op.d, op.ty);
            check.src("size", &op.size, op.ty);
            if let Some(align) = &op.align {
                let fine = matches!(align, Src::Imm(Imm::Int(align)) if *align <= 1 << 23 && align.count_ones() == 1);
                if !fine {
                    check
                        .report(Code::ImmediateRange, "operand `align` must be a power of two up to 8388608");
                }
            }
        };

    /// Reads the stack pointer.
    pub struct StackSave("stacksave") {
        ty: Type,
    }(d: Dst) -> unknown,
        needs: |_, needs| needs.both("`stacksave`", (7, 3), 52),
        check: |op, check| {
            stack_type(check, op.ty);
            check.dst("d", op.d, op.ty);
        };

    /// Writes the stack pointer, which frees everything allocated since it was read.
    pub struct StackRestore("stackrestore") {
        ty: Type,
    }(a: RegSrc) -> nothing,
        needs: |_, needs| needs.both("`stackrestore`", (7, 3), 52),
        check: |op, check| {
            stack_type(check, op.ty);
            check.reg("a", op.a.0, op.ty);
        };
}

/// The type of a stack address.
fn stack_type(check: &mut Check<'_>, ty: Type) {
    check.type_among(ty, &[Type::U32, Type::U64]);
}
