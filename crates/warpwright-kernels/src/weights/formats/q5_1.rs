//! Q5_1: `f16 d, m; u8 qh[4], qs[16]`, for `d · q + m`: Q4_1 with bit `i` of `qh` as the fifth of weight `i`.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 7,
    block: 32,
    bytes: 24,
    quants: Some(Quants {
        codes: &[Field { at: 8, width: 4, run: 16 }, Field { at: 4, width: 1, run: 1 }],
        values: Values::From(0),
        records: &[Record { name: "scales", at: 0, bytes: 4, shared_out: true }],
        scales: of_d_and_m,
        part_of: |block, _| [half(block, 0), -half(block, 2)],
        ..PLAIN
    }),
};
