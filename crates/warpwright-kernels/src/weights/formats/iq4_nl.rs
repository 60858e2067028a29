//! IQ4_NL: `f16 d; u8 qs[16]`, for `d · table[q]`, laid out as Q4_0.

use super::prelude::*;

/// What codes stand for: `kvalues_iq4nl` of ggml's `ggml-common.h`.
pub(super) const TABLE: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 20,
    block: 32,
    bytes: 18,
    quants: Some(Quants {
        codes: &[Field { at: 2, width: 4, run: 16 }],
        values: Values::Table(&TABLE),
        records: &[Record { name: "scales", at: 0, bytes: 2, shared_out: true }],
        scales: of_d,
        part_of: |block, _| [half(block, 0), 0.0],
        ..PLAIN
    }),
};
