//! Values, tensors and places as they were written.

use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Array, Gguf, Problem, TensorFormat, Value};

/// The problem of an error.
fn problem<T>(result: Result<T, warpwright_llm::gguf::GgufError>) -> String {
    format!("{:?}", result.err().expect("it is refused").problem())
}

fn gguf(file: &GgufWriter) -> Gguf {
    Gguf::from_bytes(file.to_bytes().expect("the file can be written")).expect("the file can be read")
}

fn every_type() -> Vec<(&'static str, Value)> {
    let nested = Array::of(&[vec![1u8, 2].into(), Value::from(vec!["a", ""])]).expect("both are arrays");
    vec![
        ("a.u8", 255u8.into()),
        ("a.i8", (-128i8).into()),
        ("a.u16", 65535u16.into()),
        ("a.i16", (-32768i16).into()),
        ("a.u32", u32::MAX.into()),
        ("a.i32", i32::MIN.into()),
        ("a.f32", 1.5e-40f32.into()),
        ("a.bool", true.into()),
        ("a.string", "naïve 🦀\0\n".into()),
        ("a.u64", u64::MAX.into()),
        ("a.i64", i64::MIN.into()),
        ("a.f64", f64::MIN_POSITIVE.into()),
        ("b.u8", vec![0u8, 255].into()),
        ("b.i8", vec![-1i8].into()),
        ("b.u16", vec![1u16, 2].into()),
        ("b.i16", vec![-3i16].into()),
        ("b.u32", vec![4u32].into()),
        ("b.i32", Vec::<i32>::new().into()),
        ("b.f32", vec![0.1f32, -0.0].into()),
        ("b.bool", [true, false].as_slice().into()),
        ("b.strings", vec!["", "two", "three\n"].into()),
        ("b.u64", vec![7u64].into()),
        ("b.i64", vec![-8i64].into()),
        ("b.f64", vec![9.5f64].into()),
        ("c.nested", nested.into()),
    ]
}

#[test]
fn values_come_back_in_their_order() {
    let mut file = GgufWriter::new();
    for (key, value) in every_type() {
        file.set(key, value);
    }
    let gguf = gguf(&file);
    let read: Vec<(&str, Value)> = gguf.metadata().iter().map(|(key, value)| (key, value.clone())).collect();
    assert_eq!(read, every_type());
    for (key, value) in every_type() {
        assert_eq!(gguf.metadata().get(key), Some(&value));
    }
    assert_eq!(gguf.metadata().get("a.u"), None);
    let Some(Value::Array(nested)) = gguf.metadata().get("c.nested") else { panic!("it is an array") };
    let nested: Vec<Value> = nested.iter().collect();
    assert_eq!(nested, [Value::from(vec![1u8, 2]), Value::from(vec!["a", ""])]);
}

#[test]
fn integers_are_given_where_they_fit() {
    let mut file = GgufWriter::new();
    for (key, value) in every_type() {
        file.set(key, value);
    }
    let gguf = gguf(&file);
    let metadata = gguf.metadata();
    assert_eq!(metadata.u32("a.u8").expect("it fits"), 255);
    assert_eq!(metadata.required::<i64>("a.i8").expect("it fits"), -128);
    assert_eq!(metadata.required::<i32>("a.u16").expect("it fits"), 65535);
    assert_eq!(metadata.u64("a.u64").expect("it fits"), u64::MAX);
    assert!(metadata.u32("a.u64").is_err() && metadata.u32("a.i8").is_err());
    assert_eq!(metadata.f32("a.f32").expect("it is one").to_bits(), 1.5e-40f32.to_bits());
    assert!(
        metadata.f32("a.u8").is_err() && metadata.u32("a.f32").is_err() && metadata.bool("a.u8").is_err()
    );
    assert_eq!(metadata.u32s("b.u8").expect("they fit"), [0, 255]);
    assert_eq!(metadata.i32s("b.i64").expect("they fit"), [-8]);
    assert!(metadata.u32s("b.i64").is_err());
    assert_eq!(metadata.f32s("b.f64").expect("they are floats"), [9.5]);
    assert!(metadata.f32s("b.i8").is_err());
    let strings: Vec<&str> = metadata.strings("b.strings").expect("they are text").collect();
    assert_eq!(strings, ["", "two", "three\n"]);
    // What has no items has any type.
    assert!(metadata.f32s("b.i32").expect("it is there").is_empty());
    assert_eq!(metadata.optional::<u32>("a.none").expect("it may be missing"), None);
    assert!(metadata.optional::<u32>("a.string").is_err());
    assert_eq!(problem(metadata.u32("a.none")), "MissingKey { key: \"a.none\" }");
}

#[test]
fn strings_of_arrays_need_not_be_text() {
    let mut file = GgufWriter::new();
    file.set("tokens", Array::strings([b"good".as_slice(), &[0xff, b'x']]));
    let gguf = gguf(&file);
    assert!(matches!(
        gguf.metadata().strings("tokens").map(drop).expect_err("one is not UTF-8").problem(),
        Problem::ItemNotUtf8 { index: 1, .. }
    ));
    let array: &Array = gguf.metadata().required("tokens").expect("it is an array");
    let bytes: Vec<&[u8]> = array.byte_strings().expect("its items are strings").collect();
    assert_eq!(bytes, [b"good".as_slice(), &[0xff, b'x']]);
}

#[test]
fn tensors_come_back_where_the_alignment_wants_them() {
    for alignment in [1u32, 8, 32, 4096] {
        let mut file = GgufWriter::new();
        file.set("general.alignment", alignment);
        let mut expected = Vec::new();
        for (i, &format) in TensorFormat::ALL.iter().enumerate() {
            let dims: Vec<u64> = [u64::from(format.block()) * 2, 3, 1, 1][..1 + i % 4].to_vec();
            let blocks = dims.iter().product::<u64>() / u64::from(format.block());
            let data = vec![i as u8; (blocks * u64::from(format.block_bytes())) as usize];
            file.tensor(format.name(), &dims, format, data.clone());
            expected.push((format.name(), dims, format, data));
        }
        file.tensor("scalar", &[], TensorFormat::F32, [0, 0, 128, 63]);
        file.tensor("nothing", &[32, 0], TensorFormat::Q4_0, []);
        let gguf = gguf(&file);
        assert_eq!(gguf.tensors().len(), expected.len() + 2);
        for (info, (name, dims, format, data)) in gguf.tensors().iter().zip(&expected) {
            assert_eq!((info.name.as_str(), &info.dims, info.ty), (*name, dims, *format));
            assert_eq!(info.offset() % u64::from(alignment), 0);
            assert_eq!(gguf.data(info), data);
            assert_eq!(gguf.tensor(name), Some(info));
            assert_eq!(info.row_len() * info.rows(), info.elements());
        }
        let scalar = gguf.tensor("scalar").expect("the file has it");
        assert_eq!((scalar.elements(), gguf.data(scalar)), (1, [0, 0, 128, 63].as_slice()));
        let nothing = gguf.tensor("nothing").expect("the file has it");
        assert_eq!((nothing.elements(), nothing.bytes()), (0, 0));
        assert_eq!(gguf.tensor("missing"), None);
    }
}
