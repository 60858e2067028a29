//! How often each basic block of the machine code is executed, and the order in which an average warp executes them.
//!
//! The virtual GPU counts executions of PTX instructions; the compiler has unrolled, moved and dropped some. Each machine
//! instruction still names the line of PTX that it was made of. What the compiler neither copies nor drops without need
//! (accesses, products of matrices, shuffles, barriers) anchors a block: an instruction of PTX that was executed `c` times
//! and stands `m` times in a block was executed by `c / m` passes through it. Where an instruction stands in several
//! blocks, those outside of loops are executed once at most, and the rest belongs to the loop with the most copies: the
//! other ones are its remainder.

use crate::machine::Code;
use crate::pipes::{Cost, Memory, Pipe};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A basic block, with how often a warp executes it on average.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) range: Range<usize>,
    pub(crate) times: f64,
}

/// The basic blocks of a kernel as they are executed.
pub(crate) struct Path {
    pub(crate) blocks: Vec<Block>,
    /// The loops, as ranges of blocks, outer ones first.
    loops: Vec<Range<usize>>,
    /// Executions of anchors in the PTX that the machine code accounts for: 1 if all is clear.
    pub(crate) accounted: f64,
}

impl Path {
    /// From how often a warp executes each line of the PTX, on average.
    pub(crate) fn new(code: &Code, costs: &[Cost], lines: &HashMap<u32, f64>) -> Self {
        let ranges = code.blocks();
        let block_of = |at: usize| ranges.partition_point(|range| range.end <= at);
        let mut loops: Vec<Range<usize>> =
            code.loops().iter().map(|body| block_of(body.start)..block_of(body.end - 1) + 1).collect();
        // Several branches back to one label are one loop.
        loops.sort_by_key(|body| (body.start, std::cmp::Reverse(body.end)));
        loops.dedup_by_key(|body| body.start);
        // The innermost loop around a block.
        let around = |block: usize| {
            loops
                .iter()
                .enumerate()
                .filter(|(_, body)| body.contains(&block))
                .min_by_key(|(_, body)| body.len())
                .map(|(number, _)| number)
        };

        // Copies of each line in each block: of anchors, and of everything.
        let copies = |anchors: bool| {
            let mut copies: BTreeMap<u32, BTreeMap<usize, f64>> = BTreeMap::new();
            for (number, range) in ranges.iter().enumerate() {
                for at in range.clone().filter(|&at| !anchors || is_anchor(&costs[at])) {
                    let Some(line) = code.instructions()[at].line else { continue };
                    *copies.entry(line).or_default().entry(number).or_default() += 1.0;
                }
            }
            copies
        };
        let mut votes: Vec<Vec<f64>> = vec![Vec::new(); ranges.len()];
        for anchors in [true, false] {
            let blank: Vec<bool> = votes.iter().map(Vec::is_empty).collect();
            for (line, places) in copies(anchors) {
                let Some(&count) = lines.get(&line) else { continue };
                for (block, times) in divided(count, &places, &around) {
                    // What everything says counts only where there are no anchors, and then for one pass.
                    match anchors {
                        true => votes[block].push(times),
                        false if blank[block] => {
                            votes[block].push(if around(block).is_none() { count.min(1.0) } else { times });
                        }
                        false => {}
                    }
                }
            }
        }
        let times = |votes: &mut Vec<f64>| {
            votes.sort_by(f64::total_cmp);
            votes.get(votes.len() / 2).copied().unwrap_or(0.0)
        };
        let block = |(range, votes): (&Range<usize>, &mut Vec<f64>)| Block {
            range: range.clone(),
            times: times(votes),
        };
        let mut blocks: Vec<Block> = ranges.iter().zip(&mut votes).map(block).collect();
        // A block about which nothing is known is executed as often as the one in front of it.
        for at in 0..blocks.len() {
            if votes[at].is_empty() && at > 0 && around(at) == around(at - 1) {
                blocks[at].times = blocks[at - 1].times;
            }
        }
        let (mut found, mut expected) = (0.0, 0.0);
        for (line, places) in copies(true) {
            let Some(&count) = lines.get(&line) else { continue };
            expected += count;
            found += places.iter().map(|(&block, copies)| copies * blocks[block].times).sum::<f64>();
        }
        Path { blocks, loops, accounted: if expected > 0.0 { found / expected } else { 1.0 } }
    }

    /// Instructions that a warp issues on average.
    pub(crate) fn instructions(&self) -> f64 {
        self.blocks.iter().map(|block| block.times * block.range.len() as f64).sum()
    }

    /// The blocks in the order of an average warp. Long loops, the outermost ones, go around `share` times as often as they
    /// do.
    pub(crate) fn order(&self, share: f64) -> Vec<usize> {
        let mut walk =
            Walk { path: self, owed: vec![0.0; self.blocks.len() + self.loops.len()], out: vec![] };
        walk.pass(0..self.blocks.len(), None, 1.0, share);
        walk.out
    }

    /// How often the body of a loop is executed.
    fn trips(&self, number: usize) -> f64 {
        let body = &self.loops[number];
        let inner = |block: usize| {
            let inside =
                |other: &Range<usize>| other != body && other.start >= body.start && other.end <= body.end;
            self.loops.iter().any(|other| inside(other) && other.contains(&block))
        };
        let own = body.clone().filter(|&block| !inner(block)).map(|block| self.blocks[block].times);
        own.fold(0.0, f64::max)
    }
}

/// Whether the compiler keeps an instruction as it is: what it copies, it executes less often each time.
fn is_anchor(cost: &Cost) -> bool {
    matches!(cost.memory, Some(Memory::Global { .. } | Memory::Shared | Memory::Lanes))
        || cost.pipe == Pipe::Tensor
}

/// Divides the executions of a line among the blocks in which it has copies: how often each block is executed. `around`
/// gives the loop that a block belongs to.
fn divided(
    count: f64,
    places: &BTreeMap<usize, f64>,
    around: &impl Fn(usize) -> Option<usize>,
) -> Vec<(usize, f64)> {
    // Copies by loop: all that one pass of it executes.
    let mut copies: BTreeMap<Option<usize>, f64> = BTreeMap::new();
    for (&block, number) in places {
        *copies.entry(around(block)).or_default() += number;
    }
    let straight = copies.remove(&None).unwrap_or(0.0);
    let most = copies.values().copied().fold(0.0, f64::max);
    let once = match copies.is_empty() {
        true => (count / straight).min(1.0),
        // A pass before or behind a loop, if there is one.
        false => {
            if straight > 0.0 && count > straight {
                1.0
            } else {
                0.0
            }
        }
    };
    let main = copies.values().filter(|&&number| number >= most).count() as f64;
    let share = (count - straight * once) / (most * main);
    let times = |block: usize| match around(block) {
        None => once,
        Some(body) if copies[&Some(body)] >= most => share,
        Some(_) => 0.0,
    };
    places.keys().map(|&block| (block, times(block))).collect()
}

/// Passes of a loop from which on it is long, and how many are left of it at least.
const LONG: f64 = 16.0;
const FEW: f64 = 4.0;

/// Walks along the blocks; what a block or a loop is owed of a pass adds up until it is a whole one.
struct Walk<'a> {
    path: &'a Path,
    owed: Vec<f64>,
    out: Vec<usize>,
}

impl Walk<'_> {
    /// One pass over a range of blocks: all of them, or the body of a loop, by its number. A warp makes `passes` of them.
    fn pass(&mut self, range: Range<usize>, body: Option<usize>, passes: f64, share: f64) {
        let mut block = range.start;
        while block < range.end {
            let path = self.path;
            let begins =
                |number: &usize| path.loops[*number].start == block && path.loops[*number].end <= range.end;
            let inner = body.map_or(0, |number| number + 1)..path.loops.len();
            if let Some(number) = inner.clone().find(begins) {
                let times = path.trips(number);
                let (trips, share) = match times / passes {
                    long if long >= LONG => ((long * share).max(FEW), 1.0),
                    short => (short, share),
                };
                for _ in 0..self.owed(path.blocks.len() + number, trips) {
                    self.pass(path.loops[number].clone(), Some(number), times, share);
                }
                block = path.loops[number].end;
            } else {
                if self.owed(block, (path.blocks[block].times / passes).min(1.0)) > 0 {
                    self.out.push(block);
                }
                block += 1;
            }
        }
    }

    /// Whole times that it has come to, of a block or a loop.
    fn owed(&mut self, of: usize, times: f64) -> usize {
        self.owed[of] += if times.is_finite() { times } else { 0.0 };
        let whole = (self.owed[of] + 1e-6).floor().max(0.0);
        self.owed[of] -= whole;
        whole as usize
    }
}
