//! The thread of a device that does what was asked for.

use crate::failure::{Cause, Failure, Result};
use crate::lock;
use crate::op::{HostCall, Launch, Op};
use crate::order::Order;
use crate::queue::{Outcome, Queue, Turn};
use crate::signal::Signal;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use warpwright_vm::{Device, Progress, Running};

thread_local! {
    static IS_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread is one of an engine, or makes calls for one: it would wait for itself.
pub fn is_engine_thread() -> bool {
    IS_ENGINE.get()
}

/// From now on the thread counts as one that makes calls for an engine.
pub fn enter_engine_thread() {
    IS_ENGINE.set(true);
}

/// A device at work.
pub struct Engine {
    vm: Device,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How much an engine has done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Copies.
    pub copies: AtomicU64,
    /// Bytes that they copied.
    pub bytes_copied: AtomicU64,
    /// Times that memory was filled.
    pub fills: AtomicU64,
}

impl Counts {
    fn copied(&self, bytes: u64) {
        self.copies.fetch_add(1, Relaxed);
        self.bytes_copied.fetch_add(bytes, Relaxed);
    }
}

impl Engine {
    /// Begins to work for a virtual GPU, on a thread of that name.
    pub fn start(name: &str, vm: Device, order: Order) -> std::io::Result<Engine> {
        let (queue, counts) = (Arc::new(Queue::new(order)), Arc::<Counts>::default());
        let worker = Worker { vm: vm.clone(), queue: queue.clone(), counts: counts.clone() };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || worker.serve())?;
        Ok(Engine { vm, queue, counts, thread: Mutex::new(Some(thread)) })
    }

    /// The virtual GPU.
    pub fn vm(&self) -> &Device {
        &self.vm
    }

    /// What is to be done.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// How much was done.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Waits for everything that was asked for so far. What the engine's own threads do would wait for itself.
    pub fn drain(&self) {
        if !is_engine_thread() {
            self.queue.wait_all();
        }
    }

    /// Waits for everything that was asked for so far in a failure domain.
    pub fn drain_domain(&self, domain: u64) {
        if !is_engine_thread() {
            self.queue.wait_for(domain);
        }
    }

    /// Ends: what was not begun is skipped, what runs is ended where it is.
    pub fn close(&self) {
        let Some(thread) = lock(&self.thread).take() else { return };
        let worker = Worker { vm: self.vm.clone(), queue: self.queue.clone(), counts: self.counts.clone() };
        self.queue.close().iter().for_each(|entry| drop(worker.skip(&entry.op)));
        // What an operation held may have been the last handle of its own device.
        if thread.thread().id() == std::thread::current().id() {
            return;
        }
        // The operation that is being done may be about to launch: what was launched is ended until there is nothing
        // more.
        while !thread.is_finished() {
            self.vm.cancel();
            std::thread::sleep(Duration::from_micros(50));
        }
        // A thread that panicked has nothing to say any more.
        let _ = thread.join();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// A launch whose threads all wait for something that the launch itself does not bring about. It is resident, and has
/// another turn when something else has had one.
pub struct Standing {
    launch: Arc<dyn Launch>,
    running: Mutex<Option<Running>>,
    /// How many turns operations had had when it came to a standstill.
    seen: AtomicU64,
    polls_host: bool,
    since: Instant,
}

/// How often a launch has a turn that waits for memory which the host may change unnoticed, and how often any other: a copy
/// of another device may have changed what it waits for.
const POLL: Duration = Duration::from_millis(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Standing {
    /// It stands still after so many turns.
    pub(crate) fn stands(&self, turns: u64) {
        self.seen.store(turns, Relaxed);
    }

    /// Whether something has happened since.
    pub(crate) fn may_go_on(&self, turns: u64) -> bool {
        let pause = if self.polls_host { POLL } else { LOOK_AGAIN };
        self.seen.load(Relaxed) != turns || self.since.elapsed() >= pause
    }

    /// For how long it has stood still.
    pub(crate) fn since(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether it waits for memory that the host may change.
    pub(crate) fn polls_host(&self) -> bool {
        self.polls_host
    }
}

struct Worker {
    vm: Device,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
}

impl Worker {
    fn serve(self) {
        enter_engine_thread();
        let mut last = None;
        while let Some(turn) = self.queue.next(last.take()) {
            let outcome = self.turn(&turn);
            last = Some((turn.entry, outcome));
        }
    }

    fn turn(&self, Turn { entry, give_up }: &Turn) -> Outcome {
        let domain = entry.stream.domain();
        if domain.skips(entry.ticket) {
            return self.skip(&entry.op);
        }
        // A mistake of ours fails the operation, and leaves nobody waiting.
        let result = catch_unwind(AssertUnwindSafe(|| self.execute(&entry.op, *give_up)));
        match result.unwrap_or_else(|panic| Err(internal(panic.as_ref()))) {
            Ok(outcome) => outcome,
            Err(failure) => {
                domain.failed(*failure);
                self.skip(&entry.op)
            }
        }
    }

    /// What happens although the operation is not done.
    fn skip(&self, op: &Op) -> Outcome {
        match op {
            Op::Signal(signal) => signal.reach(false),
            Op::Release(what) => what.release(),
            Op::Standing(standing) => drop(lock(&standing.running).take()),
            // Where no thread can be had it is not called.
            Op::Call(call) => return self.call(call, true).unwrap_or(Outcome::Done),
            Op::Batch(ops, next) => {
                for (index, op) in ops.iter().enumerate().skip(*next) {
                    if let Outcome::Rest(rest) = self.skip(op) {
                        return Outcome::Rest(then(rest, ops, index + 1));
                    }
                }
            }
            _ => {}
        }
        Outcome::Done
    }

    fn call(&self, call: &Arc<dyn HostCall>, failed: bool) -> Result<Outcome> {
        let end = Signal::new(&self.queue);
        Ok(if call.begin(failed, &end)? { Outcome::Rest(Op::Running(end)) } else { Outcome::Done })
    }

    fn execute(&self, op: &Op, give_up: bool) -> Result<Outcome> {
        let named = |mut failure: Box<Failure>| {
            failure.operation = op.name().into();
            failure
        };
        match op {
            Op::Launch(launch) => {
                let running = launch.start(&self.vm)?;
                return self.run(launch, running, false);
            }
            Op::Standing(standing) => {
                let running = lock(&standing.running).take();
                return match running {
                    Some(running) => self.run(&standing.launch, running, give_up),
                    None => Ok(Outcome::Done),
                };
            }
            Op::Copy(copy) => {
                copy.execute().map_err(named)?;
                self.counts.copied(copy.bytes());
            }
            Op::Move { target, source } => {
                target.copy(0, source, 0, target.len()).map_err(named)?;
                self.counts.copied(target.len());
            }
            Op::Fill { target, pattern, width, height, pitch } => {
                for row in 0..*height {
                    target.fill(row * pitch, *width, pattern.bytes()).map_err(named)?;
                }
                self.counts.fills.fetch_add(1, Relaxed);
            }
            Op::Call(call) => return self.call(call, false),
            Op::Signal(signal) => signal.reach(true),
            Op::WriteValue { at, value } => at.set_value(*value).map_err(named)?,
            Op::Release(what) => what.release(),
            Op::Wait(_) | Op::Running(_) | Op::WaitValue { .. } | Op::Retain { .. } | Op::Nothing => {}
            Op::Batch(ops, next) => return self.batch(ops, *next, give_up),
        }
        Ok(Outcome::Done)
    }

    /// Runs a launch until it is over or stands still.
    fn run(&self, launch: &Arc<dyn Launch>, running: Running, give_up: bool) -> Result<Outcome> {
        let number = running.number();
        if give_up {
            launch.end(number, running.give_up())?;
            return Ok(Outcome::Done);
        }
        match running.run() {
            Progress::Complete => {
                launch.end(number, running.wait())?;
                Ok(Outcome::Done)
            }
            Progress::Standing { changed, polls_host } => {
                let standing = Standing {
                    launch: launch.clone(),
                    running: Mutex::new(Some(running)),
                    seen: AtomicU64::new(0),
                    polls_host,
                    since: Instant::now(),
                };
                Ok(Outcome::Stands(Op::Standing(Arc::new(standing)), changed))
            }
        }
    }

    /// The operations from an index on, until one has to wait.
    fn batch(&self, ops: &Arc<[Op]>, next: usize, give_up: bool) -> Result<Outcome> {
        for (index, op) in ops.iter().enumerate().skip(next) {
            let first = index == next;
            // The first one was ready when its turn came, and none behind stands still.
            if !first && !op.is_ready(0) {
                return Ok(Outcome::Rest(Op::Batch(ops.clone(), index)));
            }
            match self.execute(op, give_up && first)? {
                Outcome::Done => {}
                Outcome::Rest(rest) => return Ok(Outcome::Rest(then(rest, ops, index + 1))),
                Outcome::Stands(rest, changed) => {
                    return Ok(Outcome::Stands(then(rest, ops, index + 1), changed || !first));
                }
            }
        }
        Ok(Outcome::Done)
    }
}

/// What is left of an operation of a batch, and then the others from an index on.
fn then(rest: Op, ops: &Arc<[Op]>, next: usize) -> Op {
    if next == ops.len() {
        return rest;
    }
    Op::Batch([rest, Op::Batch(ops.clone(), next)].into(), 0)
}

fn internal(panic: &(dyn Any + Send)) -> Box<Failure> {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words");
    let message = format!("a mistake in Warpwright and not in the program: {words}");
    Box::new(Failure { operation: "an operation".into(), launch: None, cause: Cause::Internal, message })
}
