//! The tools for an instruction's typing rule.

use std::fmt::Display;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;

/// The context of one instruction under check: it reports violations.
pub struct Check<'a> {
    index: &'a ModuleIndex<'a>,
    function: &'a Function,
    opcode: &'static str,
    origin: Origin,
    guarded: bool,
    out: &'a mut Diagnostics,
}

impl<'a> Check<'a> {
    pub(crate) fn new(
        index: &'a ModuleIndex<'a>,
        function: &'a Function,
        opcode: &'static str,
        origin: Origin,
        out: &'a mut Diagnostics,
    ) -> Self {
        Check { index, function, opcode, origin, guarded: false, out }
    }

    /// The module.
    pub fn module(&self) -> &'a Module {
        self.index.module
    }

    /// The module's names.
    pub fn index(&self) -> &'a ModuleIndex<'a> {
        self.index
    }

    /// The function that contains the instruction.
    pub fn function(&self) -> &'a Function {
        self.function
    }

    /// The module's `.version`.
    pub fn version(&self) -> Version {
        self.index.module.version
    }

    /// The module's architecture.
    pub fn arch(&self) -> Arch {
        self.index.module.target.arch
    }

    /// The type that a register was declared with.
    pub fn reg_type(&self, reg: Reg) -> Type {
        self.function.register_type(reg)
    }

    /// The variable that a symbol names.
    pub fn variable(&self, symbol: &Symbol) -> Option<&'a Variable> {
        self.index.variable(self.function, symbol)
    }

    /// A register's name, for messages.
    pub fn reg_name(&self, reg: Reg) -> String {
        self.function.register_name(reg)
    }

    /// Reports a violation of the rule `code`. The instruction's name is added to the message.
    #[cold]
    pub fn report(&mut self, code: Code, message: impl Display) {
        let message = format!("`{}`: {message}", self.opcode);
        self.out.push(Diagnostic::new(code, self.origin, message));
    }

    /// Reports a violation, with advice.
    #[cold]
    pub fn report_with_help(&mut self, code: Code, message: impl Display, help: impl Into<String>) {
        let message = format!("`{}`: {message}", self.opcode);
        self.out.push(Diagnostic::new(code, self.origin, message).with_help(help));
    }

    /// Checks the rule `code`: reports `message` unless it `holds`. Pass formatted text as `format_args!`.
    pub fn that(&mut self, holds: bool, code: Code, message: impl Display) {
        if !holds {
            self.report(code, message);
        }
    }

    /// Checks that modifiers are compatible: reports `message` unless `holds`.
    pub fn combination(&mut self, holds: bool, message: impl Display) {
        self.that(holds, Code::ModifierCombination, message);
    }

    /// Checks that the instruction's type is one of `allowed`. Returns whether it is.
    pub fn type_among(&mut self, ty: Type, allowed: &[Type]) -> bool {
        let fine = allowed.contains(&ty);
        if !fine {
            let names = list(allowed, ", ");
            self.combination(
                false,
                format_args!("type `{ty}` is not offered in this form; it takes {names}"),
            );
        }
        fine
    }

    /// Checks the operands of an operation on values of one type, which must be among `allowed`; the sources are
    /// named `a`, `b` and `c`. Returns whether the type is allowed.
    pub fn operation<const N: usize>(
        &mut self,
        ty: Type,
        allowed: &[Type],
        d: Dst,
        sources: [&Src; N],
    ) -> bool {
        let fine = self.type_among(ty, allowed);
        if fine {
            self.dst("d", d, ty);
            ["a", "b", "c"].iter().zip(sources).for_each(|(name, src)| self.src(name, src, ty));
        }
        fine
    }

    /// Whether the instruction has a guard.
    pub fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// Checks that the guard is a predicate.
    pub fn guard(&mut self, guard: Guard) {
        self.guarded = true;
        let ty = self.reg_type(guard.reg);
        if ty != Type::Pred {
            let name = self.reg_name(guard.reg);
            self.report(Code::GuardType, format!("the guard `{name}` is a `{ty}`, and must be a predicate"));
        }
    }

    /// Checks that a register operand agrees with `ty`: the same size, and integer with integer, a float with itself,
    /// untyped bits with anything.
    pub fn reg(&mut self, name: &str, reg: Reg, ty: Type) {
        let declared = self.reg_type(reg);
        if !declared.agrees_with(ty) {
            self.mismatch(name, reg, declared, ty);
        }
    }

    /// Checks that a register is a 32-bit integer or untyped, regardless of the instruction's type. Packed floats,
    /// which are accepted where the instruction's type requires integers, are not accepted here.
    pub fn word(&mut self, name: &str, reg: Reg) {
        let declared = self.reg_type(reg);
        if declared.kind() == TypeKind::PackedFloat || !declared.agrees_with(Type::U32) {
            self.mismatch(name, reg, declared, Type::U32);
        }
    }

    /// Checks a destination like [`Self::word`].
    pub fn word_dst(&mut self, name: &str, dst: Dst) {
        self.word(name, dst.0);
    }

    /// Checks that a source, if present, is a [`Self::word`] or an integer constant.
    pub fn word_src<'s>(&mut self, name: &str, src: impl Into<Option<&'s Src>>) {
        match src.into() {
            Some(Src::Reg(reg)) => self.word(name, *reg),
            src => self.src(name, src, Type::U32),
        }
    }

    /// Checks a register operand of a load, store or conversion, which may be wider than `ty`.
    pub fn reg_at_least(&mut self, name: &str, reg: Reg, ty: Type) {
        let declared = self.reg_type(reg);
        // Floating-point values sit in wider registers only where those are untyped.
        let fits = match ty.kind() {
            TypeKind::Bits => declared != Type::Pred,
            TypeKind::Unsigned | TypeKind::Signed => {
                declared.is_integer() || declared.is_bits() || declared.kind() == TypeKind::PackedFloat
            }
            TypeKind::Float | TypeKind::PackedFloat => declared.is_bits(),
            _ => false,
        };
        let wider = declared.bits() > ty.bits() && fits;
        if !wider && !declared.agrees_with(ty) {
            self.mismatch(name, reg, declared, ty);
        }
    }

    #[cold]
    fn mismatch(&mut self, operand: &str, reg: Reg, declared: Type, wanted: Type) {
        let name = self.reg_name(reg);
        self.report(
            Code::OperandType,
            format!("operand `{operand}` is `{name}`, a `{declared}` register, where `{wanted}` is wanted"),
        );
    }

    /// Checks that a destination agrees with `ty`.
    pub fn dst(&mut self, name: &str, dst: Dst, ty: Type) {
        self.reg(name, dst.0, ty);
    }

    /// Checks that a source, if present, is a register that agrees with `ty`, or a constant of its kind. Special
    /// registers and symbols are refused.
    pub fn src<'s>(&mut self, name: &str, src: impl Into<Option<&'s Src>>, ty: Type) {
        if let Some(src) = src.into() {
            self.one_src(name, src, ty);
        }
    }

    fn one_src(&mut self, name: &str, src: &Src, ty: Type) {
        match src {
            Src::Reg(reg) => self.reg(name, *reg, ty),
            Src::Not(reg) if ty == Type::Pred => self.reg(name, *reg, ty),
            Src::Sum(reg, _) => {
                self.summand(name, *reg);
                self.reg(name, *reg, ty);
            }
            Src::Not(_) => self.report(
                Code::OperandForm,
                format!("operand `{name}` is negated, which only a predicate can be"),
            ),
            Src::Imm(imm) => self.imm(name, *imm, ty),
            Src::Sink => {
                self.report(Code::OperandForm, format!("operand `{name}` cannot be `_`"));
            }
            Src::Special(special) => {
                let register = special.register.name();
                self.report_with_help(
                    Code::SpecialRegister,
                    format!("operand `{name}` cannot be the special register `{register}`"),
                    "move it into a register with `mov` first",
                );
            }
            // The assembler adds in an expression what it does not take alone.
            Src::Symbol(address)
                if address.offset != 0 && ty.bits() >= 32 && (ty.is_integer() || ty.is_bits()) =>
            {
                if ty.bits() == 32
                    && self.variable(&address.symbol).is_some_and(|it| it.space == Space::Global)
                {
                    self.narrow_address(name);
                }
            }
            Src::Symbol(..) | Src::Element(_) => self.report_with_help(
                Code::OperandForm,
                format!("operand `{name}` cannot be the address of a symbol"),
                "move it into a register with `mov` first",
            ),
        }
    }

    /// Checks the subscript of an element of an array: an integer register, and an array whose size is known. For others,
    /// the assembler does not count scalars, but bytes.
    pub fn element(&mut self, name: &str, element: &Element) {
        let ty = self.reg_type(element.index);
        let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
        if !integer || ty.bits() > 64 {
            let register = self.reg_name(element.index);
            let message = format!(
                "the subscript of `{name}` is in `{register}`, a `{ty}` register; it must be an integer of up to 64 bits"
            );
            self.report(Code::OperandType, message);
        }
        if self.variable(&element.array).is_some_and(|array| array.dims.contains(&None)) {
            self.report_with_help(
                Code::OperandForm,
                format!("`{name}` has a subscript in a register, of an array whose size is not declared"),
                "compute the address: the assembler counts bytes there, not elements",
            );
        }
    }

    /// Checks that a register to which a constant is added is an integer of 16 to 64 bits.
    pub fn summand(&mut self, name: &str, reg: Reg) {
        let ty = self.reg_type(reg);
        let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
        if !integer || !matches!(ty.bits(), 16 | 32 | 64) {
            let register = self.reg_name(reg);
            let message = format!(
                "operand `{name}` adds a constant to `{register}`, a `{ty}` register; it must be an integer of 16, 32 or 64 bits"
            );
            self.report(Code::OperandType, message);
        }
    }

    /// Checks the kind of a constant: a floating-point number for `.f32` and `.f64`, an integer for integers, either
    /// for untyped bits, where a floating-point number must have their size (`0f…` 32, others 64). Half-precision and
    /// packed types have no constants.
    pub fn imm(&mut self, name: &str, imm: Imm, ty: Type) {
        let fits = match ty.kind() {
            TypeKind::Bits => match imm {
                Imm::Int(_) | Imm::UInt(_) => true,
                Imm::F32(_) => ty.bits() == 32,
                Imm::F64(_) => ty.bits() == 64,
            },
            TypeKind::Float if ty.bits() < 32 => {
                return self.no_constants(name, ty);
            }
            TypeKind::Float => imm.is_float(),
            TypeKind::Predicate | TypeKind::Unsigned | TypeKind::Signed => !imm.is_float(),
            TypeKind::PackedInteger | TypeKind::PackedFloat | TypeKind::Opaque => {
                return self.no_constants(name, ty);
            }
        };
        if !fits {
            let kind = match imm {
                Imm::Int(_) | Imm::UInt(_) => "an integer",
                Imm::F32(_) => "a 32-bit floating-point number",
                Imm::F64(_) => "a 64-bit floating-point number",
            };
            self.report(Code::OperandType, format!("operand `{name}` is {kind}, where `{ty}` is wanted"));
        }
    }

    #[cold]
    fn no_constants(&mut self, name: &str, ty: Type) {
        self.report_with_help(
            Code::OperandType,
            format!("operand `{name}` is a constant, and type `{ty}` has none"),
            "move its bits into a register with `mov` first",
        );
    }

    /// Checks that a constant is an integer in `range`.
    pub fn imm_range<'s>(
        &mut self,
        name: &str,
        src: impl Into<Option<&'s Src>>,
        range: std::ops::RangeInclusive<i64>,
    ) {
        if let Some(Src::Imm(imm)) = src.into() {
            self.that(
                matches!(imm, Imm::Int(value) if range.contains(value)),
                Code::ImmediateRange,
                format_args!("operand `{name}` must lie between {} and {}", range.start(), range.end()),
            );
        }
    }

    /// Checks that the operand is an integer constant in `range`.
    pub fn constant(&mut self, name: &str, src: &Src, range: std::ops::RangeInclusive<i64>) {
        let constant = matches!(src, Src::Imm(_));
        self.that(constant, Code::OperandForm, format_args!("operand `{name}` must be a constant"));
        self.imm_range(name, src, range);
    }

    /// Checks a predicate destination, alone or as a part of a pair.
    pub fn pred_dst(&mut self, name: &str, reg: Option<Reg>) {
        if let Some(reg) = reg {
            self.reg(name, reg, Type::Pred);
        }
    }

    /// Checks an address into `space` (`None`: a generic address), if present: its register must be a 32- or 64-bit
    /// integer (a narrower one is suspicious), its symbol must be in that space, and a number alone is an address of
    /// local memory.
    pub fn address<'o>(&mut self, name: &str, address: impl Into<Option<&'o Address>>, space: Option<Space>) {
        match address.into().map(|address| &address.base) {
            None => {}
            Some(AddressBase::Reg(reg)) => {
                let ty = self.reg_type(*reg);
                let integer = matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
                if !integer || ty.bits() > 64 {
                    let register = self.reg_name(*reg);
                    self.report(
                        Code::OperandType,
                        format_args!("the address `{name}` is in `{register}`, a `{ty}` register; it must be a 32- or 64-bit integer"),
                    );
                } else if ty.bits() < 32 {
                    self.report(
                        Code::AddressWidth,
                        format_args!("the address `{name}` has {} bits", ty.bits()),
                    );
                }
            }
            Some(AddressBase::Symbol(symbol)) => self.address_symbol(name, symbol, space),
            Some(AddressBase::Element(element)) => {
                self.element(name, element);
                self.address_symbol(name, &element.array, space);
            }
            Some(AddressBase::Absolute) => self.that(
                space == Some(Space::Local),
                Code::StateSpace,
                format_args!("the address `{name}` is a number, which only an access to `.local` can have"),
            ),
        }
    }

    /// Checks that the symbol of an address is in `space`.
    fn address_symbol(&mut self, name: &str, symbol: &Symbol, space: Option<Space>) {
        let found = self.variable(symbol).map(|variable| variable.space.base());
        if let (Some(found), Some(space)) = (found, space)
            && found != space.base()
        {
            let message =
                format!("the address `{name}` is a symbol in `{found}`, and the access is to `{space}`");
            self.report(Code::StateSpace, message);
        }
    }

    /// Checks an address whose register must have at least 32 bits; only loads, stores and some other instructions
    /// widen it.
    pub fn wide_address<'o>(
        &mut self,
        name: &str,
        address: impl Into<Option<&'o Address>>,
        space: Option<Space>,
    ) {
        let Some(address) = address.into() else { return };
        if !self.is_narrow(name, address) {
            self.address(name, address, space);
        }
    }

    /// Checks both a [`Self::wide_address`] and a [`Self::data_address`].
    pub fn wide_data_address(&mut self, name: &str, address: &Address, space: Option<Space>) {
        if !self.is_narrow(name, address) {
            self.data_address(name, address, space);
        }
    }

    /// Reports an address in a register of fewer than 32 bits; whether it is.
    fn is_narrow(&mut self, name: &str, address: &Address) -> bool {
        let AddressBase::Reg(reg) = address.base else { return false };
        let ty = self.reg_type(reg);
        let narrow = ty.bits() < 32;
        self.that(
            !narrow,
            Code::OperandType,
            format_args!("the address `{name}` is in a `{ty}` register; it must be a 32- or 64-bit integer"),
        );
        narrow
    }

    /// Checks the address of a load, store or the like, which has stricter rules than [`Self::address`]: global and
    /// generic addresses have 64 bits, and a generic one may name only variables in spaces with generic addresses
    /// without `cvta`.
    pub fn data_address(&mut self, name: &str, address: &Address, space: Option<Space>) {
        self.address(name, address, space);
        match &address.base {
            AddressBase::Reg(reg) => {
                let narrow = self.reg_type(*reg).bits() == 32;
                if narrow && matches!(space, None | Some(Space::Global)) {
                    self.narrow_address(name);
                }
            }
            AddressBase::Symbol(_) | AddressBase::Element(_) | AddressBase::Absolute => {}
        }
        if let Some(symbol) = address.base.symbol() {
            match self.variable(symbol) {
                None => {
                    let message = format!("the address `{name}` is a function, not a variable");
                    self.report(Code::OperandForm, message);
                }
                Some(variable) if variable.ty.kind() == TypeKind::Opaque => {
                    let ty = variable.ty;
                    let message =
                        format!("the address `{name}` is a `{ty}`, which only texture instructions read");
                    self.report(Code::StateSpace, message);
                }
                Some(variable) => {
                    let found = variable.space.base();
                    self.that(
                    space.is_some() || matches!(found, Space::Global | Space::Shared | Space::Local),
                    Code::StateSpace,
                    format_args!("the address `{name}` is a symbol in `{found}`, which an access without a state space cannot name"),
                );
                }
            }
        }
    }

    /// Reports a 32-bit generic or global address `name` in a module of 64-bit addresses: suspicious, and refused for
    /// targets without 32-bit addressing.
    pub fn narrow_address(&mut self, name: &str) {
        if self.module().address_size != Some(AddressSize::Bits32) {
            let code = if self.arch().sm >= 75 { Code::OperandType } else { Code::AddressWidth };
            self.report(code, format_args!("`{name}` has 32 bits; a global or generic address has 64 bits"));
        }
    }
}

/// Values as messages name them, between back quotes.
pub(super) fn list<T: Display>(values: &[T], separator: &str) -> String {
    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(separator)
}
