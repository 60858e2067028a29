//! The models that other tests build are what they say.

mod common;

use common::{Biases, Choice, Formats, ModelConfig, Prompt, random_weights};
use std::collections::BTreeMap;
use warpwright_graph::{ComputeGraph, Element, Role, TensorType};
use warpwright_kernels::WeightFormat;

fn weights(graph: &ComputeGraph) -> BTreeMap<&str, TensorType> {
    let weights = graph.tensors().iter().filter(|info| info.role == Role::Weight);
    weights.map(|info| (info.name.as_str(), info.ty)).collect()
}

fn states(graph: &ComputeGraph) -> BTreeMap<&str, TensorType> {
    let states = graph.tensors().iter().filter(|info| info.role == Role::State && info.state.is_none());
    states.map(|info| (info.name.as_str(), info.ty)).collect()
}

#[test]
fn decoding_and_prompts_share_weights_and_states() {
    let models = ModelConfig::real().map(|(_, model)| model);
    let small = ModelConfig { biases: Biases::All, head_norms: true, ..ModelConfig::small() };
    for model in models.into_iter().chain([small]) {
        for choice in [Choice::ArgMax, Choice::at_temperature(0.7)] {
            let (decode, prefill) = (model.decode(3, choice), model.prefill(3, 20, choice));
            assert_eq!(weights(&decode), weights(&prefill));
            assert_eq!(states(&decode), states(&prefill));
            assert_eq!(decode.order().map(|order| order.len()), Ok(decode.nodes().len()));
            assert_eq!(prefill.order().map(|order| order.len()), Ok(prefill.nodes().len()));
        }
    }
}

#[test]
fn real_models_have_as_many_weights_as_they_should() {
    let count = |model: &ModelConfig| {
        let graph = model.decode(1, Choice::ArgMax);
        weights(&graph).values().map(|ty| ty.shape.elements()).sum::<u64>()
    };
    // Parameters as published, and the 32 factors of Llama's frequencies.
    assert_eq!(count(&ModelConfig::llama_3_2_1b()), 1_235_814_400 + 32);
    assert_eq!(count(&ModelConfig::llama_3_8b()), 8_030_261_248);
    assert_eq!(count(&ModelConfig::qwen_2_5_1_5b()), 1_543_714_304);
    assert_eq!(count(&ModelConfig::qwen_3_1_7b()), 1_720_574_976);
}

#[test]
fn half_of_the_layers_of_a_mix_get_more_bits() {
    let graph = ModelConfig::llama_3_8b().decode(1, Choice::ArgMax);
    let of = |part: &str| {
        let formats =
            (0..32).map(|layer| weights(&graph)[format!("blk.{layer}.{part}.weight").as_str()].element);
        formats.filter(|&element| element == Element::Weights(WeightFormat::Q6K)).count()
    };
    assert_eq!(["attn_q", "attn_v", "ffn_up", "ffn_down"].map(of), [0, 16, 0, 16]);
}

#[test]
fn prompts_come_in_chunks() {
    let prompt = Prompt::new(&[vec![1, 2, 3, 4, 5], vec![6, 7, 8]]);
    let chunks = prompt.chunks(2);
    let tokens: Vec<_> = chunks.iter().map(|chunk| chunk.tokens.clone()).collect();
    assert_eq!(tokens, [[vec![1], vec![6]], [vec![2, 3], vec![7]], [vec![4, 5], vec![8]]]);
    assert_eq!(chunks[2].before, [3, 2]);
    assert_eq!(
        chunks[2].inputs(),
        [
            ("prompt", vec![4, 5, 8]),
            ("prompt_positions", vec![3, 4, 2]),
            ("prompt_sequences", vec![0, 0, 1]),
            ("last", vec![1, 2]),
            ("q_starts", vec![0, 2, 3]),
            ("kv_lens", vec![5, 3]),
        ]
    );
    assert_eq!(prompt.chunks(8), [prompt]);
}

#[test]
fn weights_are_those_of_their_seed_and_fill_their_tensors() {
    for format in WeightFormat::ALL {
        let model =
            ModelConfig { formats: Formats::all(format), biases: Biases::Qkv, ..ModelConfig::small() };
        let (decode, prefill) = (model.decode(1, Choice::ArgMax), model.prefill(1, 4, Choice::ArgMax));
        let made = random_weights(&decode, 1);
        assert_eq!(made, random_weights(&prefill, 1));
        assert_ne!(made, random_weights(&decode, 2));
        for (name, ty) in weights(&decode) {
            let bytes = match ty.element {
                Element::Weights(format) => format.matrix_bytes(ty.shape.rows(), ty.shape.columns()),
                _ => 4 * ty.shape.elements(),
            };
            assert_eq!(made[name].len() as u64, bytes, "{name}");
        }
    }
}
