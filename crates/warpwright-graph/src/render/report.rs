//! A plan as data for people and programs, with names instead of handles.
//!
//! The JSON of a report has its fields in this order and with these names. `version` is [`VERSION`]: it increases when
//! a field is removed or changes its meaning; added fields do not change it.

use serde::{Deserialize, Serialize};

/// The version of the JSON that this crate writes.
pub const VERSION: u32 = 1;

/// A plan, before and after fusion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanReport {
    /// The version of this form: [`VERSION`].
    pub version: u32,
    /// What the plan was made for.
    pub target: TargetReport,
    /// Before fusion: the graph's nodes, in the order in which they could run one by one.
    pub before: Vec<NodeReport>,
    /// After fusion: the steps, in order.
    pub steps: Vec<StepReport>,
    /// The launches of the kernel library, in order.
    pub launches: Vec<LaunchReport>,
    /// The tensors that the graph or the steps have.
    pub tensors: Vec<TensorReport>,
    /// The memory that the plan needs.
    pub memory: MemoryReport,
    /// Sums.
    pub totals: TotalsReport,
    /// The sums of the same graph without fusion, if that was planned too.
    pub unfused: Option<TotalsReport>,
}

/// What a plan was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TargetReport {
    /// The architecture: `sm_80`.
    pub arch: String,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
    /// How activations are multiplied: `exact` or `int8`.
    pub arithmetic: String,
    /// The fusions that were allowed.
    pub fusions: Vec<String>,
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Its op: `mat_mul`.
    pub op: String,
    /// Names of the tensors that it takes, in the op's order.
    pub reads: Vec<String>,
    /// Names of the tensors that it makes.
    pub writes: Vec<String>,
    /// The step that does its work: an index into `steps`.
    pub step: usize,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepReport {
    /// What it does: `products`.
    pub op: String,
    /// The method of a dispatcher that it goes to: `mat_mul`.
    pub family: String,
    /// Names of the nodes whose work it does; none if a pass has added it.
    pub nodes: Vec<String>,
    /// The fusions that made it.
    pub fusions: Vec<String>,
    /// Names of the tensors that it reads, each once.
    pub reads: Vec<String>,
    /// Names of the tensors that it makes.
    pub writes: Vec<String>,
    /// Its launches: indices into `launches`.
    pub launches: Vec<usize>,
    /// Its copies, which are not launches.
    pub copies: Vec<CopyReport>,
    /// Whether the dispatcher runs it, so that the library has no launches for it.
    pub overridden: bool,
}

/// A copy from one tensor to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CopyReport {
    /// The tensor that is copied.
    pub from: String,
    /// The tensor that it is copied to.
    pub to: String,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaunchReport {
    /// The kernel's entry name, which identifies its configuration.
    pub kernel: String,
    /// Its step: an index into `steps`.
    pub step: usize,
    /// Names of the nodes whose work that step does.
    pub nodes: Vec<String>,
    /// The grid, in blocks.
    pub grid: [u32; 3],
    /// A block, in threads.
    pub block: [u32; 3],
    /// Bytes that it moves, by its arguments.
    pub bytes: u64,
    /// Whether it may begin before the launch in front of it is complete.
    #[serde(default)]
    pub overlaps: bool,
    /// Its arguments, in the kernel's order.
    pub args: Vec<ArgReport>,
}

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArgReport {
    /// Its name in the kernel.
    pub name: String,
    /// What it is: one more field, by the name of the kind.
    #[serde(flatten)]
    pub source: SourceReport,
}

/// What an argument is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourceReport {
    /// Elements of a tensor.
    Tensor {
        /// The tensor's name.
        name: String,
        /// Which of its parts: caches and activations of eight bits have scales in parts of their own.
        part: usize,
        /// The first element.
        at: u64,
        /// How many there are.
        len: u64,
    },
    /// A matrix of weights.
    Weights {
        /// The tensor's name.
        name: String,
        /// `rows` or `planes`.
        layout: String,
    },
    /// Memory that only this step needs.
    Scratch {
        /// Its place among the plan's pieces of scratch.
        index: usize,
        /// Its size.
        bytes: u64,
        /// Whether it is zero before and after each launch, and shared by all.
        zeroed: bool,
    },
    /// An unsigned integer.
    U32(u32),
    /// A float.
    F32(f32),
    /// An unknown kind, as the plan writes it.
    Other(String),
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// Elements and shape: `f32 [1 × 2048]`.
    #[serde(rename = "type")]
    pub ty: String,
    /// Where it comes from: `input`, `weight`, `state`, `output`, `intermediate`.
    pub role: String,
    /// Its size as steps have it.
    pub bytes: u64,
    /// For a later version of a state, the state's name.
    pub version_of: Option<String>,
    /// Its offset in the plan's memory, in bytes; none for weights, for states, and for tensors that fusion has
    /// removed.
    pub offset: Option<u64>,
}

/// The memory that a plan needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryReport {
    /// Bytes for inputs, outputs, intermediates and scratch: the peak.
    pub arena_bytes: u64,
    /// The lower bound of `arena_bytes` for any placement.
    pub bound_bytes: u64,
    /// Bytes that are zero before and after each launch.
    pub zeroed_bytes: u64,
    /// Bytes of the weights that the steps read, in the layouts that they need.
    pub weight_bytes: u64,
    /// Bytes of the states.
    pub state_bytes: u64,
    /// Results that replace an operand in memory.
    pub in_place: Vec<InPlaceReport>,
}

/// A result that replaces an operand in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InPlaceReport {
    /// The result.
    pub result: String,
    /// The operand, which is not needed any more.
    pub operand: String,
}

/// Sums of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TotalsReport {
    /// Nodes of the graph.
    pub nodes: usize,
    /// Steps.
    pub steps: usize,
    /// Launches.
    pub launches: usize,
    /// Bytes that the launches move.
    pub bytes: u64,
    /// The peak of the plan's memory.
    pub arena_bytes: u64,
}
