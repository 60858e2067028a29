//! The race check, driven by hand: what a block does is a list of calls, in the order in which they happen.

mod noted;
mod oracle;
mod patterns;
mod random;

use super::*;

/// A place in memory.
pub(super) const DATA: u64 = 0x10_0000;
/// Another, far from it.
pub(super) const FLAG: u64 = 0x20_0000;

/// Strong at device scope.
pub(super) const DEVICE: Strength = Strength::relaxed(Scope::Device);
/// Strong at block scope.
pub(super) const BLOCK: Strength = Strength::relaxed(Scope::Block);
pub(super) const ACQUIRE: Strength = Strength::Strong { scope: Scope::Device, acquire: true, release: false };
pub(super) const RELEASE: Strength = Strength::Strong { scope: Scope::Device, acquire: false, release: true };

/// Some lanes of a warp of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) block: usize,
    pub(super) warp: u8,
    pub(super) mask: u32,
}

/// One thread: of a block, a warp, a lane.
pub(super) fn thread(block: usize, warp: u8, lane: u32) -> Who {
    Who { block, warp, mask: 1 << lane }
}

/// A whole warp.
pub(super) fn warp(block: usize, warp: u8) -> Who {
    Who { block, warp, mask: u32::MAX }
}

/// A grid on which a test acts.
pub(super) struct Grid {
    launch: LaunchRaces,
    worker: WorkerRaces,
    pub(super) blocks: Vec<BlockRaces>,
    pub(super) races: Vec<Race>,
    /// How reads get to memory, and what meets reads that are not coherent.
    pub(super) through: Through,
    pub(super) incoherent: Vec<Race>,
    /// Whether stores that conflict store the same.
    pub(super) same: bool,
    /// The lane that stores something else all the same.
    pub(super) odd: Option<u32>,
    /// Whether atomic operations are reductions: they observe nothing.
    pub(super) reduces: bool,
    pc: u32,
}

/// Whether all store the same, and who does not.
struct Same(bool, Option<u32>);

impl Stored for Same {
    fn is_in_memory(&self, lane: u32, _: u32, _: u32) -> bool {
        self.0 && self.1 != Some(lane)
    }
    fn is_equal(&self, (a, _): (u32, u32), (b, _): (u32, u32), _: u32) -> bool {
        self.0 && self.1 != Some(a) && self.1 != Some(b)
    }
}

impl Grid {
    pub(super) fn new(mode: Mode, blocks: u32, threads: u32) -> Grid {
        let block = |number| {
            let mut block = BlockRaces::new(mode);
            block.reset(number, threads);
            block
        };
        Grid {
            launch: LaunchRaces::new(true, true),
            worker: WorkerRaces::default(),
            blocks: (0..blocks).map(block).collect(),
            races: Vec::new(),
            through: Through::Coherent,
            incoherent: Vec::new(),
            same: false,
            odd: None,
            reduces: false,
            pc: 0,
        }
    }

    /// Each call is another instruction, unless `at` said which.
    pub(super) fn at(&mut self, pc: u32) -> &mut Self {
        self.pc = pc;
        self
    }

    pub(super) fn access(
        &mut self,
        space: RaceSpace,
        who: Who,
        kind: AccessKind,
        strength: Strength,
        (bytes, element): (u32, u32),
        address: impl Fn(u64) -> u64,
    ) {
        let offsets = std::array::from_fn(|lane| address(lane as u64));
        let access = WarpAccess {
            warp: who.warp,
            mask: who.mask,
            base: 0,
            offsets: &offsets,
            bytes,
            element,
            pc: self.pc,
            kind,
            strength,
        };
        self.pc += 1;
        let block = &mut self.blocks[who.block];
        let races = &mut self.races;
        let (launch, stored) = (&self.launch, Same(self.same, self.odd));
        let mut race = |race| races.push(race);
        match space {
            RaceSpace::Shared => block.shared(&mut self.worker, &access, &stored, &mut race),
            RaceSpace::Global => {
                let worker = &mut self.worker;
                let through = if kind == AccessKind::Read { self.through } else { Through::Coherent };
                block.global(launch, worker, &access, through, &stored, &mut race);
                if through != Through::Coherent || kind.is_write() {
                    let mut found = |race| self.incoherent.push(race);
                    block.non_coherent(launch, worker, &access, through, &mut found);
                }
            }
        }
        let is_strong = strength != Strength::Weak;
        if kind.is_read() && is_strong && !(self.reduces && kind == AccessKind::Atomic) {
            match space {
                RaceSpace::Shared => block.shared_observed(&access),
                RaceSpace::Global => block.global_observed(launch, &mut self.worker, &access),
            }
        }
    }

    fn word(&mut self, space: RaceSpace, who: Who, kind: AccessKind, strength: Strength, at: u64, step: u64) {
        self.access(space, who, kind, strength, (4, 4), |lane| at + step * lane);
    }

    /// Every lane reads its word of global memory.
    pub(super) fn read(&mut self, who: Who, at: u64) {
        self.word(RaceSpace::Global, who, AccessKind::Read, Strength::Weak, at, 4);
    }

    /// Every lane writes its word of global memory.
    pub(super) fn write(&mut self, who: Who, at: u64) {
        self.word(RaceSpace::Global, who, AccessKind::Write, Strength::Weak, at, 4);
    }

    /// All lanes read one word, strongly.
    pub(super) fn poll(&mut self, who: Who, strength: Strength, at: u64) {
        self.word(RaceSpace::Global, who, AccessKind::Read, strength, at, 0);
    }

    /// All lanes write one word, strongly.
    pub(super) fn set(&mut self, who: Who, strength: Strength, at: u64) {
        self.word(RaceSpace::Global, who, AccessKind::Write, strength, at, 0);
    }

    /// All lanes change one word atomically.
    pub(super) fn atomic(&mut self, who: Who, strength: Strength, at: u64) {
        self.word(RaceSpace::Global, who, AccessKind::Atomic, strength, at, 0);
    }

    /// Every lane reads its word of shared memory.
    pub(super) fn load(&mut self, who: Who, at: u64) {
        self.word(RaceSpace::Shared, who, AccessKind::Read, Strength::Weak, at, 4);
    }

    /// Every lane writes its word of shared memory.
    pub(super) fn store(&mut self, who: Who, at: u64) {
        self.word(RaceSpace::Shared, who, AccessKind::Write, Strength::Weak, at, 4);
    }

    /// Every lane copies 16 bytes from global to shared memory, asynchronously.
    pub(super) fn copy(&mut self, who: Who, from: u64, to: u64) {
        let size = (16, 4);
        let weak = Strength::Weak;
        self.access(RaceSpace::Global, who, AccessKind::AsyncRead(Agent::Copies), weak, size, |lane| {
            from + 16 * lane
        });
        self.access(RaceSpace::Shared, who, AccessKind::AsyncWrite(Agent::Copies), weak, size, |lane| {
            to + 16 * lane
        });
    }

    pub(super) fn fence(&mut self, who: Who, scope: Scope) {
        self.blocks[who.block].fence(who.warp, who.mask, scope, FenceKind::Both);
    }

    pub(super) fn barrier(&mut self, block: usize) {
        self.blocks[block].barrier_all();
    }

    pub(super) fn warp_sync(&mut self, who: Who) {
        self.blocks[who.block].warp_sync(who.warp, who.mask);
    }

    /// What was found since it was asked last: who raced with whom, as (block, thread).
    pub(super) fn found(&mut self) -> Vec<[(u32, u32); 2]> {
        let found = std::mem::take(&mut self.races);
        found
            .iter()
            .map(|race| [(race.first.block, race.first.thread), (race.second.block, race.second.thread)])
            .collect()
    }

    #[track_caller]
    pub(super) fn is_clean(&mut self) {
        assert_eq!(self.races, Vec::new());
    }
}
