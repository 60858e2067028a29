//! Places by best fit, in several orders.
//!
//! Units of one size that are needed for as long are a class, such as the same tensor of each layer of a model. An
//! order is one of classes, so that what helps one layer helps all.

use super::Unit;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Steps of the search for a better order, for so few pairs of units that meet; and how many pairs are looked at
/// in all, about.
const MOST_TRIALS: usize = 128;
const PAIRS: usize = 1 << 21;

/// Offsets of the units, and the end of the last; the best of several orders. `None` where there are no addresses
/// for them. No order ends before `bound`.
pub(super) fn best(units: &[Unit], bound: u64) -> Option<(Vec<u64>, u64)> {
    let fit = Fit::new(units);
    let classes = fit.classes();
    let time = |unit: &Unit| u128::from(unit.end - unit.begin) + 1;
    let orders: [&dyn Fn(&Unit) -> (Reverse<u128>, Reverse<u128>); 3] = [
        // Large ones first: small ones go into the gaps.
        &|unit| (Reverse(unit.room.into()), Reverse(time(unit))),
        // Those that are in the way of most others first.
        &|unit| (Reverse(u128::from(unit.room) * time(unit)), Reverse(unit.room.into())),
        // Those that stay longest first, which then lie together.
        &|unit| (Reverse(time(unit)), Reverse(unit.room.into())),
    ];
    let mut found: Option<Found> = None;
    for order in orders {
        let mut classes = classes.clone();
        classes.sort_by_key(|class| order(&units[class[0]]));
        keep(&mut found, fit.place(classes));
        if found.as_ref().is_some_and(|found| found.peak <= bound) {
            break;
        }
    }
    let mut found = found?;
    let trials = (PAIRS / (fit.pairs() + 1)).min(MOST_TRIALS);
    improve(&fit, &mut found, bound, trials);
    Some((found.offsets, found.peak))
}

/// An order of classes, and what it gives.
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

/// Takes the class of what lies on top earlier, as long as that helps.
fn improve(fit: &Fit<'_>, found: &mut Found, bound: u64, mut trials: usize) {
    loop {
        let top = |&unit: &usize| found.offsets[unit] + fit.units[unit].bytes == found.peak;
        let Some(class) = found.classes.iter().position(|class| class.iter().any(top)) else { return };
        let mut better = None;
        for to in 0..class {
            if found.peak <= bound || trials == 0 {
                return;
            }
            trials -= 1;
            let mut classes = found.classes.clone();
            let moved = classes.remove(class);
            classes.insert(to, moved);
            keep(&mut better, fit.place(classes).filter(|other| other.peak < found.peak));
        }
        match better {
            Some(better) => *found = better,
            None => return,
        }
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

    /// The classes of units, each in the order of time.
    fn classes(&self) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(|&i| self.units[i].begin);
        let mut of: HashMap<(u64, u32), usize> = HashMap::new();
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for i in order {
            let Unit { room, begin, end, .. } = self.units[i];
            let class = *of.entry((room, end - begin)).or_insert(classes.len());
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
