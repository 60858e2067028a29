//! `tcgen05`: tensor memory, and the fifth generation of tensor cores.
//!
//! Everything is done when the instruction executes, in the order of the program. What `tcgen05.mma` and `tcgen05.cp`
//! read of shared memory counts for the checks as the reads of an asynchronous agent, which may come at any time until
//! an mbarrier that a `tcgen05.commit` arrives at has been waited for. Until then tensor memory that it uses may not be
//! loaded or stored; and what a warp stores or loads may not be used by others before its `tcgen05.wait`, nor unless
//! something orders the two. Columns that are not allocated or not freed are found, and uses of words that nobody wrote:
//! loads, copies and shifts pass those on.
//! A missing `tcgen05.fence` is not found.
//!
//! | file | contents |
//! |---|---|
//! | `memory` | allocation, loads and stores, and how they may reach tensor memory |
//! | `copy` | copies from shared memory, shifts, commits |
//! | `descriptor` | the instruction descriptor of a product: its rules |
//! | `datapath` | where the rows and columns of a product stand in tensor memory |
//! | `product` | products |
//! | `tile` | the arithmetic of those whose k is one block of additions |
//! | `uses` | what orders uses of tensor memory |

mod copy;
mod datapath;
mod descriptor;
mod memory;
mod product;
mod tile;
mod uses;

pub(crate) use product::TensorProduct;

use crate::check::TensorWait;
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{FULL, Machine, NONE, Step};
use warpwright_ptx::op::family::Tcgen05 as Op;
use warpwright_ptx::op::tcgen05::CtaGroup;

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Tcgen05Alloc(op) => memory::alloc(op, d),
        Op::Tcgen05Dealloc(op) => memory::dealloc(op, d),
        Op::Tcgen05RelinquishAllocPermit(_) => d.emit_fallible(|m| {
            m.whole_warp()?;
            m.block.tensor.relinquish();
            Ok(())
        }),
        Op::Tcgen05Ld(op) => memory::load(op, d),
        Op::Tcgen05LdRed(op) => memory::load_reduced(op, d),
        Op::Tcgen05St(op) => memory::store(op, d),
        Op::Tcgen05WaitLd(_) => d.emit_fallible(|m| m.wait_for_tensor(TensorWait::Loads)),
        Op::Tcgen05WaitSt(_) => d.emit_fallible(|m| m.wait_for_tensor(TensorWait::Stores)),
        Op::Tcgen05Cp(op) => copy::copy(op, d),
        Op::Tcgen05Shift(op) => copy::shift(op, d),
        Op::Tcgen05Commit(op) => copy::commit(op, d),
        Op::Tcgen05FenceBefore(_) => d.emit_nothing(),
        Op::Tcgen05FenceAfter(_) => d.emit_fallible(|m| {
            m.fenced_tensor_memory();
            Ok(())
        }),
        Op::Tcgen05Mma(op) => return product::product(op, d),
        Op::Tcgen05MmaWs(op) => return product::stationary(op, d),
    }
    true
}

impl Machine<'_> {
    /// `tcgen05.fence::after_thread_sync`: what was observed by relaxed reads orders the uses of tensor memory.
    fn fenced_tensor_memory(&mut self) {
        if std::mem::take(&mut self.warp.observed) {
            self.cluster.tensor.settle();
        }
    }

    /// Waits until the whole warp executes the instruction.
    fn whole_warp(&mut self) -> Result<(), Step> {
        self.converge(FULL, NONE).map_or(Ok(()), Err)
    }

    /// The warp waits for its loads, or for its stores.
    fn wait_for_tensor(&mut self, wait: TensorWait) -> Result<(), Step> {
        self.whole_warp()?;
        self.cluster.tensor.waited((self.block.rank, self.warp_index as u32), wait);
        Ok(())
    }

    /// The ranks of the blocks whose tensor memory an instruction accesses: the own one, or the pair's.
    fn ranks_of(&mut self, group: CtaGroup) -> Result<Vec<u32>, Step> {
        let own = self.block.rank;
        match group {
            CtaGroup::One => Ok(vec![own]),
            CtaGroup::Two if own | 1 < self.cluster.blocks.len() as u32 => Ok(vec![own & !1, own | 1]),
            CtaGroup::Two => {
                let message =
                    "`.cta_group::2` in a block without a peer: launch clusters of an even number of blocks";
                Err(self.trap(TrapKind::BadOperand, message.to_owned()))
            }
        }
    }
}
