//! Graphs of the driver: a list of operations, captured once and launched with one call.
//!
//! The operations are issued on a stream that captures, one behind the other, and after each the driver is asked which
//! node it has become. Replays that a list has are captured with the operations that they have: the driver's graphs do
//! not nest here. Whoever waits for the whole context meanwhile, on any thread and in any library, ends the capture with an
//! error: then it is made again. The driver orders replays of one graph behind one another, and keeps what a replay under way needs.

use super::context::Context;
use super::error::{CallError, check};
use super::handles::Stream;
use super::launch::Call;
use super::sys::{self, CUgraph, CUgraphExec, CUgraphNode, CaptureMode, CaptureStatus, Status};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

/// How often a capture is begun that somebody else puts an end to.
const TRIES: u32 = 100;

/// A graph that is ready for replays.
pub(crate) struct Exec {
    /// The driver's functions want one thread at a time for a graph.
    graph: Mutex<Handles>,
}

struct Handles {
    context: Arc<Context>,
    /// The nodes are those of this one.
    _graph: Captured,
    exec: CUgraphExec,
    /// By operation of the list; `None` for one that is no node: empty, or of several.
    nodes: Vec<Option<CUgraphNode>>,
}

// SAFETY: handles are names that the driver looks up from any thread; which one at a time is the mutex's.
unsafe impl Send for Handles {}

/// An operation that cannot be in a graph.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its place in the list; `None` where it is the whole graph.
    pub(crate) node: Option<usize>,
    /// What the driver says.
    pub(crate) error: CallError,
}

impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        Refused { node: None, error }
    }
}

/// A graph that was captured, destroyed when it is dropped.
struct Captured(CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: nothing else has the handle. An error has nobody to be told to.
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

impl Exec {
    /// Captures `len` operations: `issue` issues one of them, by its place.
    pub(crate) fn new(
        context: &Arc<Context>,
        len: usize,
        mut issue: impl FnMut(usize, &Stream) -> Result<(), CallError>,
    ) -> Result<Self, Refused> {
        let stream = Stream::new(context)?;
        for _ in 1..TRIES {
            match Self::capture(context, &stream, len, &mut issue) {
                Err(Refused { error, .. }) if error.is(Status::STREAM_CAPTURE_INVALIDATED) => {
                    std::thread::yield_now();
                }
                captured => return captured,
            }
        }
        Self::capture(context, &stream, len, &mut issue)
    }

    /// The same on a stream that captures nothing. It does so no more when this returns.
    fn capture(
        context: &Arc<Context>,
        stream: &Stream,
        len: usize,
        issue: &mut impl FnMut(usize, &Stream) -> Result<(), CallError>,
    ) -> Result<Self, Refused> {
        let mode = CaptureMode::THREAD_LOCAL;
        // SAFETY: the stream is ours alone, and captures nothing.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.raw(), mode) })?;
        let mut nodes = Vec::with_capacity(len);
        let mut last = None;
        let mut issued = Ok(());
        for at in 0..len {
            let tail = issue(at, stream).and_then(|()| tail(stream));
            match tail {
                Ok(tail) => {
                    nodes.push(tail.filter(|_| tail != last));
                    last = tail;
                }
                Err(error) => {
                    issued = Err(Refused { node: Some(at), error });
                    break;
                }
            }
        }
        let mut graph = null_mut();
        // SAFETY: writes the handle. The capture ends in any case.
        let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream.raw(), &mut graph) });
        let graph = Captured(graph);
        issued?;
        ended?;
        let mut exec = null_mut();
        // SAFETY: writes the handle; the graph lives.
        check("cuGraphInstantiateWithFlags", unsafe {
            sys::cuGraphInstantiateWithFlags(&mut exec, graph.0, 0)
        })?;
        let handles = Handles { context: context.clone(), _graph: graph, exec, nodes };
        // So that the first replay takes no longer than others.
        // SAFETY: both handles live; the stream captures no more.
        check("cuGraphUpload", unsafe { sys::cuGraphUpload(exec, stream.raw()) })?;
        Ok(Exec { graph: Mutex::new(handles) })
    }

    /// Replays it: one call. The context is bound.
    ///
    /// # Safety
    ///
    /// What the operations use is there, and they are in the order of the stream.
    #[inline]
    pub(crate) unsafe fn launch(&self, stream: &Stream) -> Result<(), CallError> {
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles live; the rest is the caller's promise.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph.exec, stream.raw()) })
    }

    /// Replays from now on have that launch, of the same function, in that place of the list.
    pub(crate) fn update(&self, at: usize, call: &Call) -> Result<(), CallError> {
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        graph.context.bind()?;
        let Some(node) = graph.nodes.get(at).copied().flatten() else {
            return Err(CallError::new("cuGraphExecKernelNodeSetParams", Status::INVALID_VALUE));
        };
        let params = call.node();
        // SAFETY: the node is of the graph that this was made from, which lives; the driver copies the arguments.
        let asked = unsafe { sys::cuGraphExecKernelNodeSetParams_v2(graph.exec, node, &params) };
        check("cuGraphExecKernelNodeSetParams", asked)
    }
}

/// The node that what the stream captures ends with.
fn tail(stream: &Stream) -> Result<Option<CUgraphNode>, CallError> {
    let mut status = CaptureStatus::NONE;
    let (mut nodes, mut count): (*const CUgraphNode, usize) = (null(), 0);
    // SAFETY: writes the status, where the driver has the nodes, and how many they are.
    let asked = unsafe {
        sys::cuStreamGetCaptureInfo_v2(
            stream.raw(),
            &mut status,
            null_mut(),
            null_mut(),
            &mut nodes,
            &mut count,
        )
    };
    check("cuStreamGetCaptureInfo", asked)?;
    if count == 0 || nodes.is_null() {
        return Ok(None);
    }
    // SAFETY: the driver's list has that many nodes until the stream is asked for something else.
    Ok(unsafe { std::slice::from_raw_parts(nodes, count) }.last().copied())
}

impl Drop for Handles {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nothing else has the handle; a replay under way goes on. An error has nobody to be told to.
            let _ = unsafe { sys::cuGraphExecDestroy(self.exec) };
        }
    }
}
