//! What is chosen: how products take their activations, by which tiles, and what a dispatcher has to say.

use crate::common::{Choice, Formats, ModelConfig, Random};
use crate::{exact, int8, ops, plan, steps, without};
use warpwright_graph::{
    Arithmetic, ComputeGraph, Element, Family, Fusion, Fusions, KernelDispatch, Plan, PlanError, PlanOptions,
    Program, Role, StepOp, TensorType, WeightLayout,
};
use warpwright_kernels::{Activations, WeightFormat};
use warpwright_ptx::ir::Arch;

fn activations(plan: &Plan) -> Vec<Option<Activations>> {
    ops(plan)
        .filter_map(|op| match op {
            StepOp::Products(products) => Some(products.activations),
            _ => None,
        })
        .collect()
}

use Activations::{Exact, Int8, Rounded};

#[test]
fn few_activations_are_exact_or_quantised_where_that_is_cheapest() {
    let layer = ModelConfig::llama_3_8b().layer(1);
    assert_eq!(activations(&plan(&layer, &exact())), [Some(Exact); 4]);
    // The norms make quants; what attention and SwiGLU make has one product each, which quantises for itself.
    let chosen = plan(&layer, &int8());
    assert_eq!(activations(&chosen), [Some(Int8), Some(Rounded), Some(Int8), Some(Rounded)]);
    let formed = chosen.formed().iter().filter(|formed| formed.fusion == Fusion::Quantize).count();
    assert_eq!(formed, 2);
    for op in ops(&chosen) {
        if let StepOp::Norm(norm) = op {
            assert!(norm.out.is_none() && norm.quants.is_some());
        }
    }
    // Without the fusion, all products round for themselves, and norm too.
    let apart = plan(&layer, &without(Fusions::all().without(Fusion::Quantize), int8()));
    assert_eq!(activations(&apart), [Some(Rounded); 4]);
    assert_eq!(apart.launches().count(), 6);
}

#[test]
fn weights_of_floats_stay_exact() {
    for format in [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16] {
        let model = ModelConfig { formats: Formats::all(format), ..ModelConfig::small() };
        assert_eq!(activations(&plan(&model.layer(4), &int8())), [Some(Exact); 4], "{format}");
    }
    // Beside quants they are a launch of their own.
    let formats = Formats { v: [WeightFormat::F16; 2], ..Formats::all(WeightFormat::Q8_0) };
    let model = ModelConfig { formats, ..ModelConfig::small() };
    assert_eq!(activations(&plan(&model.layer(1), &exact())).len(), 4);
    let mixed = plan(&model.layer(1), &int8());
    assert_eq!(activations(&mixed)[..2], [Some(Int8), Some(Exact)]);
    // Their norm makes floats and quants.
    let both = |op: &StepOp| matches!(op, StepOp::Norm(norm) if norm.out.is_some() && norm.quants.is_some());
    assert_eq!(ops(&mixed).filter(|op| both(op)).count(), 1);
}

#[test]
fn more_tokens_are_scaled_once_for_all_their_products() {
    let model = ModelConfig::llama_3_8b();
    let graph = ModelConfig { layers: 1, ..model }.prefill(1, 64, Choice::ArgMax);
    let scaled = |plan: &Plan| -> Vec<_> {
        let scales = ops(plan).filter_map(|op| match op {
            StepOp::Scale { out, .. } => Some(plan.program().ty(*out).element.to_string()),
            _ => None,
        });
        scales.collect()
    };
    // For q, k and v; o; gate and up; down.
    assert_eq!(scaled(&plan(&graph, &exact())), ["scaled f16x2"; 4]);
    assert_eq!(scaled(&plan(&graph, &int8())), ["scaled f16x1"; 4]);
    // Each of seven products is a launch, and takes what is added to it; logits are of one row.
    let products = steps(&plan(&graph, &exact())).into_iter().filter(|&step| step == "products").count();
    assert_eq!(products, 7 + 1);
}

#[test]
fn products_of_bfloats_have_no_tensor_cores_before_sm_80() {
    let model = ModelConfig { formats: Formats::all(WeightFormat::Bf16), ..ModelConfig::small() };
    let graph = model.prefill(1, 20, Choice::ArgMax);
    let of = |sm| {
        let plan = plan(&graph, &PlanOptions::new(Arch::sm(sm), 68));
        ops(&plan).filter(|op| matches!(op, StepOp::Scale { .. })).count()
    };
    assert_eq!((of(75), of(80)), (0, 2 * 4));
}

/// Rows of tokens and columns of the tile of each matrix product.
fn tiles(model: &ModelConfig, tokens: u32, options: &PlanOptions) -> Vec<[u32; 2]> {
    let graph = ModelConfig { layers: 1, ..model.clone() }.prefill(1, tokens, Choice::ArgMax);
    let plan = plan(&graph, options);
    let tile = |(step, launch): (usize, &warpwright_graph::PlannedLaunch)| {
        let StepOp::Products(products) = &plan.program().steps()[step].op else { return None };
        let n = plan.program().ty(products.matrices[0].weight).shape.dims()[0];
        (products.activations.is_none())
            .then(|| [tokens.div_ceil(launch.grid[0]), n.div_ceil(launch.grid[1])])
    };
    plan.launches().filter_map(tile).collect()
}

#[test]
fn tiles_have_the_rows_that_tokens_fill() {
    let model = ModelConfig::llama_3_8b();
    // With few tokens, taller tiles would multiply nothing.
    for (tokens, most) in [(9, 16), (16, 16), (17, 32), (33, 64)] {
        for [rows, _] in tiles(&model, tokens, &exact()) {
            assert!(rows <= most, "{rows} of {tokens}");
        }
    }
    // With many, weights are decoded for as many rows as there are.
    for arithmetic in [exact(), int8()] {
        for [rows, columns] in tiles(&model, 2048, &arithmetic) {
            assert!(rows >= 64 && columns >= 64, "{rows} by {columns}");
        }
    }
    // A product with few columns has narrow tiles, so that more multiprocessors have one.
    let [_, columns] = tiles(&model, 64, &exact())[1];
    assert_eq!(columns, 64);
}

/// Accepts nothing that is fused, or all but some; runs some families itself.
#[derive(Default)]
struct Other {
    refuses: Vec<Fusion>,
    runs: Vec<Family>,
    layout: Option<WeightLayout>,
}

impl KernelDispatch for Other {
    fn accepts(&self, fusion: Fusion, step: &StepOp, program: &Program, options: &PlanOptions) -> bool {
        !self.refuses.contains(&fusion) && warpwright_graph::library::accepts(fusion, step, program, options)
    }

    fn overrides(&self, family: Family) -> bool {
        self.runs.contains(&family)
    }

    fn weight_layout(&self, _: Family) -> WeightLayout {
        self.layout.unwrap_or(WeightLayout::Rows)
    }
}

fn plan_for(dispatch: &Other, options: &PlanOptions) -> Plan {
    let graph = ModelConfig::small().decode(2, Choice::ArgMax);
    let plan = Plan::new(&graph, options, dispatch).unwrap_or_else(|error| panic!("{error}"));
    crate::holds::check(&plan);
    plan
}

/// Runs a family itself, and says nothing of fusion.
struct Owns(Family);

impl KernelDispatch for Owns {
    fn overrides(&self, family: Family) -> bool {
        family == self.0
    }
}

#[test]
fn who_runs_a_family_gets_fused_steps_of_it_only_on_request() {
    let graph = ModelConfig::small().decode(2, Choice::ArgMax);
    for family in Family::ALL {
        let plan = Plan::new(&graph, &crate::options(Arithmetic::Exact), &Owns(family)).expect("a plan");
        let of_family = plan.program().steps().iter().filter(|step| step.op.family() == family);
        assert!(of_family.into_iter().all(|step| step.nodes.len() == 1), "{family:?}");
        let fused = plan.program().steps().iter().any(|step| step.nodes.len() > 1);
        assert!(fused, "other families are fused");
    }
}

#[test]
fn nothing_is_fused_that_a_dispatcher_does_not_accept() {
    for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
        let options = crate::options(arithmetic);
        let nothing = Other { refuses: Fusion::ALL.to_vec(), ..Other::default() };
        let plan = plan_for(&nothing, &options);
        assert_eq!(plan.formed(), []);
        let apart = plan_for(&Other::default(), &without(Fusions::none(), options.clone()));
        assert_eq!(steps(&plan), steps(&apart));
        for fusion in Fusion::ALL {
            let one = plan_for(&Other { refuses: vec![fusion], ..Other::default() }, &options);
            assert!(one.formed().iter().all(|formed| formed.fusion != fusion), "{fusion}");
            assert!(one.launches().count() <= plan.launches().count());
        }
    }
}

/// Says of everything that it has a kernel for it, and leaves it to the library.
struct Boaster;

impl KernelDispatch for Boaster {
    fn accepts(&self, _: Fusion, _: &StepOp, _: &Program, _: &PlanOptions) -> bool {
        true
    }
}

#[test]
fn what_a_dispatcher_accepts_has_a_kernel_or_is_refused() {
    let mut random = Random::new(3);
    for _ in 0..200 {
        let graph = crate::memory::random_graph(&mut random);
        let options = crate::options(random.of(&[Arithmetic::Exact, Arithmetic::Int8]));
        let plan = Plan::new(&graph, &options, &Boaster).unwrap_or_else(|error| panic!("{error}"));
        crate::holds::check(&plan);
    }

    // Five matrices are no launch.
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 256]));
    for i in 0..5 {
        let w =
            graph.weight(&format!("w{i}"), TensorType::new(Element::Weights(WeightFormat::Q4K), [64, 256]));
        let y = graph.mat_mul(&format!("y{i}"), x, w, None).expect("a node");
        graph.output(y).expect("it is the graph's");
    }
    match Plan::new(&graph, &exact(), &Boaster) {
        Err(PlanError::Unsupported { nodes, step, .. }) => {
            assert_eq!(
                (&nodes[..], step),
                (&["y0", "y1", "y2", "y3", "y4"].map(String::from)[..], "products")
            );
        }
        other => panic!("{:?}", other.map(|plan| plan.launches().count())),
    }
    // The library has one of four, and one.
    assert_eq!(plan(&graph, &exact()).launches().count(), 2);
}

#[test]
fn overridden_families_have_no_launches() {
    for options in [exact(), int8()] {
        let all = plan_for(&Other::default(), &options);
        for family in Family::ALL {
            let plan = plan_for(&Other { runs: vec![family], ..Other::default() }, &options);
            for (step, planned) in plan.program().steps().iter().zip(plan.steps()) {
                assert_eq!(planned.overridden, step.op.family() == family);
                assert_eq!(planned.actions.is_empty(), planned.overridden);
            }
            assert!(
                plan.launches().count() < all.launches().count()
                    || family == Family::Norm
                    || family == Family::Elementwise
            );
        }
        // Products of an overridden family are as the graph has them: no step makes anything for them.
        let plan = plan_for(&Other { runs: vec![Family::MatMul], ..Other::default() }, &options);
        assert!(activations(&plan).iter().all(Option::is_none));
        assert!(!steps(&plan).iter().any(|step| ["quantize", "scale_rows"].contains(step)));
        // A norm that someone else runs makes no quants.
        let plan = plan_for(&Other { runs: vec![Family::Norm], ..Other::default() }, &int8());
        assert!(ops(&plan).all(|op| !matches!(op, StepOp::Norm(norm) if norm.quants.is_some())));
    }
}

#[test]
fn weights_have_the_layouts_that_their_steps_read() {
    let layouts = |dispatch: &Other, tied: bool| -> Vec<(String, Vec<WeightLayout>)> {
        let graph = ModelConfig { tied, layers: 1, ..ModelConfig::small() }.decode(1, Choice::ArgMax);
        let plan = Plan::new(&graph, &exact(), dispatch).unwrap_or_else(|error| panic!("{error}"));
        let name = |tensor| plan.program().info(tensor).name.clone();
        let all: Vec<_> = plan.weights().iter().map(|w| (name(w.tensor), w.layouts.clone())).collect();
        assert_eq!(all.len(), plan.tensors(Role::Weight).count());
        all
    };
    let of = |all: &[(String, Vec<WeightLayout>)], name: &str| {
        all.iter().find(|(other, _)| other == name).map(|(_, layouts)| layouts.clone()).unwrap_or_default()
    };
    use WeightLayout::{Planes, Rows};
    let library = layouts(&Other::default(), false);
    assert_eq!(of(&library, "token_embd.weight"), [Rows]);
    assert_eq!(of(&library, "output.weight"), [Planes]);
    assert_eq!(of(&library, "blk.0.attn_norm.weight"), []);
    assert_eq!(of(&layouts(&Other::default(), true), "token_embd.weight"), [Rows, Planes]);
    let own = Other { runs: vec![Family::MatMul], ..Other::default() };
    assert_eq!(of(&layouts(&own, false), "output.weight"), [Rows]);
    assert_eq!(of(&layouts(&own, true), "token_embd.weight"), [Rows]);
    let planes = Other { layout: Some(Planes), ..own };
    assert_eq!(of(&layouts(&planes, false), "output.weight"), [Planes]);
}
