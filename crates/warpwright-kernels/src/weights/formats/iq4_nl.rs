//! IQ4_NL: `f16 d; u8 qs[16]`, for `d · table[q]`, laid out as Q4_0, with the table of IQ4_XS.

use super::iq4_xs::TABLE;
use super::prelude::*;

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
