//! The catalogue: every kernel by name. Its entry stands in the kernel's own file.

use crate::entry::{ConfigureError, Entry};
use crate::persistent::entry::PersistentDecoderFields;
use crate::rope::RopeFields;
use crate::weights::{Repack, Unpack};
use crate::*;

const ENTRIES: &[Entry] = &[
    Entry::of::<IncrementalAttention>(),
    Entry::of::<FlashAttention>(),
    Entry::of::<QuantGemv>(),
    Entry::of::<QuantGemm>(),
    Entry::of::<Gemm>(),
    Entry::of::<ScaleRows>(),
    Entry::of::<QuantizeInt8>(),
    Entry::of::<Repack>(),
    Entry::of::<Unpack>(),
    Entry::of::<Embedding>(),
    Entry::of::<RmsNorm>(),
    Entry::of::<LayerNorm>(),
    Entry::via::<RopeFields, Rope>(),
    Entry::of::<Elementwise>(),
    Entry::of::<Cast>(),
    Entry::of::<CopyBytes>(),
    Entry::of::<ResizeRows>(),
    Entry::of::<Softmax>(),
    Entry::of::<Argmax>(),
    Entry::of::<Penalties>(),
    Entry::of::<Sample>(),
    Entry::of::<Advance>(),
    Entry::of::<Publish>(),
    Entry::via::<PersistentDecoderFields, PersistentDecoder>(),
];

/// Every kernel.
pub fn catalogue() -> &'static [Entry] {
    ENTRIES
}

/// The kernel of that name.
pub fn find(name: &str) -> Result<&'static Entry, ConfigureError> {
    let entry = ENTRIES.iter().find(|entry| entry.name == name);
    entry.ok_or_else(|| ConfigureError::UnknownKernel {
        name: name.into(),
        known: ENTRIES.iter().map(|entry| entry.name).collect(),
    })
}
