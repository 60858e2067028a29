//! What a node does, and what clients read and write of it.

use super::{Graph, Pointers};
use crate::code::{Launch, Shape};
use crate::engine::{Event, HostFunction, Mapping, bytes_at};
use crate::report::log;
use crate::types::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUarray,
    CUcontext, CUevent, CUgraphNodeType, CUlaunchAttributeID, CUlaunchAttributeValue, CUmemorytype, Extra,
    In, Result, Status,
};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use warpwright_device::{Bytes, Copy, Memory, Op, Pattern, Side};

/// What a node does.
#[derive(Clone)]
pub(crate) enum Task {
    /// It launches a kernel.
    Kernel(Kernel),
    /// It copies.
    Copy(CopyTask),
    /// It fills memory.
    Fill(Fill),
    /// It calls a function of the client's.
    Host(Host),
    /// It is a graph.
    Child(Arc<Graph>),
    /// It does nothing.
    Empty,
    /// It records an event, for those outside.
    Record(EventTask),
    /// It waits for an event from outside.
    Wait(EventTask),
    /// It waits for values in memory, or writes them.
    Values(Arc<[Op]>),
}

/// A launch, with what a client reads and sets of it.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) launch: Arc<Launch>,
    /// Where the parameters are, which a client may read as long as they are not changed.
    pointers: Arc<Pointers>,
    attributes: BTreeMap<i32, CUlaunchAttributeValue>,
}

/// A copy, with how the client has described it.
#[derive(Clone)]
pub(crate) struct CopyTask {
    pub(crate) copy: Arc<Copy>,
    given: Given,
}

#[derive(Clone, Copy)]
struct Given(CUDA_MEMCPY3D);

// SAFETY: its pointers are what the client is told again; nobody follows them.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

/// Memory that becomes a pattern.
#[derive(Clone)]
pub(crate) struct Fill {
    pub(crate) given: CUDA_MEMSET_NODE_PARAMS,
    target: Bytes,
}

/// A function of the client's.
#[derive(Clone, Copy)]
pub(crate) struct Host(pub(crate) HostFunction);

/// An event, and what the client calls it.
#[derive(Clone)]
pub(crate) struct EventTask {
    pub(crate) event: Arc<Event>,
    pub(crate) handle: CUevent,
}

impl Task {
    /// A launch.
    pub(crate) fn kernel(launch: Launch) -> Task {
        Task::Kernel(Kernel::new(launch))
    }

    /// A copy as the client describes it.
    pub(crate) fn copy(given: CUDA_MEMCPY3D, copy: Copy) -> Task {
        Task::Copy(CopyTask { copy: Arc::new(copy), given: Given(given) })
    }

    /// A copy that was captured.
    pub(crate) fn captured_copy(copy: Arc<Copy>) -> Task {
        let given = Given(describe(&copy));
        Task::Copy(CopyTask { copy, given })
    }

    /// What kind of node does it.
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
        }
    }

    /// The same for a node of another graph, which has graphs of its own.
    pub(crate) fn copied(&self) -> Result<Task> {
        Ok(match self {
            Task::Child(graph) => Task::Child(graph.copy(true)?),
            other => other.clone(),
        })
    }

    /// Whether it can run now: its code is loaded, its memory not given back.
    pub(crate) fn check(&self) -> Result<()> {
        let memory = |bytes: &Bytes| {
            bytes_at(bytes.address(), bytes.len()).map(drop).inspect_err(|_| {
                log::misuse(&format_args!(
                    "a node of the graph reaches {} bytes at {:#x}, which were given back",
                    bytes.len(),
                    bytes.address()
                ));
            })
        };
        match self {
            Task::Kernel(kernel) => kernel.launch.check_loaded(),
            Task::Fill(fill) => memory(&fill.target),
            Task::Copy(task) => {
                let sides = [&task.copy.target.memory, &task.copy.source.memory];
                sides.into_iter().try_for_each(|side| match side {
                    Memory::Known(bytes) => memory(bytes),
                    _ => Ok(()),
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether an executable graph can do another task instead: copies and fills keep what their memory is mapped to,
    /// and fills of rows their shape.
    pub(crate) fn takes(&self, other: &Task) -> bool {
        let takes = |own: &Side, other: &Side| {
            Mapping::of_memory(&own.memory).takes(Mapping::of_memory(&other.memory))
        };
        match (self, other) {
            (Task::Copy(own), Task::Copy(other)) => {
                takes(&own.copy.source, &other.copy.source) && takes(&own.copy.target, &other.copy.target)
            }
            (Task::Fill(own), Task::Fill(other)) => own.takes(other),
            _ => self.kind() == other.kind(),
        }
    }

    /// Whether an executable graph can be told to do another task instead, by itself: copies must be of one row too, and
    /// fills of as many rows.
    pub(crate) fn takes_alone(&self, other: &Task) -> bool {
        let of_one_row = |task: &CopyTask| task.copy.height == 1 && task.copy.depth == 1;
        self.takes(other)
            && match (self, other) {
                (Task::Copy(own), Task::Copy(other)) => of_one_row(own) && of_one_row(other),
                (Task::Fill(own), Task::Fill(other)) => own.given.height == other.given.height,
                _ => true,
            }
    }

    /// The operation, where it is the same each time.
    pub(crate) fn op(&self) -> Option<Op> {
        Some(match self {
            Task::Kernel(kernel) => Op::Launch(kernel.launch.clone()),
            Task::Copy(task) => Op::Copy(task.copy.clone()),
            Task::Fill(fill) => fill.op(),
            Task::Values(ops) => Op::Batch(ops.clone(), 0),
            Task::Child(_) | Task::Empty => Op::Nothing,
            Task::Host(_) | Task::Record(_) | Task::Wait(_) => return None,
        })
    }
}

impl Kernel {
    /// A launch without attributes but that it is cooperative.
    pub(crate) fn new(launch: Launch) -> Kernel {
        let pointers = Arc::new(Pointers::into(launch.params(), launch.function()));
        Kernel { launch: Arc::new(launch), pointers, attributes: BTreeMap::new() }
    }

    /// The same launch with others' attributes.
    pub(crate) fn with_attributes_of(mut self, other: &Kernel) -> Result<Kernel> {
        self.attributes = other.attributes.clone();
        self.reshape(Shape { cooperative: other.launch.shape().cooperative, ..self.launch.shape() })?;
        Ok(self)
    }

    fn reshape(&mut self, shape: Shape) -> Result<()> {
        if shape != self.launch.shape() {
            self.launch = Arc::new(self.launch.reshaped(shape)?);
        }
        Ok(())
    }

    /// How the client would describe it. Its pointers are good as long as the node has these parameters.
    pub(crate) fn describe(&self) -> CUDA_KERNEL_NODE_PARAMS_v1 {
        let Shape { grid, block, shared, .. } = self.launch.shape();
        CUDA_KERNEL_NODE_PARAMS_v1 {
            func: self.launch.function().handle(),
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: shared,
            kernelParams: self.pointers.as_client(),
            extra: Extra::null(),
        }
    }

    /// An attribute; what was never set is zero.
    pub(crate) fn attribute(&self, id: CUlaunchAttributeID) -> Result<CUlaunchAttributeValue> {
        check_attribute(id)?;
        Ok(match id {
            CUlaunchAttributeID::COOPERATIVE => {
                CUlaunchAttributeValue::of(self.launch.shape().cooperative.into())
            }
            _ => self.attributes.get(&id.0).copied().unwrap_or(CUlaunchAttributeValue::of(0)),
        })
    }

    /// Sets an attribute.
    pub(crate) fn set_attribute(
        &mut self,
        id: CUlaunchAttributeID,
        value: CUlaunchAttributeValue,
    ) -> Result<()> {
        check_attribute(id)?;
        match id {
            CUlaunchAttributeID::COOPERATIVE => {
                let cooperative = value.number() != 0;
                self.reshape(Shape { cooperative, ..self.launch.shape() })?;
            }
            // A cluster of one block is a block.
            CUlaunchAttributeID::CLUSTER_DIMENSION if value.first::<3>().iter().any(|blocks| *blocks > 1) => {
                return Err(Status::NOT_SUPPORTED);
            }
            _ => {
                self.attributes.insert(id.0, value);
            }
        }
        Ok(())
    }
}

/// The attributes that kernel nodes have.
fn check_attribute(id: CUlaunchAttributeID) -> Result<()> {
    match id {
        CUlaunchAttributeID::ACCESS_POLICY_WINDOW
        | CUlaunchAttributeID::COOPERATIVE
        | CUlaunchAttributeID::CLUSTER_DIMENSION
        | CUlaunchAttributeID::CLUSTER_SCHEDULING_POLICY_PREFERENCE
        | CUlaunchAttributeID::PRIORITY
        | CUlaunchAttributeID::MEM_SYNC_DOMAIN_MAP
        | CUlaunchAttributeID::MEM_SYNC_DOMAIN => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

impl Kernel {
    /// The priority that the client has asked for.
    pub(super) fn priority(&self) -> i32 {
        self.attributes.get(&CUlaunchAttributeID::PRIORITY.0).map_or(0, CUlaunchAttributeValue::number)
    }
}

impl CopyTask {
    /// How the client has described it, or would.
    pub(crate) fn describe(&self) -> CUDA_MEMCPY3D {
        self.given.0
    }
}

impl Fill {
    /// Memory as the client describes it.
    pub(crate) fn new(given: CUDA_MEMSET_NODE_PARAMS) -> Result<Fill> {
        let invalid = Status::INVALID_VALUE;
        let element = u64::from(given.elementSize);
        let limit = match given.elementSize {
            1 => 0xff,
            2 => 0xffff,
            4 => u32::MAX,
            _ => return Err(invalid),
        };
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
        Ok(Fill { given, target })
    }

    fn takes(&self, other: &Fill) -> bool {
        let shape =
            |fill: &Fill| (fill.given.width, fill.given.height, fill.given.elementSize, fill.given.pitch);
        Mapping::of(&self.target).takes(Mapping::of(&other.target))
            && (self.given.height == 1 || shape(self) == shape(other))
    }

    fn op(&self) -> Op {
        let given = self.given;
        let pattern = match given.elementSize {
            1 => Pattern::of8(given.value as u8),
            2 => Pattern::of16(given.value as u16),
            _ => Pattern::of32(given.value),
        };
        Op::Fill {
            target: self.target.clone(),
            pattern,
            width: given.width as u64 * u64::from(given.elementSize),
            height: given.height as u64,
            pitch: given.pitch as u64,
        }
    }

    /// Memory of an operation that was captured.
    pub(super) fn captured(target: Bytes, pattern: Pattern, width: u64, height: u64, pitch: u64) -> Fill {
        let bytes = pattern.bytes();
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        let given = CUDA_MEMSET_NODE_PARAMS {
            dst: target.address(),
            pitch: pitch as usize,
            value,
            elementSize: bytes.len() as u32,
            width: (width / bytes.len().max(1) as u64) as usize,
            height: height as usize,
        };
        Fill { given, target }
    }
}

impl Host {
    /// How the client has described it.
    pub(crate) fn describe(&self) -> CUDA_HOST_NODE_PARAMS {
        let (function, argument) = self.0.parts();
        CUDA_HOST_NODE_PARAMS { function: Some(function), userData: argument }
    }

    /// A function as the client describes it.
    pub(crate) fn new(given: &CUDA_HOST_NODE_PARAMS) -> Result<Host> {
        let function = given.function.ok_or(Status::INVALID_VALUE)?;
        Ok(Host(HostFunction::new(function, given.userData)))
    }
}

/// A copy as a client would describe it: each side from its first byte on.
fn describe(copy: &Copy) -> CUDA_MEMCPY3D {
    let null = std::ptr::null_mut::<c_void>();
    let side = |side: &Side| {
        let (kind, host, device) = match &side.memory {
            Memory::Known(bytes) if bytes.is_mapped() => {
                (CUmemorytype::HOST, std::ptr::without_provenance_mut(bytes.address() as usize), 0)
            }
            Memory::Known(bytes) => (CUmemorytype::DEVICE, null, bytes.address()),
            Memory::Host(memory) => {
                (CUmemorytype::HOST, std::ptr::without_provenance_mut(memory.address() as usize), 0)
            }
            // Nothing that is captured was copied aside.
            Memory::Staged(_) => (CUmemorytype::HOST, null, 0),
        };
        let layout = side.layout;
        (
            kind,
            host,
            device,
            layout.pitch as usize,
            layout.slice.checked_div(layout.pitch).unwrap_or(0) as usize,
        )
    };
    let (dst_type, dst_host, dst_device, dst_pitch, dst_height) = side(&copy.target);
    let (src_type, src_host, src_device, src_pitch, src_height) = side(&copy.source);
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: src_type,
        srcHost: src_host.cast_const(),
        srcDevice: src_device,
        srcArray: CUarray::NULL,
        srcContext: CUcontext::NULL,
        srcPitch: src_pitch,
        srcHeight: src_height,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: dst_type,
        dstHost: dst_host,
        dstDevice: dst_device,
        dstArray: CUarray::NULL,
        dstContext: CUcontext::NULL,
        dstPitch: dst_pitch,
        dstHeight: dst_height,
        WidthInBytes: copy.width as usize,
        Height: copy.height as usize,
        Depth: copy.depth as usize,
    }
}

impl Pointers {
    /// Where each parameter is.
    fn into(params: &Arc<[u8]>, function: &crate::code::Function) -> Pointers {
        let at = |offset: u32| params.as_ptr().wrapping_add(offset as usize).expose_provenance();
        let addresses = function.kernel().params.iter().map(|param| at(param.offset)).collect();
        Pointers { addresses, _params: params.clone() }
    }

    /// As clients have them.
    fn as_client(&self) -> In<In<u8>> {
        // SAFETY: an address for each parameter, within what this keeps; clients have them as long as the node is.
        unsafe { In::new(self.addresses.as_ptr().cast()) }
    }
}
