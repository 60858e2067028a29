//! How alike is what threads keep in memory of their own.
//!
//! Compilers that do not optimise keep everything there. What a load finds is what stores to the same bytes have
//! left, as with registers; but only where all is known that reaches a variable: constant offsets from its
//! address, which nothing else than loads and stores gets to see.

use super::uniformity::writes;
use super::uses::Uses;
use crate::ir::*;
use crate::op::{Access, Level, Op, Visitor};
use std::collections::HashMap;
use std::ops::Range;

/// A place in a local variable.
#[derive(Clone, Copy)]
struct Place {
    variable: VarId,
    offset: i64,
}

/// The local variables of a function of which all is known.
#[derive(Default)]
pub(super) struct Stack {
    /// The level of each byte.
    levels: Vec<Level>,
    /// The bytes that statements store.
    stores: HashMap<u32, Range<usize>>,
    /// The bytes that statements load.
    loads: HashMap<u32, Range<usize>>,
    /// The statements that load.
    pub(super) readers: Vec<u32>,
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
        let mut starts = Vec::with_capacity(known.len());
        for (variable, (known, all)) in function.variables.iter().zip(known.iter().zip(used.counts)) {
            let bytes = variable.bytes().filter(|_| variable.space.base() == Space::Local && *known == all);
            let bytes = bytes.filter(|&bytes| bytes <= 1 << 16).unwrap_or(0) as usize;
            starts.push(stack.levels.len()..stack.levels.len() + bytes);
            stack.levels.resize(stack.levels.len() + bytes, Level::Grid);
        }
        let points =
            |place: &Option<Place>| place.is_some_and(|place| !starts[place.variable.0 as usize].is_empty());
        stack.pointers = pointers.iter().map(points).collect();
        for (statement, place, bytes, store) in accesses {
            let variable = &starts[place.variable.0 as usize];
            let begin = usize::try_from(place.offset).ok().map(|offset| variable.start + offset);
            // What lies outside is nobody's, and what it holds is not known.
            let Some(range) = begin.map(|begin| begin..begin + bytes).filter(|r| r.end <= variable.end)
            else {
                continue;
            };
            if store {
                stack.stores.insert(statement, range);
            } else {
                stack.loads.insert(statement, range);
                stack.readers.push(statement);
            }
        }
        stack
    }

    /// Whether a register points to a variable that is known, so that it says nothing about what is there.
    pub(super) fn is_pointer(&self, reg: Reg) -> bool {
        self.pointers.get(reg.0 as usize) == Some(&true)
    }

    /// The level of what a statement loads, if it is known here.
    pub(super) fn loaded(&self, statement: u32) -> Option<Level> {
        let bytes = self.loads.get(&statement)?;
        Some(self.levels[bytes.clone()].iter().copied().max().unwrap_or_default())
    }

    /// Whether a statement stores what is less alike than what was there.
    pub(super) fn store(&mut self, statement: u32, level: Level) -> bool {
        let Some(bytes) = self.stores.get(&statement) else { return false };
        let held = &mut self.levels[bytes.clone()];
        let worse = held.iter().any(|held| *held < level);
        held.iter_mut().for_each(|held| *held = level.max(*held));
        worse
    }
}

/// What is understood of the uses of local variables.
struct Found {
    /// Loads and stores: the statement, the place, the number of bytes, whether it stores.
    accesses: Vec<(u32, Place, usize, bool)>,
    /// For each variable, how many mentions of it or of its pointers are understood.
    known: Vec<u32>,
    /// The registers that hold a place and nothing else.
    pointers: Vec<Option<Place>>,
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
                    (Dsts::One(d), Srcs::One(a)) => (found.place(a).map(|place| (*d, place)), None),
                    _ => (None, None),
                },
                Op::Cvta(op) => (found.place(&op.a).map(|place| (op.d.0, place)), None),
                Op::Ld(op) => (None, found.base(&op.address).map(|place| (place, op.d.len(), op.ty, false))),
                Op::St(op) => {
                    (None, found.base(&op.address).map(|place| (place, op.a.as_slice().len(), op.ty, true)))
                }
                // What else gets a pointer makes of it what is not followed.
                _ => (None, None),
            };
            if let Some((reg, place)) = derived.filter(|(reg, _)| writes[reg.0 as usize] == 1) {
                found.pointers[reg.0 as usize] = Some(place);
                found.known[place.variable.0 as usize] += 1;
            }
            if let Some((place, elements, ty, store)) = access {
                found.accesses.push((i, place, elements * ty.bytes() as usize, store));
                found.known[place.variable.0 as usize] += 1;
            }
        }
        found
    }

    fn place(&self, src: &Src) -> Option<Place> {
        match src {
            Src::Reg(reg) => self.pointers[reg.0 as usize],
            Src::Symbol(address) => match address.symbol {
                Symbol::Local(variable) => Some(Place { variable, offset: address.offset }),
                Symbol::Global(_) => None,
            },
            Src::Not(_) | Src::Imm(_) | Src::Special(_) | Src::Sink => None,
        }
    }

    fn base(&self, address: &Address) -> Option<Place> {
        let place = match &address.base {
            AddressBase::Reg(reg) => self.pointers[reg.0 as usize]?,
            AddressBase::Symbol(Symbol::Local(variable)) => Place { variable: *variable, offset: 0 },
            AddressBase::Symbol(Symbol::Global(_)) | AddressBase::Absolute => return None,
        };
        Some(Place { offset: place.offset.checked_add(address.offset)?, ..place })
    }
}

/// Counts what mentions each variable, or a pointer to it.
struct Mentions<'a> {
    pointers: &'a [Option<Place>],
    counts: Vec<u32>,
}

impl Visitor for Mentions<'_> {
    fn reg(&mut self, access: Access, reg: Reg) {
        if let Some(place) = self.pointers[reg.0 as usize].filter(|_| access != Access::Write) {
            self.counts[place.variable.0 as usize] += 1;
        }
    }

    fn symbol(&mut self, symbol: &Symbol) {
        if let Symbol::Local(variable) = symbol {
            self.counts[variable.0 as usize] += 1;
        }
    }
}
