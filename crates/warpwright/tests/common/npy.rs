//! NumPy files as NumPy writes them, for tests: written apart from what is tested.

use std::fs;

/// A file of version 1.0; `shape` is as Python writes it, such as `(2, 3)`.
pub(crate) fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).expect("the header is short");
    [b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// The header's text and the elements' bytes.
pub(crate) fn read(path: &str) -> (String, Vec<u8>) {
    let bytes = fs::read(path).expect("the file is there");
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).expect("the header is text");
    assert!(end % 64 == 0 && header.ends_with('\n'));
    (header.trim_end().to_string(), bytes[end..].to_vec())
}

/// The header of an array in C order.
pub(crate) fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
}

pub(crate) fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn to_f32s(data: &[u8]) -> Vec<f32> {
    data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four"))).collect()
}

pub(crate) fn to_u32s(data: &[u8]) -> Vec<u32> {
    data.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four"))).collect()
}
