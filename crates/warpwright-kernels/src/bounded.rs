//! Marks the kernels that stay within their arguments, whatever their buffers hold.
//!
//! Bodies use the numbers that buffer lengths depend on. Values loaded from memory (ids, positions, lengths, sequences)
//! are checked against these numbers before they are used as an index. `tests/bounded.rs` runs every entry of the
//! catalogue on buffers of arbitrary bits and reports any out-of-bounds access. The persistent decoder is the one
//! kernel that is not marked: it follows addresses that it reads from memory.
#![allow(unsafe_code, reason = "the promise that makes launches safe")]

use crate::*;
use warpwright_dsl::Bounded;

macro_rules! bounded {
    ($($kernel:ident)*) => {$(
        // SAFETY: see above.
        unsafe impl Bounded for $kernel {}
    )*};
}

bounded! {
    Advance Argmax Cast CopyBytes Elementwise Embedding FlashAttention Gemm IncrementalAttention LayerNorm
    Penalties Publish QuantGemm QuantGemv QuantizeInt8 ResizeRows RmsNorm Rope Sample ScaleRows Softmax
}

// SAFETY: see above.
unsafe impl Bounded for weights::Repack {}
// SAFETY: see above.
unsafe impl Bounded for weights::Unpack {}
