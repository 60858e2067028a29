//! The dimensions of a launch, and the memory that each block has.

use crate::machine::{LANES, Row32};
use crate::memory::RANK_BITS;
use std::sync::Arc;

/// Dimensions, shared memory and parameters of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// `%nctaid`.
    pub(crate) grid: [u32; 3],
    /// `%ntid`.
    pub(crate) block: [u32; 3],
    /// `%cluster_nctaid`: blocks of a cluster along each axis, of which the grid has a multiple.
    pub(crate) cluster: [u32; 3],
    /// `%is_explicit_cluster`: the launch or the kernel asked for clusters.
    pub(crate) explicit_cluster: bool,
    /// Bytes of static shared memory that the kernel asks for.
    pub(crate) static_shared: u64,
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared: u32,
    /// Words of shared memory of a block, gaps between variables included.
    pub(crate) shared_words: usize,
    /// Where the shared memory that CUDA reserves begins, if a function asks for it.
    pub(crate) reserved_shared: u64,
    /// The variables in it, sorted: offset and size.
    pub(crate) shared_regions: Vec<(u64, u64)>,
    /// Their names.
    pub(crate) shared_names: Arc<[String]>,
    /// The parameters.
    pub(crate) params: Vec<u32>,
    /// Which bytes of them belong to which parameter: offset and size.
    pub(crate) param_regions: Vec<(u64, u64)>,
}

impl Shape {
    /// Blocks of the grid.
    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Blocks of a cluster.
    pub(crate) fn cluster_blocks(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// `%nclusterid`.
    pub(crate) fn clusters_of_axes(&self) -> [u32; 3] {
        std::array::from_fn(|axis| self.grid[axis] / self.cluster[axis])
    }

    /// Clusters of the grid.
    pub(crate) fn clusters(&self) -> u64 {
        self.blocks() / u64::from(self.cluster_blocks())
    }

    /// The address, in its space, of a byte of the cluster's shared memory.
    pub(crate) fn shared_address(&self, offset: u64) -> u64 {
        match self.cluster {
            [1, 1, 1] => offset,
            _ => ((offset / self.shared_bytes()) << RANK_BITS) | (offset % self.shared_bytes()),
        }
    }

    /// Bytes of shared memory of a block, gaps between variables included.
    pub(crate) fn shared_bytes(&self) -> u64 {
        4 * self.shared_words as u64
    }

    /// The number of a block in the grid, by the number of its cluster and its rank there.
    pub(crate) fn block_of(&self, cluster: u64, rank: u32) -> u64 {
        if self.cluster == [1; 3] {
            return cluster;
        }
        let place = |number: u64, [x, y, _]: [u64; 3]| [number % x, number / x % y, number / x / y];
        let (extents, size) = (self.clusters_of_axes().map(u64::from), self.cluster.map(u64::from));
        let (outer, inner) = (place(cluster, extents), place(rank.into(), size));
        let [x, y, z]: [u64; 3] = std::array::from_fn(|axis| outer[axis] * size[axis] + inner[axis]);
        let [width, height, _] = self.grid.map(u64::from);
        x + width * (y + height * z)
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// `%ctaid` of a block.
    pub(crate) fn block_index(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }

    /// `%tid` of a thread.
    #[inline(always)]
    pub(crate) fn thread_index(&self, number: u32) -> [u32; 4] {
        let [x, y, _] = self.block;
        if y == 1 && number < x {
            return [number, 0, 0, 0];
        }
        [number % x, number / x % y, number / x / y, 0]
    }

    /// One coordinate of the threads of a warp, whose first one has that number.
    pub(crate) fn thread_indices(&self, first: u32, axis: usize) -> Row32 {
        let [width, height, _] = self.block;
        let mut index = self.thread_index(first);
        let mut row = [0; LANES];
        for value in &mut row {
            *value = index[axis & 3];
            index[0] += 1;
            if index[0] == width {
                index[0] = 0;
                index[1] += 1;
                if index[1] == height {
                    index[1] = 0;
                    index[2] += 1;
                }
            }
        }
        row
    }
}
