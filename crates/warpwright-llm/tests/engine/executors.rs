//! Which executor decodes, and where its launches begin and end, changes no token.

use crate::run::Fails;
use crate::spec::{Formats, Spec};
use crate::{decode, device, greedy, load, prompt};
use warpwright_graph::Arithmetic;
use warpwright_kernels::{CacheDtype, WeightFormat};
use warpwright_llm::engine::{Engine, EngineError, EngineOptions, Executor, SamplerOptions};
use warpwright_llm::gguf::Gguf;
use warpwright_qualify::models::Random;
use warpwright_runtime::VmConfig;
use warpwright_vm::{Options, Schedule};

/// A way to decode.
#[derive(Clone, Copy, Debug)]
struct Way {
    executor: Executor,
    ahead: bool,
    tokens_per_launch: u32,
    blocks: Option<u32>,
}

const GRAPH: Way = Way { executor: Executor::Graph, ahead: false, tokens_per_launch: 128, blocks: None };

const fn persistent(tokens_per_launch: u32, blocks: u32, ahead: bool) -> Way {
    Way { executor: Executor::Persistent, ahead, tokens_per_launch, blocks: Some(blocks) }
}

/// All ways but that by graphs, which they are held to.
const OTHERS: [Way; 6] = [
    Way { executor: Executor::Eager, ..GRAPH },
    Way { executor: Executor::Persistent, ..GRAPH },
    persistent(128, 2, true),
    persistent(5, 3, false),
    persistent(3, 2, true),
    persistent(1, 1, true),
];

impl Way {
    /// These options, with what it says; what it cannot do is an error.
    fn of(self, options: &EngineOptions) -> EngineOptions {
        let mut options = options.clone();
        (options.executor, options.ahead) = (self.executor, Some(self.ahead));
        (options.tokens_per_launch, options.blocks) = (self.tokens_per_launch, self.blocks);
        options.fall_back = false;
        options
    }
}

/// Does the same with each executor, and compares what comes of it.
fn same<T: PartialEq + std::fmt::Debug>(options: &EngineOptions, what: impl Fn(&mut Engine) -> T) -> T {
    let expected = what(&mut load(GRAPH.of(options)));
    for way in OTHERS {
        assert_eq!(what(&mut load(way.of(options))), expected, "{way:?}");
    }
    expected
}

fn samplers() -> [SamplerOptions; 5] {
    let drawn = SamplerOptions { temperature: 1.3, top_k: 0, ..SamplerOptions::default() };
    let last = SamplerOptions { repeat_penalty: 1.3, repeat_last_n: 5, ..SamplerOptions::default() };
    [
        SamplerOptions::greedy(),
        SamplerOptions { seed: 1, ..drawn },
        SamplerOptions { seed: u64::MAX, top_p: 0.7, ..drawn },
        SamplerOptions { frequency_penalty: 0.4, seed: 3, ..last },
        SamplerOptions { presence_penalty: 0.6, temperature: 0.0, ..last },
    ]
}

#[test]
fn seeds_and_samplers_choose_the_same() {
    let device = device(false);
    for sampler in samplers() {
        let mut options = greedy(&device);
        options.sampler = sampler;
        let tokens = same(&options, |engine| {
            engine.prefill(&prompt(12)).expect("a prompt");
            decode(engine, 30)
        });
        assert!(tokens.windows(2).any(|pair| pair[0] != pair[1]), "{tokens:?}");
    }
}

/// Back within what a launch has chosen, to its beginning, before it, and to where nothing changes.
#[test]
fn prefixes_go_on_within_launches() {
    let device = device(false);
    for sampler in &samplers()[1..4] {
        let mut options = greedy(&device);
        options.sampler = *sampler;
        same(&options, |engine| {
            let mut seen = Vec::new();
            engine.prefill(&prompt(20)).expect("a prompt");
            seen.push(decode(engine, 10));
            for len in [25, 30, 21, 20, 29, 11] {
                engine.truncate(len).expect("a prefix");
                assert_eq!(engine.position(), len);
                seen.push(decode(engine, 30 - len));
                assert_eq!(engine.position(), 30);
            }
            seen
        });
    }
}

/// A conversation: an answer that is cut, another message behind it, and all of it anew.
#[test]
fn turns_of_a_conversation_follow_one_another() {
    let device = device(false);
    let mut options = greedy(&device);
    options.sampler = samplers()[1];
    same(&options, |engine| {
        let mut seen = Vec::new();
        for _ in 0..2 {
            engine.reset();
            for (i, len) in [14, 3, 1, 17].into_iter().enumerate() {
                engine.prefill(&prompt(len)).expect("a prompt");
                seen.push(decode(engine, 9 + i));
                engine.pause();
                engine.truncate(engine.position() - i).expect("a prefix");
            }
        }
        seen
    });
}

/// Who pauses, or waits, goes on where it was.
#[test]
fn pauses_lose_nothing() {
    let device = device(false);
    let mut options = greedy(&device);
    options.sampler = samplers()[3];
    same(&options, |engine| {
        engine.prefill(&prompt(12)).expect("a prompt");
        let mut seen = decode(engine, 4);
        engine.pause();
        seen.extend(decode(engine, 7));
        engine.wait().expect("nothing failed");
        seen.extend(decode(engine, 5));
        // Fewer are wanted than come in the end.
        seen.extend([3, 2, 1, 1, 1].map(|wanted| engine.decode_of(wanted).expect("a token")));
        seen
    });
}

#[test]
fn samplers_change_within_launches() {
    let device = device(false);
    let [cold, warm, other, penalties, _] = samplers();
    let mut options = greedy(&device);
    options.sampler = warm;
    same(&options, |engine| {
        engine.prefill(&prompt(12)).expect("a prompt");
        let mut seen = decode(engine, 4);
        for sampler in [other, penalties, cold, penalties, warm, warm] {
            engine.set_sampler(sampler).expect("a sampler");
            seen.extend(decode(engine, 5));
        }
        seen
    });
}

/// Rooms that grow, and contexts that end, in the middle of launches.
#[test]
fn caches_grow_and_end_where_they_do() {
    let device = device(false);
    for room in [8, 33, 512] {
        let mut options = greedy(&device);
        (options.room, options.context) = (room, Some(70));
        let (tokens, full) = same(&options, |engine| {
            engine.prefill(&prompt(7)).expect("a prompt");
            let mut tokens = Vec::new();
            let error = loop {
                match engine.decode() {
                    Ok(token) => tokens.push(token),
                    Err(error) => break error,
                }
            };
            let EngineError::Full { prompt, generated, context } = error else { panic!("{error}") };
            assert!(matches!(engine.decode(), Err(EngineError::Full { .. })));
            engine.truncate(60).expect("a prefix");
            assert_eq!(decode(engine, 11), tokens[53..]);
            (tokens, (prompt, generated, context.tokens))
        });
        assert_eq!((tokens.len(), full), (64, (7, 64, 70)));
    }
}

/// After a token that ends a text nothing is computed, and who goes on gets what follows.
#[test]
fn texts_end_on_the_device() {
    let device = device(false);
    let mut options = greedy(&device);
    options.sampler = samplers()[1];
    let plain = same(&options, |engine| {
        engine.prefill(&prompt(12)).expect("a prompt");
        decode(engine, 40)
    });
    // The first token that is new after some.
    let at = (8..40).find(|&at| !plain[..at].contains(&plain[at])).expect("a new one");
    for way in OTHERS {
        let mut engine = load(way.of(&options));
        engine.set_ends(&[u32::MAX, plain[at]]);
        engine.prefill(&prompt(12)).expect("a prompt");
        assert_eq!(decode(&mut engine, at + 1), plain[..=at], "{way:?}");
        let launches = engine.statistics().persistent.launches;
        // There is nothing left to stop.
        engine.wait().expect("nothing failed");
        assert_eq!(decode(&mut engine, 40 - at - 1), plain[at + 1..], "{way:?}");
        if way.tokens_per_launch == 128 && way.executor == Executor::Persistent {
            // The token may come again before the last.
            let again = plain[at + 1..39].iter().filter(|&&id| id == plain[at]).count() as u64;
            let all = engine.statistics().persistent.launches;
            assert_eq!((launches, all), (1, 2 + again), "{way:?}");
        }
    }
}

#[test]
fn a_launch_makes_128_tokens() {
    let device = device(false);
    let mut options = greedy(&device);
    options.executor = Executor::Persistent;
    // Launches are counted, so none begins before it is asked for.
    options.ahead = Some(false);
    let mut engine = load(options);
    engine.prefill(&prompt(12)).expect("a prompt");
    engine.decode().expect("what the prompt has chosen");
    engine.wait().expect("nothing failed");
    let before = device.statistics();
    for launches in 1..=2 {
        assert_eq!(decode(&mut engine, 64).len(), 64);
        assert_eq!(decode(&mut engine, 64).len(), 64);
        if launches == 2 {
            break;
        }
        engine.wait().expect("nothing failed");
        let after = device.statistics();
        assert_eq!(after.launches - before.launches, 1);
        assert_eq!(after.graph_launches, before.graph_launches);
        let statistics = engine.statistics().persistent;
        assert_eq!((statistics.launches, statistics.tokens), (1, 128));
        engine.truncate(13).expect("a prefix");
    }
    let statistics = engine.statistics().persistent;
    assert_eq!((statistics.launches, statistics.tokens), (2, 256));
    // A barrier for each phase, and phases are five a layer, and four.
    assert!((1..=5 * crate::SMALL.layers + 4).contains(&statistics.barriers_per_token), "{statistics:?}");
    assert!(statistics.blocks >= 1);
}

/// Whatever is going on, it can be ended, and then begun anew.
#[test]
fn launches_are_given_up_at_any_time() {
    let device = device(false);
    let options = greedy(&device);
    let expected = {
        let mut engine = load(GRAPH.of(&options));
        engine.prefill(&prompt(20)).expect("a prompt");
        decode(&mut engine, 12)
    };
    for way in [persistent(128, 2, true), persistent(4, 3, false)] {
        let mut engine = load(way.of(&options));
        for count in [0, 1, 2, 3, 5, 8, 11] {
            engine.reset();
            engine.prefill(&prompt(20)).expect("a prompt");
            assert_eq!(decode(&mut engine, count), expected[..count], "{way:?}");
        }
        // Dropped while it runs, beside another one that goes on.
        let mut other = load(way.of(&options));
        other.prefill(&prompt(20)).expect("a prompt");
        assert_eq!(decode(&mut other, 3), expected[..3]);
        drop(engine);
        assert_eq!(decode(&mut other, 9), expected[3..]);
        drop(other);
        device.synchronize().expect("nothing failed");
        assert_eq!(device.pool_statistics().live_bytes, 0);
    }
}

/// Tokens of a model after a prompt.
fn tokens(gguf: &Gguf, options: EngineOptions, prompt: &[u32], count: usize) -> Vec<u32> {
    let mut engine = Engine::load(gguf, options, |_| {}).expect("an engine");
    engine.prefill(prompt).expect("a prompt");
    decode(&mut engine, count)
}

/// Compares executors on a model.
fn hold(spec: &Spec, options: &EngineOptions, prompt: usize, count: usize) {
    let gguf = spec.gguf();
    let mut random = Random::new(spec.seed);
    let prompt: Vec<u32> = (0..prompt).map(|_| random.below(spec.vocab)).collect();
    let expected = tokens(&gguf, GRAPH.of(options), &prompt, count);
    let (blocks, per_launch) = (1 + random.below(8), random.of(&[128, 128, 4, 7]));
    let found = tokens(&gguf, persistent(per_launch, blocks, false).of(options), &prompt, count);
    assert_eq!(found, expected, "{spec:?}, {options:?}: {blocks} blocks, {per_launch} tokens a launch");
}

#[test]
fn models_of_every_architecture_and_format() {
    let device = device(false);
    let formats = WeightFormat::ALL.into_iter().map(Formats::All).chain([Formats::Q4KM, Formats::Random]);
    for (i, formats) in formats.enumerate() {
        let architecture = ["llama", "qwen2", "qwen3"][i % 3];
        let spec = Spec { formats, seed: i as u64, ..Spec::small(architecture) };
        let mut options = greedy(&device);
        options.sampler = samplers()[i % 5];
        options.cache = CacheDtype::ALL[i % 4];
        options.arithmetic = [Arithmetic::Exact, Arithmetic::Int8][i / 2 % 2];
        hold(&spec, &options, 5, 10);
    }
}

#[test]
fn random_models() {
    let device = device(false);
    let full = std::env::var_os("WARPWRIGHT_FULL").is_some();
    for seed in 0..if full { 200 } else { 12 } {
        let spec = Spec::random(3000 + seed);
        let mut random = Random::new(seed);
        let mut options = greedy(&device);
        options.sampler = random.of(&samplers());
        options.cache = random.of(&CacheDtype::ALL);
        options.arithmetic = random.of(&[Arithmetic::Exact, Arithmetic::Int8]);
        options.room = random.of(&[8, 512]);
        hold(&spec, &options, 1 + random.below(14) as usize, 12);
    }
}

/// Where blocks share a sequence, from 256 tokens of room for each.
#[test]
fn sequences_across_the_shares_of_blocks() {
    let device = device(false);
    let spec = Spec { layers: 1, hidden: 64, ffn: 64, head_dim: 32, ..Spec::small("llama") };
    for (cache, room, prompt) in
        [(CacheDtype::F16, 1100, 250), (CacheDtype::Q8_0, 300, 508), (CacheDtype::F16, 512, 1020)]
    {
        let mut options = greedy(&device);
        (options.cache, options.room, options.chunk) = (cache, room, Some(128));
        hold(&spec, &options, prompt, 12);
    }
}

#[test]
fn every_check_finds_nothing() {
    for (seed, blocks) in [(1, 2), (2, 3), (3, 7), (4, 16), (5, 32)] {
        let options = Options { schedule: Schedule::Seeded(seed), ..Options::checked() };
        let device = warpwright_testing::device(VmConfig { options, ..VmConfig::default() });
        let cache = CacheDtype::ALL[seed as usize % 4];
        let spec = Spec {
            layers: 1,
            formats: Formats::Q4KM,
            ..Spec::small(["llama", "qwen3"][blocks as usize % 2])
        };
        let mut options = greedy(&device);
        (options.cache, options.sampler) = (cache, samplers()[seed as usize % 5]);
        let way = persistent(3, blocks, false);
        assert_eq!(tokens(&spec.gguf(), way.of(&options), &[1, 2, 3], 6).len(), 6);
        assert!(device.take_findings().is_empty());
    }
}

/// What cannot be done by launches of many tokens is done by graphs, and said.
#[test]
fn what_does_not_fit_falls_back_to_graphs() {
    let device = device(false);
    let options = greedy(&device);
    let graph = tokens(&crate::gguf(crate::SMALL, 1), GRAPH.of(&options), &prompt(12), 8);
    let mut options = persistent(128, 1 << 20, false).of(&options);
    let refused = Engine::load(&crate::gguf(crate::SMALL, 1), options.clone(), |_| {});
    assert!(
        matches!(refused, Err(EngineError::Executor { executor: Executor::Persistent, .. })),
        "{refused:?}"
    );
    options.fall_back = true;
    let mut engine = load(options);
    let fallback = engine.fallback().expect("a reason");
    assert_eq!((fallback.asked, fallback.used), (Executor::Persistent, Executor::Graph));
    assert_eq!(engine.describe().executor, Executor::Graph);
    engine.prefill(&prompt(12)).expect("a prompt");
    assert_eq!(decode(&mut engine, 8), graph);
    // Where it can be done, nothing is said.
    let engine = load(OTHERS[1].of(&greedy(&device)));
    assert!(engine.fallback().is_none());
    assert_eq!(engine.describe().executor, Executor::Persistent);
}

/// Devices that go on after a failure.
mod on_the_vm {
    use super::*;

    /// What fails on the device is an error of the call that waits for it, and then it goes on as if it had not been.
    #[test]
    fn failures_are_got_over() {
        let device = device(false);
        let mut options = greedy(&device);
        options.sampler = samplers()[3];
        let expected = {
            let mut engine = load(GRAPH.of(&options));
            engine.prefill(&prompt(20)).expect("a prompt");
            decode(&mut engine, 12)
        };
        for way in OTHERS {
            let mut engine = load(way.of(&options));
            engine.prefill(&prompt(20)).expect("a prompt");
            let mut tokens = decode(&mut engine, 5);
            let fails = device.kernel(&Fails).expect("a kernel");
            fails.bind().launch(&device.new_stream().expect("a stream")).expect("issued");
            engine.truncate(23).expect("a prefix");
            tokens.truncate(3);
            engine.decode().expect_err("the kernel's error");
            assert_eq!(engine.position(), 23);
            tokens.extend(decode(&mut engine, 9));
            assert_eq!(tokens, expected, "{way:?}");
        }
    }
}
