//! Placement of blocks in one range of memory.

use crate::common::Random;
use warpwright_graph::place::{Block, Placement, place};

fn block(bytes: u64, begin: u32, end: u32) -> Block {
    Block { bytes, begin, end, ..Block::default() }
}

fn placed(blocks: &[Block], alignment: u64) -> Placement {
    place(blocks, alignment).expect("there are addresses for it")
}

fn bytes_at(blocks: &[Block], replaces: &[Option<usize>], step: u32) -> u64 {
    let live = |i: usize| (blocks[i].begin..=blocks[i].end).contains(&step);
    let replaced = |i: usize| (0..blocks.len()).any(|j| replaces[j] == Some(i) && live(j));
    (0..blocks.len()).filter(|&i| live(i) && !replaced(i)).map(|i| blocks[i].bytes).sum()
}

/// What holds of every placement.
fn holds(blocks: &[Block], alignment: u64) -> Placement {
    let placement = placed(blocks, alignment);
    let Placement { offsets, replaces, peak, bound } = &placement;
    let overlap = |i: usize, j: usize| {
        let (a, b) = (&blocks[i], &blocks[j]);
        let at_once = a.begin <= b.end && b.begin <= a.end;
        at_once && offsets[i] < offsets[j] + b.bytes && offsets[j] < offsets[i] + a.bytes
    };
    for (i, block) in blocks.iter().enumerate() {
        assert!(offsets[i].is_multiple_of(alignment));
        assert!(offsets[i] + block.bytes <= *peak);
        for j in 0..i {
            if overlap(i, j) {
                let (next, before) = if replaces[i] == Some(j) { (i, j) } else { (j, i) };
                assert_eq!(
                    replaces[next],
                    Some(before),
                    "{i} and {j} of {blocks:?} overlap in {placement:?}"
                );
                assert_eq!(offsets[next], offsets[before]);
            }
        }
        if let Some(before) = replaces[i] {
            assert!(block.may_replace.contains(&before));
            assert_eq!((blocks[before].bytes, blocks[before].end), (block.bytes, block.begin));
            assert_eq!(replaces.iter().filter(|&&other| other == Some(before)).count(), 1);
        }
    }
    let last = blocks.iter().map(|block| block.end).max().unwrap_or(0);
    let most = (0..=last).map(|step| bytes_at(blocks, replaces, step)).max().unwrap_or(0);
    assert_eq!(*bound, most, "{blocks:?}");
    assert!(peak >= bound);
    placement
}

#[test]
fn random_blocks_that_are_needed_at_once_lie_apart() {
    let mut random = Random::new(5);
    for _ in 0..500 {
        let (count, steps) = (1 + random.below(24), 1 + random.below(16));
        let sizes = random.of(&[4u32, 16, 4000]);
        let alignment = random.of(&[1, 16, 256]);
        let mut blocks: Vec<Block> = Vec::new();
        for i in 0..count as usize {
            let begin = random.below(steps);
            let end = begin + random.below(steps - begin);
            let bytes = u64::from(random.below(sizes)) * random.of(&[1, 256]);
            let may_replace = (0..random.below(3)).map(|_| random.below(count) as usize).collect();
            let mut block = Block { bytes, begin, end, may_replace };
            // Often enough there is one whose place can be had.
            if i > 0 && random.once_in(2) {
                let other = random.below(i as u32) as usize;
                block = Block { bytes: blocks[other].bytes, begin: blocks[other].end, ..block };
                block.end = block.end.max(block.begin);
                block.may_replace.push(other);
            }
            blocks.push(block);
        }
        holds(&blocks, alignment);
    }
}

#[test]
fn a_chain_has_room_for_two_and_in_place_for_one() {
    let chain = |in_place: bool| -> Vec<Block> {
        let block = |i: u32| Block {
            may_replace: if in_place && i > 0 { vec![i as usize - 1] } else { Vec::new() },
            ..block(1024, i, i + 1)
        };
        (0..10).map(block).collect()
    };
    assert_eq!(holds(&chain(false), 256).peak, 2048);
    let placement = holds(&chain(true), 256);
    assert_eq!(placement.peak, 1024);
    assert_eq!(placement.replaces[9], Some(8));
}

#[test]
fn a_place_is_had_by_one_and_only_when_it_is_free() {
    let before = block(1024, 0, 2);
    let after = |begin, bytes| Block { may_replace: vec![0], ..block(bytes, begin, 4) };
    let replaces = |blocks: &[Block]| holds(blocks, 256).replaces;
    assert_eq!(replaces(&[before.clone(), after(2, 1024), after(2, 1024)]), [None, Some(0), None]);
    assert_eq!(replaces(&[before.clone(), after(1, 1024)]), [None, None]);
    assert_eq!(replaces(&[before.clone(), after(3, 1024)]), [None, None]);
    assert_eq!(replaces(&[before, after(2, 512)]), [None, None]);
    // Neither itself nor one that is not there.
    let odd = Block { may_replace: vec![0, 7], ..block(256, 0, 0) };
    assert_eq!(replaces(&[odd]), [None]);
}

#[test]
fn nothing_needs_nothing() {
    let nothing = Placement { offsets: vec![], replaces: vec![], peak: 0, bound: 0 };
    assert_eq!(holds(&[], 256), nothing);
    assert_eq!(holds(&[block(0, 0, 3), block(100, 1, 1)], 256).peak, 100);
}

#[test]
fn what_has_more_bytes_than_addresses_has_no_place() {
    assert_eq!(place(&[block(u64::MAX / 2 + 1, 0, 1), block(u64::MAX / 2 + 1, 1, 2)], 1), None);
    assert_eq!(place(&[block(u64::MAX - 1, 0, 1)], 256), None);
    let in_turn = [block(1 << 63, 0, 1), block(1 << 63, 2, 3)];
    assert_eq!(holds(&in_turn, 256).peak, 1 << 63);
    assert_eq!(placed(&[block(8, u32::MAX, u32::MAX), block(8, 0, u32::MAX)], 8).peak, 16);
}
