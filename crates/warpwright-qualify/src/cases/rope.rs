//! RoPE with the norm of the heads and the way into the KV cache, against float64, on the virtual GPU with
//! every check on, within the bounds that it states.

use crate::common::ops::{Buffers, NO_QUANT, U, assert_within, full, held, kinds, run};
use std::f64::consts::TAU;
use warpwright_dsl::{BuildError, Role, any::AnyKernel};
use warpwright_kernels::{CacheDtype, Dtype, QkvLayout, Rope, RopePairs, RopeScaling, TokenSequences};
use warpwright_ptx::ir::{Arch, Type};

/// The angle that pair `i` turns in one step, from the papers.
fn frequency(rope: &Rope, i: usize) -> f64 {
    let (d, base) = (f64::from(rope.rotary_dim), f64::from(rope.base));
    let plain = base.powf(-2.0 * i as f64 / d);
    match rope.scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { factor } => plain / f64::from(factor),
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, .. } => {
            // Which pair makes `beta` turns: base^(-2i/d) · context = 2π · beta.
            let pair = |beta: f32| {
                -(TAU * f64::from(beta) / f64::from(original_context)).ln() * d / (2.0 * base.ln())
            };
            let (low, high) = (pair(beta_fast).floor().max(0.0), pair(beta_slow).ceil().min(d - 1.0));
            let kept = 1.0 - ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
            plain * kept + plain / f64::from(factor) * (1.0 - kept)
        }
    }
}

fn magnitude(rope: &Rope) -> f64 {
    match rope.scaling {
        RopeScaling::Yarn { attention_factor: Some(factor), .. } => factor.into(),
        RopeScaling::Yarn { factor, .. } => 0.1 * f64::from(factor).ln() + 1.0,
        _ => 1.0,
    }
}

/// A head, normalised and turned: each element and its slack.
fn turned(rope: &Rope, head: &[f64], norm: &[f64], factors: &[f64], position: f64) -> Vec<(f64, f64)> {
    let (d, turning) = (head.len(), rope.rotary_dim as usize);
    let mut x = head.to_vec();
    let mut slack = 5.0 * U;
    if let Some(epsilon) = rope.norm {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / d as f64;
        let root = (mean + f64::from(epsilon)).max(f64::from(f32::MIN_POSITIVE)).sqrt();
        x.iter_mut().zip(norm).for_each(|(x, w)| *x = *x / root * w);
        slack += (16.0 / 2.0 + 12.0) * U;
    }
    let m = magnitude(rope);
    let mut y: Vec<_> = x.iter().map(|&x| (x, slack * x.abs() + 2f64.powi(-148))).collect();
    let ones = vec![1.0; turning / 2];
    let factors = if rope.freq_factors { factors } else { &ones };
    for (i, factor) in factors.iter().enumerate() {
        let (a, b) = match rope.pairs {
            RopePairs::Interleaved => (2 * i, 2 * i + 1),
            RopePairs::Neox => (i, i + turning / 2),
        };
        let (sine, cosine) = (position * (frequency(rope, i) / factor)).sin_cos();
        let slack = slack * m * (x[a].abs() + x[b].abs()) + 2f64.powi(-148);
        y[a] = (m * (x[a] * cosine - x[b] * sine), slack);
        y[b] = (m * (x[a] * sine + x[b] * cosine), slack);
    }
    y
}

/// What tokens there are.
struct Tokens {
    positions: Vec<u32>,
    sequences: Vec<u32>,
    batch: u32,
}

fn check(sm: u16, rope: &Rope, kind: &str, x: &[f64], tokens: &Tokens) {
    let what = format!("{kind} of {} on sm_{sm}", rope.entry());
    let Rope { heads, kv_heads, head_dim, input, .. } = *rope;
    let [heads, kv_heads, d] = [heads, kv_heads, head_dim].map(|n| n as usize);
    let (count, width) = (tokens.positions.len(), (heads + 2 * kv_heads) * d);
    let x = held(input.ty(), x);
    assert_eq!(x.len(), count * width, "a test that gives each token a row");
    let row = |token: usize| &x[token * width..][..width];
    let part = |from: usize, to: usize| (0..count).flat_map(|t| row(t)[from * d..to * d].to_vec()).collect();
    let [q_norm, k_norm] = [8, 9].map(|seed| held(Type::F32, &crate::common::numbers(d, seed)));
    let factors: Vec<f64> =
        held(Type::F32, &(0..rope.rotary_dim / 2).map(|i| 1.0 + f64::from(i) * 0.37).collect::<Vec<_>>());
    let mut given = Buffers::new();
    match rope.layout {
        QkvLayout::Separate => {
            given.insert("q", part(0, heads));
            given.insert("k", part(heads, heads + kv_heads));
            given.insert("v", part(heads + kv_heads, heads + 2 * kv_heads));
        }
        QkvLayout::Fused { pitch } => {
            let gap = vec![f64::NAN; pitch as usize - width];
            given.insert("qkv", (0..count).flat_map(|t| [row(t).to_vec(), gap.clone()].concat()).collect());
        }
    }
    if rope.norm.is_some() {
        given.extend([("q_norm", q_norm.clone()), ("k_norm", k_norm.clone())]);
    }
    let numbers = |list: &[u32]| list.iter().map(|&n| f64::from(n)).collect::<Vec<_>>();
    given.insert("positions", numbers(&tokens.positions));
    if rope.sequences == TokenSequences::Listed {
        given.insert("sequences", numbers(&tokens.sequences));
    }
    if rope.freq_factors {
        given.insert("freq_factors", factors.clone());
    }
    // What the form has no part for is no argument, and is not looked at.
    let found = run(sm, rope, &[("tokens", count as u64), ("batch", tokens.batch.into())], &given);

    let head = |token: usize, head: usize, norm: &[f64]| {
        let x = &row(token)[head * d..][..d];
        turned(rope, x, norm, &factors, tokens.positions[token].into())
    };
    let queries: Vec<_> =
        (0..count).flat_map(|t| (0..heads).flat_map(|h| head(t, h, &q_norm)).collect::<Vec<_>>()).collect();
    match (rope.output, rope.layout) {
        _ if heads == 0 => assert!(!found.contains_key("rotated"), "{what}"),
        (Some(output), _) => assert_within(&what, output.ty(), &found["rotated"], &queries),
        (None, QkvLayout::Separate) => assert_within(&what, input.ty(), &found["q"], &queries),
        (None, QkvLayout::Fused { pitch }) => {
            for (t, found) in found["qkv"].chunks(pitch as usize).enumerate() {
                let (found, rest) = found.split_at(heads * d);
                assert_within(&what, input.ty(), found, &queries[t * heads * d..][..heads * d]);
                assert_eq!(rest[..2 * kv_heads * d], row(t)[heads * d..], "{what}: what is behind q");
            }
        }
    }

    // Each row of the cache is that of a token, or as it was.
    let room = rope.max_seq_len as usize;
    if kv_heads == 0 {
        return assert!(!found.contains_key("k_cache") && !found.contains_key("v_cache"), "{what}");
    }
    for (name, scales, first) in [("k_cache", "k_scales", heads), ("v_cache", "v_scales", heads + kv_heads)] {
        for (at, stored) in found[name].chunks(d).enumerate() {
            let (sequence, kv_head, position) = (at / (kv_heads * room), at / room % kv_heads, at % room);
            let token = (0..count).find(|&t| {
                let of = match rope.sequences {
                    TokenSequences::One => 0,
                    TokenSequences::Each => t,
                    TokenSequences::Listed => tokens.sequences[t] as usize,
                };
                of == sequence && tokens.positions[t] as usize == position
            });
            let scales = found.get(scales).map(|scales| &scales[at * d / 32..][..d / 32]);
            let Some(token) = token else {
                let untouched = |x: &f64| x.is_nan() || rope.cache == CacheDtype::Q8_0 && *x == NO_QUANT;
                assert!(stored.iter().all(untouched), "{what}: {name} row {at} belongs to no token");
                assert!(
                    scales.is_none_or(|scales| scales.iter().all(|x| x.is_nan())),
                    "{what}: scales of {at}"
                );
                continue;
            };
            let exact = match first == heads {
                true => head(token, heads + kv_head, &k_norm),
                false => row(token)[(first + kv_head) * d..][..d].iter().map(|&x| (x, 0.0)).collect(),
            };
            match scales {
                None => assert_within(&format!("{what}, {name}"), rope.cache.ty(), stored, &exact),
                Some(scales) => {
                    for (i, (&quant, &(exact, slack))) in stored.iter().zip(&exact).enumerate() {
                        let scale = scales[i / 32];
                        let least = if scale == 0.0 { 127.0 * 2f64.powi(-25) } else { 0.57 * scale };
                        let off = (scale * quant - exact).abs();
                        assert!(
                            quant.abs() <= 127.0 && off <= least + slack,
                            "{what}: {scale} · {quant}, not {exact}"
                        );
                    }
                }
            }
        }
    }
}

/// A few tokens of several sequences, in no order, one of them beyond the cache.
fn few(max_seq_len: u32) -> Tokens {
    Tokens {
        positions: vec![3, 0, max_seq_len - 1, 2, max_seq_len, u32::MAX],
        sequences: vec![1, 2, 0, 0, 1, 2],
        batch: 3,
    }
}

fn width(rope: &Rope) -> usize {
    ((rope.heads + 2 * rope.kv_heads) * rope.head_dim) as usize
}

fn heads_of_every_kind_are_turned_and_kept() {
    let base = Rope { norm: Some(1e-6), ..Rope::new(3, 2, 64, 5) };
    for (i, (kind, x)) in kinds(6 * width(&base), 1).into_iter().enumerate() {
        for (j, cache) in CacheDtype::ALL.into_iter().enumerate() {
            let rope = Rope {
                cache,
                pairs: [RopePairs::Neox, RopePairs::Interleaved][(i + j) % 2],
                norm: [None, Some(1e-6), Some(0.0)][(i + j) % 3],
                input: Dtype::ALL[(i + j / 2) % 3],
                output: [Some(Dtype::F32), Some(Dtype::F16), Some(Dtype::Bf16), None][(i + j / 2) % 4],
                sequences: TokenSequences::Listed,
                ..base
            };
            check([75, 80, 90][i % 3], &rope, kind, &x, &few(5));
        }
    }
}

fn heads_of_every_shape_are_turned_and_kept() {
    let mut shapes = vec![
        (1, 1, 8, 8),
        (1, 1, 8, 2),
        (5, 3, 80, 20),
        (5, 3, 96, 94),
        (4, 4, 112, 112),
        (9, 1, 32, 32),
        (2, 1, 256, 64),
        (3, 2, 512, 512),
        (7, 7, 160, 160),
    ];
    if full() {
        shapes.extend([(32, 8, 64, 64), (12, 2, 128, 128), (32, 8, 128, 128), (16, 8, 128, 128)]);
    }
    for (i, (heads, kv_heads, head_dim, rotary_dim)) in shapes.into_iter().enumerate() {
        for pairs in [RopePairs::Neox, RopePairs::Interleaved] {
            for rounds in [1, 2] {
                let quantised = head_dim % 32 == 0 && rounds == 1;
                let rope = Rope {
                    rotary_dim,
                    pairs,
                    rounds,
                    norm: (i % 2 == 0).then_some(1e-5),
                    input: Dtype::ALL[(i + rounds as usize) % 3],
                    output: [None, Some(Dtype::F16), Some(Dtype::F32)][i % 3],
                    cache: if quantised { CacheDtype::Q8_0 } else { CacheDtype::ALL[i % 3] },
                    sequences: TokenSequences::Listed,
                    ..Rope::new(heads, kv_heads, head_dim, 7)
                };
                let x = crate::common::numbers(6 * width(&rope), 10 + i as u64);
                check(80, &rope, "normal", &x, &few(7));
            }
        }
    }
}

fn rows_of_all_three_are_read_and_sequences_found() {
    for (i, gap) in [0, 8, 40].into_iter().enumerate() {
        for output in [None, Some(Dtype::F32)] {
            let sequences = [TokenSequences::One, TokenSequences::Each, TokenSequences::Listed][i];
            let rope = Rope {
                sequences,
                output,
                input: Dtype::ALL[i],
                cache: CacheDtype::F16,
                ..Rope::new(6, 2, 64, 9)
            };
            let rope = Rope { layout: QkvLayout::Fused { pitch: width(&rope) as u32 + gap }, ..rope };
            let tokens = match sequences {
                // Of one sequence no position comes twice.
                TokenSequences::One => Tokens { positions: vec![4, 5, 6, 100], sequences: vec![], batch: 1 },
                _ => Tokens { positions: vec![4, 4, 0, 9], sequences: vec![2, 0, 1, 1], batch: 3 },
            };
            check(80, &rope, "normal", &crate::common::numbers(4 * width(&rope), 3), &tokens);
        }
    }
}

fn angles_are_right_at_the_end_of_long_contexts() {
    let scalings = [
        RopeScaling::None,
        RopeScaling::Linear { factor: 8.0 },
        RopeScaling::yarn(4.0, 32768),
        RopeScaling::Yarn {
            factor: 40.0,
            original_context: 4096,
            beta_fast: 16.0,
            beta_slow: 2.0,
            attention_factor: Some(0.75),
        },
    ];
    for (i, scaling) in scalings.into_iter().enumerate() {
        for base in [1e4, 5e5, 1e6] {
            for freq_factors in [false, true] {
                let pairs = [RopePairs::Neox, RopePairs::Interleaved][i % 2];
                let rope = Rope { scaling, base, freq_factors, pairs, ..Rope::new(2, 1, 128, 1) };
                // None is in the cache: that has room for position 0.
                let positions = vec![0, 1, 4095, 131_070, 131_071, (1 << 24) + 1];
                let tokens = Tokens { positions, sequences: vec![], batch: 6 };
                check(80, &rope, "normal", &crate::common::numbers(6 * width(&rope), 20 + i as u64), &tokens);
            }
        }
    }
}

/// `q` alone, and `k` alone as the `q` of such a kernel.
fn one_tensor_is_turned_by_itself() {
    for (i, (heads, head_dim, rotary_dim)) in
        [(1, 8, 8), (5, 80, 20), (8, 64, 64), (3, 96, 94), (2, 128, 128), (9, 256, 64)]
            .into_iter()
            .enumerate()
    {
        for norm in [None, Some(1e-6)] {
            for output in [None, Some(Dtype::F32), Some(Dtype::F16), Some(Dtype::Bf16)] {
                let rope = Rope {
                    rotary_dim,
                    norm,
                    output,
                    pairs: [RopePairs::Neox, RopePairs::Interleaved][i % 2],
                    freq_factors: i % 3 == 1,
                    input: Dtype::ALL[i % 3],
                    rounds: 1 + i as u32 % 2,
                    // None of this has a part.
                    cache: CacheDtype::Q8_0,
                    sequences: TokenSequences::Listed,
                    ..Rope::rotation(heads, head_dim)
                };
                for layout in [QkvLayout::Separate, QkvLayout::Fused { pitch: heads * head_dim + 8 }] {
                    let rope = Rope { layout, ..rope };
                    for (kind, x) in kinds(4 * width(&rope), 40).into_iter().step_by(3) {
                        let positions = vec![0, 1, 77_777, 5];
                        let tokens = Tokens { positions, sequences: vec![], batch: 4 };
                        check([75, 80, 90][i % 3], &rope, kind, &x, &tokens);
                    }
                }
            }
        }
    }
}

fn keys_and_values_are_only_appended() {
    for (i, cache) in CacheDtype::ALL.into_iter().enumerate() {
        for input in Dtype::ALL {
            for (j, (kv_heads, head_dim)) in
                [(1, 32), (2, 64), (5, 96), (3, 128), (1, 256)].into_iter().enumerate()
            {
                let sequences =
                    [TokenSequences::Listed, TokenSequences::Each, TokenSequences::One][(i + j) % 3];
                let rope = Rope {
                    cache,
                    input,
                    sequences,
                    // None of this has a part.
                    freq_factors: true,
                    output: None,
                    ..Rope::append(kv_heads, head_dim, 6)
                };
                let tokens = match sequences {
                    TokenSequences::One => {
                        Tokens { positions: vec![2, 3, 4, 5, 6], sequences: vec![], batch: 1 }
                    }
                    _ => few(6),
                };
                for layout in [QkvLayout::Separate, QkvLayout::Fused { pitch: 2 * kv_heads * head_dim + 16 }]
                {
                    let rope = Rope { layout, rounds: 1 + j as u32 % 2, ..rope };
                    let count = tokens.positions.len();
                    let (kind, x) = kinds(count * width(&rope), 41).swap_remove((i + j) % 8);
                    check([75, 80, 90][j % 3], &rope, kind, &x, &tokens);
                }
            }
        }
    }
}

/// What else can be left out: the turning, `q`, or all but the norm.
fn any_other_part_can_be_left_out() {
    let all = Rope { cache: CacheDtype::F16, sequences: TokenSequences::Listed, ..Rope::new(3, 2, 64, 7) };
    let normalised = Rope { norm: Some(1e-5), ..all };
    for rope in [
        Rope { rotary_dim: 0, ..all },
        Rope { rotary_dim: 0, output: Some(Dtype::F16), ..normalised },
        Rope { rotary_dim: 0, output: None, ..normalised },
        Rope { heads: 0, ..all },
        Rope { heads: 0, ..normalised },
        Rope { heads: 0, rotary_dim: 0, cache: CacheDtype::Q8_0, ..normalised },
        Rope { kv_heads: 0, rotary_dim: 0, ..normalised },
        Rope { kv_heads: 0, rotary_dim: 0, output: None, ..normalised },
    ] {
        for pairs in [RopePairs::Neox, RopePairs::Interleaved] {
            let rope = Rope { pairs, ..rope };
            check(80, &rope, "normal", &crate::common::numbers(6 * width(&rope), 42), &few(7));
        }
    }
}

fn what_has_no_part_is_no_argument() {
    let names = |rope: Rope| rope.args().into_iter().map(|arg| arg.name).collect::<Vec<_>>();
    let (norm, sequences) = (Some(1e-6), TokenSequences::Listed);
    let with = |rope| Rope { norm, sequences, freq_factors: true, cache: CacheDtype::Q8_0, ..rope };
    let rotation = Rope::rotation(4, 64);
    assert_eq!(names(rotation), ["q", "positions", "rotated"]);
    assert_eq!(names(Rope { output: None, ..rotation }), ["q", "positions"]);
    assert_eq!(names(with(rotation)), ["q", "q_norm", "positions", "freq_factors", "rotated"]);
    assert_eq!(names(Rope { norm, rotary_dim: 0, ..rotation }), ["q", "q_norm", "rotated"]);
    let append = Rope::append(2, 64, 16);
    assert_eq!(names(append), ["k", "v", "positions", "k_cache", "v_cache"]);
    let caches = ["k_cache", "k_scales", "v_cache", "v_scales"];
    let listed = ["k", "v", "k_norm", "positions", "sequences", "batch"];
    assert_eq!(names(with(append)), [&listed, &caches[..]].concat());
    let fused = Rope { layout: QkvLayout::Fused { pitch: 256 }, ..append };
    assert_eq!(names(fused), ["qkv", "positions", "k_cache", "v_cache"]);
    // What is only read is not said to be written.
    assert_eq!(Rope { output: None, ..fused }.args()[0].role, Role::In);
    let others = Rope { cache: CacheDtype::Q8_0, max_seq_len: 9, sequences, ..rotation };
    assert_eq!(others.args(), rotation.args());
}

fn what_a_rope_cannot_be_is_said() {
    let rope = Rope::new(4, 2, 48, 16);
    let refused = |rope: Rope| match rope.build(Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert_eq!(refused(Rope { heads: 1025, ..rope }), "heads");
    assert_eq!(refused(Rope { heads: 0, kv_heads: 0, ..rope }), "heads");
    assert_eq!(refused(Rope { kv_heads: u32::MAX, ..rope }), "kv_heads");
    assert_eq!(refused(Rope { head_dim: 4, ..rope }), "head_dim");
    assert_eq!(refused(Rope { cache: CacheDtype::Q8_0, ..rope }), "head_dim");
    assert_eq!(refused(Rope { rotary_dim: 50, ..rope }), "rotary_dim");
    assert_eq!(refused(Rope { rotary_dim: 7, ..rope }), "rotary_dim");
    assert_eq!(refused(Rope { rotary_dim: 0, ..Rope::rotation(4, 64) }), "rotary_dim");
    assert_eq!(refused(Rope { base: 1.0, ..rope }), "base");
    assert_eq!(refused(Rope { scaling: RopeScaling::Linear { factor: 0.0 }, ..rope }), "factor");
    assert_eq!(refused(Rope { scaling: RopeScaling::yarn(2.0, 0), ..rope }), "original_context");
    assert_eq!(refused(Rope { norm: Some(f32::NAN), ..rope }), "epsilon");
    assert_eq!(refused(Rope { layout: QkvLayout::Fused { pitch: 8 }, ..rope }), "pitch");
    assert_eq!(refused(Rope { max_seq_len: 0, ..rope }), "max_seq_len");
    assert_eq!(refused(Rope::append(2, 48, 0)), "max_seq_len");
    assert_eq!(refused(Rope { rounds: 0, ..rope }), "rounds");
}

crate::case_list! {
    heads_of_every_kind_are_turned_and_kept,
    heads_of_every_shape_are_turned_and_kept,
    rows_of_all_three_are_read_and_sequences_found,
    angles_are_right_at_the_end_of_long_contexts,
    one_tensor_is_turned_by_itself,
    keys_and_values_are_only_appended,
    any_other_part_can_be_left_out,
    what_has_no_part_is_no_argument,
    what_a_rope_cannot_be_is_said,
}

/// What the virtual GPU alone finds.
#[cfg(test)]
mod on_the_vm {
    use super::*;
    use crate::common::{LaunchArg, run_unjudged};
    use warpwright_ptx::ir::{ItemKind, StatementKind};
    use warpwright_ptx::op::Op;
    use warpwright_vm::FindingKind;

    /// Pairs of different lanes, rotated in place: without the barrier between loads and stores that is a race.
    #[test]
    fn rotating_in_place_needs_its_barrier() {
        let is_barrier = |op: &Op| matches!(op, Op::BarWarpSync(_));
        for (rope, races) in [
            (Rope { output: None, ..Rope::rotation(2, 64) }, true),
            (Rope { output: None, ..Rope::new(2, 1, 64, 4) }, true),
            (Rope { output: None, pairs: RopePairs::Interleaved, ..Rope::rotation(2, 64) }, false),
        ] {
            let mut built = rope.build(Arch::sm(80)).expect("a correct kernel");
            let mut taken = 0;
            for item in &mut built.module.items {
                let ItemKind::Function(function) = &mut item.kind else { continue };
                let Some(body) = &mut function.body else { continue };
                body.retain(|statement| {
                    let found =
                        matches!(&statement.kind, StatementKind::Instruction(it) if is_barrier(&it.op));
                    taken += usize::from(found);
                    !found
                });
            }
            assert_eq!(taken, 1, "{}", rope.entry());
            let x = crate::common::numbers(width(&rope), 43);
            let mut given = vec![LaunchArg::Input(Type::F32, &x[..128])];
            if rope.kv_heads > 0 {
                given.extend([
                    LaunchArg::Input(Type::F32, &x[128..192]),
                    LaunchArg::Input(Type::F32, &x[192..]),
                ]);
            }
            given.push(LaunchArg::Input(Type::U32, &[3.0]));
            if rope.kv_heads > 0 {
                given.extend([LaunchArg::Output(Type::F32, 256), LaunchArg::Output(Type::F32, 256)]);
            }
            let (_, report) = run_unjudged(Arch::sm(80), &rope.entry(), &built, (1, 1, 1), &given);
            let found =
                (report.findings.iter()).any(|finding| matches!(finding.kind, FindingKind::Race { .. }));
            assert_eq!(found, races, "{}: {report}", rope.entry());
        }
    }
}
