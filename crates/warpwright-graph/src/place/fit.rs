//! Places by best fit, in several orders.

use super::Unit;
use std::cmp::Reverse;

/// Offsets of the units, and the end of the last; the best of several orders. `None` where there are no addresses
/// for them.
pub(super) fn best(units: &[Unit], bound: u64) -> Option<(Vec<u64>, u64)> {
    let time = |unit: &Unit| u128::from(unit.end.saturating_sub(unit.begin)) + 1;
    let orders: [&dyn Fn(&Unit) -> (Reverse<u128>, Reverse<u128>, u32); 4] = [
        // Large ones first: small ones go into the gaps.
        &|unit| (Reverse(unit.room.into()), Reverse(time(unit)), unit.begin),
        // Those that are in the way of most others first.
        &|unit| (Reverse(u128::from(unit.room) * time(unit)), Reverse(unit.room.into()), unit.begin),
        // Those of all times first, which then lie together.
        &|unit| (Reverse(time(unit)), Reverse(unit.room.into()), unit.begin),
        // As a program would ask for them.
        &|unit| (Reverse(u128::from(u32::MAX - unit.begin)), Reverse(unit.room.into()), unit.begin),
    ];
    let mut found: Option<(Vec<u64>, u64)> = None;
    for order in orders {
        let mut indices: Vec<usize> = (0..units.len()).collect();
        indices.sort_by_key(|&i| order(&units[i]));
        let Some((offsets, peak)) = in_order(units, &indices) else { continue };
        if found.as_ref().is_none_or(|&(_, least)| peak < least) {
            found = Some((offsets, peak));
        }
        if found.as_ref().is_some_and(|&(_, least)| least <= bound) {
            break;
        }
    }
    found
}

/// Each unit in the smallest gap that it fits into between those placed before it, or behind them.
fn in_order(units: &[Unit], order: &[usize]) -> Option<(Vec<u64>, u64)> {
    let mut offsets = vec![0u64; units.len()];
    // What is placed, by offset.
    let mut placed: Vec<usize> = Vec::with_capacity(units.len());
    let mut peak = 0;
    for &i in order {
        let unit = &units[i];
        let (mut end, mut tightest) = (0u64, None);
        for &other in &placed {
            let there = &units[other];
            if there.end < unit.begin || unit.end < there.begin {
                continue;
            }
            let gap = offsets[other].saturating_sub(end);
            if gap >= unit.room && tightest.is_none_or(|(least, _)| gap < least) {
                tightest = Some((gap, end));
            }
            end = end.max(offsets[other].checked_add(there.room)?);
        }
        let offset = tightest.map_or(end, |(_, offset)| offset);
        offsets[i] = offset;
        peak = peak.max(offset.checked_add(unit.bytes)?);
        let at = placed.partition_point(|&other| offsets[other] <= offset);
        placed.insert(at, i);
    }
    Some((offsets, peak))
}
