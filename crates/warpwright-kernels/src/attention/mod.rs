//! Attention: `softmax(scale · q·kᵀ)·v`, per sequence and head: of one new token over a KV cache
//! ([`incremental`]), and of many on the tensor cores ([`flash`]).
//!
//! Queries and results are token-major, `tokens × heads × head_dim`; a head of keys and values serves
//! `heads / kv_heads` heads of queries.

mod decode;
pub(crate) mod flash;
pub(crate) mod incremental;
mod softmax;
pub(crate) mod split;

/// The score of a masked key, relative to any other, and the maximum of no keys: finite, so that differences are not
/// NaN.
const MASKED: f32 = -1e30;

/// The factor of scores for a configuration's `scale`.
fn score_scale(scale: Option<f32>, head_dim: u32) -> f32 {
    scale.unwrap_or(1.0 / (head_dim.max(1) as f32).sqrt())
}
