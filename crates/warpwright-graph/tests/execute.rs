//! Plans on the virtual GPU: executed, captured and replayed.

mod common;

use common::run::{begin, device, store};
use common::{Choice, ModelConfig};
use warpwright_graph::{ComputeGraph, KernelLibrary, Plan, PlanOptions, TensorType, execute_graph};

#[test]
fn replays_are_what_executions_are() {
    let config = ModelConfig::small();
    let graph = config.decode(2, Choice::ArgMax);
    let device = device(true);
    let options = PlanOptions::for_device(&device);
    let plan = Plan::new(&graph, &options, &KernelLibrary).expect("a plan");

    let run = |captured: bool| {
        let mut store = store(&device, &graph, 1);
        begin(&mut store, &[3, 5], &[0, 0]);
        let mut executable = plan.clone().bind(&mut store).expect("bound");
        let mut outputs = Vec::new();
        if captured {
            let mut captured = executable.capture(&KernelLibrary).expect("captured");
            for _ in 0..24 {
                let execution = captured.execute().expect("replayed");
                assert_eq!(execution.graph_launches, 1);
                outputs.push((
                    captured.executable().read_output::<f32>("logits").expect("logits"),
                    captured.executable().read_output::<u32>("tokens").expect("tokens"),
                ));
            }
        } else {
            for _ in 0..24 {
                let execution = execute_graph(&mut executable, &KernelLibrary).expect("executed");
                assert_eq!(execution.graph_launches, 0);
                outputs.push((
                    executable.read_output::<f32>("logits").expect("logits"),
                    executable.read_output::<u32>("tokens").expect("tokens"),
                ));
            }
        }
        assert_eq!(store.read_state::<u32>("positions").expect("positions"), [24, 24]);
        outputs
    };
    let bits = |outputs: Vec<(Vec<f32>, Vec<u32>)>| -> Vec<(Vec<u32>, Vec<u32>)> {
        outputs
            .into_iter()
            .map(|(logits, tokens)| (logits.into_iter().map(f32::to_bits).collect(), tokens))
            .collect()
    };
    let eager = bits(run(false));
    assert_eq!(bits(run(true)), eager);
    assert!(eager.windows(2).any(|pair| pair[0].1 != pair[1].1), "tokens change: {eager:?}");
}

#[test]
fn executions_say_how_long_each_node_took() {
    let device = device(false);
    let graph = ModelConfig::small().decode(1, Choice::ArgMax);
    let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
    let launches = plan.launches().count() as u64;
    let mut store = store(&device, &graph, 1);
    begin(&mut store, &[3], &[0]);
    let mut executable = plan.bind(&mut store).expect("bound");
    let untimed = execute_graph(&mut executable, &KernelLibrary).expect("executed");
    assert!(untimed.steps.is_empty());
    executable.record_times(true);
    let timed = execute_graph(&mut executable, &KernelLibrary).expect("executed");
    assert_eq!((untimed.launches, timed.launches), (launches, launches));

    // Every node once, in steps in order, whose times are parts of the whole.
    let mut nodes: Vec<String> = timed.steps.iter().flat_map(|step| step.nodes.clone()).collect();
    let mut expected: Vec<String> = graph.nodes().iter().map(|node| node.name.clone()).collect();
    nodes.sort();
    expected.sort();
    assert_eq!(nodes, expected);
    assert!(timed.steps.iter().enumerate().all(|(i, step)| step.step == i));
    let sum: std::time::Duration = timed.steps.iter().map(|step| step.time).sum();
    assert!(sum <= timed.time && timed.steps.iter().any(|step| !step.time.is_zero()), "{timed:?}");
}

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
