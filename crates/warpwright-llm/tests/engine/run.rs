//! Engines over time: several at once, long runs, failures.

use crate::{By, decode, device, greedy, load, logits, prompt};
use warpwright_dsl::{ArgDesc, K, LaunchRule, any::AnyKernel};
use warpwright_llm::engine::{ContextLimit, EngineError, EngineOptions};

#[test]
fn engines_do_not_see_one_another() {
    let device = device(false);
    let alone: Vec<Vec<u32>> = (1..4)
        .map(|i| {
            let mut engine = load(greedy(&device));
            engine.prefill(&prompt(5 * i)).expect("a prompt");
            decode(&mut engine, 10)
        })
        .collect();
    let mut engines: Vec<_> = (0..3).map(|_| load(greedy(&device))).collect();
    for (i, engine) in engines.iter_mut().enumerate() {
        engine.prefill(&prompt(5 * (i + 1))).expect("a prompt");
    }
    let mut found = vec![Vec::new(); 3];
    for _ in 0..10 {
        for (tokens, engine) in found.iter_mut().zip(&mut engines) {
            tokens.push(engine.decode().expect("a token"));
        }
    }
    assert_eq!(found, alone);
    // On threads of their own, too.
    let threads = engines.into_iter().enumerate().map(|(i, mut engine)| {
        std::thread::spawn(move || {
            engine.reset();
            engine.prefill(&prompt(5 * (i + 1))).expect("a prompt");
            decode(&mut engine, 10)
        })
    });
    let threads: Vec<_> = threads.collect();
    let found: Vec<Vec<u32>> = threads.into_iter().map(|thread| thread.join().expect("tokens")).collect();
    assert_eq!(found, alone);
}

/// Contexts that fill up again and again take no more memory than the first time.
#[test]
fn long_runs_take_no_more_memory() {
    let device = device(false);
    let mut options = greedy(&device);
    (options.room, options.ahead) = (16, Some(true));
    let mut engine = load(options);
    let mut seen = Vec::new();
    for _ in 0..3 {
        engine.reset();
        engine.prefill(&prompt(40)).expect("a prompt");
        let full = (0..).find_map(|_| engine.decode().err()).expect("an end");
        let EngineError::Full { prompt, generated, context } = full else { panic!("{full}") };
        assert_eq!((prompt, generated, context.tokens, context.limit), (40, 217, 256, ContextLimit::Model));
        let pool = device.pool_statistics();
        seen.push((pool.live_bytes, pool.allocations));
    }
    assert_eq!(seen[1], seen[2]);
    assert_eq!(engine.statistics().room, 256);
    drop(engine);
    device.synchronize().expect("nothing failed");
    assert_eq!(device.pool_statistics().live_bytes, 0);
}

/// A kernel that ends in a trap.
pub(crate) struct Fails;

impl AnyKernel for Fails {
    fn entry(&self) -> String {
        "fails".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        Vec::new()
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        k.trap();
    }
}

#[test]
fn estimates_leave_no_trace() {
    let device = device(false);
    let mut engine = load(greedy(&device));
    let estimate = engine.estimate().expect("an estimate");
    assert!(!estimate.token.is_zero() && !estimate.prompt_token.is_zero());
    engine.prefill(&prompt(20)).expect("a prompt");
    let mut tokens = decode(&mut engine, 4);
    engine.estimate().expect("an estimate");
    assert_eq!(engine.position(), 24);
    tokens.extend(decode(&mut engine, 4));
    let mut other = load(greedy(&device));
    other.prefill(&prompt(20)).expect("a prompt");
    assert_eq!(decode(&mut other, 8), tokens);
    // Where the context is full there is no room to measure in.
    let mut options = greedy(&device);
    options.context = Some(16);
    let mut engine = load(options);
    let rows = logits(&mut engine, &prompt(16), By::Token);
    engine.estimate().expect("an estimate");
    assert_eq!(engine.decode().expect("a token"), crate::largest(&rows[15]));
}

/// Devices that go on after a failure.
mod on_the_vm {
    use super::*;

    /// What fails on the device is an error, and then it goes on as if it had not been.
    #[test]
    fn failures_are_got_over() {
        let device = device(false);
        for ahead in [false, true] {
            let mut options: EngineOptions = greedy(&device);
            options.ahead = Some(ahead);
            let mut engine = load(options.clone());
            engine.prefill(&prompt(20)).expect("a prompt");
            let expected = decode(&mut engine, 12);

            let mut engine = load(options);
            let fail = || {
                device
                    .kernel(&Fails)
                    .expect("a kernel")
                    .bind()
                    .launch(&device.new_stream().expect("a stream"))
                    .expect("issued")
            };
            engine.prefill(&prompt(20)).expect("a prompt");
            let mut tokens = decode(&mut engine, 5);
            fail();
            engine.truncate(23).expect("a prefix");
            tokens.truncate(3);
            let error = engine.decode().expect_err("the kernel's error");
            assert!(matches!(error, EngineError::Runtime(_)), "{error}");
            assert_eq!(engine.position(), 23);
            tokens.extend(decode(&mut engine, 9));
            assert_eq!(tokens, expected);
            // Waiting tells too, and what has failed is done again.
            engine.reset();
            engine.prefill(&prompt(20)).expect("a prompt");
            engine.wait().expect("nothing failed");
            fail();
            engine.prefill(&[1]).expect("issued");
            assert!(matches!(engine.wait(), Err(EngineError::Runtime(_))));
            assert_eq!(engine.position(), 21);
            engine.decode().expect("a token");
            // In the middle of a prompt: nothing of it stays, or all of it is done again.
            engine.reset();
            fail();
            if engine.prefill(&prompt(20)).is_err() {
                assert_eq!(engine.position(), 0);
                engine.prefill(&prompt(20)).expect("a prompt");
            }
            let first = engine.decode().or_else(|_| engine.decode()).expect("a token");
            assert_eq!(first, expected[0]);
            assert_eq!(decode(&mut engine, 11), expected[1..]);
        }
    }
}
