//! Names inside a function: registers, variables, labels, in nested scopes.

use crate::diag::{Code, Diagnostic};
use crate::ir::*;
use crate::op::{Access, LabelResolver, VisitorMut};
use std::collections::HashMap;

/// `prefix<n>`: the registers `prefix0`, `prefix1`, ….
#[derive(Clone, Copy, Debug)]
pub(super) struct RegisterNames {
    pub(super) first: Reg,
    pub(super) count: u32,
    pub(super) vector: Option<VectorWidth>,
}

/// What a local name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Local {
    /// A register; for a vector register, its first component.
    Register(Reg, Option<VectorWidth>),
    /// A variable; of an array, the bytes of one scalar, which subscripts count.
    Variable(VarId, Option<u32>),
}

const OPEN: &str = "the function's own scope is never closed";

#[derive(Default)]
struct Scope<'s> {
    names: HashMap<&'s str, Local>,
    ranges: Ranges<'s>,
    labels: HashMap<&'s str, ScopedLabel>,
}

/// Register ranges by their prefix. A function has a handful, which are compared one by one: that is
/// quicker than hashing, and nearly every operand is looked up here.
#[derive(Default)]
struct Ranges<'s> {
    few: Vec<(&'s str, RegisterNames)>,
    more: HashMap<&'s str, RegisterNames>,
}

impl<'s> Ranges<'s> {
    const FEW: usize = 12;

    fn get(&self, prefix: &str) -> Option<&RegisterNames> {
        match self.few.iter().find(|(name, _)| *name == prefix) {
            Some((_, names)) => Some(names),
            None if self.more.is_empty() => None,
            None => self.more.get(prefix),
        }
    }

    /// `false` if the prefix was there.
    fn insert(&mut self, prefix: &'s str, names: RegisterNames) -> bool {
        let fresh = self.get(prefix).is_none();
        if fresh && self.few.len() < Self::FEW {
            self.few.push((prefix, names));
        } else if fresh {
            self.more.insert(prefix, names);
        }
        fresh
    }
}

#[derive(Clone, Copy)]
struct ScopedLabel {
    id: LabelId,
    /// Where it is defined; `None` while it is only used.
    defined: Option<Span>,
    /// Where it is used first.
    used: Span,
}

/// The scopes of one function under construction.
pub(super) struct Scopes<'s> {
    text: &'s str,
    stack: Vec<Scope<'s>>,
    /// For each label number: the number it turned out to be the same as, and its name.
    labels: Vec<(LabelId, &'s str)>,
    /// Label numbers in the order of their definitions.
    order: Vec<LabelId>,
    pub(super) errors: Vec<Diagnostic>,
}

impl<'s> Scopes<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Scopes {
            text,
            stack: vec![Scope::default()],
            labels: Vec::new(),
            order: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn innermost(&mut self) -> &mut Scope<'s> {
        self.stack.last_mut().expect(OPEN)
    }

    pub(super) fn open(&mut self) {
        self.stack.push(Scope::default());
    }

    /// Closes the innermost scope: labels that were used in it and not defined there belong to the
    /// scope around it.
    pub(super) fn close(&mut self) {
        let Some(scope) = self.stack.pop() else { return };
        for (name, label) in scope.labels {
            if label.defined.is_some() {
                continue;
            }
            match self.innermost().labels.get(name) {
                Some(outer) => {
                    let id = outer.id;
                    self.labels[label.id.0 as usize].0 = id;
                }
                None => {
                    self.innermost().labels.insert(name, label);
                }
            }
        }
    }

    /// Declares a name; `false` if the scope has it already.
    pub(super) fn declare(&mut self, name: &'s str, local: Local) -> bool {
        let scope = self.innermost();
        let (prefix, number) = split_number(name);
        let numbered = number.is_some_and(|n| scope.ranges.get(prefix).is_some_and(|names| n < names.count));
        scope.names.insert(name, local).is_none() && !numbered
    }

    /// Declares `prefix0`, `prefix1`, …; `false` if the scope has the prefix already.
    pub(super) fn declare_range(&mut self, prefix: &'s str, names: RegisterNames) -> bool {
        self.innermost().ranges.insert(prefix, names)
    }

    /// The register or variable of that name.
    pub(super) fn resolve(&self, name: &str) -> Option<Local> {
        let (prefix, number) = split_number(name);
        for scope in self.stack.iter().rev() {
            if let Some(number) = number
                && let Some(names) = scope.ranges.get(prefix)
                && number < names.count
            {
                let width = names.vector.map_or(1, |vector| vector.elements() as u32);
                return Some(Local::Register(Reg(names.first.0 + number * width), names.vector));
            }
            if !scope.names.is_empty()
                && let Some(local) = scope.names.get(name)
            {
                return Some(*local);
            }
        }
        None
    }

    /// The label of that name in the innermost scope, which has it from now on.
    fn entry(&mut self, name: &'s str, span: Span) -> &mut ScopedLabel {
        let next = LabelId(self.labels.len() as u32);
        let scope = self.stack.last_mut().expect(OPEN);
        scope.labels.entry(name).or_insert_with(|| {
            self.labels.push((next, name));
            ScopedLabel { id: next, defined: None, used: span }
        })
    }

    /// Defines a label in the innermost scope.
    pub(super) fn define_label(&mut self, name: &'s str, span: Span) -> LabelId {
        let label = self.entry(name, span);
        let id = label.id;
        match label.defined.replace(span) {
            Some(first) => self.errors.push(
                Diagnostic::new(Code::Label, span, format!("the label `{name}` is defined twice"))
                    .with_related(first, "it is defined here first"),
            ),
            None => self.order.push(id),
        }
        id
    }

    /// Ends the function: gives labels their final numbers, in the order of their definitions.
    pub(super) fn finish(mut self, function: &mut Function) -> Vec<Diagnostic> {
        while self.stack.len() > 1 {
            self.close();
        }
        let mut undefined: Vec<_> = self
            .innermost()
            .labels
            .iter()
            .filter(|(_, label)| label.defined.is_none())
            .map(|(n, l)| (*n, l.used))
            .collect();
        undefined.sort_by_key(|(_, span)| *span);
        for (name, span) in undefined {
            let message = format!("the label `{name}` is not defined in this scope, or one around it");
            self.errors.push(Diagnostic::new(Code::Label, span, message));
        }
        if !self.errors.is_empty() {
            return self.errors;
        }
        let mut renumbering = Renumbering { map: vec![LabelId(0); self.labels.len()] };
        for (number, id) in self.order.iter().enumerate() {
            renumbering.map[id.0 as usize] = LabelId(number as u32);
            function.labels.push(Label { name: self.labels[id.0 as usize].1.into() });
        }
        // A label used in an inner scope stands for one of a scope around it: that one has been
        // given its number, or stands for another in turn.
        for i in (0..self.labels.len()).rev() {
            let mut id = LabelId(i as u32);
            while self.labels[id.0 as usize].0 != id {
                id = self.labels[id.0 as usize].0;
            }
            // Shortens the way for those that come through here.
            self.labels[i].0 = id;
            renumbering.map[i] = renumbering.map[id.0 as usize];
        }
        for statement in function.body.iter_mut().flatten() {
            match &mut statement.kind {
                StatementKind::Instruction(instruction) => instruction.op.visit_mut(&mut renumbering),
                StatementKind::Label(label)
                | StatementKind::CallTargets { label, .. }
                | StatementKind::CallPrototype { label, .. } => renumbering.label(label),
                StatementKind::BranchTargets { label, targets } => {
                    renumbering.label(label);
                    targets.iter_mut().for_each(|label| renumbering.label(label));
                }
                _ => {}
            }
        }
        Vec::new()
    }
}

impl LabelResolver for Scopes<'_> {
    fn label(&mut self, span: Span) -> LabelId {
        self.entry(&self.text[span.range()], span).id
    }
}

struct Renumbering {
    map: Vec<LabelId>,
}

impl VisitorMut for Renumbering {
    fn reg(&mut self, _access: Access, _reg: &mut Reg) {}

    fn label(&mut self, label: &mut LabelId) {
        *label = self.map[label.0 as usize];
    }
}

/// `%r12` as `%r` and 12. A number with leading zeros is none.
fn split_number(name: &str) -> (&str, Option<u32>) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    let canonical = digits == 1 || (digits > 1 && !number.starts_with('0'));
    (prefix, if canonical { number.parse().ok() } else { None })
}
