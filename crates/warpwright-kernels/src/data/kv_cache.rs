//! The KV cache: what its elements are.

use crate::Dtype;
use crate::data::eight_bits::BLOCK;
use std::fmt;
use warpwright_ptx::ir::Type;

/// The element type of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum CacheDtype {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// GGUF's Q8_0: signed bytes with an `f16` scale for each 32 of a row, in two buffers.
    Q8_0,
}

impl CacheDtype {
    /// All of them.
    pub const ALL: [CacheDtype; 4] = [CacheDtype::F32, CacheDtype::F16, CacheDtype::Bf16, CacheDtype::Q8_0];
    /// Their names.
    pub(crate) const NAMES: &'static [&'static str] = &["f32", "f16", "bf16", "q8_0"];

    /// Its name: `f32`, `f16`, `bf16` or `q8_0`.
    pub fn name(self) -> &'static str {
        match self {
            CacheDtype::F32 => "f32",
            CacheDtype::F16 => "f16",
            CacheDtype::Bf16 => "bf16",
            CacheDtype::Q8_0 => "q8_0",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The type of the elements in the buffers `k` and `v`: of the quants, for `q8_0`.
    pub fn ty(self) -> Type {
        match self {
            CacheDtype::F32 => Type::F32,
            CacheDtype::F16 => Type::F16,
            CacheDtype::Bf16 => Type::BF16,
            CacheDtype::Q8_0 => Type::S8,
        }
    }

    /// Bytes of an element; those of the scales are not counted.
    pub fn bytes(self) -> u32 {
        self.ty().bytes()
    }

    /// What a head dimension is a multiple of: of 16 bytes, and of the elements that share a scale.
    pub fn granule(self) -> u32 {
        if self == CacheDtype::Q8_0 { BLOCK } else { 8 }
    }
}

impl fmt::Display for CacheDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
