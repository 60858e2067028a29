//! Q8_0: `f16 d; i8 qs[32]`, for `d · q`.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 8,
    block: 32,
    bytes: 34,
    quants: Some(Quants {
        codes: &[Field { at: 2, width: 8, run: 32 }],
        values: Values::Signed,
        records: &[Record { name: "scales", at: 0, bytes: 2, shared_out: true }],
        scales: of_d,
        part_of: |block, _| [half(block, 0), 0.0],
        ..PLAIN
    }),
};
