//! What must not be called while streams capture.
//!
//! A stream that captures has nothing that could be waited for. The default stream would wait for a blocking stream that
//! captures, so it cannot be used meanwhile. And what may wait for a device behind the client's back, as allocating
//! does, is forbidden to threads as the capture's mode says and their own. **Each of these makes the captures that it is
//! about invalid**, except asking whether a stream captures.

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

/// Sets which captures bind the calling thread; the mode that it had.
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

/// Something is asked for on a stream.
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

/// A client asks whether a stream captures.
pub(super) fn asks(stream: &Stream) -> Result<()> {
    let implicit = stream.kind() == StreamKind::Legacy && !of_blocking(&stream.context).is_empty();
    if implicit { Err(Status::STREAM_CAPTURE_IMPLICIT) } else { Ok(()) }
}

/// A client waits for a stream, or asks whether all is done.
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

/// A client waits for all of a context.
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

/// A call that may wait for a device, or make others wait, without being asked on a stream.
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
