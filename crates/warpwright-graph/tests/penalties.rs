//! Penalties from step to step: what was chosen lately becomes less likely, on the device as in the reference.

mod common;
#[path = "common/reference/mod.rs"]
mod reference;

use common::Random;
use common::run::device;
use reference::{Memory, Value, execute};
use std::collections::HashMap;
use warpwright_graph::{
    ComputeGraph, Element, GraphError, KernelLibrary, PenaltyParams, Plan, PlanOptions, SampleParams, Store,
    TensorType,
};
use warpwright_kernels::Setting;

const ROWS: u32 = 2;
const VOCAB: u32 = 50;
const WINDOW: u32 = 5;

fn each(element: Element) -> TensorType {
    TensorType::new(element, [ROWS])
}

/// From logits to tokens, which the next step takes: by penalties, and a draw without a temperature.
fn steps() -> Result<ComputeGraph, GraphError> {
    let mut graph = ComputeGraph::new();
    let logits = graph.input("logits", TensorType::f32([ROWS, VOCAB]));
    let [ids, positions, steps] =
        ["ids", "positions", "steps"].map(|name| graph.state(name, each(Element::U32)));
    let recent = graph.state("recent", TensorType::new(Element::U32, [ROWS, WINDOW]));
    let settings = ["repeats", "frequencies", "presences"];
    let settings = settings.map(|name| graph.input(name, each(Element::F32)));
    let params = PenaltyParams::in_buffers(true);
    let (lowered, _) =
        graph.penalties("lowered", logits, recent, Some([ids, positions]), &settings, params)?;
    graph.output(lowered)?;
    let largest = graph.argmax("largest", lowered)?;
    graph.output(largest)?;
    let seeds = graph.state("seeds", each(Element::U64));
    let cold = SampleParams { top_k: Setting::Fixed(7), ..SampleParams::new(Setting::Fixed(0.0)) };
    let tokens = graph.sample("tokens", lowered, [seeds, steps], &[], cold)?;
    graph.output(tokens)?;
    graph.advance("advance", &[positions, steps])?;
    graph.assign("next_ids", ids, tokens)?;
    Ok(graph)
}

/// Logits that are far from one another after penalties too, on both sides of zero.
fn random_logits(random: &mut Random) -> Vec<f32> {
    (0..ROWS * VOCAB).map(|i| random.below(2000) as f32 / 64.0 - 16.0 + i as f32 / 8192.0).collect()
}

#[test]
fn steps_are_those_of_the_reference() {
    let graph = steps().expect("a graph");
    let device = device(true);
    let mut store = Store::new(&device.default_stream());
    let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
    let mut captured = plan.bind(&mut store).expect("bound").capture(&KernelLibrary).expect("captured");
    let mut memory = Memory::new();
    let ring = TensorType::new(Element::U32, [ROWS, WINDOW]);
    let nothing = vec![u32::MAX; (ROWS * WINDOW) as usize];
    memory.set_state("recent", ring, Value::u32s(&nothing)).expect("a ring");
    store.write_state("recent", &nothing).expect("written");

    let mut random = Random::new(5);
    let base = random_logits(&mut random);
    let mut changed = 0;
    for step in 0..40u32 {
        // Settings change between replays, for each row by itself.
        let settings: [(&str, [f32; 2]); 3] = match step / 10 {
            0 => [("repeats", [1.0, 1.0]), ("frequencies", [0.0, 0.0]), ("presences", [0.0, 0.0])],
            1 => [("repeats", [1.5, 1.0]), ("frequencies", [0.0, 4.0]), ("presences", [0.0, 0.0])],
            2 => [("repeats", [0.5, 3.0]), ("frequencies", [-1.0, 0.5]), ("presences", [9.0, -2.0])],
            _ => [("repeats", [1.3, 1.1]), ("frequencies", [0.2, 0.1]), ("presences", [0.5, 6.0])],
        };
        // The same few tokens are likely again and again, so that penalties decide.
        let noise = random_logits(&mut random);
        let logits: Vec<f32> = base.iter().zip(noise).map(|(base, noise)| base + noise / 16.0).collect();
        let mut inputs =
            HashMap::from([("logits".to_owned(), Value::Floats(logits.iter().map(|&x| x.into()).collect()))]);
        captured.executable_mut().write_input("logits", &logits).expect("written");
        for (name, values) in settings {
            captured.executable_mut().write_input(name, &values).expect("written");
            inputs.insert(name.into(), Value::Floats(values.iter().map(|&x| x.into()).collect()));
        }
        captured.replay().expect("replayed");
        let expected = execute(&graph, &mut memory, &inputs).expect("a graph that runs");

        let lowered = captured.executable().read_output::<f32>("lowered.1").expect("logits");
        for ((&found, &expected), &before) in lowered.iter().zip(expected["lowered.1"].floats()).zip(&logits)
        {
            let bound = 2f64.powi(-22) * (f64::from(before).abs() * 3.0 + 5.0 * 4.0 + 9.0);
            assert!((f64::from(found) - expected).abs() <= bound, "step {step}: {found}, not {expected}");
            changed += usize::from(found != before);
        }
        let tokens = captured.executable().read_output::<u32>("tokens").expect("tokens");
        let own: Vec<u64> = tokens.iter().map(|&token| token.into()).collect();
        assert_eq!(expected["tokens"].integers(), own, "step {step}");
        // Without a temperature it is the largest, after penalties too.
        assert_eq!(captured.executable().read_output::<u32>("largest").expect("tokens"), tokens);
        let recent = store.read_state::<u32>("recent").expect("the ring");
        assert_eq!(memory.state("recent"), Some(&Value::u32s(&recent)));
    }
    assert!(changed > 100, "{changed} logits were lowered");
    assert!(device.take_findings().is_empty());
}

/// Logits that the host reads stay as they are, and a ring that nothing is added to is an input like others.
#[test]
fn logits_stay_and_rings_need_not_grow() {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 3]));
    let logits = graph.add("logits", x, x).expect("logits");
    graph.output(logits).expect("an output");
    let recent = graph.input("recent", TensorType::new(Element::U32, [1, 4]));
    let params = PenaltyParams {
        repeat: Setting::Fixed(2.0),
        frequency: Setting::Fixed(0.5),
        presence: Setting::Fixed(1.0),
        remembers: false,
    };
    let (lowered, next) = graph.penalties("lowered", logits, recent, None, &[], params).expect("a node");
    assert_eq!(next, None);
    graph.output(lowered).expect("an output");

    let device = device(true);
    let mut store = Store::new(&device.default_stream());
    let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
    let mut executable = plan.bind(&mut store).expect("bound");
    executable.write_input("x", &[4f32, 1.0, -2.0]).expect("written");
    executable.write_input("recent", &[0u32, 2, 0, u32::MAX]).expect("written");
    executable.issue(&KernelLibrary).expect("issued");
    assert_eq!(executable.read_output::<f32>("logits").expect("logits"), [8.0, 2.0, -4.0]);
    // 8 / 2 - 2 · 0.5 - 1, untouched, and -4 · 2 - 0.5 - 1.
    assert_eq!(executable.read_output::<f32>("lowered").expect("logits"), [2.0, 2.0, -9.5]);
}
