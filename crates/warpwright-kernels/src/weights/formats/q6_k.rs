//! Q6_K: `u8 ql[128], qh[64]; i8 scales[16]; f16 d`, for `d · sc · (q - 32)` with a scale for each 16 weights.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 14,
    block: 256,
    bytes: 210,
    quants: Some(Quants {
        codes: &[Field { at: 0, width: 4, run: 64 }, Field { at: 128, width: 2, run: 32 }],
        values: Values::From(32),
        part: 16,
        records: &[
            Record { name: "scales", at: 192, bytes: 16, shared_out: true },
            Record { name: "d", at: 208, bytes: 2, shared_out: false },
        ],
        scales,
        part_of: |block, part| [half(block, 208) * f64::from(block[192 + part] as i8), 0.0],
        ..PLAIN
    }),
};

fn scales<'k>(records: &Records<'k>) -> Scales<'k> {
    let scales = records.word(0, 0).bits::<i32>();
    let of_parts = [0, 8, 16, 24].map(|at| scales.bfe(at, 8).f32());
    Scales { d: Some(records.half(1)), ..Scales::of_parts(of_parts) }
}
