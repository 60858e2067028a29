//! From metadata to what a model is, as its architecture is declared.

use super::architecture::{
    Architecture, EmbeddingScale, ExpertWidth, Experts, Length, Local, LogitCap, LogitScale, Recurrent,
    Rotated, ScoreScale, Sections, Shared, Windows,
};
use super::error::ModelError;
use super::keys::{ByLayer, Keys, Pattern};
use super::rope::{self, Rotation, RotationOf};
use super::spec::{
    AttentionSpec, DenseSpec, ExpertsSpec, Factors, Gating, LatentSpec, LayerSpec, Mask, Mixer, ModelSpec,
    Network, Norm, NormKind, RecurrenceSpec, Rotary, SharedExpert,
};
use crate::gguf::Gguf;
use warpwright_graph::RopeParams;
use warpwright_kernels::RopeScaling;

/// The most layers of a model. No file says how many there are by its size, and each takes memory here.
const MOST_LAYERS: u32 = 4096;

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
        let too_many = (reader.counted > MOST_LAYERS)
            .then(|| keys.parameter("block_count", reader.counted, format!("from 1 to {MOST_LAYERS}")));
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
            layers: (counted - predicting).min(MOST_LAYERS),
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
            predicting_layers: counted.min(MOST_LAYERS) - layers,
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

    fn attention(&self, layer: u32, before: &[LayerSpec]) -> Result<AttentionSpec, ModelError> {
        let &Reader { keys, architecture, .. } = self;
        let index = layer as usize;
        let heads = self.heads.size(keys, index)?;
        let kv_heads = match &self.kv_heads {
            Some(kv_heads) => kv_heads.size(keys, index)?,
            None => heads,
        };
        if !heads.is_multiple_of(kv_heads) {
            let rule = format!("a divisor of the {heads} heads of queries");
            return Err(keys.parameter("attention.head_count_kv", kv_heads, rule));
        }
        let window = self.window(layer);
        let head_dim = self.head_dim(heads)?;
        let rotation = self.rotation(head_dim)?;
        let (head_dim, params) = self.local(window, head_dim, rotation.params)?;
        let by_head = || (rotation.squared / f64::from(head_dim).sqrt()) as f32;
        let scale = match architecture.score_scale {
            ScoreScale::One => rotation.squared as f32,
            ScoreScale::HiddenWithLayers(layers) if layers == self.layers => {
                (rotation.squared / f64::from(self.hidden / heads).sqrt()) as f32
            }
            ScoreScale::Head | ScoreScale::HiddenWithLayers(_) => by_head(),
            ScoreScale::Parameter => match keys.factor("attention.scale")? {
                Some(scale) => (rotation.squared * f64::from(scale)) as f32,
                None => by_head(),
            },
        };
        let cap = "attn_logit_softcapping";
        let score_cap = match architecture.score_cap {
            None => None,
            Some(_) if keys.has(cap) => keys.cap(cap)?,
            default => default,
        };
        Ok(AttentionSpec {
            heads,
            kv_heads,
            head_dim,
            mask: Mask { causal: self.causal, window },
            scale,
            score_cap,
            sinks: architecture.sinks,
            head_norms: architecture.head_norms,
            value_norms: architecture.value_norms,
            rotary: self.rotary(layer, params)?,
            fused: architecture.fused_projections,
            gated: architecture.gated_attention,
            keys_as_values: architecture.keys_as_values,
            shares: self.shared(layer, window, before)?,
        })
    }

    /// The length of heads of layers without a window.
    fn head_dim(&self, heads: u32) -> Result<u32, ModelError> {
        let &Reader { keys, hidden, .. } = self;
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
        let given = given.map(|given| given.unwrap_or(shared));
        self.length_of_heads([key, value], given)
    }

    fn length_of_heads(&self, names: [&'static str; 2], [key, value]: [u32; 2]) -> Result<u32, ModelError> {
        if key != value {
            let rule = format!("{key}, the length of keys: other values are not supported");
            return Err(self.keys.parameter(names[1], value, rule));
        }
        if key < 2 || !key.is_multiple_of(2) || key > u32::from(u16::MAX) {
            return Err(self.keys.parameter(names[0], key, "an even number from 2 to 65534"));
        }
        Ok(key)
    }

    fn rotation(&self, head_dim: u32) -> Result<Rotation, ModelError> {
        let &Architecture { pairs, factors, .. } = self.architecture;
        let (context_length, by_context) = (self.context_length, factors == Factors::ByContext);
        Rotation::read(self.keys, RotationOf { head_dim, pairs, context_length, by_context })
    }

    /// The length of heads and their rotation where layers with a window have their own.
    fn local(
        &self,
        window: Option<u32>,
        head_dim: u32,
        params: RopeParams,
    ) -> Result<(u32, RopeParams), ModelError> {
        let (Some(_), Windows::Alternating { local, .. }) = (window, self.architecture.windows) else {
            return Ok((head_dim, params));
        };
        let Local { base, scaled, lengths, .. } = local;
        let keys = self.keys;
        let base_key = "rope.freq_base_swa";
        let own_base = keys.optional_f32(base_key)?.or(base).unwrap_or(params.base);
        if !(own_base > 1.0 && own_base <= 1e30) {
            return Err(keys.parameter(base_key, own_base, "more than 1 and up to 1e30"));
        }
        let scaling = if scaled { params.scaling } else { RopeScaling::None };
        let params = RopeParams { base: own_base, scaling, ..params };
        if !lengths {
            return Ok((head_dim, params));
        }
        let names = ["attention.key_length_swa", "attention.value_length_swa"];
        let head_dim = self.length_of_heads(names, [keys.size(names[0])?, keys.size(names[1])?])?;
        let rotary_key = "rope.dimension_count_swa";
        let rotary_dim = keys.optional_u32(rotary_key)?.unwrap_or(head_dim);
        if rotary_dim == 0 || rotary_dim > head_dim || !rotary_dim.is_multiple_of(2) {
            let rule = format!("an even number from 2 to {head_dim}, the length of a head");
            return Err(keys.parameter(rotary_key, rotary_dim, rule));
        }
        Ok((head_dim, RopeParams { head_dim, rotary_dim, ..params }))
    }

    fn rotary(&self, layer: u32, params: RopeParams) -> Result<Option<Rotary>, ModelError> {
        let &Reader { keys, architecture, .. } = self;
        let window = self.window(layer);
        let turns = match architecture.rotated {
            Rotated::All => true,
            Rotated::ExceptEvery(count) => !(layer + 1).is_multiple_of(count),
            Rotated::Windowed => self.windows.is_none() || window.is_some(),
            Rotated::Finetuned => keys.optional_bool("rope.scaling.finetuned")?.unwrap_or(true),
        };
        let key = "rope.dimension_sections";
        let sections = match architecture.sections {
            Some(Sections::Optional) if !keys.has(key) => None,
            Some(_) => Some(keys.numbers(key)?).filter(|sections| *sections != [0; 4]),
            None => None,
        };
        let without = matches!(architecture.windows, Windows::Alternating { local, .. } if !local.factors);
        let factors = if window.is_some() && without { Factors::None } else { architecture.factors };
        Ok(turns.then_some(Rotary { params, factors, sections }))
    }

    /// The layer whose cache a layer sees: of those that have one, the last with a window, or without.
    fn shared(
        &self,
        layer: u32,
        window: Option<u32>,
        before: &[LayerSpec],
    ) -> Result<Option<u32>, ModelError> {
        let key = "attention.shared_kv_layers";
        if !self.architecture.shared_cache {
            return Ok(None);
        }
        let shared = self.keys.optional_u32(key)?.unwrap_or(0);
        let own = self.layers.saturating_sub(shared);
        if layer < own {
            return Ok(None);
        }
        let alike = |layer: &LayerSpec| matches!(&layer.mixer, Mixer::Attention(other) if other.mask.window == window);
        let found = before.iter().take(own as usize).rposition(alike);
        let found = found.and_then(|found| u32::try_from(found).ok());
        let rule = "so few that a layer with a window and one without come before";
        found.map(Some).ok_or_else(|| self.keys.parameter(key, shared, rule))
    }

    fn latent(&self, layer: u32) -> Result<LatentSpec, ModelError> {
        let keys = self.keys;
        let split = keys.has("attention.key_length_mla") || keys.has("attention.value_length_mla");
        let names = match split {
            true => ["attention.key_length_mla", "attention.value_length_mla"],
            false => ["attention.key_length", "attention.value_length"],
        };
        let [key_dim, value_dim] = [keys.size(names[0])?, keys.size(names[1])?];
        // Only the elements behind these do not turn.
        keys.size("rope.dimension_count")?;
        let mut rotation = self.rotation(key_dim)?;
        if rotation.params.rotary_dim == key_dim {
            let rule = format!("less than {key_dim}, the length of a head of keys");
            return Err(keys.parameter("rope.dimension_count", key_dim, rule));
        }
        let mut magnitude = 1.0;
        let multiplier = keys.factor("rope.scaling.yarn_log_multiplier")?;
        if let (RopeScaling::Yarn { factor, attention_factor, .. }, Some(multiplier)) =
            (&mut rotation.params.scaling, multiplier)
        {
            // Scores have the magnitude, and what turns has it not.
            magnitude = 1.0 + f64::from(multiplier) * f64::from(*factor).ln();
            *attention_factor = Some(1.0);
        }
        Ok(LatentSpec {
            heads: self.heads.size(keys, layer as usize)?,
            query_rank: keys.optional_u32("attention.q_lora_rank")?.filter(|&rank| rank > 0),
            kv_rank: keys.size("attention.kv_lora_rank")?,
            key_dim,
            value_dim,
            split,
            mask: Mask { causal: self.causal, window: self.window(layer) },
            scale: (magnitude.powi(2) / f64::from(key_dim).sqrt()) as f32,
            rotary: Rotary { params: rotation.params, factors: Factors::None, sections: None },
        })
    }

    /// The width of a layer's network.
    fn width(&self, layer: u32) -> Result<u32, ModelError> {
        match &self.widths {
            Some(widths) => widths.size(self.keys, layer as usize),
            // The file must have it: the error says so.
            None => self.keys.size("feed_forward_length"),
        }
    }

    fn network(&self, layer: u32) -> Result<Network, ModelError> {
        let &Architecture { activation, fused_gate, experts, .. } = self.architecture;
        if let Some(declared) = experts
            && let Some(experts) = self.experts(layer, &declared)?
        {
            return Ok(Network::Experts(experts));
        }
        Ok(Network::Dense(DenseSpec { width: self.width(layer)?, activation, fused: fused_gate }))
    }

    fn experts(&self, layer: u32, declared: &Experts) -> Result<Option<ExpertsSpec>, ModelError> {
        let keys = self.keys;
        let count = match declared.required {
            true => keys.size("expert_count")?,
            false => keys.optional_u32("expert_count")?.unwrap_or(0),
        };
        let dense = match declared.leading_dense {
            true => keys.optional_u32("leading_dense_block_count")?.unwrap_or(0),
            false => 0,
        };
        if count == 0 || layer < dense {
            return Ok(None);
        }
        let used = keys.size("expert_used_count")?;
        if used > count {
            return Err(keys.parameter("expert_used_count", used, format!("at most {count}, all experts")));
        }
        let own_width = "expert_feed_forward_length";
        let width = match declared.width {
            ExpertWidth::FeedForward => self.width(layer)?,
            ExpertWidth::OwnOrPart if !keys.has(own_width) => {
                keys.not_zero("feed_forward_length", self.width(layer)? / used)?
            }
            ExpertWidth::Own | ExpertWidth::OwnOrPart => keys.size(own_width)?,
        };
        let groups =
            [keys.optional_u32("expert_group_count")?, keys.optional_u32("expert_group_used_count")?];
        let groups = groups.map(|groups| groups.unwrap_or(0));
        let mut experts = ExpertsSpec {
            count,
            used,
            groups: (groups[0] > 1).then_some(groups),
            width,
            activation: self.architecture.activation,
            gating: declared.gating,
            normalized: declared.normalized,
            scale: 1.0,
            biases: declared.biases,
            choice_bias: declared.choice_bias,
            norms: declared.norms,
            shared: self.shared_expert(layer, declared.shared, width)?,
        };
        if declared.parameters {
            experts.scale = keys.factor("expert_weights_scale")?.unwrap_or(1.0);
            experts.normalized = keys.optional_bool("expert_weights_norm")?.unwrap_or(declared.normalized);
            experts.gating = match keys.optional_u32("expert_gating_func")?.unwrap_or(0) {
                0 => declared.gating,
                1 => Gating::Softmax,
                2 => Gating::Sigmoid,
                3 => Gating::ChosenSoftmax,
                other => return Err(keys.parameter("expert_gating_func", other, "from 0 to 3")),
            };
        }
        Ok(Some(experts))
    }

    fn shared_expert(
        &self,
        layer: u32,
        declared: Shared,
        expert: u32,
    ) -> Result<Option<SharedExpert>, ModelError> {
        let keys = self.keys;
        let own = |key| Ok::<_, ModelError>(keys.optional_u32(key)?.filter(|&width| width > 0));
        let suffix = "_shexp";
        Ok(match declared {
            Shared::None => None,
            Shared::Optional => own("expert_shared_feed_forward_length")?.map(|width| SharedExpert {
                width,
                gated: false,
                suffix,
            }),
            Shared::Gated => {
                let width = match own("expert_shared_feed_forward_length")? {
                    Some(width) => width,
                    None => self.width(layer)?,
                };
                Some(SharedExpert { width, gated: true, suffix })
            }
            Shared::Count => {
                let width = expert.saturating_mul(keys.size("expert_shared_count")?);
                Some(SharedExpert { width, gated: false, suffix })
            }
            Shared::Network => Some(SharedExpert { width: self.width(layer)?, gated: false, suffix: "" }),
        })
    }
}
