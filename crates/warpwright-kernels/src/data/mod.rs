//! Element types of buffers: floats of a configurable type, bytes with a scale for each 32, and the KV cache.

pub(crate) mod eight_bits;
pub(crate) mod floats;
pub(crate) mod kv_cache;
pub(crate) mod quantized;
