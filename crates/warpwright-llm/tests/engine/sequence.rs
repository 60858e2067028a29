//! Prompts, prefixes, limits.

use crate::model::{Sizes, gguf};
use crate::{By, SMALL, decode, device, greedy, largest, load, logits, prompt};
use std::ops::ControlFlow;
use warpwright_graph::Arithmetic;
use warpwright_kernels::CacheDtype;
use warpwright_llm::engine::{ContextLimit, Engine, EngineError, EngineOptions, Executor, SamplerOptions};

#[test]
fn tokens_are_the_largest_logits_of_those_before_them() {
    let device = device(false);
    for ahead in [false, true] {
        let mut options = greedy(&device);
        (options.chunk, options.ahead) = (Some(1), Some(ahead));
        let mut engine = load(options.clone());
        let prompt = prompt(9);
        engine.prefill(&prompt).expect("a prompt");
        let tokens = decode(&mut engine, 12);
        assert_eq!(engine.tokens(), [&prompt[..], &tokens].concat());
        assert_eq!(engine.position(), 21);

        let mut other = load(options);
        let rows = logits(&mut other, engine.tokens(), By::Token);
        let chosen: Vec<u32> = rows[8..20].iter().map(|row| largest(row)).collect();
        assert_eq!(tokens, chosen);
        // Not one token again and again: a model that says something.
        assert!(tokens.windows(2).any(|pair| pair[0] != pair[1]), "{tokens:?}");
        // What follows the last row is chosen by it.
        assert_eq!(other.decode().expect("a token"), largest(&rows[20]));
    }
}

/// Whole chunks, chunks with padding and single tokens leave the same cache, up to rounding.
#[test]
fn chunks_of_every_size_agree() {
    let device = device(true);
    let ids = prompt(45);
    let mut options = greedy(&device);
    options.cache = CacheDtype::F32;
    let expected = logits(&mut load(options.clone()), &ids, By::Token);
    for chunk in [2, 5, 16, 20, 64] {
        let rows = logits(&mut load(options.clone()), &ids, By::Chunk(chunk));
        assert_eq!(rows.len(), ids.len());
        for (at, (row, expected)) in rows.iter().zip(&expected).enumerate() {
            let sum = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>().sqrt();
            let off = sum(&mut row.iter().zip(expected).map(|(a, b)| f64::from(a - b)));
            let all = sum(&mut expected.iter().map(|&x| f64::from(x)));
            assert!(off <= 3e-3 * all, "{chunk}, token {at}: off by {off} of {all}");
        }
        // Prompts too, whose last chunk has padding.
        options.chunk = Some(chunk);
        let mut engine = load(options.clone());
        for part in ids.chunks(19) {
            engine.prefill(part).expect("a prompt");
        }
        assert_eq!(engine.decode().expect("a token"), largest(&expected[44]), "{chunk}");
    }
    assert!(device.take_findings().is_empty());
}

#[test]
fn every_cache_and_arithmetic_passes_every_check() {
    let device = device(true);
    for cache in CacheDtype::ALL {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
            let mut options = EngineOptions::new(device.clone());
            (options.cache, options.arithmetic, options.chunk) = (cache, arithmetic, Some(16));
            options.sampler = SamplerOptions { repeat_penalty: 1.2, seed: 3, ..SamplerOptions::default() };
            let mut engine = load(options);
            engine.prefill(&prompt(21)).expect("a prompt");
            assert_eq!(decode(&mut engine, 3).len(), 3);
        }
    }
    assert!(device.take_findings().is_empty());
}

#[test]
fn prefixes_go_on_as_they_did() {
    let device = device(false);
    for ahead in [false, true] {
        for sampler in [SamplerOptions::greedy(), SamplerOptions { seed: 9, ..SamplerOptions::default() }] {
            let mut options = greedy(&device);
            (options.sampler, options.ahead) = (sampler, Some(ahead));
            let mut engine = load(options.clone());
            let prompt = prompt(20);
            engine.prefill(&prompt).expect("a prompt");
            let tokens = decode(&mut engine, 10);
            // Back to where tokens were chosen, to the end of the prompt, and to where nothing changes.
            for len in [25, 30, 21] {
                engine.truncate(len).expect("a prefix");
                assert_eq!(engine.position(), len);
                assert_eq!(decode(&mut engine, 30 - len), tokens[len - 20..], "{len}");
            }
            // Another prompt behind a prefix is the same as both at once, to the bit where both are in chunks alike.
            engine.truncate(16).expect("a prefix");
            engine.prefill(&[1, 2, 3]).expect("a prompt");
            let other = decode(&mut engine, 5);
            let mut fresh = load(options.clone());
            fresh.prefill(&prompt[..16]).expect("a prompt");
            fresh.prefill(&[1, 2, 3]).expect("a prompt");
            assert_eq!(decode(&mut fresh, 5), other);
            // And from the beginning.
            engine.reset();
            assert!(engine.tokens().is_empty());
            engine.prefill(&prompt).expect("a prompt");
            assert_eq!(decode(&mut engine, 10), tokens);
            let refused = engine.truncate(31);
            assert!(matches!(refused, Err(EngineError::Prefix { asked: 31, held: 30 })), "{refused:?}");
        }
    }
}

/// Tokens until the context is full, and what is said then.
fn until_full(engine: &mut Engine) -> (Vec<u32>, EngineError) {
    let mut tokens = Vec::new();
    loop {
        match engine.decode() {
            Ok(token) => tokens.push(token),
            Err(error) => return (tokens, error),
        }
        assert!(tokens.len() < 1000);
    }
}

/// Devices that have too little memory.
mod on_the_vm {
    use super::*;
    use warpwright_runtime::{Device, VmConfig};

    /// It is said what there is no memory for, and shorter sequences go on.
    #[test]
    fn what_there_is_no_memory_for_is_said() {
        let with = |memory: u64| {
            let mut config = VmConfig::default();
            config.device.memory = memory;
            let mut options = greedy(&Device::vm(config).expect("a device"));
            options.room = 32;
            options
        };
        let what = |error: EngineError| match error {
            EngineError::Memory { what, .. } => what,
            other => panic!("{other}"),
        };
        let short = |engine: &mut Engine| {
            engine.prefill(&prompt(20)).expect("a prompt");
            let tokens = decode(engine, 8);
            engine.reset();
            tokens
        };
        let sound = short(&mut load(greedy(&device(false))));
        let mut said = Vec::new();
        for memory in (1..40).map(|part| part << 16) {
            let outcome = Engine::load(&gguf(SMALL, 1), with(memory), |_| {}).and_then(|mut engine| {
                engine.prefill(&prompt(20))?;
                engine.decode()?;
                engine.reset();
                let long = engine.prefill(&prompt(250)).and_then(|()| engine.decode());
                engine.reset();
                assert_eq!(short(&mut engine), sound, "{memory}");
                long
            });
            said.push(outcome.map(drop).map_err(what));
        }
        said.dedup();
        let step = |length| Err(format!("a step of {length} tokens, of a context of 256"));
        let parameters = load(greedy(&device(false))).model().parameters();
        assert_eq!(said.first(), Some(&Err(format!("the {parameters} weights of the model"))));
        assert_eq!(said.last(), Some(&Ok(())));
        assert!(said.contains(&step(256)), "{said:#?}");
    }
}

/// What limits a context is what was asked for, the model, or its window, and its message says what helps.
#[test]
fn contexts_know_what_limits_them() {
    let device = device(false);
    let limits = |asked: Option<u32>, trained: u32, window: Option<u32>| {
        let mut options = greedy(&device);
        options.context = asked;
        let gguf = gguf(Sizes { context: trained, window, ..SMALL }, 1);
        let engine = Engine::load(&gguf, options, |_| {})?;
        let context = engine.context();
        Ok::<_, EngineError>((context.tokens, context.limit, context.max))
    };
    let limit = |asked, trained, window| limits(asked, trained, window).expect("an engine");
    use ContextLimit::{Asked, Default, Model, Window};
    assert_eq!(limit(Some(40), 256, None), (40, Asked, 256));
    assert_eq!(limit(Some(256), 256, None), (256, Model, 256));
    assert_eq!(limit(None, 256, None), (256, Model, 256));
    assert_eq!(limit(None, 8192, None), (4096, Default, 8192));
    assert_eq!(limit(None, 8192, Some(1000)), (1000, Window, 1000));
    assert_eq!(limit(Some(1000), 8192, Some(1000)), (1000, Window, 1000));
    assert_eq!(limit(Some(40), 8192, Some(1000)), (40, Asked, 1000));
    assert_eq!(limit(None, 256, Some(1000)), (256, Model, 256));
    for (asked, window, rule) in [
        (257, None, "from 1 to 256, since the model was trained for no more"),
        (
            100,
            Some(64),
            "from 1 to 64, since the model's tokens see no more (its sliding window), and attention to a part of the \
             context is not supported",
        ),
    ] {
        let error = limits(Some(asked), 256, window).expect_err("too long");
        assert_eq!(error.to_string(), format!("the context is {asked}: it must be {rule}"));
    }
    // What helps.
    let refused = |asked: Option<u32>| {
        let mut options = greedy(&device);
        options.context = asked;
        load(options).prefill(&prompt(257)).expect_err("too long").to_string()
    };
    assert_eq!(
        refused(Some(40)),
        "a prompt of 257 tokens does not fit into the context of 40 tokens (no more were asked for): shorten it; a larger \
         context helps, of up to 256 tokens"
    );
    assert_eq!(
        refused(None),
        "a prompt of 257 tokens does not fit into the context of 256 tokens (the model was trained for no more): shorten \
         it; this model takes no larger one"
    );
}

#[test]
fn contexts_end_with_the_numbers() {
    let device = device(false);
    let mut all = Vec::new();
    for (ahead, room) in [(false, 512), (true, 512), (true, 8), (false, 8)] {
        let mut options = greedy(&device);
        (options.context, options.ahead, options.room) = (Some(40), Some(ahead), room);
        let mut engine = load(options);
        assert_eq!(engine.context().tokens, 40);
        let refused = engine.prefill(&prompt(41));
        let numbers = |error: &EngineError| match *error {
            EngineError::Overflow { before, prompt, context } => (before, prompt, context.tokens),
            ref other => panic!("{other}"),
        };
        assert_eq!(numbers(&refused.expect_err("too long")), (0, 41, 40));
        engine.prefill(&prompt(30)).expect("a prompt");
        assert_eq!(numbers(&engine.prefill(&prompt(11)).expect_err("too long")), (30, 11, 40));
        // Refused prompts have changed nothing.
        assert_eq!(engine.position(), 30);
        let (tokens, error) = until_full(&mut engine);
        let EngineError::Full { prompt, generated, context } = error else { panic!("{error}") };
        assert_eq!((prompt, generated, context.tokens), (30, 11, 40));
        assert_eq!(tokens.len(), 11);
        // It says so again, and goes on from a prefix.
        assert!(matches!(engine.decode(), Err(EngineError::Full { .. })));
        engine.truncate(35).expect("a prefix");
        assert_eq!(until_full(&mut engine).0, tokens[5..]);
        assert!(engine.statistics().room >= 40);
        all.push(tokens);
    }
    // As long as blocks do not share sequences, growth and steps ahead change nothing.
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}

#[test]
fn what_is_no_token_is_refused() {
    let device = device(true);
    let mut engine = load(greedy(&device));
    assert!(matches!(engine.decode(), Err(EngineError::Empty)));
    assert!(matches!(engine.prefill(&[]), Err(EngineError::Empty)));
    engine.prefill(&[1, 2]).expect("a prompt");
    for id in [SMALL.vocab, u32::MAX] {
        let refused = engine.prefill(&[3, id]);
        let Err(EngineError::Vocabulary { at, id: given, vocab }) = refused else { panic!("{refused:?}") };
        assert_eq!((at, given, vocab), (1, id, SMALL.vocab));
        let refused = engine.logits(&[id], By::Token, |_, _| ControlFlow::Continue(()));
        assert!(matches!(refused, Err(EngineError::Vocabulary { at: 0, .. })), "{refused:?}");
    }
    assert_eq!(engine.tokens(), [1, 2]);
    engine.decode().expect("a token");
    assert!(device.take_findings().is_empty());
}

#[test]
fn options_that_there_are_not_are_named() {
    let device = device(false);
    let refused = |change: &dyn Fn(&mut EngineOptions)| {
        let mut options = greedy(&device);
        change(&mut options);
        match Engine::load(&crate::gguf(SMALL, 1), options, |_| {}) {
            Err(EngineError::Option { option, .. }) => option,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|options| options.context = Some(257)), "the context");
    assert_eq!(refused(&|options| options.context = Some(0)), "the context");
    assert_eq!(refused(&|options| options.chunk = Some(0)), "the chunk");
    assert_eq!(refused(&|options| options.sampler.top_p = 2.0), "top_p");
}

#[test]
fn executors_do_the_same_to_the_bit() {
    let device = device(false);
    let ids = prompt(20);
    let run = |executor| {
        let mut options = greedy(&device);
        options.executor = executor;
        options.sampler = SamplerOptions { seed: 4, presence_penalty: 0.3, ..SamplerOptions::default() };
        let mut engine = load(options);
        engine.prefill(&ids).expect("a prompt");
        let tokens = decode(&mut engine, 8);
        engine.reset();
        let by_token = logits(&mut engine, &ids, By::Token);
        engine.reset();
        (tokens, by_token, logits(&mut engine, &ids, By::Chunk(16)))
    };
    assert!(run(Executor::Graph) == run(Executor::Eager));
}

#[test]
fn prompts_that_are_interrupted_are_prefixes() {
    let device = device(false);
    let ids = prompt(100);
    let mut engine = load(greedy(&device));
    let mut seen = Vec::new();
    let ended = engine.prefill_with(&ids, |progress| {
        assert_eq!(progress.total, 100);
        seen.push(progress.done);
        if progress.done >= 32 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(ended.expect("no error"), ControlFlow::Break(()));
    assert_eq!(seen, [16, 32]);
    let len = engine.position();
    assert!((32..100).contains(&len), "{len}");
    assert_eq!(engine.tokens(), &ids[..len]);
    engine.prefill(&ids[len..]).expect("the rest");
    let mut whole = load(greedy(&device));
    whole.prefill(&ids).expect("a prompt");
    assert_eq!(decode(&mut engine, 5), decode(&mut whole, 5));
}
