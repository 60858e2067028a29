//! FlashAttention against float64 on the virtual GPU with every check on, and what it asks of memory.

mod case;
mod reference;

use crate::common::ops::{Sample, full};
use case::{Case, Class, run};
use reference::expected;
use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::tune::{FlashShape, Shape as _};
use warpwright_kernels::{Dtype, FlashAttention, KvLayout, Lengths};
use warpwright_ptx::ir::Arch;

fn check(case: &Case<'_>) {
    let outcome = run(case);
    let kernel = &case.kernel;
    let what = format!("{} {:?} on sm_{}", kernel.entry(), case.class, case.sm);
    let (d, heads) = (kernel.head_dim as usize, kernel.heads as usize);
    let mut written = vec![false; outcome.out.len() / d];
    for (b, &(q_len, kv_len)) in case.sequences.iter().enumerate() {
        let room = match kernel.kv_layout {
            KvLayout::Cache => kernel.max_seq_len as usize,
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
    crate::common::assert_no_conflicts(&outcome.run.report, &what);
}

fn kernel(head_dim: u32, heads: u32, kv_heads: u32) -> FlashAttention {
    FlashAttention { out: Dtype::F32, ..FlashAttention::new(heads, kv_heads, head_dim, 450) }
}

fn every_head_dimension() {
    for (head_dim, seed) in [64, 80, 96, 128, 192, 256, 16, 112].into_iter().zip(1..) {
        for (sm, causal) in [(80, true), (80, false), (75, true), (90, false)] {
            let kernel = FlashAttention { causal, ..kernel(head_dim, 2, 1) };
            check(&Case { kernel, sm, sequences: &[(70, 70)], class: Class::Normal, seed });
        }
    }
}

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

fn tiles_of_every_size() {
    let mut sample = Sample::one_in(4);
    for (head_dim, seed) in [(48, 1), (64, 2), (128, 3), (256, 4)] {
        for (q, sm) in [(Dtype::F16, 80), (Dtype::F32, 90), (Dtype::F16, 75)] {
            let kernel = FlashAttention { q, ..kernel(head_dim, 2, 1) };
            let shape = FlashShape::of(&kernel, Some(130));
            let choices = shape.space().into_iter().filter(|choice| shape.check(choice).is_ok());
            for choice in choices.filter(|_| sample.takes()) {
                let kernel = choice.apply(kernel);
                check(&Case { kernel, sm, sequences: &[(130, 200)], class: Class::Normal, seed });
            }
        }
    }
}

fn groups_of_heads_batches_and_layouts() {
    let sequences = [(33, 70), (0, 5), (5, 0), (1, 129), (130, 140), (20, 7)];
    for (heads, kv_heads, seed) in [(1, 1, 1), (4, 2, 2), (4, 1, 3), (14, 2, 4)] {
        for (kv_layout, max_seq_len, lengths) in [
            (KvLayout::Cache, 131, Lengths::Buffers),
            (KvLayout::Tokens, 1, Lengths::Buffers),
            (KvLayout::Cache, 150, Lengths::Scalars),
            (KvLayout::Tokens, 1, Lengths::Scalars),
        ] {
            let kernel =
                FlashAttention { kv_layout, max_seq_len, lengths, lse: true, ..kernel(64, heads, kv_heads) };
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

fn numbers_of_every_kind() {
    use Dtype::*;
    let mut sample = Sample::one_in(3);
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
            let shapes = [(80, false, (34, 197)), (90, true, (70, 197)), (80, true, (9, 430))];
            for (sm, causal, lens) in shapes.into_iter().filter(|_| sample.takes()) {
                let kernel = typed(inputs, inputs, out, factors, kernel(64, 1, 1));
                let kernel = FlashAttention { causal, lse: true, ..kernel };
                check(&Case { kernel, sm, sequences: &[lens], class, seed: 11 });
            }
        }
    }
}

fn whatever_the_order_of_warps() {
    let mut sample = Sample::one_in(3);
    for seed in 0..6 {
        for (sm, head_dim) in [(75, 64), (80, 128), (90, 256)].into_iter().filter(|_| sample.takes()) {
            let kernel = kernel(head_dim, 2, 1);
            check(&Case { kernel, sm, sequences: &[(130, 330)], class: Class::Rising, seed });
        }
    }
}

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
    assert_eq!(refused(FlashAttention { scale: Some(f32::NAN), ..good }), "scale");
    assert_eq!(refused(FlashAttention { scale: Some(-1.0), ..good }), "scale");
    assert_eq!(refused(FlashAttention { factors: Dtype::F32, ..good }), "factors");
    assert_eq!(refused(FlashAttention { q: Dtype::Bf16, ..good }), "q");
    assert_eq!(refused(FlashAttention { kv: Dtype::F16, q: Dtype::F32, factors: Dtype::Bf16, ..good }), "kv");
    assert_eq!(refused(FlashAttention { keys: Some(128), ..good }), "keys");
    assert_eq!(refused(FlashAttention { keys: Some(24), ..good }), "keys");
    assert_eq!(refused(FlashAttention { rows: Some(16), ..good }), "rows");
    assert_eq!(refused(FlashAttention { rows: Some(128), head_dim: 256, ..good }), "rows");
    assert_eq!(refused(FlashAttention { max_seq_len: 0, ..good }), "max_seq_len");
}

/// A layer of real models, with `WARPWRIGHT_FULL`: a prompt, and a chunk of a longer one.
fn layers_of_models() {
    if !full() {
        return;
    }
    for (head_dim, heads, kv_heads) in [(64, 32, 8), (128, 12, 2), (128, 32, 8)] {
        for (sm, lens) in [(80, (512, 512)), (90, (160, 1000))] {
            let kernel = FlashAttention::new(heads, kv_heads, head_dim, 1024);
            check(&Case { kernel, sm, sequences: &[lens], class: Class::Normal, seed: 1 });
        }
    }
}

crate::case_list! {
    every_head_dimension,
    every_length_beside_a_tile,
    tiles_of_every_size,
    groups_of_heads_batches_and_layouts,
    every_element_type,
    numbers_of_every_kind,
    whatever_the_order_of_warps,
    what_cannot_be_is_refused_by_name,
    layers_of_models,
}

/// What the virtual GPU alone counts.
#[cfg(test)]
mod on_the_vm {
    use super::*;

    /// A block has so many queries, and copies so many keys at a time.
    #[test]
    fn tiles_are_as_they_are_chosen() {
        // Of 256 keys, those that the blocks see, in whole tiles but for the end of the keys.
        for (rows, keys, copied) in [
            (128, 48, 144 + 256),
            (128, 16, 128 + 256),
            (64, 48, 96 + 144 + 192 + 256),
            (64, 32, 64 + 128 + 192 + 256),
        ] {
            let kernel = FlashAttention { rows: Some(rows), keys: Some(keys), ..kernel(128, 2, 1) };
            let case = Case { kernel, sm: 80, sequences: &[(256, 256)], class: Class::Normal, seed: 1 };
            let counters = &run(&case).run.report.expect("the report of a virtual GPU").counters;
            let blocks = 2 * 256 / u64::from(rows);
            assert_eq!(counters.blocks, blocks, "{rows} × {keys}");
            assert_eq!(counters.allocations[1].2.loads.bytes, 2 * copied * 128 * 2, "{rows} × {keys}");
        }
    }

    /// Keys and values are copied once for each tile of queries that sees them, 16 bytes a thread and every sector
    /// in full; tiles that none of them sees are not. Every product is one instruction, with fragments that are
    /// loaded four matrices at a time.
    #[test]
    fn nothing_is_loaded_twice_and_nothing_in_vain() {
        let kernel = FlashAttention { kv_layout: KvLayout::Tokens, ..kernel(128, 2, 1) };
        let lens = (256, 256);
        let outcome = run(&Case { kernel, sm: 80, sequences: &[lens], class: Class::Normal, seed: 1 });
        let counters = &outcome.run.report.expect("the report of a virtual GPU").counters;
        let [q, keys, values, out] = [0, 1, 2, 3].map(|i| counters.allocations[i].2);
        // Two tiles of 128 queries for each head: of 48 keys, the first sees three, and the second six, of which the last
        // has 16 keys.
        let (tiles, heads, row) = (3 + 6, 2, 128 * 2);
        for loads in [keys.loads, values.loads] {
            assert_eq!(loads.bytes, heads * (3 * 48 + 256) * row);
            assert_eq!(loads.bytes, loads.requests * 32 * 16, "less than 16 bytes a thread");
            assert_eq!(loads.bytes, loads.transactions * 32, "sectors are fetched in part");
        }
        assert_eq!(q.loads.bytes, 256 * heads * row);
        assert_eq!((out.stores.bytes, out.loads.bytes), (256 * heads * row * 2, 0));
        assert_eq!(out.stores.bytes, out.stores.transactions * 32, "sectors are stored in part");
        assert_eq!(counters.bank_conflicts, 0);
        assert_eq!(counters.local.loads.requests + counters.local.stores.requests, 0);

        let warps = |opcode: &str| counters.by_opcode.get(opcode).copied().unwrap_or(0) / 32;
        // For each 16 rows of the 4 warps and a tile: 8 steps of 6 columns, 3 steps of 16, and the 3 that sum weights.
        assert_eq!(warps("mma.sync.aligned"), tiles * heads * 4 * 2 * (48 + 48 + 3));
        // Keys and values once for a warp, queries once at all.
        let q_fragments = 2 * heads * 4 * 2 * 8;
        assert_eq!(warps("ldmatrix.sync.aligned"), tiles * heads * 4 * (24 + 24) + q_fragments);
    }
}
