//! Plans on the virtual GPU: executed, captured and replayed.

mod common;
#[path = "common/reference/mod.rs"]
mod reference;

use common::run::{begin, device, store};
use common::{Biases, Choice, Formats, ModelConfig, Random, random_bytes, random_weights};
use reference::{Exact, Memory, Value, dequantize};
use std::collections::HashMap;
use warpwright_graph::{
    Arithmetic, Captured, ComputeGraph, Element, Executable, Fusion, Fusions, KernelLibrary, Plan,
    PlanOptions, Runner, Store, TensorType, execute_graph,
};
use warpwright_kernels::{Activation, CacheDtype, WeightFormat};
use warpwright_runtime::Device;

/// Logits, bit by bit, and tokens of each step; and the states at the end.
type Outcome = (Vec<(Vec<u32>, Vec<u32>)>, Vec<Vec<u32>>);

/// So many steps of two sequences, launch by launch or replayed.
fn outcome(
    device: &Device,
    config: &ModelConfig,
    choice: Choice,
    arithmetic: Arithmetic,
    captured: bool,
) -> Outcome {
    const STEPS: u32 = 20;
    let graph = config.decode(2, choice);
    let mut options = PlanOptions::for_device(device);
    options.arithmetic = arithmetic;
    let mut store = store(device, &graph, 1);
    begin(&mut store, &[3, 5], &[0, 4]);
    let sampled = matches!(choice, Choice::Sample(_));
    if sampled {
        store.add_state("seeds", TensorType::new(Element::U64, [2])).expect("a state");
        store.write_state("seeds", &[1u64 << 40, 7]).expect("written");
    }
    let plan = Plan::new(&graph, &options, &KernelLibrary).expect("a plan");
    let mut executable = plan.bind(&mut store).expect("bound");
    let read = |executable: &Executable| {
        let logits = executable.read_output::<f32>("logits").expect("logits");
        let tokens = executable.read_output::<u32>("tokens").expect("tokens");
        (logits.into_iter().map(f32::to_bits).collect(), tokens)
    };
    let mut steps = Vec::new();
    if captured {
        let captured = executable.capture(&KernelLibrary).expect("captured");
        for _ in 0..STEPS {
            captured.replay().expect("replayed");
            steps.push(read(captured.executable()));
        }
    } else {
        for _ in 0..STEPS {
            execute_graph(&mut executable, &KernelLibrary).expect("executed");
            steps.push(read(&executable));
        }
    }
    let counters = ["ids", "positions", "lengths"].into_iter().chain(sampled.then_some("steps"));
    let states = counters.map(|name| store.read_state::<u32>(name).expect("a state")).collect::<Vec<_>>();
    assert_eq!(states[1], [STEPS, STEPS + 4]);
    (steps, states)
}

#[test]
fn replays_are_what_executions_are() {
    // What was never written is looked for: scratch that must be zero at first among it.
    let device = device(true);
    let formats = Formats::q4_k_m();
    let draw = Choice::at_temperature(0.8);
    let qwen = ModelConfig { formats, head_norms: true, biases: Biases::Qkv, ..ModelConfig::small() };
    // Room for so many tokens that blocks share a sequence, and leave counters for one another.
    let long = ModelConfig { max_seq_len: 4096, ..ModelConfig::small() };
    let quants = ModelConfig { cache: CacheDtype::Q8_0, tied: true, ..ModelConfig::small() };
    for (config, choice, arithmetic) in [
        (&qwen, Choice::ArgMax, Arithmetic::Exact),
        (&qwen, draw, Arithmetic::Int8),
        (&long, draw, Arithmetic::Exact),
        (&quants, Choice::ArgMax, Arithmetic::Int8),
    ] {
        let eager = outcome(&device, config, choice, arithmetic, false);
        let replayed = outcome(&device, config, choice, arithmetic, true);
        assert!(
            eager == replayed,
            "{config:?}, {choice:?}, {arithmetic:?}: {eager:?}, replayed {replayed:?}"
        );
        let tokens = eager.0.iter().map(|(_, tokens)| tokens);
        assert!(tokens.clone().zip(tokens.skip(1)).any(|(a, b)| a != b), "tokens change: {eager:?}");
    }
}

/// Half a unit in the last place of 1.
const U: f64 = 1.0 / 16_777_216.0;

/// A gate of products, in the bounds of their kernels: fused it is one launch, and without that two.
#[test]
fn gated_products_are_what_their_nodes_are() {
    let (tokens, n, k) = (3, 43, 77);
    let device = device(true);
    let mut random = Random::new(7);
    let x: Vec<f32> = (0..tokens * k).map(|_| 3.0 * random.signed() as f32).collect();
    for activation in Activation::ALL {
        let mut graph = ComputeGraph::new();
        let input = graph.input("x", TensorType::f32([tokens, k]));
        let weights = TensorType::new(Element::Weights(WeightFormat::F32), [n, k]);
        let [gate, up] = ["gate", "up"].map(|name| {
            let w = graph.weight(&format!("{name}.w"), weights);
            graph.mat_mul(name, input, w, None).expect("a product")
        });
        let y = graph.glu("y", activation, gate, up).expect("a gate");
        graph.output(y).expect("an output");

        let mut memory = Memory::new();
        let bytes = random_weights(&graph, 1);
        memory.load(&graph, |name| bytes.get(name)).expect("weights");
        let exact: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let inputs = HashMap::from([("x".into(), Value::Floats(exact.clone()))]);
        let reference = reference::execute(&graph, &mut memory, &inputs).expect("a reference");
        // Each product's result, and what it may be off by.
        let product = |name: &str| {
            let w = dequantize(WeightFormat::F32, &random_bytes(name, weights, 1));
            let rows = exact.chunks(k as usize).flat_map(|x| w.chunks(k as usize).map(move |w| (x, w)));
            rows.map(|(x, w)| {
                let terms = x.iter().zip(w).map(|(x, w)| x * w);
                let size: f64 = terms.clone().map(f64::abs).sum();
                (terms.sum::<f64>(), (f64::from(k) / 8.0 + 32.0) * U * size)
            })
            .collect::<Vec<_>>()
        };
        let expected: Vec<(f64, f64)> = (product("gate.w").into_iter().zip(product("up.w")))
            .map(|((gate, of_gate), (up, of_up))| {
                let value = activation.value(gate);
                let off = activation.error(gate, of_gate) * (up.abs() + of_up) + value.abs() * of_up;
                (value * up, off + (value * up).abs() * U)
            })
            .collect();
        for (&found, &(y, _)) in reference["y"].floats().iter().zip(&expected) {
            assert!((found - y).abs() <= 1e-12 * y.abs().max(1.0), "{activation}: {found}, not {y}");
        }

        for (fusions, launches) in [(Fusions::all(), 1), (Fusions::all().without(Fusion::Glu), 2)] {
            let mut options = PlanOptions::for_device(&device);
            options.fusions = fusions;
            let plan = Plan::new(&graph, &options, &KernelLibrary).expect("a plan");
            assert_eq!(plan.launches().count(), launches);
            let mut store = store(&device, &graph, 1);
            let mut executable = plan.bind(&mut store).expect("bound");
            executable.write_input("x", &x).expect("written");
            execute_graph(&mut executable, &KernelLibrary).expect("executed");
            let found = executable.read_output::<f32>("y").expect("y");
            assert_eq!(found.len(), expected.len());
            for (i, (&found, &(y, bound))) in found.iter().zip(&expected).enumerate() {
                let off = (f64::from(found) - y).abs();
                assert!(
                    off <= bound,
                    "{activation}, {launches} launches: {found}, not {y} within {bound:e}, at {i}"
                );
            }
        }
    }
}

#[test]
fn plans_can_be_sent_to_other_threads() {
    fn sendable<T: Send>() {}
    fn shareable<T: Sync>() {}
    sendable::<Store>();
    sendable::<Plan>();
    sendable::<Executable>();
    sendable::<Captured>();
    sendable::<Runner>();
    shareable::<Plan>();
    shareable::<Executable>();
    shareable::<Captured>();
}

/// What the virtual GPU alone counts.
mod on_the_vm {
    use super::*;

    #[test]
    fn executions_say_what_was_moved() {
        // `y = x + x`: two reads, one write; and a copy to a state.
        let device = device(true);
        let mut graph = ComputeGraph::new();
        let ty = TensorType::f32([4, 256]);
        let x = graph.input("x", ty);
        let kept = graph.state("kept", ty);
        let y = graph.add("y", x, x).expect("a sum");
        graph.output(y).expect("an output");
        graph.assign("keep", kept, y).expect("a state");
        let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
        let mut store = store(&device, &graph, 1);
        let mut executable = plan.bind(&mut store).expect("bound");
        executable.write_input("x", &[1.5f32; 1024]).expect("written");
        let execution = execute_graph(&mut executable, &KernelLibrary).expect("executed");
        let bytes = 4 * 1024;
        assert_eq!((execution.launches, execution.copies, execution.bytes_copied), (1, 1, bytes));
        assert_eq!((execution.bytes_accessed, execution.bytes_planned), (3 * bytes, execution.bytes_planned));
        assert!((2 * bytes..=3 * bytes).contains(&execution.bytes_planned), "{execution:?}");
        assert_eq!(executable.read_output::<f32>("y").expect("y"), [3.0; 1024]);
        assert_eq!(store.read_state::<f32>("kept").expect("the state"), [3.0; 1024]);
    }
}
