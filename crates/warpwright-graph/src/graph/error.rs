//! Errors in a graph, with their location.

use super::tensor::{Role, TensorType};
use std::fmt;
use thiserror::Error;

/// Why an op does not accept its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpError {
    /// There are too few or too many inputs.
    #[error("it takes {needed} inputs and was given {given}")]
    Arity {
        /// What it takes: `2`, `5 or 6`.
        needed: &'static str,
        /// How many there are.
        given: usize,
    },
    /// An input, or the result, has the wrong elements or shape by itself.
    #[error("`{input}` is {given}, but must be {rule}")]
    Type {
        /// Which input; `result` for what would be made.
        input: &'static str,
        /// What it is.
        given: TensorType,
        /// What it must be.
        rule: String,
    },
    /// The shapes of two inputs are incompatible.
    #[error("`{input}` is {given} and `{other}` is {beside}: {rule}")]
    Shapes {
        /// Which input.
        input: &'static str,
        /// What it is.
        given: TensorType,
        /// The other input.
        other: &'static str,
        /// What that is.
        beside: TensorType,
        /// How they must go together.
        rule: String,
    },
    /// A parameter has a value that the op does not accept, or that contradicts an input.
    #[error("`{parameter}` is {value}: it must be {rule}")]
    Parameter {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },
}

/// What is wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An op does not accept its inputs.
    #[error("node `{node}` ({op}): {error}")]
    Op {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// The mistake.
        error: Box<OpError>,
    },
    /// A tensor belongs to another graph.
    #[error("node `{node}`: input {index} is a tensor of another graph")]
    Foreign {
        /// The node's name.
        node: String,
        /// Which input.
        index: usize,
    },
    /// A tensor belongs to another graph.
    #[error("tensor {index} is one of another graph")]
    OtherGraph {
        /// Its place in the list of that graph's tensors.
        index: usize,
    },
    /// An input, a weight or a state has a type that its role does not allow.
    #[error("{role} `{tensor}` is {ty}, but must be {rule}")]
    Given {
        /// The tensor's name.
        tensor: String,
        /// Its role.
        role: Role,
        /// What it is.
        ty: TensorType,
        /// What it must be.
        rule: String,
    },
    /// The tensor cannot be an output.
    #[error("{role} `{tensor}` cannot be an output: only what a node makes, and no version of a state, can")]
    NoOutput {
        /// The tensor's name.
        tensor: String,
        /// Its role.
        role: Role,
    },
    /// Nodes wait for one another in a cycle.
    #[error("the nodes {} wait for one another", Names(.nodes))]
    Cycle {
        /// Their names: each must come after the one before it, and the first after the last. It takes what that one
        /// makes, or changes a state that that one reads.
        nodes: Vec<String>,
    },
    /// A graph needs a weight that does not exist.
    #[error("there is no weight `{weight}`")]
    Missing {
        /// The weight's name.
        weight: String,
    },
    /// Two nodes change one version of a state.
    #[error(
        "nodes `{first}` and `{second}` both change `{state}`: the second must take what the first makes"
    )]
    Forked {
        /// The state's name.
        state: String,
        /// A node.
        first: String,
        /// The other.
        second: String,
    },
    /// Two tensors that a program finds by name, or two nodes, have the same name.
    #[error("two {what} have the name `{name}`")]
    Name {
        /// What they are: `tensors`, `nodes`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A node changes one state twice.
    #[error("node `{node}` ({op}) takes `{state}` twice to change it")]
    ChangedTwice {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// The state's name.
        state: String,
    },
    /// The tensor to change is not a state.
    #[error("node `{node}` ({op}) would change `{tensor}`, which is no state")]
    NoState {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// The tensor's name.
        tensor: String,
    },
}

struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|name| format!("`{name}`")).collect();
        f.write_str(&names.join(", "))
    }
}
