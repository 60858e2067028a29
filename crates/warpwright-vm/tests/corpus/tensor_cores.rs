//! Tensor cores by hand: `wmma` tiles, and `mma.sync` of every type with registers as the ISA lays
//! them out.
//!
//! Tensor cores align the terms of a step to the largest and truncate; the bounds allow each term of
//! each step one unit of the sum of sizes. What is exact in any order is compared exactly.

use crate::case::{Case, File, Source, exactly, launch, source, within};
use crate::data::{Format, Rng};
use Format::{Bf16, E4m3, E5m2, F16, F32, F64};

pub(crate) const SOURCES: &[Source] = &[
    source("wmma_f16.nvcc", wmma_f16),
    source("wmma_int.nvcc", wmma_int),
    source("wmma_ampere.nvcc", wmma_ampere),
    source("mma_f16.nvcc", mma_f16),
    source("mma_types.nvcc", mma_types),
    source("mma_fp8.nvcc", mma_fp8),
    source("asm_mma.clang", asm_mma),
];

/// Which way a matrix lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Rows,
    Columns,
}

/// `a` (m × k) times `b` (k × n), rows first; with the sums of sizes.
pub(crate) fn product(
    (m, n, k): (usize, usize, usize),
    (a, a_order): (&[f64], Order),
    (b, b_order): (&[f64], Order),
) -> Vec<(f64, f64)> {
    let at = |order, r: usize, c: usize, rows: usize, columns: usize| match order {
        Order::Rows => r * columns + c,
        Order::Columns => c * rows + r,
    };
    let term = |i, j, l| a[at(a_order, i, l, m, k)] * b[at(b_order, l, j, k, n)];
    let element = |i, j| {
        (0..k)
            .map(|l| term(i, j, l))
            .fold((0.0, 0.0), |(value, size): (f64, f64), x| (value + x, size + x.abs()))
    };
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

/// Elements with their bounds: `units` of 2⁻²³ times the sum of sizes.
pub(crate) fn bounded(elements: Vec<(f64, f64)>, units: f64) -> impl Iterator<Item = (f64, f64)> {
    elements.into_iter().map(move |(value, size)| (value, units * 2.0 * F32.unit() * size))
}

fn draw(rng: &mut Rng, format: Format, n: usize) -> Vec<f64> {
    (0..n).map(|_| format.round(rng.f64(-1.0, 1.0))).collect()
}

fn wmma_f16(_: &File) -> Vec<Case> {
    use Order::{Columns, Rows};
    let mut rng = Rng::new(701);
    let kinds = [
        (
            "_Z9wmma_gemmILi16ELi16ELi16EN6nvcuda4wmma9row_majorES2_fEvPK6__halfS5_PT4_iiiS6_",
            16,
            16,
            Rows,
            Rows,
            F32,
        ),
        (
            "_Z9wmma_gemmILi16ELi16ELi16EN6nvcuda4wmma9row_majorENS1_9col_majorE6__halfEvPKS4_S6_PT4_iiiS7_",
            16,
            16,
            Rows,
            Columns,
            F16,
        ),
        (
            "_Z9wmma_gemmILi32ELi8ELi16EN6nvcuda4wmma9col_majorENS1_9row_majorEfEvPK6__halfS6_PT4_iiiS7_",
            32,
            8,
            Columns,
            Rows,
            F32,
        ),
        (
            "_Z9wmma_gemmILi8ELi32ELi16EN6nvcuda4wmma9col_majorES2_6__halfEvPKS3_S5_PT4_iiiS6_",
            8,
            32,
            Columns,
            Columns,
            F16,
        ),
    ];
    let case =
        |(entry, tile_m, tile_n, a_order, b_order, format): (&str, usize, usize, Order, Order, Format)| {
            let (m, n, k) = (2 * tile_m, 2 * tile_n, 48);
            let (a, b) = (draw(&mut rng, F16, m * k), draw(&mut rng, F16, k * n));
            let c = draw(&mut rng, format, m * n);
            let product = product((m, n, k), (&a, a_order), (&b, b_order));
            // Narrow accumulators are rounded at each of the steps, of which some chips take 16.
            let bound = if format == F16 { 16.0 * F16.unit() } else { 48.0 * 2.0 * F32.unit() };
            let want = product.iter().zip(&c).map(|((value, size), c)| {
                let step = format.unit() * (value.abs() + c.abs());
                (value * 0.5 + c, bound * size + step)
            });
            let want: Vec<(f64, f64)> = want.collect();
            let case = launch(entry, (2, 2), 32)
                .floats(F16, &a)
                .floats(F16, &b)
                .inout(&format.store(&c), within(format, want));
            let case = case.scalar(m as i32).scalar(n as i32).scalar(k as i32);
            if format == F16 { case.scalar(F16.bits(0.5) as u16) } else { case.scalar(0.5f32) }
        };
    kinds.into_iter().map(case).collect()
}

/// An exact product of integers.
fn integers(
    (m, n, k): (usize, usize, usize),
    a: impl Fn(usize, usize) -> i64,
    b: impl Fn(usize, usize) -> i64,
) -> Vec<i32> {
    (0..m * n).map(|at| (0..k).map(|l| a(at / n, l) * b(l, at % n)).sum::<i64>() as i32).collect()
}

fn nibble(words: &[u32], at: usize) -> u32 {
    words[at / 8] >> (at % 8 * 4) & 15
}

fn signed_nibble(words: &[u32], at: usize) -> i64 {
    i64::from((nibble(words, at) << 28) as i32 >> 28)
}

fn bit(words: &[u32], at: usize) -> u32 {
    words[at / 32] >> (at % 32) & 1
}

fn wmma_int(file: &File) -> Vec<Case> {
    let mut rng = Rng::new(702);
    let (n, k) = (32usize, 48usize);
    let (a, b) = (rng.bytes(n * k), rng.bytes(n * k));
    let s8 = integers((n, n, k), |i, l| i64::from(a[i * k + l] as i8), |l, j| i64::from(b[j * k + l] as i8));
    // Columns first: transposed.
    let u8s = integers((16, 32, k), |j, l| i64::from(b[l * 16 + j]), |l, i| i64::from(a[i * k + l]));
    let sizes = |case: Case, n: usize, k: usize| case.scalar(n as i32).scalar(k as i32);
    let (n4, k4) = (16usize, 64usize);
    let (a4, b4) = (rng.u32s(n4 * k4 / 8), rng.u32s(n4 * k4 / 8));
    let s4 =
        integers((n4, n4, k4), |i, l| signed_nibble(&a4, i * k4 + l), |l, j| signed_nibble(&b4, j * k4 + l));
    let (n1, k1) = (16usize, 256usize);
    let (a1, b1) = (rng.u32s(n1 * k1 / 32), rng.u32s(n1 * k1 / 32));
    let of = |f: fn(u32, u32) -> u32| {
        let element =
            |i: usize, j: usize| (0..k1).map(|l| f(bit(&a1, i * k1 + l), bit(&b1, j * k1 + l))).sum::<u32>();
        (0..n1 * n1).map(|at| element(at / n1, at % n1)).collect::<Vec<u32>>()
    };
    let xor = of(|a, b| a ^ b);
    let and = of(|a, b| a & b);
    let bits: Vec<u32> =
        if file.arch >= 80 { xor.iter().zip(&and).map(|(a, b)| a + b).collect() } else { xor };
    vec![
        sizes(launch("wmma_s8", (2, 2), 32).input(&a).input(&b).output(exactly(&s8)), n, k),
        sizes(
            launch("wmma_u8", (2, 1), 32).input(&a[..32 * k]).input(&b[..16 * k]).output(exactly(&u8s)),
            16,
            k,
        ),
        sizes(launch("wmma_s4", (2, 2), 32).input(&a4).input(&b4).output(exactly(&s4)), n4, k4),
        sizes(launch("wmma_b1", (2, 2), 32).input(&a1).input(&b1).output(exactly(&bits)), n1, k1),
    ]
}

fn wmma_ampere(_: &File) -> Vec<Case> {
    use Order::{Columns, Rows};
    let mut rng = Rng::new(703);
    let (n, k) = (32usize, 48usize);
    let (a, b) = (draw(&mut rng, Bf16, n * k), draw(&mut rng, Bf16, n * k));
    let bf16 = within(F32, bounded(product((n, n, k), (&a, Rows), (&b, Columns)), k as f64));
    let (x, y) = (rng.f32s(n * k, -1.0, 1.0), rng.f32s(n * k, -1.0, 1.0));
    let round = |x: &[f32]| x.iter().map(|x| tf32(*x)).collect::<Vec<f64>>();
    let tf32 = within(F32, bounded(product((n, n, k), (&round(&x), Rows), (&round(&y), Rows)), k as f64));
    let (u, v) = (rng.f64s(16 * 20, -1.0, 1.0), rng.f64s(16 * 20, -1.0, 1.0));
    let c = rng.f64s(256, -1.0, 1.0);
    let f64s = product((16, 16, 20), (&u, Rows), (&v, Columns));
    let f64s =
        f64s.iter().zip(&c).map(|((value, size), c)| (value + c, 20.0 * F64.unit() * (size + c.abs())));
    let f64s = within(F64, f64s.collect::<Vec<_>>());
    vec![
        launch("wmma_bf16", (2, 2), 32)
            .floats(Bf16, &a)
            .floats(Bf16, &b)
            .output(bf16)
            .scalar(32i32)
            .scalar(48i32),
        launch("wmma_tf32", (2, 2), 32).input(&x).input(&y).output(tf32).scalar(32i32).scalar(48i32),
        launch("wmma_f64", (2, 2), 32).input(&u).input(&v).inout(&c, f64s).scalar(16i32).scalar(20i32),
    ]
}

/// Rounded to ten fraction bits, ties away from zero.
pub(crate) fn tf32(x: f32) -> f64 {
    f64::from(f32::from_bits((x.to_bits() + 0x1000) & !0x1fff))
}

fn mma_f16(_: &File) -> Vec<Case> {
    use Order::{Columns, Rows};
    let mut rng = Rng::new(704);
    let (m, n, k) = (32usize, 24usize, 80usize);
    let (a, b) = (draw(&mut rng, F16, m * k), draw(&mut rng, F16, n * k));
    let wide = within(F32, bounded(product((m, n, k), (&a, Rows), (&b, Columns)), k as f64));
    // f16 accumulators: one rounding for each of up to ten steps.
    let narrow = product((m, n, k), (&a, Rows), (&b, Rows)).into_iter();
    let narrow = within(F16, narrow.map(|(value, size)| (value, 10.0 * F16.unit() * size)));
    let case = |entry: &str, want| {
        let case = launch(entry, (3, 2), 32).floats(F16, &a).floats(F16, &b).output(want);
        case.scalar(n as i32).scalar(k as i32)
    };
    vec![case("mma_f16", wide), case("mma_f16_trans", narrow)]
}

/// The operands of an `mma.sync` of `k` elements of `width` bits, in the ISA's register layout: lane
/// `4g + t` has of `a` the rows `g` and `g + 8`, of `b` the column `g`, and in each register
/// neighbours along k.
struct Mma<'a> {
    /// Registers, by lane; how many a lane has in all, of which the first ones are used.
    a: (&'a [u32], usize),
    b: (&'a [u32], usize),
    /// 16, or 8.
    rows: usize,
    width: usize,
    k: usize,
}

impl Mma<'_> {
    fn element(&self, word: u32, at: usize) -> u32 {
        let mask = if self.width == 32 { u32::MAX } else { (1 << self.width) - 1 };
        word >> (at * self.width) & mask
    }

    fn a(&self, row: usize, k: usize) -> u32 {
        let each = 32 / self.width;
        let register = self.rows / 8 * (k / (4 * each)) + row / 8;
        let lane = row % 8 * 4 + k / each % 4;
        self.element(self.a.0[lane * self.a.1 + register], k % each)
    }

    fn b(&self, k: usize, column: usize) -> u32 {
        let each = 32 / self.width;
        let lane = column * 4 + k / each % 4;
        self.element(self.b.0[lane * self.b.1 + k / (4 * each)], k % each)
    }

    /// Value and sum of sizes of the sum of `term` over k.
    fn sum(&self, row: usize, column: usize, term: impl Fn(u32, u32) -> f64) -> (f64, f64) {
        let terms = (0..self.k).map(|k| term(self.a(row, k), self.b(k, column)));
        terms.fold((0.0, 0.0), |(value, size), x| (value + x, size + x.abs()))
    }
}

/// Row and column of a lane's accumulator `i` of four (or of two, for eight rows).
fn place(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2)
}

/// Every lane's four accumulators, as sums of steps.
fn accumulate(steps: &[&dyn Fn(usize, usize) -> (f64, f64)]) -> Vec<(f64, f64)> {
    let element = |at: usize| {
        let (row, column) = place(at / 4, at % 4);
        steps.iter().map(|step| step(row, column)).fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1))
    };
    (0..128).map(element).collect()
}

fn mma_types(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(705);
    let pack =
        |x: Vec<u16>| x.chunks(2).map(|x| u32::from(x[0]) | u32::from(x[1]) << 16).collect::<Vec<u32>>();
    let (a, b) = (pack(rng.narrow(Bf16, 256, -1.0, 1.0)), pack(rng.narrow(Bf16, 128, -1.0, 1.0)));
    let c = rng.f32s(128, -1.0, 1.0);
    let term = |a: u32, b: u32| Bf16.value(a.into()) * Bf16.value(b.into());
    let mma = |k| Mma { a: (&a, 4), b: (&b, 2), rows: 16, width: 16, k };
    let sums = accumulate(&[&|r, q| mma(16).sum(r, q, term), &|r, q| mma(8).sum(r, q, term)]);
    let sums = sums
        .iter()
        .zip(&c)
        .map(|((value, size), &c)| (value + f64::from(c), size + f64::from(c.abs())))
        .collect();
    let bf16 = launch("mma_bf16", 1, 32).input(&a).input(&b).inout(&c, within(F32, bounded(sums, 24.0)));

    let (x, y) = (rng.f32s(128, -1.0, 1.0), rng.f32s(64, -1.0, 1.0));
    let words = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let (xw, yw) = (words(&x), words(&y));
    let term = |a: u32, b: u32| tf32(f32::from_bits(a)) * tf32(f32::from_bits(b));
    let mma = |k| Mma { a: (&xw, 4), b: (&yw, 2), rows: 16, width: 32, k };
    let sums = accumulate(&[&|r, q| mma(8).sum(r, q, term), &|r, q| mma(4).sum(r, q, term)]);
    let tf32s = launch("mma_tf32", 1, 32).input(&x).input(&y).output(within(F32, bounded(sums, 12.0)));

    let (a, b) = (rng.u32s(128), rng.u32s(64));
    let mma = |rows, width, k| Mma { a: (&a, 4), b: (&b, 2), rows, width, k };
    let (signed, plain) = (|x: u32| f64::from(x as u8 as i8), |x: u32| f64::from(x));
    let nibble = |x: u32| f64::from((x << 28) as i32 >> 28);
    let count = |x: u32| f64::from(x.count_ones());
    let four = |r, q| {
        mma(16, 8, 32).sum(r, q, |a, b| signed(a) * signed(b)).0
            + mma(16, 8, 16).sum(r, q, |a, b| plain(a) * signed(b)).0
            + mma(16, 4, 64).sum(r, q, |a, b| nibble(a) * plain(b)).0
            + mma(16, 1, 256).sum(r, q, |a, b| count(a ^ b)).0
    };
    let two = |r, q| {
        mma(8, 8, 16).sum(r, q, |a, b| signed(a) * plain(b)).0
            + mma(8, 1, 128).sum(r, q, |a, b| count(a & b)).0
    };
    let want: Vec<i32> = (0..192)
        .map(|at| {
            let (lane, i) = (at / 6, at % 6);
            let (row, column) = place(lane, i % 4);
            if i < 4 { four(row, column) as i32 } else { two(row, column) as i32 }
        })
        .collect();
    let ints = launch("mma_int", 1, 32).input(&a).input(&b).output(exactly(&want));

    let (a, b, c) = (rng.f64s(32, -1.0, 1.0), rng.f64s(32, -1.0, 1.0), rng.f64s(64, -1.0, 1.0));
    let doubles = (0..64).map(|at| {
        let (row, column) = place(at / 2, at % 2);
        let value = (0..4).map(|k| a[row * 4 + k] * b[column * 4 + k]).sum::<f64>() + c[at];
        (value, 5.0 * 5.0 * F64.unit())
    });
    let doubles = within(F64, doubles.collect::<Vec<_>>());
    let f64s = launch("mma_f64", 1, 32).input(&a).input(&b).inout(&c, doubles);
    vec![bf16, tf32s, ints, f64s, mma_sparse()]
}

/// Of every four neighbours in a row of `a` two are kept, and two bits for each say where they stand. In a
/// group of four lanes the selector 0 takes the bits of the first two.
fn mma_sparse() -> Case {
    let mut rng = Rng::new(709);
    let packed = |x: &[f64]| -> Vec<u32> {
        x.chunks(2).map(|x| F16.bits(x[0]) as u32 | (F16.bits(x[1]) as u32) << 16).collect()
    };
    let (mut kept, mut a, mut bits) = ([0f64; 16 * 16], [0f64; 16 * 32], [0u32; 32]);
    let b = draw(&mut rng, F16, 32 * 8);
    for row in 0..16 {
        for four in 0..8 {
            let first = rng.int(0, 3) as usize;
            let second = rng.int(first as i64 + 1, 4) as usize;
            let places = (first | second << 2) as u32;
            bits[row % 8 * 4 + four / 4] |= places << (row / 8 * 16 + four % 4 * 4);
            for (i, at) in [first, second].into_iter().enumerate() {
                let x = F16.round(rng.f64(-1.0, 1.0));
                (kept[row * 16 + 2 * four + i], a[row * 32 + 4 * four + at]) = (x, x);
            }
        }
    }
    // Lane 4g + t: rows g and g + 8 of what is kept at columns 2t and 2t + 8, column g of b at rows 2t + 8i.
    let mut words = (Vec::new(), Vec::new());
    for (g, t) in (0..32).map(|lane| (lane / 4, lane % 4)) {
        for (row, column) in [(g, 2 * t), (g + 8, 2 * t), (g, 2 * t + 8), (g + 8, 2 * t + 8)] {
            words.0.extend(packed(&kept[row * 16 + column..][..2]));
        }
        for i in 0..4 {
            let row = 2 * t + 8 * i;
            words.1.extend(packed(&[b[row * 8 + g], b[(row + 1) * 8 + g]]));
        }
    }
    let sums = product((16, 8, 32), (&a, Order::Rows), (&b, Order::Rows));
    let c = (0..128).map(|at| {
        let (row, column) = place(at / 4, at % 4);
        sums[row * 8 + column]
    });
    let c = within(F32, bounded(c.collect(), 32.0));
    launch("mma_sparse", 1, 32).input(&words.0).input(&words.1).input(&bits).output(c)
}

fn mma_fp8(_: &File) -> Vec<Case> {
    let mut rng = Rng::new(706);
    // The same bytes are read as both formats: numbers in both, of similar sizes.
    let mut draw = |n: usize| -> Vec<u32> {
        let mut byte = || (rng.int(0x34, 0x44) as u32) | (rng.u32() & 1) << 7;
        (0..n).map(|_| (0..4).fold(0, |word, _| word << 8 | byte())).collect()
    };
    let (a, b) = (draw(128), draw(64));
    let mma = Mma { a: (&a, 4), b: (&b, 2), rows: 16, width: 8, k: 32 };
    let step = |format: Format| {
        let mma = &mma;
        move |r, q| mma.sum(r, q, |a, b| format.value(a.into()) * E4m3.value(b.into()))
    };
    let sums = accumulate(&[&step(E4m3), &step(E5m2)]);
    // Ada keeps 13 fraction bits of the largest of 16 products.
    let want = sums.iter().map(|(value, size)| (*value, 8.0 * 2f64.powi(-13) * size)).collect::<Vec<_>>();
    vec![launch("mma_fp8", 1, 32).input(&a).input(&b).output(within(F32, want))]
}

fn asm_mma(_: &File) -> Vec<Case> {
    use Order::{Columns, Rows};
    let mut rng = Rng::new(707);
    let (a, b) = (draw(&mut rng, F16, 256), draw(&mut rng, F16, 256));
    let wmma = within(F32, bounded(product((16, 16, 16), (&a, Rows), (&b, Columns)), 16.0));
    let pack =
        |x: Vec<u16>| x.chunks(2).map(|x| u32::from(x[0]) | u32::from(x[1]) << 16).collect::<Vec<u32>>();
    let (x, y) = (pack(rng.narrow(F16, 128, -1.0, 1.0)), pack(rng.narrow(F16, 64, -1.0, 1.0)));
    let mma = Mma { a: (&x, 2), b: (&y, 1), rows: 16, width: 16, k: 8 };
    let term = |a: u32, b: u32| F16.value(a.into()) * F16.value(b.into());
    let sums = accumulate(&[&|r, q| mma.sum(r, q, term)]);
    vec![
        launch("wmma16", 1, 32).floats(F16, &a).floats(F16, &b).output(wmma),
        launch("mma_asm", 1, 32).input(&x).input(&y).output(within(F32, bounded(sums, 8.0))),
    ]
}
