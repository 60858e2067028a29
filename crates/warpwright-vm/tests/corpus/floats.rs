//! Numbers: the math libraries against f64 references, every rounding mode, narrow formats.

use crate::case::{Case, Expect, File, Source, exactly, launch, source, ulps, within};
use crate::data::{Format, Rng, bytes};
use crate::math::{bessel_j0, erf, erf_inverse, erfc, gamma, ln_gamma, remainder};
use Format::{Bf16, E4m3, E5m2, F16, F32, F64};

pub(crate) const SOURCES: &[Source] = &[
    source("math_f32.nvcc", math_f32),
    source("math_f32_special.nvcc", math_f32_special),
    source("math_f64.nvcc", math_f64),
    source("math_f64_pow.nvcc", math_f64_pow),
    source("math_mix.numba", math_mix),
    source("half_math.nvcc", half_math),
    source("bf16_math.nvcc", bf16_math),
    source("fp8_convert.nvcc", fp8_convert),
    source("blackwell_misc.nvcc", blackwell_misc),
];

const N: usize = 200;

/// A function of one f32: the range of arguments, its bound in units of the last place, and an
/// absolute part, which fast variants need where the function is near zero.
type Single = (&'static str, fn(f64) -> f64, (f64, f64), f64, f64);

fn math_f32(file: &File) -> Vec<Case> {
    let fast = file.variant == "fast";
    let mut rng = Rng::new(1301);
    // With -use_fast_math, sines and logarithms have absolute errors: 2^-21 on these ranges.
    let (units, tiny) = if fast { (32.0, 4e-6) } else { (4.0, 0.0) };
    let far = if fast { 3.0 } else { 300_000.0 };
    let singles: &[Single] = &[
        ("sinf", f64::sin, (-far, far), units, tiny),
        ("cosf", f64::cos, (-far, far), units, tiny),
        ("tanf", f64::tan, (-1.4, 1.4), 2.0 * units, 20.0 * tiny),
        ("expf", f64::exp, (-10.0, 10.0), units, 0.0),
        ("exp2f", f64::exp2, (-20.0, 20.0), units, 0.0),
        ("exp10f", |x| 10f64.powf(x), (-5.0, 5.0), units, 0.0),
        ("logf", f64::ln, (0.01, 1000.0), units, tiny),
        ("log2f", f64::log2, (0.01, 1000.0), units, tiny),
        ("log1pf", f64::ln_1p, (-0.9, 10.0), units, tiny),
        ("expm1f", f64::exp_m1, (-3.0, 5.0), units, tiny),
        // Fast: tanh.approx is good to eleven bits.
        ("tanhf", f64::tanh, (-5.0, 5.0), units, if fast { 6e-4 } else { 0.0 }),
        ("sinhf", f64::sinh, (-5.0, 5.0), units, 10.0 * tiny),
        ("asinf", f64::asin, (-1.0, 1.0), units, tiny),
        ("atanf", f64::atan, (-20.0, 20.0), units, tiny),
        ("erff", erf, (-3.0, 3.0), units, tiny),
        ("erfcf", erfc, (-3.0, 6.0), 2.0 * units, tiny),
        ("sqrtf", f64::sqrt, (0.0, 1000.0), units, 0.0),
        ("rsqrtf", |x| 1.0 / x.sqrt(), (0.01, 1000.0), units, 0.0),
        ("cbrtf", f64::cbrt, (-100.0, 100.0), units, 0.0),
        ("gelu", |x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt())), (-4.0, 4.0), units, 2e-6),
        ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), (-8.0, 8.0), units, 0.0),
        ("softplus", |x| x.exp().ln_1p(), (-8.0, 8.0), 2.0 * units, tiny),
        ("fast", fast_sum, (0.1, 1.4), 8.0, 2e-4),
    ];
    let case = |&(name, of, (low, high), units, tiny): &Single| {
        let x = rng.f32s(N, low, high);
        let want = x.iter().map(|&x| {
            let y = of(f64::from(x));
            (y, units * 2.0 * F32.unit() * y.abs() + tiny)
        });
        let want = within(F32, want.collect::<Vec<_>>());
        launch(&format!("m_{name}"), 2, 128).input(&x).output(want).scalar(N as i32)
    };
    singles.iter().map(case).collect()
}

fn fast_sum(x: f64) -> f64 {
    x.sin() + x.cos() * x.exp() + x.ln() + x.powf(1.5) + 10f64.powf(x) + x.log2() + x.tan()
}

/// The next number toward `to`.
fn next_after(x: f32, to: f32) -> f32 {
    if to > x { x.next_up() } else { x.next_down() }
}

fn math_f32_special(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1302);
    type Pair = (&'static str, fn(f64, f64) -> f64, (f64, f64), (f64, f64), f64, f64);
    let any = (-3.0, 3.0);
    let pairs: &[Pair] = &[
        ("tgammaf", |x, _| gamma(x), (0.1, 8.0), any, 16.0, 0.0),
        ("lgammaf", |x, _| ln_gamma(x), (0.1, 30.0), any, 12.0, 1e-6),
        ("j0f", |x, _| bessel_j0(x), (-8.0, 8.0), any, 18.0, 1e-6),
        ("powf", f64::powf, (0.1, 10.0), (-5.0, 5.0), 8.0, 0.0),
        ("fmodf", |x, y| x % y, (-1e6, 1e6), (0.5, 20.0), 0.0, 0.0),
        ("remainderf", |x, y| remainder(x, y).0, (-1e5, 1e5), (0.5, 20.0), 0.0, 0.0),
        ("hypotf", f64::hypot, (-1e3, 1e3), (-1e3, 1e3), 4.0, 0.0),
        ("atan2f", f64::atan2, any, any, 4.0, 0.0),
        ("erfinvf", |x, _| erf_inverse(x), (-0.99, 0.99), any, 4.0, 0.0),
        ("normcdff", |x, _| 0.5 * erfc(-x / 2f64.sqrt()), (-5.0, 5.0), any, 8.0, 0.0),
        ("frexp", |x, _| frexp(x).0 + f64::from(frexp(x).1), (-1e6, 1e6), any, 1.0, 0.0),
        ("modf", |x, _| x.fract() * 2.0 + x.trunc(), (-1e4, 1e4), any, 1.0, 0.0),
        (
            "remquo",
            |x, y| remainder(x, y).0 + (remainder(x, y).1 % 8) as f64,
            (-50.0, 50.0),
            (0.5, 20.0),
            1.0,
            0.0,
        ),
        ("ldexpf", |x, y| x * y.trunc().exp2(), any, (-20.0, 20.0), 0.0, 0.0),
        ("nextafterf", |x, y| f64::from(next_after(x as f32, y as f32)), any, any, 0.0, 0.0),
        ("fdimf", |x, y| (x - y).max(0.0), any, any, 1.0, 0.0),
        ("norm3df", |x, y| (x * x + y * y + 1.0).sqrt(), any, any, 4.0, 0.0),
        ("rcbrtf", |x, _| 1.0 / x.cbrt(), (0.01, 100.0), any, 4.0, 0.0),
        ("sinpif", |x, _| (std::f64::consts::PI * (x % 2.0)).sin(), (-100.0, 100.0), any, 4.0, 0.0),
        ("logbf", |x, _| x.abs().log2().floor(), (0.001, 1e5), any, 0.0, 0.0),
        ("acoshf", |x, _| x.acosh(), (1.0, 100.0), any, 8.0, 0.0),
    ];
    let case = |&(name, of, (low, high), (from, to), units, tiny): &Pair| {
        let (x, y) = (rng.f32s(N, low, high), rng.f32s(N, from, to));
        let want = x.iter().zip(&y).map(|(&x, &y)| {
            let z = of(f64::from(x), f64::from(y));
            (z, units * 2.0 * F32.unit() * z.abs() + tiny)
        });
        let want = within(F32, want.collect::<Vec<_>>());
        launch(&format!("m_{name}"), 2, 128).input(&x).input(&y).output(want).scalar(N as i32)
    };
    pairs.iter().map(case).collect()
}

/// Fraction in [1/2, 1) and exponent.
fn frexp(x: f64) -> (f64, i32) {
    let exponent = x.abs().log2().floor() as i32 + 1;
    (x / f64::from(exponent).exp2(), exponent)
}

type Double = (&'static str, fn(f64, f64) -> f64, (f64, f64), (f64, f64), f64);

fn doubles(table: &[Double], seed: u64) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    let case = |&(name, of, (low, high), (from, to), units): &Double| {
        let (x, y) = (rng.f64s(N, low, high), rng.f64s(N, from, to));
        let want = ulps(F64, units, x.iter().zip(&y).map(|(&x, &y)| of(x, y)).collect::<Vec<_>>());
        launch(&format!("d_{name}"), 2, 128).input(&x).input(&y).output(want).scalar(N as i32)
    };
    table.iter().map(case).collect()
}

fn math_f64(_: &File) -> Vec<Case> {
    let any = (-3.0, 3.0);
    // Rust's own functions are good to a unit.
    let table: &[Double] = &[
        ("sin", |x, _| x.sin(), (-1e10, 1e10), any, 4.0),
        ("cos", |x, _| x.cos(), (-1e10, 1e10), any, 4.0),
        ("exp", |x, _| x.exp(), (-50.0, 50.0), any, 3.0),
        ("log", |x, _| x.ln(), (0.001, 1e6), any, 3.0),
        ("sqrt", |x, y| x.sqrt() + 1.0 / y.sqrt(), (0.0, 1e6), (0.01, 100.0), 3.0),
        ("div", |x, y| x / y, any, (0.1, 10.0), 0.0),
        ("tanh", |x, _| x.tanh(), (-5.0, 5.0), any, 4.0),
        ("atan2", f64::atan2, any, any, 4.0),
        ("floor", |x, y| x.floor() + y.round(), (-1e6, 1e6), (-100.0, 100.0), 0.0),
        ("cbrt", |x, _| x.cbrt(), (-1e6, 1e6), any, 3.0),
    ];
    doubles(table, 1303)
}

fn math_f64_pow(_: &File) -> Vec<Case> {
    let any = (-3.0, 3.0);
    let mut cases = doubles(
        &[
            ("pow", f64::powf, (0.1, 10.0), (-20.0, 20.0), 4.0),
            ("fmod", |x, y| x % y, (-1e12, 1e12), (0.5, 20.0), 0.0),
            // Our own series cancels near 3.
            ("erf", |x, _| erf(x), (-2.0, 2.0), any, 200.0),
            ("tgamma", |x, _| gamma(x), (0.5, 20.0), any, 200.0),
            ("sincos", |x, _| x.sin() * x.cos(), (-100.0, 100.0), any, 8.0),
            ("hypot", f64::hypot, any, any, 3.0),
            ("asin", |x, _| x.asin(), (-1.0, 1.0), any, 4.0),
            ("log1p", |x, _| x.ln_1p(), (-0.9, 10.0), any, 4.0),
            ("exp2", |x, _| x.exp2(), (-100.0, 100.0), any, 4.0),
        ],
        1304,
    );
    let mut rng = Rng::new(1305);
    let x = rng.f64s(N, 1e-5, 1e5);
    let want: Vec<f64> = x.iter().map(|x| x.log2().floor()).collect();
    cases.push(launch("d_ilogb", 2, 128).input(&x).input(&x).output(exactly(&want)).scalar(N as i32));
    cases
}

fn math_mix(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(1306);
    let of = |v: f64| {
        let wave = v.sin() * (-v * v).exp();
        wave + v.abs().sqrt() + erf(v) + v.floor() + v.abs().powf(0.75) + v.atan2(2.0)
    };
    let x = rng.f64s(N, -2.5, 2.5);
    let mut case = launch(&file.entries[0], 4, 64);
    let (init, want, size) = if file.variant == "fast" {
        let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        (bytes(&x), within(F32, x.iter().map(|&x| (of(f64::from(x)), 1e-5)).collect::<Vec<_>>()), 4)
    } else {
        (bytes(&x), within(F64, x.iter().map(|&x| (of(x), 1e-13)).collect::<Vec<_>>()), 8)
    };
    let (input, output) = (case.add(Some(init), Expect::Same), case.add(None, want));
    vec![case.array(input, N, size).array(output, N, size)]
}

/// Expectations for slots that every element has `width` of, most of them numbers of `format`.
pub(crate) fn slots(format: Format, elements: impl Iterator<Item = Vec<(f64, f64)>>) -> Expect {
    within(format, elements.flatten().collect::<Vec<_>>())
}

/// A correctly rounded result, and one whose last place may differ.
pub(crate) fn exact(x: f64) -> (f64, f64) {
    (x, 0.0)
}

fn half_math(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1307);
    let n = 90usize;
    let mut draw = |n: usize| (0..n).map(|_| F16.round(rng.f64(-3.0, 3.0))).collect::<Vec<f64>>();
    let (a, b) = (draw(2 * n), draw(2 * n));
    let flag = |yes: bool| f64::from(u8::from(yes));
    // Per pair, 16 pairs of results.
    let pairs = (0..n).map(|i| {
        let (x, y) = ([a[2 * i], a[2 * i + 1]], [b[2 * i], b[2 * i + 1]]);
        let each = |of: &dyn Fn(f64, f64) -> f64| (0..2).map(|k| exact(of(x[k], y[k]))).collect::<Vec<_>>();
        let near = |of: &dyn Fn(f64, f64) -> f64| {
            let loose = |z: f64| (z, 2.0 * F16.unit() * z.abs());
            (0..2).map(|k| loose(of(x[k], y[k]))).collect::<Vec<_>>()
        };
        [
            each(&|x, y| x + y),
            each(&|x, y| x - y),
            each(&|x, y| x * y),
            near(&|x, y| x / y),
            each(&|x, y| x * y + x),
            each(&|x, y| (x + y).clamp(0.0, 1.0)),
            each(&|x, y| (x * y + y).clamp(0.0, 1.0)),
            each(&|x, _| x.abs()),
            each(&f64::min),
            each(&f64::max),
            each(&|x, y| flag(x == y)),
            each(&|x, y| flag(x < y)),
            vec![exact(x[1]), exact(x[0])],
            vec![exact(x[0]), exact(y[1])],
            each(&|_, _| 0.0),
            each(&|x, _| x.round_ties_even()),
        ]
        .concat()
    });
    let ops =
        launch("half2_ops", 2, 64).floats(F16, &a).floats(F16, &b).output(slots(F16, pairs)).scalar(n as i32);

    let x: Vec<f64> = (0..n).map(|_| F16.round(rng.f64(0.1, 4.0))).collect();
    let funcs = x.iter().map(|&x| {
        let near =
            |y: f64| (y, 2.0 * F16.unit() * y.abs() + 2f64.powi(-11) * f64::from(u8::from(y.abs() < 0.5)));
        vec![
            near(x.exp()),
            near(x.ln()),
            near(x.sqrt()),
            near(1.0 / x.sqrt()),
            near(x.sin()),
            near(x.cos()),
            near(x.exp2()),
            near(x.log2()),
            exact(x.ceil()),
            exact(x.floor()),
            exact(x.trunc()),
            near(1.0 / x),
            near(10f64.powf(x)),
            exact(x * x),
            exact(x + x),
            exact(-x),
        ]
    });
    let ints: Vec<i32> = x
        .iter()
        .flat_map(|&x| [x.round_ties_even() as i32, x as i32, x.ceil() as i32, i32::from(x > 1.0)])
        .collect();
    let funcs = launch("half_funcs", 2, 64).floats(F16, &x).output(slots(F16, funcs)).output(exactly(&ints));

    let f = rng.f32s(n, -100.0, 100.0);
    let d = rng.f64s(n, -1000.0, 1000.0);
    let l: Vec<i64> = (0..n).map(|_| rng.int(-5000, 5000)).collect();
    let halves: Vec<u16> = (0..n)
        .flat_map(|i| {
            let (x, l) = (f64::from(f[i]), l[i] as f64);
            let modes = [F16.bits(x), toward_zero(F16, x), upward(F16, x), upward(F16, -x) ^ 0x8000];
            let rest = [F16.bits(d[i]), F16.bits(l), 0x3c00, toward_zero(F16, l)];
            modes.into_iter().chain(rest).map(|bits| bits as u16).collect::<Vec<u16>>()
        })
        .collect();
    let casts = launch("half_casts", 2, 64).input(&f).input(&d).input(&l).output(exactly(&halves));
    vec![ops, funcs.scalar(n as i32), casts.scalar(n as i32)]
}

/// Bits of the next number toward zero, unless `x` is a number of the format.
pub(crate) fn toward_zero(format: Format, x: f64) -> u64 {
    let near = format.bits(x);
    if format.value(near).abs() > x.abs() { near - 1 } else { near }
}

/// Bits of the next number upward, unless `x` is a number of the format.
fn upward(format: Format, x: f64) -> u64 {
    let cut = toward_zero(format, x);
    if format.value(cut) < x { cut + 1 } else { cut }
}

fn bf16_math(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1308);
    let n = 90usize;
    let mut draw = |n: usize| (0..n).map(|_| Bf16.round(rng.f64(-3.0, 3.0))).collect::<Vec<f64>>();
    let (a, b) = (draw(2 * n), draw(2 * n));
    let flag = |yes: bool| f64::from(u8::from(yes));
    let pairs = (0..n).map(|i| {
        let (x, y) = ([a[2 * i], a[2 * i + 1]], [b[2 * i], b[2 * i + 1]]);
        let each = |of: &dyn Fn(f64, f64) -> f64| (0..2).map(|k| exact(of(x[k], y[k]))).collect::<Vec<_>>();
        let near = |y: f64| (y, 2.0 * Bf16.unit() * y.abs());
        [
            each(&|x, y| x + y),
            each(&|x, y| x - y),
            each(&|x, y| x * y),
            each(&|x, y| x * y + y),
            each(&f64::min),
            each(&f64::max),
            each(&|x, _| x.abs()),
            each(&|_, y| -y),
            each(&|x, y| (x * y + x).max(0.0)),
            vec![exact(1.5 * i as f64), exact(2.0)],
            each(&|x, y| flag(x > y)),
            vec![near(x[0].exp()), near(x[1].exp())],
        ]
        .concat()
    });
    let ops = launch("bf162_ops", 2, 64)
        .floats(Bf16, &a)
        .floats(Bf16, &b)
        .output(slots(Bf16, pairs))
        .scalar(n as i32);
    let gated = (0..2 * n).map(|i| {
        let y = a[i] / (1.0 + (-a[i]).exp()) * b[i];
        (y, 4e-6 * y.abs())
    });
    let swiglu = launch("swiglu", 2, 64)
        .floats(Bf16, &a)
        .floats(Bf16, &b)
        .output(within(Bf16, gated))
        .scalar(n as i32);
    let x: Vec<f64> = (0..n).map(|_| Bf16.round(rng.f64(0.2, 3.0))).collect();
    let f = rng.f32s(n, -100.0, 100.0);
    let funcs = (0..n).map(|i| {
        let x = x[i];
        let near = |y: f64| (y, 2.0 * Bf16.unit() * y.abs() + 1e-3 * f64::from(u8::from(y.abs() < 0.1)));
        vec![
            near(x.exp()),
            near(x.log2()),
            near(1.0 / x.sqrt()),
            near(x.tanh()),
            exact(x.ceil()),
            exact(Bf16.value(toward_zero(Bf16, f64::from(f[i])))),
            exact(x * x + x),
            exact(i as f64),
        ]
    });
    let wide: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let funcs =
        launch("bf16_funcs", 2, 64).floats(Bf16, &x).output(slots(Bf16, funcs)).inout(&f, exactly(&wide));
    vec![ops, swiglu, funcs.scalar(n as i32)]
}

fn fp8_convert(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1309);
    let n = 70usize;
    let x = rng.f32s(4 * n, -600.0, 600.0);
    let scaled: Vec<f64> = x.iter().map(|x| f64::from(x * 0.75)).collect();
    let quant = launch("quant_fp8", 2, 64).input(&x).output(Expect::Bytes(E4m3.store(&scaled)));
    let codes: Vec<u8> =
        rng.bytes(2 * n).iter().map(|b| if b & 0x7c == 0x7c { b & 0x83 } else { *b }).collect();
    let plain: Vec<f32> = codes.iter().map(|&b| (E5m2.value(b.into()) * 0.5) as f32).collect();
    let dequant = launch("dequant_fp8", 2, 64).input(&codes).output(exactly(&plain));
    let halves: Vec<f64> = (0..2 * n).map(|_| F16.round(rng.f64(-500.0, 500.0))).collect();
    let back: Vec<f64> = halves.iter().map(|&h| E4m3.round(h) + E5m2.round(h)).collect();
    let half = launch("half_fp8", 2, 64)
        .floats(F16, &halves)
        .output(Expect::Bytes(E4m3.store(&halves)))
        .output(Expect::Bytes(E5m2.store(&halves)))
        .output(Expect::Bytes(F16.store(&back)));
    let d = rng.f64s(n, -300.0, 300.0);
    let b: Vec<f64> = (0..n).map(|_| Bf16.round(rng.f64(-300.0, 300.0))).collect();
    let both: Vec<f64> = d.iter().zip(&b).flat_map(|(d, b)| [*d, *b]).collect();
    let differences: Vec<f32> =
        d.iter().zip(&b).map(|(d, b)| (E4m3.round(*d) - E4m3.round(*b)) as f32).collect();
    let scalar =
        launch("fp8_scalar", 2, 64).input(&d).floats(Bf16, &b).output(Expect::Bytes(E4m3.store(&both)));
    vec![
        quant.scalar(0.75f32).scalar(n as i32),
        dequant.scalar(0.5f32).scalar(n as i32),
        half.scalar(n as i32),
        scalar.output(exactly(&differences)).scalar(n as i32),
    ]
}

/// What `narrow_floats` makes of four numbers each.
fn narrow_floats(x: &[f32]) -> Vec<u32> {
    let of = |thread: usize| {
        let numbers: [f64; 4] = std::array::from_fn(|i| x[4 * thread + i].into());
        let [a, b, c, d] = numbers;
        let nearest = |format: Format, x: f64| format.bits(x) as u32;
        let back = |format: Format, x: f64| F16.bits(format.round(x)) as u32;
        // The power of two that is not below.
        let power = |x: f64| 127 + x.abs().log2().ceil() as u32;
        let random = (thread as u32).wrapping_mul(2_654_435_761);
        let half = |x: f64, random: u32| F16.bits_at_random(x, random & 0x1fff, 13) as u32;
        let bytes = (thread as u32).wrapping_mul(40503);
        let byte = |x: f64, random: u32| E4m3.bits_at_random(x, random & 0xffff, 16) as u32;
        [
            nearest(Format::E2m1, a) << 4 | nearest(Format::E2m1, b),
            back(Format::E2m1, a) << 16 | back(Format::E2m1, b),
            nearest(Format::E2m3, c) << 8 | nearest(Format::E2m3, d),
            back(Format::E2m3, c) << 16 | back(Format::E2m3, d),
            power(a) << 8 | power(c),
            power(a) << 23 | power(c) << 7,
            half(b, random >> 16) << 16 | half(d, random),
            byte(a, bytes >> 16) << 24 | byte(b, bytes >> 16) << 16 | byte(c, bytes) << 8 | byte(d, bytes),
        ]
    };
    (0..x.len() / 4).flat_map(of).collect()
}

fn blackwell_misc(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(1311);
    let x = rng.f32s(32, -10.0, 10.0);
    let least = x.iter().copied().fold(f32::INFINITY, f32::min);
    let largest = x.iter().fold(0f32, |m, x| m.max(x.abs()));
    let want: Vec<f32> = (0..32).flat_map(|_| [least, largest]).collect();
    let narrow = launch("narrow_floats", 1, 8).input(&x).output(exactly(&narrow_floats(&x))).scalar(8i32);
    vec![
        launch("float_redux", 1, 32).input(&x).output(exactly(&want)),
        narrow,
        launch("steal_work", 40, 32).inout(&[0i32; 40], exactly(&[496i32; 40])),
    ]
}
