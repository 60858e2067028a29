//! What a newcomer writes on the first day: nine short kernels, a file each, held to the loop that a CPU runs, at odd
//! sizes, with every check on. Its tests take each barrier, fence and wait out in turn, which the checks find, or the
//! numbers.

mod binary_search;
mod gemm;
mod gemv;
mod histogram;
mod layer_norm;
mod paged_gather;
mod segmented_scan;
mod stencil;
mod top_8;

use warpwright_dsl::{Arch, Built, K, LaunchRule, build};
use warpwright_qualify::common::{self, LaunchArg, Reported};

/// Targets that do things in different ways.
const TARGETS: [u16; 3] = [75, 80, 90];

/// A kernel of the first day, with what it is given and what a CPU makes of that.
struct Day<'a> {
    body: fn(K<'_>),
    /// Blocks and threads.
    shape: (u32, u32),
    /// The oldest target, as `sm_N`.
    sm: u16,
    given: Vec<LaunchArg<'a>>,
    /// Each output, and how far from it the kernel may be.
    exact: Vec<(Vec<f64>, f64)>,
}

impl Default for Day<'_> {
    fn default() -> Self {
        Day { body: |_| {}, shape: (1, 32), sm: 75, given: Vec::new(), exact: Vec::new() }
    }
}

impl Day<'_> {
    fn targets(&self) -> impl Iterator<Item = u16> {
        TARGETS.into_iter().filter(|&sm| sm >= self.sm)
    }

    fn build(&self, sm: u16) -> Built {
        let built = build("day", &LaunchRule::new(self.shape.1), Arch::sm(sm), self.body);
        built.unwrap_or_else(|errors| panic!("sm_{sm}: {errors}"))
    }

    fn run(&self, sm: u16) -> (Vec<Vec<f64>>, Reported) {
        common::run(Arch::sm(sm), "day", &self.build(sm), (self.shape.0, 1, 1), &self.given)
    }

    /// The first number that is wrong: of which output, where, what it is and what it should be.
    fn wrong(&self, found: &[Vec<f64>]) -> Option<(usize, usize, f64, f64)> {
        assert_eq!(found.len(), self.exact.len());
        found.iter().zip(&self.exact).enumerate().find_map(|(output, (found, (exact, bound)))| {
            assert_eq!(found.len(), exact.len());
            let far = |(found, exact): (&f64, &f64)| (found - exact).abs().partial_cmp(bound);
            let near = |pair| far(pair).is_some_and(|order| order.is_le());
            let at = found.iter().zip(exact).position(|pair| !near(pair))?;
            Some((output, at, found[at], exact[at]))
        })
    }

    #[cfg(test)]
    #[track_caller]
    fn assert_right(&self) {
        for sm in self.targets() {
            assert_eq!(self.wrong(&self.run(sm).0), None, "sm_{sm}");
        }
    }
}

/// All of them, with each wait in its text and whether it is needed.
fn days() -> [(&'static str, Day<'static>, &'static [bool]); 10] {
    [
        ("histogram", histogram::day(191), &[true, true]),
        // The last barrier keeps the scratch for a collective that does not come.
        ("layer norm", layer_norm::day(2, 1000), &[true, false]),
        ("top 8", top_8::day(1, 65), &[true, true]),
        ("gemm", gemm::day(17, 33, 40), &[true, true]),
        ("stencil", stencil::day(777), &[true; 5]),
        ("gemv", gemv::day(3, 33), &[]),
        ("binary search", binary_search::day(33, 70), &[]),
        ("and a stop", binary_search::stopping(33, 70), &[]),
        ("paged gather", paged_gather::day(50), &[]),
        // As above.
        ("segmented scan", segmented_scan::day(1000), &[true, true, true, true, true, false]),
    ]
}

fn main() {
    for (name, day, _) in &days() {
        for sm in day.targets() {
            let module = day.build(sm).module;
            let count: usize = module.entries().map(|kernel| kernel.instructions().count()).sum();
            match day.wrong(&day.run(sm).0) {
                None => println!("{name:15} sm_{sm}  {:4} instructions, right, no findings", count),
                Some((output, at, found, exact)) => {
                    println!(
                        "{name:15} sm_{sm}  output {output}, element {at}: {found}, and should be {exact}"
                    );
                }
            }
        }
    }
}

/// What only a virtual GPU shows.
#[cfg(test)]
mod on_the_vm {
    use super::*;
    use warpwright_ptx::op::Op;

    fn is_wait(op: &Op) -> bool {
        use Op::*;
        matches!(
            op,
            BarSync(_)
                | BarWarpSync(_)
                | Fence(_)
                | CpAsyncWaitGroup(_)
                | CpAsyncWaitAll(_)
                | CpAsyncCommitGroup(_)
        )
    }

    /// For each wait, whether the checks or the numbers show that it is not there.
    fn missed(day: &Day<'_>, sm: u16) -> Vec<bool> {
        let mut missed = Vec::new();
        loop {
            let mut built = day.build(sm);
            if !common::take_out(&mut built, is_wait, missed.len()) {
                return missed;
            }
            let grid = (day.shape.0, 1, 1);
            let (found, report) = common::run_unjudged(Arch::sm(sm), "day", &built, grid, &day.given);
            missed.push(!report.is_clean() || day.wrong(&found).is_some());
        }
    }

    #[test]
    fn every_wait_is_needed() {
        for (name, day, needed) in &days() {
            for sm in day.targets() {
                assert_eq!(missed(day, sm), *needed, "{name} on sm_{sm}");
            }
        }
    }
}
