//! A resident block: its warps and its barriers. Its shared memory is its cluster's.

use super::{Barrier, LANES, TensorMemory, Warp};
use crate::check::BlockChecks;
use crate::launch::Launch;
use crate::locality::BlockSectors;
use crate::op::special::WarpPlace;
use std::mem::take;

/// Barriers of a block.
const BARRIERS: usize = super::CLUSTER_BARRIER as usize;

/// The initial contents of local memory: not a number, and not a small integer.
const UNWRITTEN: u32 = 0xffff_dead;

/// A resident block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Its number in the grid.
    pub(crate) number: u64,
    /// `%ctaid`.
    pub(crate) index: [u32; 3],
    /// Its place in its cluster.
    pub(crate) rank: u32,
    /// Where its part of the cluster's shared memory begins, in bytes.
    pub(crate) shared_base: u64,
    #[expect(clippy::vec_box, reason = "only an address changes where another one comes to run")]
    pub(crate) warps: Vec<Box<Warp>>,
    /// How many of them have lanes that have not exited.
    pub(crate) running: u32,
    /// What the checks know.
    pub(crate) checks: BlockChecks,
    pub(crate) barriers: [Barrier; BARRIERS],
    /// A bit for each of them at which a thread has arrived.
    pub(super) barriers_used: u32,
    /// Its tensor memory.
    pub(crate) tensor: TensorMemory,
    /// Instructions that its warps have executed: its clock.
    pub(crate) clock: u64,
    /// The sectors that it has loaded, where these are counted.
    pub(crate) sectors: BlockSectors,
    /// For which kernel, and which rank, the constants stand in the registers.
    prepared: Option<(u32, u32)>,
}

impl Block {
    /// Makes it the block of that number and rank, at its beginning.
    pub(crate) fn start(&mut self, (number, rank): (u64, u32), launch: &Launch) {
        let (shape, kernel) = (&launch.shape, launch.kernel);
        let function = &launch.code.functions[kernel as usize];
        let threads = shape.threads();
        self.number = number;
        self.rank = rank;
        self.shared_base = shape.shared_bytes() * u64::from(rank);
        self.index = shape.block_index(number);
        self.clock = 0;
        self.sectors.clear();
        self.tensor.clear();
        for barrier in &mut self.barriers {
            barrier.reset();
        }
        self.barriers_used = 0;
        let mut warps = take(&mut self.warps);
        warps.resize_with(threads.div_ceil(LANES as u32) as usize, Box::default);
        for (index, warp) in warps.iter_mut().enumerate() {
            let lanes = (threads - (index * LANES) as u32).min(LANES as u32);
            warp.start(function.entry, kernel, u32::MAX >> (LANES as u32 - lanes));
            let place = WarpPlace { launch, block: self, warp: index };
            function.start(&mut warp.registers, place, self.prepared == Some((kernel, rank)));
            function.clear_unassigned(&mut warp.registers);
            if warp.local.len() < function.local_words() {
                warp.local.resize(function.local_words(), [UNWRITTEN; LANES]);
            }
        }
        self.running = warps.len() as u32;
        self.warps = warps;
        self.prepared = Some((kernel, rank));
    }

    /// Whether all threads have exited.
    pub(crate) fn is_done(&self) -> bool {
        self.running == 0
    }
}
