//! Models on a device: stores with random weights, and states as they are before the first token.

use super::model::ModelConfig;
use super::weights::random_bytes;
use warpwright_graph::{ComputeGraph, Element, Role, Store, TensorType};
use warpwright_runtime::{Device, VmConfig};
use warpwright_vm::Options;

/// The device of the test; as a virtual GPU with all checks and counters for tests of what plans do, or without for
/// many steps.
pub fn device(checks: bool) -> Device {
    let options = if checks { Options::checked() } else { Options::default() };
    warpwright_testing::device(VmConfig { options, ..VmConfig::default() })
}

/// Adds random weights for everything that a graph takes and the store lacks.
pub fn add_weights(store: &mut Store, graph: &ComputeGraph, seed: u64) {
    for info in graph.tensors().iter().filter(|info| info.role == Role::Weight) {
        if store.weights().all(|(name, _)| name != info.name) {
            let bytes = random_bytes(&info.name, info.ty, seed);
            store.add_weight(&info.name, info.ty, &bytes).expect("a weight");
        }
    }
}

/// A store for a graph: random weights, and states of zeros.
pub fn store(device: &Device, graph: &ComputeGraph, seed: u64) -> Store {
    let mut store = Store::new(&device.default_stream());
    add_weights(&mut store, graph, seed);
    store
}

/// Sets the states of a model's sequences: the tokens that come next, and how many tokens were before them.
pub fn begin(store: &mut Store, ids: &[u32], before: &[u32]) {
    let numbers = TensorType::new(Element::U32, [ids.len() as u32]);
    let lengths: Vec<u32> = before.iter().map(|before| before + 1).collect();
    for (name, values) in [("ids", ids), ("positions", before), ("lengths", &lengths)] {
        store.add_state(name, numbers).expect("a state");
        store.write_state(name, values).expect("written");
    }
}

impl ModelConfig {
    /// A model of the same form that a virtual GPU computes in a moment: its heads as they are, fewer of them.
    pub fn scaled_down(&self, layers: u32) -> Self {
        let group = self.heads / self.kv_heads;
        let kv_heads = self.kv_heads.min(2);
        ModelConfig {
            layers,
            hidden: 256,
            heads: group * kv_heads,
            kv_heads,
            ffn: 512,
            vocab: 96,
            max_seq_len: 64,
            ..self.clone()
        }
    }
}
