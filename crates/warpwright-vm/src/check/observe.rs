//! Observes accesses to memory for the checks.
//!
//! An access is observed before memory changes, and again after a strong read. Without checks, that costs one
//! comparison.

use super::init::Written;
use super::proxies::look_for_proxies;
use super::race::{
    AccessKind, Agent, BlockRaces, Mode, Race, RaceSpace, Scope, Stored, Strength, Through, Unchanged,
    Unknown, WarpAccess, WorkerRaces, byte_runs,
};
use super::stored::StoredRegisters;
use super::undefined::Origin;
use super::{
    Action, Between, Collector, FindingKind, Hazard, InitBits, Noting, RawFinding, RawPlace, RawSite,
};
use crate::device::RESERVED_SHARED;
use crate::launch::Launch;
use crate::machine::{Block, LANES, LanesOf, Machine, Warp};
use crate::memory::{Element, FaultKind, Group, Order, RegionKind, SpaceKind};
use std::cell::Cell;
use std::collections::HashMap;
use warpwright_ptx::ir;

/// What the checks keep for a resident block.
#[derive(Debug, Default)]
pub(crate) struct BlockChecks {
    pub(super) races: Option<Box<BlockRaces>>,
    /// It has released the dependent launches.
    pub(super) released: bool,
    /// The phases of the cluster's barrier that its threads have waited for.
    pub(super) met: u64,
}

/// What the checks know of the shared memory of a cluster.
#[derive(Debug, Default)]
pub(crate) struct SharedChecks {
    /// Which bytes were written.
    written: InitBits,
    /// Of words, the bytes that undefined values were stored to, and where the last of them comes from. The bytes
    /// count as not written, until something else is stored.
    undefined: HashMap<u64, (u8, Origin)>,
}

/// Addresses that the race check has for the shared memory of a cluster, and for its barrier: a power of two.
pub(crate) const RACE_BYTES: u64 = 1 << 23;

/// Where the phases of the cluster's barrier are among them.
const RACE_BARRIER: u64 = RACE_BYTES - 32;

impl BlockChecks {
    /// Begins a block.
    pub(crate) fn start(&mut self, launch: &Launch, number: u64) {
        let checks = launch.options.checks;
        (self.released, self.met) = (false, 0);
        if checks.race {
            let mode = mode(launch);
            // Numbers that differ by 2³² are of blocks long gone.
            self.races
                .get_or_insert_with(|| Box::new(BlockRaces::new(mode)))
                .reset(number as u32, launch.shape.threads());
        }
    }

    /// What the race check knows of the block, if there is one.
    pub(crate) fn races(&self) -> Option<&BlockRaces> {
        self.races.as_deref()
    }

    /// What looks at accesses of native code.
    pub(crate) fn noting<'a>(
        &'a mut self,
        worker: &'a mut WorkerChecks,
        shared: &'a mut SharedChecks,
        launch: &'a Launch,
    ) -> Option<Noting<'a>> {
        let (worker, init) = (&mut worker.races, launch.options.checks.init);
        let shared = &mut shared.written;
        Some(Noting { races: self.races.as_mut()?, worker, launch: &launch.races, init, shared })
    }

    /// All threads of the block have exited.
    pub(crate) fn ended(&self, launch: &Launch, block: &Block) {
        for (columns, (pc, thread)) in block.tensor.left() {
            let kind = FindingKind::TensorMemoryLeak { columns };
            let first = RawSite { pc, action: Action::Execute, block: block.number, thread, memory: None };
            launch.findings.add(RawFinding { kind, first, second: None, count: 1 });
        }
        if launch.is_dependent() && self.races.as_ref().is_some_and(|races| !races.has_grid_wait()) {
            launch.ended_unpassed();
        }
    }
}

impl SharedChecks {
    /// Begins a cluster.
    pub(crate) fn start(&mut self, launch: &Launch) {
        let shape = &launch.shape;
        if !launch.options.checks.init {
            return;
        }
        let blocks = u64::from(shape.cluster_blocks());
        self.written.reset(blocks * shape.shared_bytes());
        self.undefined.clear();
        if shape.reserved_shared != 0 {
            // Its values are not the program's.
            for block in 0..blocks {
                self.written.set(block * shape.shared_bytes() + shape.reserved_shared, RESERVED_SHARED);
            }
        }
    }

    /// Bytes of shared memory hold what is defined.
    pub(super) fn define(&mut self, at: u64, bytes: u64) {
        self.written.set(at, bytes);
    }

    /// Whether all of these bytes do.
    pub(crate) fn are_written(&self, at: u64, bytes: u64) -> bool {
        self.written.is_set(at, bytes)
    }

    /// An undefined value is stored to a byte of shared memory.
    pub(super) fn undefine(&mut self, at: u64, origin: Origin) {
        self.written.clear(at, 1);
        let word = self.undefined.entry(at / 4).or_insert((0, origin));
        *word = (word.0 | 1 << (at % 4), origin);
    }

    /// Where the undefined value comes from that was stored to a byte of shared memory.
    pub(super) fn undefined_at(&self, at: u64) -> Option<Origin> {
        let (bytes, origin) = self.undefined.get(&(at / 4))?;
        (bytes >> (at % 4) & 1 != 0 && !self.are_written(at, 1)).then_some(*origin)
    }
}

/// Where the race check has a phase of the cluster's barrier.
pub(super) fn phase_of_cluster(generation: u64) -> u64 {
    RACE_BARRIER + 8 * (generation & 1)
}

/// The same for what comes before relaxed arrivals: it has happened, and is ordered before nothing but the end of a
/// block.
pub(super) fn relaxed_phase_of_cluster(generation: u64) -> u64 {
    RACE_BARRIER + 16 + 8 * (generation & 1)
}

/// What the checks keep for a host thread.
#[derive(Debug, Default)]
pub(crate) struct WorkerChecks {
    races: WorkerRaces,
    /// How often it has waited for a store of another worker.
    waits: Cell<u32>,
}

fn mode(launch: &Launch) -> Mode {
    match launch.options.race {
        crate::launch::Race::Normal => Mode::Normal,
        crate::launch::Race::Strict => Mode::Strict,
    }
}

/// How an instruction touches memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) kind: AccessKind,
    /// Bytes of an element.
    pub(crate) element: u32,
    pub(crate) order: Order,
}

impl Touch {
    fn strength(&self, launch: &Launch) -> Strength {
        match self.order.strong {
            None if self.order.proposes && mode(launch) == Mode::Normal => Strength::relaxed(Scope::Device),
            None => Strength::Weak,
            Some(scope) => Strength::Strong {
                scope: scope_of(launch, scope),
                acquire: self.order.acquire,
                release: self.order.release,
            },
        }
    }
}

/// A scope as the race check has it. That of a cluster of several blocks counts as that of the device: a synchronisation
/// between clusters that is missing for that is not found.
pub(super) fn scope_of(launch: &Launch, scope: ir::Scope) -> Scope {
    match scope {
        ir::Scope::Cta => Scope::Block,
        ir::Scope::Cluster if launch.shape.cluster_blocks() == 1 => Scope::Block,
        ir::Scope::Cluster | ir::Scope::Gpu | ir::Scope::Sys => Scope::Device,
    }
}

fn action(kind: AccessKind) -> Action {
    match kind {
        AccessKind::Read | AccessKind::MapRead => Action::Read,
        AccessKind::Write => Action::Write,
        AccessKind::Atomic | AccessKind::Swap | AccessKind::AsyncAtomic(_) => Action::Atomic,
        AccessKind::AsyncRead(_) => Action::AsyncRead,
        AccessKind::AsyncWrite(_) => Action::AsyncWrite,
    }
}

/// Adds a race to what was found.
#[cold]
fn add_race(collector: &Collector, race: &Race, told: &mut Vec<(u32, Between, bool)>) {
    let space = match race.space {
        RaceSpace::Shared => SpaceKind::Shared,
        RaceSpace::Global => SpaceKind::Global,
    };
    let (first, second) = (race.first, race.second);
    let hazard = match (first.kind.is_write(), second.kind.is_write()) {
        (true, true) => Hazard::WriteAfterWrite,
        (true, false) => Hazard::ReadAfterWrite,
        _ => Hazard::WriteAfterRead,
    };
    let between = if first.block != second.block {
        Between::Blocks
    } else if first.thread == second.thread {
        Between::Copy
    } else if first.thread / 32 == second.thread / 32 {
        Between::Lanes
    } else {
        Between::Warps
    };
    // However many lanes and bytes it is about, it is one.
    let what = (first.pc, between, race.same_value);
    let is_told = told.contains(&what);
    if !is_told {
        told.push(what);
    }
    let kind = FindingKind::Race { hazard, between, space, same_value: race.same_value };
    collector.add(RawFinding { count: u64::from(!is_told), ..pair(kind, space, race) });
}

/// A finding about two accesses.
pub(super) fn pair(kind: FindingKind, space: SpaceKind, race: &Race) -> RawFinding {
    let site = |site: super::race::RaceSite| RawSite {
        pc: site.pc,
        action: action(site.kind),
        block: site.block.into(),
        thread: site.thread,
        memory: Some(RawPlace { space, address: race.address, bytes: site.bytes, frame: None }),
    };
    RawFinding { kind, first: site(race.first), second: Some(site(race.second)), count: 1 }
}

impl<'a> Machine<'a> {
    /// Whether accesses are looked at.
    #[inline(always)]
    pub(crate) fn checks_accesses(&self) -> bool {
        let checks = &self.launch.options.checks;
        checks.race | checks.init
    }

    /// Lanes are about to touch memory: the checks look at it, and it is counted. `elements` are the registers that they
    /// store, where they do.
    #[inline(always)]
    pub(crate) fn touches(&mut self, touch: Touch, group: &Group<'a>, elements: &[Element]) {
        if self.checks_accesses() {
            self.look(touch, group, elements, 0);
        }
        self.counted(touch.kind, group);
    }

    /// Counts an access, where memory traffic is counted.
    #[inline(always)]
    pub(crate) fn counted(&mut self, kind: AccessKind, group: &Group<'a>) {
        if self.launch.options.counters {
            let Group { region, bytes, mask, offsets } = group;
            self.worker.memory.access((self.pc, kind), &region.kind, (*bytes, *mask, offsets));
            if let Some(launch) = &self.launch.sectors {
                let now = self.warp.clock - u64::from(self.fuel);
                let block = &mut self.block.sectors;
                self.worker.memory.fetch((launch, block), (self.pc, now), kind, group);
            }
        }
    }

    /// The checks look at an access that is about to be done, or at the part of it from byte `start` on.
    #[inline(never)]
    pub(crate) fn look(&mut self, touch: Touch, group: &Group<'a>, elements: &[Element], start: u32) {
        if group.bytes == 0 {
            return;
        }
        if self.launch.options.checks.init {
            self.look_for_unwritten(touch, group, start);
        }
        self.look_for_races(touch, group, elements);
    }

    /// The race check looks at an access that is about to be done.
    pub(crate) fn look_for_races(&mut self, touch: Touch, group: &Group<'a>, elements: &[Element]) {
        self.look_for_races_of(touch, group, elements, false);
    }

    /// The same of an access that may leave memory `unchanged`: it stores what is there.
    pub(crate) fn look_for_races_of(
        &mut self,
        touch: Touch,
        group: &Group<'a>,
        elements: &[Element],
        unchanged: bool,
    ) {
        if !self.launch.options.checks.race {
            return;
        }
        let region = &group.region;
        let base = match region.kind {
            RegionKind::Global(allocation) if allocation.is_writable(allocation.base + region.origin) => {
                allocation.base
            }
            RegionKind::Shared if self.cluster.is_alone() => 0,
            RegionKind::Shared => self.cluster.race_base(),
            _ => return,
        };
        self.look_for_unstarted(touch, group);
        let mut access = self.warp_access(touch, base, group);
        let launch = self.launch;
        if !launch.used_loads.is_empty() {
            access.mask &= self.lanes_that_use(&access);
            if access.mask == 0 {
                return;
            }
        }
        let block = &mut self.block;
        let Some(races) = &mut block.checks.races else { return };
        let stored = StoredRegisters {
            registers: &self.registers,
            elements,
            bytes: touch.element,
            group,
            shared: &self.cluster.shared,
            waits: (launch.is_parallel() && matches!(region.kind, RegionKind::Global(_)))
                .then_some(&self.worker.checks.waits),
        };
        let stored: &dyn Stored = match elements {
            [] if unchanged => &Unchanged,
            [] => &Unknown,
            _ => &stored,
        };
        let mut told = Vec::new();
        let is_global = !matches!(region.kind, RegionKind::Shared);
        let mut found = |race: Race| {
            // In a cluster it is among the rows of global memory.
            let race = if is_global || base == 0 {
                race
            } else {
                let address = launch.shape.shared_address(race.address - base);
                Race { space: RaceSpace::Shared, address, ..race }
            };
            add_race(&launch.findings, &race, &mut told);
        };
        if launch.code.async_proxy {
            look_for_proxies(launch, races, touch.kind, &access, (!is_global).then_some(base));
        }
        let worker = &mut self.worker.checks.races;
        let through = match touch.order {
            Order { texture: true, .. } => Through::Texture,
            Order { non_coherent: true, .. } => Through::NonCoherent,
            _ => Through::Coherent,
        };
        match region.kind {
            RegionKind::Shared if base == 0 => races.shared(worker, &access, stored, &mut found),
            _ => races.global(&launch.races, worker, &access, through, stored, &mut found),
        }
        if is_global && launch.has_neighbours() {
            let footprints = &mut self.worker.footprints;
            let (action, number) = (action(touch.kind), block.number);
            footprints.all.add(&access, action, number);
            let early = match launch.is_dependent() {
                true => races.before_grid_wait(access.warp, access.mask),
                false => 0,
            };
            if early != 0 {
                footprints.early.add(&WarpAccess { mask: early, ..access }, action, number);
            }
            let late = access.mask & !early;
            if launch.is_dependent() && touch.order.non_coherent && late != 0 {
                footprints.non_coherent.add(&WarpAccess { mask: late, ..access }, action, number);
            }
        }
        if is_global && launch.code.non_coherent && (through != Through::Coherent || touch.kind.is_write()) {
            races.non_coherent(&launch.races, worker, &access, through, &mut |both| {
                let finding = pair(FindingKind::NonCoherent, SpaceKind::Global, &both);
                launch.findings.add(RawFinding { count: 1, ..finding });
            });
        }
    }

    /// An access to another block's shared memory needs something that shows that the block has begun: they have met, or
    /// this block has learned from others.
    fn look_for_unstarted(&self, touch: Touch, group: &Group<'a>) {
        let checks = &self.block.checks;
        let is_peer = matches!(group.region.kind, RegionKind::Shared)
            && group.region.origin.wrapping_sub(self.block.shared_base) >= self.launch.shape.shared_bytes();
        if !is_peer || checks.met != 0 || checks.races.as_ref().is_none_or(|races| races.knows_others()) {
            return;
        }
        let lane = group.mask.trailing_zeros() as usize & 31;
        let address = self.launch.shape.shared_address(group.offsets[lane]);
        let place = RawPlace { space: SpaceKind::Shared, address, bytes: group.bytes, frame: None };
        let first = RawSite { memory: Some(place), ..self.site(action(touch.kind), lane) };
        self.launch.findings.add(RawFinding {
            kind: FindingKind::UnstartedBlock,
            first,
            second: None,
            count: 1,
        });
    }

    /// All threads of the block have exited. What others have accessed of its shared memory they must have done before:
    /// nothing else is there to show it but that the block has learned of it, or that they met. A relaxed arrival is
    /// enough for that.
    pub(crate) fn look_for_unfinished(&mut self) {
        let (launch, bytes) = (self.launch, self.launch.shape.shared_bytes());
        let (base, from, met) = (self.cluster.race_base(), self.block.shared_base, self.block.checks.met);
        let number = self.block.number as u32;
        let Some(races) = &mut self.block.checks.races else { return };
        if self.cluster.is_alone() || !launch.options.checks.race || bytes == 0 {
            return;
        }
        if let Some(last) = met.checked_sub(1) {
            races.acquire_from(&launch.races, base + relaxed_phase_of_cluster(last), 0, 1);
        }
        races.barrier_all();
        let end = WarpAccess {
            warp: 0,
            mask: 1,
            base: base + from,
            offsets: &[0; LANES],
            bytes: bytes as u32,
            element: 1,
            pc: 0,
            kind: AccessKind::Write,
            strength: Strength::Weak,
        };
        let mut found = |race: Race| {
            if race.first.block != number {
                let race = Race { address: launch.shape.shared_address(race.address - base), ..race };
                let both = pair(FindingKind::Access(FaultKind::Exited), SpaceKind::Shared, &race);
                launch.findings.add(RawFinding { second: None, ..both });
            }
        };
        let worker = &mut self.worker.checks.races;
        races.global(&launch.races, worker, &end, Through::Coherent, &Unknown, &mut found);
    }

    /// The lanes that may use what an access reads.
    fn lanes_that_use(&self, access: &WarpAccess<'_>) -> u32 {
        let meta = &self.launch.code.meta[self.pc as usize];
        let is_plain = access.kind == AccessKind::Read && access.strength == Strength::Weak;
        match is_plain && meta.function == self.launch.kernel {
            true => self.launch.used_loads.lanes(meta.statement, self.warp_index),
            false => u32::MAX,
        }
    }

    fn warp_access<'o>(&self, touch: Touch, base: u64, group: &'o Group<'_>) -> WarpAccess<'o> {
        WarpAccess {
            warp: self.warp_index as u8,
            mask: group.mask,
            base,
            offsets: &group.offsets,
            bytes: group.bytes,
            element: touch.element,
            pc: self.pc,
            kind: touch.kind,
            strength: touch.strength(self.launch),
        }
    }

    /// A read that may be strong has been done.
    #[inline(always)]
    pub(crate) fn observed(&mut self, touch: Touch, group: &Group<'a>) {
        if touch.order.strong.is_none() || !self.launch.options.checks.race {
            return;
        }
        self.warp.observed |= !touch.order.acquire;
        self.observed_barrier(touch, group);
    }

    /// The same at an mbarrier, which tells of what was released there itself.
    pub(crate) fn observed_barrier(&mut self, touch: Touch, group: &Group<'a>) {
        if !self.launch.options.checks.race {
            return;
        }
        let base = match group.region.kind {
            RegionKind::Global(allocation) => allocation.base,
            RegionKind::Shared if self.cluster.is_alone() => 0,
            RegionKind::Shared => self.cluster.race_base(),
            _ => return,
        };
        let access = self.warp_access(touch, base, group);
        let Some(races) = &mut self.block.checks.races else { return };
        match group.region.kind {
            RegionKind::Shared if base == 0 => races.shared_observed(&access),
            _ => {
                let worker = &mut self.worker.checks.races;
                races.global_observed(&self.launch.races, worker, &access);
            }
        }
    }

    pub(crate) fn look_for_unwritten(&mut self, touch: Touch, group: &Group<'a>, start: u32) {
        let (kind, size) = (touch.kind, u64::from(group.bytes));
        let mut unwritten = 0;
        match group.region.kind {
            RegionKind::Param => return,
            RegionKind::Global(allocation) => {
                let mut written = &allocation.written;
                let missing = look_for_unwritten(&mut written, kind, group);
                unwritten = if missing == 0 { 0 } else { missing & !self.load_partly(group, start, missing) };
            }
            RegionKind::Shared => {
                // What is updated counts as written from here on.
                let updates = kind.is_read() && kind.is_write() && !self.cluster.checks.undefined.is_empty();
                let told = if updates { self.load_partly(group, start, group.mask) } else { 0 };
                let missing = look_for_unwritten(&mut self.cluster.checks.written, kind, group) & !told;
                unwritten = if missing == 0 { 0 } else { missing & !self.load_partly(group, start, missing) };
            }
            RegionKind::Local => {
                let rows = self.warp.local.len();
                let written = &mut self.warp.local_written;
                written.resize(rows.max(written.len()), [0; LANES]);
                let mut missing = 0;
                for lane in LanesOf(group.mask) {
                    let mut at = group.offsets[lane];
                    let end = at + size;
                    let mut fine = true;
                    while at < end {
                        let stop = end.min((at | 3) + 1);
                        let bits = (0xf >> (4 - (stop - at))) << (at & 3);
                        let cell = &mut written[(at >> 2) as usize][lane];
                        fine &= *cell & bits as u8 == bits as u8;
                        if kind.is_write() {
                            *cell |= bits as u8;
                        }
                        at = stop;
                    }
                    missing |= u32::from(!fine) << lane;
                }
                if kind.is_read() && missing != 0 {
                    unwritten = self.load_local(group, start, missing);
                }
            }
        }
        if unwritten != 0 {
            self.add_unwritten(touch, group, unwritten);
        }
        if kind.is_write() && !self.warp.undefined.is_empty() {
            self.store_undefined(group);
        }
    }

    #[cold]
    pub(super) fn add_unwritten(&mut self, touch: Touch, group: &Group<'a>, lanes: u32) {
        let (space, base) = match group.region.kind {
            RegionKind::Global(allocation) => (SpaceKind::Global, allocation.base),
            RegionKind::Shared => (SpaceKind::Shared, 0),
            _ => (SpaceKind::Local, 0),
        };
        let lane = lanes.trailing_zeros() as usize;
        let address = match space {
            SpaceKind::Shared => self.launch.shape.shared_address(group.offsets[lane]),
            _ => base + group.offsets[lane],
        };
        let place = RawPlace { space, address, bytes: group.bytes, frame: None };
        let first = RawSite { memory: Some(place), ..self.site(action(touch.kind), lane) };
        let kind = FindingKind::UninitializedMemory { space };
        self.launch.findings.add(RawFinding { kind, first, second: None, count: 1 });
    }

    /// The present instruction, executed by a lane.
    pub(crate) fn site(&self, action: Action, lane: usize) -> RawSite {
        RawSite { pc: self.pc, action, block: self.block.number, thread: self.thread(lane), memory: None }
    }

    /// Adds a finding about the present instruction, which is not about memory.
    #[cold]
    pub(crate) fn found(&self, kind: FindingKind, lane: usize) {
        self.found_at(self.pc, kind, lane);
    }

    /// The same of another instruction.
    #[cold]
    pub(crate) fn found_at(&self, pc: u32, kind: FindingKind, lane: usize) {
        let first = RawSite { pc, ..self.site(Action::Execute, lane) };
        self.launch.findings.add(RawFinding { kind, first, second: None, count: 1 });
    }

    /// Tells the race check of something, if it is on.
    #[inline(always)]
    pub(super) fn tell(&mut self, tell: impl FnOnce(&mut BlockRaces, u8)) {
        if let Some(races) = &mut self.block.checks.races
            && self.launch.options.checks.race
        {
            tell(races, self.warp_index as u8);
        }
    }

    /// Tells the race check of the block that a place in the cluster's shared memory belongs to.
    pub(super) fn tell_owner(&mut self, at: u32, tell: impl FnOnce(&mut BlockRaces)) {
        if !self.launch.options.checks.race {
            return;
        }
        let owner = self.owner(at);
        let is_own = owner == self.block.rank;
        let block = if is_own { &mut self.block } else { &mut self.cluster.blocks[owner as usize] };
        if let Some(races) = &mut block.checks.races {
            tell(races);
        }
    }

    /// The rank of the block that a place in the cluster's shared memory belongs to.
    pub(super) fn owner(&self, at: u32) -> u32 {
        if self.cluster.is_alone() { 0 } else { at / self.launch.shape.shared_bytes() as u32 }
    }

    /// Lanes release to a place in the cluster's shared memory, for others of its blocks, or do so by a relaxed operation.
    pub(super) fn release_to_peers(&mut self, at: u64, mask: u32, releases: bool) {
        let (launch, address) = (self.launch, self.cluster.race_base() + at);
        self.tell(|races, warp| match releases {
            true => races.release_to(&launch.races, address, warp, mask),
            false => races.release_fenced_to(&launch.races, address, warp, mask),
        });
    }

    /// Copies of lanes have arrived at one.
    pub(super) fn release_copies_to_peers(&mut self, agent: Agent, at: u64, mask: u32) {
        let (launch, address) = (self.launch, self.cluster.race_base() + at);
        self.tell(|races, warp| races.release_copies_to(&launch.races, address, warp, mask, agent));
    }

    /// Lanes acquire from one, if there are such blocks.
    pub(super) fn acquire_from_peers(&mut self, at: u64, mask: u32) {
        if !self.cluster.is_alone() {
            let (launch, address) = (self.launch, self.cluster.race_base() + at);
            self.tell(|races, warp| races.acquire_from(&launch.races, address, warp, mask));
        }
    }
}

/// The lanes that read what was never written. What is written is noted.
fn look_for_unwritten(written: &mut impl Written, kind: AccessKind, group: &Group<'_>) -> u32 {
    let Group { bytes, mask, ref offsets, .. } = *group;
    let mut unwritten = 0;
    if written.is_all() {
        return unwritten;
    }
    if kind.is_read() {
        let mut fine = true;
        byte_runs(offsets, mask, bytes, |at, bytes| fine &= written.is_set(at, bytes));
        if !fine {
            let missing = |&lane: &usize| !written.is_set(offsets[lane], bytes.into());
            unwritten = LanesOf(mask).filter(missing).fold(0, |all, lane| all | 1 << lane);
        }
    }
    if kind.is_write() {
        byte_runs(offsets, mask, bytes, |at, bytes| written.set(at, bytes));
    }
    unwritten
}

/// Which words of local memory were written: four bits for the bytes of each.
pub(crate) type LocalWritten = Vec<[u8; LANES]>;

/// Words of local memory become another variable: written (a parameter that was passed), or not.
pub(crate) fn set_local_written(warp: &mut Warp, offset: u32, bytes: u32, lanes: u32, is: bool) {
    let written = &mut warp.local_written;
    let (first, last) = ((offset / 4) as usize, (offset + bytes).div_ceil(4) as usize);
    if written.is_empty() && !is {
        return;
    }
    if written.len() < last {
        written.resize(last, [0; LANES]);
    }
    for row in &mut written[first..last] {
        LanesOf(lanes).for_each(|lane| row[lane] = if is { 0xf } else { 0 });
    }
    if !is {
        warp.undefined.forget_stored(first..last, lanes);
    }
}
