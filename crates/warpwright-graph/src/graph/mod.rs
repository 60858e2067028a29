//! Graphs: tensors, operations, and their connections.

mod build;
mod check;
mod error;
mod infer;
mod op;
mod ops;
mod order;
mod sequence;
mod tensor;

pub use build::{ComputeGraph, KvCache, Node, NodeId, TensorInfo};
pub use error::{GraphError, OpError};
pub use infer::infer;
pub use op::{AttentionMode, AttentionParams, PenaltyParams, RopeParams, SampleParams, TensorOp};
pub use sequence::{CacheShape, SequenceState};
pub(crate) use sequence::{grown, has_sequences_of, may_become, runs};
pub use tensor::{Element, Role, Shape, Tensor, TensorType};
