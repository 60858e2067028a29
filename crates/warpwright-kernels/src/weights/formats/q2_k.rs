//! Q2_K: `u8 scales[16], qs[64]; f16 d, dmin`, for `d · sc · q - dmin · m` with four bits each of `sc` (low) and `m` in
//! the byte of each 16 weights. Each 32 bytes of `qs` have 128 weights, in turns of 32 from the lowest two bits on.

use super::prelude::*;

pub(in crate::weights) const FORMAT: Format = Format {
    ggml_type: 10,
    block: 256,
    bytes: 84,
    quants: Some(Quants {
        codes: &[Field { at: 16, width: 2, run: 32 }],
        part: 16,
        records: &[
            Record { name: "scales", at: 0, bytes: 16, shared_out: true },
            Record { name: "d", at: 80, bytes: 4, shared_out: false },
        ],
        scales,
        part_of: |block, part| {
            let both = block[part];
            [half(block, 80) * f64::from(both & 15), half(block, 82) * f64::from(both >> 4)]
        },
        ..PLAIN
    }),
};

fn scales<'k>(records: &Records<'k>) -> Scales<'k> {
    let both = records.word(0, 0);
    let bytes = |four_bits: Reg<'k, u32>| (four_bits & 0x0f0f_0f0f).bytes().map(|byte| byte.f32());
    let [d, dmin] = records.word(1, 0).bits::<F16x2>().f32x2();
    let minima = bytes(both >> 4).to_vec();
    Scales { d: Some(d), dmin: Some(dmin), minima, ..Scales::of_parts(bytes(both)) }
}
