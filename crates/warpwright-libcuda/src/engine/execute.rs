//! The thread of a device that does what was asked for.

use super::callbacks::Call;
use super::queue::{Entry, Outcome};
use super::{Engine, Mark, Op, Stream};
use crate::report::log;
use crate::state::is_shutting_down;
use crate::types::{Result, Status};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

thread_local! {
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread is one of a device. The client's functions that it calls must not call the driver.
pub(crate) fn is_engine_thread() -> bool {
    IS_OURS.get()
}

/// From now on the thread is one.
pub(super) fn become_ours() {
    IS_OURS.set(true);
}

/// Starts the thread of a device.
pub(super) fn start(engine: &Arc<Engine>) -> Result<()> {
    let worker = Worker { engine: engine.clone() };
    let thread = std::thread::Builder::new().name(format!("cuda-device-{}", engine.ordinal()));
    thread.spawn(move || worker.serve()).map(drop).map_err(|error| {
        log::note(&error);
        Status::OPERATING_SYSTEM
    })
}

struct Worker {
    engine: Arc<Engine>,
}

impl Worker {
    fn serve(self) {
        become_ours();
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
                // Where no thread can be had it is not called.
                return self.call(Call::Stream(*callback, status)).unwrap_or(Outcome::Done);
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

    fn call(&self, call: Call) -> Result<Outcome> {
        let mark = Arc::new(Mark::new(self.engine.queue().clone()));
        self.engine.callbacks().push(call, Some(mark.clone()))?;
        Ok(Outcome::Rest(Op::Running(mark)))
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
            Op::Host(function) => return self.call(Call::Host(*function)),
            Op::Callback(callback) => return self.call(Call::Stream(*callback, Status::SUCCESS)),
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
