//! The others.

use super::*;

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
