//! Tensor memory and the fifth generation of tensor cores.
//!
//! Tensor memory has its own 32-bit addresses; only these instructions access it.

mod memory;
mod product;

pub use memory::*;
pub use product::*;

use super::modifiers;
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// The number of blocks of a pair that take part.
    pub enum CtaGroup {
        /// One.
        One = "cta_group::1",
        /// Both.
        Two = "cta_group::2",
    }
}

/// The targets that have tensor memory.
const TENSOR_MEMORY: Requirement = Requirement::family(&[100, 110]);

fn tcgen05_needs(needs: &mut Needs, feature: Feature) {
    needs.targets(feature, (8, 6), TENSOR_MEMORY);
}

/// An address in tensor memory: a 32-bit register, with an offset.
fn tensor_memory(check: &mut Check<'_>, name: &str, address: &Address) {
    match &address.base {
        AddressBase::Reg(reg) => check.reg(name, *reg, Type::U32),
        _ => check.report(
            Code::OperandForm,
            format!("the address `{name}` in tensor memory must be in a 32-bit register"),
        ),
    }
}

/// A descriptor of a matrix in shared memory.
fn descriptor(check: &mut Check<'_>, name: &str, src: &Src) {
    check.src(name, src, Type::U64);
}
