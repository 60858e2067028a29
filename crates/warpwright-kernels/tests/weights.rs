//! The formats of weights and where their planes lie, against the table of `docs/weights.md`.

mod common;

use common::gguf::dequantized;
use warpwright_kernels::weights::{Part, Planes, WeightFormat};

/// Names, weights and bytes of a block, and the planes with the bytes of a row of 512 weights.
type Row = (WeightFormat, &'static str, u32, u32, &'static [(Part, u64)]);

const TABLE: [Row; 8] = [
    (WeightFormat::F32, "f32", 1, 4, &[(Part::Values, 2048)]),
    (WeightFormat::F16, "f16", 1, 2, &[(Part::Values, 1024)]),
    (WeightFormat::Bf16, "bf16", 1, 2, &[(Part::Values, 1024)]),
    (WeightFormat::Q8_0, "q8_0", 32, 34, &[(Part::Quants, 512), (Part::Scales, 32)]),
    (WeightFormat::Q4_0, "q4_0", 32, 18, &[(Part::Quants, 256), (Part::Scales, 32)]),
    (WeightFormat::Q4K, "q4_k", 256, 144, &[(Part::Quants, 256), (Part::Headers, 32)]),
    (WeightFormat::Q5K, "q5_k", 256, 176, &[(Part::Quants, 256), (Part::Fifth, 64), (Part::Headers, 32)]),
    (
        WeightFormat::Q6K,
        "q6_k",
        256,
        210,
        &[(Part::Quants, 256), (Part::Upper, 128), (Part::Scales, 32), (Part::D, 4)],
    ),
];

#[test]
fn the_formats_are_those_of_the_file() {
    assert_eq!(TABLE.map(|row| row.0), WeightFormat::ALL);
    for (format, name, block, bytes, _) in TABLE {
        assert_eq!((format.name(), format.block(), format.block_bytes()), (name, block, bytes));
        assert_eq!(WeightFormat::from_name(name), Some(format));
        assert_eq!(WeightFormat::from_ggml_type(format.ggml_type()), Some(format));
        assert_eq!(format.row_bytes(512), u64::from(512 / block * bytes));
    }
    assert_eq!(WeightFormat::from_name("q4_1"), None);
    assert_eq!(WeightFormat::from_ggml_type(3), None);
}

#[test]
fn planes_follow_one_another_and_begin_at_multiples_of_256_bytes() {
    for (format, _, _, _, parts) in TABLE {
        for n in [1, 3, 257] {
            let planes = Planes::new(format, n, 512);
            let found: Vec<_> = planes.iter().map(|plane| (plane.part, plane.row_bytes)).collect();
            assert_eq!(found, parts, "{format}");
            let mut end = 0u64;
            for plane in planes.iter() {
                assert_eq!(plane.offset, end.next_multiple_of(256), "{format}");
                end = plane.offset + u64::from(n) * plane.row_bytes;
            }
            assert_eq!(planes.bytes(), end);
            let in_file = u64::from(n) * format.row_bytes(512);
            assert!(end < in_file + 256 * parts.len() as u64, "{format}: {end} for {in_file}");
        }
    }
}

#[test]
fn rows_of_numbers_are_filled_up_to_16_bytes() {
    let row = |format, k| Planes::new(format, 5, k).get(Part::Values).map(|plane| plane.row_bytes);
    assert_eq!(row(WeightFormat::F32, 5), Some(32));
    assert_eq!(row(WeightFormat::F16, 8), Some(16));
    assert_eq!(row(WeightFormat::Bf16, 9), Some(32));
}

/// What the `gguf` package makes of blocks is what the reference of these tests makes of them, rounded once.
#[test]
fn the_reference_is_that_of_the_gguf_package() {
    for format in WeightFormat::ALL.into_iter().filter(|format| !format.is_float()) {
        let (blocks, weights) = common::gguf::fixture(format);
        let reference: Vec<_> =
            dequantized(format, &blocks).into_iter().map(|weight| (weight as f32).to_bits()).collect();
        assert_eq!(reference.len(), weights.len());
        let wrong = reference.iter().zip(&weights).position(|(a, b)| a != b && (a | b) << 1 != 0);
        assert_eq!(wrong, None, "{format}: the first weight that differs");
    }
}
