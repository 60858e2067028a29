//! Rules of variables: state space, type and initial value.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;

/// Where a variable is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Module,
    Body,
    EntryParam,
    FuncParam { last: bool },
    Return,
}

impl Scope {
    fn is_signature(self) -> bool {
        matches!(self, Scope::EntryParam | Scope::FuncParam { .. } | Scope::Return)
    }
}

/// Whether values of the type can be declared, in memory or in a register.
pub(super) fn is_storable(ty: Type) -> bool {
    use Type::*;
    matches!(
        ty,
        B8 | B16 | B32 | B64 | B128 | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F16 | F16X2 | F32 | F64
    )
}

/// Checks one variable.
pub(super) fn check(variable: &Variable, scope: Scope, index: &ModuleIndex<'_>, out: &mut Diagnostics) {
    let mut rules = Rules { variable, scope, index, out };
    rules.placement();
    rules.ty();
    rules.vector();
    rules.dimensions();
    rules.attributes();
    rules.initial_value();
}

struct Rules<'a, 'd> {
    variable: &'a Variable,
    scope: Scope,
    index: &'a ModuleIndex<'a>,
    out: &'d mut Diagnostics,
}

impl Rules<'_, '_> {
    #[cold]
    fn report(&mut self, code: Code, message: impl Into<String>) {
        let message = format!("`{}`: {}", self.variable.name, message.into());
        self.out.push(Diagnostic::new(code, self.variable.origin, message));
    }

    fn require(&mut self, holds: bool, code: Code, message: &str) {
        if !holds {
            self.report(code, message);
        }
    }

    fn placement(&mut self) {
        let space = self.variable.space.base();
        if self.scope == Scope::Module {
            self.require(
                !matches!(space, Space::Local | Space::Param),
                Code::StateSpace,
                "a variable at module scope is in `.global`, `.const` or `.shared` memory",
            );
        } else {
            self.require(
                self.variable.linkage == Linkage::Local,
                Code::Linkage,
                "a variable of a function has no linkage",
            );
        }
        self.require(space != Space::Tex, Code::StateSpace, "the space `.tex` is gone: declare a `.texref`");
        self.require(
            self.variable.bank.is_none(),
            Code::StateSpace,
            "explicit banks of constant memory are gone: write `.const` alone",
        );
        self.require(
            self.variable.linkage != Linkage::Common || space == Space::Global,
            Code::Linkage,
            "only a `.global` variable can be `.common`",
        );
        self.require(
            self.variable.range.is_none() || !self.scope.is_signature(),
            Code::Parameter,
            "parameters are declared one by one",
        );
        if let Some(pointee) = self.variable.pointee {
            self.require(
                self.scope == Scope::EntryParam,
                Code::Parameter,
                "`.ptr` describes parameters of kernels only",
            );
            let known = [Space::Const, Space::Global, Space::Local, Space::Shared];
            self.require(
                pointee.space.is_none_or(|space| known.contains(&space)),
                Code::Parameter,
                "`.ptr` is followed by `.const`, `.global`, `.local` or `.shared`",
            );
        }
    }

    fn ty(&mut self) {
        let ty = self.variable.ty;
        match ty.kind() {
            TypeKind::Predicate => self.report(Code::StateSpace, "a predicate lives in a register only"),
            TypeKind::Opaque => {
                let place = match self.scope {
                    Scope::Module => self.variable.space == Space::Global,
                    scope => scope == Scope::EntryParam,
                };
                self.require(
                    place,
                    Code::StateSpace,
                    "textures, samplers and surfaces are `.global` variables of the module, or parameters of kernels",
                );
                let independent =
                    self.index.module.target.options.contains(&TargetOption::TexmodeIndependent);
                self.require(
                    ty != Type::SamplerRef || independent,
                    Code::Directive,
                    "a `.samplerref` needs `.target …, texmode_independent`",
                );
            }
            _ if !is_storable(ty) => {
                self.report(Code::Directive, format!("`{ty}` is a type of instructions, not of variables"));
            }
            _ => {
                let parameter = self.variable.space.base() == Space::Param;
                self.require(
                    !parameter || ty != Type::F16X2,
                    Code::Parameter,
                    "a parameter cannot be `.f16x2`: declare it `.b32`",
                );
            }
        }
    }

    fn vector(&mut self) {
        let Some(width) = self.variable.vector else { return };
        let bits = self.variable.ty.bits() * width.elements() as u32;
        self.require(
            width != VectorWidth::V8 && bits <= 128,
            Code::Directive,
            "a vector variable is `.v2` or `.v4`, and at most 128 bits wide",
        );
        self.require(
            self.variable.ty.kind() != TypeKind::Opaque,
            Code::Directive,
            "only vectors of numbers can be declared",
        );
        self.require(
            self.variable.space.base() != Space::Param,
            Code::Parameter,
            "a parameter is no vector: declare an array with the alignment of the vector",
        );
    }

    fn dimensions(&mut self) {
        let dims = &self.variable.dims;
        let open = |dim: &Option<u64>| dim.is_none_or(|n| n == 0);
        self.require(
            !dims.iter().skip(1).any(|dim| dim.is_none()),
            Code::Directive,
            "only the first dimension can be left open",
        );
        self.require(
            !self.scope.is_signature() || dims.len() < 2,
            Code::Parameter,
            "an array that is a parameter has one dimension",
        );
        let element =
            self.variable.ty.bytes() as u64 * self.variable.vector.map_or(1, |v| v.elements() as u64);
        let mut sizes = dims.iter().flatten().filter(|&&n| n != 0);
        let whole = sizes.try_fold(element, |size: u64, &n| size.checked_mul(n));
        self.require(whole.is_some(), Code::Directive, "its size in bytes has more than 64 bits");
        if !dims.iter().any(open) {
            return;
        }
        let (allowed, message) = match self.scope {
            Scope::FuncParam { last } => {
                (last, "only the last parameter of a function can be an array without a size")
            }
            Scope::EntryParam => (false, "a parameter of a kernel has a size"),
            Scope::Return => (false, "a return value has a size"),
            Scope::Module | Scope::Body => {
                let from_value = dims.iter().skip(1).all(|dim| !open(dim)) && self.variable.init.is_some();
                let allowed = from_value || self.variable.linkage == Linkage::Extern;
                (allowed, "only an `.extern` array, or one with an initial value, can do without a size")
            }
        };
        let code = if self.scope.is_signature() { Code::Parameter } else { Code::Directive };
        self.require(allowed, code, message);
    }

    fn attributes(&mut self) {
        self.require(
            self.variable.attributes.is_empty() || self.variable.space == Space::Global,
            Code::Directive,
            "only `.global` variables have the attributes `.managed` and `.unified`",
        );
    }

    fn initial_value(&mut self) {
        let Some(init) = &self.variable.init else { return };
        let space = self.variable.space.base();
        if !matches!(space, Space::Global | Space::Const) {
            return self.report(
                Code::Initialiser,
                format!("a `.{}` variable has no initial value", crate::op::Modifier::text(space)),
            );
        }
        if self.variable.linkage == Linkage::Extern {
            return self
                .report(Code::Initialiser, "an `.extern` variable gets its value where it is defined");
        }
        let ty = self.variable.ty;
        if matches!(ty.kind(), TypeKind::Opaque) {
            return self.properties(init);
        }
        if matches!(ty, Type::F16 | Type::F16X2) {
            return self
                .report(Code::Initialiser, format!("a `{ty}` variable cannot be given an initial value"));
        }
        let dims = &self.variable.dims;
        self.init(init, dims);
    }

    /// The value of a texture, sampler or surface.
    fn properties(&mut self, init: &Init) {
        use OpaqueProperty::*;
        let list = match init {
            Init::Properties(list) => &list[..],
            Init::List(list) if list.is_empty() => &[],
            _ => {
                let message = format!(
                    "the value of a `{}` is a list of properties, `{{name = value}}`",
                    self.variable.ty
                );
                return self.report(Code::Initialiser, message);
            }
        };
        let of_sampler = [AddrMode0, AddrMode1, AddrMode2, FilterMode, ForceUnnormalizedCoords];
        for (property, _) in list {
            if self.variable.ty == Type::SamplerRef && !of_sampler.contains(property) {
                let message = format!("a sampler has no property `{}`", crate::op::Modifier::text(*property));
                self.report(Code::Initialiser, message);
            }
        }
    }

    /// The value of an array with these dimensions, of a vector, or of a scalar.
    fn init(&mut self, init: &Init, dims: &[Option<u64>]) {
        match (dims.split_first(), init) {
            (Some((size, inner)), Init::List(list)) => {
                if size.is_some_and(|size| size != 0 && list.len() as u64 > size) {
                    let size = size.unwrap_or_default();
                    let message = format!("{} values for {size} elements", list.len());
                    return self.report(Code::Initialiser, message);
                }
                // One report is enough for a table of a thousand wrong values.
                let before = self.out.len();
                for element in list {
                    self.init(element, inner);
                    if self.out.len() > before {
                        break;
                    }
                }
            }
            (Some(_), _) => self.report(Code::Initialiser, "the value of an array stands in braces"),
            (None, Init::List(list)) => match self.variable.vector {
                Some(width) if list.len() == width.elements() => {
                    list.iter().for_each(|element| self.scalar(element));
                }
                Some(width) => {
                    let message = format!("{} values for a vector of {}", list.len(), width.elements());
                    self.report(Code::Initialiser, message);
                }
                None => self.report(Code::Initialiser, "the value of a scalar stands without braces"),
            },
            (None, init) if self.variable.vector.is_none() => self.scalar(init),
            (None, _) => self.report(Code::Initialiser, "the value of a vector stands in braces"),
        }
    }

    fn scalar(&mut self, init: &Init) {
        let ty = self.variable.ty;
        match init {
            Init::Value(imm) => {
                let fits = match ty.kind() {
                    TypeKind::Unsigned | TypeKind::Signed => !imm.is_float(),
                    TypeKind::Float => imm.is_float(),
                    _ => true,
                };
                if !fits {
                    let what = if imm.is_float() { "a floating-point number" } else { "an integer" };
                    self.report(Code::Initialiser, format!("{what} cannot be the value of a `{ty}`"));
                }
            }
            Init::Symbol(symbol) => self.address(symbol),
            Init::List(_) => self.report(Code::Initialiser, "braces are nested too deeply here"),
            Init::Properties(_) => self.report(
                Code::Initialiser,
                format!("a `{ty}` has no properties: those are of textures, samplers and surfaces"),
            ),
        }
    }

    fn address(&mut self, symbol: &InitSymbol) {
        let ty = self.variable.ty;
        match symbol.mask {
            Some(mask) => {
                let byte = (0..8).any(|byte| mask == 0xff << (8 * byte));
                self.require(byte, Code::Initialiser, "the mask of an address selects one byte of it");
                self.require(
                    matches!(ty, Type::U8 | Type::U32 | Type::U64),
                    Code::Initialiser,
                    "a byte of an address is the value of a `.u8`",
                );
            }
            None => self.require(
                matches!(ty, Type::U32 | Type::U64),
                Code::Initialiser,
                "an address is the value of a `.u64`",
            ),
        }
        match self.index.get(&symbol.name) {
            Some(GlobalSymbol::Variable(variable)) => self.require(
                matches!(variable.space.base(), Space::Global | Space::Const),
                Code::Initialiser,
                "only addresses of `.global` and `.const` variables are known before the kernel runs",
            ),
            Some(GlobalSymbol::Function(_)) => self.require(
                !symbol.generic && symbol.offset == 0,
                Code::Initialiser,
                "the address of a function has no offset, and is generic already",
            ),
            None => {
                let message = format!("`{}` is not declared", symbol.name);
                self.report(Code::Undeclared, message);
            }
        }
    }
}
