//! Dispatchers: those that run products with their own kernels, in PTX, in the DSL and on the host, and one that
//! accepts nothing fused. What they make is held to the reference as what the library makes.

#[path = "../common/mod.rs"]
mod common;

mod host;
mod own_kernel;
mod own_ptx;
#[path = "../common/reference/mod.rs"]
mod reference;

use common::run::{begin, device, store};
use common::{Choice, Formats, ModelConfig, random_weights};
use host::HostProducts;
use own_kernel::OwnKernel;
use own_ptx::OwnPtx;
use reference::{Memory, Value};
use std::collections::HashMap;
use warpwright_graph::{
    ComputeGraph, Element, ExecuteError, Family, Fusion, KernelDispatch, KernelLibrary, Plan, PlanOptions,
    Program, StepOp, StepRun, TensorType, WeightLayout, execute_graph,
};
use warpwright_kernels::WeightFormat;
use warpwright_runtime::Device;

const STEPS: usize = 4;
const IDS: [u32; 2] = [3, 5];
const SEED: u64 = 11;

/// Accepts nothing fused.
struct Unfused;

impl KernelDispatch for Unfused {
    fn accepts(&self, _: Fusion, _: &StepOp, _: &Program, _: &PlanOptions) -> bool {
        false
    }
}

/// The logits of some steps by the reference. The tokens are those of the device, so that a close choice does not
/// part them.
fn expected(graph: &ComputeGraph, tokens: &[Vec<u32>]) -> Vec<Vec<f64>> {
    let weights = random_weights(graph, SEED);
    let mut memory = Memory::new();
    memory.load(graph, |name| weights.get(name).cloned()).expect("weights");
    let numbers = TensorType::new(Element::U32, [2]);
    let mut ids = IDS.to_vec();
    memory.set_state("lengths", numbers, Value::u32s(&[1, 1])).expect("lengths");
    let step = |chosen: &Vec<u32>| {
        memory.set_state("ids", numbers, Value::u32s(&ids)).expect("ids");
        let outputs = reference::execute(graph, &mut memory, &HashMap::new()).expect("the reference");
        ids = chosen.clone();
        outputs["logits"].floats().to_vec()
    };
    tokens.iter().map(step).collect()
}

/// Runs some steps, and holds them to the reference. Gives the number of launches of a step.
fn run(device: &Device, config: &ModelConfig, dispatch: &dyn KernelDispatch) -> u64 {
    let graph = config.decode(2, Choice::ArgMax);
    let options = PlanOptions::for_device(device);
    let plan = Plan::new(&graph, &options, dispatch).expect("a plan");
    let mut store = store(device, &graph, SEED);
    begin(&mut store, &IDS, &[0, 0]);
    let mut executable = plan.bind(&mut store).expect("bound");
    let (mut logits, mut tokens, mut launches) = (Vec::new(), Vec::new(), 0);
    for _ in 0..STEPS {
        launches = execute_graph(&mut executable, dispatch).expect("executed").launches;
        logits.push(executable.read_output::<f32>("logits").expect("logits"));
        tokens.push(executable.read_output::<u32>("tokens").expect("tokens"));
    }
    for ((step, logits), expected) in (0..).zip(&logits).zip(expected(&graph, &tokens)) {
        // Layers hand on what they are off by; a layer by itself is held to its bound elsewhere.
        let largest = expected.iter().fold(0f64, |largest, logit| largest.max(logit.abs()));
        for (i, (&logit, expected)) in logits.iter().zip(&expected).enumerate() {
            let off = (f64::from(logit) - expected).abs();
            assert!(off <= 3e-4 * largest, "step {step}, logit {i}: {logit} is off by {off:e} of {largest}");
        }
    }
    launches
}

fn of_floats() -> ModelConfig {
    ModelConfig { formats: Formats::all(WeightFormat::F32), ..ModelConfig::small() }
}

fn mixed() -> ModelConfig {
    ModelConfig { formats: Formats::q4_k_m(), head_norms: true, ..ModelConfig::small() }
}

#[test]
fn the_library_runs_everything() {
    let device = device(true);
    run(&device, &of_floats(), &KernelLibrary);
    run(&device, &mixed(), &KernelLibrary);
}

#[test]
fn products_by_a_kernel_of_the_dispatcher() {
    let device = device(true);
    let own = OwnKernel::default();
    let launches = run(&device, &of_floats(), &own);
    // Seven products of each layer and that of the logits, none of them fused.
    assert_eq!(own.launches(), STEPS as u64 * (2 * 7 + 1));
    assert!(launches > 2 * 7 + 1, "norms and the rest are the library's: {launches}");
}

#[test]
fn products_by_ptx_of_the_dispatcher() {
    let device = device(true);
    let own = OwnPtx::new(&device);
    run(&device, &of_floats(), &own);
    // It accepts that residuals are added to products: two of each layer.
    assert_eq!(own.residuals(), STEPS as u64 * 2 * 2);
}

#[test]
fn products_on_the_host() {
    let device = device(true);
    let host = HostProducts::default();
    run(&device, &mixed(), &host);
    // Everything that the library would fuse: q, k and v; the way back; gate and up; down; the logits.
    assert_eq!(host.steps(), STEPS as u64 * (2 * 4 + 1));
}

#[test]
fn nothing_fused() {
    let device = device(true);
    for config in [of_floats(), mixed()] {
        let graph = config.decode(2, Choice::ArgMax);
        let options = PlanOptions::for_device(&device);
        let plan = Plan::new(&graph, &options, &Unfused).expect("a plan");
        assert!(plan.formed().is_empty(), "{:?}", plan.formed());
        assert_eq!(plan.program().steps().len(), graph.nodes().len());
        let unfused = run(&device, &config, &Unfused);
        let fused = run(&device, &config, &KernelLibrary);
        assert!(unfused > 2 * fused, "{unfused} launches, fused {fused}");
    }
}

/// Overrides products, and does what no dispatcher may.
struct Wrong(fn(&mut StepRun<'_>) -> Result<(), ExecuteError>);

impl KernelDispatch for Wrong {
    fn overrides(&self, family: Family) -> bool {
        family == Family::MatMul
    }

    fn mat_mul(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        (self.0)(step)
    }
}

/// What comes of a product that such a dispatcher runs.
fn refused(wrong: fn(&mut StepRun<'_>) -> Result<(), ExecuteError>) -> ExecuteError {
    let device = device(false);
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 32]));
    let w = graph.weight("w", TensorType::new(Element::Weights(WeightFormat::F32), [8, 32]));
    let y = graph.mat_mul("y", x, w, None).expect("a product");
    graph.output(y).expect("an output");
    let dispatch = Wrong(wrong);
    let mut store = store(&device, &graph, 1);
    let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &dispatch).expect("a plan");
    let mut executable = plan.bind(&mut store).expect("bound");
    executable.write_input("x", &[1f32; 32]).expect("written");
    match execute_graph(&mut executable, &dispatch) {
        Err(ExecuteError::Step { op: "products", nodes, error }) if nodes == ["y"] => *error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mistakes_of_dispatchers_are_named() {
    let library = refused(|step| step.run_library());
    assert!(matches!(library, ExecuteError::NoLibrary { family: Family::MatMul }), "{library}");

    let layout = refused(|step| {
        let StepOp::Products(products) = step.op() else { return Ok(()) };
        step.weights(products.matrices[0].weight, WeightLayout::Planes).map(|_| ())
    });
    let planes = |layout| matches!(layout, WeightLayout::Planes);
    assert!(
        matches!(&layout, ExecuteError::Layout { name, layout } if name == "w" && planes(*layout)),
        "{layout}"
    );

    let element = refused(|step| {
        let StepOp::Products(products) = step.op() else { return Ok(()) };
        step.buffer::<u32>(products.x).map(|_| ())
    });
    assert!(matches!(&element, ExecuteError::Element { name, .. } if name == "x"), "{element}");

    let own = refused(|_| Err(ExecuteError::dispatch("no kernel today")));
    assert!(matches!(&own, ExecuteError::Dispatch(error) if error.to_string() == "no kernel today"), "{own}");
}

#[test]
fn tensors_of_other_steps_are_refused() {
    struct Curious;
    impl KernelDispatch for Curious {
        fn norm(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
            let other = step.program().handles().find(|&tensor| step.program().info(tensor).name == "logits");
            let other = other.ok_or_else(|| ExecuteError::dispatch("no logits"))?;
            step.parts(other).map(|_| ())
        }

        fn accepts(&self, _: Fusion, _: &StepOp, _: &Program, _: &PlanOptions) -> bool {
            false
        }
    }
    let device = device(false);
    let graph = ModelConfig::small().decode(1, Choice::ArgMax);
    let plan = Plan::new(&graph, &PlanOptions::for_device(&device), &Curious).expect("a plan");
    let mut store = store(&device, &graph, 1);
    let mut executable = plan.bind(&mut store).expect("bound");
    let refused = execute_graph(&mut executable, &Curious).expect_err("a tensor that is no operand");
    let ExecuteError::Step { nodes, error, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(nodes, &["blk.0.attn_norm"]);
    assert!(matches!(&**error, ExecuteError::NotAnOperand { name } if name == "logits"), "{refused}");
}
