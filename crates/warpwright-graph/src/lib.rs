//! Compute graphs for LLM inference: typed tensors and operations, fused, planned, and run as few launches.
//!
//! ```text
//!  ComputeGraph ──► Program ──► fuse ──► choose ──► lower ──► place ──► Plan
//!   nodes, types    one step    fewer    kernels    launches   memory     │
//!   as inferred     a node      steps                                     ▼
//!                                              execute_graph, or captured and replayed
//! ```
//!
//! A [`ComputeGraph`] is the computation, node by node; the inputs and outputs of an op are checked when it is added. A
//! [`Program`] is the steps that compute it: it begins with one step for each node, and passes merge steps for which
//! the dispatcher has one kernel. Plans do not depend on a device's addresses: a plan names tensors, and is bound to
//! buffers of a [`warpwright_runtime::Device`] when it runs.
#![deny(unsafe_code)]

mod dispatch;
mod fuse;
mod graph;
mod launch;
pub mod library;
mod options;
pub mod persistent;
pub mod place;
mod plan;
mod program;
pub mod render;
mod run;

pub use dispatch::{EachStep, KernelDispatch, KernelLibrary, StepRun};
pub use fuse::{Accepts, Formed, fuse};
pub use graph::{
    AttentionMode, AttentionParams, CacheShape, ComputeGraph, Element, GraphError, KvCache, Node, NodeId,
    OpError, PenaltyParams, Role, RopeParams, SampleParams, SequenceState, Shape, Tensor, TensorInfo,
    TensorOp, TensorType, infer,
};
pub use launch::{
    Action, ArgSource, ConfiguredKernel, PlanError, Plane, PlannedLaunch, PlannedStep, Scratch, ScratchId,
    Unsupported, WeightLayout, planes,
};
pub use options::{Arithmetic, Fusion, Fusions, PlanOptions, device_model, tuning_file};
pub use plan::{Location, Memory, Plan, PlannedWeight};
pub use program::{
    Access, Append, AttentionStep, Family, HeadNorm, Matrix, NormStep, Operand, PenaltyStep, Pointwise,
    Products, Program, ProgramError, RopeStep, Rotate, Step, StepOp, Uses,
};
pub use run::{
    Captured, Executable, ExecuteError, Execution, Finished, Persistent, PersistentError, PersistentFault,
    PersistentLaunch, PersistentOptions, PersistentStep, Replanned, Runner, RunnerError, RunnerStep,
    SequenceBound, StepKind, StepShape, Store, StoreError, StoreStatistics, execute_graph,
};

/// The examples of the page on graphs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/graph.md")]
struct GraphPage;

/// The examples of the page on the persistent decoder.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/persistent.md")]
struct PersistentPage;

/// The example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
