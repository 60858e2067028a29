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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipes::cost;
    use warpwright_kernels::tune::DeviceModel;

    /// Code as `nvdisasm` prints it. Here a line of it is a label, or a line of the PTX and an instruction.
    fn listing(text: &str) -> Code {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = |line: &str| match line.split_once(' ') {
            None => format!("{line}\n"),
            Some((number, instruction)) => {
                format!("//## File \".nv_debug_ptx_txt\", line {number}\n/*0000*/ {instruction} ;\n")
            }
        };
        Code::read(&lines.map(line).collect::<String>(), None)
    }

    /// The path of a warp that executes lines of the PTX so often.
    fn path(text: &str, lines: &[(u32, f64)]) -> Path {
        let device = DeviceModel::named("A100").expect("it is known");
        let code = listing(text);
        let costs: Vec<Cost> =
            code.instructions().iter().map(|instruction| cost(instruction, &device)).collect();
        Path::new(&code, &costs, &lines.iter().copied().collect())
    }

    fn times(path: &Path) -> Vec<f64> {
        path.blocks.iter().map(|block| block.times).collect()
    }

    /// How often each block stands in an order.
    fn passes(path: &Path, share: f64) -> Vec<usize> {
        let order = path.order(share);
        (0..path.blocks.len()).map(|block| order.iter().filter(|&&other| other == block).count()).collect()
    }

    #[test]
    fn straight_code_is_executed_once() {
        let path = path(
            "1 S2R R0, SR_TID.X\n2 LDG.E R2, [R4.64]\n3 STG.E [R4.64], R2\n4 EXIT",
            &[(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)],
        );
        assert_eq!((times(&path), path.order(1.0)), (vec![1.0], vec![0]));
        assert_eq!((path.instructions(), path.accounted), (4.0, 1.0));
    }

    /// A loop that the compiler has unrolled by four, and the loop of its remainder.
    const UNROLLED: &str = "
        1 S2R R0, SR_TID.X
        2 @P0 BRA `(.L_3)
        .L_1:
        5 LDG.E R2, [R4.64]
        5 LDG.E R6, [R4.64+0x4]
        5 LDG.E R7, [R4.64+0x8]
        5 LDG.E R8, [R4.64+0xc]
        6 IADD3 R9, R9, R2, RZ
        7 @P1 BRA `(.L_1)
        8 @!P2 BRA `(.L_4)
        .L_3:
        5 LDG.E R2, [R4.64]
        7 @P1 BRA `(.L_3)
        .L_4:
        9 STG.E [R4.64], R9
        9 EXIT";

    #[test]
    fn an_unrolled_loop_executes_what_its_copies_do() {
        for count in [100.0, 103.0, 4.0] {
            let path =
                path(UNROLLED, &[(1, 1.0), (2, 1.0), (5, count), (6, count), (7, count), (8, 1.0), (9, 1.0)]);
            // The remainder is counted among the passes of the loop with the most copies.
            assert_eq!(times(&path), [1.0, count / 4.0, 1.0, 0.0, 1.0], "{count} loads");
            assert_eq!(path.accounted, 1.0);
            let whole = (count / 4.0_f64).floor() as usize;
            assert_eq!(passes(&path, 1.0), [1, whole, 1, 0, 1], "{count} loads");
        }
    }

    #[test]
    fn a_copy_in_front_of_a_loop_is_executed_once() {
        let text = "
            1 S2R R0, SR_TID.X
            5 LDG.E R2, [R4.64]
            .L_1:
            6 FFMA R9, R2, R2, R9
            5 LDG.E R2, [R4.64]
            7 @P1 BRA `(.L_1)
            9 STG.E [R4.64], R9
            9 EXIT";
        // The loop executes the rest. What is executed once at most has no copy in front.
        for (count, front, body) in [(10.0, 1.0, 9.0), (2.0, 1.0, 1.0), (1.0, 0.0, 1.0)] {
            let path = path(text, &[(5, count)]);
            assert_eq!(times(&path)[..2], [front, body], "{count} loads");
            assert_eq!(path.accounted, 1.0, "{count} loads");
        }
        // Other accesses say how often the first block is executed if there are as many of them.
        let more = text.replace("1 S2R R0, SR_TID.X", "1 LDG.E R0, [R6.64]\n2 LDG.E R1, [R6.64]");
        let path = path(&more, &[(1, 1.0), (2, 1.0), (5, 1.0), (9, 1.0)]);
        assert_eq!(times(&path), [1.0, 1.0, 1.0]);
    }

    /// A loop of a loop: line 5 is of the outer one, 6 of the inner one, 8 of the outer one behind it.
    const NESTED: &str = "
        1 S2R R0, SR_TID.X
        .L_1:
        5 LDG.E R2, [R4.64]
        .L_2:
        6 LDS R3, [R6]
        7 @P1 BRA `(.L_2)
        8 STG.E [R4.64], R3
        9 @P2 BRA `(.L_1)
        10 STG.E [R4.64], R9
        10 EXIT";

    #[test]
    fn an_inner_loop_goes_around_in_each_pass_of_the_outer_one() {
        let path = path(NESTED, &[(1, 1.0), (5, 3.0), (6, 12.0), (8, 3.0), (10, 1.0)]);
        assert_eq!(times(&path), [1.0, 3.0, 12.0, 3.0, 1.0]);
        let pass = [1, 2, 2, 2, 2, 3];
        assert_eq!(path.order(1.0), [&[0][..], &pass, &pass, &pass, &[4]].concat());
        assert_eq!(path.instructions(), 1.0 + 3.0 + 2.0 * 12.0 + 2.0 * 3.0 + 2.0);
    }

    #[test]
    fn passes_of_an_inner_loop_add_up_to_whole_ones() {
        // Two and a half passes of it on average.
        let path = path(NESTED, &[(5, 4.0), (6, 10.0), (8, 4.0), (10, 1.0)]);
        let inner: Vec<usize> = path
            .order(1.0)
            .split(|&block| block == 3)
            .map(|pass| pass.iter().filter(|&&block| block == 2).count())
            .collect();
        assert_eq!(inner, [2, 3, 2, 3, 0], "and none behind the last pass");
    }

    #[test]
    fn only_long_loops_are_shortened_and_only_the_outermost_of_them() {
        for (outer, inner, share, expected) in [
            // Neither is long.
            (15.0, 15.0, 0.5, [15, 15 * 15]),
            // The outer one is: the inner one goes around in each pass as it does.
            (16.0, 3.0, 0.5, [8, 8 * 3]),
            (40.0, 20.0, 0.5, [20, 20 * 20]),
            // Only the inner one is.
            (3.0, 16.0, 0.5, [3, 3 * 8]),
            (15.0, 100.0, 0.25, [15, 15 * 25]),
            // A few passes are left.
            (1000.0, 2.0, 0.001, [4, 4 * 2]),
            (2.0, 1000.0, 0.0, [2, 2 * 4]),
            (100.0, 100.0, 1.0, [100, 100 * 100]),
        ] {
            let path = path(NESTED, &[(1, 1.0), (5, outer), (6, outer * inner), (8, outer), (10, 1.0)]);
            let [around, inside] = expected;
            assert_eq!(passes(&path, share), [1, around, inside, around, 1], "{outer} × {inner}, {share}");
        }
    }

    /// A block in a loop that half of the passes go around.
    const CONDITIONAL: &str = "
        .L_1:
        5 LDG.E R2, [R4.64]
        6 @P0 BRA `(.L_2)
        7 STG.E [R4.64], R3
        .L_2:
        8 STG.E [R6.64], R2
        9 @P2 BRA `(.L_1)
        10 EXIT";

    #[test]
    fn a_block_that_is_executed_half_of_the_time_is_in_every_second_pass() {
        let path = path(CONDITIONAL, &[(5, 6.0), (7, 3.0), (8, 6.0), (10, 1.0)]);
        assert_eq!(times(&path), [6.0, 3.0, 6.0, 1.0]);
        assert_eq!(path.order(1.0), [0, 2, 0, 1, 2, 0, 2, 0, 1, 2, 0, 2, 0, 1, 2, 3]);
        assert_eq!(path.accounted, 1.0);
    }

    #[test]
    fn a_block_that_few_warps_execute_once_is_not_in_the_order_of_an_average_one() {
        let text = "
            1 LDG.E R2, [R4.64]
            2 @P0 BRA `(.L_1)
            3 STG.E [R4.64], R2
            .L_1:
            4 STG.E [R4.64], R3
            5 EXIT";
        for (part, order) in [(1.0, vec![0, 1, 2]), (0.5, vec![0, 2]), (0.0, vec![0, 2])] {
            let path = path(text, &[(1, 1.0), (3, part), (4, 1.0)]);
            assert_eq!(times(&path), [1.0, part, 1.0]);
            assert_eq!(path.order(1.0), order, "{part}");
            // The sums have its part all the same.
            assert_eq!(path.instructions(), 4.0 + part);
        }
    }

    #[test]
    fn what_the_compiler_moves_decides_only_where_nothing_else_does() {
        // Line 3 is counted once, but its sum has been moved into the loop: the loads there say how often that goes around.
        let text = "
            .L_1:
            3 IADD3 R9, R9, R2, RZ
            5 LDG.E R2, [R4.64]
            6 @P1 BRA `(.L_1)
            7 IADD3 R9, R9, R2, RZ
            .L_2:
            8 IADD3 R9, R9, R2, RZ
            9 @P1 BRA `(.L_2)
            10 EXIT";
        let path = path(text, &[(3, 1.0), (5, 20.0), (7, 30.0), (8, 12.0), (10, 1.0)]);
        // Without anchors a straight block is executed once at most, and a loop as often as its instructions are.
        assert_eq!(times(&path), [20.0, 1.0, 12.0, 1.0]);
    }

    #[test]
    fn executions_that_the_code_does_not_account_for_are_said() {
        // The store of line 9 was executed five times, and stands in straight code once.
        let path = path("1 LDG.E R2, [R4.64]\n9 STG.E [R4.64], R2\n9 EXIT", &[(1, 1.0), (9, 5.0)]);
        assert_eq!(path.accounted, 2.0 / 6.0);
    }
}
