//! Kernels on the device of the test: numbers in, numbers out, on the virtual GPU with every check on.

#![allow(dead_code, reason = "each test takes what it needs")]

pub mod activation;

pub mod called;

pub mod gguf;

pub mod ops;

use std::sync::Arc;
use warpwright_dsl::{Block, Built, any::AnyKernel, bf16_bits, f16_bits};
use warpwright_ptx::ir::{Arch, ItemKind, StatementKind, Type};
use warpwright_ptx::op::Op;
use warpwright_test::{TestArg, TestLaunch};
use warpwright_testing::Rig;
use warpwright_vm::{Arg, LaunchConfig, Options, Report};

/// An argument of a kernel launch.
pub enum LaunchArg<'a> {
    /// A buffer of numbers, rounded to the type.
    Input(Type, &'a [f64]),
    /// A buffer of so many elements, full of NaN.
    Output(Type, usize),
    /// A buffer that is read and written, of numbers as for an input.
    InOut(Type, &'a [f64]),
    /// A number.
    Scalar(u32),
}

/// The numbers as the type holds them.
pub fn rounded(ty: Type, values: &[f64]) -> Vec<f64> {
    decode(ty, &encode(ty, values))
}

pub fn encode(ty: Type, values: &[f64]) -> Vec<u8> {
    let bytes = |&value: &f64| match ty {
        Type::F16 => f16_bits(value as f32).to_le_bytes().to_vec(),
        Type::BF16 => bf16_bits(value as f32).to_le_bytes().to_vec(),
        Type::U32 => (value as u32).to_le_bytes().to_vec(),
        Type::U64 => (value as u64).to_le_bytes().to_vec(),
        Type::U8 => vec![value as u8],
        Type::S8 => vec![value as i8 as u8],
        _ => (value as f32).to_le_bytes().to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

pub fn decode(ty: Type, bytes: &[u8]) -> Vec<f64> {
    let half = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    match ty {
        Type::F16 => bytes.chunks_exact(2).map(|bytes| f16(half(bytes))).collect(),
        Type::BF16 => {
            bytes.chunks_exact(2).map(|bytes| f32::from_bits(u32::from(half(bytes)) << 16).into()).collect()
        }
        Type::U32 => bytes.chunks_exact(4).map(|bytes| word(bytes).into()).collect(),
        Type::U64 => bytes.as_chunks::<8>().0.iter().map(|&bytes| u64::from_le_bytes(bytes) as f64).collect(),
        Type::U8 => bytes.iter().map(|&byte| byte.into()).collect(),
        _ => bytes.chunks_exact(4).map(|bytes| f32::from_bits(word(bytes)).into()).collect(),
    }
}

/// Halves of the type, as numbers.
pub fn decode_halves(ty: Type, halves: &[u16]) -> Vec<f64> {
    decode(ty, &halves.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<_>>())
}

pub fn f16(bits: u16) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// What a virtual GPU says of a launch.
pub type Reported = Option<Arc<Report>>;

/// Runs a kernel that was built; yields its outputs, and the report, which must be clean.
pub fn run(
    arch: Arch,
    entry: &str,
    built: &Built,
    grid_dim: (u32, u32, u32),
    given: &[LaunchArg<'_>],
) -> (Vec<Vec<f64>>, Reported) {
    let rig = Rig::new(&launch(arch, entry, built, grid_dim, given), Options::checked());
    let rig = rig.unwrap_or_else(|error| panic!("{entry} on {arch}: {error}"));
    let report = rig.run().unwrap_or_else(|error| panic!("{entry} on {arch}: {error}"));
    let outputs = outputs(given).map(|(name, ty)| decode(ty, &rig.read(name).expect("an output")));
    (outputs.collect(), report)
}

/// That no two lanes of a load or a store met in a bank, where a virtual GPU has counted.
#[track_caller]
pub fn assert_no_conflicts(report: &Reported, what: &str) {
    if let Some(report) = report {
        assert_eq!(report.counters.bank_conflicts, 0, "{what}");
    }
}

/// The same on the virtual GPU, with whatever the checks have found.
pub fn run_unjudged(
    arch: Arch,
    entry: &str,
    built: &Built,
    grid_dim: (u32, u32, u32),
    given: &[LaunchArg<'_>],
) -> (Vec<Vec<f64>>, Report) {
    let ran = launch(arch, entry, built, grid_dim, given).run(&Options::checked());
    let (ran, report) = ran.unwrap_or_else(|error| panic!("{entry}: {error}"));
    (outputs(given).map(|(name, ty)| decode(ty, &ran.output::<u8>(name))).collect(), report)
}

/// What the launch gives its buffers, which are called by their places.
fn launch(
    arch: Arch,
    entry: &str,
    built: &Built,
    grid_dim: (u32, u32, u32),
    given: &[LaunchArg<'_>],
) -> TestLaunch {
    let Block::Exactly(block) = built.launch.block else { panic!("{entry} leaves its block open") };
    let config = LaunchConfig {
        grid_dim,
        block_dim: block.into(),
        shared_mem_bytes: built.launch.dynamic_shared,
        cooperative: built.launch.cooperative,
        cluster_dim: None,
    };
    let args = given.iter().zip(NAMES).map(|(given, name)| match given {
        LaunchArg::Input(ty, values) | LaunchArg::InOut(ty, values) => {
            TestArg::Data { name, bytes: encode(*ty, values) }
        }
        LaunchArg::Output(ty, len) => TestArg::Data { name, bytes: vec![0xff; len * ty.bytes() as usize] },
        LaunchArg::Scalar(value) => TestArg::Number(Arg::U32(*value)),
    });
    let args: Vec<_> = args.collect();
    assert_eq!(args.len(), given.len(), "more arguments than there are names");
    TestLaunch { arch, module: built.module.clone(), entry: entry.into(), config, args, outputs: Vec::new() }
}

/// Names for what is given.
const NAMES: [&str; 16] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

/// The outputs among what is given.
fn outputs(given: &[LaunchArg<'_>]) -> impl Iterator<Item = (&'static str, Type)> {
    given.iter().zip(NAMES).filter_map(|(given, name)| match given {
        LaunchArg::Output(ty, _) | LaunchArg::InOut(ty, _) => Some((name, *ty)),
        _ => None,
    })
}

/// Runs a kernel of the library, its grid from its launch rule.
pub fn run_kernel(
    arch: Arch,
    kernel: &dyn AnyKernel,
    dims: impl Fn(&str) -> Option<u64>,
    given: &[LaunchArg<'_>],
) -> (Vec<Vec<f64>>, Reported) {
    let built = kernel.build(arch).unwrap_or_else(|errors| panic!("{}: {errors}", kernel.entry()));
    let [x, y, z] = built.launch.grid.map(|extent| extent.evaluate(&dims).expect("a known size") as u32);
    run(arch, &kernel.entry(), &built, (x, y, z), given)
}

/// Numbers in (-1, 1), the same every time for a seed: a linear congruential generator, its upper bits.
pub fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Small whole numbers, whose sums of products are exact in every type.
pub fn wholes(count: usize, seed: u64) -> Vec<f64> {
    numbers(count, seed).into_iter().map(|x| (x * 4.0).floor()).collect()
}

/// `a · b` for row-major matrices, and the sums of the products' magnitudes.
pub fn product(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> (Vec<f64>, Vec<f64>) {
    let mut sums = (vec![0.0; m * n], vec![0.0; m * n]);
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                let term = a[i * k + p] * b[p * n + j];
                sums.0[i * n + j] += term;
                sums.1[i * n + j] += term.abs();
            }
        }
    }
    sums
}

/// What rounding a number of that size to the type may change.
pub fn rounding(ty: Type, value: f64) -> f64 {
    let (relative, least) = match ty {
        Type::F16 => (2f64.powi(-11), 2f64.powi(-25)),
        Type::BF16 => (2f64.powi(-8), 2f64.powi(-134)),
        _ => (2f64.powi(-24), 2f64.powi(-150)),
    };
    (value.abs() * relative).max(least)
}

/// Takes out the instruction that is number `which` among those that `is` holds for; whether there is one.
pub fn take_out(built: &mut Built, is: fn(&Op) -> bool, which: usize) -> bool {
    for item in &mut built.module.items {
        let ItemKind::Function(function) = &mut item.kind else { continue };
        let Some(body) = &mut function.body else { continue };
        let mut places = body.iter().enumerate().filter_map(|(at, statement)| match &statement.kind {
            StatementKind::Instruction(instruction) if is(&instruction.op) => Some(at),
            _ => None,
        });
        if let Some(at) = places.nth(which) {
            drop(places);
            body.remove(at);
            return true;
        }
    }
    false
}
