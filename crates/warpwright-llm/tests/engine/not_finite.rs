//! Logits that are NaN or infinite are an error, which names what has the first such number.

use crate::model::{changed, gguf};
use crate::{SMALL, decode, device, greedy, largest, prompt};
use std::ops::ControlFlow;
use warpwright_llm::engine::{By, Engine, EngineError, EngineOptions, Executor, SamplerOptions};
use warpwright_runtime::Device;

/// How many tokens the logits come after, the tensor, whether it is a weight, its row and column.
type Named = (usize, String, bool, u64, u64);

fn named(error: EngineError) -> Named {
    let EngineError::NotFinite { after, first: Some(first) } = error else { panic!("{error}") };
    assert!(!first.value.is_finite(), "{first}");
    (after, first.tensor, first.weight, first.row, first.column)
}

/// The small model, with one number of a weight in place of its own.
fn poisoned(options: EngineOptions, tensor: &str, at: usize, value: f32) -> Engine {
    let gguf = changed(SMALL, 1, |name, values| {
        if name == tensor {
            values[at] = value;
        }
    });
    Engine::load(&gguf, options, |_| {}).expect("an engine")
}

/// All ways in which tokens are chosen.
fn ways(device: &Device) -> Vec<EngineOptions> {
    let mut ways = Vec::new();
    for executor in [Executor::Graph, Executor::Eager, Executor::Persistent] {
        for ahead in [false, true] {
            for sampler in [
                SamplerOptions::greedy(),
                SamplerOptions { seed: 3, ..SamplerOptions::default() },
                SamplerOptions { repeat_penalty: 1.2, ..SamplerOptions::greedy() },
            ] {
                let mut options = greedy(device);
                (options.executor, options.ahead, options.sampler) = (executor, Some(ahead), sampler);
                options.blocks = Some(2);
                ways.push(options);
            }
        }
    }
    ways
}

/// The weight is named with its place, wherever it stands and whatever chooses.
#[test]
fn a_weight_that_is_not_finite_is_named() {
    let device = device(false);
    let id = prompt(20)[4];
    for (tensor, row, column, value) in [
        ("token_embd.weight", id as usize, 7, f32::NAN),
        ("blk.0.attn_norm.weight", 0, 11, f32::INFINITY),
        ("blk.1.attn_v.weight", 30, 63, f32::NAN),
        ("blk.1.ffn_down.weight", 63, 31, f32::NEG_INFINITY),
        ("blk.1.ffn_gate.weight", 5, 0, f32::NAN),
        ("output_norm.weight", 0, 63, f32::NAN),
        // One logit alone is not finite: no token but this one has it.
        ("output.weight", 95, 1, f32::NAN),
    ] {
        let wanted = (20, tensor.to_string(), true, row as u64, column as u64);
        let k = if tensor.contains("ffn_down") { SMALL.ffn } else { SMALL.hidden };
        let at = row * k as usize + column;
        for options in ways(&device) {
            let case = format!("{tensor} {:?} {:?}", options.executor, options.sampler);
            let mut engine = poisoned(options, tensor, at, value);
            engine.prefill(&prompt(20)).expect("issued");
            assert_eq!(named(engine.decode().expect_err(&case)), wanted, "{case}");
            // It does not go away, and what is shorter has it too or goes on.
            assert_eq!(named(engine.decode().expect_err(&case)), wanted, "{case}");
            assert_eq!(engine.position(), 20);
        }
        let rows = |by| {
            let mut engine = poisoned(greedy(&device), tensor, at, value);
            let mut told = 0;
            let done = engine.logits(&prompt(20), by, |_, row| {
                assert!(row.iter().all(|logit| logit.is_finite()));
                told += 1;
                ControlFlow::Continue(())
            });
            let (after, tensor, weight, row, column) = named(done.expect_err("no logits"));
            assert_eq!((after, engine.position()), (told + 1, 0));
            (tensor, weight, row, column)
        };
        let (_, tensor, weight, row, column) = wanted;
        assert_eq!(rows(By::Token), (tensor.clone(), weight, row, column));
        assert_eq!(rows(By::Chunk(16)), (tensor, weight, row, column));
    }
}

/// A row of the table that no prompt has: all goes well until the token is chosen, and again without it.
#[test]
fn it_is_found_when_it_comes() {
    let device = device(false);
    let mut engine = Engine::load(&gguf(SMALL, 1), greedy(&device), |_| {}).expect("an engine");
    engine.prefill(&prompt(20)).expect("a prompt");
    let sound = decode(&mut engine, 12);
    let fresh =
        |&place: &usize| !prompt(20).contains(&sound[place]) && !sound[..place].contains(&sound[place]);
    let place = (2..11).find(fresh).expect("a token that was not there before");
    let at = sound[place] as usize * SMALL.hidden as usize;
    for mut options in ways(&device) {
        if options.sampler != SamplerOptions::greedy() {
            continue;
        }
        options.tokens_per_launch = 4;
        let mut engine = poisoned(options, "token_embd.weight", at, f32::NAN);
        engine.prefill(&prompt(20)).expect("a prompt");
        assert_eq!(decode(&mut engine, place + 1), sound[..=place]);
        let wanted = (20 + place + 1, "token_embd.weight".into(), true, sound[place].into(), 0);
        assert_eq!(named(engine.decode().expect_err("the token")), wanted);
        engine.truncate(20).expect("a prefix");
        assert_eq!(decode(&mut engine, place), sound[..place]);
    }
}

/// Numbers that become too large on the way: the first tensor that has one is named, with the token.
#[test]
fn what_was_computed_is_named() {
    let device = device(false);
    let with = |tensor: &'static str, factor: f32| {
        let gguf = changed(SMALL, 1, |name, values| {
            if name == tensor {
                values.iter_mut().for_each(|value| *value *= factor);
            }
        });
        let mut engine = Engine::load(&gguf, greedy(&device), |_| {}).expect("an engine");
        engine.prefill(&prompt(20)).expect("issued");
        engine.decode()
    };
    // The largest number is 3.4e38.
    with("blk.0.ffn_up.weight", 1e18).expect("a token");
    let (after, tensor, weight, row, _) = named(with("blk.0.ffn_up.weight", 3e38).expect_err("too large"));
    assert_eq!((after, tensor.as_str(), weight, row), (20, "blk.0.ffn_up", false, 0));
    let (after, tensor, weight, row, _) = named(with("output.weight", 3e38).expect_err("too large"));
    assert_eq!((after, tensor.as_str(), weight, row), (20, "logits", false, 19));
}

/// What fills a chunk up changes nothing, whatever it is.
#[test]
fn padding_is_not_looked_at() {
    let device = device(false);
    // Padding is the token 0, which this prompt has not: its row is nobody's.
    let ids: Vec<u32> = prompt(19).into_iter().map(|id| id.max(1)).collect();
    let run = |gguf: &_| {
        let mut engine = Engine::load(gguf, greedy(&device), |_| {}).expect("an engine");
        let mut best = Vec::new();
        let done = engine.logits(&ids, By::Chunk(16), |_, row| {
            best.push(largest(row));
            ControlFlow::Continue(())
        });
        done.map(|_| best)
    };
    let sound = run(&gguf(SMALL, 1)).expect("logits");
    let with = |norm: f32| {
        changed(SMALL, 1, |tensor, values| match tensor {
            "token_embd.weight" => values[0] = f32::NAN,
            "output_norm.weight" => values[2] *= norm,
            _ => {}
        })
    };
    assert_eq!(run(&with(1.0)).expect("logits"), sound);
    let both = with(f32::NAN);
    let wanted = (1, "output_norm.weight".to_string(), true, 0, 2);
    assert_eq!(named(run(&both).expect_err("no logits")), wanted);
}
