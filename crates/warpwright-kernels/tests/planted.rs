//! Mistakes planted in the matrix products: each barrier and each wait that they need is taken out in turn,
//! and the checks say what it was for. So a clean report of the products as they are means something.

mod common;

use common::{Given, numbers, run_unjudged};
use warpwright_kernels::{Matmul, MatmulTiled};
use warpwright_ptx::dsl::{Built, F16, Kernel};
use warpwright_ptx::ir::{Arch, ItemKind, StatementKind, Type};
use warpwright_ptx::op::Op;
use warpwright_vm::{FindingKind, Report, SpaceKind};

const M: usize = 130;
const N: usize = 64;
const DEPTH: usize = 160;

/// Takes out the instruction that is number `which` among those that `is` holds for.
fn take_out(built: &mut Built, is: fn(&Op) -> bool, which: usize) -> bool {
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

fn run(sm: u16, kernel: &dyn Kernel, built: &Built, factor: Type) -> Report {
    let (a, b) = (numbers(M * DEPTH, 1), numbers(DEPTH * N, 2));
    let given = [
        Given::Input(factor, &a),
        Given::Input(factor, &b),
        Given::Output(Type::F32, M * N),
        Given::Scalar(M as u32),
    ];
    let dim = |name: &str| (name == "m").then_some(M as u64);
    let [x, y, z] = built.launch.grid.map(|extent| extent.evaluate(dim).expect("a known size") as u32);
    run_unjudged(Arch::sm(sm), &kernel.entry(), built, (x, y, z), &given).1
}

/// The races in shared memory once an instruction is taken out, for each that there is.
fn races_without(sm: u16, kernel: &dyn Kernel, factor: Type, is: fn(&Op) -> bool) -> Vec<bool> {
    let built = || kernel.build(Arch::sm(sm)).expect("a correct kernel");
    let mut found = Vec::new();
    loop {
        let mut without = built();
        if !take_out(&mut without, is, found.len()) {
            return found;
        }
        let report = run(sm, kernel, &without, factor);
        assert!(report.trap.is_none(), "{report}");
        found.push(
            report
                .findings
                .iter()
                .any(|finding| matches!(finding.kind, FindingKind::Race { space: SpaceKind::Shared, .. })),
        );
    }
}

fn is_barrier(op: &Op) -> bool {
    matches!(op, Op::BarSync(_))
}

fn is_wait(op: &Op) -> bool {
    matches!(op, Op::CpAsyncWaitGroup(_))
}

#[test]
fn the_products_are_clean_as_they_are() {
    for sm in [75, 80] {
        let kernels: [(Box<dyn Kernel>, Type); 2] = [
            (Box::new(MatmulTiled::<f32>::new(N as u32, DEPTH as u32)), Type::F32),
            (Box::new(Matmul::<F16, f32>::new(N as u32, DEPTH as u32)), Type::F16),
        ];
        for (kernel, factor) in kernels {
            let report = run(sm, &*kernel, &kernel.build(Arch::sm(sm)).expect("a kernel"), factor);
            assert!(report.is_clean(), "{report}");
        }
    }
}

#[test]
fn the_tiled_product_needs_both_barriers() {
    let kernel = MatmulTiled::<f32>::new(N as u32, DEPTH as u32);
    assert_eq!(races_without(80, &kernel, Type::F32, is_barrier), [true, true]);
}

#[test]
fn the_pipeline_needs_its_barriers_and_waits() {
    for (sm, stages) in [(75, 1), (75, 2), (80, 1), (80, 2), (80, 3)] {
        let kernel = Matmul::<F16, f32> { stages, ..Matmul::new(N as u32, DEPTH as u32) };
        // The last barrier says that the stages are free; nothing uses them after.
        let mut barriers = vec![true; if stages == 1 { 2 } else { 1 }];
        barriers.push(false);
        let found = races_without(sm, &kernel, Type::F16, is_barrier);
        assert_eq!(found, barriers, "sm_{sm}, {stages} stages");
        let waits = if sm >= 80 { vec![true] } else { Vec::new() };
        assert_eq!(races_without(sm, &kernel, Type::F16, is_wait), waits, "sm_{sm}, {stages} stages");
    }
}
