//! The kernel library: one configurable type per kernel idea.
//!
//! A kernel is a struct; its fields are its host-time configuration. It implements [`Kernel`](warpwright_dsl::Kernel):
//! entry name, arguments, launch rule, and PTX for a target. The crate does not depend on devices.
//!
//! Each kernel's file also contains its [catalogue] entry: its name, and its fields as text.
#![deny(unsafe_code)]

mod activation;
mod attention;
mod bounded;
mod catalogue;
mod data;
mod entry;
mod linear;
pub mod persistent;
mod rope;
mod rows;
mod sampling;
mod step;
pub mod tune;
pub mod weights;

pub use activation::Activation;
pub use attention::flash::{FlashAttention, FlashAttentionArgs, KvLayout, Lengths};
pub use attention::incremental::{IncrementalAttention, IncrementalAttentionArgs};
pub use catalogue::{catalogue, find};
pub use data::floats::Dtype;
pub use data::kv_cache::CacheDtype;
pub use entry::{ConfigureError, Entry};
pub use linear::gemm::{Gemm, GemmArgs};
pub use linear::gemv::{Activations, Matrix, QuantGemv, QuantGemvArgs};
pub use linear::quant_gemm::{QuantGemm, QuantGemmArgs};
pub use linear::scale_rows::{ScaleRows, ScaleRowsArgs};
pub use persistent::{Assignment, Op, PersistentDecoder};
pub use rope::{QkvLayout, Rope, RopeArgs, RopePairs, RopeScaling, TokenSequences};
pub use rows::cast::{Cast, CastArgs};
pub use rows::copy::{CopyBytes, CopyBytesArgs};
pub use rows::elementwise::{Elementwise, ElementwiseArgs, ElementwiseOp, Operands};
pub use rows::embedding::{Embedding, EmbeddingArgs};
pub use rows::layer_norm::{LayerNorm, LayerNormArgs};
pub use rows::norm::{RmsNorm, RmsNormArgs};
pub use rows::quantize::{QuantizeInt8, QuantizeInt8Args};
pub use rows::resize::{ResizeRows, ResizeRowsArgs};
pub use rows::softmax::{Softmax, SoftmaxArgs};
pub use sampling::argmax::{Argmax, ArgmaxArgs};
pub use sampling::penalties::{Penalties, PenaltiesArgs};
pub use sampling::sample::{Sample, SampleArgs};
pub use sampling::setting::Setting;
pub use step::advance::{Advance, AdvanceArgs};
pub use step::publish::{Finish, Publish, PublishArgs};
pub use weights::WeightFormat;

/// The examples of the page on tiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tiles.md")]
struct TilesPage;

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
