//! Control flow: branches, calls, returns.

use super::family::Family;
use super::framework::{Access, Instr};
use super::operand::{Arg, Operand};
use super::{
    Apart, Carry, Convergence, InstrReader, Keyword, Level, Op, Operands, Rule, Visitor, VisitorMut,
    instruction, modifiers,
};
use crate::diag::Code;
use crate::ir::GlobalSymbol;
use crate::ir::*;
use crate::op::Check;
use crate::print::Writer;

modifiers! {
    /// Synchronisation with the previous and following kernels of the stream.
    pub enum GridDependency {
        /// Lets the dependent kernels start.
        LaunchDependents = "launch_dependents",
        /// Waits until the kernels that this one depends on have finished.
        Wait = "wait",
    }
}

instruction! {
    /// Jump to a label.
    pub struct Bra("bra") {
        uniform: bool = "uni",
    }(target: LabelId) -> |op, operands| decided(op.uniform, operands),
        check: |_, _| {};

    /// Jump to one label of a `.branchtargets` table, by index.
    pub struct BrxIdx("brx.idx") {
        uniform: bool = "uni",
    }(index: RegSrc, table: LabelId) -> |op, operands| decided(op.uniform, operands),
        check: |op, check| check.word("index", op.index.0);

    /// Return to the caller; in a kernel, end the thread.
    pub struct Ret("ret") {
        uniform: bool = "uni",
    }() -> pointwise,
        check: |_, _| {};

    /// End the thread.
    pub struct Exit("exit")
    /// Abort the kernel with an error.
    pub struct Trap("trap") {}() -> pointwise,
        check: |_, _| {};

    /// Stop for the debugger.
    pub struct Brkpt("brkpt") {}() -> nothing,
        check: |_, _| {};

    /// Trigger a performance monitor event.
    pub struct Pmevent("pmevent") {}(a: Src) -> nothing,
        check: |op, check| check.constant("a", &op.a, 0..=15);

    /// Trigger the performance monitor events of a mask.
    pub struct PmeventMask("pmevent.mask") {}(a: Src) -> nothing,
        check: |op, check| check.constant("a", &op.a, 0..=0xffff);

    /// Increase the registers of each thread of the warpgroup to this number.
    pub struct SetmaxnregInc("setmaxnreg.inc.sync.aligned")
    /// Reduce the registers of each thread of the warpgroup to this number.
    pub struct SetmaxnregDec("setmaxnreg.dec.sync.aligned") {
        ty: Type,
    }(count: Src) -> nothing,
        needs: |_, needs| register_count_needs(needs),
        convergence: |_| Convergence::Warpgroup,
        check: |op, check| check_register_count(check, op.ty, &op.count);

    /// Order this kernel with the previous and following ones.
    pub struct Griddepcontrol("griddepcontrol") {
        action: GridDependency,
    }() -> nothing,
        needs: |_, needs| needs.both("`griddepcontrol`", (7, 8), 90),
        check: |_, _| {};
}

/// How alike the decision of a branch is, which is said to be one for the whole warp or is not.
fn decided(uniform: bool, operands: &Operands<'_>) -> Level {
    if uniform { operands.all.min(Level::WarpData) } else { operands.all }
}

/// Call of a function: `call (returns), callee, (arguments), prototype`. A vector register among the returns or the
/// arguments stands as its elements, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// All threads of the warp make the same call.
    pub uniform: bool,
    /// The destinations of the return values.
    pub returns: Box<[CallReturn]>,
    /// The callee.
    pub callee: Callee,
    /// The arguments.
    pub arguments: Box<[Src]>,
    /// For an indirect call, the `.callprototype`, or the `.calltargets` that share a signature.
    pub prototype: Option<LabelId>,
}

/// The next statement of a thread that executes an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// To the next one.
    Next,
    /// To a label.
    To(LabelId),
    /// To a label of a `.branchtargets` table.
    Table(LabelId),
    /// A function, and usually the next statement after that.
    Call(&'a Call),
    /// Outside the function.
    Away,
}

impl Op {
    /// The next statement of a thread that executes the instruction, ignoring its guard.
    pub fn way(&self) -> Way<'_> {
        use super::family::Control::*;
        let Family::Control(op) = self.family() else { return Way::Next };
        match op {
            Bra(op) => Way::To(op.target),
            BrxIdx(op) => Way::Table(op.table),
            Call(op) => Way::Call(op),
            Ret(_) | Exit(_) | Trap(_) => Way::Away,
            Brkpt(_) | Pmevent(_) | PmeventMask(_) | SetmaxnregInc(_) | SetmaxnregDec(_)
            | Griddepcontrol(_) => Way::Next,
        }
    }
}

/// The destination of a return value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallReturn {
    /// A `.param` variable.
    Variable(Symbol),
    /// A register.
    Reg(Reg),
    /// Discarded.
    Sink,
}

/// The callee of a call.
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
                (Operand::List(list), span) => elements(list)
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
                for operand in elements(list) {
                    arguments.push(match operand {
                        Operand::Reg(reg) => Src::Reg(reg),
                        Operand::Imm(imm) => Src::Imm(imm),
                        Operand::Symbol(symbol, 0) => symbol.into(),
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
            let reg = |value: &CallReturn| match value {
                CallReturn::Reg(reg) => Some(*reg),
                CallReturn::Variable(_) | CallReturn::Sink => None,
            };
            out.passed(&self.returns, reg, |out, value| match value {
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
            out.passed(&self.arguments, Src::reg, |out, src| out.src(src));
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

    fn uniformity(&self, operands: &Operands<'_>) -> Level {
        // What a function returns is not looked at; a call that does not return decides who goes on.
        if self.returns.is_empty() { operands.all } else { Level::Unknown }
    }

    fn apart(&self, _operands: &Operands<'_>) -> Option<Apart> {
        None
    }

    fn needs(&self, _needs: &mut Needs) {}

    fn convergence(&self) -> Convergence {
        Convergence::None
    }

    fn carry(&self) -> Carry {
        Carry::default()
    }

    fn is_thread_index(&self, _operands: &Operands<'_>) -> bool {
        false
    }
}

/// The operands of a list, vector registers as their elements.
fn elements(list: Vec<Operand>) -> impl Iterator<Item = Operand> {
    list.into_iter().flat_map(|operand| match operand {
        Operand::Vector(elements) => elements,
        other => vec![other],
    })
}

/// A parameter as its callee declares it.
#[derive(Clone, Copy)]
enum Formal<'a> {
    Variable(&'a Variable),
    /// A register, or an element of a vector register.
    Register(Type, Place),
}

/// Which element of a vector register a register is, and of how many: `(0, 1)` if it is none.
type Place = (u32, u32);

fn place(function: &Function, reg: Reg) -> Place {
    let range = function.register_range(reg);
    ((reg.0 - range.first.0) % range.width(), range.width())
}

impl<'a> Formal<'a> {
    fn of(function: &'a Function, params: &'a [Param]) -> Vec<Self> {
        let mut formals = Vec::with_capacity(params.len());
        for param in params {
            match *param {
                Param::Variable(id) => formals.push(Formal::Variable(function.variable(id))),
                Param::Register(first) => formals.extend(
                    function
                        .elements(first)
                        .map(|reg| Formal::Register(function.register_type(reg), place(function, reg))),
                ),
            }
        }
        formals
    }

    fn of_prototype(params: &'a [PrototypeParam]) -> Vec<Self> {
        let mut formals = Vec::with_capacity(params.len());
        for param in params {
            match param {
                PrototypeParam::Variable(variable) => formals.push(Formal::Variable(variable)),
                PrototypeParam::Register(ty, vector, _) => {
                    let width = vector.map_or(1, |vector| vector.elements() as u32);
                    formals.extend((0..width).map(|element| Formal::Register(*ty, (element, width))));
                }
            }
        }
        formals
    }

    fn place(&self) -> Place {
        match self {
            Formal::Variable(_) => (0, 1),
            Formal::Register(_, place) => *place,
        }
    }

    /// Its type where it is one value, not an array.
    fn scalar(&self) -> Option<Type> {
        match self {
            Formal::Variable(variable) => scalar_type(variable),
            Formal::Register(ty, _) => Some(*ty),
        }
    }

    fn alignment(&self) -> u32 {
        match self {
            Formal::Variable(variable) => variable.alignment(),
            Formal::Register(ty, _) => ty.bytes(),
        }
    }
}

fn scalar_type(variable: &Variable) -> Option<Type> {
    (variable.dims.is_empty() && variable.vector.is_none()).then_some(variable.ty)
}

/// What a call passes for a parameter, or where it puts a return value.
enum Actual<'a> {
    Symbol(&'a Symbol),
    Reg(Reg),
    Imm(Imm),
    Nowhere,
}

impl<'a> From<&'a CallReturn> for Actual<'a> {
    fn from(value: &'a CallReturn) -> Self {
        match value {
            CallReturn::Variable(symbol) => Actual::Symbol(symbol),
            CallReturn::Reg(reg) => Actual::Reg(*reg),
            CallReturn::Sink => Actual::Nowhere,
        }
    }
}

impl<'a> From<&'a Src> for Actual<'a> {
    fn from(src: &'a Src) -> Self {
        match src {
            Src::Symbol(address) => Actual::Symbol(&address.symbol),
            Src::Reg(reg) | Src::Not(reg) | Src::Sum(reg, _) => Actual::Reg(*reg),
            Src::Imm(imm) => Actual::Imm(*imm),
            Src::Special(_) | Src::Element(_) | Src::Sink => Actual::Nowhere,
        }
    }
}

impl Call {
    /// Checks the call against one signature, which the message calls `callee`.
    fn check_signature(
        &self,
        check: &mut Check<'_>,
        callee: &str,
        returns: &[Formal<'_>],
        params: &[Formal<'_>],
    ) {
        // The parameters that an array of open size stands for may be left out.
        let optional = match params.last() {
            Some(Formal::Variable(last)) if last.dims.contains(&None) => 1,
            _ => 0,
        };
        let (values, arguments) = (self.returns.len(), self.arguments.len());
        let declared = params.len() - optional..=params.len();
        // One `_` discards a vector.
        let discarded = matches!(*self.returns, [CallReturn::Sink])
            && returns.first().is_some_and(|first| first.place().1 as usize == returns.len());
        if values != returns.len() && !discarded || !declared.contains(&arguments) {
            check.report(
                Code::CallSignature,
                format!(
                    "the call has {values} return values and {arguments} arguments; {callee} has {} and {}",
                    returns.len(),
                    params.len()
                ),
            );
            return;
        }
        for (i, (value, formal)) in self.returns.iter().zip(returns).enumerate() {
            check_value(check, &format!("return value {}", i + 1), value.into(), formal);
        }
        for (i, (value, formal)) in self.arguments.iter().zip(params).enumerate() {
            check_value(check, &format!("argument {}", i + 1), value.into(), formal);
        }
    }

    fn check_function(&self, check: &mut Check<'_>, function: &Function) {
        if function.kind == FunctionKind::Entry {
            check.report(
                Code::CallSignature,
                format!("`{}` is a kernel; only device functions are called", function.name),
            );
            return;
        }
        let (returns, params) = (&function.returns, &function.params);
        let name = format!("`{}`", function.name);
        self.check_signature(check, &name, &Formal::of(function, returns), &Formal::of(function, params));
    }

    fn check_indirect(&self, check: &mut Check<'_>, pointer: Reg) {
        let ty = check.reg_type(pointer);
        if !matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed)
            || !matches!(ty.bits(), 32 | 64)
        {
            let name = check.reg_name(pointer);
            check.report(
                Code::OperandType,
                format!("the function's address is in `{name}`, a `{ty}` register; it must be a 32- or 64-bit integer"),
            );
        }
        let Some(label) = self.prototype else {
            check.report(Code::CallSignature, "an indirect call needs a `.callprototype` or `.calltargets`");
            return;
        };
        let found = check.function().statements().iter().find_map(|statement| match &statement.kind {
            StatementKind::CallPrototype { label: l, prototype } if *l == label => Some(Ok(prototype)),
            StatementKind::CallTargets { label: l, targets } if *l == label => Some(Err(targets)),
            _ => None,
        });
        match found {
            Some(Ok(prototype)) => {
                let [returns, params] =
                    [&prototype.returns, &prototype.params].map(|params| Formal::of_prototype(params));
                self.check_signature(check, "the prototype", &returns, &params);
            }
            Some(Err(targets)) => {
                for target in targets {
                    if let Some(GlobalSymbol::Function(function)) = check.index().get(target)
                        && function.kind == FunctionKind::Func
                    {
                        self.check_function(check, function);
                    }
                }
            }
            // Labels are checked with the function.
            None => {}
        }
    }
}

fn check_value(check: &mut Check<'_>, name: &str, actual: Actual<'_>, formal: &Formal<'_>) {
    let given = match actual {
        Actual::Reg(reg) => place(check.function(), reg),
        Actual::Nowhere => formal.place(),
        Actual::Symbol(_) | Actual::Imm(_) => (0, 1),
    };
    if given != formal.place() {
        let message = format!("{name} and its parameter are not vector registers of the same width");
        return check.report(Code::CallSignature, message);
    }
    match actual {
        Actual::Nowhere => {}
        Actual::Reg(reg) => match formal.scalar() {
            Some(ty) => check.reg(name, reg, ty),
            None => check.report(Code::CallSignature, format!("{name} is an array, not a register")),
        },
        Actual::Imm(imm) => match formal.scalar() {
            Some(ty) if ty.is_bits() => {}
            Some(Type::Pred) => {
                check.report(Code::CallSignature, format!("{name} must be a predicate register"))
            }
            Some(ty) => check.imm(name, imm, ty),
            None => check.report(Code::CallSignature, format!("{name} is an array, not a number")),
        },
        Actual::Symbol(symbol) => match check.variable(symbol) {
            Some(variable) => check_variable(check, name, symbol, variable, formal),
            None => check.report(Code::CallSignature, format!("{name} must be a `.param` variable")),
        },
    }
}

fn check_variable(
    check: &mut Check<'_>,
    name: &str,
    symbol: &Symbol,
    variable: &Variable,
    formal: &Formal<'_>,
) {
    let function = check.function();
    let own =
        |params: &[Param]| matches!(symbol, Symbol::Local(id) if params.contains(&Param::Variable(*id)));
    if variable.space.base() != Space::Param || own(&function.params) || own(&function.returns) {
        check.report_with_help(
            Code::CallSignature,
            format!("{name} is `{}`, which is not a `.param` variable of the body", variable.name),
            "declare a `.param` variable before the call, and load or store the value",
        );
        return;
    }
    let fits = match (formal.scalar(), scalar_type(variable), formal) {
        (Some(wanted), Some(given), _) => given.agrees_with(wanted),
        // Arrays of equal size agree; one of open size takes any.
        (None, None, Formal::Variable(wanted)) => {
            wanted.bytes().is_none() || wanted.bytes() == variable.bytes()
        }
        _ => false,
    };
    if !fits {
        check.report(
            Code::CallSignature,
            format!("{name} is `{}`, whose type or size is not that of the parameter", variable.name),
        );
    } else if variable.alignment() != formal.alignment() {
        check.report(
            Code::CallSignature,
            format!(
                "{name} is `{}`, aligned to {} bytes; the parameter is aligned to {}",
                variable.name,
                variable.alignment(),
                formal.alignment()
            ),
        );
    }
}

impl Rule for Call {
    fn check(&self, check: &mut Check<'_>) {
        match &self.callee {
            Callee::Reg(pointer) => self.check_indirect(check, *pointer),
            Callee::Function(symbol) => {
                if self.prototype.is_some() {
                    check
                        .report(Code::CallSignature, "a prototype is for indirect calls, through a register");
                }
                let found = match symbol {
                    Symbol::Global(name) => check.index().get(name),
                    Symbol::Local(_) => None,
                };
                match found {
                    Some(GlobalSymbol::Function(function)) => self.check_function(check, function),
                    _ => {
                        check.report(Code::CallSignature, "what is called must be a function, or a register")
                    }
                }
            }
        }
    }
}

fn check_register_count(check: &mut Check<'_>, ty: Type, count: &Src) {
    check.type_among(ty, &[Type::U32]);
    check.constant("count", count, 24..=256);
    if matches!(*count, Src::Imm(Imm::Int(count)) if count % 8 != 0) {
        check.report(Code::ImmediateRange, "the number of registers must be a multiple of 8");
    }
}

fn register_count_needs(needs: &mut Needs) {
    needs.targets(
        "`setmaxnreg`",
        (8, 0),
        Requirement::Specific { specific: &[90], family: &[100, 110, 120] },
    );
}
