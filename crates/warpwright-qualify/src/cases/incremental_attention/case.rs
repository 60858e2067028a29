//! Decode attention on the virtual GPU, beside a float64 reference.

use crate::common::{decode, encode, numbers, rounded, rounding};
use warpwright_dsl::{Built, any::AnyKernel};
use warpwright_kernels::{CacheDtype, Dtype, IncrementalAttention};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_test::{TestArg, TestLaunch};
use warpwright_testing::Rig;
#[cfg(test)]
use warpwright_vm::Report;
use warpwright_vm::{Arg, LaunchConfig, Options};

/// What inputs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Normal,
    /// Up to 10⁶, or what halves can hold.
    Large,
    /// Products that cancel: every second channel is the negative of the one before, nearly.
    Cancelling,
    Constant,
    OneHot,
    /// A few channels a thousand times as large.
    Outliers,
    Denormal,
    Zero,
}

impl Class {
    pub(crate) const ALL: [Class; 8] = [
        Class::Normal,
        Class::Large,
        Class::Cancelling,
        Class::Constant,
        Class::OneHot,
        Class::Outliers,
        Class::Denormal,
        Class::Zero,
    ];

    /// Rows of `width` elements.
    fn rows(self, count: usize, width: usize, largest: f64, seed: u64) -> Vec<f64> {
        let random = numbers(count, seed);
        let at = |i: usize| (i / width, i % width);
        (0..count)
            .map(|i| match self {
                Class::Normal => random[i] * 2.0,
                Class::Large => random[i] * largest,
                Class::Cancelling if i % 2 == 1 => -random[i - 1] * (1.0 + random[i] * 1e-3),
                Class::Cancelling => random[i],
                Class::Constant => 0.75,
                Class::OneHot => {
                    if at(i).0 % width == at(i).1 {
                        3.0
                    } else {
                        0.0
                    }
                }
                Class::Outliers if at(i).1 % 37 == 5 => random[i] * 1000.0,
                Class::Outliers => random[i],
                Class::Denormal => random[i] * 2f64.powi(-130),
                Class::Zero => 0.0,
            })
            .collect()
    }
}

/// A kernel and what it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) kernel: IncrementalAttention,
    /// The length of each sequence.
    pub(crate) lengths: &'a [u32],
    pub(crate) class: Class,
    /// What values are multiplied by, beside the class: keys, and so scores, are not.
    pub(crate) magnitude: f64,
    pub(crate) seed: u64,
    pub(crate) sm: u16,
    pub(crate) options: Options,
    /// How often it is launched, with the same workspace.
    pub(crate) launches: usize,
}

impl<'a> Case<'a> {
    pub(crate) fn new(kernel: IncrementalAttention, lengths: &'a [u32]) -> Self {
        Case {
            kernel,
            lengths,
            class: Class::Normal,
            magnitude: 1.0,
            seed: 1,
            sm: 80,
            options: Options::checked(),
            launches: 2,
        }
    }

    fn rows(&self) -> usize {
        self.lengths.len() * (self.kernel.kv_heads * self.kernel.max_seq_len) as usize
    }
}

/// One buffer of the cache: what the device holds, and what that means.
struct Cache {
    elements: Vec<u8>,
    scales: Vec<u8>,
    values: Vec<f64>,
}

/// Elements of a row that share a scale.
const BLOCK: usize = 32;
const NAN: u16 = 0x7fff;

impl Cache {
    fn new(case: &Case<'_>, seed: u64, magnitude: f64) -> Self {
        let (head_dim, ty) = (case.kernel.head_dim as usize, case.kernel.cache.ty());
        let largest = if matches!(case.kernel.cache, CacheDtype::F16 | CacheDtype::Q8_0) { 6e4 } else { 1e6 };
        let mut exact = case.class.rows(case.rows() * head_dim, head_dim, largest, seed);
        exact.iter_mut().for_each(|x| *x *= magnitude);
        if case.kernel.cache != CacheDtype::Q8_0 {
            let values = rounded(ty, &exact);
            return Cache { elements: encode(ty, &values), scales: Vec::new(), values };
        }
        let (mut elements, mut scales, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for block in exact.chunks(BLOCK) {
            let most = block.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let scale = rounded(Type::F16, &[most / 127.0])[0];
            for value in block {
                let quant = if scale == 0.0 { 0.0 } else { (value / scale).round().clamp(-128.0, 127.0) };
                elements.push(quant as i8 as u8);
                values.push(quant * scale);
            }
            scales.extend(encode(Type::F16, &[scale]));
        }
        Cache { elements, scales, values }
    }

    /// Puts NaN (or the scale NaN) into every row that is beyond its sequence's length.
    fn poison(&mut self, case: &Case<'_>) {
        let kernel = &case.kernel;
        let per_sequence = (kernel.kv_heads * kernel.max_seq_len) as usize;
        for row in 0..case.rows() {
            let length = case.lengths[row / per_sequence];
            if ((row % kernel.max_seq_len as usize) as u32) < length {
                continue;
            }
            let bytes = self.elements.len() / case.rows();
            self.elements[row * bytes..(row + 1) * bytes].fill(0xff);
            let scales = self.scales.len() / case.rows();
            self.scales[row * scales..(row + 1) * scales]
                .chunks_mut(2)
                .for_each(|scale| scale.copy_from_slice(&NAN.to_le_bytes()));
        }
    }
}

/// What attention is, for a head: the result and what its error is measured by.
struct Expected {
    out: Vec<f64>,
    /// `Σ p|v|`.
    weighed: Vec<f64>,
    /// The smallest and the largest value.
    range: Vec<(f64, f64)>,
    /// The largest `scale · log₂ e · Σ|q||k|`.
    magnitude: f64,
    /// The largest `scale · log₂ e · max |q| · Σ|k|`.
    largest: f64,
}

fn attention(
    kernel: &IncrementalAttention,
    q: &[f64],
    keys: &[f64],
    values: &[f64],
    length: usize,
) -> Expected {
    let d = q.len();
    let scale = f64::from(kernel.score_scale());
    let dot = |row: &[f64]| row.iter().zip(q).map(|(k, q)| k * q).sum::<f64>() * scale;
    let scores: Vec<f64> = keys.chunks(d).take(length).map(dot).collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mut expected = Expected {
        out: vec![0.0; d],
        weighed: vec![0.0; d],
        range: vec![(0.0, 0.0); d],
        magnitude: 0.0,
        largest: 0.0,
    };
    for (j, (weight, row)) in weights.iter().zip(values.chunks(d)).enumerate() {
        for (i, &value) in row.iter().enumerate() {
            expected.out[i] += weight / sum * value;
            expected.weighed[i] += weight / sum * value.abs();
            let (low, high) = expected.range[i];
            expected.range[i] = if j == 0 { (value, value) } else { (low.min(value), high.max(value)) };
        }
    }
    let most = q.iter().fold(0.0, |most: f64, q| most.max(q.abs()));
    for row in keys.chunks(d).take(length) {
        let largest = most * row.iter().map(|k| k.abs()).sum::<f64>();
        expected.largest = expected.largest.max(largest * scale * std::f64::consts::LOG2_E);
        let magnitude: f64 = row.iter().zip(q).map(|(k, q)| (k * q).abs()).sum();
        expected.magnitude = expected.magnitude.max(magnitude * scale * std::f64::consts::LOG2_E);
    }
    expected
}

/// The bound of the kernel's documentation, before the rounding of the result; `None` where scores are so large
/// that nothing but a mean of values is promised.
fn bound(kernel: &IncrementalAttention, expected: &Expected, length: usize, i: usize) -> Option<f64> {
    let (u, n) = (2f64.powi(-24), length as f64);
    let (epsilon, adds, absolute) = if on_tensor_cores(kernel) {
        let d = f64::from(kernel.head_dim);
        let quants = kernel.cache == CacheDtype::Q8_0;
        let (of_row, adds) = if quants { (5.0 * d, 15.0 * n) } else { (4.0 * d, 14.0 * n) };
        let epsilon = (of_row + 48.0) * u * expected.magnitude + 2f64.powi(-38) * expected.largest;
        let largest = |&(low, high): &(f64, f64)| low.abs().max(high.abs());
        let most = match quants {
            true => expected.range.iter().map(largest).fold(0.0, f64::max),
            false => largest(&expected.range[i]),
        };
        (epsilon, adds + 80.0, n * 2f64.powi(-38) * most)
    } else {
        ((width(kernel) + 10.0) * u * expected.magnitude, 2.0 * (n + 16.0), 0.0)
    };
    (epsilon < 1.0).then(|| {
        let weights = 2.0 * (epsilon.exp2() - 1.0) + 2f64.powi(-20) + adds * u;
        // Products below the smallest normal number may be lost.
        weights * expected.weighed[i] + absolute + 2f64.powi(-126)
    })
}

fn on_tensor_cores(kernel: &IncrementalAttention) -> bool {
    kernel.cache == CacheDtype::Q8_0 || kernel.tensor_cores && is_half(kernel.cache) && kernel.head_dim <= 128
}

fn is_half(cache: CacheDtype) -> bool {
    matches!(cache, CacheDtype::F16 | CacheDtype::Bf16)
}

/// Elements of a row that a lane adds up.
fn width(kernel: &IncrementalAttention) -> f64 {
    let pieces = (kernel.head_dim * kernel.cache.bytes()).div_ceil(16);
    f64::from(pieces.div_ceil(32) * 16 / kernel.cache.bytes())
}

/// Runs the case and holds each launch to the reference, where tensor cores may be used also without them; yields
/// the outputs' bits.
pub(crate) fn check(case: &Case<'_>) -> Vec<Vec<u8>> {
    if case.kernel.tensor_cores && is_half(case.kernel.cache) {
        check(&Case { kernel: IncrementalAttention { tensor_cores: false, ..case.kernel }, ..*case });
    }
    let built = build(case);
    let rig =
        Rig::new(&launch(case, &built), case.options).unwrap_or_else(|error| panic!("{case:?}: {error}"));
    (0..case.launches)
        .map(|_| {
            let poison = vec![0xff; rig.read("out").expect("an output").len()];
            rig.write("out", &poison).expect("written");
            rig.run().unwrap_or_else(|error| panic!("{case:?}: {error}"));
            let bits = rig.read("out").expect("an output");
            if let Some(wrong) = validate(case, &bits) {
                panic!("{case:?}: {wrong}");
            }
            bits
        })
        .collect()
}

pub(crate) fn build(case: &Case<'_>) -> Built {
    case.kernel.build(Arch::sm(case.sm)).unwrap_or_else(|error| panic!("{case:?}: {error}"))
}

fn inputs(case: &Case<'_>) -> (Vec<f64>, Cache, Cache) {
    let IncrementalAttention { head_dim, heads, q, .. } = case.kernel;
    let largest = if q == Dtype::F16 { 6e4 } else { 1e6 };
    let count = case.lengths.len() * (heads * head_dim) as usize;
    let query = case.class.rows(count, head_dim as usize, largest, case.seed * 3 + 7);
    let query = rounded(q.ty(), &query);
    (query, Cache::new(case, case.seed * 5 + 11, 1.0), Cache::new(case, case.seed * 7 + 13, case.magnitude))
}

/// Launches what was built on the virtual GPU: the outputs' bits and the report.
#[cfg(test)]
pub(crate) fn run(case: &Case<'_>, built: &Built) -> (Vec<u8>, Report) {
    let (ran, report) =
        launch(case, built).run(&case.options).unwrap_or_else(|error| panic!("{case:?}: {error}"));
    (ran.output("out"), report)
}

/// What the case launches. The output is NaN of every type before.
fn launch(case: &Case<'_>, built: &Built) -> TestLaunch {
    let kernel = &case.kernel;
    let (query, mut keys, mut values) = inputs(case);
    keys.poison(case);
    values.poison(case);
    let entry = built.module.entries().next().expect("a kernel").name.to_string();
    let dims = |name: &str| (name == "batch").then_some(case.lengths.len() as u64);
    let args = kernel.args().into_iter().map(|arg| {
        let name = arg.name;
        let bytes = arg.len.evaluate(dims).expect("a length") as usize * arg.dtype.bytes() as usize;
        let data = match name {
            "q" => encode(kernel.q.ty(), &query),
            "k" => keys.elements.clone(),
            "v" => values.elements.clone(),
            "k_scales" => keys.scales.clone(),
            "v_scales" => values.scales.clone(),
            "lengths" => case.lengths.iter().flat_map(|length| length.to_le_bytes()).collect(),
            "length" => return TestArg::Number(Arg::U32(case.lengths[0])),
            "arrivals" => vec![0; bytes],
            "out" => vec![0xff; bytes],
            _ => return TestArg::Memory { name, bytes },
        };
        assert_eq!(data.len(), bytes, "{name}");
        TestArg::Data { name, bytes: data }
    });
    let args = args.collect();
    let [x, y, z] = built.launch.grid.map(|extent| extent.evaluate(dims).expect("a size") as u32);
    let config = LaunchConfig {
        grid_dim: (x, y, z),
        block_dim: (32 * kernel.warps, 1, 1),
        shared_mem_bytes: built.launch.dynamic_shared,
        cooperative: false,
        cluster_dim: None,
    };
    TestLaunch {
        arch: Arch::sm(case.sm),
        module: built.module.clone(),
        entry,
        config,
        args,
        outputs: Vec::new(),
    }
}

/// What is wrong with the outputs, if anything is.
pub(crate) fn validate(case: &Case<'_>, bits: &[u8]) -> Option<String> {
    let kernel = &case.kernel;
    let (query, keys, values) = inputs(case);
    let d = kernel.head_dim as usize;
    let stride = kernel.max_seq_len as usize * d;
    let group = (kernel.heads / kernel.kv_heads) as usize;
    let found = decode(kernel.out.ty(), bits);
    for (row, q) in query.chunks(d).enumerate() {
        let (sequence, head) = (row / kernel.heads as usize, row % kernel.heads as usize);
        let length = case.lengths[sequence].min(kernel.max_seq_len) as usize;
        let start = (sequence * kernel.kv_heads as usize + head / group) * stride;
        let of_head = |cache: &Cache| cache.values[start..start + stride].to_vec();
        let expected = attention(kernel, q, &of_head(&keys), &of_head(&values), length);
        for i in 0..d {
            let (found, exact) = (found[row * d + i], expected.out[i]);
            let holds = match bound(kernel, &expected, length, i) {
                // Halves overflow where the bound crosses what is their largest.
                Some(_) if kernel.out == Dtype::F16 && exact.abs() > 65000.0 => !found.is_nan(),
                Some(bound) => {
                    (found - exact).abs() <= bound + rounding(kernel.out.ty(), exact.abs() + bound)
                }
                None => {
                    let (low, high) = expected.range[i];
                    let size = low.abs() + high.abs();
                    let slack = size * 2f64.powi(-20) + rounding(kernel.out.ty(), size);
                    low - slack <= found && found <= high + slack
                }
            };
            if !holds {
                let bound = bound(kernel, &expected, length, i);
                return Some(format!(
                    "sequence {sequence}, head {head}, element {i}: {found}, not {exact} ± {bound:?}"
                ));
            }
        }
    }
    None
}
