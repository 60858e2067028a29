//! A resident cluster: blocks that run on one host thread and see each other's shared memory.
//!
//! Every block is in a cluster; where a launch has none, each is one by itself. The shared memory of the blocks lies in
//! one array, so that an access to a peer's is like one to the own.

use super::barrier::Barrier;
use super::watch::Watch;
use super::{Block, Machine, TensorProgress};
use crate::check::{RACE_BYTES, SharedChecks};
use crate::launch::Launch;
use std::mem::swap;

/// The initial contents of shared memory: not a number, and not a small integer.
const UNWRITTEN: u32 = 0xffff_dead;

/// A resident cluster.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// Its number in the grid.
    pub(crate) number: u64,
    /// Its blocks, by rank. The place of the one that runs is empty.
    #[expect(clippy::vec_box, reason = "only an address changes where another one comes to run")]
    pub(crate) blocks: Vec<Box<Block>>,
    /// The shared memory of all of them, by rank: static and dynamic.
    pub(crate) shared: Vec<u32>,
    /// Which operations on tensor memory are complete, where that is looked at.
    pub(crate) tensor: TensorProgress,
    /// What the checks know of it.
    pub(crate) checks: SharedChecks,
    /// The barrier at which all of them meet.
    pub(super) barrier: Barrier,
    /// Whether it gets anywhere.
    pub(super) watch: Watch,
}

impl Cluster {
    /// Makes it the cluster of that number, at its beginning.
    pub(crate) fn start(&mut self, number: u64, launch: &Launch) {
        let shape = &launch.shape;
        let size = shape.cluster_blocks() as usize;
        self.number = number;
        self.shared.clear();
        self.shared.resize(shape.shared_words * size, UNWRITTEN);
        self.tensor.clear();
        self.checks.start(launch);
        self.barrier.reset();
        self.watch = Watch::default();
        self.blocks.resize_with(size, Box::default);
        for (rank, block) in self.blocks.iter_mut().enumerate() {
            let number = shape.block_of(number, rank as u32);
            block.start((number, rank as u32), launch);
            block.checks.start(launch, number);
        }
    }

    /// It is over.
    pub(crate) fn end(&mut self, launch: &Launch) {
        for block in &self.blocks {
            block.checks.ended(launch, block);
        }
        if !self.is_alone() && launch.options.checks.race {
            // Others' memory will be known by these addresses.
            launch.races.forget(self.race_base(), RACE_BYTES);
        }
    }

    /// Whether it has one block, as clusters of a launch without them do.
    #[inline(always)]
    pub(crate) fn is_alone(&self) -> bool {
        self.blocks.len() == 1
    }

    /// The barrier at which all of its blocks meet.
    pub(crate) fn barrier(&self) -> &Barrier {
        &self.barrier
    }

    /// Instructions that its warps have executed: the sum of its blocks' clocks.
    pub(crate) fn clock(&self) -> u64 {
        self.blocks.iter().map(|block| block.clock).sum()
    }

    /// The addresses under which the race check knows its shared memory, if several blocks have it.
    pub(crate) fn race_base(&self) -> u64 {
        (1 << 63) | ((self.number % (1 << 40)) * RACE_BYTES)
    }
}

impl Machine<'_> {
    /// The worker's resident cluster changes.
    pub(crate) fn exchange_cluster(&mut self, cluster: &mut Cluster) {
        swap(&mut self.cluster, cluster);
    }

    /// The block of that rank comes to run, or has run.
    pub(super) fn exchange_block(&mut self, rank: usize) {
        swap(&mut self.block, &mut self.cluster.blocks[rank]);
    }
}
