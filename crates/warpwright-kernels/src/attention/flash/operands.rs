//! The operands of a block of [`FlashAttention`]: its arguments, and where its sequence and its head lie in them.

use super::{FlashAttention, FlashAttentionArgs, KvLayout, Lengths};
use crate::data::floats::Floats;
use warpwright_dsl::*;

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
    /// The tokens of all sequences, where they have a number of their own, or else so many each.
    fn tokens(&self, all: &'static str, each: &'static str) -> Extent {
        match self.lengths {
            Lengths::Scalars => Extent::dims("batch", each),
            Lengths::Buffers => Extent::dim(all),
        }
    }

    /// Queries of all sequences.
    pub(super) fn q_tokens(&self) -> Extent {
        self.tokens("q_tokens", "q_len")
    }

    /// Elements of all queries.
    pub(super) fn query_len(&self) -> Extent {
        self.q_tokens().times(u64::from(self.heads) * u64::from(self.head_dim))
    }

    /// Elements of all keys.
    pub(super) fn cache_len(&self) -> Extent {
        let key = u64::from(self.kv_heads) * u64::from(self.head_dim);
        match self.kv_layout {
            KvLayout::Cache => Extent::dim("batch").times(u64::from(self.max_seq_len).saturating_mul(key)),
            KvLayout::Tokens => self.tokens("kv_tokens", "kv_len").times(key),
        }
    }

    /// The arguments, as the block's sequence (z) and head (y) see them.
    pub(super) fn operands<'k, Q: Data, S: Data>(
        &self,
        k: K<'k>,
        args: &FlashAttentionArgs<Body<'k>>,
    ) -> Operands<'k, Q, S> {
        let (q, [keys, values]) = (args.q.typed::<Q>(), [args.k, args.v].map(AnyPtr::typed::<S>));
        let (out, lse) = (Floats::from(args.out), args.lse);
        let (head, sequence) = (k.ctaid_y(), k.ctaid_z());
        let kv_head = head / (self.heads / self.kv_heads);

        // Where the sequence's tokens begin, and how many it has, of those that there are: of queries, then of keys.
        let range = |starts: Option<Ptr<'k, Global, u32>>, tokens: Option<Reg<'k, u32>>| {
            let (starts, tokens, count) = (starts?, tokens?, args.starts?);
            let [start, end] =
                [sequence, sequence + 1].map(|at| starts.ld_if(at.lt(count), at, 0).min(tokens));
            Some((start, end.max(start) - start))
        };
        let each = |len: Option<Reg<'k, u32>>| len.map(|len| (sequence * len, len));
        let queries = each(args.q_len).or_else(|| range(args.q_starts, args.q_tokens));
        let of_cache = || args.kv_lens.map(|lens| (k.u32(0), lens.ld(sequence)));
        let cached = each(args.kv_len).or_else(of_cache).or_else(|| range(args.kv_starts, args.kv_tokens));
        let [(q_start, q_len), (kv_start, kv_len)] =
            [queries, cached].map(|range| range.unwrap_or_else(|| (k.u32(0), k.u32(0))));

        let d = self.head_dim;
        let (first, pitch, kv_len) = match self.kv_layout {
            KvLayout::Cache => {
                let room = self.max_seq_len;
                ((sequence * self.kv_heads + kv_head) * room, d, kv_len.min(room))
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
