//! Tensor cores: how products are accumulated, bit for bit, by hardware model.

/// Which hardware's accumulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TensorCore {
    V100,
    A100,
    Ada,
    H100,
    B200,
    Exact,
}

impl TensorCore {
    /// That of an architecture.
    pub fn for_arch(_arch: warpwright_ptx::ir::Arch) -> Self {
        TensorCore::H100
    }
}
