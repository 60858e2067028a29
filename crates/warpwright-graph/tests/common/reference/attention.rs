//! Attention over a cache.

use warpwright_graph::AttentionParams;

/// What each query attends to.
pub(super) struct Queries {
    /// Of each query, its sequence and how many tokens of it it sees; none of one that belongs to no sequence.
    sees: Vec<Option<(usize, usize)>>,
}

impl Queries {
    /// One query for each sequence.
    pub(super) fn decode(lengths: &[u64], max_seq_len: usize) -> Self {
        let sees = lengths.iter().enumerate();
        Queries { sees: sees.map(|(i, &length)| Some((i, clamp(length, max_seq_len)))).collect() }
    }

    /// The queries of a sequence are its last tokens, and see those up to themselves. `Err` has the first number of
    /// `starts` that is less than the one before it, or more than there are queries.
    pub(super) fn prefill(
        count: usize,
        starts: &[u64],
        kv_lens: &[u64],
        max_seq_len: usize,
    ) -> Result<Self, u64> {
        let mut sees = vec![None; count];
        for (sequence, (ends, &kv_len)) in starts.windows(2).zip(kv_lens).enumerate() {
            let (start, end) = (ends[0], ends[1]);
            if start > end || end > count as u64 {
                return Err(if start > count as u64 { start } else { end });
            }
            let (start, end, kv_len) = (start as usize, end as usize, clamp(kv_len, max_seq_len));
            // The token after the last that a query sees is `kv_len` less the queries behind it.
            for (behind, sees) in sees[start..end].iter_mut().rev().enumerate() {
                *sees = Some((sequence, kv_len.saturating_sub(behind)));
            }
        }
        Ok(Queries { sees })
    }
}

fn clamp(length: u64, max_seq_len: usize) -> usize {
    length.min(max_seq_len as u64) as usize
}

/// `softmax(scale · q·Kᵀ) · V` for every query and head: zeros where a query sees nothing, NaN where it belongs to no
/// sequence. `k` and `v` are `batch × kv_heads × max_seq_len × head_dim`.
pub(super) fn attention(
    params: &AttentionParams,
    q: &[f64],
    [k, v]: [&[f64]; 2],
    max_seq_len: usize,
    queries: &Queries,
) -> Vec<f64> {
    let AttentionParams { heads, kv_heads, head_dim, scale, .. } = *params;
    let [heads, kv_heads, d] = [heads, kv_heads, head_dim].map(|number| number as usize);
    let mut out = Vec::with_capacity(q.len());
    for (row, sees) in q.chunks(heads * d).zip(&queries.sees) {
        let Some((sequence, length)) = *sees else {
            out.extend(row.iter().map(|_| f64::NAN));
            continue;
        };
        for (head, q) in row.chunks(d).enumerate() {
            let kv_head = sequence * kv_heads + head / (heads / kv_heads);
            let [keys, values] = [k, v].map(|cache| &cache[kv_head * max_seq_len * d..][..length * d]);
            out.extend(attend(q, keys, values, scale.into()));
        }
    }
    out
}

/// One head's mean of values, weighed by what keys are to the query.
fn attend(q: &[f64], keys: &[f64], values: &[f64], scale: f64) -> Vec<f64> {
    let dot = |key: &[f64]| key.iter().zip(q).map(|(k, q)| k * q).sum::<f64>() * scale;
    let scores: Vec<f64> = keys.chunks(q.len()).map(dot).collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mut out = vec![0.0; q.len()];
    for (weight, value) in weights.iter().zip(values.chunks(q.len())) {
        out.iter_mut().zip(value).for_each(|(out, value)| *out += weight / sum * value);
    }
    out
}
