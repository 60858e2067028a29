//! What the matrix products ask of memory, by the virtual GPU's counters: no bank conflicts, no sector that
//! is fetched for nothing, no fragment loaded twice, and copies that are under way while others are
//! computed.

#[allow(dead_code, reason = "the other steps have tests of their own")]
#[path = "../examples/ladder/mod.rs"]
mod ladder;

use ladder::matmul::Matmul;
use ladder::matmul_tiled::MatmulTiled;
use std::sync::Arc;
use warpwright_dsl::{Bf16, F16, Factor, any::AnyKernel};
use warpwright_ptx::ir::{Arch, Imm, Src, StatementKind, Type};
use warpwright_ptx::op::Op;
use warpwright_qualify::common::{LaunchArg, numbers, run_kernel};
use warpwright_vm::{Report, SpaceTraffic};

/// Sizes that are whole tiles, several along each side.
const M: usize = 256;
const N: usize = 384;
const DEPTH: usize = 128;
const LANES: u64 = 32;
/// Bytes of a sector.
const SECTOR: u64 = 32;

fn report(sm: u16, kernel: &dyn AnyKernel, factor: Type, out: Type) -> Arc<Report> {
    let (a, b) = (numbers(M * DEPTH, 1), numbers(DEPTH * N, 2));
    let given = [
        LaunchArg::Input(factor, &a),
        LaunchArg::Input(factor, &b),
        LaunchArg::Output(out, M * N),
        LaunchArg::Scalar(M as u32),
    ];
    let (_, report) = run_kernel(Arch::sm(sm), kernel, |name| (name == "m").then_some(M as u64), &given);
    report.expect("the report of a virtual GPU")
}

/// Traffic of the kernel's arguments `a`, `b` and `c`.
fn arguments(report: &Report) -> [SpaceTraffic; 3] {
    let traffic: Vec<_> = report.counters.allocations.iter().map(|allocation| allocation.2).collect();
    traffic.try_into().expect("three buffers")
}

/// Each matrix is read once for each tile of the other, 16 bytes a thread, every sector in full; nothing
/// meets in a bank.
fn assert_ideal(what: &str, report: &Report, factor: Type, out: Type) {
    assert_eq!(report.counters.bank_conflicts, 0, "{what}");
    let [a, b, c] = arguments(report);
    let bytes = |rows: usize, columns: usize, ty: Type| (rows * columns) as u64 * u64::from(ty.bytes());
    let once = [bytes(M, DEPTH, factor) * (N / 128) as u64, bytes(DEPTH, N, factor) * (M / 128) as u64];
    for (loads, bytes) in [a.loads, b.loads].into_iter().zip(once) {
        assert_eq!(loads.bytes, bytes, "{what}");
        assert_eq!(loads.transactions * SECTOR, loads.bytes, "{what}: sectors are fetched in part");
        assert_eq!(loads.bytes, loads.requests * LANES * 16, "{what}: less than 16 bytes a thread");
    }
    assert_eq!(c.stores.bytes, bytes(M, N, out), "{what}");
}

/// One instruction of the tensor cores for each 16×8×(32 bytes) of the product, and fragments that each
/// warp loads once: 64 rows of A and 32 columns of B for 4×4 products.
fn check_tensor_cores<T: Factor>(sm: u16, stages: u32) {
    let kernel = Matmul::<T, f32> { stages, ..Matmul::new(N as u32, DEPTH as u32) };
    let report = report(sm, &kernel, T::TYPE, Type::F32);
    let what = format!("{} on sm_{sm}", kernel.entry());
    assert_ideal(&what, &report, T::TYPE, Type::F32);
    let stores = arguments(&report)[2].stores;
    assert_eq!(stores.transactions * SECTOR, stores.bytes, "{what}: sectors are stored in part");

    let warps = |opcode: &str| report.counters.by_opcode.get(opcode).copied().unwrap_or(0) / LANES;
    let steps = (DEPTH * T::TYPE.bytes() as usize / 32) as u64;
    let blocks = (M / 16 * N / 8) as u64 * steps;
    let halves = if sm < 80 && T::TYPE == Type::F16 { 2 } else { 1 };
    assert_eq!(warps("mma.sync.aligned"), blocks * halves, "{what}");
    // Four matrices at once: 16 rows of A, or 16 columns of B; columns of words are gathered one by one.
    let b = if T::TYPE.bytes() == 2 { 2 } else { 0 };
    assert_eq!(warps("ldmatrix.sync.aligned"), blocks / 16 * (4 + b), "{what}");
}

#[test]
fn tensor_core_products_waste_nothing() {
    for stages in [1, 2, 3] {
        check_tensor_cores::<F16>(80, stages);
    }
    for sm in [75, 86, 89, 90, 120] {
        check_tensor_cores::<F16>(sm, 2);
    }
    for sm in [80, 90] {
        check_tensor_cores::<Bf16>(sm, 2);
        check_tensor_cores::<f32>(sm, 2);
    }
}

#[test]
fn tiled_products_waste_nothing() {
    for sm in [75, 80, 90] {
        let kernel = MatmulTiled::<f32>::new(N as u32, DEPTH as u32);
        let report = report(sm, &kernel, Type::F32, Type::F32);
        assert_ideal(&format!("sm_{sm}"), &report, Type::F32, Type::F32);
        let stores = arguments(&report)[2].stores;
        assert_eq!(stores.transactions * SECTOR, stores.bytes, "sm_{sm}: sectors are stored in part");
    }
}

/// Groups of copies that a thread has begun and not waited for, at each product of the loop. A turn leaves
/// as many as it has found, so once through the text says it for all turns.
fn groups_in_flight(sm: u16, stages: u32) -> Vec<u32> {
    let kernel = Matmul::<F16, f32> { stages, ..Matmul::new(N as u32, DEPTH as u32) };
    let module = kernel.module(Arch::sm(sm)).expect("a correct kernel");
    let entry = module.entries().next().expect("a kernel");
    let (mut groups, mut found) = (0, Vec::new());
    for statement in entry.statements() {
        let StatementKind::Instruction(instruction) = &statement.kind else { continue };
        match &instruction.op {
            Op::CpAsyncCommitGroup(_) => groups += 1,
            Op::CpAsyncWaitGroup(wait) => match wait.n {
                Src::Imm(Imm::Int(n)) => groups = groups.min(n as u32),
                _ => panic!("waits for a number that is not known"),
            },
            Op::Mma(_) => found.push(groups),
            _ => {}
        }
    }
    found
}

#[test]
fn copies_are_under_way_while_others_are_computed() {
    for sm in [80, 86, 89, 90, 120] {
        for stages in [1, 2, 3] {
            let found = groups_in_flight(sm, stages);
            assert!(!found.is_empty() && found.iter().all(|&groups| groups == stages - 1), "{found:?}");
        }
    }
}
