//! What is wrong with a graph, and where.

use super::tensor::{Role, TensorType};
use std::fmt;
use thiserror::Error;

/// Why an op does not take its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpError {
    /// There are too few or too many.
    #[error("it takes {needed} inputs and was given {given}")]
    Arity {
        /// What it takes: `2`, `5 or 6`.
        needed: &'static str,
        /// How many there are.
        given: usize,
    },
    /// An input, or what would be made of them, has the wrong elements or shape by itself.
    #[error("`{input}` is {given}, but must be {rule}")]
    Type {
        /// Which input; `result` for what would be made.
        input: &'static str,
        /// What it is.
        given: TensorType,
        /// What it must be.
        rule: String,
    },
    /// The shapes of two inputs do not go together.
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
    /// A parameter has a value that the op does not take, or that an input contradicts.
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
    /// An op does not take its inputs.
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
    #[error("node `{node}`: {what} {index} is a tensor of another graph")]
    Foreign {
        /// The node's name.
        node: String,
        /// `input` or `output`.
        what: &'static str,
        /// Which of them.
        index: usize,
    },
    /// A tensor belongs to another graph.
    #[error("tensor {index} is one of another graph")]
    OtherGraph {
        /// Its place in the list of that graph's tensors.
        index: usize,
    },
    /// An input, a weight or a state is what none can be.
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
    /// No output can be such a tensor.
    #[error("{role} `{tensor}` cannot be an output: only what a node makes, and no version of a state, can")]
    NoOutput {
        /// The tensor's name.
        tensor: String,
        /// Its role.
        role: Role,
    },
    /// A version is declared of what is no state.
    #[error("{role} `{tensor}` has no versions: only a state has")]
    NotAState {
        /// The tensor's name.
        tensor: String,
        /// Its role.
        role: Role,
    },
    /// A node is defined with too few or too many outputs.
    #[error("node `{node}` ({op}) makes {made} tensors and was given {declared}")]
    Outputs {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// How many were declared.
        declared: usize,
        /// How many it makes.
        made: usize,
    },
    /// A node's declared output is not what the op makes.
    #[error("node `{node}` ({op}): output {index} is declared as {declared}, but is {inferred}")]
    Output {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// Which output.
        index: usize,
        /// What was declared.
        declared: TensorType,
        /// What the op makes.
        inferred: TensorType,
    },
    /// A node's declared output is a version of another state than the one that it changes.
    #[error(
        "node `{node}` ({op}): output {index} is declared as {}, but is {}",
        Version(.declared), Version(.changed)
    )]
    Version {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// Which output.
        index: usize,
        /// The state of which the output is declared as a version.
        declared: Option<String>,
        /// The state that the node changes.
        changed: Option<String>,
    },
    /// A tensor is used, but nothing makes it.
    #[error(
        "node `{node}` ({op}) takes `{tensor}`, which no node makes: it must be an input, a weight, a state, or a node's output"
    )]
    Missing {
        /// The node's name.
        node: String,
        /// The op's name.
        op: &'static str,
        /// The tensor's name.
        tensor: String,
    },
    /// An output that nothing makes.
    #[error("output `{tensor}` is made by no node")]
    MissingOutput {
        /// The tensor's name.
        tensor: String,
    },
    /// Two nodes make one tensor, or a node makes one that is given.
    #[error("node `{node}` makes `{tensor}`, which {by} makes already")]
    MadeTwice {
        /// The node's name.
        node: String,
        /// The tensor's name.
        tensor: String,
        /// What makes it first.
        by: String,
    },
    /// Nodes wait for one another.
    #[error("the nodes {} wait for one another", Names(.nodes))]
    Cycle {
        /// Their names: each must come after the one before it, and the first after the last. It takes what that one
        /// makes, or changes a state that that one reads.
        nodes: Vec<String>,
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
    /// A name is given to two tensors that a program knows by it, or to two nodes.
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
    /// What is changed is no state.
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

struct Version<'a>(&'a Option<String>);

impl fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(state) => write!(f, "a version of `{state}`"),
            None => f.write_str("a tensor of its own"),
        }
    }
}

struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|name| format!("`{name}`")).collect();
        f.write_str(&names.join(", "))
    }
}
