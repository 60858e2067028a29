//! What is wrong with a graph, and where.

use super::tensor::TensorType;
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
    /// An input has elements of a wrong kind.
    #[error("`{input}` is {given}, but must be {rule}")]
    Element {
        /// Which input.
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
    #[error("node `{node}`: input {index} is a tensor of another graph")]
    Foreign {
        /// The node's name.
        node: String,
        /// Which input.
        index: usize,
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
        /// Their names, each of which takes what the one before it makes.
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

struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|name| format!("`{name}`")).collect();
        f.write_str(&names.join(", "))
    }
}
