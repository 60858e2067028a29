//! What buffers hold, where a configuration says it: floats of a type, bytes with a scale for each 32, the KV
//! cache.

pub(crate) mod eight_bits;
pub(crate) mod floats;
pub(crate) mod kv_cache;
pub(crate) mod quantized;

use warpwright_dsl::{Reg, Size};

/// A size where products of it may have more than 32 bits.
#[track_caller]
pub(crate) fn wide(size: Size<'_>) -> Reg<'_, u64> {
    match size.known() {
        Some(known) => size.reg().kernel().u64(known.into()),
        None => size.reg().to(),
    }
}
