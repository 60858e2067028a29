//! Generic addresses: `cvta`, `isspacep`.

use crate::diag::Code;
use crate::ir::*;
use crate::op::memory::{space_among, space_needs};
use crate::op::{Check, Level};
use crate::op::{Rule, instruction};

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
            if op.space.base() == Space::Param {
                needs.both("`cvta.param`", (7, 7), 70);
            }
            space_needs(needs, Some(op.space));
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
            if op.space.base() == Space::Param {
                needs.both("`isspacep.param`", (7, 7), 70);
            }
            space_needs(needs, Some(op.space));
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

impl Rule for Cvta {
    fn check(&self, check: &mut Check<'_>) {
        space_among(check, Some(self.space), SPACES);
        if check.type_among(self.ty, &[Type::U32, Type::U64]) && self.ty == Type::U32 {
            check.narrow_address("the generic address");
        }
        check.dst("d", self.d, self.ty);
        let Src::Symbol(address) = &self.a else { return check.src("a", &self.a, self.ty) };
        let symbol = &address.symbol;
        if self.to {
            return check.report(Code::OperandForm, "operand `a` of `cvta.to` must be a register");
        }
        let space = check.variable(symbol).map(|variable| variable.space.base());
        if space != Some(self.space.base()) {
            let found = space.map_or("a function".to_string(), |space| format!("a symbol in `{space}`"));
            check.report(Code::StateSpace, format!("operand `a` is {found}, not in `{}`", self.space));
        }
    }
}

impl Rule for Isspacep {
    fn check(&self, check: &mut Check<'_>) {
        space_among(check, Some(self.space), SPACES);
        check.dst("d", self.d, Type::Pred);
        match self.a {
            Src::Reg(reg) if check.reg_type(reg).bits() == 32 => {
                check.reg("a", reg, Type::U32);
                check.narrow_address("operand `a`");
            }
            _ => check.src("a", &self.a, Type::U64),
        }
    }
}
