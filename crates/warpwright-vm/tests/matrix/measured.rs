//! `mma.sync` and `mma.sp` against what a card computed, bit for bit: `data/tensor-core/h200.txt`.

use crate::mma::{
    Fragment, a_place, b_place, c_place, element, quad, quad_a_place, quad_b_place, quad_c_place, text,
};
use crate::run::{Ty, device, try_warp};
use warpwright_vm::tensor::TensorCore;

/// A form and its rows.
struct Form {
    line: &'static str,
    shape: [usize; 3],
    /// Of `d`, `a`, `b` and `c`.
    types: [Ty; 4],
    sparse: bool,
    rows: Vec<Row>,
}

/// One element of `d = a · b + c`, as bits.
struct Row {
    a: Vec<u64>,
    b: Vec<u64>,
    c: u64,
    d: u64,
}

/// A matrix's element: its value by row and column.
type Matrix<'a> = &'a dyn Fn(usize, usize) -> u64;

fn forms() -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    for line in include_str!("../data/tensor-core/h200.txt").lines() {
        let name = line.trim_start_matches("sparse ");
        if let Some(shape) = name.strip_prefix('m') {
            let mut parts = shape.split('.');
            let sizes = parts.next().expect("a shape").split(['n', 'k']);
            let sizes: Vec<usize> = sizes.map(|size| size.parse().expect("a size")).collect();
            let types: Vec<Ty> = parts.map(Ty::named).collect();
            let shape = sizes.try_into().expect("three sizes");
            let types = types.try_into().expect("four types");
            forms.push(Form { line, shape, types, sparse: name != line, rows: Vec::new() });
            continue;
        }
        let form = forms.last_mut().expect("a form before its rows");
        let [_, a_ty, b_ty, _] = form.types;
        let number = |digits: &str| u64::from_str_radix(digits, 16).expect("a bit pattern");
        let list = |digits: &str, ty: Ty| -> Vec<u64> {
            let width = ty.bits() / 4;
            (0..digits.len() / width).map(|i| number(&digits[i * width..][..width])).collect()
        };
        let fields: Vec<&str> = line.split(' ').collect();
        let [a, b, c, d] = fields[..].try_into().expect("four fields");
        let row = Row { a: list(a, a_ty), b: list(b, b_ty), c: number(c), d: number(d) };
        form.rows.push(row);
    }
    forms
}

/// What the virtual GPU makes of eight rows: row i of `a` with column i of `b`.
fn diagonal(form: &Form, rows: &[Row], core: Option<TensorCore>) -> Vec<u64> {
    let [m, n, k] = form.shape;
    let [d_ty, a_ty, b_ty, c_ty] = form.types;
    let row = |i: usize| &rows[i % 8 % rows.len()];
    let a = |i: usize, at: usize| row(i).a[at];
    // Of a sparse product, the first of a chunk are kept, and NaNs stand where no factor is.
    let (chunk, kept) = if a_ty == Ty::TF32 { (2, 1) } else { (4, 2) };
    let b = |at: usize, i: usize| match (form.sparse, at % chunk) {
        (false, _) => row(i).b[at],
        (true, within) if within < kept => row(i).b[at / chunk * kept + within],
        (true, _) => u64::MAX >> (64 - b_ty.bits()),
    };
    let c = |i: usize, j: usize| if i % 8 == j { row(i).c } else { 0 };
    let matrices: [Matrix<'_>; 3] = [&a, &b, &c];
    let is_quad = m == 8 && a_ty == Ty::F16;
    let packed = |ty: Ty| 32 / ty.bits().min(32);
    let held = if is_quad {
        [4, 4, 8, 8]
    } else {
        [m * if form.sparse { k / 2 } else { k } / 32, k * n / 32, m * n / 32, m * n / 32]
    };
    let place = |matrix: usize, lane: usize, i: usize| match (matrix, is_quad) {
        (0, true) => quad_a_place(true, lane, i),
        (1, true) => quad_b_place(false, lane, i),
        (2, true) => quad_c_place(c_ty, lane, i),
        (_, true) => quad_c_place(d_ty, lane, i),
        (0, false) => a_place(m, packed(a_ty), lane, i),
        (1, false) => b_place(packed(b_ty), lane, i),
        (_, false) => c_place(lane, i),
    };
    let parts = [0, 1, 2].map(|matrix| {
        Fragment::of_bits(form.types[matrix + 1], held[matrix], |lane, i| {
            let (row, column) = place(matrix, lane, i);
            matrices[matrix](row, column)
        })
    });
    let registers = held[3] / packed(d_ty);
    let mut inputs: Vec<Vec<u32>> = parts.iter().map(Fragment::data).collect();
    let (instruction, more) = if form.sparse {
        inputs.push(vec![0x4444_4444; 32]);
        ("mma.sp::ordered_metadata", ", %e, 0")
    } else {
        ("mma", "")
    };
    let types = form.types.map(|ty| ty.name()).join(".");
    let name = format!("{instruction}.sync.aligned.m{m}n{n}k{k}.row.col.{types}");
    let text = text("8.7", "sm_90", &name, parts.each_ref(), (d_ty, registers), more);
    let words = registers * d_ty.bits().max(32);
    let (out, report) = try_warp(&device(90, core), &text, &inputs, words);
    assert!(report.is_clean(), "{report}");
    let mut found = vec![None; rows.len()];
    for lane in 0..32 {
        for i in 0..held[3] {
            let (row, column) = place(3, lane, i);
            let value = element(d_ty, &out, lane, i) & (u64::MAX >> (64 - d_ty.bits()));
            if row % 8 == column && column < rows.len() {
                // The other places of the same row: lower in the matrix, or in the other products.
                let before = found[column].replace(value);
                assert!(before.is_none_or(|before| before == value), "{}, product {}", form.line, quad(lane));
            }
        }
    }
    found.into_iter().map(|value| value.expect("every row is in the result")).collect()
}

#[test]
fn a_card_computed_the_same_bits() {
    let forms = forms();
    assert_eq!(forms.len(), 44);
    let mut wrong = Vec::new();
    for form in &forms {
        assert!(form.rows.len() >= 8, "{}", form.line);
        let found = form.rows.chunks(8).flat_map(|rows| diagonal(form, rows, None));
        let differ = found.zip(&form.rows).filter(|(found, row)| *found != row.d);
        wrong.extend(differ.map(|(found, row)| {
            let Row { a, b, c, d } = row;
            format!("{}: {a:x?} · {b:x?} + {c:x} is {d:x}, found {found:x}", form.line)
        }));
    }
    assert!(wrong.is_empty(), "{} rows\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_rows_tell_hopper_from_other_cores() {
    let forms = forms();
    // The forms of a kind, and those of which `core` computes every row.
    let agreeing = |core: TensorCore, is_of_kind: &dyn Fn(&Form) -> bool| {
        let kind: Vec<&Form> = forms.iter().filter(|form| is_of_kind(form)).collect();
        let agrees = |form: &Form| {
            form.rows.chunks(8).all(|rows| {
                let found = diagonal(form, rows, Some(core));
                found.iter().zip(rows).all(|(found, row)| *found == row.d)
            })
        };
        let agreeing: Vec<_> = kind.iter().filter(|form| agrees(form)).map(|form| form.line).collect();
        (kind.len(), agreeing)
    };
    // In nearly every form there is a row that one correct rounding, or another core, would not give.
    let (forms, same) = agreeing(TensorCore::Exact, &|form| form.types[0] == Ty::F32);
    assert!(same.len() <= forms / 10, "{same:?}");
    let (forms, same) = agreeing(TensorCore::Ada, &|form| matches!(form.types[1], Ty::E4M3 | Ty::E5M2));
    assert!(same.len() <= forms / 10, "{same:?}");
    // Volta multiplies `m8n8k4` on tensor cores.
    let quads = |form: &Form| form.line.starts_with("m8n8k4.f32.f16");
    assert_eq!(agreeing(TensorCore::V100, &quads), (2, vec![]));
}
