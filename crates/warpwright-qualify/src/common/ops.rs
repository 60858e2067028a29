//! Kernels by the names of their arguments, on the device of the test: numbers in, numbers out, outputs poisoned; on
//! the virtual GPU with every check on, in several orders of execution.

use super::{f16, numbers};
use std::collections::HashMap;
use warpwright_dsl::{Role, any::AnyKernel, bf16_bits, f16_bits};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_test::KernelTest;
use warpwright_testing::{RunHere, TestDevice, orders, test_device};
use warpwright_vm::Options;

/// 2⁻²⁴, the relative error of one rounding to `f32`.
pub const U: f64 = 1.0 / (1 << 24) as f64;

/// What an output of signed bytes is filled with before: no quant is that.
pub const NO_QUANT: f64 = -128.0;

/// Buffers by their arguments' names.
pub type Buffers = HashMap<&'static str, Vec<f64>>;

/// The numbers of a buffer as the type holds them; beyond the largest half, the largest half.
pub fn held(ty: Type, values: &[f64]) -> Vec<f64> {
    values.iter().map(|&value| hold(ty, value)).collect()
}

/// The number as the type holds it: rounded to `f32` and then to the type.
pub fn hold(ty: Type, value: f64) -> f64 {
    match ty {
        Type::F16 => f16(f16_bits(value.clamp(-65504.0, 65504.0) as f32)),
        Type::BF16 => f32::from_bits(u32::from(bf16_bits(value as f32)) << 16).into(),
        Type::F32 => f64::from(value as f32),
        _ => value,
    }
}

fn encode(ty: Type, value: f64) -> Vec<u8> {
    match ty {
        Type::F16 => f16_bits(value as f32).to_le_bytes().to_vec(),
        Type::BF16 => bf16_bits(value as f32).to_le_bytes().to_vec(),
        Type::F32 => (value as f32).to_le_bytes().to_vec(),
        Type::U32 => (value as u32).to_le_bytes().to_vec(),
        Type::U64 => (value as u64).to_le_bytes().to_vec(),
        Type::S8 => vec![value as i8 as u8],
        other => panic!("no numbers of type {other}"),
    }
}

fn decode(ty: Type, bytes: &[u8]) -> f64 {
    match (ty, bytes) {
        (Type::F16, &[a, b]) => f16(u16::from_le_bytes([a, b])),
        (Type::BF16, &[a, b]) => f32::from_bits(u32::from(u16::from_le_bytes([a, b])) << 16).into(),
        (Type::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
        (Type::U32, &[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]).into(),
        (Type::U64, &[..]) => bytes.iter().rev().fold(0.0, |sum, &byte| sum * 256.0 + f64::from(byte)),
        (Type::S8, &[a]) => f64::from(a as i8),
        other => panic!("no numbers of type {other:?}"),
    }
}

/// Bytes of buffers from which on a kernel runs once and without the checks: the shapes of models.
const LARGE: u64 = 1 << 20;

/// Runs a kernel in several orders of execution, which must not differ in a bit; yields all its buffers.
///
/// `given` has what is read; what is only written is filled with NaN, or [`NO_QUANT`], unless it is given too.
pub fn run(sm: u16, kernel: &dyn AnyKernel, dims: &[(&str, u64)], given: &Buffers) -> Buffers {
    let what = format!("{} on sm_{sm}", kernel.entry());
    let mut first: Option<Vec<(&'static str, Vec<u8>)>> = None;
    let dim = |wanted: &str| dims.iter().find(|(name, _)| *name == wanted).map(|&(_, value)| value);
    let buffers = kernel.args().into_iter().filter(|arg| arg.role != Role::Scalar);
    let bytes: u64 =
        buffers.filter_map(|arg| Some(arg.len.evaluate(dim)? * u64::from(arg.dtype.bytes()))).sum();
    let seeds: &[u64] = if bytes < LARGE { &[1, 2] } else { &[1] };
    for &seed in orders(seeds) {
        let options = if bytes < LARGE { Options::checked() } else { Options::default() };
        let mut test = KernelTest::new(kernel).arch(Arch::sm(sm)).options(options).seed(seed);
        let mut known = HashMap::new();
        for &(name, value) in dims {
            test = test.dim(name, value);
            known.insert(name.to_string(), value);
        }
        let args = kernel.args();
        for arg in args.iter().filter(|arg| arg.role != Role::Scalar) {
            let len = arg.len.evaluate(|name| known.get(name).copied());
            let len = len.unwrap_or_else(|| panic!("{what}: the length of {}", arg.name)) as usize;
            let bytes = match given.get(arg.name) {
                Some(values) => values.iter().flat_map(|&value| encode(arg.dtype, value)).collect(),
                None if arg.role != Role::Out => panic!("{what}: `{}` is not given", arg.name),
                None if arg.dtype == Type::S8 => vec![0x80; len],
                None => vec![0xff; len * arg.dtype.bytes() as usize],
            };
            test = match arg.dtype.bytes() {
                1 => test.input(arg.name, &bytes),
                2 => test.input(arg.name, &words(&bytes, u16::from_le_bytes)),
                4 => test.input(arg.name, &words(&bytes, u32::from_le_bytes)),
                _ => test.input(arg.name, &words(&bytes, u64::from_le_bytes)),
            };
        }
        for arg in args.iter().filter(|arg| arg.role == Role::Scalar) {
            if let Some(values) = given.get(arg.name) {
                test = test.scalar(arg.name, values[0]);
            }
        }
        let ran = test.run_here().unwrap_or_else(|error| panic!("{what}: {error}"));
        let buffers = args.iter().filter(|arg| arg.role != Role::Scalar);
        let bytes: Vec<_> = buffers.map(|arg| (arg.name, ran.output::<u8>(arg.name))).collect();
        match &first {
            None => first = Some(bytes),
            Some(first) => assert!(*first == bytes, "{what} depends on the order of execution"),
        }
    }
    let types: HashMap<_, _> = kernel.args().iter().map(|arg| (arg.name, arg.dtype)).collect();
    let decoded = |(name, bytes): (&'static str, Vec<u8>)| {
        let ty = types[name];
        (name, bytes.chunks_exact(ty.bytes() as usize).map(|bytes| decode(ty, bytes)).collect())
    };
    first.into_iter().flatten().map(decoded).collect()
}

fn words<T, const N: usize>(bytes: &[u8], word: fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|bytes| word(bytes.try_into().expect("whole words"))).collect()
}

/// Each number is within its slack of what is exact, and one rounding to the type.
#[track_caller]
pub fn assert_within(what: &str, ty: Type, found: &[f64], exact: &[(f64, f64)]) {
    assert_eq!(found.len(), exact.len(), "{what}");
    for (i, (found, &(exact, slack))) in found.iter().zip(exact).enumerate() {
        let exact = if ty == Type::F16 { exact.clamp(-65504.0, 65504.0) } else { exact };
        let slack = slack + super::rounding(ty, exact.abs() + slack);
        assert!((found - exact).abs() <= slack, "{what}: {found} at {i}, not {exact} ± {slack:e}");
    }
}

/// Vectors of every kind that a kernel meets, by name.
pub fn kinds(count: usize, seed: u64) -> Vec<(&'static str, Vec<f64>)> {
    let normal = numbers(count, seed);
    let scaled = |by: f64| normal.iter().map(|x| x * by).collect::<Vec<_>>();
    let each = |value: &dyn Fn(usize) -> f64| (0..count).map(value).collect::<Vec<_>>();
    vec![
        ("normal", normal.clone()),
        ("large", scaled(1e6)),
        ("cancelling", each(&|i| if i % 2 == 0 { 1e6 } else { -1e6 } + normal[i / 2])),
        ("constant", each(&|_| 0.75)),
        ("one-hot", each(&|i| if i == count / 3 { 1e6 } else { 0.0 })),
        ("outliers", each(&|i| normal[i] * if i % 61 == 7 { 1000.0 } else { 1.0 })),
        ("denormals", scaled(1e-40)),
        ("zeros", each(&|_| 0.0)),
    ]
}

/// Whether the shapes of models are to be run too.
pub fn full() -> bool {
    std::env::var_os("WARPWRIGHT_FULL").is_some()
}

/// Which combinations of several parameters a case runs: all on a card and in a full run. In the tests on the virtual
/// GPU it is one in so many, spread evenly, so that each value of each parameter is met in many of them.
pub struct Sample {
    turn: u64,
    one_in: u64,
}

impl Sample {
    pub fn one_in(count: u64) -> Self {
        let is_thin = cfg!(test) && test_device() == TestDevice::Vm && !full();
        Sample { turn: 0, one_in: if is_thin { count } else { 1 } }
    }

    /// Whether the next combination is run.
    pub fn takes(&mut self) -> bool {
        // Multiples of the golden ratio are spread evenly, and repeat with no loop inside of another.
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let place = self.turn.wrapping_mul(GOLDEN);
        self.turn += 1;
        place <= u64::MAX / self.one_in
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_meet_every_value_of_every_parameter() {
        for (counts, one_in) in
            [([10, 5, 3, 1], 3), ([6, 3, 1, 1], 3), ([20, 5, 4, 3], 3), ([4, 3, 6, 1], 4), ([8, 3, 2, 1], 2)]
        {
            let mut sample = Sample { turn: 0, one_in };
            let all: u64 = counts.iter().product();
            let taken: Vec<u64> = (0..all).filter(|_| sample.takes()).collect();
            assert!(taken.len() as u64 <= all / one_in + 2, "{counts:?}: {}", taken.len());
            let mut inner = all;
            for count in counts {
                inner /= count;
                for value in 0..count {
                    let is_met = taken.iter().any(|turn| turn / inner % count == value);
                    assert!(is_met, "{counts:?}: value {value} of {count}");
                }
            }
        }
        let mut all = Sample { turn: 0, one_in: 1 };
        assert!((0..100).all(|_| all.takes()));
    }
}
