//! Streams: operations in order.

use crate::failure::FailureDomain;
use crate::op::Op;
use crate::queue::{Queue, Until};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The relation of a stream to the default stream of its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// The default stream itself.
    Legacy,
    /// It and the default stream wait for each other.
    Blocking,
    /// It and the default stream are independent.
    NonBlocking,
}

/// A stream. Its operations go on when the last handle is dropped.
pub struct Stream {
    id: u64,
    domain: Arc<dyn FailureDomain>,
    kind: StreamKind,
    queue: Arc<Queue>,
    /// The tickets of the last operation that was issued, and of the last that is complete.
    issued: AtomicU64,
    completed: AtomicU64,
}

impl Stream {
    /// A stream of a queue.
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

    /// Its unique number in the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its failure domain.
    pub fn domain(&self) -> &Arc<dyn FailureDomain> {
        &self.domain
    }

    /// Its relation to the default stream.
    pub fn kind(&self) -> StreamKind {
        self.kind
    }

    /// Its queue.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Issues an operation.
    pub fn submit(self: &Arc<Self>, op: Op) {
        self.queue.push(self, op);
    }

    /// The ticket of its last operation; 0 before the first.
    pub fn issued(&self) -> u64 {
        self.issued.load(Acquire)
    }

    /// Notes an issued operation. Called in the order of the queue.
    pub(crate) fn issue(&self, ticket: u64) {
        self.issued.store(ticket, Release);
    }

    /// Notes a complete operation. Called in the order of the stream.
    pub(crate) fn complete(&self, ticket: u64) {
        self.completed.store(ticket, Release);
    }

    /// Whether all operations up to a ticket are complete: executed, or skipped after a failure.
    pub fn is_over(&self, ticket: u64) -> bool {
        self.completed.load(Acquire) >= ticket
    }

    /// Whether all operations issued so far are complete. If not, they are no longer deferred.
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

    /// Waits for its operations so far. The default stream also waits for the streams that it synchronises with.
    pub fn synchronize(self: &Arc<Self>) {
        if self.kind == StreamKind::Legacy {
            // Its turn comes when those that it waits for are done.
            self.submit(Op::Nothing);
        }
        self.wait();
    }

    /// Waits for its operations so far, and for no other stream.
    pub fn wait(&self) {
        self.wait_through(self.issued());
    }

    /// Waits until all operations up to a ticket are complete.
    pub fn wait_through(&self, ticket: u64) {
        if !self.is_over(ticket) {
            self.queue.wait(Until::Stream(self.id, ticket));
        }
    }
}
