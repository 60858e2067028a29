//! Q4_K: `f16 d, dmin; u8 scales[12]; u8 qs[128]`, for `d · sc · q - dmin · m` with `sc` and `m` of six bits for each 32
//! weights. Each 32 bytes of `qs` have 64 weights: 32 in low halves, then 32 in high ones.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 12,
    block: 256,
    bytes: 144,
    quants: Some(Quants { codes: &[Field { at: 16, width: 4, run: 32 }], ..QUANTS }),
};

/// What Q5_K has in common.
pub(super) const QUANTS: Quants = Quants {
    records: &[Record { name: "headers", at: 0, bytes: 16, shared_out: false }],
    scales,
    part_of,
    ..PLAIN
};

/// Of the twelve bytes, the first four have the scales of parts 0 to 3 in their lower six bits, the next four the minima;
/// the last four have the lower halves of scales and minima of parts 4 to 7, whose upper two bits are in the upper bits
/// of the first eight.
fn part_of(block: &[u8], part: usize) -> [f64; 2] {
    let six = &block[4..16];
    let (scale, minimum) = match part {
        0..4 => (six[part] & 63, six[part + 4] & 63),
        _ => {
            let lower = six[part + 4];
            (lower & 15 | six[part - 4] >> 6 << 4, lower >> 4 | six[part] >> 6 << 4)
        }
    };
    [half(block, 0) * f64::from(scale), half(block, 2) * f64::from(minimum)]
}

fn scales<'k>(records: &Records<'k>) -> Scales<'k> {
    let [both, scales, minima, lower] = [0, 1, 2, 3].map(|word| records.word(0, word));
    // The two scales and the two minima of the unit, or what those of the unit two before it have in the same bytes.
    let (k, upper) = (records.unit.kernel(), records.unit & 2);
    let pairs = (records.unit & 1).ne(0).select(0x7632, 0x5410);
    // The bits that units 2 and 3 take from the last four bytes; the others none.
    let taken = k.u32(0x0f0f_0f0f) >> (28 - upper * 14);
    let six_bits = scales.prmt(minima, pairs) >> upper;
    let lower = lower.prmt(lower >> 4, pairs);
    let [s0, s1, m0, m1] =
        ((six_bits & (taken ^ 0x3f3f_3f3f)) | (lower & taken)).bytes().map(|byte| byte.f32());
    let [d, dmin] = both.bits::<F16x2>().f32x2();
    Scales { d: Some(d), dmin: Some(dmin), minima: vec![m0, m1], ..Scales::of_parts([s0, s1]) }
}
