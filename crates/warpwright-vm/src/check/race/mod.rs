//! Races: two overlapping accesses without ordering, at least one of them a write.
//!
//! A race is found where it could happen, not only where it did: an access is compared with all earlier ones that no
//! chain of synchronisation orders before it, in whatever order the host ran them. The rules are those of the PTX
//! memory model, in which weak and strong accesses, their scopes, fences and barriers determine the ordering;
//! [`Mode`] says where practice is followed instead.
//!
//! ```text
//!   Clocks     one per block: its clock ticks at every synchronising event; what each thread knows
//!   Entry      an access of warps to bytes of a row: block, clock, instruction, who accessed which byte
//!   Scatter    the small pieces of a row that a block accessed: of every two bytes, who did it last
//!   Deferred   accesses to shared memory that are not in rows, because no two threads met there since a barrier
//!   Chunk      rows of global memory, and accesses that are not in them, because no two threads met there
//!   Row        128 bytes of memory: the entries and scatters that a later access may race with
//!   Observed   of the locations of a row: who wrote and who observed them strongly, and in which order
//!   Locations  what was released to an address, for those who read it later
//! ```
//!
//! *Time.* An access carries its block's clock, and for each (block, warp, lane) a thread knows the clock up to which
//! accesses are ordered before it. Clocks are per block, so a block whose threads synchronise only with each other
//! never accesses host memory that another worker accesses. Clocks are 64 bits wide and never wrap. Knowledge of
//! other blocks comes only from locations, as a persistent map.
//!
//! *Two numbers answer most queries.* All threads of a block know its accesses before its last barrier. Accesses at
//! the present clock, and those of other blocks as long as nothing was acquired from any, are known only to the
//! thread that performed them. A thread's knowledge is looked up only between the two. A barrier clears nothing: a
//! row of shared memory whose last access is older is forgotten when it is next accessed.
//!
//! *Rows.* A coalesced access is one entry of its row. Warps that make the same access share it, and repeating it
//! costs one comparison. From the fifth of a list on, small pieces go to a scatter, where adding a lane's access
//! needs no search as long as the same warp accessed it last. Thread sets that no scatter can represent exactly
//! (those that are not a product of warps and lanes) stay in entries.
//!
//! *Several readers.* A row keeps every read that no later one is ordered after, so a second reader never hides the
//! first. Concurrent atomics are kept in the same way. There is one exception: if more than eight *other* blocks made
//! the same access to the same bytes, these eight represent the rest as long as nothing has been acquired, and a
//! sample of them does afterwards. The kept accesses conflict with a write by any block, unless the writer has
//! acquired from all of those eight. This can hide a race of one location, but never invent one.
//!
//! *Observation.* A strong write that a strong read has observed is ordered before whatever is ordered behind that
//! read: the write itself, not what its thread did before (`observed`).
//!
//! *Asynchronous copies* are the accesses of agents, beside each thread one of each kind ([`Agent`]). They begin when
//! the thread issues the copy. They are unordered with all threads until these wait for them: the thread by its groups,
//! others by an `mbarrier`, or by synchronising with a thread that waited. Who waits for what an agent did last has
//! waited for all that it did before.
//!
//! *The caller reads and writes memory*; this module decides nothing about values. A strong write is announced before
//! memory changes, and the observation of a strong read is looked up after the read.

mod access;
mod check;
mod chunk;
mod clock;
mod deferred;
mod entry;
mod footprint;
mod global;
mod knowledge;
mod list;
mod location;
mod non_coherent;
mod note;
mod observed;
mod order;
mod proxy;
mod row;
mod scatter;
mod shadow;
#[cfg(test)]
mod tests;

pub(crate) use access::byte_runs;
pub use access::{AccessKind, Agent, GroupsOf, Stored, Strength, Through, Unchanged, Unknown, WarpAccess};
pub use entry::Scope;
pub(crate) use footprint::{Footprint, Meeting, Touched};

use crate::simd::Level;
use access::Piece;
use check::Check;
use clock::{Clocks, Seen};
use deferred::Deferred;
pub(crate) use deferred::Notes;
use entry::lanes;
use location::{GlobalLocations, Locations, ScalarPlace};
pub(crate) use note::NEXT_LANE;
#[cfg(target_arch = "x86_64")]
pub(crate) use note::{ASCENDING, ATOMIC, DEVICE, LONGEST_NOTE, NON_COHERENT, NOTE, READ, SAME, WRITE, head};
use shadow::{ChunkCache, GlobalRows, SharedRows};

/// How far practice is followed beyond the letter of the memory model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Patterns that compilers and programs rely on count as synchronisation: a strong read followed by a barrier of
    /// the block acquires, and a fence followed by a barrier lets any thread that passed it release. A plain load
    /// that provides the expected value for a compare-and-swap of the same location counts as strong. Stores of one
    /// value to one location are no race, whichever threads make them: threads with copies of the same data all store
    /// it (compilers leave it to them), or raise one flag.
    #[default]
    Normal,
    /// Only the memory model counts. Stores of one value to one location are then a race, of lower severity.
    Strict,
}

/// The ordering of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// Both directions: `fence.acq_rel`.
    Both,
    /// Both directions, and one order with all others: `fence.sc`, `membar`.
    Sequential,
    /// Earlier reads come before everything that follows.
    Acquire,
    /// Everything earlier comes before later writes.
    Release,
}

/// What a proxy fence stands between: what threads did, and accesses through another proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProxyFence {
    /// `fence.proxy.async`, and accesses to shared memory.
    AsyncShared,
    /// `fence.proxy.async`, and accesses to global memory.
    AsyncGlobal,
    /// `fence.proxy.tensormap::generic.release`: what comes before it is there for those who acquire.
    MapRelease,
    /// `fence.proxy.tensormap::generic.acquire`, and uses of tensor maps: what has been released comes before them.
    MapAcquire,
}

impl ProxyFence {
    const COUNT: usize = 4;
}

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RaceSpace {
    /// Shared memory of the block; addresses count from its beginning.
    Shared,
    /// Global memory.
    Global,
}

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaceSite {
    /// The instruction.
    pub pc: u32,
    /// The kind of its access.
    pub kind: AccessKind,
    /// The block's number in the grid.
    pub block: u32,
    /// The thread's number in the block.
    pub thread: u32,
    /// Bytes of the element accessed.
    pub bytes: u32,
}

/// Two accesses without ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The memory in which they meet.
    pub space: RaceSpace,
    /// The address of a byte that both access.
    pub address: u64,
    /// The access that happened first in this run.
    pub first: RaceSite,
    /// The access that happened second in this run.
    pub second: RaceSite,
    /// Whether both write the same value.
    pub same_value: bool,
}

/// The state that the blocks of a launch share.
#[derive(Debug)]
pub struct LaunchRaces {
    rows: GlobalRows,
    locations: GlobalLocations,
    /// Where threads made strong accesses behind `fence.sc`.
    sequential: GlobalLocations,
    /// The last writes of threads, in programs with an asynchronous proxy.
    written: proxy::WrittenWords,
    /// One host thread runs all blocks, so that what is recorded before a store is what the store replaces.
    alone: bool,
}

impl LaunchRaces {
    /// The initial state: everything that ended before the launch is ordered before it. One host thread `alone` runs
    /// all blocks, or several do. There are reads that are `non_coherent`.
    pub fn new(alone: bool, non_coherent: bool) -> LaunchRaces {
        LaunchRaces {
            rows: GlobalRows::new(non_coherent),
            locations: GlobalLocations::new(),
            sequential: GlobalLocations::new(),
            written: proxy::WrittenWords::default(),
            alone,
        }
    }

    /// Forgets everything: the launch is over.
    pub(crate) fn clear(&self) {
        self.rows.clear();
        self.written.clear();
    }

    /// The kernel freed bytes of global memory, so they mean something else from now on.
    pub fn forget(&self, address: u64, bytes: u64) {
        self.rows.forget(address, bytes);
    }
}

/// The private state of a host worker.
#[derive(Debug)]
pub struct WorkerRaces {
    chunks: ChunkCache,
    /// The access under way, or part of it.
    pieces: Vec<Piece>,
    /// All of it is there.
    are_whole: bool,
    /// The lanes of it that were not only noted.
    recorded: u32,
    /// An access that native code could not note, by block, warp and instruction, and the lanes that were noted.
    begun: Option<((u32, u8, u32), u32)>,
    chance: Chance,
}

impl Default for WorkerRaces {
    fn default() -> Self {
        WorkerRaces {
            chunks: ChunkCache::new(),
            pieces: Vec::new(),
            are_whole: false,
            recorded: 0,
            begun: None,
            chance: Chance::default(),
        }
    }
}

/// A stream of numbers without meaning.
#[derive(Debug)]
struct Chance(u32);

impl Default for Chance {
    fn default() -> Self {
        Chance(0x9e37_79b9)
    }
}

impl Chance {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// The race check of one resident block.
#[derive(Debug)]
pub struct BlockRaces {
    mode: Mode,
    clocks: Clocks,
    shared: SharedRows,
    /// Accesses to shared memory that are not in its rows.
    deferred: Deferred,
    locations: Locations,
    /// Where threads made strong accesses behind `fence.sc`.
    sequential: Locations,
    /// The last writes to shared memory, in programs with an asynchronous proxy.
    written: proxy::OwnWords,
    /// Threads of the block.
    threads: u32,
    /// Tells executions of instructions apart; 0 are those that were noted.
    serial: u16,
    /// The clock of the access under way.
    clock: u64,
    level: Level,
}

impl BlockRaces {
    /// A check for blocks that will be resident one after the other in one slot.
    pub fn new(mode: Mode) -> BlockRaces {
        BlockRaces {
            mode,
            clocks: Clocks::new(mode),
            shared: SharedRows::default(),
            deferred: Deferred::new(),
            locations: Locations::default(),
            sequential: Locations::default(),
            written: proxy::OwnWords::default(),
            threads: 0,
            serial: 0,
            clock: 0,
            level: Level::detect(),
        }
    }

    /// Begins the block of that number, with up to 1024 threads.
    pub fn reset(&mut self, block: u32, threads: u32) {
        self.written.clear();
        self.threads = threads;
        self.clocks.reset(block, threads);
        self.shared.reset();
        self.deferred.reset();
        self.locations.clear();
        self.sequential.clear();
    }

    /// Records an access to shared memory, before it is performed. Calls `race` with the accesses that it races with.
    pub fn shared(
        &mut self,
        worker: &mut WorkerRaces,
        access: &WarpAccess<'_>,
        stored: &dyn Stored,
        race: &mut dyn FnMut(Race),
    ) {
        self.clock = self.clocks.now;
        let quiet = access.kind == AccessKind::Atomic && self.is_quiet(access.warp);
        if self.deferred.note(access, quiet) {
            return;
        }
        self.settle();
        self.serial = self.serial.wrapping_add(1).max(1);
        // All of shared memory is kept.
        let number = (self.serial, 0);
        let mut check = Check::new(self.mode, RaceSpace::Shared, access, &self.clocks, number, stored, race);
        check.of_rows(&mut self.shared, &mut worker.pieces);
        if let Strength::Strong { scope, release, .. } = access.strength
            && access.kind.is_write()
        {
            let replaces = access.kind == AccessKind::Write;
            let locations = &mut self.locations;
            if release || self.clocks.may_release(access.warp) || (replaces && !locations.is_empty()) {
                let block = self.clocks.block;
                release_all(&mut self.clocks, access, scope, release, |place, thread, released| {
                    locations.release(place, (block, thread), released, replaces);
                });
            }
        }
        let writes = access.kind.is_write();
        if access.strength != Strength::Weak
            && (self.clocks.has_sequential(access.warp) || (writes && !self.sequential.is_empty()))
        {
            let (sequential, block) = (&mut self.sequential, self.clocks.block);
            order_fences(&mut self.clocks, access, |place, scope, thread, fenced| match fenced {
                Some(fenced) => {
                    sequential.release(place, (block, thread), fenced, false);
                    None
                }
                None => sequential.observe(place, block, scope),
            });
        }
    }

    /// What native code needs to note accesses of a warp to the block's shared memory, which has so many bytes.
    pub(crate) fn notes(&mut self, warp: u8, bytes: u64) -> Notes {
        let quiet = self.is_quiet(warp);
        self.deferred.notes(warp, bytes, quiet)
    }

    /// Whether relaxed operations of a warp on shared memory order nothing: there was no fence, and nothing was released.
    fn is_quiet(&self, warp: u8) -> bool {
        !self.clocks.may_release(warp)
            && !self.clocks.has_sequential(warp)
            && self.locations.is_empty()
            && self.sequential.is_empty()
    }

    /// Native code has made notes.
    pub(crate) fn noted(&mut self, notes: &Notes) {
        self.deferred.noted(notes);
    }

    /// Records accesses to shared memory that have only been noted: what threads know is about to change.
    fn settle(&mut self) {
        let BlockRaces { mode, clocks, shared, deferred, serial, .. } = self;
        let mut pieces = Vec::new();
        deferred.settle(|access| {
            *serial = serial.wrapping_add(1).max(1);
            // They meet no other ones.
            let mut race = |race| debug_assert!(false, "nobody was there: {race:?}");
            Check::new(*mode, RaceSpace::Shared, access, clocks, (*serial, 0), &Unknown, &mut race)
                .of_rows(shared, &mut pieces);
        });
    }

    /// All live threads of the block have met at a barrier, and none has only arrived.
    pub fn barrier_all(&mut self) {
        self.deferred.barrier();
        self.clocks.barrier_all();
    }

    /// The block's clock.
    pub(crate) fn now(&self) -> u64 {
        self.clocks.now
    }

    /// Whether a thread of a warp knows what lanes of a warp of a block did at a time, or what an agent of theirs did.
    pub(crate) fn is_known_to_warp(
        &self,
        warp: u8,
        (block, of): (u32, u8),
        lanes: u32,
        agent: Option<Agent>,
        clock: u64,
    ) -> bool {
        let of = agent.map_or(of, |agent| knowledge::agent(of, agent));
        self.clocks.is_known_to_warp(warp, (block, of), lanes, clock)
    }

    /// Whether a thread has acquired something from another block.
    pub(crate) fn knows_others(&self) -> bool {
        self.clocks.knows_others()
    }

    /// Whether a thread of the block has passed `griddepcontrol.wait`.
    pub(crate) fn has_grid_wait(&self) -> bool {
        self.clocks.has_grid_wait()
    }

    /// The lanes whose accesses nothing orders behind `griddepcontrol.wait`.
    pub(crate) fn before_grid_wait(&self, warp: u8, mask: u32) -> u32 {
        self.clocks.before_grid_wait(warp, mask)
    }

    /// Lanes release to a place that is known by an address, for threads of other blocks.
    pub fn release_to(&mut self, launch: &LaunchRaces, address: u64, warp: u8, mask: u32) {
        self.settle();
        let released = self.clocks.release_together(warp, mask);
        self.release_at(launch, address, (warp, mask), &released);
    }

    /// The same by a relaxed operation: what was fenced before.
    pub fn release_fenced_to(&mut self, launch: &LaunchRaces, address: u64, warp: u8, mask: u32) {
        self.settle();
        for lane in lanes(mask) {
            let released = self.clocks.fenced(warp, lane);
            self.release_at(launch, address, (warp, 1 << lane), &released);
        }
    }

    /// What agents of lanes were to do so far is released there.
    pub fn release_copies_to(
        &mut self,
        launch: &LaunchRaces,
        address: u64,
        warp: u8,
        mask: u32,
        agent: Agent,
    ) {
        self.settle();
        let released = self.clocks.release_copies(warp, mask, agent);
        self.release_at(launch, address, (warp, mask), &released);
    }

    fn release_at(&self, launch: &LaunchRaces, address: u64, (warp, mask): (u8, u32), released: &Seen) {
        let thread = knowledge::thread(warp, mask.trailing_zeros() & 31);
        launch.locations.release((address, 8), (self.clocks.block, thread), released, false);
    }

    /// Lanes acquire what was released there.
    pub fn acquire_from(&mut self, launch: &LaunchRaces, address: u64, warp: u8, mask: u32) {
        let Some(seen) = launch.locations.observe((address, 8), self.clocks.block, Scope::Device) else {
            return;
        };
        self.settle();
        let released: Vec<(u32, Seen)> = lanes(mask).map(|lane| (lane, seen.clone())).collect();
        self.clocks.learn(warp, mask, &released);
    }

    /// Records the observation of a strong read of shared memory, after the read: of the access recorded last.
    pub fn shared_observed(&mut self, access: &WarpAccess<'_>) {
        self.settle();
        let entry = check::entry(access, &self.clocks, self.clock, self.serial);
        let rows = &mut self.shared;
        access.runs(|run| {
            run.pieces(|piece| rows.at(piece.row).observe(&entry.with(piece.bytes, piece.lanes)));
        });
        if self.locations.is_empty() && !access.strength.acquires() {
            return;
        }
        let (locations, block) = (&self.locations, self.clocks.block);
        observe_all(&mut self.clocks, access, |place, scope| locations.observe(place, block, scope));
    }
}

/// Declares the events that the clocks receive.
macro_rules! told {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) => $of:ident($($value:expr),*);)*) => {
        impl BlockRaces {
            $($(#[$doc])*
            pub fn $name(&mut self, $($arg: $ty),*) {
                self.settle();
                self.clocks.$of($($value),*);
            })*
        }
    };
}

told! {
    /// Lanes of a warp arrive at one of the sixteen barriers without waiting.
    barrier_arrive(barrier: usize, warp: u8, mask: u32) => barrier_arrive(barrier, warp, mask);
    /// One of the sixteen barriers is complete; `waiting` lists the threads that waited at it, by warp and lanes.
    barrier(barrier: usize, waiting: &[(u8, u32)]) => barrier(barrier, waiting);
    /// `bar.warp.sync`: the named lanes have met (lanes that have exited count as present).
    warp_sync(warp: u8, mask: u32) => warp_sync(warp, mask);
    /// A fence by lanes of a warp.
    fence(warp: u8, mask: u32, scope: Scope, kind: FenceKind) => fence(warp, mask, scope, kind);
    /// A proxy fence, which is all of these.
    fence_proxy(warp: u8, mask: u32, fences: &[ProxyFence]) => fence_proxy(warp, mask, fences);
    /// `griddepcontrol.wait`.
    grid_wait(warp: u8, mask: u32) => grid_wait(warp, mask);
    /// `cp.async.commit_group`.
    commit_group(of: GroupsOf, warp: u8, mask: u32) => commit_group(of, warp, mask);
    /// `cp.async.wait_group`, and the same of others: at most `pending` groups of each lane are incomplete now, or have
    /// not been `read`.
    wait_group(of: GroupsOf, warp: u8, mask: u32, pending: usize, read: bool)
        => wait_group(of, warp, mask, pending, read);
    /// Lanes have waited until so many groups of products of a warp of their warpgroup are complete.
    wait_products_of(warp: u8, mask: u32, other: u8, groups: u64) => wait_products_of(warp, mask, other, groups);
    /// `cp.async.wait_all`.
    wait_all(warp: u8, mask: u32) => wait_all(warp, mask);
    /// An `mbarrier` begins, or ends.
    mbarrier_begin(address: u64) => phase_begin(address);
    /// Lanes arrive at the `mbarrier` at that address of shared memory.
    mbarrier_arrive(address: u64, warp: u8, mask: u32) => phase_arrive(address, warp, mask, None);
    /// The same by a relaxed operation.
    mbarrier_arrive_relaxed(address: u64, warp: u8, mask: u32) => phase_arrive_relaxed(address, warp, mask);
    /// What agents of lanes were to do so far arrives at an `mbarrier` when it is done.
    mbarrier_arrive_copies(address: u64, warp: u8, mask: u32, agent: Agent)
        => phase_arrive(address, warp, mask, Some(agent));
    /// The present phase of an `mbarrier` is complete.
    mbarrier_complete(address: u64) => phase_complete(address);
    /// Lanes have observed, by a test or a wait, that the last phase of an `mbarrier` is complete.
    mbarrier_waited(address: u64, warp: u8, mask: u32) => phase_wait(address, warp, mask);
    /// The same by a relaxed operation.
    mbarrier_seen(address: u64, warp: u8, mask: u32) => phase_see(address, warp, mask);
}

/// Enters what each lane releases by a strong write, to each of its elements.
fn release_all(
    clocks: &mut Clocks,
    access: &WarpAccess<'_>,
    scope: Scope,
    release: bool,
    mut enter: impl FnMut(ScalarPlace, u16, &Seen),
) {
    let mut enter = |lane: u32, released: Seen| {
        let released = released.within(scope);
        for place in access.places(lane) {
            enter(place, knowledge::thread(access.warp, lane), &released);
        }
    };
    if release {
        for (lane, released) in clocks.release(access.warp, access.mask, scope) {
            enter(lane, released);
        }
        return;
    }
    for lane in lanes(access.mask) {
        enter(lane, clocks.fenced(access.warp, lane));
    }
}

/// The order of `fence.sc` that strong accesses determine. `at` enters what was fenced at a location, or looks it up.
fn order_fences(
    clocks: &mut Clocks,
    access: &WarpAccess<'_>,
    mut at: impl FnMut(ScalarPlace, Scope, u16, Option<&Seen>) -> Option<Seen>,
) {
    let Some(scope) = access.strength.scope() else { return };
    for lane in lanes(access.mask) {
        let thread = knowledge::thread(access.warp, lane);
        for place in access.places(lane) {
            if access.kind.is_write()
                && let Some(seen) = at(place, scope, thread, None)
            {
                clocks.come_after(access.warp, lane, &seen);
            }
            if let Some(fenced) = clocks.enter_sequential(access.warp, lane, place) {
                at(place, scope, thread, Some(&fenced.within(scope)));
            }
        }
    }
}

/// Records the observation of each lane, and acquires it if the read acquires.
fn observe_all(
    clocks: &mut Clocks,
    access: &WarpAccess<'_>,
    find: impl Fn(ScalarPlace, Scope) -> Option<Seen>,
) {
    let Strength::Strong { scope, acquire, .. } = access.strength else { return };
    let mut last: Option<(ScalarPlace, Option<Seen>)> = None;
    for element in 0..access.bytes.div_ceil(access.element) as usize {
        let mut acquired = Vec::new();
        for lane in lanes(access.mask) {
            let Some(place) = access.places(lane).nth(element) else { continue };
            if last.as_ref().is_none_or(|&(at, _)| at != place) {
                last = Some((place, find(place, scope)));
            }
            let seen = match &last {
                Some((_, Some(seen))) => seen,
                _ if acquire => &Seen::default(),
                _ => continue,
            };
            clocks.observe(access.warp, lane, place, seen);
            if acquire {
                let seen = clocks.take_seen(access.warp, lane, place, scope).unwrap_or_default();
                if seen.is_empty() {
                    continue;
                }
                acquired.push((lane, seen));
            }
        }
        clocks.learn(access.warp, access.mask, &acquired);
    }
}
