//! Gemma.

use super::*;

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
