//! What the reference makes of a case, step by step, and what may differ from it.

use crate::case::{Case, Step};
use crate::common::{Choice, Random};
use crate::noise::{FACTOR, RUNS, disturb};
use crate::reference::{Memory, Settings, Value, draw, execute, execute_with, probabilities};
use std::collections::HashMap;
use warpwright_graph::{Arithmetic, Element, SampleParams, TensorType};
use warpwright_kernels::{Sample, Setting};

/// What a step makes.
pub(crate) struct Expected {
    /// `batch × vocab`.
    pub(crate) logits: Vec<f64>,
    /// What a logit of each sequence may be off by.
    pub(crate) bounds: Vec<f64>,
    pub(crate) tokens: Vec<u32>,
    /// Whether no such difference chooses another token.
    pub(crate) comparable: Vec<bool>,
}

/// What all steps make.
pub(crate) struct Trace {
    pub(crate) steps: Vec<Expected>,
}

impl Trace {
    pub(crate) fn new(case: &Case, arithmetic: Arithmetic) -> Self {
        let mut exact = memory(case);
        let mut noisy: Vec<(Memory, Random)> =
            (0..RUNS).map(|i| (exact.clone(), Random::new(case.seed ^ i))).collect();
        let step = |(number, step): (usize, Step)| {
            let graph = case.graph(&step);
            let inputs = inputs(&step);
            let outputs = execute(&graph, &mut exact, &inputs).expect("a model that runs");
            let tokens: Vec<u32> = outputs["tokens"].integers().iter().map(|&token| token as u32).collect();
            let others: Vec<Vec<f64>> = (noisy.iter_mut())
                .map(|(memory, random)| {
                    let see = |executed: crate::reference::Executed<'_>| {
                        disturb(&graph, arithmetic, executed, random);
                    };
                    let outputs = execute_with(&graph, memory, &inputs, see).expect("a model that runs");
                    // All go on from the same tokens.
                    set(memory, case, "ids", &tokens);
                    outputs["logits"].floats().to_vec()
                })
                .collect();
            expected(case, number, outputs["logits"].floats(), tokens, &others)
        };
        Trace { steps: case.list().into_iter().enumerate().map(step).collect() }
    }
}

/// Weights, and states before the first step.
fn memory(case: &Case) -> Memory {
    let mut memory = Memory::new();
    let graph = case.graph(&Step::Decode);
    let weights = case.weights(&graph);
    memory.load(&graph, |name| Some(weights.get(name)?.1.as_slice())).expect("all weights");
    case.states().into_iter().for_each(|(name, numbers)| set(&mut memory, case, name, &numbers));
    for (name, ty, values) in case.caches(&graph) {
        memory.set_state(&name, ty, Value::Floats(values)).expect("a cache");
    }
    if let Some(seeds) = case.seeds() {
        let ty = TensorType::new(Element::U64, [case.batch()]);
        memory.set_state("seeds", ty, Value::Integers(seeds)).expect("seeds");
    }
    memory
}

fn set(memory: &mut Memory, case: &Case, name: &str, numbers: &[u32]) {
    let ty = TensorType::new(Element::U32, [case.batch()]);
    memory.set_state(name, ty, Value::u32s(numbers)).expect("a state of the type");
}

fn inputs(step: &Step) -> HashMap<String, Value> {
    let inputs = match step {
        Step::Prefill(prompt) => prompt.inputs(),
        Step::Decode => vec![],
    };
    inputs.iter().map(|(name, numbers)| (name.to_string(), Value::u32s(numbers))).collect()
}

fn expected(case: &Case, number: usize, logits: &[f64], tokens: Vec<u32>, others: &[Vec<f64>]) -> Expected {
    let vocab = case.model.vocab as usize;
    let rows = || logits.chunks(vocab).enumerate();
    let noisy = |row: usize| others.iter().map(move |other| &other[row * vocab..][..vocab]);
    let bound = |(row, exact): (usize, &[f64])| {
        let off = noisy(row).flat_map(|other| other.iter().zip(exact).map(|(a, b)| (a - b).abs()));
        FACTOR * off.fold(0.0, f64::max)
    };
    let comparable = |(row, exact): (usize, &[f64])| match case.choice {
        Choice::ArgMax => {
            let best = tokens[row] as usize;
            (0..vocab).filter(|&i| i != best).all(|i| {
                let gap = exact[best] - exact[i];
                let most =
                    noisy(row).fold(0.0, |most: f64, other| most.max((other[best] - other[i] - gap).abs()));
                gap > FACTOR * most
            })
        }
        Choice::Sample(params) => {
            let own = probabilities(exact, &settings(params));
            let seed = case.seeds().expect("seeds of draws")[row];
            let drawn = draw(&own, Sample::new(vocab as u32).threads, seed, number as u32);
            assert_eq!(drawn.token, tokens[row], "the reference's own draw");
            // Logits that are as far off as they may be, to either side, keep the same tokens, and their shares do
            // not reach the random number.
            noisy(row).flat_map(|other| [(other, FACTOR), (other, -FACTOR)]).all(|(other, factor)| {
                let off: Vec<f64> = exact.iter().zip(other).map(|(a, b)| a + factor * (b - a)).collect();
                let moved = probabilities(&off, &settings(params));
                let pairs = || own.iter().zip(&moved);
                let same = pairs().all(|(a, b)| (*a > 0.0) == (*b > 0.0) || a.max(*b) < 1e-9);
                same && pairs().map(|(a, b)| (a - b).abs()).sum::<f64>() < drawn.margin
            })
        }
    };
    let (bounds, comparable) = (rows().map(bound).collect(), rows().map(comparable).collect());
    Expected { logits: logits.to_vec(), bounds, tokens, comparable }
}

fn settings(params: SampleParams) -> Settings {
    let number = |setting: Setting<f32>| match setting {
        Setting::Fixed(number) => f64::from(number),
        Setting::Buffer => panic!("no settings in buffers"),
    };
    let Setting::Fixed(top_k) = params.top_k else { panic!("no settings in buffers") };
    Settings {
        temperature: number(params.temperature),
        top_k,
        top_p: number(params.top_p),
        min_p: number(params.min_p),
    }
}
