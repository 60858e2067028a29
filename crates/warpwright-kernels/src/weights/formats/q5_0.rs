//! Q5_0: `f16 d; u8 qh[4], qs[16]`, for `d · (q - 16)`: Q4_0 with bit `i` of `qh` as the fifth of weight `i`.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 6,
    block: 32,
    bytes: 22,
    quants: Some(Quants {
        codes: &[Field { at: 6, width: 4, run: 16 }, Field { at: 2, width: 1, run: 1 }],
        values: Values::From(16),
        records: &[Record { name: "scales", at: 0, bytes: 2, shared_out: true }],
        scales: of_d,
        part_of: |block, _| [half(block, 0), 0.0],
        ..PLAIN
    }),
};
