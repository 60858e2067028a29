//! The engine: a model on a device, from token to token.
//!
//! ```text
//!                 ┌── prefill: chunks ──┐
//!  ids ──► Engine ┤                     ├──► the cache, and the next token: on the device
//!                 └── next: steps,  ────┘            │
//!                     or one launch                  │
//!                                                    └──► the host, when it asks
//! ```
//!
//! The engine works on ids, not text: tokenizers and templates are separate. All plans of a model share one
//! [`Store`](warpwright_graph::Store), whose states are the sequence; the host keeps only its ids.
//!
//! Invariants:
//!
//! - **Ids that a kernel reads are in the vocabulary**: others are refused before. A step issued ahead may read the id
//!   that means "no token could be chosen"; a table lookup returns zeros for it.
//! - **The cache holds a prefix of the sequence**, and attention sees only that prefix: entries after it, left by
//!   padding, a step issued ahead or a failure, are overwritten before they are seen.
//! - **No token is chosen from logits that are not finite**: that is an error, which names the first tensor with such a
//!   number.
//! - **A token is a function of the ids before it, the sampler's options and the seed**, up to the rounding of steps
//!   and chunks: a draw takes the random number of its seed and position, however the ids came into the cache. The
//!   choice of executor, and where its launches begin and end, changes no token.

mod context;
mod error;
mod estimate;
mod inbox;
mod load;
mod logits;
mod not_finite;
mod options;
mod persistent;
mod pieces;
mod prefill;
mod sampler;
mod sequence;
mod states;
mod statistics;

pub use crate::model::LoadProgress as Loading;
pub use context::{Context, ContextLimit};
pub use error::EngineError;
pub use estimate::Estimate;
pub use load::Engine;
pub use logits::By;
pub use not_finite::NotFinite;
pub use options::{EngineOptions, Executor};
pub use persistent::{Fallback, PersistentStatistics};
pub use prefill::Progress;
pub use sampler::SamplerOptions;
pub use statistics::{Description, EngineStatistics};
