//! The kernels of the ladder: one idea each, small enough to be read whole. `docs/ladder.md` goes through
//! them.
//!
//! [`RmsNorm`] and [`Softmax`] here are for reading; what models use is [`crate::RmsNorm`] and
//! [`crate::Softmax`].

pub(crate) mod matmul;
pub(crate) mod matmul_tiled;
pub(crate) mod rms_norm;
pub(crate) mod softmax;
pub(crate) mod transpose;
pub(crate) mod vector_add;

pub use rms_norm::{RmsNorm, RmsNormArgs};
pub use softmax::{Softmax, SoftmaxArgs};
