//! What there is no kernel for is said, with the nodes, the step and the kernel's own reason.

use crate::common::{Choice, Formats, ModelConfig};
use crate::{exact, try_plan, without};
use warpwright_dsl::BuildError;
use warpwright_graph::{
    ComputeGraph, Element, Fusions, PlanError, PlanOptions, RopeParams, TensorType, Unsupported,
};
use warpwright_kernels::{CacheDtype, WeightFormat};
use warpwright_ptx::ir::Arch;

/// Nodes, step and reason.
fn refused(graph: &ComputeGraph, options: &PlanOptions) -> (Vec<String>, &'static str, Unsupported) {
    match try_plan(graph, options) {
        Err(PlanError::Unsupported { nodes, step, reason }) => (nodes, step, *reason),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("there is a plan"),
    }
}

/// The field that the kernel refuses, with its value.
fn field(reason: &Unsupported) -> (&'static str, &str) {
    match reason {
        Unsupported::Configuration { error: BuildError::Field { field, value, .. }, .. } => (field, value),
        other => panic!("{other}"),
    }
}

/// A layer of heads of that many elements.
fn heads_of(head_dim: u32, cache: CacheDtype) -> ModelConfig {
    let formats = Formats::all(WeightFormat::F32);
    let (layers, rope) = (1, RopeParams::new(head_dim));
    ModelConfig { layers, formats, head_dim, rope, cache, ..ModelConfig::small() }
}

#[test]
fn prompts_with_heads_that_tensor_cores_do_not_take() {
    let (nodes, step, reason) =
        refused(&heads_of(40, CacheDtype::F16).prefill(1, 20, Choice::ArgMax), &exact());
    assert_eq!((&nodes[..], step), (&["blk.0.attention".to_owned()][..], "prefill_attention"));
    assert_eq!(field(&reason), ("head_dim", "40"));
    assert!(try_plan(&heads_of(40, CacheDtype::F16).decode(1, Choice::ArgMax), &exact()).is_ok());
    assert!(try_plan(&heads_of(48, CacheDtype::F16).prefill(1, 20, Choice::ArgMax), &exact()).is_ok());
}

#[test]
fn heads_that_are_too_long_or_too_short() {
    for (head_dim, cache) in [(264, CacheDtype::F16), (24, CacheDtype::F16), (520, CacheDtype::F32)] {
        let (_, _, reason) = refused(&heads_of(head_dim, cache).layer(1), &exact());
        assert_eq!(field(&reason), ("head_dim", &*head_dim.to_string()));
    }
}

#[test]
fn prompts_over_a_cache_of_bfloats_before_sm_80() {
    let graph = heads_of(64, CacheDtype::Bf16).prefill(1, 20, Choice::ArgMax);
    let (nodes, _, reason) = refused(&graph, &PlanOptions::new(Arch::sm(75), 68));
    assert_eq!(nodes, ["blk.0.attention"]);
    assert!(matches!(reason, Unsupported::Target { needed: 80, given, .. } if given == Arch::sm(75)));
    assert!(try_plan(&graph, &exact()).is_ok());
}

#[test]
fn rows_that_are_longer_than_a_kernel_takes() {
    let long = 1 << 21;
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, long]));
    graph.softmax("probabilities", x).expect("a node");
    let (nodes, step, reason) = refused(&graph, &exact());
    assert_eq!((&nodes[..], step), (&["probabilities".to_owned()][..], "softmax"));
    assert_eq!(field(&reason), ("d", "2097152"));

    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, long]));
    let w = graph.weight("w", TensorType::new(Element::Weights(WeightFormat::Q8_0), [16, long]));
    let w2 = graph.weight("w2", TensorType::new(Element::Weights(WeightFormat::Q8_0), [16, long]));
    graph.mat_mul("y", x, w, None).expect("a node");
    graph.mat_mul("z", x, w2, None).expect("a node");
    let (nodes, step, reason) = refused(&graph, &exact());
    assert_eq!((&nodes[..], step, field(&reason)), (&["y".to_owned()][..], "products", ("k", "2097152")));
}

#[test]
fn more_rows_than_a_grid_has_blocks() {
    // One block for each row of a draw, up to 2³¹ - 1.
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([u32::MAX, 1]));
    graph.softmax("y", x).expect("a node");
    let (nodes, _, reason) = refused(&graph, &exact());
    assert_eq!(nodes, ["y"]);
    let Unsupported::Limit { value, max, .. } = reason else { panic!("{reason}") };
    assert_eq!((value, max), (u32::MAX.into(), (1 << 31) - 1));
    // Of sequences, 65535.
    let model = ModelConfig { max_seq_len: 8, ..ModelConfig::small() };
    let (nodes, _, reason) = refused(&model.layer(65_536), &exact());
    assert!(nodes[0].starts_with("blk.0"));
    assert!(matches!(reason, Unsupported::Limit { value: 65_536, max: 65_535, .. }), "{reason}");
}

/// A launch for every eight tokens is what a prompt may take, and not what numbers without bounds may.
#[test]
fn more_tokens_than_launches_are_planned_for() {
    let of_tokens = |tokens| {
        let mut graph = ComputeGraph::new();
        let x = graph.input("x", TensorType::f32([tokens, 32]));
        let w = graph.weight("w", TensorType::new(Element::Weights(WeightFormat::F32), [8, 32]));
        graph.mat_mul("y", x, w, None).expect("a node");
        graph
    };
    let (nodes, _, reason) = refused(&of_tokens(1 << 28), &exact());
    assert_eq!(nodes, ["y"]);
    let Unsupported::Limit { value, max, .. } = reason else { panic!("{reason}") };
    assert_eq!(value, 1 << 28);
    let plan = try_plan(&of_tokens(max as u32), &exact()).expect("a plan");
    assert_eq!(plan.launches().count() as u64, max / 8);
}

#[test]
fn graphs_that_nobody_can_run() {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 8]));
    graph.silu("y", x).expect("a node");
    graph.silu("y", x).expect("a node");
    assert!(matches!(try_plan(&graph, &exact()), Err(PlanError::Graph(_))));
}

#[test]
fn nothing_is_planned_for_nothing() {
    let plan = try_plan(&ComputeGraph::new(), &without(Fusions::none(), exact())).expect("a plan");
    assert_eq!((plan.launches().count(), plan.memory().arena_bytes, plan.bytes()), (0, 0, 0));
}
