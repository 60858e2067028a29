//! Models: what a file says about one, and the graphs that compute it.
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
//! A [`ModelConfig`] is only made from a file, and then file and configuration agree: every tensor that the graphs
//! take is there with its shape and in a format that kernels read, and **no tensor and no parameter of the file is
//! left out that would change the result**: what is not understood is refused by name.
//!
//! Nothing here knows devices, tokenizers or how tokens are chosen beyond the graph's own operations.

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
