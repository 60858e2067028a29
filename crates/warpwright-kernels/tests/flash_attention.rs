//! FlashAttention against float64 on the virtual GPU with every check on.
//!
//! Results are held to what the arithmetic allows, each by its own numbers. With `c = scale · log₂e`, for a
//! query, where the maxima are over the keys that it sees:
//!
//! - `A = c · max Σ|q||k|`. Scores begin at minus the reference, which is no larger than `A`, and are added by the
//!   tensor cores in blocks of `G` products, each cut to `δ = ((G + 1)/2ⁿ + 1) · 2⁻²³` of the largest
//!   magnitude: `2A · δ · ⌈d/G⌉`. A reference rises by at least 8, or in one of the four masked tiles, and
//!   is rounded then: `A · 2⁻²³ · (A/4 + 4)`. Rounding `c` and the argument of the exponential adds
//!   `2A · 2⁻²²`. Factors that are rounded
//!   from `f32` by `u` add `1.01 · u · A` each. The sum is `E`.
//! - So weights are off by a factor of `2^±E`, and by `u` for their own rounding, 2⁻²² for the exponential, and
//!   `(A/4 + 4) · 2⁻²²` for being scaled down: `η` in all. Those of half precision are off by 2⁻³² of the weight of
//!   the reference besides.
//! - A mean whose weights are off by `η` each is off by `η/(1 − η) · Σ pⱼ|vⱼ − out|`, and additions of the tensor
//!   cores cut `δ · ⌈n/G⌉ · (Σ pⱼ|vⱼ| + |out|)` off, above and below the fraction.
//! - Where scores are so large that this says nothing, one key still outweighs the others if its score
//!   does by more than `2E`: then the others matter by `2^(sⱼ − s + 2E) · |vⱼ − v|`.
//!
//! Whatever the scores, a mean does not leave the range of its values by more than the additions err.

mod common;

use common::{numbers, rounded, rounding};
use std::f64::consts::LOG2_E;
use warpwright_kernels::{Dtype, FlashAttention, KvLayout, Lengths};
use warpwright_ptx::dsl::{BuildError, Kernel, bf16_bits, f16_bits};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_vm::tensor::{FloatElement, TensorCore};
use warpwright_vm::testing::{KernelTest, TestRun};

/// What the numbers are like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
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

struct Case<'a> {
    kernel: FlashAttention,
    sm: u16,
    /// Queries and keys of each sequence.
    sequences: &'a [(usize, usize)],
    class: Class,
    seed: u64,
}

/// Keys, values or queries of a sequence.
struct Tensor {
    heads: usize,
    d: usize,
    /// `tokens × heads × d`.
    values: Vec<f64>,
}

impl Tensor {
    fn row(&self, token: usize, head: usize) -> &[f64] {
        &self.values[(token * self.heads + head) * self.d..][..self.d]
    }
}

/// The element type of the factors, and what rounding to it does.
fn factors(kernel: &FlashAttention) -> (FloatElement, f64) {
    match kernel.factors {
        Dtype::F16 => (FloatElement::F16, 2f64.powi(-11)),
        _ => (FloatElement::BF16, 2f64.powi(-8)),
    }
}

fn make(case: &Case<'_>, tokens: usize, heads: usize, part: u64) -> Vec<f64> {
    let d = case.kernel.head_dim as usize;
    let factor = factors(&case.kernel).0;
    let memory = if part % 3 == 0 { case.kernel.q } else { case.kernel.kv }.ty();
    let most = if factor == FloatElement::F16 { 65504.0 } else { 1e6 };
    let x = numbers(tokens * heads * d, case.seed * 8 + part);
    let values: Vec<_> = (x.into_iter().enumerate())
        .map(|(i, x)| {
            let (column, token) = (i % d, i / d / heads);
            let is_values = part % 3 == 2;
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
                    let sign = if part % 3 == 0 && column % 2 == 1 { -1.0 } else { 1.0 };
                    let pair = if is_values { x } else { 1.0 + ((i / 2 * 37) % 64) as f64 / 64.0 };
                    sign * pair * if column % 2 == 1 { 1.0 + x / 1024.0 } else { 1.0 }
                }
                Class::Constant => 0.75,
                Class::Outliers => {
                    if column % 32 == 5 {
                        1000.0 * x
                    } else {
                        x
                    }
                }
                Class::Denormal => {
                    let least = if memory == Type::F16 { 2f64.powi(-20) } else { 2f64.powi(-130) };
                    if is_values { x * least } else { x * least }
                }
                Class::Zeros => 0.0,
                Class::Low => match part % 3 {
                    0 => -8.0 + x / 8.0,
                    1 => 8.0 + x / 8.0,
                    _ => x,
                },
                Class::Rising => {
                    let climb = (token as f64 / 7.0) * if token % 2 == 0 { 1.0 } else { -0.5 };
                    match part % 3 {
                        0 => {
                            if column == 0 {
                                8.0
                            } else {
                                x / 8.0
                            }
                        }
                        1 => {
                            if column == 0 {
                                climb
                            } else {
                                x / 8.0
                            }
                        }
                        _ => x,
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

fn take(run: &TestRun, name: &str, ty: Type) -> Vec<f64> {
    match ty {
        Type::F32 => run.output::<f32>(name).into_iter().map(f64::from).collect(),
        _ => common::decode_halves(ty, &run.output::<u16>(name)),
    }
}

/// What the kernel is given, and what it has made of it.
struct Outcome {
    sequences: Vec<[Tensor; 3]>,
    /// Of all tokens, those that no sequence has included.
    out: Vec<f64>,
    lse: Option<Vec<f64>>,
    /// Where the queries of each sequence begin.
    starts: Vec<usize>,
    run: TestRun,
}

fn run(case: &Case<'_>) -> Outcome {
    let kernel = &case.kernel;
    let (d, heads, kv_heads) = (kernel.head_dim as usize, kernel.heads as usize, kernel.kv_heads as usize);
    let (q_type, kv_type) = (kernel.q.ty(), kernel.kv.ty());
    let ragged = kernel.lengths == Lengths::Buffers;
    let sequences: Vec<_> = (case.sequences.iter().zip(0..))
        .map(|(&(q_len, kv_len), i)| {
            let k = make(case, kv_len, kv_heads, 3 * i + 1);
            let v = make(case, kv_len, kv_heads, 3 * i + 2);
            let mut q = make(case, q_len, heads, 3 * i);
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
    let mut test = KernelTest::new(kernel).arch(Arch::sm(case.sm)).seed(case.seed);
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
        KvLayout::Cache { max_seq_len } => {
            let room = max_seq_len as usize;
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
    let run = test.dim("batch", sequences.len() as u64).run();
    let run =
        run.unwrap_or_else(|error| panic!("{} {:?} on sm_{}: {error}", kernel.entry(), case.class, case.sm));
    let out = take(&run, "out", kernel.out.ty());
    let lse = kernel.lse.then(|| take(&run, "lse", Type::F32));
    Outcome { sequences, out, lse, starts, run }
}

/// What a query gives: its result, the bound of its error, and the logarithm of the sum of its weights with its
/// bound.
struct Expected {
    out: Vec<(f64, f64)>,
    lse: (f64, f64),
}

fn expected(
    case: &Case<'_>,
    [q, k, v]: &[Tensor; 3],
    (token, head): (usize, usize),
    lens: (usize, usize),
) -> Expected {
    let kernel = &case.kernel;
    let (q_len, kv_len) = lens;
    let d = kernel.head_dim as usize;
    let kv_head = head / (kernel.heads / kernel.kv_heads) as usize;
    let seen = if kernel.causal { (kv_len + token + 1).saturating_sub(q_len) } else { kv_len };
    let (factor, u) = factors(kernel);
    let [q_rounds, v_rounds] = [kernel.q, kernel.kv].map(|dtype| if dtype == Dtype::F32 { u } else { 0.0 });
    if seen == 0 {
        return Expected { out: vec![(0.0, 0.0); d], lse: (-1e30, 1e24) };
    }
    let c = f64::from(kernel.scale) * LOG2_E;
    let query = q.row(token, head);
    let (mut scores, mut most) = (Vec::new(), 0f64);
    for key in 0..seen {
        let terms = query.iter().zip(k.row(key, kv_head)).map(|(q, k)| q * k);
        scores.push(c * terms.clone().sum::<f64>());
        most = most.max(c * terms.map(f64::abs).sum::<f64>());
    }
    let how = TensorCore::for_arch(Arch::sm(case.sm)).accumulation(factor).expect("a core that exists");
    let block = how.block as f64;
    let cut = ((block + 1.0) / 2f64.powi(how.extra_bits) + 1.0) * 2f64.powi(-23);
    let rises = most / 4.0 + 4.0;
    let off = 2.0 * most * cut * (d as f64 / block).ceil()
        + most * 2f64.powi(-23) * rises
        + 2.0 * most * 2f64.powi(-22)
        + 1.01 * (q_rounds + v_rounds) * most;
    let weight = (off * std::f64::consts::LN_2).exp_m1() + u + (rises + 1.0) * 2f64.powi(-22);

    let top = (0..seen).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("a key");
    let weights: Vec<_> = scores.iter().map(|s| (s - scores[top]).exp2()).collect();
    let total: f64 = weights.iter().sum();
    let vanishing = if factor == FloatElement::F16 { 2f64.powi(-32) } else { 0.0 };
    let additions = cut * (seen as f64 / block + 2.0);
    let out = (0..d).map(|column| {
        let value = |key: usize| v.row(key, kv_head)[column];
        let exact = (0..seen).map(|key| weights[key] * value(key)).sum::<f64>() / total;
        let size = (0..seen).map(|key| weights[key] * value(key).abs()).sum::<f64>() / total;
        let apart = |from: f64, each: &dyn Fn(usize) -> f64| {
            (0..seen).map(|key| each(key) * (value(key) - from).abs()).sum::<f64>()
        };
        let mean = apart(exact, &|key| weight * weights[key] / total + vanishing) / (1.0 - weight).max(0.0);
        let one = apart(value(top), &|key| {
            if key == top { 0.0 } else { (scores[key] - scores[top] + 2.0 * off).min(0.0).exp2() }
        });
        let all = (0..seen).map(|key| (value(key) - exact).abs()).fold(0.0, f64::max);
        let least = 2f64.powi(if factor == FloatElement::F16 { -25 } else { -134 });
        let converted = v_rounds * size + if v_rounds > 0.0 { least } else { 0.0 };
        let slack =
            mean.min(2.0 * one).min(all * (1.0 + weight.min(1.0))) + 2.0 * additions * size + converted;
        let slack = slack + size * 2f64.powi(-22) + 2f64.powi(-140);
        (exact, slack + rounding(kernel.out.ty(), exact.abs() + slack))
    });
    let lse = (scores[top] + total.log2()) / LOG2_E;
    let slack = (off + (weight + additions) * 2.0 + 2f64.powi(-20)) + lse.abs() * 2f64.powi(-22) + 1e-5;
    Expected { out: out.collect(), lse: (lse, slack + seen as f64 * vanishing) }
}

fn check(case: &Case<'_>) {
    let outcome = run(case);
    let kernel = &case.kernel;
    let what = format!("{} {:?} on sm_{}", kernel.entry(), case.class, case.sm);
    let (d, heads) = (kernel.head_dim as usize, kernel.heads as usize);
    let mut written = vec![false; outcome.out.len() / d];
    for (b, &(q_len, kv_len)) in case.sequences.iter().enumerate() {
        let room = match kernel.kv_layout {
            KvLayout::Cache { max_seq_len } => max_seq_len as usize,
            KvLayout::Tokens => usize::MAX,
        };
        let lens = (q_len, kv_len.min(room));
        for token in 0..q_len {
            for head in 0..heads {
                let row = (outcome.starts[b] + token) * heads + head;
                written[row] = true;
                let expected = expected(case, &outcome.sequences[b], (token, head), lens);
                let found = &outcome.out[row * d..][..d];
                for (column, (found, (exact, slack))) in found.iter().zip(expected.out).enumerate() {
                    assert!(
                        (found - exact).abs() <= slack,
                        "{what}: {lens:?}, sequence {b}, token {token}, head {head}, column {column}: {found}, not {exact} (± {slack})"
                    );
                }
                if let Some(lse) = &outcome.lse {
                    let (exact, slack) = expected.lse;
                    assert!(
                        (lse[row] - exact).abs() <= slack,
                        "{what}: {lens:?}, sequence {b}, token {token}, head {head}: lse {}, not {exact} (± {slack})",
                        lse[row]
                    );
                }
            }
        }
    }
    for (row, out) in outcome.out.chunks_exact(d).enumerate() {
        assert!(
            written[row] || out.iter().all(|x| x.is_nan()),
            "{what}: row {row} is no query's, and was written"
        );
    }
    assert_eq!(outcome.run.report.counters.bank_conflicts, 0, "{what}");
}

fn kernel(head_dim: u32, heads: u32, kv_heads: u32) -> FlashAttention {
    FlashAttention { out: Dtype::F32, ..FlashAttention::new(head_dim, heads, kv_heads, 450) }
}

#[test]
fn every_head_dimension() {
    for (head_dim, seed) in [64, 80, 96, 128, 192, 256, 16, 112].into_iter().zip(1..) {
        for (sm, causal) in [(80, true), (80, false), (75, true), (90, false)] {
            let kernel = FlashAttention { causal, ..kernel(head_dim, 2, 1) };
            check(&Case { kernel, sm, sequences: &[(70, 70)], class: Class::Normal, seed });
        }
    }
}

#[test]
fn every_length_beside_a_tile() {
    let lengths = [1, 15, 16, 17, 63, 64, 65, 127, 128, 129];
    for (i, &q_len) in lengths.iter().enumerate() {
        for (j, &kv_len) in [0].iter().chain(&lengths).enumerate() {
            // Chunks at the end of what came before, and queries that see nothing.
            let causal = (i + j) % 2 == 0;
            let kernel = FlashAttention { causal, ..kernel(64, 1, 1) };
            let sm = [80, 75, 90][(i + 2 * j) % 3];
            check(&Case { kernel, sm, sequences: &[(q_len, kv_len)], class: Class::Normal, seed: i as u64 });
        }
    }
}

#[test]
fn groups_of_heads_batches_and_layouts() {
    let sequences = [(33, 70), (0, 5), (5, 0), (1, 129), (130, 140), (20, 7)];
    for (heads, kv_heads, seed) in [(1, 1, 1), (4, 2, 2), (4, 1, 3), (14, 2, 4)] {
        for (kv_layout, lengths) in [
            (KvLayout::Cache { max_seq_len: 131 }, Lengths::Buffers),
            (KvLayout::Tokens, Lengths::Buffers),
            (KvLayout::Cache { max_seq_len: 150 }, Lengths::Scalars),
            (KvLayout::Tokens, Lengths::Scalars),
        ] {
            let kernel = FlashAttention { kv_layout, lengths, lse: true, ..kernel(64, heads, kv_heads) };
            let sequences: &[_] = match lengths {
                Lengths::Buffers if heads < 14 => &sequences,
                Lengths::Buffers => &sequences[..3],
                Lengths::Scalars => &[(17, 66), (17, 66)],
            };
            check(&Case { kernel, sm: 80, sequences, class: Class::Normal, seed });
        }
    }
}

/// Queries, keys and values, results, factors.
fn typed(q: Dtype, kv: Dtype, out: Dtype, factors: Dtype, kernel: FlashAttention) -> FlashAttention {
    FlashAttention { q, kv, out, factors, ..kernel }
}

#[test]
fn every_element_type() {
    use Dtype::*;
    for factors in [F16, Bf16] {
        for (q, kv, out) in [
            (factors, factors, F16),
            (factors, factors, F32),
            (factors, factors, Bf16),
            (F32, factors, F32),
            (factors, F32, F16),
            (F32, F32, F32),
            (F32, F32, Bf16),
        ] {
            for sm in [75, 80, 90] {
                let kernel = typed(q, kv, out, factors, kernel(96, 2, 1));
                if sm >= kernel.launch().min_sm {
                    check(&Case { kernel, sm, sequences: &[(40, 100)], class: Class::Normal, seed: 3 });
                }
            }
        }
    }
}

#[test]
fn numbers_of_every_kind() {
    use Dtype::*;
    for class in [
        Class::Large,
        Class::LargeValues,
        Class::OneHot,
        Class::Cancelling,
        Class::Constant,
        Class::Outliers,
        Class::Denormal,
        Class::Zeros,
        Class::Low,
        Class::Rising,
    ] {
        for (inputs, out, factors) in
            [(F16, F16, F16), (F16, F32, F16), (Bf16, Bf16, Bf16), (F32, F32, Bf16), (F32, F32, F16)]
        {
            // The first query sees a whole number of tiles, and is then one of many after others.
            for (sm, causal, lens) in [(80, false, (34, 197)), (90, true, (70, 197)), (80, true, (9, 430))] {
                let kernel = typed(inputs, inputs, out, factors, kernel(64, 1, 1));
                let kernel = FlashAttention { causal, lse: true, ..kernel };
                check(&Case { kernel, sm, sequences: &[lens], class, seed: 11 });
            }
        }
    }
}

#[test]
fn whatever_the_order_of_warps() {
    for seed in 0..6 {
        for (sm, head_dim) in [(75, 64), (80, 128), (90, 256)] {
            let kernel = kernel(head_dim, 2, 1);
            check(&Case { kernel, sm, sequences: &[(130, 330)], class: Class::Rising, seed });
        }
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let good = kernel(64, 8, 2);
    let refused = |kernel: FlashAttention| match kernel.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(FlashAttention { heads: 7, ..good }), "heads");
    assert_eq!(refused(FlashAttention { heads: 0, ..good }), "heads");
    assert_eq!(refused(FlashAttention { kv_heads: 0, ..good }), "kv_heads");
    assert_eq!(refused(FlashAttention { head_dim: 0, ..good }), "head_dim");
    assert_eq!(refused(FlashAttention { head_dim: 72, ..good }), "head_dim");
    assert_eq!(refused(FlashAttention { head_dim: 272, ..good }), "head_dim");
    assert_eq!(refused(FlashAttention { scale: f32::NAN, ..good }), "scale");
    assert_eq!(refused(FlashAttention { scale: -1.0, ..good }), "scale");
    assert_eq!(refused(FlashAttention { factors: Dtype::F32, ..good }), "factors");
    assert_eq!(refused(FlashAttention { q: Dtype::Bf16, ..good }), "q");
    assert_eq!(refused(FlashAttention { kv: Dtype::F16, q: Dtype::F32, factors: Dtype::Bf16, ..good }), "kv");
    let kv_layout = KvLayout::Cache { max_seq_len: 0 };
    assert_eq!(refused(FlashAttention { kv_layout, ..good }), "max_seq_len");
}
