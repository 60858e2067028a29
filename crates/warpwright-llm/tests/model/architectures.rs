//! Each architecture, from the metadata of a small file: what its layers are, which tensors they have, and which of
//! their blocks are not computed yet.

use std::collections::BTreeSet;
use warpwright_graph::RopeParams;
use warpwright_kernels::{Activation, RopePairs, RopeScaling};
use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Gguf, Problem, Value};
use warpwright_llm::model::{
    Architecture, Around, AttentionSpec, Block, DenseSpec, ExpertsSpec, Factors, GatedActivation, Gating,
    HeadNorms, LatentSpec, LayerSpec, Mask, Mixer, ModelConfig, ModelError, ModelSpec, Network, Norm,
    NormKind, RecurrenceSpec, Rotary, SharedExpert,
};

/// A file of such an architecture without tensors: 64 wide, 4 heads over 2 of the cache, 96 between products; keys
/// that are given come instead.
fn file(architecture: &str, layers: u32, parameters: &[(&str, Value)]) -> GgufWriter {
    let mut file = GgufWriter::new();
    file.set("general.architecture", architecture);
    let epsilon = match architecture {
        "command-r" | "starcoder2" => "attention.layer_norm_epsilon",
        _ => "attention.layer_norm_rms_epsilon",
    };
    let usual: [(&str, Value); 8] = [
        ("block_count", layers.into()),
        ("context_length", 4096u32.into()),
        ("embedding_length", 64u32.into()),
        ("feed_forward_length", 96u32.into()),
        ("attention.head_count", 4u32.into()),
        ("attention.head_count_kv", 2u32.into()),
        (epsilon, 1e-5f32.into()),
        ("vocab_size", 160u32.into()),
    ];
    for (key, value) in usual.iter().chain(parameters) {
        file.set(format!("{architecture}.{key}"), value.clone());
    }
    file
}

fn open(file: &GgufWriter) -> Gguf {
    Gguf::from_bytes(file.to_bytes().expect("a file")).expect("a file")
}

fn around(before: Option<&'static str>, after: Option<&'static str>) -> Around {
    Around { before, after }
}

/// What a model of such a file is expected to be.
struct Expected(ModelSpec);

impl Expected {
    fn new(layers: Vec<LayerSpec>) -> Self {
        Expected(ModelSpec {
            hidden: 64,
            vocab: 160,
            context_length: 4096,
            embedding_scale: 1.0,
            layer_embedding: None,
            output_norm: "output_norm",
            logit_scale: 1.0,
            logit_cap: None,
            tied: true,
            predicting_layers: 0,
            norm: Norm { kind: NormKind::Rms, epsilon: 1e-5 },
            layers,
        })
    }

    /// Holds a file to it: its layers, what they need, what is said where it is to be run, and the tensors of a layer.
    fn hold(self, file: &GgufWriter, needs: &[Block], tensors: &[(usize, &str)]) {
        let gguf = open(file);
        let architecture = gguf.metadata().str("general.architecture").expect("a name").to_string();
        let spec = ModelSpec::from_gguf(&gguf).unwrap_or_else(|error| panic!("{architecture}: {error}"));
        assert_eq!(spec, self.0, "{architecture}");
        assert_eq!(spec.missing(), needs, "{architecture}");
        match ModelConfig::from_gguf(&gguf) {
            Err(ModelError::Needs { architecture: named, blocks }) => {
                assert_eq!((named, &blocks[..]), (&architecture[..], needs));
            }
            Err(ModelError::MissingTensor { tensor, .. }) => {
                assert_eq!((&tensor[..], needs), ("token_embd.weight", &[][..]));
            }
            other => panic!("{architecture}: {other:?}"),
        }
        for &(layer, expected) in tensors {
            let prefix = format!("blk.{layer}.");
            let own = spec.tensors().filter_map(|tensor| {
                let dims: Vec<String> = tensor.dims.iter().map(u32::to_string).collect();
                let optional = if tensor.required { "" } else { "?" };
                Some(format!("{}{optional} {}", tensor.name.strip_prefix(&prefix)?, dims.join("x")))
            });
            // Biases that any product may have say nothing of an architecture.
            let own: BTreeSet<String> = own.filter(|tensor| !tensor.contains(".bias?")).collect();
            let expected: BTreeSet<String> = expected.split(',').map(|tensor| tensor.trim().into()).collect();
            assert_eq!(own, expected, "layer {layer} of {architecture}");
        }
    }
}

fn params(pairs: RopePairs) -> RopeParams {
    RopeParams { pairs, ..RopeParams::new(16) }
}

fn turns(params: RopeParams, factors: Factors) -> Option<Rotary> {
    Some(Rotary { params, factors, sections: None })
}

/// The attention of Llama.
fn attention() -> AttentionSpec {
    AttentionSpec {
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        mask: Mask { causal: true, window: None },
        scale: 0.25,
        score_cap: None,
        sinks: false,
        head_norms: HeadNorms::None,
        value_norms: false,
        rotary: turns(params(RopePairs::Interleaved), Factors::Optional),
        fused: false,
        gated: false,
        keys_as_values: false,
        shares: None,
    }
}

/// The same, with pairs that are half a head apart and without factors of frequencies.
fn neox() -> AttentionSpec {
    AttentionSpec { rotary: turns(params(RopePairs::Neox), Factors::None), ..attention() }
}

fn dense(activation: GatedActivation) -> Network {
    Network::Dense(DenseSpec { width: 96, activation, fused: false })
}

const SILU: GatedActivation = GatedActivation::Gated(Activation::Silu);
const GELU: GatedActivation = GatedActivation::Gated(Activation::GeluTanh);

/// A layer of Llama with another attention.
fn layer(attention: AttentionSpec) -> LayerSpec {
    LayerSpec {
        mixer: Mixer::Attention(attention),
        mixer_norms: around(Some("attn_norm"), None),
        network: dense(SILU),
        network_norms: around(Some("ffn_norm"), None),
        parallel: false,
        residual_scale: 1.0,
        output_scale: false,
    }
}

/// The same with norms before and behind blocks.
fn normed(attention: AttentionSpec) -> LayerSpec {
    LayerSpec {
        mixer_norms: around(Some("attn_norm"), Some("post_attention_norm")),
        network_norms: around(Some("ffn_norm"), Some("post_ffw_norm")),
        ..layer(attention)
    }
}

/// The same with norms behind blocks alone.
fn normed_after(attention: AttentionSpec) -> LayerSpec {
    LayerSpec {
        mixer_norms: around(None, Some("post_attention_norm")),
        network_norms: around(None, Some("post_ffw_norm")),
        ..layer(attention)
    }
}

/// Four experts of 32, two of which a token takes.
fn experts() -> ExpertsSpec {
    ExpertsSpec {
        count: 4,
        used: 2,
        groups: None,
        width: 32,
        activation: SILU,
        gating: Gating::Softmax,
        normalized: true,
        scale: 1.0,
        biases: false,
        choice_bias: false,
        norms: false,
        shared: None,
    }
}

fn expert_keys() -> Vec<(&'static str, Value)> {
    vec![
        ("expert_count", 4u32.into()),
        ("expert_used_count", 2u32.into()),
        ("expert_feed_forward_length", 32u32.into()),
    ]
}

const QKVO: &str = "attn_norm.weight 64, attn_q.weight 64x64, attn_k.weight 32x64, attn_v.weight 32x64, \
                    attn_output.weight 64x64";
const FFN: &str = "ffn_gate.weight 96x64, ffn_up.weight 96x64, ffn_down.weight 64x96";
const EXPERTS: &str = "ffn_gate_inp.weight 4x64, ffn_gate_exps.weight? 4x32x64, ffn_up_exps.weight? 4x32x64, \
                       ffn_gate_up_exps.weight? 4x64x64, ffn_down_exps.weight 4x64x32";

#[test]
fn what_runs_needs_nothing() {
    let base = attention();
    let own = AttentionSpec { rotary: turns(params(RopePairs::Neox), Factors::Optional), ..base.clone() };
    let normed = AttentionSpec { head_norms: HeadNorms::Each, ..own.clone() };
    for (architecture, attention) in [("llama", base), ("qwen2", own), ("qwen3", normed)] {
        let tensors = format!("{QKVO}, ffn_norm.weight 64, {FFN}");
        let norms = ", attn_q_norm.weight 16, attn_k_norm.weight 16";
        let tensors = if architecture == "qwen3" { tensors + norms } else { tensors };
        Expected::new(vec![layer(attention.clone()), layer(attention)]).hold(
            &file(architecture, 2, &[]),
            &[],
            &[(1, &tensors)],
        );
    }
}

#[test]
fn llama_with_experts() {
    let network = Network::Experts(ExpertsSpec { width: 96, ..experts() });
    let keys = [("expert_count", 4u32.into()), ("expert_used_count", 2u32.into())];
    Expected::new(vec![LayerSpec { network, ..layer(attention()) }]).hold(
        &file("llama", 1, &keys),
        &[Block::Experts],
        &[],
    );
}

#[test]
fn qwen_with_experts() {
    let shared = SharedExpert { width: 48, gated: true, suffix: "_shexp" };
    let network = ExpertsSpec { normalized: false, shared: Some(shared), ..experts() };
    let two = LayerSpec { network: Network::Experts(network), ..layer(neox()) };
    let mut keys = expert_keys();
    keys.push(("expert_shared_feed_forward_length", 48u32.into()));
    let tensors = format!(
        "{QKVO}, ffn_norm.weight 64, {EXPERTS}, ffn_gate_shexp.weight 48x64, ffn_up_shexp.weight 48x64, \
         ffn_down_shexp.weight 64x48, ffn_gate_inp_shexp.weight 64"
    );
    Expected::new(vec![two]).hold(&file("qwen2moe", 1, &keys), &[Block::Experts], &[(0, &tensors)]);

    let normed = AttentionSpec { head_norms: HeadNorms::Each, ..neox() };
    let three = LayerSpec { network: Network::Experts(experts()), ..layer(normed) };
    let mut keys = expert_keys();
    Expected::new(vec![three.clone()]).hold(&file("qwen3moe", 1, &keys), &[Block::Experts], &[]);
    // Without a width of their own, experts share that of the network.
    keys.pop();
    let network = Network::Experts(ExpertsSpec { width: 48, ..experts() });
    Expected::new(vec![LayerSpec { network, ..three }]).hold(
        &file("qwen3moe", 1, &keys),
        &[Block::Experts],
        &[],
    );
}

#[test]
fn qwen35_has_attention_in_each_fourth_layer() {
    let sections = Some([2, 3, 3, 0]);
    let rotary = Rotary {
        params: RopeParams { rotary_dim: 8, ..params(RopePairs::Neox) },
        factors: Factors::None,
        sections,
    };
    let norms = around(Some("post_attention_norm"), None);
    let attention = LayerSpec {
        network_norms: norms,
        ..layer(AttentionSpec { rotary: Some(rotary), gated: true, head_norms: HeadNorms::Each, ..neox() })
    };
    let recurrence = RecurrenceSpec { tokens: 4, inner: 64, state: 16, heads: 4, groups: 2 };
    let delta = LayerSpec { mixer: Mixer::DeltaNet(recurrence), ..attention.clone() };
    let mut keys: Vec<(&str, Value)> = vec![
        ("rope.dimension_sections", vec![2u32, 3, 3, 0].into()),
        ("rope.dimension_count", 8u32.into()),
        ("ssm.conv_kernel", 4u32.into()),
        ("ssm.inner_size", 64u32.into()),
        ("ssm.state_size", 16u32.into()),
        ("ssm.time_step_rank", 4u32.into()),
        ("ssm.group_count", 2u32.into()),
    ];
    let of_delta = format!(
        "attn_norm.weight 64, attn_qkv.weight 128x64, attn_gate.weight 64x64, ssm_conv1d.weight 128x4, ssm_dt.bias 4, \
         ssm_a 4, ssm_beta.weight 4x64, ssm_alpha.weight 4x64, ssm_norm.weight 16, ssm_out.weight 64x64, \
         post_attention_norm.weight 64, {FFN}"
    );
    let of_attention =
        format!("{QKVO}, attn_q_norm.weight 16, attn_k_norm.weight 16, post_attention_norm.weight 64, {FFN}")
            .replace("attn_q.weight 64x64", "attn_q.weight 128x64");
    let needs = [Block::AttentionGate, Block::RotarySections, Block::DeltaNet];
    let four = vec![delta.clone(), delta.clone(), delta.clone(), attention.clone()];
    let tensors: [(usize, &str); 2] = [(2, &of_delta), (3, &of_attention)];
    Expected::new(four).hold(&file("qwen35", 4, &keys), &needs, &tensors);
    // A layer behind them that predicts one more token.
    keys.push(("nextn_predict_layers", 1u32.into()));
    keys.push(("full_attention_interval", 2u32.into()));
    let mut two = Expected::new(vec![delta.clone(), attention.clone()]);
    two.0.predicting_layers = 1;
    two.hold(&file("qwen35", 3, &keys), &[&needs[..], &[Block::PredictingLayers]].concat(), &[]);

    keys.truncate(7);
    keys.extend(expert_keys());
    keys.push(("attention.recurrent_layers", Value::from(&[false, true][..])));
    let shared = SharedExpert { width: 96, gated: true, suffix: "_shexp" };
    let network = Network::Experts(ExpertsSpec { shared: Some(shared), ..experts() });
    let layers = [attention, delta].map(|layer| LayerSpec { network, ..layer });
    let needs = [Block::AttentionGate, Block::RotarySections, Block::DeltaNet, Block::Experts];
    Expected::new(layers.to_vec()).hold(&file("qwen35moe", 2, &keys), &needs, &[]);
}

fn windowed(window: u32, attention: AttentionSpec) -> AttentionSpec {
    AttentionSpec { mask: Mask { causal: true, window: Some(window) }, ..attention }
}

#[test]
fn gemma2_alternates_windows_and_caps_scores() {
    let full = AttentionSpec { score_cap: Some(50.0), ..neox() };
    let layers = [windowed(4096, full.clone()), full];
    let layers = layers.map(|attention| LayerSpec { network: dense(GELU), ..normed(attention) });
    let mut expected = Expected::new(layers.to_vec());
    (expected.0.embedding_scale, expected.0.logit_cap) = (8.0, Some(30.0));
    let tensors =
        format!("{QKVO}, post_attention_norm.weight 64, ffn_norm.weight 64, {FFN}, post_ffw_norm.weight 64");
    let needs = [Block::Windows, Block::ScoreCap, Block::NormsAfter, Block::EmbeddingScale, Block::LogitCap];
    expected.hold(&file("gemma2", 2, &[]), &needs, &[(0, &tensors)]);
    // The largest one scales scores by the length that heads would have.
    let keys = [("attention.key_length", 32u32.into()), ("attention.value_length", 32u32.into())];
    let scales = |layers| {
        let spec = ModelSpec::from_gguf(&open(&file("gemma2", layers, &keys))).expect("a model");
        match &spec.layers[0].mixer {
            Mixer::Attention(attention) => attention.scale,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((scales(46), scales(42)), (0.25, (1.0 / 32f64.sqrt()) as f32));
}

#[test]
fn gemma3_turns_otherwise_in_windows() {
    let keys: [(&str, Value); 4] = [
        ("attention.sliding_window", 512u32.into()),
        ("rope.freq_base", 1e6f32.into()),
        ("rope.scaling.type", "linear".into()),
        ("rope.scaling.factor", 8f32.into()),
    ];
    let scaled =
        RopeParams { base: 1e6, scaling: RopeScaling::Linear { factor: 8.0 }, ..params(RopePairs::Neox) };
    let local = AttentionSpec { head_norms: HeadNorms::Each, ..windowed(512, neox()) };
    let full = AttentionSpec { head_norms: HeadNorms::Each, rotary: turns(scaled, Factors::None), ..neox() };
    let mut layers = vec![local; 5];
    layers.push(full);
    let layers = layers.into_iter().map(|it| LayerSpec { network: dense(GELU), ..normed(it) }).collect();
    let mut expected = Expected::new(layers);
    expected.0.embedding_scale = 8.0;
    let needs = [Block::Windows, Block::Rotations, Block::NormsAfter, Block::EmbeddingScale];
    expected.hold(&file("gemma3", 6, &keys), &needs, &[]);
}

#[test]
fn gemma4_has_heads_of_two_lengths_and_shares_caches() {
    let mut keys: Vec<(&str, Value)> = vec![
        ("attention.sliding_window", 512u32.into()),
        ("attention.sliding_window_pattern", Value::from(&[true, false, true, false][..])),
        ("attention.key_length", 32u32.into()),
        ("attention.value_length", 32u32.into()),
        ("attention.key_length_swa", 16u32.into()),
        ("attention.value_length_swa", 16u32.into()),
        ("attention.shared_kv_layers", 2u32.into()),
        ("attention.head_count_kv", vec![2u32, 1, 2, 1].into()),
        ("feed_forward_length", vec![96u32, 96, 192, 192].into()),
        ("embedding_length_per_layer_input", 8u32.into()),
        ("rope.freq_base", 1e6f32.into()),
    ];
    let of = |window: bool, shares, width| {
        let local = AttentionSpec {
            scale: 1.0,
            head_norms: HeadNorms::Each,
            value_norms: true,
            keys_as_values: true,
            shares,
            ..windowed(512, neox())
        };
        let wide = RopeParams { base: 1e6, pairs: RopePairs::Neox, ..RopeParams::new(32) };
        let full = AttentionSpec {
            kv_heads: 1,
            head_dim: 32,
            mask: Mask { causal: true, window: None },
            rotary: turns(wide, Factors::Required),
            ..local.clone()
        };
        let network = Network::Dense(DenseSpec { width, activation: GELU, fused: false });
        LayerSpec { network, output_scale: true, ..normed(if window { local } else { full }) }
    };
    let layers =
        vec![of(true, None, 96), of(false, None, 96), of(true, Some(0), 192), of(false, Some(1), 192)];
    let mut expected = Expected::new(layers);
    (expected.0.embedding_scale, expected.0.logit_cap) = (8.0, Some(30.0));
    expected.0.layer_embedding = Some(8);
    let needs = [
        Block::Windows,
        Block::ValueNorms,
        Block::KeysAsValues,
        Block::SharedCache,
        Block::Rotations,
        Block::NormsAfter,
        Block::OutputScale,
        Block::UnequalLayers,
        Block::EmbeddingScale,
        Block::LayerEmbeddings,
        Block::LogitCap,
    ];
    let tensors = "attn_norm.weight 64, attn_q.weight 128x64, attn_k.weight 32x64, attn_v.weight? 32x64, \
                   attn_output.weight 64x128, attn_q_norm.weight 32, attn_k_norm.weight 32, \
                   post_attention_norm.weight 64, ffn_norm.weight 64, ffn_gate.weight 96x64, ffn_up.weight 96x64, \
                   ffn_down.weight 64x96, post_ffw_norm.weight 64, layer_output_scale.weight? 1, inp_gate.weight 8x64, \
                   proj.weight 64x8, post_norm.weight 64";
    expected.hold(&file("gemma4", 4, &keys), &needs, &[(1, tensors)]);

    // Experts stand beside the network that models without them have.
    keys[1].1 = Value::from(&[true][..]);
    keys.retain(|(key, _)| {
        !key.contains("shared_kv") && !key.contains("head_count") && *key != "feed_forward_length"
    });
    keys.extend(expert_keys());
    let spec = ModelSpec::from_gguf(&open(&file("gemma4", 1, &keys))).expect("a model");
    let shared = SharedExpert { width: 96, gated: false, suffix: "" };
    let network = ExpertsSpec { activation: GELU, norms: true, shared: Some(shared), ..experts() };
    assert_eq!(spec.layers[0].network, Network::Experts(network));
}

#[test]
fn phi3_has_one_matrix_for_several_products() {
    let attention =
        AttentionSpec { fused: true, rotary: turns(params(RopePairs::Neox), Factors::ByContext), ..neox() };
    let network = Network::Dense(DenseSpec { width: 96, activation: SILU, fused: true });
    let needs = [Block::FusedProjections, Block::ContextFactors, Block::FusedGate];
    let tensors = "attn_norm.weight 64, attn_qkv.weight 128x64, attn_output.weight 64x64, ffn_norm.weight 64, \
                   ffn_up.weight 192x64, ffn_down.weight 64x96";
    Expected::new(vec![LayerSpec { network, ..layer(attention) }]).hold(
        &file("phi3", 1, &[("rope.scaling.type", "longrope".into())]),
        &needs,
        &[(0, tensors)],
    );
}

#[test]
fn gpt_oss_has_sinks_and_biases_of_experts() {
    let full = AttentionSpec { sinks: true, ..neox() };
    let activation = GatedActivation::Clamped { alpha: 1.702, limit: 7.0 };
    let network = Network::Experts(ExpertsSpec {
        activation,
        gating: Gating::ChosenSoftmax,
        normalized: false,
        biases: true,
        ..experts()
    });
    let norms = around(Some("post_attention_norm"), None);
    let layers = [windowed(128, full.clone()), full];
    let layers = layers.map(|it| LayerSpec { network, network_norms: norms, ..layer(it) });
    let mut keys = expert_keys();
    keys.push(("attention.sliding_window", 128u32.into()));
    let tensors = format!(
        "{QKVO}, attn_sinks.weight 4, post_attention_norm.weight 64, {EXPERTS}, ffn_gate_inp.bias 4, \
         ffn_gate_exps.bias 4x32, ffn_up_exps.bias 4x32, ffn_down_exps.bias 4x64"
    );
    let needs = [Block::Windows, Block::Sinks, Block::Experts, Block::ClampedActivation];
    Expected::new(layers.to_vec()).hold(&file("gpt-oss", 2, &keys), &needs, &[(1, &tensors)]);
}

#[test]
fn granite_scales_everything() {
    let keys: [(&str, Value); 4] = [
        ("embedding_scale", 12f32.into()),
        ("residual_scale", 0.25f32.into()),
        ("logit_scale", 8f32.into()),
        ("attention.scale", 0.5f32.into()),
    ];
    let scaled = |it| LayerSpec { residual_scale: 0.25, ..layer(AttentionSpec { scale: 0.5, ..it }) };
    let expected = |layers| {
        let mut expected = Expected::new(layers);
        (expected.0.embedding_scale, expected.0.logit_scale) = (12.0, 0.125);
        expected
    };
    let needs = [Block::ResidualScale, Block::EmbeddingScale, Block::LogitScale];
    expected(vec![scaled(attention())]).hold(&file("granite", 1, &keys), &needs, &[]);

    let still = scaled(AttentionSpec { rotary: None, ..attention() });
    let with = |more: &[(&'static str, Value)]| [&keys[..], more].concat();
    let finetuned = ("rope.scaling.finetuned", Value::from(false));
    let file_of = file("granite", 1, &with(std::slice::from_ref(&finetuned)));
    expected(vec![still.clone()]).hold(&file_of, &[&[Block::Unrotated], &needs[..]].concat(), &[]);

    let shared = SharedExpert { width: 48, gated: false, suffix: "_shexp" };
    let network = Network::Experts(ExpertsSpec { width: 96, shared: Some(shared), ..experts() });
    let mut more = expert_keys();
    more[2] = ("expert_shared_feed_forward_length", 48u32.into());
    let needs = [Block::ResidualScale, Block::Experts, Block::EmbeddingScale, Block::LogitScale];
    let layers = vec![LayerSpec { network, ..scaled(attention()) }];
    expected(layers).hold(&file("granitemoe", 1, &with(&more)), &needs, &[]);

    // Layers without heads of keys are Mamba 2.
    let recurrence = RecurrenceSpec { tokens: 4, inner: 128, state: 16, heads: 8, groups: 1 };
    let mamba = LayerSpec { mixer: Mixer::Mamba2(recurrence), ..still.clone() };
    let more = [
        finetuned,
        ("attention.head_count_kv", vec![0u32, 2].into()),
        ("ssm.conv_kernel", 4u32.into()),
        ("ssm.inner_size", 128u32.into()),
        ("ssm.state_size", 16u32.into()),
        ("ssm.time_step_rank", 8u32.into()),
        ("ssm.group_count", 1u32.into()),
    ];
    let needs =
        [Block::Unrotated, Block::Mamba2, Block::ResidualScale, Block::EmbeddingScale, Block::LogitScale];
    let tensors = format!(
        "attn_norm.weight 64, ssm_in.weight 296x64, ssm_conv1d.weight 160x4, ssm_dt.bias 8, ssm_a 8x1, ssm_d 8x1, \
         ssm_norm.weight 1x128, ssm_out.weight 64x128, ffn_norm.weight 64, {FFN}"
    );
    let file = file("granitehybrid", 2, &with(&more));
    expected(vec![mamba, still]).hold(&file, &needs, &[(0, &tensors)]);
}

#[test]
fn norms_behind_blocks() {
    let glm = AttentionSpec {
        rotary: turns(RopeParams { rotary_dim: 8, ..params(RopePairs::Interleaved) }, Factors::None),
        ..attention()
    };
    let network = Network::Dense(DenseSpec { width: 96, activation: SILU, fused: true });
    Expected::new(vec![LayerSpec { network, ..normed(glm) }]).hold(
        &file("glm4", 1, &[("rope.dimension_count", 8u32.into())]),
        &[Block::NormsAfter, Block::FusedGate],
        &[],
    );

    let olmo = AttentionSpec { head_norms: HeadNorms::Whole, ..neox() };
    let tensors = format!(
        "{QKVO}, attn_q_norm.weight 64, attn_k_norm.weight 32, post_attention_norm.weight 64, {FFN}, \
         post_ffw_norm.weight 64"
    )
    .replace("attn_norm.weight 64, ", "");
    Expected::new(vec![normed_after(olmo.clone())]).hold(
        &file("olmo2", 1, &[]),
        &[Block::WholeHeadNorms, Block::NormsAfter],
        &[(0, &tensors)],
    );
    // OLMo 3: YaRN in layers without a window.
    let yarn = RopeParams { scaling: RopeScaling::yarn(8.0, 1024), ..params(RopePairs::Neox) };
    let full = AttentionSpec { rotary: turns(yarn, Factors::None), ..olmo.clone() };
    let mut layers = vec![normed_after(windowed(512, olmo)); 3];
    layers.push(normed_after(full));
    let keys: [(&str, Value); 4] = [
        ("attention.sliding_window", 512u32.into()),
        ("rope.scaling.type", "yarn".into()),
        ("rope.scaling.factor", 8f32.into()),
        ("rope.scaling.original_context_length", 1024u32.into()),
    ];
    let needs = [Block::Windows, Block::WholeHeadNorms, Block::Rotations, Block::NormsAfter];
    Expected::new(layers).hold(&file("olmo2", 4, &keys), &needs, &[]);

    // Without windows all heads turn, with windows only those of layers that have one.
    let rotary = turns(params(RopePairs::Neox), Factors::Optional);
    let exaone = AttentionSpec { head_norms: HeadNorms::Each, rotary, ..attention() };
    let small = Expected::new(vec![normed_after(exaone.clone())]);
    small.hold(&file("exaone4", 1, &[]), &[Block::NormsAfter], &[]);
    let full = AttentionSpec { rotary: None, ..exaone.clone() };
    let mut layers = vec![normed_after(windowed(512, exaone)); 3];
    layers.push(normed_after(full));
    let needs = [Block::Windows, Block::Unrotated, Block::NormsAfter];
    Expected::new(layers).hold(&file("exaone4", 4, &keys[..1]), &needs, &[]);
}

#[test]
fn lfm2_has_convolutions_in_layers_without_heads() {
    let attention = layer(AttentionSpec { head_norms: HeadNorms::Each, ..neox() });
    let convolution = LayerSpec { mixer: Mixer::ShortConvolution { tokens: 3 }, ..attention.clone() };
    let mut expected = Expected::new(vec![convolution, attention]);
    expected.0.output_norm = "token_embd_norm";
    let keys = [("shortconv.l_cache", 3u32.into()), ("attention.head_count_kv", vec![0u32, 2].into())];
    let tensors = format!(
        "attn_norm.weight 64, shortconv.conv.weight 64x3, shortconv.in_proj.weight 192x64, \
         shortconv.out_proj.weight 64x64, ffn_norm.weight 64, {FFN}"
    );
    expected.hold(&file("lfm2", 2, &keys), &[Block::ShortConvolution], &[(0, &tensors)]);
}

#[test]
fn deepseek2_has_latent_attention() {
    let mut keys = expert_keys();
    keys.extend::<[(&str, Value); 17]>([
        ("attention.head_count_kv", 1u32.into()),
        ("attention.key_length", 40u32.into()),
        ("attention.value_length", 32u32.into()),
        ("attention.key_length_mla", 24u32.into()),
        ("attention.value_length_mla", 16u32.into()),
        ("attention.kv_lora_rank", 32u32.into()),
        ("attention.q_lora_rank", 48u32.into()),
        ("rope.dimension_count", 8u32.into()),
        ("rope.scaling.type", "yarn".into()),
        ("rope.scaling.factor", 4f32.into()),
        ("rope.scaling.yarn_log_multiplier", 0.1f32.into()),
        ("leading_dense_block_count", 1u32.into()),
        ("expert_shared_count", 2u32.into()),
        ("expert_weights_scale", 2.5f32.into()),
        ("expert_weights_norm", true.into()),
        ("expert_gating_func", 2u32.into()),
        ("expert_group_count", 2u32.into()),
    ]);
    keys.push(("expert_group_used_count", 1u32.into()));
    let scaling = RopeScaling::Yarn {
        factor: 4.0,
        original_context: 4096,
        beta_fast: 32.0,
        beta_slow: 1.0,
        attention_factor: Some(1.0),
    };
    let rotation =
        RopeParams { rotary_dim: 8, pairs: RopePairs::Interleaved, scaling, ..RopeParams::new(24) };
    let scale = (1.0 + f64::from(0.1f32) * 4f64.ln()).powi(2) / 24f64.sqrt();
    let latent = LatentSpec {
        heads: 4,
        query_rank: Some(48),
        kv_rank: 32,
        key_dim: 24,
        value_dim: 16,
        split: true,
        mask: Mask { causal: true, window: None },
        scale: scale as f32,
        rotary: Rotary { params: rotation, factors: Factors::None, sections: None },
    };
    let first = LayerSpec { mixer: Mixer::Latent(latent), ..layer(attention()) };
    let network = Network::Experts(ExpertsSpec {
        groups: Some([2, 1]),
        gating: Gating::Sigmoid,
        scale: 2.5,
        choice_bias: true,
        shared: Some(SharedExpert { width: 64, gated: false, suffix: "_shexp" }),
        ..experts()
    });
    let tensors = format!(
        "attn_norm.weight 64, attn_q_a.weight 48x64, attn_q_a_norm.weight 48, attn_q_b.weight 96x48, \
         attn_kv_a_mqa.weight 40x64, attn_kv_a_norm.weight 32, attn_k_b.weight 4x32x16, attn_v_b.weight 4x16x32, \
         attn_output.weight 64x64, ffn_norm.weight 64, {EXPERTS}, ffn_gate_shexp.weight 64x64, \
         ffn_up_shexp.weight 64x64, ffn_down_shexp.weight 64x64"
    );
    let layers = vec![first.clone(), LayerSpec { network, ..first }];
    let needs = [Block::LatentAttention, Block::Experts];
    Expected::new(layers).hold(&file("deepseek2", 2, &keys), &needs, &[(1, &tensors)]);
}

#[test]
fn smollm3_turns_three_layers_of_four() {
    let turning =
        AttentionSpec { rotary: turns(params(RopePairs::Interleaved), Factors::None), ..attention() };
    let mut layers = vec![layer(turning.clone()); 3];
    layers.push(layer(AttentionSpec { rotary: None, ..turning.clone() }));
    layers.push(layer(turning));
    Expected::new(layers).hold(&file("smollm3", 5, &[]), &[Block::Unrotated], &[]);
}

#[test]
fn norms_with_a_mean() {
    let own = AttentionSpec { rotary: turns(params(RopePairs::Interleaved), Factors::None), ..attention() };
    let parallel = LayerSpec { parallel: true, network_norms: around(None, None), ..layer(own) };
    let mut expected = Expected::new(vec![parallel]);
    (expected.0.norm.kind, expected.0.logit_scale) = (NormKind::Layer, 0.0625);
    let needs = [Block::LayerNorm, Block::ParallelResiduals, Block::LogitScale];
    let tensors = format!("{QKVO}, {FFN}");
    expected.hold(&file("command-r", 1, &[("logit_scale", 0.0625f32.into())]), &needs, &[(0, &tensors)]);

    let network = dense(GatedActivation::Plain(Activation::GeluTanh));
    let mut expected = Expected::new(vec![LayerSpec { network, ..layer(neox()) }]);
    expected.0.norm.kind = NormKind::LayerBias;
    let tensors = format!(
        "{QKVO}, attn_norm.bias 64, ffn_norm.weight 64, ffn_norm.bias 64, ffn_up.weight 96x64, ffn_down.weight 64x96"
    );
    let needs = [Block::LayerNorm, Block::UngatedNetwork];
    expected.hold(&file("starcoder2", 1, &[]), &needs, &[(0, &tensors)]);
}

/// A key that an architecture needs and a file has not is named, and so is one with a value that it may not have.
#[test]
fn keys_are_named() {
    let missing: [(&str, &str); 8] = [
        ("qwen2moe", "expert_count"),
        ("qwen35", "ssm.conv_kernel"),
        ("gemma4", "attention.sliding_window"),
        ("gpt-oss", "attention.sliding_window"),
        ("granite", "logit_scale"),
        ("granitehybrid", "ssm.conv_kernel"),
        ("lfm2", "shortconv.l_cache"),
        ("deepseek2", "rope.dimension_count"),
    ];
    for (architecture, expected) in missing {
        let mut keys: Vec<(&str, Value)> = vec![("attention.key_length", 16u32.into())];
        keys.push(("attention.value_length", 16u32.into()));
        if ["granitehybrid", "lfm2"].contains(&architecture) {
            keys.push(("attention.head_count_kv", 0u32.into()));
        }
        match ModelSpec::from_gguf(&open(&file(architecture, 1, &keys))) {
            Err(ModelError::Metadata(error)) => {
                let expected = format!("{architecture}.{expected}");
                assert!(
                    matches!(error.problem(), Problem::MissingKey { key, .. } if *key == expected),
                    "{architecture}: {error}"
                );
            }
            other => panic!("{architecture}: {other:?}"),
        }
    }
    let wrong: [(&str, &str, Value); 9] = [
        ("llama", "attention.head_count_kv", vec![2u32].into()),
        ("llama", "block_count", 4097u32.into()),
        ("llama", "expert_count", 1u32.into()),
        ("gemma2", "attn_logit_softcapping", (-1f32).into()),
        ("gemma2", "attention.sliding_window", 0u32.into()),
        ("gemma3", "attention.sliding_window_pattern", Value::from(&[true][..])),
        ("granite", "logit_scale", 0f32.into()),
        ("granite", "residual_scale", f32::NAN.into()),
        ("exaone4", "nextn_predict_layers", 2u32.into()),
    ];
    for (architecture, key, value) in wrong {
        let mut keys = vec![("expert_used_count", 2u32.into()), ("logit_scale", 1f32.into())];
        keys.push((key, value));
        let named = if key == "expert_count" { "expert_used_count" } else { key };
        match ModelSpec::from_gguf(&open(&file(architecture, 2, &keys))) {
            Err(ModelError::Parameter { key, .. }) => assert_eq!(key, format!("{architecture}.{named}")),
            other => panic!("{architecture} {key}: {other:?}"),
        }
    }
}

#[test]
fn names_are_those_of_one_architecture() {
    let names: BTreeSet<&str> = Architecture::ALL.iter().map(|architecture| architecture.name).collect();
    assert_eq!(names.len(), Architecture::ALL.len());
}
