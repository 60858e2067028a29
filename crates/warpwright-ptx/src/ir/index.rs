//! Lookup of module-scope names.

use super::{Function, ItemKind, Linkage, Module, Name, Symbol, Variable};
use std::collections::HashMap;

/// The meaning of a module-scope name.
#[derive(Clone, Copy, Debug)]
pub enum GlobalSymbol<'a> {
    /// A variable.
    Variable(&'a Variable),
    /// A function: its definition if the module has one, otherwise its prototype.
    Function(&'a Function),
}

/// A module with its names indexed.
pub struct ModuleIndex<'a> {
    /// The module.
    pub module: &'a Module,
    names: HashMap<&'a str, GlobalSymbol<'a>>,
}

impl<'a> ModuleIndex<'a> {
    /// Indexes the names of a module. If a name is both declared and defined, the definition counts.
    pub fn new(module: &'a Module) -> Self {
        let mut names = HashMap::new();
        for item in &module.items {
            match &item.kind {
                ItemKind::Variable(variable) => {
                    let defined = matches!(names.get(&*variable.name), Some(GlobalSymbol::Variable(v)) if v.linkage != Linkage::Extern);
                    if !defined {
                        names.insert(&*variable.name, GlobalSymbol::Variable(variable));
                    }
                }
                ItemKind::Function(function) => {
                    let defined = matches!(names.get(&*function.name), Some(GlobalSymbol::Function(f)) if f.body.is_some());
                    if !defined {
                        names.insert(&*function.name, GlobalSymbol::Function(function));
                    }
                }
                _ => {}
            }
        }
        for item in &module.items {
            if let ItemKind::Alias { name, target } = &item.kind
                && let Some(&symbol) = names.get(&**target)
            {
                names.entry(&**name).or_insert(symbol);
            }
        }
        ModuleIndex { module, names }
    }

    /// The meaning of the name.
    pub fn get(&self, name: &Name) -> Option<GlobalSymbol<'a>> {
        self.names.get(&**name).copied()
    }

    /// The variable that a symbol of `function` names; `None` for functions and unknown names.
    pub fn variable<'b>(&self, function: &'b Function, symbol: &Symbol) -> Option<&'b Variable>
    where
        'a: 'b,
    {
        match symbol {
            Symbol::Local(id) => function.variables.get(id.0 as usize),
            Symbol::Global(name) => match self.get(name) {
                Some(GlobalSymbol::Variable(variable)) => Some(variable),
                _ => None,
            },
        }
    }
}
