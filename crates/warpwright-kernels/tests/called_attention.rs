//! Decode attention that another kernel calls: heads, rows and scale are registers, and it does what it does where it is
//! launched, bit for bit.

use std::collections::HashMap;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_kernels::{
    CacheDtype, Dtype, IncrementalAttention, IncrementalAttentionArgs, Op, Rope, RopeArgs,
};
use warpwright_ptx::ir::Arch;
use warpwright_qualify::common::called::{Calls, called_ptx};
use warpwright_qualify::common::{encode, numbers};
use warpwright_test::{KernelTest, TestError};
use warpwright_vm::{Finding, FindingKind, Options};

/// A cache of `rows` rows of `d` elements for each head of each sequence, and its scales. Rows behind a sequence's
/// length are NaN, or have NaN as their scale.
fn cache(kernel: &IncrementalAttention, lengths: &[u32], seed: u64) -> (Vec<u8>, Vec<u16>) {
    let [d, rows, heads] = [kernel.head_dim, kernel.max_seq_len, kernel.kv_heads].map(|n| n as usize);
    let count = lengths.len() * heads * rows;
    let values = numbers(count * d, seed);
    let mut bytes = match kernel.cache {
        CacheDtype::Q8_0 => values.iter().map(|x| (x * 127.0) as i8 as u8).collect(),
        dtype => encode(dtype.ty(), &values),
    };
    let mut scales: Vec<u16> = match kernel.cache {
        CacheDtype::Q8_0 => {
            numbers(count * d / 32, seed + 1).iter().map(|x| f16_bits(*x as f32 / 99.0)).collect()
        }
        _ => Vec::new(),
    };
    let (of_row, of_scales) = (bytes.len() / count, scales.len() / count);
    for row in (0..count).filter(|row| (row % rows) as u32 >= lengths[row / (heads * rows)]) {
        bytes[row * of_row..][..of_row].fill(0xff);
        scales[row * of_scales..][..of_scales].fill(0x7fff);
    }
    (bytes, scales)
}

fn calls<'a>(kernel: &'a IncrementalAttention, lengths: &[u32]) -> Calls<'a> {
    let IncrementalAttention { head_dim, heads, splits, .. } = *kernel;
    let batch = lengths.len();
    let query = encode(kernel.q.ty(), &numbers(batch * (heads * head_dim) as usize, 3));
    let mut calls = Calls::new(kernel).dim("batch", batch as u64).elements("q", kernel.q.ty(), &query);
    for (name, scales, seed) in [("k", "k_scales", 5), ("v", "v_scales", 9)] {
        let (elements, of_blocks) = cache(kernel, lengths, seed);
        calls = calls.elements(name, kernel.cache.ty(), &elements);
        if kernel.cache == CacheDtype::Q8_0 {
            calls = calls.input(scales, &of_blocks);
        }
    }
    calls = match kernel.lengths_in_memory {
        true => calls.input("lengths", lengths),
        false => calls.scalar("length", lengths[0].into()),
    };
    if splits > 1 {
        let parts = batch * (heads * splits) as usize;
        let counters = batch * (kernel.kv_heads * kernel.passes()) as usize;
        calls = calls
            .input("partial_out", &vec![f32::NAN; parts * head_dim as usize])
            .input("partial_stats", &vec![f32::NAN; parts * 2])
            .input("arrivals", &vec![0u32; counters]);
    }
    calls
}

/// Another model's attention, which has the same code.
fn another(kernel: &IncrementalAttention) -> IncrementalAttention {
    let (group, kv_heads) = (kernel.heads / kernel.kv_heads, kernel.kv_heads + 1);
    IncrementalAttention {
        kv_heads,
        heads: group * kv_heads,
        max_seq_len: kernel.max_seq_len * 3 + 17,
        scale: Some(kernel.score_scale() * 1.5),
        ..*kernel
    }
}

#[track_caller]
fn check(kernel: IncrementalAttention, sm: u16, lengths: &[u32]) {
    let other = another(&kernel);
    calls(&kernel, lengths).arch(Arch::sm(sm)).with_code_of(&other).check();
}

/// Groups of `group` heads for each of `kv_heads`, with the other types of `q` and `out` taken in turn.
fn model(kv_heads: u32, group: u32, head_dim: u32, room: u32, cache: CacheDtype) -> IncrementalAttention {
    let turn = (group + head_dim / 8) as usize;
    IncrementalAttention {
        cache,
        q: Dtype::ALL[turn % 3],
        out: Dtype::ALL[(turn / 2) % 3],
        lengths_in_memory: true,
        ..IncrementalAttention::new(kv_heads * group, kv_heads, head_dim, room)
    }
}

#[test]
fn every_cache_and_head_dim_in_one_part() {
    let shapes = [(32, 1), (64, 4), (96, 3), (128, 8), (256, 2)];
    for (i, (head_dim, group)) in shapes.into_iter().enumerate() {
        for (j, cache) in CacheDtype::ALL.into_iter().enumerate() {
            let warps = [4, 8, 1, 2][(i + j) % 4];
            let tensor_cores = (i + j) % 3 > 0;
            let kernel = IncrementalAttention { warps, tensor_cores, ..model(2, group, head_dim, 40, cache) };
            check(kernel, [80, 75, 90][i % 3], &[0, 1, 33, 50]);
        }
    }
}

#[test]
fn head_dims_that_no_run_of_lanes_holds_exactly() {
    for (head_dim, group) in [(40, 2), (72, 7), (120, 1), (136, 3), (248, 1)] {
        for cache in [CacheDtype::F16, CacheDtype::Bf16, CacheDtype::F32] {
            check(model(2, group, head_dim, 19, cache), 80, &[17, 5]);
        }
    }
}

#[test]
fn groups_of_several_passes_and_n8_tiles() {
    for (group, head_dim, cache) in [
        (9, 64, CacheDtype::F16),
        (16, 128, CacheDtype::F16),
        (17, 128, CacheDtype::Bf16),
        (33, 32, CacheDtype::F16),
        (11, 64, CacheDtype::Q8_0),
        (33, 128, CacheDtype::F32),
    ] {
        check(model(1, group, head_dim, 270, cache), 80, &[21]);
        // Each pass of each head of each sequence has a counter.
        let kernel = model(2, group, head_dim, 270, cache);
        check(IncrementalAttention { splits: 2, ..kernel }, 80, &[261, 266]);
    }
}

#[test]
fn lengths_around_the_bounds_of_parts() {
    for (cache, tensor_cores) in
        [(CacheDtype::F16, true), (CacheDtype::Bf16, false), (CacheDtype::Q8_0, false)]
    {
        for splits in [2, 3, 40] {
            let kernel = IncrementalAttention { splits, tensor_cores, ..model(2, 3, 32, 600, cache) };
            check(kernel, 80, &[0, 255, 513]);
            check(kernel, 80, &[256, 257, 1, 511]);
            check(kernel, 80, &[512, 700]);
        }
    }
}

#[test]
fn one_length_by_value() {
    for splits in [1, 4] {
        for length in [0, 1, 290, 400] {
            let kernel = IncrementalAttention {
                lengths_in_memory: false,
                splits,
                warps: 2,
                ..model(3, 2, 64, 300, CacheDtype::F16)
            };
            check(kernel, 80, &[length]);
        }
    }
}

/// Numbers from 0 on, the same every time.
struct Draw(u64);

impl Draw {
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list[(self.0 >> 33) as usize % list.len()]
    }
}

/// Heads of the cache, its rows and the scale are in no text.
#[test]
fn shapes_share_texts() {
    let mut draw = Draw(7);
    let mut texts = HashMap::new();
    for _ in 0..120 {
        let (kv_heads, group, head_dim) = (draw.of(&[1, 2, 8]), draw.of(&[1, 4]), draw.of(&[64, 160]));
        let kernel = IncrementalAttention {
            scale: Some(draw.of(&[0.1, 0.125, 1.0])),
            splits: draw.of(&[1, 32]),
            warps: draw.of(&[4, 8]),
            tensor_cores: draw.of(&[true, false]),
            lengths_in_memory: true,
            cache: draw.of(&[CacheDtype::F16, CacheDtype::Q8_0]),
            ..IncrementalAttention::new(kv_heads * group, kv_heads, head_dim, draw.of(&[1, 77, 1 << 20]))
        };
        AnyKernel::check(&kernel).expect("a kernel that there is");
        let sm = draw.of(&[75, 80]);
        let IncrementalAttention { splits, warps, tensor_cores, cache, .. } = kernel;
        let text = called_ptx(&kernel, Arch::sm(sm));
        let known = texts.entry((group, head_dim, splits, warps, tensor_cores, cache, sm));
        assert!(*known.or_insert_with(|| text.clone()) == text, "{kernel:?}");
    }
}

/// Results are asked for again behind the keys: they are in the record all the same.
#[test]
fn an_op_takes_all_arguments() {
    for splits in [1, 4] {
        let attention = IncrementalAttention { splits, ..model(2, 4, 64, 300, CacheDtype::F16) };
        let kernel: Arc<dyn AnyKernel + Send + Sync> = Arc::new(attention);
        let ops = Op::of(&kernel, 8, Arch::sm(80)).expect("an op");
        let names = |args: Vec<&ArgDesc>| args.into_iter().map(|arg| arg.name).collect::<Vec<_>>();
        assert_eq!(names(ops[0].args().collect()), names(kernel.args().iter().collect()));
    }
}

/// What the virtual GPU alone finds.
mod on_the_vm {
    use super::*;

    /// Attention by one block while another appends the row of a position to the same cache.
    struct Beside {
        attention: IncrementalAttention,
        append: Rope,
    }

    impl AnyKernel for Beside {
        fn entry(&self) -> String {
            "beside".into()
        }

        fn args(&self) -> Vec<ArgDesc> {
            let rows = self.attention.max_seq_len * self.attention.head_dim;
            let (head_dim, cache) = (self.attention.head_dim, self.attention.cache.ty());
            vec![
                ArgDesc::input::<f32>("q", head_dim),
                ArgDesc::input::<f32>("new", head_dim),
                ArgDesc::input::<u32>("positions", 1),
                ArgDesc::input::<u32>("lengths", 1),
                ArgDesc::buffer("k", cache, Role::InOut, rows),
                ArgDesc::buffer("v", cache, Role::InOut, rows),
                ArgDesc::output::<f32>("out", head_dim),
            ]
        }

        fn launch(&self) -> LaunchRule {
            LaunchRule::new(128).grid(2)
        }

        fn body(&self, k: K<'_>) {
            let cache = |name| match self.attention.cache {
                CacheDtype::F32 => AnyPtr::from(k.ptr_mut::<f32>(name)),
                _ => k.ptr_mut::<F16>(name).into(),
            };
            let (keys, values, out) = (cache("k"), cache("v"), k.ptr_mut::<f32>("out"));
            let (q, new) = (k.ptr::<f32>("q"), k.ptr::<f32>("new"));
            let (positions, lengths) = (k.ptr("positions"), k.ptr("lengths"));
            let ([zero, one], team) = ([0, 1].map(|n| k.u32(n)), k.teams(4));
            let alone = |body: &dyn Fn()| team.run([zero; 3], [one; 3], body);
            let attend = || IncrementalAttentionArgs {
                q: q.into(),
                k: keys,
                k_scales: None,
                v: values,
                v_scales: None,
                out: out.into(),
                lengths: Some(lengths),
                length: None,
                partial_out: None,
                partial_stats: None,
                arrivals: None,
                batch: (),
            };
            let append = || RopeArgs {
                q: None,
                q_in_place: None,
                k: Some(new.into()),
                v: Some(new.into()),
                qkv: None,
                qkv_in_place: None,
                q_norm: None,
                k_norm: None,
                positions: Some(positions),
                sequences: None,
                batch: None,
                freq_factors: None,
                rotated: None,
                k_cache: Some(keys),
                k_scales: None,
                v_cache: Some(values),
                v_scales: None,
                tokens: (),
            };
            k.if_else(
                k.ctaid().eq(0),
                || alone(&|| Kernel::body(&self.attention, k, attend())),
                || alone(&|| Kernel::body(&self.append, k, append())),
            );
        }
    }

    /// Loads ahead, and those of a step with fewer keys, stay below the length: the next row may be on its way there.
    #[test]
    fn no_row_is_touched_that_another_block_may_write() {
        for (cache, tensor_cores) in
            [(CacheDtype::F16, true), (CacheDtype::F16, false), (CacheDtype::F32, false)]
        {
            let (d, room) = (64, 700);
            let attention = IncrementalAttention {
                cache,
                tensor_cores,
                lengths_in_memory: true,
                ..IncrementalAttention::new(1, 1, d, room)
            };
            let kernel = Beside { attention, append: Rope { cache, ..Rope::append(1, d, room) } };
            for position in [0, 1, 31, 32, 64, 127, 128, 129, 255, 300, 699] {
                let run = |length: u32| {
                    let rows = numbers((room * d) as usize, 4);
                    let halves: Vec<u16> = rows.iter().map(|&x| f16_bits(x as f32)).collect();
                    let singles: Vec<f32> = rows.iter().map(|&x| x as f32).collect();
                    let of_one: Vec<f32> = (0..d).map(|i| i as f32 / 64.0).collect();
                    let test = KernelTest::new(&kernel);
                    let test = match cache {
                        CacheDtype::F32 => test.input("k", &singles).input("v", &singles),
                        _ => test.input("k", &halves).input("v", &halves),
                    };
                    test.options(Options::checked())
                        .input("q", &of_one)
                        .input("new", &of_one)
                        .input("positions", &[position])
                        .input("lengths", &[length])
                        .run()
                };
                if let Err(error) = run(position) {
                    panic!("{cache}, {position} rows: {error}");
                }
                let Err(TestError::Findings(report)) = run(position + 1) else {
                    panic!("{cache}, {position} rows: a race that is not seen")
                };
                let is_race = |finding: &Finding| matches!(finding.kind, FindingKind::Race { .. });
                assert!(report.findings.iter().all(is_race), "{report}");
            }
        }
    }
}
