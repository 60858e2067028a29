//! Choices, against a host that makes them by the logits.

use crate::reference::{Settings, draw, probabilities};
use crate::{By, decode, device, greedy, load, logits, prompt};
use warpwright_kernels::Sample;
use warpwright_llm::engine::SamplerOptions;

/// Logits after penalties for the last tokens.
fn penalised(row: &[f32], tokens: &[u32], sampler: &SamplerOptions) -> Vec<f64> {
    let last = &tokens[tokens.len().saturating_sub(sampler.repeat_last_n as usize)..];
    let lowered = |(id, &logit): (usize, &f32)| {
        let count = last.iter().filter(|&&token| token == id as u32).count() as f64;
        let (logit, repeat) = (f64::from(logit), f64::from(sampler.repeat_penalty));
        if count == 0.0 {
            return logit;
        }
        let scaled = if logit < 0.0 { logit * repeat } else { logit / repeat };
        scaled - count * f64::from(sampler.frequency_penalty) - f64::from(sampler.presence_penalty)
    };
    row.iter().enumerate().map(lowered).collect()
}

#[test]
fn choices_are_those_of_a_host() {
    let device = device(false);
    let cold = SamplerOptions { repeat_penalty: 1.4, repeat_last_n: 7, ..SamplerOptions::greedy() };
    let warm = SamplerOptions { seed: 77, ..SamplerOptions::default() };
    let samplers = [
        cold,
        SamplerOptions { frequency_penalty: 0.7, presence_penalty: 0.4, repeat_last_n: 64, ..cold },
        warm,
        SamplerOptions { temperature: 1.7, top_k: 0, top_p: 0.7, min_p: 0.0, repeat_penalty: 1.2, ..warm },
        SamplerOptions { temperature: 0.3, top_k: 3, top_p: 1.0, seed: u64::MAX, ..warm },
    ];
    let mut compared = 0;
    for sampler in samplers {
        let mut options = greedy(&device);
        (options.sampler, options.chunk) = (sampler, Some(1));
        let mut engine = load(options.clone());
        let mut other = load(options);
        let mut rows = logits(&mut other, &prompt(11), By::Token);
        engine.prefill(&prompt(11)).expect("a prompt");
        for _ in 0..25 {
            let tokens = engine.tokens().to_vec();
            let token = engine.decode().expect("a token");
            let row = penalised(rows.last().expect("a row"), &tokens, &sampler);
            let settings = Settings {
                temperature: sampler.temperature.into(),
                top_k: sampler.top_k,
                top_p: sampler.top_p.into(),
                min_p: sampler.min_p.into(),
            };
            let shares = probabilities(&row, &settings);
            let expected = draw(&shares, Sample::new(96).threads, sampler.seed, tokens.len() as u32);
            // Where rounding may decide, it may.
            if expected.margin > 1e-4 {
                assert_eq!(token, expected.token, "{sampler:?} after {tokens:?}");
                compared += 1;
            }
            rows = logits(&mut other, &[token], By::Token);
        }
    }
    assert!(compared > 115, "{compared}");
}

#[test]
fn seeds_say_which_tokens_are_drawn() {
    let device = device(false);
    let with = |seed, chunk| {
        let mut options = greedy(&device);
        options.sampler = SamplerOptions { temperature: 2.0, seed, ..SamplerOptions::default() };
        options.chunk = Some(chunk);
        let mut engine = load(options);
        engine.prefill(&prompt(12)).expect("a prompt");
        decode(&mut engine, 20)
    };
    assert_eq!(with(1, 16), with(1, 16));
    assert_ne!(with(1, 16), with(2, 16));
}

/// A sampler that changes in between is the sampler from there on, and needs no other plan if numbers change.
#[test]
fn samplers_change_between_tokens() {
    let device = device(false);
    let first = SamplerOptions { seed: 5, repeat_penalty: 1.3, ..SamplerOptions::default() };
    let second = SamplerOptions { temperature: 1.5, repeat_penalty: 1.1, seed: 6, ..first };
    for ahead in [false, true] {
        let mut options = greedy(&device);
        (options.sampler, options.ahead) = (first, Some(ahead));
        let mut engine = load(options.clone());
        engine.prefill(&prompt(12)).expect("a prompt");
        let before = decode(&mut engine, 4);
        let allocations = device.pool_statistics().allocations;
        engine.set_sampler(second).expect("a sampler");
        let after = decode(&mut engine, 4);
        assert_eq!(device.pool_statistics().allocations, allocations);

        options.sampler = second;
        let mut other = load(options);
        other.prefill(&prompt(12)).expect("a prompt");
        assert_ne!(decode(&mut other, 4), before);
        other.reset();
        other.prefill(&[&prompt(12)[..], &before].concat()).expect("a prompt");
        assert_eq!(decode(&mut other, 4), after);
        assert!(engine.set_sampler(SamplerOptions { min_p: 7.0, ..second }).is_err());
        assert_eq!(engine.sampler(), second);
    }
}
