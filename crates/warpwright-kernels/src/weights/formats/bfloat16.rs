//! BF16: the upper half of single precision.

use crate::weights::format::Format;

pub(in crate::weights) const FORMAT: Format = Format { ggml_type: 30, block: 1, bytes: 2, quants: None };
