//! Streams: operations in order.
//!
//! A context has a default stream, which synchronises with its blocking streams, and one for each thread, which is a
//! blocking stream. A destroyed stream completes its operations.

use super::{Engine, HostFunction, StreamCallback};
use crate::graph::guard;
use crate::lock;
use crate::state::{Context, EndOfThread, Handles, Kind, Own, current};
use crate::types::{CUlaunchAttributeID as Attribute, CUlaunchAttributeValue, CUstream, Result, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex};
use warpwright_device::{Op, StreamKind};

/// The streams that clients have made.
pub(crate) static STREAMS: Handles<Stream> = Handles::new(Kind::Stream);

/// A stream.
pub(crate) struct Stream {
    work: Arc<warpwright_device::Stream>,
    pub(crate) context: Arc<Context>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) priority: i32,
    /// The attributes that the client has set, by their numbers.
    attributes: Mutex<BTreeMap<i32, CUlaunchAttributeValue>>,
    is_capturing: AtomicBool,
    recorder: Mutex<Option<Arc<dyn Recorder>>>,
}

/// Receives the operations of a stream during a capture.
pub(crate) trait Recorder: Send + Sync {
    /// An operation.
    fn record(&self, stream: &Arc<Stream>, op: Op) -> Result<()>;

    /// A call of a client's function.
    fn record_host(&self, stream: &Arc<Stream>, function: HostFunction) -> Result<()>;

    /// A record of an event.
    fn record_event(&self, stream: &Arc<Stream>, event: &Arc<super::Event>) -> Result<()>;

    /// An external record of an event, made by each launch of the graph.
    fn record_outside(&self, stream: &Arc<Stream>, event: &Arc<super::Event>) -> Result<()>;
}

impl Stream {
    /// A stream of a context.
    fn new(context: &Arc<Context>, kind: StreamKind, priority: i32) -> Result<Arc<Self>> {
        let engine = super::of(context)?;
        Ok(Arc::new(Stream {
            work: warpwright_device::Stream::new(engine.queue(), context.clone(), kind),
            context: context.clone(),
            engine,
            priority,
            attributes: Mutex::default(),
            is_capturing: AtomicBool::new(false),
            recorder: Mutex::new(None),
        }))
    }

    /// A stream with a handle.
    pub(crate) fn create(context: &Arc<Context>, kind: StreamKind, priority: i32) -> Result<CUstream> {
        STREAMS.insert(Stream::new(context, kind, priority)?).map(CUstream)
    }

    /// The stream of a handle, whose context must be usable. Null is not accepted: its meaning depends on the call.
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
        if let Some(stream) = legacy.get(&context.id) {
            return Ok(stream.clone());
        }
        let stream = Stream::new(context, StreamKind::Legacy, 0)?;
        Ok(legacy.entry(context.id).or_insert(stream).clone())
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
                own.iter().find(|stream| stream.context.id == context.id).cloned()
            })
        });
        if let Some(Some(stream)) = own {
            return Ok(stream);
        }
        let stream = Stream::new(context, StreamKind::Blocking, 0)?;
        let kept = OWN.with(|own| own.with(&END, |own| own.push(stream.clone())));
        kept.map(|()| stream).ok_or(Status::INVALID_CONTEXT)
    }

    /// Its unique number in the process.
    pub(crate) fn id(&self) -> u64 {
        self.work.id()
    }

    /// Its relation to the default stream.
    pub(crate) fn kind(&self) -> StreamKind {
        self.work.kind()
    }

    /// An attribute, as the client has set it or as it is by default: zero, but for the priority.
    pub(crate) fn attribute(&self, id: Attribute) -> Result<CUlaunchAttributeValue> {
        is_of_streams(id)?;
        let default = if id == Attribute::PRIORITY { self.priority } else { 0 };
        let set = lock(&self.attributes).get(&id.0).copied();
        Ok(set.unwrap_or_else(|| CUlaunchAttributeValue::of(default)))
    }

    /// Sets an attribute, none of which has an effect.
    pub(crate) fn set_attribute(&self, id: Attribute, value: CUlaunchAttributeValue) -> Result<()> {
        is_of_streams(id)?;
        lock(&self.attributes).insert(id.0, value);
        Ok(())
    }

    /// Takes over the attributes of another stream of its context.
    pub(crate) fn set_attributes_of(&self, from: &Stream) -> Result<()> {
        if self.context.id != from.context.id {
            return Err(Status::INVALID_VALUE);
        }
        let attributes = lock(&from.attributes).clone();
        *lock(&self.attributes) = attributes;
        Ok(())
    }

    /// Issues an operation, or passes it to the capture.
    pub(crate) fn submit(self: &Arc<Self>, op: Op) -> Result<()> {
        match self.recorder() {
            Some(recorder) => recorder.record(self, op),
            None => {
                guard::submits(self)?;
                self.work.submit(op);
                Ok(())
            }
        }
    }

    /// Whether operations are recorded instead of executed.
    pub(crate) fn is_capturing(&self) -> bool {
        self.is_capturing.load(Acquire)
    }

    /// Its capture.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        if !self.is_capturing() {
            return None;
        }
        lock(&self.recorder).clone()
    }

    /// Sets the capture that records operations; with `None` they are executed again.
    pub(crate) fn capture(&self, recorder: Option<Arc<dyn Recorder>>) {
        let mut slot = lock(&self.recorder);
        self.is_capturing.store(recorder.is_some(), Release);
        let old = std::mem::replace(&mut *slot, recorder);
        drop(slot);
        drop(old);
    }

    /// Issues a call of a client's function, or passes it to the capture.
    pub(crate) fn submit_host(self: &Arc<Self>, function: HostFunction) -> Result<()> {
        match self.recorder() {
            Some(recorder) => recorder.record_host(self, function),
            None => self.submit(self.engine.host_call(function)),
        }
    }

    /// Issues a call of a client's function that takes the stream's status, and is called even after an error.
    pub(crate) fn callback(&self, function: StreamCallback) -> Op {
        self.engine.stream_call(&self.context, function)
    }

    /// Whether all operations are complete.
    pub(crate) fn query(&self) -> Result<()> {
        let idle = self.work.is_idle();
        self.context.check()?;
        if idle { self.context.outcome() } else { Err(Status::NOT_READY) }
    }

    /// Waits for its operations so far.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.work.synchronize();
        self.context.outcome()
    }

    /// Waits for its operations so far, and for no other stream.
    pub(crate) fn wait(&self) {
        self.work.wait();
    }
}

/// Checks that streams have an attribute.
fn is_of_streams(id: Attribute) -> Result<()> {
    match id {
        Attribute::ACCESS_POLICY_WINDOW
        | Attribute::SYNCHRONIZATION_POLICY
        | Attribute::PRIORITY
        | Attribute::MEM_SYNC_DOMAIN_MAP
        | Attribute::MEM_SYNC_DOMAIN => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// The default streams of the contexts of a device.
#[derive(Default)]
pub(super) struct Defaults {
    legacy: Mutex<BTreeMap<u64, Arc<Stream>>>,
}

impl Defaults {
    /// Removes the streams of a destroyed context.
    pub(super) fn release(&self, context: u64) {
        let old = lock(&self.legacy).remove(&context);
        drop(old);
    }
}
