//! Tensor memory and the fifth generation of tensor cores.
//!
//! Tensor memory is addressed by 32-bit registers of its own; nothing but these instructions
//! reaches it.

mod memory;
mod product;

pub use memory::*;
pub use product::*;

use super::modifiers;
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// How many blocks of a pair take part.
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
