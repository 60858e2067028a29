//! Arguments of kernels.

use super::{Buffer, Element};
use crate::launch::LaunchError;
use crate::module::KernelInfo;

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the type of its name")]
#[non_exhaustive]
pub enum Arg {
    /// The address of memory.
    Pointer(u64),
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    /// The bytes of a structure, or of a type that Rust lacks.
    Bytes(Vec<u8>),
}

impl Arg {
    /// The address of a buffer.
    pub fn buffer<T: Element>(buffer: &Buffer<T>) -> Arg {
        Arg::Pointer(buffer.address())
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Arg::Pointer(v) | Arg::U64(v) => v.to_le_bytes().into(),
            Arg::U8(v) => vec![*v],
            Arg::I8(v) => vec![*v as u8],
            Arg::U16(v) => v.to_le_bytes().into(),
            Arg::I16(v) => v.to_le_bytes().into(),
            Arg::U32(v) => v.to_le_bytes().into(),
            Arg::I32(v) => v.to_le_bytes().into(),
            Arg::I64(v) => v.to_le_bytes().into(),
            Arg::F32(v) => v.to_le_bytes().into(),
            Arg::F64(v) => v.to_le_bytes().into(),
            Arg::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// The bytes of the parameters.
pub(super) fn params(kernel: &KernelInfo, args: &[Arg]) -> Result<Vec<u32>, LaunchError> {
    if kernel.params.len() != args.len() {
        return Err(LaunchError::ArgumentCount {
            kernel: kernel.name.clone(),
            expected: kernel.params.len(),
            given: args.len(),
        });
    }
    let bytes = kernel.params.last().map_or(0, |param| param.offset + param.bytes);
    let mut out = vec![0u8; bytes.next_multiple_of(4) as usize];
    for (index, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
        let data = arg.bytes();
        if data.len() != param.bytes as usize {
            return Err(LaunchError::ArgumentSize {
                kernel: kernel.name.clone(),
                index,
                name: param.name.clone(),
                expected: param.bytes as usize,
                given: data.len(),
            });
        }
        out[param.offset as usize..][..data.len()].copy_from_slice(&data);
    }
    Ok(out.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}
