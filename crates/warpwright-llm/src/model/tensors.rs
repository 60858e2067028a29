//! The tensors of a model: their names in files, and their shapes.

use super::spec::{
    AttentionSpec, DenseSpec, ExpertsSpec, Factors, HeadNorms, LatentSpec, LayerSpec, Mixer, ModelSpec,
    Network, NormKind, RecurrenceSpec, Rotary,
};

/// A tensor that a model has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedTensor {
    /// Its name.
    pub name: String,
    /// Its shape, the length of rows last.
    pub dims: Vec<u32>,
    /// Whether the file must have it.
    pub required: bool,
}

/// The tensors of one part of a model, whose names begin alike.
struct Tensors {
    prefix: String,
    all: Vec<ExpectedTensor>,
}

impl ModelSpec {
    /// The tensors of the model: first those outside the layers, then layer by layer.
    pub fn tensors(&self) -> impl Iterator<Item = ExpectedTensor> {
        let layers = self.layers.iter().enumerate();
        let layers = layers.flat_map(|(index, layer)| self.of_layer(&format!("blk.{index}."), layer));
        self.global().into_iter().chain(layers)
    }

    fn global(&self) -> Vec<ExpectedTensor> {
        let &ModelSpec { hidden, vocab, .. } = self;
        let mut tensors = Tensors::new("");
        tensors.add("token_embd.weight", &[vocab, hidden], true);
        tensors.norm(self.output_norm, hidden, self.norm.kind);
        tensors.add("output.weight", &[vocab, hidden], !self.tied);
        tensors.add("output.bias", &[vocab], false);
        let rotaries = self.layers.iter().filter_map(|layer| match &layer.mixer {
            Mixer::Attention(attention) => attention.rotary,
            Mixer::Latent(latent) => Some(latent.rotary),
            _ => None,
        });
        let rotary = rotaries.into_iter().find(|rotary| rotary.factors != Factors::None);
        if let Some(Rotary { params, factors, .. }) = rotary {
            let names: &[&str] = match factors {
                Factors::ByContext => &["rope_factors_long.weight", "rope_factors_short.weight"],
                _ => &["rope_freqs.weight"],
            };
            for name in names {
                tensors.add(name, &[params.rotary_dim / 2], factors == Factors::Required);
            }
        }
        if let Some(length) = self.layer_embedding {
            let all = length.saturating_mul(self.layers.len() as u32);
            tensors.add("per_layer_token_embd.weight", &[vocab, all], true);
            tensors.add("per_layer_model_proj.weight", &[all, hidden], true);
            tensors.add("per_layer_proj_norm.weight", &[length], true);
        }
        tensors.all
    }

    fn of_layer(&self, prefix: &str, layer: &LayerSpec) -> Vec<ExpectedTensor> {
        let (hidden, kind) = (self.hidden, self.norm.kind);
        let mut tensors = Tensors::new(prefix);
        tensors.norms(layer.mixer_norms.before, hidden, kind);
        match &layer.mixer {
            Mixer::Attention(attention) => tensors.attention(attention, hidden),
            Mixer::Latent(latent) => tensors.latent(latent, hidden),
            Mixer::Mamba2(recurrence) => tensors.mamba2(*recurrence, hidden),
            Mixer::DeltaNet(recurrence) => tensors.delta_net(*recurrence, hidden),
            Mixer::ShortConvolution { tokens } => {
                tensors.add("shortconv.conv.weight", &[hidden, *tokens], true);
                tensors.add("shortconv.in_proj.weight", &[hidden.saturating_mul(3), hidden], true);
                tensors.add("shortconv.out_proj.weight", &[hidden, hidden], true);
            }
        }
        tensors.norms(layer.mixer_norms.after, hidden, kind);
        tensors.norms(layer.network_norms.before, hidden, kind);
        match layer.network {
            Network::Dense(dense) => tensors.dense(dense, hidden),
            Network::Experts(experts) => tensors.experts(&experts, hidden),
        }
        tensors.norms(layer.network_norms.after, hidden, kind);
        if layer.output_scale {
            tensors.add("layer_output_scale.weight", &[1], false);
        }
        if let Some(length) = self.layer_embedding {
            tensors.add("inp_gate.weight", &[length, hidden], true);
            tensors.add("proj.weight", &[hidden, length], true);
            tensors.add("post_norm.weight", &[hidden], true);
        }
        tensors.all
    }
}

impl Tensors {
    fn new(prefix: &str) -> Tensors {
        Tensors { prefix: prefix.into(), all: Vec::new() }
    }

    fn add(&mut self, name: &str, dims: &[u32], required: bool) {
        self.all.push(ExpectedTensor { name: format!("{}{name}", self.prefix), dims: dims.into(), required });
    }

    /// A matrix of `n` rows, with a bias that may be there.
    fn product(&mut self, name: &str, n: u32, k: u32, required: bool) {
        self.add(&format!("{name}.weight"), &[n, k], required);
        self.add(&format!("{name}.bias"), &[n], false);
    }

    fn norm(&mut self, name: &str, len: u32, kind: NormKind) {
        self.add(&format!("{name}.weight"), &[len], true);
        if kind == NormKind::LayerBias {
            self.add(&format!("{name}.bias"), &[len], true);
        }
    }

    fn norms(&mut self, name: Option<&str>, len: u32, kind: NormKind) {
        if let Some(name) = name {
            self.norm(name, len, kind);
        }
    }

    fn attention(&mut self, attention: &AttentionSpec, hidden: u32) {
        let &AttentionSpec { heads, kv_heads, head_dim, .. } = attention;
        let [q, kv] = [heads, kv_heads].map(|heads| heads.saturating_mul(head_dim));
        let own = attention.shares.is_none();
        match attention.fused {
            true => self.product("attn_qkv", q.saturating_add(kv.saturating_mul(2)), hidden, true),
            false => {
                self.product("attn_q", if attention.gated { q.saturating_mul(2) } else { q }, hidden, true);
                // Files may have those that are not used where a cache is shared.
                self.product("attn_k", kv, hidden, own);
                self.product("attn_v", kv, hidden, own && !attention.keys_as_values);
            }
        }
        self.product("attn_output", hidden, q, true);
        let norms = match attention.head_norms {
            HeadNorms::None => None,
            HeadNorms::Each => Some([head_dim; 2]),
            HeadNorms::Whole => Some([q, kv]),
        };
        if let Some([of_q, of_k]) = norms {
            self.add("attn_q_norm.weight", &[of_q], true);
            self.add("attn_k_norm.weight", &[of_k], own);
        }
        if attention.sinks {
            self.add("attn_sinks.weight", &[heads], true);
        }
    }

    fn latent(&mut self, latent: &LatentSpec, hidden: u32) {
        let &LatentSpec { heads, kv_rank, key_dim, value_dim, .. } = latent;
        let rotary_dim = latent.rotary.params.rotary_dim;
        let plain_dim = key_dim.saturating_sub(rotary_dim);
        let queries = heads.saturating_mul(key_dim);
        match latent.query_rank {
            Some(rank) => {
                self.add("attn_q_a.weight", &[rank, hidden], true);
                self.add("attn_q_a_norm.weight", &[rank], true);
                self.add("attn_q_b.weight", &[queries, rank], true);
            }
            None => self.add("attn_q.weight", &[queries, hidden], true),
        }
        self.add("attn_kv_a_mqa.weight", &[kv_rank.saturating_add(rotary_dim), hidden], true);
        self.add("attn_kv_a_norm.weight", &[kv_rank], true);
        if latent.split {
            self.add("attn_k_b.weight", &[heads, kv_rank, plain_dim], true);
            self.add("attn_v_b.weight", &[heads, value_dim, kv_rank], true);
        } else {
            let both = heads.saturating_mul(plain_dim.saturating_add(value_dim));
            self.add("attn_kv_b.weight", &[both, kv_rank], true);
        }
        self.add("attn_output.weight", &[hidden, heads.saturating_mul(value_dim)], true);
    }

    fn mamba2(&mut self, of: RecurrenceSpec, hidden: u32) {
        let RecurrenceSpec { tokens, inner, state, heads, groups } = of;
        let read = groups.saturating_mul(state).saturating_mul(2);
        let seen = inner.saturating_add(read);
        self.add("ssm_in.weight", &[inner.saturating_add(seen).saturating_add(heads), hidden], true);
        self.add("ssm_conv1d.weight", &[seen, tokens], true);
        self.add("ssm_conv1d.bias", &[seen], false);
        self.add("ssm_dt.bias", &[heads], true);
        self.add("ssm_a", &[heads, 1], true);
        self.add("ssm_d", &[heads, 1], true);
        self.add("ssm_norm.weight", &[groups, inner / groups.max(1)], true);
        self.add("ssm_out.weight", &[hidden, inner], true);
    }

    fn delta_net(&mut self, of: RecurrenceSpec, hidden: u32) {
        let RecurrenceSpec { tokens, state, heads, groups, .. } = of;
        let [keys, values] = [groups, heads].map(|heads| heads.saturating_mul(state));
        let all = keys.saturating_mul(2).saturating_add(values);
        self.add("attn_qkv.weight", &[all, hidden], true);
        self.add("attn_gate.weight", &[values, hidden], true);
        self.add("ssm_conv1d.weight", &[all, tokens], true);
        self.add("ssm_dt.bias", &[heads], true);
        self.add("ssm_a", &[heads], true);
        self.add("ssm_beta.weight", &[heads, hidden], true);
        self.add("ssm_alpha.weight", &[heads, hidden], true);
        self.add("ssm_norm.weight", &[state], true);
        self.add("ssm_out.weight", &[hidden, values], true);
    }

    fn dense(&mut self, dense: DenseSpec, hidden: u32) {
        let DenseSpec { width, activation, fused } = dense;
        if activation.is_gated() && !fused {
            self.product("ffn_gate", width, hidden, true);
        }
        self.product("ffn_up", if fused { width.saturating_mul(2) } else { width }, hidden, true);
        self.product("ffn_down", hidden, width, true);
    }

    fn experts(&mut self, experts: &ExpertsSpec, hidden: u32) {
        let &ExpertsSpec { count, width, biases, .. } = experts;
        self.add("ffn_gate_inp.weight", &[count, hidden], true);
        if experts.norms {
            self.add("ffn_gate_inp.scale", &[hidden], true);
            for name in ["pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"] {
                self.add(&format!("{name}.weight"), &[hidden], true);
            }
            self.add("ffn_down_exps.scale", &[count], false);
        }
        // Either gate and up are one matrix, or each is one.
        self.add("ffn_gate_up_exps.weight", &[count, width.saturating_mul(2), hidden], false);
        self.add("ffn_gate_exps.weight", &[count, width, hidden], false);
        self.add("ffn_up_exps.weight", &[count, width, hidden], false);
        self.add("ffn_down_exps.weight", &[count, hidden, width], true);
        if biases {
            self.add("ffn_gate_inp.bias", &[count], true);
            self.add("ffn_gate_exps.bias", &[count, width], true);
            self.add("ffn_up_exps.bias", &[count, width], true);
            self.add("ffn_down_exps.bias", &[count, hidden], true);
        }
        if experts.choice_bias {
            self.add("exp_probs_b.bias", &[count], false);
        }
        if let Some(shared) = experts.shared {
            let (width, suffix) = (shared.width, shared.suffix);
            for (name, n, k) in [("gate", width, hidden), ("up", width, hidden), ("down", hidden, width)] {
                self.add(&format!("ffn_{name}{suffix}.weight"), &[n, k], true);
            }
            if shared.gated {
                self.add("ffn_gate_inp_shexp.weight", &[hidden], true);
            }
        }
    }
}
