//! Streams.

use super::entries;
use super::memory::here;
use crate::engine::{
    CallbackFunction, EVENTS, HostFunction, HostKind, Recorded, STREAMS, Stream, StreamCallback, bytes_at,
    hosts, permitted,
};
use crate::graph::{Task, capture, guard};
use crate::report::log;
use crate::types::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUhostFn, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUstream, CUstreamBatchMemOpParams, CUstreamBatchMemOpType, In, Out, Result, Status,
};
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use warpwright_device::{Bytes, Comparison, Op, StreamKind};

const NON_BLOCKING: c_uint = 1;

/// The maximum number of operations of one batch: fewer than 256.
const MAX_VALUES: c_uint = 255;

fn create(handle: Out<CUstream>, flags: c_uint, priority: c_int) -> Result<()> {
    let (context, _) = here()?;
    let kind = match flags {
        0 => StreamKind::Blocking,
        NON_BLOCKING => StreamKind::NonBlocking,
        _ => return Err(Status::INVALID_VALUE),
    };
    handle.required()?.set(Stream::create(&context, kind, kept_priority(priority))?)
}

/// A priority, clamped to the range; 0 is the lowest.
fn kept_priority(priority: c_int) -> c_int {
    priority.clamp(crate::state::GREATEST_PRIORITY, 0)
}

fn wait_event(stream: CUstream, handle: CUevent, flags: c_uint) -> Result<()> {
    let stream = Stream::get(stream)?;
    let event = EVENTS.get(handle.0)?;
    match flags {
        0 => {}
        1 if stream.is_capturing() => return capture::add(&stream, Task::Wait(event)),
        _ => return Err(Status::INVALID_VALUE),
    }
    match event.recorded() {
        Recorded::Never => Ok(()),
        Recorded::Captured(captured) => captured.join(&stream),
        Recorded::At(signal) if signal.is_reached() && !stream.is_capturing() => Ok(()),
        Recorded::At(signal) => stream.submit(Op::Wait(signal)),
    }
}

/// A semaphore wait on a value in memory.
fn wait_value(address: CUdeviceptr, bytes: u64, value: u64, flags: c_uint) -> Result<Op> {
    const FLUSH: c_uint = 1 << 30;
    let comparison = match flags & !FLUSH {
        0 => Comparison::GreaterOrEqual,
        1 => Comparison::Equal,
        2 => Comparison::And,
        3 => Comparison::Nor,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(Op::WaitValue { at: value_at(address, bytes)?, value, comparison })
}

fn write_value(address: CUdeviceptr, bytes: u64, value: u64, flags: c_uint) -> Result<Op> {
    const NO_BARRIER: c_uint = 1;
    if flags & !NO_BARRIER != 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(Op::WriteValue { at: value_at(address, bytes)?, value })
}

fn value_at(address: CUdeviceptr, bytes: u64) -> Result<Bytes> {
    if !address.is_multiple_of(bytes) {
        return Err(Status::INVALID_VALUE);
    }
    if hosts().find(address).is_some_and(|memory| memory.kind == HostKind::Managed) {
        log::misuse(
            &"streams wait for values of a device's memory or of pinned memory, not of managed memory",
        );
        return Err(Status::INVALID_VALUE);
    }
    bytes_at(address, bytes)
}

fn value_op(op: &CUstreamBatchMemOpParams) -> Result<Op> {
    let low = op.value & u64::from(u32::MAX);
    match op.operation {
        CUstreamBatchMemOpType::WAIT_VALUE_32 => wait_value(op.address, 4, low, op.flags),
        CUstreamBatchMemOpType::WAIT_VALUE_64 => wait_value(op.address, 8, op.value, op.flags),
        CUstreamBatchMemOpType::WRITE_VALUE_32 => write_value(op.address, 4, low, op.flags),
        CUstreamBatchMemOpType::WRITE_VALUE_64 => write_value(op.address, 8, op.value, op.flags),
        // Writes are seen by all at once.
        CUstreamBatchMemOpType::FLUSH_REMOTE_WRITES | CUstreamBatchMemOpType::BARRIER => Ok(Op::Nothing),
        _ => Err(Status::INVALID_VALUE),
    }
}

entries! {
    /// Creates a stream. Flag 1: it does not synchronise with the default stream.
    fn cuStreamCreate(handle: Out<CUstream>, flags: c_uint) {
        create(handle, flags, 0)
    }

    /// Creates a stream with a priority, which is clamped to the range.
    fn cuStreamCreateWithPriority(handle: Out<CUstream>, flags: c_uint, priority: c_int) {
        create(handle, flags, priority)
    }

    /// Destroys a stream. Its operations are completed.
    fn cuStreamDestroy_v2(stream: CUstream) {
        permitted()?;
        if matches!(stream, CUstream::NULL | CUstream::LEGACY | CUstream::PER_THREAD) {
            return Err(Status::INVALID_HANDLE);
        }
        let removed = STREAMS.remove(stream.0)?;
        capture::forget(&removed);
        Ok(())
    }

    /// Returns its priority.
    fn cuStreamGetPriority, cuStreamGetPriority_ptsz |default| (stream: CUstream, priority: Out<c_int>) {
        priority.set(Stream::get(default.resolve(stream))?.priority)
    }

    /// Returns its flags.
    fn cuStreamGetFlags, cuStreamGetFlags_ptsz |default| (stream: CUstream, flags: Out<c_uint>) {
        let stream = Stream::get(default.resolve(stream))?;
        flags.set(if stream.kind() == StreamKind::NonBlocking { NON_BLOCKING } else { 0 })
    }

    /// Returns its unique number.
    fn cuStreamGetId, cuStreamGetId_ptsz |default| (stream: CUstream, id: Out<c_ulonglong>) {
        id.set(Stream::get(default.resolve(stream))?.id())
    }

    /// Returns its context.
    fn cuStreamGetCtx, cuStreamGetCtx_ptsz |default| (stream: CUstream, context: Out<CUcontext>) {
        context.set(Stream::get(default.resolve(stream))?.context.handle)
    }

    /// Returns its device.
    fn cuStreamGetDevice, cuStreamGetDevice_ptsz |default| (stream: CUstream, device: Out<CUdevice>) {
        device.set(Stream::get(default.resolve(stream))?.engine.ordinal)
    }

    /// Returns whether all operations are complete.
    fn cuStreamQuery, cuStreamQuery_ptsz |default| (stream: CUstream) {
        let stream = Stream::find(default.resolve(stream))?;
        guard::waits(&stream)?;
        stream.query()
    }

    /// Waits for all operations so far.
    fn cuStreamSynchronize, cuStreamSynchronize_ptsz |default| (stream: CUstream) {
        let stream = Stream::find(default.resolve(stream))?;
        guard::waits(&stream)?;
        stream.synchronize()
    }

    /// Makes the stream wait for an event.
    fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz |default| (stream: CUstream, event: CUevent, flags: c_uint) {
        wait_event(default.resolve(stream), event, flags)
    }

    /// Calls a function after all earlier operations, but not after an error.
    fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz |default| (
        stream: CUstream,
        function: CUhostFn,
        argument: *mut c_void,
    ) {
        let stream = Stream::get(default.resolve(stream))?;
        let function = function.ok_or(Status::INVALID_VALUE)?;
        stream.submit_host(HostFunction::new(function, argument))
    }

    /// Calls a function after all earlier operations, even after an error.
    fn cuStreamAddCallback, cuStreamAddCallback_ptsz |default| (
        handle: CUstream,
        function: Option<CallbackFunction>,
        argument: *mut c_void,
        flags: c_uint,
    ) {
        let stream = Stream::get(default.resolve(handle))?;
        let function = function.filter(|_| flags == 0).ok_or(Status::INVALID_VALUE)?;
        guard::waits(&stream)?;
        stream.submit(stream.callback(StreamCallback::new(function, handle, argument)))
    }

    /// A semaphore wait: blocks the stream until a word in memory satisfies a condition.
    fn cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz |default| (
        stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint,
    ) {
        Stream::get(default.resolve(stream))?.submit(wait_value(address, 4, value.into(), flags)?)
    }

    /// A semaphore wait: blocks the stream until eight bytes in memory satisfy a condition.
    fn cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz |default| (
        stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint,
    ) {
        Stream::get(default.resolve(stream))?.submit(wait_value(address, 8, value, flags)?)
    }

    /// Writes a word.
    fn cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz |default| (
        stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint,
    ) {
        Stream::get(default.resolve(stream))?.submit(write_value(address, 4, value.into(), flags)?)
    }

    /// Writes eight bytes.
    fn cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz |default| (
        stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint,
    ) {
        Stream::get(default.resolve(stream))?.submit(write_value(address, 8, value, flags)?)
    }

    /// Executes several operations on values in memory, one after the other.
    fn cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz |default| (
        stream: CUstream, count: c_uint, ops: In<CUstreamBatchMemOpParams>, flags: c_uint,
    ) {
        let stream = Stream::get(default.resolve(stream))?;
        stream.submit(Op::batch(value_ops(count, ops, flags)?))
    }

    /// Sets an attribute of a stream. None has an effect.
    fn cuStreamSetAttribute, cuStreamSetAttribute_ptsz |default| (
        stream: CUstream, id: CUlaunchAttributeID, value: In<CUlaunchAttributeValue>,
    ) {
        let stream = Stream::get(default.resolve(stream))?;
        stream.set_attribute(id, value.get()?)
    }

    /// Returns an attribute of a stream.
    fn cuStreamGetAttribute, cuStreamGetAttribute_ptsz |default| (
        stream: CUstream, id: CUlaunchAttributeID, value: Out<CUlaunchAttributeValue>,
    ) {
        let stream = Stream::get(default.resolve(stream))?;
        value.set(stream.attribute(id)?)
    }

    /// Gives a stream the attributes of another one.
    fn cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz |default| (to: CUstream, from: CUstream) {
        let (to, from) = (Stream::get(default.resolve(to))?, Stream::get(default.resolve(from))?);
        to.set_attributes_of(&from)
    }
}

/// The operations on values in memory that a client lists.
pub(super) fn value_ops(count: c_uint, ops: In<CUstreamBatchMemOpParams>, flags: c_uint) -> Result<Vec<Op>> {
    if flags != 0 || count > MAX_VALUES {
        return Err(Status::INVALID_VALUE);
    }
    ops.get_all(count as usize)?.iter().map(value_op).collect()
}
