//! Tokens, caches, counters and logits are what executions step by step leave, bit by bit.

use crate::common::{Biases, Choice, Formats, ModelConfig, Random};
use crate::pair::{Pair, all, options, seeded};
use half::f16;
use warpwright_graph::{Arithmetic, Element, PlanOptions, TensorType};
use warpwright_kernels::persistent::Assignment;
use warpwright_kernels::{CacheDtype, Finish, WeightFormat};
use warpwright_runtime::Device;

/// Llama, and what Qwen2 and Qwen3 add to it.
fn architectures() -> [(&'static str, ModelConfig); 3] {
    let small = ModelConfig::small();
    [
        ("llama", ModelConfig { formats: Formats::q4_k_m(), ..small.clone() }),
        ("qwen2", ModelConfig { biases: Biases::Qkv, tied: true, ..small.clone() }),
        ("qwen3", ModelConfig { head_norms: true, epsilon: 1e-6, ..small }),
    ]
}

/// So many tokens by one launch, and by executions.
fn compare(device: &Device, pair: &mut Pair, tokens: u32, what: &str) {
    device.synchronize().expect("all is done");
    let launches = device.statistics().launches;
    let mut launch = pair.launch(tokens, &[]);
    let made = all(&mut launch);
    let finished = launch.finish().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((finished.tokens, finished.reason), (tokens, Finish::Limit), "{what}");
    assert_eq!(device.statistics().launches, launches + 1, "{what}");
    assert_eq!(made, pair.execute(tokens as usize), "{what}");
    pair.assert_same(what);
    assert!(device.take_findings().is_empty(), "{what}");
}

#[test]
fn a_launch_is_as_many_executions() {
    for (seed, blocks) in [(1, 2), (2, 3), (3, 8), (4, 32)] {
        let device = seeded(seed);
        for (name, model) in architectures() {
            let mut pair = Pair::new(&device, &model, Choice::ArgMax, &options(blocks));
            compare(&device, &mut pair, 3, &format!("{name}, {blocks} blocks, seed {seed}"));
        }
    }
}

#[test]
fn blocks_may_take_items_from_a_queue() {
    for (seed, blocks) in [(5, 2), (6, 7)] {
        let device = seeded(seed);
        let mut options = options(blocks);
        options.assignment = Assignment::Queue;
        let mut pair = Pair::new(&device, &ModelConfig::small(), Choice::ArgMax, &options);
        compare(&device, &mut pair, 4, &format!("a queue, {blocks} blocks, seed {seed}"));
    }
}

#[test]
fn all_formats_and_caches_are_in_one_launch() {
    let device = crate::common::run::device(true);
    let [q4, q5, q6, q8] = [WeightFormat::Q4K, WeightFormat::Q5K, WeightFormat::Q6K, WeightFormat::Q8_0];
    let formats = Formats {
        embedding: WeightFormat::F16,
        q: q5,
        k: WeightFormat::Bf16,
        v: [q6, q6],
        o: WeightFormat::Q4_0,
        gate: q4,
        up: q8,
        down: [q5, q5],
        output: WeightFormat::F32,
    };
    for cache in [CacheDtype::F32, CacheDtype::F16, CacheDtype::Bf16, CacheDtype::Q8_0] {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
            let model = ModelConfig { formats, cache, layers: 1, ..ModelConfig::small() };
            let mut planning = PlanOptions::for_device(&device);
            planning.arithmetic = arithmetic;
            let mut pair = Pair::planned(&device, &model, Choice::ArgMax, &options(3), &planning);
            compare(&device, &mut pair, 2, &format!("{cache}, {arithmetic:?}"));
        }
    }
}

#[test]
fn draws_are_the_same_too() {
    let device = crate::common::run::device(true);
    let mut pair = Pair::new(&device, &ModelConfig::small(), Choice::at_temperature(2.0), &options(2));
    for store in &mut pair.stores {
        store.add_state("seeds", TensorType::new(Element::U64, [1])).expect("a state");
        store.write_state("seeds", &[0x1234_5678_9abcu64]).expect("written");
    }
    compare(&device, &mut pair, 12, "draws");
}

/// One launch for as many tokens as are asked for, whatever the number.
#[test]
fn launches_have_any_number_of_tokens() {
    let device = crate::common::run::device(false);
    let model = ModelConfig { layers: 1, max_seq_len: 512, ..ModelConfig::small() };
    let mut options = options(2);
    options.tokens = 130;
    let mut pair = Pair::new(&device, &model, Choice::ArgMax, &options);
    for tokens in [1, 2, 127, 128, 130, 5] {
        compare(&device, &mut pair, tokens, &format!("{tokens} tokens"));
    }
}

/// Sequences that become as long as the parts that attention splits them into, and longer.
#[test]
fn sequences_go_over_the_bounds_of_splits() {
    let device = crate::common::run::device(true);
    let model = ModelConfig { layers: 1, max_seq_len: 1024, ..ModelConfig::small() };
    let mut pair = Pair::new(&device, &model, Choice::ArgMax, &options(4));
    let mut random = Random::new(7);
    for part in ["k", "v"] {
        let name = format!("blk.0.cache.{part}");
        let values: Vec<f16> = (0..2 * 1024 * 32).map(|_| f16::from_f64(random.signed())).collect();
        pair.stores.iter_mut().for_each(|store| store.write_state(&name, &values).expect("written"));
    }
    for before in [254, 510, 1019] {
        pair.begin(5, before);
        compare(&device, &mut pair, 4, &format!("{before} tokens before"));
    }
}
