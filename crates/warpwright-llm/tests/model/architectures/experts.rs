//! Architectures whose models have experts.

use super::*;

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
