//! The catalogue: every kernel by name. Its entry stands in the kernel's own file.

use crate::entry::{ConfigureError, Entry};
use crate::linear::gemv::{FusedNormGemvFields, QuantGemvFields};
use crate::rope::RopeFields;
use crate::weights::{Repack, Unpack};
use crate::{
    FlashAttention, FusedNormGemv, Gemm, IncrementalAttention, QuantGemm, QuantGemv, RmsNorm, Rope, ScaleRows,
};

/// Those of models first, those of the tutorial last.
const ENTRIES: &[Entry] = &[
    Entry::of::<IncrementalAttention>(),
    Entry::of::<FlashAttention>(),
    Entry::via::<QuantGemvFields, QuantGemv>(),
    Entry::via::<FusedNormGemvFields, FusedNormGemv>(),
    Entry::of::<QuantGemm>(),
    Entry::of::<Gemm>(),
    Entry::of::<ScaleRows>(),
    crate::rows::quantize::ENTRY,
    Entry::of::<Repack>(),
    Entry::of::<Unpack>(),
    crate::rows::embedding::ENTRY,
    Entry::of::<RmsNorm>(),
    Entry::via::<RopeFields, Rope>(),
    crate::rows::elementwise::ENTRY,
    crate::rows::cast::ENTRY,
    crate::rows::copy::ENTRY,
    crate::rows::resize::ENTRY,
    crate::rows::softmax::ENTRY,
    crate::sampling::argmax::ENTRY,
    crate::sampling::penalties::ENTRY,
    crate::sampling::sample::ENTRY,
    crate::step::advance::ENTRY,
    crate::step::publish::ENTRY,
    crate::persistent::entry::ENTRY,
    crate::ladder::vector_add::ENTRY,
    crate::ladder::transpose::ENTRY,
    crate::ladder::matmul_tiled::ENTRY,
    crate::ladder::matmul::ENTRY,
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
