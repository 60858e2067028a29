//! Feed-forward networks, and experts.

use super::super::architecture::{Architecture, ExpertWidth, Experts, Shared};
use super::super::error::ModelError;
use super::super::spec::{DenseSpec, ExpertsSpec, Gating, Network, SharedExpert};
use super::Reader;

impl Reader<'_> {
    /// The width of a layer's network.
    fn width(&self, layer: u32) -> Result<u32, ModelError> {
        match &self.widths {
            Some(widths) => widths.size(self.keys, layer as usize),
            // The file must have it: the error says so.
            None => self.keys.size("feed_forward_length"),
        }
    }

    pub(super) fn network(&self, layer: u32) -> Result<Network, ModelError> {
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
