//! How many launches a step takes.

use crate::common::{Choice, Formats, ModelConfig};
use crate::{exact, int8, plan, steps};
use warpwright_graph::{Action, Arithmetic, Plan, PlanOptions};
use warpwright_kernels::{CacheDtype, WeightFormat};
use warpwright_ptx::ir::Arch;

/// Rooms of caches: the launches of a captured step serve every context up to that.
const ROOMS: [u32; 5] = [512, 2048, 8192, 32_768, 131_072];

/// Layers of real models, with each of the mixes of formats that Q4_K_M has.
fn layers() -> impl Iterator<Item = (&'static str, ModelConfig)> {
    let mixes = [WeightFormat::Q4K, WeightFormat::Q6K];
    let formats =
        mixes.map(|v| mixes.map(|down| Formats { v: [v; 2], down: [down; 2], ..Formats::q4_k_m() }));
    let formats = formats.into_iter().flatten();
    formats
        .flat_map(|formats| ModelConfig::real().map(|(name, model)| (name, ModelConfig { formats, ..model })))
}

#[test]
fn of_a_layer_at_every_context() {
    for (name, model) in layers() {
        for room in ROOMS {
            for cache in CacheDtype::ALL {
                let graph = ModelConfig { max_seq_len: room, cache, ..model.clone() }.layer(1);
                let [exact, int8] =
                    [exact(), int8()].map(|options| plan(&graph, &options).launches().count());
                assert!(exact <= 6, "{name}, {room}: {exact}");
                assert!(int8 <= 8, "{name}, {room}: {int8}");
            }
        }
    }
}

#[test]
fn of_a_layer_are_these() {
    for (name, model) in layers() {
        let graph = model.layer(1);
        assert_eq!(
            steps(&plan(&graph, &exact())),
            ["products", "rope", "attention", "products", "products", "products"],
            "{name}"
        );
        assert_eq!(
            steps(&plan(&graph, &int8())),
            ["norm", "products", "rope", "attention", "products", "norm", "products", "products"],
            "{name}"
        );
    }
}

#[test]
fn of_a_whole_step() {
    for (name, model) in ModelConfig::real() {
        for arch in [Arch::sm(75), Arch::sm(80), Arch::sm(90)] {
            for choice in [Choice::ArgMax, Choice::at_temperature(0.7)] {
                let graph = model.decode(1, choice);
                let plan = plan(&graph, &PlanOptions::new(arch, 132));
                let launches = plan.launches().count();
                assert!(launches <= 6 * model.layers as usize + 4, "{name}: {launches}");
            }
        }
    }
}

/// What a step of decoding reads is the weights, and what attention sees of the cache.
#[test]
fn move_the_weights_and_the_cache() {
    for (name, model) in ModelConfig::real() {
        let of = |max_seq_len| {
            plan(&ModelConfig { max_seq_len, ..model.clone() }.decode(1, Choice::ArgMax), &exact())
        };
        let (short, long) = (of(512), of(8192));
        let row = 2 * 2 * u64::from(model.kv_heads * model.head_dim);
        let cache = |room| u64::from(model.layers) * room * row;
        let weights: u64 = (short.weights().iter())
            .filter(|weight| weight.layouts.contains(&warpwright_graph::WeightLayout::Planes))
            .map(|weight| crate::holds::bytes(short.program().ty(weight.tensor)))
            .sum();
        for (plan, room) in [(&short, 512), (&long, 8192)] {
            let least = weights + cache(room);
            assert!(
                (least..least + least / 50).contains(&plan.bytes()),
                "{name}: {} of {least}",
                plan.bytes()
            );
        }
    }
}

#[test]
fn of_one_configuration_share_their_kernel() {
    let plan: Plan = plan(&ModelConfig::llama_3_8b().decode(1, Choice::ArgMax), &exact());
    let kernels: std::collections::HashSet<*const _> =
        plan.launches().map(|(_, launch)| std::sync::Arc::as_ptr(&launch.kernel)).collect();
    // Two mixes of formats in layers make two more; embedding, logits, argmax and counters have one each.
    assert_eq!(plan.options().arithmetic, Arithmetic::Exact);
    assert_eq!(kernels.len(), 6 + 2 + 4);
}

#[test]
fn overlap_with_the_one_in_front_from_sm_90_on() {
    for (name, model) in ModelConfig::real() {
        let graph = model.decode(1, Choice::ArgMax);
        for (sm, overlap) in [(80, true), (90, false), (90, true), (120, true)] {
            let mut options = PlanOptions::new(Arch::sm(sm), 132);
            options.tuning.overlap = overlap;
            let plan = plan(&graph, &options);
            // All but what is first, or behind a copy: no launch of a step writes what another takes as constant.
            let actions: Vec<_> = plan.steps().iter().flat_map(|step| &step.actions).collect();
            let mut front = false;
            for action in actions {
                let launch = match action {
                    Action::Launch(launch) => launch,
                    _ => {
                        front = false;
                        continue;
                    }
                };
                let expected = front && overlap && sm >= 90;
                assert_eq!(launch.overlaps, expected, "{name}, sm_{sm}: {}", launch.kernel.entry());
                front = true;
            }
            let most = plan.overlaps() * 10 > plan.launches().count() * 9;
            assert_eq!(most, overlap && sm >= 90, "{name}, sm_{sm}: {}", plan.overlaps());
        }
    }
}
