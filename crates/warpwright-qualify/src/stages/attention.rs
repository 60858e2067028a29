//! Attention: one token over contexts of all lengths, and many tokens at once.

use super::Item;
use crate::event::Finding;
use crate::measure::{Bench, Failure, Size};
use warpwright_graph::device_model;
use warpwright_kernels::tune::{AttentionShape, Launch, Tuning};
use warpwright_kernels::{CacheDtype, FlashAttention, IncrementalAttention};

/// Heads, heads of the cache, elements of a head: Llama-3-8B and Llama-3.2-1B.
const HEADS: [(u32, u32, u32); 2] = [(32, 8, 128), (32, 8, 64)];

pub(super) fn decode(size: Size) -> Vec<Item> {
    let contexts: Vec<u32> = size.pick(
        vec![100],
        vec![128, 4096, 131_072],
        vec![128, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072],
    );
    let heads = size.pick(vec![(4, 2, 64)], HEADS[..1].to_vec(), HEADS.to_vec());
    let caches = size.pick(
        vec![CacheDtype::F16, CacheDtype::Q8_0],
        vec![CacheDtype::F16],
        vec![CacheDtype::F16, CacheDtype::Q8_0],
    );
    let of = |cache, heads| contexts.iter().map(move |&context| decode_item(heads, cache, context, size));
    let of = |cache| heads.iter().flat_map(move |&heads| of(cache, heads));
    caches.into_iter().flat_map(of).collect()
}

fn decode_item(
    (heads, kv_heads, head_dim): (u32, u32, u32),
    cache: CacheDtype,
    context: u32,
    size: Size,
) -> Item {
    let name = format!(
        "attention {heads}/{kv_heads} heads of {head_dim}, {cache} cache of {context} tokens, one query"
    );
    let title = name.clone();
    Item::measure(name, size, move |bench, found| {
        let kernel =
            IncrementalAttention { cache, ..IncrementalAttention::new(heads, kv_heads, head_dim, context) };
        let shape = AttentionShape::of(&kernel, context, Some(1));
        let kernel = Tuning::new(device_model(bench.device)).choose(&shape).apply(kernel);
        let operations = 4 * u64::from(heads) * u64::from(head_dim) * u64::from(context);
        let launch = Launch::new(kernel, &[("batch", 1), ("length", context.into())]);
        measure(bench, found, &title, &launch, operations)
    })
}

pub(super) fn flash(size: Size) -> Vec<Item> {
    let lengths = size.pick(vec![48], vec![4096], vec![512, 1024, 2048, 4096, 8192, 16_384]);
    let dims = size.pick(vec![32], vec![128], vec![64, 128, 256]);
    let of = |head_dim| lengths.iter().map(move |&length| flash_item(head_dim, length, size));
    dims.into_iter().flat_map(of).collect()
}

fn flash_item(head_dim: u32, length: u32, size: Size) -> Item {
    let (heads, kv_heads) = size.pick((2, 1), (32, 8), (32, 8));
    let name = format!("attention {heads}/{kv_heads} heads of {head_dim}, {length} tokens, causal");
    let title = name.clone();
    Item::measure(name, size, move |bench, found| {
        let kernel =
            FlashAttention { heads, kv_heads, head_dim, max_seq_len: length, ..FlashAttention::default() };
        // Queries see half of the keys.
        let operations = 2 * u64::from(heads) * u64::from(head_dim) * u64::from(length) * u64::from(length);
        let numbers = [("batch", 1), ("q_len", length.into()), ("kv_len", length.into())];
        measure(bench, found, &title, &Launch::new(kernel, &numbers), operations)
    })
}

fn measure(
    bench: &Bench<'_>,
    found: &mut dyn FnMut(Finding),
    name: &str,
    launch: &Launch,
    operations: u64,
) -> Result<(), Failure> {
    let (samples, bytes) = bench.launches(launch, bench.size.pick(2, 10, 20))?;
    found(Finding::Figure(samples.figure(name, Some(bytes), Some(operations))));
    Ok(())
}
