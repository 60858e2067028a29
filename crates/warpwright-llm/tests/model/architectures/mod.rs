//! Each architecture, from the metadata of a small file: what its layers are, which tensors they have, and which of
//! their blocks are not computed yet.

mod experts;
mod gemma;
mod others;
mod states;

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

/// The same with norms after blocks alone.
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

fn windowed(window: u32, attention: AttentionSpec) -> AttentionSpec {
    AttentionSpec { mask: Mask { causal: true, window: Some(window) }, ..attention }
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
