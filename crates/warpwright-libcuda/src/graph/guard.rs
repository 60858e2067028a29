//! Calls that are forbidden during a capture.
//!
//! A stream that captures has nothing to wait for. The default stream would wait for a blocking stream that captures,
//! so it cannot be used meanwhile. Calls that may implicitly wait for a device, such as allocation, are forbidden to
//! threads according to the capture's mode and their own. **Each of these invalidates the captures concerned**, except
//! querying the capture status.

use super::capture::{Capture, ongoing};
use crate::engine::Stream;
use crate::report::log;
use crate::state::Context;
use crate::types::{CUstreamCaptureMode as Mode, Result, Status};
use std::cell::Cell;
use std::sync::Arc;
use warpwright_device::StreamKind;

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::GLOBAL) };
}

/// Exchanges the capture mode of the calling thread.
pub(crate) fn exchange_mode(mode: Mode) -> Result<Mode> {
    mode.check()?;
    Ok(MODE.replace(mode))
}

/// The captures of blocking streams of a context.
fn of_blocking(context: &Context) -> Vec<Arc<Capture>> {
    let blocking = |stream: &Stream| stream.kind() == StreamKind::Blocking && stream.context.id == context.id;
    ongoing().into_iter().filter(|capture| capture.has(blocking)).collect()
}

fn invalidate(captures: &[Arc<Capture>]) {
    captures.iter().for_each(|capture| capture.invalidate());
}

/// Checks an operation on a stream.
pub(crate) fn submits(stream: &Stream) -> Result<()> {
    if stream.kind() != StreamKind::Legacy {
        return Ok(());
    }
    let captures = of_blocking(&stream.context);
    if captures.is_empty() {
        return Ok(());
    }
    log::misuse(&"the default stream would wait for a stream that captures: the capture is invalid now");
    invalidate(&captures);
    Err(Status::STREAM_CAPTURE_IMPLICIT)
}

/// Checks a query of the capture status.
pub(super) fn asks(stream: &Stream) -> Result<()> {
    let implicit = stream.kind() == StreamKind::Legacy && !of_blocking(&stream.context).is_empty();
    if implicit { Err(Status::STREAM_CAPTURE_IMPLICIT) } else { Ok(()) }
}

/// Checks a wait for, or a query of, a stream.
pub(crate) fn waits(stream: &Stream) -> Result<()> {
    submits(stream)?;
    if !stream.is_capturing() {
        return Ok(());
    }
    let id = stream.id();
    let captures = ongoing();
    captures
        .iter()
        .filter(|capture| capture.has(|stream| stream.id() == id))
        .for_each(|capture| capture.invalidate());
    log::misuse(&"a stream that captures has nothing to wait for: the capture is invalid now");
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}

/// Checks a wait for a context.
pub(crate) fn waits_for_all(context: &Context) -> Result<()> {
    let here = |stream: &Stream| stream.context.id == context.id;
    let captures: Vec<_> = ongoing().into_iter().filter(|capture| capture.has(here)).collect();
    if captures.is_empty() {
        return Ok(());
    }
    log::misuse(&"a stream of the context captures, and cannot be waited for: the capture is invalid now");
    invalidate(&captures);
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}

/// Checks a call that may implicitly wait for a device, or make others wait.
pub(crate) fn may_wait() -> Result<()> {
    let captures = ongoing();
    if captures.is_empty() {
        return Ok(());
    }
    let (mode, here) = (MODE.get(), std::thread::current().id());
    let binds = |capture: &Arc<Capture>| {
        let is_own = capture.thread == here && capture.mode != Mode::RELAXED;
        let bound = match mode {
            Mode::RELAXED => false,
            Mode::THREAD_LOCAL => is_own,
            _ => is_own || capture.mode == Mode::GLOBAL,
        };
        bound && capture.is_active()
    };
    let binding: Vec<_> = captures.into_iter().filter(binds).collect();
    if binding.is_empty() {
        return Ok(());
    }
    log::misuse(
        &"it may wait for a device, which the mode of a capture forbids: the capture is invalid now (begin it with the \
          thread-local or relaxed mode, or see cuThreadExchangeStreamCaptureMode)",
    );
    invalidate(&binding);
    Err(Status::STREAM_CAPTURE_UNSUPPORTED)
}
