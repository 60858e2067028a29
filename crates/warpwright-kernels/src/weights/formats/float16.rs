//! F16: half precision.

use crate::weights::format::Format;

pub(in crate::weights) const FORMAT: Format = Format { ggml_type: 1, block: 1, bytes: 2, quants: None };
