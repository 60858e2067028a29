//! Attention: `softmax(scale · q·kᵀ)·v`, per sequence and head.
//!
//! Queries and results are token-major, `tokens × heads × head_dim`; a head of keys and values serves
//! `heads / kv_heads` heads of queries.

pub(crate) mod flash;
