//! IQ4_XS: `f16 d; u16 scales_h; u8 scales_l[4]; u8 qs[128]`, for `d · (sc - 32) · table[q]` with `sc` of six bits for each
//! 32 weights, whose 16 bytes and table are those of IQ4_NL.

use super::prelude::*;

/// What codes stand for: `kvalues_iq4nl` of ggml's `ggml-common.h`.
pub(super) const TABLE: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 23,
    block: 256,
    bytes: 136,
    quants: Some(Quants {
        codes: &[Field { at: 8, width: 4, run: 16 }],
        values: Values::Table(&TABLE),
        records: &[Record { name: "headers", at: 0, bytes: 8, shared_out: false }],
        scales,
        part_of,
        ..PLAIN
    }),
};

/// `scales_l` has the lower four bits of each scale, `scales_h` the upper two.
fn part_of(block: &[u8], part: usize) -> [f64; 2] {
    let lower = block[4 + part / 2] >> (part % 2 * 4) & 15;
    let upper = block[2 + part / 4] >> (part % 4 * 2) & 3;
    [half(block, 0) * (f64::from(lower | upper << 4) - 32.0), 0.0]
}

fn scales<'k>(records: &Records<'k>) -> Scales<'k> {
    let (unit, d_and_upper) = (records.unit, records.word(0, 0));
    let (lower, upper) = (records.word(0, 1) >> (unit << 3), d_and_upper >> ((unit << 2) + 16));
    let scale = |part: u32| {
        let six_bits = (lower >> (4 * part)) & 15 | ((upper >> (2 * part)) & 3) << 4;
        six_bits.f32() - 32.0
    };
    Scales { d: Some(records.half(0)), ..Scales::of_parts([0, 1].map(scale)) }
}
