//! The same on a virtual GPU: token by token, or in chunks.

use crate::held::Path;
use std::collections::HashMap;
use warpwright_graph::{
    Element, Executable, KernelLibrary, Plan, PlanOptions, StepKind, StepShape, Store, TensorType,
    execute_graph,
};
use warpwright_kernels::CacheDtype;
use warpwright_llm::gguf::Gguf;
use warpwright_llm::model::{GraphOptions, ModelConfig, Outcome, load_weights};
use warpwright_runtime::VmConfig;
use warpwright_vm::Options;

/// A model on a device, with one sequence.
pub(crate) struct OnDevice<'a> {
    model: &'a ModelConfig,
    store: Store,
    options: PlanOptions,
    cache: CacheDtype,
    room: u32,
    plans: HashMap<(StepKind, u8), Executable>,
    position: u32,
}

impl<'a> OnDevice<'a> {
    pub(crate) fn new(gguf: &Gguf, model: &'a ModelConfig, path: Path, room: u32, options: Options) -> Self {
        let device = warpwright_testing::device(VmConfig { options, ..VmConfig::default() });
        let mut store = Store::new(&device.default_stream());
        load_weights(gguf, model, &mut store, |_| ()).expect("weights");
        let mut options = PlanOptions::for_device(&device);
        options.arithmetic = path.arithmetic;
        for (name, value) in [("ids", 0u32), ("positions", 0), ("lengths", 1)] {
            store.add_state(name, TensorType::new(Element::U32, [1])).expect("a state");
            store.write_state(name, &[value]).expect("written");
        }
        OnDevice { model, store, options, cache: path.cache, room, plans: HashMap::new(), position: 0 }
    }

    fn step(&mut self, kind: StepKind, outcome: Outcome) -> &mut Executable {
        let OnDevice { model, store, options, cache, room, plans, .. } = self;
        let variant = match outcome {
            Outcome::Cached => 0,
            Outcome::Logits => 1,
            _ => 2,
        };
        plans.entry((kind, variant)).or_insert_with(|| {
            let shape = StepShape { kind, batch: 1, max_seq_len: *room, variant: 0 };
            let graph = model.graph(&shape, &GraphOptions { cache: *cache, outcome }).expect("a graph");
            let plan = Plan::new(&graph, options, &KernelLibrary).unwrap_or_else(|error| panic!("{error}"));
            plan.bind(store).expect("bound")
        })
    }

    /// The logits after each of these tokens, computed one by one.
    pub(crate) fn decode(&mut self, ids: &[u32]) -> Vec<Vec<f32>> {
        let one = |&id: &u32| {
            self.store.write_state("ids", &[id]).expect("written");
            let step = self.step(StepKind::Decode, Outcome::Logits);
            execute_graph(step, &KernelLibrary).expect("executed");
            let logits = step.read_output::<f32>("logits").expect("logits");
            self.position += 1;
            logits
        };
        ids.iter().map(one).collect()
    }

    /// The logits after each of these tokens, computed at once; or of the last; or none of them.
    pub(crate) fn prefill(&mut self, ids: &[u32], outcome: Outcome) -> Vec<Vec<f32>> {
        let (len, before) = (ids.len() as u32, self.position);
        let vocab = self.model.vocab() as usize;
        let step = self.step(StepKind::Prefill { tokens: len }, outcome);
        let positions: Vec<u32> = (before..before + len).collect();
        let mut inputs = vec![
            ("prompt", ids.to_vec()),
            ("prompt_positions", positions),
            ("q_starts", vec![0, len]),
            ("kv_lens", vec![before + len]),
        ];
        if outcome == Outcome::Logits {
            inputs.push(("last", vec![len - 1]));
        }
        for (name, values) in inputs {
            step.write_input(name, &values).expect("written");
        }
        execute_graph(step, &KernelLibrary).expect("executed");
        let logits = match outcome {
            Outcome::Cached => Vec::new(),
            _ => step.read_output::<f32>("logits").expect("logits"),
        };
        self.position += len;
        logits.chunks(vocab).map(<[f32]>::to_vec).collect()
    }
}
