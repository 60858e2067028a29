//! The library's promise: its kernels stay within their arguments, whatever their buffers hold.
//!
//! What bodies go by are numbers that lengths depend on, and what they load is held against those before it is an index:
//! ids, positions, lengths, sequences. `tests/bounded.rs` runs every entry of the catalogue on buffers of any bits, where
//! an access that goes beyond one is found. The one kernel that is missing here is the persistent decoder: it follows
//! addresses that it finds in memory.
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
