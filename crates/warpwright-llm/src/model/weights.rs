//! The tensors of a file: those that its model requires, optional ones, and no others.

use super::error::ModelError;
use super::spec::ModelSpec;
use super::tensors::ExpectedTensor;
use crate::gguf::{Gguf, TensorInfo};
use std::collections::BTreeMap;
use warpwright_graph::{Element, TensorType};
use warpwright_kernels::WeightFormat;

/// The weights of a model with their types, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Weights(BTreeMap<String, TensorType>);

/// How names of matrices end, and of the tensors beside them.
const WEIGHT: &str = ".weight";
const SCALE: &str = ".scale";
const INPUT_SCALE: &str = ".input_scale";

/// The name of the scale of a matrix, an `f32` beside it in the file.
pub(super) fn scale_name(matrix: &str) -> String {
    format!("{}{SCALE}", matrix.strip_suffix(WEIGHT).unwrap_or(matrix))
}

impl Weights {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.0.iter().map(|(name, &ty)| (name.as_str(), ty))
    }

    pub(super) fn get(&self, name: &str) -> Option<TensorType> {
        self.0.get(name).copied()
    }

    /// The weights of a file.
    ///
    /// # Errors
    ///
    /// Where a tensor is missing, is not what it must be, or is none of these.
    pub(super) fn find(
        gguf: &Gguf,
        architecture: &'static str,
        spec: &ModelSpec,
    ) -> Result<Weights, ModelError> {
        let mut weights = Weights::default();
        for expected in spec.tensors() {
            weights.take(gguf, expected)?;
        }
        for tensor in gguf.tensors() {
            let Some((matrix, format)) = weights.of_scale(&tensor.name) else { continue };
            if !format.has_tensor_scale() {
                let (tensor, matrix) = (tensor.name.clone(), matrix.into());
                return Err(ModelError::NoScale { tensor, matrix, format });
            }
            checked(tensor, &[1])?;
        }
        let known = |name: &str| weights.0.contains_key(name) || weights.of_scale(name).is_some();
        match gguf.tensors().iter().find(|tensor| !known(&tensor.name)) {
            None => Ok(weights),
            Some(tensor) => Err(ModelError::UnexpectedTensor { tensor: tensor.name.clone(), architecture }),
        }
    }

    /// The matrix beside which a tensor stands as its scale, or as that of activations of four bits.
    fn of_scale(&self, name: &str) -> Option<(&str, WeightFormat)> {
        let matrix = name.strip_suffix(SCALE).or_else(|| name.strip_suffix(INPUT_SCALE))?;
        let (matrix, ty) = self.0.get_key_value(&format!("{matrix}{WEIGHT}"))?;
        match ty.element {
            Element::Weights(format) => Some((matrix, format)),
            _ => None,
        }
    }

    fn take(&mut self, gguf: &Gguf, expected: ExpectedTensor) -> Result<(), ModelError> {
        let ExpectedTensor { name, dims, required } = expected;
        match gguf.tensor(&name) {
            Some(tensor) => {
                let ty = checked(tensor, &dims)?;
                self.0.insert(name, ty);
                Ok(())
            }
            None if !required => Ok(()),
            None => Err(ModelError::MissingTensor { tensor: name, shape: shape(&wide(&dims)) }),
        }
    }
}

fn wide(dims: &[u32]) -> Vec<u64> {
    dims.iter().copied().map(u64::from).collect()
}

/// Formats of vectors: they become `f32`.
const FLOATS: [WeightFormat; 3] = [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16];

/// The type of a tensor that is what it must be: a vector, or a matrix of rows.
fn checked(tensor: &TensorInfo, expected: &[u32]) -> Result<TensorType, ModelError> {
    // A file has the length of rows first, and may leave out last dimensions of one, or write them.
    let dims: Vec<u64> = tensor.dims.iter().rev().copied().collect();
    if without_ones(&dims) != without_ones(&wide(expected)) {
        return Err(ModelError::Shape {
            tensor: tensor.name.clone(),
            shape: shape(&dims),
            expected: shape(&wide(expected)),
        });
    }
    let known: &[WeightFormat] = if expected.len() > 1 { &WeightFormat::ALL } else { &FLOATS };
    let format = tensor.ty.weight_format().filter(|format| known.contains(format));
    let format = format.ok_or_else(|| ModelError::Format {
        tensor: tensor.name.clone(),
        format: tensor.ty.to_string(),
        known: known.iter().map(|format| format.name()).collect::<Vec<_>>().join(", "),
    })?;
    let [n, k] = match *expected {
        [ref rows @ .., k] if !rows.is_empty() => {
            [rows.iter().fold(1, |n: u32, &rows| n.saturating_mul(rows)), k]
        }
        _ => return Ok(TensorType::f32([expected.first().copied().unwrap_or(1)])),
    };
    match k.is_multiple_of(format.block()) {
        true => Ok(TensorType::new(Element::Weights(format), [n, k])),
        false => Err(ModelError::Row { tensor: tensor.name.clone(), columns: k, format }),
    }
}

/// A shape from its first dimension on that is not one; of a single number, none.
fn without_ones(dims: &[u64]) -> &[u64] {
    let ones = dims.iter().take_while(|&&dim| dim == 1).count();
    &dims[ones..]
}

/// A shape for people, the length of rows last: `[512 × 256]`.
fn shape(dims: &[u64]) -> String {
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("[{}]", dims.join(" × "))
}
