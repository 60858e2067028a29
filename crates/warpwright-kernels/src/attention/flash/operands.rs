//! What a block of [`FlashAttention`] works on: its arguments, and where its sequence and its head lie in
//! them.

use super::{FlashAttention, KvLayout, Lengths};
use crate::data::floats::{FloatBuffers, Floats};
use warpwright_dsl::*;
use warpwright_ptx::ir::Type;

/// One head of one sequence.
pub(super) struct Operands<'k, Q, S> {
    /// `q_len × head_dim`.
    pub(super) q: Matrix<'k, Q>,
    /// `kv_len × head_dim`.
    pub(super) keys: Matrix<'k, S>,
    /// `kv_len × head_dim`.
    pub(super) values: Matrix<'k, S>,
    /// The results, from the head's first on; a token has `heads · head_dim`.
    pub(super) out: Floats<'k>,
    /// The log-sum-exp of the head's first query, if it is wanted; a token has `heads`.
    pub(super) lse: Option<Ptr<'k, Global, f32>>,
    pub(super) q_len: Reg<'k, u32>,
    pub(super) kv_len: Reg<'k, u32>,
}

impl FlashAttention {
    pub(super) fn arguments(&self) -> Vec<ArgDesc> {
        let wide = |a: u32, b: u32| u64::from(a) * u64::from(b);
        let (query, key) = (wide(self.heads, self.head_dim), wide(self.kv_heads, self.head_dim));
        let by_value = self.lengths == Lengths::Scalars;
        let tokens = |all, each| if by_value { Extent::dims("batch", each) } else { Extent::dim(all) };
        let q_tokens = tokens("q_tokens", "q_len");
        let cache = match self.kv_layout {
            KvLayout::Cache { max_seq_len } => {
                Extent::dim("batch").times(u64::from(max_seq_len).saturating_mul(key))
            }
            KvLayout::Tokens => tokens("kv_tokens", "kv_len").times(key),
        };
        let mut args = vec![
            ArgDesc::buffer("q", self.q.ty(), Role::In, q_tokens.times(query)),
            ArgDesc::buffer("k", self.kv.ty(), Role::In, cache),
            ArgDesc::buffer("v", self.kv.ty(), Role::In, cache),
            ArgDesc::buffer("out", self.out.ty(), Role::Out, q_tokens.times(query)),
        ];
        if self.lse {
            args.push(ArgDesc::buffer("lse", Type::F32, Role::Out, q_tokens.times(self.heads.into())));
        }
        if by_value {
            args.extend([ArgDesc::scalar::<u32>("q_len"), ArgDesc::scalar::<u32>("kv_len")]);
        } else {
            args.extend([
                ArgDesc::input::<u32>("q_starts", Extent::dim("starts")),
                ArgDesc::scalar::<u32>("starts"),
                ArgDesc::scalar::<u32>("q_tokens"),
            ]);
            match self.kv_layout {
                KvLayout::Cache { .. } => args.push(ArgDesc::input::<u32>("kv_lens", Extent::dim("batch"))),
                KvLayout::Tokens => args.extend([
                    ArgDesc::input::<u32>("kv_starts", Extent::dim("starts")),
                    ArgDesc::scalar::<u32>("kv_tokens"),
                ]),
            }
        }
        args
    }

    /// The arguments, as the block's sequence (z) and head (y) see them.
    pub(super) fn operands<'k, Q: Data, S: Data>(&self, k: K<'k>) -> Operands<'k, Q, S> {
        let q = k.ptr::<Q>("q");
        let [keys, values] = ["k", "v"].map(|name| k.ptr::<S>(name));
        let out = k.floats_mut("out", self.out);
        let lse = self.lse.then(|| k.ptr_mut::<f32>("lse"));
        let (head, sequence) = (k.ctaid_y(), k.ctaid_z());
        let kv_head = head / (self.heads / self.kv_heads);

        // Where the sequence's tokens begin, and how many it has, of those that there are: of queries, then of keys.
        let count = (self.lengths == Lengths::Buffers).then(|| k.scalar::<u32>("starts"));
        let range = |name, tokens| {
            let (starts, tokens) = (k.ptr::<u32>(name), k.scalar::<u32>(tokens));
            let count = count.unwrap_or(k.u32(0));
            let [start, end] =
                [sequence, sequence + 1].map(|at| starts.ld_if(at.lt(count), at, 0).min(tokens));
            (start, end.max(start) - start)
        };
        let ((q_start, q_len), (kv_start, kv_len)) = match (self.lengths, self.kv_layout) {
            (Lengths::Scalars, _) => {
                let (q_len, kv_len) = (k.scalar::<u32>("q_len"), k.scalar::<u32>("kv_len"));
                ((sequence * q_len, q_len), (sequence * kv_len, kv_len))
            }
            (Lengths::Buffers, KvLayout::Cache { .. }) => {
                (range("q_starts", "q_tokens"), (k.u32(0), k.ptr::<u32>("kv_lens").ld(sequence)))
            }
            (Lengths::Buffers, KvLayout::Tokens) => {
                (range("q_starts", "q_tokens"), range("kv_starts", "kv_tokens"))
            }
        };

        let d = self.head_dim;
        let (first, pitch, kv_len) = match self.kv_layout {
            KvLayout::Cache { max_seq_len } => {
                ((sequence * self.kv_heads + kv_head) * max_seq_len, d, kv_len.min(max_seq_len))
            }
            KvLayout::Tokens => (kv_start * self.kv_heads + kv_head, self.kv_heads * d, kv_len),
        };
        let cache = |all: Ptr<'k, Global, S>| all.at(first * d).matrix(kv_len, d).pitch(pitch);
        let first = q_start * self.heads + head;
        Operands {
            q: q.at(first * d).matrix(q_len, d).pitch(self.heads * d).columns_fit(true),
            keys: cache(keys).columns_fit(true),
            values: cache(values).columns_fit(true),
            out: out.at(first * d),
            lse: lse.map(|lse| lse.at(first)),
            q_len,
            kv_len,
        }
    }

    /// Stores the tile's rows, from `row` of the sequence on, as far as it has queries. What half precision
    /// cannot hold becomes its largest number.
    pub(super) fn store<'k, Q, S>(
        &self,
        tile: Tile<'k, Acc, f32>,
        to: &Operands<'k, Q, S>,
        row: Reg<'k, u32>,
    ) {
        let (d, pitch) = (self.head_dim, self.heads * self.head_dim);
        match to.out {
            Floats::F32(out) => tile.store(out.matrix(to.q_len, d).pitch(pitch).columns_fit(true), row, 0),
            Floats::Bf16(out) => tile.store(out.matrix(to.q_len, d).pitch(pitch).columns_fit(true), row, 0),
            Floats::F16(out) => {
                tile.store_finite(out.matrix(to.q_len, d).pitch(pitch).columns_fit(true), row, 0)
            }
        }
    }
}
