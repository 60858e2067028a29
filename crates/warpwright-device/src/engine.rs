//! The thread of a device that executes its operations.

use crate::chain::{self, Chains, Early};
use crate::failure::{Cause, Failure, Result};
use crate::lock;
use crate::op::{HostCall, Launch, Op};
use crate::order::Order;
use crate::queue::{Outcome, Queue, Turn};
use crate::signal::Signal;
use crate::stream::Stream;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use warpwright_vm::{Device, Edge, Edges, Progress, Running};

thread_local! {
    static IS_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the current thread belongs to an engine, or makes calls for one, so that waiting for the engine would
/// deadlock.
pub fn is_engine_thread() -> bool {
    IS_ENGINE.get()
}

/// Marks the current thread as one that makes calls for an engine.
pub fn enter_engine_thread() {
    IS_ENGINE.set(true);
}

/// A device that executes operations.
pub struct Engine {
    vm: Device,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Counters of an engine's work.
#[derive(Debug, Default)]
pub struct Counts {
    /// Copies.
    pub copies: AtomicU64,
    /// Bytes copied.
    pub bytes_copied: AtomicU64,
    /// Fills of memory.
    pub fills: AtomicU64,
}

impl Counts {
    fn copied(&self, bytes: u64) {
        self.copies.fetch_add(1, Relaxed);
        self.bytes_copied.fetch_add(bytes, Relaxed);
    }
}

impl Engine {
    /// Starts an engine for a virtual GPU, on a thread of that name.
    pub fn start(name: &str, vm: Device, order: Order) -> std::io::Result<Engine> {
        let (queue, counts) = (Arc::new(Queue::new(order)), Arc::<Counts>::default());
        let worker = Worker::new(&vm, &queue, &counts);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || worker.serve())?;
        Ok(Engine { vm, queue, counts, thread: Mutex::new(Some(thread)) })
    }

    /// The virtual GPU.
    pub fn vm(&self) -> &Device {
        &self.vm
    }

    /// Its queue of operations.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Its counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Waits for all operations issued so far. Returns at once on the engine's own threads, which would wait for
    /// themselves.
    pub fn drain(&self) {
        if !is_engine_thread() {
            self.queue.wait_all();
        }
    }

    /// Waits for all operations of a failure domain issued so far.
    pub fn drain_domain(&self, domain: u64) {
        if !is_engine_thread() {
            self.queue.wait_for(domain);
        }
    }

    /// Stops the engine: skips operations that have not begun, and cancels the one that runs.
    pub fn close(&self) {
        let Some(thread) = lock(&self.thread).take() else { return };
        let worker = Worker::new(&self.vm, &self.queue, &self.counts);
        self.queue.close().iter().for_each(|entry| drop(worker.skip(&entry.stream, &entry.op)));
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

/// A stalled launch: all its threads wait for something that the launch itself does not cause. It stays resident, and
/// gets another turn after another operation has had one. Or a launch that makes way for others.
pub struct Standing {
    launch: Arc<dyn Launch>,
    running: Mutex<Option<Running>>,
    /// The number of turns of operations when it stalled.
    seen: AtomicU64,
    polls_host: bool,
    makes_way: bool,
    since: Instant,
}

/// The interval between turns of a stalled launch that waits for memory which the host may change unnoticed, and of any
/// other: a copy of another device may have changed what it waits for.
const POLL_HOST: Duration = Duration::from_millis(1);
const POLL_OTHERS: Duration = Duration::from_millis(20);

impl Standing {
    /// Notes that it has stalled after that many turns.
    pub(crate) fn stands(&self, turns: u64) {
        self.seen.store(turns, Relaxed);
    }

    /// Whether to give it another turn: it can go on by itself, another operation has had one, or the interval has
    /// passed.
    pub(crate) fn may_go_on(&self, turns: u64) -> bool {
        let pause = if self.polls_host { POLL_HOST } else { POLL_OTHERS };
        self.makes_way || self.seen.load(Relaxed) != turns || self.since.elapsed() >= pause
    }

    /// How long it has been stalled.
    pub(crate) fn since(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether it can go on by itself.
    pub(crate) fn makes_way(&self) -> bool {
        self.makes_way
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
    chains: RefCell<Chains>,
}

impl Worker {
    fn new(vm: &Device, queue: &Arc<Queue>, counts: &Arc<Counts>) -> Worker {
        let (vm, queue, counts) = (vm.clone(), queue.clone(), counts.clone());
        Worker { vm, queue, counts, chains: RefCell::default() }
    }

    fn serve(self) {
        enter_engine_thread();
        let mut last = None;
        while let Some(turn) = self.queue.next(last.take()) {
            let outcome = self.turn(&turn);
            last = Some((turn.entry, outcome));
        }
    }

    fn turn(&self, Turn { entry, give_up }: &Turn) -> Outcome {
        let (stream, domain) = (&entry.stream, entry.stream.domain());
        if domain.skips(entry.ticket) {
            return self.skip(stream, &entry.op);
        }
        let behind = match entry.op {
            Op::Launch { .. } => self.queue.dependents(stream, entry.ticket),
            _ => Vec::new(),
        };
        // A bug of this library fails the operation, and leaves no thread waiting.
        let result = catch_unwind(AssertUnwindSafe(|| self.execute(stream, &entry.op, &behind, *give_up)));
        match result.unwrap_or_else(|panic| Err(internal(panic.as_ref()))) {
            Ok(outcome) => outcome,
            Err(failure) => {
                domain.failed(*failure);
                self.skip(stream, &entry.op)
            }
        }
    }

    /// The effects of an operation that is skipped.
    fn skip(&self, stream: &Stream, op: &Op) -> Outcome {
        match op {
            Op::Launch { launch, .. } => {
                let early = self.chains.borrow_mut().take(stream.id(), launch);
                drop(early.map(|early| early.running.give_up()));
            }
            Op::Signal(signal) => signal.reach(false),
            Op::Release(what) => what.release(),
            Op::Standing(standing) => drop(lock(&standing.running).take()),
            // Where no thread can be had it is not called.
            Op::Call(call) => return self.call(call, true).unwrap_or(Outcome::Done),
            Op::Batch(ops, next) => {
                for (index, op) in ops.iter().enumerate().skip(*next) {
                    if let Outcome::Rest(rest) = self.skip(stream, op) {
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

    /// Executes an operation. `behind` are the launches behind it that may overlap with it.
    fn execute(
        &self,
        stream: &Stream,
        op: &Op,
        behind: &[Arc<dyn Launch>],
        give_up: bool,
    ) -> Result<Outcome> {
        self.chains.borrow_mut().pass(stream.id(), op);
        let named = |mut failure: Box<Failure>| {
            failure.operation = op.name().into();
            failure
        };
        match op {
            Op::Launch { launch, overlaps } => {
                let running = self.begin(stream.id(), (launch, *overlaps), behind)?;
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
            Op::Decide(what) => {
                return Ok(match what.clone().decide()? {
                    Op::Nothing => Outcome::Done,
                    op => Outcome::Rest(op),
                });
            }
            Op::Wait(_) | Op::Running(_) | Op::WaitValue { .. } | Op::Retain { .. } | Op::Nothing => {}
            Op::Batch(ops, next) => return self.batch(stream, ops, *next, give_up),
        }
        Ok(Outcome::Done)
    }

    /// Begins a launch whose turn it is, if that has not happened; before it, if the order says so, launches behind it.
    fn begin(
        &self,
        stream: u64,
        (launch, overlaps): (&Arc<dyn Launch>, bool),
        behind: &[Arc<dyn Launch>],
    ) -> Result<Running> {
        let (early, mut edge, known) = {
            let mut chains = self.chains.borrow_mut();
            let early = chains.take(stream, launch);
            let known: Vec<Edge> = chains.early(stream).iter().map(|early| early.after.clone()).collect();
            let edge = early.as_ref().map_or_else(Edge::new, |early| early.after.clone());
            (early, edge, known)
        };
        let after = edge.clone();
        let count = self.queue.early(behind.len());
        let mut new = Vec::new();
        for (at, launch) in behind.iter().enumerate().take(count.max(known.len())) {
            let next = known.get(at).cloned().unwrap_or_else(Edge::new);
            let before = std::mem::replace(&mut edge, next);
            if at >= known.len() {
                new.push((launch, Edges { before: Some(before), after: Some(edge.clone()) }));
            }
        }
        let mut begun = Vec::new();
        for (launch, edges) in new.into_iter().rev() {
            // One that is refused is so again when its turn comes; those behind it are not early then.
            let Ok(running) = launch.start(&self.vm, &edges) else {
                begun.drain(..).for_each(|early: Early| drop(early.running.give_up()));
                continue;
            };
            running.run();
            let after = edges.after.unwrap_or_default();
            begun.insert(0, Early { launch: launch.clone(), running, after });
        }
        let mut chains = self.chains.borrow_mut();
        if !begun.is_empty() {
            chains.begun(stream, begun);
        }
        let running = match early {
            Some(early) => early.running,
            None => {
                let before = if overlaps { chains.last(stream) } else { None };
                // What no launch may overlap with need not be kept.
                let is_kept = before.is_some() || !behind.is_empty() || self.vm.has_grid_waits();
                let edges = Edges { before, after: is_kept.then(|| after.clone()) };
                launch.start(&self.vm, &edges).inspect_err(|_| after.open())?
            }
        };
        chains.launched(stream, after);
        Ok(running)
    }

    /// Runs a launch until it completes or stalls.
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
            Progress::Standing { changed, polls_host, makes_way } => {
                let standing = Standing {
                    launch: launch.clone(),
                    running: Mutex::new(Some(running)),
                    seen: AtomicU64::new(0),
                    polls_host,
                    makes_way,
                    since: Instant::now(),
                };
                Ok(Outcome::Stands(Op::Standing(Arc::new(standing)), changed))
            }
        }
    }

    /// Executes the operations from an index on, until one must wait.
    fn batch(&self, stream: &Stream, ops: &Arc<[Op]>, next: usize, give_up: bool) -> Result<Outcome> {
        for (index, op) in ops.iter().enumerate().skip(next) {
            let first = index == next;
            // The first one was ready when its turn came, and none behind stands still.
            if !first && !op.is_ready(0) {
                return Ok(Outcome::Rest(Op::Batch(ops.clone(), index)));
            }
            let behind = match op {
                Op::Launch { .. } => chain::dependents(ops[index + 1..].iter()),
                _ => Vec::new(),
            };
            match self.execute(stream, op, &behind, give_up && first)? {
                Outcome::Done => {}
                Outcome::Rest(rest) => return Ok(Outcome::Rest(then(rest, ops, index + 1))),
                Outcome::Stands(rest, changed) => {
                    return Ok(Outcome::Stands(then(rest, ops, index + 1), changed || !first));
                }
            }
        }
        self.chains.borrow_mut().end(stream.id());
        Ok(Outcome::Done)
    }
}

/// The rest of an operation of a batch, followed by the operations from an index on.
fn then(rest: Op, ops: &Arc<[Op]>, next: usize) -> Op {
    // A single one stays as it is: a loop that decides again and again must not wrap it once more each time.
    let behind = match &ops[next..] {
        [] => return rest,
        [last] => last.clone(),
        _ => Op::Batch(ops.clone(), next),
    };
    Op::Batch([rest, behind].into(), 0)
}

fn internal(panic: &(dyn Any + Send)) -> Box<Failure> {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words");
    let message = format!("a mistake in Warpwright and not in the program: {words}");
    Box::new(Failure { operation: "an operation".into(), launch: None, cause: Cause::Internal, message })
}
