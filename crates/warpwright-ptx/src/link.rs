//! The linker: several modules become one, in which each finds what another one defines.
//!
//! The rules are those of separate compilation (PTX ISA, "Linking Directives"): a name with `.visible` has one
//! definition among all modules; it replaces definitions that are `.weak` or `.common`, of which otherwise the first
//! one counts, or the largest of the `.common` ones. A name without any of these is its module's own, and gets another
//! name if that one is taken. Kernels are found by the host, so theirs are never changed.
//!
//! What the result holds, in this order, so that every name is declared before its use:
//!
//! ```text
//! source files ── `.extern` declarations ── a prototype of each function ── items of each module, in their order
//! ```
//!
//! Of debug data only `.debug_str` remains, which has the names of inlined functions: the other sections have offsets
//! that hold within one module.

use crate::ir::*;
use crate::op::{Access, Visitor, VisitorMut};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

/// A module to link, and its name in messages.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name: a file, or what a client calls it.
    pub name: String,
    /// The module.
    pub module: Module,
}

/// Why modules cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// Two modules define the same visible name.
    DefinedTwice {
        /// The name.
        symbol: String,
        /// The modules.
        inputs: [String; 2],
    },
    /// A module uses a name that none defines.
    Undefined {
        /// The name.
        symbol: String,
        /// The first module that uses it.
        input: String,
        /// Its number among the modules.
        number: usize,
        /// Where it does.
        origin: Origin,
    },
    /// There is no module.
    Nothing,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::DefinedTwice { symbol, inputs: [first, second] } => {
                write!(f, "Multiple definition of '{symbol}' in '{second}', first defined in '{first}'")
            }
            LinkError::Undefined { symbol, input, .. } => {
                write!(f, "Undefined reference to '{symbol}' in '{input}'")
            }
            LinkError::Nothing => write!(f, "there is nothing to link"),
        }
    }
}

impl std::error::Error for LinkError {}

/// Links verified modules. `is_provided` says which functions need no definition, since the device has them.
///
/// The version and the target are the latest of the modules. The result is to be verified like any module: a call may
/// contradict the definition that it found.
///
/// # Errors
/// [`LinkError`] for a name with two definitions or with none, or without modules.
pub fn link(mut inputs: Vec<Input>, is_provided: impl Fn(&str) -> bool) -> Result<Module, LinkError> {
    let definitions = Definitions::of(&inputs)?;
    definitions.complete(&inputs, is_provided)?;
    if inputs.len() < 2 {
        return inputs.pop().map(|input| input.module).ok_or(LinkError::Nothing);
    }
    let locals = renamed(&inputs, &definitions);

    let mut linked = header(&inputs);
    let (mut declarations, mut prototypes, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    let mut declared = HashSet::new();
    let mut files = 0;
    for (number, (input, names)) in inputs.into_iter().zip(locals).enumerate() {
        let mut moved = Moved { names, files, number };
        let mut items = input.module.items;
        items.iter_mut().for_each(|item| moved.item(item));
        let aliases: HashSet<Name> = items.iter().filter_map(alias).cloned().collect();
        for item in items {
            match &item.kind {
                ItemKind::File(file) => {
                    files = files.max(file.index);
                    linked.items.push(item);
                }
                ItemKind::Section(section) if section.name == ".debug_str" => bodies.push(item),
                ItemKind::Section(_) => {}
                ItemKind::Variable(variable) if variable.linkage == Linkage::Extern => {
                    if declared.insert(variable.name.clone()) {
                        declarations.push(item);
                    }
                }
                ItemKind::Variable(variable) if definitions.drops(number, &variable.name) => {}
                ItemKind::Function(function) if function.body.is_none() => {
                    // A body gives its function's prototype; an alias has none.
                    let name = &function.name;
                    let is_alias = aliases.contains(name) && !definitions.drops(number, name);
                    if (is_alias || !definitions.has(name)) && declared.insert(name.clone()) {
                        prototypes.push(item);
                    }
                }
                ItemKind::Function(function) if definitions.drops(number, &function.name) => {}
                ItemKind::Function(function) => {
                    if function.kind == FunctionKind::Func && declared.insert(function.name.clone()) {
                        prototypes.push(ItemKind::Function(Box::new(prototype(function))).into());
                    }
                    bodies.push(item);
                }
                ItemKind::Alias { name, .. } if definitions.drops(number, name) => {}
                _ => bodies.push(item),
            }
        }
    }
    linked.items.extend(declarations);
    linked.items.extend(prototypes);
    linked.items.extend(bodies);
    Ok(linked)
}

/// The name of an alias.
fn alias(item: &Item) -> Option<&Name> {
    match &item.kind {
        ItemKind::Alias { name, .. } => Some(name),
        _ => None,
    }
}

/// The header of the result: the latest version and target.
fn header(inputs: &[Input]) -> Module {
    let modules = || inputs.iter().map(|input| &input.module);
    let version = modules().map(|module| module.version).max().unwrap_or(Version::OLDEST);
    let arch = modules().map(|module| module.target.arch).max().unwrap_or(Arch::sm(50));
    let mut linked = Module::new(version, arch);
    for option in modules().flat_map(|module| &module.target.options) {
        // The debug data of one module does not describe all of them.
        if *option != TargetOption::Debug && !linked.target.options.contains(option) {
            linked.target.options.push(*option);
        }
    }
    linked
}

/// A definition: where it is, and which others it replaces.
#[derive(Clone, Copy, Debug)]
struct Definition {
    input: usize,
    linkage: Linkage,
    /// Bytes of a variable.
    bytes: u64,
}

/// The definitions of names that other modules see.
struct Definitions(HashMap<Name, Definition>);

impl Definitions {
    fn of(inputs: &[Input]) -> Result<Definitions, LinkError> {
        let mut all: HashMap<Name, Definition> = HashMap::new();
        for (number, input) in inputs.iter().enumerate() {
            for (name, linkage, bytes) in definitions(&input.module) {
                let new = Definition { input: number, linkage, bytes };
                let mut slot = match all.entry(name.clone()) {
                    Entry::Vacant(slot) => {
                        slot.insert(new);
                        continue;
                    }
                    Entry::Occupied(slot) => slot,
                };
                let old = *slot.get();
                match (rank(old.linkage), rank(linkage)) {
                    (Rank::Only, Rank::Only) => {
                        return Err(LinkError::DefinedTwice {
                            symbol: name.to_string(),
                            inputs: [inputs[old.input].name.clone(), input.name.clone()],
                        });
                    }
                    (a, b) if b > a || (a == Rank::Largest && b == a && bytes > old.bytes) => {
                        slot.insert(new);
                    }
                    _ => {}
                }
            }
        }
        Ok(Definitions(all))
    }

    /// Whether every name that is used is defined.
    fn complete(&self, inputs: &[Input], is_provided: impl Fn(&str) -> bool) -> Result<(), LinkError> {
        for (number, input) in inputs.iter().enumerate() {
            let missing =
                declared(&input.module).filter(|name| !self.has(name) && !is_provided(name)).collect();
            if let Some((name, origin)) = used(&input.module, &missing).first() {
                return Err(LinkError::Undefined {
                    symbol: name.to_string(),
                    input: input.name.clone(),
                    number,
                    origin: *origin,
                });
            }
        }
        Ok(())
    }

    fn has(&self, name: &Name) -> bool {
        self.0.contains_key(name)
    }

    /// Whether another module's definition replaces that of this one.
    fn drops(&self, input: usize, name: &Name) -> bool {
        self.0.get(name).is_some_and(|definition| definition.input != input)
    }
}

/// The names that a module declares for others to define.
fn declared(module: &Module) -> impl Iterator<Item = &Name> {
    module.items.iter().filter_map(|item| match &item.kind {
        // Dynamic shared memory comes with the launch.
        ItemKind::Variable(variable)
            if variable.linkage == Linkage::Extern && variable.space.base() != Space::Shared =>
        {
            Some(&variable.name)
        }
        ItemKind::Function(function) if function.linkage == Linkage::Extern => Some(&function.name),
        _ => None,
    })
}

/// Those of some names that a module uses, and where it does first, in the order of their uses.
fn used<'a>(module: &'a Module, names: &HashSet<&'a Name>) -> Vec<(&'a Name, Origin)> {
    struct Uses<'a> {
        names: HashSet<&'a Name>,
        origin: Origin,
        found: Vec<(&'a Name, Origin)>,
    }
    impl<'a> Uses<'a> {
        fn of(&mut self, name: &Name) {
            self.found.extend(self.names.take(name).map(|name| (name, self.origin)));
        }

        fn init(&mut self, init: &Init) {
            match init {
                Init::Symbol(symbol) => self.of(&symbol.name),
                Init::List(list) => list.iter().for_each(|init| self.init(init)),
                Init::Value(_) | Init::Properties(_) => {}
            }
        }
    }
    impl Visitor for Uses<'_> {
        fn reg(&mut self, _: Access, _: Reg) {}
        fn symbol(&mut self, symbol: &Symbol) {
            if let Symbol::Global(name) = symbol {
                self.of(name);
            }
        }
    }
    let mut uses = Uses { names: names.clone(), origin: Origin::Unknown, found: Vec::new() };
    for item in &module.items {
        if uses.names.is_empty() {
            break;
        }
        uses.origin = item.origin;
        match &item.kind {
            ItemKind::Variable(variable) => variable.init.iter().for_each(|init| uses.init(init)),
            ItemKind::Function(function) => {
                for statement in function.statements() {
                    uses.origin = statement.origin;
                    if let StatementKind::Instruction(instruction) = &statement.kind {
                        instruction.op.visit(&mut uses);
                    }
                }
            }
            _ => {}
        }
    }
    uses.found
}

/// The modules of a library that a program needs, by their numbers: those that define what the program's modules, or
/// others of the library that are needed, use and do not define, and those with kernels, which the host finds by their
/// names. The first module that defines a name is the one that is taken for it.
pub fn needed(program: &[Input], library: &[Input]) -> Vec<usize> {
    let mut definers = HashMap::new();
    for (number, member) in library.iter().enumerate() {
        for (name, ..) in definitions(&member.module) {
            definers.entry(name).or_insert(number);
        }
    }
    let mut defined: HashSet<&Name> = HashSet::new();
    let mut needed = BTreeSet::new();
    let mut unread = Vec::new();
    let take = |module, defined: &mut HashSet<_>, unread: &mut Vec<_>| {
        defined.extend(definitions(module).map(|(name, ..)| name));
        unread.push(module);
    };
    program.iter().for_each(|input| take(&input.module, &mut defined, &mut unread));
    for (number, member) in library.iter().enumerate() {
        let mut kernels = member
            .module
            .functions()
            .filter(|function| function.kind == FunctionKind::Entry && function.body.is_some());
        if kernels.any(|kernel| !defined.contains(&kernel.name)) && needed.insert(number) {
            take(&member.module, &mut defined, &mut unread);
        }
    }
    while let Some(module) = unread.pop() {
        let missing = declared(module).filter(|name| !defined.contains(name)).collect();
        for (name, _) in used(module, &missing) {
            if let Some(number) = definers.get(name)
                && needed.insert(*number)
            {
                take(&library[*number].module, &mut defined, &mut unread);
            }
        }
    }
    needed.into_iter().collect()
}

/// How definitions of one name replace each other, the strongest last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The largest of its kind.
    Largest,
    /// The first of its kind.
    First,
    /// There is one.
    Only,
}

fn rank(linkage: Linkage) -> Rank {
    match linkage {
        Linkage::Common => Rank::Largest,
        Linkage::Weak => Rank::First,
        _ => Rank::Only,
    }
}

/// What a module defines for others, and its kernels, which the host sees whatever their linkage.
fn definitions(module: &Module) -> impl Iterator<Item = (&Name, Linkage, u64)> {
    let aliased = |name: &Name| module.functions().find(|function| function.name == *name);
    module.items.iter().filter_map(move |item| match &item.kind {
        ItemKind::Variable(variable) if !matches!(variable.linkage, Linkage::Local | Linkage::Extern) => {
            Some((&variable.name, variable.linkage, variable.bytes().unwrap_or(0)))
        }
        ItemKind::Function(function)
            if function.body.is_some()
                && (function.linkage != Linkage::Local || function.kind == FunctionKind::Entry) =>
        {
            Some((&function.name, function.linkage, 0))
        }
        ItemKind::Alias { name, .. } => {
            let linkage = aliased(name)?.linkage;
            (linkage != Linkage::Local).then_some((name, linkage, 0))
        }
        _ => None,
    })
}

/// For each module, the new names of what is its own.
fn renamed(inputs: &[Input], definitions: &Definitions) -> Vec<HashMap<Name, Name>> {
    let mut taken: HashSet<Name> = definitions.0.keys().cloned().collect();
    // A declaration means the same in every module, dynamic shared memory and functions of the device included.
    for item in inputs.iter().flat_map(|input| &input.module.items) {
        match &item.kind {
            ItemKind::Variable(variable) if variable.linkage == Linkage::Extern => {
                taken.insert(variable.name.clone());
            }
            ItemKind::Function(function) if function.linkage == Linkage::Extern => {
                taken.insert(function.name.clone());
            }
            _ => {}
        }
    }
    let mut renamed = Vec::with_capacity(inputs.len());
    for (number, input) in inputs.iter().enumerate() {
        let mut own: HashSet<&Name> = HashSet::new();
        for item in &input.module.items {
            match &item.kind {
                ItemKind::Variable(variable) if variable.linkage == Linkage::Local => {
                    own.insert(&variable.name);
                }
                ItemKind::Function(function)
                    if function.linkage == Linkage::Local && function.kind == FunctionKind::Func =>
                {
                    own.insert(&function.name);
                }
                _ => {}
            }
        }
        // A prototype may leave `.visible` out.
        own.retain(|name| definitions.0.get(*name).is_none_or(|definition| definition.input != number));
        let mut names = HashMap::new();
        for name in own {
            if taken.insert(name.clone()) {
                continue;
            }
            let fresh = (0..).map(|attempt| match attempt {
                0 => Name::from(format!("{name}${number}")),
                _ => Name::from(format!("{name}${number}${attempt}")),
            });
            let fresh = fresh.into_iter().find(|fresh| !taken.contains(fresh));
            if let Some(fresh) = fresh {
                taken.insert(fresh.clone());
                names.insert(name.clone(), fresh);
            }
        }
        renamed.push(names);
    }
    renamed
}

/// The signature of a function.
fn prototype(function: &Function) -> Function {
    let mut prototype = Function { body: None, labels: Vec::new(), ..function.clone() };
    // What the body declares is behind the signature, in both lists.
    let signature = || function.returns.iter().chain(&function.params);
    let variables = signature().filter(|param| matches!(param, Param::Variable(_))).count();
    let registers = signature().filter(|param| matches!(param, Param::Register(_))).count();
    prototype.variables.truncate(variables);
    prototype.registers.truncate(registers);
    prototype
}

/// What changes in a module when it moves into another one.
struct Moved {
    names: HashMap<Name, Name>,
    /// Source files in front of its own.
    files: u32,
    /// Its number among the modules.
    number: usize,
}

impl Moved {
    fn item(&mut self, item: &mut Item) {
        // Positions in the text of an input mean nothing in the text of the result.
        item.origin = Origin::Unknown;
        match &mut item.kind {
            ItemKind::Variable(variable) => self.variable(variable),
            ItemKind::Function(function) => self.function(function),
            ItemKind::Alias { name, target } => {
                self.name(name);
                self.name(target);
            }
            ItemKind::File(file) => file.index += self.files,
            ItemKind::Loc(loc) => self.loc(loc),
            ItemKind::Section(section) => {
                for line in &mut section.lines {
                    if let SectionLine::Label(label) = line {
                        self.debug_label(label);
                    }
                }
            }
            ItemKind::Pragma(_) | ItemKind::Comment(_) => {}
        }
    }

    fn name(&self, name: &mut Name) {
        if let Some(new) = self.names.get(name) {
            *name = new.clone();
        }
    }

    fn variable(&self, variable: &mut Variable) {
        self.name(&mut variable.name);
        if let Some(init) = &mut variable.init {
            self.init(init);
        }
    }

    fn init(&self, init: &mut Init) {
        match init {
            Init::Symbol(symbol) => self.name(&mut symbol.name),
            Init::List(list) => list.iter_mut().for_each(|init| self.init(init)),
            Init::Value(_) | Init::Properties(_) => {}
        }
    }

    fn function(&mut self, function: &mut Function) {
        self.name(&mut function.name);
        for variable in &mut function.variables {
            if let Some(init) = &mut variable.init {
                self.init(init);
            }
        }
        for statement in function.body.iter_mut().flatten() {
            statement.origin = Origin::Unknown;
            match &mut statement.kind {
                StatementKind::Instruction(instruction) => instruction.op.visit_mut(self),
                StatementKind::CallTargets { targets, .. } => {
                    targets.iter_mut().for_each(|name| self.name(name));
                }
                StatementKind::Loc(loc) => self.loc(loc),
                _ => {}
            }
        }
    }

    fn loc(&self, loc: &mut Loc) {
        loc.file += self.files;
        if let Some(inlined) = &mut loc.inlined {
            inlined.file += self.files;
            self.debug_label(&mut inlined.function);
        }
    }

    /// Labels of debug data are alike in all modules.
    fn debug_label(&self, label: &mut String) {
        *label = format!("{label}${}", self.number);
    }
}

impl VisitorMut for Moved {
    fn reg(&mut self, _: Access, _: &mut Reg) {}

    fn symbol(&mut self, symbol: &mut Symbol) {
        if let Symbol::Global(name) = symbol {
            self.name(name);
        }
    }
}
