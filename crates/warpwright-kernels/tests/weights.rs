//! The formats of weights: what ggml says of them, what the `gguf` package makes of their blocks, and where their planes
//! lie by the table of `docs/weights.md`.

use warpwright_kernels::weights::{Planes, WeightFormat};
use warpwright_qualify::common::gguf::dequantized;

/// Names, ggml's number, weights and bytes of a block, and the planes with the bytes of a row of 512 weights.
type Row = (WeightFormat, &'static str, u32, u32, u32, &'static [(&'static str, u64)]);

const TABLE: [Row; 17] = [
    (WeightFormat::F32, "f32", 0, 1, 4, &[("values", 2048)]),
    (WeightFormat::F16, "f16", 1, 1, 2, &[("values", 1024)]),
    (WeightFormat::Bf16, "bf16", 30, 1, 2, &[("values", 1024)]),
    (WeightFormat::Q8_0, "q8_0", 8, 32, 34, &[("codes", 512), ("scales", 32)]),
    (WeightFormat::Q4_0, "q4_0", 2, 32, 18, &[("codes", 256), ("scales", 32)]),
    (WeightFormat::Q4_1, "q4_1", 3, 32, 20, &[("codes", 256), ("scales", 64)]),
    (WeightFormat::Q5_0, "q5_0", 6, 32, 22, &[("codes", 256), ("rest", 64), ("scales", 32)]),
    (WeightFormat::Q5_1, "q5_1", 7, 32, 24, &[("codes", 256), ("rest", 64), ("scales", 64)]),
    (WeightFormat::Q2K, "q2_k", 10, 256, 84, &[("codes", 128), ("scales", 32), ("d", 8)]),
    (
        WeightFormat::Q3K,
        "q3_k",
        11,
        256,
        110,
        &[("codes", 128), ("rest", 64), ("lower", 16), ("upper", 8), ("d", 4)],
    ),
    (WeightFormat::Q4K, "q4_k", 12, 256, 144, &[("codes", 256), ("headers", 32)]),
    (WeightFormat::Q5K, "q5_k", 13, 256, 176, &[("codes", 256), ("rest", 64), ("headers", 32)]),
    (WeightFormat::Q6K, "q6_k", 14, 256, 210, &[("codes", 256), ("rest", 128), ("scales", 32), ("d", 4)]),
    (WeightFormat::Iq4Nl, "iq4_nl", 20, 32, 18, &[("codes", 256), ("scales", 32)]),
    (WeightFormat::Iq4Xs, "iq4_xs", 23, 256, 136, &[("codes", 256), ("headers", 16)]),
    (WeightFormat::Mxfp4, "mxfp4", 39, 32, 17, &[("codes", 256), ("exponents", 16)]),
    (WeightFormat::Nvfp4, "nvfp4", 40, 64, 36, &[("codes", 256), ("scales", 32), ("tensor_scale", 4)]),
];

#[test]
fn the_formats_are_those_of_the_file() {
    assert_eq!(TABLE.map(|row| row.0), WeightFormat::ALL);
    for (format, name, number, block, bytes, _) in TABLE {
        assert_eq!(
            (format.name(), format.ggml_type(), format.block(), format.block_bytes()),
            (name, number, block, bytes)
        );
        assert_eq!(WeightFormat::from_name(name), Some(format));
        assert_eq!(WeightFormat::from_ggml_type(number), Some(format));
        assert_eq!(format.row_bytes(512), u64::from(512 / block * bytes));
        let scale = if format == WeightFormat::Nvfp4 { 4 } else { 0 };
        assert_eq!(format.matrix_bytes(3, 512), 3 * format.row_bytes(512) + scale);
    }
    assert_eq!(WeightFormat::from_name("q8_1"), None);
    assert_eq!(WeightFormat::from_ggml_type(9), None);
}

#[test]
fn planes_follow_one_another_and_begin_at_multiples_of_256_bytes() {
    for (format, _, _, _, _, parts) in TABLE {
        for n in [1, 3, 257] {
            let planes = Planes::new(format, n, 512);
            let found: Vec<_> = planes.iter().map(|plane| (plane.name, plane.row_bytes)).collect();
            assert_eq!(found, parts, "{format}");
            let mut end = 0u64;
            for plane in planes.iter() {
                assert_eq!(plane.offset, end.next_multiple_of(256), "{format}");
                assert_eq!(plane.rows, if plane.name == "tensor_scale" { 1 } else { n });
                end = plane.offset + u64::from(plane.rows) * plane.row_bytes;
            }
            assert_eq!(planes.bytes(), end);
            let in_file = format.matrix_bytes(n.into(), 512);
            assert!(end < in_file + 256 * parts.len() as u64, "{format}: {end} for {in_file}");
        }
    }
}

#[test]
fn rows_are_filled_up_to_16_bytes_of_numbers_and_to_units() {
    let row = |format, k, plane| Planes::new(format, 5, k).get(plane).map(|plane| plane.row_bytes);
    assert_eq!(row(WeightFormat::F32, 5, "values"), Some(32));
    assert_eq!(row(WeightFormat::F16, 8, "values"), Some(16));
    assert_eq!(row(WeightFormat::Bf16, 9, "values"), Some(32));
    assert_eq!(row(WeightFormat::Q5_0, 96, "codes"), Some(64));
    assert_eq!(row(WeightFormat::Q5_0, 96, "rest"), Some(16));
    assert_eq!(row(WeightFormat::Q5_0, 96, "scales"), Some(8));
}

/// What the `gguf` package makes of blocks is what the reference makes of them, rounded once.
#[test]
fn the_reference_is_that_of_the_gguf_package() {
    for format in WeightFormat::ALL.into_iter().filter(|format| !format.is_float()) {
        let (blocks, weights) = warpwright_qualify::common::gguf::fixture(format);
        let reference: Vec<_> =
            dequantized(format, &blocks).into_iter().map(|weight| (weight as f32).to_bits()).collect();
        assert_eq!(reference.len(), weights.len());
        let wrong = reference.iter().zip(&weights).position(|(a, b)| a != b && (a | b) << 1 != 0);
        assert_eq!(wrong, None, "{format}: the first weight that differs");
    }
}

#[test]
fn numbers_are_themselves_and_a_matrix_may_have_a_scale() {
    let bytes: Vec<u8> = [1.5f32, -0.25, 1e-40].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(WeightFormat::F32.dequantize(1, 3, &bytes), [1.5, -0.25, f64::from(1e-40f32)]);
    assert_eq!(dequantized(WeightFormat::F16, &[0x00, 0x3e, 0x01, 0x80]), [1.5, -(2f64.powi(-24))]);
    assert_eq!(dequantized(WeightFormat::Bf16, &[0xc0, 0x3f, 0x80, 0xbe]), [1.5, -0.25]);
    let format = WeightFormat::Nvfp4;
    let (mut blocks, _) = warpwright_qualify::common::gguf::fixture(format);
    let rows = blocks.len() as u64 / 36;
    let plain = dequantized(format, &blocks);
    blocks.extend(0.75f32.to_le_bytes());
    let scaled: Vec<_> = plain.iter().map(|weight| weight * 0.75).collect();
    assert_eq!(format.dequantize(rows, 64, &blocks), scaled);
}
