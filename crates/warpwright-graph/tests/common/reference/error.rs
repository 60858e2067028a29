//! Why a graph was not executed.

use thiserror::Error;
use warpwright_graph::{GraphError, Role, TensorType};

/// Why a graph was not executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ReferenceError {
    /// The graph cannot be run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A weight or an input was not given.
    #[error("{role} `{name}` is not given")]
    Missing {
        /// What it is.
        role: Role,
        /// Its name.
        name: String,
    },
    /// A weight has more or fewer bytes than its type.
    #[error("weight `{name}` has {given} bytes: {ty} has {needed}")]
    Bytes {
        /// Its name.
        name: String,
        /// Its type.
        ty: TensorType,
        /// Its bytes.
        given: usize,
        /// The bytes that its type has.
        needed: u64,
    },
    /// A weight or a state has another type in memory than in the graph.
    #[error("{role} `{name}` is {ty} in the graph, but in memory {known}")]
    Type {
        /// What it is.
        role: Role,
        /// Its name.
        name: String,
        /// Its type in the graph.
        ty: TensorType,
        /// Its type in memory.
        known: TensorType,
    },
    /// A tensor of the type cannot be that.
    #[error("`{tensor}` is {ty}, and cannot be {given}")]
    Value {
        /// The tensor's name.
        tensor: String,
        /// Its type.
        ty: TensorType,
        /// What it should be.
        given: String,
    },
    /// A number that says where to read or write is out of bounds.
    #[error("node `{node}` ({op}): `{input}` has {value}: it must be {rule}")]
    Bounds {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// Which input.
        input: &'static str,
        /// The number.
        value: u64,
        /// What it must be.
        rule: String,
    },
}
