//! The execution order of nodes: any order that the edges allow is legal.

use std::collections::BTreeSet;
use std::ops::Range;
use warpwright_device::{Chooser, Order};

/// A node as far as its turn depends on it.
#[derive(Clone)]
pub(super) struct NodePlace<'a> {
    /// Its dependencies in its graph.
    pub(super) dependencies: &'a [usize],
    /// The nodes of the graphs inside of it, which follow it.
    pub(super) inside: Range<usize>,
    /// Whether those are executed with it, as those of a child graph are; the bodies of a conditional node have turns of
    /// their own.
    pub(super) goes_inside: bool,
}

/// The execution order of a graph's nodes, as indices, chosen from all orders that their edges allow. The same [`Order`]
/// yields the same result for the same nodes.
pub(super) fn turns<'a>(
    places: Range<usize>,
    order: Order,
    node: impl Fn(usize) -> NodePlace<'a>,
) -> Vec<usize> {
    let mut turns = Vec::with_capacity(places.len());
    within(places, order, &mut order.chooser(), &node, &mut turns);
    turns
}

fn within<'a>(
    places: Range<usize>,
    order: Order,
    chooser: &mut Chooser,
    node: &impl Fn(usize) -> NodePlace<'a>,
    turns: &mut Vec<usize>,
) {
    let mut open = vec![0; places.len()];
    let mut behind = vec![Vec::new(); places.len()];
    let mut ready = BTreeSet::new();
    let mut place = places.start;
    while place < places.end {
        let NodePlace { dependencies, inside, .. } = node(place);
        open[place - places.start] = dependencies.len();
        for before in dependencies {
            behind[before - places.start].push(place);
        }
        if dependencies.is_empty() {
            ready.insert(place);
        }
        place = inside.end.max(place + 1);
    }
    loop {
        let next = match order {
            Order::Issue => ready.pop_first(),
            Order::Reverse => ready.pop_last(),
            Order::Random(_) => {
                let chosen = ready.iter().nth(chooser.choose(ready.len(), |_| 0)).copied();
                chosen.and_then(|place| ready.take(&place))
            }
        };
        let Some(place) = next else { return };
        turns.push(place);
        let NodePlace { inside, goes_inside, .. } = node(place);
        if goes_inside && !inside.is_empty() {
            within(inside, order, chooser, node, turns);
        }
        for next in std::mem::take(&mut behind[place - places.start]) {
            let left = &mut open[next - places.start];
            *left -= 1;
            if *left == 0 {
                ready.insert(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fork of three, of which the second is a graph of two that do not depend on one another, and a join.
    fn turns_of(order: Order) -> Vec<usize> {
        let nodes: [(&[usize], Range<usize>); 7] = [
            (&[], 0..0),
            (&[0], 0..0),
            (&[0], 3..5),
            (&[], 0..0),
            (&[], 0..0),
            (&[0], 0..0),
            (&[1, 2, 5], 0..0),
        ];
        let place = |place: usize| NodePlace {
            dependencies: nodes[place].0,
            inside: nodes[place].1.clone(),
            goes_inside: true,
        };
        turns(0..nodes.len(), order, place)
    }

    #[test]
    fn bodies_have_turns_of_their_own() {
        // The second node has a body of two, of which the last depends on the first.
        let nodes: [(&[usize], Range<usize>); 5] =
            [(&[], 0..0), (&[0], 2..4), (&[], 0..0), (&[2], 0..0), (&[1], 0..0)];
        let place = |place: usize| NodePlace {
            dependencies: nodes[place].0,
            inside: nodes[place].1.clone(),
            goes_inside: false,
        };
        for order in [Order::Issue, Order::Reverse, Order::Random(3)] {
            assert_eq!(turns(0..5, order, place), [0, 1, 4]);
            assert_eq!(turns(2..4, order, place), [2, 3]);
        }
    }

    #[test]
    fn edges_and_graphs_inside_hold_in_all_orders() {
        assert_eq!(turns_of(Order::Issue), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(turns_of(Order::Reverse), [0, 5, 2, 4, 3, 1, 6]);
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let turns = turns_of(Order::Random(seed));
            assert_eq!(turns, turns_of(Order::Random(seed)));
            let at = |place| turns.iter().position(|other| *other == place).unwrap();
            assert_eq!((at(0), at(6), turns.len()), (0, 6, 7));
            assert_eq!((at(3).max(at(4)), at(3).min(at(4))), (at(2) + 2, at(2) + 1));
            seen.insert(turns);
        }
        // Three branches in six orders, and two nodes in two.
        assert_eq!(seen.len(), 12);
    }
}
