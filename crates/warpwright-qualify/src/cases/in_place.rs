//! Results in the buffer of what is added to them: the same bits as in a buffer of their own, with every check on
//! and in several orders. Every kernel of the catalogue that allows it is here.

use warpwright_dsl::{ArgDesc, Role, any::AnyKernel, bf16_bits, f16_bits};
use warpwright_kernels::{catalogue, find};
use warpwright_ptx::ir::Type;
use warpwright_test::KernelTest;
use warpwright_testing::{Ran, RunHere, orders};

/// Kernels, with tails of tiles, and a number for `rows` and `tokens`.
const KERNELS: [(&str, &str, u64); 15] = [
    ("quant_gemv", "n=19 k=512 residual=true", 1),
    ("quant_gemv", "n=19+3+16 k=256 format=q6_k+q4_0+f16 residual=true bias=true batch=3", 1),
    ("quant_gemv", "n=21 k=256 residual=true batch=8 activations=rounded", 1),
    ("quant_gemv", "n=9+9 k=256 gate=gelu residual=true+false", 1),
    ("quant_gemv", "n=19 k=512 residual=true batch=2 epsilon=1e-5", 1),
    ("quant_gemm", "n=70 k=256 residual=true rows=32 columns=64 terms=2 bias=true", 37),
    ("quant_gemm", "n=33 k=256 format=q8_0 residual=true rows=16 columns=64 out=f16", 19),
    ("gemm", "n=70 k=72 residual=true rows=32 columns=64 bias=true", 37),
    ("gemm", "n=130 k=64 dtype=bf16 residual=true rows=128 out=bf16", 131),
    ("elementwise", "op=add columns=33 threads=32", 5),
    ("elementwise", "op=mul columns=64 a=f16 b=f16 output=f16 threads=32", 5),
    ("elementwise", "op=glu columns=30 a=f32 b=f16 output=f16 threads=32", 5),
    ("elementwise", "op=glu activation=gelu_tanh columns=16 a=bf16 b=f32 output=bf16 threads=32", 5),
    ("elementwise", "op=scale columns=20 threads=32", 5),
    ("elementwise", "op=activate columns=24 a=f16 output=f16 threads=32", 5),
];

/// Numbers in (-1, 1), and for weights bytes whose halves are numbers too.
fn filled<'a>(mut test: KernelTest<'a>, arg: &ArgDesc, count: usize) -> KernelTest<'a> {
    let mut state = arg.name.bytes().fold(7u64, |seed, byte| seed * 31 + u64::from(byte));
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let numbers: Vec<f32> = (0..count).map(|_| next()).collect();
    let halves = |bits: fn(f32) -> u16| numbers.iter().map(|&x| bits(x)).collect::<Vec<_>>();
    test = match arg.dtype {
        Type::F32 => test.input(arg.name, &numbers),
        Type::F16 => test.input(arg.name, &halves(f16_bits)),
        Type::BF16 => test.input(arg.name, &halves(bf16_bits)),
        Type::U8 => test.input(arg.name, &numbers.iter().map(|x| (x.abs() * 56.0) as u8).collect::<Vec<_>>()),
        other => panic!("`{}` is of {}", arg.name, other.name()),
    };
    test
}

fn bytes(run: &Ran, arg: &ArgDesc) -> Vec<u8> {
    run.output::<u8>(arg.name)
}

fn run(kernel: &dyn AnyKernel, size: u64, seed: u64, in_place: Option<(&str, &str)>) -> Ran {
    let mut test = KernelTest::new(kernel).seed(seed);
    for dim in ["rows", "tokens"] {
        test = test.dim(dim, size);
    }
    for arg in kernel.args() {
        let count = arg.len.evaluate(|_| Some(size)).expect("a length") as usize;
        match arg.role {
            Role::In => test = filled(test, &arg, count),
            Role::Scalar if arg.dtype == Type::F32 => test = test.scalar(arg.name, 0.75),
            _ => {}
        }
    }
    if let Some((output, input)) = in_place {
        test = test.in_place(output, input);
    }
    test.run_here().unwrap_or_else(|error| panic!("{} with {in_place:?}: {error}", kernel.entry()))
}

fn results_may_take_the_place_of_what_is_added() {
    for (name, fields, size) in KERNELS {
        let kernel = find(name).and_then(|entry| entry.configure_text(fields));
        let kernel = kernel.unwrap_or_else(|error| panic!("{name} {fields}: {error}"));
        let apart = run(&*kernel, size, 1, None);
        let outputs: Vec<_> = kernel.args().into_iter().filter(|arg| arg.role == Role::Out).collect();
        assert!(outputs.iter().any(|arg| !arg.shares.is_empty()), "{name} {fields}");
        for output in outputs.iter().filter(|output| output.dtype == Type::F32) {
            let y = apart.output::<f32>(output.name);
            assert!(y.iter().all(|y| y.is_finite() && *y != 0.0), "{name} {fields}: numbers to tell apart");
        }
        for output in &outputs {
            for input in output.shares {
                for &seed in orders(&[1, 2, 3]) {
                    let together = run(&*kernel, size, seed, Some((output.name, input)));
                    for other in &outputs {
                        let same = bytes(&apart, other) == bytes(&together, other);
                        assert!(same, "{name} {fields}: `{}` in `{input}`, seed {seed}", other.name);
                    }
                }
            }
        }
    }
}

/// Its examples are too large to be run here, but what they allow is what the kernels above allow.
fn every_kernel_that_allows_it_is_run() {
    for entry in catalogue() {
        for example in entry.examples {
            let kernel = entry.configure_text(example).expect("an example");
            let shares = kernel.args().iter().any(|arg| !arg.shares.is_empty());
            let run = KERNELS.iter().any(|(name, ..)| *name == entry.name);
            assert!(!shares || run, "{} {example} is not run in place", entry.name);
        }
    }
}

/// What is not allowed is refused by the test itself, and would be found: the halves of a row are read by other
/// threads than those that write there.
fn nothing_else_may_be_shared() {
    let entry = find("elementwise").expect("a kernel");
    for fields in ["op=add columns=64 operands=halves threads=32", "op=add columns=64 output=f16 threads=32"]
    {
        let kernel = entry.configure_text(fields).expect("a configuration");
        assert!(kernel.args().iter().all(|arg| arg.shares.is_empty()), "{fields}");
    }
}

crate::case_list! {
    results_may_take_the_place_of_what_is_added,
    every_kernel_that_allows_it_is_run,
    nothing_else_may_be_shared,
}
