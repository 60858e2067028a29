//! What a block of decode attention does, from the lengths to the results.

use super::cache::{CacheRows, Lane};
use super::incremental::{IncrementalAttention, IncrementalAttentionArgs, Plan};
use super::online::Online;
use super::split::{self, Chunk, Workspace};
use super::steps::Steps;
use super::tensor::{self, TensorOnline};
use super::warps::{self, Part};
use crate::CacheDtype;
use crate::data::floats::Floats;
use warpwright_dsl::*;

type Given<'k> = IncrementalAttentionArgs<Body<'k>>;

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
    /// Heads of the cache that a sequence has.
    kv_heads: Dim<'k>,
    /// Rows that a head of the cache has.
    max_seq_len: Dim<'k>,
}

impl<'k> Place<'k> {
    /// Whether the pass has a head; `None` where all passes do.
    fn has(self, head: Reg<'k, u32>) -> Option<Reg<'k, Pred>> {
        self.ragged.map(|group| (head + self.of_group).lt(group))
    }
}

/// The body of [`IncrementalAttention`].
pub(super) fn attend<'k>(config: &IncrementalAttention, k: K<'k>, args: &Given<'k>) {
    match config.cache {
        CacheDtype::F16 if config.on_tensor_cores(k.target().sm) => on_tensor_cores::<F16>(config, k, args),
        CacheDtype::Bf16 if config.on_tensor_cores(k.target().sm) => on_tensor_cores::<Bf16>(config, k, args),
        _ => on_lanes(config, k, args),
    }
}

fn place<'k>(config: &IncrementalAttention, k: K<'k>) -> Place<'k> {
    let Plan { group, heads, .. } = config.plan();
    let passes = config.passes();
    let [kv_heads, max_seq_len] = [config.kv_heads, config.max_seq_len].map(|size| k.dim(size));
    let (sequence, kv_head, pass) = (k.ctaid_z(), k.ctaid_y() / passes, k.ctaid_y() % passes);
    let (kv_head, of_group) = (sequence * kv_heads.reg() + kv_head, pass * heads);
    let ragged = (!group.is_multiple_of(heads)).then_some(group);
    Place { sequence, kv_head, first: kv_head * group + of_group, of_group, ragged, kv_heads, max_seq_len }
}

/// The tokens of the sequence.
fn length<'k>(k: K<'k>, args: &Given<'k>, place: Place<'k>) -> Reg<'k, u32> {
    let of_sequence = args.lengths.map(|lengths| lengths.ld(place.sequence));
    of_sequence.or(args.length).unwrap_or_else(|| k.u32(0)).min(place.max_seq_len.reg())
}

/// With fused multiplications and additions of lanes.
fn on_lanes<'k>(config: &IncrementalAttention, k: K<'k>, args: &Given<'k>) {
    let Plan { layout, heads, depth, .. } = config.plan();
    let (place, lane) = (place(config, k), Lane::new(k, layout));
    let q = Floats::from(args.q).nc();
    let [keys, values] = [(args.k, args.k_scales), (args.v, args.v_scales)]
        .map(|buffers| CacheRows::new(lane, buffers, place.kv_head, place.max_seq_len));
    let length = length(k, args, place);
    let query = query(config, lane, |head| {
        let head = place.has(head).map_or(head, |has| has.select(head, 0));
        lane.read(q.at((place.first + head) * config.head_dim))
    });
    finish(config, args, place, length, &Online { k, lane, query: &query, keys, values, heads, depth });
}

/// With the products on the tensor cores, of a cache of `T`.
fn on_tensor_cores<'k, T: Half + Float>(config: &IncrementalAttention, k: K<'k>, args: &Given<'k>) {
    let Plan { heads, .. } = config.plan();
    let place = place(config, k);
    let q = Floats::from(args.q).nc();
    let rows = place.max_seq_len * config.head_dim;
    let [keys, values] = [args.k, args.v].map(|all| all.typed::<T>().row(place.kv_head, rows));
    let length = length(k, args, place);
    let layout = tensor::Layout { k, head_dim: config.head_dim, heads };
    let query = tensor::Query::read(layout, (config.q, scale(config, k)), |head| {
        let head = place.has(head).map_or(head, |has| has.select(head, 0));
        q.at((place.first + head) * config.head_dim)
    });
    let depth = config.tensor_depth();
    finish(config, args, place, length, &TensorOnline { layout, query: &query, depth, keys, values });
}

/// What scores are scaled by for powers of two.
fn scale<'k>(config: &IncrementalAttention, k: K<'k>) -> Reg<'k, f32> {
    k.factor(config.scale_of_exponents())
}

/// Goes through the block's keys, puts together what its warps have seen, and what blocks have.
fn finish<'k>(
    config: &IncrementalAttention,
    args: &Given<'k>,
    place: Place<'k>,
    length: Reg<'k, u32>,
    steps: &impl Steps<'k>,
) {
    let (k, granule) = (length.kernel(), config.warps() * steps.step_keys());
    if config.splits > 1 {
        let chunk = Chunk::of(k, length, config.splits, granule);
        k.when(chunk.split.lt(chunk.used), || over((config, args), place, steps, chunk));
    } else {
        over((config, args), place, steps, Chunk::whole(k, length));
    }
}

/// The same for a part of the sequence that has tokens, or is all that there is. What the results need is taken
/// anew behind the keys, which want all registers.
fn over<'k>(
    (config, args): (&IncrementalAttention, &Given<'k>),
    place: Place<'k>,
    steps: &impl Steps<'k>,
    chunk: Chunk<'k>,
) {
    let (k, warps) = (chunk.begin.kernel(), config.warps());
    let Plan { heads, .. } = config.plan();
    let seen = steps.over(k, chunk.begin, chunk.end, warps);

    let (out, head_dim) = (Floats::from(args.out.anew()), config.head_dim);
    let workspace = match (args.partial_out, args.partial_stats, args.arrivals) {
        (Some(out), Some(stats), Some(arrivals)) => {
            let (out, stats, arrivals) = (out.anew(), stats.anew(), arrivals.anew());
            Some(Workspace { out, stats, arrivals, splits: config.splits, head_dim })
        }
        _ => None,
    };

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
        let counter = place.sequence * (place.kv_heads * config.passes()).reg() + k.ctaid_y();
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
    let scale = scale(config, k);
    let scaled = move |head| -> Vec<Reg<'k, f32>> { read(head).into_iter().map(|q| q * scale).collect() };
    let in_registers: Vec<_> = match query_in_registers {
        true => (0..heads).map(|head| scaled(k.u32(head))).collect(),
        false => Vec::new(),
    };
    let in_shared = (!query_in_registers).then(|| {
        let shared = k.shared::<f32>(heads * layout.room());
        k.each(k.range(k.warp()..k.u32(heads)).step(config.warps()), |head| {
            let query = scaled(head);
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
