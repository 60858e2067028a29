//! A block of decode attention, from the lengths to the results.

use super::incremental::{IncrementalAttention, IncrementalAttentionArgs, Plan};
use super::softmax;
use super::split::{Chunk, Workspace, inverse};
use crate::CacheDtype;
use crate::data::eight_bits::BLOCK;
use crate::data::floats::Floats;
use std::f32::consts::LOG2_E;
use warpwright_dsl::*;

type Args<'k> = IncrementalAttentionArgs<Body<'k>>;

/// The body of [`IncrementalAttention`].
pub(super) fn attend<'k>(config: &IncrementalAttention, k: K<'k>, args: &Args<'k>) {
    let [kv_heads, max_seq_len] = [config.kv_heads, config.max_seq_len].map(|size| k.dim(size));
    let block = Block { k, config, args, plan: config.plan(), kv_heads, max_seq_len };
    match (config.cache, config.on_tensor_cores(k.target().sm)) {
        (CacheDtype::Q8_0, _) => block.on_tensor_cores::<i8>(),
        (CacheDtype::F16, true) => block.on_tensor_cores::<F16>(),
        (CacheDtype::Bf16, true) => block.on_tensor_cores::<Bf16>(),
        (CacheDtype::F16, false) => block.on_lanes::<F16>(),
        (CacheDtype::Bf16, false) => block.on_lanes::<Bf16>(),
        (CacheDtype::F32, _) => block.on_lanes::<f32>(),
    }
}

/// What a block works on.
#[derive(Clone, Copy)]
struct Block<'a, 'k> {
    k: K<'k>,
    config: &'a IncrementalAttention,
    args: &'a Args<'k>,
    plan: Plan,
    /// Heads of the cache that a sequence has, and rows that a head of the cache has.
    kv_heads: Dim<'k>,
    max_seq_len: Dim<'k>,
}

impl<'k> Block<'_, 'k> {
    /// The head of the cache, counted over all sequences.
    fn kv_head(&self) -> Reg<'k, u32> {
        self.k.ctaid_z() * self.kv_heads.reg() + self.k.ctaid_y() / self.config.passes()
    }

    /// The number of a query head of the pass in its group, and over all sequences.
    fn head(&self, head: Reg<'k, u32>) -> [Reg<'k, u32>; 2] {
        let head = self.k.ctaid_y() % self.config.passes() * self.plan.heads + head;
        [head, self.kv_head() * self.plan.group + head]
    }

    /// Whether the pass has a head of those that there is room for; `None` where it has all of them.
    fn has(&self, head: Reg<'k, u32>) -> Option<Reg<'k, Pred>> {
        let Plan { group, heads, .. } = self.plan;
        (!group.is_multiple_of(heads)).then(|| self.head(head)[0].lt(group))
    }

    /// The rows of the block's head in a buffer, `width` elements each.
    fn rows<T: Data>(&self, all: Ptr<'k, Global, T>, width: u32) -> Ptr<'k, Global, T> {
        all.row(self.kv_head(), self.max_seq_len * width)
    }

    /// Keys and values.
    fn cache<T: Data>(&self) -> [ThinRows<'k, T>; 2] {
        let (args, head_dim) = (self.args, self.config.head_dim);
        [(args.k, args.k_scales), (args.v, args.v_scales)].map(|(elements, scales)| ThinRows {
            elements: self.rows(elements.typed::<T>(), head_dim).no_allocate(),
            scales: scales.map(|scales| self.rows(scales, head_dim / BLOCK)),
        })
    }

    /// Neighbours of a query, zeros where there are none.
    fn query(
        &self,
        head: Reg<'k, u32>,
        element: Reg<'k, u32>,
        there: Option<Reg<'k, Pred>>,
        count: u32,
    ) -> Vec<Reg<'k, f32>> {
        let row = Floats::from(self.args.q).at(self.head(head)[1] * self.config.head_dim);
        row.load([there, self.has(head)], element, count)
    }

    /// What scores are scaled by for powers of two.
    fn scale(&self) -> Reg<'k, f32> {
        self.k.factor(self.config.score_scale() * LOG2_E)
    }

    fn on_tensor_cores<T: Direct>(&self) {
        let (shape, load) =
            (self.config.tensor_shape(), |h, element, there, n| self.query(h, element, there, n));
        self.run(&self.k.tensor_products(shape, self.scale(), self.cache::<T>(), load));
    }

    fn on_lanes<T: StripElement>(&self) {
        let (shape, load) =
            (self.config.lane_shape(), |h, element, there, n| self.query(h, element, there, n));
        self.run(&self.k.lane_products(shape, self.scale(), self.cache::<T>(), load));
    }

    /// Attends to the block's keys, if it has any; merges its warps, and at last the blocks.
    fn run(&self, products: &impl ThinProducts<'k>) {
        let chunk = self.chunk(products);
        let used = (self.config.splits > 1).then(|| chunk.split.lt(chunk.used));
        self.k.when(used, || self.part(products, chunk));
    }

    /// The block's tokens.
    fn chunk(&self, products: &impl ThinProducts<'k>) -> Chunk<'k> {
        let of_sequence = self.args.lengths.map(|lengths| lengths.ld(self.k.ctaid_z()));
        let length = of_sequence.or(self.args.length).unwrap_or_else(|| self.k.u32(0));
        let granule = self.config.warps() * products.rows();
        Chunk::new(self.k, length.min(self.max_seq_len.reg()), self.config.splits, granule)
    }

    /// Attends to the tokens of `chunk`, and stores the result, or leaves it in the workspace as a part of several. What
    /// the results need is taken anew behind the keys, which want all registers.
    fn part(&self, products: &impl ThinProducts<'k>, chunk: Chunk<'k>) {
        let (k, head_dim) = (self.k, self.config.head_dim);
        let (origin, sum, out) = softmax::attend(k, products, chunk.tokens, self.config.warps());
        let stats = k.publish(products.vectors(), [origin, sum.row_sum()]);
        let (chunk, workspace) = (self.chunk(products), self.workspace());
        let result = Floats::from(self.args.out.anew());
        let several = workspace.map(|_| chunk.used.gt(1));
        let own = |head| (stats.of_warp(k.warp(), head)[0] - of_block(stats, head).0).exp2_ftz();
        products.reduce_scatter(out, own, |element, head, here, sums| {
            let here = [here, self.has(head)].predicate();
            let [_, row] = self.head(head);
            let (largest, total) = of_block(stats, head);
            let mean: Vec<_> = sums.iter().map(|&sum| sum * inverse(total)).collect();
            result.at(row * head_dim).store([here, several.map(|several| !several)], element, &mean);
            if let Some(workspace) = workspace {
                let row = row * self.config.splits + chunk.split;
                Floats::F32(workspace.out.at(row * head_dim)).store([here, several], element, sums);
                let first = [here, several, Some(element.eq(0))];
                workspace.stats.st_vec_if(first, row * 2, [largest, total]);
            }
        });
        let Some(workspace) = workspace else { return };
        k.when(several, || self.merge(workspace, chunk.used, result));
    }

    /// Where blocks that share a sequence leave what they have.
    fn workspace(&self) -> Option<Workspace<'k>> {
        let (args, IncrementalAttention { splits, head_dim, .. }) = (self.args, *self.config);
        let (out, stats) = (args.partial_out?.anew(), args.partial_stats?.anew());
        Some(Workspace { out, stats, arrivals: args.arrivals?.anew(), splits, head_dim })
    }

    /// The last of the blocks that share a sequence merges what they have left, a head for each warp.
    fn merge(&self, workspace: Workspace<'k>, used: Reg<'k, u32>, result: Floats<'k>) {
        let (k, heads) = (self.k, self.plan.heads);
        let counter = k.ctaid_z() * (self.kv_heads * self.config.passes()).reg() + k.ctaid_y();
        k.when(k.is_last_to_arrive(workspace.arrivals, counter, used), || {
            k.each(k.range(k.warp()..k.u32(heads)).step(self.config.warps()), |head| {
                k.when(self.has(head), || workspace.merge(k, self.head(head)[1], used, result));
            });
        });
    }
}

/// A head's largest origin, and its sum of weights relative to that, of the origins and sums that warps have published.
fn of_block<'k>(stats: Published<'k, 2>, head: Reg<'k, u32>) -> (Reg<'k, f32>, Reg<'k, f32>) {
    let (k, warps) = (head.kernel(), stats.of_warps(head));
    let largest = warps.iter().fold(k.f32(f32::MIN), |largest, [origin, _]| largest.max(*origin));
    let total = warps
        .iter()
        .fold(k.f32(0.0), |total, &[origin, sum]| (origin - largest).exp2_ftz().mul_add(sum, total));
    (largest, total)
}
