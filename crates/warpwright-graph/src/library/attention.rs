//! Attention over a cache.

use super::lowering::{LaunchArg, Lowering, Result, form};
use crate::graph::{AttentionMode, AttentionParams, CacheShape, Tensor};
use crate::program::AttentionStep;
use warpwright_kernels::tune::{AttentionShape, FlashShape};
use warpwright_kernels::{
    CacheDtype, Cast, Dtype, FlashAttention, FlashAttentionArgs, IncrementalAttention,
    IncrementalAttentionArgs, Lengths,
};
use warpwright_ptx::ir::Type;

pub(super) fn lower(lowering: &mut Lowering<'_>, step: &AttentionStep) -> Result<()> {
    let ty = lowering.ty(step.k_cache);
    let Some(cache) = CacheShape::of(ty) else { return form(format!("{ty} is no cache")) };
    match (step.params.mode, &step.lengths[..]) {
        (AttentionMode::Decode, &[lengths]) => decode(lowering, step, &cache, lengths),
        (AttentionMode::Prefill, &[q_starts, kv_lens]) => {
            prefill(lowering, step, &cache, [q_starts, kv_lens])
        }
        (_, lengths) => form(format!("attention of {} lengths", lengths.len())),
    }
}

/// One query for each sequence. A sequence is split by what its cache has room for, so that the same launch serves
/// every length.
fn decode(
    lowering: &mut Lowering<'_>,
    step: &AttentionStep,
    cache: &CacheShape,
    lengths: Tensor,
) -> Result<()> {
    let AttentionParams { heads, kv_heads, head_dim, scale, .. } = step.params;
    let &CacheShape { dtype, batch, max_seq_len, .. } = cache;
    let kernel = IncrementalAttention {
        cache: dtype,
        scale: Some(scale),
        lengths_in_memory: true,
        ..IncrementalAttention::new(heads, kv_heads, head_dim, max_seq_len)
    };
    let shape = AttentionShape::of(&kernel, max_seq_len, lowering.options.tuning.batch(batch));
    let kernel = lowering.choose(&shape).apply(kernel);
    let scales = |half| (dtype == CacheDtype::Q8_0).then(|| LaunchArg::part(half, 1, 0));
    let mut args = IncrementalAttentionArgs {
        q: step.q.into(),
        k: step.k_cache.into(),
        k_scales: scales(step.k_cache),
        v: step.v_cache.into(),
        v_scales: scales(step.v_cache),
        out: step.out.into(),
        lengths: Some(lengths.into()),
        length: None,
        partial_out: None,
        partial_stats: None,
        arrivals: None,
        batch: batch.into(),
    };
    if kernel.splits > 1 {
        let wide = |a: u32, b: u32| u64::from(a).saturating_mul(b.into());
        let parts = wide(batch, heads).saturating_mul(kernel.splits.into());
        let passes = wide(batch, kv_heads).saturating_mul(kernel.passes().into());
        args.partial_out = Some(lowering.scratch(Type::F32, parts.saturating_mul(head_dim.into())).into());
        args.partial_stats = Some(lowering.scratch(Type::F32, parts.saturating_mul(2)).into());
        args.arrivals = Some(lowering.zeroed(Type::U32, passes).into());
    }
    lowering.launch_with(kernel, args)
}

/// Many queries, on the tensor cores: the grid is for one sequence that has them all.
fn prefill(
    lowering: &mut Lowering<'_>,
    step: &AttentionStep,
    cache: &CacheShape,
    [q_starts, kv_lens]: [Tensor; 2],
) -> Result<()> {
    let AttentionParams { heads, kv_heads, head_dim, scale, .. } = step.params;
    let &CacheShape { dtype, batch, max_seq_len, .. } = cache;
    // Floats are multiplied as halves, of which `f16` has more digits, and `bf16` what a cache of it needs.
    let (kv, factors) = match dtype {
        CacheDtype::F32 => (Dtype::F32, Dtype::F16),
        CacheDtype::F16 | CacheDtype::Q8_0 => (Dtype::F16, Dtype::F16),
        CacheDtype::Bf16 => (Dtype::Bf16, Dtype::Bf16),
    };
    let kernel = FlashAttention {
        q: Dtype::F32,
        kv,
        out: Dtype::F32,
        factors,
        scale: Some(scale),
        lengths: Lengths::Buffers,
        ..FlashAttention::new(heads, kv_heads, head_dim, max_seq_len)
    };
    let tokens = lowering.rows(step.q)?;
    let shape = FlashShape::of(&kernel, lowering.options.tuning.batch(tokens));
    let kernel = lowering.choose(&shape).apply(kernel);
    super::kernels::check(&kernel, lowering.options.arch())?;
    let mut sides = [LaunchArg::from(step.k_cache), LaunchArg::from(step.v_cache)];
    if dtype == CacheDtype::Q8_0 {
        for (side, half) in sides.iter_mut().zip([step.k_cache, step.v_cache]) {
            let rows = lowering.rows(half)?;
            let floats = lowering.scratch(Type::F16, lowering.ty(half).shape.elements());
            let cast = Cast::new(head_dim, CacheDtype::Q8_0, CacheDtype::F16);
            let given = [
                ("x", half.into()),
                ("x_scales", LaunchArg::part(half, 1, 0)),
                ("y", floats.into()),
                ("rows", LaunchArg::u32(rows)),
            ];
            lowering.launch(cast, &[], &given)?;
            *side = floats.into();
        }
    }
    let [k, v] = sides;
    let args = FlashAttentionArgs {
        q: step.q.into(),
        k,
        v,
        out: step.out.into(),
        lse: None,
        q_len: None,
        kv_len: None,
        q_starts: Some(q_starts.into()),
        starts: Some(LaunchArg::u32(batch + 1)),
        q_tokens: Some(LaunchArg::u32(tokens)),
        kv_lens: Some(kv_lens.into()),
        kv_starts: None,
        kv_tokens: None,
        max_q_len: Some(tokens.into()),
        batch: batch.into(),
    };
    lowering.launch_with(kernel, args)
}
