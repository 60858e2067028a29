//! Q3_K: `u8 hmask[32], qs[64], scales[12]; f16 d`, for `d · (sc - 32) · (q - 4)` with `sc` of six bits for each 16
//! weights. `qs` has the lower two bits of `q` as Q2_K has them, `hmask` the third as Q5_K has the fifth.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 11,
    block: 256,
    bytes: 110,
    quants: Some(Quants {
        codes: &[Field { at: 32, width: 2, run: 32 }, Field { at: 0, width: 1, run: 32 }],
        values: Values::From(4),
        part: 16,
        records: &[
            Record { name: "lower", at: 96, bytes: 8, shared_out: false },
            Record { name: "upper", at: 104, bytes: 4, shared_out: false },
            Record { name: "d", at: 108, bytes: 2, shared_out: false },
        ],
        scales,
        part_of,
        ..PLAIN
    }),
};

/// Eight bytes have the lower four bits of scales 0 to 7 and of 8 to 15; the next four the upper two of each four scales.
fn part_of(block: &[u8], part: usize) -> [f64; 2] {
    let lower = block[96 + part % 8] >> (part / 8 * 4) & 15;
    let upper = block[104 + part % 4] >> (part / 4 * 2) & 3;
    [half(block, 108) * (f64::from(lower | upper << 4) - 32.0), 0.0]
}

fn scales<'k>(records: &Records<'k>) -> Scales<'k> {
    let unit = records.unit;
    let lower = (unit & 1).ne(0).select(records.word(0, 1), records.word(0, 0));
    let lower = (lower >> ((unit >> 1) << 2)) & 0x0f0f_0f0f;
    let upper = (records.word(1, 0) >> (unit << 1)) & 0x0303_0303;
    let six_bits = lower | (upper << 4);
    let of_parts = six_bits.bytes().map(|byte| byte.f32() - 32.0);
    Scales { d: Some(records.half(2)), ..Scales::of_parts(of_parts) }
}
