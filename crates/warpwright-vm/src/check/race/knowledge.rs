//! A thread's knowledge of the past: which accesses of which threads are ordered before it.
//!
//! A block has one clock, and every synchronising event of the block advances it. "Thread `t` is known up to floor
//! `f`" means that all accesses of `t` while the block's clock was below `f` are ordered before. The knowledge about
//! one block is a [`Known`]; [`Floors`] maps blocks to it. Grids have up to millions of blocks, and a counter that
//! all of them increment knows all of them, so the map is a persistent radix tree: copying it is free, and joining
//! two skips the parts that they share.

use super::{Agent, ProxyFence};
use std::sync::Arc;

/// Lanes of a warp, and so the distance of thread numbers between warps.
const LANES: u16 = 32;
/// Warps from this number on are those of asynchronous agents, see [`agent`].
pub(super) const AGENTS: u8 = 32;

/// The agent of that kind of a warp. It acts as a separate thread beside each thread: its accesses are ordered after
/// the thread's instruction, and before an action only if that waited for them.
pub(super) fn agent(warp: u8, agent: Agent) -> u8 {
    warp + AGENTS * (1 + agent as u8)
}

/// A thread's number, agents included: `warp * 32 + lane`.
pub(super) fn thread(warp: u8, lane: u32) -> u16 {
    u16::from(warp) * LANES + lane as u16
}

/// What is known of the threads of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Floor of every thread; agents are not meant.
    pub(super) all: u64,
    /// Floor of every thread of a warp, by warp; short where the rest is not known.
    warps: Vec<u64>,
    /// Floors of single threads, sorted by number.
    threads: Vec<(u16, u64)>,
    /// The part of it that a proxy fence covers, by fence.
    fenced: [Option<Arc<Known>>; ProxyFence::COUNT],
}

impl Known {
    /// The floor that holds for the whole warp.
    pub(super) fn warp(&self, warp: u8) -> u64 {
        let own = self.warps.get(usize::from(warp)).copied().unwrap_or(0);
        if warp < AGENTS { own.max(self.all) } else { own }
    }

    /// The floor of one thread.
    pub(super) fn lane(&self, warp: u8, lane: u32) -> u64 {
        let floor = self.warp(warp);
        match self.threads.binary_search_by_key(&thread(warp, lane), |&(thread, _)| thread) {
            Ok(at) => floor.max(self.threads[at].1),
            Err(_) => floor,
        }
    }

    /// Raises the floor of a warp.
    pub(super) fn raise_warp(&mut self, warp: u8, floor: u64) {
        if self.warp(warp) >= floor {
            return;
        }
        let at = usize::from(warp);
        if self.warps.len() <= at {
            self.warps.resize(at + 1, 0);
        }
        self.warps[at] = floor;
        let first = thread(warp, 0);
        self.threads.retain(|&(thread, known)| !(first..first + LANES).contains(&thread) || known > floor);
    }

    /// Raises the floor of one thread.
    pub(super) fn raise_lane(&mut self, warp: u8, lane: u32, floor: u64) {
        if self.warp(warp) >= floor {
            return;
        }
        let number = thread(warp, lane);
        match self.threads.binary_search_by_key(&number, |&(thread, _)| thread) {
            Ok(at) => self.threads[at].1 = self.threads[at].1.max(floor),
            Err(at) => self.threads.insert(at, (number, floor)),
        }
    }

    /// Raises the floors of lanes of a warp; `whole` is true if these are all lanes of the warp.
    pub(super) fn raise_lanes(&mut self, warp: u8, lanes: u32, whole: bool, floor: u64) {
        if whole {
            self.raise_warp(warp, floor);
            return;
        }
        for lane in super::entry::lanes(lanes) {
            self.raise_lane(warp, lane, floor);
        }
    }

    /// Learns what `other` knows.
    pub(super) fn join(&mut self, other: &Known) {
        self.all = self.all.max(other.all);
        for (warp, &floor) in other.warps.iter().enumerate() {
            self.raise_warp(warp as u8, floor);
        }
        for &(thread, floor) in &other.threads {
            self.raise_lane((thread / LANES) as u8, u32::from(thread % LANES), floor);
        }
        self.join_fenced(&other.fenced);
    }

    fn join_fenced(&mut self, others: &[Option<Arc<Known>>; ProxyFence::COUNT]) {
        for (own, other) in self.fenced.iter_mut().zip(others) {
            match (own, other) {
                (_, None) => {}
                (own @ None, Some(other)) => *own = Some(other.clone()),
                (Some(own), Some(other)) if Arc::ptr_eq(own, other) => {}
                (Some(own), Some(other)) => Arc::make_mut(own).join(other),
            }
        }
    }

    /// The part of it that a proxy fence covers.
    pub(super) fn fenced(&self, fence: ProxyFence) -> Option<&Known> {
        self.fenced[fence as usize].as_deref()
    }

    /// What proxy fences add to what their threads know, if they know this: that it is covered.
    pub(super) fn covered(&self, fences: &[ProxyFence]) -> Known {
        let mut covered = Known { fenced: self.fenced.clone(), ..Known::default() };
        let all = Arc::new(Known { fenced: Default::default(), ..self.clone() });
        for &fence in fences {
            let mut only: [_; ProxyFence::COUNT] = Default::default();
            only[fence as usize] = match fence {
                ProxyFence::MapAcquire => self.fenced[ProxyFence::MapRelease as usize].clone(),
                _ => Some(all.clone()),
            };
            covered.join_fenced(&only);
        }
        covered
    }

    /// Whether `other` knows nothing beyond this.
    fn contains(&self, other: &Known) -> bool {
        self.all >= other.all
            && other.warps.iter().enumerate().all(|(warp, &floor)| self.warp(warp as u8) >= floor)
            && other
                .threads
                .iter()
                .all(|&(thread, floor)| self.lane((thread / LANES) as u8, u32::from(thread % LANES)) >= floor)
            && self.fenced.iter().zip(&other.fenced).all(|(own, other)| match (own, other) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(own), Some(other)) => Arc::ptr_eq(own, other) || own.contains(other),
            })
    }
}

/// Bits of a block's number that one level of the tree resolves.
const RADIX_BITS: u32 = 4;
const RADIX: usize = 1 << RADIX_BITS;

#[derive(Debug)]
enum Node {
    Leaf([Option<Arc<Known>>; RADIX]),
    Inner([Option<Arc<Node>>; RADIX]),
}

/// Knowledge of the threads of every block: a persistent map by block number.
#[derive(Clone, Debug, Default)]
pub(super) struct Floors {
    root: Option<Arc<Node>>,
    /// Levels above the leaves.
    height: u32,
}

fn digit(block: u32, level: u32) -> usize {
    ((block >> (level * RADIX_BITS)) as usize) & (RADIX - 1)
}

impl Floors {
    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Whether both are one value in memory; equal values may still answer no.
    pub(super) fn is_same(&self, other: &Floors) -> bool {
        match (&self.root, &other.root) {
            (None, None) => true,
            (Some(a), Some(b)) => self.height == other.height && Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// What is known of a block.
    pub(super) fn get(&self, block: u32) -> Option<&Arc<Known>> {
        let mut node = self.root.as_deref()?;
        if block.checked_shr((self.height + 1) * RADIX_BITS).is_some_and(|rest| rest != 0) {
            return None;
        }
        let mut level = self.height;
        loop {
            match node {
                Node::Leaf(known) => return known[digit(block, 0)].as_ref(),
                Node::Inner(nodes) => node = nodes[digit(block, level)].as_deref()?,
            }
            level -= 1;
        }
    }

    /// Learns `known` about a block.
    pub(super) fn insert(&mut self, block: u32, known: Known) {
        let mut height = 0;
        while block.checked_shr((height + 1) * RADIX_BITS).is_some_and(|rest| rest != 0) {
            height += 1;
        }
        let mut node = {
            let mut leaf = [const { None }; RADIX];
            leaf[digit(block, 0)] = Some(Arc::new(known));
            Arc::new(Node::Leaf(leaf))
        };
        for level in 1..=height {
            node = above(node, digit(block, level));
        }
        self.join(&Floors { root: Some(node), height });
    }

    /// The same of every block, changed.
    pub(super) fn map(&self, change: &dyn Fn(&Known) -> Known) -> Floors {
        fn mapped(node: &Node, change: &dyn Fn(&Known) -> Known) -> Arc<Node> {
            let of = |known: &Option<Arc<Known>>| known.as_ref().map(|known| Arc::new(change(known)));
            let below = |node: &Option<Arc<Node>>| node.as_ref().map(|node| mapped(node, change));
            Arc::new(match node {
                Node::Leaf(known) => Node::Leaf(std::array::from_fn(|at| of(&known[at]))),
                Node::Inner(nodes) => Node::Inner(std::array::from_fn(|at| below(&nodes[at]))),
            })
        }
        Floors { root: self.root.as_deref().map(|root| mapped(root, change)), height: self.height }
    }

    /// Learns what `other` knows.
    pub(super) fn join(&mut self, other: &Floors) {
        let Some(theirs) = &other.root else { return };
        let Some(ours) = &self.root else {
            *self = other.clone();
            return;
        };
        let height = self.height.max(other.height);
        let ours = raised(ours.clone(), self.height, height);
        let theirs = raised(theirs.clone(), other.height, height);
        *self = Floors { root: Some(joined(&ours, &theirs)), height };
    }
}

fn above(node: Arc<Node>, digit: usize) -> Arc<Node> {
    let mut inner = [const { None }; RADIX];
    inner[digit] = Some(node);
    Arc::new(Node::Inner(inner))
}

/// A tree of more levels with the same content: small numbers are on the left.
fn raised(mut node: Arc<Node>, from: u32, to: u32) -> Arc<Node> {
    for _ in from..to {
        node = above(node, 0);
    }
    node
}

/// Joins slot by slot, and returns whether the result equals `a`, or `b`.
fn joined_slots<T>(
    a: &[Option<Arc<T>>; RADIX],
    b: &[Option<Arc<T>>; RADIX],
    join: impl Fn(&Arc<T>, &Arc<T>) -> Arc<T>,
) -> ([Option<Arc<T>>; RADIX], bool, bool) {
    let (mut is_a, mut is_b) = (true, true);
    let slots = std::array::from_fn(|at| match (&a[at], &b[at]) {
        (None, None) => None,
        (Some(a), None) => {
            is_b = false;
            Some(a.clone())
        }
        (None, Some(b)) => {
            is_a = false;
            Some(b.clone())
        }
        (Some(a), Some(b)) => {
            let both = join(a, b);
            is_a &= Arc::ptr_eq(&both, a);
            is_b &= Arc::ptr_eq(&both, b);
            Some(both)
        }
    });
    (slots, is_a, is_b)
}

fn joined(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    if Arc::ptr_eq(a, b) {
        return a.clone();
    }
    let (node, is_a, is_b) = match (&**a, &**b) {
        (Node::Leaf(x), Node::Leaf(y)) => {
            let (slots, is_a, is_b) = joined_slots(x, y, |x, y| {
                if Arc::ptr_eq(x, y) || x.contains(y) {
                    return x.clone();
                }
                if y.contains(x) {
                    return y.clone();
                }
                let mut both = Known::clone(x);
                both.join(y);
                Arc::new(both)
            });
            (Node::Leaf(slots), is_a, is_b)
        }
        (Node::Inner(x), Node::Inner(y)) => {
            let (slots, is_a, is_b) = joined_slots(x, y, joined);
            (Node::Inner(slots), is_a, is_b)
        }
        // Both have the same height, and so the same kind of node at every level.
        _ => return a.clone(),
    };
    match (is_a, is_b) {
        (true, _) => a.clone(),
        (_, true) => b.clone(),
        _ => Arc::new(node),
    }
}

/// What a thread knows of its own block and of others.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    pub(super) own: Known,
    /// May hold the own block too; `own` is what counts.
    pub(super) foreign: Floors,
}

impl Knowledge {
    /// Learns what `other`, of the same block, knows.
    pub(super) fn join(&mut self, other: &Knowledge) {
        self.own.join(&other.own);
        self.foreign.join(&other.foreign);
    }

    /// Learns what was released to a thread of `block`.
    pub(super) fn acquire(&mut self, block: u32, released: &Floors) {
        if let Some(own) = released.get(block) {
            self.own.join(own);
        }
        self.foreign.join(released);
    }

    /// As it is released to others.
    pub(super) fn into_floors(self, block: u32) -> Floors {
        let mut floors = self.foreign;
        floors.insert(block, self.own);
        floors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_of_far_blocks_live_in_one_map() {
        let blocks = [0, 1, 15, 16, 17, 255, 256, 70_000, u32::MAX];
        let mut map = Floors::default();
        for (at, &block) in blocks.iter().enumerate() {
            let known = Known { all: at as u64 + 1, ..Known::default() };
            map.insert(block, known);
        }
        for (at, &block) in blocks.iter().enumerate() {
            assert_eq!(map.get(block).map(|known| known.all), Some(at as u64 + 1), "block {block}");
        }
        for absent in [2, 18, 4096, 1 << 31] {
            assert!(map.get(absent).is_none(), "block {absent}");
        }
    }

    #[test]
    fn a_join_takes_the_higher_floor_and_keeps_what_contains_the_other() {
        let mut a = Floors::default();
        a.insert(3, Known { all: 5, ..Known::default() });
        let mut b = a.clone();
        b.insert(900, Known { all: 2, ..Known::default() });
        let before = b.clone();
        b.join(&a);
        assert!(b.is_same(&before), "nothing new, nothing copied");
        a.join(&b);
        assert_eq!(a.get(900).map(|known| known.all), Some(2));
        let mut threads = Known::default();
        threads.raise_lane(1, 4, 9);
        a.insert(3, threads);
        assert_eq!(a.get(3).map(|known| (known.all, known.lane(1, 4), known.lane(1, 5))), Some((5, 9, 5)));
    }

    #[test]
    fn a_floor_for_all_threads_says_nothing_of_agents() {
        let known = Known { all: 7, ..Known::default() };
        assert_eq!((known.warp(3), known.warp(agent(3, Agent::Copies))), (7, 0));
    }
}
