//! Races: two overlapping accesses, one a write, that nothing orders.
//!
//! A race is found where it could happen, not where it did: an access is compared with the earlier ones
//! that no chain of synchronisation orders before it, whatever the order in which the host ran them. The
//! rules are those of the PTX memory model, where weak and strong accesses, their scopes, fences and
//! barriers say what is ordered; [`Mode`] says where practice is followed instead.
//!
//! ```text
//!   Clocks     one per block: its clock ticks at every synchronising event; what each thread knows
//!   Entry      an access of warps to bytes of a row: block, clock, instruction, who accessed which byte
//!   Scatter    the small pieces of a row that a block accessed: of every two bytes, who did it last
//!   Row        128 bytes of memory: the entries and scatters that a later access may race with
//!   Locations  what was released to an address, for those who read it later
//! ```
//!
//! *Time.* An access carries its block's clock, and a thread knows for (block, warp, lane) up to which
//! clock accesses are ordered before it. Clocks are per block, so that a block whose threads only meet
//! each other never touches memory of the host that another worker touches; they are 64 bits wide and
//! never wrap. Knowledge of other blocks comes from locations only, as a persistent map.
//!
//! *Most questions are answered by two numbers.* What a block did before its last barrier is known to all
//! its threads; what happened at the present clock, and what other blocks did as long as nothing was
//! acquired from any, is known to nobody but who did it. Only between the two is a thread's knowledge
//! looked up. A barrier clears nothing: a row of shared memory whose last access is older than it is
//! forgotten when it is touched next.
//!
//! *Rows.* A coalesced access is one entry of its row, which warps that do the same share, and doing it
//! again is one comparison. Small pieces, from the fifth of a list on, go to a scatter, where adding the
//! access of a lane needs no search as long as the warp itself was there last. What no scatter can say
//! exactly (threads that are no product of warps and lanes) stays with the entries.
//!
//! *Several readers.* A row keeps every read that no later one is ordered after: a second reader never
//! hides the first. Concurrent atomics are kept in the same way. Only where more than eight *other* blocks
//! did the same thing to the same bytes do these stand for the rest, as long as nobody has acquired
//! anything, and a sample of them afterwards. What is kept conflicts with a write by any block, unless the
//! writer has acquired from all of those eight: that can hide a race of one location, never invent one.
//!
//! *Asynchronous copies* are the accesses of an agent, one beside each thread, which begins when the
//! thread issues the copy and which nobody knows anything of until they wait for it: the thread by its
//! groups, others by an `mbarrier`, or by synchronising with a thread that waited.
//!
//! *Memory is read and written by the caller*; this module decides nothing about values. A strong write is
//! announced before memory changes, and what a strong read observed is asked for after it was read.

mod access;
mod check;
mod clock;
mod entry;
mod knowledge;
mod list;
mod location;
mod non_coherent;
mod order;
mod row;
mod scatter;
mod shadow;
#[cfg(test)]
mod tests;

pub(crate) use access::byte_runs;
pub use access::{AccessKind, Stored, Strength, Unknown, WarpAccess};
pub use entry::Scope;

use access::Piece;
use check::Check;
use clock::Clocks;
use entry::lanes;
use location::{GlobalLocations, Locations};
use shadow::{ChunkCache, GlobalRows, SharedRows};

/// How far practice is followed where it goes beyond the letter of the memory model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// What compilers and programs rely on counts as synchronisation: a strong read followed by a barrier
    /// of the block acquires, and a fence followed by a barrier lets any thread that passed it release. A
    /// plain load of what a compare-and-swap of the same place goes on to check is as good as a strong one.
    /// Stores of one value to one place are no race, whoever makes them: threads that hold copies of the
    /// same data all store it (compilers leave that to them), or raise one flag.
    #[default]
    Normal,
    /// Only what the memory model says. Stores of one value to one place are a race then, of a lesser kind.
    Strict,
}

/// What a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// Both directions: `membar`, `fence.acq_rel`, `fence.sc`.
    Both,
    /// What was read before comes before what follows.
    Acquire,
    /// What precedes comes before what is written later.
    Release,
}

/// The memory that an access is to.
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
    /// How it accessed memory.
    pub kind: AccessKind,
    /// The block's number in the grid.
    pub block: u32,
    /// The thread's number in the block.
    pub thread: u32,
    /// Bytes of the element accessed.
    pub bytes: u32,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// Where both meet.
    pub space: RaceSpace,
    /// A byte that both access.
    pub address: u64,
    /// The access that happened to come first.
    pub first: RaceSite,
    /// The access that happened to come second.
    pub second: RaceSite,
    /// Both write, and write the same.
    pub same_value: bool,
}

/// What the blocks of a launch share.
#[derive(Debug)]
pub struct LaunchRaces {
    rows: GlobalRows,
    locations: GlobalLocations,
}

impl Default for LaunchRaces {
    fn default() -> Self {
        LaunchRaces::new()
    }
}

impl LaunchRaces {
    /// Nothing has happened yet: what ended before the launch is ordered before it.
    pub fn new() -> LaunchRaces {
        LaunchRaces { rows: GlobalRows::new(), locations: GlobalLocations::new() }
    }

    /// Bytes of global memory were given back by the kernel, and mean something else from now on.
    pub fn forget(&self, address: u64, bytes: u64) {
        self.rows.forget(address, bytes);
    }
}

/// What a worker of the host keeps for itself.
#[derive(Debug)]
pub struct WorkerRaces {
    chunks: ChunkCache,
    /// The access under way.
    pieces: Vec<Piece>,
    /// A stream of numbers without meaning.
    chance: u32,
}

impl Default for WorkerRaces {
    fn default() -> Self {
        WorkerRaces { chunks: ChunkCache::new(), pieces: Vec::new(), chance: 0x9e37_79b9 }
    }
}

impl WorkerRaces {
    fn chance(&mut self) -> u32 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 17;
        self.chance ^= self.chance << 5;
        self.chance
    }
}

/// The race check of one resident block.
#[derive(Debug)]
pub struct BlockRaces {
    mode: Mode,
    clocks: Clocks,
    shared: SharedRows,
    locations: Locations,
    serial: u16,
}

impl BlockRaces {
    /// For the blocks that will be resident in one place, one after the other.
    pub fn new(mode: Mode) -> BlockRaces {
        BlockRaces {
            mode,
            clocks: Clocks::new(mode),
            shared: SharedRows::default(),
            locations: Locations::default(),
            serial: 0,
        }
    }

    /// Begins the block of that number, of up to 1024 threads.
    pub fn reset(&mut self, block: u32, threads: u32) {
        self.clocks.reset(block, threads);
        self.shared.reset();
        self.locations.clear();
    }

    /// An access to shared memory, before it is done. `race` is called with what it races with.
    pub fn shared(
        &mut self,
        worker: &mut WorkerRaces,
        access: &WarpAccess<'_>,
        stored: &dyn Stored,
        race: &mut dyn FnMut(Race),
    ) {
        let (rows, clocks) = (&mut self.shared, &self.clocks);
        self.serial = self.serial.wrapping_add(1);
        let chance = worker.chance();
        let mut check =
            Check::new(self.mode, RaceSpace::Shared, access, clocks, (self.serial, chance), stored, race);
        check.shared(rows, &mut worker.pieces);
        if let Strength::Strong { scope, release, .. } = access.strength
            && access.kind.is_write()
        {
            let replaces = access.kind == AccessKind::Write;
            let locations = &mut self.locations;
            if release || self.clocks.may_release(access.warp) || (replaces && !locations.is_empty()) {
                let block = self.clocks.block;
                release_all(&mut self.clocks, access, scope, release, |address, released| {
                    locations.release(address, block, released, replaces);
                });
            }
        }
    }

    /// An access to global memory, before it is done. `race` is called with what it races with.
    pub fn global(
        &mut self,
        launch: &LaunchRaces,
        worker: &mut WorkerRaces,
        access: &WarpAccess<'_>,
        stored: &dyn Stored,
        race: &mut dyn FnMut(Race),
    ) {
        self.serial = self.serial.wrapping_add(1);
        let number = (self.serial, worker.chance());
        let mut check = Check::new(self.mode, RaceSpace::Global, access, &self.clocks, number, stored, race);
        check.global(&launch.rows, &mut worker.chunks, &mut worker.pieces);
        if let Strength::Strong { scope, release, .. } = access.strength
            && access.kind.is_write()
            && (release || self.clocks.may_release(access.warp))
        {
            let block = self.clocks.block;
            release_all(&mut self.clocks, access, scope, release, |address, released| {
                launch.locations.release(address, block, released);
            });
        }
    }

    /// A read of global memory that is not coherent, or a write, before it is done. `found` is called with an access
    /// that it must not meet in one launch, whatever orders the two.
    pub fn non_coherent(
        &self,
        launch: &LaunchRaces,
        worker: &mut WorkerRaces,
        access: &WarpAccess<'_>,
        found: &mut dyn FnMut(Race),
    ) {
        let entry = check::entry(access, &self.clocks, self.serial);
        let memory = (&launch.rows, &mut worker.chunks);
        non_coherent::access(access, &entry, memory, &mut worker.pieces, found);
    }

    /// A strong read of shared memory has been done: what it observed is taken note of.
    pub fn shared_observed(&mut self, access: &WarpAccess<'_>) {
        if self.locations.is_empty() {
            return;
        }
        let (locations, block) = (&self.locations, self.clocks.block);
        observe_all(&mut self.clocks, access, |address| locations.observe(address, block));
    }

    /// A strong read of global memory has been done: what it observed is taken note of.
    pub fn global_observed(&mut self, launch: &LaunchRaces, access: &WarpAccess<'_>) {
        if !launch.locations.is_used() {
            return;
        }
        let block = self.clocks.block;
        observe_all(&mut self.clocks, access, |address| launch.locations.observe(address, block));
    }
}

/// Declares what the clocks are told.
macro_rules! told {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) => $of:ident($($value:expr),*);)*) => {
        impl BlockRaces {
            $($(#[$doc])*
            pub fn $name(&mut self, $($arg: $ty),*) {
                self.clocks.$of($($value),*);
            })*
        }
    };
}

told! {
    /// All live threads of the block have met at a barrier, and nobody had only announced itself.
    barrier_all() => barrier_all();
    /// Lanes of a warp announce themselves at one of the sixteen barriers, and go on.
    barrier_arrive(barrier: usize, warp: u8, mask: u32) => barrier_arrive(barrier, warp, mask);
    /// One of the sixteen barriers is complete: who waited at it, by warp and lanes.
    barrier(barrier: usize, waiting: &[(u8, u32)]) => barrier(barrier, waiting);
    /// `bar.warp.sync`: the lanes named have met (those that have exited count as there).
    warp_sync(warp: u8, mask: u32) => warp_sync(warp, mask);
    /// A fence by lanes of a warp.
    fence(warp: u8, mask: u32, scope: Scope, kind: FenceKind) => fence(warp, mask, scope, kind);
    /// `cp.async.commit_group`.
    commit_group(warp: u8, mask: u32) => commit_group(warp, mask);
    /// `cp.async.wait_group`: at most `pending` groups of each lane are incomplete now.
    wait_group(warp: u8, mask: u32, pending: usize) => wait_group(warp, mask, pending);
    /// `cp.async.wait_all`.
    wait_all(warp: u8, mask: u32) => wait_all(warp, mask);
    /// An `mbarrier` begins, or ends.
    mbarrier_begin(address: u64) => phase_begin(address);
    /// Lanes arrive at the `mbarrier` at that address of shared memory.
    mbarrier_arrive(address: u64, warp: u8, mask: u32) => phase_arrive(address, warp, mask, false);
    /// The asynchronous copies that lanes have issued so far will arrive at an `mbarrier`.
    mbarrier_arrive_copies(address: u64, warp: u8, mask: u32) => phase_arrive(address, warp, mask, true);
    /// The present phase of an `mbarrier` is complete.
    mbarrier_complete(address: u64) => phase_complete(address);
    /// Lanes have seen, by a test or a wait, that the last phase of an `mbarrier` is complete.
    mbarrier_waited(address: u64, warp: u8, mask: u32) => phase_wait(address, warp, mask);
}

/// Enters what each lane releases by a strong write.
fn release_all(
    clocks: &mut Clocks,
    access: &WarpAccess<'_>,
    scope: Scope,
    release: bool,
    mut enter: impl FnMut(u64, &clock::Seen),
) {
    if release {
        for (lane, released) in clocks.release(access.warp, access.mask, scope) {
            enter(access.address(lane), &released);
        }
        return;
    }
    for lane in lanes(access.mask) {
        enter(access.address(lane), &clocks.fenced(access.warp, lane));
    }
}

/// Takes note of what each lane observed, and acquires it where the read acquires.
fn observe_all(clocks: &mut Clocks, access: &WarpAccess<'_>, find: impl Fn(u64) -> Option<clock::Seen>) {
    let Strength::Strong { scope, acquire, .. } = access.strength else { return };
    let mut last: Option<(u64, Option<clock::Seen>)> = None;
    let mut acquired = Vec::new();
    for lane in lanes(access.mask) {
        let address = access.address(lane);
        if last.as_ref().is_none_or(|&(at, _)| at != address) {
            last = Some((address, find(address)));
        }
        let Some((_, Some(seen))) = &last else { continue };
        clocks.observe(access.warp, lane, seen);
        if acquire {
            let mut seen = seen.clone();
            if scope == Scope::Block {
                seen.device = knowledge::Floors::default();
            }
            acquired.push((lane, seen));
        }
    }
    clocks.learn(access.warp, access.mask, &acquired);
}
