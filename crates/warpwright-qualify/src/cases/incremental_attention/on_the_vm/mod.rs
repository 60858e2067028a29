//! What the tests of decode attention are worth: mistakes planted in it are found. And its use of memory, by the
//! virtual GPU's counters: K and V are read once for all heads that share them.

use super::case::{Case, build, run, validate};
use warpwright_dsl::{Built, any::AnyKernel};
use warpwright_kernels::{CacheDtype, Dtype, IncrementalAttention};
use warpwright_ptx::ir::{Arch, Imm, ItemKind, Semantics, Src, StatementKind};
use warpwright_ptx::op::Op;
use warpwright_vm::{FindingKind, Report, SpaceKind, SpaceTraffic};

fn kernel(heads: u32, kv_heads: u32, head_dim: u32, cache: CacheDtype) -> IncrementalAttention {
    IncrementalAttention { cache, ..IncrementalAttention::new(heads, kv_heads, head_dim, 640) }
}

/// The instructions of a kernel, each of which may be changed, or taken out where the closure says no.
fn keep(built: &mut Built, mut keep: impl FnMut(&mut Op) -> bool) {
    for item in &mut built.module.items {
        let ItemKind::Function(function) = &mut item.kind else { continue };
        let Some(body) = &mut function.body else { continue };
        body.retain_mut(|statement| match &mut statement.kind {
            StatementKind::Instruction(instruction) => keep(&mut instruction.op),
            _ => true,
        });
    }
}

fn races(report: &Report, in_space: SpaceKind) -> bool {
    let is_race = |kind: &FindingKind| matches!(kind, FindingKind::Race { space, .. } if *space == in_space);
    report.findings.iter().any(|finding| is_race(&finding.kind))
}

#[test]
fn another_stride_or_another_length_is_seen() {
    let right = kernel(4, 2, 64, CacheDtype::F16);
    let case = Case::new(right, &[100]);
    let (bits, _) = run(&case, &build(&case));
    assert_eq!(validate(&case, &bits), None);
    for wrong in [
        IncrementalAttention { max_seq_len: 632, ..right },
        IncrementalAttention { scale: Some(right.score_scale() * 1.001), ..right },
    ] {
        let built = build(&Case { kernel: wrong, ..case });
        let (bits, _) = run(&case, &built);
        assert!(validate(&case, &bits).is_some(), "{wrong:?}");
    }
    for length in [99, 101] {
        assert!(validate(&Case { lengths: &[length], ..case }, &bits).is_some(), "{length} tokens");
    }
}

/// Takes out barriers one by one, of a kernel whose queries are in shared memory, whose warps have more heads
/// than fit at a time, and whose blocks merge what they have left.
#[test]
fn every_barrier_is_needed() {
    let lanes = IncrementalAttention { splits: 2, warps: 8, ..kernel(9, 1, 256, CacheDtype::F16) };
    let tensor_cores = IncrementalAttention { splits: 2, warps: 8, ..kernel(16, 1, 128, CacheDtype::F16) };
    let tensor_cores = IncrementalAttention { q: Dtype::F16, ..tensor_cores };
    for (kernel, least) in [(lanes, 6), (tensor_cores, 5)] {
        every_barrier_of(&Case { launches: 1, ..Case::new(kernel, &[512]) }, least);
    }
}

fn every_barrier_of(case: &Case<'_>, least: usize) {
    let is_barrier = |op: &Op| matches!(op, Op::BarSync(_));
    let mut barriers = 0;
    keep(&mut build(case), |op| {
        barriers += usize::from(is_barrier(op));
        true
    });
    for without in 0..barriers {
        let (mut built, mut at) = (build(case), 0);
        keep(&mut built, |op| {
            at += usize::from(is_barrier(op));
            !(is_barrier(op) && at == without + 1)
        });
        let (_, report) = run(case, &built);
        let found = races(&report, SpaceKind::Shared) || races(&report, SpaceKind::Global);
        assert!(found, "barrier {without} of {barriers} is not missed");
    }
    assert!(barriers >= least, "{barriers}");
}

/// Masks of keys beyond the end, orders of bytes and lanes of shuffles: each of them, where it is wrong, is seen.
#[test]
fn wrong_masks_permutations_and_lanes_are_seen() {
    let f16 = Case::new(kernel(4, 2, 64, CacheDtype::F16), &[37]);
    let quants = Case::new(kernel(4, 2, 64, CacheDtype::Q8_0), &[37]);
    let lanes = Case::new(IncrementalAttention { tensor_cores: false, ..f16.kernel }, &[37]);
    let masked = Src::Imm(Imm::F32((-1e30f32).to_bits()));
    let mask = |op: &mut Op| match op {
        // On the lanes it is the share of each lane of a run.
        Op::Selp(selp) if selp.b == masked || selp.b == Src::Imm(Imm::F32((-1e30f32 / 8.0).to_bits())) => {
            selp.b = selp.a.clone();
            true
        }
        _ => false,
    };
    let order = |op: &mut Op| match op {
        Op::Prmt(prmt) if matches!(prmt.c, Src::Imm(Imm::Int(0x5410 | 0x5140))) => {
            prmt.c = Src::Imm(Imm::Int(0x7632));
            true
        }
        _ => false,
    };
    for (case, wrong) in [
        (&f16, &mask as &dyn Fn(&mut Op) -> bool),
        (&quants, &mask),
        (&lanes, &mask),
        (&f16, &order),
        (&quants, &order),
    ] {
        let mut built = build(case);
        let mut changed = 0;
        keep(&mut built, |op| {
            changed += usize::from(wrong(op));
            true
        });
        assert!(changed > 0, "{case:?}");
        let (bits, _) = run(case, &built);
        assert!(validate(case, &bits).is_some(), "{changed} mistakes in {case:?} are not seen");
    }
}

#[test]
fn the_last_block_acquires_what_others_release() {
    let kernel = IncrementalAttention { splits: 2, ..kernel(2, 1, 32, CacheDtype::F32) };
    let case = Case::new(kernel, &[512]);
    for semantics in [Semantics::Relaxed, Semantics::Acquire] {
        let mut built = build(&case);
        keep(&mut built, |op| {
            if let Op::Atom(atom) = op {
                atom.semantics = Some(semantics);
            }
            true
        });
        let (_, report) = run(&case, &built);
        assert!(races(&report, SpaceKind::Global), "{semantics:?}: {report}");
    }
}

/// Traffic of the buffers, by name.
fn traffic(case: &Case<'_>) -> (Report, impl Fn(&str) -> SpaceTraffic + use<>) {
    let (_, report) = run(case, &build(case));
    assert!(report.is_clean(), "{report}");
    let by_buffer: Vec<_> = report.counters.allocations.iter().map(|allocation| allocation.2).collect();
    let names: Vec<_> =
        case.kernel.args().into_iter().map(|arg| arg.name).filter(|&name| name != "length").collect();
    // Those that were not touched are left out, and here they come last.
    let of = move |name: &str| {
        let at = names.iter().position(|&known| known == name).expect(name);
        by_buffer.get(at).copied().unwrap_or_default()
    };
    (report, of)
}

#[test]
fn keys_and_values_are_read_once_for_all_heads_that_share_them() {
    let group = |heads, kv_heads, head_dim, cache| (heads, kv_heads, head_dim, cache);
    for (heads, kv_heads, head_dim, cache) in [
        // Llama-3.2-1B, Qwen2.5-1.5B and Llama-3-8B, of two kv heads.
        group(8, 2, 64, CacheDtype::F16),
        group(12, 2, 128, CacheDtype::Bf16),
        group(8, 2, 128, CacheDtype::F16),
        group(8, 2, 128, CacheDtype::Q8_0),
        group(8, 2, 64, CacheDtype::Q8_0),
        group(14, 2, 128, CacheDtype::F16),
        group(16, 1, 128, CacheDtype::F16),
        group(16, 1, 128, CacheDtype::F32),
        group(8, 1, 256, CacheDtype::Q8_0),
        group(2, 2, 80, CacheDtype::F16),
        group(4, 1, 96, CacheDtype::F16),
        group(4, 1, 112, CacheDtype::Bf16),
        group(2, 1, 200, CacheDtype::F32),
    ] {
        for (splits, length, tensor_cores) in
            [(1, 256, true), (2, 512, true), (1, 331, true), (2, 640, false), (1, 203, false)]
        {
            let kernel =
                IncrementalAttention { splits, tensor_cores, ..kernel(heads, kv_heads, head_dim, cache) };
            assert_eq!(kernel.passes(), 1, "{kernel:?}");
            let case = Case::new(kernel, std::slice::from_ref(&length));
            let (report, of) = traffic(&case);
            let what = format!("{kernel:?} of {length} tokens");
            let row = u64::from(head_dim * cache.bytes());
            let rows = u64::from(kv_heads * length);
            let lanes = (row / 16).next_power_of_two();
            // On the tensor cores, 64 bytes of eight keys, and 128 bytes of four values; of quants those of a block.
            let by_lanes = if lanes > 32 { 2 * rows } else { rows.div_ceil(32 / lanes) };
            let by_square = |count, width| rows.div_ceil(count) * row.div_ceil(width);
            let widths = if cache == CacheDtype::Q8_0 { [32, 32] } else { [64, 128] };
            for (name, on_tensor_cores) in [("k", by_square(8, widths[0])), ("v", by_square(4, widths[1]))] {
                let loads = of(name).loads;
                assert_eq!(loads.bytes, rows * row, "{what}: {name} is read once");
                // A request is of 16 bytes by each lane that has some, of 8 or 4 where it is of quants; only the last ones may have fewer rows.
                let most = by_lanes.max(on_tensor_cores) + u64::from(kv_heads * splits) * 16;
                assert!((loads.bytes.div_ceil(512)..=most).contains(&loads.requests), "{what}: {loads:?}");
                // Rows that are no whole sectors share them with others of the request.
                let split_sectors = if row.is_multiple_of(32) { 0 } else { loads.requests };
                assert!(loads.transactions * 32 <= loads.bytes + 32 * split_sectors, "{what}: {loads:?}");
            }
            if cache == CacheDtype::Q8_0 {
                for name in ["k_scales", "v_scales"] {
                    let loads = of(name).loads;
                    // The eight lanes that share a key load the same.
                    assert_eq!(loads.bytes, 8 * rows * row / 16, "{what}: {name} is read once");
                    assert!(loads.requests <= of("k").loads.requests, "{what}: {loads:?}");
                    assert!(loads.transactions <= 4 * loads.requests, "{what}: {loads:?}");
                }
            }
            assert_eq!(of("out").stores.bytes, u64::from(heads * head_dim * 4), "{what}");
            assert_eq!(report.counters.bank_conflicts, 0, "{what}");
            assert_eq!(report.counters.local, SpaceTraffic::default(), "{what}");
        }
    }
}

/// Blocks that have no tokens read nothing but the length.
#[test]
fn blocks_without_tokens_read_nothing() {
    let kernel =
        IncrementalAttention { splits: 64, lengths_in_memory: true, ..kernel(4, 1, 64, CacheDtype::F16) };
    let (_, of) = traffic(&Case::new(kernel, &[100]));
    assert_eq!(of("k").loads.bytes, 100 * 64 * 2);
    for name in ["partial_out", "partial_stats", "arrivals"] {
        assert_eq!(of(name), SpaceTraffic::default(), "{name}");
    }
}

#[test]
fn what_is_no_configuration_is_refused_by_the_name_of_its_field() {
    let right = kernel(8, 2, 64, CacheDtype::F16);
    let wrong = [
        (IncrementalAttention { heads: 7, ..right }, "heads"),
        (IncrementalAttention { heads: 0, ..right }, "heads"),
        (IncrementalAttention { kv_heads: 0, ..right }, "kv_heads"),
        (IncrementalAttention { head_dim: 36, ..right }, "head_dim"),
        (IncrementalAttention { head_dim: 24, ..right }, "head_dim"),
        (IncrementalAttention { head_dim: 264, ..right }, "head_dim"),
        (IncrementalAttention { head_dim: 80, cache: CacheDtype::Q8_0, ..right }, "head_dim"),
        (IncrementalAttention { max_seq_len: 0, ..right }, "max_seq_len"),
        (IncrementalAttention { scale: Some(f32::NAN), ..right }, "scale"),
        (IncrementalAttention { splits: 0, ..right }, "splits"),
        (IncrementalAttention { warps: 3, ..right }, "warps"),
        (IncrementalAttention { heads: u32::MAX, head_dim: 0, max_seq_len: u32::MAX, ..right }, "head_dim"),
    ];
    for (kernel, field) in wrong {
        // None of these panics.
        let _ = (kernel.entry(), kernel.args(), kernel.launch());
        match kernel.build(Arch::sm(80)) {
            Err(warpwright_dsl::BuildError::Field { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{kernel:?}: {other:?}"),
        }
    }
}
