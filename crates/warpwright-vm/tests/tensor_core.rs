//! Accumulation by tensor cores: against measurements of hardware, and against the same rules written
//! with integers, one element at a time.
//!
//! `data/wgmma` has the rows of `wgmma`; `matrix/measured.rs` runs those of `mma.sync` that we measured.
//! `WARPWRIGHT_TENSOR_CORE=FOLDER` takes the published measurements from there: more of those that
//! `data/tensor-core/README.md` names, in files of the same names.

use warpwright_vm::tensor::{Accumulation, Accumulator, FloatElement, FloatProduct, Left, Size, TensorCore};

const NAN: u32 = 0x7fff_ffff;

/// A row of the measurements.
struct Row {
    a: Vec<f32>,
    b: Vec<f32>,
    c: f32,
    d: f32,
}

fn rows(file: &str) -> Vec<Row> {
    let sample = || format!("{}/tests/data/tensor-core", env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var("WARPWRIGHT_TENSOR_CORE").unwrap_or_else(|_| sample());
    let files = std::fs::read_dir(folder).expect("a folder of measurements");
    let mut paths = files.map(|found| found.expect("a file").path());
    let named = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(format!("{file}.txt")))
    };
    let path = paths.find(named).unwrap_or_else(|| panic!("there is no {file}.txt"));
    let text = std::fs::read_to_string(path).expect("the measurements can be read");
    let bits = |word: &str| {
        let radix = if word.len() == 32 { 2 } else { 16 };
        f32::from_bits(u32::from_str_radix(word, radix).expect("a bit pattern"))
    };
    let row = |line: &str| {
        let mut fields = line.split('|').map(|field| field.split_whitespace().map(bits).collect::<Vec<_>>());
        let mut field = || fields.next().expect("four fields");
        Row { a: field(), b: field(), c: field()[0], d: field()[0] }
    };
    text.lines().map(row).collect()
}

/// `row` in every column of a product of one row, the columns scaled by nothing.
fn element(core: TensorCore, element: FloatElement, accumulator: Accumulator, row: &Row) -> u32 {
    let product = FloatProduct { core, a: element, b: element, sums: accumulator };
    element_by(product, core.accumulation(element), row)
}

fn element_by(product: FloatProduct, rule: Option<Accumulation>, row: &Row) -> u32 {
    let k = row.a.len();
    let b: Vec<f32> = row.b.iter().flat_map(|&b| [b; 8]).collect();
    let mut d = [0.0; 8];
    let size = Size { m: 1, n: 8, k };
    product.product_by(rule, size, Left::dense(&row.a), &b, &[row.c; 8], &mut d);
    assert!(d.iter().all(|value| value.to_bits() == d[0].to_bits()));
    d[0].to_bits()
}

#[test]
fn measured_hardware_is_reproduced_bit_for_bit() {
    use FloatElement::*;
    use TensorCore::*;
    let files = [
        ("v100_fp16", F16, vec![V100]),
        ("a100_fp16", F16, vec![A100, Ada]),
        ("a100_bf16", BF16, vec![A100, Ada]),
        ("a100_tf32", TF32, vec![A100, Ada]),
        ("ada_e4m3", E4M3, vec![Ada]),
        ("h100_fp16", F16, vec![H100, B200]),
        ("h100_bf16", BF16, vec![H100, B200]),
        ("h100_tf32", TF32, vec![H100, B200]),
    ];
    for (file, factor, cores) in files {
        let rows = rows(file);
        assert!(rows.len() >= 20);
        let mut ideal = 0;
        for (number, row) in rows.iter().enumerate() {
            for &core in &cores {
                let found = element(core, factor, Accumulator::F32, row);
                assert_eq!(found, row.d.to_bits(), "{file}, row {number}, {core}");
            }
            ideal += usize::from(element(Exact, factor, Accumulator::F32, row) == row.d.to_bits());
        }
        assert!(ideal < rows.len(), "{file}: a correctly rounded sum is not what hardware gives");
    }
}

/// A row of `data/wgmma`: `k c d p:a:b …`.
fn warpgroup_row(line: &str, [d, a, b]: [FloatElement; 3], wide: bool) -> (Row, u32) {
    let number = |digits: &str| u32::from_str_radix(digits, 16).expect("a bit pattern");
    let sum = |digits: &str| if wide { f32::from_bits(number(digits)) } else { d.decode(number(digits)) };
    let mut fields = line.split(' ');
    let mut field = || fields.next().expect("three fields");
    let k = field().parse().expect("a number of factors");
    let mut row = Row { a: vec![0.0; k], b: vec![0.0; k], c: sum(field()), d: 0.0 };
    let bits = number(field());
    for term in fields.filter(|term| !term.is_empty()) {
        let parts: Vec<&str> = term.split(':').collect();
        let [at, left, right] = parts[..].try_into().expect("a position and two factors");
        let at: usize = at.parse().expect("a position");
        (row.a[at], row.b[at]) = (a.decode(number(left)), b.decode(number(right)));
    }
    (row, bits)
}

#[test]
fn measured_warpgroups_are_reproduced_bit_for_bit() {
    use FloatElement::*;
    let named = |name: &str| match name {
        "f16" => F16,
        "bf16" => BF16,
        "tf32" => TF32,
        "e4m3" => E4M3,
        "e5m2" => E5M2,
        _ => panic!("there is no type {name}"),
    };
    let folder = format!("{}/tests/data/wgmma", env!("CARGO_MANIFEST_DIR"));
    let mut files = 0;
    for path in std::fs::read_dir(folder).expect("a folder of measurements") {
        let path = path.expect("a file").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let types: Vec<&str> = name.split('.').collect();
        let [sums, a, b] = types[..] else { continue };
        let wide = match sums {
            "f32" => true,
            "f16" => false,
            _ => continue,
        };
        files += 1;
        let (a, b) = (named(a), named(b));
        let product = FloatProduct {
            core: TensorCore::H100,
            a,
            b,
            sums: if wide { Accumulator::F32 } else { Accumulator::F16 },
        };
        let rule = product.core.warpgroup_accumulation(a);
        let (mut rows, mut by_mma) = (0, 0);
        let text = std::fs::read_to_string(&path).expect("the measurements can be read");
        let mut family = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("# ") {
                family = name;
                continue;
            }
            let (row, bits) = warpgroup_row(line, [F16, a, b], wide);
            let expected = if wide { f32::from_bits(bits) } else { F16.decode(bits) };
            let found = element_by(product, rule, &row);
            assert_eq!(found, expected.to_bits(), "{name}, {family}: {line}");
            rows += 1;
            let other = element_by(product, product.core.accumulation(a), &row);
            by_mma += usize::from(other == expected.to_bits());
        }
        assert!(rows >= 180, "{name}");
        assert_eq!(
            by_mma == rows,
            !matches!(a, E4M3 | E5M2),
            "{name}: fp8 is not added as `mma.sync` adds it"
        );
    }
    assert_eq!(files, 12);
}

/// The same rule, with integers.
mod reference {
    use super::*;

    /// Sign, exponent and significand with 23 fraction bits, of a finite number.
    fn parts(value: f32, least: i32) -> Option<(bool, i32, i128)> {
        if value == 0.0 {
            return None;
        }
        let bits = value.to_bits();
        let field = (bits >> 23 & 0xff) as i32;
        let fraction = i128::from(bits & 0x7f_ffff) | i128::from(field != 0) << 23;
        let exponent = field.max(1) - 127;
        // A subnormal of the narrower type is a normal f32.
        let shift = (least - exponent).max(0);
        assert_eq!(fraction & ((1 << shift) - 1), 0);
        Some((value.is_sign_negative(), exponent.max(least), fraction >> shift))
    }

    pub(super) fn element(product: FloatProduct, row: &Row) -> f32 {
        let rule = product.core.accumulation(product.a).expect("no ideal core");
        if !rule.halved {
            return steps(product, rule, &row.a, &row.b, row.c);
        }
        // Pairs of factors go to one of two instructions in turn.
        let part = |values: &[f32], first: usize| -> Vec<f32> {
            values.chunks(2).skip(first).step_by(2).flatten().copied().collect()
        };
        let mut sum: f32 = 0.0;
        for first in [0, 1] {
            if sum.is_finite() {
                sum = steps(product, rule, &part(&row.a, first), &part(&row.b, first), sum);
            }
        }
        product.sums.round(sum + row.c)
    }

    fn steps(product: FloatProduct, rule: Accumulation, a: &[f32], b: &[f32], mut running: f32) -> f32 {
        let k = a.len();
        for start in (0..k).step_by(rule.block) {
            let end = k.min(start + rule.block);
            let half = product.sums == Accumulator::F16;
            let from_half = half && start.is_multiple_of(rule.step);
            let to_half = half && (end.is_multiple_of(rule.step) || end == k);
            running = block(rule, [&a[start..end], &b[start..end]], product, running, [from_half, to_half]);
            if !running.is_finite() {
                break;
            }
        }
        running
    }

    fn block(
        rule: Accumulation,
        [a, b]: [&[f32]; 2],
        product: FloatProduct,
        running: f32,
        [from_half, to_half]: [bool; 2],
    ) -> f32 {
        // Sign, exponent, significand with 46 fraction bits.
        let mut terms = Vec::new();
        for (&a, &b) in a.iter().zip(b) {
            let least = |element| rule.least_exponent(element);
            let (a, b) = (parts(a, least(product.a)), parts(b, least(product.b)));
            if let (Some((s, e, f)), Some((s2, e2, f2))) = (a, b) {
                terms.push((s != s2, e + e2, f * f2));
            }
        }
        let least = if from_half { -14 } else { -126 };
        terms.extend(parts(running, least).map(|(s, e, f)| (s, e, f << 23)));
        let Some(largest) = terms.iter().map(|term| term.1).max() else { return 0.0 };
        let kept = 23 + rule.extra_bits;
        let sum: i128 = terms
            .iter()
            .map(|&(negative, exponent, fraction)| {
                let aligned = fraction.checked_shr((largest - exponent + 46 - kept) as u32).unwrap_or(0);
                if negative { -aligned } else { aligned }
            })
            .sum();
        if to_half {
            return nearest_half(sum, largest - kept);
        }
        let bits = 24 + rule.extra_bits.min(0);
        let width = 128 - sum.unsigned_abs().leading_zeros() as i32;
        // The last bit of the result: of the significant ones, and none below those of f32.
        let unit = largest - kept;
        let cut = (width - bits).max(-149 - unit).max(0);
        let magnitude = sum.unsigned_abs().checked_shr(cut as u32).unwrap_or(0);
        let scaled = magnitude as f64 * 2f64.powi(unit + cut);
        let value = scaled as f32;
        assert!(f64::from(value) == scaled || value.is_infinite());
        if sum < 0 && value != 0.0 { -value } else { value }
    }

    /// An integer in units of a power of two as the nearest `f16`, by comparing it with what lies between two of them.
    fn nearest_half(sum: i128, unit: i32) -> f32 {
        let magnitude = sum.unsigned_abs() as f64 * 2f64.powi(unit);
        let value = |code: u32| f64::from(FloatElement::F16.decode(code));
        let (mut low, mut above) = (0, 0x7c00);
        while above - low > 1 {
            let between = (low + above) / 2;
            if value(between) <= magnitude { low = between } else { above = between }
        }
        let high = if above == 0x7c00 { 65536.0 } else { value(above) };
        let middle = (value(low) + high) / 2.0;
        let up = magnitude > middle || (magnitude == middle && low % 2 == 1);
        let nearest = FloatElement::F16.decode(if up { above } else { low });
        if sum < 0 && nearest != 0.0 { -nearest } else { nearest }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A finite factor: any at all, or one near one, or zero.
    fn factor(&mut self, element: FloatElement) -> f32 {
        let (bits, shift) = match element {
            FloatElement::F16 | FloatElement::BF16 => (16, 0),
            FloatElement::TF32 => (19, 13),
            FloatElement::E4M3 | FloatElement::E5M2 => (8, 0),
            FloatElement::E3M2 | FloatElement::E2M3 => (6, 0),
            FloatElement::E2M1 => (4, 0),
        };
        loop {
            let value = element.decode(((self.next() & ((1 << bits) - 1)) << shift) as u32);
            match self.below(8) {
                0 => return 0.0,
                1 if value.is_finite() => return value,
                _ if value.is_finite() && (0.001..1000.0).contains(&value.abs()) => return value,
                _ => {}
            }
        }
    }
}

const ELEMENTS: [FloatElement; 5] =
    [FloatElement::F16, FloatElement::BF16, FloatElement::TF32, FloatElement::E4M3, FloatElement::E5M2];

#[test]
fn whole_matrices_agree_with_the_rule_for_one_element() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for round in 0..300 {
        for element in ELEMENTS {
            let core = TensorCore::ALL[random.below(5) as usize];
            let other = match element {
                FloatElement::E4M3 if round % 2 == 0 => FloatElement::E5M2,
                _ => element,
            };
            let accumulator = if round % 3 == 0 { Accumulator::F16 } else { Accumulator::F32 };
            let k = [8, 16, 32, 64][random.below(4) as usize];
            let size = Size { m: 4, n: [8, 16][round % 2], k };
            let sparse = round % 5 == 4;
            let kept = if sparse { k / 2 } else { k };
            let a: Vec<f32> = (0..size.m * kept).map(|_| random.factor(element)).collect();
            let b: Vec<f32> = (0..k * size.n).map(|_| random.factor(other)).collect();
            let columns: Vec<u8> =
                (0..size.m * kept).map(|at| (2 * (at % kept)) as u8 + random.below(2) as u8).collect();
            let sums: Vec<f32> = (0..size.m * size.n)
                .map(|_| match (accumulator, random.below(4)) {
                    (_, 0) => 0.0,
                    (Accumulator::F16, _) => random.factor(FloatElement::F16),
                    (_, 1) => f32::from_bits((random.next() & 0xff7f_ffff) as u32 & !0x0080_0000),
                    _ => random.below(1 << 24) as f32 / 65536.0 - 128.0,
                })
                .collect();
            let mut d = vec![0.0; size.m * size.n];
            let left = Left { values: &a, columns: sparse.then_some(&columns[..]) };
            let rule = FloatProduct { core, a: element, b: other, sums: accumulator };
            rule.product(size, left, &b, &sums, &mut d);
            for (at, found) in d.iter().enumerate() {
                let (i, j) = (at / size.n, at % size.n);
                let stands = |p: usize| if sparse { usize::from(columns[i * kept + p]) } else { p };
                let row = Row {
                    a: a[i * kept..][..kept].to_vec(),
                    b: (0..kept).map(|p| b[stands(p) * size.n + j]).collect(),
                    c: sums[at],
                    d: 0.0,
                };
                let expected = reference::element(rule, &row);
                assert!(
                    found.to_bits() == expected.to_bits(),
                    "{rule:?}, k {k}, ({i}, {j}): {found:e} is not {expected:e}"
                );
            }
        }
    }
}

#[test]
fn the_ideal_core_rounds_once() {
    use Accumulator::*;
    let exact = |a: &[f32], b: &[f32], c: f32, accumulator| {
        let row = Row { a: a.to_vec(), b: b.to_vec(), c, d: 0.0 };
        f32::from_bits(element(TensorCore::Exact, FloatElement::BF16, accumulator, &row))
    };
    let half = 2f32.powi(-12);
    // A tie, decided by a term far below it.
    assert_eq!(exact(&[half, 0.0], &[half, 0.0], 1.0, F32), 1.0);
    assert_eq!(exact(&[half, 1e-30], &[half, 1e-30], 1.0, F32), 1.0f32.next_up());
    assert_eq!(exact(&[half, -1e-30], &[half, 1e-30], 1.0f32.next_up(), F32), 1.0f32.next_up());
    // Nothing is lost on the way.
    assert_eq!(exact(&[1e30, -1e30, 1e-30], &[1.0, 1.0, 1.0], 0.0, F32), exact(&[1e-30], &[1.0], 0.0, F32));
    // One rounding to f16, not one to f32 before: 2049 is a tie, 2049 + tiny is not.
    assert_eq!(exact(&[1.0, 1e-30], &[1.0, 1.0], 2048.0, F16), 2050.0);
    assert_eq!(exact(&[1.0], &[1.0], 2048.0, F16), 2048.0);
}

#[test]
fn infinities_and_nans_go_as_in_ieee_754() {
    let inf = f32::INFINITY;
    for &core in TensorCore::ALL {
        for accumulator in [Accumulator::F32, Accumulator::F16] {
            let found = |a: [f32; 2], b: [f32; 2], c: f32| {
                let row = Row { a: a.to_vec(), b: b.to_vec(), c, d: 0.0 };
                element(core, FloatElement::F16, accumulator, &row)
            };
            assert_eq!(found([inf, 1.0], [2.0, 3.0], 4.0), inf.to_bits(), "{core}");
            assert_eq!(found([inf, 1.0], [-2.0, 3.0], 4.0), (-inf).to_bits(), "{core}");
            assert_eq!(found([1.0, 1.0], [2.0, 3.0], -inf), (-inf).to_bits(), "{core}");
            assert_eq!(found([inf, 1.0], [2.0, 3.0], -inf), NAN, "{core}");
            assert_eq!(found([inf, inf], [2.0, -3.0], 0.0), NAN, "{core}");
            assert_eq!(found([inf, 1.0], [0.0, 3.0], 0.0), NAN, "{core}");
            assert_eq!(found([f32::from_bits(0xff80_0001), 1.0], [0.0, 3.0], 0.0), NAN, "{core}");
            assert_eq!(found([1.0, 1.0], [0.0, 3.0], f32::NAN), NAN, "{core}");
            // The other columns and rows are not touched.
            let mut d = [0.0; 16];
            let mut b = [1.0; 16];
            b[3] = f32::NAN;
            let a = [1.0, 2.0, inf, 3.0];
            let size = Size { m: 2, n: 8, k: 2 };
            let rule = FloatProduct { core, a: FloatElement::F16, b: FloatElement::F16, sums: accumulator };
            rule.product(size, Left::dense(&a), &b, &[0.5; 16], &mut d);
            for (at, found) in d.iter().enumerate() {
                let expected = if at % 8 == 3 { NAN } else { [3.5, inf][at / 8].to_bits() };
                assert_eq!(found.to_bits(), expected, "{core}, element {at}");
            }
        }
    }
}

#[test]
fn a_sum_past_the_largest_number_is_infinite_and_stays_so() {
    let row = Row { a: vec![1e38; 32], b: vec![8.0; 32], c: -1.0, d: 0.0 };
    let values = [element(TensorCore::A100, FloatElement::BF16, Accumulator::F32, &row)];
    assert_eq!(values, [f32::INFINITY.to_bits()]);
    let row = Row { a: vec![-255.0; 16], b: vec![255.0; 16], c: 0.0, d: 0.0 };
    let negative = f32::NEG_INFINITY.to_bits();
    assert_eq!(element(TensorCore::H100, FloatElement::F16, Accumulator::F16, &row), negative);
    assert_eq!(element(TensorCore::Exact, FloatElement::F16, Accumulator::F16, &row), negative);
}
