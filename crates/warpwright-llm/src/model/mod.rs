//! Models: their description in a file, and the graphs that compute them.
//!
//! ```text
//!             Architecture (a row of a table)
//!                    │
//!  Gguf ── metadata ─┴─► ModelSpec ──► missing blocks, or tensors
//!    │                       │
//!    ├────── tensors ────────┴─► ModelConfig ──► graph(step, what is wanted) ──► ComputeGraph
//!    │                               │
//!    └───────────────────────────────┴──► load_weights ──► Store
//! ```
//!
//! A [`ModelConfig`] is only made from a file, and then file and configuration agree: every tensor that the graphs use
//! exists with its shape and in a format that kernels read, and **no tensor and no parameter of the file that would
//! change the result is ignored**: an unknown one is an error that names it.
//!
//! This module does not depend on devices or tokenizers, and chooses tokens only by operations of the graph.

mod architecture;
mod config;
mod error;
mod graph;
mod keys;
mod load;
mod missing;
mod read;
mod rope;
mod spec;
mod tensors;
mod weights;

pub use architecture::Architecture;
pub use config::ModelConfig;
pub use error::ModelError;
pub(crate) use graph::RECENT;
pub use graph::{Choice, GraphOptions, Outcome};
pub use load::{LoadError, LoadProgress, load_weights};
pub use missing::Block;
pub use spec::{
    Around, AttentionSpec, DenseSpec, ExpertsSpec, Factors, GatedActivation, Gating, HeadNorms, LatentSpec,
    LayerSpec, Mask, Mixer, ModelSpec, Network, Norm, NormKind, RecurrenceSpec, Rotary, SharedExpert,
};
pub use tensors::ExpectedTensor;
