//! How many launches a step of decoding takes, as the device counts them.

mod common;

use common::run::{begin, device, store};
use common::{Choice, ModelConfig};
use warpwright_graph::{Arithmetic, KernelLibrary, Plan, PlanOptions, execute_graph};

/// Launches of a step of one sequence of a model's form, after a context of so many tokens, executed and replayed.
fn launches(config: &ModelConfig, arithmetic: Arithmetic, context: u32) -> u64 {
    let device = device(false);
    let graph = config.decode(1, Choice::ArgMax);
    let mut options = PlanOptions::for_device(&device);
    options.arithmetic = arithmetic;
    let plan = Plan::new(&graph, &options, &KernelLibrary).expect("a plan");
    let mut store = store(&device, &graph, 1);
    begin(&mut store, &[7], &[context]);
    let mut executable = plan.bind(&mut store).expect("bound");
    let executed = execute_graph(&mut executable, &KernelLibrary).expect("executed");
    assert_eq!(executed.graph_launches, 0);
    let mut captured = executable.capture(&KernelLibrary).expect("captured");
    for _ in 0..2 {
        let replayed = captured.execute().expect("replayed");
        assert_eq!((replayed.graph_launches, replayed.launches), (1, executed.launches));
    }
    executed.launches
}

/// Every form at several bounds of the cache, with contexts at both ends.
fn each_form(arithmetic: Arithmetic, most: impl Fn(u32) -> u32) {
    for (name, config) in ModelConfig::real() {
        for (layers, max_seq_len, context) in [(1, 32, 0), (3, 64, 61), (2, 1024, 5), (2, 4096, 4093)] {
            let config = ModelConfig { max_seq_len, ..config.scaled_down(layers) };
            let count = launches(&config, arithmetic, context);
            assert!(
                count <= most(layers).into(),
                "{name}, {arithmetic:?}, {layers} layers, {context} of {max_seq_len}: {count} launches"
            );
        }
    }
}

#[test]
fn exact_steps_are_six_launches_a_layer_and_four() {
    each_form(Arithmetic::Exact, |layers| 6 * layers + 4);
}

#[test]
fn steps_of_eight_bits_are_eight_launches_a_layer_and_six() {
    each_form(Arithmetic::Int8, |layers| 8 * layers + 6);
}

#[test]
fn a_layer_is_six_launches_or_eight() {
    for (name, config) in ModelConfig::real() {
        for (arithmetic, most) in [(Arithmetic::Exact, 6), (Arithmetic::Int8, 8)] {
            for (max_seq_len, context) in [(32, 0u32), (2048, 2047)] {
                let device = device(false);
                let graph = ModelConfig { max_seq_len, ..config.scaled_down(1) }.layer(1);
                let mut options = PlanOptions::for_device(&device);
                options.arithmetic = arithmetic;
                let plan = Plan::new(&graph, &options, &KernelLibrary).expect("a plan");
                let mut store = store(&device, &graph, 1);
                let mut executable = plan.bind(&mut store).expect("bound");
                executable.write_input("x", &[0.5f32; 256]).expect("written");
                executable.write_input("positions", &[context]).expect("written");
                executable.write_input("lengths", &[context + 1]).expect("written");
                let execution = execute_graph(&mut executable, &KernelLibrary).expect("executed");
                let launches = execution.launches;
                assert!(launches <= most, "{name}, {arithmetic:?}, {max_seq_len}: {launches} launches");
                let y = executable.read_output::<f32>("blk.0.ffn_residual").expect("the rows");
                assert!(y.iter().all(|y| y.is_finite()) && y.iter().any(|&y| y != 0.5), "{name}: {y:?}");
            }
        }
    }
}
