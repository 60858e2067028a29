//! The registers that each statement reads and writes, in a flat layout for the analyses.

use crate::ir::*;
use crate::op::{Access, Visitor};

/// One use of a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub reg: Reg,
    pub access: Access,
}

/// What a statement uses, by the statement's index in the body.
#[derive(Debug, Default)]
pub(super) struct Uses {
    starts: Vec<u32>,
    list: Vec<Use>,
    /// Indices of labels, variables and registers that do not exist in the function.
    pub invalid: Vec<(u32, Invalid)>,
    /// Special registers with the statements that read them, in the order of the text.
    pub specials: Vec<(u32, Special)>,
}

/// An index that stands for nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Invalid {
    Register(u32),
    Variable(u32),
    Label(u32),
}

impl Uses {
    pub(super) fn new(function: &Function) -> Self {
        let statements = function.statements();
        let mut uses = Uses {
            starts: Vec::with_capacity(statements.len() + 1),
            list: Vec::with_capacity(3 * statements.len()),
            ..Uses::default()
        };
        let mut collect = Collect {
            uses: &mut uses,
            statement: 0,
            registers: function.register_count(),
            variables: function.variables.len() as u32,
            labels: function.labels.len() as u32,
        };
        for (i, statement) in statements.iter().enumerate() {
            collect.uses.starts.push(collect.uses.list.len() as u32);
            collect.statement = i as u32;
            match &statement.kind {
                StatementKind::Instruction(instruction) => {
                    if let Some(guard) = instruction.guard {
                        collect.reg(Access::Read, guard.reg);
                    }
                    instruction.op.visit(&mut collect);
                }
                StatementKind::Label(label)
                | StatementKind::CallTargets { label, .. }
                | StatementKind::CallPrototype { label, .. } => collect.label(*label),
                StatementKind::BranchTargets { label, targets } => {
                    collect.label(*label);
                    targets.iter().for_each(|&target| collect.label(target));
                }
                StatementKind::Variable(id) => collect.variable(*id),
                _ => {}
            }
        }
        uses.starts.push(uses.list.len() as u32);
        uses
    }

    /// The uses of a statement, the guard first.
    pub(super) fn of(&self, statement: usize) -> &[Use] {
        &self.list[self.starts[statement] as usize..self.starts[statement + 1] as usize]
    }

    /// All uses, with the statement of each.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, Use)> + Clone + '_ {
        (0..self.starts.len() - 1).flat_map(|i| self.of(i).iter().map(move |&used| (i as u32, used)))
    }
}

struct Collect<'u> {
    uses: &'u mut Uses,
    statement: u32,
    registers: u32,
    variables: u32,
    labels: u32,
}

impl Collect<'_> {
    fn variable(&mut self, id: VarId) {
        if id.0 >= self.variables {
            self.uses.invalid.push((self.statement, Invalid::Variable(id.0)));
        }
    }
}

impl Visitor for Collect<'_> {
    fn reg(&mut self, access: Access, reg: Reg) {
        if reg.0 >= self.registers {
            self.uses.invalid.push((self.statement, Invalid::Register(reg.0)));
        }
        self.uses.list.push(Use { reg, access });
    }

    fn symbol(&mut self, symbol: &Symbol) {
        if let Symbol::Local(id) = symbol {
            self.variable(*id);
        }
    }

    fn label(&mut self, label: LabelId) {
        if label.0 >= self.labels {
            self.uses.invalid.push((self.statement, Invalid::Label(label.0)));
        }
    }

    fn special(&mut self, special: Special) {
        self.uses.specials.push((self.statement, special));
    }
}
