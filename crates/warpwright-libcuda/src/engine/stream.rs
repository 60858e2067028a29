//! Streams: operations that are done one after the other.
//!
//! A context has a default stream that waits for its blocking streams, and they for it; and one for each thread, which
//! is a blocking stream. A stream that was destroyed does what it was asked for.

use super::queue::Until;
use super::{Engine, Op};
use crate::graph::guard;
use crate::state::{Context, EndOfThread, Handles, Kind, Own, current};
use crate::types::{CUstream, Result, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The streams that clients have made.
pub(crate) static STREAMS: Handles<Stream> = Handles::new(Kind::Stream);

/// How a stream stands to the default stream of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// It is that one.
    Legacy,
    /// They wait for each other.
    Blocking,
    /// It does not care.
    NonBlocking,
}

/// A stream.
pub(crate) struct Stream {
    id: u64,
    context: Arc<Context>,
    engine: Arc<Engine>,
    kind: StreamKind,
    priority: AtomicI32,
    /// Tickets of the last operation that was asked for, and that is done.
    issued: AtomicU64,
    completed: AtomicU64,
    is_capturing: AtomicBool,
    recorder: Mutex<Option<Arc<dyn Recorder>>>,
    attributes: Mutex<BTreeMap<i32, [u8; 64]>>,
}

/// What becomes of a stream's operations while it captures.
pub(crate) trait Recorder: Send + Sync {
    /// An operation is asked for.
    fn record(&self, stream: &Arc<Stream>, op: Op) -> Result<()>;

    /// An event is recorded.
    fn record_event(&self, stream: &Arc<Stream>, event: &Arc<super::Event>) -> Result<()>;

    /// An event is recorded that each run of the graph is to record for those outside.
    fn record_outside(&self, stream: &Arc<Stream>, event: &Arc<super::Event>) -> Result<()>;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// A stream of a context.
    fn new(context: &Arc<Context>, kind: StreamKind, priority: i32) -> Result<Arc<Self>> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Ok(Arc::new(Stream {
            id: IDS.fetch_add(1, Relaxed),
            context: context.clone(),
            engine: super::of(context)?,
            kind,
            priority: AtomicI32::new(priority),
            issued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            is_capturing: AtomicBool::new(false),
            recorder: Mutex::new(None),
            attributes: Mutex::default(),
        }))
    }

    /// A stream with a handle.
    pub(crate) fn create(context: &Arc<Context>, kind: StreamKind, priority: i32) -> Result<CUstream> {
        STREAMS.insert(Stream::new(context, kind, priority)?).map(CUstream)
    }

    /// The stream of a handle, whose context can be used. Null is not among them: what it means depends on the call.
    pub(crate) fn get(handle: CUstream) -> Result<Arc<Stream>> {
        let stream = Stream::find(handle)?;
        stream.context.check()?;
        Ok(stream)
    }

    /// The stream of a handle, whatever the state of its context.
    pub(crate) fn find(handle: CUstream) -> Result<Arc<Stream>> {
        super::permitted()?;
        match handle {
            CUstream::NULL | CUstream::LEGACY => Stream::legacy(&current()?),
            CUstream::PER_THREAD => Stream::per_thread(&current()?),
            handle => Ok(STREAMS.get(handle.0)?),
        }
    }

    /// The default stream of a context.
    pub(crate) fn legacy(context: &Arc<Context>) -> Result<Arc<Stream>> {
        let engine = super::of(context)?;
        let mut legacy = lock(&engine.streams.legacy);
        if let Some(stream) = legacy.get(&context.id()) {
            return Ok(stream.clone());
        }
        let stream = Stream::new(context, StreamKind::Legacy, 0)?;
        Ok(legacy.entry(context.id()).or_insert(stream).clone())
    }

    /// The calling thread's own stream in a context.
    pub(crate) fn per_thread(context: &Arc<Context>) -> Result<Arc<Stream>> {
        static END: EndOfThread = Own::<Vec<Arc<Stream>>>::end();
        thread_local! {
            static OWN: Own<Vec<Arc<Stream>>> = const { Own::new(Vec::new()) };
        }
        let own = OWN.with(|own| {
            own.with(&END, |own| {
                // Those of contexts that are gone go with the first call in another one.
                own.retain(|stream| stream.context.is_alive());
                own.iter().find(|stream| stream.context.id() == context.id()).cloned()
            })
        });
        if let Some(Some(stream)) = own {
            return Ok(stream);
        }
        let stream = Stream::new(context, StreamKind::Blocking, 0)?;
        let kept = OWN.with(|own| own.with(&END, |own| own.push(stream.clone())));
        kept.map(|()| stream).ok_or(Status::INVALID_CONTEXT)
    }

    /// A number that no other stream of the process ever has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where it belongs.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// What does its work.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// How it stands to the default stream.
    pub(crate) fn kind(&self) -> StreamKind {
        self.kind
    }

    /// From 0, the least, downwards.
    pub(crate) fn priority(&self) -> i32 {
        self.priority.load(Relaxed)
    }

    /// Changes it.
    pub(crate) fn set_priority(&self, priority: i32) {
        self.priority.store(priority, Relaxed);
    }

    /// The values of its attributes that were set.
    pub(crate) fn attributes(&self) -> MutexGuard<'_, BTreeMap<i32, [u8; 64]>> {
        lock(&self.attributes)
    }

    /// Asks for an operation, or has the capture record it.
    pub(crate) fn submit(self: &Arc<Self>, op: Op) -> Result<()> {
        match self.recorder() {
            Some(recorder) => recorder.record(self, op),
            None => {
                guard::submits(self)?;
                self.engine.queue().push(self, op);
                Ok(())
            }
        }
    }

    /// Whether operations are recorded and not done.
    pub(crate) fn is_capturing(&self) -> bool {
        self.is_capturing.load(Acquire)
    }

    /// What records its operations.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        if !self.is_capturing() {
            return None;
        }
        lock(&self.recorder).clone()
    }

    /// From now on operations are recorded, or, with `None`, done again.
    pub(crate) fn capture(&self, recorder: Option<Arc<dyn Recorder>>) {
        let mut slot = lock(&self.recorder);
        self.is_capturing.store(recorder.is_some(), Release);
        let old = std::mem::replace(&mut *slot, recorder);
        drop(slot);
        drop(old);
    }

    /// Something was asked for. Called in the order of the queue.
    pub(super) fn issue(&self, ticket: u64) {
        self.issued.store(ticket, Release);
    }

    /// Something is done. Called in the order of the queue.
    pub(super) fn complete(&self, ticket: u64) {
        self.completed.store(ticket, Release);
    }

    fn is_done_through(&self, ticket: u64) -> bool {
        self.completed.load(Acquire) >= ticket
    }

    /// Whether everything is done that was asked for.
    pub(crate) fn query(&self) -> Result<()> {
        let idle = match self.kind {
            // It waits for the blocking streams.
            StreamKind::Legacy => self.engine.queue().is_idle_for(self.context.id()),
            _ => {
                let last = self.issued.load(Acquire);
                let idle = self.is_done_through(last);
                if !idle {
                    self.engine.queue().ask(Until::Stream(self.id, last));
                }
                idle
            }
        };
        self.context.check()?;
        if idle { Ok(()) } else { Err(Status::NOT_READY) }
    }

    /// Waits for what was asked for so far.
    pub(crate) fn synchronize(self: &Arc<Self>) -> Result<()> {
        if self.kind == StreamKind::Legacy {
            // Its turn comes when those that it waits for are done.
            self.engine.queue().push(self, Op::Nothing);
        }
        self.wait();
        self.context.check()
    }

    /// Waits for what was asked for on it so far, and on no other one.
    pub(crate) fn wait(&self) {
        let last = self.issued.load(Acquire);
        if !self.is_done_through(last) {
            self.engine.queue().wait(Until::Stream(self.id, last));
        }
    }
}

/// The default streams of the contexts of a device.
#[derive(Default)]
pub(super) struct Defaults {
    legacy: Mutex<BTreeMap<u64, Arc<Stream>>>,
}

impl Defaults {
    /// A context ends.
    pub(super) fn release(&self, context: u64) {
        let old = lock(&self.legacy).remove(&context);
        drop(old);
    }
}
