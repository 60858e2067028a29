//! Uniformity of values that threads keep in local memory.
//!
//! Compilers that do not optimise keep all variables there. As with registers, a load returns what stores to the same
//! bytes have written. This is used only if all accesses to a variable are known: constant offsets from its address,
//! which only loads and stores use.

use super::uniformity::writes;
use super::uses::Uses;
use crate::ir::*;
use crate::op::{Access, Level, Op, Visitor};
use std::collections::HashMap;

/// A byte offset in a local variable.
#[derive(Clone, Copy)]
struct StackLocation {
    variable: VarId,
    offset: i64,
}

/// The fully known local variables of a function, by byte.
#[derive(Default)]
pub(super) struct Stack {
    /// The level of each byte that is loaded or stored.
    levels: Vec<Level>,
    /// The statements that load each of them.
    readers: Vec<Vec<u32>>,
    /// The bytes that statements load.
    loads: HashMap<u32, Vec<usize>>,
    /// The bytes that statements store.
    stores: HashMap<u32, Vec<usize>>,
    /// For each register whether it points to such a variable; empty where there is none.
    pointers: Vec<bool>,
}

impl Stack {
    pub(super) fn new(function: &Function, uses: &Uses) -> Self {
        let mut stack = Stack::default();
        if !function.variables.iter().any(|variable| variable.space.base() == Space::Local) {
            return stack;
        }
        let Found { accesses, known, pointers } = Found::new(function, uses);
        let mut used = Mentions { pointers: &pointers, counts: vec![0; known.len()] };
        function.instructions().for_each(|instruction| instruction.op.visit(&mut used));
        let is_known = |location: &StackLocation| {
            let number = location.variable.0 as usize;
            let local = function.variable(location.variable).space.base() == Space::Local;
            local && known[number] == used.counts[number]
        };
        stack.pointers = pointers.iter().map(|location| location.as_ref().is_some_and(is_known)).collect();
        let mut bytes = HashMap::new();
        for (statement, location, count, store) in accesses {
            // What lies outside of the variable is nobody's, and what it holds is not known.
            let end =
                function.variable(location.variable).bytes().and_then(|bytes| i64::try_from(bytes).ok());
            if !is_known(&location)
                || location.offset < 0
                || end.is_none_or(|end| location.offset > end - count)
            {
                continue;
            }
            let range = (location.offset..location.offset + count).map(|offset| {
                *bytes.entry((location.variable, offset)).or_insert_with(|| {
                    stack.levels.push(Level::Grid);
                    stack.readers.push(Vec::new());
                    stack.levels.len() - 1
                })
            });
            let range: Vec<usize> = range.collect();
            if store {
                stack.stores.insert(statement, range);
            } else {
                range.iter().for_each(|&byte| stack.readers[byte].push(statement));
                stack.loads.insert(statement, range);
            }
        }
        stack
    }

    /// Whether a register points to a fully known variable, so its level says nothing about the contents.
    pub(super) fn is_pointer(&self, reg: Reg) -> bool {
        self.pointers.get(reg.0 as usize) == Some(&true)
    }

    /// The level of what a statement loads, if it is known here.
    pub(super) fn loaded(&self, statement: u32) -> Option<Level> {
        let bytes = self.loads.get(&statement)?;
        bytes.iter().map(|&byte| self.levels[byte]).max()
    }

    /// Notes the level that a statement stores, and passes on the loads of bytes whose level has become worse.
    pub(super) fn store(&mut self, statement: u32, level: Level, raised: &mut dyn FnMut(&[u32])) {
        for &byte in self.stores.get(&statement).into_iter().flatten() {
            if self.levels[byte] < level {
                self.levels[byte] = level;
                raised(&self.readers[byte]);
            }
        }
    }
}

/// What is understood of the uses of local variables.
struct Found {
    /// Loads and stores: the statement, the location, the number of bytes, whether it stores.
    accesses: Vec<(u32, StackLocation, i64, bool)>,
    /// For each variable, how many mentions of it or of its pointers are understood.
    known: Vec<u32>,
    /// The registers that hold one location and nothing else.
    pointers: Vec<Option<StackLocation>>,
}

impl Found {
    fn new(function: &Function, uses: &Uses) -> Self {
        let mut found = Found {
            accesses: Vec::new(),
            known: vec![0; function.variables.len()],
            pointers: vec![None; function.register_count() as usize],
        };
        let writes = writes(function, uses);
        for (i, statement) in (0..).zip(function.statements()) {
            let StatementKind::Instruction(instruction) = &statement.kind else { continue };
            let (derived, access) = match &instruction.op {
                Op::Mov(op) => match (&op.d, &op.a) {
                    (Dsts::One(d), Srcs::One(a)) => (found.location(a).map(|location| (*d, location)), None),
                    _ => (None, None),
                },
                Op::Cvta(op) => (found.location(&op.a).map(|location| (op.d.0, location)), None),
                Op::Ld(op) => {
                    (None, found.base(&op.address).map(|location| (location, op.d.len(), op.ty, false)))
                }
                Op::St(op) => (
                    None,
                    found.base(&op.address).map(|location| (location, op.a.as_slice().len(), op.ty, true)),
                ),
                // What else gets a pointer makes of it what is not followed.
                _ => (None, None),
            };
            if let Some((reg, location)) = derived.filter(|(reg, _)| writes[reg.0 as usize] == 1) {
                found.pointers[reg.0 as usize] = Some(location);
                found.known[location.variable.0 as usize] += 1;
            }
            if let Some((location, elements, ty, store)) = access {
                found.accesses.push((i, location, elements as i64 * i64::from(ty.bytes()), store));
                found.known[location.variable.0 as usize] += 1;
            }
        }
        found
    }

    fn location(&self, src: &Src) -> Option<StackLocation> {
        match src {
            Src::Reg(reg) => self.pointers[reg.0 as usize],
            Src::Symbol(address) => match address.symbol {
                Symbol::Local(variable) => Some(StackLocation { variable, offset: address.offset }),
                Symbol::Global(_) => None,
            },
            Src::Not(_) | Src::Sum(..) | Src::Imm(_) | Src::Special(_) | Src::Element(_) | Src::Sink => None,
        }
    }

    fn base(&self, address: &Address) -> Option<StackLocation> {
        let location = match &address.base {
            AddressBase::Reg(reg) => self.pointers[reg.0 as usize]?,
            AddressBase::Symbol(Symbol::Local(variable)) => StackLocation { variable: *variable, offset: 0 },
            AddressBase::Symbol(Symbol::Global(_)) | AddressBase::Element(_) | AddressBase::Absolute => {
                return None;
            }
        };
        Some(StackLocation { offset: location.offset.checked_add(address.offset)?, ..location })
    }
}

/// Counts what mentions each variable, or a pointer to it.
struct Mentions<'a> {
    pointers: &'a [Option<StackLocation>],
    counts: Vec<u32>,
}

impl Visitor for Mentions<'_> {
    fn reg(&mut self, access: Access, reg: Reg) {
        if let Some(location) = self.pointers[reg.0 as usize].filter(|_| access != Access::Write) {
            self.counts[location.variable.0 as usize] += 1;
        }
    }

    fn symbol(&mut self, symbol: &Symbol) {
        if let Symbol::Local(variable) = symbol {
            self.counts[variable.0 as usize] += 1;
        }
    }
}
