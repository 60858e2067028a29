//! What the kernel is given: numbers of many kinds, laid out as its configuration says; and what it makes of
//! them.

use crate::common::{numbers, rounded};
use warpwright_dsl::{any::AnyKernel, bf16_bits, f16_bits};
use warpwright_kernels::{Dtype, FlashAttention, KvLayout, Lengths};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_test::KernelTest;
use warpwright_testing::{Ran, RunHere};
use warpwright_vm::Options;

/// What the numbers are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Class {
    Normal,
    /// All up to 10⁶, or to what half precision holds.
    Large,
    /// Values up to 10⁶ with ordinary scores.
    LargeValues,
    /// Every query is one of the keys, times 10³: one key outweighs all others.
    OneHot,
    /// Elements of queries and keys in pairs that cancel.
    Cancelling,
    Constant,
    /// Two channels a thousand times as large as the others.
    Outliers,
    Denormal,
    Zeros,
    /// All scores are some hundreds below zero.
    Low,
    /// Later keys outweigh earlier ones, and the other way around: the reference rises again and again.
    Rising,
}

pub(crate) struct Case<'a> {
    pub(crate) kernel: FlashAttention,
    pub(crate) sm: u16,
    /// Queries and keys of each sequence.
    pub(crate) sequences: &'a [(usize, usize)],
    pub(crate) class: Class,
    pub(crate) seed: u64,
}

/// Keys, values or queries of a sequence.
pub(crate) struct Tensor {
    pub(crate) heads: usize,
    pub(crate) d: usize,
    /// `tokens × heads × d`.
    pub(crate) values: Vec<f64>,
}

impl Tensor {
    pub(crate) fn row(&self, token: usize, head: usize) -> &[f64] {
        &self.values[(token * self.heads + head) * self.d..][..self.d]
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Operand {
    Queries,
    Keys,
    Values,
}

/// The numbers of a part of a sequence, `tokens × heads × head_dim`.
fn make(case: &Case<'_>, (part, sequence): (Operand, u64), tokens: usize, heads: usize) -> Vec<f64> {
    let d = case.kernel.head_dim as usize;
    let memory = if part == Operand::Queries { case.kernel.q } else { case.kernel.kv }.ty();
    let is_values = part == Operand::Values;
    let most = if case.kernel.factors == Dtype::F16 { 65504.0 } else { 1e6 };
    let x = numbers(tokens * heads * d, case.seed * 8 + sequence * 3 + part as u64);
    let values: Vec<_> = (x.into_iter().enumerate())
        .map(|(i, x)| {
            let (column, token) = (i % d, i / d / heads);
            match case.class {
                Class::Normal => 2.0 * x,
                Class::Large => most * x,
                Class::LargeValues => {
                    if is_values {
                        most * x
                    } else {
                        2.0 * x
                    }
                }
                Class::OneHot => {
                    if is_values {
                        most * x
                    } else {
                        30.0 * x
                    }
                }
                Class::Cancelling => {
                    let odd = column % 2 == 1;
                    let sign = if part == Operand::Queries && odd { -1.0 } else { 1.0 };
                    let pair = if is_values { x } else { 1.0 + ((i / 2 * 37) % 64) as f64 / 64.0 };
                    sign * pair * if odd { 1.0 + x / 1024.0 } else { 1.0 }
                }
                Class::Constant => 0.75,
                Class::Outliers => {
                    if column % 32 == 5 {
                        1000.0 * x
                    } else {
                        x
                    }
                }
                Class::Denormal => x * if memory == Type::F16 { 2f64.powi(-20) } else { 2f64.powi(-130) },
                Class::Zeros => 0.0,
                Class::Low => match part {
                    Operand::Queries => -8.0 + x / 8.0,
                    Operand::Keys => 8.0 + x / 8.0,
                    Operand::Values => x,
                },
                Class::Rising => {
                    let climb = (token as f64 / 7.0) * if token % 2 == 0 { 1.0 } else { -0.5 };
                    match part {
                        Operand::Queries => {
                            if column == 0 {
                                8.0
                            } else {
                                x / 8.0
                            }
                        }
                        Operand::Keys => {
                            if column == 0 {
                                climb
                            } else {
                                x / 8.0
                            }
                        }
                        Operand::Values => x,
                    }
                }
            }
        })
        .collect();
    rounded(memory, &values)
}

fn bytes(ty: Type, values: &[f64]) -> Vec<u8> {
    let bytes = |&value: &f64| match ty {
        Type::F16 => f16_bits(value as f32).to_le_bytes().to_vec(),
        Type::BF16 => bf16_bits(value as f32).to_le_bytes().to_vec(),
        _ => (value as f32).to_le_bytes().to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

fn give<'a>(test: KernelTest<'a>, name: &str, ty: Type, values: &[f64]) -> KernelTest<'a> {
    let bytes = bytes(ty, values);
    if ty.bytes() == 2 {
        let halves: Vec<_> =
            bytes.chunks_exact(2).map(|half| u16::from_le_bytes([half[0], half[1]])).collect();
        test.input(name, &halves)
    } else {
        test.input(name, &values.iter().map(|&value| value as f32).collect::<Vec<_>>())
    }
}

fn take(run: &Ran, name: &str, ty: Type) -> Vec<f64> {
    match ty {
        Type::F32 => run.output::<f32>(name).into_iter().map(f64::from).collect(),
        _ => crate::common::decode_halves(ty, &run.output::<u16>(name)),
    }
}

/// What the kernel is given, and what it has made of it.
pub(crate) struct Outcome {
    pub(crate) sequences: Vec<[Tensor; 3]>,
    /// Of all tokens, those that no sequence has included.
    pub(crate) out: Vec<f64>,
    pub(crate) lse: Option<Vec<f64>>,
    /// Where the queries of each sequence begin.
    pub(crate) starts: Vec<usize>,
    pub(crate) run: Ran,
}

pub(crate) fn run(case: &Case<'_>) -> Outcome {
    let kernel = &case.kernel;
    let (d, heads, kv_heads) = (kernel.head_dim as usize, kernel.heads as usize, kernel.kv_heads as usize);
    let (q_type, kv_type) = (kernel.q.ty(), kernel.kv.ty());
    let ragged = kernel.lengths == Lengths::Buffers;
    let sequences: Vec<_> = (case.sequences.iter().zip(0..))
        .map(|(&(q_len, kv_len), i)| {
            let k = make(case, (Operand::Keys, i), kv_len, kv_heads);
            let v = make(case, (Operand::Values, i), kv_len, kv_heads);
            let mut q = make(case, (Operand::Queries, i), q_len, heads);
            if case.class == Class::OneHot && kv_len > 0 {
                for (row, q) in q.chunks_exact_mut(d).enumerate() {
                    let (token, head) = (row / heads, row % heads);
                    let last = if kernel.causal {
                        (kv_len + token + 1).saturating_sub(q_len).max(1)
                    } else {
                        kv_len
                    };
                    let key = (token * 29 + head) % last;
                    let key = &k[(key * kv_heads + head / (heads / kv_heads)) * d..][..d];
                    q.iter_mut().zip(key).for_each(|(q, k)| *q = k * 16.0);
                }
                q = rounded(q_type, &q);
            }
            [(heads, q), (kv_heads, k), (kv_heads, v)].map(|(heads, values)| Tensor { heads, d, values })
        })
        .collect();

    // Tokens that belong to no sequence lie before and after those that do.
    let spare = if ragged { 3 } else { 0 };
    // Checks are for what is small.
    let size: usize = case.sequences.iter().map(|(q_len, kv_len)| q_len * kv_len).sum();
    let options = if size * heads > 1 << 20 { Options::default() } else { Options::checked() };
    let mut test = KernelTest::new(kernel).arch(Arch::sm(case.sm)).options(options).seed(case.seed);
    let place = |part: usize, width: usize| {
        let mut all = vec![f64::NAN; spare * width];
        let mut starts = vec![spare];
        for sequence in &sequences {
            all.extend(&sequence[part].values);
            starts.push(all.len() / width);
        }
        all.extend(vec![f64::NAN; spare * width]);
        (all, starts)
    };
    let (q, starts) = place(0, heads * d);
    let tokens = q.len() / (heads * d);
    let out = vec![f64::NAN; q.len()];
    test = give(test, "q", q_type, &q);
    test = give(test, "out", kernel.out.ty(), &out);
    let kv_lens: Vec<_> = case.sequences.iter().map(|lens| lens.1 as u32).collect();
    let words = |starts: &[usize]| starts.iter().map(|&start| start as u32).collect::<Vec<_>>();
    match kernel.kv_layout {
        KvLayout::Cache => {
            let room = kernel.max_seq_len as usize;
            for (part, name) in [(1, "k"), (2, "v")] {
                let mut cache = vec![f64::NAN; sequences.len() * kv_heads * room * d];
                for (b, sequence) in sequences.iter().enumerate() {
                    for head in 0..kv_heads {
                        for token in 0..case.sequences[b].1.min(room) {
                            let at = ((b * kv_heads + head) * room + token) * d;
                            cache[at..at + d].copy_from_slice(sequence[part].row(token, head));
                        }
                    }
                }
                test = give(test, name, kv_type, &cache);
            }
            if ragged {
                test = test.input("kv_lens", &kv_lens);
            }
        }
        KvLayout::Tokens => {
            for (part, name) in [(1, "k"), (2, "v")] {
                let (all, starts) = place(part, kv_heads * d);
                test = give(test, name, kv_type, &all);
                if ragged && part == 1 {
                    test = test.dim("kv_tokens", (all.len() / (kv_heads * d)) as u64);
                    test = test.input("kv_starts", &words(&starts));
                }
            }
        }
    }
    if kernel.lse {
        test = test.input("lse", &vec![f32::NAN; tokens * heads]);
    }
    if ragged {
        test = test.input("q_starts", &words(&starts)).dim("starts", starts.len() as u64);
        test = test.dim("q_tokens", tokens as u64);
        let longest = case.sequences.iter().map(|lens| lens.0).max().unwrap_or(0);
        test = test.dim("max_q_len", longest as u64);
    } else {
        test = test.dim("q_len", case.sequences[0].0 as u64).dim("kv_len", case.sequences[0].1 as u64);
    }
    let run = test.dim("batch", sequences.len() as u64).run_here();
    let run =
        run.unwrap_or_else(|error| panic!("{} {:?} on sm_{}: {error}", kernel.entry(), case.class, case.sm));
    let out = take(&run, "out", kernel.out.ty());
    let lse = kernel.lse.then(|| take(&run, "lse", Type::F32));
    Outcome { sequences, out, lse, starts, run }
}
