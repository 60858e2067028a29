//! Q5_K: `f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128]`: Q4_K with bit `j` of byte `l` of `qh` as the fifth of weight
//! `l` of the block's part `j`.

use super::prelude::*;
use super::q4_k;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 13,
    block: 256,
    bytes: 176,
    quants: Some(Quants {
        codes: &[Field { at: 48, width: 4, run: 32 }, Field { at: 16, width: 1, run: 32 }],
        ..q4_k::QUANTS
    }),
};
