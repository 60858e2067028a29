//! What can be asked for on a stream.

use super::{Block, Bytes, Copy, Engine, Event, Mark, Stream};
use crate::types::{CUstream, Result, Status};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// Something that takes a device's time and is not done by this part of the library: a launch.
pub(crate) trait Work: Send + Sync {
    /// Does it, to its end. An error is what poisons the context.
    fn run(&self, engine: &Engine) -> Result<()>;
}

/// An operation. Clones are the same operation again, as a graph does it.
#[derive(Clone)]
pub(crate) enum Op {
    /// A launch.
    Launch(Arc<dyn Work>),
    /// A copy.
    Copy(Arc<Copy>),
    /// Bytes become a pattern, in rows that begin `pitch` bytes apart.
    Fill {
        /// From the first byte to the last.
        target: Bytes,
        /// The pattern.
        pattern: Pattern,
        /// Bytes of a row.
        width: u64,
        /// Rows.
        height: u64,
        /// From row to row, in bytes.
        pitch: u64,
    },
    /// A function of the client's.
    Host(HostFunction),
    /// A function of the client's that is told how the stream fares, and is called after an error too.
    Callback(StreamCallback),
    /// An event is reached.
    Record(Arc<Mark>),
    /// Nothing more until an event was reached.
    Wait(Arc<Mark>),
    /// Nothing more until a function of the client's has returned, whatever fails meanwhile.
    Running(Arc<Mark>),
    /// Nothing more until a value stands in memory.
    WaitValue {
        /// Four or eight bytes.
        at: Bytes,
        /// What is compared with.
        value: u64,
        /// How.
        comparison: Comparison,
    },
    /// A value is written.
    WriteValue {
        /// Four or eight bytes.
        at: Bytes,
        /// The value.
        value: u64,
    },
    /// Memory is given back.
    Free(Arc<Block>),
    /// Several, one after the other: those from a place on.
    Batch(Arc<[Op]>, usize),
    /// Nothing, but these are kept until then.
    Keep {
        /// What they are.
        _what: Arc<dyn Any + Send + Sync>,
    },
    /// Nothing.
    Nothing,
}

/// Up to four bytes that are written again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    bytes: [u8; 4],
    len: u8,
}

impl Pattern {
    pub(crate) fn of8(value: u8) -> Self {
        Pattern { bytes: [value; 4], len: 1 }
    }

    pub(crate) fn of16(value: u16) -> Self {
        let [a, b] = value.to_le_bytes();
        Pattern { bytes: [a, b, a, b], len: 2 }
    }

    pub(crate) fn of32(value: u32) -> Self {
        Pattern { bytes: value.to_le_bytes(), len: 4 }
    }

    /// Its bytes, once.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }
}

/// How a value in memory is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The difference is not negative, as a number that goes round.
    GreaterOrEqual,
    Equal,
    /// They have bits in common.
    And,
    /// Not all bits are set in one or the other.
    Nor,
}

/// A function of the client's with its argument.
#[derive(Clone, Copy)]
pub(crate) struct HostFunction {
    function: unsafe extern "C-unwind" fn(*mut c_void),
    argument: usize,
}

impl HostFunction {
    /// A function that the client gives to be called with that argument, on any thread.
    pub(crate) fn new(function: unsafe extern "C-unwind" fn(*mut c_void), argument: *mut c_void) -> Self {
        HostFunction { function, argument: argument.expose_provenance() }
    }

    /// What the client gave.
    pub(crate) fn parts(self) -> (unsafe extern "C-unwind" fn(*mut c_void), *mut c_void) {
        (self.function, std::ptr::with_exposed_provenance_mut(self.argument))
    }

    /// Calls it. It may unwind.
    pub(super) fn call(self) {
        // SAFETY: the client has given the function to be called so, with this argument.
        unsafe { (self.function)(std::ptr::with_exposed_provenance_mut(self.argument)) }
    }
}

/// `CUstreamCallback`.
pub(crate) type CallbackFunction = unsafe extern "C-unwind" fn(CUstream, Status, *mut c_void);

/// A function of the client's that is told of a stream.
#[derive(Clone, Copy)]
pub(crate) struct StreamCallback {
    function: CallbackFunction,
    stream: CUstream,
    argument: usize,
}

impl StreamCallback {
    /// A function that the client gives to be called with that stream and argument, on any thread.
    pub(crate) fn new(function: CallbackFunction, stream: CUstream, argument: *mut c_void) -> Self {
        StreamCallback { function, stream, argument: argument.expose_provenance() }
    }

    /// Calls it, and tells it that status. It may unwind.
    pub(super) fn call(self, status: Status) {
        let argument = std::ptr::with_exposed_provenance_mut(self.argument);
        // SAFETY: the client has given the function to be called so, with this argument.
        unsafe { (self.function)(self.stream, status, argument) }
    }
}

impl Op {
    /// Several, one after the other.
    pub(crate) fn batch(ops: Vec<Op>) -> Op {
        Op::Batch(ops.into(), 0)
    }

    /// The mark that has to be reached before anything else of it can be done.
    pub(super) fn awaits(&self) -> Option<&Arc<Mark>> {
        match self {
            Op::Wait(mark) => Some(mark),
            Op::Batch(ops, next) => ops.get(*next)?.awaits(),
            _ => None,
        }
    }

    /// Whether a function of the client's is being called that it began with.
    pub(super) fn is_running(&self) -> bool {
        match self {
            Op::Running(mark) => !mark.is_reached(),
            Op::Batch(ops, next) => ops.get(*next).is_some_and(Op::is_running),
            _ => false,
        }
    }

    /// Whether it waits for nothing.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Op::Wait(mark) | Op::Running(mark) => mark.is_reached(),
            Op::WaitValue { at, value, comparison } => {
                at.value().is_none_or(|found| comparison.holds(found, *value, at.len()))
            }
            Op::Batch(ops, next) => ops.get(*next).is_none_or(Op::is_ready),
            _ => true,
        }
    }
}

impl Comparison {
    /// Whether it holds between what was found and what is waited for, of that many bytes.
    fn holds(self, found: u64, value: u64, bytes: u64) -> bool {
        let mask = if bytes == 4 { u64::from(u32::MAX) } else { u64::MAX };
        match self {
            Comparison::GreaterOrEqual if bytes == 4 => (found as u32).wrapping_sub(value as u32) as i32 >= 0,
            Comparison::GreaterOrEqual => found.wrapping_sub(value) as i64 >= 0,
            Comparison::Equal => found == value & mask,
            Comparison::And => found & value & mask != 0,
            Comparison::Nor => !(found | value) & mask != 0,
        }
    }
}

/// Records an event on a stream, or has the capture of the stream record it.
pub(crate) fn record(stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
    if let Some(recorder) = stream.recorder() {
        return recorder.record_event(stream, event);
    }
    let mark = Arc::new(Mark::new(stream.engine().queue().clone()));
    // An event whose mark nobody reaches would be waited for in vain: it has this one if the stream takes it.
    stream.submit(Op::Record(mark.clone()))?;
    event.set(super::Recorded::At(mark));
    Ok(())
}

/// Records an event on a stream that captures so that each run of the graph records it.
pub(crate) fn record_outside(stream: &Arc<Stream>, event: &Arc<Event>) -> Result<()> {
    let recorder = stream.recorder().ok_or(Status::INVALID_VALUE)?;
    recorder.record_outside(stream, event)
}
