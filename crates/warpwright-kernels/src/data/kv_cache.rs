//! Element types of the KV cache.

use crate::Dtype;
use crate::data::eight_bits::BLOCK;
use warpwright_ptx::ir::Type;

/// The element type of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::Choice)]
pub enum CacheDtype {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// GGUF's Q8_0: signed bytes with an `f16` scale for each 32 of a row, in two buffers.
    #[name("q8_0")]
    Q8_0,
}

impl CacheDtype {
    /// The type of the elements in the buffers `k` and `v`; for `q8_0`, the type of the quants.
    pub fn ty(self) -> Type {
        match self {
            CacheDtype::F32 => Type::F32,
            CacheDtype::F16 => Type::F16,
            CacheDtype::Bf16 => Type::BF16,
            CacheDtype::Q8_0 => Type::S8,
        }
    }

    /// Bytes of an element, without its share of a scale.
    pub fn bytes(self) -> u32 {
        self.ty().bytes()
    }

    /// A head dimension must be a multiple of this: 16 bytes, and the number of elements that share a scale.
    pub fn granule(self) -> u32 {
        if self == CacheDtype::Q8_0 { BLOCK } else { 8 }
    }
}

impl From<Dtype> for CacheDtype {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => CacheDtype::F32,
            Dtype::F16 => CacheDtype::F16,
            Dtype::Bf16 => CacheDtype::Bf16,
        }
    }
}
