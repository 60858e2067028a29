//! Models of every architecture, format and shape, from files with random weights, on the virtual GPU: held to the exact
//! forward pass of the same file in `f64`, with nothing rounded.
//!
//! What is compared is the error of the logits after each token, relative to their length, and which token is the most
//! likely one, where what is promised decides it. `WARPWRIGHT_FULL=1` runs more models.

#[path = "../../../warpwright-graph/tests/common/reference/mod.rs"]
mod reference;

mod architectures;
mod config;
mod device;
mod exact;
mod held;
mod load;
mod spec;

use device::OnDevice;
use held::{Path, Tokens, hold, tokens};
use spec::{ALL_BIASES, Formats, QKV, Spec};
use warpwright_kernels::{CacheDtype, WeightFormat};
use warpwright_llm::model::{ModelConfig, Outcome};
use warpwright_qualify::models::Random;
use warpwright_vm::Options;

const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];

fn full() -> bool {
    std::env::var_os("WARPWRIGHT_FULL").is_some()
}

/// The ways whose bounds are the tightest, and one of the others in turn.
fn usual(turn: usize) -> Vec<Path> {
    let [f32, f16] = [CacheDtype::F32, CacheDtype::F16];
    let all = Path::all();
    vec![Path::decode(f32), Path::decode(f16).int8(), Path::prefill(f16, 100), all[turn % all.len()]]
}

#[test]
fn every_architecture_in_every_format() {
    let mut held = Tokens::default();
    let formats = WeightFormat::ALL.into_iter().map(Formats::All).chain([Formats::Q4KM, Formats::Random]);
    for (i, formats) in formats.enumerate() {
        for (j, architecture) in ARCHITECTURES.into_iter().enumerate() {
            let spec = Spec { formats, seed: i as u64, ..Spec::small(architecture) };
            match full() {
                true => hold(&spec, 24, &Path::all(), &mut held),
                false if i % 3 == j => hold(&spec, 16, &usual(7 * i + j), &mut held),
                false => {}
            }
        }
    }
    held.assert_decided();
}

#[test]
fn every_head_dim() {
    let mut held = Tokens::default();
    let dims = [8, 20, 32, 40, 48, 64, 72, 80, 96, 100, 112, 128, 160, 192, 256];
    for (i, head_dim) in dims.into_iter().enumerate() {
        for (j, architecture) in ARCHITECTURES.into_iter().enumerate() {
            if !full() && i % 3 != j {
                continue;
            }
            let (heads, kv_heads) = [(4, 2), (2, 2), (4, 1), (3, 3)][i % 4];
            let spec = Spec {
                layers: 1,
                hidden: 96,
                heads,
                kv_heads,
                head_dim,
                ffn: 96,
                formats: Formats::Random,
                seed: 20 + i as u64,
                ..Spec::small(architecture)
            };
            // The tensor cores do up to 128, other kernels the rest: in each there are several ways.
            let [f16, other] = [CacheDtype::F16, CacheDtype::ALL[i % 4]];
            let paths =
                [Path::decode(f16), Path::prefill(f16, 13), Path::decode(other), Path::prefill(other, 13)];
            hold(&spec, 14, if full() { &paths } else { &paths[1..] }, &mut held);
        }
    }
    held.assert_decided();
}

#[test]
fn what_models_may_have() {
    let mut held = Tokens::default();
    let small = |architecture| Spec { layers: 1, ..Spec::small(architecture) };
    let with = |parameters: Vec<_>| Spec { parameters, ..small("llama") };
    let yarn = || {
        vec![
            ("rope.scaling.type", "yarn".into()),
            ("rope.scaling.factor", 4f32.into()),
            ("rope.scaling.original_context_length", 32u32.into()),
        ]
    };
    let specs = [
        Spec { biases: ALL_BIASES, ..small("llama") },
        Spec { biases: &[], tied: true, ..small("qwen2") },
        Spec { vectors: WeightFormat::F16, biases: QKV, ..small("qwen3") },
        Spec { vectors: WeightFormat::Bf16, factors: true, ..small("llama") },
        Spec { tied: true, formats: Formats::All(WeightFormat::Q6K), ..small("llama") },
        Spec { layers: 6, formats: Formats::Q4KM, ..small("llama") },
        Spec { hidden: 77, ffn: 99, head_dim: 64, vocab: 131, ..small("qwen3") },
        with(vec![("rope.scaling.factor", 4f32.into())]),
        with(yarn()),
        Spec { factors: true, ..with([yarn(), vec![("rope.scaling.attn_factor", 0.8f32.into())]].concat()) },
        with(vec![("rope.scaling.attn_factor", 1.2f32.into()), ("rope.scale_linear", 2f32.into())]),
        with(vec![("rope.dimension_count", 32u32.into()), ("rope.freq_base", 5e5f32.into())]),
    ];
    for (i, spec) in specs.into_iter().enumerate() {
        let spec = Spec { seed: 50 + i as u64, ..spec };
        let paths = if full() { Path::all() } else { usual(5 * i)[..3].to_vec() };
        hold(&spec, 14, &paths, &mut held);
    }
    held.assert_decided();
}

#[test]
fn random_models() {
    let mut held = Tokens::default();
    for seed in 0..if full() { 200 } else { 10 } {
        let spec = Spec::random(1000 + seed);
        let all = Path::all();
        let mut random = Random::new(seed);
        let paths = [0; 3].map(|_| random.of(&all));
        hold(&spec, 10 + random.below(12), &paths, &mut held);
    }
    held.assert_decided();
}

/// Blocks share a sequence where there is room for 256 tokens for each, and tokens come to their ends.
#[test]
fn long_sequences_in_chunks_and_then_token_by_token() {
    let mut held = Tokens::default();
    let spec = Spec { layers: 1, hidden: 64, ffn: 64, head_dim: 32, ..Spec::small("llama") };
    let (gguf, len) = (spec.gguf(), 1030);
    let model = ModelConfig::from_gguf(&gguf).expect("a model");
    let ids = tokens(&spec, len);
    let exact = exact::logits(&gguf, &model, &ids);
    let caches = if full() { &CacheDtype::ALL[..] } else { &[CacheDtype::F16, CacheDtype::Q8_0] };
    for &cache in caches {
        // Where tokens come by themselves: across the ends of blocks' shares; and then the rest in chunks.
        for (first, steps, chunk) in [(252, 8, 100), (510, 5, 512), (1022, 8, 256)] {
            let path = Path::prefill(cache, chunk);
            let mut device = OnDevice::new(&gguf, &model, path, len, Options::default());
            let (prompt, rest) = ids.split_at(first);
            let (tokens, rest) = rest.split_at(steps);
            let chunks: Vec<_> = prompt.chunks(chunk).collect();
            let (last, before) = chunks.split_last().expect("a chunk");
            before.iter().for_each(|chunk| _ = device.prefill(chunk, Outcome::Cached));
            let mut found = device.prefill(last, Outcome::Logits);
            found.extend(device.decode(tokens));
            held.hold(&spec, path, &found, &exact[first - 1..first + steps]);
            let rest: Vec<_> =
                rest.chunks(chunk).flat_map(|c| device.prefill(c, Outcome::AllLogits)).collect();
            held.hold(&spec, path, &rest, &exact[first + steps..]);
        }
    }
    held.assert_decided();
}

#[test]
fn checks_find_nothing() {
    let mut held = Tokens::default();
    for (i, head_dim) in [64, 20].into_iter().enumerate() {
        let spec = Spec { head_dim, layers: 1, formats: Formats::Q4KM, ..Spec::small(ARCHITECTURES[2 * i]) };
        let gguf = spec.gguf();
        let model = ModelConfig::from_gguf(&gguf).expect("a model");
        let ids = tokens(&spec, 16);
        let exact = exact::logits(&gguf, &model, &ids);
        for cache in CacheDtype::ALL {
            let path = Path::prefill(cache, 10);
            let mut device = OnDevice::new(&gguf, &model, path, 600, Options::checked());
            let mut found = device.prefill(&ids[..10], Outcome::AllLogits);
            found.extend(device.decode(&ids[10..]));
            held.hold(&spec, path, &found, &exact);
        }
    }
}
