//! Files that somebody damaged on purpose: whatever a byte becomes and wherever the file ends, it is refused or
//! read; nothing panics, and no count makes more memory be taken than the file is worth.

use crate::counting::peak_allocated;
use std::hint::black_box;
use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Array, Gguf, TensorFormat, Value};

/// Opens a file whose bytes are leaked, so that only what is made of them is counted. What a file that is
/// accepted says is all there.
fn try_open(bytes: Vec<u8>) -> bool {
    let len = bytes.len();
    let bytes: &'static [u8] = bytes.leak();
    let (result, peak) = peak_allocated(|| Gguf::from_static(bytes));
    // A key and its value take 14 bytes at least, and 64 here, in a vector that grows by doubling.
    assert!(peak <= 24 * len + 4096, "{peak} bytes are allocated for a file of {len}");
    match &result {
        Ok(gguf) => look_at_everything(gguf),
        Err(error) => drop(error.to_string()),
    }
    result.is_ok()
}

fn look_at_everything(gguf: &Gguf) {
    for (key, value) in gguf.metadata().iter() {
        assert_eq!(gguf.metadata().get(key).map(Value::ty), Some(value.ty()));
        let _ = black_box((gguf.metadata().u64(key), gguf.metadata().f32s(key)));
        let _ = black_box(gguf.metadata().strings(key).map(Iterator::count));
        if let Value::Array(array) = value {
            assert_eq!(array.iter().count(), array.len());
        }
    }
    for tensor in gguf.tensors() {
        assert_eq!(gguf.data(tensor).len() as u64, tensor.bytes());
        let blocks = tensor.elements() / u64::from(tensor.ty.block());
        assert_eq!(tensor.bytes(), blocks * u64::from(tensor.ty.block_bytes()));
        assert_eq!(gguf.tensor(&tensor.name), Some(tensor));
    }
}

/// A file with a bit of everything, and the length of its header.
fn sample() -> (Vec<u8>, usize) {
    let nested = Array::of(&[Value::from(vec!["ab", "c"]), Value::from(vec![1u16, 2])]).expect("two arrays");
    let mut file = GgufWriter::new();
    file.set("general.alignment", 8u32)
        .set("s", "text")
        .set("b", true)
        .set("u", 7u64)
        .set("f", 0.5f64)
        .set("tokens", vec!["<s>", "", "▁the"])
        .set("n", vec![1i32, -1])
        .set("y", [true, false].as_slice())
        .set("a", nested)
        .tensor("w", &[32, 2], TensorFormat::Q4_0, [7; 36])
        .tensor("v", &[3], TensorFormat::F32, [1; 12])
        .tensor("x", &[2, 1, 2, 1], TensorFormat::F16, [2; 8]);
    let bytes = file.to_bytes().expect("the file can be written");
    // 40 + 16 + 8 bytes of data.
    let header = bytes.len() - 64;
    (bytes, header)
}

#[test]
fn the_sample_is_read() {
    let (bytes, header) = sample();
    let gguf = Gguf::from_bytes(bytes).expect("the file can be read");
    let first = gguf.tensors().iter().map(|tensor| tensor.offset()).min();
    assert_eq!((gguf.metadata().len(), gguf.tensors().len(), first), (9, 3, Some(header as u64)));
    look_at_everything(&gguf);
}

#[test]
fn a_file_that_ends_early_is_refused() {
    let (bytes, _) = sample();
    // Its last tensor has no padding after it.
    for len in 0..bytes.len() {
        assert!(!try_open(bytes[..len].to_vec()), "the first {len} bytes are read as a file");
    }
    assert!(try_open(bytes));
}

#[test]
fn any_byte_may_be_anything() {
    let (bytes, header) = sample();
    let mut accepted = 0;
    for at in 0..header {
        for value in (0..8).map(|bit| bytes[at] ^ (1 << bit)).chain([0, 1, 0x7f, 0x80, 0xff]) {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            accepted += usize::from(try_open(damaged));
        }
    }
    // Text and numbers may become others.
    assert!(accepted > 0 && accepted < header * 13);
}

#[test]
fn any_number_may_be_anything() {
    let (bytes, header) = sample();
    let wild = [0, 1, 2, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 61, 1 << 63, u64::MAX - 31, u64::MAX];
    for at in 0..header - 8 {
        for value in wild {
            let mut damaged = bytes.clone();
            damaged[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            try_open(damaged);
        }
    }
}

#[test]
fn several_bytes_may_be_anything() {
    let (bytes, header) = sample();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as usize % below
    };
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random(4) {
            match random(4) {
                0 | 1 => {
                    // Types are small.
                    let (at, below) = (random(damaged.len()), [14, 256][random(2)]);
                    damaged[at] = random(below) as u8;
                }
                2 => {
                    let (from, to) = (random(damaged.len()), random(damaged.len()));
                    drop(damaged.drain(from.min(to)..from.max(to)));
                }
                _ => {
                    let (from, to) = (random(header), random(header));
                    let piece: Vec<u8> = bytes[from.min(to)..from.max(to)].to_vec();
                    let at = random(damaged.len());
                    damaged.splice(at..at, piece);
                }
            }
        }
        damaged.resize(damaged.len().max(header), 0);
        try_open(damaged);
    }
}

/// The worst that a file can do: as many things as it has room for.
#[test]
fn many_small_things_take_little_memory() {
    use super::raw::Raw;
    let count = 20_000u64;
    let key = |index: u64| format!("{index:04x}");
    let keys = (0..count).fold(Raw::header(0, count), |raw, index| raw.text(&key(index)).u32(0).u8(1));
    assert!(try_open(keys.0));
    let tensors =
        (0..count).fold(Raw::header(count, 0), |raw, index| raw.tensor(&key(index), &[], 24, 32 * index));
    let room = 32 * count as usize;
    let len = tensors.0.len() + room;
    assert!(try_open(Raw(tensors.0).pad(32).bytes(&vec![0; room]).0), "a file of {len}");
    // An array that says of itself that it is one has an item of twelve bytes.
    let arrays = Raw::header(0, 1).text("a").u32(9).u32(9).u64(count);
    assert!(try_open((0..count).fold(arrays, |raw, _| raw.u32(9).u64(0)).0));
}
