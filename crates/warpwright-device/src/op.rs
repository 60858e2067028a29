//! What can be asked for on a stream.

use crate::bytes::Bytes;
use crate::copy::{Copy, Memory};
use crate::engine::Standing;
use crate::failure::Result;
use crate::signal::Signal;
use std::any::Any;
use std::sync::Arc;
use warpwright_vm::{Device, Report, Running};

/// A kernel that a front end launches.
pub trait Launch: Send + Sync {
    /// Begins it.
    fn start(&self, device: &Device) -> Result<Running>;

    /// It is over; its number is that of its device. An error is what fails its domain.
    fn end(&self, number: u64, report: Report) -> Result<()>;
}

/// A function of the client's, which runs on a thread of the front end's.
pub trait HostCall: Send + Sync {
    /// Begins the call; when it is over, `end` is reached by [`Signal::reach_beside`]. `failed` where the domain of the
    /// stream has failed: most functions are not called then. Whether it was begun.
    fn begin(&self, failed: bool, end: &Arc<Signal>) -> Result<bool>;
}

/// What is given back in the order of a stream.
pub trait Release: Send + Sync {
    /// The stream has come to where it is given back.
    fn release(&self);
}

/// An operation. Clones are the same operation again, as a graph does it.
#[derive(Clone)]
pub enum Op {
    /// A launch.
    Launch(Arc<dyn Launch>),
    /// What is left of a launch: it stands still until something else has happened.
    Standing(Arc<Standing>),
    /// A copy of rows, or from or to the host.
    Copy(Arc<Copy>),
    /// Bytes become those of others, of which there are as many.
    Move {
        /// Where they go.
        target: Bytes,
        /// Where they come from.
        source: Bytes,
    },
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
    Call(Arc<dyn HostCall>),
    /// A signal is reached.
    Signal(Arc<Signal>),
    /// Nothing more until a signal is reached.
    Wait(Arc<Signal>),
    /// Nothing more until a function of the client's has returned, whatever fails meanwhile.
    Running(Arc<Signal>),
    /// A semaphore wait: nothing more until a value stands in memory.
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
    /// Something is given back, also after a failure.
    Release(Arc<dyn Release>),
    /// Several, one after the other: those from an index on.
    Batch(Arc<[Op]>, usize),
    /// Nothing, but this is kept until then.
    Retain {
        /// What it is.
        what: Arc<dyn Any + Send + Sync>,
    },
    /// Nothing.
    Nothing,
}

/// Up to four bytes that are written again and again.
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

/// How a value in memory is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The difference is not negative, as a number that wraps around.
    GreaterOrEqual,
    /// They are equal.
    Equal,
    /// They have bits in common.
    And,
    /// Not all bits are set in one or the other.
    Nor,
}

impl Op {
    /// Several, one after the other.
    pub fn batch(ops: Vec<Op>) -> Op {
        Op::Batch(ops.into(), 0)
    }

    /// What it is called where it fails; a launch has the name of its kernel.
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

    /// The signal that has to be reached before anything else of it can be done.
    pub(crate) fn awaits(&self) -> Option<&Arc<Signal>> {
        match self {
            Op::Wait(signal) => Some(signal),
            Op::Batch(ops, next) => ops.get(*next)?.awaits(),
            _ => None,
        }
    }

    /// The launch that stands still, where it is one.
    pub(crate) fn standing(&self) -> Option<&Arc<Standing>> {
        match self {
            Op::Standing(standing) => Some(standing),
            Op::Batch(ops, next) => ops.get(*next)?.standing(),
            _ => None,
        }
    }

    /// Whether a function of the client's is being called that it began with.
    pub(crate) fn is_running(&self) -> bool {
        match self {
            Op::Running(signal) => !signal.is_reached(),
            Op::Batch(ops, next) => ops.get(*next).is_some_and(Op::is_running),
            _ => false,
        }
    }

    /// Whether it waits for something that no operation of a device brings about.
    pub(crate) fn is_up_to_others(&self) -> bool {
        match self {
            Op::Running(_) => true,
            Op::WaitValue { at, .. } => at.is_mapped(),
            Op::Standing(standing) => standing.polls_host(),
            Op::Batch(ops, next) => ops.get(*next).is_some_and(Op::is_up_to_others),
            _ => false,
        }
    }

    /// Whether it waits for nothing, where so many operations have had a turn.
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
