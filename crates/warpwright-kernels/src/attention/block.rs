//! What a block of decode attention does, from the lengths to the results.

use super::cache::{CacheRows, Lane};
use super::incremental::{IncrementalAttention, Plan};
use super::online::Online;
use super::split::{self, Chunk, Workspace};
use super::steps::Steps;
use super::tensor::{self, TensorOnline};
use super::warps::{self, Part};
use crate::CacheDtype;
use crate::data::floats::{FloatBuffers, Floats};
use std::f32::consts::LOG2_E;
use warpwright_ptx::dsl::*;

/// Where a block is.
#[derive(Clone, Copy)]
struct Place<'k> {
    sequence: Reg<'k, u32>,
    /// The head of the cache, counted over all sequences.
    kv_head: Reg<'k, u32>,
    /// The first query head of the pass, counted over all sequences; and in its group.
    first: Reg<'k, u32>,
    of_group: Reg<'k, u32>,
    /// Heads of the group, where the last pass has fewer than others.
    ragged: Option<u32>,
}

impl<'k> Place<'k> {
    /// Whether the pass has a head; `None` where all passes do.
    fn has(self, head: Reg<'k, u32>) -> Option<Reg<'k, Pred>> {
        self.ragged.map(|group| (head + self.of_group).lt(group))
    }
}

/// What follows the query and the cache among the parameters.
#[derive(Clone, Copy)]
struct Rest<'k> {
    out: Floats<'k>,
    length: Reg<'k, u32>,
    workspace: Option<Workspace<'k>>,
}

/// The body of [`IncrementalAttention`].
pub(super) fn attend(config: &IncrementalAttention, k: K<'_>) {
    match config.cache {
        CacheDtype::F16 if config.on_tensor_cores(k.target().sm) => on_tensor_cores::<F16>(config, k),
        CacheDtype::Bf16 if config.on_tensor_cores(k.target().sm) => on_tensor_cores::<Bf16>(config, k),
        _ => on_lanes(config, k),
    }
}

fn place<'k>(config: &IncrementalAttention, k: K<'k>) -> Place<'k> {
    let Plan { group, heads, .. } = config.plan();
    let passes = config.passes();
    let (sequence, kv_head, pass) = (k.ctaid_z(), k.ctaid_y() / passes, k.ctaid_y() % passes);
    let (kv_head, of_group) = (sequence * config.kv_heads + kv_head, pass * heads);
    let ragged = (!group.is_multiple_of(heads)).then_some(group);
    Place { sequence, kv_head, first: kv_head * group + of_group, of_group, ragged }
}

fn rest<'k>(config: &IncrementalAttention, k: K<'k>, sequence: Reg<'k, u32>) -> Rest<'k> {
    let out = k.floats_mut("out", config.out);
    let length = match config.lengths_in_memory {
        true => k.ptr::<u32>("lengths").ld(sequence),
        false => k.scalar::<u32>("length"),
    };
    let workspace = (config.splits > 1).then(|| Workspace::new(k, config.splits, config.head_dim));
    Rest { out, length: length.min(config.max_seq_len), workspace }
}

/// With fused multiplications and additions of lanes.
fn on_lanes<'k>(config: &IncrementalAttention, k: K<'k>) {
    let Plan { layout, heads, depth, .. } = config.plan();
    let (place, lane) = (place(config, k), Lane::new(k, layout));
    let q = k.floats("q", config.q).nc();
    let rows = place.kv_head * config.max_seq_len;
    let keys = CacheRows::new(lane, "k", "k_scales", rows);
    let values = CacheRows::new(lane, "v", "v_scales", rows);
    let rest = rest(config, k, place.sequence);
    let query = query(config, lane, |head| {
        let head = place.has(head).map_or(head, |has| has.select(head, 0));
        lane.read(q.at((place.first + head) * config.head_dim))
    });
    finish(config, place, rest, &Online { k, lane, query: &query, keys, values, heads, depth });
}

/// With the products on the tensor cores, of a cache of `T`.
fn on_tensor_cores<'k, T: Half + Float>(config: &IncrementalAttention, k: K<'k>) {
    let Plan { heads, .. } = config.plan();
    let place = place(config, k);
    let q = k.floats("q", config.q).nc();
    let rows = place.kv_head * config.max_seq_len;
    let [keys, values] = ["k", "v"].map(|name| k.ptr::<T>(name).at(rows * config.head_dim));
    let rest = rest(config, k, place.sequence);
    let layout = tensor::Layout { k, head_dim: config.head_dim, heads };
    let query = tensor::Query::read(layout, (config.q, config.scale * LOG2_E), |head| {
        let head = place.has(head).map_or(head, |has| has.select(head, 0));
        q.at((place.first + head) * config.head_dim)
    });
    let depth = config.tensor_depth();
    finish(config, place, rest, &TensorOnline { layout, query: &query, depth, keys, values });
}

/// Goes through the block's keys, puts together what its warps have seen, and what blocks have.
fn finish<'k>(config: &IncrementalAttention, place: Place<'k>, rest: Rest<'k>, steps: &impl Steps<'k>) {
    let Rest { out, length, workspace } = rest;
    let (k, warps) = (length.kernel(), config.warps());
    let Plan { heads, .. } = config.plan();
    let chunk = Chunk::new(k, length, config.splits, warps * steps.step_keys());
    let seen = steps.over(k, chunk.begin, chunk.end, warps);

    let result = |lane: Lane<'k>, head: Reg<'k, u32>, part: &Part<'k>| {
        let inverse = split::inverse(part.sum);
        let mean: Vec<_> = part.out.iter().map(|&out| out * inverse).collect();
        let once = lane.row.eq(0);
        let here = place.has(head).map_or(once, |has| has & once);
        lane.write(out.at((place.first + head) * config.head_dim), &mean, here);
    };
    let shape = (config.head_dim, warps);
    warps::over_warps(k, shape, &*steps.of_warp(seen), |lane, head, part| match workspace {
        None => result(lane, head, &part),
        Some(workspace) => {
            let several = chunk.used.gt(1);
            k.when(!several, || result(lane, head, &part));
            let several = place.has(head).map_or(several, |has| has & several);
            k.when(several, || workspace.leave(lane, place.first + head, chunk.split, &part));
        }
    });
    let Some(workspace) = workspace else { return };
    k.when(chunk.used.gt(1), || {
        let counter = place.sequence * (config.kv_heads * config.passes()) + k.ctaid_y();
        let last = workspace.arrive(k, counter, chunk.used);
        let has = |head| place.has(head);
        k.when(last, || workspace.merge(k, (place.first, heads, warps), chunk.used, out, has));
    });
}

/// The lane's part of a head's query, times what scores are scaled by for powers of two.
fn query<'k>(
    config: &IncrementalAttention,
    lane: Lane<'k>,
    read: impl Fn(Reg<'k, u32>) -> Vec<Reg<'k, f32>>,
) -> impl Fn(u32) -> Vec<Reg<'k, f32>> {
    let Plan { layout, heads, query_in_registers, .. } = config.plan();
    let k = lane.kernel();
    let scaled = move |head, scale: f32| -> Vec<Reg<'k, f32>> {
        read(head).into_iter().map(|q| q * (scale * LOG2_E)).collect()
    };
    let scale = config.scale;
    let in_registers: Vec<_> = match query_in_registers {
        true => (0..heads).map(|head| scaled(k.u32(head), scale)).collect(),
        false => Vec::new(),
    };
    let in_shared = (!query_in_registers).then(|| {
        let shared = k.shared::<f32>(heads * layout.room());
        k.each(k.range(k.warp()..k.u32(heads)).step(config.warps()), |head| {
            let query = scaled(head, scale);
            for (place, query) in lane.shared_places().zip(query.chunks_exact(4)) {
                let vector = [query[0], query[1], query[2], query[3]];
                shared.at(head * layout.room()).st_vec_if(lane.row.eq(0), place, vector);
            }
        });
        k.sync();
        shared
    });
    move |head| match in_shared {
        Some(shared) => {
            let shared = shared.at(head * layout.room());
            lane.shared_places().flat_map(|place| shared.ld_vec::<4>(place)).collect()
        }
        None => in_registers[head as usize].clone(),
    }
}
