//! The process of a stage: it does items, and says so.

use crate::event::Event;
use crate::stages::Stage;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use warpwright_kernels::tune::Table;
use warpwright_runtime::Device;
use warpwright_testing::observe_launches;

/// What the process of a stage is to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Work {
    /// The stage.
    pub stage: Stage,
    /// The first item.
    pub from: usize,
    /// Whether each stage is to be short.
    pub quick: bool,
    /// No item begins after that time.
    pub time: Option<Duration>,
    /// The shapes that [`Stage::Tune`] tunes: those of the rows for the device. By default those of well-known models.
    pub shapes: Option<Table>,
}

impl Work {
    /// All of a stage.
    pub fn new(stage: Stage) -> Self {
        Work { stage, from: 0, quick: false, time: None, shapes: None }
    }
}

/// Does the items of a stage on a device and writes the events to `out`, a line each.
///
/// It ends early once the device is no longer usable, as a CUDA device is after a kernel has failed: another process
/// goes on with the next item.
///
/// # Errors
/// If the events cannot be written, or a stage has no items on this device.
pub fn work(work: &Work, device: &Device, out: impl Write + Send + 'static) -> std::io::Result<()> {
    let start = Instant::now();
    let out = Arc::new(Mutex::new(out));
    let say = move |event: &Event| {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(line.as_bytes())?;
        out.flush()
    };
    // A launch that cannot be written shows when its item has ended.
    let launches = say.clone();
    observe_launches(move |kernel| drop(launches(&Event::Launch(kernel.into()))));
    let items = work.stage.items(device, work.quick, work.shapes.as_ref()).map_err(std::io::Error::other)?;
    say(&Event::Items(items.len()))?;
    let broken = device.failures();
    for (number, item) in items.iter().enumerate().skip(work.from) {
        if work.time.is_some_and(|time| start.elapsed() > time) {
            return say(&Event::OutOfTime(number));
        }
        say(&Event::Begin(number, item.name.clone()))?;
        let outcome = (item.run)(device, &mut |finding| drop(say(&Event::Result(finding))));
        let failed = outcome.is_err();
        say(&Event::End(outcome.err().map(|wrong| wrong.to_string())))?;
        if failed && (device.failures() != broken || !device.is_virtual()) {
            break;
        }
    }
    Ok(())
}
