//! Steps of a runner as persistent kernels: planned, bound again, and beside others.

use crate::common::run::{add_weights, begin, device};
use crate::common::{Choice, ModelConfig};
use crate::pair::{all, options};
use warpwright_graph::{
    KernelLibrary, PlanOptions, Replanned, Runner, RunnerError, SequenceBound, StepKind, StepShape, Store,
};
use warpwright_runtime::Device;

const TOKENS: StepKind = StepKind::Decode;

fn runner(device: &Device, bound: SequenceBound) -> Runner {
    let config = ModelConfig { layers: 1, ..ModelConfig::small() };
    let mut store = Store::new(&device.default_stream());
    add_weights(&mut store, &config.decode(1, Choice::ArgMax), 1);
    begin(&mut store, &[3], &[0]);
    let graph = move |shape: &StepShape| {
        let config = ModelConfig { max_seq_len: shape.max_seq_len, ..config.clone() };
        Ok(config.decode(shape.batch, Choice::ArgMax))
    };
    Runner::new(store, PlanOptions::for_device(device), KernelLibrary, bound, graph)
}

#[test]
fn caches_grow_between_launches() {
    let device = device(true);
    let mut one_by_one = runner(&device, SequenceBound::fixed(24));
    let expected: Vec<u32> = (1..=20)
        .map(|length| {
            one_by_one.step(TOKENS, 1, length).expect("a step").run().expect("run");
            one_by_one.store().read_state::<u32>("ids").expect("ids")[0]
        })
        .collect();

    let mut runner = runner(&device, SequenceBound { initial: 8, limit: 24 });
    let (mut made, mut reasons) = (Vec::new(), Vec::new());
    let launch = |runner: &mut Runner, made: &mut Vec<u32>, tokens: u32, blocks: u32| {
        let mut step =
            runner.persistent_step(0, made.len() as u32 + 1, tokens, &options(blocks)).expect("a step");
        let why = step.replanned();
        made.extend(all(&mut step.launch(&[]).expect("launched")));
        why
    };
    reasons.push(launch(&mut runner, &mut made, 5, 2));
    reasons.push(launch(&mut runner, &mut made, 3, 2));
    // With the ninth token there is no room.
    reasons.push(launch(&mut runner, &mut made, 3, 2));
    // A step by itself has the same states, and a plan that is there.
    let mut step = runner.step(TOKENS, 1, 12).expect("a step");
    reasons.push(step.replanned());
    step.run().expect("run");
    made.extend(runner.store().read_state::<u32>("ids").expect("ids"));
    reasons.push(launch(&mut runner, &mut made, 3, 2));
    reasons.push(launch(&mut runner, &mut made, 5, 3));
    assert_eq!(made, expected);
    let grown = |from, to| Some(Replanned::Cache { from, to });
    let first = Some(Replanned::First { kind: TOKENS });
    assert_eq!(reasons[..3], [first, None, grown(8, 16)]);
    assert_eq!(reasons[4..], [None, grown(16, 24)]);
    let refused = runner.persistent_step(0, 21, 5, &options(2));
    assert!(matches!(refused, Err(RunnerError::TooLong { length: 25, limit: 24 })), "{refused:?}");
    let step = runner.persistent_step(0, 21, 4, &options(2)).expect("a step");
    assert_eq!(step.replanned(), Some(Replanned::Options));
}

#[test]
fn states_that_move_are_found_again() {
    let device = device(false);
    let mut runner = runner(&device, SequenceBound::fixed(16));
    let mut launch = |batch: Option<u32>| {
        if let Some(batch) = batch {
            runner.step(TOKENS, batch, 2).expect("a step");
        }
        let mut step = runner.persistent_step(0, 1, 2, &options(2)).expect("a step");
        let why = step.replanned();
        all(&mut step.launch(&[]).expect("launched"));
        why
    };
    assert_eq!(launch(None), Some(Replanned::First { kind: TOKENS }));
    assert_eq!(launch(None), None);
    // Room for a second sequence.
    assert_eq!(launch(Some(2)), Some(Replanned::Moved));
    assert_eq!(launch(None), None);
}

#[test]
fn what_cannot_stay_leaves_the_runner_as_it_was() {
    let device = device(false);
    let mut runner = runner(&device, SequenceBound { initial: 8, limit: 24 });
    runner.step(TOKENS, 1, 1).expect("a step").run().expect("run");
    let mut none = options(2);
    none.warps = 3;
    let refused = runner.persistent_step(0, 12, 2, &none);
    assert!(matches!(&refused, Err(error) if error.is_unsupported()), "{refused:?}");
    assert_eq!(runner.max_seq_len(), 8);
    assert_eq!(runner.step(TOKENS, 1, 2).expect("a step").replanned(), None);
}
