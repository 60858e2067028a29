//! The operation of a node, and its attributes.

use super::{Conditional, Graph};
use crate::code::{Launch, Shape};
use crate::engine::{Block, Event, GraphMemory, HostFunction, Mapping, bytes_at, is_allocated};
use crate::report::log;
use crate::types::{
    CUDA_MEMSET_NODE_PARAMS, CUgraphNodeType, CUlaunchAttributeID as Attribute, CUlaunchAttributeValue,
    CUmemAccessDesc, CUstreamBatchMemOpParams, CUstreamBatchMemOpType, Result, Status,
};
use std::ffi::c_int;
use std::sync::{Arc, OnceLock};
use warpwright_device::{Bytes, Comparison, Copy, Memory, Op, Pattern, Side};

/// The operation of a node.
#[derive(Clone)]
pub(crate) enum Task {
    /// It launches a kernel.
    Kernel(Kernel),
    /// It copies.
    Copy(Arc<Copy>),
    /// It fills memory.
    Fill(Fill),
    /// It calls a client's function.
    Host(HostFunction),
    /// It is a child graph.
    Child(Arc<Graph>),
    /// It does nothing.
    Empty,
    /// It records an external event.
    Record(Arc<Event>),
    /// It waits for an external event.
    Wait(Arc<Event>),
    /// It waits for values in memory, or writes them.
    Values(Values),
    /// It allocates memory.
    Alloc(Alloc),
    /// It frees what a node has allocated, of this graph or another one.
    Free(Arc<Block>),
    /// It chooses among graphs.
    Conditional(Conditional),
}

/// An allocation, with the devices that a client wants to access it.
#[derive(Clone)]
pub(crate) struct Alloc {
    pub(crate) memory: Arc<GraphMemory>,
    pub(crate) access: Arc<[CUmemAccessDesc]>,
}

/// A launch, with the attributes that a client sets.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) launch: Arc<Launch>,
    pub(super) priority: i32,
}

/// Operations on values in memory.
#[derive(Clone)]
pub(crate) struct Values {
    ops: Arc<[Op]>,
    /// The same for a client, once it has asked.
    told: Arc<OnceLock<Box<[CUstreamBatchMemOpParams]>>>,
}

impl Values {
    /// Waits and writes, and operations that do nothing.
    pub(crate) fn new(ops: Arc<[Op]>) -> Values {
        Values { ops, told: Arc::default() }
    }

    /// The operations, for a client to read as long as this or a clone exists.
    pub(crate) fn params(&self) -> &[CUstreamBatchMemOpParams] {
        self.told.get_or_init(|| self.ops.iter().map(value_params).collect())
    }
}

fn value_params(op: &Op) -> CUstreamBatchMemOpParams {
    use CUstreamBatchMemOpType as Kind;
    let (operation, address, value, flags) = match op {
        Op::WaitValue { at, value, comparison } => {
            let kind = if at.len() == 4 { Kind::WAIT_VALUE_32 } else { Kind::WAIT_VALUE_64 };
            let flags = match comparison {
                Comparison::GreaterOrEqual => 0,
                Comparison::Equal => 1,
                Comparison::And => 2,
                Comparison::Nor => 3,
            };
            (kind, at.address(), *value, flags)
        }
        Op::WriteValue { at, value } => {
            let kind = if at.len() == 4 { Kind::WRITE_VALUE_32 } else { Kind::WRITE_VALUE_64 };
            (kind, at.address(), *value, 0)
        }
        _ => (Kind::BARRIER, 0, 0, 0),
    };
    CUstreamBatchMemOpParams {
        operation,
        padding: 0,
        address,
        value,
        flags,
        padding2: 0,
        alias: 0,
        padding3: 0,
    }
}

/// A fill of rows with a pattern.
#[derive(Clone)]
pub(crate) struct Fill {
    pub(super) target: Bytes,
    pub(super) pattern: Pattern,
    /// Bytes of a row, number of rows, pitch in bytes.
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) pitch: u64,
}

impl Task {
    /// The type of its node.
    pub(crate) fn kind(&self) -> CUgraphNodeType {
        match self {
            Task::Kernel(_) => CUgraphNodeType::KERNEL,
            Task::Copy(_) => CUgraphNodeType::MEMCPY,
            Task::Fill(_) => CUgraphNodeType::MEMSET,
            Task::Host(_) => CUgraphNodeType::HOST,
            Task::Child(_) => CUgraphNodeType::GRAPH,
            Task::Empty => CUgraphNodeType::EMPTY,
            Task::Record(_) => CUgraphNodeType::EVENT_RECORD,
            Task::Wait(_) => CUgraphNodeType::WAIT_EVENT,
            Task::Values(_) => CUgraphNodeType::BATCH_MEM_OP,
            Task::Alloc(_) => CUgraphNodeType::MEM_ALLOC,
            Task::Free(_) => CUgraphNodeType::MEM_FREE,
            Task::Conditional(_) => CUgraphNodeType::CONDITIONAL,
        }
    }

    /// Whether its node has no copies in other graphs: it is a place in memory, or has one.
    pub(crate) fn exists_once(&self) -> bool {
        matches!(self, Task::Alloc(_) | Task::Free(_) | Task::Conditional(_))
    }

    /// Whether its node can be in the body of a conditional node.
    pub(super) fn may_be_conditional(&self) -> bool {
        use CUgraphNodeType as Kind;
        let allowed = [Kind::KERNEL, Kind::EMPTY, Kind::GRAPH, Kind::MEMSET, Kind::MEMCPY, Kind::CONDITIONAL];
        allowed.contains(&self.kind())
    }

    /// The graphs inside of its node: a child graph, or the bodies of a conditional node.
    pub(crate) fn graphs(&self) -> &[Arc<Graph>] {
        match self {
            Task::Child(graph) => std::slice::from_ref(graph),
            Task::Conditional(conditional) => &conditional.bodies,
            _ => &[],
        }
    }

    /// A copy for a node of another graph, with its own child graphs.
    pub(crate) fn copied(&self) -> Result<Task> {
        Ok(match self {
            Task::Child(graph) => Task::Child(graph.copy(true)?),
            other => other.clone(),
        })
    }

    /// Whether it can run now: its code is loaded, and its memory allocated.
    pub(crate) fn check(&self) -> Result<()> {
        let memory = |bytes: &Bytes| {
            is_allocated(bytes).inspect_err(|_| {
                log::misuse(&format_args!(
                    "a node of the graph accesses {} bytes at {:#x}, which were freed",
                    bytes.len(),
                    bytes.address()
                ));
            })
        };
        match self {
            Task::Kernel(kernel) => kernel.launch.check_loaded(),
            Task::Fill(fill) => memory(&fill.target),
            Task::Copy(copy) => {
                let sides = [&copy.target.memory, &copy.source.memory];
                sides.into_iter().try_for_each(|side| match side {
                    Memory::Known(bytes) => memory(bytes),
                    _ => Ok(()),
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether an update can replace it by another task: copies and fills must keep the kind of their memory, and fills
    /// of rows their shape.
    pub(crate) fn takes(&self, other: &Task) -> bool {
        let takes = |own: &Side, other: &Side| {
            Mapping::of_memory(&own.memory).takes(Mapping::of_memory(&other.memory))
        };
        match (self, other) {
            (Task::Copy(own), Task::Copy(other)) => {
                takes(&own.source, &other.source) && takes(&own.target, &other.target)
            }
            (Task::Fill(own), Task::Fill(other)) => own.takes(other),
            // Addresses stay.
            (Task::Alloc(own), Task::Alloc(other)) => Arc::ptr_eq(&own.memory, &other.memory),
            (Task::Free(own), Task::Free(other)) => Arc::ptr_eq(own, other),
            (Task::Conditional(own), Task::Conditional(other)) => own.kind == other.kind,
            _ => self.kind() == other.kind(),
        }
    }

    /// Whether the node's parameters can be set to another task: copies must also be of one row, and fills of as many
    /// rows.
    pub(crate) fn takes_alone(&self, other: &Task) -> bool {
        let of_one_row = |copy: &Copy| copy.height == 1 && copy.depth == 1;
        self.takes(other)
            && match (self, other) {
                (Task::Copy(own), Task::Copy(other)) => of_one_row(own) && of_one_row(other),
                (Task::Fill(own), Task::Fill(other)) => own.height == other.height,
                _ => true,
            }
    }

    /// The operation, if it is always the same; `overlaps` if it may overlap with the launch in front of it.
    pub(crate) fn op(&self, overlaps: bool) -> Option<Op> {
        Some(match self {
            Task::Kernel(kernel) => Op::Launch { launch: kernel.launch.clone(), overlaps },
            Task::Copy(copy) => Op::Copy(copy.clone()),
            Task::Fill(fill) => fill.op(),
            Task::Values(values) => Op::Batch(values.ops.clone(), 0),
            Task::Alloc(alloc) => Op::Decide(alloc.memory.clone()),
            Task::Free(block) => Op::Release(block.clone()),
            Task::Child(_) | Task::Empty => Op::Nothing,
            Task::Host(_) | Task::Record(_) | Task::Wait(_) | Task::Conditional(_) => return None,
        })
    }
}

impl Kernel {
    /// A launch without attributes, except that it may be cooperative.
    pub(crate) fn new(launch: Launch) -> Kernel {
        Kernel { launch: Arc::new(launch), priority: 0 }
    }

    /// An attribute; those that only affect speed are not kept.
    pub(crate) fn attribute(&self, id: Attribute) -> Result<CUlaunchAttributeValue> {
        if id == Attribute::CLUSTER_DIMENSION {
            let cluster = self.launch.shape.cluster.unwrap_or_default();
            return Ok(CUlaunchAttributeValue::of_all(&cluster.map(|blocks| blocks as c_int)));
        }
        Ok(CUlaunchAttributeValue::of(match id {
            Attribute::COOPERATIVE => self.launch.shape.cooperative.into(),
            Attribute::PRIORITY => self.priority,
            Attribute::ACCESS_POLICY_WINDOW
            | Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE
            | Attribute::MEM_SYNC_DOMAIN_MAP
            | Attribute::MEM_SYNC_DOMAIN => 0,
            _ => return Err(Status::INVALID_VALUE),
        }))
    }

    /// Takes over the attributes of another node of its context.
    pub(crate) fn set_attributes_of(&mut self, from: &Kernel) -> Result<()> {
        if self.launch.function.code.context.id != from.launch.function.code.context.id {
            return Err(Status::INVALID_CONTEXT);
        }
        for id in [Attribute::COOPERATIVE, Attribute::CLUSTER_DIMENSION] {
            self.set_attribute(id, from.attribute(id)?)?;
        }
        self.priority = from.priority;
        Ok(())
    }

    /// Sets an attribute. Those that only affect speed have no effect.
    pub(crate) fn set_attribute(&mut self, id: Attribute, value: CUlaunchAttributeValue) -> Result<()> {
        match id {
            Attribute::COOPERATIVE => {
                let cooperative = value.number() != 0;
                let shape = Shape { cooperative, ..self.launch.shape };
                self.launch = Arc::new(self.launch.reshaped(shape)?);
            }
            Attribute::PRIORITY => self.priority = value.number(),
            Attribute::CLUSTER_DIMENSION => {
                let cluster = value.first().map(|blocks| blocks as u32);
                let shape =
                    Shape { cluster: Some(cluster).filter(|said| *said != [0; 3]), ..self.launch.shape };
                self.launch = Arc::new(self.launch.reshaped(shape)?);
            }
            Attribute::ACCESS_POLICY_WINDOW
            | Attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE
            | Attribute::MEM_SYNC_DOMAIN_MAP
            | Attribute::MEM_SYNC_DOMAIN => {}
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }
}

impl Fill {
    /// The memory that a client describes.
    pub(crate) fn new(given: &CUDA_MEMSET_NODE_PARAMS) -> Result<Fill> {
        let invalid = Status::INVALID_VALUE;
        let (pattern, limit) = match given.elementSize {
            1 => (Pattern::of8(given.value as u8), 0xff),
            2 => (Pattern::of16(given.value as u16), 0xffff),
            4 => (Pattern::of32(given.value), u32::MAX),
            _ => return Err(invalid),
        };
        let element = u64::from(given.elementSize);
        let (pitch, height) = (given.pitch as u64, given.height as u64);
        let width = (given.width as u64).checked_mul(element).filter(|width| *width > 0).ok_or(invalid)?;
        let many = height > 1;
        if given.value > limit
            || height == 0
            || !given.dst.is_multiple_of(element)
            || many && (pitch < width || !pitch.is_multiple_of(element))
        {
            return Err(invalid);
        }
        let rows = if many { pitch.checked_mul(height - 1).ok_or(invalid)? } else { 0 };
        let target = bytes_at(given.dst, rows.checked_add(width).ok_or(invalid)?)?;
        Ok(Fill { target, pattern, width, height, pitch })
    }

    /// The same as a client describes it.
    pub(crate) fn params(&self) -> CUDA_MEMSET_NODE_PARAMS {
        let bytes = self.pattern.bytes();
        let mut value = [0; 4];
        value[..bytes.len()].copy_from_slice(bytes);
        CUDA_MEMSET_NODE_PARAMS {
            dst: self.target.address(),
            pitch: self.pitch as usize,
            value: u32::from_le_bytes(value),
            elementSize: bytes.len() as u32,
            width: self.width as usize / bytes.len().max(1),
            height: self.height as usize,
        }
    }

    fn takes(&self, other: &Fill) -> bool {
        let shape = |fill: &Fill| (fill.width, fill.height, fill.pattern.bytes().len(), fill.pitch);
        Mapping::of(&self.target).takes(Mapping::of(&other.target))
            && (self.height == 1 || shape(self) == shape(other))
    }

    fn op(&self) -> Op {
        let Fill { target, pattern, width, height, pitch } = self.clone();
        Op::Fill { target, pattern, width, height, pitch }
    }
}
