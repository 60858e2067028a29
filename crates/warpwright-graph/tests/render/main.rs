//! Reports of plans: what they say is what the plan is, in every form.

#[path = "../../examples/plan_layer/args.rs"]
mod args;
#[path = "../../examples/plan_layer/model.rs"]
mod model;
mod readers;

use args::{ArgError, Form};
use model::{Call, MODELS};
use readers::dot;
use serde_json::Value;
use warpwright_graph::render::{PlanReport, SourceReport, VERSION};
use warpwright_graph::{
    ArgSource, Arithmetic, ComputeGraph, Element, Family, Fusions, KernelDispatch, KernelLibrary, Plan,
    PlanOptions, Program, StepOp, Tensor, TensorType,
};
use warpwright_kernels::WeightFormat;
use warpwright_ptx::ir::Arch;

fn options(arithmetic: Arithmetic) -> PlanOptions {
    let mut options = PlanOptions::new(Arch::sm(80), 108);
    options.arithmetic = arithmetic;
    options
}

/// Does norms itself.
struct OwnNorms;

impl KernelDispatch for OwnNorms {
    fn overrides(&self, family: Family) -> bool {
        family == Family::Norm
    }
}

/// A graph whose names are anything, with a copy in it.
fn odd_names() -> ComputeGraph {
    let mut graph = ComputeGraph::new();
    let row = TensorType::f32([1, 256]);
    let x = graph.input("\"x\" & <y>\\n", row);
    let state = graph.state("state; }", row);
    let w = graph.weight("w \"", TensorType::new(Element::Weights(WeightFormat::Q8_0), [256, 256]));
    let y = graph.mat_mul("a -> b [label=\"c\"]", x, w, None).unwrap();
    let sum = graph.add("</g><sum>\\", y, x).unwrap();
    // What a node makes may have the name of what it changes: the one before reads the state as it was.
    graph.silu("before", state).unwrap();
    graph.assign("state; }", state, sum).unwrap();
    graph.output(sum).unwrap();
    graph
}

/// Plans of every kind, with their graphs.
fn plans() -> Vec<(ComputeGraph, Plan)> {
    let whole = Call { layers: 3, whole: true, ..Call::decode(2) };
    let prompt = Call { tokens: 40, ..Call::decode(1) };
    let mut all = Vec::new();
    for (model, call, arithmetic, dispatch) in [
        (&MODELS[0], Call::decode(1), Arithmetic::Exact, &KernelLibrary as &dyn KernelDispatch),
        (&MODELS[2], whole, Arithmetic::Int8, &KernelLibrary),
        (&MODELS[3], prompt, Arithmetic::Exact, &KernelLibrary),
        (&MODELS[1], prompt, Arithmetic::Exact, &OwnNorms),
    ] {
        let graph = model::graph(model, &call).unwrap();
        let plan = Plan::new(&graph, &options(arithmetic), dispatch).unwrap();
        all.push((graph, plan));
    }
    let graph = odd_names();
    let plan = Plan::new(&graph, &options(Arithmetic::Exact), &KernelLibrary).unwrap();
    all.push((graph, plan));
    all
}

fn name(program: &Program, tensor: Tensor) -> String {
    program.info(tensor).name.clone()
}

/// Every tensor from every step that makes it to every step that reads it.
fn expected_edges(program: &Program) -> Vec<(usize, usize, String)> {
    let mut edges = Vec::new();
    for (to, step) in program.steps().iter().enumerate() {
        let mut reads: Vec<Tensor> = step.op.reads().collect();
        reads.sort_unstable();
        reads.dedup();
        for tensor in reads {
            let from = program.steps().iter().position(|step| step.op.writes().any(|made| made == tensor));
            edges.extend(from.map(|from| (from, to, name(program, tensor))));
        }
    }
    edges.sort();
    edges
}

/// What the plan has is in the report, launch by launch and argument by argument.
#[test]
fn reports_are_their_plans() {
    for (graph, plan) in plans() {
        let report = PlanReport::new(&graph, &plan);
        let program = plan.program();
        assert_eq!(report.version, VERSION);
        assert_eq!(report.before.len(), graph.nodes().len());
        for (node, id) in report.before.iter().zip(graph.order().unwrap()) {
            let own = graph.node_of(id).unwrap();
            assert_eq!((node.name.as_str(), node.op.as_str()), (own.name.as_str(), own.op.name()));
            assert!(program.steps()[node.step].nodes.contains(&id));
        }
        assert_eq!(report.launches.len(), plan.launches().count());
        for ((step, launch), said) in plan.launches().zip(&report.launches) {
            assert_eq!((said.step, said.kernel.as_str()), (step, launch.kernel.entry()));
            assert_eq!((said.grid, said.block, said.bytes), (launch.grid, launch.block, launch.bytes));
            let nodes = program.steps()[step].nodes.iter().map(|&id| &graph.node_of(id).unwrap().name);
            assert!(nodes.eq(&said.nodes));
            assert_eq!(said.args.len(), launch.args.len());
            for (arg, (arg_name, source)) in said.args.iter().zip(&launch.args) {
                assert_eq!(arg.name, *arg_name);
                let same = match (&arg.source, *source) {
                    (
                        SourceReport::Tensor { name: said, part, at, len },
                        ArgSource::Tensor { tensor, plane, at: from, len: count },
                    ) => *said == name(program, tensor) && (*part, *at, *len) == (plane, from, count),
                    (SourceReport::Weights { name: said, .. }, ArgSource::Weights { tensor, .. }) => {
                        *said == name(program, tensor)
                    }
                    (SourceReport::Scratch { index, bytes, zeroed }, ArgSource::Scratch(id)) => {
                        let scratch = plan.scratch()[id.index()];
                        *index == id.index() && (*bytes, *zeroed) == (scratch.bytes(), scratch.zeroed)
                    }
                    (SourceReport::U32(said), ArgSource::U32(value)) => *said == value,
                    (SourceReport::F32(said), ArgSource::F32(value)) => *said == value,
                    _ => false,
                };
                assert!(same, "{arg:?} for {source:?}");
            }
        }
        let of_steps: Vec<usize> = report.steps.iter().flat_map(|step| step.launches.clone()).collect();
        assert!(of_steps.into_iter().eq(0..report.launches.len()));
        for (said, (step, planned)) in report.steps.iter().zip(program.steps().iter().zip(plan.steps())) {
            assert_eq!((said.op.as_str(), said.overridden), (step.op.name(), planned.overridden));
            assert_eq!(said.copies.len(), planned.actions.len() - said.launches.len());
            let fused = step.nodes.len() > 1;
            assert!(!fused || !said.fusions.is_empty(), "{said:?}");
        }
        assert_eq!(report.totals.bytes, report.launches.iter().map(|launch| launch.bytes).sum::<u64>());
        assert_eq!(report.memory.arena_bytes, plan.memory().arena_bytes);
        assert_eq!(report.memory.in_place.len(), plan.memory().in_place().len());
    }
}

/// The JSON is read back as the same report, and has the fields that its page promises.
#[test]
fn json_is_read_back() {
    for (graph, plan) in plans() {
        let mut unfused = plan.options().clone();
        unfused.fusions = Fusions::none();
        let mut report = PlanReport::new(&graph, &plan);
        if let Ok(unfused) = Plan::new(&graph, &unfused, &KernelLibrary) {
            report = report.with_unfused(&unfused);
            assert!(report.unfused.unwrap().launches >= report.totals.launches);
        }
        let text = report.to_json().unwrap();
        assert_eq!(serde_json::from_str::<PlanReport>(&text).unwrap(), report);

        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["version"], 1);
        let launches = value["launches"].as_array().unwrap();
        for (launch, (_, planned)) in launches.iter().zip(plan.launches()) {
            assert_eq!(launch["kernel"], planned.kernel.entry());
            assert_eq!(launch["grid"], serde_json::json!(planned.grid));
            assert_eq!(launch["block"], serde_json::json!(planned.block));
            assert_eq!(launch["bytes"], planned.bytes);
            assert!(launch["nodes"].is_array());
            for arg in launch["args"].as_array().unwrap() {
                let kinds = ["tensor", "weights", "scratch", "u32", "f32"];
                let of_kind = kinds.iter().filter(|kind| arg.get(**kind).is_some()).count();
                assert_eq!((of_kind, arg.as_object().unwrap().len()), (1, 2), "{arg}");
            }
        }
        for field in ["target", "before", "steps", "tensors", "memory", "totals"] {
            assert!(!value[field].is_null(), "{field}");
        }
    }
}

/// The graph for Graphviz has each node, each step and each edge once.
#[test]
fn graphs_for_graphviz_have_everything_once() {
    for (graph, plan) in plans() {
        let report = PlanReport::new(&graph, &plan);
        let read = dot(&report.to_dot());
        let before = (0..report.before.len()).map(|i| format!("node{i}"));
        let after = (0..report.steps.len()).map(|i| format!("step{i}"));
        assert!(before.chain(after).eq(read.nodes.iter().map(|(name, _)| name.clone())));
        for ((_, label), node) in read.nodes.iter().zip(&report.before) {
            assert_eq!(label.rsplit_once('\n').unwrap().0, node.name);
        }
        let number = |name: &str| name.strip_prefix("step").map(|number| number.parse::<usize>().unwrap());
        let mut edges: Vec<(usize, usize, String)> = (read.edges.iter())
            .filter_map(|(from, to, label)| Some((number(from)?, number(to)?, label.clone())))
            .collect();
        edges.sort();
        assert_eq!(edges, expected_edges(plan.program()));
        let unfused = Program::new(&graph).unwrap();
        assert_eq!(read.edges.len() - edges.len(), expected_edges(&unfused).len());
    }
}

/// Each launch has one line, which ends with its kernel.
#[test]
fn tables_have_each_launch_once() {
    for (graph, plan) in plans() {
        let report = PlanReport::new(&graph, &plan);
        let table = report.to_table();
        let (_, after) = table.split_once("\nafter\n").unwrap();
        let kernels: Vec<&str> = report.launches.iter().map(|launch| launch.kernel.as_str()).collect();
        // The lines of nodes have fewer cells, and a node may be named like a kernel.
        let lines = after.lines().filter(|line| line.split_whitespace().count() > 3);
        let ends = lines.filter_map(|line| line.split_whitespace().last());
        assert!(ends.filter(|end| kernels.contains(end)).eq(kernels.iter().copied()));
    }
}

/// The example's command line: what it takes, and what it says of the rest.
#[test]
fn arguments_of_the_example() {
    let parse = |line: &str| args::parse(line.split_whitespace().map(String::from));
    let args = parse("--dot --model qwen3-8b --batch 3 --act int8 --whole").unwrap().unwrap();
    assert_eq!((args.form, args.model.name, args.call.batch), (Form::Dot, "qwen3-8b", 3));
    assert_eq!((args.options.arithmetic, args.call.layers), (Arithmetic::Int8, args.model.layers));
    let args = parse("").unwrap().unwrap();
    assert_eq!((args.form, args.call.layers, args.call.tokens), (Form::Table, 1, 1));
    assert!(parse("--json --help").unwrap().is_none());
    assert_eq!(parse("--json --dot").unwrap_err(), ArgError::Forms);
    assert_eq!(parse("--batch").unwrap_err(), ArgError::NoValue("--batch"));
    assert_eq!(parse("-x").unwrap_err(), ArgError::Unknown("-x".into()));
    for wrong in ["--batch 0", "--tokens x", "--model gpt", "--act exactly", "--sm 81", "--layers -1"] {
        assert!(matches!(parse(wrong), Err(ArgError::Value { .. })), "{wrong}");
    }
    let usage_options = args::USAGE.split_whitespace().filter(|word| word.starts_with("--"));
    for option in usage_options.filter(|word| word.chars().all(|c| c.is_alphanumeric() || c == '-')) {
        assert!(!matches!(parse(option), Err(ArgError::Unknown(_))), "{option}");
    }
}

/// Steps of a dispatcher's own are said to be that.
#[test]
fn overridden_steps_are_marked() {
    let graph = model::graph(&MODELS[0], &Call { tokens: 40, ..Call::decode(1) }).unwrap();
    let plan = Plan::new(&graph, &options(Arithmetic::Exact), &OwnNorms).unwrap();
    let report = PlanReport::new(&graph, &plan);
    let own = |op: &StepOp| op.family() == Family::Norm;
    let steps = plan.program().steps().iter().zip(&report.steps);
    assert!(report.steps.iter().any(|step| step.overridden));
    for (step, said) in steps {
        assert_eq!((said.overridden, said.launches.is_empty()), (own(&step.op), own(&step.op)));
    }
}

/// Names with letters that are commands to a terminal, or that no text has, do no harm.
#[test]
fn names_that_are_no_text() {
    let mut graph = ComputeGraph::new();
    let row = TensorType::f32([1, 64]);
    let x = graph.input("x\u{1b}[2J", row);
    let y = graph.silu("a\r\n\0b", x).unwrap();
    let y = graph.silu("\u{7}c", y).unwrap();
    graph.output(y).unwrap();
    let plan = Plan::new(&graph, &options(Arithmetic::Exact), &KernelLibrary).unwrap();
    let report = PlanReport::new(&graph, &plan);
    for text in [report.to_table(), report.to_dot()] {
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    }
    assert_eq!(dot(&report.to_dot()).nodes.len(), 4);
    assert_eq!(serde_json::from_str::<PlanReport>(&report.to_json().unwrap()).unwrap(), report);
}

/// A graph that is not the plan's, or that has grown since, is reported without its steps.
#[test]
fn graphs_that_were_not_planned() {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 64]));
    let y = graph.silu("y", x).unwrap();
    let plan = Plan::new(&graph, &options(Arithmetic::Exact), &KernelLibrary).unwrap();
    graph.silu("z", y).unwrap();
    for graph in [graph, odd_names(), ComputeGraph::new()] {
        let report = PlanReport::new(&graph, &plan);
        assert_eq!((report.before.len(), report.steps.len()), (graph.nodes().len(), 1));
        assert!(!report.to_dot().is_empty() && !report.to_table().is_empty());
    }
}
