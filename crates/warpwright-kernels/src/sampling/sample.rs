//! A draw from the distribution of logits.

use super::cut::Cut;
use super::logits::Logits;
use super::philox::philox;
use super::radix::Radix;
use super::rank;
use super::setting::Setting;
use crate::data::floats::{Dtype, Floats};
use std::f32::consts::LOG2_E;
use warpwright_dsl::*;

/// Draws a token of each row by its logits, with probabilities in proportion to `exp(logit / temperature)` among the
/// kept tokens. `logits` is `rows × n`, row-major; `tokens` has a `u32` for each row.
///
/// Three filters decide which tokens are kept. Each applies to the tokens that the previous one kept, before the
/// temperature (the order of llama.cpp):
///
/// 1. `top_k`: those with the `top_k` largest logits. Of equal logits those with the lower index come first, so
///    that exactly `top_k` are kept. Zero keeps all.
/// 2. `top_p` (nucleus sampling, Holtzman et al. 2019): in the same order, as few as have together at least
///    `top_p` of the sum of `exp(logit)`, and one at least. 1 and more keeps all, as does NaN.
/// 3. `min_p` (Nguyen et al. 2024): those whose `exp(logit)` is at least `min_p` times that of the largest. Zero and
///    less keeps all, as does NaN; more than 1 counts as 1, which keeps the largest and its equals.
///
/// - A temperature of zero or less (or NaN) takes the largest logit.
/// - `-inf` is never drawn. A row with NaN or `+inf`, or with only `-inf`, has nothing to draw: it yields `u32::MAX`.
/// - The random number is a function of the row's seed (`seeds`, `u64`) and step (`steps`, `u32`), both read
///   from device memory: word 0 and 1 of Philox4x32-10 with the seed as its key and the step as its counter.
///
/// One block per row. The cutoffs of `top_k` and `top_p` are found by counting digits, not by sorting. A weight is
/// `exp((logit − max) / temperature)` in units of 2⁻⁴⁴, an integer: sums of weights are exact and do not depend on the
/// order of execution, and `top_p` compares such sums, at a temperature of 1, exactly with the product of `top_p` and
/// the total. A random fraction of the sum selects a token in a fixed order, by index modulo `columns` and then by
/// index, so that the token does not depend on `threads`. The error of a weight is at most `(3 |logit − max| /
/// temperature + 6) · 2⁻²⁴` of itself plus 2⁻⁴³; a token below 2⁻⁴⁴ of the most likely is never drawn.
#[derive(Clone, Copy, Debug, PartialEq, Config)]
#[config(
    doc = "a token of each row, drawn with a temperature from those that top_k, top_p and min_p keep",
    examples(
        "n=151936 temperature=0.7 top_k=40",
        "n=128256 dtype=f16 temperature=buffer top_k=buffer top_p=buffer min_p=buffer",
        "n=32000 dtype=bf16 temperature=0 threads=512",
        "n=1024 top_k=1 threads=32",
        "n=151936 temperature=0.7 top_k=20 top_p=0.8",
        "n=128256 temperature=0.6 top_p=0.9 dtype=bf16",
        "n=32000 min_p=0.05",
        "n=151936 temperature=buffer top_k=buffer top_p=buffer min_p=buffer threads=256",
        "n=1023 columns=32 threads=32"
    )
)]
pub struct Sample {
    /// Numbers of a row: less than 2²⁰.
    #[field(range = 1..=MAX_N, default = 128256)]
    pub n: u32,
    /// Element type of `logits`.
    #[field(name = "dtype", default = "f32")]
    pub input: Dtype,
    /// The temperature; in a buffer `temperatures`, an `f32` for each row.
    #[field(default = 1.0)]
    pub temperature: Setting<f32>,
    /// How many tokens are kept, 0 for all; in a buffer `top_ks`, a `u32` for each row.
    #[field(default = 0)]
    pub top_k: Setting<u32>,
    /// Which share of the probability is kept, 1 for all; in a buffer `top_ps`, an `f32` for each row.
    #[field(default = 1.0)]
    pub top_p: Setting<f32>,
    /// How much less likely than the most likely a token may be, 0 for any; in a buffer `min_ps`, an `f32` for
    /// each row.
    #[field(default = 0.0)]
    pub min_p: Setting<f32>,
    /// What indices are taken modulo of in the order in which a draw falls: a power of two from `threads` to 1024.
    #[field(domain = POWERS, default = 1024)]
    pub columns: u32,
    /// Threads of a block: a power of two.
    #[field(domain = POWERS, default = 1024)]
    pub threads: u32,
}

/// What threads and columns may be.
const POWERS: Domain = Domain::OneOf(&["32", "64", "128", "256", "512", "1024"]);

/// The arguments of [`Sample`].
#[derive(Args)]
#[args(of = Sample)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct SampleArgs<M: Mode> {
    #[arg(len = rows.times(of.n.into()), dtype = of.input.ty())]
    pub logits: M::AnyIn,
    #[arg(len = rows, when = of.temperature == Setting::Buffer)]
    pub temperatures: Option<M::In<f32>>,
    #[arg(len = rows, when = of.top_k == Setting::Buffer)]
    pub top_ks: Option<M::In<u32>>,
    #[arg(len = rows, when = of.top_p == Setting::Buffer)]
    pub top_ps: Option<M::In<f32>>,
    #[arg(len = rows, when = of.min_p == Setting::Buffer)]
    pub min_ps: Option<M::In<f32>>,
    #[arg(len = rows)]
    pub seeds: M::In<u64>,
    #[arg(len = rows)]
    pub steps: M::In<u32>,
    #[arg(len = rows)]
    pub tokens: M::Out<u32>,
    pub rows: M::Dim,
}

/// Neighbouring columns that a thread has at most.
const NEIGHBOURS: u32 = 4;

impl Sample {
    /// Draws from all of `n` tokens in `f32` at a temperature of 1.
    pub fn new(n: u32) -> Self {
        Sample { n, ..Self::default() }
    }

    /// Whether `top_p` can leave anything out.
    fn has_top_p(&self) -> bool {
        self.top_p == Setting::Buffer || matches!(self.top_p, Setting::Fixed(top_p) if top_p < 1.0)
    }

    /// Whether `min_p` can leave anything out.
    fn has_min_p(&self) -> bool {
        self.min_p == Setting::Buffer || matches!(self.min_p, Setting::Fixed(min_p) if min_p > 0.0)
    }

    /// Neighbouring columns of a thread.
    fn neighbours(&self, threads: u32) -> u32 {
        (self.columns / threads.max(1)).clamp(1, NEIGHBOURS)
    }

    /// Neighbouring logits that a thread loads at once: all that it has of neighbouring columns, or one.
    fn vector(&self, threads: u32) -> u32 {
        let neighbours = self.neighbours(threads);
        if self.n.is_multiple_of(neighbours) { neighbours } else { 1 }
    }
}

/// The largest `n`: the sum of 2²⁰ weights of 2⁴⁴ would not fit 64 bits.
const MAX_N: u32 = (1 << 20) - 1;

impl Kernel for Sample {
    type Args<M: Mode> = SampleArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let rule = LaunchRule::new(self.threads).grid(Extent::dim("rows")).any_warps();
        // Rows are few: registers are worth more than a second block on the multiprocessor.
        LaunchRule { resident_blocks: Some(1), ..rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        let Sample { columns, threads, .. } = *self;
        if columns < threads {
            return Err(BuildError::field("columns", columns, format!("at least the {threads} threads")));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: SampleArgs<Body<'k>>) {
        let row = k.ctaid();
        let (size, threads) = (k.dim(self.n), k.threads());
        let (n, vector) = (size.reg(), self.vector(threads));
        let logits = Logits { k, row: Floats::from(args.logits).row(row, size), n, vector };
        let temperature = self.temperature.of(k, row, args.temperatures);
        let top_k = self.top_k.of(k, row, args.top_ks);
        let top_p = self.has_top_p().then(|| self.top_p.of(k, row, args.top_ps));
        let min_p = self.has_min_p().then(|| self.min_p.of(k, row, args.min_ps));
        let (seed, step) = (args.seeds.ld(row), args.steps.ld(row));
        let tokens = args.tokens;

        // Without a temperature, the first of the largest.
        let warm = temperature.gt(0.0);
        let top_k = warm.select(top_k.eq(0).select(n, top_k), 1);
        let per_degree = (k.f32(LOG2_E) / warm.select(temperature, 1.0)).min(f32::MAX);

        // Where one of them is no number that can be drawn, the largest is infinite, and nothing has a share.
        let sound = |x: Reg<'k, f32>| x.le(f32::MAX).select(x, f32::INFINITY);
        let max = logits.fold(8, k.f32(f32::MIN), |_, x, max| max.max(sound(x)));
        let max = k.block_max(max);
        let share = |x: Reg<'k, f32>, per_degree: Reg<'k, f32>| ((x.min(f32::MAX) - max) * per_degree).exp2();
        let units = |share: Reg<'k, f32>| (share * 2f32.powi(44)).to::<u64>();

        let counts = Radix::<u32>::new(k, threads);
        let all = |_, x| (k.pred(true), rank(x), k.u32(1));
        let of_top_k = Cut::after(k, top_k.lt(n), counts, logits, |_| top_k, all);
        let of_top_p = top_p.map(|top_p| {
            let weights = Radix::<u64>::new(k, threads);
            // In units of 2⁻⁶⁴, exactly where the most likely token alone is not enough.
            let fraction = (top_p.max(0.0) * 2f32.powi(64)).to::<u64>();
            let wanted = |total: Reg<'k, u64>| {
                let rest = (fraction * total).ne(0).select(k.u64(1), 0);
                (fraction.mul_hi(total) + rest).max(1)
            };
            let token = |i, x| {
                let (rank, weight) = (rank(x), units(share(x, k.f32(LOG2_E))));
                (rank.ne(0) & of_top_k.keeps(rank, i) & weight.ne(0), rank, weight)
            };
            Cut::after(k, top_p.lt(1.0) & warm, weights, logits, wanted, token)
        });
        // No share is larger than 1; that of NaN, which is off, is not less than anything.
        let least = min_p.map(|min_p| min_p.gt(0.0).select(min_p.min(1.0), 0.0));

        let weight = |x: Reg<'k, f32>, i: Reg<'k, u32>| {
            let rank = rank(x);
            let mut drawn = rank.ne(0) & of_top_k.keeps(rank, i);
            if let Some(cut) = of_top_p {
                drawn = drawn & cut.keeps(rank, i);
            }
            if let Some(least) = least {
                drawn = drawn & share(x, k.f32(LOG2_E)).ge(least);
            }
            drawn.select(units(share(x, per_degree)), 0)
        };
        let (parts, total) = self.parts(logits, weight);

        let key = [seed.to::<u32>(), (seed >> 32).to::<u32>()];
        let [low, high, ..] = philox(k, [step, k.u32(0), k.u32(0), k.u32(0)], key);
        let random = (high.to::<u64>() << 32) | low.to::<u64>();
        // Uniform below the total.
        let at = random.mul_hi(total);

        // Whose numbers it falls to, and how far into them.
        let (owner, rest) = (k.shared::<u32>(1), k.shared::<u64>(1));
        k.when(k.tid().eq(0), || {
            owner.st(0, 0);
            rest.st(0, 0);
            tokens.st(row, u32::MAX);
        });
        k.sync();
        for ColumnSum { column, own, up_to } in parts {
            let before = up_to - own;
            k.when(before.le(at) & at.lt(up_to), || {
                owner.st(0, column);
                rest.st(0, at - before);
            });
        }
        k.sync();

        // The block looks at the column's numbers, one to a thread, until it has seen them all.
        let (at, column) = (rest.ld(0), owner.ld(0));
        let look = |first: Reg<'k, u32>, before: Reg<'k, u64>| {
            let i = column + (first + k.tid()) * self.columns;
            let x = logits.row.ld_if(i.lt(n), i);
            let own = i.lt(n).select(weight(x, i), 0);
            let [up_to, all] = k.block_scan(own);
            let up_to = before + up_to;
            k.when((up_to - own).le(at) & at.lt(up_to), || tokens.st(row, i));
            before + all
        };
        if size.is_at_most(self.columns * threads) {
            look(k.u32(0), k.u64(0));
        } else {
            k.fold(k.upto(size.div_ceil(self.columns)).step(threads), k.u64(0), look);
        }
    }
}

/// A column, the sum of its weights, and that of all columns up to it.
struct ColumnSum<'k> {
    column: Reg<'k, u32>,
    own: Reg<'k, u64>,
    up_to: Reg<'k, u64>,
}

impl Sample {
    /// The columns of a thread, in their order among all, and the sum of all weights. A block has its columns in groups
    /// of `threads · neighbours`, one group after the other, a thread some neighbours in each.
    #[track_caller]
    fn parts<'k>(
        &self,
        logits: Logits<'k>,
        weight: impl Fn(Reg<'k, f32>, Reg<'k, u32>) -> Reg<'k, u64>,
    ) -> (Vec<ColumnSum<'k>>, Reg<'k, u64>) {
        let Logits { k, row, n, vector } = logits;
        let threads = k.threads();
        let neighbours = self.neighbours(threads);
        if self.columns == threads {
            let own = logits.fold(8, k.u64(0), |i, x, sum| sum + weight(x, i));
            let [up_to, total] = k.block_scan(own);
            return (vec![ColumnSum { column: k.tid(), own, up_to }], total);
        }
        let group = threads * neighbours;
        let (mut parts, mut before) = (Vec::new(), k.u64(0));
        for first in (0..self.columns).step_by(group as usize) {
            let first = k.tid() * neighbours + first;
            let range = k.range(first..n).step(self.columns).unroll(8);
            let sums = k.fold(range, [k.u64(0); NEIGHBOURS as usize], |i, mut sums| {
                // Where they are not loaded together, some of them may be beyond the end.
                let load = |j: u32| match j {
                    0 => row.ld(i),
                    _ => row.ld_if((i + j).lt(n), i + j),
                };
                let values = match vector {
                    1 => (0..neighbours).map(load).collect(),
                    _ => row.ld_vec(i, neighbours),
                };
                for ((j, x), sum) in (0..).zip(values).zip(&mut sums) {
                    let weight = weight(x, i + j);
                    let there = vector > 1 || j == 0;
                    *sum = *sum + if there { weight } else { (i + j).lt(n).select(weight, 0) };
                }
                sums
            });
            let own = sums.iter().take(neighbours as usize).fold(k.u64(0), |own, &sum| own + sum);
            let [up_to, all] = k.block_scan(own);
            let mut up_to = before + (up_to - own);
            for (column, own) in (0..neighbours).zip(sums) {
                up_to = up_to + own;
                parts.push(ColumnSum { column: first + column, own, up_to });
            }
            before = before + all;
        }
        (parts, before)
    }
}
