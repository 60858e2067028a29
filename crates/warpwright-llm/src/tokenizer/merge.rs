//! Merging of neighbours, best pair first: the common part of byte-pair and SentencePiece vocabularies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A part of a text that is one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// In bytes, from the start of the text.
    pub(super) start: u32,
    /// In bytes; 0 once it has been merged into the one on its left.
    pub(super) len: u32,
    /// What the vocabulary calls it; [`NO_ID`] if it has no name.
    pub(super) id: u32,
}

/// A symbol that no merge knows.
pub(super) const NO_ID: u32 = u32::MAX;

/// Up to this many symbols, looking through all pairs is faster than a queue.
const FEW: usize = 24;

/// What becomes of two neighbours: how soon (less is sooner), and the id of the whole.
pub(super) type Merge = Option<(u32, u32)>;

/// Memory that merging uses again.
#[derive(Default)]
pub(super) struct Merger {
    few: Vec<Merge>,
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<Entry>>,
}

#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

/// A pair that may be merged; the order of the fields is the order of merging.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    rank: u32,
    left: u32,
    right: u32,
    /// Of both together: tells whether either has changed.
    len: u32,
    id: u32,
}

const NONE: u32 = u32::MAX;

impl Merger {
    /// Merges until `pairs` knows no pair of neighbours any more: always one that comes soonest, the leftmost of
    /// those. What is left in `symbols` is the outcome.
    pub(super) fn merge(&mut self, symbols: &mut Vec<Symbol>, pairs: impl Fn(&Symbol, &Symbol) -> Merge) {
        if symbols.len() <= FEW {
            self.merge_few(symbols, pairs);
        } else {
            self.merge_many(symbols, pairs);
            symbols.retain(|symbol| symbol.len > 0);
        }
    }

    fn merge_few(&mut self, symbols: &mut Vec<Symbol>, pairs: impl Fn(&Symbol, &Symbol) -> Merge) {
        let merges = &mut self.few;
        merges.clear();
        merges.extend(symbols.windows(2).map(|pair| pairs(&pair[0], &pair[1])));
        loop {
            let ranked = merges
                .iter()
                .enumerate()
                .filter_map(|(left, merge)| merge.map(|(rank, id)| (rank, left, id)));
            let Some((_, left, id)) = ranked.min() else { return };
            let right = symbols.remove(left + 1);
            merges.remove(left);
            symbols[left].len += right.len;
            symbols[left].id = id;
            if left > 0 {
                merges[left - 1] = pairs(&symbols[left - 1], &symbols[left]);
            }
            if left < merges.len() {
                merges[left] = pairs(&symbols[left], &symbols[left + 1]);
            }
        }
    }

    fn merge_many(&mut self, symbols: &mut [Symbol], pairs: impl Fn(&Symbol, &Symbol) -> Merge) {
        let Merger { links, queue, .. } = self;
        let count = symbols.len() as u32;
        let entry = |symbols: &[Symbol], left: u32, right: u32| {
            let (l, r) = (&symbols[left as usize], &symbols[right as usize]);
            pairs(l, r).map(|(rank, id)| Reverse(Entry { rank, left, right, len: l.len + r.len, id }))
        };
        links.clear();
        links.extend((0..count).map(|i| Link {
            before: i.checked_sub(1).unwrap_or(NONE),
            after: if i + 1 < count { i + 1 } else { NONE },
        }));
        queue.clear();
        queue.extend((1..count).filter_map(|right| entry(symbols, right - 1, right)));

        while let Some(Reverse(Entry { left, right, len, id, .. })) = queue.pop() {
            let (l, r) = (symbols[left as usize], symbols[right as usize]);
            if l.len == 0 || r.len == 0 || l.len + r.len != len {
                continue;
            }
            symbols[left as usize] = Symbol { len, id, ..l };
            symbols[right as usize].len = 0;
            let Link { after, .. } = links[right as usize];
            links[left as usize].after = after;
            if after != NONE {
                links[after as usize].before = left;
                queue.extend(entry(symbols, left, after));
            }
            let Link { before, .. } = links[left as usize];
            if before != NONE {
                queue.extend(entry(symbols, before, left));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(ids: &[u32]) -> Vec<Symbol> {
        let symbol = |(start, &id)| Symbol { start: start as u32, len: 1, id };
        ids.iter().enumerate().map(symbol).collect()
    }

    /// Pairs of symbols below 50: an arbitrary but fixed set of merges with many ties of rank.
    fn pairs(left: &Symbol, right: &Symbol) -> Merge {
        let mixed = left.id.wrapping_mul(31).wrapping_add(right.id.wrapping_mul(17)) % 101;
        (mixed < 50).then_some((mixed % 7, mixed))
    }

    #[test]
    fn the_soonest_pair_goes_first_and_of_equals_the_leftmost() {
        // 1 1 1 → (1 1) 1, not 1 (1 1).
        let merges = |l: &Symbol, r: &Symbol| (l.id == 1 && r.id == 1).then_some((0, 2));
        let mut merged = symbols(&[1, 1, 1]);
        Merger::default().merge(&mut merged, merges);
        assert_eq!(merged, [Symbol { start: 0, len: 2, id: 2 }, Symbol { start: 2, len: 1, id: 1 }]);
        // 1 2 3 with (2 3) sooner than (1 2).
        let merges = |l: &Symbol, r: &Symbol| match (l.id, r.id) {
            (1, 2) => Some((5, 12)),
            (2, 3) => Some((4, 23)),
            _ => None,
        };
        let mut merged = symbols(&[1, 2, 3]);
        Merger::default().merge(&mut merged, merges);
        assert_eq!(merged.iter().map(|s| s.id).collect::<Vec<_>>(), [1, 23]);
    }

    #[test]
    fn few_and_many_agree() {
        let mut merger = Merger::default();
        let mut state = 1u32;
        for len in 0..200 {
            let ids: Vec<u32> = (0..len)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 16) % 50
                })
                .collect();
            let (mut few, mut many) = (symbols(&ids), symbols(&ids));
            merger.merge_few(&mut few, pairs);
            merger.merge_many(&mut many, pairs);
            many.retain(|symbol| symbol.len > 0);
            assert_eq!(few, many);
        }
    }
}
