//! Several small integers in a word, saturation, video instructions.

use crate::case::{Case, File, Source, exactly, launch, source};
use crate::data::Rng;

pub(crate) const SOURCES: &[Source] = &[source("simd_video.nvcc", simd_video)];

/// Applies `of` to each lane of `bits` bits, of which only the low bits of the result are kept.
fn lanes(bits: u32, x: u32, y: u32, of: impl Fn(i64, i64) -> i64) -> u32 {
    let mask = (1u64 << bits) - 1;
    let lane = |x: u32, at: u32| (u64::from(x >> at) & mask) as i64;
    (0..32 / bits)
        .map(|i| i * bits)
        .fold(0, |word, at| word | ((of(lane(x, at), lane(y, at)) as u64 & mask) as u32) << at)
}

/// The same on signed lanes.
fn signed(bits: u32, x: u32, y: u32, of: impl Fn(i64, i64) -> i64) -> u32 {
    let extend = |x: i64| x << (64 - bits) >> (64 - bits);
    lanes(bits, x, y, |a, b| of(extend(a), extend(b)))
}

/// All ones where `yes`.
fn mask(yes: bool) -> i64 {
    -i64::from(yes)
}

fn total(x: u32, y: u32, of: impl Fn(u8, u8) -> u32) -> u32 {
    x.to_le_bytes().into_iter().zip(y.to_le_bytes()).map(|(x, y)| of(x, y)).sum()
}

fn byte(x: u32, at: u32) -> i64 {
    i64::from(x >> (8 * at) & 255)
}

fn signed_byte(x: u32, at: u32) -> i64 {
    byte(x, at) << 56 >> 56
}

fn half(x: u32, at: u32) -> i64 {
    i64::from((x >> (16 * at)) as i16)
}

fn simd_video(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1201);
    let n = 150usize;
    // Edges of the lanes are frequent.
    let mut edge = || match rng.u32() % 6 {
        0 => 0x80,
        1 => 0x7f,
        2 => 0xff,
        _ => rng.u32() & 255,
    };
    let mut draw = || (0..n).map(|_| (0..4).fold(0u32, |word, _| word << 8 | edge())).collect::<Vec<u32>>();
    let (a, b) = (draw(), draw());
    let s8 = |x: i64| x.clamp(-128, 127);
    let s16 = |x: i64| x.clamp(-32768, 32767);
    let case = |entry: &str, of: &dyn Fn(usize, u32, u32) -> Vec<u32>| {
        let want: Vec<u32> = (0..n).flat_map(|i| of(i, a[i], b[i])).collect();
        launch(entry, 3, 64).input(&a).input(&b).output(exactly(&want)).scalar(n as i32)
    };
    let bytes = case("simd_bytes", &|_, x, y| {
        vec![
            lanes(8, x, y, |a, b| a + b),
            signed(8, x, y, |a, b| s8(a + b)),
            lanes(8, x, y, |a, b| (a + b).min(255)),
            lanes(8, x, y, |a, b| a - b),
            signed(8, x, y, |a, b| s8(a - b)),
            signed(8, x, y, |a, b| (a - b).abs()),
            lanes(8, x, y, |a, b| (a + b + 1) / 2),
            signed(8, x, y, i64::max),
            lanes(8, x, y, i64::min),
            lanes(8, x, y, |a, b| mask(a == b)),
            signed(8, x, y, |a, b| mask(a > b)),
            total(x, y, |a, b| u32::from(a.abs_diff(b))),
            total(x, y, |a, b| u32::from((a as i8).abs_diff(b as i8))),
            lanes(8, x, 0, |a, _| -a),
            lanes(8, x, y, |a, b| i64::from(a < b)),
            signed(8, x, 0, |a, _| a.abs()),
        ]
    });
    let halves = case("simd_halves", &|_, x, y| {
        vec![
            lanes(16, x, y, |a, b| a + b),
            signed(16, x, y, |a, b| s16(a + b)),
            lanes(16, x, y, |a, b| (a - b).max(0)),
            lanes(16, x, y, |a, b| (a - b).abs()),
            // Signed averages round away from zero at halves.
            signed(16, x, y, |a, b| (a + b + i64::from(a + b >= 0)) >> 1),
            lanes(16, x, y, i64::max),
            signed(16, x, y, i64::min),
            lanes(16, x, y, |a, b| mask(a >= b)),
            lanes(16, x, y, |a, b| i64::from(a != b)),
            lanes(16, x, y, |a, b| (a + b) / 2),
            signed(16, lanes(16, x, y, |a, b| a + b), x, i64::max),
            signed(16, x, y, i64::min),
        ]
    });
    let scalar = case("scalar_sat", &|i, x, y| {
        let (s, t) = (i64::from(x as i32), i64::from(y as i32));
        let (u, v) = (u64::from(x), u64::from(y));
        let word = |x: i64| x.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32 as u32;
        let wrapped = (x as i32).wrapping_add(y as i32);
        let last = wrapped.max(3).max(0).wrapping_add((x as i32).max(y as i32).max(i as i32));
        vec![
            word(s + t),
            word(s - t),
            word(((s * t) >> 32) + s),
            (x as i32).abs_diff(y as i32).wrapping_add(5),
            x.abs_diff(y).wrapping_add(6),
            ((s + t) >> 1) as u32,
            ((s + t + 1) >> 1) as u32,
            ((u + v) >> 1) as u32,
            (x as i32).wrapping_abs() as u32,
            (x as i32).max(y as i32) as u32,
            x.min(y),
            last as u32,
        ]
    });
    let video = case("video_asm", &|_, x, y| {
        let product = byte_product(x, y);
        vec![
            // A signed byte and an unsigned half, saturated to s32.
            (signed_byte(x, 1) + i64::from(y >> 16)) as u32,
            ((byte(x, 0) - byte(y, 3)) as u32).wrapping_add(x),
            ((byte(x, 2) - byte(y, 2)).unsigned_abs() as u32).wrapping_add(y),
            half(x, 0).max(half(y, 1)) as u32,
            x << (y & 31),
            ((product + i64::from(x as i32)) >> 7) as u32,
            u32::from(byte(x, 0) < byte(y, 1)),
            lanes(8, x, y, |a, b| (a + b).min(255)),
            total(x, y, |a, b| u32::from((a as i8).abs_diff(b as i8))).wrapping_add(x),
        ]
    });
    vec![bytes, halves, scalar, video]
}

fn byte_product(x: u32, y: u32) -> i64 {
    signed_byte(x, 0) * signed_byte(y, 1)
}
