//! Barriers in shared memory that count arrivals and bytes.
//!
//! A barrier is stored in its eight bytes of memory, as on hardware; their format is internal:
//!
//! ```text
//! bits  0..20  arrivals that the phase still expects
//!      20..40  arrivals that a phase expects
//!      40..61  bytes that are outstanding, 2^20 more than there are
//!      61      parity of the phase
//!      62..64  2: it is a barrier
//! ```
//!
//! The state that an arrival returns is the barrier's contents before it.

use crate::check::race::{AccessKind, Agent};
use crate::check::{RawPlace, Touch, shown};
use crate::decode::{Decoder, Rows};
use crate::launch::{Race, TrapKind};
use crate::machine::{Awaited, Inst, LANES, LanesOf, Machine, Row32, Row64, Step, lanewise};
use crate::memory::{AccessSpec, Address, Order, RegionKind, SpaceKind};
use crate::op::memory::space;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::async_copy::CpAsyncMbarrierArrive;
use warpwright_ptx::op::family::Mbarrier as Op;
use warpwright_ptx::op::mbarrier::BarrierLayout;

/// Most arrivals of a phase, and most bytes that are outstanding.
const MAX_COUNT: u32 = (1 << 20) - 1;
/// Most arrivals of a phase of `.layout::v1`.
const MAX_COUNT_V1: u32 = (1 << 9) - 1;

/// What a barrier holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) pending: u32,
    pub(crate) expected: u32,
    pub(crate) bytes: i32,
    pub(crate) parity: bool,
    layout: BarrierLayout,
}

/// What is wrong with the use of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misuse {
    /// There is none.
    NoBarrier,
    /// It cannot expect that many, but so many.
    Count(u32, u32),
    /// An arrival that counts for none.
    NoArrival,
    /// More arrive than the phase expects.
    TooMany { arriving: u32, expected: u32 },
    /// More bytes than it can count.
    Bytes(i64),
    /// `.noComplete` completes the phase.
    Completes,
}

impl Misuse {
    fn message(self) -> String {
        match self {
            Misuse::NoBarrier => {
                "there is no mbarrier at this address: initialise it with `mbarrier.init`, and let the threads \
                 meet at a barrier before they use it"
                    .into()
            }
            Misuse::Count(count, max) => format!("an mbarrier that expects {count} arrivals: it is 1 to {max}"),
            Misuse::NoArrival => "an arrival at an mbarrier with a count of 0: it is 1 at least".into(),
            Misuse::TooMany { arriving, expected } => {
                format!("{arriving} arrivals at an mbarrier whose phase expects {expected} more: more than it was initialised for")
            }
            Misuse::Bytes(bytes) => {
                format!("{bytes} bytes are outstanding at an mbarrier: it counts up to {MAX_COUNT} either way")
            }
            Misuse::Completes => "an arrival with `.noComplete` completes the phase of its mbarrier".into(),
        }
    }
}

const fn max_count(layout: BarrierLayout) -> u32 {
    match layout {
        BarrierLayout::V0 => MAX_COUNT,
        BarrierLayout::V1 => MAX_COUNT_V1,
    }
}

impl State {
    fn new(layout: BarrierLayout, count: u32) -> Result<State, Misuse> {
        let max = max_count(layout);
        if !(1..=max).contains(&count) {
            return Err(Misuse::Count(count, max));
        }
        Ok(State { pending: count, expected: count, bytes: 0, parity: false, layout })
    }

    fn bits(self) -> u64 {
        u64::from(self.pending)
            | u64::from(self.expected) << 20
            | ((i64::from(self.bytes) + (1 << 20)) as u64) << 40
            | u64::from(self.parity) << 61
            | if self.layout == BarrierLayout::V1 { 3 } else { 2 } << 62
    }

    /// Of the barrier at that offset of shared memory, if there is one.
    pub(crate) fn at(shared: &[u32], offset: u32) -> Option<State> {
        let words = shared.get(offset as usize / 4..)?.get(..2)?;
        State::from_bits(u64::from(words[0]) | u64::from(words[1]) << 32).ok()
    }

    fn from_bits(bits: u64) -> Result<State, Misuse> {
        let layout = match bits >> 62 {
            2 => BarrierLayout::V0,
            3 => BarrierLayout::V1,
            _ => return Err(Misuse::NoBarrier),
        };
        let state = State {
            pending: bits as u32 & MAX_COUNT,
            expected: (bits >> 20) as u32 & MAX_COUNT,
            bytes: (bits >> 40) as i32 % (1 << 21) - (1 << 20),
            parity: bits >> 61 & 1 != 0,
            layout,
        };
        // Memory that is all ones is no barrier.
        if state.expected > max_count(layout) { Err(Misuse::NoBarrier) } else { Ok(state) }
    }

    /// Whether the phase that had this parity is over.
    pub(crate) fn is_over(self, parity: bool) -> bool {
        self.parity != parity
    }

    /// Changes the bytes that are outstanding.
    fn expect(&mut self, bytes: i64) -> Result<(), Misuse> {
        let sum = i64::from(self.bytes) + bytes;
        if sum.unsigned_abs() > u64::from(MAX_COUNT) {
            return Err(Misuse::Bytes(sum));
        }
        self.bytes = sum as i32;
        Ok(())
    }

    fn arrive(&mut self, count: u32) -> Result<(), Misuse> {
        if count > self.pending {
            return Err(Misuse::TooMany { arriving: count, expected: self.pending });
        }
        self.pending -= count;
        Ok(())
    }

    /// Later phases expect fewer.
    fn leave(&mut self, count: u32) -> Result<(), Misuse> {
        if count > self.expected {
            return Err(Misuse::TooMany { arriving: count, expected: self.expected });
        }
        self.expected -= count;
        Ok(())
    }

    /// Goes on to the next phase if this one is over: whether it is.
    fn settle(&mut self) -> bool {
        let over = self.pending == 0 && self.bytes == 0;
        if over {
            self.pending = self.expected;
            self.parity = !self.parity;
        }
        over
    }
}

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    macro_rules! arrive {
        ($op:ident, leaves: $leaves:literal) => {{
            let arrival = Arrival {
                state: $op.state.0.map(|reg| d.row(reg)),
                count: $op.count.as_ref().map(|count| d.src32(count, Type::U32)),
                expect: $op.expect_tx,
                no_complete: $op.no_complete,
                leaves: $leaves,
                releases: $op.semantics != Some(Semantics::Relaxed),
            };
            let at = At::decode(d, &$op.address, $op.space);
            d.emit_boxed(move |m, _| m.arrive_mbarrier(at, arrival));
        }};
    }
    macro_rules! wait {
        ($op:ident) => {{
            let acquires = $op.semantics != Some(Semantics::Relaxed);
            let wait = Wait::decode(d, $op.complete, $op.report, &$op.state, $op.parity, acquires);
            (At::decode(d, &$op.address, $op.space), wait)
        }};
    }
    match op {
        Op::MbarrierInit(op) => {
            let count = d.src32(&op.count, Type::U32);
            let at = At::decode(d, &op.address, op.space);
            let layout = op.layout.unwrap_or(BarrierLayout::V0);
            d.emit_boxed(move |m, _| {
                let counts = *m.registers.row32(count);
                m.with_barriers((at, AccessKind::Write), |m, at, lane| {
                    let state = State::new(layout, counts[lane])?;
                    m.set_barrier(at, state.bits());
                    m.began_mbarrier(at);
                    Ok(false)
                })
            });
        }
        Op::MbarrierInval(op) => {
            let at = At::decode(d, &op.address, op.space);
            d.emit_boxed(move |m, _| {
                // A lane ends a barrier for those that it met at a `match`, which orders no memory, in libcu++ too.
                let kind = match m.launch.options.race {
                    Race::Normal => AccessKind::Atomic,
                    Race::Strict => AccessKind::Write,
                };
                m.with_barriers((at, kind), |m, at, _| {
                    // libcu++ ends a pipeline's barriers where it is left, and again where it is destroyed.
                    if !m.is_no_barrier(at) {
                        m.barrier_state(at)?;
                    }
                    m.set_barrier(at, 0);
                    m.began_mbarrier(at);
                    Ok(false)
                })
            });
        }
        Op::MbarrierExpectTx(op) => {
            let bytes = d.src32(&op.tx_count, Type::U32);
            let at = At::decode(d, &op.address, op.space);
            transaction(d, at, bytes, 1);
        }
        Op::MbarrierCompleteTx(op) => {
            let bytes = d.src32(&op.tx_count, Type::U32);
            let at = At::decode(d, &op.address, op.space);
            transaction(d, at, bytes, -1);
        }
        Op::MbarrierArrive(op) => arrive!(op, leaves: false),
        Op::MbarrierArriveDrop(op) => arrive!(op, leaves: true),
        // No operation that is executed makes a report: both types of phases complete together.
        Op::MbarrierTestWait(op) => {
            let (at, wait) = wait!(op);
            d.emit_boxed(move |m, _| m.test_mbarrier(at, wait).0);
        }
        Op::MbarrierTryWait(op) => {
            let (at, wait) = wait!(op);
            d.emit_boxed(move |m, _| {
                let (step, all) = m.test_mbarrier(at, wait);
                if all {
                    m.let_others_catch_up()
                } else {
                    m.give_way()
                }
                step
            });
        }
        Op::MbarrierCheckLayout(op) => {
            let at = At::decode(d, &op.address, op.space);
            let (same, layout) = (d.dst(op.same), op.layout);
            d.emit_boxed(move |m, _| {
                let mut holds = 0;
                let step = m.with_barriers((at, AccessKind::Read), |m, at, lane| {
                    holds |= u32::from(m.barrier_state(at)?.layout == layout) << lane;
                    Ok(false)
                });
                m.registers.set_predicate(same, holds, m.mask);
                step
            });
        }
        Op::MbarrierPendingCount(op) => {
            let run = |m: &mut Machine<'_>, i: &Inst| {
                let counts = lanewise(m.registers.row64(i.a), |state| state as u32 & MAX_COUNT);
                m.registers.set32(i.d, &counts, m.mask);
                Step::Next
            };
            let a = d.src64(&op.state, Type::B64);
            let rows = Rows { d: d.dst(op.count), a, ..Rows::default() };
            d.emit_handler(run, rows);
        }
    }
    true
}

/// `cp.async.mbarrier.arrive`.
pub(super) fn arrive_with_copies(op: &CpAsyncMbarrierArrive, d: &mut Decoder<'_, '_>) {
    let at = At::decode(d, &op.address, op.space);
    let noinc = op.noinc;
    d.emit_boxed(move |m, _| m.arrive_with_copies(at, noinc));
}

/// Where a barrier is.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) address: Address,
    pub(super) space: SpaceKind,
}

impl At {
    pub(super) fn decode(
        d: &mut Decoder<'_, '_>,
        address: &warpwright_ptx::ir::Address,
        said: Option<Space>,
    ) -> Self {
        At { address: d.address(address), space: space(d, said, address) }
    }

    /// A multimem address.
    pub(super) fn multimem(d: &mut Decoder<'_, '_>, address: &warpwright_ptx::ir::Address) -> Self {
        At { address: d.address(address), space: SpaceKind::Multimem }
    }
}

#[derive(Clone, Copy)]
struct Arrival {
    /// The row that the state goes to.
    state: Option<u32>,
    /// The row with the number of arrivals, or of bytes to expect.
    count: Option<u32>,
    expect: bool,
    no_complete: bool,
    leaves: bool,
    /// What the thread did before comes before what follows the phase.
    releases: bool,
}

#[derive(Clone, Copy)]
struct Wait {
    /// Predicate rows: whether it is over; whether there is a report, which there never is.
    complete: Option<u32>,
    reports: Option<u32>,
    /// The row that the report goes to.
    report: Option<u32>,
    /// The row with the state, or with the parity.
    state: u32,
    parity: bool,
    acquires: bool,
}

impl Wait {
    fn decode(
        d: &mut Decoder<'_, '_>,
        complete: DstPair,
        report: Option<Dst>,
        state: &Src,
        parity: bool,
        acquires: bool,
    ) -> Self {
        Wait {
            complete: complete.first.map(|reg| d.row(reg)),
            reports: complete.second.flatten().map(|reg| d.row(reg)),
            report: report.map(|report| d.dst(report)),
            state: if parity { d.src32(state, Type::U32) } else { d.src64(state, Type::B64) },
            parity,
            acquires,
        }
    }
}

fn transaction(d: &mut Decoder<'_, '_>, at: At, bytes: u32, sign: i64) {
    d.emit_boxed(move |m, _| {
        let bytes: Row32 = *m.registers.row32(bytes);
        m.with_barriers((at, AccessKind::Atomic), |m, at, lane| {
            let mut state = m.barrier_state(at)?;
            state.expect(sign * i64::from(bytes[lane]))?;
            m.settle_mbarrier(at, state);
            Ok(false)
        })
    });
}

impl<'a> Machine<'a> {
    /// Calls `each` for the lanes of the mask, one after the other, with the offset of their barrier in
    /// shared memory: whether the lane has seen a phase complete. For the race check, beginning and ending a barrier
    /// are weak writes, and all else is strong; a test in vain observes nothing.
    fn with_barriers(
        &mut self,
        (at, kind): (At, AccessKind),
        each: impl FnMut(&mut Self, u32, usize) -> Result<bool, Misuse>,
    ) -> Step {
        let addresses = self.addresses(&at.address);
        self.with_barriers_at((addresses, at.space), self.mask, kind, each)
    }

    fn with_barriers_at(
        &mut self,
        (addresses, space): (Row64, SpaceKind),
        mut todo: u32,
        kind: AccessKind,
        mut each: impl FnMut(&mut Self, u32, usize) -> Result<bool, Misuse>,
    ) -> Step {
        let spec = AccessSpec { space, bytes: 8, align: 8, write: true };
        self.worker.progress = true;
        let order = match kind {
            AccessKind::Write => Order::WEAK,
            _ => Order { strong: Some(Scope::Cluster), ..Order::WEAK },
        };
        let touch = Touch { kind, element: 8, order };
        while let Some(group) = self.next_group(spec, &addresses, &mut todo) {
            self.look_for_races(touch, &group, &[]);
            let mut seen = 0;
            for lane in LanesOf(group.mask) {
                let result = match group.region.kind {
                    RegionKind::Shared => each(self, group.offsets[lane] as u32, lane),
                    _ => Err(Misuse::NoBarrier),
                };
                match result {
                    Ok(sees) => seen |= u32::from(sees) << lane,
                    Err(misuse) => {
                        let place = RawPlace { space, address: addresses[lane], bytes: 8, frame: None };
                        let message =
                            format!("{}; the address is {}", misuse.message(), shown(self.launch, place));
                        return self.trap(TrapKind::BadBarrier, message);
                    }
                }
            }
            if seen != 0 {
                self.observed_barrier(touch, &group.part(seen));
            }
        }
        Step::Next
    }

    /// Asynchronous operations of lanes are complete, of so many bytes each, at mbarriers that expect them. An agent
    /// did them, or the lanes themselves.
    pub(super) fn complete_bytes(
        &mut self,
        barriers: (Row64, SpaceKind),
        mask: u32,
        bytes: u32,
        agent: Option<Agent>,
    ) -> Result<(), Step> {
        let step = self.with_barriers_at(barriers, mask, AccessKind::Atomic, |m, at, lane| {
            let mut state = m.barrier_state(at)?;
            state.expect(-i64::from(bytes))?;
            match agent {
                Some(agent) => m.copies_arrived_at_mbarrier(agent, at, lane),
                None => m.arrived_at_mbarrier(at, lane, true),
            }
            m.settle_mbarrier(at, state);
            Ok(false)
        });
        if step == Step::Next { Ok(()) } else { Err(step) }
    }

    /// What an agent of lanes has done arrives at mbarriers, which expect that.
    pub(super) fn arrive_for(
        &mut self,
        barriers: (Row64, SpaceKind),
        mask: u32,
        agent: Agent,
    ) -> Result<(), Step> {
        let step = self.with_barriers_at(barriers, mask, AccessKind::Atomic, |m, at, lane| {
            let mut state = m.barrier_state(at)?;
            state.arrive(1)?;
            m.copies_arrived_at_mbarrier(agent, at, lane);
            m.settle_mbarrier(at, state);
            Ok(false)
        });
        if step == Step::Next { Ok(()) } else { Err(step) }
    }

    fn barrier_state(&self, at: u32) -> Result<State, Misuse> {
        State::at(&self.cluster.shared, at).ok_or(Misuse::NoBarrier)
    }

    /// Whether there is what the end of a barrier has left.
    fn is_no_barrier(&self, at: u32) -> bool {
        let at = at as usize / 4;
        self.cluster.shared[at..at + 2] == [0, 0]
    }

    fn set_barrier(&mut self, at: u32, bits: u64) {
        let at = at as usize / 4;
        self.cluster.shared[at] = bits as u32;
        self.cluster.shared[at + 1] = (bits >> 32) as u32;
    }

    /// Writes a barrier back, after the phase has been completed if that is due: whether it was.
    fn settle_mbarrier(&mut self, at: u32, mut state: State) -> bool {
        let over = state.settle();
        self.set_barrier(at, state.bits());
        if over {
            self.completed_mbarrier(at);
        }
        over
    }

    fn arrive_mbarrier(&mut self, at: At, arrival: Arrival) -> Step {
        let counts = arrival.count.map_or([1; LANES], |row| *self.registers.row32(row));
        let mut states = [0; LANES];
        let step = self.with_barriers((at, AccessKind::Atomic), |m, at, lane| {
            let mut state = m.barrier_state(at)?;
            states[lane] = state.bits();
            let count = if arrival.expect { 1 } else { counts[lane] };
            if count == 0 {
                return Err(Misuse::NoArrival);
            }
            if arrival.expect {
                state.expect(counts[lane].into())?;
            }
            if arrival.leaves {
                state.leave(count)?;
            }
            state.arrive(count)?;
            m.arrived_at_mbarrier(at, lane, arrival.releases);
            if m.settle_mbarrier(at, state) && arrival.no_complete {
                return Err(Misuse::Completes);
            }
            Ok(false)
        });
        if let Some(row) = arrival.state {
            self.registers.set64(row, &states, self.mask);
        }
        step
    }

    /// Tests whether a phase is over. Whether it is for every lane.
    fn test_mbarrier(&mut self, at: At, wait: Wait) -> (Step, bool) {
        let parities: [bool; LANES] = match wait.parity {
            true => lanewise(self.registers.row32(wait.state), |parity| parity & 1 != 0),
            false => lanewise(self.registers.row64(wait.state), |state| state >> 61 & 1 != 0),
        };
        let mut over = 0;
        let mut offsets = [0; LANES];
        let progress = self.worker.progress;
        let step = self.with_barriers((at, AccessKind::Read), |m, at, lane| {
            let is_over = m.barrier_state(at)?.is_over(parities[lane]);
            offsets[lane] = at;
            if is_over {
                over |= 1 << lane;
                m.waited_at_mbarrier(at, lane, wait.acquires);
            }
            Ok(is_over)
        });
        // Looking changes nothing.
        self.worker.progress = progress;
        if over != self.mask {
            let spec = AccessSpec { space: at.space, bytes: 8, align: 8, write: false };
            let addresses = self.addresses(&at.address);
            self.polled(spec, &addresses, false);
            self.awaits(spec, &addresses, self.mask & !over, &offsets, &parities);
        }
        for (row, holds) in [(wait.complete, over), (wait.reports, 0)] {
            if let Some(row) = row {
                self.registers.set_predicate(row, holds, self.mask);
            }
        }
        if let Some(row) = wait.report {
            self.registers.set32(row, &[0; LANES], self.mask);
        }
        (step, over == self.mask)
    }

    /// These lanes have tested in vain: what a report of a deadlock says of them.
    fn awaits(
        &mut self,
        spec: AccessSpec,
        addresses: &Row64,
        mut lanes: u32,
        offsets: &[u32; LANES],
        parities: &[bool; LANES],
    ) {
        let awaited = &mut self.warp.awaited;
        awaited.iter_mut().for_each(|earlier| earlier.lanes &= !self.mask);
        awaited.retain(|earlier| earlier.lanes != 0);
        while lanes != 0 {
            let first = lanes.trailing_zeros() as usize;
            let (offset, parity) = (offsets[first], parities[first]);
            let like = |&lane: &usize| (offsets[lane], parities[lane]) == (offset, parity);
            let alike = LanesOf(lanes).filter(like).fold(0, |alike, lane| alike | 1 << lane);
            let barrier =
                RawPlace { space: spec.space, address: addresses[first], bytes: spec.bytes, frame: None };
            awaited.push(Awaited { pc: self.pc, barrier, offset, parity, lanes: alike });
            lanes &= !alike;
        }
    }

    /// The copies of the thread so far arrive when they have ended, which may be at once. Without `noinc`
    /// that arrival is expected in addition to the others, so that nothing changes.
    fn arrive_with_copies(&mut self, at: At, noinc: bool) -> Step {
        self.end_copies(None);
        self.with_barriers((at, AccessKind::Atomic), |m, at, lane| {
            let mut state = m.barrier_state(at)?;
            m.copies_arrived_at_mbarrier(Agent::Copies, at, lane);
            if noinc {
                state.arrive(1)?;
                m.settle_mbarrier(at, state);
            }
            Ok(false)
        })
    }
}
