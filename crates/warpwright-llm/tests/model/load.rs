//! What is said while weights are loaded, and of files that do not go with a model.

use crate::spec::Spec;
use warpwright_graph::{Element, Store};
use warpwright_kernels::WeightFormat;
use warpwright_llm::gguf::Gguf;
use warpwright_llm::model::{LoadError, ModelConfig, ModelError, load_weights};
use warpwright_runtime::VmConfig;

fn store() -> Store {
    Store::new(&warpwright_testing::device(VmConfig::default()).default_stream())
}

fn small() -> Spec {
    Spec { factors: true, vectors: WeightFormat::F16, ..Spec::small("qwen3") }
}

#[test]
fn every_tensor_is_told_of_once_with_the_bytes_so_far() {
    let gguf = small().gguf();
    let model = ModelConfig::from_gguf(&gguf).expect("a model");
    let (mut store, mut told, mut before) = (store(), Vec::new(), 0);
    load_weights(&gguf, &model, &mut store, |progress| {
        let tensor = gguf.tensor(progress.tensor).expect("a tensor of the file");
        before += gguf.data(tensor).len() as u64;
        assert_eq!(progress.loaded, before);
        told.push((progress.tensor.to_string(), progress.total));
    })
    .expect("loaded");
    assert!(told.iter().all(|&(_, total)| total == before));
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, gguf.tensors().iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>());
    // The store has what the model has: halves of vectors have become floats.
    assert!(store.weights().eq(model.weights()));
    assert_eq!(model.weight_type("output_norm.weight").map(|ty| ty.element), Some(Element::F32));
}

#[test]
fn factors_that_no_rotation_has_are_refused() {
    let spec = small();
    for factor in [0f32, -1.0, 0.01, f32::NAN, f32::INFINITY] {
        let mut tensors = spec.tensors();
        let factors = tensors.iter_mut().find(|tensor| tensor.name == "rope_freqs.weight").expect("factors");
        factors.bytes[4 * 5..][..4].copy_from_slice(&factor.to_le_bytes());
        let gguf = Gguf::from_bytes(spec.writer(tensors).to_bytes().expect("a file")).expect("a file");
        let model = ModelConfig::from_gguf(&gguf).expect("a model");
        match load_weights(&gguf, &model, &mut store(), |_| ()) {
            Err(LoadError::Model(ModelError::Factor { pair: 5, value })) => {
                assert_eq!(value.to_bits(), factor.to_bits());
            }
            other => panic!("{factor}: {other:?}"),
        }
    }
}

#[test]
fn files_of_other_models_are_refused() {
    let model = ModelConfig::from_gguf(&small().gguf()).expect("a model");
    let fewer = Spec { factors: false, ..small() }.gguf();
    match load_weights(&fewer, &model, &mut store(), |_| ()) {
        Err(LoadError::Model(ModelError::MissingTensor { tensor, .. })) => {
            assert_eq!(tensor, "rope_freqs.weight")
        }
        other => panic!("{other:?}"),
    }
    let larger = Spec { ffn: 512, ..small() }.gguf();
    assert!(matches!(load_weights(&larger, &model, &mut store(), |_| ()), Err(LoadError::Store(_))));
}
