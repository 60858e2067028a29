//! Notes of accesses, and rows that so many have read that more readers add nothing.

use super::super::note::{Claim, LONGEST_NOTE, NEXT_LANE, Noted, READ};
use super::*;

/// A note says where all lanes of an access were that took part.
#[test]
fn a_note_tells_what_was_noted() {
    type Pattern = fn(u32) -> u32;
    let patterns: [(u32, Pattern); 9] = [
        (4, |lane| 256 + 4 * lane),
        (4, |_| 260),
        (4, |lane| 256 + 12 * lane),
        (8, |lane| 4096 - 16 * lane),
        (1, |lane| 3 * lane),
        (16, |lane| 512 + 16 * (lane % 16)),
        (4, |lane| 4 * (lane * 37 % 64)),
        (2, |lane| 64 + 18 * lane + lane / 16 * 2),
        (32, |lane| 32 * lane),
    ];
    let claim = Claim { past: 1, first: NEXT_LANE, step: NEXT_LANE, several: u32::MAX - 1 };
    for (at, (bytes, pattern)) in patterns.into_iter().enumerate() {
        for mask in
            [u32::MAX, 0xffff, 0xfff0_0000, 0x0ff0_0f0e, 1, 1 << 17, 0x8000_8000, 0x5555_5554, 6 << 20]
        {
            let (mut words, mut note) = (vec![0; 2048], vec![0; LONGEST_NOTE]);
            let offsets = std::array::from_fn(|lane| pattern(lane as u32));
            let access = WarpAccess {
                warp: 3,
                mask,
                base: 0,
                offsets: &[0; 32],
                bytes,
                element: bytes.min(8),
                pc: 77,
                kind: AccessKind::Read,
                strength: Strength::Weak,
            };
            let length =
                claim.enter(&access, &offsets, READ, &mut words, &mut note).expect("nobody was there");
            let (noted, rest) = Noted::read(&note[..length]).expect("it is a note");
            assert!(rest.is_empty());
            let told = noted.access(0x1000);
            for lane in lanes(mask) {
                let there = told.offsets[lane as usize];
                assert_eq!(there, offsets[lane as usize].into(), "pattern {at}, mask {mask:#x}, lane {lane}");
                let word = words[there as usize / 4];
                assert!(word != 0, "pattern {at}, mask {mask:#x}, lane {lane}: nobody claimed it");
            }
            assert_eq!(
                (told.warp, told.mask, told.base, told.bytes, told.element, told.pc, told.kind),
                (3, mask, 0x1000, bytes, bytes.min(8), 77, AccessKind::Read)
            );
        }
    }
}

/// A grid in which so many blocks have read a row that more need no note.
fn crowded() -> Grid {
    let mut grid = Grid::new(Mode::Normal, 14, 32);
    for _ in 0..4 {
        (0..12).for_each(|block| grid.read(warp(block, 0), 0));
    }
    grid.is_clean();
    grid
}

#[test]
fn who_writes_what_many_have_read_races() {
    let mut grid = crowded();
    grid.read(warp(12, 0), 0);
    grid.write(warp(13, 0), 0);
    assert!(!grid.found().is_empty());
}

#[test]
fn a_row_beside_one_that_many_have_read_is_still_noted() {
    let mut grid = crowded();
    grid.read(warp(12, 0), 128);
    grid.read(warp(12, 0), 64);
    grid.write(warp(13, 0), 128);
    assert!(!grid.found().is_empty());
}

#[test]
fn reads_that_are_not_coherent_are_marked_where_many_have_read() {
    let mut grid = crowded();
    grid.through = Through::NonCoherent;
    grid.read(warp(12, 0), 0);
    grid.write(warp(12, 0), 0);
    assert_eq!(grid.incoherent.len(), 1);
    let race = grid.incoherent[0];
    assert_eq!((race.first.block, race.first.kind), (12, AccessKind::Read));
}
