//! Errors of models in files.

use super::missing::Block;
use crate::gguf::GgufError;
use warpwright_kernels::WeightFormat;

/// Why a file has no model that can be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A parameter is missing or has the wrong type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// An architecture that is not in [`Architecture::ALL`](super::Architecture::ALL).
    #[error("architecture `{name}` is not known; these are: {known}")]
    Architecture {
        /// What the file says.
        name: String,
        /// The names of those that are known.
        known: String,
    },
    /// The model has unsupported blocks.
    #[error("architecture `{architecture}` is known, but this model needs what is not computed yet: {}", list(.blocks))]
    Needs {
        /// The architecture.
        architecture: &'static str,
        /// The blocks, each once.
        blocks: Vec<Block>,
    },
    /// A parameter has an invalid value, by itself or together with others.
    #[error("`{key}` is {value}: it must be {rule}")]
    Parameter {
        /// Its key in the metadata.
        key: String,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// A parameter requires an unsupported computation.
    #[error("`{key}` is {value}: {what}, which is not supported")]
    Unsupported {
        /// Its key in the metadata.
        key: String,
        /// Its value.
        value: String,
        /// What it asks for.
        what: &'static str,
    },
    /// A tensor is missing.
    #[error("tensor `{tensor}` is missing; it is {shape}")]
    MissingTensor {
        /// Its name.
        tensor: String,
        /// The shape that it must have, the length of rows last.
        shape: String,
    },
    /// A tensor's shape does not match the parameters.
    #[error("tensor `{tensor}` is {shape}; by the metadata it must be {expected}")]
    Shape {
        /// Its name.
        tensor: String,
        /// Its shape in the file, the length of rows last.
        shape: String,
        /// The shape that it must have.
        expected: String,
    },
    /// A tensor has a format that kernels do not read.
    #[error("tensor `{tensor}` is stored as {format}; it must be one of {known}")]
    Format {
        /// Its name.
        tensor: String,
        /// The format.
        format: String,
        /// Those that it may be stored in.
        known: String,
    },
    /// Rows of a matrix do not consist of whole blocks.
    #[error("tensor `{tensor}` has rows of {columns} weights; in {format} they must be a multiple of {}", .format.block())]
    Row {
        /// Its name.
        tensor: String,
        /// Weights of a row.
        columns: u32,
        /// The format.
        format: WeightFormat,
    },
    /// An unexpected tensor, which the architecture does not have or which is not supported. Ignoring it would change
    /// the result.
    #[error(
        "tensor `{tensor}` has no place in the models of architecture `{architecture}` that are supported"
    )]
    UnexpectedTensor {
        /// Its name.
        tensor: String,
        /// The architecture.
        architecture: &'static str,
    },
    /// A matrix has a separate scale, but its format has none.
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
    /// The scale of a matrix has an invalid value.
    #[error("`{tensor}` is {value}; the scale of a matrix must be a finite number")]
    Scale {
        /// The tensor with the scale.
        tensor: String,
        /// What it holds.
        value: f32,
    },
    /// Frequency factors have invalid values.
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
