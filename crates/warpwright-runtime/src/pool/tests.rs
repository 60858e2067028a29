//! The pool against a model that keeps the whole history of every block.

use super::*;
use std::collections::BTreeMap;

/// Numbers that look random: a generator by Marsaglia (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A block, with everything that ever happened to it in its present life.
#[derive(Clone, Debug)]
struct Life {
    bytes: u64,
    home: u64,
    /// The operations that used it: stream and ticket.
    uses: Vec<Point>,
    /// When it was given back, counted over all blocks.
    given_back: u64,
}

/// A device without memory: tickets are issued in one order and complete in that order.
#[derive(Default)]
struct Model {
    issued: u64,
    completed: u64,
    /// The last ticket of each stream.
    tails: BTreeMap<u64, u64>,
    live: BTreeMap<u32, Life>,
    cached: BTreeMap<u32, Life>,
    expected: PoolStatistics,
    blocks: u32,
    given_back: u64,
}

impl Model {
    fn issue(&mut self, stream: u64) -> Point {
        self.issued += 1;
        self.tails.insert(stream, self.issued);
        Point { stream, ticket: self.issued }
    }

    /// Whether what `stream` does next comes after everything that used the block.
    fn is_safe(&self, life: &Life, stream: u64) -> bool {
        life.uses.iter().all(|point| point.stream == stream || point.ticket <= self.completed)
    }

    /// The end of everything a stream was asked for.
    fn point(&self, stream: u64) -> Point {
        Point { stream, ticket: self.tails.get(&stream).copied().unwrap_or(0) }
    }

    /// Whether the pool can know that it is safe: it looks at the ends of streams, not at single uses.
    fn is_known_safe(&self, ends: &[Point], stream: u64) -> bool {
        ends.iter().all(|point| point.stream == stream || point.ticket <= self.completed)
    }
}

fn simulate(seed: u64, threshold: u64) {
    let mut random = Random(seed);
    let mut model = Model::default();
    let mut pool: Pool<u32> = Pool::new(threshold);
    // What the pool was told when a block was given back.
    let mut ends: BTreeMap<u32, Vec<Point>> = BTreeMap::new();
    for _ in 0..400 {
        let stream = random.below(3);
        let any = |random: &mut Random, blocks: &BTreeMap<u32, Life>| {
            let index = random.below(blocks.len().max(1) as u64) as usize;
            blocks.keys().nth(index).copied()
        };
        match random.below(10) {
            // A stream allocates.
            0..=3 => {
                let bytes = [0, 1, 64, 65][random.below(4) as usize];
                let passed = |point: Point| point.ticket <= model.completed;
                let candidates: Vec<u32> = model
                    .cached
                    .iter()
                    .filter(|(block, life)| life.bytes == bytes && model.is_known_safe(&ends[block], stream))
                    .map(|(&block, _)| block)
                    .collect();
                let block = match pool.take(bytes, stream, passed) {
                    Some(block) => {
                        let life = model.cached.remove(&block).expect("it was cached");
                        assert_eq!(life.bytes, bytes, "sizes are exact");
                        assert!(model.is_safe(&life, stream), "{block} may still be used: {life:?}");
                        // The last of the stream's own, or else of all.
                        let rank = |life: &Life| (life.home == stream, life.given_back);
                        let better =
                            |&other: &u32| other != block && rank(&model.cached[&other]) > rank(&life);
                        assert!(!candidates.iter().any(better), "a block that was used later fits too");
                        model.expected.cached -= 1;
                        model.expected.cached_bytes -= bytes;
                        model.expected.reused += 1;
                        block
                    }
                    None => {
                        assert_eq!(candidates, [], "a block fits");
                        pool.allocated(bytes);
                        model.blocks += 1;
                        model.blocks
                    }
                };
                model.live.insert(block, Life { bytes, home: stream, uses: Vec::new(), given_back: 0 });
                let expected = &mut model.expected;
                expected.allocations += 1;
                expected.live += 1;
                expected.live_bytes += bytes;
                expected.peak_bytes = expected.peak_bytes.max(expected.live_bytes);
            }
            // An operation of a stream uses a block.
            4..=5 => {
                let point = model.issue(stream);
                if let Some(block) = any(&mut random, &model.live)
                    && let Some(life) = model.live.get_mut(&block)
                {
                    life.uses.push(point);
                }
            }
            // A block is given back.
            6..=7 => {
                let Some(block) = any(&mut random, &model.live) else { continue };
                let mut life = model.live.remove(&block).expect("it lives");
                let others: Vec<Point> = (0..3)
                    .filter(|&other| other != life.home && life.uses.iter().any(|p| p.stream == other))
                    .map(|other| model.point(other))
                    .collect();
                let home = model.point(life.home);
                ends.insert(block, [&[home], &others[..]].concat());
                model.given_back += 1;
                life.given_back = model.given_back;
                model.expected.live -= 1;
                model.expected.live_bytes -= life.bytes;
                model.expected.cached += 1;
                model.expected.cached_bytes += life.bytes;
                let bytes = life.bytes;
                model.cached.insert(block, life);
                let out = pool.give(block, bytes, home, others);
                forget(&mut model, out, threshold);
            }
            // The device gets on.
            8 => model.completed += random.below(model.issued - model.completed + 1),
            _ => {
                let keep = random.below(200);
                let out = pool.trim(keep);
                forget(&mut model, out, keep);
            }
        }
        assert_eq!(pool.statistics(), model.expected);
    }
    let out = pool.trim(0);
    forget(&mut model, out, 0);
    assert!(model.cached.is_empty(), "nothing is left");
    assert_eq!(pool.statistics(), model.expected);
}

/// Blocks came out because the pool keeps `keep` bytes: the oldest, and no more than necessary.
fn forget(model: &mut Model, out: Vec<Free<u32>>, keep: u64) {
    for Free { block, .. } in out {
        let excess = model.expected.cached_bytes > keep || keep == 0;
        assert!(excess, "what may be kept is kept");
        let oldest = model.cached.iter().min_by_key(|(_, life)| life.given_back).map(|(&block, _)| block);
        assert_eq!(oldest, Some(block));
        let life = model.cached.remove(&block).expect("it was cached");
        model.expected.cached -= 1;
        model.expected.cached_bytes -= life.bytes;
        model.expected.released += 1;
    }
    assert!(model.expected.cached_bytes <= keep);
}

#[test]
fn blocks_are_used_again_when_nothing_can_use_them_any_more() {
    for seed in 1..400 {
        simulate(seed * 0x9e37_79b9, u64::MAX);
    }
}

#[test]
fn no_more_is_kept_than_the_threshold() {
    for (seed, threshold) in (1..200).zip([0, 1, 64, 130].into_iter().cycle()) {
        simulate(seed * 0x9e37_79b9, threshold);
    }
}

#[test]
fn a_lower_threshold_holds_at_once() {
    let mut pool = Pool::new(100);
    let point = |ticket| Point { stream: 0, ticket };
    let other = Point { stream: 1, ticket: 7 };
    let out = |free: Vec<Free<u32>>| -> Vec<_> {
        free.into_iter().map(|Free { block, home, others, .. }| (block, home, others)).collect()
    };
    for block in 0..3 {
        pool.allocated(30);
        assert_eq!(out(pool.give(block, 30, point(block.into()), vec![other])), []);
    }
    assert_eq!(out(pool.set_threshold(60)), [(0, point(0), vec![other])], "with its last uses");
    pool.allocated(30);
    assert_eq!(out(pool.give(3, 30, point(3), Vec::new())), [(1, point(1), vec![other])]);
}
