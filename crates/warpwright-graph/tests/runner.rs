//! Steps from token to token: batches that change, caches that grow.

mod common;

use common::run::{add_weights, begin, device};
use common::{Choice, Formats, ModelConfig, Prompt};
use half::f16;
use warpwright_graph::{
    ComputeGraph, Element, ExecuteError, KernelDispatch, KernelLibrary, PlanOptions, Replanned, Runner,
    RunnerError, SequenceBound, StepKind, StepRun, StepShape, Store, StoreError, TensorType,
};
use warpwright_kernels::{CacheDtype, WeightFormat};
use warpwright_runtime::{Device, RuntimeError, VmConfig};

const TOKENS: StepKind = StepKind::Decode;

fn runner_of(
    device: &Device,
    config: &ModelConfig,
    bound: SequenceBound,
    (options, dispatch): (PlanOptions, impl KernelDispatch + 'static),
) -> Runner {
    let mut store = Store::new(&device.default_stream());
    add_weights(&mut store, &config.decode(1, Choice::ArgMax), 1);
    let config = config.clone();
    let graph = move |shape: &StepShape| {
        let config = ModelConfig { max_seq_len: shape.max_seq_len, ..config.clone() };
        Ok(match shape.kind {
            StepKind::Decode => config.decode(shape.batch, Choice::ArgMax),
            StepKind::Prefill { tokens } => config.prefill(shape.batch, tokens, Choice::ArgMax),
        })
    };
    Runner::new(store, options, dispatch, bound, graph)
}

fn runner(device: &Device, config: &ModelConfig, bound: SequenceBound) -> Runner {
    runner_of(device, config, bound, (PlanOptions::for_device(device), KernelLibrary))
}

/// Steps until sequences have `to` tokens, from `from`. The logits of each step, bit by bit, and why steps were
/// planned.
fn decode(runner: &mut Runner, batch: u32, from: u32, to: u32) -> (Vec<Vec<u32>>, Vec<Replanned>) {
    let (mut logits, mut reasons) = (Vec::new(), Vec::new());
    for length in from + 1..=to {
        let mut step = runner.step(TOKENS, batch, length).expect("a step");
        reasons.extend(step.replanned());
        step.run().expect("run");
        let output = step.read_output::<f32>("logits").expect("logits");
        logits.push(output.into_iter().map(f32::to_bits).collect());
    }
    (logits, reasons)
}

/// The first sequence's logits, by the number of sequences.
#[test]
fn results_do_not_depend_on_the_batch_where_that_is_asked_for() {
    let device = device(false);
    let bound = SequenceBound { initial: 700, limit: 700 };
    for format in [WeightFormat::Q4K, WeightFormat::Bf16, WeightFormat::F32] {
        let cache = CacheDtype::F32;
        let config = ModelConfig { formats: Formats::all(format), cache, ..ModelConfig::small() };
        let first = |invariant, batch: u32| {
            let mut options = PlanOptions::for_device(&device);
            // Few, so that a larger batch would share sequences and rows in another way.
            options.tuning.device.multiprocessors = 2;
            options.tuning.batch_invariant = invariant;
            let mut runner = runner_of(&device, &config, bound, (options, KernelLibrary));
            decode(&mut runner, batch, 0, 1);
            // Long sequences, so that blocks may share one, and the same in all: attention sees 600 tokens.
            let states = runner.store().states().map(|(name, ty)| (name.to_owned(), ty));
            for (name, ty) in
                states.filter(|(_, ty)| matches!(ty.element, Element::Cache(_))).collect::<Vec<_>>()
            {
                let of_one = ty.shape.elements() / u64::from(batch);
                let values =
                    (0..ty.shape.elements()).map(|at| ((at % of_one * 7919) % 1009) as f32 / 1009.0 - 0.5);
                let values: Vec<f32> = values.collect();
                runner.store_mut().write_state(&name, &values).expect("a cache");
            }
            begin(runner.store_mut(), &vec![3; batch as usize], &vec![600; batch as usize]);
            let (logits, _) = decode(&mut runner, batch, 600, 602);
            logits.into_iter().flat_map(|all| all[..config.vocab as usize].to_vec()).collect::<Vec<_>>()
        };
        let alone = first(true, 1);
        for batch in [2, 5, 8, 9, 17] {
            assert_eq!(first(true, batch), alone, "{format} of {batch}");
        }
        if format != WeightFormat::F32 {
            assert_ne!(first(false, 9), first(false, 1), "{format}: other kernels, other last bits");
        }
    }
}

#[test]
fn caches_grow_and_keep_what_they_hold() {
    let device = device(true);
    for cache in [CacheDtype::F16, CacheDtype::Q8_0] {
        let config = ModelConfig { cache, ..ModelConfig::small() };
        let run = |bound| {
            let mut runner = runner(&device, &config, bound);
            begin(runner.store_mut(), &[3, 4], &[0, 0]);
            let result = decode(&mut runner, 2, 0, 20);
            assert_eq!(runner.store().read_state::<u32>("positions").expect("positions"), [20, 20]);
            result
        };
        let (logits, reasons) = run(SequenceBound { initial: 8, limit: 24 });
        let first = Replanned::First { kind: TOKENS };
        let grown = [Replanned::Cache { from: 8, to: 16 }, Replanned::Cache { from: 16, to: 24 }];
        assert_eq!(reasons, [&[first][..], &grown].concat());
        let (roomy, reasons) = run(SequenceBound::fixed(24));
        assert_eq!(reasons, [first]);
        assert!(logits == roomy, "{cache}: other logits after the cache has grown");
    }
}

#[test]
fn sequences_end_at_the_limit() {
    let device = device(false);
    let mut runner = runner(&device, &ModelConfig::small(), SequenceBound { initial: 8, limit: 12 });
    begin(runner.store_mut(), &[3], &[0]);
    let (logits, _) = decode(&mut runner, 1, 0, 12);
    assert_eq!(logits.len(), 12);
    let refused = runner.step(TOKENS, 1, 13);
    assert!(matches!(refused, Err(RunnerError::TooLong { length: 13, limit: 12 })), "{refused:?}");
    // What was there is as it was.
    assert_eq!(runner.step(TOKENS, 1, 12).expect("a step").replanned(), None);
}

#[test]
fn batches_change_and_sequences_stay() {
    let device = device(true);
    let config = ModelConfig::small();
    let bound = SequenceBound::fixed(32);
    // The first sequence by itself, from beginning to end.
    let mut alone = runner(&device, &config, bound);
    begin(alone.store_mut(), &[3], &[0]);
    let tokens = |runner: &Runner| runner.store().read_state::<u32>("ids").expect("ids");
    let mut expected = Vec::new();
    for length in 1..=9 {
        decode(&mut alone, 1, length - 1, length);
        expected.push(tokens(&alone)[0]);
    }

    let mut runner = runner(&device, &config, bound);
    begin(runner.store_mut(), &[3], &[0]);
    let mut found = Vec::new();
    let mut reasons = Vec::new();
    let batches = [1, 1, 2, 2, 1, 3, 3, 2, 1];
    for (length, batch) in (1..).zip(batches) {
        let before = runner.store().read_state::<u32>("ids").expect("ids").len();
        let (_, why) = decode(&mut runner, batch, length - 1, length);
        reasons.push((batch, why.first().copied()));
        let ids = tokens(&runner);
        found.push(ids[0]);
        // Room for sequences grows and does not shrink.
        assert_eq!(ids.len(), before.max(batch as usize));
    }
    assert_eq!(found, expected);
    let batch = |from, to| Some(Replanned::Batch { from, to });
    let expected = [
        (1, Some(Replanned::First { kind: TOKENS })),
        (1, None),
        (2, batch(1, 2)),
        (2, None),
        // The plan is there, but states have moved to make room for the second sequence.
        (1, Some(Replanned::Moved)),
        (3, batch(1, 3)),
        (3, None),
        (2, Some(Replanned::Moved)),
        (1, Some(Replanned::Moved)),
    ];
    assert_eq!(reasons, expected);
    // Once there is room for all, every batch size has its plan and its graph.
    for batch in [1, 2, 3, 2, 1] {
        assert_eq!(runner.step(TOKENS, batch, 9).expect("a step").replanned(), None);
    }
}

#[test]
fn prompts_go_on_as_tokens() {
    let device = device(true);
    let config = ModelConfig::small();
    let prompt = [3, 1, 4, 1, 5, 9, 2];
    // By prompts of all lengths, and of one token after another.
    let run = |chunks: &[usize]| {
        let mut runner = runner(&device, &config, SequenceBound { initial: 4, limit: 32 });
        begin(runner.store_mut(), &[0], &[0]);
        let mut rest = &prompt[..];
        let mut reasons = Vec::new();
        for &chunk in chunks {
            let before = (prompt.len() - rest.len()) as u32;
            let (now, later) = rest.split_at(chunk);
            rest = later;
            let inputs = Prompt { tokens: vec![now.to_vec()], before: vec![before] }.inputs();
            let kind = StepKind::Prefill { tokens: chunk as u32 };
            let mut step = runner.step(kind, 1, before + chunk as u32).expect("a step");
            reasons.extend(step.replanned());
            for (name, values) in inputs {
                step.write_input(name, &values).expect("written");
            }
            assert_eq!(step.execute().expect("run").graph_launches, 1);
        }
        let first = runner.store().read_state::<u32>("ids").expect("ids");
        let mut tokens = first;
        for length in 8..=14 {
            decode(&mut runner, 1, length - 1, length);
            tokens.extend(runner.store().read_state::<u32>("ids").expect("ids"));
        }
        assert_eq!(runner.store().read_state::<u32>("positions").expect("positions"), [14]);
        (tokens, reasons)
    };
    let (whole, reasons) = run(&[7]);
    assert_eq!(reasons, [Replanned::Cache { from: 4, to: 8 }]);
    let (chunked, reasons) = run(&[3, 3, 1]);
    let first = Replanned::First { kind: StepKind::Prefill { tokens: 3 } };
    let larger = Replanned::Cache { from: 4, to: 8 };
    assert_eq!(reasons, [first, larger, Replanned::Tokens { from: 3, to: 1 }]);
    assert_eq!(whole, chunked);
}

#[test]
fn prompts_of_few_lengths_are_kept() {
    let device = device(false);
    let config = ModelConfig { layers: 1, ..ModelConfig::small() };
    let mut runner = runner(&device, &config, SequenceBound::fixed(16));
    let mut prompt = |tokens: u32| {
        let step = runner.step(StepKind::Prefill { tokens }, 1, tokens).expect("a step");
        step.replanned()
    };
    let tokens = |from, to| Some(Replanned::Tokens { from, to });
    assert_eq!(prompt(1), Some(Replanned::First { kind: StepKind::Prefill { tokens: 1 } }));
    for length in 2..=8 {
        assert_eq!(prompt(length), tokens(length - 1, length));
    }
    // Eight are kept; the ninth takes the place of the one that was used longest ago.
    assert_eq!(prompt(1), None);
    assert_eq!(prompt(9), tokens(1, 9));
    assert_eq!(prompt(1), None);
    assert_eq!(prompt(3), None);
    assert_eq!(prompt(2), tokens(3, 2));
}

/// A dispatcher that waits for the device in the middle of a step.
struct Waits;

impl KernelDispatch for Waits {
    fn attention(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.stream().synchronize()?;
        step.run_library()
    }
}

#[test]
fn what_waits_runs_eagerly() {
    let device = device(false);
    let config = ModelConfig::small();
    let mut captured =
        runner_of(&device, &config, SequenceBound::fixed(16), (PlanOptions::for_device(&device), Waits));
    begin(captured.store_mut(), &[3], &[0]);
    match captured.step(TOKENS, 1, 1) {
        Err(RunnerError::Execute(error)) => {
            assert!(
                matches!(&error, ExecuteError::Step { op: "attention", nodes, .. } if nodes == &["blk.0.attention"])
            );
            let ExecuteError::Runtime(cause) = error.cause() else { panic!("{error}") };
            assert!(matches!(**cause, RuntimeError::Capturing { .. }), "{error}");
        }
        other => panic!("{other:?}"),
    }

    let mut eager =
        runner_of(&device, &config, SequenceBound::fixed(16), (PlanOptions::for_device(&device), Waits))
            .eager(true);
    let mut library = runner(&device, &config, SequenceBound::fixed(16));
    begin(eager.store_mut(), &[3], &[0]);
    begin(library.store_mut(), &[3], &[0]);
    assert_eq!(decode(&mut eager, 1, 0, 3).0, decode(&mut library, 1, 0, 3).0);
    let execution = eager.step(TOKENS, 1, 4).expect("a step").execute().expect("executed");
    assert_eq!(execution.graph_launches, 0);
}

#[test]
fn states_of_another_type_are_refused() {
    let device = device(false);
    let mut runner = runner(&device, &ModelConfig::small(), SequenceBound::fixed(16));
    let other = TensorType::new(Element::U64, [1]);
    runner.store_mut().add_state("positions", other).expect("a state");
    let refused = runner.step(TOKENS, 1, 1);
    let Err(RunnerError::Store(warpwright_graph::StoreError::State { name, given, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((name.as_str(), given), ("positions", other));
}

/// A cache of 64 elements for each token, and a counter.
fn counting(device: &Device, bound: SequenceBound) -> Runner {
    let graph = |shape: &StepShape| {
        let mut graph = ComputeGraph::new();
        let element = Element::Cache(CacheDtype::F16);
        graph.kv_cache("cache", TensorType::new(element, [shape.batch, 1, shape.max_seq_len, 64]));
        let count = graph.state("count", TensorType::new(Element::U32, [shape.batch]));
        graph.advance("advance", &[count])?;
        Ok(graph)
    };
    let store = Store::new(&device.default_stream());
    Runner::new(store, PlanOptions::for_device(device), KernelLibrary, bound, graph)
}

/// Whoever resizes a state of the store is not refused the next step.
#[test]
fn states_that_somebody_resized() {
    let device = device(false);
    let mut runner = counting(&device, SequenceBound::fixed(64));
    runner.step(TOKENS, 1, 1).expect("a step").run().expect("run");
    runner.store_mut().resize_state("count", TensorType::new(Element::U32, [3])).expect("resized");
    let mut step = runner.step(TOKENS, 1, 2).expect("a step");
    assert_eq!(step.replanned(), Some(Replanned::Moved));
    step.run().expect("run");
    assert_eq!(runner.step(TOKENS, 1, 3).expect("a step").replanned(), None);
    assert_eq!(runner.store().read_state::<u32>("count").expect("the counter"), [2, 0, 0]);
}

/// Graphs of one shape by variant: each is planned once, and they share states.
#[test]
fn variants_have_plans_of_their_own() {
    let device = device(false);
    let store = Store::new(&device.default_stream());
    let graph = |shape: &StepShape| {
        let mut graph = ComputeGraph::new();
        let count = graph.state("count", TensorType::new(Element::U32, [shape.batch]));
        // As often as the variant says.
        let steps = 0..=shape.variant;
        steps
            .into_iter()
            .try_fold(count, |count, i| Ok(graph.advance(&format!("advance{i}"), &[count])?[0]))?;
        Ok(graph)
    };
    let options = PlanOptions::for_device(&device);
    let mut runner = Runner::new(store, options, KernelLibrary, SequenceBound::fixed(64), graph);
    let mut reasons = Vec::new();
    for variant in [0, 2, 0, 2] {
        let mut step = runner.variant_step(variant, TOKENS, 1, 5).expect("a step");
        assert_eq!(step.shape().variant, variant);
        reasons.push(step.replanned());
        step.run().expect("run");
    }
    let planned = [Some(Replanned::First { kind: TOKENS }), Some(Replanned::Variant { from: 0, to: 2 })];
    assert_eq!(reasons, [planned, [None; 2]].concat());
    assert_eq!(runner.store().read_state::<u32>("count").expect("the count"), [8]);
    runner.step(TOKENS, 1, 6).expect("a step").run().expect("run");
    assert_eq!(runner.store().read_state::<u32>("count").expect("the count"), [9]);
}

/// Devices of little memory.
mod on_the_vm {
    use super::*;

    /// While caches grow there are the old ones, the new ones, and not more than one in both sizes.
    #[test]
    fn caches_grow_one_after_the_other() {
        let mut config = warpwright_vm::DeviceConfig::default();
        config.memory = 1000 << 10;
        let device = Device::vm(VmConfig { device: config, ..VmConfig::default() }).expect("a device");
        // Each half has 256 KiB, then 320 KiB.
        let mut runner = counting(&device, SequenceBound { initial: 2048, limit: 2560 });
        for kind in [TOKENS, StepKind::Prefill { tokens: 3 }] {
            runner.step(kind, 1, 1).expect("a step").run().expect("run");
        }
        let mut step = runner.step(TOKENS, 1, 2049).expect("a step");
        assert_eq!(step.replanned(), Some(Replanned::Cache { from: 2048, to: 2560 }));
        step.run().expect("run");
        assert_eq!(runner.store().read_state::<u32>("count").expect("the counter"), [3]);
    }

    /// There is memory for one half of the longer cache, and not for both: shorter sequences go on as before.
    #[test]
    fn caches_that_cannot_grow_stay() {
        let mut config = warpwright_vm::DeviceConfig::default();
        config.memory = 900 << 10;
        let device = Device::vm(VmConfig { device: config, ..VmConfig::default() }).expect("a device");
        let mut runner = counting(&device, SequenceBound { initial: 64, limit: 4096 });
        runner.step(TOKENS, 1, 1).expect("a step").run().expect("run");
        let kept: Vec<f16> = (0..64 * 64u16).map(|i| f16::from_f32(f32::from(i % 100))).collect();
        runner.store_mut().write_state("cache.k", &kept).expect("written");

        for length in 2..=4 {
            let refused = runner.step(TOKENS, 1, 4000);
            assert!(matches!(refused, Err(RunnerError::Store(StoreError::Device { .. }))), "{refused:?}");
            let mut step = runner.step(TOKENS, 1, length).expect("a step");
            assert_eq!(step.replanned(), Some(Replanned::Moved));
            step.run().expect("run");
            assert_eq!(runner.store().read_state::<u32>("count").expect("the counter"), [length]);
            assert!(runner.store().read_state::<f16>("cache.k").expect("keys") == kept);
            assert_eq!(runner.max_seq_len(), 64);
        }
    }
}
