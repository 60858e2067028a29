//! Limits of a device: the dimensions of grids and blocks, and shared memory.

use super::error::Violation;
use crate::device::Device;
use warpwright_dsl::Block;
use warpwright_ptx::ir::Arch;

/// Limits of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Its number in this process.
    pub(crate) device: u64,
    /// Its architecture.
    pub(crate) arch: Arch,
    /// The maximum number of blocks along each dimension.
    pub(crate) grid: [u32; 3],
    /// The maximum number of threads along each dimension.
    pub(crate) block: [u32; 3],
    /// The maximum number of threads of a block.
    pub(crate) threads: u32,
    /// The maximum shared memory of a block with opt-in, in bytes.
    pub(crate) shared: u64,
    /// Whether it runs clusters.
    pub(crate) clusters: bool,
}

/// The maximum cluster size that every device with clusters supports.
const CLUSTER: u64 = 8;

impl Limits {
    /// Those of a device. Grids and blocks have had these dimensions on every architecture so far.
    pub(crate) fn of(device: &Device) -> Self {
        let properties = device.properties();
        Limits {
            device: device.number(),
            arch: properties.arch,
            grid: [0x7fff_ffff, 0xffff, 0xffff],
            block: [1024, 1024, 64],
            threads: properties.threads_per_block,
            shared: properties.shared_per_block_optin,
            clusters: device.backend().runs_clusters(),
        }
    }

    /// Checks that the kernel and the device support a block of at most `max` threads.
    pub(crate) fn check_block(&self, rule: Block, max: u32, given: [u32; 3]) -> Result<(), Violation> {
        let max = max.min(self.threads);
        let (needed, exactly) = match rule {
            Block::Exactly(dims) => (dims, true),
            Block::AtMost(dims) => (std::array::from_fn(|axis| dims[axis].min(self.block[axis])), false),
        };
        let threads = given.iter().fold(1, |product: u64, &n| product.saturating_mul(n.into()));
        let within = |max: [u32; 3]| (0..3).all(|axis| (1..=max[axis]).contains(&given[axis]));
        let taken = if exactly { given == needed } else { within(needed) };
        if taken && within(self.block) && threads <= max.into() {
            return Ok(());
        }
        // Where the kernel's only block is one that the device has not, that is what is wrong.
        let (needed, exactly) = if taken { (self.block, false) } else { (needed, exactly) };
        Err(Violation::Block { given, needed, exactly, max })
    }

    /// Checks that the device supports clusters of these dimensions, and that the grid is a multiple of them.
    pub(crate) fn check_cluster(&self, given: Option<[u32; 3]>, grid: [u32; 3]) -> Result<(), Violation> {
        let Some(given) = given else { return Ok(()) };
        if !self.clusters {
            return Err(Violation::Cluster { given });
        }
        let blocks = given.iter().fold(1, |product: u64, &n| product.saturating_mul(n.into()));
        let whole = (0..3).all(|axis| given[axis] > 0 && grid[axis].is_multiple_of(given[axis]));
        if whole && blocks <= CLUSTER { Ok(()) } else { Err(Violation::ClusterShape { given, grid }) }
    }

    /// Checks that a grid is not empty, and not larger than the device allows.
    pub(crate) fn check_grid(&self, given: [u64; 3]) -> Result<[u32; 3], Violation> {
        let mut grid = [0; 3];
        for axis in 0..3 {
            let blocks = u32::try_from(given[axis]).unwrap_or(u32::MAX);
            if !(1..=self.grid[axis]).contains(&blocks) {
                return Err(Violation::Grid { given, needed: self.grid });
            }
            grid[axis] = blocks;
        }
        Ok(grid)
    }
}
