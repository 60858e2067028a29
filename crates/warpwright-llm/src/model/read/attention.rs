//! Attention: heads, which tokens they see, and how they turn.

use super::super::architecture::{Architecture, Local, Rotated, ScoreScale, Sections, Windows};
use super::super::error::ModelError;
use super::super::rope::{Rotation, RotationOf};
use super::super::spec::{AttentionSpec, Factors, LatentSpec, LayerSpec, Mask, Mixer, Rotary};
use super::Reader;
use warpwright_graph::RopeParams;
use warpwright_kernels::RopeScaling;

impl Reader<'_> {
    pub(super) fn attention(&self, layer: u32, before: &[LayerSpec]) -> Result<AttentionSpec, ModelError> {
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

    pub(super) fn latent(&self, layer: u32) -> Result<LatentSpec, ModelError> {
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
}
