//! Operations of a stream.

use crate::bytes::Bytes;
use crate::copy::{Copy, Memory};
use crate::engine::Standing;
use crate::failure::Result;
use crate::signal::Signal;
use std::any::Any;
use std::sync::Arc;
use warpwright_vm::{Device, Edges, Report, Running};

/// A kernel that a front end launches.
pub trait Launch: Send + Sync {
    /// Starts the launch, with edges to the launches that it may overlap with.
    fn start(&self, device: &Device, edges: &Edges) -> Result<Running>;

    /// Whether each thread waits for earlier grids before it lets dependent ones begin and before it ends.
    fn waits_first(&self) -> bool;

    /// Called when the launch is complete, with its number on its device. An error fails its domain.
    fn end(&self, number: u64, report: Report) -> Result<()>;
}

/// A function of the client, which runs on a thread of the front end.
pub trait HostCall: Send + Sync {
    /// Begins the call and returns whether it has begun; when it returns, `end` is reached by [`Signal::reach_beside`].
    /// `failed` says whether the domain of the stream has failed: most functions are not called then.
    fn begin(&self, failed: bool, end: &Arc<Signal>) -> Result<bool>;
}

/// A resource that is released in the order of a stream.
pub trait Release: Send + Sync {
    /// Called when the stream executes the release.
    fn release(&self);
}

/// What decides, when its turn comes, what a stream executes in its place.
pub trait Decide: Send + Sync {
    /// The operation to execute now. An error fails the domain of the stream.
    fn decide(self: Arc<Self>) -> Result<Op>;
}

/// An operation. A clone is the same operation again, for replays of graphs.
#[derive(Clone)]
pub enum Op {
    /// Launches a kernel.
    Launch {
        /// The launch.
        launch: Arc<dyn Launch>,
        /// Whether it is a programmatic dependent launch: it may begin before the launch in front of it in its stream
        /// is complete.
        overlaps: bool,
    },
    /// The rest of a stalled launch.
    Standing(Arc<Standing>),
    /// Copies rows, or bytes from or to the host.
    Copy(Arc<Copy>),
    /// Copies bytes between two ranges of equal size.
    Move {
        /// The target.
        target: Bytes,
        /// The source.
        source: Bytes,
    },
    /// Fills rows that begin `pitch` bytes apart with a pattern.
    Fill {
        /// The target, from its first byte to its last.
        target: Bytes,
        /// The pattern.
        pattern: Pattern,
        /// Bytes of a row.
        width: u64,
        /// Rows.
        height: u64,
        /// Distance between rows, in bytes.
        pitch: u64,
    },
    /// Calls a function of the client.
    Call(Arc<dyn HostCall>),
    /// Reaches a signal.
    Signal(Arc<Signal>),
    /// Blocks the stream until a signal is reached.
    Wait(Arc<Signal>),
    /// Blocks the stream until a function of the client has returned, even after a failure.
    Running(Arc<Signal>),
    /// A semaphore wait: blocks the stream until a value in memory satisfies a comparison.
    WaitValue {
        /// Four or eight bytes.
        at: Bytes,
        /// The value to compare with.
        value: u64,
        /// The comparison.
        comparison: Comparison,
    },
    /// Writes a value.
    WriteValue {
        /// Four or eight bytes.
        at: Bytes,
        /// The value.
        value: u64,
    },
    /// Releases a resource, even after a failure.
    Release(Arc<dyn Release>),
    /// An operation that is not known before its turn.
    Decide(Arc<dyn Decide>),
    /// Several operations, one after the other, from an index on.
    Batch(Arc<[Op]>, usize),
    /// Does nothing, but keeps an object alive until then.
    Retain {
        /// The object.
        what: Arc<dyn Any + Send + Sync>,
    },
    /// Does nothing.
    Nothing,
}

/// A pattern of up to four bytes, which is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: [u8; 4],
    len: u8,
}

impl Pattern {
    /// One byte.
    pub fn of8(value: u8) -> Self {
        Pattern { bytes: [value; 4], len: 1 }
    }

    /// Two bytes.
    pub fn of16(value: u16) -> Self {
        let [a, b] = value.to_le_bytes();
        Pattern { bytes: [a, b, a, b], len: 2 }
    }

    /// Four bytes.
    pub fn of32(value: u32) -> Self {
        Pattern { bytes: value.to_le_bytes(), len: 4 }
    }

    /// Its bytes, once.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }
}

/// The comparison of a semaphore wait between the value in memory and the given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The wrapping difference is not negative.
    GreaterOrEqual,
    /// They are equal.
    Equal,
    /// They have bits in common.
    And,
    /// At least one bit is set in neither.
    Nor,
}

impl Op {
    /// Several operations, one after the other.
    pub fn batch(ops: Vec<Op>) -> Op {
        Op::Batch(ops.into(), 0)
    }

    /// Its name in failures; a launch has the name of its kernel.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Op::Copy(copy) => match (&copy.target.memory, &copy.source.memory) {
                (Memory::Known(_), Memory::Known(_)) => "copy",
                (Memory::Known(_), _) => "copy to the device",
                _ => "copy to the host",
            },
            Op::Move { .. } => "copy",
            Op::Fill { .. } => "memset",
            _ => "an operation",
        }
    }

    /// The signal that it waits for, before anything else of it can be executed.
    pub(crate) fn awaits(&self) -> Option<&Arc<Signal>> {
        match self {
            Op::Wait(signal) => Some(signal),
            Op::Batch(ops, next) => ops.get(*next)?.awaits(),
            _ => None,
        }
    }

    /// The stalled launch, if it is one.
    pub(crate) fn standing(&self) -> Option<&Arc<Standing>> {
        match self {
            Op::Standing(standing) => Some(standing),
            Op::Batch(ops, next) => ops.get(*next)?.standing(),
            _ => None,
        }
    }

    /// Whether it waits for a running function of the client.
    pub(crate) fn is_running(&self) -> bool {
        match self {
            Op::Running(signal) => !signal.is_reached(),
            Op::Batch(ops, next) => ops.get(*next).is_some_and(Op::is_running),
            _ => false,
        }
    }

    /// Whether it waits for something outside of the process's devices.
    pub(crate) fn is_up_to_others(&self) -> bool {
        match self {
            Op::Running(_) => true,
            Op::WaitValue { at, .. } => at.is_mapped(),
            Op::Standing(standing) => standing.polls_host(),
            Op::Batch(ops, next) => ops.get(*next).is_some_and(Op::is_up_to_others),
            _ => false,
        }
    }

    /// Whether it can go on, after that many turns of operations.
    pub(crate) fn is_ready(&self, turns: u64) -> bool {
        match self {
            Op::Wait(signal) | Op::Running(signal) => signal.is_reached(),
            Op::WaitValue { at, value, comparison } => {
                at.value().is_none_or(|found| comparison.holds(found, *value, at.len()))
            }
            Op::Standing(standing) => standing.may_go_on(turns),
            Op::Batch(ops, next) => ops.get(*next).is_none_or(|op| op.is_ready(turns)),
            _ => true,
        }
    }
}

impl Comparison {
    /// Whether the comparison holds between the value found and the given one, for that many bytes.
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
