//! Rules of a module as a whole: its header, names and linkage.

use super::variable::{self, Scope};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;
use std::collections::{HashMap, HashSet};

/// Bytes of constant memory.
const CONSTANT_BYTES: u64 = 64 << 10;

pub(super) fn check(index: &ModuleIndex<'_>, out: &mut Diagnostics) {
    let module = index.module;
    header(module, out);
    names(module, out);
    aliases(module, out);
    let mut constant = 0u64;
    for item in &module.items {
        match &item.kind {
            ItemKind::Variable(variable) => {
                variable::check(variable, Scope::Module, index, out);
                if variable.space == Space::Const && variable.linkage != Linkage::Extern {
                    constant = constant.saturating_add(variable.bytes().unwrap_or(0));
                    if constant > CONSTANT_BYTES {
                        let message = format!(
                            "`{}` brings the constant memory of the module to {constant} bytes; there are {CONSTANT_BYTES}",
                            variable.name
                        );
                        out.push(Diagnostic::new(Code::TooLarge, item.origin, message));
                        constant = 0;
                    }
                }
            }
            ItemKind::Section(section) => section_data(section, item.origin, out),
            _ => {}
        }
    }
}

fn header(module: &Module, out: &mut Diagnostics) {
    let arch = module.target.arch;
    let mut report = |code, message: String| out.push(Diagnostic::new(code, module.origin, message));
    if !module.version.is_published() {
        report(Code::Header, format!("there is no PTX version {}", module.version));
    }
    match arch.introduced() {
        None => report(Code::Header, format!("`{arch}` is not a known target")),
        Some(needed) if needed > module.version => report(
            Code::NeedsVersion,
            format!("the target {arch} needs PTX {needed} or later; the module says {}", module.version),
        ),
        Some(_) => {}
    }
    if module.address_size == Some(AddressSize::Bits32) {
        report(Code::Header, "addresses of 32 bits are no longer supported".to_string());
    }
    let has = |option| module.target.options.contains(&option);
    if has(TargetOption::TexmodeUnified) && has(TargetOption::TexmodeIndependent) {
        report(Code::Header, "the texture mode is either unified or independent".to_string());
    }
    if has(TargetOption::MapF64ToF32) && arch.sm >= 13 {
        report(
            Code::Header,
            "`map_f64_to_f32` is for the targets before sm_13, which have no `f64`".to_string(),
        );
    }
    let debug_data = module.items.iter().any(|item| matches!(item.kind, ItemKind::Section(_)));
    if has(TargetOption::Debug) && !debug_data {
        report(
            Code::Header,
            "`.target …, debug` promises debug data, and there is no `.section`".to_string(),
        );
    }
}

/// What was declared before under a name.
enum Earlier<'a> {
    Variable(&'a Variable, Origin),
    Function(&'a Function, Origin),
}

fn names(module: &Module, out: &mut Diagnostics) {
    let mut seen: HashMap<&str, Earlier<'_>> = HashMap::new();
    let mut prototypes = false;
    for item in &module.items {
        let (name, now) = match &item.kind {
            ItemKind::Variable(variable) => (&variable.name, Earlier::Variable(variable, item.origin)),
            ItemKind::Function(function) => {
                prototypes |= function.body.is_none();
                if function.body.is_some() && function.linkage == Linkage::Extern {
                    let message = format!("`{}` is `.extern` and has a body", function.name);
                    out.push(Diagnostic::new(Code::Linkage, item.origin, message));
                }
                (&function.name, Earlier::Function(function, item.origin))
            }
            _ => continue,
        };
        let conflict = match (seen.get(&**name), &now) {
            (None, _) => None,
            (Some(Earlier::Variable(a, first)), Earlier::Variable(b, _)) => {
                variables_conflict(a, b).map(|conflict| (conflict, *first))
            }
            (Some(Earlier::Function(a, first)), Earlier::Function(b, _)) => {
                functions_conflict(a, b).map(|conflict| (conflict, *first))
            }
            (Some(Earlier::Variable(_, first) | Earlier::Function(_, first)), _) => {
                let message = "is a variable in one place and a function in another".to_string();
                Some(((Code::Redeclared, message), *first))
            }
        };
        if let Some(((code, message), first)) = conflict {
            out.push(
                Diagnostic::new(code, item.origin, format!("`{name}` {message}"))
                    .with_related(first, "it is declared here first"),
            );
        }
        let defined =
            matches!(seen.get(&**name), Some(Earlier::Function(before, _)) if before.body.is_some());
        if !defined {
            seen.insert(name, now);
        }
    }
    if prototypes {
        undefined(module, &seen, out);
    }
}

/// A prototype that is not `.extern` promises a definition.
fn undefined(module: &Module, seen: &HashMap<&str, Earlier<'_>>, out: &mut Diagnostics) {
    let aliases: HashSet<&str> = module
        .items
        .iter()
        .filter_map(|item| match &item.kind {
            ItemKind::Alias { name, .. } => Some(&**name),
            _ => None,
        })
        .collect();
    for item in &module.items {
        let ItemKind::Function(function) = &item.kind else { continue };
        // The last declaration counts, so that each name is reported once.
        let last = match seen.get(&*function.name) {
            Some(Earlier::Function(last, _)) => std::ptr::eq(*last, &**function),
            _ => false,
        };
        let promised = function.kind == FunctionKind::Func && function.linkage != Linkage::Extern;
        if last && promised && function.body.is_none() && !aliases.contains(&*function.name) {
            let message = format!("`{}` is declared and not defined", function.name);
            out.push(
                Diagnostic::new(Code::Linkage, item.origin, message)
                    .with_help("declare it `.extern` if it is defined in another module"),
            );
        }
    }
}

type Conflict = Option<(Code, String)>;

fn variables_conflict(a: &Variable, b: &Variable) -> Conflict {
    let redeclared = Some((Code::Redeclared, "is declared twice".to_string()));
    if a.linkage != Linkage::Extern && b.linkage != Linkage::Extern {
        return redeclared;
    }
    if a.linkage == Linkage::Extern && b.linkage == Linkage::Local {
        return Some((
            Code::Linkage,
            "is declared `.extern`, and its definition is seen by this module only".to_string(),
        ));
    }
    let size = |dims: &[Option<u64>]| dims.first().copied().flatten();
    let dims = match (size(&a.dims), size(&b.dims)) {
        (Some(_), Some(_)) => a.dims == b.dims,
        _ => a.dims.len() == b.dims.len() && a.dims.iter().skip(1).eq(b.dims.iter().skip(1)),
    };
    let same = a.ty == b.ty && a.vector == b.vector && a.space.base() == b.space.base() && dims;
    (!same).then(|| (Code::Linkage, "is declared with another type before".to_string()))
}

fn functions_conflict(first: &Function, second: &Function) -> Conflict {
    if first.body.is_some() {
        return Some((Code::Redeclared, "is declared again after its definition".to_string()));
    }
    if first.kind != second.kind {
        return Some((Code::Linkage, "is a kernel in one place and a function in another".to_string()));
    }
    let same_linkage = first.linkage == second.linkage
        || (first.linkage == Linkage::Visible && second.linkage == Linkage::Local);
    if !same_linkage {
        return Some((Code::Linkage, "is declared with another linkage before".to_string()));
    }
    let noreturn = |function: &Function| function.directives.contains(&FunctionDirective::NoReturn);
    if noreturn(first) != noreturn(second) {
        return Some((Code::Linkage, "is `.noreturn` in one declaration only".to_string()));
    }
    signature_difference(first, second).map(|difference| (Code::Linkage, difference))
}

/// How the signatures of two functions differ.
fn signature_difference(a: &Function, b: &Function) -> Option<String> {
    if a.returns.len() != b.returns.len() {
        return Some("is declared with another number of return values before".to_string());
    }
    if a.params.len() != b.params.len() {
        let (before, now) = (a.params.len(), b.params.len());
        return Some(format!("has {now} parameters here and {before} before"));
    }
    let pairs = a.returns.iter().zip(&b.returns).chain(a.params.iter().zip(&b.params));
    for (i, (x, y)) in pairs.enumerate() {
        let same = match (x, y) {
            (Param::Variable(x), Param::Variable(y)) => {
                let (x, y) = (a.variable(*x), b.variable(*y));
                x.ty == y.ty && x.dims == y.dims && x.vector == y.vector && x.alignment() == y.alignment()
            }
            (Param::Register(x), Param::Register(y)) => {
                let (x, y) = (a.register_range(*x), b.register_range(*y));
                x.ty == y.ty && x.vector == y.vector
            }
            _ => false,
        };
        if !same {
            return Some(match i.checked_sub(a.returns.len()) {
                Some(i) => format!("declares parameter {} unlike before", i + 1),
                None => "declares its return value unlike before".to_string(),
            });
        }
    }
    None
}

fn aliases(module: &Module, out: &mut Diagnostics) {
    if !module.items.iter().any(|item| matches!(item.kind, ItemKind::Alias { .. })) {
        return;
    }
    // The first declaration of a function, and whether any has a body.
    let mut functions: HashMap<&str, (&Function, bool)> = HashMap::new();
    for function in module.functions() {
        let entry = functions.entry(&function.name).or_insert((function, false));
        entry.1 |= function.body.is_some();
    }
    let mut done: HashMap<&str, Origin> = HashMap::new();
    for item in &module.items {
        let ItemKind::Alias { name, target } = &item.kind else { continue };
        let mut report = |message: String| out.push(Diagnostic::new(Code::Linkage, item.origin, message));
        if done.insert(name, item.origin).is_some() {
            report(format!("`{name}` is an alias already"));
            continue;
        }
        let Some((prototype, defined)) = functions.get(&**name) else {
            report(format!("the alias `{name}` needs a prototype before it"));
            continue;
        };
        let Some((aliasee, aliasee_defined)) = functions.get(&**target) else {
            report(format!("`{target}` is not a function"));
            continue;
        };
        if *defined {
            report(format!("`{name}` has a body, and so cannot be an alias"));
        } else if prototype.kind == FunctionKind::Entry || aliasee.kind == FunctionKind::Entry {
            report("a kernel has no aliases".to_string());
        } else if matches!(aliasee.linkage, Linkage::Weak | Linkage::Extern) {
            report(format!("`{target}` is weak or external, and so cannot be aliased"));
        } else if !aliasee_defined {
            report(format!("`{target}` is not defined in this module, and so cannot be aliased"));
        } else if let Some(difference) = signature_difference(aliasee, prototype) {
            report(format!("`{name}` cannot stand for `{target}`: it {difference}"));
        }
    }
}

fn section_data(section: &Section, origin: Origin, out: &mut Diagnostics) {
    for line in &section.lines {
        let SectionLine::Data { ty, values } = line else { continue };
        if !matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64) {
            let message = format!("a section holds `.b8`, `.b16`, `.b32` and `.b64` data, not `{ty}`");
            out.push(Diagnostic::new(Code::Directive, origin, message));
        } else if let Some(value) = values.iter().find_map(|value| match value {
            SectionValue::Int(imm) => imm.bits().filter(|&bits| !fits(bits, ty.bits())),
            _ => None,
        }) {
            out.push(Diagnostic::new(Code::Directive, origin, format!("{value} does not fit a `{ty}`")));
        }
    }
}

/// Whether the bits are a signed or unsigned number of that width.
fn fits(bits: u64, width: u32) -> bool {
    width >= 64 || bits >> width == 0 || (bits as i64) >> (width - 1) == -1
}
