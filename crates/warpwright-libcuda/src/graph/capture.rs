//! Capture: operations of streams become nodes of a graph instead of being executed.
//!
//! A capture begins on one stream. Others join when they wait for an event recorded in it, and leave when it ends. It
//! ends on the stream that it began on, after all operations of the others were joined to that stream's last node. For
//! each stream the capture knows the dependencies of the next node.
//!
//! **An operation that cannot be captured invalidates the capture**: it records nothing more, and ends without a graph.
//! The lock of a capture is taken before that of its graph, and no stream's lock is held meanwhile.

use super::nodes::{GRAPHS, Graph, NodeId};
use super::task::Fill;
use super::{Kernel, Task, Values, guard};
use crate::code::Launch;
use crate::engine::{CapturedEvent, Engine, Event, HostFunction, Recorded, Recorder, Stream};
use crate::lock;
use crate::report::log;
use crate::state::Context;
use crate::types::{
    CUdeviceptr, CUgraph, CUgraphNode, CUstreamCaptureMode as Mode, CUstreamCaptureStatus as CaptureStatus,
    Result, Status,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use warpwright_device::{Op, StreamKind};

/// The active captures.
static CAPTURES: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

/// Their number, to skip the search when there are none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A capture.
pub(crate) struct Capture {
    id: u64,
    pub(crate) mode: Mode,
    pub(crate) thread: ThreadId,
    /// The stream that it began on.
    origin: u64,
    /// The graph of its nodes.
    graph: Arc<Graph>,
    /// Whether the graph existed before.
    is_clients: bool,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// The streams in the capture, by their numbers.
    streams: BTreeMap<u64, Participant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Active,
    Invalidated,
    Ended,
}

struct Participant {
    stream: Arc<Stream>,
    /// The dependencies of its next node.
    behind: Vec<NodeId>,
    /// The same as last returned to the client, which may read it until the next query.
    told: Box<[CUgraphNode]>,
}

/// The state of a capture for a client.
pub(crate) struct Info {
    pub(crate) status: CaptureStatus,
    pub(crate) id: u64,
    pub(crate) graph: CUgraph,
    /// Valid until the next call with the stream.
    pub(crate) behind: *const CUgraphNode,
    pub(crate) count: usize,
}

/// An event recorded in a capture: the nodes before it.
struct Captured {
    capture: Arc<Capture>,
    behind: Vec<NodeId>,
}

/// A capture as its streams refer to it.
struct Recording(Arc<Capture>);

/// The active captures; usually there are none.
pub(super) fn ongoing() -> Vec<Arc<Capture>> {
    if COUNT.load(Relaxed) == 0 { Vec::new() } else { lock(&CAPTURES).clone() }
}

/// The capture of a stream.
fn of(stream: &Stream) -> Option<Arc<Capture>> {
    if !stream.is_capturing() {
        return None;
    }
    ongoing().into_iter().find(|capture| lock(&capture.state).streams.contains_key(&stream.id()))
}

impl Capture {
    /// Whether it is valid.
    pub(super) fn is_active(&self) -> bool {
        lock(&self.state).phase == Phase::Active
    }

    /// Whether it has a stream for which the condition holds.
    pub(super) fn has(&self, holds: impl FnMut(&Stream) -> bool) -> bool {
        let mut holds = holds;
        lock(&self.state).streams.values().any(|participant| holds(&participant.stream))
    }

    /// Invalidates it.
    pub(super) fn invalidate(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Active {
            state.phase = Phase::Invalidated;
        }
    }

    /// Adds a node to those of a stream.
    fn add(&self, stream: &Stream, task: Task) -> Result<()> {
        let mut state = lock(&self.state);
        let participant = state.participant(stream)?;
        let known = lock(&self.graph.state);
        participant.behind.retain(|id| known.contains_key(id));
        drop(known);
        let dependent = matches!(&task, Task::Kernel(kernel) if kernel.launch.dependent);
        let (id, _) = self.graph.add(task, &participant.behind)?;
        if dependent {
            self.graph.overlap(id);
        }
        participant.behind = vec![id];
        Ok(())
    }

    /// Invalidates it because of an operation that cannot be captured.
    fn refuse(&self, status: Status, why: &str) -> Status {
        log::misuse(&format_args!("{why}: the capture is invalid now"));
        self.invalidate();
        status
    }

    /// Whether all nodes of all streams precede the last nodes of its first stream.
    fn is_joined(&self, state: &State) -> bool {
        let nodes = lock(&self.graph.state);
        let Some(origin) = state.streams.get(&self.origin) else { return false };
        let mut before: HashSet<NodeId> = HashSet::new();
        let mut open = origin.behind.clone();
        while let Some(id) = open.pop() {
            if before.insert(id) {
                open.extend(nodes.get(&id).into_iter().flat_map(|entry| entry.dependencies.iter().copied()));
            }
        }
        let mut last = state.streams.values().flat_map(|participant| &participant.behind);
        last.all(|id| before.contains(id) || !nodes.contains_key(id))
    }

    /// Releases its streams.
    fn release(&self) -> Vec<Arc<Stream>> {
        let mut state = lock(&self.state);
        state.phase = Phase::Ended;
        let streams = std::mem::take(&mut state.streams);
        drop(state);
        let mut captures = lock(&CAPTURES);
        captures.retain(|capture| capture.id != self.id);
        COUNT.store(captures.len(), Relaxed);
        streams.into_values().map(|participant| participant.stream).collect()
    }
}

impl State {
    /// A stream in a valid capture.
    fn participant(&mut self, stream: &Stream) -> Result<&mut Participant> {
        match self.phase {
            Phase::Active => self.streams.get_mut(&stream.id()).ok_or(Status::ILLEGAL_STATE),
            Phase::Invalidated => Err(Status::STREAM_CAPTURE_INVALIDATED),
            Phase::Ended => Err(Status::ILLEGAL_STATE),
        }
    }
}

impl Recorder for Recording {
    fn record(&self, stream: &Arc<Stream>, op: Op) -> Result<()> {
        let capture = &self.0;
        let task = match op {
            Op::Copy(copy) => Task::Copy(copy),
            Op::Fill { target, pattern, width, height, pitch } => {
                Task::Fill(Fill { target, pattern, width, height, pitch })
            }
            Op::WaitValue { .. } | Op::WriteValue { .. } => Task::Values(Values::new([op].into())),
            Op::Batch(ops, 0)
                if ops
                    .iter()
                    .all(|op| matches!(op, Op::WaitValue { .. } | Op::WriteValue { .. } | Op::Nothing)) =>
            {
                Task::Values(Values::new(ops))
            }
            Op::Nothing => return Ok(()),
            Op::Wait(_) => {
                let why =
                    "a stream that captures waits for an event that was recorded outside of the capture";
                return Err(capture.refuse(Status::STREAM_CAPTURE_ISOLATION, why));
            }
            Op::Launch { .. }
            | Op::Standing(_)
            | Op::Move { .. }
            | Op::Call(_)
            | Op::Signal(_)
            | Op::Running(_)
            | Op::Release(_)
            | Op::Retain { .. }
            | Op::Decide(_)
            | Op::Batch(..) => {
                let why = "this cannot be captured";
                return Err(capture.refuse(Status::STREAM_CAPTURE_UNSUPPORTED, why));
            }
        };
        capture.add(stream, task)
    }

    fn record_host(&self, stream: &Arc<Stream>, function: HostFunction) -> Result<()> {
        self.0.add(stream, Task::Host(function))
    }

    fn record_event(&self, stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
        let behind = lock(&self.0.state).participant(stream)?.behind.clone();
        event.set(Recorded::Captured(Arc::new(Captured { capture: self.0.clone(), behind })));
        Ok(())
    }

    fn record_outside(&self, stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
        self.0.add(stream, Task::Record(event.clone()))
    }
}

impl CapturedEvent for Captured {
    fn join(&self, stream: &Arc<Stream>) -> Result<()> {
        let capture = &self.capture;
        if stream.kind() == StreamKind::Legacy {
            let why = "the default stream waits for an event of a capture, which it cannot take part in";
            return Err(capture.refuse(Status::STREAM_CAPTURE_IMPLICIT, why));
        }
        if let Some(other) = of(stream).filter(|other| other.id != capture.id) {
            other.invalidate();
            return Err(capture.refuse(
                Status::STREAM_CAPTURE_MERGE,
                "a stream of another capture waits for an event of this one",
            ));
        }
        let mut state = lock(&capture.state);
        match state.phase {
            Phase::Active => {}
            Phase::Invalidated => return Err(Status::STREAM_CAPTURE_INVALIDATED),
            // Where the event was is in a graph now.
            Phase::Ended => return Err(Status::CAPTURED_EVENT),
        }
        if let Some(participant) = state.streams.get_mut(&stream.id()) {
            let new = self.behind.iter().filter(|id| !participant.behind.contains(id)).copied();
            let new: Vec<NodeId> = new.collect();
            participant.behind.extend(new);
            return Ok(());
        }
        let participant =
            Participant { stream: stream.clone(), behind: self.behind.clone(), told: Box::default() };
        state.streams.insert(stream.id(), participant);
        drop(state);
        stream.capture(Some(Arc::new(Recording(capture.clone()))));
        Ok(())
    }
}

/// Begins a capture, into a client's graph or a new one. The first node depends on the given nodes.
pub(crate) fn begin(stream: &Arc<Stream>, mode: Mode, into: Option<(Arc<Graph>, Vec<NodeId>)>) -> Result<()> {
    static IDS: AtomicU64 = AtomicU64::new(1);
    mode.check()?;
    if stream.kind() == StreamKind::Legacy {
        log::misuse(&"the default stream cannot be captured: capture one that was made, or the thread's own");
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream.is_capturing() {
        log::misuse(&"the stream captures already");
        return Err(Status::ILLEGAL_STATE);
    }
    let is_clients = into.is_some();
    let (graph, behind) = match into {
        Some(into) => into,
        None => (Graph::create(false)?, Vec::new()),
    };
    let participant = Participant { stream: stream.clone(), behind, told: Box::default() };
    let capture = Arc::new(Capture {
        id: IDS.fetch_add(1, Relaxed),
        mode,
        thread: std::thread::current().id(),
        origin: stream.id(),
        graph,
        is_clients,
        state: Mutex::new(State { phase: Phase::Active, streams: [(stream.id(), participant)].into() }),
    });
    let mut captures = lock(&CAPTURES);
    captures.push(capture.clone());
    COUNT.store(captures.len(), Relaxed);
    drop(captures);
    stream.capture(Some(Arc::new(Recording(capture))));
    Ok(())
}

/// Ends the capture that began on a stream, and returns its graph, which only a client that has it may leave here.
pub(crate) fn end(stream: &Arc<Stream>, is_taken: bool) -> Result<CUgraph> {
    let capture = of(stream).ok_or_else(|| {
        log::misuse(&"the stream does not capture");
        Status::ILLEGAL_STATE
    })?;
    if !is_taken && !capture.is_clients {
        return Err(Status::INVALID_VALUE);
    }
    if capture.origin != stream.id() {
        log::misuse(&"the capture ends on the stream that it began on");
        return Err(Status::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != Mode::RELAXED && capture.thread != std::thread::current().id() {
        log::misuse(&"the capture ends in the thread that began it, or began with the relaxed mode");
        return Err(Status::STREAM_CAPTURE_WRONG_THREAD);
    }
    let state = lock(&capture.state);
    let phase = state.phase;
    let joined = phase == Phase::Active && capture.is_joined(&state);
    drop(state);
    capture.release().iter().for_each(|stream| stream.capture(None));
    let failed = match phase {
        Phase::Active if joined => return Ok(capture.graph.handle),
        Phase::Active => {
            log::misuse(
                &"another stream of the capture has work that the one it began on has not waited for",
            );
            Status::STREAM_CAPTURE_UNJOINED
        }
        _ => Status::STREAM_CAPTURE_INVALIDATED,
    };
    if !capture.is_clients {
        // The client may have destroyed it: it was told of it.
        if GRAPHS.find(capture.graph.handle.0).is_ok() {
            let _ = GRAPHS.remove(capture.graph.handle.0);
        }
        capture.graph.clear();
    }
    Err(failed)
}

/// The state of a stream's capture.
pub(crate) fn info(stream: &Arc<Stream>) -> Result<Info> {
    guard::asks(stream)?;
    let none =
        Info { status: CaptureStatus::NONE, id: 0, graph: CUgraph::NULL, behind: std::ptr::null(), count: 0 };
    let Some(capture) = of(stream) else { return Ok(none) };
    let mut state = lock(&capture.state);
    if state.phase == Phase::Invalidated {
        return Ok(Info { status: CaptureStatus::INVALIDATED, id: capture.id, ..none });
    }
    let Ok(participant) = state.participant(stream) else { return Ok(none) };
    let nodes = lock(&capture.graph.state);
    participant.told = participant.behind.iter().filter_map(|id| Some(nodes.get(id)?.handle)).collect();
    Ok(Info {
        status: CaptureStatus::ACTIVE,
        id: capture.id,
        graph: capture.graph.handle,
        behind: participant.told.as_ptr(),
        count: participant.told.len(),
    })
}

/// Adds to, or replaces, the dependencies of a stream's next node.
pub(crate) fn set_behind(stream: &Arc<Stream>, nodes: &[CUgraphNode], instead: bool) -> Result<()> {
    let capture = of(stream).ok_or(Status::ILLEGAL_STATE)?;
    let ids = super::nodes::ids(&capture.graph, nodes)?;
    let mut state = lock(&capture.state);
    let participant = state.participant(stream)?;
    if instead {
        participant.behind.clear();
    }
    let new: Vec<NodeId> = ids.into_iter().filter(|id| !participant.behind.contains(id)).collect();
    participant.behind.extend(new);
    Ok(())
}

/// Handles a destroyed stream. A capture that began there becomes invalid and ends; one that it has joined keeps what it
/// has recorded, which must be joined with the rest in the end.
pub(crate) fn forget(stream: &Arc<Stream>) {
    let Some(capture) = of(stream) else { return };
    if capture.origin == stream.id() {
        capture.invalidate();
        capture.release().iter().for_each(|stream| stream.capture(None));
    }
}

/// Ends the captures of a destroyed context's streams.
pub(crate) fn forget_context(context: &Context) {
    for capture in ongoing() {
        if capture.has(|stream| stream.context.id == context.id) {
            capture.release().iter().for_each(|stream| stream.capture(None));
        }
    }
}

/// Adds a node that allocates to a stream's capture, and returns the address.
pub(crate) fn alloc(stream: &Arc<Stream>, engine: &Arc<Engine>, bytes: u64) -> Result<CUdeviceptr> {
    let capture = of(stream).ok_or(Status::ILLEGAL_STATE)?;
    let context = &stream.context;
    let alloc = capture.graph.alloc(engine, bytes, (context.id, context.handle), Vec::new())?;
    let address = alloc.memory.block.base();
    capture.add(stream, Task::Alloc(alloc))?;
    Ok(address)
}

/// Adds a node that frees to a stream's capture.
pub(crate) fn free(stream: &Arc<Stream>, address: CUdeviceptr) -> Result<()> {
    let capture = of(stream).ok_or(Status::ILLEGAL_STATE)?;
    capture.add(stream, capture.graph.free(address)?)
}

/// Adds a node to a stream's capture.
pub(crate) fn add(stream: &Arc<Stream>, task: Task) -> Result<()> {
    of(stream).ok_or(Status::ILLEGAL_STATE)?.add(stream, task)
}

/// Launches a kernel on a stream, or adds it to the stream's capture.
pub(crate) fn launch(stream: &Arc<Stream>, launch: Launch) -> Result<()> {
    match of(stream) {
        Some(capture) => capture.add(stream, Task::Kernel(Kernel::new(launch))),
        None => {
            let overlaps = launch.dependent;
            stream.submit(Op::Launch { launch: Arc::new(launch), overlaps })
        }
    }
}
