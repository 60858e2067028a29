//! Kernels on rows, of sampling and of a step's own state, called by another kernel: they do what they do where they are
//! launched, bit for bit, with the code of another configuration whose numbers are their own.

use std::collections::HashMap;
use warpwright_dsl::{Role, any::AnyKernel, bf16_bits, f16_bits};
use warpwright_kernels::{
    Activation, Advance, Argmax, CacheDtype, Cast, CopyBytes, Dtype, Elementwise, ElementwiseOp, Embedding,
    LayerNorm, Operands, Penalties, Publish, QuantizeInt8, ResizeRows, RmsNorm, Sample, Setting, Softmax,
    WeightFormat,
};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_qualify::common::called::{Calls, alike};
use warpwright_qualify::common::numbers;

/// What is given for arguments that are no random numbers.
type Words = HashMap<&'static str, Vec<u64>>;

/// The kernel with numbers for its arguments.
fn filled<'a>(kernel: &'a dyn AnyKernel, sm: u16, dims: &[(&str, u64)], given: &Words) -> Calls<'a> {
    let known = |name: &str| dims.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
    let mut calls = Calls::new(kernel).arch(Arch::sm(sm));
    for &(name, value) in dims {
        calls = calls.dim(name, value);
    }
    for (arg, seed) in kernel.args().into_iter().zip(1..) {
        if arg.role == Role::Scalar {
            if known(arg.name).is_none() {
                calls = calls.scalar(arg.name, -1.25);
            }
            continue;
        }
        let len = arg.len.evaluate(known).expect("a length") as usize;
        let values = numbers(len, seed);
        let words = given.get(arg.name).map(|words| words.iter().copied().cycle().take(len));
        calls = match (arg.dtype, words) {
            (Type::U64, Some(words)) => calls.input(arg.name, &words.collect::<Vec<_>>()),
            (Type::U32, Some(words)) => {
                calls.input(arg.name, &words.map(|word| word as u32).collect::<Vec<_>>())
            }
            (Type::F32, Some(words)) => {
                calls.input(arg.name, &words.map(|word| word as f32 / 64.0).collect::<Vec<_>>())
            }
            (ty, Some(_)) => panic!("`{}` is of {}", arg.name, ty.name()),
            // What a kernel writes is there already, so that what it leaves alone is the same too.
            (Type::F32, None) => calls.input(arg.name, &values.iter().map(|&x| x as f32).collect::<Vec<_>>()),
            (Type::F16, None) => {
                calls.input(arg.name, &values.iter().map(|&x| f16_bits(x as f32)).collect::<Vec<_>>())
            }
            (Type::BF16, None) => {
                calls.input(arg.name, &values.iter().map(|&x| bf16_bits(x as f32)).collect::<Vec<_>>())
            }
            (Type::U8 | Type::S8, None) => {
                calls.input(arg.name, &values.iter().map(|&x| (x * 127.0) as i8 as u8).collect::<Vec<_>>())
            }
            (Type::U32, None) => calls.input(arg.name, &vec![0u32; len]),
            (ty, None) => panic!("`{}` is of {}", arg.name, ty.name()),
        };
    }
    calls
}

/// Holds the calls of a kernel to its launch, with its own code and with that of another one: the first of several that
/// has it.
#[track_caller]
fn check<T: AnyKernel>(
    sm: u16,
    kernel: &dyn AnyKernel,
    others: impl IntoIterator<Item = T>,
    dims: &[(&str, u64)],
    given: &Words,
) {
    filled(kernel, sm, dims, given).check();
    let other = alike(kernel, Arch::sm(sm), others);
    filled(kernel, sm, dims, given).with_code_of(&other).check();
}

const SMS: [u16; 3] = [75, 80, 90];

fn none() -> Words {
    Words::new()
}

#[test]
fn rows_of_tables() {
    let formats = [
        (WeightFormat::F32, 5),
        (WeightFormat::F32, 12),
        (WeightFormat::F16, 6),
        (WeightFormat::Bf16, 1040),
        (WeightFormat::Q8_0, 96),
        (WeightFormat::Q4_0, 4096),
        (WeightFormat::Q4K, 256),
        (WeightFormat::Q5K, 512),
        (WeightFormat::Q6K, 1280),
    ];
    for (i, (format, d)) in formats.into_iter().enumerate() {
        let out = Dtype::ALL[i % 3];
        let of = |rows, d| Embedding { out, ..Embedding::new(format, rows, d) };
        let ids = Words::from([("ids", vec![0, 16, 17, 3, u64::from(u32::MAX)])]);
        let others = [3, 5].map(|times| of(100_000, d * times));
        check(SMS[i % 3], &of(17, d), others, &[("tokens", 5)], &ids);
    }
}

#[test]
fn rows_of_other_lengths_and_types() {
    for (i, ([from, to], [a, b])) in
        [([100, 112], [4, 12]), ([33, 7], [1, 1]), ([8, 64], [128, 8]), ([112, 100], [20, 12])]
            .into_iter()
            .enumerate()
    {
        let of = |from, to| ResizeRows { dtype: Dtype::ALL[i % 3], ..ResizeRows::new(from, to) };
        check(SMS[i % 3], &of(from, to), [of(a, b)], &[("rows", 9)], &none());
    }
    use CacheDtype::{Bf16, F16, F32, Q8_0};
    for (i, (from, to, columns, gaps, other)) in [
        (F32, F16, 100, [28, 0], 4),
        (F16, F16, 100, [0, 60], 12),
        (Bf16, F32, 33, [1, 2], 5),
        (Q8_0, F16, 128, [0, 64], 64),
        (F32, Q8_0, 64, [320, 32], 128),
    ]
    .into_iter()
    .enumerate()
    {
        let cast = Cast { from_gap: gaps[0], to_gap: gaps[1], ..Cast::new(columns, from, to) };
        check(SMS[i % 3], &cast, [Cast::new(other, from, to)], &[("rows", 7)], &none());
    }
}

#[test]
fn operations_on_elements() {
    for (i, op) in ElementwiseOp::ALL.into_iter().enumerate() {
        let activation = Activation::ALL[i % Activation::ALL.len()];
        for (j, (columns, other)) in [(33, 7), (1540, 4)].into_iter().enumerate() {
            let b = Dtype::ALL[(i + j) % 3];
            let of = |columns| Elementwise { activation, b, ..Elementwise::new(op, columns) };
            check(SMS[i % 3], &of(columns), [of(other)], &[("rows", 5)], &none());
            if !op.is_unary() {
                let of =
                    |columns| Elementwise { operands: Operands::Halves, ..Elementwise::new(op, columns) };
                check(SMS[j % 3], &of(columns), [of(other)], &[("rows", 5)], &none());
            }
        }
    }
    for d in [32, 1056] {
        let of = |d| QuantizeInt8 { input: Dtype::F16, ..QuantizeInt8::new(d) };
        check(80, &of(d), [of(64)], &[("rows", 3)], &none());
    }
    for (bytes, other) in [(1, 7), (16, 5), (4112, 1), (10_007, 1 << 33)] {
        check(75, &CopyBytes::new(bytes), [CopyBytes::new(other)], &[], &none());
    }
}

#[test]
fn norms_have_the_same_sums() {
    let lengths = [1, 3, 64, 100, 768, 1000, 1536, 2048, 2560, 3584, 4096, 5120, 9216];
    for (i, d) in lengths.into_iter().enumerate() {
        let (dtype, output) = (Dtype::ALL[i % 3], Dtype::ALL[(i + 1) % 3]);
        let mut norm = RmsNorm { input: dtype, output: Some(output), ..RmsNorm::new(d, 1e-5) };
        norm.residual = (i % 2 == 0).then_some(Dtype::F32);
        norm.int8 = d % 32 == 0 && i % 3 != 0;
        // Another length with vectors as wide, and as many rounds.
        let others = (1..40).flat_map(|more| [d + 32 * more, d.saturating_sub(32 * more).max(1), d + more]);
        // Some lengths alone have their rounds: then another epsilon.
        let others = others.filter(|&other| other != d).chain([d]);
        let others = others.map(|d| RmsNorm { d, epsilon: 0.0, ..norm });
        let others = others.filter(|other| AnyKernel::check(other).is_ok());
        check(SMS[i % 3], &norm, others, &[("rows", 3)], &none());
    }
    for threads in (32..=1024).step_by(96) {
        let norm = RmsNorm { threads, ..RmsNorm::new(4099, 1e-6) };
        check(80, &norm, [RmsNorm { d: 4101, ..norm }, RmsNorm { d: 8191, ..norm }], &[("rows", 2)], &none());
    }
}

#[test]
fn layer_norms_have_the_same_sums() {
    for (i, (d, threads)) in
        [(1, 32), (33, 96), (768, 192), (1000, 1024), (9216, 512)].into_iter().enumerate()
    {
        let (input, bias) = (Dtype::ALL[i % 3], i % 2 == 0);
        let norm = LayerNorm { input, bias, threads, ..LayerNorm::new(d, 1e-5) };
        let others = (1..40).flat_map(|more| [d + 32 * more, d.saturating_sub(32 * more).max(1), d + more]);
        let others = others.filter(|&other| other != d).chain([d]);
        let others = others.map(|d| LayerNorm { d, epsilon: 1e-6, ..norm });
        check(SMS[i % 3], &norm, others, &[("rows", 3)], &none());
    }
}

#[test]
fn softmaxes_have_the_same_sums() {
    for (i, (d, threads)) in
        [(1, 32), (33, 96), (1000, 128), (1024, 512), (7000, 1024)].into_iter().enumerate()
    {
        let input = Dtype::ALL[i % 3];
        let softmax = Softmax { input, output: input, threads, ..Softmax::new(d) };
        let others = (1..40).flat_map(|more| [d + 32 * more, d.saturating_sub(32 * more).max(1), d + more]);
        let others = others.filter(|&other| other != d).map(|d| Softmax { d, ..softmax });
        check(SMS[i % 3], &softmax, others, &[("rows", 3)], &none());
    }
}

#[test]
fn the_largest_of_rows() {
    let zeros = Words::from([("best", vec![0]), ("arrived", vec![0])]);
    for (i, (n, blocks, other)) in
        [(1, 1, 3), (1000, 1, 8), (4098, 3, 2), (20_000, 7, 16), (999, 64, 1)].into_iter().enumerate()
    {
        for threads in [32, 512] {
            let of = |n, blocks| Argmax { input: Dtype::ALL[i % 3], blocks, threads, ..Argmax::new(n) };
            let others = if blocks == 1 { 1 } else { 2 };
            check(SMS[i % 3], &of(n, blocks), [of(other, others)], &[("rows", 3)], &zeros);
        }
    }
}

#[test]
fn what_came_lately() {
    for (i, window) in [1u32, 33, 64, 300, 1024].into_iter().enumerate() {
        let recent: Vec<_> =
            (0..window as u64).map(|i| [i % 7, i % 50, 1 << 31, 64][(i % 4) as usize]).collect();
        let given = Words::from([
            ("recent", recent),
            ("tokens", vec![5, 9, 300]),
            ("positions", vec![0, window as u64 - 1, 100_000]),
            ("repeats", vec![72, 64, 100]),
        ]);
        let of = |n, window, frequency| Penalties {
            input: Dtype::ALL[i % 3],
            repeat: Setting::Buffer,
            frequency: Setting::Fixed(frequency),
            presence: Setting::Fixed(frequency / 4.0),
            remembers: i % 2 == 0,
            threads: (i == 2).then_some(32),
            ..Penalties::new(n, window)
        };
        check(SMS[i % 3], &of(301, window, 0.5), [of(1, window, 0.0)], &[("rows", 3)], &given);
    }
}

#[test]
fn draws() {
    let given = Words::from([
        ("temperatures", vec![64, 0, 32, 100]),
        ("top_ks", vec![0, 5, 40]),
        ("top_ps", vec![64, 60, 30]),
        ("min_ps", vec![0, 1, 0, 2]),
        ("seeds", vec![1, 1 << 40, 77]),
        ("steps", vec![0, 1, 2, 9]),
    ]);
    for (i, (n, other, few_other)) in
        [(1, 3, 5), (1000, 8, 1024), (4099, 5, 2049), (9216, 40, 8192)].into_iter().enumerate()
    {
        let each = Setting::Buffer;
        let open = Sample { temperature: each, top_k: Setting::Buffer, top_p: each, ..Sample::new(n) };
        let open = Sample { min_p: each, input: Dtype::ALL[i % 3], ..open };
        check(SMS[i % 3], &open, [Sample { n: other, ..open }], &[("rows", 5)], &given);
        let fixed = Sample {
            temperature: Setting::Fixed(0.7),
            top_k: Setting::Fixed(40),
            top_p: Setting::Fixed(0.9),
            min_p: Setting::Fixed(0.001),
            ..Sample::new(n)
        };
        let others = Sample {
            n: other,
            temperature: Setting::Fixed(0.0),
            top_k: Setting::Fixed(1),
            top_p: Setting::Fixed(0.1),
            min_p: Setting::Fixed(0.9),
            ..fixed
        };
        check(SMS[i % 3], &fixed, [others], &[("rows", 5)], &given);
        let few = Sample { columns: 32, threads: 32, ..Sample::new(n) };
        check(80, &few, [Sample { n: few_other, ..few }], &[("rows", 5)], &given);
    }
}

#[test]
fn counters_and_tokens_of_a_step() {
    let counters = Words::from([
        ("counters_0", vec![0, 7, u64::from(u32::MAX)]),
        ("counters_1", vec![3]),
        ("counters_2", vec![9, 8]),
    ]);
    check(80, &Advance::new(3), [Advance::new(3)], &[("rows", 200)], &counters);
    for (ends, other) in [(0, 9), (1, 0), (40, 3)] {
        let given = Words::from([
            ("tokens", vec![11]),
            ("ends", vec![5, 9, 11]),
            ("control", vec![0, 77]),
            ("progress", vec![3, 0, 50]),
        ]);
        check(90, &Publish::new(32, ends), [Publish::new(1, other)], &[], &given);
    }
}
