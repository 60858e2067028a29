//! Errors of launches that are refused.

use std::fmt;
use warpwright_ptx::ir::Arch;

/// The reason why a launch was refused, before any of its threads began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchError {
    /// The module has no kernel of this name.
    UnknownKernel {
        /// The name.
        name: String,
        /// The module's kernels.
        known: Vec<String>,
    },
    /// A dimension of the grid or the block is zero.
    Empty {
        /// Blocks along x, y and z.
        grid: [u32; 3],
        /// Threads along x, y and z.
        block: [u32; 3],
    },
    /// No device supports blocks of this size.
    BlockTooLarge {
        /// Threads along x, y and z.
        block: [u32; 3],
    },
    /// No device supports grids of this size.
    GridTooLarge {
        /// Blocks along x, y and z.
        grid: [u32; 3],
    },
    /// The kernel requires one block shape (`.reqntid`).
    RequiredBlock {
        /// The kernel.
        kernel: String,
        /// The required block.
        required: [u32; 3],
        /// The block of the launch.
        block: [u32; 3],
    },
    /// The kernel does not run in such clusters.
    Clusters {
        /// The kernel.
        kernel: String,
        /// Blocks of a cluster along x, y and z; ones where the launch does not say.
        cluster: [u32; 3],
        /// What the clusters must be.
        rule: ClusterRule,
    },
    /// The block has more threads than the kernel allows (`.maxntid`).
    MaxThreads {
        /// The kernel.
        kernel: String,
        /// The maximum.
        max: u32,
        /// Threads of the block.
        threads: u64,
    },
    /// The block needs more shared memory than the device gives a block.
    SharedMemory {
        /// The kernel.
        kernel: String,
        /// Static and dynamic shared memory, in bytes.
        bytes: u64,
        /// Maximum for a block, in bytes.
        max: u64,
        /// The device.
        arch: Arch,
    },
    /// Not all blocks of a cooperative launch can be resident.
    NotResident {
        /// The kernel.
        kernel: String,
        /// Blocks of the grid.
        blocks: u64,
        /// Blocks of that shape that fit on a multiprocessor.
        per_multiprocessor: u32,
        /// Multiprocessors of the device.
        multiprocessors: u32,
    },
    /// The number of arguments differs from the number of parameters.
    ArgumentCount {
        /// The kernel.
        kernel: String,
        /// Number of parameters.
        expected: usize,
        /// Number of arguments.
        given: usize,
    },
    /// An argument's size differs from its parameter's.
    ArgumentSize {
        /// The kernel.
        kernel: String,
        /// Its index, from 0.
        index: usize,
        /// The parameter's name.
        name: String,
        /// Bytes of the parameter.
        expected: usize,
        /// Bytes of the argument.
        given: usize,
    },
}

/// What the clusters of a launch must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterRule {
    /// The launch says their shape (`.explicitcluster`).
    Said,
    /// They have this shape (`.reqnctapercluster`).
    Required([u32; 3]),
    /// The grid consists of whole ones.
    Whole {
        /// Blocks of the grid along x, y and z.
        grid: [u32; 3],
    },
    /// They have from one to that many blocks (`.maxclusterrank`, or what devices can do).
    AtMost(u32),
    /// This device has none.
    NotOn(Arch),
}

impl fmt::Display for ClusterRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterRule::Said => write!(f, "the launch must say their shape (`.explicitcluster`)"),
            ClusterRule::Required(shape) => write!(f, "they must have {shape:?} (`.reqnctapercluster`)"),
            ClusterRule::Whole { grid } => {
                write!(f, "the grid must be a multiple of that along each axis, and has {grid:?} blocks")
            }
            ClusterRule::AtMost(most) => {
                write!(
                    f,
                    "they have at least one block and at most {most} (`.maxclusterrank`, or what devices do)"
                )
            }
            ClusterRule::NotOn(arch) => {
                write!(f, "devices have them from sm_90 on, and this one is of {arch}")
            }
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::UnknownKernel { name, known } if known.is_empty() => {
                write!(f, "there is no kernel `{name}` in the module: it has none")
            }
            LaunchError::UnknownKernel { name, known } => {
                write!(f, "there is no kernel `{name}` in the module: it has {}", known.join(", "))
            }
            LaunchError::Empty { grid, block } => {
                write!(f, "grid {grid:?} and block {block:?}: every dimension must be at least 1")
            }
            LaunchError::BlockTooLarge { block } => {
                let threads: u64 = block.iter().fold(1, |product: u64, &n| product.saturating_mul(n.into()));
                write!(f, "a block of {block:?} has {threads} threads: at most 1024 (64 along z)")
            }
            LaunchError::GridTooLarge { grid } => {
                write!(f, "a grid of {grid:?}: at most 2147483647, 65535, 65535")
            }
            LaunchError::RequiredBlock { kernel, required, block } => {
                write!(f, "kernel `{kernel}` runs with blocks of {required:?} (`.reqntid`), not {block:?}")
            }
            LaunchError::Clusters { kernel, cluster, rule } => {
                write!(f, "kernel `{kernel}` in clusters of {cluster:?} blocks: {rule}")
            }
            LaunchError::MaxThreads { kernel, max, threads } => {
                write!(f, "kernel `{kernel}` takes at most {max} threads (`.maxntid`), not {threads}")
            }
            LaunchError::SharedMemory { kernel, bytes, max, arch } => write!(
                f,
                "kernel `{kernel}` with {bytes} bytes of shared memory: a block has at most {max} on {arch}"
            ),
            LaunchError::NotResident { kernel, blocks, per_multiprocessor, multiprocessors } => {
                let max = u64::from(*per_multiprocessor) * u64::from(*multiprocessors);
                write!(
                    f,
                    "kernel `{kernel}`: a cooperative launch of {blocks} blocks, and at most {max} can be \
                     resident ({per_multiprocessor} on each of {multiprocessors} multiprocessors): launch \
                     fewer blocks"
                )
            }
            LaunchError::ArgumentCount { kernel, expected, given } => {
                write!(f, "kernel `{kernel}` takes {expected} arguments, and {given} are given")
            }
            LaunchError::ArgumentSize { kernel, index, name, expected, given } => write!(
                f,
                "kernel `{kernel}`: argument {index} (`{name}`) has {expected} bytes, and {given} are given"
            ),
        }
    }
}

impl std::error::Error for LaunchError {}
