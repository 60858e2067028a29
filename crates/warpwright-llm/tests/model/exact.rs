//! The forward pass in `f64`, with nothing rounded: logits after every token.

use crate::reference::{Memory, Value, dequantize, execute};
use std::collections::HashMap;
use warpwright_graph::{Element, StepKind, StepShape};
use warpwright_kernels::CacheDtype;
use warpwright_llm::gguf::Gguf;
use warpwright_llm::model::{GraphOptions, ModelConfig, Outcome};

/// Logits, a row for each token.
pub(crate) fn logits(gguf: &Gguf, model: &ModelConfig, ids: &[u32]) -> Vec<Vec<f64>> {
    let len = ids.len() as u32;
    let shape = StepShape { kind: StepKind::Prefill { tokens: len }, batch: 1, max_seq_len: len, variant: 0 };
    let options = GraphOptions { cache: CacheDtype::F32, outcome: Outcome::AllLogits };
    let graph = model.graph(&shape, &options).expect("a graph");
    let bytes = |name: &str| {
        let tensor = gguf.tensor(name)?;
        match model.weight_type(name)?.element {
            Element::Weights(format) if format.has_tensor_scale() => {
                let scale = gguf.tensor(&name.replace(".weight", ".scale"))?;
                Some([gguf.data(tensor), gguf.data(scale)].concat())
            }
            Element::Weights(_) => Some(gguf.data(tensor).to_vec()),
            // The graph has vectors of `f32`.
            _ => {
                let numbers = dequantize(tensor.ty.weight_format()?, gguf.data(tensor));
                Some(numbers.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect())
            }
        }
    };
    let mut memory = Memory::new();
    memory.load(&graph, bytes).expect("weights");
    let positions: Vec<u32> = (0..len).collect();
    let inputs = [
        ("prompt", Value::u32s(ids)),
        ("prompt_positions", Value::u32s(&positions)),
        ("q_starts", Value::u32s(&[0, len])),
        ("kv_lens", Value::u32s(&[len])),
    ];
    let inputs: HashMap<String, Value> = inputs.into_iter().map(|(name, v)| (name.into(), v)).collect();
    let outputs = execute(&graph, &mut memory, &inputs).expect("executed");
    outputs["logits"].floats().chunks(model.vocab() as usize).map(<[f64]>::to_vec).collect()
}
