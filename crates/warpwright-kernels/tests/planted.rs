//! Mistakes planted in the matrix products: each barrier and each wait that they need is taken out in turn,
//! and the checks say what it was for. So a clean report of the products as they are means something.

#[allow(dead_code, reason = "the other steps have tests of their own")]
#[path = "../examples/ladder/mod.rs"]
mod ladder;

use ladder::matmul::Matmul;
use ladder::matmul_tiled::MatmulTiled;
use warpwright_dsl::{Built, F16, any::AnyKernel};
use warpwright_kernels::QuantGemm;
use warpwright_kernels::weights::{Planes, WeightFormat};
use warpwright_ptx::ir::{Arch, Type};
use warpwright_ptx::op::Op;
use warpwright_qualify::common::{LaunchArg, numbers, run_unjudged, take_out};
use warpwright_vm::{FindingKind, Report, SpaceKind};

const M: usize = 130;
const N: usize = 64;
const DEPTH: usize = 160;

/// A kernel and what it is given.
struct Product<'a> {
    kernel: &'a dyn AnyKernel,
    given: Vec<LaunchArg<'a>>,
    /// The number that lengths and the grid depend on.
    dim: (&'static str, usize),
}

impl Product<'_> {
    fn build(&self, sm: u16) -> Built {
        self.kernel.build(Arch::sm(sm)).expect("a correct kernel")
    }

    fn run(&self, sm: u16, built: &Built) -> Report {
        let (name, value) = self.dim;
        let dim = |asked: &str| (asked == name).then_some(value as u64);
        let [x, y, z] = built.launch.grid.map(|extent| extent.evaluate(dim).expect("a known size") as u32);
        run_unjudged(Arch::sm(sm), &self.kernel.entry(), built, (x, y, z), &self.given).1
    }

    /// The races in shared memory once an instruction is taken out, for each that there is.
    fn races_without(&self, sm: u16, is: fn(&Op) -> bool) -> Vec<bool> {
        let mut found = Vec::new();
        loop {
            let mut without = self.build(sm);
            if !take_out(&mut without, is, found.len()) {
                return found;
            }
            let report = self.run(sm, &without);
            assert!(report.trap.is_none(), "{report}");
            found.push(
                report.findings.iter().any(|finding| {
                    matches!(finding.kind, FindingKind::Race { space: SpaceKind::Shared, .. })
                }),
            );
        }
    }
}

/// `C = A·B` with factors of the type.
fn matmul<'a>(kernel: &'a dyn AnyKernel, factor: Type, [a, b]: [&'a [f64]; 2]) -> Product<'a> {
    let given = vec![
        LaunchArg::Input(factor, a),
        LaunchArg::Input(factor, b),
        LaunchArg::Output(Type::F32, M * N),
        LaunchArg::Scalar(M as u32),
    ];
    Product { kernel, given, dim: ("m", M) }
}

fn factors() -> [Vec<f64>; 2] {
    [numbers(M * DEPTH, 1), numbers(DEPTH * N, 2)]
}

fn is_barrier(op: &Op) -> bool {
    matches!(op, Op::BarSync(_))
}

fn is_wait(op: &Op) -> bool {
    matches!(op, Op::CpAsyncWaitGroup(_))
}

#[test]
fn the_products_are_clean_as_they_are() {
    let [a, b] = factors();
    for sm in [75, 80] {
        let kernels: [(Box<dyn AnyKernel>, Type); 2] = [
            (Box::new(MatmulTiled::<f32>::new(N as u32, DEPTH as u32)), Type::F32),
            (Box::new(Matmul::<F16, f32>::new(N as u32, DEPTH as u32)), Type::F16),
        ];
        for (kernel, factor) in kernels {
            let product = matmul(&*kernel, factor, [&a, &b]);
            let report = product.run(sm, &product.build(sm));
            assert!(report.is_clean(), "{report}");
        }
    }
}

#[test]
fn the_tiled_product_needs_both_barriers() {
    let [a, b] = factors();
    let kernel = MatmulTiled::<f32>::new(N as u32, DEPTH as u32);
    let product = matmul(&kernel, Type::F32, [&a, &b]);
    assert_eq!(product.races_without(80, is_barrier), [true, true]);
}

#[test]
fn the_pipeline_needs_its_barriers_and_waits() {
    let [a, b] = factors();
    for (sm, stages) in [(75, 1), (75, 2), (80, 1), (80, 2), (80, 3)] {
        let kernel = Matmul::<F16, f32> { stages, ..Matmul::new(N as u32, DEPTH as u32) };
        let product = matmul(&kernel, Type::F16, [&a, &b]);
        // The last barrier says that the stages are free; nothing uses them after.
        let mut barriers = vec![true; if stages == 1 { 2 } else { 1 }];
        barriers.push(false);
        assert_eq!(product.races_without(sm, is_barrier), barriers, "sm_{sm}, {stages} stages");
        let waits = if sm >= 80 { vec![true] } else { Vec::new() };
        assert_eq!(product.races_without(sm, is_wait), waits, "sm_{sm}, {stages} stages");
    }
}

/// Weights that are decoded into a stage are stored after the warps have read the stage before.
#[test]
fn the_fed_pipeline_needs_its_barrier_and_wait() {
    const TOKENS: usize = 17;
    for format in [WeightFormat::Q4K, WeightFormat::Q8_0] {
        let kernel = QuantGemm { rows: 32, columns: 64, ..QuantGemm::new(format, 64, 512) };
        let planes = Planes::new(format, 64, 512).bytes().div_ceil(4) as usize;
        let x = numbers(TOKENS * 512, 1);
        // Words of any bits: what they mean is nothing to the order of things.
        let planes: Vec<_> = numbers(planes, 2).into_iter().map(|x| (x + 1.0) * 2e9).collect();
        let given = vec![
            LaunchArg::Input(Type::F16, &x),
            LaunchArg::Input(Type::U32, &planes),
            LaunchArg::Input(Type::F32, &[1.0; TOKENS]),
            LaunchArg::Output(Type::F32, TOKENS * 64),
            LaunchArg::Scalar(TOKENS as u32),
        ];
        let product = Product { kernel: &kernel, given, dim: ("tokens", TOKENS) };
        for sm in [75, 80] {
            let report = product.run(sm, &product.build(sm));
            assert!(report.is_clean(), "{report}");
            assert_eq!(product.races_without(sm, is_barrier), [true, false], "{format} on sm_{sm}");
        }
        assert_eq!(product.races_without(80, is_wait), [true], "{format}");
    }
}
