//! The queue of a virtual GPU: operations in the order of issue, and what has become of them.
//!
//! A ticket is complete when its operation was executed or skipped. An error is set before the ticket of the operation
//! that failed completes, so whoever waits for it finds it.

use crate::error::{Failure, Result, RuntimeError};
use crate::stream::StreamState;
use crate::vm::task::Task;
use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Pieces of memory for staging that are kept, and the most bytes of each.
const KEPT_STAGING: (usize, usize) = (16, 1 << 20);

/// What issues operations and what executes them share.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// An operation was issued, or the queue is closed.
    work: Condvar,
    /// A ticket is complete.
    done: Condvar,
    completed: AtomicU64,
    closed: AtomicBool,
    /// Errors that somebody was told of.
    told: AtomicU64,
}

#[derive(Default)]
struct State {
    /// What was issued and not begun; the first has the ticket `begun + 1`.
    tasks: VecDeque<Task>,
    issued: u64,
    begun: u64,
    /// The worker waits for an operation.
    sleeping: bool,
    /// Threads that wait for tickets.
    waiters: u32,
    /// What went wrong, until somebody was told.
    error: Option<Box<Failure>>,
    /// Operations up to this ticket are not executed: somebody was told about an error before them.
    skip_through: u64,
    /// Memory for staging that is free.
    staging: Vec<Vec<u8>>,
}

/// An operation whose turn it is.
pub(super) struct Turn {
    pub(super) task: Task,
    pub(super) ticket: u64,
    /// It must not be executed.
    pub(super) skipped: bool,
    /// Memory for what it copies to the host.
    pub(super) staging: Vec<u8>,
}

/// What has become of an operation.
pub(super) struct Outcome {
    pub(super) ticket: u64,
    pub(super) error: Option<Box<Failure>>,
    /// Memory for staging that it used.
    pub(super) staging: Option<Vec<u8>>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Issues an operation of a stream: its ticket.
    pub(super) fn push(&self, task: Task, stream: &StreamState) -> u64 {
        let mut state = self.state();
        state.issued += 1;
        let ticket = state.issued;
        state.tasks.push_back(task);
        // Under the lock, so that the stream's last ticket never goes back.
        stream.issued(ticket);
        let wake = std::mem::take(&mut state.sleeping);
        drop(state);
        if wake {
            self.work.notify_one();
        }
        ticket
    }

    /// The ticket of the last operation that was issued.
    pub(super) fn issued(&self) -> u64 {
        self.state().issued
    }

    pub(super) fn is_complete(&self, ticket: u64) -> bool {
        self.completed.load(Acquire) >= ticket
    }

    /// Waits until a ticket is complete.
    pub(super) fn pass(&self, ticket: u64) {
        if !self.is_complete(ticket) {
            drop(self.passed(ticket));
        }
    }

    /// Waits until a ticket is complete, and returns the error that nobody was told of.
    pub(super) fn wait(&self, ticket: u64) -> Result<()> {
        let mut state = self.passed(ticket);
        match state.error.take() {
            Some(failure) => {
                state.skip_through = state.issued;
                self.told.fetch_add(1, Release);
                Err(RuntimeError::Failed(failure))
            }
            None => Ok(()),
        }
    }

    /// How many errors somebody was told of. What is issued after one is counted is executed again.
    pub(super) fn told(&self) -> u64 {
        self.told.load(Acquire)
    }

    fn passed(&self, ticket: u64) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.waiters += 1;
        while !self.is_complete(ticket) {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiters -= 1;
        state
    }

    /// Says what has become of the last operation, and waits for the next one. `None` when the queue is closed.
    pub(super) fn next(&self, outcome: Option<Outcome>) -> Option<Turn> {
        let mut state = self.state();
        if let Some(outcome) = outcome {
            if state.error.is_none() {
                state.error = outcome.error;
            }
            if let Some(staging) = outcome.staging {
                state.keep(staging);
            }
            self.completed.store(outcome.ticket, Release);
            if state.waiters > 0 {
                self.done.notify_all();
            }
        }
        loop {
            if self.is_closed() {
                return None;
            }
            if let Some(task) = state.tasks.pop_front() {
                state.begun += 1;
                let ticket = state.begun;
                let skipped = state.error.is_some() || ticket <= state.skip_through;
                let lands = matches!(task, Task::Download { .. });
                let staging = if lands { state.staging.pop().unwrap_or_default() } else { Vec::new() };
                return Some(Turn { task, ticket, skipped, staging });
            }
            state.sleeping = true;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeping = false;
        }
    }

    /// Memory for staging, empty.
    pub(super) fn staging(&self) -> Vec<u8> {
        self.state().staging.pop().unwrap_or_default()
    }

    /// Such memory is free again.
    pub(super) fn keep(&self, staging: Vec<u8>) {
        self.state().keep(staging);
    }

    /// Nothing is executed any more. What was not begun.
    pub(super) fn close(&self) -> VecDeque<Task> {
        let mut state = self.state();
        self.closed.store(true, Relaxed);
        let tasks = std::mem::take(&mut state.tasks);
        drop(state);
        self.work.notify_all();
        tasks
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}

impl State {
    fn keep(&mut self, mut staging: Vec<u8>) {
        let (most, bytes) = KEPT_STAGING;
        if self.staging.len() < most && staging.capacity() <= bytes {
            staging.clear();
            self.staging.push(staging);
        }
    }
}
