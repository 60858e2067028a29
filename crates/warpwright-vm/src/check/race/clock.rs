//! The clock of a block, and the knowledge of each of its threads.
//!
//! Knowledge is kept at the widest level at which it holds: for the block (`common`), for a warp, or for a lane. A
//! kernel that uses only block barriers never leaves the first level, and its barrier costs one increment.

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::{Entry, Scope, lanes};
use super::knowledge::{AGENTS, Floors, Knowledge, Known, agent};
use super::location::ScalarPlace;
use super::{Agent, FenceKind, GroupsOf, Mode, ProxyFence};
use groups::{Closed, Groups};
use phases::Phases;
use sequential::Sequential;

mod grid_wait;
mod groups;
mod phases;
mod proxies;
mod sequential;

/// Knowledge of one lane beyond its warp's, and releases that it has observed but not acquired.
#[derive(Debug, Default)]
struct Lane {
    known: Option<Arc<Knowledge>>,
    /// Released clocks that strong reads observed: what a fence of device scope would acquire, and one of block
    /// scope.
    seen: Seen,
    /// The same by location: an acquire operation on the location acquires it, too.
    seen_at: HashMap<ScalarPlace, Seen>,
    /// The last fences, by scope: a later strong write releases the knowledge at the fence.
    fences: [Option<Arc<FencePoint>>; 2],
    sequential: Option<Box<Sequential>>,
    /// What the lane's own agents did before this is complete.
    waited: Waited,
}

/// Up to when each agent of a lane is done.
type Waited = [u64; Agent::COUNT];

/// The agents that have done something, and up to when.
fn done(waited: &Waited) -> impl Iterator<Item = (Agent, u64)> {
    use Agent::{Copies, Counted, GroupReads, GroupWrites, Products, Stores, Tensor};
    let agents = [Copies, Stores, Counted, GroupReads, GroupWrites, Products, Tensor];
    agents.into_iter().zip(*waited).filter(|&(_, until)| until != 0)
}

/// What the threads of a block know of an earlier access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is ordered before whatever they do.
    Known,
    /// Nobody knows of it, but who did it.
    Unknown,
    /// That depends on the thread.
    Ask,
}

/// What a strong read observed of a location.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) device: Floors,
    pub(super) block: Floors,
}

impl Seen {
    pub(super) fn is_empty(&self) -> bool {
        self.device.is_empty() && self.block.is_empty()
    }

    /// The part that others get to know through an access of that scope.
    pub(super) fn within(mut self, scope: Scope) -> Seen {
        if scope == Scope::Block {
            // Other blocks do not observe the access, whatever it is that was fenced.
            let device = std::mem::take(&mut self.device);
            self.block.join(&device);
        }
        self
    }

    fn join(&mut self, other: &Seen) {
        // Polls see the same again and again.
        if !self.device.is_same(&other.device) {
            self.device.join(&other.device);
        }
        if !self.block.is_same(&other.block) {
            self.block.join(&other.block);
        }
    }
}

/// The knowledge of a warp's lanes when they executed a fence, and the time of the fence.
#[derive(Debug)]
struct FencePoint {
    warp: u8,
    tick: u64,
    synced: u64,
    /// The lanes that this is about, and whether they are the whole warp.
    lanes: u32,
    whole: bool,
    common: Arc<Knowledge>,
    known: Option<Arc<Knowledge>>,
    /// Of one lane: then the point is that lane's alone.
    lane: Option<(Option<Arc<Knowledge>>, Waited)>,
}

impl FencePoint {
    /// What the fence of one lane lets a later write of that lane release.
    fn released(&self, block: u32, lane: u32) -> Floors {
        let mut all = self.knowledge();
        all.own.raise_lane(self.warp, lane, self.tick);
        all.into_floors(block)
    }

    /// What all lanes of the point had together.
    fn together(&self, block: u32) -> Floors {
        let mut all = self.knowledge();
        all.own.raise_lanes(self.warp, self.lanes, self.whole, self.tick);
        all.into_floors(block)
    }

    fn knowledge(&self) -> Knowledge {
        let mut all = Knowledge::clone(&self.common);
        if let Some(known) = &self.known {
            all.join(known);
        }
        all.own.raise_warp(self.warp, self.synced);
        if let Some((known, waited)) = &self.lane {
            if let Some(known) = known {
                all.join(known);
            }
            for (of, until) in done(waited) {
                lanes(self.lanes).for_each(|lane| all.own.raise_lane(agent(self.warp, of), lane, until));
            }
        }
        all
    }
}

#[derive(Debug, Default)]
struct Warp {
    /// The threads that the warp has.
    threads: u32,
    /// When all its threads last synchronised among themselves.
    synced: u64,
    /// What all its lanes know beyond the block.
    known: Option<Arc<Knowledge>>,
    /// Present once a lane has something of its own.
    lanes: Option<Box<[Lane; 32]>>,
    /// The lanes that know something of their own.
    apart: u32,
    /// Whether a lane observed something, or fenced, since the last barrier of the block.
    restless: bool,
    /// Whether a lane executed `fence.sc`.
    sequential: bool,
    /// Knowledge that was fenced before a barrier of the block, by any thread that arrived there.
    carried: Floors,
    /// Groups of each kind that are not known to be complete.
    groups: [Groups; 3],
    /// Its groups of products.
    products: Closed,
}

impl Warp {
    fn lanes(&mut self) -> &mut [Lane; 32] {
        self.lanes.get_or_insert_with(Box::default)
    }

    /// All that lane `lane` knows beyond the block and the warp.
    fn lane(&self, lane: u32) -> Option<&Lane> {
        self.lanes.as_ref().map(|lanes| &lanes[lane as usize])
    }
}

/// The clock and the knowledge of one block.
#[derive(Debug)]
pub(super) struct Clocks {
    pub(super) block: u32,
    pub(super) now: u64,
    mode: Mode,
    common: Arc<Knowledge>,
    warps: Vec<Warp>,
    /// Whether any thread knows more than `common`, or contributes more at a barrier.
    extra: bool,
    /// Whether any thread has observed what another one released.
    acquainted: bool,
    /// What arrived at named barriers without waiting.
    arrived: [Option<Box<Knowledge>>; 16],
    phases: HashMap<u64, Phases>,
    /// Who has passed `griddepcontrol.wait`, and when: warps, lanes and clocks.
    grid_waits: Vec<(u8, u32, u64)>,
}

impl Clocks {
    pub(super) fn new(mode: Mode) -> Clocks {
        Clocks {
            block: 0,
            now: 1,
            mode,
            common: Arc::default(),
            warps: Vec::new(),
            extra: false,
            acquainted: false,
            arrived: Default::default(),
            phases: HashMap::new(),
            grid_waits: Vec::new(),
        }
    }

    /// Those of any blocks, of whose threads nothing is known but what [`set`](Self::set) says.
    pub(super) fn of_notes() -> Clocks {
        let mut clocks = Clocks::new(Mode::Normal);
        clocks.reset(0, 1024);
        clocks
    }

    /// A block at a time: all of its threads know what it did before the floor.
    pub(super) fn set(&mut self, block: u32, now: u64, floor: u64) {
        (self.block, self.now) = (block, now);
        Arc::make_mut(&mut self.common).own.all = floor;
    }

    /// Begins another block.
    pub(super) fn reset(&mut self, block: u32, threads: u32) {
        self.block = block;
        self.now = 1;
        self.acquainted = false;
        self.grid_waits.clear();
        // Nothing to be forgotten: the common case of a simple kernel, a million times a launch.
        match Arc::get_mut(&mut self.common) {
            Some(common) if !self.extra => common.own = Known::default(),
            _ => self.common = Arc::default(),
        }
        let warps = threads.div_ceil(32) as usize;
        if self.extra || self.warps.len() != warps {
            self.warps.clear();
            self.warps.resize_with(warps, Warp::default);
            self.arrived = Default::default();
            self.phases.clear();
            self.extra = false;
        }
        for (at, warp) in self.warps.iter_mut().enumerate() {
            let left = threads - at as u32 * 32;
            warp.threads = if left >= 32 { u32::MAX } else { (1 << left) - 1 };
            warp.synced = 0;
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn whole(&self, warp: u8, mask: u32) -> bool {
        self.warps[usize::from(warp)].threads & !mask == 0
    }

    /// What a lane knows, all levels together.
    fn knowledge(&self, warp: u8, lane: u32) -> Knowledge {
        let state = &self.warps[usize::from(warp)];
        let mut all = Knowledge::clone(&self.common);
        all.own.raise_warp(warp, state.synced);
        if let Some(known) = &state.known {
            all.join(known);
        }
        if let Some(lane_state) = state.lane(lane) {
            if let Some(known) = &lane_state.known {
                all.join(known);
            }
            for (of, until) in done(&lane_state.waited) {
                all.own.raise_lane(agent(warp, of), lane, until);
            }
        }
        all
    }

    /// Moves to `into` the knowledge of a warp's lanes, and the knowledge that waits for a barrier of the block.
    fn gather(&mut self, warp: u8, mask: u32, barrier: bool, into: &mut Knowledge) {
        let (block, strict) = (self.block, self.mode == Mode::Strict);
        let state = &mut self.warps[usize::from(warp)];
        into.own.raise_warp(warp, state.synced);
        if let Some(known) = &state.known {
            into.join(known);
        }
        let threads = state.threads;
        let Some(all) = &mut state.lanes else { return };
        if threads & !mask == 0 {
            let mut waited = all[0].waited;
            for lane in lanes(threads & !1) {
                let of_lane = all[lane as usize].waited;
                waited = std::array::from_fn(|of| waited[of].min(of_lane[of]));
            }
            done(&waited).for_each(|(of, until)| into.own.raise_warp(agent(warp, of), until));
        }
        let mut last: Option<Arc<Knowledge>> = None;
        for lane in lanes(mask) {
            let own = &mut all[lane as usize];
            done(&own.waited).for_each(|(of, until)| into.own.raise_lane(agent(warp, of), lane, until));
            if let Some(known) = &own.known
                && !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, known))
            {
                into.join(known);
                last = Some(known.clone());
            }
            if barrier && !strict && !own.seen.is_empty() {
                let seen = std::mem::take(&mut own.seen);
                own.seen_at.clear();
                into.acquire(block, &seen.device);
            }
        }
    }

    /// Gives `known` to lanes of a warp. It includes what they knew.
    fn give(&mut self, warp: u8, mask: u32, known: &Arc<Knowledge>) {
        self.extra = true;
        let whole = self.whole(warp, mask);
        let state = &mut self.warps[usize::from(warp)];
        if whole {
            state.known = Some(known.clone());
            for lane in lanes(std::mem::take(&mut state.apart)) {
                if let Some(all) = &mut state.lanes {
                    all[lane as usize].known = None;
                }
            }
            return;
        }
        state.apart |= mask;
        for lane in lanes(mask) {
            state.lanes()[lane as usize].known = Some(known.clone());
        }
    }

    /// All live threads of the block have met.
    pub(super) fn barrier_all(&mut self) {
        let tick = self.tick();
        if self.extra {
            let mut all = Knowledge::clone(&self.common);
            let carried =
                self.carry(&(0..self.warps.len()).map(|warp| (warp as u8, u32::MAX)).collect::<Vec<_>>());
            for warp in 0..self.warps.len() as u8 {
                self.gather(warp, u32::MAX, true, &mut all);
            }
            for warp in 0..self.warps.len() as u8 {
                let state = &mut self.warps[usize::from(warp)];
                state.known = None;
                for lane in lanes(std::mem::take(&mut state.apart)) {
                    if let Some(all) = &mut state.lanes {
                        all[lane as usize].known = None;
                    }
                }
                state.restless = false;
                state.carried.join(&carried);
            }
            self.common = Arc::new(all);
        }
        Arc::make_mut(&mut self.common).own.all = tick;
    }

    /// The knowledge that any thread passing a barrier may release because of the fences of threads that arrive
    /// there: except by the letter of the memory model, `fence; barrier; strong write by another thread` releases, as
    /// devices do and programs expect.
    fn carry(&mut self, parties: &[(u8, u32)]) -> Floors {
        let mut carried = Floors::default();
        if self.mode == Mode::Strict {
            return carried;
        }
        for &(warp, mask) in parties {
            let state = &self.warps[usize::from(warp)];
            carried.join(&state.carried);
            let (true, Some(all)) = (state.restless, &state.lanes) else { continue };
            let mut last: Option<&Arc<FencePoint>> = None;
            for lane in lanes(mask) {
                let Some(point) = &all[lane as usize].fences[Scope::Device as usize] else { continue };
                if last.is_some_and(|last| Arc::ptr_eq(last, point)) {
                    continue;
                }
                carried.join(&point.together(self.block));
                last = Some(point);
            }
        }
        carried
    }

    /// Lanes arrive at a named barrier and go on.
    pub(super) fn barrier_arrive(&mut self, barrier: usize, warp: u8, mask: u32) {
        self.extra = true;
        let tick = self.tick();
        let mut slot = self.arrived[barrier & 15].take().unwrap_or_default();
        slot.join(&self.common);
        self.gather(warp, mask, false, &mut slot);
        slot.own.raise_lanes(warp, mask, self.whole(warp, mask), tick);
        self.arrived[barrier & 15] = Some(slot);
    }

    /// A barrier completes for those who wait at it.
    pub(super) fn barrier(&mut self, barrier: usize, waiting: &[(u8, u32)]) {
        let tick = self.tick();
        let mut all = *self.arrived[barrier & 15].take().unwrap_or_default();
        all.join(&self.common);
        let carried = self.carry(waiting);
        for &(warp, mask) in waiting {
            self.gather(warp, mask, true, &mut all);
            all.own.raise_lanes(warp, mask, self.whole(warp, mask), tick);
        }
        let all = Arc::new(all);
        for &(warp, mask) in waiting {
            self.give(warp, mask, &all);
            self.warps[usize::from(warp)].carried.join(&carried);
        }
    }

    /// Lanes of a warp have met; their writes are visible to each other.
    pub(super) fn warp_sync(&mut self, warp: u8, mask: u32) {
        let tick = self.tick();
        let whole = self.whole(warp, mask);
        let state = &mut self.warps[usize::from(warp)];
        let waits = state
            .lanes
            .as_ref()
            .is_some_and(|all| lanes(mask).any(|lane| all[lane as usize].waited != Waited::default()));
        if whole {
            state.synced = tick;
            if state.apart == 0 && !waits {
                return;
            }
        }
        let mut all = Knowledge::default();
        self.gather(warp, mask, false, &mut all);
        all.own.raise_lanes(warp, mask, whole, tick);
        self.give(warp, mask, &Arc::new(all));
    }

    /// A fence by lanes of a warp.
    pub(super) fn fence(&mut self, warp: u8, mask: u32, scope: Scope, kind: FenceKind) {
        if kind != FenceKind::Release {
            self.acquire_seen(warp, mask, scope);
        }
        if kind == FenceKind::Sequential {
            self.acquire_sequential(warp, mask, scope);
        }
        if kind != FenceKind::Acquire {
            let tick = self.tick();
            let (together, own) = self.fence_points(warp, mask, tick);
            let state = &mut self.warps[usize::from(warp)];
            state.restless = true;
            self.extra = true;
            let own_lanes = own.iter().fold(0, |lanes, point| lanes | point.lanes);
            for point in own.into_iter().chain(together) {
                let mask = if point.lane.is_some() { point.lanes } else { mask & !own_lanes };
                let point = Arc::new(point);
                for lane in lanes(mask) {
                    let state = &mut self.warps[usize::from(warp)];
                    state.lanes()[lane as usize].fences[scope as usize] = Some(point.clone());
                    if kind == FenceKind::Sequential {
                        self.keep_sequential(warp, lane, scope, point.clone());
                    }
                }
            }
        }
    }

    /// The fence's point for the lanes that know the same, and one for each of the others.
    fn fence_points(&self, warp: u8, mask: u32, tick: u64) -> (Option<FencePoint>, Vec<FencePoint>) {
        let state = &self.warps[usize::from(warp)];
        let point = |lanes: u32, lane| FencePoint {
            warp,
            tick,
            synced: state.synced,
            lanes,
            whole: lanes & state.threads == state.threads,
            common: self.common.clone(),
            known: state.known.clone(),
            lane,
        };
        let mut shared = mask;
        let mut own = Vec::new();
        for lane in lanes(mask) {
            let Some(lane_state) = state.lane(lane) else { break };
            if lane_state.known.is_some() || lane_state.waited != Waited::default() {
                shared &= !(1 << lane);
                own.push(point(1 << lane, Some((lane_state.known.clone(), lane_state.waited))));
            }
        }
        ((shared != 0).then(|| point(shared, None)), own)
    }

    /// Whether a strong write of these lanes would release something.
    pub(super) fn may_release(&self, warp: u8) -> bool {
        let state = &self.warps[usize::from(warp)];
        state.lanes.is_some() || !state.carried.is_empty()
    }

    /// The knowledge that a strong write of a lane releases because of earlier fences: to the device, to the block.
    pub(super) fn fenced(&self, warp: u8, lane: u32) -> Seen {
        let state = &self.warps[usize::from(warp)];
        let mut released = Seen { device: state.carried.clone(), block: Floors::default() };
        let Some(lane_state) = state.lane(lane) else { return released };
        for (scope, point) in lane_state.fences.iter().enumerate() {
            let Some(point) = point else { continue };
            let floors = point.released(self.block, lane);
            if scope == Scope::Device as usize {
                released.device.join(&floors);
            } else {
                released.block.join(&floors);
            }
        }
        released
    }

    /// The knowledge that a releasing operation of lanes releases; advances the clock once for all of them.
    pub(super) fn release(&mut self, warp: u8, mask: u32, scope: Scope) -> Vec<(u32, Seen)> {
        let tick = self.tick();
        lanes(mask)
            .map(|lane| {
                let mut known = self.knowledge(warp, lane);
                known.own.raise_lane(warp, lane, tick);
                let floors = known.into_floors(self.block);
                let mut released = self.fenced(warp, lane);
                match scope {
                    Scope::Device => released.device.join(&floors),
                    Scope::Block => released.block.join(&floors),
                }
                (lane, released)
            })
            .collect()
    }

    /// The same for lanes together, to the device: what one of them knew all release.
    pub(super) fn release_together(&mut self, warp: u8, mask: u32) -> Seen {
        self.extra = true;
        let tick = self.tick();
        let mut all = Knowledge::clone(&self.common);
        self.gather(warp, mask, false, &mut all);
        all.own.raise_lanes(warp, mask, self.whole(warp, mask), tick);
        Seen { device: all.into_floors(self.block), block: Floors::default() }
    }

    /// A strong read of a lane observed a location to which this was released.
    pub(super) fn observe(&mut self, warp: u8, lane: u32, place: ScalarPlace, seen: &Seen) {
        if seen.is_empty() {
            return;
        }
        self.extra = true;
        self.acquainted = true;
        let own = &mut self.warps[usize::from(warp)].lanes()[lane as usize];
        own.seen.join(seen);
        own.seen_at.entry(place).or_default().join(seen);
    }

    /// What a lane has observed of a location, for an acquire operation of that scope on it.
    pub(super) fn take_seen(
        &mut self,
        warp: u8,
        lane: u32,
        place: ScalarPlace,
        scope: Scope,
    ) -> Option<Seen> {
        let own = &mut self.warps[usize::from(warp)].lanes.as_mut()?[lane as usize];
        match scope {
            Scope::Device => own.seen_at.remove(&place),
            Scope::Block => {
                let block = own.seen_at.get(&place)?.block.clone();
                Some(Seen { device: Floors::default(), block })
            }
        }
    }

    /// Lanes acquire what their strong reads observed.
    pub(super) fn acquire_seen(&mut self, warp: u8, mask: u32, scope: Scope) {
        let Some(all) = &mut self.warps[usize::from(warp)].lanes else { return };
        let seen: Vec<(u32, Seen)> = lanes(mask)
            .filter_map(|lane| {
                let own = &mut all[lane as usize];
                if own.seen.is_empty() {
                    return None;
                }
                let mut seen = Seen { device: Floors::default(), block: own.seen.block.clone() };
                if scope == Scope::Device {
                    own.seen_at.clear();
                    seen = std::mem::take(&mut own.seen);
                }
                Some((lane, seen))
            })
            .collect();
        self.learn(warp, mask, &seen);
    }

    /// Lanes acquire what was released to them.
    pub(super) fn learn(&mut self, warp: u8, mask: u32, released: &[(u32, Seen)]) {
        let Some((_, first)) = released.first() else { return };
        self.acquainted = true;
        let same = released
            .iter()
            .all(|(_, seen)| seen.device.is_same(&first.device) && seen.block.is_same(&first.block));
        let block = self.block;
        let state = &self.warps[usize::from(warp)];
        if same && released.len() == mask.count_ones() as usize && self.whole(warp, mask) {
            let mut known = state.known.as_deref().cloned().unwrap_or_default();
            known.acquire(block, &first.device);
            known.acquire(block, &first.block);
            let state = &mut self.warps[usize::from(warp)];
            // Lanes that know something of their own keep it.
            state.known = Some(Arc::new(known));
            self.extra = true;
            return;
        }
        for (lane, seen) in released {
            let state = &mut self.warps[usize::from(warp)];
            state.apart |= 1 << lane;
            let own = &mut state.lanes()[*lane as usize].known;
            let mut known = own.as_deref().cloned().unwrap_or_default();
            known.acquire(block, &seen.device);
            known.acquire(block, &seen.block);
            *own = Some(Arc::new(known));
            self.extra = true;
        }
    }

    /// Up to when everything that threads of the block did is known to all its threads; asynchronous copies
    /// are not meant.
    pub(super) fn settled(&self) -> u64 {
        self.common.own.all
    }

    /// Whether a thread of the block may know something of other blocks.
    pub(super) fn knows_others(&self) -> bool {
        self.acquainted
    }

    /// The knowledge of a block's access at a time, as far as it can be determined at once.
    #[inline(always)]
    pub(super) fn standing(&self, block: u32, clock: u64, is_async: bool) -> Standing {
        if block != self.block {
            return if self.acquainted { Standing::Ask } else { Standing::Unknown };
        }
        match () {
            () if clock < self.common.own.all && !is_async => Standing::Known,
            () if clock == self.now => Standing::Unknown,
            () => Standing::Ask,
        }
    }

    /// Whether the whole of an entry's warp is known, up to the entry, by all lanes of a warp.
    pub(super) fn knows_warp(&self, warp: u8, entry: &Entry) -> bool {
        let state = &self.warps[usize::from(warp)];
        let of = entry.warp();
        if entry.block == self.block {
            self.common.own.warp(of) > entry.clock
                || (of == warp && state.synced > entry.clock)
                || state.known.as_ref().is_some_and(|known| known.own.warp(of) > entry.clock)
        } else {
            let known = |of_all: &Knowledge| {
                of_all.foreign.get(entry.block).is_some_and(|block| block.warp(of) > entry.clock)
            };
            known(&self.common) || state.known.as_deref().is_some_and(known)
        }
    }

    /// Whether lane `lane` of a warp knows the actions of lane `of` of the entry's warp, up to the entry.
    pub(super) fn knows_lane(&self, warp: u8, lane: u32, entry: &Entry, of: u32) -> bool {
        let state = &self.warps[usize::from(warp)];
        let at = entry.warp();
        let own = state.lane(lane);
        if entry.block == self.block {
            if at % AGENTS == warp
                && of == lane
                && let (Some(agent), Some(own)) = (entry.agent(), own)
                && own.waited[agent as usize] > entry.clock
            {
                return true;
            }
            let known = |of_all: &Knowledge| of_all.own.lane(at, of) > entry.clock;
            return known(&self.common)
                || state.known.as_deref().is_some_and(known)
                || own.and_then(|own| own.known.as_deref()).is_some_and(known);
        }
        let known = |of_all: &Knowledge| {
            of_all.foreign.get(entry.block).is_some_and(|block| block.lane(at, of) > entry.clock)
        };
        known(&self.common)
            || state.known.as_deref().is_some_and(known)
            || own.and_then(|own| own.known.as_deref()).is_some_and(known)
    }
}
