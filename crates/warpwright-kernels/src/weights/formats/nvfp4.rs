//! NVFP4: `u8 d[4]; u8 qs[32]`, for `d / 2 · table[q]`, with a scale for each 16 weights and one for the matrix.
//!
//! Elements are those of MXFP4; scales are floats of eight bits, E4M3, without a sign. Of the eight bytes of a part the
//! low halves are its first eight weights. The matrix's own scale, an `f32`, is the tensor `NAME.scale` of a file
//! (without it 1); `NAME.input_scale` is for activations of four bits, and changes nothing here.

use super::mxfp4::E2M1;
use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 40,
    block: 64,
    bytes: 36,
    quants: Some(Quants {
        codes: &[Field { at: 4, width: 4, run: 8 }],
        values: Values::Table(&E2M1),
        part: 16,
        records: &[Record { name: "scales", at: 0, bytes: 4, shared_out: true }],
        scales,
        part_of: |block, part| [e4m3(block[part]) / 2.0, 0.0],
        tensor_scale: true,
        ..PLAIN
    }),
};

/// The float, by ggml's reading: bit 7 is not looked at, and 0x7f, which is no number, is zero.
fn e4m3(byte: u8) -> f64 {
    let (exponent, fraction) = (i32::from(byte >> 3 & 15), f64::from(byte & 7));
    match (byte, exponent) {
        (0x7f, _) => 0.0,
        (_, 0) => fraction * 2f64.powi(-9),
        _ => (8.0 + fraction) * 2f64.powi(exponent - 10),
    }
}

fn scales<'k>(records: &Records<'k>) -> Scales<'k> {
    Scales::of_parts([0, 8, 16, 24].map(|at| {
        let byte = records.word(0, 0).bfe(at, 8);
        // The same bits at the top of an `f32` are 2^-120 of it, subnormal numbers included.
        let scale = ((byte & 0x7f) << 20).bits::<f32>() * 2f32.powi(119);
        byte.eq(0x7f).select(0.0, scale)
    }))
}
