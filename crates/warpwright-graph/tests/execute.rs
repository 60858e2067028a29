//! Plans on the virtual GPU: executed, captured and replayed.

mod common;

use common::run::{begin, device, store};
use common::{Choice, ModelConfig};
use warpwright_graph::{KernelLibrary, Plan, PlanOptions, execute_graph};

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
