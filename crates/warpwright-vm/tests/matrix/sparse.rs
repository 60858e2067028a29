//! `mma.sp`: metadata and selectors of every shape, against products with the zeros put back.

use crate::mma::{Fragment, a_place, b_place, c_place, results, text};
use crate::run::{Numbers, Ty, device, product, try_warp};
use warpwright_vm::TrapKind;

pub(crate) struct Case {
    pub(crate) k: usize,
    pub(crate) types: [Ty; 4],
    pub(crate) selector: usize,
    pub(crate) ordered: bool,
}

impl Case {
    fn name(&self) -> String {
        let ordered = if self.ordered { "::ordered_metadata" } else { "" };
        let types: Vec<String> = self.types.iter().map(|ty| ty.name()).collect();
        format!("mma.sp{ordered}.sync.aligned.m16n8k{}.row.col.{}", self.k, types.join("."))
    }

    /// Lane and lowest bit of the metadata of a chunk, as the figures of the ISA have it.
    fn place(&self, row: usize, chunk: usize) -> (usize, usize) {
        let (group, half) = (row % 8 * 4, row / 8);
        match (self.types[1].bits(), self.k * self.types[1].bits()) {
            (16 | 32, 256) => (group + self.selector, 16 * half + 4 * chunk),
            (16 | 32, _) => (group + 2 * self.selector + chunk / 4, 16 * half + 4 * (chunk % 4)),
            (_, 256) => (group + 2 * self.selector + half, 4 * chunk),
            _ => (group + 2 * (chunk / 8) + half, 4 * (chunk % 8)),
        }
    }
}

/// Packs a left factor of 16 rows: which of its elements are kept, and the metadata.
pub(crate) fn compress(case: &Case, numbers: &mut Numbers, a: &mut [i64]) -> (Vec<i64>, Vec<u32>) {
    let bits = case.types[1].bits();
    let width = match bits {
        32 => 2,
        4 => 8,
        _ => 4,
    };
    let mut kept = Vec::new();
    let mut metadata = vec![0; 32];
    for row in 0..16 {
        for chunk in 0..case.k / width {
            let elements = &mut a[row * case.k + chunk * width..][..width];
            let pairs = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)];
            let (mut first, mut second) = pairs[numbers.next(0, 5) as usize];
            if !case.ordered && numbers.next(0, 1) == 1 {
                (first, second) = (second, first);
            }
            // A chunk of zeros may have equal positions.
            if bits != 32 && numbers.next(0, 7) == 0 {
                elements.fill(0);
                second = first;
            }
            if bits == 32 {
                first = 2 * numbers.next(0, 1) as usize;
                second = first + 1;
            }
            let stands: Vec<usize> = match bits {
                32 => vec![first / 2],
                4 => vec![2 * first, 2 * first + 1, 2 * second, 2 * second + 1],
                _ => vec![first, second],
            };
            let (lane, bit) = case.place(row, chunk);
            metadata[lane] |= ((first | second << 2) as u32) << bit;
            kept.extend(stands.iter().map(|&at| elements[at]));
            for (at, element) in elements.iter_mut().enumerate() {
                if !stands.contains(&at) {
                    *element = 0;
                }
            }
        }
    }
    (kept, metadata)
}

fn run(
    case: &Case,
    numbers: &mut Numbers,
    spoil: impl Fn(&mut [u32]),
) -> (Vec<i64>, Vec<i64>, warpwright_vm::Report) {
    let [d_ty, a_ty, b_ty, c_ty] = case.types;
    let k = case.k;
    let half = d_ty == Ty::F16;
    let mut a = numbers.fill(16 * k, a_ty.range(half));
    let b = numbers.fill(k * 8, b_ty.range(half));
    let c = numbers.fill(128, (-100, 100));
    let (kept, mut metadata) = compress(case, numbers, &mut a);
    spoil(&mut metadata);
    let packed = |ty: Ty| 32 / ty.bits();
    let at = |columns: usize, (row, column): (usize, usize)| row * columns + column;
    let parts = [
        Fragment::fill(a_ty, k / 4, &kept, |lane, i| at(k / 2, a_place(16, packed(a_ty), lane, i))),
        Fragment::fill(b_ty, k / 4, &b, |lane, i| at(8, b_place(packed(b_ty), lane, i))),
        Fragment::fill(c_ty, 4, &c, |lane, i| at(8, c_place(lane, i))),
    ];
    let registers = 4 / packed(d_ty);
    let more = format!(", %e, {}", case.selector);
    let sm_89 = matches!(a_ty, Ty::E4M3 | Ty::E5M2);
    let target = if sm_89 { "sm_89" } else { "sm_80" };
    let text = text("8.5", target, &case.name(), parts.each_ref(), (d_ty, registers), &more);
    let mut inputs: Vec<Vec<u32>> = parts.iter().map(Fragment::data).collect();
    inputs.push(metadata);
    let (out, report) = try_warp(&device(if sm_89 { 89 } else { 80 }, None), &text, &inputs, registers * 32);
    let expected = product((16, 8, k), &a, &b, &c);
    let found = match report.trap {
        None => results(d_ty, 4, 128, &out, |lane, i| at(8, c_place(lane, i))),
        Some(_) => Vec::new(),
    };
    (found, expected, report)
}

#[test]
fn zeros_that_are_left_out_are_put_back_where_the_metadata_says() {
    use Ty::*;
    let mut numbers = Numbers::new(4);
    let half = [[F32, F16, F16, F32], [F16, F16, F16, F16], [F32, BF16, BF16, F32]];
    let bytes = [[S32, S8, S8, S32], [S32, U8, S8, S32]];
    let nibbles = [[S32, S4, S4, S32], [S32, U4, U4, S32]];
    let fp8 = [[F32, E4M3, E4M3, F32], [F32, E5M2, E4M3, F32]];
    let shapes: [(usize, &[[Ty; 4]], usize); 9] = [
        (16, &half, 4),
        (32, &half, 2),
        (8, &[[F32, TF32, TF32, F32]], 4),
        (16, &[[F32, TF32, TF32, F32]], 2),
        (32, &bytes, 2),
        (64, &bytes, 1),
        (64, &nibbles, 2),
        (128, &nibbles, 1),
        (64, &fp8, 1),
    ];
    for (k, types, selectors) in shapes {
        for &types in types {
            for selector in 0..selectors {
                for ordered in [false, true] {
                    let case = Case { k, types, selector, ordered };
                    let (found, expected, report) = run(&case, &mut numbers, |_| {});
                    assert!(report.is_clean(), "{report}");
                    assert_eq!(found, expected, "{}, selector {selector}", case.name());
                }
            }
        }
    }
}

#[test]
fn metadata_that_means_nothing_is_a_trap() {
    let case = Case { k: 16, types: [Ty::F32, Ty::F16, Ty::F16, Ty::F32], selector: 1, ordered: true };
    let (_, _, report) = run(&case, &mut Numbers::new(5), |metadata| metadata[9] = 0x4444_4454);
    let trap = report.trap.expect("a trap");
    assert_eq!(trap.kind, TrapKind::BadOperand);
    // What lanes hold that the selector does not name is not looked at.
    let (found, expected, report) = run(&case, &mut Numbers::new(5), |metadata| metadata[8] = 0xffff_ffff);
    assert!(report.is_clean() && found == expected);
}
