//! Control flow: branches, calls, returns.

use super::framework::{Access, Instr};
use super::operand::{Arg, Operand};
use super::{InstrReader, Keyword, Rule, Visitor, VisitorMut, instruction};
use crate::diag::Code;
use crate::ir::{LabelId, Needs, Reg, RegSrc, Src, Symbol, Type};
use crate::print::Writer;
use crate::verify::Check;

instruction! {
    /// Jump to a label.
    pub struct Bra("bra") {
        uniform: bool = "uni",
    }(target: LabelId)

    /// Jump to one label of a `.branchtargets` table, by index.
    pub struct BrxIdx("brx.idx") {
        uniform: bool = "uni",
    }(index: RegSrc, table: LabelId)

    /// Return to the caller; in a kernel, end the thread.
    pub struct Ret("ret") {
        uniform: bool = "uni",
    }()

    /// End the thread.
    pub struct Exit("exit") {}()

    /// Abort the kernel with an error.
    pub struct Trap("trap") {}()

    /// Stop for the debugger.
    pub struct Brkpt("brkpt") {}()
}

/// Call of a function: `call (returns), callee, (arguments), prototype`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// All threads of the warp make the same call.
    pub uniform: bool,
    /// Where the return values go.
    pub returns: Box<[CallReturn]>,
    /// What is called.
    pub callee: Callee,
    /// The arguments.
    pub arguments: Box<[Src]>,
    /// For an indirect call, the `.callprototype`, or the `.calltargets` that share a signature.
    pub prototype: Option<LabelId>,
}

/// Where a return value goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallReturn {
    /// A `.param` variable.
    Variable(Symbol),
    /// A register.
    Reg(Reg),
    /// Nowhere.
    Sink,
}

/// What a call calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function by name.
    Function(Symbol),
    /// The function whose address a register holds.
    Reg(Reg),
}

impl Instr for Call {
    const NAME: &'static str = "call";

    fn read(reader: &mut InstrReader<'_>) -> Option<Self> {
        let uniform = reader.flag(const { Keyword::new("uni") });
        reader.end_modifiers()?;
        // With returns, the first of at least two operands is a list, and so is not the callee.
        let returns = match reader.peek() {
            Some(Operand::List(_)) => match reader.operand("returns")? {
                (Operand::List(list), span) => list
                    .into_iter()
                    .map(|operand| match operand {
                        Operand::Reg(reg) => Some(CallReturn::Reg(reg)),
                        Operand::Symbol(symbol, 0) => Some(CallReturn::Variable(symbol)),
                        Operand::Sink => Some(CallReturn::Sink),
                        other => {
                            reader.expected("a parameter variable or a register", "returns", &other, span)
                        }
                    })
                    .collect::<Option<_>>()?,
                _ => Box::default(),
            },
            _ => Box::default(),
        };
        let callee = match reader.operand("callee")? {
            (Operand::Symbol(symbol, 0), _) => Callee::Function(symbol),
            (Operand::Reg(reg), _) => Callee::Reg(reg),
            (other, span) => return reader.expected("a function or a register", "callee", &other, span),
        };
        let arguments = match reader.peek() {
            Some(Operand::List(_)) => {
                let (Operand::List(list), span) = reader.operand("arguments")? else { return None };
                let mut arguments = Vec::with_capacity(list.len());
                for operand in list {
                    arguments.push(match operand {
                        Operand::Reg(reg) => Src::Reg(reg),
                        Operand::Imm(imm) => Src::Imm(imm),
                        Operand::Symbol(symbol, 0) => Src::Symbol(symbol, 0),
                        other => {
                            return reader.expected(
                                "a parameter variable, a register or a number",
                                "arguments",
                                &other,
                                span,
                            );
                        }
                    });
                }
                arguments.into()
            }
            _ => Box::default(),
        };
        let prototype = reader.arg("prototype")?;
        reader.end_args()?;
        Some(Call { uniform, returns, callee, arguments, prototype })
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.opcode("call");
        if self.uniform {
            out.modifier("uni");
        }
        if !self.returns.is_empty() {
            out.separator();
            out.list(&self.returns, |out, value| match value {
                CallReturn::Variable(symbol) => out.symbol(symbol),
                CallReturn::Reg(reg) => out.reg(*reg),
                CallReturn::Sink => out.text("_"),
            });
        }
        out.separator();
        match &self.callee {
            Callee::Function(symbol) => out.symbol(symbol),
            Callee::Reg(reg) => out.reg(*reg),
        }
        if !self.arguments.is_empty() {
            out.separator();
            out.list(&self.arguments, |out, src| out.src(src));
        }
        self.prototype.print(out);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        for value in &self.returns {
            match value {
                CallReturn::Variable(symbol) => visitor.symbol(symbol),
                CallReturn::Reg(reg) => visitor.reg(Access::Write, *reg),
                CallReturn::Sink => {}
            }
        }
        match &self.callee {
            Callee::Function(symbol) => visitor.symbol(symbol),
            Callee::Reg(reg) => visitor.reg(Access::Read, *reg),
        }
        self.arguments.iter().for_each(|src| src.visit(visitor));
        self.prototype.visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        for value in &mut self.returns {
            match value {
                CallReturn::Variable(symbol) => visitor.symbol(symbol),
                CallReturn::Reg(reg) => visitor.reg(Access::Write, reg),
                CallReturn::Sink => {}
            }
        }
        match &mut self.callee {
            Callee::Function(symbol) => visitor.symbol(symbol),
            Callee::Reg(reg) => visitor.reg(Access::Read, reg),
        }
        self.arguments.iter_mut().for_each(|src| src.visit_mut(visitor));
        self.prototype.visit_mut(visitor);
    }
}

impl Rule for Bra {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for BrxIdx {
    fn check(&self, check: &mut Check<'_>) {
        check.reg("index", self.index.0, Type::U32);
    }
    fn needs(&self, needs: &mut Needs) {
        needs.version("`brx.idx`", 6, 0);
    }
}

impl Rule for Call {
    fn check(&self, check: &mut Check<'_>) {
        if matches!(self.callee, Callee::Reg(_)) && self.prototype.is_none() {
            check.report(Code::CallSignature, "an indirect call needs a `.callprototype` or `.calltargets`");
        }
    }
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Ret {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Exit {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Trap {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}

impl Rule for Brkpt {
    fn check(&self, _check: &mut Check<'_>) {}
    fn needs(&self, _needs: &mut Needs) {}
}
