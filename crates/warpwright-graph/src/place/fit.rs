//! Placement by best fit, in several orders.
//!
//! Units of the same size and lifetime length next to others like them form a class, such as the same tensor of each
//! layer of a model. Classes are ordered rather than units, so that an improvement for one layer applies to all.

use super::Unit;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Orders that are tried besides, at most; and how many pairs of units that meet are looked at for that, about.
const MAX_TRIALS: usize = 256;
const PAIRS: usize = 1 << 19;
/// Steps after which it does not matter how long something has been needed.
const FAR: i64 = 16;

/// What comes first: the largest of the first number, then of the second.
type Order = fn(&Unit) -> [Reverse<u128>; 2];

/// Offsets of the units, and the end of the last; the best of several orders. `None` where there are no addresses
/// for them. What ends at `enough` is not made better.
pub(super) fn best(units: &[Unit], enough: u64) -> Option<(Vec<u64>, u64)> {
    let fit = Fit::new(units);
    let classes = fit.classes();
    let orders: [Order; 3] = [
        // Large ones first: small ones go into the gaps.
        |unit| [Reverse(unit.room.into()), Reverse(unit.time())],
        // Those that are in the way of most others first.
        |unit| [Reverse(u128::from(unit.room) * unit.time()), Reverse(unit.room.into())],
        // Those that stay longest first, which then lie together.
        |unit| [Reverse(unit.time()), Reverse(unit.room.into())],
    ];
    let mut found: Option<Found> = None;
    for order in orders {
        let mut classes = classes.clone();
        classes.sort_by_key(|class| order(&units[class[0]]));
        keep(&mut found, fit.place(classes));
        if found.as_ref().is_some_and(|found| found.peak <= enough) {
            break;
        }
    }
    let mut found = found?;
    let trials = (PAIRS / (fit.pairs() + 1)).min(MAX_TRIALS);
    improve(&fit, &mut found, enough, trials);
    Some((found.offsets, found.peak))
}

/// An order of classes, and its result.
struct Found {
    classes: Vec<Vec<usize>>,
    offsets: Vec<u64>,
    peak: u64,
}

/// Keeps the better one; whether that is the new one.
fn keep(found: &mut Option<Found>, other: Option<Found>) -> bool {
    match (&found, other) {
        (Some(known), Some(other)) if other.peak >= known.peak => false,
        (_, Some(other)) => {
            *found = Some(other);
            true
        }
        (_, None) => false,
    }
}

/// Takes one class at a time to another place in the order, and stays with what is no worse. Which class goes where
/// is drawn, the same way each time.
fn improve(fit: &Fit<'_>, found: &mut Found, enough: u64, trials: usize) {
    let mut random = Drawn(0);
    for _ in 0..trials {
        if found.peak <= enough {
            return;
        }
        let mut classes = found.classes.clone();
        let moved = classes.remove(random.below(classes.len()));
        classes.insert(random.below(classes.len() + 1), moved);
        if let Some(other) = fit.place(classes).filter(|other| other.peak <= found.peak) {
            *found = other;
        }
    }
}

/// Numbers that look random: SplitMix64 (Steele, Lea and Flood 2014).
struct Drawn(u64);

impl Drawn {
    /// A number below another one.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ (x >> 31)) * end as u128) >> 64) as usize
    }
}

/// The units, and which of them are needed at once.
struct Fit<'a> {
    units: &'a [Unit],
    meets: Vec<Vec<u32>>,
}

impl<'a> Fit<'a> {
    fn new(units: &'a [Unit]) -> Self {
        let mut meets = vec![Vec::new(); units.len()];
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.sort_by_key(|&i| units[i].begin);
        let mut live: Vec<usize> = Vec::new();
        for i in order {
            live.retain(|&other| units[other].end >= units[i].begin);
            for &other in &live {
                meets[i].push(other as u32);
                meets[other].push(i as u32);
            }
            live.push(i);
        }
        Fit { units, meets }
    }

    fn pairs(&self) -> usize {
        self.meets.iter().map(Vec::len).sum()
    }

    /// The key of a class: size, duration, and those of all units that it overlaps, with their starts.
    fn likeness(&self, i: usize) -> u64 {
        let unit = &self.units[i];
        let mut others: Vec<(i64, u32, u64)> = (self.meets[i].iter())
            .map(|&other| {
                let other = &self.units[other as usize];
                (i64::from(other.begin) - i64::from(unit.begin), other.end - other.begin, other.room)
            })
            // What is there throughout began longer ago in each layer.
            .map(|(begin, time, room)| if begin < -FAR { (-FAR, 0, room) } else { (begin, time, room) })
            .collect();
        others.sort_unstable();
        let mut hasher = DefaultHasher::new();
        (unit.room, unit.end - unit.begin, others).hash(&mut hasher);
        hasher.finish()
    }

    /// The classes of units, each in the order of time.
    fn classes(&self) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(|&i| self.units[i].begin);
        let mut of: HashMap<u64, usize> = HashMap::new();
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for i in order {
            let class = *of.entry(self.likeness(i)).or_insert(classes.len());
            match classes.get_mut(class) {
                Some(class) => class.push(i),
                None => classes.push(vec![i]),
            }
        }
        classes
    }

    /// Each unit in the smallest gap that it fits into between those placed before it, or behind them.
    fn place(&self, classes: Vec<Vec<usize>>) -> Option<Found> {
        let mut offsets: Vec<Option<u64>> = vec![None; self.units.len()];
        let mut beside: Vec<(u64, u64)> = Vec::new();
        let mut peak = 0;
        for &i in classes.iter().flatten() {
            let unit = &self.units[i];
            beside.clear();
            for &other in &self.meets[i] {
                if let Some(offset) = offsets[other as usize] {
                    beside.push((offset, offset.checked_add(self.units[other as usize].room)?));
                }
            }
            beside.sort_unstable();
            let (mut end, mut tightest) = (0u64, None);
            for &(from, to) in &beside {
                let gap = from.saturating_sub(end);
                if gap >= unit.room && tightest.is_none_or(|(least, _)| gap < least) {
                    tightest = Some((gap, end));
                }
                end = end.max(to);
            }
            let offset = tightest.map_or(end, |(_, offset)| offset);
            peak = peak.max(offset.checked_add(unit.bytes)?);
            offsets[i] = Some(offset);
        }
        Some(Found { classes, offsets: offsets.into_iter().map(Option::unwrap_or_default).collect(), peak })
    }
}
