//! What speaks against an estimate.

use crate::estimate::{Estimate, Resource, Workload};
use crate::path::Path;
use std::ops::Range;
use warpwright_kernels::tune::DeviceModel;
use warpwright_vm::LineCounters;

/// A reason not to believe an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// The machine code would execute this part of the accesses and products that were counted, which is far from 1.
    Accounted(f64),
    /// The machine code would execute far fewer instructions than the PTX did: of functions that are called, or recursion,
    /// nothing is known.
    Missing {
        /// Instructions of PTX of a warp.
        counted: f64,
        /// Machine instructions of a warp.
        known: f64,
    },
    /// The kernel cannot be faster than a resource by itself: its warps or blocks do different work, and the average does
    /// not stand for them.
    Uneven(Resource),
    /// A warp took this many times as long as the average.
    Longest(f64),
    /// So few blocks of a grid were counted.
    Few(u64),
    /// It does what estimates do not follow.
    Unmodelled(Unmodelled),
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Doubt::Accounted(part) => write!(
                f,
                "the machine code would execute {:.0} % of the accesses and products that were counted",
                part * 100.0
            ),
            Doubt::Missing { counted, known } => write!(
                f,
                "a warp executed {counted:.0} instructions of PTX, and {known:.0} machine instructions of it are known: \
                 functions that are not inlined are left out"
            ),
            Doubt::Uneven(resource) => write!(
                f,
                "the time is less than that of a resource by itself ({}): warps or blocks do different work, and an \
                 average does not stand for them",
                resource.name()
            ),
            Doubt::Longest(times) => write!(
                f,
                "a warp took {times:.1} times the instructions of the average, which does not stand for it: if this is a \
                 sample, a larger one may say more"
            ),
            Doubt::Few(blocks) => write!(f, "a sample of {blocks} block(s) says little about a grid"),
            Doubt::Unmodelled(what) => f.write_str(what.words()),
        }
    }
}

/// How far the machine code and the PTX may differ in the accesses that are executed.
const ACCOUNTED: Range<f64> = 0.9..1.1;

/// Instructions of PTX for each machine instruction, at most.
const FUSED: f64 = 3.0;

/// How many times the average the longest warp takes at most: in a sample of few blocks, and else.
const EVEN: f64 = 1.25;
const UNEVEN: f64 = 4.0;

/// Blocks of a sample that stands for a grid, and of one that says how uneven it is.
const SAMPLE: u64 = 8;
const FEW: u64 = 32;

/// Warps that update a sector at most, on average.
const MEETING: f64 = 64.0;

/// The part of a resource's time by itself that a kernel takes at least.
const FASTEST: f64 = 0.75;

/// What estimates do not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unmodelled {
    /// Atomics of many warps on the same sectors.
    Atomics,
    /// Threads that sleep.
    Sleep,
    /// Local memory beyond the first-level cache.
    Local,
}

impl Unmodelled {
    fn words(self) -> &'static str {
        match self {
            Unmodelled::Atomics => "atomics of many warps meet in the same memory, and wait for each other",
            Unmodelled::Sleep => "threads sleep, which takes time that is not counted",
            Unmodelled::Local => {
                "local memory does not fit into the first-level cache, and what it moves is not counted"
            }
        }
    }
}

impl Estimate {
    /// Why it is not to be believed: empty if nothing speaks against it.
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if !ACCOUNTED.contains(&self.accounted) {
            doubts.push(Doubt::Accounted(self.accounted));
        }
        if self.counted > FUSED * self.instructions {
            doubts.push(Doubt::Missing { counted: self.counted, known: self.instructions });
        }
        let bounds = self.resources.iter().filter(|(resource, _)| *resource != Resource::Latency);
        let uneven = bounds.clone().find(|(_, seconds)| self.kernel < FASTEST * seconds);
        doubts.extend(uneven.map(|&(resource, _)| Doubt::Uneven(resource)));
        let [counted, grid] = self.blocks;
        if counted < SAMPLE.min(grid) {
            doubts.push(Doubt::Few(counted));
        }
        let most = if counted < FEW.min(grid) { EVEN } else { UNEVEN };
        if self.longest > most * self.counted {
            doubts.push(Doubt::Longest(self.longest / self.counted));
        }
        doubts.extend(self.unmodelled.iter().map(|&what| Doubt::Unmodelled(what)));
        doubts
    }
}

/// What the launch does that is not followed.
pub(crate) fn unmodelled(
    work: &Workload<'_>,
    path: &Path,
    device: &DeviceModel,
    resident: u32,
) -> Vec<Unmodelled> {
    let instructions = work.code.instructions();
    let executed = |is: &dyn Fn(&str) -> bool| {
        let mut blocks = path.blocks.iter().filter(|block| block.times > 0.0);
        blocks.any(|block| block.range.clone().any(|at| is(instructions[at].base())))
    };
    let updates = |line: &&LineCounters| matches!(line.opcode, "atom" | "red");
    let sum = |of: &dyn Fn(&LineCounters) -> u64| {
        work.counters.lines.iter().filter(updates).map(of).sum::<u64>() as f64
    };
    // Of a sample, the others may update the same sectors.
    let share = work.blocks as f64 / work.counters.blocks.max(1) as f64;
    let meeting =
        sum(&|line| line.warps) * share > MEETING * sum(&|line| line.fetches.first_written).max(1.0);
    let of_thread = if executed(&|base| matches!(base, "LDL" | "STL")) { work.resources.local } else { 0 };
    let local = f64::from(of_thread) * f64::from(work.threads) * f64::from(resident);
    [
        (meeting, Unmodelled::Atomics),
        (executed(&|base| base == "NANOSLEEP"), Unmodelled::Sleep),
        (local > device.shared as f64, Unmodelled::Local),
    ]
    .into_iter()
    .filter_map(|(is, what)| is.then_some(what))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_speaks_against_an_estimate_is_said() {
        let good = Estimate {
            kernel: 1e-6,
            launch: 1e-6,
            resources: vec![(Resource::Latency, 5e-6), (Resource::Issue, 1.1e-6)],
            floor: 0.0,
            resident: 1,
            waves: 1.0,
            instructions: 100.0,
            dram_bytes: 0.0,
            l2_bytes: 0.0,
            accounted: 1.0,
            counted: 250.0,
            longest: 900.0,
            blocks: [64, 64],
            unmodelled: Vec::new(),
        };
        assert_eq!(good.doubts(), []);
        let merged = Estimate { accounted: 0.5, ..good.clone() };
        assert_eq!(merged.doubts(), [Doubt::Accounted(0.5)]);
        let called = Estimate { counted: 400.0, ..good.clone() };
        assert_eq!(called.doubts(), [Doubt::Missing { counted: 400.0, known: 100.0 }]);
        let long = Estimate { longest: 2000.0, ..good.clone() };
        assert_eq!(long.doubts(), [Doubt::Longest(8.0)]);
        // A sample of a few blocks has to be even, unless they are all.
        for (blocks, longest, doubts) in [
            ([8, 64], 400.0, vec![Doubt::Longest(1.6)]),
            ([8, 64], 300.0, vec![]),
            ([8, 8], 400.0, vec![]),
            ([7, 64], 300.0, vec![Doubt::Few(7)]),
            ([7, 7], 300.0, vec![]),
            ([32, 64], 400.0, vec![]),
        ] {
            assert_eq!(
                Estimate { blocks, longest, ..good.clone() }.doubts(),
                doubts,
                "{blocks:?}, {longest}"
            );
        }
        let sleepy = Estimate { unmodelled: vec![Unmodelled::Sleep], ..good.clone() };
        assert_eq!(sleepy.doubts(), [Doubt::Unmodelled(Unmodelled::Sleep)]);
        let early = Estimate { kernel: 0.5e-6, ..good };
        assert_eq!(early.doubts(), [Doubt::Uneven(Resource::Issue)]);
    }
}
