//! Choices for devices: estimates, and tables of what was measured.

use warpwright_dsl::Config as _;
use warpwright_kernels::tune::{
    AttentionChoice, AttentionShape, DeviceModel, FlashShape, GemmChoice, GemmShape, GemvShape, RopeShape,
    ScheduleShape, Shape, Table, TableProblem, Tuning,
};
use warpwright_kernels::{
    Activations, CacheDtype, Dtype, FlashAttention, IncrementalAttention, QuantGemv, WeightFormat,
};
use warpwright_ptx::ir::Arch;

/// Small and large devices of all kinds.
fn devices() -> Vec<DeviceModel> {
    let of = |sm| [1, 20, 132, 400].map(|n| DeviceModel::typical(Arch::sm(sm)).with_multiprocessors(n));
    [75, 80, 86, 90, 120].into_iter().flat_map(of).collect()
}

fn attention(length: u32, batch: Option<u32>) -> AttentionShape {
    let kernel =
        IncrementalAttention { cache: CacheDtype::F16, ..IncrementalAttention::new(32, 8, 128, 1 << 17) };
    AttentionShape::of(&kernel, length, batch)
}

#[test]
fn splits_fill_the_device_and_no_more() {
    let device = DeviceModel::typical(Arch::sm(90));
    let splits = |length, batch| attention(length, batch).estimate(&device).splits;
    assert_eq!(splits(100, Some(1)), 1, "short contexts are not split");
    assert_eq!(splits(1024, Some(1)), 4, "no fewer than 256 tokens each");
    assert_eq!(splits(1 << 17, Some(64)), 1, "a large batch fills the device");
    let all = splits(1 << 17, Some(1));
    assert!((132..=132 * 4).contains(&(all * 8)), "{all}");
    // A device of half the size has half as many, and the choice for any batch depends on none.
    let half = attention(1 << 17, Some(1)).estimate(&device.clone().with_multiprocessors(66)).splits;
    assert!(half.abs_diff(all / 2) <= 1, "{half} of {all}");
    assert_eq!(splits(1 << 17, None), all);
}

/// Kernels take whatever is estimated, on any device.
#[test]
fn estimates_are_of_configurations_that_kernels_have() {
    fn holds<S: Shape>(shape: &S, device: &DeviceModel) {
        let choice = shape.estimate(device);
        choice.check_fields().unwrap_or_else(|error| panic!("{:?}: {error}", shape.texts()));
        shape.check(&choice).unwrap_or_else(|error| panic!("{:?}: {error}", shape.texts()));
    }
    for device in devices() {
        for (n, k) in [(1, 256), (17, 1056), (4096, 4096), (128_256, 2048), (4096, 28_672)] {
            for format in [WeightFormat::Q4K, WeightFormat::Q8_0, WeightFormat::F16] {
                if k % format.block() != 0 {
                    continue;
                }
                for batch in [None, Some(1), Some(8)] {
                    let kernel = QuantGemv { batch: batch.unwrap_or(1), ..QuantGemv::new(format, n, k) };
                    holds(&GemvShape::of(&kernel, batch), &device);
                }
                for (terms, tokens) in [(1, 1), (2, 17), (1, 4096), (2, u32::MAX)] {
                    holds(&GemmShape { format, n, k, terms, tokens }, &device);
                }
            }
        }
        for length in [1, 1 << 12, 1 << 20] {
            holds(&attention(length, Some(3)), &device);
        }
        for (head_dim, q) in [(64, Dtype::F16), (128, Dtype::F32), (256, Dtype::F16)] {
            for tokens in [None, Some(1), Some(u32::MAX)] {
                let kernel = FlashAttention { q, ..FlashAttention::new(32, 8, head_dim, 4096) };
                holds(&FlashShape::of(&kernel, tokens), &device);
            }
        }
        for tokens in [1, 1 << 16, u32::MAX] {
            holds(&RopeShape { heads: 40, tokens }, &device);
        }
        holds(&ScheduleShape {}, &device);
    }
}

/// Few queries have smaller blocks, and as many keys in a tile: the order of the sums is the same.
#[test]
fn few_queries_have_small_blocks() {
    let device = DeviceModel::typical(Arch::sm(90));
    let choice = |tokens| FlashShape::of(&FlashAttention::new(8, 8, 128, 4096), tokens).estimate(&device);
    assert_eq!((choice(Some(512)).rows, choice(Some(4096)).rows, choice(None).rows), (64, 128, 128));
    assert_eq!(choice(Some(512)).keys, choice(Some(4096)).keys);
}

/// What needs a device of more shared memory is not chosen for one that has less.
#[test]
fn tiles_fit_the_target() {
    let shape = |tokens| GemmShape { format: WeightFormat::Q4K, n: 14_336, k: 4096, terms: 1, tokens };
    let rows = |sm, tokens| shape(tokens).estimate(&DeviceModel::typical(Arch::sm(sm))).rows;
    assert!(rows(80, 8192) == 256 && rows(75, 8192) <= 128);
    assert_eq!(rows(80, 16), 16);
}

const TABLE: &str = "\
# Of two devices.
[card one]
gemm n=4096 k=14336 tokens=512 -> rows=64 columns=128   # a comment
attention heads=32 kv_heads=8 head_dim=128 length=8192 -> splits=7
attention heads=32 kv_heads=8 head_dim=128 length=8192 batch=any -> splits=5

[card two]
gemv format=q6_k n=1024+256 k=4096 activations=int8 -> warps=3 rows=8
schedule -> large=1000000 round=0
";

#[test]
fn rows_are_for_their_device_and_shape_alone() {
    let table = Table::parse(TABLE).expect("a table");
    let mut one = Tuning::new(DeviceModel::typical(Arch::sm(90)));
    one.device.name = "card one".into();
    one.measured = table.into();
    let gemm = GemmShape { format: WeightFormat::Q4K, n: 4096, k: 14_336, terms: 1, tokens: 512 };
    assert_eq!(one.choose(&gemm), GemmChoice { rows: 64, columns: 128 });
    for other in [GemmShape { tokens: 513, ..gemm.clone() }, GemmShape { terms: 2, ..gemm.clone() }] {
        assert_eq!(one.choose(&other), other.estimate(&one.device));
    }
    assert_eq!(one.choose(&attention(8192, Some(1))).splits, 7);
    assert_eq!(one.choose(&attention(8192, None)).splits, 5);
    assert_eq!(one.choose(&ScheduleShape {}), ScheduleShape {}.estimate(&one.device));
    let mut two = one.clone();
    two.device.name = "card two".into();
    assert_eq!(two.choose(&gemm), gemm.estimate(&two.device));
    assert_eq!(two.choose(&ScheduleShape {}).large, 1_000_000);
    // The batch that is asked about is the one of the order of sums that is wanted.
    assert_eq!(
        (two.batch(4), {
            two.batch_invariant = true;
            two.batch(4)
        }),
        (Some(4), None)
    );
}

#[test]
fn what_is_printed_is_read_again() {
    let table = Table::parse(TABLE).expect("a table");
    let text = table.to_string();
    assert_eq!(Table::parse(&text).expect("the printed table"), table);
    assert_eq!(Table::parse(&text).expect("the printed table").to_string(), text);
    // Set by code as by text.
    let mut other = Table::default();
    other.set("card", &attention(8192, Some(1)), &AttentionChoice { splits: 7, warps: 4 });
    let read = Table::parse("[card]\nattention heads=32 kv_heads=8 head_dim=128 length=8192 -> splits=7\n");
    assert_eq!(other, read.expect("a table"));
    assert!(Table::parse("\n# nothing\n").expect("an empty table").devices().next().is_none());
}

#[test]
fn wrong_lines_are_named() {
    type Is = fn(&TableProblem) -> bool;
    let field: Is = |problem| matches!(problem, TableProblem::Field(_));
    let wrong: [(&str, usize, Is); 10] = [
        ("gemv n=1 k=256 -> warps=1 rows=4", 1, |problem| matches!(problem, TableProblem::NoDevice)),
        ("[a]\nrope heads=8 tokens=1 rounds=1", 2, |problem| matches!(problem, TableProblem::NoArrow)),
        ("[a]\n\nropes heads=8 -> rounds=1", 3, |problem| matches!(problem, TableProblem::Unknown { .. })),
        ("[a]\nrope heads=8 -> rounds=1", 2, field),
        ("[a]\nrope heads=8 tokens=1 -> rounds=17", 2, field),
        ("[a]\nrope heads=8 tokens=1 -> turns=1", 2, field),
        // What the kernel does not take: rows of 256 tokens with two terms, and columns that are no multiple of a block.
        ("[a]\ngemm n=64 k=256 terms=2 tokens=9 -> rows=256 columns=128", 2, field),
        ("[a]\ngemv n=64 k=256 batch=8 -> warps=1 rows=4", 2, field),
        ("[a]\ngemv n=64 k=100 -> warps=1 rows=4", 2, field),
        ("[a]\nrope heads=8 tokens=1 -> rounds=1\nrope tokens=1 heads=8 -> rounds=2", 3, |problem| {
            matches!(problem, TableProblem::Twice)
        }),
    ];
    for (text, line, is) in wrong {
        let error = Table::parse(text).expect_err(text);
        assert!(error.line == line && is(&error.problem), "{text:?}: {error}");
    }
}

/// How many blocks are resident, by what limits them.
#[test]
fn resident_blocks_are_what_a_multiprocessor_has_room_for() {
    use warpwright_dsl::LaunchRule;
    let device = DeviceModel::typical(Arch::sm(75));
    let of = |threads, shared, wanted| {
        let mut rule = LaunchRule::new(threads).dynamic_shared(shared);
        rule.resident_blocks = wanted;
        device.resident(&rule)
    };
    // 32 warps, 16 blocks and 64 KiB.
    assert_eq!(of(256, 0, None), 4);
    assert_eq!(of(32, 0, None), 16);
    assert_eq!(of(128, 31 << 10, None), 2);
    assert_eq!(of(128, 31 << 10, Some(1)), 1);
    assert_eq!(of(128, 31 << 10, Some(8)), 2);
    assert_eq!(of(1024, 63 << 10, Some(8)), 1);
}

/// What is estimated comes first, and kernels take and build every candidate.
#[test]
fn spaces_have_what_kernels_take() {
    let table = Table::parse(TABLE).expect("a table");
    for sm in [75, 80, 90] {
        let device = DeviceModel::typical(Arch::sm(sm));
        let spaces = table.spaces(&device);
        // The schedule of the persistent decoder is no single launch.
        assert_eq!(spaces.len(), 4, "sm_{sm}");
        for space in spaces {
            let rows: Vec<_> = space
                .candidates
                .iter()
                .map(|candidate| format!("{} -> {}", space.shape, candidate.choice))
                .collect();
            let mut one = rows.clone();
            one.sort();
            one.dedup();
            assert!(one.len() == rows.len() && rows.len() > 3, "sm_{sm}: {rows:?}");
            let text = format!("[card]\n{}", rows[0]);
            let first = Table::parse(&text).expect("a row");
            assert_eq!(estimated(&space.shape, &device), first.to_string(), "sm_{sm}");
            for (row, candidate) in rows.iter().zip(&space.candidates) {
                Table::parse(&format!("[card]\n{row}")).unwrap_or_else(|error| panic!("{row}: {error}"));
                let built = candidate.launch.kernel.build(device.arch);
                built.unwrap_or_else(|error| panic!("{row}: {error}"));
            }
        }
    }
}

/// The row that a device without measurements has for a shape, as a table.
fn estimated(shape: &str, device: &DeviceModel) -> String {
    let mut table = Table::default();
    let attention = |batch| attention(8192, batch);
    match shape.split(' ').next() {
        Some("gemm") => {
            let shape = GemmShape { format: WeightFormat::Q4K, n: 4096, k: 14_336, terms: 1, tokens: 512 };
            table.set("card", &shape, &shape.estimate(device));
        }
        Some("attention") => {
            let shape = attention(if shape.contains("any") { None } else { Some(1) });
            table.set("card", &shape, &shape.estimate(device));
        }
        _ => {
            let shape = GemvShape {
                format: WeightFormat::Q6K,
                n: vec![1024, 256],
                k: 4096,
                batch: Some(1),
                activations: Activations::Int8,
                gate: false,
            };
            table.set("card", &shape, &shape.estimate(device));
        }
    }
    table.to_string()
}

#[test]
fn merged_rows_replace_those_of_the_same_shape() {
    let mut table =
        Table::parse("[a]\nrope heads=1 tokens=1 -> rounds=2\nrope heads=2 tokens=1 -> rounds=2\n")
            .expect("a");
    table.merge(
        Table::parse("[a]\nrope heads=1 tokens=1 -> rounds=4\n[b]\nrope heads=1 tokens=1 -> rounds=8\n")
            .expect("b"),
    );
    let wanted = "[a]\nrope heads=1 tokens=1 -> rounds=4\nrope heads=2 tokens=1 -> rounds=2\n[b]\nrope heads=1 tokens=1 -> rounds=8\n";
    assert_eq!(table, Table::parse(wanted).expect("both"));
}
