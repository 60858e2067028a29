//! Graphs: operations of a stream, recorded once and replayed as one operation.
//!
//! A graph is a list in the order of recording, which respects every dependence in it. It keeps the buffers of its
//! nodes alive. A replay works on what they hold when it runs, so positions, lengths and ids that change from replay to
//! replay live in device memory.

use crate::backend::Exec;
use crate::buffer::AnyBuffer;
use crate::device::Device;
use crate::error::{Result, RuntimeError};
use crate::kernel::PreparedLaunch;
use crate::op::{Launch, Op};
use crate::overlap::InFront;
use crate::stream::{Captured, Stream};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

/// The recorded operations of a stream.
///
/// ```
/// use warpwright_runtime::{Device, RuntimeError, VmConfig};
///
/// # fn main() -> Result<(), RuntimeError> {
/// let device = Device::vm(VmConfig::default())?;
/// let stream = device.default_stream();
/// let x = stream.clone_htod(&[1u32, 2, 3])?;
/// let y = stream.alloc_zeros::<u32>(3)?;
///
/// stream.begin_capture()?;
/// stream.memcpy_dtod(&x, &y)?;
/// stream.memset_zeros(&x)?;
/// let graph = stream.end_capture()?;
/// assert_eq!(stream.clone_dtoh(&y)?, [0, 0, 0]);
///
/// let exec = graph.instantiate()?;
/// exec.launch(&stream)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [1, 2, 3]);
/// exec.launch(&stream)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [0, 0, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Graph {
    device: Device,
    nodes: Vec<Captured>,
}

/// A node of a graph, by its index in the order of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(usize);

impl NodeId {
    /// Its index, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

/// The operation of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphNode {
    /// Launches a kernel.
    Kernel {
        /// The kernel's entry name.
        kernel: String,
        /// Blocks along x, y and z.
        grid: [u32; 3],
        /// Threads of a block along x, y and z.
        block: [u32; 3],
        /// Dynamic shared memory of a block, in bytes.
        dynamic_shared: u32,
    },
    /// Copies memory of the device.
    Copy {
        /// The number of bytes.
        bytes: u64,
    },
    /// Sets words of memory.
    Memset {
        /// Bytes of all words.
        bytes: u64,
        /// Bytes of a word: 1, 2 or 4.
        word: u64,
        /// The value of a word.
        value: u32,
    },
    /// Replays another graph.
    Graph {
        /// Its number of nodes.
        nodes: usize,
    },
}

impl fmt::Display for GraphNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphNode::Kernel { kernel, grid, block, .. } => {
                write!(f, "a launch of `{kernel}`, grid {grid:?}, block {block:?}")
            }
            GraphNode::Copy { bytes } => write!(f, "a copy of {bytes} bytes"),
            GraphNode::Memset { bytes, word: 1, value } => write!(f, "a memset of {bytes} bytes to {value}"),
            GraphNode::Memset { bytes, word, value } => {
                write!(f, "a memset of {bytes} bytes to {value:#x} in words of {word} bytes")
            }
            GraphNode::Graph { nodes } => write!(f, "a graph of {nodes} nodes"),
        }
    }
}

impl Graph {
    pub(crate) fn new(device: Device, nodes: Vec<Captured>) -> Graph {
        Graph { device, nodes }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, GraphNode)> {
        self.nodes.iter().enumerate().map(|(i, node)| (NodeId(i), describe(&node.op)))
    }

    /// Prepares it for replays.
    pub fn instantiate(&self) -> Result<GraphExec> {
        let uses: Vec<_> = self.nodes.iter().map(|node| node.uses.clone()).collect();
        let mut ops: Vec<_> = self.nodes.iter().map(|node| node.op.clone()).collect();
        let mut front = InFront::default();
        ops.iter_mut().for_each(|op| front.next(op));
        Ok(GraphExec {
            device: self.device.clone(),
            exec: self.device.backend().instantiate(&ops)?,
            ops: Arc::new(ops),
            blocks: uses.iter().flatten().fold(Blocks::default(), |mut blocks, buffer| {
                blocks.add(buffer);
                blocks
            }),
            uses,
        })
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.nodes().map(|(_, node)| node)).finish()
    }
}

fn describe(op: &Op) -> GraphNode {
    match op {
        Op::Launch { launch, .. } => {
            let Launch { kernel, shape, .. } = &**launch;
            GraphNode::Kernel {
                kernel: kernel.to_string(),
                grid: shape.grid,
                block: shape.block,
                dynamic_shared: shape.dynamic_shared,
            }
        }
        Op::Fill { target, word } => GraphNode::Memset {
            bytes: word.count(target.bytes) * word.size,
            word: word.size,
            value: word.value,
        },
        Op::Copy { target, .. } => GraphNode::Copy { bytes: target.bytes },
        Op::Replay { ops, .. } => GraphNode::Graph { nodes: ops.len() },
    }
}

/// A graph that is prepared for replays.
pub struct GraphExec {
    device: Device,
    ops: Arc<Vec<Op>>,
    exec: Exec,
    /// The buffers of each node.
    uses: Vec<Vec<AnyBuffer>>,
    /// The memory that a replay uses.
    blocks: Blocks,
}

impl GraphExec {
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The nodes, in order, with all updates.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, GraphNode)> {
        self.ops.iter().enumerate().map(|(i, op)| (NodeId(i), describe(op)))
    }

    /// Issues a replay on the stream: one operation, without allocation. On a stream that is capturing, it becomes a
    /// node.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        if stream.device() != &self.device {
            return Err(RuntimeError::OtherDevice { operation: "launch", what: "graph" });
        }
        let op = Op::Replay { ops: self.ops.clone(), exec: self.exec.clone() };
        stream.enqueue(op, &self.blocks.buffers)
    }

    /// Replaces the arguments of a kernel node by those of a prepared launch of the same kernel. The grid may change
    /// too, but the [attributes](crate::LaunchAttributes) must not. Later replays use the new launch; replays that were
    /// issued keep the old one.
    pub fn update(&mut self, node: NodeId, prepared: &PreparedLaunch) -> Result<()> {
        let at = node.0;
        let given = || GraphNode::Kernel {
            kernel: prepared.kernel().to_owned(),
            grid: prepared.grid(),
            block: prepared.block(),
            dynamic_shared: prepared.dynamic_shared(),
        };
        if prepared.device() != &self.device {
            return Err(RuntimeError::OtherDevice { operation: "update", what: "launch" });
        }
        match self.ops.get(at) {
            Some(Op::Launch { launch, .. })
                if *launch.kernel == *prepared.kernel() && launch.shape.is_like(&prepared.op().shape) => {}
            found => {
                let (found, given) = (found.map(describe), given());
                return Err(RuntimeError::GraphUpdate {
                    node: at,
                    found: found.map(Box::new),
                    given: Box::new(given),
                });
            }
        }
        let (launch, overlaps) = (prepared.op(), self.overlaps(at));
        let op = Op::Launch { launch: launch.clone(), overlaps };
        self.must_stay_apart(at, &op)?;
        self.device.backend().update(&self.exec, at, (launch, overlaps))?;
        // Replays that are under way keep the list that they have.
        Arc::make_mut(&mut self.ops)[at] = op;
        prepared.buffers().iter().for_each(|buffer| self.blocks.add(buffer));
        let before = std::mem::replace(&mut self.uses[at], prepared.buffers().to_vec());
        before.iter().for_each(|buffer| self.blocks.remove(buffer));
        Ok(())
    }
}

impl GraphExec {
    fn overlaps(&self, node: usize) -> bool {
        matches!(self.ops.get(node), Some(Op::Launch { overlaps: true, .. }))
    }

    /// Refuses a node's new operation where it overlaps with a neighbour, and one of the two would write what the other
    /// takes to be constant.
    fn must_stay_apart(&self, node: usize, op: &Op) -> Result<()> {
        let before = node.checked_sub(1).and_then(|before| self.ops.get(before));
        let pairs = [(before, Some(op), node), (Some(op), self.ops.get(node + 1), node + 1)];
        for (front, behind, at) in pairs {
            if let (Some(front), Some(Op::Launch { launch, overlaps: true })) = (front, behind)
                && !InFront::behind(front).allows(launch)
            {
                return Err(RuntimeError::GraphOverlap { node, constant_of: at });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.nodes().map(|(_, node)| node)).finish()
    }
}

/// Pieces of memory with their number of uses. One buffer stands for each piece, so that a replay has few to note.
#[derive(Default)]
struct Blocks {
    buffers: Vec<AnyBuffer>,
    /// By the memory's address in this process: the index of the buffer that stands for it, and how many buffers are in
    /// it.
    counts: HashMap<usize, (usize, usize)>,
}

impl Blocks {
    fn key(buffer: &AnyBuffer) -> usize {
        Arc::as_ptr(buffer.memory()).addr()
    }

    fn add(&mut self, buffer: &AnyBuffer) {
        let (_, count) = self.counts.entry(Self::key(buffer)).or_insert_with(|| {
            self.buffers.push(buffer.clone());
            (self.buffers.len() - 1, 0)
        });
        *count += 1;
    }

    fn remove(&mut self, buffer: &AnyBuffer) {
        let Entry::Occupied(mut entry) = self.counts.entry(Self::key(buffer)) else { return };
        let (at, count) = entry.get_mut();
        *count -= 1;
        if *count > 0 {
            return;
        }
        let at = *at;
        entry.remove();
        self.buffers.swap_remove(at);
        let moved = self.buffers.get(at).and_then(|moved| self.counts.get_mut(&Self::key(moved)));
        if let Some((place, _)) = moved {
            *place = at;
        }
    }
}
