//! `mov`: copies, packs and unpacks.

use super::special_needs;
use crate::diag::Code;
use crate::ir::Type::*;
use crate::ir::*;
use crate::op::Check;
use crate::op::memory::element_type;
use crate::op::{Rule, instruction};

instruction! {
    /// Copies a register, constant, special register or address; packs and unpacks vectors.
    pub struct Mov("mov") {
        vector: Option<VectorWidth>,
        ty: Type,
    }(d: Dsts, a: Srcs) -> pointwise,
        needs: |op, needs| {
            needs.both_if(op.ty == B128, "`.b128`", (8, 3), 70);
            for src in op.a.as_slice() {
                if let Src::Special(special) = src {
                    special_needs(needs, *special);
                }
            }
        },
        thread_index: |op, operands| matches!((&op.d, &op.a), (Dsts::One(_), Srcs::One(src)) if operands.is_thread_index(src));
}

const SCALARS: &[Type] = &[Pred, B16, B32, B64, B128, U16, U32, U64, S16, S32, S64, F32, F64];

impl Rule for Mov {
    fn check(&self, check: &mut Check<'_>) {
        if !check.type_among(self.ty, SCALARS) {
            return;
        }
        if let Dsts::Many(regs) = &self.d {
            let regs: Vec<_> = regs.iter().copied().flatten().collect();
            element_type(check, "d", regs.into_iter(), self.ty);
        }
        if let Srcs::Many(values) = &self.a {
            let regs: Vec<_> = values.iter().filter_map(Src::reg).collect();
            element_type(check, "a", regs.into_iter(), self.ty);
        }
        match (self.vector, &self.d, &self.a) {
            (Some(vector), d, a) => self.check_vector(check, vector, d, a),
            (None, Dsts::One(d), Srcs::One(a)) => {
                check.reg("d", *d, self.ty);
                self.source(check, a);
            }
            (None, Dsts::One(d), Srcs::Many(parts)) => {
                let Some(part) = self.part(check, "a", parts.len()) else { return };
                check.reg("d", *d, self.ty);
                for value in parts {
                    match value {
                        Src::Special(special) => check_special(check, *special, part),
                        value => check.src("a", value, part),
                    }
                }
            }
            (None, Dsts::Many(parts), Srcs::One(a)) => {
                let Some(part) = self.part(check, "d", parts.len()) else { return };
                if parts.iter().all(Option::is_none) {
                    check.report(Code::VectorShape, "some element of the vector `d` must be a register");
                }
                for reg in parts.iter().flatten() {
                    check.reg("d", *reg, part);
                }
                self.source(check, a);
            }
            (None, Dsts::Many(_), Srcs::Many(_)) => {
                check.report(Code::VectorShape, "a copy of a vector says `.v2` or `.v4`");
            }
            (_, Dsts::Sink, _) => check.report(Code::OperandForm, "operand `d` cannot be `_`"),
        }
    }
}

impl Mov {
    /// The type of one of `count` parts that the type is packed from; `None` after a report.
    fn part(&self, check: &mut Check<'_>, name: &str, count: usize) -> Option<Type> {
        if !self.ty.is_bits() {
            check.report(
                Code::VectorShape,
                format!("operand `{name}` is a vector: packing and unpacking takes `.b16`, `.b32`, `.b64` or `.b128`"),
            );
            return None;
        }
        let part = match (count, self.ty.bits()) {
            (1, _) => Some(self.ty),
            (2, 16) | (4, 32) => Some(B8),
            (2, 32) | (4, 64) => Some(B16),
            (2, 64) | (4, 128) => Some(B32),
            (2, 128) => Some(B64),
            _ => None,
        };
        check.that(
            part.is_some(),
            Code::VectorShape,
            format_args!("`{}` is packed from 2 or 4 parts of 8 bits or more", self.ty),
        );
        part
    }

    fn source(&self, check: &mut Check<'_>, a: &Src) {
        match a {
            Src::Special(special) => check_special(check, *special, self.ty),
            Src::Symbol(address) => self.symbol(check, &address.symbol),
            Src::Element(element) => {
                check.element("a", element);
                self.symbol(check, &element.array);
            }
            other => check.src("a", other, self.ty),
        }
    }

    /// The address of a variable or function.
    fn symbol(&self, check: &mut Check<'_>, symbol: &Symbol) {
        let ty = self.ty;
        let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
        if !integer || !matches!(ty.bits(), 32 | 64) {
            return check
                .report(Code::OperandType, format!("an address is an integer of 32 or 64 bits, not `{ty}`"));
        }
        let global = match symbol {
            Symbol::Global(name) => check.index().get(name),
            Symbol::Local(_) => None,
        };
        let Some(variable) = check.variable(symbol) else {
            let function = matches!(global, Some(GlobalSymbol::Function(_)));
            // Below, the assembler takes the half of an address.
            if function && ty.bits() == 32 && check.arch().sm >= 90 {
                check.narrow_address("the address of the function");
            }
            return;
        };
        if variable.ty.kind() == TypeKind::Opaque {
            if ty != U64 {
                check.report(Code::OperandType, format!("the handle of a `{}` is a `.u64`", variable.ty));
            }
        } else if variable.space == Space::Global && ty.bits() == 32 {
            check.narrow_address("the address of the variable");
        } else if variable.space.base() == Space::Param && !is_parameter(check.function(), symbol) {
            check.report(Code::Parameter, "the address of a parameter of a call cannot be taken");
        }
    }

    fn check_vector(&self, check: &mut Check<'_>, vector: VectorWidth, d: &Dsts, a: &Srcs) {
        let count = vector.elements();
        if self.ty == Pred || count as u32 * self.ty.bits() > 128 || count > 4 {
            return check.report(
                Code::VectorShape,
                format!("there is no `{vector}{}`: a vector has up to 4 elements and 128 bits", self.ty),
            );
        }
        match d {
            Dsts::Many(regs) if regs.len() == count => {
                if regs.iter().all(Option::is_none) {
                    check.report(Code::VectorShape, "some element of the vector `d` must be a register");
                }
                for reg in regs.iter().flatten() {
                    check.reg("d", *reg, self.ty);
                }
            }
            _ => check.report(Code::VectorShape, format!("operand `d` must be a vector of {count} elements")),
        }
        match a {
            Srcs::Many(values) if values.len() == count => {
                for value in values {
                    match value {
                        Src::Special(special) => check_special(check, *special, self.ty),
                        value => check.src("a", value, self.ty),
                    }
                }
            }
            Srcs::One(Src::Special(special))
                if count == 4 && special.component.is_none() && special.register.is_vector() =>
            {
                check_special_type(check, special.register, self.ty);
            }
            _ => check.report(Code::VectorShape, format!("operand `a` must be a vector of {count} elements")),
        }
    }
}

fn is_parameter(function: &Function, symbol: &Symbol) -> bool {
    let Symbol::Local(id) = symbol else { return false };
    (function.params.iter().chain(&function.returns))
        .any(|param| matches!(param, Param::Variable(variable) if variable == id))
}

/// A special register read as `ty`.
fn check_special(check: &mut Check<'_>, special: Special, ty: Type) {
    let register = special.register;
    if register.is_vector() && special.component.is_none() {
        return check.report(
            Code::SpecialRegister,
            format!("`{}` is a vector: name a component, `.x`, `.y` or `.z`", register.name()),
        );
    }
    check_special_type(check, register, ty);
}

fn check_special_type(check: &mut Check<'_>, register: SpecialRegister, ty: Type) {
    use SpecialRegister::*;
    // These were 16 bits wide once, and %gridid 32; they still read as that.
    let short = matches!(register, Tid | Ntid | CtaId | NCtaId | GridId) && matches!(ty, U16 | B16);
    let old = register == GridId && matches!(ty, U32 | B32 | S32);
    let own = match register.ty().bits() {
        1 => ty == Pred,
        32 => matches!(ty, U32 | B32 | S32),
        _ => matches!(ty, U64 | B64),
    };
    check.that(
        own || short || old,
        Code::SpecialRegister,
        format_args!("`{}` is a `{}`, and is read here as `{ty}`", register.name(), register.ty()),
    );
}
