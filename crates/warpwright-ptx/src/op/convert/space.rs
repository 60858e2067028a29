//! Generic addresses: `cvta`, `isspacep`.

use crate::diag::Code;
use crate::ir::*;
use crate::op::Level;
use crate::op::instruction;
use crate::op::memory::{space_among, space_needs};

instruction! {
    /// Converts an address to generic, or from it.
    pub struct Cvta("cvta") {
        to: bool = "to",
        space: Space,
        ty: Type,
    }(d: Dst, a: Src) -> |op, operands| {
            // Every thread has memory of its own behind the same address.
            if op.space == Space::Local && !op.to { Level::Unknown } else { operands.all }
        },
        needs: |op, needs| {
            needs.both_if(op.space.base() == Space::Param, "`cvta.param`", (7, 7), 70);
            space_needs(needs, Some(op.space));
        },
        check: |op, check| {
            space_among(check, Some(op.space), SPACES);
            if check.type_among(op.ty, &[Type::U32, Type::U64]) && op.ty == Type::U32 {
                check.narrow_address("the generic address");
            }
            check.dst("d", op.d, op.ty);
            let symbol = match &op.a {
                Src::Symbol(address) => &address.symbol,
                Src::Element(element) => {
                    check.element("a", element);
                    &element.array
                }
                other => return check.src("a", other, op.ty),
            };
            if op.to {
                return check.report(Code::OperandForm, "operand `a` of `cvta.to` must be a register");
            }
            let space = check.variable(symbol).map(|variable| variable.space.base());
            if space != Some(op.space.base()) {
                let found = space.map_or("a function".to_string(), |space| format!("a symbol in `{space}`"));
                check.report(Code::StateSpace, format!("operand `a` is {found}, not in `{}`", op.space));
            }
        };

    /// Whether a generic address lies in a space.
    pub struct Isspacep("isspacep") {
        space: Space,
    }(d: Dst, a: Src) -> |op, operands| match op.space {
            // Of the blocks of a cluster, one owns the address.
            Space::Shared | Space::SharedCta => operands.all.max(Level::BlockData),
            _ => operands.all,
        },
        needs: |op, needs| {
            needs.both_if(op.space.base() == Space::Param, "`isspacep.param`", (7, 7), 70);
            space_needs(needs, Some(op.space));
        },
        check: |op, check| {
            space_among(check, Some(op.space), SPACES);
            check.dst("d", op.d, Type::Pred);
            match op.a {
                Src::Reg(reg) if check.reg_type(reg).bits() == 32 => {
                    check.reg("a", reg, Type::U32);
                    check.narrow_address("operand `a`");
                }
                _ => check.src("a", &op.a, Type::U64),
            }
        };
}

const SPACES: &[Option<Space>] = &[
    Some(Space::Const),
    Some(Space::Global),
    Some(Space::Local),
    Some(Space::Shared),
    Some(Space::SharedCta),
    Some(Space::SharedCluster),
    Some(Space::Param),
    Some(Space::ParamEntry),
];
