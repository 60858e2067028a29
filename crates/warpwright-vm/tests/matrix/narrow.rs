//! `mma` and `mma.sp` of factors of eight bits and fewer, with and without block scales, against sums of integers that
//! are rounded once.

use crate::mma::{a_place, b_place, c_place};
use crate::run::{Numbers, Ty, kernel, try_warp};
use crate::sparse::{Case, compress};
use warpwright_vm::{Device, DeviceConfig, Report, TrapKind};

/// A format of factors or scales: bits of exponent and fraction.
#[derive(Clone, Copy)]
struct Format {
    name: &'static str,
    exponent: u32,
    fraction: u32,
}

const FORMATS: [Format; 5] = [
    Format { name: "e4m3", exponent: 4, fraction: 3 },
    Format { name: "e5m2", exponent: 5, fraction: 2 },
    Format { name: "e3m2", exponent: 3, fraction: 2 },
    Format { name: "e2m3", exponent: 2, fraction: 3 },
    Format { name: "e2m1", exponent: 2, fraction: 1 },
];
const E2M1: Format = FORMATS[4];

impl Format {
    fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// The exponent of the unit that all values are multiples of.
    fn unit(self) -> i32 {
        2 - (1 << (self.exponent - 1)) - self.fraction as i32
    }

    /// The value of a code, in units.
    fn value(self, code: i64) -> i128 {
        let magnitude = code & ((1 << (self.bits() - 1)) - 1);
        let (exponent, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        let value = match exponent {
            0 => i128::from(fraction),
            _ => i128::from(fraction + (1 << self.fraction)) << (exponent - 1),
        };
        if code >> (self.bits() - 1) & 1 == 1 { -value } else { value }
    }

    /// A code of a finite number; of a whole one of up to three, if sums are small.
    fn code(self, numbers: &mut Numbers, whole: bool) -> i64 {
        loop {
            let code = numbers.next(0, (1 << self.bits()) - 1);
            let finite = match self.name {
                "e4m3" => code & 0x7f != 0x7f,
                "e5m2" => code & 0x7c != 0x7c,
                _ => true,
            };
            let small = (-3..=3).any(|number: i128| number << -self.unit() == self.value(code));
            if finite && (!whole || small) {
                return code;
            }
        }
    }

    /// The code in its container of eight bits, with anything around it.
    fn contained(self, numbers: &mut Numbers, code: i64) -> u32 {
        let shift = if self.bits() == 4 { 2 } else { 0 };
        let mask = ((1 << self.bits()) - 1) << shift;
        (code << shift | numbers.next(0, 0xff) & !mask) as u32
    }
}

/// A kind, and its scales: how many, and of which type.
#[derive(Clone, Copy)]
struct Kind {
    text: &'static str,
    scales: Option<(usize, &'static str)>,
    /// Two elements in a byte.
    pairs: bool,
}

const F8F6F4: Kind = Kind { text: ".kind::f8f6f4", scales: None, pairs: false };
const BYTES: [Kind; 2] = [
    Kind { text: ".kind::mxf8f6f4.block_scale", scales: Some((1, "ue8m0")), pairs: false },
    Kind { text: ".kind::mxf8f6f4.block_scale.scale_vec::1X", scales: Some((1, "ue8m0")), pairs: false },
];
const PAIRS: [Kind; 5] = [
    Kind { text: ".kind::mxf4.block_scale", scales: Some((2, "ue8m0")), pairs: true },
    Kind { text: ".kind::mxf4.block_scale.scale_vec::2X", scales: Some((2, "ue8m0")), pairs: true },
    Kind { text: ".kind::mxf4nvf4.block_scale.scale_vec::2X", scales: Some((2, "ue8m0")), pairs: true },
    Kind { text: ".kind::mxf4nvf4.block_scale.scale_vec::4X", scales: Some((4, "ue8m0")), pairs: true },
    Kind { text: ".kind::mxf4nvf4.block_scale.scale_vec::4X", scales: Some((4, "ue4m3")), pairs: true },
];

/// The unit of a scale's type, and the value of a code in it; of `ue8m0` only those near one are used.
fn scale(ty: &str, code: i64) -> (i32, i128) {
    match ty {
        "ue8m0" => (-6, 1 << (code - 121)),
        _ => (FORMATS[0].unit(), FORMATS[0].value(code)),
    }
}

/// Scales of `lines` rows or columns, and the register that holds them where the selector says, with NaNs elsewhere.
fn scales(
    numbers: &mut Numbers,
    (blocks, ty): (usize, &str),
    lines: usize,
    (byte, thread): (usize, usize),
) -> (Vec<i64>, Vec<u32>) {
    let (low, high) = if ty == "ue8m0" { (121, 133) } else { (0, 0x7e) };
    let codes = numbers.fill(lines * blocks, (low, high));
    let mut words = vec![u32::MAX; 32];
    for (at, code) in codes.iter().enumerate() {
        let (line, block) = (at / blocks, at % blocks);
        // Each group of four lanes has one or two rows, or a column.
        let lane = line % 8 * 4 + if lines == 16 { 2 * thread + line / 8 } else { thread };
        let shift = 8 * (byte + block);
        words[lane] = words[lane] & !(0xff << shift) | (*code as u32) << shift;
    }
    (codes, words)
}

fn launch(rows: &[u32], instruction: &str, [a, b, c]: [usize; 3], half: bool) -> (Vec<u32>, Report) {
    let list = |letter: &str, count: usize, from: usize| -> (String, String) {
        let names: Vec<String> = (0..count).map(|i| format!("%{letter}{i}")).collect();
        let loads = (0..count).map(|i| {
            let class = if letter == "c" && !half { "f32" } else { "b32" };
            format!(
                ".reg .{class} %{letter}{i};\nld.global.{class} %{letter}{i}, [%rd0+{}];\n",
                128 * (from + i)
            )
        });
        (format!("{{{}}}", names.join(", ")), loads.collect())
    };
    let parts = [list("a", a, 0), list("b", b, a), list("c", c, a + b), list("x", 3, a + b + c)];
    let class = if half { "b32" } else { "f32" };
    let mut body = format!(".reg .{class} %d<{c}>; .reg .b16 %h<4>;\n");
    for (_, loads) in &parts {
        body += loads;
    }
    let d: Vec<String> = (0..c).map(|i| format!("%d{i}")).collect();
    let (name, more) = instruction.split_once(' ').unwrap_or((instruction, ""));
    body += &format!("{name} {{{}}}, {}, {}, {}{more};\n", d.join(", "), parts[0].0, parts[1].0, parts[2].0);
    for (i, d) in d.iter().enumerate() {
        body += &format!("st.global.{class} [%rd1+{}], {d};\n", 128 * i);
    }
    let mut config = DeviceConfig::default();
    (config.arch, config.workers) = ("sm_120a".parse().expect("a target"), 1);
    let device = Device::new(config).expect("a device");
    try_warp(&device, &kernel("9.1", "sm_120a", 2, 4, &body), &[rows.to_vec()], c * 32)
}

/// Runs a product of random factors, and compares.
fn compare(numbers: &mut Numbers, kind: Kind, [left, right]: [Format; 2], sparse: bool, half: bool) {
    let k = if kind.pairs { 64 } else { 32 } << u32::from(sparse);
    let mut a: Vec<i64> = (0..16 * k).map(|_| left.code(numbers, half)).collect();
    let b: Vec<i64> = (0..k * 8).map(|_| right.code(numbers, half)).collect();
    let c = numbers.fill(128, if half { (-100, 100) } else { (-1 << 20, 1 << 20) });
    let stored = if kind.pairs { Ty::S4 } else { Ty::S8 };
    let (kept, metadata) = match sparse {
        true => {
            let case = Case { k, types: [Ty::F32, stored, stored, Ty::F32], selector: 0, ordered: true };
            compress(&case, numbers, &mut a)
        }
        false => (a.clone(), vec![0; 32]),
    };
    let (packed, width) = if kind.pairs { (8, 4) } else { (4, 8) };
    let mut fill = |format: Format, held: usize, from: &[i64], place: &dyn Fn(usize, usize) -> usize| {
        let mut words = vec![0; held / packed * 32];
        for lane in 0..32 {
            for i in 0..held {
                let code = from[place(lane, i)];
                let bits = if kind.pairs { code as u32 } else { format.contained(numbers, code) };
                words[i / packed * 32 + lane] |= bits << (i % packed * width);
            }
        }
        words
    };
    let columns = kept.len() / 16;
    let at = |columns: usize, (row, column): (usize, usize)| row * columns + column;
    let mut rows = fill(left, columns / 2, &kept, &|lane, i| at(columns, a_place(16, packed, lane, i)));
    rows.extend(fill(right, k / 4, &b, &|lane, i| at(8, b_place(packed, lane, i))));
    let counts = [columns / 2 / packed, k / 4 / packed, if half { 2 } else { 4 }];
    let mut words = vec![0; counts[2] * 32];
    for lane in 0..32 {
        for i in 0..4 {
            let number = c[at(8, c_place(lane, i))];
            match half {
                true => words[i / 2 * 32 + lane] |= (Ty::F16.encode(number) as u32) << (i % 2 * 16),
                false => words[i * 32 + lane] = (number as f32).to_bits(),
            }
        }
    }
    rows.extend(words);
    rows.extend(metadata);

    let sums = if half { "f16" } else { "f32" };
    let (name, mut more) = match sparse {
        true => ("mma.sp::ordered_metadata", ", %x0, 0".to_owned()),
        false => ("mma", String::new()),
    };
    let mut name = format!(
        "{name}.sync.aligned.m16n8k{k}.row.col{}.{sums}.{}.{}.{sums}",
        kind.text, left.name, right.name
    );
    let (mut of_rows, mut of_columns) = (vec![], vec![]);
    if let Some((blocks, ty)) = kind.scales {
        let mut selector = |threads: i64| {
            (numbers.next(0, 4 / blocks as i64 - 1) as usize * blocks, numbers.next(0, threads - 1) as usize)
        };
        let (a_selector, b_selector) = (selector(2), selector(4));
        let words;
        (of_rows, words) = scales(numbers, (blocks, ty), 16, a_selector);
        rows.extend(words);
        let words;
        (of_columns, words) = scales(numbers, (blocks, ty), 8, b_selector);
        rows.extend(words);
        name += &format!(".{ty}");
        let ((a_byte, a_thread), (b_byte, b_thread)) = (a_selector, b_selector);
        more += &format!(", {{%x1}}, {{{a_byte}, {a_thread}}}, %x2, {{{b_byte}, {b_thread}}}");
    } else {
        rows.resize(rows.len() + 64, 0);
    }
    let instruction = format!("{name} {more}");
    let (out, report) = launch(&rows, &instruction, counts, half);
    assert!(report.is_clean(), "{instruction}: {report}");

    let (blocks, ty) = kind.scales.unwrap_or((1, ""));
    let unit = left.unit() + right.unit() + if kind.scales.is_some() { 2 * scale(ty, 121).0 } else { 0 };
    for lane in 0..32 {
        for i in 0..4 {
            let (row, column) = c_place(lane, i);
            let mut sum = i128::from(c[row * 8 + column]) << -unit;
            for p in 0..k {
                let block = p * blocks / k;
                let scaled = match kind.scales {
                    Some(_) => {
                        scale(ty, of_rows[row * blocks + block]).1
                            * scale(ty, of_columns[column * blocks + block]).1
                    }
                    None => 1,
                };
                sum += left.value(a[row * k + p]) * right.value(b[p * 8 + column]) * scaled;
            }
            let found = match half {
                true => Ty::F16.decode(u64::from(out[i / 2 * 32 + lane]) >> (i % 2 * 16)) as f32,
                false => f32::from_bits(out[i * 32 + lane]),
            };
            // The conversion rounds to nearest even.
            assert_eq!(found, sum as f32 * 2f32.powi(unit), "{instruction}: row {row}, column {column}");
        }
    }
}

#[test]
fn all_pairs_of_formats_are_multiplied_and_rounded_once() {
    let mut numbers = Numbers::new(41);
    for left in FORMATS {
        for right in FORMATS {
            for sparse in [false, true] {
                for half in [false, true] {
                    compare(&mut numbers, F8F6F4, [left, right], sparse, half);
                }
            }
        }
    }
}

#[test]
fn scales_are_found_where_the_selectors_say() {
    let mut numbers = Numbers::new(42);
    for sparse in [false, true] {
        for left in FORMATS {
            for right in FORMATS {
                for kind in BYTES {
                    compare(&mut numbers, kind, [left, right], sparse, false);
                }
            }
        }
        for kind in PAIRS {
            for _ in 0..12 {
                compare(&mut numbers, kind, [E2M1, E2M1], sparse, false);
            }
        }
    }
}

/// One product of ones, with scales of one and with these selectors in registers: bytes and threads.
fn selected(kind: Kind, selectors: [u32; 4]) -> (Vec<u32>, Report) {
    let (_, ty) = kind.scales.expect("scales");
    let one = if ty == "ue8m0" { 0x7f } else { 0x38 };
    let mut rows = vec![0x2222_2222; 6 * 32];
    rows.extend([0; 5 * 32]);
    rows.extend([0x0101_0101 * one; 64]);
    let moves: String = selectors.iter().enumerate().map(|(i, n)| format!("mov.b16 %h{i},{n};")).collect();
    // Without spaces before the first operand, which `launch` adds.
    let name = format!("{moves}mma.sync.aligned.m16n8k64.row.col{}.f32.e2m1.e2m1.f32.{ty}", kind.text);
    let instruction = format!("{} , %x1, {{%h0, %h1}}, %x2, {{%h2, %h3}}", name.replace(' ', "\t"));
    launch(&rows, &instruction, [4, 2, 4], false)
}

#[test]
fn a_selector_in_registers_that_names_no_scales_is_a_trap() {
    for (kind, selectors, fits) in [
        (PAIRS[0], [2, 1, 0, 3], true),
        (PAIRS[0], [1, 0, 0, 0], false),
        (PAIRS[0], [0, 2, 0, 0], false),
        (PAIRS[0], [0, 0, 4, 0], false),
        (PAIRS[0], [0, 0, 0, 4], false),
        (PAIRS[4], [0, 1, 0, 3], true),
        (PAIRS[4], [0, 0, 2, 0], false),
    ] {
        let (out, report) = selected(kind, selectors);
        match report.trap {
            None => assert!(
                fits && report.is_clean() && out.iter().all(|&d| d == 64f32.to_bits()),
                "{selectors:?}"
            ),
            Some(trap) => assert!(!fits && trap.kind == TrapKind::BadOperand, "{selectors:?}: {trap:?}"),
        }
    }
}
