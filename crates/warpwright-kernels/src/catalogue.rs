//! The catalogue: every kernel by name. Its entry stands in the kernel's own file.

use crate::entry::{ConfigureError, Entry, of_element};
use crate::*;

/// Those of models first, those of the tutorial last.
const ENTRIES: &[Entry] = &[
    crate::attention::incremental::ENTRY,
    crate::attention::flash::ENTRY,
    crate::linear::gemv::QUANT_GEMV,
    crate::linear::gemv::FUSED_NORM_GEMV,
    crate::linear::quant_gemm::ENTRY,
    crate::linear::gemm::ENTRY,
    crate::linear::scale_rows::ENTRY,
    Entry::of::<QuantizeQ8_1>(),
    crate::weights::repack::REPACK,
    crate::weights::repack::UNPACK,
    Entry::of::<Embedding>(),
    Entry::of::<RmsNorm>(),
    crate::rope::ENTRY,
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
    crate::persistent::entry::ENTRY,
    of_element!(VectorAdd),
    of_element!(Transpose),
    of_element!(MatmulTiled),
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
