//! A draw from the distribution of logits.

use super::cut::Cut;
use super::philox::philox;
use super::radix::Radix;
use super::rank;
use super::setting::Setting;
use crate::data::floats::{Dtype, FloatBuffers};
use crate::entry::{Domain, Entry, Field};
use std::f32::consts::LOG2_E;
use warpwright_ptx::dsl::*;

/// Draws a token of each row by its logits: of those that are kept, with probabilities in proportion to
/// `exp(logit / temperature)`. `logits` is `rows × n`, row-major; `tokens` has a `u32` for each row.
///
/// Which are kept is decided step by step, each among those that the one before has left, before the temperature
/// has a say (the order of llama.cpp):
///
/// 1. `top_k`: those with the `top_k` largest logits. Of equal logits those with the lower index come first, so
///    that exactly `top_k` are kept. Zero keeps all.
/// 2. `top_p` (nucleus sampling, Holtzman et al. 2019): in the same order, as few as have together at least
///    `top_p` of the sum of `exp(logit)`, and one at least. 1 and more keeps all, as does NaN.
/// 3. `min_p` (Nguyen et al. 2024): those whose `exp(logit)` is at least `min_p` times that of the largest. Zero and
///    less keeps all, as does NaN; more than 1 counts as 1, which keeps the largest and its equals.
///
/// - A temperature of zero or less (or NaN) takes the largest logit.
/// - `-inf` is never drawn, nor is NaN; `+inf` counts as the largest finite number. A row with nothing to
///   draw yields 0.
/// - The random number is a function of the row's seed (`seeds`, `u64`) and step (`steps`, `u32`), both read
///   from device memory: word 0 and 1 of Philox4x32-10 with the seed as its key and the step as its counter.
///
/// One block per row. The last of the `top_k` and of `top_p` is found by counting digits, not by sorting. A weight
/// is `exp((logit − max) / temperature)` in units of 2⁻⁴⁴, an integer: their sums are exact and do not depend on
/// the order of execution, and `top_p` compares such sums, at a temperature of 1, with the product of `top_p` and
/// the whole, exactly. A random fraction of the sum falls to a token in a fixed order, by index modulo
/// `threads` and then by index. A weight is right to `(3 |logit − max| / temperature + 6) · 2⁻²⁴` of itself
/// and 2⁻⁴³; what is below 2⁻⁴⁴ of the most likely is never drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Numbers of a row: up to the square of `threads`, and less than 2²⁰.
    pub n: u32,
    /// Element type of `logits`.
    pub input: Dtype,
    /// The temperature; in a buffer `temperatures`, an `f32` for each row.
    pub temperature: Setting<f32>,
    /// How many tokens are kept, 0 for all; in a buffer `top_ks`, a `u32` for each row.
    pub top_k: Setting<u32>,
    /// Which share of the probability is kept, 1 for all; in a buffer `top_ps`, an `f32` for each row.
    pub top_p: Setting<f32>,
    /// How much less likely than the most likely a token may be, 0 for any; in a buffer `min_ps`, an `f32` for
    /// each row.
    pub min_p: Setting<f32>,
    /// Threads of a block: a power of two.
    pub threads: u32,
}

impl Sample {
    /// Draws from all of `n` tokens in `f32` at a temperature of 1.
    pub fn new(n: u32) -> Self {
        Sample {
            n,
            input: Dtype::F32,
            temperature: Setting::Fixed(1.0),
            top_k: Setting::Fixed(0),
            top_p: Setting::Fixed(1.0),
            min_p: Setting::Fixed(0.0),
            threads: 1024,
        }
    }

    /// Whether `top_p` can leave anything out.
    fn has_top_p(&self) -> bool {
        self.top_p == Setting::Buffer || matches!(self.top_p, Setting::Fixed(top_p) if top_p < 1.0)
    }

    /// Whether `min_p` can leave anything out.
    fn has_min_p(&self) -> bool {
        self.min_p == Setting::Buffer || matches!(self.min_p, Setting::Fixed(min_p) if min_p > 0.0)
    }

    /// The largest `n` that blocks of so many threads take: each thread looks at one of another's numbers, and
    /// the sum of 2²⁰ weights of 2⁴⁴ would not fit 64 bits.
    fn max_n(&self) -> u32 {
        self.threads.saturating_mul(self.threads).min((1 << 20) - 1)
    }
}

impl Kernel for Sample {
    fn entry(&self) -> String {
        let Sample { n, input, threads, .. } = self;
        let top_k = match self.top_k {
            Setting::Fixed(top_k) => top_k.to_string(),
            Setting::Buffer => "each".into(),
        };
        let mut name = format!("sample_n{n}_{input}_temperature_{}_top_{top_k}", self.temperature.tag());
        if self.has_top_p() {
            name += &format!("_top_p_{}", self.top_p.tag());
        }
        if self.has_min_p() {
            name += &format!("_min_p_{}", self.min_p.tag());
        }
        name + &format!("_t{threads}")
    }

    fn args(&self) -> Vec<ArgDesc> {
        let rows = Extent::dim("rows");
        let mut args = vec![ArgDesc::buffer("logits", self.input.ty(), Role::In, rows.times(self.n.into()))];
        if self.temperature == Setting::Buffer {
            args.push(ArgDesc::input::<f32>("temperatures", rows));
        }
        if self.top_k == Setting::Buffer {
            args.push(ArgDesc::input::<u32>("top_ks", rows));
        }
        if self.top_p == Setting::Buffer {
            args.push(ArgDesc::input::<f32>("top_ps", rows));
        }
        if self.min_p == Setting::Buffer {
            args.push(ArgDesc::input::<f32>("min_ps", rows));
        }
        args.push(ArgDesc::input::<u64>("seeds", rows));
        args.push(ArgDesc::input::<u32>("steps", rows));
        args.push(ArgDesc::output::<u32>("tokens", rows));
        args
    }

    fn launch(&self) -> LaunchRule {
        let rule = LaunchRule::new(self.threads).grid(Extent::dim("rows"));
        // Rows are few: registers are worth more than a second block on the multiprocessor.
        LaunchRule { resident_blocks: Some(1), ..rule }
    }

    fn check(&self) -> Result<(), BuildError> {
        let threads = self.threads;
        if !threads.is_power_of_two() || !(32..=1024).contains(&threads) {
            return Err(BuildError::field("threads", threads, "a power of two from 32 to 1024"));
        }
        if !(1..=self.max_n()).contains(&self.n) {
            let rule = format!("from 1 to {}: up to the square of threads, and less than 2^20", self.max_n());
            return Err(BuildError::field("n", self.n, rule));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>) {
        let (n, threads) = (self.n, self.threads);
        let row = k.ctaid();
        let logits = k.floats("logits", self.input).at(row * n);
        let temperature = self.temperature.of(k, "temperatures", row);
        let top_k = match self.top_k {
            Setting::Fixed(top_k) => k.u32(top_k),
            Setting::Buffer => k.ptr::<u32>("top_ks").ld(row),
        };
        let top_p = self.has_top_p().then(|| self.top_p.of(k, "top_ps", row));
        let min_p = self.has_min_p().then(|| self.min_p.of(k, "min_ps", row));
        let (seed, step) = (k.ptr::<u64>("seeds").ld(row), k.ptr::<u32>("steps").ld(row));
        let tokens = k.ptr_mut::<u32>("tokens");

        // Without a temperature, the first of the largest.
        let warm = temperature.gt(0.0);
        let top_k = warm.select(top_k.eq(0).select(n, top_k), 1);
        let per_degree = (k.f32(LOG2_E) / warm.select(temperature, 1.0)).min(f32::MAX);

        let finite = |x: Reg<'k, f32>| x.gt(f32::MAX).select(f32::MAX, x);
        let columns = k.strided(n).unroll(8);
        let max = k.fold(columns, k.f32(f32::MIN), |i, max| max.max(finite(logits.ld(i))));
        let max = k.block_max(max);
        let share = |x: Reg<'k, f32>, per_degree: Reg<'k, f32>| ((finite(x) - max) * per_degree).exp2();
        let units = |share: Reg<'k, f32>| (share * 2f32.powi(44)).to::<u64>();

        let counts = Radix::<u32>::new(k, threads);
        let all = |i| (k.pred(true), rank(logits.ld(i)), k.u32(1));
        let of_top_k = Cut::after(k, top_k.lt(n), counts, n, |_| top_k, all);
        let of_top_p = top_p.map(|top_p| {
            let weights = Radix::<u64>::new(k, threads);
            // In units of 2⁻⁶⁴, exactly where the most likely token alone is not enough.
            let fraction = (top_p.max(0.0) * 2f32.powi(64)).to::<u64>();
            let wanted = |total: Reg<'k, u64>| {
                let rest = (fraction * total).ne(0).select(k.u64(1), 0);
                (fraction.mul_hi(total) + rest).max(1)
            };
            let token = |i| {
                let x = logits.ld(i);
                let (rank, weight) = (rank(x), units(share(x, k.f32(LOG2_E))));
                (rank.ne(0) & of_top_k.keeps(rank, i) & weight.ne(0), rank, weight)
            };
            Cut::after(k, top_p.lt(1.0) & warm, weights, n, wanted, token)
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
        let own = k.fold(columns, k.u64(0), |i, sum| sum + weight(logits.ld(i), i));
        let [up_to, total] = k.block_scan(own);

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
            tokens.st(row, 0);
        });
        k.sync();
        let before = up_to - own;
        k.when(before.le(at) & at.lt(up_to), || {
            owner.st(0, k.tid());
            rest.st(0, at - before);
        });
        k.sync();

        // The block looks at the owner's numbers, one to a thread.
        let (at, i) = (rest.ld(0), owner.ld(0) + k.tid() * threads);
        let x = logits.ld_if(i.lt(n), i);
        let own = i.lt(n).select(weight(x, i), 0);
        let [up_to, _] = k.block_scan(own);
        k.when((up_to - own).le(at) & at.lt(up_to), || tokens.st(row, i));
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "sample",
    doc: "a token of each row, drawn with a temperature from those that top_k, top_p and min_p keep",
    fields: &[
        Field {
            name: "n",
            domain: Domain::int(1, (1 << 20) - 1),
            default: "128256",
            doc: "numbers of a row, up to the square of threads",
        },
        Field { name: "dtype", domain: Domain::DTYPE, default: "f32", doc: "element type of the logits" },
        Field {
            name: "temperature",
            domain: Domain::Float { from: 0.0, to: 100.0 },
            default: "1",
            doc: "what logits are divided by; 0 takes the largest",
        },
        Field {
            name: "top_k",
            domain: Domain::int(0, 1 << 20),
            default: "0",
            doc: "how many tokens are kept; 0 for all",
        },
        Field {
            name: "top_p",
            domain: Domain::Float { from: 0.0, to: 1.0 },
            default: "1",
            doc: "which share of the probability the most likely of them have that are kept; 1 for all",
        },
        Field {
            name: "min_p",
            domain: Domain::Float { from: 0.0, to: 1.0 },
            default: "0",
            doc: "how likely those that are kept are at least, as a share of the most likely",
        },
        Field {
            name: "settings",
            domain: Domain::OneOf(&["fixed", "buffer"]),
            default: "fixed",
            doc: "temperature, top_k, top_p and min_p as they are here, or read for each row",
        },
        Field {
            name: "threads",
            domain: Domain::OneOf(&["32", "64", "128", "256", "512", "1024"]),
            default: "1024",
            doc: "threads of a block",
        },
    ],
    examples: &[
        "n=151936 temperature=0.7 top_k=40",
        "n=128256 dtype=f16 settings=buffer",
        "n=32000 dtype=bf16 temperature=0 threads=512",
        "n=1024 top_k=1 threads=32",
        "n=151936 temperature=0.7 top_k=20 top_p=0.8",
        "n=128256 temperature=0.6 top_p=0.9 dtype=bf16",
        "n=32000 min_p=0.05",
    ],
    make: |config| {
        let buffers = config.text("settings") == "buffer";
        let number = |name| if buffers { Setting::Buffer } else { Setting::Fixed(config.f32(name)) };
        Box::new(Sample {
            n: config.u32("n"),
            input: config.dtype("dtype"),
            temperature: number("temperature"),
            top_k: if buffers { Setting::Buffer } else { Setting::Fixed(config.u32("top_k")) },
            top_p: number("top_p"),
            min_p: number("min_p"),
            threads: config.u32("threads"),
        })
    },
};
