//! What is said of files whose models are none, and what is read from those that are.

use crate::spec::{Spec, TensorSpec};
use std::slice::from_ref;
use warpwright_graph::RopeParams;
use warpwright_kernels::{RopePairs, RopeScaling, WeightFormat};
use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Gguf, Problem, Value};
use warpwright_llm::model::{Architecture, Block, ModelConfig, ModelError};

fn read(writer: &GgufWriter) -> Result<ModelConfig, ModelError> {
    let bytes = writer.to_bytes().expect("a file");
    ModelConfig::from_gguf(&Gguf::from_bytes(bytes).expect("a file"))
}

fn spec() -> Spec {
    Spec { layers: 2, hidden: 64, heads: 4, kv_heads: 2, head_dim: 16, ffn: 96, ..Spec::small("llama") }
}

/// What is said of a model with another parameter.
fn with(key: &str, value: impl Into<Value>) -> Result<ModelConfig, ModelError> {
    let spec = spec();
    read(spec.writer(spec.tensors()).set(format!("llama.{key}"), value))
}

/// What is said of a model with other tensors.
fn with_tensors(change: impl FnOnce(&mut Vec<TensorSpec>)) -> Result<ModelConfig, ModelError> {
    let spec = spec();
    let mut tensors = spec.tensors();
    change(&mut tensors);
    read(&spec.writer(tensors))
}

fn find<'a>(tensors: &'a mut [TensorSpec], name: &str) -> &'a mut TensorSpec {
    tensors.iter_mut().find(|tensor| tensor.name == name).expect("a tensor of that name")
}

/// The blocks that a model needs.
fn needs(model: Result<ModelConfig, ModelError>) -> Vec<Block> {
    match model {
        Err(ModelError::Needs { architecture: "llama", blocks }) => blocks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn architectures_that_are_not_known_are_named_with_those_that_are() {
    let spec = Spec { architecture: "mamba", ..spec() };
    match read(&spec.writer(spec.tensors())) {
        Err(ModelError::Architecture { name, known }) => {
            let all: Vec<&str> = Architecture::ALL.iter().map(|architecture| architecture.name).collect();
            assert_eq!((name.as_str(), known), ("mamba", all.join(", ")));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_that_must_be_there_are_named() {
    let spec = spec();
    for key in [
        "general.architecture",
        "llama.block_count",
        "llama.context_length",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
    ] {
        match read(spec.writer(spec.tensors()).remove(key)) {
            Err(ModelError::Metadata(error)) => {
                assert!(matches!(error.problem(), Problem::MissingKey { key: named, .. } if named == key));
            }
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn parameters_that_no_model_has_are_named_with_the_rule() {
    let refused: [(&str, Value); 20] = [
        ("block_count", 0u32.into()),
        ("embedding_length", 0u32.into()),
        ("attention.head_count", 0u32.into()),
        ("attention.head_count_kv", 0u32.into()),
        ("attention.head_count_kv", 3u32.into()),
        ("attention.key_length", 8u32.into()),
        ("context_length", 0u32.into()),
        ("attention.layer_norm_rms_epsilon", (-1f32).into()),
        ("attention.layer_norm_rms_epsilon", f32::NAN.into()),
        ("rope.dimension_count", 17u32.into()),
        ("rope.dimension_count", 0u32.into()),
        ("rope.dimension_count", 18u32.into()),
        ("rope.freq_base", 1f32.into()),
        ("rope.freq_base", f32::INFINITY.into()),
        ("rope.scaling.type", "longrope".into()),
        ("rope.scaling.factor", 0.5f32.into()),
        ("rope.scale_linear", f32::NAN.into()),
        ("rope.scaling.attn_factor", 0f32.into()),
        ("rope.scaling.attn_factor", 1e5f32.into()),
        ("vocab_size", 0u32.into()),
    ];
    for (key, value) in refused {
        // Keys of another length than values have, which are of that of all heads.
        let named = if key == "attention.key_length" { "attention.value_length" } else { key };
        match with(key, value.clone()) {
            Err(ModelError::Parameter { key, rule, .. }) => {
                assert_eq!(key, format!("llama.{named}"));
                assert!(!rule.is_empty());
            }
            other => panic!("{key} {value:?}: {other:?}"),
        }
    }
    let lengths = |len: u32| {
        let spec = Spec { head_dim: len, ..spec() };
        read(&spec.writer(spec.tensors()))
    };
    assert!(matches!(lengths(3), Err(ModelError::Parameter { .. })));
    assert_eq!(needs(lengths(258)), [Block::LongHeads]);
    assert_eq!(lengths(34).expect("a model").head_dim(), 34);
}

#[test]
fn what_is_not_computed_is_refused_by_its_key() {
    let refused: [(&str, Value); 5] = [
        ("attention.scale", 0.5f32.into()),
        ("logit_scale", 0.25f32.into()),
        ("final_logit_softcapping", 30f32.into()),
        ("rope.scaling.yarn_ext_factor", 0.5f32.into()),
        ("rope.scaling.alpha", 1000f32.into()),
    ];
    for (key, value) in refused {
        match with(key, value) {
            Err(ModelError::Unsupported { key: named, .. }) => assert_eq!(named, format!("llama.{key}")),
            other => panic!("{key}: {other:?}"),
        }
    }
    // What models of the architecture may have is known, and refused by the block.
    let known: [(&str, Value, Block); 3] = [
        ("attention.causal", false.into(), Block::Bidirectional),
        ("attention.head_count", vec![4u32, 2].into(), Block::UnequalLayers),
        ("feed_forward_length", vec![96u32, 64].into(), Block::UnequalLayers),
    ];
    for (key, value, block) in known {
        assert_eq!(needs(with(key, value)), [block], "{key}");
    }
    // With these values they change nothing.
    let neutral: [(&str, Value); 7] = [
        ("expert_count", 0u32.into()),
        ("attention.causal", true.into()),
        ("logit_scale", 1f32.into()),
        ("attention.head_count", vec![4u32, 4].into()),
        ("attention.head_count_kv", vec![2i32, 2].into()),
        ("vocab_size", 160u32.into()),
        ("attention.sliding_window", 0u32.into()),
    ];
    for (key, value) in neutral {
        with(key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}

#[test]
fn tensors_that_are_missing_or_too_many_are_named() {
    let all = spec().tensors();
    for (i, TensorSpec { name, .. }) in all.iter().enumerate() {
        match with_tensors(|tensors| _ = tensors.remove(i)) {
            Err(ModelError::MissingTensor { tensor, .. }) => assert_eq!(tensor, *name),
            // Without it, the output is tied.
            Ok(model) => assert!(name == "output.weight" && model.is_tied()),
            other => panic!("{name}: {other:?}"),
        }
    }
    // The norms of heads, of another architecture; sinks; a layer that is not counted.
    for name in ["blk.0.attn_q_norm.weight", "blk.1.attn_sinks.weight", "blk.2.attn_norm.weight"] {
        let more = TensorSpec { name: name.into(), ..all[1].clone() };
        match with_tensors(|tensors| tensors.push(more)) {
            Err(ModelError::UnexpectedTensor { tensor, architecture: "llama" }) => assert_eq!(tensor, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    // A scale belongs to matrices of one format, and there must be one.
    let scale = |name: &str| TensorSpec {
        name: name.into(),
        dims: vec![1],
        format: WeightFormat::F32,
        bytes: 1f32.to_le_bytes().to_vec(),
    };
    match with_tensors(|tensors| tensors.push(scale("blk.1.attn_q.scale"))) {
        Err(ModelError::NoScale { tensor, matrix, format: WeightFormat::Q8_0 }) => {
            assert_eq!((&tensor[..], &matrix[..]), ("blk.1.attn_q.scale", "blk.1.attn_q.weight"));
        }
        other => panic!("{other:?}"),
    }
    for name in ["blk.2.attn_q.scale", "blk.1.attn_norm.input_scale"] {
        match with_tensors(|tensors| tensors.push(scale(name))) {
            Err(ModelError::UnexpectedTensor { tensor, .. }) => assert_eq!(tensor, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    // As many layers as nothing could hold are as many as are missing.
    match with("block_count", u32::MAX) {
        Err(ModelError::MissingTensor { tensor, .. }) => assert_eq!(tensor, "blk.2.attn_norm.weight"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tensors_of_other_shapes_and_formats_are_named() {
    let names: Vec<String> = spec().tensors().into_iter().map(|tensor| tensor.name).collect();
    for name in &names {
        // The vocabulary is what the table says, where nothing else does.
        let shape = |tensors: &mut Vec<TensorSpec>| {
            let tensor = find(tensors, name);
            let rows = tensor.dims.len() - 1;
            tensor.dims[rows] *= 2;
            tensor.bytes = [&tensor.bytes[..], &tensor.bytes].concat();
        };
        match with_tensors(shape) {
            Err(ModelError::Shape { tensor, expected, shape }) => {
                let named = if name == "token_embd.weight" { "output.weight" } else { name };
                assert_eq!(tensor, *named);
                assert_ne!(expected, shape);
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    // A norm in a format of matrices.
    let blocks = |tensors: &mut Vec<TensorSpec>| {
        let norm = find(tensors, "output_norm.weight");
        (norm.format, norm.bytes) = (WeightFormat::Q8_0, vec![0; 68]);
    };
    match with_tensors(blocks) {
        Err(ModelError::Format { tensor, known, .. }) => {
            assert_eq!((tensor.as_str(), known.as_str()), ("output_norm.weight", "f32, f16, bf16"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn last_dimensions_of_one_may_be_written_or_left_out() {
    let all_as = |dims: fn(&[u64]) -> Vec<u64>| {
        let spec = Spec { vocab: 1, ..spec() };
        let mut file = GgufWriter::new();
        let gguf = Gguf::from_bytes(spec.writer(spec.tensors()).to_bytes().expect("a file")).expect("a file");
        for (key, value) in gguf.metadata().iter() {
            file.set(key, value.clone());
        }
        for tensor in gguf.tensors() {
            file.tensor(tensor.name.clone(), &dims(&tensor.dims), tensor.ty, gguf.data(tensor).to_vec());
        }
        read(&file).expect("a model")
    };
    let written = all_as(|dims| [dims, &[1, 1]].concat()[..4.min(dims.len() + 2)].to_vec());
    let left_out = all_as(|dims| match dims {
        [row, 1] => vec![*row],
        dims => dims.to_vec(),
    });
    assert_eq!(written, left_out);
    assert_eq!(written.vocab(), 1);
}

#[test]
fn architectures_are_what_their_files_are_made_for() {
    for (architecture, pairs, head_norms) in [
        ("llama", RopePairs::Interleaved, false),
        ("qwen2", RopePairs::Neox, false),
        ("qwen3", RopePairs::Neox, true),
    ] {
        let spec = Spec { architecture, ..spec() };
        let model = read(&spec.writer(spec.tensors())).expect("a model");
        assert_eq!((model.architecture().name, model.rope().pairs), (architecture, pairs));
        assert_eq!(model.weight_type("blk.1.attn_k_norm.weight").is_some(), head_norms);
        let sizes = [model.layers(), model.hidden(), model.heads(), model.kv_heads(), model.head_dim()];
        assert_eq!((sizes, model.ffn(), model.vocab()), ([2, 64, 4, 2, 16], 96, 160));
        assert_eq!((model.context_length(), model.epsilon()), (4096, 1e-5));
    }
}

/// What turns, by what parameters, and what scores are multiplied by.
fn rotation(parameters: &[(&'static str, Value)]) -> (RopeParams, f32) {
    let spec = Spec { parameters: parameters.to_vec(), ..spec() };
    let model = read(&spec.writer(spec.tensors())).expect("a model");
    (model.rope(), model.attention_scale())
}

#[test]
fn rotations_are_what_the_file_says() {
    let plain = RopeParams { pairs: RopePairs::Interleaved, ..RopeParams::new(16) };
    assert_eq!(rotation(&[]), (plain, 0.25));
    let base = [("rope.freq_base", 5e5f32.into()), ("rope.dimension_count", 8u32.into())];
    assert_eq!(rotation(&base), (RopeParams { base: 5e5, rotary_dim: 8, ..plain }, 0.25));

    let scaled = |parameters: &[(&'static str, Value)]| rotation(parameters).0.scaling;
    let factor = ("rope.scaling.factor", Value::from(4f32));
    assert_eq!(scaled(from_ref(&factor)), RopeScaling::Linear { factor: 4.0 });
    assert_eq!(scaled(&[("rope.scale_linear", 4f32.into())]), RopeScaling::Linear { factor: 4.0 });
    assert_eq!(scaled(&[factor.clone(), ("rope.scaling.type", "none".into())]), RopeScaling::None);
    assert_eq!(scaled(&[("rope.scaling.factor", 0f32.into())]), RopeScaling::None);

    let yarn = |more: &[(&'static str, Value)]| {
        scaled(&[&[factor.clone(), ("rope.scaling.type", "yarn".into())], more].concat())
    };
    // The context of the training is that of the model where nothing else is said.
    assert_eq!(yarn(&[]), RopeScaling::yarn(4.0, 4096));
    let original = ("rope.scaling.original_context_length", Value::from(64u32));
    assert_eq!(yarn(from_ref(&original)), RopeScaling::yarn(4.0, 64));
    let betas = [("rope.scaling.yarn_beta_fast", 16f32.into()), ("rope.scaling.yarn_beta_slow", 2f32.into())];
    let (beta_fast, beta_slow) = (16.0, 2.0);
    let expected = RopeScaling::Yarn {
        factor: 4.0,
        original_context: 4096,
        beta_fast,
        beta_slow,
        attention_factor: None,
    };
    assert_eq!(yarn(&betas), expected);
    // The factor comes on top of what YaRN sharpens scores by.
    match yarn(&[original, ("rope.scaling.attn_factor", 0.5f32.into())]) {
        RopeScaling::Yarn { attention_factor: Some(factor), .. } => {
            assert!((f64::from(factor) - 0.5 * (0.1 * 4f64.ln() + 1.0)).abs() < 1e-7);
        }
        other => panic!("{other:?}"),
    }
    // Without YaRN both turned vectors have it, and so do scores, twice.
    assert_eq!(rotation(&[("rope.scaling.attn_factor", 2f32.into())]), (plain, 1.0));
}

#[test]
fn contexts_end_where_windows_would_begin_to_matter() {
    let model = with("attention.sliding_window", 1000u32).expect("a model");
    assert_eq!(
        (model.context_length(), model.sliding_window(), model.max_context()),
        (4096, Some(1000), 1000)
    );
    let model = with("attention.sliding_window", 8192u32).expect("a model");
    assert_eq!(model.max_context(), 4096);
}
