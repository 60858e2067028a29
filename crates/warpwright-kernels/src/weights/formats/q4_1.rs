//! Q4_1: `f16 d, m; u8 qs[16]`, for `d · q + m`.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 3,
    block: 32,
    bytes: 20,
    quants: Some(Quants {
        codes: &[Field { at: 4, width: 4, run: 16 }],
        values: Values::From(0),
        records: &[Record { name: "scales", at: 0, bytes: 4, shared_out: true }],
        scales: of_d_and_m,
        part_of: |block, _| [half(block, 0), -half(block, 2)],
        ..PLAIN
    }),
};
