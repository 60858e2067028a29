//! Graphs of the driver: a list of operations as nodes, each depending on the one before, instantiated once and
//! launched with one call.
//!
//! A capture on a [`Stream`](crate::Stream) yields a list, and its nodes are made one by one, without a capture of the
//! driver: during one, no thread may wait for the whole context, in any mode, thread or library; an attempt fails and
//! invalidates the capture. **Only operations that drivers refuse as nodes are captured**, alone, as child graphs:
//! refused memsets, and launches with many arguments.
//!
//! Replays in a list become the nodes of their operations: graphs do not nest otherwise. The driver orders replays of
//! one graph after one another, and keeps the resources of running replays alive.

use super::context::{Context, Unbound};
use super::error::{CallError, check};
use super::handles::Stream;
use super::issue::{address, fill};
use super::launch::Call;
use super::sys::{
    self, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphNode, CUmemorytype,
    CaptureMode, Status,
};
use crate::lock;
use crate::op::{MemoryRange, Op, Word};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, OnceLock};

/// An edge of a graph, as drivers from CUDA 12.3 on describe it.
#[repr(C)]
#[derive(Clone, Copy)]
struct EdgeData {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

/// From where a kernel lets its dependents begin, to the beginning of another one.
const PROGRAMMATIC: EdgeData = EdgeData { from_port: 1, to_port: 0, kind: 1, reserved: [0; 5] };

/// Adds edges: the graph, the nodes that they lead from and to, what they are, and how many there are.
type AddEdges =
    unsafe extern "C" fn(CUgraph, *const CUgraphNode, *const CUgraphNode, *const EdgeData, usize) -> Status;

/// The function for edges that are more than an order. Older drivers have none: what would overlap is in order there.
fn programmatic_edges() -> Option<AddEdges> {
    static FUNCTION: OnceLock<Option<AddEdges>> = OnceLock::new();
    // SAFETY: there is a graph, and so the library; what has that name has that type.
    *FUNCTION.get_or_init(|| unsafe { sys::lookup("cuGraphAddDependencies_v2\0") })
}

/// Bytes of arguments that every driver takes in a node. Launches may have more, of which some crash.
const ARGUMENTS: usize = 4096;

/// A graph that is ready for replays.
pub(crate) struct Exec {
    /// The driver's functions want one thread at a time for a graph.
    graph: Mutex<Handles>,
}

struct Handles {
    context: Arc<Context>,
    /// The nodes are those of this one.
    _graph: Graph,
    exec: CUgraphExec,
    /// By operation of the list; `None` for one that is no node: empty, or of several.
    nodes: Vec<Option<Node>>,
}

/// A node of a graph.
#[derive(Clone, Copy)]
struct Node {
    handle: CUgraphNode,
    /// Whether it is a graph of its own, which was captured.
    is_graph: bool,
}

// SAFETY: handles are names that the driver looks up from any thread; which one at a time is the mutex's.
unsafe impl Send for Handles {}

/// An operation that cannot be in a graph.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its index in the list; `None` if it is about the whole graph.
    pub(crate) node: Option<usize>,
    /// What the driver says.
    pub(crate) error: CallError,
}

impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        Refused { node: None, error }
    }
}

/// A graph, destroyed when it is dropped.
struct Graph(CUgraph);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: nothing else has the handle. An error cannot be reported.
        let _ = unsafe { sys::cuGraphDestroy(self.0) };
    }
}

/// The operations that a function issues on a stream, as a graph. The context is bound.
fn captured(
    context: &Arc<Context>,
    ask: impl FnOnce(&Stream) -> Result<(), CallError>,
) -> Result<Graph, CallError> {
    let stream = Stream::new(context, 0)?;
    // SAFETY: the handle lives. In relaxed mode the capture does not forbid allocation.
    check("cuStreamBeginCapture", unsafe {
        sys::cuStreamBeginCapture_v2(stream.handle, CaptureMode::RELAXED)
    })?;
    let asked = ask(&stream);
    let mut graph = null_mut();
    // SAFETY: writes the handle; that of the stream lives.
    let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream.handle, &mut graph) });
    let graph = ended.map(|()| Graph(graph));
    asked?;
    graph
}

/// A launch as a graph. The context is bound.
fn captured_launch(context: &Arc<Context>, call: &Call) -> Result<Graph, CallError> {
    // SAFETY: nothing is launched: it is captured. The function's module is loaded, and the driver copies the arguments.
    captured(context, |stream| unsafe { call.issue(stream, false) })
}

/// Nodes that come one behind the other.
struct Chain<'a> {
    context: &'a Arc<Context>,
    graph: Graph,
    last: Option<CUgraphNode>,
    /// Whether the last one launches a kernel.
    kernel: bool,
}

impl<'a> Chain<'a> {
    /// No nodes. The context is bound.
    fn new(context: &'a Arc<Context>) -> Result<Self, CallError> {
        let mut graph = null_mut();
        // SAFETY: writes the handle.
        check("cuGraphCreate", unsafe { sys::cuGraphCreate(&mut graph, 0) })?;
        Ok(Chain { context, graph: Graph(graph), last: None, kernel: false })
    }

    /// Adds an operation: its node, where it is one.
    fn add(&mut self, op: &Op) -> Result<Option<Node>, CallError> {
        match op {
            Op::Launch { launch, overlaps } => self.launch(&launch.code.cuda().call, *overlaps).map(Some),
            Op::Copy { target, .. } | Op::Fill { target, .. } if target.bytes == 0 => Ok(None),
            Op::Copy { source, target } => self.copy(source, target).map(Some),
            Op::Fill { target, word } => self.fill(target, *word).map(Some),
            Op::Replay { ops, .. } => {
                // The beginning and the end of a graph end a chain.
                self.kernel = false;
                for op in ops.iter() {
                    self.add(op)?;
                }
                self.kernel = false;
                Ok(None)
            }
        }
    }

    /// Adds a node behind the last one. `make` is told where its handle goes, of what graph it is, what it comes behind and
    /// how many those are.
    fn node(
        &mut self,
        call: &'static str,
        make: impl FnOnce(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> Status,
    ) -> Result<Node, CallError> {
        let mut node = null_mut();
        let behind = self.last.as_ref();
        let made = make(
            &mut node,
            self.graph.0,
            behind.map_or(null(), std::ptr::from_ref),
            usize::from(behind.is_some()),
        );
        check(call, made)?;
        (self.last, self.kernel) = (Some(node), false);
        Ok(Node { handle: node, is_graph: false })
    }

    /// Adds a graph as a node.
    fn graph(&mut self, child: &Graph) -> Result<Node, CallError> {
        let node = self.node("cuGraphAddChildGraphNode", |node, graph, behind, count| {
            // SAFETY: writes the handle; the driver copies the graph.
            unsafe { sys::cuGraphAddChildGraphNode(node, graph, behind, count, child.0) }
        })?;
        Ok(Node { is_graph: true, ..node })
    }

    fn launch(&mut self, call: &Call, overlaps: bool) -> Result<Node, CallError> {
        if call.argument_bytes() > ARGUMENTS {
            return self.graph(&captured_launch(self.context, call)?);
        }
        let params = call.node();
        // What comes behind a copy or a memset waits for its end, whatever it is.
        let edge = if self.kernel && overlaps { programmatic_edges() } else { None };
        let before = self.last.filter(|_| edge.is_some());
        let node = self.node("cuGraphAddKernelNode", |node, graph, behind, count| {
            let count = if edge.is_some() { 0 } else { count };
            // SAFETY: writes the handle; the function's module is loaded, and the driver copies the arguments.
            unsafe { sys::cuGraphAddKernelNode_v2(node, graph, behind, count, &params) }
        })?;
        if let Some((add, before)) = edge.zip(before) {
            // SAFETY: both nodes are of this graph.
            let added = unsafe { add(self.graph.0, &before, &node.handle, &PROGRAMMATIC, 1) };
            check("cuGraphAddDependencies", added)?;
        }
        self.kernel = true;
        let (attributes, count) = call.attributes();
        for attribute in &attributes[..count as usize] {
            // SAFETY: the node was just made; the value is that of the attribute, and is copied.
            let set =
                unsafe { sys::cuGraphKernelNodeSetAttribute(node.handle, attribute.id, &attribute.value) };
            check("cuGraphKernelNodeSetAttribute", set)?;
        }
        Ok(node)
    }

    fn copy(&mut self, source: &MemoryRange, target: &MemoryRange) -> Result<Node, CallError> {
        let params = CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            // Memory of the device, or mapped memory of the host's.
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: null(),
            srcDevice: address(source),
            srcArray: null_mut(),
            reserved0: null_mut(),
            srcPitch: 0,
            srcHeight: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: null_mut(),
            dstDevice: address(target),
            dstArray: null_mut(),
            reserved1: null_mut(),
            dstPitch: 0,
            dstHeight: 0,
            WidthInBytes: target.bytes as usize,
            Height: 1,
            Depth: 1,
        };
        let context = self.context.cuda.cu_ctx();
        self.node("cuGraphAddMemcpyNode", |node, graph, behind, count| {
            // SAFETY: writes the handle; both sides have that many bytes.
            unsafe { sys::cuGraphAddMemcpyNode(node, graph, behind, count, &params, context) }
        })
    }

    fn fill(&mut self, target: &MemoryRange, word: Word) -> Result<Node, CallError> {
        let count = word.count(target.bytes) as usize;
        let (width, height) = if word.is_dense() { (count, 1) } else { (1, count) };
        let params = CUDA_MEMSET_NODE_PARAMS {
            dst: address(target),
            pitch: if word.is_dense() { 0 } else { word.pitch as usize },
            value: word.value,
            elementSize: word.size as u32,
            width,
            height,
        };
        let context = self.context.cuda.cu_ctx();
        let node = self.node("cuGraphAddMemsetNode", |node, graph, behind, count| {
            // SAFETY: writes the handle; there are that many bytes.
            unsafe { sys::cuGraphAddMemsetNode(node, graph, behind, count, &params, context) }
        });
        match node {
            // Drivers of about 12.2 refuse a node for memory of a pool, and take what was captured.
            Err(error) if error.is(Status::INVALID_VALUE) => {
                let filled = captured(self.context, |stream| fill(target, word, stream.handle))?;
                self.graph(&filled)
            }
            node => node,
        }
    }
}

impl Exec {
    /// Makes operations a graph. The context is bound.
    pub(crate) fn new(context: &Arc<Context>, ops: &[Op]) -> Result<Self, Refused> {
        let mut chain = Chain::new(context)?;
        let mut nodes = Vec::with_capacity(ops.len());
        for (at, op) in ops.iter().enumerate() {
            nodes.push(chain.add(op).map_err(|error| Refused { node: Some(at), error })?);
        }
        let graph = chain.graph;
        let _unbound = Unbound::new();
        let mut exec = null_mut();
        // SAFETY: writes the handle; the graph lives.
        check("cuGraphInstantiateWithFlags", unsafe {
            sys::cuGraphInstantiateWithFlags(&mut exec, graph.0, 0)
        })?;
        let handles = Handles { context: context.clone(), _graph: graph, exec, nodes };
        // So that the first replay takes no longer than others.
        let stream = Stream::new(context, 0)?;
        // SAFETY: both handles live.
        check("cuGraphUpload", unsafe { sys::cuGraphUpload(exec, stream.handle) })?;
        Ok(Exec { graph: Mutex::new(handles) })
    }

    /// Replays it: one call. The context is bound.
    ///
    /// # Safety
    ///
    /// What the operations use is there, and they are in the order of the stream.
    #[inline]
    pub(crate) unsafe fn launch(&self, stream: &Stream) -> Result<(), CallError> {
        let graph = lock(&self.graph);
        // SAFETY: both handles live; the rest is the caller's promise.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph.exec, stream.handle) })
    }

    /// Replays from now on have that launch, of the same function, in that place of the list.
    pub(crate) fn update(&self, at: usize, call: &Call) -> Result<(), CallError> {
        let graph = lock(&self.graph);
        graph.context.bind()?;
        let Some(node) = graph.nodes.get(at).copied().flatten() else {
            return Err(CallError::new("cuGraphExecKernelNodeSetParams", Status::INVALID_VALUE));
        };
        if node.is_graph {
            let child = captured_launch(&graph.context, call)?;
            // SAFETY: the node is of the graph that this was made from, which lives; the driver copies what is in the child.
            let asked = unsafe { sys::cuGraphExecChildGraphNodeSetParams(graph.exec, node.handle, child.0) };
            return check("cuGraphExecChildGraphNodeSetParams", asked);
        }
        let params = call.node();
        // SAFETY: as above; the driver copies the arguments.
        let asked = unsafe { sys::cuGraphExecKernelNodeSetParams_v2(graph.exec, node.handle, &params) };
        check("cuGraphExecKernelNodeSetParams", asked)
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nothing else has the handle; a replay under way goes on. An error cannot be reported.
            let _ = unsafe { sys::cuGraphExecDestroy(self.exec) };
        }
    }
}
