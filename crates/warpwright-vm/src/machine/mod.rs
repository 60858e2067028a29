//! Execution of decoded instructions: one warp at a time, all its lanes at once.
//!
//! [`Machine`] is the state that an instruction accesses: the registers of the running warp, the lanes that execute
//! it, the block with its shared memory and barriers, and the launch with everything that blocks share. A handler
//! computes for [`Machine::mask`] and returns a [`Step`] that says where to continue.

mod barrier;
mod block;
mod cluster;
mod copies;
mod meet;
mod registers;
mod room;
mod step;
mod tensor_memory;
mod warp;
mod watch;

pub(crate) use barrier::{Arrival, Barrier, CLUSTER_BARRIER};
pub(crate) use block::Block;
pub(crate) use cluster::Cluster;
pub(crate) use copies::Copy;
pub(crate) use registers::{
    Base, Cell, FULL, LANES, LanesOf, Registers, Row32, Row64, lanewise, map1, map2, map3,
};
pub(crate) use room::{MAX_HELD, MAX_LOCAL, of_block as room_of_block, too_much};
pub(crate) use step::{BlockStatus, Counts, Worker};
pub(crate) use tensor_memory::{
    TENSOR_LANES, TensorMemory, TensorProgress, TensorUse, groups_of, is_column_count,
};
pub(crate) use warp::{Awaited, Frame, NONE, Park, Resume, Warp};
pub(crate) use watch::{Around, Turn};

use crate::check::RawPlace;
use crate::launch::Launch;
use crate::memory::AccessSpec;
use crate::native::Compiled;
use crate::simd::Handler;

/// No guard.
pub(crate) const UNGUARDED: u32 = u32::MAX;

/// Number of times that a warp polls memory in vain before it gives way.
const POLLS: u32 = 64;

/// A decoded instruction. The meaning of its operands is up to the decoder of a family and its handlers; by
/// convention `d` is the destination row, and `a`, `b` and `c` are source rows.
#[derive(Clone, Copy)]
pub(crate) struct Inst {
    pub(crate) run: Handler,
    /// The lanes that execute it, as a predicate operand, or [`UNGUARDED`].
    pub(crate) guard: u32,
    pub(crate) d: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
    /// An index into a table of the code, or another small number.
    pub(crate) x: u32,
    /// A constant.
    pub(crate) imm: u64,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Step {
    /// To the next instruction.
    Next,
    /// To another instruction, with the same lanes.
    Goto(u32),
    /// The paths of the warp have changed: pick one.
    Reload,
    /// The launch is over: a trap.
    Stop,
}

/// What executes: a worker with the block and the warp that it runs.
pub(crate) struct Machine<'a> {
    /// What all blocks share.
    pub(crate) launch: &'a Launch,
    /// The registers of the warp that runs.
    pub(crate) registers: Registers,
    /// The lanes that execute the instruction: those of the path for which the guard holds.
    pub(crate) mask: u32,
    /// The lanes of the path.
    pub(crate) active: u32,
    /// The instruction.
    pub(crate) pc: u32,
    /// The warp that runs; its registers are in `registers`.
    pub(crate) warp: Box<Warp>,
    /// Which warp of the block that is.
    pub(crate) warp_index: usize,
    /// The block that runs; the place of the warp that runs is empty.
    pub(crate) block: Box<Block>,
    /// Its cluster; the place of the block that runs is empty.
    pub(crate) cluster: Cluster,
    /// Instructions that the warp may still execute in this turn.
    pub(crate) fuel: u32,
    /// More of it, that is handed out one by one while undefined values are followed.
    pub(crate) held: u32,
    /// The warp ended its turn by itself, since it waits for something.
    pub(crate) gave_way: bool,
    /// What belongs to the host thread.
    pub(crate) worker: Worker,
    /// The native code that ran last, and its function: for paths of some lanes, and of all of them.
    pub(crate) native: [Option<(u32, &'a Compiled)>; 2],
}

impl Machine<'_> {
    /// For an instruction that needs the lanes of `need` together: returns `None` if they are (or if they never will
    /// be, which has been reported); otherwise they have been parked.
    ///
    /// Lanes that have exited are not waited for.
    pub(crate) fn converge(&mut self, need: u32, key: u32) -> Option<Step> {
        let path = self.warp.paths[self.warp.current];
        match path.resume {
            Some(Resume::Forced) => {
                self.take_resume();
                return None;
            }
            // They have been together, and at the barrier since.
            Some(Resume::Passed { .. }) => return None,
            _ => {}
        }
        if need & self.warp.live & !self.mask == 0 {
            return None;
        }
        let pc = self.pc;
        self.park(Park::Converge { need, key });
        if need & self.warp.live & !self.warp.gather(pc) == 0 {
            self.warp.paths[self.warp.current].park = Park::Ready;
        }
        Some(Step::Reload)
    }

    /// Whether all lanes of a whole warp execute the instruction, and have not come back to it.
    pub(crate) fn is_whole(&self) -> bool {
        self.mask == FULL && self.warp.paths[self.warp.current].resume.is_none()
    }

    /// Parks the lanes that execute the instruction.
    pub(crate) fn park(&mut self, park: Park) {
        self.warp.park(self.mask, self.pc, park);
        self.not_yet();
    }

    /// The lanes that execute the instruction will execute it again: it counts once.
    pub(crate) fn not_yet(&mut self) {
        let counts = &mut self.worker.counts[self.pc as usize];
        counts.warps -= 1;
        counts.lanes -= u64::from(self.mask.count_ones());
    }

    /// What the instruction was parked for has come about; said once.
    pub(crate) fn take_resume(&mut self) -> Option<Resume> {
        self.warp.paths[self.warp.current].resume.take()
    }

    /// Ends the turn of the warp: it waits for something that others do.
    pub(crate) fn give_way(&mut self) {
        self.end_turn();
        self.gave_way = true;
    }

    /// Ends the turn of the warp, which has waited for something asynchronous. That takes no time here: without this, a
    /// warp could start many such operations before others have seen the end of the first. Seeds give turns as they like.
    pub(crate) fn let_others_catch_up(&mut self) {
        if self.worker.random.is_none() {
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        self.warp.clock -= u64::from(self.fuel);
        (self.fuel, self.held) = (0, 0);
    }

    /// The warp has polled memory that other threads change, and has changed it or not. A warp that keeps polling
    /// gives way to the others, and to its own lanes that wait at a reconvergence point.
    #[inline(always)]
    pub(crate) fn polled(&mut self, spec: AccessSpec, addresses: &Row64, changed: bool) {
        self.worker.progress |= changed;
        if changed {
            self.warp.polls = 0;
            return;
        }
        let address = addresses[self.mask.trailing_zeros() as usize % LANES];
        self.warp.polled = Some(RawPlace { space: spec.space, address, bytes: spec.bytes, frame: None });
        self.warp.polls += 1;
        if self.warp.polls.is_multiple_of(POLLS) {
            self.give_way();
        }
    }

    /// The thread of a lane of the warp that runs, by its number in the block.
    pub(crate) fn thread(&self, lane: usize) -> u32 {
        (self.warp_index * LANES + lane) as u32
    }
}
