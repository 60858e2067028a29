//! Rotation, and the write into the cache.

use super::lowering::{LaunchArg, Lowering, Result, form};
use crate::graph::CacheShape;
use crate::program::{Program, RopeStep};
use warpwright_kernels::tune::RopeShape;
use warpwright_kernels::{CacheDtype, Rope, RopeArgs};

/// The kernel for a step.
pub(super) fn configure(program: &Program, step: &RopeStep) -> Result<Rope> {
    let cache = match step.append.as_ref().map(|append| program.ty(append.k_cache.0)) {
        None => None,
        Some(ty) => match CacheShape::of(ty) {
            None => return form(format!("{ty} is no cache")),
            cache => cache,
        },
    };
    let head_dim = match (step.params, cache) {
        (Some(params), Some(CacheShape { head_dim, .. })) if params.head_dim != head_dim => {
            return form(format!(
                "heads of {} elements are turned, and the cache has heads of {head_dim}",
                params.head_dim
            ));
        }
        (Some(params), _) => params.head_dim,
        (None, Some(cache)) => cache.head_dim,
        (None, None) => return form("nothing turns, and nothing goes into a cache"),
    };
    if step.params.is_none() && step.rotate.is_some() {
        return form("a tensor is rotated by no angle");
    }
    let norms = [
        step.rotate.map(|rotate| rotate.norm.is_some()),
        step.append.as_ref().map(|append| append.k_norm.is_some()),
    ];
    if norms.into_iter().flatten().any(|normed| normed != step.epsilon.is_some()) {
        return form("either all heads are normalised or none, with one epsilon");
    }
    let heads = match step.rotate {
        Some(rotate) => program.ty(rotate.x).shape.columns() / head_dim.max(1),
        None => 0,
    };
    let (kv_heads, max_seq_len) = cache.map_or((0, 0), |cache| (cache.kv_heads, cache.max_seq_len));
    let mut rope = Rope::new(heads, kv_heads, head_dim, max_seq_len);
    rope.cache = cache.map_or(CacheDtype::F32, |cache| cache.dtype);
    rope.norm = step.epsilon;
    rope.rotary_dim = 0;
    if let Some(params) = step.params {
        rope.rotary_dim = params.rotary_dim;
        rope.pairs = params.pairs;
        rope.base = params.base;
        rope.scaling = params.scaling;
        rope.freq_factors = params.factors;
    }
    if let Some(append) = &step.append {
        rope.sequences = append.sequences;
    }
    Ok(rope)
}

pub(super) fn lower(lowering: &mut Lowering<'_>, step: &RopeStep) -> Result<()> {
    let mut kernel = configure(lowering.program, step)?;
    let tokens = lowering.ty(step.positions).shape.elements();
    let shape = RopeShape {
        heads: kernel.heads.saturating_add(kernel.kv_heads.saturating_mul(2)),
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
    };
    kernel.rounds = lowering.choose(&shape).rounds;
    let append = step.append.as_ref();
    let listed = append.and_then(|append| append.listed);
    let batch = append.and_then(|append| lowering.ty(append.k_cache.0).shape.dims().first().copied());
    // A row for each token and head is written, and nothing else.
    let rows = append.map_or(0, |append| lowering.ty(append.k).shape.elements());
    let cache = |cache| LaunchArg::from(cache).moves(rows.saturating_mul(kernel.cache.bytes().into()));
    let scales =
        |cache| (kernel.cache == CacheDtype::Q8_0).then(|| LaunchArg::part(cache, 1, 0).moves(rows / 16));
    let args = RopeArgs {
        q: step.rotate.map(|rotate| rotate.x.into()),
        q_in_place: None,
        k: append.map(|append| append.k.into()),
        v: append.map(|append| append.v.into()),
        qkv: None,
        qkv_in_place: None,
        q_norm: step.rotate.and_then(|rotate| rotate.norm).map(LaunchArg::from),
        k_norm: append.and_then(|append| append.k_norm).map(LaunchArg::from),
        positions: Some(step.positions.into()),
        sequences: listed.map(LaunchArg::from),
        batch: listed.map(|_| LaunchArg::u32(batch.unwrap_or(0))),
        freq_factors: step.factors.map(LaunchArg::from),
        rotated: step.rotate.map(|rotate| rotate.out.into()),
        k_cache: append.map(|append| cache(append.k_cache.1)),
        k_scales: append.and_then(|append| scales(append.k_cache.1)),
        v_cache: append.map(|append| cache(append.v_cache.1)),
        v_scales: append.and_then(|append| scales(append.v_cache.1)),
        tokens,
    };
    lowering.launch_with(kernel, args)
}
