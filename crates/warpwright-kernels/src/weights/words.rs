//! Bytes of memory as 32-bit words, by the widest accesses that their alignment allows.

use warpwright_dsl::*;

/// `count` words from byte `at` on, where `from + at` is a multiple of `alignment`, which is at least 2.
#[track_caller]
pub(crate) fn load_words<'k>(
    from: Ptr<'k, Global, u8>,
    at: u32,
    count: u32,
    alignment: u32,
) -> Vec<Reg<'k, u32>> {
    let from = from.at(at);
    let words = from.cast::<u32>();
    match (alignment, count % 4, count % 2) {
        (16.., 0, _) => (0..count).step_by(4).flat_map(|i| words.ld_vec::<4>(i)).collect(),
        (8.., _, 0) => (0..count).step_by(2).flat_map(|i| words.ld_vec::<2>(i)).collect(),
        (4.., _, _) => (0..count).map(|i| words.ld(i)).collect(),
        _ => {
            let halves = from.cast::<u16>();
            (0..count)
                .map(|i| halves.ld(2 * i).to::<u32>() | halves.ld(2 * i + 1).to::<u32>() << 16)
                .collect()
        }
    }
}

/// Stores words from byte `at` on: see [`load_words`].
#[track_caller]
pub(crate) fn store_words<'k>(to: Ptr<'k, Global, u8>, at: u32, words: &[Reg<'k, u32>], alignment: u32) {
    let to = to.at(at);
    let place = to.cast::<u32>();
    match (alignment, words.len() % 4, words.len() % 2) {
        (16.., 0, _) => {
            for (i, part) in (0..).step_by(4).zip(words.chunks_exact(4)) {
                place.st_vec(i, [part[0], part[1], part[2], part[3]]);
            }
        }
        (8.., _, 0) => {
            for (i, part) in (0..).step_by(2).zip(words.chunks_exact(2)) {
                place.st_vec(i, [part[0], part[1]]);
            }
        }
        (4.., _, _) => {
            for (i, &word) in (0..).zip(words) {
                place.st(i, word);
            }
        }
        _ => {
            let halves = to.cast::<u16>();
            for (i, &word) in (0..).zip(words) {
                halves.st(2 * i, word.to::<u16>());
                halves.st(2 * i + 1, (word >> 16).to::<u16>());
            }
        }
    }
}
