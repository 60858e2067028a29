//! What is known of a model: its sizes and parameters by the metadata, and its tensors.

use super::architecture::Architecture;
use super::error::ModelError;
use super::spec::{AttentionSpec, ModelSpec};
use super::weights::Weights;
use crate::gguf::Gguf;
use warpwright_graph::{RopeParams, TensorType};

/// A model, as its file describes it.
///
/// It is only made by [`from_gguf`](Self::from_gguf), and holds what was found to be consistent: sizes are not zero,
/// and every tensor of the architecture is there, with the shape that the sizes say.
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
    /// [`ModelError`], which names the key, the block or the tensor: for an architecture that is not known, parameters
    /// that are missing or contradict one another, what is not computed, and tensors that are missing, that are not
    /// what parameters say, or that no part of the model takes.
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

    /// What the model is, layer by layer.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Layers.
    pub fn layers(&self) -> u32 {
        self.spec.layers.len() as u32
    }

    /// Elements of the vector that stands for a token between layers.
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

    /// Tokens of the vocabulary: rows of the table of embeddings.
    pub fn vocab(&self) -> u32 {
        self.spec.vocab
    }

    /// What is added to the mean square in norms.
    pub fn epsilon(&self) -> f32 {
        self.spec.norm.epsilon
    }

    /// How heads turn.
    pub fn rope(&self) -> RopeParams {
        self.rope
    }

    /// What scores are multiplied by.
    pub fn attention_scale(&self) -> f32 {
        self.attention.scale
    }

    /// The longest sequence of the training, as the file says.
    pub fn context_length(&self) -> u32 {
        self.spec.context_length
    }

    /// How many tokens a token sees at most, where the file says so.
    pub fn sliding_window(&self) -> Option<u32> {
        self.attention.mask.window
    }

    /// The longest sequence for which the graphs compute what the model means: that of the training, and not more
    /// than the sliding window, since all tokens are attended to.
    pub fn max_context(&self) -> u32 {
        self.context_length().min(self.sliding_window().unwrap_or(u32::MAX))
    }

    /// Whether logits are products with the table of embeddings.
    pub fn is_tied(&self) -> bool {
        self.weight_type("output.weight").is_none()
    }

    /// The weights with their types, by the names that they have in the file.
    pub fn weights(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.weights.iter()
    }

    /// The type of a weight, if the model has it.
    pub fn weight_type(&self, name: &str) -> Option<TensorType> {
        self.weights.get(name)
    }

    /// Numbers that were learnt, or are there as if they were.
    pub fn parameters(&self) -> u64 {
        self.weights().map(|(_, ty)| ty.shape.elements()).fold(0, u64::saturating_add)
    }
}
