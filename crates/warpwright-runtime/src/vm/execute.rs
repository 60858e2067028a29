//! How the virtual GPU executes operations.

use crate::backend::{self, Mark};
use crate::error::Failure;
use crate::op::{Launch, Op, Place};
use crate::vm::queue::Queue;
use crate::vm::task::{Landing, Task};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use warpwright_vm::{
    Arg, Device, DeviceError, Finding, LaunchConfig, Module, Options, Report, Severity, SpaceTraffic,
};

/// Findings that are kept.
const MOST_FINDINGS: usize = 1024;

/// A kernel of the virtual GPU with everything that its launch needs.
pub(crate) struct Code {
    /// The module.
    pub(crate) module: Module,
    /// The kernel in it.
    pub(crate) kernel: Arc<str>,
    /// The shape.
    pub(crate) config: LaunchConfig,
    /// The arguments.
    pub(crate) args: Vec<Arg>,
}

/// What executes operations, and what it has seen.
pub(super) struct Executor {
    pub(super) device: Device,
    pub(super) options: Options,
    pub(super) counts: Counts,
    seen: Mutex<Seen>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) graph_launches: AtomicU64,
    pub(super) copies: AtomicU64,
    pub(super) bytes_copied: AtomicU64,
    pub(super) memsets: AtomicU64,
    pub(super) bytes_accessed: AtomicU64,
}

#[derive(Default)]
struct Seen {
    report: Option<Arc<Report>>,
    findings: Vec<Finding>,
}

impl Executor {
    pub(super) fn new(device: Device, options: Options) -> Self {
        Executor { device, options, counts: Counts::default(), seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn last_report(&self) -> Option<Arc<Report>> {
        self.seen().report.clone()
    }

    pub(super) fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut self.seen().findings)
    }

    /// Executes an entry of the queue. `staging` is memory for what it copies to the host.
    pub(super) fn execute(&self, task: &Task, staging: Vec<u8>, queue: &Queue) -> Result<(), Box<Failure>> {
        match task {
            Task::Op(op) => self.operate(op, queue)?,
            Task::Upload { data, target } => {
                named("copy to the device", memory(target).write_bytes(target.offset, data))?;
                self.copied(target.bytes);
            }
            Task::Download { source, landing } => {
                self.download(source, landing, staging)?;
                self.copied(source.bytes);
            }
            Task::Forget(memory) => forget(memory),
            Task::Record(mark) => mark.reach(Some(Instant::now())),
            // One that waits for another device gives up when there is nothing left to do for.
            Task::Wait(Mark::Vm(mark)) => mark.wait_unless(|| queue.is_closed()),
            Task::Wait(Mark::Cuda(mark)) => mark.wait_unless(|| queue.is_closed()),
        }
        Ok(())
    }

    fn operate(&self, op: &Op, queue: &Queue) -> Result<(), Box<Failure>> {
        match op {
            Op::Launch(launch) => self.launch(launch)?,
            Op::Copy { source, target } => {
                let (from, to) = (memory(source), memory(target));
                named("copy", to.copy_bytes(target.offset, from, source.offset, target.bytes))?;
                self.copied(target.bytes);
            }
            Op::Fill { target, value } => {
                named("memset", memory(target).fill_bytes(target.offset, target.bytes, *value))?;
                self.counts.memsets.fetch_add(1, Relaxed);
            }
            Op::Replay { ops, .. } => {
                self.counts.graph_launches.fetch_add(1, Relaxed);
                for op in ops.iter() {
                    if queue.is_closed() {
                        break;
                    }
                    self.operate(op, queue)?;
                }
            }
        }
        Ok(())
    }

    fn download(&self, source: &Place, landing: &Landing, mut data: Vec<u8>) -> Result<(), Box<Failure>> {
        data.clear();
        data.resize(source.bytes as usize, 0);
        named("copy to the host", memory(source).read_bytes(source.offset, &mut data))?;
        *landing.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
        Ok(())
    }

    fn copied(&self, bytes: u64) {
        self.counts.copies.fetch_add(1, Relaxed);
        self.counts.bytes_copied.fetch_add(bytes, Relaxed);
    }

    fn launch(&self, launch: &Launch) -> Result<(), Box<Failure>> {
        let code = launch.code.vm();
        let running = self.device.launch(&code.module, &code.kernel, &code.config, &code.args, &self.options);
        let failure = |number, message| Err(Box::new(Failure::new(&launch.kernel, number, message)));
        let running = match running {
            Ok(running) => running,
            Err(error) => return failure(None, error.to_string()),
        };
        let number = running.number();
        let report = running.wait();
        let message = describe(&report);
        let SpaceTraffic { loads, stores, atomics, .. } = report.counters.global;
        self.counts.bytes_accessed.fetch_add(loads.bytes + stores.bytes + atomics.bytes, Relaxed);
        let mut seen = self.seen();
        let room = MOST_FINDINGS - seen.findings.len();
        seen.findings.extend(report.findings.iter().take(room).cloned());
        seen.report = Some(Arc::new(report));
        drop(seen);
        match message {
            Some(message) => failure(Some(number), message),
            None => Ok(()),
        }
    }
}

/// What is true although an entry is not executed: an event is over for those who wait for it, and memory has
/// its new owner.
pub(super) fn skip(task: &Task) {
    match task {
        Task::Record(mark) => mark.reach(None),
        Task::Forget(memory) => forget(memory),
        _ => {}
    }
}

fn forget(memory: &backend::Memory) {
    memory.vm().buffer.forget();
}

/// What is wrong with a launch, if anything is.
fn describe(report: &Report) -> Option<String> {
    if let Some(trap) = &report.trap {
        let place = trap.thread.map(|([bx, by, bz], [x, y, z])| {
            format!(", in thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz})")
        });
        return Some(format!("{}{}", trap.message, place.unwrap_or_default()));
    }
    let errors = || report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let first = errors().next()?;
    let more = errors().count() - 1;
    let suffix = if more > 0 { format!(" (and {more} more findings)") } else { String::new() };
    Some(format!("{first}{suffix}"))
}

fn memory(place: &Place) -> &warpwright_vm::Buffer<u8> {
    &place.memory.vm().buffer
}

fn named(operation: &str, result: Result<(), DeviceError>) -> Result<(), Box<Failure>> {
    result.map_err(|error| Box::new(Failure::new(operation, None, error.to_string())))
}
