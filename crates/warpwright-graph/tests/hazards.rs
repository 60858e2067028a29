//! What reads a state sees the value that it asked for, whatever is written when; and what goes wrong in the middle
//! leaves nothing behind.

mod common;

use common::run::{device, store};
use std::panic::{AssertUnwindSafe, catch_unwind};
use warpwright_graph::{
    ComputeGraph, Element, Executable, ExecuteError, KernelDispatch, KernelLibrary, Plan, PlanOptions,
    StepRun, Store, StoreError, TensorOp, TensorType, execute_graph, planes,
};
use warpwright_kernels::{CacheDtype, Dtype, WeightFormat};
use warpwright_runtime::{Device, RuntimeError};

fn row() -> TensorType {
    TensorType::f32([1, 64])
}

fn bound(device: &Device, graph: &ComputeGraph, begin: &[(&str, f32)]) -> (Executable, Store) {
    let mut store = store(device, graph, 1);
    for &(name, value) in begin {
        store.add_state(name, row()).expect("a state");
        store.write_state(name, &[value; 64]).expect("written");
    }
    let plan = Plan::new(graph, &PlanOptions::for_device(device), &KernelLibrary).expect("a plan");
    (plan.bind(&mut store).expect("bound"), store)
}

fn states(store: &Store, names: &[&str]) -> Vec<f32> {
    let state = |name: &&str| {
        let values = store.read_state::<f32>(name).expect("a state");
        assert!(values.iter().all(|value| *value == values[0]), "{name}: {values:?}");
        values[0]
    };
    names.iter().map(state).collect()
}

/// A state that takes its own value stays, and nothing is copied over itself.
#[test]
fn a_state_takes_its_own_value() {
    let device = device(true);
    let mut graph = ComputeGraph::new();
    let s = graph.state("s", row());
    let same = graph.assign("same", s, s).expect("a state");
    let twice = graph.add("twice", same, same).expect("a sum");
    graph.output(twice).expect("an output");
    let (mut executable, store) = bound(&device, &graph, &[("s", 5.0)]);
    let execution = execute_graph(&mut executable, &KernelLibrary).expect("executed");
    assert_eq!((execution.launches, execution.copies), (1, 0));
    assert_eq!(executable.read_output::<f32>("twice").expect("twice"), [10.0; 64]);
    assert_eq!(states(&store, &["s"]), [5.0]);
}

/// Two states swap, and what reads their old values does so before, although its nodes come last in the graph.
#[test]
fn old_values_are_read_before_they_go() {
    let device = device(true);
    let mut graph = ComputeGraph::new();
    let (a, b) = (graph.state("a", row()), graph.state("b", row()));
    let kept = graph.node("keep", TensorOp::Cast { to: Dtype::F32 }, &[a]).expect("a copy")[0];
    let new_a = graph.assign("new_a", a, b).expect("a state");
    let new_b = graph.assign("new_b", b, kept).expect("a state");
    // All of this reads the states as they were.
    let before = graph.mul("before", a, b).expect("a product");
    let silu = graph.silu("silu", before).expect("its silu");
    let sum = graph.add("sum", silu, a).expect("a sum");
    graph.output(sum).expect("an output");
    // And this as they are.
    let after = graph.add("after", new_a, new_a).expect("a sum");
    let after = graph.add("more", after, new_b).expect("a sum");
    graph.output(after).expect("an output");

    let (mut executable, store) = bound(&device, &graph, &[("a", 2.0), ("b", -3.0)]);
    let silu = |x: f32| x / (1.0 + (-x).exp());
    for (a, b) in [(2f32, -3f32), (-3.0, 2.0), (2.0, -3.0)] {
        execute_graph(&mut executable, &KernelLibrary).expect("executed");
        let sum = executable.read_output::<f32>("sum").expect("sum");
        assert!(sum.iter().all(|sum| (sum - (silu(a * b) + a)).abs() < 1e-5), "{sum:?}");
        assert_eq!(executable.read_output::<f32>("more").expect("more"), [2.0 * b + a; 64]);
        assert_eq!(states(&store, &["a", "b"]), [b, a]);
    }
}

/// A residual that is a state is read as it was, also when the product that adds it is fused and the state changes to
/// the sum.
#[test]
fn a_residual_is_a_state_that_becomes_the_sum() {
    let device = device(true);
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", row());
    let w = graph.weight("w", TensorType::new(Element::Weights(WeightFormat::F32), [64, 64]));
    let s = graph.state("s", row());
    let product = graph.mat_mul("product", x, w, None).expect("a product");
    let sum = graph.add("sum", product, s).expect("a sum");
    let next = graph.assign("next", s, sum).expect("a state");
    let again = graph.mat_mul("again", x, w, None).expect("a product");
    let y = graph.add("y", again, next).expect("a sum");
    graph.output(y).expect("an output");
    let mut store = Store::new(&device.default_stream());
    let ones: Vec<u8> = [1f32; 64 * 64].iter().flat_map(|one| one.to_le_bytes()).collect();
    store.add_matrix("w", WeightFormat::F32, 64, 64, &ones).expect("weights");
    let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
    assert!(!plan.formed().is_empty());
    let mut executable = plan.bind(&mut store).expect("bound");
    executable.write_input("x", &[0.25f32; 64]).expect("written");
    for step in 1..=3u16 {
        execute_graph(&mut executable, &KernelLibrary).expect("executed");
        assert_eq!(states(&store, &["s"]), [16.0 * f32::from(step)]);
        let y = executable.read_output::<f32>("y").expect("y");
        assert_eq!(y, [16.0 * f32::from(step + 1); 64]);
    }
}

/// A dispatcher that does everything twice.
struct Twice;

impl KernelDispatch for Twice {
    fn elementwise(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()?;
        step.run_library()
    }
}

/// What is reported is what ran, and not what was planned.
#[test]
fn launches_are_those_of_the_device() {
    let device = device(false);
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", row());
    let y = graph.silu("y", x).expect("its silu");
    let z = graph.cast("z", y, Dtype::F32).expect("a copy");
    graph.output(z).expect("an output");
    let (mut executable, _) = bound(&device, &graph, &[]);
    executable.write_input("x", &[1f32; 64]).expect("written");
    let once = execute_graph(&mut executable, &KernelLibrary).expect("executed");
    assert_eq!((once.launches, once.copies, once.bytes_copied), (1, 1, 256));
    let twice = execute_graph(&mut executable, &Twice).expect("executed");
    assert_eq!((twice.launches, twice.copies, twice.bytes_copied), (2, 2, 512));
    let replayed = executable.capture(&Twice).expect("captured").execute().expect("replayed");
    assert_eq!((replayed.graph_launches, replayed.launches, replayed.copies), (1, 2, 2));
}

/// A dispatcher that panics.
struct Panics;

impl KernelDispatch for Panics {
    fn elementwise(&self, _: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        panic!("no kernel today")
    }
}

#[test]
fn a_dispatcher_that_panics_leaves_no_recording() {
    let device = device(false);
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", row());
    let y = graph.add("y", x, x).expect("a sum");
    graph.output(y).expect("an output");
    let (executable, mut store) = bound(&device, &graph, &[]);
    let caught = catch_unwind(AssertUnwindSafe(|| executable.capture(&Panics).map(drop)));
    assert!(caught.is_err());
    assert!(!store.stream().is_capturing());

    let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &KernelLibrary).expect("a plan");
    let mut executable = plan.bind(&mut store).expect("bound");
    executable.write_input("x", &[1f32; 64]).expect("written");
    assert!(catch_unwind(AssertUnwindSafe(|| execute_graph(&mut executable, &Panics))).is_err());
    execute_graph(&mut executable, &KernelLibrary).expect("executed");
    assert_eq!(executable.read_output::<f32>("y").expect("y"), [2.0; 64]);
}

/// Sizes beyond counting are refused, or end at the largest number; nothing overflows.
#[test]
fn sizes_beyond_counting() {
    let device = device(false);
    let mut store = Store::new(&device.default_stream());
    let all = [u32::MAX; 4];
    for element in
        [Element::F32, Element::U64, Element::Cache(CacheDtype::Q8_0), Element::Cache(CacheDtype::F16)]
    {
        for dims in [all, [u32::MAX, u32::MAX, 1, 32], [u32::MAX, 1 << 29, 1, 1]] {
            let ty = TensorType::new(element, dims);
            let last = planes(ty).pop().expect("a part");
            assert!(last.bytes() > 1 << 56 || last.offset > 1 << 56, "{ty}: {last:?}");
            let refused = store.add_state("s", ty).expect_err("more than there is");
            let StoreError::Device { error, .. } = &refused else { panic!("{refused}") };
            assert!(matches!(**error, RuntimeError::OutOfMemory { .. }), "{refused}");
        }
    }
    let scaled = Element::Scaled { half: Dtype::F16, terms: u32::MAX };
    for ty in [TensorType::new(scaled, [u32::MAX; 2]), TensorType::new(Element::Int8, all)] {
        assert!(planes(ty).iter().all(|plane| plane.offset >= plane.len.min(1 << 56) || plane.offset == 0));
    }
    for format in WeightFormat::ALL {
        let k = u32::MAX - u32::MAX % format.block();
        let refused = store.add_matrix("w", format, u32::MAX, k, &[0; 64]).expect_err("64 bytes");
        assert!(matches!(refused, StoreError::Length { given: 64, .. }), "{refused}");
    }
}
