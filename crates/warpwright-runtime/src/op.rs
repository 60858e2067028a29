//! The operations that devices execute and graphs record. Operations of streams alone, such as events and copies from
//! and to the host, are functions of the [backend](crate::backend).
//!
//! An operation holds the memory that it touches, which therefore outlives it, but no handle of a
//! [`Buffer`](crate::Buffer): the memory of a buffer that is dropped while operations are queued may be reused by later
//! operations of its stream. So **issuing an operation takes the list of its buffers** ([`Stream::enqueue`]).
//!
//! [`Stream::enqueue`]: crate::Stream

use crate::backend::{Code, Exec, Memory};
use crate::overlap::Access;
use std::sync::Arc;

/// A range of bytes of device memory, within the bounds of that memory.
#[derive(Clone, Debug)]
pub(crate) struct MemoryRange {
    /// The memory.
    pub(crate) memory: Arc<Memory>,
    /// First byte.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) bytes: u64,
}

/// A word of 1, 2 or 4 bytes that memory is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its value.
    pub(crate) value: u32,
    /// Its bytes.
    pub(crate) size: u64,
    /// Distance between words, in bytes.
    pub(crate) pitch: u64,
}

impl Word {
    /// Every byte.
    pub(crate) fn byte(value: u8) -> Self {
        Word { value: value.into(), size: 1, pitch: 1 }
    }

    /// Whether the words lie side by side.
    pub(crate) fn is_dense(self) -> bool {
        self.pitch == self.size
    }

    /// The number of words in a range of `bytes` bytes.
    pub(crate) fn count(self, bytes: u64) -> u64 {
        bytes.checked_sub(self.size).map_or(0, |rest| rest / self.pitch + 1)
    }
}

/// The dimensions of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Blocks along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub(crate) dynamic_shared: u32,
    /// Whether all blocks are resident at once.
    pub(crate) cooperative: bool,
    /// Blocks of a cluster along x, y and z, where blocks go in clusters.
    pub(crate) cluster: Option<[u32; 3]>,
    /// Whether it may be a programmatic dependent launch.
    pub(crate) dependent: bool,
}

impl Shape {
    /// Whether both differ at most in their dimensions. The other attributes of a graph's node cannot change.
    pub(crate) fn is_like(&self, other: &Shape) -> bool {
        (self.cooperative, self.cluster, self.dependent)
            == (other.cooperative, other.cluster, other.dependent)
    }

    /// Blocks of the grid.
    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().fold(1, |product, &n| product.saturating_mul(n.into()))
    }
}

/// A fully checked launch.
pub(crate) struct Launch {
    /// The kernel's name, for errors.
    pub(crate) kernel: Arc<str>,
    /// Its dimensions.
    pub(crate) shape: Shape,
    /// What decides whether it overlaps with the launch in front of it.
    pub(crate) access: Access,
    /// Whether the launches in front of it are complete when one behind it begins.
    pub(crate) waits_first: bool,
    /// Kernel, shape and arguments, as the device takes them.
    pub(crate) code: Code,
    /// The memory that it may touch, kept alive.
    pub(crate) _memory: Vec<Arc<Memory>>,
}

impl From<Arc<Launch>> for Op {
    fn from(launch: Arc<Launch>) -> Op {
        Op::Launch { launch, overlaps: false }
    }
}

/// An operation that a graph may have.
#[derive(Clone)]
pub(crate) enum Op {
    /// Launches a kernel.
    Launch {
        /// The launch.
        launch: Arc<Launch>,
        /// Whether it may overlap with the operation in front of it. [`InFront`](crate::overlap::InFront) says so when
        /// it is issued or becomes part of a graph.
        overlaps: bool,
    },
    /// Copies bytes within the device, or from and to mapped memory. Both ranges have the same size and do not overlap.
    Copy {
        /// The source.
        source: MemoryRange,
        /// The target.
        target: MemoryRange,
    },
    /// Sets words.
    Fill {
        /// The range from the first to the last word.
        target: MemoryRange,
        /// The word.
        word: Word,
    },
    /// Replays a graph.
    Replay {
        /// Its operations, in their order.
        ops: Arc<Vec<Op>>,
        /// The same, prepared on the device.
        exec: Exec,
    },
}
