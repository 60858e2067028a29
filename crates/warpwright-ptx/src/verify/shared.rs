//! Computes the static shared memory of each kernel.
//!
//! It counts the shared variables that a kernel, or a function that it may call, declares, and those of the module
//! that they name. If a kernel calls through a pointer, or passes on the address of a function, every function whose
//! address is taken counts as callable.

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::*;
use crate::op::control::Callee;
use crate::op::{Access, Op, Visitor};
use std::collections::HashMap;

/// Static shared memory that a block has without asking: 48 KiB.
const LIMIT: u64 = 48 << 10;

/// The most static shared memory of a kernel. Code for one architecture alone may use all of it.
pub(super) fn limit(arch: Arch) -> u64 {
    match (arch.variant, arch.sm) {
        (ArchVariant::Specific, 120..) => 99 << 10,
        (ArchVariant::Specific, _) => 227 << 10,
        _ => LIMIT,
    }
}

/// Bytes for each of the module's functions, in the order of [`Module::functions`]: 0 for those that
/// are no kernels.
pub(super) fn sizes(index: &ModuleIndex<'_>, out: &mut Diagnostics) -> Vec<u64> {
    let functions: Vec<&Function> = index.module.functions().collect();
    if !uses_shared(index.module) {
        return vec![0; functions.len()];
    }
    let limit = limit(index.module.target.arch);
    let entry = |root: usize| functions[root].kind == FunctionKind::Entry;
    let sizes: Vec<u64> = match functions[..] {
        // It can call nothing and name nothing but its own.
        [function] if index.module.globals().next().is_none() => vec![total(shared_of(function))],
        _ => {
            let graph = Graph::new(index, &functions);
            (0..functions.len()).map(|root| if entry(root) { graph.size(root) } else { 0 }).collect()
        }
    };
    for (function, &size) in functions.iter().zip(&sizes) {
        if size > limit {
            let message =
                format!("`{}` takes {size} bytes of static shared memory; there are {limit}", function.name);
            let diagnostic = Diagnostic::new(Code::SharedMemory, function.origin, message);
            out.push(
                diagnostic.with_help("declare an `.extern .shared` array, and give its size at the launch"),
            );
        }
    }
    sizes
}

fn uses_shared(module: &Module) -> bool {
    let shared = |variable: &Variable| variable.space.base() == Space::Shared;
    module.globals().any(shared) || module.functions().any(|function| shared_of(function).next().is_some())
}

/// What a function names.
#[derive(Default)]
struct Named {
    functions: Vec<usize>,
    variables: Vec<usize>,
    indirect: bool,
}

struct Graph<'a> {
    functions: &'a [&'a Function],
    variables: Vec<&'a Variable>,
    named: Vec<Named>,
    /// Functions whose address an initial value holds.
    stored: Vec<usize>,
}

impl<'a> Graph<'a> {
    fn new(index: &ModuleIndex<'a>, functions: &'a [&'a Function]) -> Self {
        let variables: Vec<_> =
            index.module.globals().filter(|variable| variable.space.base() == Space::Shared).collect();
        let numbers: HashMap<&str, usize> =
            variables.iter().enumerate().map(|(i, variable)| (&*variable.name, i)).collect();
        // The definition of a function, which stands after its prototypes.
        let definitions: HashMap<&str, usize> =
            functions.iter().enumerate().map(|(i, function)| (&*function.name, i)).collect();
        let mut stored = Vec::new();
        for init in index.module.globals().filter_map(|variable| variable.init.as_ref()) {
            each_symbol(init, &mut |name| stored.extend(definitions.get(name)));
        }
        let named = functions
            .iter()
            .map(|function| {
                let mut finder =
                    Finder { index, numbers: &numbers, definitions: &definitions, named: Named::default() };
                for instruction in function.instructions() {
                    finder.named.indirect |=
                        matches!(&instruction.op, Op::Call(call) if matches!(call.callee, Callee::Reg(_)));
                    instruction.op.visit(&mut finder);
                }
                finder.named
            })
            .collect();
        Graph { functions, variables, named, stored }
    }

    fn size(&self, root: usize) -> u64 {
        let mut seen = vec![false; self.functions.len()];
        let mut variables = vec![false; self.variables.len()];
        let mut stack = vec![root];
        let mut reached = Vec::new();
        seen[root] = true;
        while let Some(at) = stack.pop() {
            reached.push(at);
            let named = &self.named[at];
            named.variables.iter().for_each(|&variable| variables[variable] = true);
            let stored = if named.indirect { &self.stored[..] } else { &[] };
            for &next in named.functions.iter().chain(stored) {
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push(next);
                }
            }
        }
        let used =
            self.variables.iter().zip(variables).filter_map(|(variable, used)| used.then_some(*variable));
        let own = reached.into_iter().flat_map(|at| shared_of(self.functions[at]));
        total(used.chain(own))
    }
}

/// The shared variables that a function declares.
fn shared_of(function: &Function) -> impl Iterator<Item = &Variable> {
    function.variables.iter().filter(|variable| variable.space.base() == Space::Shared)
}

/// Bytes that the variables take, one after the other.
fn total<'v>(variables: impl Iterator<Item = &'v Variable>) -> u64 {
    variables.fold(0u64, |size, variable| {
        size.checked_next_multiple_of(variable.alignment().max(1).into())
            .unwrap_or(u64::MAX)
            .saturating_add(variable.bytes().unwrap_or(0))
    })
}

fn each_symbol<'a>(init: &'a Init, visit: &mut impl FnMut(&'a str)) {
    let mut stack = vec![init];
    while let Some(init) = stack.pop() {
        match init {
            Init::Symbol(symbol) => visit(&symbol.name),
            Init::List(list) => stack.extend(list),
            Init::Value(_) | Init::Properties(_) => {}
        }
    }
}

struct Finder<'a> {
    index: &'a ModuleIndex<'a>,
    numbers: &'a HashMap<&'a str, usize>,
    definitions: &'a HashMap<&'a str, usize>,
    named: Named,
}

impl Visitor for Finder<'_> {
    fn reg(&mut self, _access: Access, _reg: Reg) {}

    fn symbol(&mut self, symbol: &Symbol) {
        let Symbol::Global(name) = symbol else { return };
        match self.index.get(name) {
            Some(GlobalSymbol::Variable(_)) => self.named.variables.extend(self.numbers.get(&**name)),
            Some(GlobalSymbol::Function(function)) => {
                self.named.functions.extend(self.definitions.get(&*function.name));
            }
            None => {}
        }
    }
}
