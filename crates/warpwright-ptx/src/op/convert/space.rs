//! Generic addresses: `cvta`, `isspacep`.

use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::memory::{space_among, space_needs};
use crate::op::{Rule, instruction};

instruction! {
    /// Converts an address to generic, or from it.
    pub struct Cvta("cvta") {
        to: bool = "to",
        space: Space,
        ty: Type,
    }(d: Dst, a: Src)

    /// Whether a generic address lies in a space.
    pub struct Isspacep("isspacep") {
        space: Space,
    }(d: Dst, a: Src)
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

    fn needs(&self, needs: &mut Needs) {
        if self.space.base() == Space::Param {
            needs.both("`cvta.param`", (7, 7), 70);
        }
        space_needs(needs, Some(self.space));
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

    fn needs(&self, needs: &mut Needs) {
        if self.space.base() == Space::Param {
            needs.both("`isspacep.param`", (7, 7), 70);
        }
        space_needs(needs, Some(self.space));
    }
}
