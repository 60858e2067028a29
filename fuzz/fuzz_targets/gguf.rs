//! Any bytes as a GGUF file: they are refused, or what they say is there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::hint::black_box;
use warpwright_llm::gguf::{Gguf, Value};

fuzz_target!(|bytes: &[u8]| {
    let gguf = match Gguf::from_bytes(bytes.to_vec()) {
        Ok(gguf) => gguf,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "a message is one line");
            return;
        }
    };
    for (key, value) in gguf.metadata().iter() {
        let _ = black_box((gguf.metadata().i32s(key), gguf.metadata().f32s(key), gguf.metadata().u32(key)));
        let _ = black_box(gguf.metadata().strings(key).map(Iterator::count));
        if let Value::Array(array) = value {
            assert_eq!(array.iter().count(), array.len());
        }
    }
    for tensor in gguf.tensors() {
        assert_eq!(gguf.data(tensor).len() as u64, tensor.bytes());
    }
});
