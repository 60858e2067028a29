//! The kernels of the ladder: one idea each, small enough to be read whole. `docs/ladder.md` goes through
//! them. `rms_norm::RmsNorm` and `softmax::Softmax` are for reading; what models use are those of the library.

pub(crate) mod mat_vec;
pub(crate) mod matmul;
pub(crate) mod matmul_tiled;
pub(crate) mod rms_norm;
pub(crate) mod softmax;
pub(crate) mod transpose;
pub(crate) mod vector_add;
