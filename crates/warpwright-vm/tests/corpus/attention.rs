//! Attention: flash attention of several compilers, decoding with a cache, rotary embeddings.

use crate::case::{Case, File, Source, launch, source, within};
use crate::data::{Format, Rng};
use crate::triton_matmul::shared;
use Format::{Bf16, F16, F32};

pub(crate) const SOURCES: &[Source] = &[
    source("flash_attention.nvcc", flash_attention),
    source("flash_attention.triton", |file| vec![flash(file, F16, 64, 64, false)]),
    source("flash_attention_causal.triton", |file| vec![flash(file, Bf16, 32, 64, true)]),
    source("flash_attention_f32.triton", |file| vec![flash(file, F32, 16, 32, true)]),
    source("decode_attention.triton", decode),
    source("rope.nvcc", rope),
    source("rope.triton", rope_triton),
];

/// One head's attention: outputs, and the logarithms (base 2) of the sums of exponentials.
fn attention(q: &[f64], k: &[f64], v: &[f64], d: usize, scale: f64, causal: bool) -> (Vec<f64>, Vec<f64>) {
    let n = k.len() / d;
    let mut out = Vec::new();
    let mut sums = Vec::new();
    for (i, q) in q.chunks(d).enumerate() {
        let seen = if causal { i + 1 } else { n };
        let score = |j: usize| q.iter().zip(&k[j * d..]).map(|(q, k)| q * k).sum::<f64>() * scale;
        let scores: Vec<f64> = (0..seen).map(score).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        out.extend((0..d).map(|c| (0..seen).map(|j| weights[j] * v[j * d + c]).sum::<f64>() / total));
        sums.push((total.ln() + largest) / std::f64::consts::LN_2);
    }
    (out, sums)
}

fn draw(rng: &mut Rng, format: Format, n: usize) -> Vec<f64> {
    (0..n).map(|_| format.round(rng.f64(-1.0, 1.0))).collect()
}

/// The heads' outputs and sums.
fn heads(qkv: [&[f64]; 3], head: usize, d: usize, scale: f64, causal: bool) -> (Vec<f64>, Vec<f64>) {
    let [q, k, v] = qkv.map(|x| x.chunks(head));
    let each: Vec<_> = q.zip(k).zip(v).map(|((q, k), v)| attention(q, k, v, d, scale, causal)).collect();
    let (out, sums): (Vec<_>, Vec<_>) = each.into_iter().unzip();
    (out.concat(), sums.concat())
}

fn flash_attention(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1001);
    let n = 77usize;
    let mut case = |entry: &str, d: usize, causal: bool| {
        let [q, k, v] = std::array::from_fn(|_| draw(&mut rng, F32, 2 * n * d));
        let scale = 1.0 / (d as f32).sqrt();
        let (out, _) = heads([&q, &k, &v], n * d, d, f64::from(scale), causal);
        // Outputs are averages of numbers below 1; fast exponentials are good to a few units.
        let want = within(F32, out.into_iter().map(|x| (x, 100.0 * F32.unit())));
        let case = launch(entry, (2, 2), 64).floats(F32, &q).floats(F32, &k).floats(F32, &v);
        case.output(want).scalar(n as i32).scalar(scale)
    };
    vec![case("flash_attention_d16", 16, false), case("flash_attention_d32_causal", 32, true)]
}

fn flash(file: &File, format: Format, d: usize, tile: usize, causal: bool) -> Case {
    let mut rng = Rng::new(1002);
    let n = 150usize;
    let [q, k, v] = std::array::from_fn(|_| draw(&mut rng, format, 2 * n * d));
    let scale = 1.0 / (d as f32).sqrt();
    let (out, sums) = heads([&q, &k, &v], n * d, d, f64::from(scale), causal);
    // Weights up to 1 are rounded to the type of the values, below 1 in size; tf32 rounds both.
    let unit = if format == F32 { 4.0 * 2f64.powi(-11) } else { format.unit() };
    let out = within(format, out.into_iter().map(|x| (x, unit)));
    let loose = if format == F32 { 2f64.powi(-8) } else { 1e-4 };
    let sums = within(F32, sums.into_iter().map(|x| (x, loose)));
    let blocks = n.div_ceil(tile) as u32;
    let case = launch("flash_attention", (blocks, 2), 128).shared(shared(file));
    let case = case.floats(format, &q).floats(format, &k).floats(format, &v).output(out).output(sums);
    case.scalar(scale).scalar(n as i32).triton()
}

fn decode(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1003);
    let (heads, d, used, longest) = (3usize, 64usize, 75usize, 96usize);
    let q = draw(&mut rng, F16, heads * d);
    let (k, v) = (draw(&mut rng, F16, heads * longest * d), draw(&mut rng, F16, heads * longest * d));
    let scale = 0.125f32;
    let cache = |x: &[f64], h: usize| x[h * longest * d..][..used * d].to_vec();
    let head =
        |h: usize| attention(&q[h * d..][..d], &cache(&k, h), &cache(&v, h), d, f64::from(scale), false).0;
    let want = (0..heads).flat_map(head).map(|x| (x, 100.0 * F32.unit()));
    let case = launch("decode_attention", heads as u32, 128).floats(F16, &q).floats(F16, &k).floats(F16, &v);
    let case = case.output(within(F16, want.collect::<Vec<_>>())).input(&[used as i32]);
    vec![case.scalar(scale).scalar(longest as i32).triton()]
}

fn rope(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1004);
    let (tokens, heads, half) = (4usize, 3usize, 20usize);
    let x = rng.f32s(tokens * heads * half * 2, -1.0, 1.0);
    let positions = [0i32, 1, 7, 100];
    let theta = 10000f32;
    let want = x.chunks(2).enumerate().flat_map(|(at, x)| {
        let (token, i) = (at / (heads * half), at % half);
        let angle = f64::from(positions[token]) * f64::from(theta).powf(-(i as f64) / half as f64);
        let (s, c) = angle.sin_cos();
        let [a, b] = [f64::from(x[0]), f64::from(x[1])];
        // The angle itself is rounded: an error of its size.
        [a * c - b * s, a * s + b * c].map(|y| (y, (8.0 + 16.0 * angle) * F32.unit()))
    });
    let pairs = launch("rope_pairs", (tokens as u32, heads as u32), half as u32);
    let pairs = pairs.inout(&x, within(F32, want.collect::<Vec<_>>())).input(&positions);

    let y = draw(&mut rng, Bf16, tokens * heads * half * 2);
    let inverse: Vec<f32> = (0..half).map(|i| 10000f32.powf(-(i as f32) / half as f32)).collect();
    let turned = |at: usize| {
        let (token, i) = (at / (2 * heads * half), at % half);
        let (s, c) = (token as f64 * f64::from(inverse[i])).sin_cos();
        let first = at % (2 * half) < half;
        let other = if first { y[at + half] } else { y[at - half] };
        (if first { y[at] * c - other * s } else { y[at] * c + other * s }, 4e-6)
    };
    let halves = launch("rope_halves", tokens as u32, 32);
    let halves = halves.inout(&Bf16.store(&y), within(Bf16, (0..y.len()).map(turned))).input(&inverse);
    vec![
        pairs.scalar(heads as i32).scalar(half as i32).scalar(theta),
        halves.scalar(heads as i32).scalar(half as i32),
    ]
}

fn rope_triton(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1005);
    // 16 heads: the kernel relies on a multiple.
    let (tokens, heads, half) = (3usize, 16usize, 64usize);
    let x = draw(&mut rng, Bf16, tokens * heads * half * 2);
    let angles = rng.f64s(tokens * half, 0.0, 6.0);
    let (cos, sin): (Vec<f32>, Vec<f32>) = angles.iter().map(|a| (a.cos() as f32, a.sin() as f32)).unzip();
    let turned = |at: usize| {
        let (token, i) = (at / (2 * heads * half), at % half);
        let (s, c) = (f64::from(sin[token * half + i]), f64::from(cos[token * half + i]));
        let first = at % (2 * half) < half;
        let other = if first { x[at + half] } else { x[at - half] };
        (if first { x[at] * c - other * s } else { x[at] * c + other * s }, 4.0 * F32.unit())
    };
    let case = launch("rope", (tokens as u32, heads as u32), 32);
    let case = case.inout(&Bf16.store(&x), within(Bf16, (0..x.len()).map(turned)));
    vec![case.input(&cos).input(&sin).scalar(heads as i32).triton()]
}
