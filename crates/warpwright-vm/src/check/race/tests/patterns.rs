//! The idioms of CUDA programs, correct and with something missing.

use super::*;

fn one_block(threads: u32) -> Grid {
    Grid::new(Mode::Normal, 1, threads)
}

#[test]
fn warps_meet_in_shared_memory_only_over_a_barrier() {
    let mut grid = one_block(64);
    grid.at(10).store(warp(0, 0), 0);
    grid.at(20).load(warp(0, 1), 0);
    let race = grid.races[0];
    assert_eq!((race.first.pc, race.second.pc, race.space), (10, 20, RaceSpace::Shared));
    assert_eq!(grid.found(), [[(0, 0), (0, 32)]]);

    let mut grid = one_block(64);
    grid.store(warp(0, 0), 0);
    grid.barrier(0);
    grid.load(warp(0, 1), 0);
    grid.load(warp(0, 0), 0);
    grid.is_clean();
    // A tile is filled again before all have read it: the second barrier is missing.
    grid.at(30).store(warp(0, 0), 0);
    let race = grid.races[0];
    assert_eq!((race.first.kind, race.second.kind), (AccessKind::Read, AccessKind::Write));
    assert_eq!(grid.found(), [[(0, 32), (0, 0)]]);
}

#[test]
fn a_second_reader_never_hides_the_first() {
    let mut grid = one_block(96);
    for reader in 0..3 {
        grid.load(thread(0, reader, 0), 0);
    }
    grid.store(thread(0, 2, 0), 0);
    assert_eq!(grid.found().len(), 2, "both other readers");
}

#[test]
fn a_thread_that_stores_races_with_other_readers_than_itself() {
    for reader in [0, 1] {
        for barrier in [false, true] {
            let mut grid = one_block(64);
            let access = |grid: &mut Grid, at, kind| {
                let who = Who { mask: 1, ..warp(0, at) };
                grid.access(RaceSpace::Shared, who, kind, Strength::Weak, (4, 4), |_| 64);
            };
            access(&mut grid, 0, AccessKind::Read);
            access(&mut grid, reader, AccessKind::Read);
            access(&mut grid, 0, AccessKind::Read);
            if barrier {
                grid.barrier(0);
            }
            access(&mut grid, 0, AccessKind::Write);
            assert_eq!(grid.found().len(), usize::from(reader != 0 && !barrier), "{reader}, {barrier}");
        }
    }
}

#[test]
fn lanes_of_a_warp_need_a_warp_barrier() {
    let neighbours = |grid: &mut Grid, sync: Option<u32>| {
        grid.store(warp(0, 0), 0);
        if let Some(mask) = sync {
            grid.warp_sync(Who { mask, ..warp(0, 0) });
        }
        grid.access(RaceSpace::Shared, warp(0, 0), AccessKind::Read, Strength::Weak, (4, 4), |lane| {
            4 * (lane ^ 1)
        });
        grid.found().len()
    };
    assert!(neighbours(&mut one_block(32), None) > 0);
    assert_eq!(neighbours(&mut one_block(32), Some(u32::MAX)), 0);
    // Both halves among themselves: partners are in one half.
    let mut grid = one_block(32);
    grid.store(warp(0, 0), 0);
    grid.warp_sync(Who { mask: 0xffff, ..warp(0, 0) });
    grid.warp_sync(Who { mask: 0xffff_0000, ..warp(0, 0) });
    let partner = |grid: &mut Grid, distance: u64| {
        grid.access(RaceSpace::Shared, warp(0, 0), AccessKind::Read, Strength::Weak, (4, 4), |lane| {
            4 * (lane ^ distance)
        });
        grid.found().len()
    };
    assert_eq!(partner(&mut grid, 8), 0);
    assert!(partner(&mut grid, 16) > 0);
}

#[test]
fn a_lane_reads_back_what_it_wrote_in_another_width() {
    let mut grid = one_block(32);
    grid.access(RaceSpace::Shared, warp(0, 0), AccessKind::Write, Strength::Weak, (16, 4), |lane| 16 * lane);
    grid.access(RaceSpace::Shared, warp(0, 0), AccessKind::Read, Strength::Weak, (4, 4), |lane| {
        16 * lane + 8
    });
    grid.is_clean();
    grid.access(RaceSpace::Shared, warp(0, 0), AccessKind::Read, Strength::Weak, (4, 4), |lane| {
        16 * lane + 16
    });
    assert!(!grid.races.is_empty());
}

#[test]
fn blocks_must_not_write_what_others_read() {
    let mut grid = Grid::new(Mode::Normal, 2, 32);
    grid.write(warp(0, 0), DATA);
    grid.read(warp(1, 0), DATA + 64);
    let race = grid.races[0];
    assert_eq!(race.address, DATA + 64);
    assert_eq!(grid.found(), [[(0, 16), (1, 0)]]);
    // Barriers of a block order nothing between blocks.
    grid.barrier(0);
    grid.barrier(1);
    grid.write(warp(1, 0), DATA);
    assert!(!grid.races.is_empty());
}

/// A producer writes data and sets a flag, a consumer polls the flag and reads the data.
fn message(
    mode: Mode,
    producer_fence: bool,
    consumer: fn(&mut Grid),
    set: Strength,
    poll: Strength,
) -> usize {
    let mut grid = Grid::new(mode, 2, 64);
    grid.write(thread(0, 0, 0), DATA);
    if producer_fence {
        grid.fence(thread(0, 0, 0), Scope::Device);
    }
    grid.poll(thread(1, 1, 3), poll, FLAG);
    grid.set(thread(0, 0, 0), set, FLAG);
    grid.poll(thread(1, 1, 3), poll, FLAG);
    consumer(&mut grid);
    grid.access(RaceSpace::Global, thread(1, 1, 3), AccessKind::Read, Strength::Weak, (4, 4), |_| DATA);
    grid.found().len()
}

#[test]
fn a_flag_passes_a_message_with_fences_on_both_sides() {
    let fenced = |grid: &mut Grid| grid.fence(thread(1, 1, 3), Scope::Device);
    let nothing = |_: &mut Grid| {};
    let block_fenced = |grid: &mut Grid| grid.fence(thread(1, 1, 3), Scope::Block);
    let barrier = |grid: &mut Grid| grid.barrier(1);
    for mode in [Mode::Normal, Mode::Strict] {
        assert_eq!(message(mode, true, fenced, DEVICE, DEVICE), 0);
        assert_eq!(message(mode, false, nothing, RELEASE, ACQUIRE), 0);
        assert_eq!(message(mode, true, nothing, DEVICE, ACQUIRE), 0);
        assert_eq!(message(mode, false, fenced, RELEASE, DEVICE), 0);
        assert_eq!(message(mode, false, fenced, DEVICE, DEVICE), 1, "the producer's fence is missing");
        assert_eq!(message(mode, true, nothing, DEVICE, DEVICE), 1, "the consumer's fence is missing");
        assert_eq!(message(mode, true, block_fenced, DEVICE, DEVICE), 1, "the fence reaches too short");
    }
    assert_eq!(message(Mode::Normal, true, barrier, DEVICE, DEVICE), 0, "a barrier acquires");
    assert_eq!(message(Mode::Strict, true, barrier, DEVICE, DEVICE), 1, "not by the letter");
}

#[test]
fn a_weak_flag_is_a_race_itself() {
    assert!(message(Mode::Normal, true, |_| {}, Strength::Weak, DEVICE) > 0);
    assert!(message(Mode::Normal, true, |_| {}, DEVICE, Strength::Weak) > 0);
    // Strong for the block only, and used between blocks.
    assert!(
        message(Mode::Normal, true, |grid| grid.fence(thread(1, 1, 3), Scope::Device), BLOCK, DEVICE) > 0
    );
}

/// nvcc's last-block reduction: every block writes its part, fences and counts up; the last reads all parts.
fn last_block(mode: Mode, fence: bool, barrier: bool) -> usize {
    let blocks = 20;
    let mut grid = Grid::new(mode, blocks, 64);
    for block in 0..blocks as usize {
        let leader = thread(block, 0, 0);
        grid.barrier(block);
        grid.at(1).access(RaceSpace::Global, leader, AccessKind::Write, Strength::Weak, (4, 4), |_| {
            DATA + 4 * block as u64
        });
        if fence {
            grid.fence(leader, Scope::Device);
        }
        grid.at(2).atomic(leader, DEVICE, FLAG);
    }
    let last = blocks as usize - 1;
    if barrier {
        grid.barrier(last);
    }
    grid.at(3).read(Who { mask: (1 << blocks) - 1, ..warp(last, 1) }, DATA);
    grid.found().len()
}

#[test]
fn the_last_block_reads_what_all_have_written() {
    assert_eq!(last_block(Mode::Normal, true, true), 0);
    assert!(last_block(Mode::Strict, true, true) > 0, "no fence on the reader's side");
    assert!(last_block(Mode::Normal, false, true) > 0, "no fence before the counter");
    assert!(last_block(Mode::Normal, true, false) > 0, "the other warps have seen nothing");
}

/// A barrier of the grid on a counter, as cooperative groups do it.
fn grid_barrier(grid: &mut Grid, mode_fences: bool) {
    let blocks = grid.blocks.len();
    for block in 0..blocks {
        grid.barrier(block);
        if mode_fences {
            grid.fence(thread(block, 0, 0), Scope::Device);
        }
        grid.atomic(thread(block, 0, 0), DEVICE, FLAG);
    }
    for block in 0..blocks {
        grid.poll(thread(block, 0, 0), DEVICE, FLAG);
        if mode_fences {
            grid.fence(thread(block, 0, 0), Scope::Device);
        }
        grid.barrier(block);
    }
}

#[test]
fn a_grid_barrier_orders_everything_every_round() {
    for (mode, fences) in [(Mode::Normal, true), (Mode::Strict, true), (Mode::Normal, false)] {
        let blocks = 40;
        let mut grid = Grid::new(mode, blocks, 64);
        for round in 0..4 {
            // One writes what all read, and another one writes it next time.
            grid.at(7).write(warp(round * 3, 1), DATA);
            grid_barrier(&mut grid, fences);
            for reader in 0..blocks as usize {
                grid.at(8).read(warp(reader, (reader & 1) as u8), DATA);
            }
            grid_barrier(&mut grid, fences);
        }
        assert_eq!(grid.races.is_empty(), fences, "{mode:?}");
    }
}

#[test]
fn a_fence_by_every_thread_before_the_barrier_counts_in_practice() {
    for (mode, races) in [(Mode::Normal, false), (Mode::Strict, true)] {
        let mut grid = Grid::new(mode, 2, 64);
        for at in 0..2 {
            grid.write(warp(0, at), DATA + 128 * u64::from(at));
            grid.fence(warp(0, at), Scope::Device);
        }
        grid.barrier(0);
        grid.set(thread(0, 0, 0), DEVICE, FLAG);
        grid.poll(thread(1, 0, 0), DEVICE, FLAG);
        grid.fence(thread(1, 0, 0), Scope::Device);
        grid.barrier(1);
        grid.read(warp(1, 1), DATA + 128);
        assert_eq!(!grid.races.is_empty(), races, "{mode:?}");
    }
}

/// Warp 0 fills a buffer for warps 1 and 2; two named barriers say full and empty.
fn producer_consumers(wait_for_empty: bool) -> usize {
    let mut grid = one_block(128);
    let (full, empty) = (1, 2);
    for round in 0..3 {
        if round > 0 && wait_for_empty {
            grid.blocks[0].barrier(empty, &[(0, u32::MAX)]);
        }
        grid.at(1).store(warp(0, 0), 0);
        grid.blocks[0].barrier_arrive(full, 0, u32::MAX);
        grid.blocks[0].barrier(full, &[(1, u32::MAX), (2, u32::MAX)]);
        for consumer in 1..3 {
            grid.at(2).load(warp(0, consumer), 0);
            grid.blocks[0].barrier_arrive(empty, consumer, u32::MAX);
        }
    }
    let found = grid.found().len();
    // Warp 3 took part in nothing.
    grid.load(warp(0, 3), 0);
    assert!(!grid.races.is_empty());
    found
}

#[test]
fn named_barriers_order_those_who_take_part() {
    assert_eq!(producer_consumers(true), 0);
    assert!(producer_consumers(false) > 0);
}

#[test]
fn what_a_warp_does_after_it_arrived_is_not_ordered() {
    let mut grid = one_block(64);
    grid.blocks[0].barrier_arrive(3, 0, u32::MAX);
    grid.store(warp(0, 0), 0);
    grid.blocks[0].barrier(3, &[(1, u32::MAX)]);
    grid.load(warp(0, 1), 0);
    assert!(!grid.races.is_empty());
}

#[test]
fn atomics_meet_atomics_and_nothing_weak() {
    let mut grid = Grid::new(Mode::Normal, 12, 64);
    for block in 0..12 {
        for of in 0..2 {
            grid.at(1).atomic(warp(block, of), DEVICE, DATA);
        }
    }
    grid.is_clean();
    grid.at(2).read(thread(3, 0, 0), DATA);
    assert!(!grid.races.is_empty());
    // An initialisation that nothing orders before the atomics of another thread.
    let mut grid = one_block(64);
    grid.write(thread(0, 0, 0), DATA);
    grid.atomic(thread(0, 0, 0), DEVICE, DATA);
    grid.is_clean();
    grid.atomic(thread(0, 1, 0), DEVICE, DATA);
    assert_eq!(grid.found(), [[(0, 0), (0, 32)]]);
    // Different widths are not complete overlap.
    let mut grid = one_block(64);
    grid.atomic(thread(0, 0, 0), DEVICE, DATA);
    grid.access(RaceSpace::Global, thread(0, 1, 0), AccessKind::Atomic, DEVICE, (8, 8), |_| DATA);
    assert!(!grid.races.is_empty());
}

#[test]
fn a_histogram_is_read_after_the_barrier() {
    let mut grid = one_block(256);
    grid.store(warp(0, 0), 0);
    grid.barrier(0);
    for round in 0..50u64 {
        for of in 0..8 {
            grid.at(1).access(RaceSpace::Shared, warp(0, of), AccessKind::Atomic, BLOCK, (4, 4), |lane| {
                4 * (lane * 7 + round * 13 + u64::from(of)).wrapping_mul(0x9e37_79b9) % 128
            });
        }
    }
    grid.barrier(0);
    grid.load(warp(0, 5), 0);
    grid.is_clean();
    grid.store(warp(0, 6), 0);
    assert!(!grid.races.is_empty());
}

/// Threads take a lock, change a word, give the lock back.
fn locked(fences: bool) -> usize {
    let mut grid = Grid::new(Mode::Normal, 4, 64);
    for round in 0..3 {
        for block in 0..4 {
            let who = thread(block, (round & 1) as u8, (5 * round) as u32);
            grid.at(1).atomic(who, DEVICE, FLAG);
            if fences {
                grid.fence(who, Scope::Device);
            }
            for kind in [AccessKind::Read, AccessKind::Write] {
                grid.access(RaceSpace::Global, who, kind, Strength::Weak, (4, 4), |_| DATA);
            }
            if fences {
                grid.fence(who, Scope::Device);
            }
            grid.atomic(who, DEVICE, FLAG);
        }
    }
    grid.found().len()
}

#[test]
fn a_spin_lock_orders_critical_sections() {
    assert_eq!(locked(true), 0);
    assert!(locked(false) > 0);
}

/// Two buffers filled by asynchronous copies, one ahead.
fn double_buffered(wait: bool, barrier: bool, second_barrier: bool) -> usize {
    let mut grid = one_block(64);
    let fill = |grid: &mut Grid, tile: u64| {
        for of in 0..2 {
            let part = 512 * u64::from(of);
            grid.at(1).copy(warp(0, of), DATA + 1024 * tile + part, 1024 * (tile & 1) + part);
            grid.blocks[0].commit_group(GroupsOf::Copies, of, u32::MAX);
        }
    };
    fill(&mut grid, 0);
    for tile in 0..4 {
        fill(&mut grid, tile + 1);
        if wait {
            for of in 0..2 {
                grid.blocks[0].wait_group(GroupsOf::Copies, of, u32::MAX, 1, false);
            }
        }
        if barrier {
            grid.barrier(0);
        }
        for of in 0..2 {
            // Each warp reads what the other one copied.
            grid.at(9).load(warp(0, of), 1024 * (tile & 1) + 512 * u64::from(1 - of));
        }
        if second_barrier {
            grid.barrier(0);
        }
    }
    grid.found().len()
}

#[test]
fn asynchronous_copies_own_their_destination_until_waited_for() {
    assert_eq!(double_buffered(true, true, true), 0);
    assert!(double_buffered(false, true, true) > 0, "read before the wait");
    assert!(double_buffered(true, false, true) > 0, "the other warp's copies are not waited for");
    assert!(double_buffered(true, true, false) > 0, "overwritten while it is read");
}

#[test]
fn a_thread_waits_for_its_own_copy_before_it_reads() {
    let mut grid = one_block(32);
    grid.at(1).copy(warp(0, 0), DATA, 0);
    grid.at(2)
        .access(RaceSpace::Shared, warp(0, 0), AccessKind::Read, Strength::Weak, (16, 4), |lane| 16 * lane);
    let race = grid.races[0];
    assert_eq!(
        (race.first.kind, race.first.thread, race.second.thread),
        (AccessKind::AsyncWrite(Agent::Copies), 0, 0)
    );
    // And does not change the source.
    grid.races.clear();
    grid.write(warp(0, 0), DATA);
    assert_eq!(grid.races[0].first.kind, AccessKind::AsyncRead(Agent::Copies));

    let mut grid = one_block(32);
    grid.copy(warp(0, 0), DATA, 0);
    grid.blocks[0].wait_all(0, u32::MAX);
    grid.access(RaceSpace::Shared, warp(0, 0), AccessKind::Read, Strength::Weak, (16, 4), |lane| 16 * lane);
    grid.access(RaceSpace::Global, warp(0, 0), AccessKind::Write, Strength::Weak, (16, 4), |lane| {
        DATA + 16 * lane
    });
    grid.is_clean();
    // A group that is allowed to be pending is not complete.
    grid.copy(warp(0, 0), DATA, 1024);
    grid.blocks[0].commit_group(GroupsOf::Copies, 0, u32::MAX);
    grid.blocks[0].wait_group(GroupsOf::Copies, 0, u32::MAX, 1, false);
    grid.load(warp(0, 0), 1024);
    assert!(!grid.races.is_empty());
}

#[test]
fn an_mbarrier_completes_copies_for_those_who_wait() {
    for waits in [true, false] {
        let mut grid = one_block(64);
        grid.copy(warp(0, 0), DATA, 0);
        grid.blocks[0].mbarrier_arrive_copies(4096, 0, u32::MAX, Agent::Copies);
        grid.blocks[0].mbarrier_complete(4096);
        if waits {
            grid.blocks[0].mbarrier_waited(4096, 1, u32::MAX);
        }
        grid.load(warp(0, 1), 0);
        assert_eq!(grid.races.is_empty(), waits);
    }
}

#[test]
fn the_same_value_twice_is_a_race_by_the_letter_only() {
    let all = |grid: &mut Grid, of: u8| {
        grid.at(4).access(RaceSpace::Shared, warp(0, of), AccessKind::Write, Strength::Weak, (4, 4), |_| 0);
    };
    for mode in [Mode::Normal, Mode::Strict] {
        let mut grid = Grid::new(mode, 1, 64);
        grid.same = true;
        all(&mut grid, 0);
        all(&mut grid, 1);
        match mode {
            Mode::Normal => grid.is_clean(),
            Mode::Strict => {
                assert!(grid.races.iter().all(|race| race.same_value));
                assert_eq!(grid.found(), [[(0, 0), (0, 31)], [(0, 32), (0, 63)], [(0, 0), (0, 32)]]);
            }
        }
        grid.same = false;
        all(&mut grid, 0);
        assert!(grid.races.iter().all(|race| !race.same_value));
        assert_eq!(grid.found(), [[(0, 0), (0, 1)], [(0, 32), (0, 0)]]);
    }
}

#[test]
fn one_other_value_among_equal_ones_is_a_race() {
    for mode in [Mode::Normal, Mode::Strict] {
        let mut grid = Grid::new(mode, 1, 64);
        grid.same = true;
        grid.at(4).store(warp(0, 0), 0);
        grid.odd = Some(17);
        grid.at(4).store(warp(0, 1), 0);
        let bad: Vec<_> = grid.races.iter().filter(|race| !race.same_value).collect();
        assert_eq!(bad.iter().map(|race| race.address).collect::<Vec<_>>(), [4 * 17]);
        assert_eq!(grid.races.len() - 1, usize::from(mode == Mode::Strict), "the equal ones count once");
    }
}

#[test]
fn given_back_memory_is_new() {
    let mut grid = Grid::new(Mode::Normal, 2, 32);
    grid.write(warp(0, 0), DATA);
    grid.launch.forget(DATA, 64);
    grid.write(Who { mask: 0xffff, ..warp(1, 0) }, DATA);
    grid.is_clean();
    grid.write(warp(1, 0), DATA);
    assert_eq!(grid.found(), [[(0, 16), (1, 16)]]);
}

#[test]
fn many_blocks_that_read_leave_enough_to_be_found() {
    let mut grid = Grid::new(Mode::Normal, 200, 32);
    for block in 0..200 {
        grid.at(1).read(warp(block, 0), DATA);
    }
    grid.is_clean();
    grid.at(2).write(warp(0, 0), DATA);
    assert!(!grid.races.is_empty());
}

/// A row that is accessed in pieces so many that they are not remembered one by one.
fn scattered() -> Grid {
    let mut grid = Grid::new(Mode::Normal, 2, 64);
    for lane in 0..16 {
        grid.read(thread(0, 0, lane), DATA + 64);
    }
    grid
}

#[test]
fn readers_of_a_scattered_row_are_those_that_read() {
    let mut grid = scattered();
    // Lane 3 of warp 0 and lane 5 of warp 1 read; not their lanes of the other warp.
    let (writer, other) = (thread(0, 0, 3), thread(0, 1, 5));
    let read = |grid: &mut Grid, who: Who, at: u64| grid.poll(who, Strength::Weak, at);
    read(&mut grid, writer, DATA);
    read(&mut grid, other, DATA);
    grid.set(other, RELEASE, FLAG);
    grid.poll(writer, ACQUIRE, FLAG);
    grid.set(writer, Strength::Weak, DATA);
    grid.is_clean();
    // Had one of these read too, it would be a race.
    for third in [thread(0, 0, 5), thread(0, 1, 3), thread(1, 0, 3)] {
        let mut grid = scattered();
        for who in [writer, other, third] {
            read(&mut grid, who, DATA);
        }
        grid.set(other, RELEASE, FLAG);
        grid.poll(writer, ACQUIRE, FLAG);
        grid.set(writer, Strength::Weak, DATA);
        let number = (third.block as u32, u32::from(third.warp) * 32 + third.mask.trailing_zeros());
        assert_eq!(grid.found(), [[number, (0, 3)]]);
    }
}

#[test]
fn what_a_thread_read_is_not_hidden_by_its_own_atomic() {
    for (strength, races) in [(Strength::Weak, 1), (DEVICE, 0)] {
        let mut grid = scattered();
        let (own, other) = (thread(0, 0, 3), thread(0, 1, 3));
        grid.poll(own, strength, DATA);
        grid.atomic(own, DEVICE, DATA);
        grid.atomic(other, DEVICE, DATA);
        assert_eq!(grid.found().len(), races);
    }
}

#[test]
fn a_race_in_a_scattered_row_names_the_instructions() {
    let mut grid = scattered();
    grid.at(100).set(thread(0, 0, 3), Strength::Weak, DATA);
    grid.at(101).set(thread(0, 0, 4), Strength::Weak, DATA + 4);
    grid.at(102).poll(thread(1, 0, 7), Strength::Weak, DATA + 4);
    let (first, second) = (grid.races[0].first, grid.races[0].second);
    assert_eq!((first.pc, first.thread, second.pc, second.thread), (101, 4, 102, 7));
    grid.races.clear();
    // A word of the first sixteen that were read.
    grid.at(103).set(thread(1, 1, 2), Strength::Weak, DATA + 64 + 4 * 9);
    let (first, second) = (grid.races[0].first, grid.races[0].second);
    assert_eq!((first.pc, first.thread, second.pc, second.thread), (9, 9, 103, 34));
}

#[test]
fn lanes_that_store_one_value_among_scattered_ones_are_no_race() {
    for mode in [Mode::Normal, Mode::Strict] {
        for same in [true, false] {
            let mut grid = Grid::new(mode, 1, 32);
            grid.same = same;
            // The second time the row is known to be scattered.
            for _ in 0..2 {
                grid.at(7).access(
                    RaceSpace::Shared,
                    warp(0, 0),
                    AccessKind::Write,
                    Strength::Weak,
                    (4, 4),
                    |lane| 4 * (lane * 5 % 16),
                );
            }
            assert_eq!(grid.races.is_empty(), same && mode == Mode::Normal, "{mode:?}, same: {same}");
        }
    }
}

#[test]
fn of_many_blocks_that_read_scattered_pieces_enough_are_kept() {
    for (released, writer) in [(false, 0), (false, 39), (true, 0), (true, 39)] {
        let mut grid = Grid::new(Mode::Normal, 40, 64);
        for block in 0..40 {
            for of in 0..2 {
                let who = warp(block, of);
                for field in 0..17 {
                    grid.at(field as u32).access(
                        RaceSpace::Global,
                        who,
                        AccessKind::Read,
                        Strength::Weak,
                        (2, 2),
                        |lane| DATA + 34 * lane + 2 * field,
                    );
                }
                grid.atomic(who, RELEASE, FLAG);
            }
        }
        if released {
            grid.poll(warp(writer, 0), ACQUIRE, FLAG);
        }
        for field in 0..17 {
            grid.at(100).access(
                RaceSpace::Global,
                warp(writer, 0),
                AccessKind::Write,
                Strength::Weak,
                (2, 2),
                |lane| DATA + 34 * lane + 2 * field,
            );
            assert_eq!(grid.found().is_empty(), released, "field {field} by block {writer}");
        }
    }
}
