//! RoPE and the way into the cache, called by another kernel: heads, strides, angles and epsilon are not in the code,
//! and it does what it does where it is launched, bit for bit.

use std::collections::HashMap;
use warpwright_dsl::ArgDesc;
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::{CacheDtype, Dtype, QkvLayout, Rope, RopePairs, RopeScaling, TokenSequences};
use warpwright_ptx::ir::Arch;
use warpwright_qualify::common::called::{Calls, called_ptx};
use warpwright_qualify::common::{encode, numbers};

const POSITIONS: [u32; 6] = [3, 0, 6, 2, 7, u32::MAX];
const SEQUENCES: [u32; 6] = [1, 2, 0, 0, 1, 2];

fn calls(rope: &Rope) -> Calls<'_> {
    let tokens = if rope.sequences == TokenSequences::One { 3 } else { 6 };
    let mut calls = Calls::new(rope).dim("tokens", tokens as u64).dim("batch", 3);
    let dims = |name: &str| match name {
        "tokens" => Some(tokens as u64),
        _ => Some(3),
    };
    let is_output = |name: &str| ["rotated", "k_cache", "v_cache", "k_scales", "v_scales"].contains(&name);
    for (seed, arg) in (1..).zip(rope.args()).filter(|(_, arg)| !is_output(arg.name)) {
        let count = arg.len.evaluate(dims).expect("a length") as usize;
        calls = match arg.name {
            "positions" => calls.input("positions", &POSITIONS[..tokens]),
            "sequences" => calls.input("sequences", &SEQUENCES[..tokens]),
            "freq_factors" => {
                let factors: Vec<f32> = (0..count).map(|i| 1.0 + i as f32 * 0.37).collect();
                calls.input("freq_factors", &factors)
            }
            name => calls.elements(name, arg.dtype, &encode(arg.dtype, &numbers(count, seed))),
        };
    }
    // The cache has room for more tokens than there are.
    let is_cache = |arg: &ArgDesc| is_output(arg.name) && arg.name != "rotated";
    rope.args().iter().filter(|arg| is_cache(arg)).fold(calls, |calls, arg| calls.partly(arg.name))
}

/// Another model's, which has the same code.
fn another(rope: &Rope) -> Rope {
    // As many more as whole warps take.
    let more = |heads: u32| if heads > 0 { heads + 96 } else { 0 };
    let (heads, kv_heads) = (more(rope.heads), more(rope.kv_heads));
    let layout = match rope.layout {
        QkvLayout::Fused { pitch } => QkvLayout::Fused { pitch: pitch + 512 * rope.head_dim },
        separate => separate,
    };
    Rope {
        heads,
        kv_heads,
        layout,
        max_seq_len: rope.max_seq_len * 5 + 3,
        norm: rope.norm.map(|epsilon| epsilon + 0.25),
        base: rope.base * 3.5,
        scaling: match rope.scaling {
            RopeScaling::None => RopeScaling::Linear { factor: 3.0 },
            RopeScaling::Linear { .. } => RopeScaling::None,
            RopeScaling::Yarn { .. } => RopeScaling::yarn(7.0, 4096),
        },
        ..*rope
    }
}

#[track_caller]
fn check(rope: &Rope, sm: u16) {
    let other = another(rope);
    calls(rope).arch(Arch::sm(sm)).with_code_of(&other).check();
}

fn width(rope: &Rope) -> u32 {
    (rope.heads + 2 * rope.kv_heads) * rope.head_dim
}

#[test]
fn every_cache_type_and_layout() {
    for (i, cache) in CacheDtype::ALL.into_iter().enumerate() {
        for (j, sequences) in
            [TokenSequences::One, TokenSequences::Each, TokenSequences::Listed].into_iter().enumerate()
        {
            let rope = Rope {
                cache,
                sequences,
                pairs: [RopePairs::Neox, RopePairs::Interleaved][(i + j) % 2],
                norm: [None, Some(1e-6), Some(0.0)][(i + j) % 3],
                input: Dtype::ALL[(i + j) % 3],
                output: [Some(Dtype::F32), Some(Dtype::F16), Some(Dtype::Bf16), None][(i + 2 * j) % 4],
                ..Rope::new(5, 2, 64, 7)
            };
            check(&rope, [75, 80, 90][j]);
            for gap in [0, 8, 40] {
                let layout = QkvLayout::Fused { pitch: width(&rope) + gap };
                check(&Rope { layout, ..rope }, 80);
            }
        }
    }
}

#[test]
fn every_shape_of_head() {
    for (i, (heads, kv_heads, head_dim, rotary_dim)) in [
        (1, 1, 8, 8),
        (1, 1, 8, 2),
        (5, 3, 80, 20),
        (5, 3, 96, 94),
        (4, 4, 112, 112),
        (9, 1, 32, 32),
        (2, 1, 256, 64),
        (33, 9, 128, 128),
        (3, 2, 512, 512),
    ]
    .into_iter()
    .enumerate()
    {
        for rounds in [1, 3] {
            let rope = Rope {
                rotary_dim,
                rounds,
                pairs: [RopePairs::Neox, RopePairs::Interleaved][(i + rounds as usize) % 2],
                norm: (i % 2 == 0).then_some(1e-5),
                output: [None, Some(Dtype::F16), Some(Dtype::F32)][i % 3],
                cache: [CacheDtype::F16, CacheDtype::F32][i % 2],
                ..Rope::new(heads, kv_heads, head_dim, 7)
            };
            check(&rope, 80);
        }
    }
}

#[test]
fn every_scaling_and_base() {
    let sharp = RopeScaling::Yarn {
        factor: 40.0,
        original_context: 4096,
        beta_fast: 16.0,
        beta_slow: 2.0,
        attention_factor: Some(0.75),
    };
    let scalings =
        [RopeScaling::None, RopeScaling::Linear { factor: 8.0 }, RopeScaling::yarn(4.0, 32768), sharp];
    for (i, scaling) in scalings.into_iter().enumerate() {
        for base in [1e4, 5e5] {
            for freq_factors in [false, true] {
                let pairs = [RopePairs::Neox, RopePairs::Interleaved][i % 2];
                check(&Rope { scaling, base, freq_factors, pairs, ..Rope::new(3, 1, 64, 7) }, 80);
            }
        }
    }
}

#[test]
fn its_parts() {
    let rotation = Rope::rotation(5, 64);
    check(&rotation, 80);
    check(&Rope { norm: Some(1e-6), output: None, input: Dtype::F16, ..rotation }, 80);
    check(&Rope { norm: Some(1e-6), rotary_dim: 0, ..rotation }, 80);
    check(&Rope { freq_factors: true, pairs: RopePairs::Interleaved, output: None, ..rotation }, 80);
    for cache in CacheDtype::ALL {
        check(&Rope { cache, ..Rope::append(3, 96, 7) }, 80);
        check(&Rope { cache, heads: 2, norm: Some(1e-3), ..Rope::append(3, 96, 7) }, 80);
    }
    check(&Rope { sequences: TokenSequences::Listed, rotary_dim: 64, ..Rope::append(3, 96, 7) }, 80);
}

/// Numbers from 0 on, the same every time.
struct Draw(u64);

impl Draw {
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list[(self.0 >> 33) as usize % list.len()]
    }
}

/// Heads (but for whether all lanes have one), rows of the cache, pitches, angles and epsilon are in no text.
#[test]
fn shapes_share_texts() {
    let mut draw = Draw(3);
    let mut texts = HashMap::new();
    for _ in 0..160 {
        let (head_dim, heads, kv_heads) =
            (draw.of(&[64, 80]), draw.of(&[32, 64, 7, 39]), draw.of(&[32, 96, 5, 37]));
        let rotary_dim = draw.of(&[head_dim, 20, 0]);
        let scaling = draw.of(&[RopeScaling::None, RopeScaling::yarn(3.0, 999)]);
        let rope = Rope {
            rotary_dim,
            base: draw.of(&[1e4, 1e6]),
            scaling,
            freq_factors: draw.of(&[true, false]),
            norm: draw.of(&[None, Some(1e-6), Some(0.5)]),
            ..Rope::new(heads, kv_heads, head_dim, draw.of(&[1, 9, 1 << 20]))
        };
        let layouts = [
            QkvLayout::Separate,
            QkvLayout::Fused { pitch: width(&rope) },
            QkvLayout::Fused { pitch: width(&rope) + 8 },
        ];
        let rope = Rope { layout: draw.of(&layouts), ..rope };
        rope.check().expect("a kernel that there is");
        let text = called_ptx(&rope, Arch::sm(80));
        let whole = (heads % 32, kv_heads % 32);
        let turns = (rotary_dim, scaling == RopeScaling::None, rope.freq_factors);
        let fused = rope.layout != QkvLayout::Separate;
        let known = texts.entry((head_dim, whole, turns, rope.norm.is_some(), fused));
        assert!(*known.or_insert_with(|| text.clone()) == text, "{rope:?}");
    }
}
