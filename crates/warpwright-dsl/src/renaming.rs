//! Numbering of a function's registers: those of a class are numbered consecutively, in the order of the text.

use super::emit;
use super::state::{Def, Value};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::{Access, VisitorMut};

/// The classes of registers: declared type and name.
pub(super) const CLASSES: [(Type, &str); 6] = [
    (Type::Pred, "%p"),
    (Type::B16, "%h"),
    (Type::B32, "%r"),
    (Type::B64, "%rd"),
    (Type::F32, "%f"),
    (Type::F64, "%fd"),
];

pub(super) fn class(ty: Type) -> usize {
    match emit::register_type(ty) {
        Type::Pred => 0,
        Type::B16 => 1,
        Type::B32 => 2,
        Type::B64 => 3,
        Type::F32 => 4,
        _ => 5,
    }
}

/// What is known of the register of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// It has none.
    Nowhere,
    /// That of another value.
    Like(Reg),
    /// The next of a class, once it appears.
    Next(u8),
    /// This.
    Register(Reg),
}

/// The registers of a function. Those of a class have numbers that follow one another.
pub(super) struct Registers {
    /// By class: how many there are.
    pub(super) counts: [u32; 6],
    /// By class: the next that has no number yet.
    pub(super) next: [u32; 6],
    /// By value.
    pub(super) names: Vec<Named>,
}

pub(super) struct Renaming<'a> {
    pub(super) values: &'a [Value],
    pub(super) registers: Registers,
    pub(super) labels: &'a [LabelId],
    pub(super) addresses: &'a [Address],
}

impl VisitorMut for Renaming<'_> {
    fn reg(&mut self, _: Access, reg: &mut Reg) {
        let slot = &mut self.registers.names[reg.0 as usize];
        match *slot {
            Named::Register(known) => *reg = known,
            Named::Next(class) => {
                let next = &mut self.registers.next[class as usize];
                *reg = Reg(*next);
                *slot = Named::Register(*reg);
                *next += 1;
            }
            Named::Like(mut root) => {
                self.reg(Access::Read, &mut root);
                self.registers.names[reg.0 as usize] = Named::Register(root);
                *reg = root;
            }
            Named::Nowhere => {}
        }
    }

    fn label(&mut self, label: &mut LabelId) {
        *label = self.labels[label.0 as usize];
    }

    fn address(&mut self, address: &mut Address) {
        let AddressBase::Reg(reg) = address.base else { return };
        if let Def::Resolved(id) = self.values[reg.0 as usize].def {
            let resolved = &self.addresses[id as usize];
            address.base = resolved.base.clone();
            address.offset = address.offset.wrapping_add(resolved.offset);
        }
        if let AddressBase::Reg(reg) = &mut address.base {
            self.reg(Access::Read, reg);
        }
    }
}
