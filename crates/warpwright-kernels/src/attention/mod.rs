//! Attention: of one new token over a KV cache ([`incremental`]).

pub(crate) mod cache;
pub(crate) mod incremental;
mod online;
mod split;
