//! Rotation parameters in a file.
//!
//! | key `rope.…` | meaning | default |
//! | --- | --- | --- |
//! | `dimension_count` | elements of a head that turn | all |
//! | `freq_base` | base of the frequencies | 10000 |
//! | `scaling.type` | `none`, `linear`, `yarn` | `linear` |
//! | `scaling.factor`, or `scale_linear` in old files | ratio of the context to that of the training; 0 for no scaling | 0 |
//! | `scaling.original_context_length` | with `yarn`, the context of the training | `context_length` |
//! | `scaling.yarn_beta_fast`, `scaling.yarn_beta_slow` | with `yarn`, where its ramp begins and ends | 32, 1 |
//! | `scaling.attn_factor` | factor of the rotated vectors, in addition to that of `yarn` | 1 |
//!
//! Frequency factors are tensors; `longrope` means factors that depend on the length of the context.

use super::error::ModelError;
use super::keys::Keys;
use warpwright_graph::RopeParams;
use warpwright_kernels::{RopePairs, RopeScaling};

/// How heads turn, and by what their products are then scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rotation {
    pub(super) params: RopeParams,
    /// What products of two turned heads are multiplied by, besides what depends on the length of a head.
    pub(super) squared: f64,
}

/// What a rotation is besides what the file says.
#[derive(Clone, Copy)]
pub(super) struct RotationOf {
    pub(super) head_dim: u32,
    pub(super) pairs: RopePairs,
    pub(super) context_length: u32,
    /// Whether factors of frequencies may depend on the length of the context.
    pub(super) by_context: bool,
}

/// Parameters that files may have, and the values with which they change nothing.
pub(super) const NEUTRAL: &[(&str, &[f32], &str)] = &[
    ("rope.scaling.alpha", &[0.0, 1.0], "a base that is scaled by the context"),
    ("rope.scaling.yarn_log_multiplier", &[0.0], "another magnitude than that of YaRN"),
    ("rope.scaling.yarn_ext_factor", &[-1.0, 1.0], "a part of YaRN"),
    ("rope.scaling.yarn_attn_factor", &[-1.0, 1.0], "another magnitude than that of YaRN"),
];

impl Rotation {
    pub(super) fn read(keys: &Keys<'_>, of: RotationOf) -> Result<Rotation, ModelError> {
        let RotationOf { head_dim, pairs, .. } = of;
        let rotary_dim = keys.optional_u32("rope.dimension_count")?.unwrap_or(head_dim);
        if rotary_dim == 0 || rotary_dim > head_dim || !rotary_dim.is_multiple_of(2) {
            let rule = format!("an even number from 2 to {head_dim}, the length of a head");
            return Err(keys.parameter("rope.dimension_count", rotary_dim, rule));
        }
        let base = keys.optional_f32("rope.freq_base")?.unwrap_or(1e4);
        if !(base > 1.0 && base <= 1e30) {
            return Err(keys.parameter("rope.freq_base", base, "more than 1 and up to 1e30"));
        }
        let scaling = scaling(keys, of)?;
        let attn_factor = positive(keys, "rope.scaling.attn_factor")?.unwrap_or(1.0);
        let params = RopeParams { rotary_dim, pairs, base, scaling, ..RopeParams::new(head_dim) };
        let mut rotation = Rotation { params, squared: 1.0 };
        if attn_factor != 1.0 {
            rotation.magnify(keys, attn_factor)?;
        }
        Ok(rotation)
    }

    /// Multiplies turned vectors by a factor.
    fn magnify(&mut self, keys: &Keys<'_>, attn_factor: f32) -> Result<(), ModelError> {
        let RopeParams { rotary_dim, head_dim, .. } = self.params;
        match &mut self.params.scaling {
            RopeScaling::Yarn { factor, attention_factor, .. } => {
                let own = 0.1 * f64::from(*factor).ln() + 1.0;
                *attention_factor = Some((own * f64::from(attn_factor)) as f32);
            }
            // Where all elements turn, products of two have both factors.
            _ if rotary_dim == head_dim => self.squared = f64::from(attn_factor).powi(2),
            _ => {
                let what = "a magnitude without YaRN for elements that turn beside others that do not";
                return Err(keys.unsupported("rope.scaling.attn_factor", attn_factor, what));
            }
        }
        let scale = (self.squared / f64::from(head_dim).sqrt()) as f32;
        if !(scale > 0.0 && scale <= 1e3) {
            let rule = "so that scores are scaled by more than 0 and up to 1000";
            return Err(keys.parameter("rope.scaling.attn_factor", attn_factor, rule));
        }
        Ok(())
    }
}

/// How frequencies are scaled.
fn scaling(keys: &Keys<'_>, of: RotationOf) -> Result<RopeScaling, ModelError> {
    let factor_key = match keys.has("rope.scaling.factor") {
        true => "rope.scaling.factor",
        false => "rope.scale_linear",
    };
    let factor = match keys.optional_f32(factor_key)? {
        None | Some(0.0) => 1.0,
        Some(factor) => factor,
    };
    if !(1.0..=1e6).contains(&factor) {
        return Err(keys.parameter(factor_key, factor, "from 1 to 1e6, or 0 for no scaling"));
    }
    match keys.optional_str("rope.scaling.type")? {
        Some("none") => Ok(RopeScaling::None),
        Some("longrope") if of.by_context => Ok(RopeScaling::None),
        None | Some("linear") if factor == 1.0 => Ok(RopeScaling::None),
        None | Some("linear") => Ok(RopeScaling::Linear { factor }),
        Some("yarn") => {
            let original = keys.optional_u32("rope.scaling.original_context_length")?;
            let original_context = original.filter(|&context| context > 0).unwrap_or(of.context_length);
            let beta_fast = positive(keys, "rope.scaling.yarn_beta_fast")?.unwrap_or(32.0);
            let beta_slow = positive(keys, "rope.scaling.yarn_beta_slow")?.unwrap_or(1.0);
            if beta_fast < beta_slow {
                let rule = format!("yarn_beta_slow, which is {beta_slow}, or more");
                return Err(keys.parameter("rope.scaling.yarn_beta_fast", beta_fast, rule));
            }
            Ok(RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor: None })
        }
        Some(other) => Err(keys.parameter("rope.scaling.type", format!("`{other}`"), "none, linear or yarn")),
    }
}

/// A factor, if it is there: more than zero, and of a size that kernels take.
fn positive(keys: &Keys<'_>, key: &'static str) -> Result<Option<f32>, ModelError> {
    match keys.optional_f32(key)? {
        Some(value) if !(value > 0.0 && value <= 1e6) => {
            Err(keys.parameter(key, value, "more than 0 and up to 1e6"))
        }
        value => Ok(value),
    }
}
