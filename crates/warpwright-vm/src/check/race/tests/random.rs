//! Random programs: the check finds its first race exactly where plain vector clocks find theirs.

use super::oracle::Oracle;
use super::*;
use std::collections::HashMap;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 32) % bound
    }
    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

const THREADS: u32 = 36;

fn mask(random: &mut Random, warp: u8) -> u32 {
    let all = if warp == 0 { u32::MAX } else { 0xf };
    let mask = match random.below(6) {
        0 | 1 => all,
        2 => 1,
        3 => 1 << random.below(if warp == 0 { 32 } else { 4 }),
        4 => 0xffff & all,
        _ => random.next() as u32 & all,
    };
    if mask == 0 { 1 } else { mask }
}

/// Runs one program on both, up to the first race. The number of its steps, and whether there was one.
fn run(seed: u64) -> (usize, bool) {
    let mut random = Random(seed * 2 + 1);
    (0..8).for_each(|_| {
        random.next();
    });
    let mode = random.pick(&[Mode::Normal, Mode::Strict]);
    let blocks = random.pick(&[1, 1, 2, 3]);
    let mut grid = Grid::new(mode, blocks as u32, THREADS);
    let mut oracle = Oracle::new(mode, blocks, THREADS as usize);
    // Programs with few sorts of accesses get far before something happens.
    let weak_in = random.pick(&[2, 4, 10]);
    let places = random.pick(&[1, 3, 8]);
    let mut log = Vec::new();
    for step in 0..60 {
        let warp = random.below(2) as u8;
        let who = Who { block: random.below(blocks as u64) as usize, warp, mask: mask(&mut random, warp) };
        let block = who.block;
        match random.below(20) {
            0..9 => {
                let space = random.pick(&[RaceSpace::Shared, RaceSpace::Global]);
                let weak = random.one_in(weak_in);
                let kinds: &[AccessKind] = if weak {
                    &[
                        AccessKind::Read,
                        AccessKind::Read,
                        AccessKind::Write,
                        AccessKind::AsyncRead(Agent::Copies),
                        AccessKind::AsyncWrite(Agent::Copies),
                    ]
                } else {
                    &[AccessKind::Read, AccessKind::Write, AccessKind::Atomic]
                };
                let kind = random.pick(kinds);
                let scope = random.pick(&[Scope::Device, Scope::Device, Scope::Block]);
                let strength = if weak {
                    Strength::Weak
                } else {
                    Strength::Strong {
                        scope,
                        acquire: kind.is_read() && random.one_in(3),
                        release: kind.is_write() && random.one_in(3),
                    }
                };
                let element = random.pick(&[4, 4, 4, 8, 2]);
                let bytes = if weak { element * random.pick(&[1, 1, 2]) } else { element };
                let stride = if weak { random.pick(&[1, 1, 0, 2]) } else { 0 };
                // Weak accesses keep to a place of their own most of the time.
                let area = if weak && !random.one_in(8) { 0x100 } else { 0 };
                let own =
                    if random.one_in(3) { 0x1000 * (1 + block as u64 * 2 + u64::from(warp)) } else { 0 };
                let place = u64::from(bytes) * random.below(places) + area + own;
                let address = |lane: u64| place + lane * stride * u64::from(bytes);
                log.push(format!("{step}: {who:x?} {space:?} {kind:?} {strength:?} {bytes}/{element} at {place:#x} stride {stride}"));
                let before = grid.races.len();
                // Some atomic operations are reductions, which read nothing.
                grid.reduces = random.one_in(4);
                oracle.reduces = grid.reduces;
                grid.access(space, who, kind, strength, (bytes, element), address);
                let found = grid.races.len() > before;
                let expected = oracle.access(space, who, kind, strength, (bytes, element), address);
                assert_eq!(
                    found,
                    expected,
                    "seed {seed}, {mode:?}: (found, expected)\n{}\n{:?}",
                    log.join("\n"),
                    grid.races.last()
                );
                if found {
                    return (step, true);
                }
            }
            9 | 10 => {
                log.push(format!("{step}: barrier of block {block}"));
                grid.barrier(block);
                oracle.barrier(block, 20, &[(0, u32::MAX), (1, u32::MAX)]);
            }
            11 => {
                let parties: Vec<(u8, u32)> = match random.below(3) {
                    0 => vec![(warp, u32::MAX)],
                    1 => vec![(warp, who.mask)],
                    _ => vec![(0, u32::MAX), (1, who.mask | 3)],
                };
                let id = random.below(2) as usize;
                log.push(format!("{step}: barrier {id} of block {block}: {parties:x?}"));
                grid.blocks[block].barrier(id, &parties);
                oracle.barrier(block, id, &parties);
            }
            12 => {
                let id = random.below(2) as usize;
                log.push(format!("{step}: {who:x?} arrives at {id}"));
                grid.blocks[block].barrier_arrive(id, warp, who.mask);
                oracle.arrive(who, id);
            }
            13 => {
                log.push(format!("{step}: {who:x?} warp sync"));
                grid.warp_sync(who);
                oracle.warp_sync(who);
            }
            14 | 15 => {
                let scope = random.pick(&[Scope::Device, Scope::Device, Scope::Block]);
                log.push(format!("{step}: {who:x?} fence {scope:?}"));
                grid.fence(who, scope);
                oracle.fence(who, scope);
            }
            16 => {
                log.push(format!("{step}: {who:x?} commit"));
                grid.blocks[block].commit_group(GroupsOf::Copies, warp, who.mask);
                oracle.commit(who);
            }
            17 => {
                if random.one_in(2) {
                    log.push(format!("{step}: {who:x?} wait all"));
                    grid.blocks[block].wait_all(warp, who.mask);
                    oracle.wait_all(who);
                } else {
                    let pending = random.below(3) as usize;
                    log.push(format!("{step}: {who:x?} wait {pending}"));
                    grid.blocks[block].wait_group(GroupsOf::Copies, warp, who.mask, pending, false);
                    oracle.wait(who, pending);
                }
            }
            18 => {
                let agents = random.one_in(2);
                log.push(format!("{step}: {who:x?} mbarrier arrive, copies {agents}"));
                if agents {
                    grid.blocks[block].mbarrier_arrive_copies(0x40, warp, who.mask, Agent::Copies);
                } else {
                    grid.blocks[block].mbarrier_arrive(0x40, warp, who.mask);
                }
                oracle.phase_arrive(who, 0x40, agents);
            }
            _ => {
                log.push(format!("{step}: mbarrier complete, {who:x?} waited"));
                grid.blocks[block].mbarrier_complete(0x40);
                grid.blocks[block].mbarrier_waited(0x40, warp, who.mask);
                oracle.phase_complete(block, 0x40);
                oracle.phase_wait(who, 0x40);
            }
        }
    }
    (60, false)
}

/// The same for programs whose lanes access small pieces of one or two rows in no order: words of their own,
/// words that all read, words that all change atomically.
fn run_scattered(seed: u64) -> (usize, bool) {
    let mut random = Random(seed * 2 + 1);
    (0..8).for_each(|_| {
        random.next();
    });
    let mode = random.pick(&[Mode::Normal, Mode::Strict]);
    let blocks = random.pick(&[1, 1, 2, 3]);
    let mut grid = Grid::new(mode, blocks as u32, THREADS);
    let mut oracle = Oracle::new(mode, blocks, THREADS as usize);
    let space = random.pick(&[RaceSpace::Shared, RaceSpace::Global]);
    // One step in so many is where it should not be.
    let careless = random.pick(&[8, 30, 100]);
    let element = random.pick(&[4, 4, 2, 1]);
    let mut log = Vec::new();
    for step in 0..150 {
        let warp = random.below(2) as u8;
        let who = Who { block: random.below(blocks as u64) as usize, warp, mask: mask(&mut random, warp) };
        let block = who.block;
        match random.below(16) {
            0..12 => {
                let (factor, add) = (random.pick(&[1, 3, 5, 7, 31]), random.below(64));
                let sort = random.below(3);
                let lapse = random.one_in(careless);
                let (kind, strength) = match (sort, lapse) {
                    (0, false) => (AccessKind::Read, Strength::Weak),
                    (1, false) => (random.pick(&[AccessKind::Read, AccessKind::Write]), Strength::Weak),
                    (2, false) => (AccessKind::Atomic, if blocks > 1 { DEVICE } else { BLOCK }),
                    _ => (random.pick(&[AccessKind::Read, AccessKind::Write, AccessKind::Atomic]), DEVICE),
                };
                let strength = if lapse && kind != AccessKind::Atomic { Strength::Weak } else { strength };
                let size = u64::from(element);
                let address = |lane: u64| {
                    let thread = block as u64 * 64 + u64::from(warp) * 32 + lane;
                    let mixed = (lane * factor + add) % 64;
                    size * match sort {
                        0 => mixed,
                        1 => 64 + thread * 37 % 256,
                        _ => 320 + mixed,
                    }
                };
                log.push(format!("{step}: {who:x?} {kind:?} {strength:?} sort {sort} * {factor} + {add}"));
                let before = grid.races.len();
                grid.at(random.below(20) as u32).access(
                    space,
                    who,
                    kind,
                    strength,
                    (element, element),
                    address,
                );
                let found = grid.races.len() > before;
                let expected = oracle.access(space, who, kind, strength, (element, element), address);
                let race = grid.races.last();
                assert_eq!(found, expected, "seed {seed}: (found, expected)\n{}\n{race:?}", log.join("\n"));
                if found {
                    return (step, true);
                }
            }
            12 => {
                log.push(format!("{step}: barrier of block {block}"));
                grid.barrier(block);
                oracle.barrier(block, 20, &[(0, u32::MAX), (1, u32::MAX)]);
            }
            13 => {
                log.push(format!("{step}: {who:x?} warp sync"));
                grid.warp_sync(who);
                oracle.warp_sync(who);
            }
            14 => {
                let flag = |_| FLAG;
                log.push(format!("{step}: {who:x?} releases"));
                grid.access(RaceSpace::Global, who, AccessKind::Atomic, RELEASE, (4, 4), flag);
                oracle.access(RaceSpace::Global, who, AccessKind::Atomic, RELEASE, (4, 4), flag);
            }
            _ => {
                let flag = |_| FLAG;
                log.push(format!("{step}: {who:x?} acquires"));
                grid.access(RaceSpace::Global, who, AccessKind::Read, ACQUIRE, (4, 4), flag);
                oracle.access(RaceSpace::Global, who, AccessKind::Read, ACQUIRE, (4, 4), flag);
            }
        }
    }
    (150, false)
}

/// The same for programs that are nearly all weak accesses to a few chunks of global memory: lines, lanes at one place or
/// equally far from each other, of memory that all read and of what is the block's own. So they are noted for long, up to
/// where two meet.
fn run_noted(seed: u64) -> (usize, bool) {
    let mut random = Random(seed * 2 + 1);
    (0..8).for_each(|_| {
        random.next();
    });
    let mode = random.pick(&[Mode::Normal, Mode::Strict]);
    let blocks = random.pick(&[1, 2, 3, 12]);
    let mut grid = Grid::new(mode, blocks as u32, THREADS);
    let mut oracle = Oracle::new(mode, blocks, THREADS as usize);
    let careless = random.pick(&[15, 50, 300]);
    let ordered = random.pick(&[4, 20]);
    // One read in so many is not coherent: few programs have any.
    let incoherent = random.pick(&[u64::MAX, u64::MAX, 100, 3]);
    let mut marks = HashMap::new();
    // What a thread's own words are like.
    let own = random.pick(&[(4, 4, 1), (4, 4, 2), (8, 8, 1), (16, 8, 1), (2, 2, 1), (1, 1, 3)]);
    let space = RaceSpace::Global;
    let mut log = Vec::new();
    for step in 0..200 {
        let warp = random.below(2) as u8;
        let who = Who { block: random.below(blocks as u64) as usize, warp, mask: mask(&mut random, warp) };
        let block = who.block;
        if random.one_in(ordered) {
            log.push(format!("{step}: barrier of block {block}"));
            grid.barrier(block);
            oracle.barrier(block, 20, &[(0, u32::MAX), (1, u32::MAX)]);
            continue;
        }
        if random.one_in(60) {
            let strength = random.pick(&[ACQUIRE, RELEASE]);
            let kind = if strength == ACQUIRE { AccessKind::Read } else { AccessKind::Atomic };
            grid.through = Through::Coherent;
            log.push(format!("{step}: {who:x?} {kind:?} {strength:?}"));
            grid.access(space, who, kind, strength, (4, 4), |_| FLAG);
            oracle.access(space, who, kind, strength, (4, 4), |_| FLAG);
            continue;
        }
        let lapse = random.one_in(careless);
        let is_own = random.one_in(2);
        let (bytes, element, apart) = match is_own {
            true => own,
            false => {
                random.pick(&[(4, 4, 0), (4, 4, 1), (8, 8, 1), (8, 4, 1), (4, 4, 3), (2, 2, 16), (1, 1, 1)])
            }
        };
        let kind = match is_own {
            true => random.pick(&[AccessKind::Read, AccessKind::Write]),
            false if lapse => AccessKind::Write,
            false => AccessKind::Read,
        };
        let size = u64::from(bytes);
        // What all read ends behind the first chunk, and what is a warp's own is near the end of one.
        let stride = size * apart;
        let mut owner = block as u64 * 2 + u64::from(warp);
        if lapse && is_own {
            owner ^= 1;
        }
        let place = match is_own {
            true => 0x4000 - 256 + owner * 2048,
            false => random.pick(&[0, 0x2000 - 256]) + size * random.below(16),
        };
        let address = |lane: u64| place + lane * stride;
        log.push(format!("{step}: {who:x?} {kind:?} {bytes}/{element} at {place:#x} stride {stride}"));
        let is_incoherent = kind == AccessKind::Read && random.one_in(incoherent);
        grid.through = if is_incoherent { Through::NonCoherent } else { Through::Coherent };
        let before = grid.races.len();
        let pc = random.below(20) as u32;
        grid.at(pc).access(space, who, kind, Strength::Weak, (bytes, element), address);
        let found = grid.races.len() > before;
        // What is read so may not be written, whoever does, and whatever orders the two.
        let mut meets = false;
        for byte in lanes(who.mask).flat_map(|lane| (0..size).map(move |at| (lane, at))) {
            let byte = address(byte.0.into()) + byte.1;
            let (read, written): &mut (bool, bool) = marks.entry(byte).or_default();
            *read |= is_incoherent;
            *written |= kind == AccessKind::Write;
            meets |= *read && *written && (is_incoherent || kind == AccessKind::Write);
        }
        assert_eq!(
            !grid.incoherent.is_empty(),
            meets,
            "seed {seed}, not coherent {is_incoherent}:\n{}",
            log.join("\n")
        );
        let expected = oracle.access(space, who, kind, Strength::Weak, (bytes, element), address);
        let race = grid.races.last();
        assert_eq!(found, expected, "seed {seed}: (found, expected)\n{}\n{race:?}", log.join("\n"));
        if found || meets {
            return (step, true);
        }
    }
    (200, false)
}

#[test]
fn accesses_that_were_noted_race_where_vector_clocks_say_so() {
    let (mut raced, mut late, mut clean) = (0, 0, 0);
    for seed in 0..2000 {
        let (steps, race) = run_noted(seed);
        raced += usize::from(race);
        late += usize::from(race && steps > 60);
        clean += usize::from(!race);
    }
    assert!(raced > 200 && late > 100 && clean > 100, "{raced} raced, {late} of them late, {clean} clean");
}

#[test]
fn scattered_accesses_race_where_vector_clocks_say_so() {
    let (mut raced, mut late, mut clean) = (0, 0, 0);
    for seed in 0..800 {
        let (steps, race) = run_scattered(seed);
        raced += usize::from(race);
        late += usize::from(race && steps > 40);
        clean += usize::from(!race);
    }
    assert!(raced > 200 && late > 40 && clean > 20, "{raced} raced, {late} of them late, {clean} clean");
}

#[test]
fn the_first_race_is_where_vector_clocks_find_it() {
    let (mut raced, mut late, mut clean) = (0, 0, 0);
    for seed in 0..20_000 {
        let (steps, race) = run(seed);
        raced += usize::from(race);
        late += usize::from(race && steps > 20);
        clean += usize::from(!race);
    }
    // The programs are neither all racy at once nor all clean.
    assert!(raced > 2000 && late > 500 && clean > 500, "{raced} raced, {late} of them late, {clean} clean");
}
