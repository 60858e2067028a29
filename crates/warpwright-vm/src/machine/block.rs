//! A resident block: its warps, its shared memory, its barriers.

use super::watch::Watch;
use super::{Barrier, LANES, Warp};
use crate::check::BlockChecks;
use crate::decode::Code;
use crate::launch::Shape;
use crate::locality::BlockSectors;

/// Barriers of a block.
const BARRIERS: usize = super::CLUSTER_BARRIER as usize + 1;

/// The initial contents of shared memory: not a number, and not a small integer.
const UNWRITTEN: u32 = 0xffff_dead;

/// A resident block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Its number in the grid.
    pub(crate) number: u64,
    /// `%ctaid`.
    pub(crate) index: [u32; 3],
    pub(crate) warps: Vec<Warp>,
    /// Shared memory, static and dynamic.
    pub(crate) shared: Vec<u32>,
    /// What the checks know.
    pub(crate) checks: BlockChecks,
    pub(crate) barriers: [Barrier; BARRIERS],
    /// Instructions that its warps have executed: its clock.
    pub(crate) clock: u64,
    /// The sectors that it has loaded, where these are counted.
    pub(crate) sectors: BlockSectors,
    /// Whether it gets anywhere.
    pub(super) watch: Watch,
    /// For which kernel the constants stand in the registers.
    prepared: Option<u32>,
}

impl Block {
    /// Makes it the block of that number, at its beginning.
    pub(crate) fn start(&mut self, number: u64, shape: &Shape, code: &Code, kernel: u32) {
        let function = &code.functions[kernel as usize];
        let threads = shape.threads();
        self.number = number;
        self.index = shape.block_index(number);
        self.clock = 0;
        self.sectors.clear();
        self.watch = Watch::default();
        self.shared.clear();
        self.shared.resize(shape.shared_words, UNWRITTEN);
        for barrier in &mut self.barriers {
            barrier.reset();
        }
        self.warps.resize_with(threads.div_ceil(LANES as u32) as usize, Warp::default);
        for (index, warp) in self.warps.iter_mut().enumerate() {
            let lanes = (threads - (index * LANES) as u32).min(LANES as u32);
            warp.start(function.entry, kernel, u32::MAX >> (LANES as u32 - lanes));
            if self.prepared != Some(kernel) {
                function.prepare(&mut warp.registers);
            }
            function.clear_unassigned(&mut warp.registers);
            if warp.local.len() < function.local_words() {
                warp.local.resize(function.local_words(), [UNWRITTEN; LANES]);
            }
        }
        self.prepared = Some(kernel);
    }

    /// Whether all threads have exited.
    pub(crate) fn is_done(&self) -> bool {
        self.warps.iter().all(|warp| warp.live == 0)
    }
}
