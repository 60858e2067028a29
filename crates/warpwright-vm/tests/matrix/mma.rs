//! `mma.sync`: fragments are filled by the formulas of the ISA, written as it writes them.

use crate::run::{Numbers, Ty, device, kernel, product, warp};
use warpwright_vm::tensor::TensorCore;

/// Registers of all lanes, register by register.
pub(crate) struct Fragment {
    pub(crate) ty: Ty,
    pub(crate) words: Vec<u64>,
    /// Bits of a register.
    pub(crate) width: usize,
}

impl Fragment {
    /// A fragment of `held` elements a lane, each of them where `place` says: row-major in `from`.
    pub(crate) fn fill(ty: Ty, held: usize, from: &[i64], place: impl Fn(usize, usize) -> usize) -> Fragment {
        Self::of_bits(ty, held, |lane, index| ty.encode(from[place(lane, index)]))
    }

    /// A fragment whose elements have these bits.
    pub(crate) fn of_bits(ty: Ty, held: usize, bits: impl Fn(usize, usize) -> u64) -> Fragment {
        let width = ty.bits().max(32);
        let packed = width / ty.bits();
        let mut words = vec![0; held / packed * 32];
        for lane in 0..32 {
            for index in 0..held {
                words[index / packed * 32 + lane] |= bits(lane, index) << (index % packed * ty.bits());
            }
        }
        Fragment { ty, words, width }
    }

    pub(crate) fn registers(&self) -> usize {
        self.words.len() / 32
    }

    /// As words of memory.
    pub(crate) fn data(&self) -> Vec<u32> {
        match self.width {
            64 => self.words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]).collect(),
            _ => self.words.iter().map(|&word| word as u32).collect(),
        }
    }
}

/// The matrix that results, from the words of memory.
pub(crate) fn results(
    ty: Ty,
    held: usize,
    size: usize,
    data: &[u32],
    place: impl Fn(usize, usize) -> usize,
) -> Vec<i64> {
    let mut out = vec![i64::MIN; size];
    for lane in 0..32 {
        for index in 0..held {
            out[place(lane, index)] = ty.decode(element(ty, data, lane, index));
        }
    }
    out
}

/// Bits of an element of a result, from the words of memory; above them, its neighbours.
pub(crate) fn element(ty: Ty, data: &[u32], lane: usize, index: usize) -> u64 {
    let packed = 32 / ty.bits().min(32);
    let at = index / packed * 32 + lane;
    match ty {
        Ty::F64 => u64::from(data[2 * at]) | u64::from(data[2 * at + 1]) << 32,
        _ => u64::from(data[at]) >> (index % packed * ty.bits()),
    }
}

/// One `mma` on fragments: loads them, executes `name` with `more` operands, stores the result. `%e` is a
/// word from the fourth buffer, where there are more operands.
pub(crate) fn text(
    version: &str,
    target: &str,
    name: &str,
    parts: [&Fragment; 3],
    d: (Ty, usize),
    more: &str,
) -> String {
    let mut body = String::new();
    let class = |ty: Ty, float: bool| match (ty, float) {
        (Ty::F64, _) => "f64",
        (Ty::F32, true) => "f32",
        _ => "b32",
    };
    let mut list = Vec::new();
    for (index, (part, letter)) in parts.iter().zip(["a", "b", "c"]).enumerate() {
        let class = class(part.ty, true);
        let names: Vec<String> = (0..part.registers()).map(|i| format!("%{letter}{i}")).collect();
        body += &format!(".reg .{class} %{letter}<{}>;\n", part.registers());
        for (i, name) in names.iter().enumerate() {
            body += &format!("ld.global.{class} {name}, [%rd{index}+{}];\n", i * 4 * part.width);
        }
        list.push(format!("{{{}}}", names.join(", ")));
    }
    let (ty, count) = d;
    let (class, width) = (class(ty, true), ty.bits().max(32));
    let names: Vec<String> = (0..count).map(|i| format!("%d{i}")).collect();
    body += &format!(".reg .{class} %d<{count}>;\n");
    if !more.is_empty() {
        body += ".reg .b32 %e;\nld.global.b32 %e, [%rd3];\n";
    }
    body += &format!("{name} {{{}}}, {}, {}, {}{more};\n", names.join(", "), list[0], list[1], list[2]);
    let out = if more.is_empty() { 3 } else { 4 };
    for (i, name) in names.iter().enumerate() {
        body += &format!("st.global.{class} [%rd{out}+{}], {name};\n", i * 4 * width);
    }
    kernel(version, target, out + 1, width / 8, &body)
}

/// Row and column of element `i` of the left factor. `e` elements are in a register.
pub(crate) fn a_place(m: usize, e: usize, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    if m == 8 {
        return (group, thread * e + i % e);
    }
    let low =
        i < e || (2 * e <= i && i < 3 * e) || (4 * e..5 * e).contains(&i) || (6 * e..7 * e).contains(&i);
    (if low { group } else { group + 8 }, thread * e + i % e + 4 * e * (i / (2 * e)))
}

/// Row and column of element `i` of the right factor.
pub(crate) fn b_place(e: usize, lane: usize, i: usize) -> (usize, usize) {
    (lane % 4 * e + i % e + i / e * 4 * e, lane >> 2)
}

/// Row and column of element `i` of the sums.
pub(crate) fn c_place(lane: usize, i: usize) -> (usize, usize) {
    let row = if i < 2 { lane >> 2 } else { (lane >> 2) + 8 };
    (row, lane % 4 * 2 + (i & 1))
}

/// The number of the product of `m8n8k4` that a lane takes part in. The places below are within it.
pub(crate) fn quad(lane: usize) -> usize {
    lane % 16 / 4
}

pub(crate) fn quad_a_place(row_major: bool, lane: usize, i: usize) -> (usize, usize) {
    let high = if lane < 16 { 0 } else { 4 };
    if row_major { (lane % 4 + high, i) } else { (i % 4 + high, lane % 4) }
}

pub(crate) fn quad_b_place(row_major: bool, lane: usize, i: usize) -> (usize, usize) {
    let high = if lane < 16 { 0 } else { 4 };
    if row_major { (lane % 4, i + high) } else { (i, lane % 4 + high) }
}

pub(crate) fn quad_c_place(ty: Ty, lane: usize, i: usize) -> (usize, usize) {
    let high = if lane < 16 { 0 } else { 4 };
    match ty {
        Ty::F16 => (lane % 4 + high, i),
        _ => ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)),
    }
}

struct Case {
    shape: (usize, usize, usize),
    /// Of `d`, `a`, `b` and `c`.
    types: [Ty; 4],
    version: &'static str,
    target: &'static str,
}

fn cases() -> Vec<Case> {
    use Ty::*;
    let mut cases = Vec::new();
    let mut add = |version, target, shapes: &[(usize, usize, usize)], types: &[[Ty; 4]]| {
        for &shape in shapes {
            cases.extend(types.iter().map(|&types| Case { shape, types, version, target }));
        }
    };
    let half = [[F32, F16, F16, F32], [F16, F16, F16, F16]];
    add("7.0", "sm_80", &[(16, 8, 8), (16, 8, 16)], &half);
    add("7.0", "sm_80", &[(16, 8, 8), (16, 8, 16)], &[[F32, BF16, BF16, F32]]);
    add("7.0", "sm_80", &[(16, 8, 4), (16, 8, 8)], &[[F32, TF32, TF32, F32]]);
    add("7.0", "sm_80", &[(8, 8, 4)], &[[F64; 4]]);
    add("7.8", "sm_90", &[(16, 8, 4), (16, 8, 8), (16, 8, 16)], &[[F64; 4]]);
    let bytes = [[S32, S8, S8, S32], [S32, S8, U8, S32], [S32, U8, S8, S32], [S32, U8, U8, S32]];
    add("7.0", "sm_80", &[(8, 8, 16), (16, 8, 16), (16, 8, 32)], &bytes);
    let nibbles = [[S32, S4, S4, S32], [S32, S4, U4, S32], [S32, U4, S4, S32], [S32, U4, U4, S32]];
    add("7.0", "sm_80", &[(8, 8, 32), (16, 8, 32), (16, 8, 64)], &nibbles);
    let fp8 =
        [[F32, E4M3, E4M3, F32], [F32, E4M3, E5M2, F32], [F32, E5M2, E4M3, F32], [F32, E5M2, E5M2, F32]];
    add("8.4", "sm_89", &[(16, 8, 32)], &fp8);
    add("8.7", "sm_89", &[(16, 8, 16), (16, 8, 32)], &[[F32, E4M3, E5M2, F32], [F16, E5M2, E4M3, F16]]);
    cases
}

fn name(case: &Case, suffix: &str) -> String {
    let (m, n, k) = case.shape;
    let types: Vec<String> = case.types.iter().map(|ty| ty.name()).collect();
    format!("mma.sync.aligned.m{m}n{n}k{k}.row.col{suffix}.{}", types.join("."))
}

#[test]
fn every_shape_and_type_multiplies_as_integers_do() {
    let mut numbers = Numbers::new(1);
    for case in cases() {
        let (m, n, k) = case.shape;
        let [d_ty, a_ty, b_ty, c_ty] = case.types;
        let half = d_ty == Ty::F16;
        let a = numbers.fill(m * k, a_ty.range(half));
        let b = numbers.fill(k * n, b_ty.range(half));
        let c = numbers.fill(m * n, if half { (-100, 100) } else { (-1000, 1000) });
        let packed = |ty: Ty| 32 / ty.bits().min(32);
        let (ea, eb) = (packed(a_ty), packed(b_ty));
        let at = |columns: usize, (row, column): (usize, usize)| row * columns + column;
        let parts = [
            Fragment::fill(a_ty, m * k / 32, &a, |lane, i| at(k, a_place(m, ea, lane, i))),
            Fragment::fill(b_ty, k * n / 32, &b, |lane, i| at(n, b_place(eb, lane, i))),
            Fragment::fill(c_ty, m * n / 32, &c, |lane, i| at(n, c_place(lane, i))),
        ];
        let registers = m * n / 32 / packed(d_ty);
        let text = text(case.version, case.target, &name(&case, ""), parts.each_ref(), (d_ty, registers), "");
        let sm = case.target[3..].parse().expect("a number");
        for core in [None, Some(TensorCore::V100), Some(TensorCore::Exact)] {
            let inputs: Vec<Vec<u32>> = parts.iter().map(Fragment::data).collect();
            let len = registers * d_ty.bits().max(32);
            let out = warp(&device(sm, core), &text, &inputs, len);
            let found = results(d_ty, m * n / 32, m * n, &out, |lane, i| at(n, c_place(lane, i)));
            assert_eq!(found, product(case.shape, &a, &b, &c), "{}", name(&case, ""));
        }
    }
}

#[test]
fn four_products_at_once_in_every_layout() {
    let mut numbers = Numbers::new(2);
    for (a_rows, b_rows) in [(false, false), (false, true), (true, false), (true, true)] {
        for [d_ty, c_ty] in [[Ty::F16, Ty::F16], [Ty::F32, Ty::F32], [Ty::F32, Ty::F16]] {
            let a: Vec<_> = (0..4).flat_map(|_| numbers.fill(32, (-7, 7))).collect();
            let b: Vec<_> = (0..4).flat_map(|_| numbers.fill(32, (-7, 7))).collect();
            let c: Vec<_> = (0..4).flat_map(|_| numbers.fill(64, (-99, 99))).collect();
            let at = |lane, size: usize, columns: usize, (row, column): (usize, usize)| {
                quad(lane) * size + row * columns + column
            };
            let parts = [
                Fragment::fill(Ty::F16, 4, &a, |lane, i| at(lane, 32, 4, quad_a_place(a_rows, lane, i))),
                Fragment::fill(Ty::F16, 4, &b, |lane, i| at(lane, 32, 8, quad_b_place(b_rows, lane, i))),
                Fragment::fill(c_ty, 8, &c, |lane, i| at(lane, 64, 8, quad_c_place(c_ty, lane, i))),
            ];
            let layout = |rows: bool| if rows { "row" } else { "col" };
            let (a_layout, b_layout) = (layout(a_rows), layout(b_rows));
            let (d_name, c_name) = (d_ty.name(), c_ty.name());
            let name = format!("mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d_name}.f16.f16.{c_name}");
            let registers = if d_ty == Ty::F16 { 4 } else { 8 };
            let text = text("6.4", "sm_70", &name, parts.each_ref(), (d_ty, registers), "");
            let inputs: Vec<Vec<u32>> = parts.iter().map(Fragment::data).collect();
            for sm in [70, 90] {
                let out = warp(&device(sm, None), &text, &inputs, registers * 32);
                let found =
                    results(d_ty, 8, 256, &out, |lane, i| at(lane, 64, 8, quad_c_place(d_ty, lane, i)));
                for q in 0..4 {
                    let part = |from: &[i64], size: usize| from[size * q..][..size].to_vec();
                    let expected = product((8, 8, 4), &part(&a, 32), &part(&b, 32), &part(&c, 64));
                    assert_eq!(found[64 * q..][..64], expected, "{name}, sm_{sm}, product {q}");
                }
            }
        }
    }
}

#[test]
fn single_bits_are_counted() {
    let mut numbers = Numbers::new(3);
    for (m, k) in [(8, 128), (16, 128), (16, 256)] {
        for (op, and) in [("xor", false), ("and", true)] {
            let a = numbers.fill(m * k, (0, 1));
            let b = numbers.fill(k * 8, (0, 1));
            let c = numbers.fill(m * 8, (-1000, 1000));
            let at = |columns: usize, (row, column): (usize, usize)| row * columns + column;
            let parts = [
                Fragment::fill(Ty::B1, m * k / 32, &a, |lane, i| at(k, a_place(m, 32, lane, i))),
                Fragment::fill(Ty::B1, k * 8 / 32, &b, |lane, i| at(8, b_place(32, lane, i))),
                Fragment::fill(Ty::S32, m / 4, &c, |lane, i| at(8, c_place(lane, i))),
            ];
            let name = format!("mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{op}.popc");
            let text = text("7.1", "sm_80", &name, parts.each_ref(), (Ty::S32, m / 4), "");
            let inputs: Vec<Vec<u32>> = parts.iter().map(Fragment::data).collect();
            let out = warp(&device(80, None), &text, &inputs, m * 8);
            let found = results(Ty::S32, m / 4, m * 8, &out, |lane, i| at(8, c_place(lane, i)));
            for (at, found) in found.iter().enumerate() {
                let pair = |i: usize| (a[at / 8 * k + i], b[i * 8 + at % 8]);
                let bit = |(x, y): (i64, i64)| if and { x & y } else { x ^ y };
                assert_eq!(*found, c[at] + (0..k).map(|i| bit(pair(i))).sum::<i64>(), "{name}, {at}");
            }
        }
    }
}

#[test]
fn integer_sums_wrap_or_saturate() {
    for (suffix, expected) in [
        ("", [i32::MIN + 16 * 127 * 127 - 1, i32::MAX - 16 * 127 * 128 + 1]),
        (".satfinite", [i32::MAX, i32::MIN]),
    ] {
        let case = Case {
            shape: (8, 8, 16),
            types: [Ty::S32, Ty::S8, Ty::S8, Ty::S32],
            version: "7.0",
            target: "sm_80",
        };
        let parts = [
            Fragment::fill(Ty::S8, 4, &[127], |_, _| 0),
            Fragment::fill(Ty::S8, 4, &[127, -128], |lane, _| (lane >> 2) % 2),
            Fragment::fill(Ty::S32, 2, &[i32::MAX.into(), i32::MIN.into()], |_, i| i),
        ];
        let text = text("7.0", "sm_80", &name(&case, suffix), parts.each_ref(), (Ty::S32, 2), "");
        let inputs: Vec<Vec<u32>> = parts.iter().map(Fragment::data).collect();
        let out = warp(&device(80, None), &text, &inputs, 64);
        assert!(out[..32].iter().all(|&word| word as i32 == expected[0]), "{suffix}: {:?}", out[0] as i32);
        assert!(out[32..].iter().all(|&word| word as i32 == expected[1]), "{suffix}: {:?}", out[32] as i32);
    }
}

#[test]
fn sums_of_doubles_are_rounded_as_said() {
    // A sum of 1, and four products so small that each rounds to nothing or to the next number.
    let tiny = 2f64.powi(-60);
    let found = |rounding: &str, sign: f64| {
        let (a, c) = ((sign * tiny).to_bits(), sign.to_bits());
        let body = format!(
            ".reg .f64 %a, %b, %c, %d, %e;\nmov.f64 %a, 0d{a:016x};\nmov.f64 %b, 0d3ff0000000000000;\n\
             mov.f64 %c, 0d{c:016x};\n\
             mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64{rounding} {{%d, %e}}, {{%a}}, {{%b}}, {{%c, %c}};\n\
             st.global.f64 [%rd0], %d;"
        );
        let out = warp(&device(80, None), &kernel("7.0", "sm_80", 1, 8, &body), &[], 64);
        f64::from_bits(u64::from(out[0]) | u64::from(out[1]) << 32)
    };
    let stepped = 1.0 + 4.0 * f64::EPSILON;
    for (rounding, up, down) in
        [("", 1.0, 1.0), (".rn", 1.0, 1.0), (".rz", 1.0, 1.0), (".rp", stepped, 1.0), (".rm", 1.0, stepped)]
    {
        assert_eq!(found(rounding, 1.0), up, "{rounding}");
        assert_eq!(found(rounding, -1.0), -down, "{rounding}");
    }
}

#[test]
fn the_device_chooses_how_sums_are_rounded() {
    // 4096 and sixteen small products: what is below the last bit that a tensor core keeps is lost.
    let found = |sm, core, small: f32| {
        let exponent = small.log2() as i32 + 15;
        let body = format!(
            ".reg .b32 %one, %small; .reg .f32 %c; .reg .f32 %d<4>;\nmov.b32 %one, 0x3c003c00;\n\
             mov.b32 %small, {:#x};\nmov.f32 %c, 0f45800000;\n\
             mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%d0, %d1, %d2, %d3}}, \
             {{%one, %one, %one, %one}}, {{%small, %small}}, {{%c, %c, %c, %c}};\n\
             st.global.f32 [%rd0], %d0;",
            exponent << 10 | exponent << 26
        );
        let text = kernel("7.0", "sm_80", 1, 4, &body);
        f32::from_bits(warp(&device(sm, core), &text, &[], 32)[0])
    };
    use TensorCore::*;
    let small = 2f32.powi(-12);
    let kept = 4096.0 + 16.0 * small;
    assert_eq!([80, 90].map(|sm| found(sm, None, small)), [kept, kept]);
    assert_eq!([V100, A100, Exact].map(|core| found(80, Some(core), small)), [4096.0, kept, kept]);
    let small = 2f32.powi(-13);
    let kept = 4096.0 + 16.0 * small;
    assert_eq!([80, 89, 90, 100].map(|sm| found(sm, None, small)), [4096.0, 4096.0, kept, kept]);
    assert_eq!([A100, H100, Exact].map(|core| found(90, Some(core), small)), [4096.0, kept, kept]);
}
