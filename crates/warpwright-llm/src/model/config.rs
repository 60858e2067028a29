//! What is known of a model: its sizes and parameters by the metadata, and its tensors.

use super::architecture::Architecture;
use super::error::ModelError;
use super::keys::Keys;
use super::rope::Rotation;
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
    sizes: Sizes,
    rotation: Rotation,
    epsilon: f32,
    context_length: u32,
    sliding_window: Option<u32>,
    weights: Weights,
}

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) layers: u32,
    pub(super) hidden: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) head_dim: u32,
    pub(super) ffn: u32,
    pub(super) vocab: u32,
}

/// Parameters by which some models differ from what is computed here, and the values with which they do not.
const NEUTRAL: &[(&str, &[f32], &str)] = &[
    ("expert_count", &[0.0], "a mixture of experts"),
    ("nextn_predict_layers", &[0.0], "layers that predict several tokens"),
    ("attention.causal", &[1.0], "attention to later tokens"),
    ("attention.scale", &[0.0], "another scale of scores than 1 / √head_dim"),
    ("attention.clamp_kqv", &[0.0], "queries, keys and values that are clamped"),
    ("attention.max_alibi_bias", &[0.0], "ALiBi positions"),
    ("attention.temperature_scale", &[0.0], "scores that depend on positions"),
    ("attention.output_scale", &[0.0, 1.0], "scaled results of attention"),
    ("attention.value_scale", &[0.0, 1.0], "scaled values"),
    ("attention.shared_kv_layers", &[0.0], "layers that share their cache"),
    ("attn_logit_softcapping", &[0.0], "capped scores"),
    ("final_logit_softcapping", &[0.0], "capped logits"),
    ("logit_scale", &[0.0, 1.0], "scaled logits"),
    ("residual_scale", &[0.0, 1.0], "scaled residuals"),
    ("embedding_scale", &[0.0, 1.0], "scaled embeddings"),
    ("num_loops", &[0.0, 1.0], "layers that are gone through several times"),
];

impl ModelConfig {
    /// The model of a file.
    ///
    /// # Errors
    ///
    /// [`ModelError`], which names the key or the tensor: for an architecture that is not known, parameters that are
    /// missing or contradict one another, what is not supported, and tensors that are missing, that are not what
    /// parameters say, or that no part of the model takes.
    pub fn from_gguf(gguf: &Gguf) -> Result<ModelConfig, ModelError> {
        let architecture = Architecture::named(gguf.metadata().str("general.architecture")?)?;
        let keys = Keys::new(gguf.metadata(), architecture.name);
        for &(key, neutral, what) in NEUTRAL {
            keys.neutral(key, neutral, what)?;
        }
        let sizes = Sizes::read(&keys, gguf)?;
        let epsilon = keys.f32("attention.layer_norm_rms_epsilon")?;
        if !(0.0..=1e30).contains(&epsilon) {
            return Err(keys.parameter("attention.layer_norm_rms_epsilon", epsilon, "from 0 to 1e30"));
        }
        let context_length = keys.size("context_length")?;
        let sliding_window = keys.optional_u32("attention.sliding_window")?.filter(|&window| window > 0);
        let rotation = Rotation::read(&keys, architecture, sizes.head_dim, context_length)?;
        let weights = Weights::find(gguf, architecture, sizes, rotation.params.rotary_dim)?;
        Ok(ModelConfig { architecture, sizes, rotation, epsilon, context_length, sliding_window, weights })
    }

    /// The architecture.
    pub fn architecture(&self) -> &'static Architecture {
        self.architecture
    }

    /// Layers.
    pub fn layers(&self) -> u32 {
        self.sizes.layers
    }

    /// Elements of the vector that stands for a token between layers.
    pub fn hidden(&self) -> u32 {
        self.sizes.hidden
    }

    /// Query heads.
    pub fn heads(&self) -> u32 {
        self.sizes.heads
    }

    /// Heads of keys and values.
    pub fn kv_heads(&self) -> u32 {
        self.sizes.kv_heads
    }

    /// Elements of a head.
    pub fn head_dim(&self) -> u32 {
        self.sizes.head_dim
    }

    /// Elements between the two products of a feed-forward network.
    pub fn ffn(&self) -> u32 {
        self.sizes.ffn
    }

    /// Tokens of the vocabulary: rows of the table of embeddings.
    pub fn vocab(&self) -> u32 {
        self.sizes.vocab
    }

    /// What is added to the mean square in norms.
    pub fn epsilon(&self) -> f32 {
        self.epsilon
    }

    /// How heads turn.
    pub fn rope(&self) -> RopeParams {
        self.rotation.params
    }

    /// What scores are multiplied by.
    pub fn attention_scale(&self) -> f32 {
        self.rotation.attention_scale
    }

    /// The longest sequence of the training, as the file says.
    pub fn context_length(&self) -> u32 {
        self.context_length
    }

    /// How many tokens a token sees at most, where the file says so.
    pub fn sliding_window(&self) -> Option<u32> {
        self.sliding_window
    }

    /// The longest sequence for which the graphs compute what the model means: that of the training, and not more
    /// than the sliding window, since all tokens are attended to.
    pub fn max_context(&self) -> u32 {
        self.context_length.min(self.sliding_window.unwrap_or(u32::MAX))
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

/// The most elements of a head that kernels of attention take.
const MOST_HEAD_DIM: u32 = 256;

impl Sizes {
    fn read(keys: &Keys<'_>, gguf: &Gguf) -> Result<Sizes, ModelError> {
        let layers = keys.size("block_count")?;
        let hidden = keys.size("embedding_length")?;
        let heads = keys.size_of_layers("attention.head_count")?;
        let kv_heads = match keys.has("attention.head_count_kv") {
            true => keys.size_of_layers("attention.head_count_kv")?,
            false => heads,
        };
        if !heads.is_multiple_of(kv_heads) {
            let rule = format!("a divisor of the {heads} heads of queries");
            return Err(keys.parameter("attention.head_count_kv", kv_heads, rule));
        }
        let head_dim = Self::head_dim(keys, hidden, heads)?;
        let ffn = keys.size_of_layers("feed_forward_length")?;
        let table = gguf.tensor("token_embd.weight");
        let rows = table.and_then(|table| u32::try_from(table.rows()).ok());
        let vocab = match keys.optional_u32("vocab_size")? {
            Some(vocab) => vocab,
            None => rows.unwrap_or(1),
        };
        if vocab == 0 {
            return Err(keys.parameter("vocab_size", vocab, "1 or more"));
        }
        Ok(Sizes { layers, hidden, heads, kv_heads, head_dim, ffn, vocab })
    }

    fn head_dim(keys: &Keys<'_>, hidden: u32, heads: u32) -> Result<u32, ModelError> {
        let [key, value] = ["attention.key_length", "attention.value_length"];
        let given = [keys.optional_u32(key)?, keys.optional_u32(value)?];
        let shared = match given {
            [Some(_), Some(_)] => 0,
            _ if hidden.is_multiple_of(heads) => hidden / heads,
            _ => {
                let rule = format!("a multiple of the {heads} heads where there is no `{key}` and `{value}`");
                return Err(keys.parameter("embedding_length", hidden, rule));
            }
        };
        let [keys_len, values_len] = given.map(|given| given.unwrap_or(shared));
        if keys_len != values_len {
            let rule = format!("{keys_len}, the length of keys: other values are not supported");
            return Err(keys.parameter(value, values_len, rule));
        }
        let rule = format!("an even number from 2 to {MOST_HEAD_DIM}: there are no kernels for other heads");
        if !(2..=MOST_HEAD_DIM).contains(&keys_len) || !keys_len.is_multiple_of(2) {
            return Err(keys.parameter(key, keys_len, rule));
        }
        Ok(keys_len)
    }
}
