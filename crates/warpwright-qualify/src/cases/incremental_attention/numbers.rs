//! Decode attention against float64: every form of the cache, shapes, lengths, and inputs that are hard.

use super::case::{Case, Class, check};
use crate::common::ops::{Sample, full};
use warpwright_kernels::tune::{AttentionShape, DeviceModel, Shape};
use warpwright_kernels::{CacheDtype, Dtype, IncrementalAttention};
use warpwright_ptx::ir::Arch;
use warpwright_vm::{Options, Schedule};

fn kernel(heads: u32, kv_heads: u32, head_dim: u32, cache: CacheDtype) -> IncrementalAttention {
    IncrementalAttention { cache, ..IncrementalAttention::new(heads, kv_heads, head_dim, 40) }
}

fn every_head_dim_in_every_cache() {
    for head_dim in [32, 40, 64, 80, 96, 112, 128, 200, 256] {
        for cache in CacheDtype::ALL {
            if head_dim % cache.granule() == 0 {
                check(&Case::new(kernel(4, 2, head_dim, cache), &[37]));
            }
        }
    }
}

fn every_group() {
    for group in [1, 2, 3, 4, 6, 7, 8, 16, 17] {
        for cache in CacheDtype::ALL {
            check(&Case::new(kernel(group * 2, 2, 64, cache), &[35]));
        }
    }
    // Queries of many heads in shared memory; several passes over the cache, the last with fewer heads.
    for (group, head_dim, cache) in [
        (16, 128, CacheDtype::F16),
        (11, 256, CacheDtype::F32),
        (9, 96, CacheDtype::Q8_0),
        (33, 64, CacheDtype::Bf16),
    ] {
        check(&Case::new(kernel(group, 1, head_dim, cache), &[21]));
    }
}

fn every_type_around_it() {
    for q in Dtype::ALL {
        for out in Dtype::ALL {
            for cache in CacheDtype::ALL {
                check(&Case::new(IncrementalAttention { q, out, ..kernel(4, 2, 64, cache) }, &[19]));
            }
        }
    }
}

fn every_architecture_and_block() {
    for cache in CacheDtype::ALL {
        for sm in [75, 80, 89, 90, 120] {
            check(&Case { sm, ..Case::new(kernel(4, 1, 96, cache), &[40]) });
        }
        for warps in [1, 2, 4, 8] {
            let kernel = IncrementalAttention { warps, max_seq_len: 200, ..kernel(6, 2, 64, cache) };
            check(&Case::new(kernel, &[150]));
        }
    }
}

/// No token, one, and the ends of a warp's step and of a block's: 8 to 32 keys, and 32 to 128.
fn every_length() {
    for lengths_in_memory in [false, true] {
        for cache in CacheDtype::ALL {
            let kernel =
                IncrementalAttention { lengths_in_memory, max_seq_len: 140, ..kernel(4, 2, 64, cache) };
            for length in [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 140] {
                check(&Case::new(kernel, &[length]));
            }
        }
    }
}

fn a_length_beyond_the_cache_is_that_of_the_cache() {
    let kernel = kernel(2, 1, 32, CacheDtype::F16);
    for (length, max_seq_len) in [(41, 40), (u32::MAX, 33)] {
        check(&Case::new(IncrementalAttention { max_seq_len, ..kernel }, &[length]));
    }
}

fn sequences_have_their_own_lengths() {
    for cache in CacheDtype::ALL {
        for splits in [1, 4] {
            let kernel = IncrementalAttention {
                lengths_in_memory: true,
                max_seq_len: 800,
                splits,
                ..kernel(4, 2, 32, cache)
            };
            check(&Case::new(kernel, &[3, 0, 700, 257, 1]));
        }
    }
}

/// Sequences that are split: the lengths at which one more block has tokens, and at which chunks grow.
fn sequences_are_split() {
    for (cache, splits) in
        [(CacheDtype::F16, 3), (CacheDtype::F32, 2), (CacheDtype::Q8_0, 5), (CacheDtype::Bf16, 32)]
    {
        let kernel = IncrementalAttention { max_seq_len: 1400, splits, ..kernel(3, 1, 32, cache) };
        for length in [0, 1, 255, 256, 257, 511, 512, 513, 767, 768, 769, 800, 1280, 1281, 1400] {
            check(&Case::new(kernel, &[length]));
        }
    }
}

/// Several blocks, several passes, several sequences, under different orders of warps and blocks: no finding, and
/// the same bits.
fn every_order_gives_the_same_bits() {
    let long = IncrementalAttention {
        max_seq_len: 900,
        splits: 3,
        lengths_in_memory: true,
        ..kernel(12, 1, 32, CacheDtype::Q8_0)
    };
    let short = IncrementalAttention { lengths_in_memory: true, ..kernel(7, 1, 64, CacheDtype::F16) };
    for (kernel, lengths) in [(long, [900, 300]), (short, [40, 22])] {
        let orders = [Schedule::Parallel, Schedule::Seeded(1), Schedule::Seeded(2), Schedule::Seeded(3)];
        let runs = orders.map(|schedule| {
            let options = Options { schedule, race: warpwright_vm::Race::Strict, ..Options::checked() };
            check(&Case { options, launches: 3, ..Case::new(kernel, &lengths) })
        });
        for outputs in runs.iter().flatten() {
            assert_eq!(outputs, &runs[0][0], "{kernel:?}");
        }
    }
}

fn inputs_that_are_hard() {
    let mut sample = Sample::one_in(2);
    for class in Class::ALL {
        for cache in CacheDtype::ALL {
            for splits in [1, 2].into_iter().filter(|_| sample.takes()) {
                let kernel = IncrementalAttention { max_seq_len: 300, splits, ..kernel(4, 2, 64, cache) };
                check(&Case { class, ..Case::new(kernel, &[290]) });
            }
        }
    }
}

/// Values far larger and smaller than the weights that they are multiplied by.
fn values_of_any_magnitude() {
    for cache in CacheDtype::ALL {
        for magnitude in [3e4, 1e-2, 1e-4] {
            check(&Case { magnitude, ..Case::new(kernel(4, 2, 64, cache), &[39]) });
        }
    }
}

fn random_seeds() {
    for seed in 0..if full() { 40 } else { 4 } {
        for cache in CacheDtype::ALL {
            let kernel = IncrementalAttention { max_seq_len: 600, splits: 2, ..kernel(6, 2, 96, cache) };
            check(&Case { seed, ..Case::new(kernel, &[100 + 97 * (seed as u32 % 5)]) });
        }
    }
}

/// Long contexts, and with `WARPWRIGHT_FULL` one layer of models.
fn long_contexts() {
    let long = |heads, kv_heads, head_dim, cache, length: u32| {
        let kernel =
            IncrementalAttention { max_seq_len: length, cache, ..kernel(heads, kv_heads, head_dim, cache) };
        let device = DeviceModel::typical(Arch::sm(90));
        let splits = AttentionShape::of(&kernel, length, Some(1)).estimate(&device).splits;
        let kernel = IncrementalAttention { splits, ..kernel };
        check(&Case { options: Options::default(), ..Case::new(kernel, &[length]) });
    };
    long(1, 1, 32, CacheDtype::Q8_0, 20_000);
    long(2, 1, 32, CacheDtype::F16, 5_000);
    if full() {
        for (heads, kv_heads, head_dim) in [(32, 8, 64), (12, 2, 128), (32, 8, 128)] {
            for cache in CacheDtype::ALL {
                long(heads, kv_heads, head_dim, cache, 4096);
            }
        }
        long(4, 1, 128, CacheDtype::F16, 131_072);
        long(4, 1, 64, CacheDtype::Q8_0, 131_072 + 1);
    }
}

crate::case_list! {
    every_head_dim_in_every_cache,
    every_group,
    every_type_around_it,
    every_architecture_and_block,
    every_length,
    a_length_beyond_the_cache_is_that_of_the_cache,
    sequences_have_their_own_lengths,
    sequences_are_split,
    every_order_gives_the_same_bits,
    inputs_that_are_hard,
    values_of_any_magnitude,
    random_seeds,
    long_contexts,
}
