//! The memory of plans: what is needed at once lies apart, and little is wasted.

use crate::common::{Biases, Choice, Formats, ModelConfig, Random};
use crate::{exact, int8, options, plan, without};
use warpwright_graph::{
    Arithmetic, ComputeGraph, Element, Fusion, Fusions, Location, Plan, PlanOptions, Role, Tensor, TensorType,
};
use warpwright_kernels::{CacheDtype, Dtype, WeightFormat};
use warpwright_ptx::ir::Arch;

fn is_tight(plan: &Plan) {
    let memory = plan.memory();
    let most = memory.bound + memory.bound / 10;
    assert!(memory.bound <= memory.arena_bytes && memory.arena_bytes <= most, "{memory:?}");
}

#[test]
fn of_layers_is_within_a_tenth_of_the_least() {
    let formats = [WeightFormat::Q4K, WeightFormat::Q8_0, WeightFormat::F16, WeightFormat::F32];
    for (_, model) in ModelConfig::real() {
        for format in formats {
            let model = ModelConfig { layers: 2, formats: Formats::all(format), ..model.clone() };
            for cache in CacheDtype::ALL {
                let model = ModelConfig { cache, ..model.clone() };
                for options in [exact(), int8(), without(Fusions::none(), exact())] {
                    for batch in [1, 4, 8, 17] {
                        is_tight(&plan(&model.layer(batch), &options));
                        is_tight(&plan(&model.decode(batch, Choice::ArgMax), &options));
                    }
                    for tokens in [2, 9, 64, 512] {
                        is_tight(&plan(&model.prefill(1, tokens, Choice::ArgMax), &options));
                    }
                }
            }
        }
    }
}

/// A model's layers need no more than one of them.
#[test]
fn of_many_layers_is_that_of_one() {
    let of = |layers| {
        let model = ModelConfig { layers, ..ModelConfig::llama_3_8b() };
        let graphs = [model.decode(4, Choice::ArgMax), model.prefill(1, 300, Choice::ArgMax)];
        graphs.map(|graph| plan(&graph, &exact()).memory().arena_bytes)
    };
    assert_eq!(of(8), of(32));
}

#[test]
fn of_inputs_and_outputs_is_theirs_throughout() {
    let graph = ModelConfig::small().layer(2);
    let plan = plan(&graph, &exact());
    let places = |role| -> Vec<std::ops::Range<u64>> {
        let place = |tensor| match plan.location(tensor)? {
            Location::Arena(at) => Some(at..at + crate::holds::bytes(plan.program().ty(tensor))),
            other => panic!("{other:?}"),
        };
        // Some are gone, since fusion did away with them.
        plan.tensors(role).filter_map(place).collect()
    };
    let pinned = [places(Role::Input), places(Role::Output)].concat();
    assert_eq!(pinned.len(), 4);
    let others = [pinned.clone(), places(Role::Intermediate)].concat();
    for (i, a) in pinned.iter().enumerate() {
        for (j, b) in others.iter().enumerate() {
            assert!(i == j || a.end <= b.start || b.end <= a.start, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn of_weights_and_states_is_elsewhere() {
    let plan = plan(&ModelConfig::small().decode(1, Choice::ArgMax), &exact());
    for tensor in plan.program().handles() {
        let location = plan.location(tensor);
        match plan.program().info(tensor).role {
            Role::Weight => assert_eq!(location, Some(Location::Weight)),
            Role::State => assert_eq!(location, Some(Location::State(plan.program().root(tensor)))),
            _ => {}
        }
    }
    assert_eq!(plan.tensors(Role::State).count(), 3 + 2 * 2);
}

fn f32s(rows: u32, columns: u32) -> TensorType {
    TensorType::f32([rows, columns])
}

/// The results that have the place of an operand, by name.
fn in_place(graph: &ComputeGraph, options: &PlanOptions) -> Vec<(String, String)> {
    let plan = plan(graph, options);
    let name = |tensor: Tensor| plan.program().info(tensor).name.clone();
    plan.memory().in_place().iter().map(|&(result, operand)| (name(result), name(operand))).collect()
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(result, operand)| (result.into(), operand.into())).collect()
}

#[test]
fn is_shared_with_an_operand_that_nothing_needs_afterwards() {
    let build = || -> Result<ComputeGraph, warpwright_graph::GraphError> {
        let mut graph = ComputeGraph::new();
        let (a, b) = (graph.input("a", f32s(4, 256)), graph.input("b", f32s(4, 256)));
        // Inputs stay.
        let x = graph.add("x", a, b)?;
        let y = graph.mul("y", x, b)?;
        // Softmax is not for one place; nor is a result of other elements.
        let z = graph.softmax("z", y)?;
        let u = graph.silu("u", z)?;
        let h = graph.cast("h", u, Dtype::F16)?;
        let h2 = graph.mul("h2", h, h)?;
        let v = graph.cast("v", h2, Dtype::F32)?;
        // Here the first is still needed, and there the second is not.
        let w = graph.add("w", v, b)?;
        let last = graph.add("last", v, w)?;
        graph.output(last)?;
        Ok(graph)
    };
    let graph = build().expect("a graph");
    let shared = [("y", "x"), ("u", "z"), ("h2", "h")];
    assert_eq!(in_place(&graph, &exact()), named(&shared));
}

#[test]
fn is_not_shared_with_what_the_host_writes_or_reads() {
    // The last step of all, after which no step needs the input.
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", f32s(4, 256));
    graph.silu("y", x).expect("a node");
    assert_eq!(in_place(&graph, &exact()), []);

    let mut graph = ComputeGraph::new();
    let x = graph.input("x", f32s(4, 256));
    let y = graph.silu("y", x).expect("a node");
    graph.output(y).expect("it is the graph's");
    graph.silu("z", y).expect("a node");
    assert_eq!(in_place(&graph, &exact()), []);
}

#[test]
fn is_shared_by_a_residual_and_not_by_activations() {
    let build = |tokens, same: bool| -> Result<ComputeGraph, warpwright_graph::GraphError> {
        let mut graph = ComputeGraph::new();
        let ids = graph.input("ids", TensorType::new(Element::U32, [tokens]));
        let table = graph.weight("table", TensorType::new(Element::Weights(WeightFormat::F32), [64, 256]));
        let x = graph.embedding("x", table, ids)?;
        let stream = if same { x } else { graph.embedding("stream", table, ids)? };
        let w = graph.weight("w", TensorType::new(Element::Weights(WeightFormat::F32), [256, 256]));
        let y = graph.mat_mul("y", x, w, None)?;
        let sum = graph.add("sum", stream, y)?;
        let last = graph.softmax("last", sum)?;
        graph.output(last)?;
        Ok(graph)
    };
    // In one launch, or in several of eight tokens each.
    for tokens in [1, 8, 20] {
        let apart = build(tokens, false).expect("a graph");
        assert_eq!(in_place(&apart, &exact()), named(&[("sum", "stream")]), "{tokens}");
        // Other blocks still read the activations.
        let same = build(tokens, true).expect("a graph");
        assert_eq!(in_place(&same, &exact()), [], "{tokens}");
        assert_eq!(in_place(&same, &without(Fusions::none(), exact())), named(&[("sum", "x")]), "{tokens}");
    }
}

/// Nodes of any kind that take what others have made, in any way that they may.
pub(crate) fn random_graph(random: &mut Random) -> ComputeGraph {
    let mut graph = ComputeGraph::new();
    let tokens = random.of(&[1, 3, 8, 11]);
    let widths = [64u32, 256];
    let mut values: Vec<Tensor> =
        widths.iter().map(|&width| graph.input(&format!("input{width}"), f32s(tokens, width))).collect();
    let formats = [WeightFormat::F32, WeightFormat::F16, WeightFormat::Q8_0, WeightFormat::Q4_0];
    for i in 0..2 + random.below(30) {
        let name = format!("node{i}");
        let recent = values.len() as u32;
        let x = values[(recent - 1 - random.below(recent.min(6))) as usize];
        let width = graph.ty(x).map_or(1, |ty| ty.shape.columns());
        let like: Vec<Tensor> =
            values.iter().copied().filter(|&other| graph.ty(other) == graph.ty(x)).collect();
        let other = random.of(&like);
        let made = match random.below(9) {
            0 => graph.add(&name, x, other),
            1 => graph.mul(&name, x, other),
            2 => graph.swiglu(&name, x, other),
            3 => graph.silu(&name, x),
            4 => graph.softmax(&name, x),
            5 => {
                let w = graph.weight(&format!("{name}.w"), TensorType::f32([width]));
                graph.rms_norm(&name, x, w, 1e-5)
            }
            6 => graph.cast(&name, x, Dtype::F32),
            _ => {
                let ty = TensorType::new(Element::Weights(random.of(&formats)), [random.of(&widths), width]);
                let w = graph.weight(&format!("{name}.w"), ty);
                let bias = random
                    .once_in(3)
                    .then(|| graph.weight(&format!("{name}.bias"), TensorType::f32([ty.shape.dims()[0]])));
                graph.mat_mul(&name, x, w, bias)
            }
        };
        let made = made.unwrap_or_else(|error| panic!("{error}"));
        if random.once_in(8) {
            graph.output(made).unwrap_or_else(|error| panic!("{error}"));
        }
        values.push(made);
    }
    graph
}

#[test]
fn of_random_graphs_holds_what_is_read() {
    let mut random = Random::new(11);
    let mut shared = 0;
    for _ in 0..400 {
        let graph = random_graph(&mut random);
        let mut options = options(random.of(&[Arithmetic::Exact, Arithmetic::Int8]));
        let arch = random.of(&[Arch::sm(75), Arch::sm(80), Arch::sm(90)]);
        options.tuning = PlanOptions::new(arch, 1 + random.below(200)).tuning;
        options.fusions = Fusion::ALL.into_iter().fold(Fusions::none(), |fusions, fusion| {
            if random.once_in(3) { fusions } else { fusions.with(fusion) }
        });
        shared += plan(&graph, &options).memory().in_place().len();
    }
    assert!(shared > 400, "{shared} results have the place of an operand");
}

#[test]
fn of_random_models_holds_what_is_read() {
    let mut random = Random::new(23);
    for _ in 0..60 {
        let head_dim = random.of(&[32, 64, 128]);
        let kv_heads = random.of(&[1, 2, 4]);
        let mut formats = Formats::all(random.of(&WeightFormat::ALL));
        formats.v = [random.of(&WeightFormat::ALL), random.of(&WeightFormat::ALL)];
        formats.down = [random.of(&WeightFormat::ALL), random.of(&WeightFormat::ALL)];
        formats.output = random.of(&WeightFormat::ALL);
        let model = ModelConfig {
            layers: 1 + random.below(3),
            heads: kv_heads * random.of(&[1, 2, 8]),
            kv_heads,
            head_dim,
            hidden: 256,
            ffn: random.of(&[256, 768]),
            formats,
            biases: random.of(&[Biases::None, Biases::Qkv, Biases::All]),
            head_norms: random.once_in(2),
            tied: random.once_in(2),
            rope: warpwright_graph::RopeParams::new(head_dim),
            cache: random.of(&CacheDtype::ALL),
            max_seq_len: random.of(&[64, 1024]),
            ..ModelConfig::small()
        };
        let model = ModelConfig { heads: (model.heads * head_dim).div_ceil(256) * 256 / head_dim, ..model };
        let mut options = options(random.of(&[Arithmetic::Exact, Arithmetic::Int8]));
        options.fusions = Fusion::ALL.into_iter().fold(Fusions::none(), |fusions, fusion| {
            if random.once_in(3) { fusions } else { fusions.with(fusion) }
        });
        let batch = random.of(&[1, 2, 4, 9]);
        plan(&model.decode(batch, Choice::ArgMax), &options);
        plan(&model.prefill(batch, batch + random.below(40), Choice::at_temperature(1.0)), &options);
    }
}
