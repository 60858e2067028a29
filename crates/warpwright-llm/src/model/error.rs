//! Why a file's model is not one of these.

use super::missing::Block;
use crate::gguf::GgufError;
use warpwright_kernels::WeightFormat;

/// Why a file has no model that can be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A parameter is missing, or has another type than it must have.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// Another architecture than those of [`Architecture::ALL`](super::Architecture::ALL).
    #[error("architecture `{name}` is not known; these are: {known}")]
    Architecture {
        /// What the file says.
        name: String,
        /// The names of those that are known.
        known: String,
    },
    /// The model has blocks that are not computed yet.
    #[error("architecture `{architecture}` is known, but this model needs what is not computed yet: {}", list(.blocks))]
    Needs {
        /// The architecture.
        architecture: &'static str,
        /// The blocks, each once.
        blocks: Vec<Block>,
    },
    /// A parameter has a value that it may not have, by itself or beside others.
    #[error("`{key}` is {value}: it must be {rule}")]
    Parameter {
        /// Its key in the metadata.
        key: String,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// A parameter asks for what is not computed.
    #[error("`{key}` is {value}: {what}, which is not supported")]
    Unsupported {
        /// Its key in the metadata.
        key: String,
        /// Its value.
        value: String,
        /// What it asks for.
        what: &'static str,
    },
    /// A tensor is not there.
    #[error("tensor `{tensor}` is missing; it is {shape}")]
    MissingTensor {
        /// Its name.
        tensor: String,
        /// The shape that it must have, the length of rows last.
        shape: String,
    },
    /// A tensor has another shape than the parameters say.
    #[error("tensor `{tensor}` is {shape}; by the metadata it must be {expected}")]
    Shape {
        /// Its name.
        tensor: String,
        /// Its shape in the file, the length of rows last.
        shape: String,
        /// The shape that it must have.
        expected: String,
    },
    /// A tensor is stored in a format that kernels do not read.
    #[error("tensor `{tensor}` is stored as {format}; it must be one of {known}")]
    Format {
        /// Its name.
        tensor: String,
        /// The format.
        format: String,
        /// Those that it may be stored in.
        known: String,
    },
    /// Rows of a matrix are not whole blocks.
    #[error("tensor `{tensor}` has rows of {columns} weights; in {format} they must be a multiple of {}", .format.block())]
    Row {
        /// Its name.
        tensor: String,
        /// Weights of a row.
        columns: u32,
        /// The format.
        format: WeightFormat,
    },
    /// A tensor is there that no model of the architecture has, or that is not computed. The result without it would
    /// be another one.
    #[error(
        "tensor `{tensor}` has no place in the models of architecture `{architecture}` that are supported"
    )]
    UnexpectedTensor {
        /// Its name.
        tensor: String,
        /// The architecture.
        architecture: &'static str,
    },
    /// A scale is beside a matrix whose format has none.
    #[error(
        "`{tensor}` is a scale of `{matrix}`, which is stored as {format}: matrices of nvfp4 alone have one"
    )]
    NoScale {
        /// The tensor with the scale.
        tensor: String,
        /// The matrix.
        matrix: String,
        /// How the matrix is stored.
        format: WeightFormat,
    },
    /// The scale of a matrix is no number that one may have.
    #[error("`{tensor}` is {value}; the scale of a matrix must be a finite number")]
    Scale {
        /// The tensor with the scale.
        tensor: String,
        /// What it holds.
        value: f32,
    },
    /// Factors of frequencies that no rotation has.
    #[error("`rope_freqs.weight` has {value} for pair {pair}; factors must be finite, from 1/64 on")]
    Factor {
        /// Which pair.
        pair: usize,
        /// Its factor.
        value: f32,
    },
}

fn list(blocks: &[Block]) -> String {
    blocks.iter().map(Block::to_string).collect::<Vec<_>>().join(", ")
}
