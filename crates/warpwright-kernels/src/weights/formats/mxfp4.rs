//! MXFP4 of the OCP Microscaling Formats 1.0: `u8 e; u8 qs[16]`, for `2^(e - 128) · table[q]`, laid out as Q4_0.
//!
//! Elements are floats of four bits, E2M1, here twice as large, so that they are whole; the scale has no sign and no
//! fraction, E8M0. Scales reach beyond half precision, and have the range of bfloat16.

use super::prelude::*;

/// Twice the numbers of E2M1.
pub(super) const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 39,
    block: 32,
    bytes: 17,
    quants: Some(Quants {
        codes: &[Field { at: 1, width: 4, run: 16 }],
        values: Values::Table(&E2M1),
        records: &[Record { name: "exponents", at: 0, bytes: 1, shared_out: true }],
        scales,
        part_of: |block, _| [2f64.powi(i32::from(block[0]) - 128), 0.0],
        half: Dtype::Bf16,
        ..PLAIN
    }),
};

fn scales<'k>(records: &Records<'k>) -> Scales<'k> {
    let exponents = records.word(0, 0);
    Scales::of_parts([0, 8].map(|at| {
        let e = exponents.bfe(at, 8);
        // 2^-128 and 2^-127 are below the normal numbers.
        e.ge(2).select((e - 1) << 23, e.kernel().u32(0x0020_0000) << e).bits()
    }))
}
