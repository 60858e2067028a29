//! From metadata to what a model is, as its architecture is declared.

mod attention;
mod network;

use super::architecture::{Architecture, EmbeddingScale, Length, LogitCap, LogitScale, Recurrent, Windows};
use super::error::ModelError;
use super::keys::{ByLayer, Keys, Pattern};
use super::rope;
use super::spec::{LayerSpec, Mixer, ModelSpec, Norm, NormKind, RecurrenceSpec};
use crate::gguf::Gguf;

/// The most layers of a model. No file says how many there are by its size, and each takes memory here.
const MAX_LAYERS: u32 = 4096;

/// Parameters by which some models differ from what their architectures are declared to be, and the values with which
/// they do not.
const NEUTRAL: &[(&str, &[f32], &str)] = &[
    ("expert_count", &[0.0], "a mixture of experts"),
    ("expert_weights_scale", &[0.0, 1.0], "scaled experts"),
    ("nextn_predict_layers", &[0.0], "layers that predict several tokens"),
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

impl ModelSpec {
    /// What the model of a file is, by its metadata; of tensors, the table of embeddings says how many tokens there are
    /// where the metadata do not.
    ///
    /// # Errors
    ///
    /// [`ModelError`], which names the key: for an architecture that is not known, and for parameters that are missing,
    /// contradict one another, or ask for what the architecture is not declared to have.
    pub fn from_gguf(gguf: &Gguf) -> Result<ModelSpec, ModelError> {
        let (_, spec, too_many) = Self::read(gguf)?;
        too_many.map_or(Ok(spec), Err)
    }

    /// The same with its architecture, and what is wrong where the metadata have more layers than a model may: the
    /// first of them are given then, since a tensor that is missing says more.
    pub(super) fn read(
        gguf: &Gguf,
    ) -> Result<(&'static Architecture, ModelSpec, Option<ModelError>), ModelError> {
        let architecture = Architecture::named(gguf.metadata().str("general.architecture")?)?;
        let keys = Keys::new(gguf.metadata(), architecture.name);
        let reader = Reader::new(&keys, architecture)?;
        let spec = reader.model(gguf)?;
        for &(key, neutral, what) in NEUTRAL.iter().chain(rope::NEUTRAL) {
            keys.neutral(key, neutral, what)?;
        }
        let too_many = (reader.counted > MAX_LAYERS)
            .then(|| keys.parameter("block_count", reader.counted, format!("from 1 to {MAX_LAYERS}")));
        Ok((architecture, spec, too_many))
    }
}

/// What layers are read by.
struct Reader<'a> {
    keys: &'a Keys<'a>,
    architecture: &'static Architecture,
    /// Layers by the metadata, those that predict more tokens included.
    counted: u32,
    layers: u32,
    hidden: u32,
    context_length: u32,
    heads: ByLayer,
    kv_heads: Option<ByLayer>,
    widths: Option<ByLayer>,
    causal: bool,
    windows: Option<(u32, Pattern)>,
}

impl<'a> Reader<'a> {
    fn new(keys: &'a Keys<'a>, architecture: &'static Architecture) -> Result<Self, ModelError> {
        let counted = keys.size("block_count")?;
        let predicting = match architecture.predicting_layers {
            true => keys.optional_u32("nextn_predict_layers")?.unwrap_or(0),
            false => 0,
        };
        if predicting >= counted {
            let rule = format!("less than block_count, which is {counted}");
            return Err(keys.parameter("nextn_predict_layers", predicting, rule));
        }
        let by_layer = |key| keys.has(key).then(|| keys.by_layer(key, counted)).transpose();
        let reader = Reader {
            keys,
            architecture,
            counted,
            layers: (counted - predicting).min(MAX_LAYERS),
            hidden: keys.size("embedding_length")?,
            context_length: keys.size("context_length")?,
            heads: keys.by_layer("attention.head_count", counted)?,
            kv_heads: by_layer("attention.head_count_kv")?,
            widths: by_layer("feed_forward_length")?,
            causal: keys.optional_bool("attention.causal")?.unwrap_or(true),
            windows: None,
        };
        Ok(Reader { windows: reader.windows()?, ..reader })
    }

    fn model(&self, gguf: &Gguf) -> Result<ModelSpec, ModelError> {
        let &Reader { keys, architecture, hidden, context_length, counted, layers, .. } = self;
        let table = gguf.tensor("token_embd.weight");
        let rows = table.and_then(|table| u32::try_from(table.rows()).ok());
        let vocab = match keys.optional_u32("vocab_size")? {
            Some(vocab) => keys.not_zero("vocab_size", vocab)?,
            None => rows.unwrap_or(1),
        };
        let layer_embedding = match architecture.layer_embedding {
            true => Some(keys.by_layer("embedding_length_per_layer_input", counted)?.of(0)),
            false => None,
        };
        let embedding_scale = match architecture.embedding_scale {
            EmbeddingScale::One => 1.0,
            EmbeddingScale::RootOfHidden => f64::from(hidden).sqrt() as f32,
            EmbeddingScale::Parameter => keys.factor("embedding_scale")?.unwrap_or(1.0),
        };
        let logit_scale = match architecture.logit_scale {
            LogitScale::None => 1.0,
            LogitScale::Multiplied => keys.factor("logit_scale")?.unwrap_or(1.0),
            LogitScale::MaybeDivided => 1.0 / keys.factor("logit_scale")?.unwrap_or(1.0),
            LogitScale::Divided => match keys.f32("logit_scale")? {
                scale if scale.is_normal() => 1.0 / scale,
                scale => return Err(keys.parameter("logit_scale", scale, "a number other than 0")),
            },
        };
        let cap = "final_logit_softcapping";
        let logit_cap = match architecture.logit_cap {
            LogitCap::None => None,
            LogitCap::Default(cap_of_all) if !keys.has(cap) => Some(cap_of_all),
            LogitCap::Default(_) | LogitCap::Optional => keys.cap(cap)?,
        };
        let norm = Norm { kind: architecture.norm, epsilon: self.epsilon()? };
        let mut spec = ModelSpec {
            hidden,
            vocab,
            context_length,
            embedding_scale,
            layer_embedding: layer_embedding.filter(|&length| length > 0),
            output_norm: architecture.output_norm,
            logit_scale,
            logit_cap,
            tied: true,
            predicting_layers: counted.min(MAX_LAYERS) - layers,
            norm,
            layers: Vec::new(),
        };
        for layer in 0..layers {
            let layer = self.layer(layer, &spec.layers)?;
            spec.layers.push(layer);
        }
        Ok(spec)
    }

    fn epsilon(&self) -> Result<f32, ModelError> {
        let key = match self.architecture.norm {
            NormKind::Rms => "attention.layer_norm_rms_epsilon",
            NormKind::Layer | NormKind::LayerBias => "attention.layer_norm_epsilon",
        };
        let epsilon = self.keys.f32(key)?;
        match (0.0..=1e30).contains(&epsilon) {
            true => Ok(epsilon),
            false => Err(self.keys.parameter(key, epsilon, "from 0 to 1e30")),
        }
    }

    /// The length of windows, and which layers have one.
    fn windows(&self) -> Result<Option<(u32, Pattern)>, ModelError> {
        let &Reader { keys, counted, .. } = self;
        let key = "attention.sliding_window";
        let Windows::Alternating { period, length, .. } = self.architecture.windows else {
            let window = keys.optional_u32(key)?.filter(|&window| window > 0);
            return Ok(window.map(|window| (window, Pattern::Period(0))));
        };
        let window = match length {
            Length::Required => Some(keys.size(key)?),
            Length::Optional => keys.optional_u32(key)?.filter(|&window| window > 0),
            Length::Default(window) => Some(match keys.has(key) {
                true => keys.size(key)?,
                false => window,
            }),
        };
        let pattern = match (keys.pattern("attention.sliding_window_pattern", counted)?, period) {
            (Some(pattern), _) => pattern,
            (None, Some(period)) => Pattern::Period(period),
            // The file must have it: the error says so.
            (None, None) => Pattern::Period(keys.size("attention.sliding_window_pattern")?),
        };
        Ok(window.map(|window| (window, pattern)))
    }

    fn window(&self, layer: u32) -> Option<u32> {
        let (window, pattern) = self.windows.as_ref()?;
        pattern.means(layer).then_some(*window)
    }

    fn layer(&self, layer: u32, before: &[LayerSpec]) -> Result<LayerSpec, ModelError> {
        let &Reader { keys, architecture, .. } = self;
        let residual_scale = match architecture.residual_scale {
            true => keys.factor("residual_scale")?.unwrap_or(1.0),
            false => 1.0,
        };
        Ok(LayerSpec {
            mixer: self.mixer(layer, before)?,
            mixer_norms: architecture.mixer_norms,
            network: self.network(layer)?,
            network_norms: architecture.network_norms,
            parallel: architecture.parallel,
            residual_scale,
            output_scale: architecture.output_scale,
        })
    }

    fn mixer(&self, layer: u32, before: &[LayerSpec]) -> Result<Mixer, ModelError> {
        if self.architecture.latent {
            return self.latent(layer).map(Mixer::Latent);
        }
        let has_no_heads = self.kv_heads.as_ref().is_some_and(|heads| heads.of(layer as usize) == 0);
        match self.architecture.recurrent {
            Some(Recurrent::Mamba2) if has_no_heads => self.recurrence().map(Mixer::Mamba2),
            Some(Recurrent::ShortConvolution) if has_no_heads => {
                Ok(Mixer::ShortConvolution { tokens: self.keys.size("shortconv.l_cache")? })
            }
            Some(Recurrent::DeltaNet) if self.is_delta_net(layer)? => self.recurrence().map(Mixer::DeltaNet),
            _ => self.attention(layer, before).map(Mixer::Attention),
        }
    }

    fn is_delta_net(&self, layer: u32) -> Result<bool, ModelError> {
        if let Some(pattern) = self.keys.pattern("attention.recurrent_layers", self.counted)? {
            return Ok(pattern.means(layer));
        }
        let interval = self.keys.optional_u32("full_attention_interval")?.unwrap_or(4);
        Ok(Pattern::Period(self.keys.not_zero("full_attention_interval", interval)?).means(layer))
    }

    fn recurrence(&self) -> Result<RecurrenceSpec, ModelError> {
        let size = |key| self.keys.size(key);
        Ok(RecurrenceSpec {
            tokens: size("ssm.conv_kernel")?,
            inner: size("ssm.inner_size")?,
            state: size("ssm.state_size")?,
            heads: size("ssm.time_step_rank")?,
            groups: size("ssm.group_count")?,
        })
    }
}
