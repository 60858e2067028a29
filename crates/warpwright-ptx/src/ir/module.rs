//! Modules, variables, functions and statements.

use super::modifier::{OpaqueProperty, OpaqueWord};
use super::{
    AddressSize, Guard, Imm, LabelId, Name, Origin, Reg, Space, Symbol, Target, Type, VarId, VectorWidth,
    Version,
};
use crate::op::Op;

/// A PTX module: one `.ptx` file.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The position of the header.
    pub origin: Origin,
    /// `.version`.
    pub version: Version,
    /// `.target`.
    pub target: Target,
    /// `.address_size`, if the module has it.
    pub address_size: Option<AddressSize>,
    /// Comments before `.version`.
    pub preamble: Vec<Comment>,
    /// Everything after the header, in order.
    pub items: Vec<Item>,
}

impl Module {
    /// An empty module with 64-bit addresses.
    pub fn new(version: Version, target: impl Into<Target>) -> Self {
        Module {
            origin: Origin::Unknown,
            version,
            target: target.into(),
            address_size: Some(AddressSize::Bits64),
            preamble: Vec::new(),
            items: Vec::new(),
        }
    }

    /// The functions and kernels, prototypes included.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some(&**function),
            _ => None,
        })
    }

    /// The module-scope variables.
    pub fn globals(&self) -> impl Iterator<Item = &Variable> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Variable(variable) => Some(variable),
            _ => None,
        })
    }

    /// Whether it declares dynamic shared memory: an array without a size.
    pub fn has_dynamic_shared(&self) -> bool {
        self.globals().any(|variable| variable.space.base() == Space::Shared && variable.bytes().is_none())
    }

    /// The kernels.
    pub fn entries(&self) -> impl Iterator<Item = &Function> {
        self.functions().filter(|function| function.kind == FunctionKind::Entry)
    }
}

/// A comment, with its delimiters removed. A block comment may span lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The text between the delimiters, as written.
    pub text: String,
    /// `/* */` rather than `//`.
    pub block: bool,
    /// Whether it is on the same line as the preceding text.
    pub trailing: bool,
}

/// An item at module scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its origin.
    pub origin: Origin,
    /// Its kind.
    pub kind: ItemKind,
}

impl From<ItemKind> for Item {
    fn from(kind: ItemKind) -> Self {
        Item { origin: Origin::Unknown, kind }
    }
}

/// The kinds of items at module scope.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// A variable.
    Variable(Variable),
    /// A function or kernel, or the prototype of one.
    Function(Box<Function>),
    /// `.alias name, aliasee;`.
    Alias {
        /// The new name.
        name: Name,
        /// The function that it stands for.
        target: Name,
    },
    /// `.file index "path"`.
    File(SourceFile),
    /// `.loc` at module scope (emitted by some compilers between functions).
    Loc(Loc),
    /// `.section`, debug data.
    Section(Section),
    /// `.pragma "…";`.
    Pragma(Vec<String>),
    /// A comment.
    Comment(Comment),
}

/// `.file index "path" [, time, size]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The number that `.loc` uses.
    pub index: u32,
    /// The path, with its escapes as written.
    pub path: String,
    /// Time stamp and size.
    pub stamp: Option<(u64, u64)>,
}

/// `.section name { … }`: debug data in labels and words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name of the section, with its dot.
    pub name: String,
    /// The lines.
    pub lines: Vec<SectionLine>,
}

/// A line of a `.section`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionLine {
    /// `name:`.
    Label(String),
    /// `.b8 1, 2, label+4`.
    Data {
        /// Width of each value.
        ty: Type,
        /// The values.
        values: Vec<SectionValue>,
    },
    /// A comment.
    Comment(Comment),
}

/// A value in a `.section`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionValue {
    /// A number.
    Int(Imm),
    /// `label + offset` (or a section's name).
    Label(String, i64),
    /// `a - b`.
    Difference(String, String),
}

/// The visibility of a symbol in other modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Linkage {
    /// Within the module.
    #[default]
    Local,
    /// Defined elsewhere.
    Extern,
    /// Visible to other modules.
    Visible,
    /// Visible to other modules, and replaced by a definition that is not weak.
    Weak,
    /// Merged with definitions of the same name.
    Common,
}

/// A variable: at module scope, a parameter, or local to a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Where it was declared.
    pub origin: Origin,
    /// Its linkage.
    pub linkage: Linkage,
    /// Its state space.
    pub space: Space,
    /// Bank of a `.const[n]` variable.
    pub bank: Option<u32>,
    /// Alignment in bytes, if specified.
    pub align: Option<u32>,
    /// `.ptr`: the target of a pointer parameter.
    pub pointee: Option<Pointee>,
    /// Managed memory, `.attribute(.managed)`, and other attributes.
    pub attributes: Vec<Attribute>,
    /// Vector width of the elements.
    pub vector: Option<VectorWidth>,
    /// Element type.
    pub ty: Type,
    /// Its name.
    pub name: Name,
    /// `name<n>`: `n` variables `name0` … (parameters of this form only).
    pub range: Option<u32>,
    /// Array dimensions, outermost first; `None` for `[]`.
    pub dims: Vec<Option<u64>>,
    /// Initial value.
    pub init: Option<Init>,
}

impl Variable {
    /// A scalar without initial value.
    pub fn new(space: Space, ty: Type, name: impl Into<Name>) -> Self {
        Variable {
            origin: Origin::Unknown,
            linkage: Linkage::Local,
            space,
            bank: None,
            align: None,
            pointee: None,
            attributes: Vec::new(),
            vector: None,
            ty,
            name: name.into(),
            range: None,
            dims: Vec::new(),
            init: None,
        }
    }

    /// Size in bytes; `None` if a dimension is open or the size does not fit.
    pub fn bytes(&self) -> Option<u64> {
        let element = u64::from(self.ty.bytes()) * self.vector.map_or(1, |v| v.elements() as u64);
        self.dims.iter().try_fold(element, |size, dim| size.checked_mul((*dim)?))
    }

    /// The bytes of one scalar of an array, which is what subscripts count; `None` if it is no array.
    pub(crate) fn scalar_of_array(&self) -> Option<u32> {
        (!self.dims.is_empty()).then(|| self.ty.bytes())
    }

    /// Whether host and devices share it: `.attribute(.managed)`.
    pub fn is_managed(&self) -> bool {
        self.attributes.contains(&Attribute::Managed)
    }

    /// Alignment in bytes: the specified one, or the natural one.
    pub fn alignment(&self) -> u32 {
        let natural = self.ty.bytes() * self.vector.map_or(1, |v| v.elements() as u32);
        self.align.unwrap_or(natural)
    }
}

/// `.ptr .space .align n` on a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointee {
    /// The space of the target; `None` for a generic pointer.
    pub space: Option<Space>,
    /// Alignment of the memory pointed to, in bytes.
    pub align: Option<u32>,
}

/// `.attribute(…)` of a variable or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// `.managed`.
    Managed,
    /// `.unified(high, low)`.
    Unified(u64, u64),
}

/// The initial value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// A number.
    Value(Imm),
    /// The address of a symbol.
    Symbol(InitSymbol),
    /// `{ … }`.
    List(Vec<Init>),
    /// `{ field = value, … }`: properties of a texture, sampler or surface.
    Properties(Vec<(OpaqueProperty, OpaqueValue)>),
}

/// The value of a property of a texture, sampler or surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpaqueValue {
    /// A word.
    Word(OpaqueWord),
    /// A number.
    Number(Imm),
}

/// The address of a symbol as an initial value.
#[derive(Clone, Debug, PartialEq)]
pub struct InitSymbol {
    /// The symbol.
    pub name: Name,
    /// `generic(name)`: its generic address.
    pub generic: bool,
    /// Constant offset in bytes.
    pub offset: i64,
    /// `mask(…)`: the mask that selects a byte of the address.
    pub mask: Option<u64>,
}

/// Kernel or device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `.entry`: launched by the host.
    Entry,
    /// `.func`: called by other functions.
    Func,
}

/// A parameter or return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// A `.param` variable.
    Variable(VarId),
    /// A register (of device functions only): that of its own declaration. Of a vector register, the first element;
    /// [`Function::elements`] has all of them.
    Register(Reg),
}

/// A kernel or device function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Where it was declared.
    pub origin: Origin,
    /// Its linkage.
    pub linkage: Linkage,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Attributes.
    pub attributes: Vec<Attribute>,
    /// Its name.
    pub name: Name,
    /// Return values (device functions).
    pub returns: Vec<Param>,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Directives between the signature and the body.
    pub directives: Vec<FunctionDirective>,
    /// All register declarations in the order of the text. Ranges are contiguous: each starts with the end of the one
    /// before.
    pub registers: Vec<RegisterRange>,
    /// Parameters and local variables.
    pub variables: Vec<Variable>,
    /// Labels.
    pub labels: Vec<Label>,
    /// The statements; `None` for a prototype.
    pub body: Option<Vec<Statement>>,
}

impl Function {
    /// A function without parameters and with an empty body.
    pub fn new(kind: FunctionKind, name: impl Into<Name>) -> Self {
        Function {
            origin: Origin::Unknown,
            linkage: Linkage::Local,
            kind,
            attributes: Vec::new(),
            name: name.into(),
            returns: Vec::new(),
            params: Vec::new(),
            directives: Vec::new(),
            registers: Vec::new(),
            variables: Vec::new(),
            labels: Vec::new(),
            body: Some(Vec::new()),
        }
    }

    /// The declaration that a register belongs to.
    ///
    /// # Panics
    /// If the register is not one of this function's.
    pub fn register_range(&self, reg: Reg) -> &RegisterRange {
        let after = self.registers.partition_point(|range| range.first.0 <= reg.0);
        &self.registers[after - 1]
    }

    /// A register's name.
    ///
    /// # Panics
    /// If the register is not one of this function's.
    pub fn register_name(&self, reg: Reg) -> String {
        let range = self.register_range(reg);
        let (number, element) =
            ((reg.0 - range.first.0) / range.width(), (reg.0 - range.first.0) % range.width());
        let mut name = range.name.to_string();
        if range.numbered {
            name += &number.to_string();
        }
        if range.vector.is_some() {
            name += [".x", ".y", ".z", ".w"].get(element as usize).copied().unwrap_or(".?");
        }
        name
    }

    /// The elements of the vector register whose first element is `first`; for another register, that alone.
    ///
    /// # Panics
    /// If the register is not one of this function's.
    pub fn elements(&self, first: Reg) -> impl Iterator<Item = Reg> + use<> {
        (first.0..first.0 + self.register_range(first).width()).map(Reg)
    }

    /// Those of its parameters, or of its return values, that are in registers; vectors as their elements.
    pub fn passed_registers<'a>(&'a self, params: &'a [Param]) -> impl Iterator<Item = Reg> + 'a {
        let registers = params.iter().filter_map(|param| match param {
            Param::Register(reg) => Some(self.elements(*reg)),
            Param::Variable(_) => None,
        });
        registers.flatten()
    }

    /// The type that a register was declared with.
    ///
    /// # Panics
    /// If the register is not one of this function's.
    pub fn register_type(&self, reg: Reg) -> Type {
        self.register_range(reg).ty
    }

    /// Number of declared registers.
    pub fn register_count(&self) -> u32 {
        self.registers.last().map_or(0, |range| range.first.0 + range.count * range.width())
    }

    /// The variable of that index.
    pub fn variable(&self, id: VarId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// The `.loc` that count, each with the index of its statement. Those in a block of inline assembly do not, behind
    /// another one: LLVM counts the lines of the block's text on from the line of the program that stands in front.
    pub fn locs(&self) -> impl Iterator<Item = (u32, &Loc)> {
        let (mut inline, mut any) = (false, false);
        self.statements().iter().zip(0..).filter_map(move |(statement, at)| match &statement.kind {
            StatementKind::Comment(comment) => {
                match comment.text.trim() {
                    "begin inline asm" => inline = true,
                    "end inline asm" => inline = false,
                    _ => {}
                }
                None
            }
            StatementKind::Loc(loc) if !(std::mem::replace(&mut any, true) && inline) => Some((at, loc)),
            _ => None,
        })
    }

    /// The statements; empty for a prototype.
    pub fn statements(&self) -> &[Statement] {
        self.body.as_deref().unwrap_or(&[])
    }

    /// The instructions, in the order of the text.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.statements().iter().filter_map(|statement| match &statement.kind {
            StatementKind::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    }
}

/// `.reg .b32 %r<n>;` or `.reg .b32 name;`.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterRange {
    /// Where it was declared.
    pub origin: Origin,
    /// Type of each register.
    pub ty: Type,
    /// Vector width (legacy vector registers).
    pub vector: Option<VectorWidth>,
    /// Name, without the number of a range.
    pub name: Name,
    /// First register of the range.
    pub first: Reg,
    /// Number of names in it. A vector register counts once, and has one register per element.
    pub count: u32,
    /// Whether it is written with `<n>`: the registers are `name0`, `name1`, ….
    pub numbered: bool,
}

impl RegisterRange {
    /// Number of registers per name: the elements of a vector register, otherwise one.
    pub fn width(&self) -> u32 {
        self.vector.map_or(1, |vector| vector.elements() as u32)
    }
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: Name,
}

/// A directive between the signature of a function and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionDirective {
    /// `.maxntid x, y, z`: the largest block.
    MaxNtid(Vec<u32>),
    /// `.reqntid x, y, z`: the only block.
    ReqNtid(Vec<u32>),
    /// `.minnctapersm n`.
    MinNCtaPerSm(u32),
    /// `.maxnctapersm n` (deprecated).
    MaxNCtaPerSm(u32),
    /// `.maxnreg n`.
    MaxNReg(u32),
    /// `.reqnctapercluster x, y, z`.
    ReqNCtaPerCluster(Vec<u32>),
    /// `.maxclusterrank n`.
    MaxClusterRank(u32),
    /// `.explicitcluster`.
    ExplicitCluster,
    /// `.blocksareclusters`.
    BlocksAreClusters,
    /// `.noreturn`.
    NoReturn,
    /// `.abi_preserve n`.
    AbiPreserve(u32),
    /// `.abi_preserve_control n`.
    AbiPreserveControl(u32),
    /// `.language name`.
    Language(String),
    /// `.pragma "…";`.
    Pragma(Vec<String>),
}

/// A statement of a function body.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its origin.
    pub origin: Origin,
    /// Its kind.
    pub kind: StatementKind,
}

impl From<StatementKind> for Statement {
    fn from(kind: StatementKind) -> Self {
        Statement { origin: Origin::Unknown, kind }
    }
}

/// The kinds of statements in a function body.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// An instruction.
    Instruction(Instruction),
    /// `name:`.
    Label(LabelId),
    /// `{`: names declared after this are local.
    Open,
    /// `}`.
    Close,
    /// `.reg`: a run of [`Function::registers`], from the first index on.
    Registers {
        /// Index of the first declaration.
        first: u32,
        /// Number of declarations, all of one type.
        count: u32,
    },
    /// A variable.
    Variable(VarId),
    /// `.loc`.
    Loc(Loc),
    /// `.pragma "…";`.
    Pragma(Vec<String>),
    /// `label: .branchtargets a, b;`.
    BranchTargets {
        /// Its name.
        label: LabelId,
        /// The possible targets of `brx.idx`.
        targets: Vec<LabelId>,
    },
    /// `label: .calltargets f, g;`.
    CallTargets {
        /// Its name.
        label: LabelId,
        /// The possible targets of an indirect call.
        targets: Vec<Name>,
    },
    /// `label: .callprototype (…) _ (…);`.
    CallPrototype {
        /// Its name.
        label: LabelId,
        /// The signature.
        prototype: Prototype,
    },
    /// A comment.
    Comment(Comment),
}

/// `.loc file line column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loc {
    /// Index of a `.file`.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// The call of an inlined function.
    pub inlined: Option<Inlined>,
}

/// `, function_name label[+offset], inlined_at file line column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// Label in a debug section that holds the function's name.
    pub function: String,
    /// Offset from the label.
    pub offset: i64,
    /// Index of a `.file`.
    pub file: u32,
    /// Line of the call.
    pub line: u32,
    /// Column of the call.
    pub column: u32,
}

/// The signature of an indirect call.
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype {
    /// Return values.
    pub returns: Vec<PrototypeParam>,
    /// Parameters.
    pub params: Vec<PrototypeParam>,
    /// `.noreturn`.
    pub noreturn: bool,
    /// `.abi_preserve n`.
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control n`.
    pub abi_preserve_control: Option<u32>,
}

/// A parameter of a [`Prototype`].
#[derive(Clone, Debug, PartialEq)]
pub enum PrototypeParam {
    /// `.param`, as a variable is declared; its name is often `_`.
    Variable(Box<Variable>),
    /// `.reg .type name`, with the width of a vector register.
    Register(Type, Option<VectorWidth>, Name),
}

/// An instruction with its guard.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The guard: only threads for which the predicate holds execute the instruction.
    pub guard: Option<Guard>,
    /// The operation.
    pub op: Op,
}

impl From<Op> for Instruction {
    fn from(op: Op) -> Self {
        Instruction { guard: None, op }
    }
}

impl Symbol {
    /// The variable that the symbol names, if it is a declared variable.
    pub fn variable<'a>(&self, module: &'a Module, function: &'a Function) -> Option<&'a Variable> {
        match self {
            Symbol::Local(id) => function.variables.get(id.0 as usize),
            Symbol::Global(name) => module.globals().find(|global| global.name == *name),
        }
    }
}
