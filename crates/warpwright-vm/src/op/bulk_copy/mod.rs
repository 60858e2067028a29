//! Bulk copies, which one thread issues for many bytes.
//!
//! They are done when they are issued, which is one of the orders that a device may choose. The race check has them as
//! accesses of the thread's agents, which nobody may rely on before the mbarrier's phase is over, or the thread has
//! waited for their group. An access that is not allowed is reported, and what completes completes without it.

mod linear;
mod prefetch;
mod run;
mod tensor;
mod tensor_map;
mod walk;

pub(super) use linear::in_blocks;

use crate::check::race::{Agent, GroupsOf};
use crate::decode::Decoder;
use crate::memory::Order;
use warpwright_ptx::ir::{Scope, Semantics};
use warpwright_ptx::op::bulk_copy::Completion;
use warpwright_ptx::op::family::BulkCopy as Op;

/// What addresses and sizes of bulk copies are multiples of, in bytes.
const UNIT: u32 = 16;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    d.code.async_proxy |= !matches!(op, Op::CpAsyncBulkPrefetch(_) | Op::CpAsyncBulkPrefetchTensor(_));
    match op {
        Op::CpAsyncBulk(op) => linear::copy(d, op),
        Op::CpReduceAsyncBulk(op) => linear::reduce(d, op),
        Op::CpAsyncBulkPrefetch(op) => prefetch::decode(d, op),
        Op::CpAsyncBulkCommitGroup(_) => d.emit_fallible(|m| {
            m.committed_groups(GroupsOf::BulkCopies);
            Ok(())
        }),
        Op::CpAsyncBulkWaitGroup(op) => {
            let (pending, read) = (op.n.imm().and_then(|imm| imm.bits()).unwrap_or(0) as u32, op.read);
            d.emit_fallible(move |m| {
                m.waited_for_groups(GroupsOf::BulkCopies, pending, read);
                Ok(())
            });
        }
        Op::CpAsyncBulkTensor(op) => return tensor::copy(d, op),
        Op::CpReduceAsyncBulkTensor(op) => tensor::reduce(d, op),
        Op::CpAsyncBulkPrefetchTensor(op) => tensor::prefetch(d, op),
        Op::TensormapReplace(op) => tensor_map::replace(d, op),
        Op::TensormapCpFenceproxy(op) => tensor_map::publish(d, op),
        Op::MultimemCpAsyncBulk(op) => linear::copy_to_multimem(d, op),
        Op::MultimemCpReduceAsyncBulk(op) => linear::reduce_multimem(d, op),
    }
    true
}

/// The agents that read and write for a copy that completes so.
fn agents(completion: Completion) -> [Agent; 2] {
    match completion {
        Completion::Mbarrier => [Agent::Counted; 2],
        Completion::BulkGroup => [Agent::GroupReads, Agent::GroupWrites],
    }
}

/// How a copy accesses memory: weakly, where nothing is said.
fn order(semantics: Option<Semantics>, scope: Option<Scope>) -> Order {
    crate::op::memory::order(semantics, scope, false)
}
