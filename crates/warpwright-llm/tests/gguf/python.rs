//! Files that another writer made: the `gguf` package for Python (`make.py`).

use std::path::{Path, PathBuf};
use warpwright_llm::gguf::{Gguf, TensorFormat, Value};

fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gguf").join(name)
}

/// 512 numbers from −1 to 1.
fn ramp(i: u16) -> f32 {
    (f64::from(i) * 2.0 / 511.0 - 1.0) as f32
}

fn check_types(gguf: &Gguf) {
    let expected: Vec<(&str, Value)> = vec![
        ("general.architecture", "llama".into()),
        ("general.alignment", 64u32.into()),
        ("test.u8", 200u8.into()),
        ("test.i8", (-100i8).into()),
        ("test.u16", 60_000u16.into()),
        ("test.i16", (-30_000i16).into()),
        ("test.u32", 4_000_000_000u32.into()),
        ("test.i32", (-2_000_000_000i32).into()),
        ("test.u64", (1u64 << 63).into()),
        ("test.i64", i64::MIN.into()),
        ("test.f32", 0.1f32.into()),
        ("test.f64", 0.1f64.into()),
        ("test.bool", true.into()),
        ("test.string", "naïve 🦀".into()),
        ("test.strings", vec!["<s>", "▁a", "b\n"].into()),
        ("test.ints", vec![1i32, -2, 3].into()),
        ("test.floats", vec![0.5f32, -1.5].into()),
        ("test.bools", [true, false].as_slice().into()),
    ];
    let read: Vec<_> = gguf.metadata().iter().map(|(key, value)| (key, value.clone())).collect();
    assert_eq!(read, expected);

    let shapes: Vec<_> =
        gguf.tensors().iter().map(|t| (t.name.as_str(), t.ty, t.dims.clone(), t.bytes())).collect();
    let matrix = |name, format, bytes| (name, format, vec![256, 2], bytes);
    assert_eq!(
        shapes,
        [
            matrix("f32", TensorFormat::F32, 2048),
            matrix("f16", TensorFormat::F16, 1024),
            matrix("bf16", TensorFormat::Bf16, 1024),
            matrix("q8_0", TensorFormat::Q8_0, 544),
            matrix("q4_0", TensorFormat::Q4_0, 288),
            matrix("q5_1", TensorFormat::Q5_1, 384),
            matrix("tq2_0", TensorFormat::Tq2_0, 132),
            ("ids", TensorFormat::I32, vec![3, 2, 1], 24),
        ]
    );
    let floats = gguf.data(&gguf.tensors()[0]).chunks_exact(4);
    for (i, float) in (0..512).zip(floats) {
        let float = f32::from_le_bytes(float.try_into().expect("four bytes"));
        assert!((float - ramp(i)).abs() <= f32::EPSILON, "element {i} is {float}");
    }
    let ids: Vec<u8> = (0..6i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!(gguf.data(gguf.tensor("ids").expect("the file has it")), ids);
}

#[test]
fn every_type_is_read() {
    let gguf = Gguf::open(made("types.gguf")).expect("the file can be read");
    assert_eq!((gguf.parts()[0].version(), gguf.parts()[0].alignment()), (3, 64));
    check_types(&gguf);
}

/// Versions 2 and 3 differ in what a reader may say of the byte order.
#[test]
fn version_2_is_read() {
    let mut bytes = std::fs::read(made("types.gguf")).expect("the file can be read");
    bytes[4] = 2;
    let gguf = Gguf::from_bytes(bytes).expect("the bytes can be read");
    assert_eq!(gguf.parts()[0].version(), 2);
    check_types(&gguf);
}

#[test]
fn parts_are_read() {
    for part in ["split-00001-of-00002.gguf", "split-00002-of-00002.gguf"] {
        let gguf = Gguf::open(made(part)).expect("both parts are there");
        assert_eq!(gguf.metadata().str("general.architecture").expect("it is said"), "llama");
        for i in 0..4u8 {
            let tensor = gguf.tensor(&format!("t{i}")).expect("a part has it");
            assert_eq!((tensor.part(), &tensor.dims), (usize::from(i / 2), &vec![3, 2]));
            assert_eq!(gguf.data(tensor), f32::from(i).to_le_bytes().repeat(6));
        }
    }
}
