//! Q4_0: `f16 d; u8 qs[16]`, for `d · (q - 8)`. Low halves of bytes are weights 0 to 15, high ones 16 to 31.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 2,
    block: 32,
    bytes: 18,
    quants: Some(Quants {
        codes: &[Field { at: 2, width: 4, run: 16 }],
        values: Values::From(8),
        records: &[Record { name: "scales", at: 0, bytes: 2, shared_out: true }],
        scales: of_d,
        part_of: |block, _| [half(block, 0), 0.0],
        ..PLAIN
    }),
};
