//! F32: single precision.

use crate::weights::format::Format;

pub(in crate::weights) const FORMAT: Format = Format { ggml_type: 0, block: 1, bytes: 4, quants: None };
