//! What buffers hold, where a configuration says it: floats of a type, bytes with a scale for each 32, the KV
//! cache.

pub(crate) mod eight_bits;
pub(crate) mod floats;
pub(crate) mod kv_cache;
pub(crate) mod quantized;
