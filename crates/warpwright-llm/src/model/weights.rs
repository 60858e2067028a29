//! The tensors of a model: which must be there, which may, and that there are no others.

use super::architecture::Architecture;
use super::config::Sizes;
use super::error::ModelError;
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

/// What a tensor must be.
#[derive(Clone, Copy)]
enum Expected {
    /// `n` rows of `k` weights.
    Matrix {
        n: u32,
        k: u32,
    },
    Vector {
        len: u32,
    },
}

/// Whether a tensor must be there.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    Required,
    Optional,
}

use Expected::{Matrix, Vector};
use Need::{Optional, Required};

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
        architecture: &'static Architecture,
        sizes: Sizes,
        rotary_dim: u32,
    ) -> Result<Weights, ModelError> {
        let Sizes { hidden, vocab, .. } = sizes;
        let mut weights = Weights::default();
        let global = [
            ("token_embd.weight", Matrix { n: vocab, k: hidden }, Required),
            ("output_norm.weight", Vector { len: hidden }, Required),
            ("output.weight", Matrix { n: vocab, k: hidden }, Optional),
            ("output.bias", Vector { len: vocab }, Optional),
            ("rope_freqs.weight", Vector { len: rotary_dim / 2 }, Optional),
        ];
        for (name, expected, need) in global {
            weights.take(gguf, name.into(), expected, need)?;
        }
        for layer in 0..sizes.layers {
            for (part, expected, need) in parts(architecture, sizes) {
                weights.take(gguf, format!("blk.{layer}.{part}"), expected, need)?;
            }
        }
        for tensor in gguf.tensors() {
            let Some((matrix, format)) = weights.of_scale(&tensor.name) else { continue };
            if !format.has_tensor_scale() {
                let (tensor, matrix) = (tensor.name.clone(), matrix.into());
                return Err(ModelError::NoScale { tensor, matrix, format });
            }
            checked(tensor, Vector { len: 1 })?;
        }
        let known = |name: &str| weights.0.contains_key(name) || weights.of_scale(name).is_some();
        match gguf.tensors().iter().find(|tensor| !known(&tensor.name)) {
            None => Ok(weights),
            Some(tensor) => Err(ModelError::UnexpectedTensor {
                tensor: tensor.name.clone(),
                architecture: architecture.name,
            }),
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

    fn take(&mut self, gguf: &Gguf, name: String, expected: Expected, need: Need) -> Result<(), ModelError> {
        match gguf.tensor(&name) {
            Some(tensor) => {
                let ty = checked(tensor, expected)?;
                self.0.insert(name, ty);
                Ok(())
            }
            None if need == Optional => Ok(()),
            None => Err(ModelError::MissingTensor { tensor: name, shape: shape(&expected.dims()) }),
        }
    }
}

/// The tensors of a layer.
fn parts(architecture: &Architecture, sizes: Sizes) -> impl Iterator<Item = (&'static str, Expected, Need)> {
    let Sizes { hidden, heads, kv_heads, head_dim, ffn, .. } = sizes;
    let [q, kv] = [heads, kv_heads].map(|heads| heads.saturating_mul(head_dim));
    let all = [
        ("attn_norm.weight", Vector { len: hidden }, Required),
        ("attn_q.weight", Matrix { n: q, k: hidden }, Required),
        ("attn_q.bias", Vector { len: q }, Optional),
        ("attn_k.weight", Matrix { n: kv, k: hidden }, Required),
        ("attn_k.bias", Vector { len: kv }, Optional),
        ("attn_v.weight", Matrix { n: kv, k: hidden }, Required),
        ("attn_v.bias", Vector { len: kv }, Optional),
        ("attn_output.weight", Matrix { n: hidden, k: q }, Required),
        ("attn_output.bias", Vector { len: hidden }, Optional),
        ("ffn_norm.weight", Vector { len: hidden }, Required),
        ("ffn_gate.weight", Matrix { n: ffn, k: hidden }, Required),
        ("ffn_gate.bias", Vector { len: ffn }, Optional),
        ("ffn_up.weight", Matrix { n: ffn, k: hidden }, Required),
        ("ffn_up.bias", Vector { len: ffn }, Optional),
        ("ffn_down.weight", Matrix { n: hidden, k: ffn }, Required),
        ("ffn_down.bias", Vector { len: hidden }, Optional),
    ];
    let norms = ["attn_q_norm.weight", "attn_k_norm.weight"];
    let norms = norms.map(|name| (name, Vector { len: head_dim }, Required));
    all.into_iter().chain(norms.into_iter().filter(|_| architecture.head_norms))
}

impl Expected {
    fn dims(self) -> Vec<u64> {
        match self {
            Matrix { n, k } => vec![n.into(), k.into()],
            Vector { len } => vec![len.into()],
        }
    }
}

/// Formats of vectors: they become `f32`.
const FLOATS: [WeightFormat; 3] = [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16];

/// The type of a tensor that is what it must be.
fn checked(tensor: &TensorInfo, expected: Expected) -> Result<TensorType, ModelError> {
    // A file has the length of rows first, and may leave out last dimensions of one, or write them.
    let dims: Vec<u64> = tensor.dims.iter().rev().copied().collect();
    if without_ones(&dims) != without_ones(&expected.dims()) {
        return Err(ModelError::Shape {
            tensor: tensor.name.clone(),
            shape: shape(&dims),
            expected: shape(&expected.dims()),
        });
    }
    let known: &[WeightFormat] = match expected {
        Matrix { .. } => &WeightFormat::ALL,
        Vector { .. } => &FLOATS,
    };
    let format = tensor.ty.weight_format().filter(|format| known.contains(format));
    let format = format.ok_or_else(|| ModelError::Format {
        tensor: tensor.name.clone(),
        format: tensor.ty.to_string(),
        known: known.iter().map(|format| format.name()).collect::<Vec<_>>().join(", "),
    })?;
    match expected {
        Matrix { n, k } if k.is_multiple_of(format.block()) => {
            Ok(TensorType::new(Element::Weights(format), [n, k]))
        }
        Matrix { k, .. } => Err(ModelError::Row { tensor: tensor.name.clone(), columns: k, format }),
        Vector { len } => Ok(TensorType::f32([len])),
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
