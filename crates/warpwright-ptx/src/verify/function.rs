//! Rules of a function other than those of its instructions: signature, directives, declarations, labels.

use super::uses::{Invalid, Uses};
use super::variable::{self, Scope};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;
use crate::op::control::{Call, Way};

/// Checks what stands before the body.
pub(super) fn signature(index: &ModuleIndex<'_>, function: &Function, out: &mut Diagnostics) {
    let mut rules = Rules { function, out };
    rules.attributes();
    rules.params(index);
    rules.directives();
}

/// Checks the declarations of the body and where its labels are used.
pub(super) fn body(index: &ModuleIndex<'_>, function: &Function, uses: &Uses, out: &mut Diagnostics) {
    let mut rules = Rules { function, out };
    rules.registers();
    for statement in function.statements() {
        if let StatementKind::Variable(id) = &statement.kind
            && let Some(variable) = function.variables.get(id.0 as usize)
        {
            variable::check(variable, Scope::Body, index, rules.out);
        }
    }
    if !function.labels.is_empty() {
        rules.labels();
    }
    debug_assert!(uses.invalid.is_empty());
}

/// Reports invalid indices: the other checks cannot analyse such a function.
pub(super) fn invalid(function: &Function, uses: &Uses, out: &mut Diagnostics) {
    for (statement, invalid) in &uses.invalid {
        let (what, lacks) = match invalid {
            Invalid::Register(n) => (format!("register {n}"), "declare"),
            Invalid::Variable(n) => (format!("variable {n}"), "declare"),
            Invalid::Label(n) => (format!("label {n}"), "have"),
        };
        let message = format!("{what} is used, and `{}` does not {lacks} it", function.name);
        let origin = function.statements()[*statement as usize].origin;
        out.push(Diagnostic::new(Code::Undeclared, origin, message));
    }
}

struct Rules<'a, 'd> {
    function: &'a Function,
    out: &'d mut Diagnostics,
}

impl<'a> Rules<'a, '_> {
    #[cold]
    fn report(&mut self, code: Code, message: impl Into<String>) {
        let message = format!("`{}`: {}", self.function.name, message.into());
        self.out.push(Diagnostic::new(code, self.function.origin, message));
    }

    fn require(&mut self, holds: bool, code: Code, message: &str) {
        if !holds {
            self.report(code, message);
        }
    }

    fn attributes(&mut self) {
        let attributes = &self.function.attributes;
        self.require(
            !attributes.contains(&Attribute::Managed),
            Code::Directive,
            "`.managed` is an attribute of variables",
        );
        self.require(
            attributes.is_empty() || self.function.kind == FunctionKind::Func,
            Code::Directive,
            "a kernel has no attributes",
        );
        self.require(
            self.function.linkage != Linkage::Common,
            Code::Linkage,
            "only variables can be `.common`",
        );
    }

    fn params(&mut self, index: &ModuleIndex<'_>) {
        let entry = self.function.kind == FunctionKind::Entry;
        let count = self.function.params.len();
        let mut size = 0u64;
        for (i, param) in self.function.params.iter().enumerate() {
            match param {
                Param::Variable(id) => {
                    let Some(variable) = self.function.variables.get(id.0 as usize) else { continue };
                    let scope = match entry {
                        true => Scope::EntryParam,
                        false => Scope::FuncParam { last: i + 1 == count },
                    };
                    variable::check(variable, scope, index, self.out);
                    let align = u64::from(variable.alignment().max(1));
                    size = size.next_multiple_of(align).saturating_add(variable.bytes().unwrap_or(0));
                }
                Param::Register(_) if entry => {
                    self.report(Code::Parameter, "a kernel's parameters are in `.param` space");
                }
                Param::Register(_) => {}
            }
        }
        for param in &self.function.returns {
            match param {
                Param::Variable(id) => {
                    let Some(variable) = self.function.variables.get(id.0 as usize) else { continue };
                    variable::check(variable, Scope::Return, index, self.out);
                }
                Param::Register(_) => {}
            }
        }
        self.require(self.function.returns.is_empty() || !entry, Code::Parameter, "a kernel returns nothing");
        let in_registers = |param: &Param| matches!(param, Param::Register(_));
        self.require(
            self.function.returns.len() < 2 || self.function.returns.iter().all(in_registers),
            Code::Parameter,
            "a function returns one value in `.param` space: several go into one array, or are in registers",
        );
        let limit = if index.module.version >= Version::new(8, 1) { 32764 } else { 4352 };
        if entry && size > limit {
            let version = index.module.version;
            let message = format!("the parameters take {size} bytes; with PTX {version} there are {limit}");
            self.report(Code::Parameter, message);
        }
    }

    fn directives(&mut self) {
        use FunctionDirective as D;
        let list = &self.function.directives;
        let entry = self.function.kind == FunctionKind::Entry;
        for (i, directive) in list.iter().enumerate() {
            let (name, for_entry) = match directive {
                D::MaxNtid(_) => ("maxntid", true),
                D::ReqNtid(_) => ("reqntid", true),
                D::MinNCtaPerSm(_) => ("minnctapersm", true),
                D::MaxNCtaPerSm(_) => ("maxnctapersm", true),
                D::MaxNReg(_) => ("maxnreg", true),
                D::ReqNCtaPerCluster(_) => ("reqnctapercluster", true),
                D::MaxClusterRank(_) => ("maxclusterrank", true),
                D::ExplicitCluster => ("explicitcluster", true),
                D::BlocksAreClusters => ("blocksareclusters", true),
                D::Pragma(_) => ("pragma", true),
                D::NoReturn => ("noreturn", false),
                D::AbiPreserve(_) => ("abi_preserve", false),
                D::AbiPreserveControl(_) => ("abi_preserve_control", false),
                D::Language(_) => continue,
            };
            if for_entry != entry {
                let who = if for_entry { "kernels" } else { "device functions" };
                self.report(Code::Directive, format!("`.{name}` is a directive of {who}"));
                continue;
            }
            let kind = std::mem::discriminant(directive);
            let again = list[..i].iter().any(|before| std::mem::discriminant(before) == kind);
            if again && !for_entry {
                self.report(Code::Directive, format!("`.{name}` stands twice"));
            }
            self.directive(name, directive);
        }
        if entry && self.function.body.is_none() {
            self.require(list.is_empty(), Code::Directive, "directives stand where the kernel is defined");
        }
        let has = |wanted: fn(&D) -> bool| list.iter().any(wanted);
        let reqntid = has(|d| matches!(d, D::ReqNtid(_)));
        let maxntid = has(|d| matches!(d, D::MaxNtid(_)));
        let cluster = has(|d| matches!(d, D::ReqNCtaPerCluster(_)));
        self.require(!(reqntid && maxntid), Code::Directive, "`.reqntid` and `.maxntid` exclude each other");
        self.require(
            !(cluster && has(|d| matches!(d, D::MaxClusterRank(_)))),
            Code::Directive,
            "`.reqnctapercluster` and `.maxclusterrank` exclude each other",
        );
        self.require(
            !has(|d| matches!(d, D::BlocksAreClusters)) || (reqntid && cluster),
            Code::Directive,
            "`.blocksareclusters` needs `.reqntid` and `.reqnctapercluster`",
        );
        self.require(
            !has(|d| matches!(d, D::MinNCtaPerSm(_))) || reqntid || maxntid,
            Code::WithoutEffect,
            "`.minnctapersm` counts only beside `.maxntid` or `.reqntid`",
        );
        self.require(
            !has(|d| matches!(d, D::NoReturn)) || self.function.returns.is_empty(),
            Code::Directive,
            "a function that does not return has no return value",
        );
    }

    fn directive(&mut self, name: &str, directive: &FunctionDirective) {
        use FunctionDirective as D;
        match directive {
            D::MaxNtid(dims) | D::ReqNtid(dims) => {
                if dims.contains(&0) {
                    return self.report(Code::Directive, format!("`.{name}`: a block has threads"));
                }
                let threads = dims.iter().fold(1u64, |product, &n| product.saturating_mul(n.into()));
                if threads > 1024 || dims.get(2).is_some_and(|&z| z > 64) {
                    let message =
                        format!("`.{name}`: a block has at most 1024 threads, and 64 in its third dimension");
                    self.report(Code::WithoutEffect, message);
                }
            }
            D::MinNCtaPerSm(0) | D::MaxNReg(0) => {
                self.report(Code::Directive, format!("`.{name}` wants a number above zero"));
            }
            D::MaxNReg(256..) => {
                self.report(Code::WithoutEffect, "`.maxnreg`: a thread has at most 255 registers");
            }
            D::MaxNCtaPerSm(_) => {
                self.report(Code::Directive, "`.maxnctapersm` is gone: use `.minnctapersm`");
            }
            D::AbiPreserve(n) | D::AbiPreserveControl(n) => {
                let limit = if matches!(directive, D::AbiPreserve(_)) { 237 } else { 11 };
                if *n > limit {
                    self.report(Code::Directive, format!("`.{name}` is at most {limit}"));
                }
            }
            _ => {}
        }
    }

    fn registers(&mut self) {
        for range in &self.function.registers {
            let scalar = super::variable::is_storable(range.ty) || range.ty == Type::Pred;
            let bits = range.ty.bits() * range.vector.map_or(1, |width| width.elements() as u32);
            let message = if !scalar {
                format!("`{}`: there are no `{}` registers", range.name, range.ty)
            } else if range.vector.is_some() && range.ty == Type::Pred {
                format!("`{}`: there are no vectors of predicates", range.name)
            } else if range.vector == Some(VectorWidth::V8) || bits > 128 {
                format!("`{}`: a vector register is `.v2` or `.v4`, and at most 128 bits wide", range.name)
            } else {
                continue;
            };
            self.out.push(Diagnostic::new(Code::Directive, range.origin, message));
        }
    }

    /// Every label is defined once, and used as what it is.
    fn labels(&mut self) {
        let statements = self.function.statements();
        let mut kinds = vec![LabelKind::Undefined; self.function.labels.len()];
        let mut defined = |label: LabelId, kind: LabelKind| {
            let slot = kinds.get_mut(label.0 as usize)?;
            let twice = *slot != LabelKind::Undefined;
            *slot = kind;
            twice.then_some(label)
        };
        let mut twice = Vec::new();
        for (i, statement) in statements.iter().enumerate() {
            let again = match &statement.kind {
                StatementKind::Label(label) => defined(*label, LabelKind::Code),
                StatementKind::BranchTargets { label, .. } => defined(*label, LabelKind::Branches(i)),
                StatementKind::CallTargets { label, .. } => defined(*label, LabelKind::Calls(i)),
                StatementKind::CallPrototype { label, .. } => defined(*label, LabelKind::Calls(i)),
                _ => None,
            };
            twice.extend(again.map(|label| (statement.origin, label)));
        }
        for (origin, label) in twice {
            self.label_error(origin, label, "is defined twice");
        }
        let kind = |label: LabelId| kinds.get(label.0 as usize).copied().unwrap_or(LabelKind::Undefined);
        for (i, statement) in statements.iter().enumerate() {
            let (label, wanted) = match &statement.kind {
                StatementKind::Instruction(instruction) => match instruction.op.way() {
                    Way::To(label) => (label, LabelKind::Code),
                    Way::Table(label) => (label, LabelKind::Branches(i)),
                    Way::Call(Call { prototype: Some(label), .. }) => (*label, LabelKind::Calls(i)),
                    Way::Call(_) | Way::Next | Way::Away => continue,
                },
                StatementKind::BranchTargets { targets, .. } => {
                    for target in targets {
                        if kind(*target) != LabelKind::Code {
                            self.label_error(statement.origin, *target, "is no place to branch to");
                        }
                    }
                    continue;
                }
                _ => continue,
            };
            let what = match (wanted, kind(label)) {
                (_, LabelKind::Undefined) => "is not defined",
                (LabelKind::Code, LabelKind::Code) => continue,
                (LabelKind::Branches(_), LabelKind::Branches(at)) if at < i => continue,
                (LabelKind::Calls(_), LabelKind::Calls(at)) if at < i => continue,
                (LabelKind::Code, _) => "is no place to branch to",
                (LabelKind::Branches(_), LabelKind::Branches(_))
                | (LabelKind::Calls(_), LabelKind::Calls(_)) => "must stand before its use",
                (LabelKind::Branches(_), _) => "is no `.branchtargets`",
                (LabelKind::Calls(_), _) => "is no `.callprototype` or `.calltargets`",
                (LabelKind::Undefined, _) => continue,
            };
            self.label_error(statement.origin, label, what);
        }
    }

    #[cold]
    fn label_error(&mut self, origin: Origin, label: LabelId, what: &str) {
        let name = &self.function.labels[label.0 as usize].name;
        self.out.push(Diagnostic::new(Code::Label, origin, format!("the label `{name}` {what}")));
    }
}

/// What a label names, with the statement of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LabelKind {
    Undefined,
    Code,
    Branches(usize),
    Calls(usize),
}
