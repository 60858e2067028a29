//! Streams: operations that are done one after the other.

use crate::failure::FailureDomain;
use crate::op::Op;
use crate::queue::{Queue, Until};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// How a stream stands to the default stream of its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// It is that one.
    Legacy,
    /// They wait for each other.
    Blocking,
    /// Neither waits for the other.
    NonBlocking,
}

/// A stream. What it was asked for goes on when the last handle is dropped.
pub struct Stream {
    id: u64,
    domain: Arc<dyn FailureDomain>,
    kind: StreamKind,
    queue: Arc<Queue>,
    /// Tickets of the last operation that was asked for, and that is over.
    issued: AtomicU64,
    completed: AtomicU64,
}

impl Stream {
    /// A stream whose operations a queue has.
    pub fn new(queue: &Arc<Queue>, domain: Arc<dyn FailureDomain>, kind: StreamKind) -> Arc<Stream> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Arc::new(Stream {
            id: IDS.fetch_add(1, Relaxed),
            domain,
            kind,
            queue: queue.clone(),
            issued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
        })
    }

    /// A number that no other stream of the process ever has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What fails with it.
    pub fn domain(&self) -> &Arc<dyn FailureDomain> {
        &self.domain
    }

    /// How it stands to the default stream.
    pub fn kind(&self) -> StreamKind {
        self.kind
    }

    /// What has its operations.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Asks for an operation.
    pub fn submit(self: &Arc<Self>, op: Op) {
        self.queue.push(self, op);
    }

    /// The ticket of the last operation that it was asked for; 0 before the first.
    pub fn issued(&self) -> u64 {
        self.issued.load(Acquire)
    }

    /// Something was asked for. Called in the order of the queue.
    pub(crate) fn issue(&self, ticket: u64) {
        self.issued.store(ticket, Release);
    }

    /// Something is over. Called in the order of the stream.
    pub(crate) fn complete(&self, ticket: u64) {
        self.completed.store(ticket, Release);
    }

    /// Whether everything up to a ticket is over: done, or skipped after a failure.
    pub fn is_over(&self, ticket: u64) -> bool {
        self.completed.load(Acquire) >= ticket
    }

    /// Whether everything is over that was asked for so far. If not, it is not put off any longer.
    pub fn is_idle(&self) -> bool {
        // The default stream waits for the blocking streams.
        if self.kind == StreamKind::Legacy {
            return self.queue.is_idle_for(self.domain.id());
        }
        let last = self.issued();
        let idle = self.is_over(last);
        if !idle {
            self.queue.ask(Until::Stream(self.id, last));
        }
        idle
    }

    /// Waits for what was asked for so far, and where it is the default stream for what that one waits for.
    pub fn synchronize(self: &Arc<Self>) {
        if self.kind == StreamKind::Legacy {
            // Its turn comes when those that it waits for are done.
            self.submit(Op::Nothing);
        }
        self.wait();
    }

    /// Waits for what was asked for on it so far, and on no other one.
    pub fn wait(&self) {
        self.wait_through(self.issued());
    }

    /// Waits until everything up to a ticket is over.
    pub fn wait_through(&self, ticket: u64) {
        if !self.is_over(ticket) {
            self.queue.wait(Until::Stream(self.id, ticket));
        }
    }
}
