//! `wmma`: whole products from memory to memory, in every shape, type, layout and space.

use crate::run::{Numbers, Ty, device, product, warp};

struct Case {
    shape: (usize, usize, usize),
    types: [Ty; 4],
    layouts: [bool; 4],
    space: &'static str,
}

/// A matrix in memory, its rows (or columns) `stride` elements apart.
fn pack(ty: Ty, (rows, columns): (usize, usize), by_rows: bool, stride: usize, from: &[i64]) -> Vec<u32> {
    let majors = if by_rows { rows } else { columns };
    let mut bytes = vec![0u8; (majors * stride * ty.bits()).div_ceil(32) * 4];
    for row in 0..rows {
        for column in 0..columns {
            let (major, minor) = if by_rows { (row, column) } else { (column, row) };
            let bit = (major * stride + minor) * ty.bits();
            let value = ty.encode(from[row * columns + column]) << (bit % 8);
            for (at, byte) in value.to_le_bytes().into_iter().enumerate().take(ty.bits().div_ceil(8)) {
                bytes[bit / 8 + at] |= byte;
            }
        }
    }
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn registers(ty: Ty, elements: usize, factor: bool) -> usize {
    match ty {
        Ty::F16 if factor => 8,
        _ => elements * ty.bits() / (32 * ty.bits().max(32)),
    }
}

fn run(
    case: &Case,
    numbers: &mut Numbers,
    suffix: &str,
    op: &str,
    sum: impl Fn(&[i64], &[i64], &[i64]) -> Vec<i64>,
) {
    let (m, n, k) = case.shape;
    let [d_ty, a_ty, b_ty, c_ty] = case.types;
    let half = d_ty == Ty::F16;
    let a = numbers.fill(m * k, a_ty.range(half));
    let b = numbers.fill(k * n, b_ty.range(half));
    let c = numbers.fill(m * n, (-100, 100));
    let shapes = [(m, n), (m, k), (k, n), (m, n)];
    let layout = |i: usize| if case.layouts[i] { "row" } else { "col" };
    // Beyond the rows: 16 bytes, or nothing.
    let stride = |i: usize| {
        let (rows, columns) = shapes[i];
        let gap = if case.types[i] == Ty::B1 { 128 } else { 128 / case.types[i].bits() };
        (if case.layouts[i] { columns } else { rows }) + gap
    };
    let data = |i: usize, from: &[i64]| pack(case.types[i], shapes[i], case.layouts[i], stride(i), from);
    let inputs = [data(1, &a), data(2, &b), data(3, &c)];
    let len = data(0, &vec![0; m * n]).len();
    let shape = format!("m{m}n{n}k{k}");
    let class = |ty: Ty| match ty {
        Ty::F32 => "f32",
        Ty::F64 => "f64",
        _ => "b32",
    };
    let mut text = String::from(
        ".version 7.1\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p0)\n{\n\
         .reg .b64 %rd<4>; .reg .b32 %s<4>; .reg .b32 %lane, %x, %at; .reg .b64 %g, %wide;\n\
         .shared .align 128 .b8 tile[16384];\nmov.u32 %lane, %tid.x;\n",
    );
    let mut lists = Vec::new();
    for (i, letter) in ["d", "a", "b", "c"].into_iter().enumerate() {
        let count = registers(case.types[i], shapes[i].0 * shapes[i].1, i == 1 || i == 2);
        let names: Vec<String> = (0..count).map(|r| format!("%{letter}{r}")).collect();
        text +=
            &format!(".reg .{} %{letter}<{count}>;\nld.param.u64 %rd{i}, [p{i}];\n", class(case.types[i]));
        text += &format!("mov.u32 %s{i}, {};\n", stride(i));
        lists.push(format!("{{{}}}", names.join(", ")));
    }
    for (i, letter) in [(1, "a"), (2, "b"), (3, "c")] {
        let place = match case.space {
            ".shared" => {
                // Copied by the warp first.
                let base = 4096 * i;
                for word in (0..inputs[i - 1].len()).step_by(32) {
                    text += &format!(
                        "add.u32 %at, %lane, {word};\nmul.wide.u32 %g, %at, 4;\nadd.u64 %wide, %rd{i}, %g;\n\
                         {{ .reg .pred %in; setp.lt.u32 %in, %at, {};\n@%in ld.global.b32 %x, [%wide];\n\
                         mov.u32 %at, tile;\nmad.lo.u32 %at, %lane, 4, %at;\n@%in st.shared.b32 [%at+{}], %x; }}\n",
                        inputs[i - 1].len(),
                        base + 4 * word
                    );
                }
                text += "bar.warp.sync -1;\n";
                format!("[tile+{base}]")
            }
            _ => format!("[%rd{i}]"),
        };
        let (layout, ty) = (layout(i), case.types[i].name());
        text += &format!(
            "wmma.load.{letter}.sync.aligned.{layout}.{shape}{}.{ty} {}, {place}, %s{i};\n",
            case.space, lists[i]
        );
    }
    let types: Vec<String> = match a_ty {
        Ty::F16 => vec![d_ty.name(), c_ty.name()],
        _ => case.types.iter().map(|ty| ty.name()).collect(),
    };
    let (a_layout, b_layout) = (layout(1), layout(2));
    let types = types.join(".");
    text += &format!(
        "wmma.mma{op}.sync.aligned.{a_layout}.{b_layout}.{shape}.{types}{suffix} {}, {}, {}, {};\n",
        lists[0], lists[1], lists[2], lists[3]
    );
    let (layout, ty) = (layout(0), d_ty.name());
    let space = if case.space == ".shared" { ".global" } else { case.space };
    text += &format!(
        "wmma.store.d.sync.aligned.{layout}.{shape}{space}.{ty} [%rd0], {}, %s0;\nret;\n}}\n",
        lists[0]
    );
    let found = warp(&device(80, None), &text, &inputs, len);
    let expected = pack(d_ty, (m, n), case.layouts[0], stride(0), &sum(&a, &b, &c));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn every_shape_type_layout_and_space() {
    use Ty::*;
    let mut numbers = Numbers::new(6);
    let wide = [(16, 16, 16), (8, 32, 16), (32, 8, 16)];
    // A shape, the types of d, a, b and c, and whether any layout goes with them.
    let mut forms = Vec::new();
    for shape in wide {
        for types in [[F32, F16, F16, F32], [F16, F16, F16, F16], [F32, F16, F16, F16], [F16, F16, F16, F32]]
        {
            forms.push((shape, types, true));
        }
        for types in [[F32, BF16, BF16, F32], [S32, S8, S8, S32], [S32, U8, U8, S32]] {
            forms.push((shape, types, true));
        }
    }
    forms.push(((16, 16, 8), [F32, TF32, TF32, F32], true));
    forms.push(((8, 8, 4), [F64; 4], true));
    forms.push(((8, 8, 32), [S32, S4, S4, S32], false));
    forms.push(((8, 8, 32), [S32, U4, U4, S32], false));
    for (shape, types, free) in forms {
        for bits in 0..16 {
            let layouts = [0, 1, 2, 3].map(|i| bits >> i & 1 == 1);
            if !free && (!layouts[1] || layouts[2]) {
                continue;
            }
            let space = ["", ".global", ".shared"][bits % 3];
            let case = Case { shape, types, layouts, space };
            run(&case, &mut numbers, "", "", |a, b, c| product(shape, a, b, c));
        }
    }
}

#[test]
fn bits_are_counted() {
    let mut numbers = Numbers::new(7);
    for (op, and) in [(".xor.popc", false), (".and.popc", true)] {
        let shape = (8, 8, 128);
        let types = [Ty::S32, Ty::B1, Ty::B1, Ty::S32];
        for space in ["", ".shared"] {
            let case = Case { shape, types, layouts: [true, true, false, false], space };
            run(&case, &mut numbers, "", op, |a, b, c| {
                let bit = |x: i64, y: i64| if and { x & y } else { x ^ y };
                let sum =
                    |at: usize| (0..128).map(|i| bit(a[at / 8 * 128 + i], b[i * 8 + at % 8])).sum::<i64>();
                (0..64).map(|at| c[at] + sum(at)).collect()
            });
        }
    }
}
