//! Properties of a model: sizes and parameters from the metadata, and its tensors.

use super::architecture::Architecture;
use super::error::ModelError;
use super::spec::{AttentionSpec, ModelSpec};
use super::weights::Weights;
use crate::gguf::Gguf;
use warpwright_graph::{RopeParams, TensorType};

/// A model, as its file describes it.
///
/// Only [`from_gguf`](Self::from_gguf) makes one, and its contents are consistent: sizes are not zero, and every tensor
/// of the architecture exists with the shape that the sizes require.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    architecture: &'static Architecture,
    spec: ModelSpec,
    /// The attention of the first layer, whose sizes all have.
    attention: AttentionSpec,
    /// Elements between the products of a feed-forward network.
    ffn: u32,
    rope: RopeParams,
    weights: Weights,
}

impl ModelConfig {
    /// The model of a file.
    ///
    /// # Errors
    ///
    /// [`ModelError`], which names the key, the block or the tensor: for an unknown architecture, missing or
    /// contradictory parameters, unsupported blocks, and tensors that are missing, do not match the parameters, or are
    /// unused.
    pub fn from_gguf(gguf: &Gguf) -> Result<ModelConfig, ModelError> {
        let (architecture, spec, too_many) = ModelSpec::read(gguf)?;
        let needs = |blocks| ModelError::Needs { architecture: architecture.name, blocks };
        let blocks = spec.missing();
        let parts = if blocks.is_empty() { spec.parts() } else { None };
        let Some((attention, rope, ffn)) = parts else { return Err(needs(blocks)) };
        let weights = Weights::find(gguf, architecture.name, &spec)?;
        too_many.map_or(Ok(ModelConfig { architecture, attention, ffn, rope, spec, weights }), Err)
    }

    /// The architecture.
    pub fn architecture(&self) -> &'static Architecture {
        self.architecture
    }

    /// The specification of the model, layer by layer.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Layers.
    pub fn layers(&self) -> u32 {
        self.spec.layers.len() as u32
    }

    /// Elements of a token's vector between layers.
    pub fn hidden(&self) -> u32 {
        self.spec.hidden
    }

    /// Query heads.
    pub fn heads(&self) -> u32 {
        self.attention.heads
    }

    /// Heads of keys and values.
    pub fn kv_heads(&self) -> u32 {
        self.attention.kv_heads
    }

    /// Elements of a head.
    pub fn head_dim(&self) -> u32 {
        self.attention.head_dim
    }

    /// Elements between the two products of a feed-forward network.
    pub fn ffn(&self) -> u32 {
        self.ffn
    }

    /// Tokens of the vocabulary: rows of the embedding table.
    pub fn vocab(&self) -> u32 {
        self.spec.vocab
    }

    /// The epsilon of norms, added to the mean square.
    pub fn epsilon(&self) -> f32 {
        self.spec.norm.epsilon
    }

    /// The parameters of the rotation.
    pub fn rope(&self) -> RopeParams {
        self.rope
    }

    /// The scale of attention scores.
    pub fn attention_scale(&self) -> f32 {
        self.attention.scale
    }

    /// The context length of the training, as in the file.
    pub fn context_length(&self) -> u32 {
        self.spec.context_length
    }

    /// The sliding window: the maximum number of tokens that a token attends to, if the file has one.
    pub fn sliding_window(&self) -> Option<u32> {
        self.attention.mask.window
    }

    /// The longest sequence for which the graphs are correct: the context length of the training, but not more than the
    /// sliding window, because all tokens are attended to.
    pub fn max_context(&self) -> u32 {
        self.context_length().min(self.sliding_window().unwrap_or(u32::MAX))
    }

    /// Whether the logits use the embedding table as their matrix.
    pub fn is_tied(&self) -> bool {
        self.weight_type("output.weight").is_none()
    }

    /// The weights with their types, by their names in the file.
    pub fn weights(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.weights.iter()
    }

    /// The type of a weight, if the model has it.
    pub fn weight_type(&self, name: &str) -> Option<TensorType> {
        self.weights.get(name)
    }

    /// Number of learnt parameters, and of numbers stored like them.
    pub fn parameters(&self) -> u64 {
        self.weights().map(|(_, ty)| ty.shape.elements()).fold(0, u64::saturating_add)
    }
}
