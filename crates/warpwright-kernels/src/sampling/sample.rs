//! A draw from the distribution of logits.

use super::philox::philox;
use super::radix::{Radix, SHORT, WORD};
use super::rank;
use crate::data::floats::{Dtype, FloatBuffers};
use crate::entry::{Domain, Entry, Field};
use std::f32::consts::LOG2_E;
use warpwright_ptx::dsl::*;

/// Draws a token of each row by its logits: those of the `top_k` largest logits with probabilities in
/// proportion to `exp(logit / temperature)`. `logits` is `rows × n`, row-major; `tokens` has a `u32` for each row.
///
/// - A temperature of zero or less (or NaN) takes the largest logit; a `top_k` of zero takes all. Of equal logits
///   those with the lower index come first, so that exactly `top_k` tokens can be drawn.
/// - `-inf` is never drawn, nor is NaN; `+inf` counts as the largest finite number. A row with nothing to
///   draw yields 0.
/// - The random number is a function of the row's seed (`seeds`, `u64`) and step (`steps`, `u32`), both read
///   from device memory: word 0 and 1 of Philox4x32-10 with the seed as its key and the step as its counter.
///
/// One block per row. The `top_k`-th largest is found by counting digits, not by sorting. A weight is
/// `exp((logit − max) / temperature)` in units of 2⁻⁴⁴, an integer: their sums are exact and do not depend on
/// the order of execution. A random fraction of the sum falls to a token in a fixed order, by index modulo
/// `threads` and then by index. A probability is right to `(3 |logit − max| / temperature + 6) · 2⁻²⁴` of itself
/// and 2⁻⁴³; what is below 2⁻⁴⁴ of the most likely is never drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Numbers of a row: up to the square of `threads`.
    pub n: u32,
    /// Element type of `logits`.
    pub input: Dtype,
    /// The temperature; in a buffer `temperatures`, an `f32` for each row.
    pub temperature: Setting<f32>,
    /// How many tokens can be drawn; in a buffer `top_ks`, a `u32` for each row.
    pub top_k: Setting<u32>,
    /// Threads of a block: a power of two.
    pub threads: u32,
}

/// A number that all rows share, or that each row has in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting<T> {
    /// The number.
    Fixed(T),
    /// In a buffer.
    Buffer,
}

impl Sample {
    /// Draws from all of `n` tokens in `f32` at a temperature of 1.
    pub fn new(n: u32) -> Self {
        let (temperature, top_k) = (Setting::Fixed(1.0), Setting::Fixed(0));
        Sample { n, input: Dtype::F32, temperature, top_k, threads: 1024 }
    }
}

impl Kernel for Sample {
    fn entry(&self) -> String {
        let Sample { n, input, threads, .. } = self;
        let temperature = match self.temperature {
            Setting::Fixed(temperature) => format!("{:08x}", temperature.to_bits()),
            Setting::Buffer => "each".into(),
        };
        let top_k = match self.top_k {
            Setting::Fixed(top_k) => top_k.to_string(),
            Setting::Buffer => "each".into(),
        };
        format!("sample_n{n}_{input}_temperature_{temperature}_top_{top_k}_t{threads}")
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
        args.push(ArgDesc::input::<u64>("seeds", rows));
        args.push(ArgDesc::input::<u32>("steps", rows));
        args.push(ArgDesc::output::<u32>("tokens", rows));
        args
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(self.threads).grid(Extent::dim("rows"))
    }

    fn check(&self) -> Result<(), BuildError> {
        let threads = self.threads;
        if !threads.is_power_of_two() || !(32..=1024).contains(&threads) {
            return Err(BuildError::field("threads", threads, "a power of two from 32 to 1024"));
        }
        if !(1..=threads * threads).contains(&self.n) {
            let rule = format!("from 1 to {}, the square of threads", threads * threads);
            return Err(BuildError::field("n", self.n, rule));
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>) {
        let (n, threads) = (self.n, self.threads);
        let row = k.ctaid();
        let logits = k.floats("logits", self.input).at(row * n);
        let temperature = match self.temperature {
            Setting::Fixed(temperature) => k.f32(temperature),
            Setting::Buffer => k.ptr::<f32>("temperatures").ld(row),
        };
        let top_k = match self.top_k {
            Setting::Fixed(top_k) => k.u32(top_k),
            Setting::Buffer => k.ptr::<u32>("top_ks").ld(row),
        };
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

        // What is drawn from ranks above `least`, or as high with an index up to `last`.
        let radix = Radix::new(k, threads);
        let all = (k.u32(0), k.u32(0));
        let (least, last) = k.if_else(
            top_k.lt(n),
            || {
                let every = |i| (k.pred(true), rank(logits.ld(i)));
                let [least, wanted, there] = radix.select(WORD, n, top_k, every);
                let last = k.if_else(
                    wanted.lt(there),
                    || {
                        let equal = |i| (rank(logits.ld(i)).eq(least), k.u32(MAX_INDEX) - i);
                        let [last, ..] = radix.select(SHORT, n, wanted, equal);
                        k.u32(MAX_INDEX) - last
                    },
                    || k.u32(MAX_INDEX),
                );
                (least, last)
            },
            || all,
        );

        let weight = |x: Reg<'k, f32>, i: Reg<'k, u32>| {
            let rank = rank(x);
            let drawn = rank.ne(0) & (rank.gt(least) | rank.eq(least) & i.le(last));
            let weight = ((finite(x) - max) * per_degree).exp2() * 2f32.powi(44);
            drawn.select(weight.to::<u64>(), 0)
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

/// No index is larger: 2²¹ - 1.
const MAX_INDEX: u32 = (1 << 21) - 1;

pub(crate) const ENTRY: Entry = Entry {
    name: "sample",
    doc: "a token of each row, drawn with a temperature from the top_k largest logits",
    fields: &[
        Field {
            name: "n",
            domain: Domain::int(1, 1 << 20),
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
            doc: "how many tokens can be drawn; 0 for all",
        },
        Field {
            name: "settings",
            domain: Domain::OneOf(&["fixed", "buffer"]),
            default: "fixed",
            doc: "temperature and top_k as they are here, or read for each row",
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
    ],
    make: |config| {
        let buffers = config.text("settings") == "buffer";
        Box::new(Sample {
            n: config.u32("n"),
            input: config.dtype("dtype"),
            temperature: if buffers { Setting::Buffer } else { Setting::Fixed(config.f32("temperature")) },
            top_k: if buffers { Setting::Buffer } else { Setting::Fixed(config.u32("top_k")) },
            threads: config.u32("threads"),
        })
    },
};
