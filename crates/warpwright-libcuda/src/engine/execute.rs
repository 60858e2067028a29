//! The threads of a device: the one that does what was asked for, and the one that calls the client's functions.
//!
//! The client's functions have a thread of their own, so that one that takes its time holds up its stream alone.

use super::queue::{Entry, Outcome};
use super::{Engine, Mark, Op, Stream};
use crate::report::log;
use crate::state::is_shutting_down;
use crate::types::{Result, Status};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

thread_local! {
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread is one of a device. The client's functions that it calls must not call the driver.
pub(crate) fn is_engine_thread() -> bool {
    IS_OURS.get()
}

/// The calling thread calls functions of the client's, which must not call the driver.
pub(crate) fn call_no_driver() {
    IS_OURS.set(true);
}

/// A call of a function of the client's, and what is reached then.
type Call = (Box<dyn FnOnce() + Send>, Arc<Mark>);

/// Starts the threads of a device.
pub(super) fn start(engine: &Arc<Engine>) -> Result<()> {
    let (calls, called) = channel::<Call>();
    let queue = engine.queue().clone();
    let call = move || {
        call_no_driver();
        for (call, mark) in called {
            call();
            mark.reach();
            queue.stir();
        }
    };
    let worker = Worker { engine: engine.clone(), calls };
    let ordinal = engine.ordinal();
    let spawn = |name: &str, life: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(format!("{name}-{ordinal}")).spawn(life).map(drop)
    };
    let started = spawn("cuda-host", Box::new(call))
        .and_then(|()| spawn("cuda-device", Box::new(move || worker.serve())));
    started.map_err(|error| {
        log::note(&error);
        Status::OPERATING_SYSTEM
    })
}

struct Worker {
    engine: Arc<Engine>,
    calls: Sender<Call>,
}

impl Worker {
    fn serve(self) {
        IS_OURS.set(true);
        let mut last = None;
        loop {
            let entry = self.engine.queue().next(last.take());
            let outcome = self.turn(&entry);
            last = Some((entry, outcome));
        }
    }

    fn turn(&self, entry: &Entry) -> Outcome {
        if let Err(status) = entry.stream.context().check() {
            return self.skip(&entry.op, status);
        }
        // A mistake of ours fails the operation, and leaves nobody waiting.
        let result = catch_unwind(AssertUnwindSafe(|| self.execute(&entry.stream, &entry.op)));
        let result = result.unwrap_or_else(|panic| {
            log::panicked("an operation", panic.as_ref());
            Err(Status::UNKNOWN)
        });
        match result {
            Ok(outcome) => outcome,
            Err(status) => {
                if !is_shutting_down() {
                    entry.stream.context().poison(status);
                }
                self.skip(&entry.op, status)
            }
        }
    }

    /// What happens although the operation is not done.
    fn skip(&self, op: &Op, status: Status) -> Outcome {
        match op {
            Op::Record(mark) => mark.reach(),
            Op::Free(block) => self.engine.memory().forget(block),
            Op::Callback(callback) if !is_shutting_down() => {
                let callback = *callback;
                return self.call(Box::new(move || callback.call(status)));
            }
            Op::Batch(ops, next) => {
                for (index, op) in ops.iter().enumerate().skip(*next) {
                    if let Outcome::Rest(rest) = self.skip(op, status) {
                        return Outcome::Rest(then(rest, ops, index + 1));
                    }
                }
            }
            _ => {}
        }
        Outcome::Done
    }

    fn call(&self, call: Box<dyn FnOnce() + Send>) -> Outcome {
        let mark = Arc::new(Mark::new(self.engine.queue().clone()));
        match self.calls.send((call, mark.clone())) {
            Ok(()) => Outcome::Rest(Op::Running(mark)),
            // The thread is gone, and so is the process.
            Err(_) => Outcome::Done,
        }
    }

    fn execute(&self, stream: &Arc<Stream>, op: &Op) -> Result<Outcome> {
        match op {
            Op::Launch(work) => work.run(&self.engine)?,
            Op::Copy(copy) => copy.execute()?,
            Op::Fill { target, pattern, width, height, pitch } => {
                for row in 0..*height {
                    target.fill(row * pitch, *width, pattern.bytes())?;
                }
            }
            // The client has taken down what its functions need.
            Op::Host(_) | Op::Callback(_) if is_shutting_down() => {}
            Op::Host(function) => {
                let function = *function;
                return Ok(self.call(Box::new(move || function.call())));
            }
            Op::Callback(callback) => {
                let callback = *callback;
                return Ok(self.call(Box::new(move || callback.call(Status::SUCCESS))));
            }
            Op::Record(mark) => mark.reach(),
            Op::WriteValue { at, value } => at.set_value(*value)?,
            Op::Free(block) => self.engine.memory().forget(block),
            Op::Wait(_) | Op::Running(_) | Op::WaitValue { .. } | Op::Keep { .. } | Op::Nothing => {}
            Op::Batch(ops, next) => return self.batch(stream, ops, *next),
        }
        Ok(Outcome::Done)
    }

    /// The operations from a place on, until one has to wait.
    fn batch(&self, stream: &Arc<Stream>, ops: &Arc<[Op]>, next: usize) -> Result<Outcome> {
        for (index, op) in ops.iter().enumerate().skip(next) {
            if !op.is_ready() {
                return Ok(Outcome::Rest(Op::Batch(ops.clone(), index)));
            }
            if let Outcome::Rest(rest) = self.execute(stream, op)? {
                return Ok(Outcome::Rest(then(rest, ops, index + 1)));
            }
        }
        Ok(Outcome::Done)
    }
}

/// What is left of an operation of a batch, and then the others from a place on.
fn then(rest: Op, ops: &Arc<[Op]>, next: usize) -> Op {
    if next == ops.len() {
        return rest;
    }
    Op::Batch([rest, Op::Batch(ops.clone(), next)].into(), 0)
}
