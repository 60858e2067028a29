//! The dimensions of a launch, and the memory that each block has.

use std::sync::Arc;

/// Dimensions, shared memory and parameters of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// `%nctaid`.
    pub(crate) grid: [u32; 3],
    /// `%ntid`.
    pub(crate) block: [u32; 3],
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
}
