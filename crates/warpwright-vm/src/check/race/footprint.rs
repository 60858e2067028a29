//! What a launch accesses in global memory, kept for the launches that may overlap with it.
//!
//! Launches that may overlap (programmatic dependent launches) need not run at the same time here, and which accesses
//! come first depends on the order of the run. So nothing is compared while they run: each keeps what it accessed, and
//! the later one compares when both are over. That finds the same in every order.

use super::access::WarpAccess;
use crate::check::Action;

/// Accesses from which on repeated ones are looked for.
const MANY: usize = 1 << 14;

/// An access of neighbouring lanes to neighbouring bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Touched {
    start: u64,
    bytes: u32,
    pub(crate) pc: u32,
    pub(crate) block: u64,
    /// The first thread, and how many bytes behind each one the next accesses memory.
    first: u32,
    step: u32,
    /// Bytes that each accesses.
    pub(crate) width: u32,
    pub(crate) action: Action,
}

impl Touched {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.into())
    }

    /// The thread that accesses a byte.
    pub(crate) fn thread(&self, address: u64) -> u32 {
        self.first + (address - self.start).checked_div(self.step.into()).unwrap_or(0) as u32
    }
}

/// Accesses, each at most once for an instruction and its bytes when there are many.
#[derive(Debug, Default)]
struct Side {
    list: Vec<Touched>,
    /// How many there were when repeated ones were last looked for.
    distinct: usize,
}

impl Side {
    fn add(&mut self, touched: Touched) {
        self.list.push(touched);
        if self.list.len() >= MANY.max(2 * self.distinct) {
            self.settle();
        }
    }

    /// Sorts them. Of repeated ones that of the first thread stays.
    fn settle(&mut self) {
        self.list.sort_unstable();
        self.list.dedup_by_key(|touched| (touched.start, touched.bytes, touched.pc));
        self.distinct = self.list.len();
    }

    /// Calls `each` for those that overlap with one of `others`. Both are settled.
    fn meet(&self, others: &Side, each: &mut dyn FnMut(Meeting)) {
        let widest = others.list.iter().map(|touched| touched.bytes).max().unwrap_or(0);
        for later in &self.list {
            let from = later.start.saturating_sub(widest.into());
            let at = others.list.partition_point(|earlier| earlier.start < from);
            let near = others.list[at..].iter().take_while(|earlier| earlier.start < later.end());
            for earlier in near.filter(|earlier| earlier.end() > later.start) {
                let address = earlier.start.max(later.start);
                each(Meeting { earlier: *earlier, later: *later, address });
            }
        }
    }
}

/// Accesses of two launches to one byte, at least one of them a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    pub(crate) earlier: Touched,
    pub(crate) later: Touched,
    /// The byte.
    pub(crate) address: u64,
}

/// What a launch, or a part of it, accessed in global memory.
#[derive(Debug, Default)]
pub(crate) struct Footprint {
    reads: Side,
    writes: Side,
}

impl Footprint {
    /// Adds an access by lanes of a block.
    pub(crate) fn add(&mut self, access: &WarpAccess<'_>, action: Action, block: u64) {
        let side = if access.kind.is_write() { &mut self.writes } else { &mut self.reads };
        access.runs(|run| {
            let (lane, step) = run.first();
            side.add(Touched {
                start: run.address,
                bytes: run.bytes,
                pc: access.pc,
                block,
                first: u32::from(access.warp) * 32 + lane,
                step,
                width: access.element,
                action,
            });
        });
    }

    /// Adds what another host thread did.
    pub(crate) fn merge(&mut self, other: Footprint) {
        for (own, other) in [(&mut self.reads, other.reads), (&mut self.writes, other.writes)] {
            if own.list.is_empty() {
                *own = other;
            } else {
                own.list.extend(other.list);
            }
        }
    }

    /// Everything has been added.
    pub(crate) fn settle(&mut self) {
        self.reads.settle();
        self.writes.settle();
    }

    /// Calls `each` for what conflicts with an earlier launch. Both are settled.
    pub(crate) fn meet(&self, earlier: &Footprint, each: &mut dyn FnMut(Meeting)) {
        self.reads.meet(&earlier.writes, each);
        self.writes.meet(&earlier.writes, each);
        self.writes.meet(&earlier.reads, each);
    }
}
