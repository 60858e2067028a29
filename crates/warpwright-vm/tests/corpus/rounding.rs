//! Every rounding mode of f32 and f64, by exact arithmetic on a fixed point, and conversions.

use crate::case::{Case, Expect, File, Near, Source, exactly, launch, source};
use crate::data::{Format, Rng};
use crate::floats::toward_zero;

pub(crate) const SOURCES: &[Source] = &[source("rounding.nvcc", rounding)];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Nearest,
    Zero,
    Up,
    Down,
}
use Mode::{Down, Nearest, Up, Zero};

const MODES: [Mode; 4] = [Nearest, Zero, Up, Down];

/// Inputs are within a factor of 16 of 1: products and sums of them are exact in units of 2⁻¹¹².
const POINT: i32 = 112;

fn fixed(x: f64) -> i128 {
    let bits = x.abs().to_bits();
    let fraction = i128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let exponent = (bits >> 52) as i32 - 1023 - 52 + POINT;
    if x < 0.0 { -(fraction << exponent) } else { fraction << exponent }
}

/// The number of `digits` bits that `x` rounds to.
fn round(x: i128, digits: u32, mode: Mode) -> f64 {
    let size = x.unsigned_abs();
    let length = 128 - size.leading_zeros();
    let drop = length.saturating_sub(digits);
    let (mut kept, rest) = (size >> drop, size & ((1 << drop) - 1));
    let half = (1u128 << drop) >> 1;
    let away = match mode {
        Nearest => rest > half || rest == half && rest > 0 && kept & 1 == 1,
        Zero => false,
        Up => rest > 0 && x > 0,
        Down => rest > 0 && x < 0,
    };
    kept += u128::from(away);
    let value = kept as f64 * f64::from(drop as i32 - POINT).exp2();
    if x < 0 { -value } else { value }
}

/// `x · y`, exactly.
fn product(x: f64, y: f64) -> i128 {
    let split = |x: f64| {
        (x.abs().to_bits() & ((1 << 52) - 1) | 1 << 52, (x.abs().to_bits() >> 52) as i32 - 1023 - 52)
    };
    let ((a, i), (b, j)) = (split(x), split(y));
    let size = (u128::from(a) * u128::from(b)) as i128;
    let shift = i + j + POINT;
    let size = if shift >= 0 { size << shift } else { size >> -shift };
    if (x < 0.0) != (y < 0.0) { -size } else { size }
}

/// A quotient or a root that is not exact: `near` is its nearest number, and `over` the sign of the
/// exact value less `near`.
fn directed(near: f64, over: f64, digits: u32, mode: Mode) -> f64 {
    let step = |x: f64, up: bool| match (digits, up) {
        (24, true) => f64::from((x as f32).next_up()),
        (24, false) => f64::from((x as f32).next_down()),
        (_, true) => x.next_up(),
        (_, false) => x.next_down(),
    };
    let zero = if near > 0.0 { Down } else { Up };
    let mode = if mode == Zero { zero } else { mode };
    match mode {
        Up if over > 0.0 => step(near, true),
        Down if over < 0.0 => step(near, false),
        _ => near,
    }
}

fn quotient(x: f64, y: f64, digits: u32, mode: Mode) -> f64 {
    let near = if digits == 24 { f64::from((x / y) as f32) } else { x / y };
    directed(near, (-near).mul_add(y, x) * y.signum(), digits, mode)
}

fn root(x: f64, digits: u32, mode: Mode) -> f64 {
    let near = if digits == 24 { f64::from(x.sqrt() as f32) } else { x.sqrt() };
    directed(near, (-near).mul_add(near, x), digits, mode)
}

/// Additions, products and fused ones, quotients, reciprocals and roots, in the modes' order.
fn arithmetic(x: f64, y: f64, digits: u32) -> [Vec<f64>; 7] {
    let modes = |of: &dyn Fn(Mode) -> f64| MODES.iter().map(|&mode| of(mode)).collect::<Vec<f64>>();
    [
        modes(&|mode| round(fixed(x) + fixed(y), digits, mode)),
        modes(&|mode| round(fixed(x) - fixed(y), digits, mode)),
        modes(&|mode| round(product(x, y), digits, mode)),
        modes(&|mode| round(product(x, y) + fixed(x), digits, mode)),
        modes(&|mode| quotient(x, y, digits, mode)),
        modes(&|mode| quotient(1.0, x, digits, mode)),
        modes(&|mode| root(x, digits, mode)),
    ]
}

fn rounding(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1401);
    let n = 120usize;
    // Positive first operands, which have roots.
    let (a, b) = (rng.f32s(n, 0.07, 15.0), rng.f32s(n, -15.0, 15.0));
    let b: Vec<f32> = b.iter().map(|&y| if y.abs() < 0.07 { y + 0.5 } else { y }).collect();
    let unit = Format::F32.unit();
    let singles = (0..n).flat_map(|i| {
        let (x, y) = (f64::from(a[i]), f64::from(b[i]));
        let [sum, difference, times, fused, over, inverse, root] = arithmetic(x, y, 24);
        let half_away = x.fract() >= 0.5;
        let loose = (1.0 / x.sqrt(), unit / x.sqrt() * 1.01);
        let rest = [
            x.round_ties_even(),
            x.trunc(),
            x.ceil(),
            x.floor(),
            x.trunc() + f64::from(u8::from(half_away)),
            x.min(1.0),
        ];
        let last = [x.min(y), x.max(y), x * y.signum(), x];
        let exact = |x: f64| Near { value: x, bound: 0.0 };
        let fast = Near { value: x / y, bound: 4.0 * unit * (x / y).abs() };
        let mut out: Vec<Near> =
            [sum, difference, times, fused, over, inverse, root].concat().into_iter().map(exact).collect();
        out.extend(rest.map(exact));
        out.push(Near { value: loose.0, bound: loose.1 });
        out.push(fast);
        out.extend(last.map(exact));
        out
    });
    let singles = Expect::Near(Format::F32, singles.collect());
    let (c, d) = (rng.f64s(n, 0.07, 15.0), rng.f64s(n, 0.07, 15.0));
    let doubles: Vec<f64> = (0..n)
        .flat_map(|i| {
            let (x, y) = (c[i], if i % 2 == 0 { -d[i] } else { d[i] });
            let [sum, _, times, fused, over, inverse, root] = arithmetic(x, y, 53);
            let rest = [x.round_ties_even(), x.trunc(), x.ceil(), x.floor(), x.min(y), x.max(y)];
            [sum, times, fused, over, inverse, root, rest.to_vec()].concat()
        })
        .collect();
    let signed: Vec<f64> = d.iter().enumerate().map(|(i, &y)| if i % 2 == 0 { -y } else { y }).collect();
    vec![
        launch("rounding_f32", 2, 64).input(&a).input(&b).output(singles).scalar(n as i32),
        launch("rounding_f64", 2, 64).input(&c).input(&signed).output(exactly(&doubles)).scalar(n as i32),
        conversions(&mut rng),
        inline_conversions(&mut rng),
    ]
}

/// `x` as an f32 in a mode.
fn single(x: f64, mode: Mode) -> f32 {
    let cut = f32::from_bits(toward_zero(Format::F32, x) as u32);
    match mode {
        Nearest => x as f32,
        Zero => cut,
        Up if f64::from(cut) < x => cut.next_up(),
        Down if f64::from(cut) > x => cut.next_down(),
        _ => cut,
    }
}

fn conversions(rng: &mut Rng) -> Case {
    let n = 90usize;
    // Positive and below 127.5, where every conversion of the list is defined.
    let (f, d) = (rng.f32s(n, 0.0, 126.0), rng.f64s(n, -100.0, 100.0));
    let want: Vec<i64> = (0..n)
        .flat_map(|i| {
            let (x, y) = (f64::from(f[i]), d[i]);
            let int = |x: f32| i64::from(x.to_bits() as i32);
            let word = (i as i32).wrapping_mul(77_777_777);
            let unsigned = i64::from(word as u32);
            // An integer's zero has no sign.
            let up = y.ceil() + 0.0;
            let down = y.floor().max(0.0);
            let bits = |x: f64| x.to_bits() as i64;
            let rounded = x.trunc() + f64::from(u8::from(x.fract() >= 0.5));
            let [near, cut, ceil, floor] =
                [x.round_ties_even(), x.trunc(), x.ceil(), x.floor()].map(|x| x as i64);
            let first = [near, cut, ceil, floor, near, cut, ceil, floor];
            let second = [y.round_ties_even() as i64, y.max(0.0) as i64, up as i64, down as i64];
            let third = [int(single(y, Nearest)), int(single(y, Zero)), int(single(y, Up))];
            let last = single(y, Down).to_bits();
            let fourth = [
                i64::from(last),
                int(single(f64::from(word), Nearest)),
                int(single(unsigned as f64, Zero)),
                int(single(ceil as f64, Up)),
                int(single(floor as f64, Down)),
                bits(up),
                bits(down),
                bits(i as f64),
                bits(x),
            ];
            let fifth = [
                cut,
                cut,
                cut,
                cut,
                i64::from(y as i8),
                near,
                y.round_ties_even() as i64,
                i64::from((y.to_bits() >> 32) as i32),
                i64::from(y.to_bits() as i32),
                bits(f64::from_bits((i as u64) << 32 | 5)),
                i64::from(x > 0.0),
                0,
                0,
                i64::from(y < 0.0),
                rounded as i64,
                near << 8,
            ];
            [&first[..], &second, &third, &fourth, &fifth].concat()
        })
        .collect();
    launch("convert_all", 2, 64).input(&f).input(&d).output(exactly(&want)).scalar(n as i32)
}

fn inline_conversions(rng: &mut Rng) -> Case {
    let n = 90usize;
    let mut f = rng.f32s(n, -100.0, 100.0);
    f[..3].copy_from_slice(&[1e-40, 0.0, 0.5]);
    let want: Vec<u32> = f
        .iter()
        .enumerate()
        .flat_map(|(i, &x)| {
            let i = i as i32;
            let clamp = |x: i32, low: i32, high: i32| x.clamp(low, high) as u32;
            let wide = f64::from(if x.is_subnormal() { 0.0 } else { x });
            let saturated = x.round_ties_even().clamp(0.0, 1.0) + 0.0;
            [
                saturated.to_bits(),
                x as i32 as u32,
                clamp(x.to_bits() as i32, 0, 255),
                Format::F16.bits(if x.is_sign_negative() { -wide.abs() } else { wide }) as u32,
                x.floor().to_bits(),
                clamp(i, -128, 127) << 8 | (clamp(i * 3, -128, 127) & 255),
                clamp(i, 0, 65535) << 16,
                u32::from(x.is_subnormal()),
            ]
        })
        .collect();
    launch("inline_conversions", 2, 64).input(&f).output(exactly(&want)).scalar(n as i32)
}
