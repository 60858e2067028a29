//! Asynchronous bulk copies and reductions: between memories, of tensors, with their groups and descriptors.

mod linear;
mod tensor;
mod tensor_map;

pub use linear::*;
pub use tensor::*;
pub use tensor_map::*;

use super::modifiers;
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// How a bulk copy signals its completion.
    pub enum Completion {
        /// It counts its bytes at a barrier.
        Mbarrier = "mbarrier::complete_tx::bytes",
        /// It belongs to a group that the thread waits for.
        BulkGroup = "bulk_group",
    }

    /// A copy that reaches several blocks of the cluster.
    pub enum Multicast {
        /// The blocks in a mask of 16 bits.
        Cluster = "multicast::cluster",
        /// The blocks in a mask of 16 bits, specified explicitly.
        Cluster16 = "multicast::cluster::16b",
    }

    /// Reduction of each element of the source into the destination.
    pub enum BulkReduction {
        /// Sum.
        Add = "add",
        /// Smaller value.
        Min = "min",
        /// Larger value.
        Max = "max",
        /// Increment, modulo.
        Inc = "inc",
        /// Decrement, modulo.
        Dec = "dec",
        /// Bitwise conjunction.
        And = "and",
        /// Bitwise disjunction.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
    }

    /// Cache level of a prefetch.
    pub enum BulkLevel {
        /// The second level.
        L2 = "L2",
    }
}

/// Variants of Blackwell that have tensor memory.
const DATACENTER_BLACKWELL: Requirement = Requirement::family(&[100, 110]);

/// What `.multicast` needs.
fn multicast_needs(needs: &mut Needs, multicast: Option<Multicast>) {
    needs.version_if(multicast == Some(Multicast::Cluster16), "`.multicast::cluster::16b`", 9, 4);
}

/// The mask of the blocks that a multicast reaches: 16 bits.
fn cta_mask(check: &mut Check<'_>, mask: Option<&Src>) {
    check.src("cta_mask", mask, Type::U16);
    check.imm_range("cta_mask", mask, 0..=0xffff);
}

/// The barrier of a copy is in shared memory, whichever qualifier the destination has.
fn completion_barrier(check: &mut Check<'_>, mbar: Option<&Address>) {
    check.wide_address("mbar", mbar, Some(Space::Shared));
}

/// `completion` must be what the direction of the copy asks for.
fn completion_is(check: &mut Check<'_>, completion: Completion, wanted: Completion) {
    if completion != wanted {
        let message = format!("a copy in this direction completes by `{wanted}`, not by `{completion}`");
        check.report(Code::ModifierCombination, message);
    }
}
